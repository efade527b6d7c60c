"""Disjoint masks: a row is in at most one, and each filter is a union of some."""

from __future__ import annotations

import itertools

import pytest

from dpsql.plan.measures.measurements import Mask
from dpsql.plan.measures.normal_form import masks_of as masks_within
from dpsql.relation.expressions import Expr
from dpsql.tests.plan.planned import released
from dpsql.tests.sql.campus import where

A, B, C = where("active"), where("enrolled > 3"), where("gpa < 2")
ONE, TWO, THREE = (where(f"enrolled = {i}") for i in (1, 2, 3))


def masks_of(filters: list[Expr], rest: bool) -> list[Mask]:
    masks = masks_within(filters, rest, 64)
    assert masks is not None
    return masks


def holds(mask: Mask, row: dict[Expr, bool]) -> bool:
    return all(row[term] is wanted for term, wanted in mask.terms)


@pytest.mark.parametrize("filters", [[A], [A, B], [A, B, C]])
@pytest.mark.parametrize("rest", [False, True])
def test_a_row_is_in_one_mask(filters: list[Expr], rest: bool) -> None:
    """In exactly one where it passes a filter or all rows are wanted, in none otherwise."""
    masks = masks_of(filters, rest)
    for truth in itertools.product((True, False), repeat=len(filters)):
        row = dict(zip(filters, truth, strict=True))
        assert sum(holds(mask, row) for mask in masks) == (1 if rest or any(truth) else 0)
    assert len(masks) == 2 ** len(filters) - (not rest)


def test_what_excludes_each_other_has_a_mask_each() -> None:
    assert len(masks_of([ONE, TWO, THREE], rest=False)) == 3
    assert len(masks_of([ONE, TWO, THREE], rest=True)) == 4
    assert len(masks_of([ONE, TWO, A], rest=False)) == 5  # 8 but for none of them, and both of the first two


def test_exclusive_masks_are_truth_assignments_all_the_same() -> None:
    """What `is_disjoint` says: were they not exclusive, a row would still be in at most one."""
    masks = masks_of([ONE, TWO], rest=True)
    for truth in itertools.product((True, False), repeat=2):
        assert sum(holds(mask, dict(zip((ONE, TWO), truth, strict=True))) for mask in masks) <= 1


def test_many_masks_are_not_built_to_be_counted() -> None:
    many = [where(f"gpa > {i}") for i in range(40)]
    assert masks_within(many, True, 10**6) is None
    assert masks_within(many[:12], True, 64) is None
    assert len(masks_of([where(f"enrolled = {i}") for i in range(40)], rest=True)) == 41
    assert masks_within([where(f"enrolled = {i}") for i in range(40)], True, 40) is None
    assert masks_within(many[:6], True, 64) is masks_within(
        many[:6], True, 64
    )  # a statement asks for them often


def test_masks_of_late_are_those_of_the_very_filters() -> None:
    """Other filters of the same meaning have their own, at their own places of the text."""
    same = [where("gpa > 3"), where("gpa > 3")]
    assert masks_of(same[:1], True)[0].terms[0][0] is same[0]
    assert masks_of(same[1:], True)[0].terms[0][0] is same[1]


@pytest.mark.parametrize("rest", [False, True])
def test_masks_are_all_that_can_be_true_together_in_order(rest: bool) -> None:
    filters = [ONE, A, TWO, C]
    truths = [tuple(truth for _, truth in mask.terms) for mask in masks_of(filters, rest)]
    possible = [one for one in itertools.product((True, False), repeat=4) if not (one[0] and one[2])]
    assert truths == [one for one in possible if rest or any(one)]


def test_filtered_counts_share_one_measurement() -> None:
    release = released("SELECT COUNT(*) FILTER (WHERE days > 3), COUNT(*) FILTER (WHERE urgent) FROM visit")
    assert [(measurement.size, len(measurement.masks)) for measurement in release.measurements] == [(3, 3)]
    assert [len(formula.coordinates) for formula in release.formulas] == [2, 2]

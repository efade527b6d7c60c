"""Claims of vectors, by hand: soundness.md 1.1 for one unit added, twice that for one replaced, but for single numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.plan.measures.vectors import VECTORS, Bounding, Kind, Mask, Vector, counted_in
from dpsql.relation.expressions import Field
from dpsql.relation.lattice import Lattice
from dpsql.relation.types import BOOLEAN

STEPS = Lattice(-10, 50, Fraction(1, 10), Fraction(-1), Fraction(5), exact=True)
"""W = 60, B = 50."""
ALL = (Mask(()),)
URGENT, PAID = Field(BOOLEAN, 0, "urgent"), Field(BOOLEAN, 1, "paid")


def bounding(rows: int, groups: int, *, replace: bool = False, per_row: bool = False) -> Bounding:
    """Return the bounds of a unit with so many rows in each of so many groups: R is their product."""
    return Bounding(rows * groups, rows, groups, per_row, groups > 1, replace, groups > 1)


def vector(kind: Kind, bounds: Bounding, masks: tuple[Mask, ...] = ALL, *, null_rows: bool = False) -> Vector:
    """Return a vector with P = 4."""
    return VECTORS[kind](None, STEPS, masks, null_rows, 4, bounds)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        # M = 3 rows in each of C = 2 groups: R = 6. What is scaled is counted in 1/U of a lattice unit, and U is
        # the least power of two with U·reach >= 1024; a replaced unit counts twice, as there are groups.
        (Kind.COUNT, 6 * 1024),
        (Kind.PAIR, 6 * 60 * 32),
        (Kind.SUM, 6 * 50 * 32),
        (Kind.CENTRED, 6 * 60 * 32),
        (Kind.MOMENT, 6 * 60**2),
        (Kind.DISTINCT, 4),
        (Kind.UNITS, 2),
        (Kind.DIRECT, 2 * 60),
    ],
)
def test_many_rows_in_groups(kind: Kind, added: int) -> None:
    assert vector(kind, bounding(3, 2)).sensitivity == added
    assert vector(kind, bounding(3, 2, replace=True)).sensitivity == 2 * added


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # one number over 3 rows a unit: a replaced one moves it by the range, not twice
        (Kind.COUNT, 3 * 1024, 3 * 1024),
        (Kind.SUM, 3 * 50 * 32, 3 * (50 + 10) * 32),
        (Kind.PAIR, 3 * 60 * 32, 2 * 3 * 60 * 32),
        (Kind.CENTRED, 3 * 60 * 32, 2 * 3 * 60 * 32),
        (Kind.MOMENT, 3 * 60**2, 2 * 3 * 60**2),
        (Kind.DISTINCT, 4, 4),
        (Kind.UNITS, 1, 1),
        (Kind.DIRECT, 60, 60),
    ],
)
def test_one_number_without_groups(kind: Kind, added: int, replaced: int) -> None:
    assert vector(kind, bounding(3, 1)).sensitivity == added
    assert vector(kind, bounding(3, 1, replace=True)).sensitivity == replaced


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # one row a unit, held by the engine: nothing is scaled, so U = 1
        (Kind.COUNT, 1, 1),
        (Kind.SUM, 50, 60),
        (Kind.PAIR, 60, 120),
        (Kind.CENTRED, 60, 120),
        (Kind.DIRECT, 60 // 2 + 1, 60),
    ],
)
def test_one_row_a_unit_is_counted_whole(kind: Kind, added: int, replaced: int) -> None:
    assert vector(kind, bounding(1, 1, per_row=True)).denominator == 1
    assert vector(kind, bounding(1, 1, per_row=True)).sensitivity == added
    assert vector(kind, bounding(1, 1, per_row=True, replace=True)).sensitivity == replaced


def test_two_masks_are_two_numbers() -> None:
    """A replaced unit leaves one and enters the other."""
    masks = (Mask(((URGENT, True),)), Mask(((URGENT, False),)))
    assert vector(Kind.COUNT, bounding(1, 1, per_row=True, replace=True), masks).sensitivity == 2
    assert vector(Kind.COUNT, bounding(1, 1, per_row=True), masks).sensitivity == 1


def test_coordinates() -> None:
    bounds, masks = bounding(3, 2), (*ALL, *ALL)
    assert vector(Kind.COUNT, bounds, masks).size == 2
    assert vector(Kind.PAIR, bounds, masks).size == 4
    assert vector(Kind.PAIR, bounds, masks, null_rows=True).size == 6
    assert vector(Kind.DIRECT, bounds).empty_value == 20  # the middle of -10 and 50
    assert vector(Kind.SUM, bounds).scale(Fraction(1, 2)) == 2 * 6 * 50 * 32


def test_a_units_rows_are_those_that_any_scaled_vector_could_count() -> None:
    bounds = bounding(3, 2)
    urgent = vector(Kind.COUNT, bounds, (Mask(((URGENT, True), (PAID, False))),))
    paid = vector(Kind.SUM, bounds, (Mask(((PAID, True),)),))
    assert set(counted_in([urgent, paid])) == {URGENT, PAID}
    assert counted_in([urgent]) == (URGENT,)
    assert counted_in([urgent, vector(Kind.UNITS, bounds)]) == (URGENT,)  # people are ranked, not scaled


@pytest.mark.parametrize("mask", [Mask(()), Mask(((PAID, False),))])
def test_a_mask_without_a_true_filter_counts_any_row(mask: Mask) -> None:
    bounds = bounding(3, 2)
    urgent = vector(Kind.COUNT, bounds, (Mask(((URGENT, True),)),))
    assert counted_in([urgent, vector(Kind.SUM, bounds, (mask,))]) == ()

"""When the largest groups are chosen, and by which bounds they are then measured: from bounds and numbers alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.plan.measures.measurements import Bounding
from dpsql.plan.measures.top import TopGroups, among, top_groups
from dpsql.plan.privacy.keys import environment_of
from dpsql.relation.catalog import Column, Enforced
from dpsql.relation.expressions import Field
from dpsql.relation.relations import AggregateCall
from dpsql.relation.types import BIGINT, INTEGER

_ENV = environment_of(
    (
        Column("id", INTEGER, Enforced(not_null=True)),
        Column("km", INTEGER, bounds=(Fraction(0), Fraction(9))),
        Column("gain", INTEGER, bounds=(Fraction(-1), Fraction(9))),
    ),
    (),
)
_COUNT = AggregateCall(BIGINT, "count", (), False, None)
_SUM = AggregateCall(BIGINT, "sum", (Field(INTEGER, 1, "km"),), False, None)
_PEOPLE = AggregateCall(BIGINT, "count", (Field(INTEGER, 0, "id"),), True, None)
_BOUNDS = Bounding(40, 2, 20, False, True, False, True)


def top(
    count: int, call: AggregateCall = _COUNT, bounding: Bounding = _BOUNDS, groups: int = 1000
) -> TopGroups | None:
    return top_groups(call, _ENV, bounding, (frozenset({0}),), count, groups)


@pytest.mark.parametrize(("call", "most", "each"), [(_COUNT, 5, 2), (_SUM, 5, 18), (_PEOPLE, 5, 1)])
def test_it_pays_where_the_noise_is_a_quarter(call: AggregateCall, most: int, each: int) -> None:
    """40 >= 4 · min(40, 2K), and of people 20 >= 4 · min(20, K)."""
    for count in range(1, 12):
        found = top(count, call)
        assert (found is not None) == (count <= most)
        if found is not None:
            assert (found.each, found.sensitivity) == (each, count * each)
            assert replace(found, bounding=replace(_BOUNDS, replace_one=True, together=3)).sensitivity == (
                6 * count * each
            )


def test_there_is_something_to_choose_and_not_too_much() -> None:
    wide = replace(_BOUNDS, in_all=10**6, groups=10**5)
    for count, groups, chooses in (
        (0, 9, False), (3, 3, False), (3, 4, True), (32, 100, True), (33, 100, False),
        (32, 2**13, True), (32, 2**13 + 1, False), (2, 100_000, True), (3, 100_000, False),
    ):  # fmt: skip
        assert (top(count, bounding=wide, groups=groups) is not None) == chooses, (count, groups)


def test_the_bounds_of_a_few_groups() -> None:
    """R is K · M, C is K, and a rank is printed where a person may be in more of them than C."""
    assert among(_BOUNDS, 3) == replace(_BOUNDS, in_all=6, groups=3, ranked=False)
    assert among(_BOUNDS, 30) == replace(_BOUNDS, in_all=40, groups=20, ranked=True)
    assert among(replace(_BOUNDS, ranked=False), 30) == replace(_BOUNDS, in_all=40, groups=20, ranked=False)


def test_other_aggregates_are_no_score() -> None:
    for function in ("avg", "median", "max", "var_pop"):
        assert top(1, replace(_SUM, function=function)) is None
    assert top(1, replace(_SUM, function="count", distinct=True)) is None


def test_a_sum_that_a_unit_can_make_smaller_is_no_score() -> None:
    """The claim is about scores that all move in one direction (house rule 1)."""
    gain = replace(_SUM, args=(Field(INTEGER, 2, "gain"),))
    assert top(1, _SUM) is not None
    assert top(1, gain) is None

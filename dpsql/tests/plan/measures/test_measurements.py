"""Claims of measurements, by hand: soundness.md 1.1 for one unit added, twice that for one replaced, but for single
numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from dpsql.plan.measures.measurements import (
    Bounding,
    Centred,
    Count,
    Direct,
    DistinctValues,
    Mask,
    Measurement,
    Moment,
    Pair,
    Sum,
    Units,
    counted_in,
)
from dpsql.relation.expressions import Field
from dpsql.relation.intervals import Lattice
from dpsql.relation.types import BOOLEAN

STEPS = Lattice(-10, 50, Fraction(1, 10), Fraction(-1), Fraction(5), exact=True)
"""W = 60, B = 50."""
ALL = (Mask(()),)
U = 2**20
"""What a row of a unit with at most R of them weighs."""
URGENT, PAID = Field(BOOLEAN, 0, "urgent"), Field(BOOLEAN, 1, "paid")


def bounding(rows: int, groups: int, *, replace: bool = False, per_row: bool = False) -> Bounding:
    """Return the bounds of a unit with so many rows in each of so many groups: R is their product."""
    return Bounding(rows * groups, rows, groups, per_row, groups > 1, replace, groups > 1)


def measurement(
    kind: type[Measurement], bounds: Bounding, masks: tuple[Mask, ...] = ALL, *, null_rows: bool = False
) -> Measurement:
    """Return a measurement with P = 4."""
    return kind(None, STEPS, masks, null_rows, 4, bounds)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        # M = 3 rows in each of C = 2 groups: R = 6. What is scaled is counted in 1/U of a lattice unit, U = 2^20;
        # a replaced unit counts twice, as there are groups.
        (Count, 6 * U),
        (Pair, 6 * 60 * U),
        (Sum, 6 * 50 * U),
        (Centred, 6 * 60 * U),
        (Moment, 6 * 60**2 * U),
        (DistinctValues, 4),
        (Units, 2),
        (Direct, 2 * 60),
    ],
)
def test_many_rows_in_groups(kind: type[Measurement], added: int) -> None:
    assert measurement(kind, bounding(3, 2)).sensitivity == added
    assert measurement(kind, bounding(3, 2, replace=True)).sensitivity == 2 * added


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # one number over 3 rows a unit: a replaced one moves it by the range, not twice
        (Count, 3 * U, 3 * U),
        (Sum, 3 * 50 * U, 3 * (50 + 10) * U),
        (Pair, 3 * 60 * U, 2 * 3 * 60 * U),
        (Centred, 3 * 60 * U, 2 * 3 * 60 * U),
        (Moment, 3 * 60**2 * U, 2 * 3 * 60**2 * U),
        (DistinctValues, 4, 4),
        (Units, 1, 1),
        (Direct, 60, 60),
    ],
)
def test_one_number_without_groups(kind: type[Measurement], added: int, replaced: int) -> None:
    assert measurement(kind, bounding(3, 1)).sensitivity == added
    assert measurement(kind, bounding(3, 1, replace=True)).sensitivity == replaced


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # one row a unit, held by the engine: nothing is scaled, so U = 1
        (Count, 1, 1),
        (Sum, 50, 60),
        (Pair, 60, 120),
        (Centred, 60, 120),
        (Direct, 60 // 2 + 1, 60),
    ],
)
def test_one_row_a_unit_is_counted_whole(kind: type[Measurement], added: int, replaced: int) -> None:
    assert measurement(kind, bounding(1, 1, per_row=True)).denominator == 1
    assert measurement(kind, bounding(1, 1, per_row=True)).sensitivity == added
    assert measurement(kind, bounding(1, 1, per_row=True, replace=True)).sensitivity == replaced


def test_two_masks_are_two_numbers() -> None:
    """A replaced unit leaves one and enters the other."""
    masks = (Mask(((URGENT, True),)), Mask(((URGENT, False),)))
    assert measurement(Count, bounding(1, 1, per_row=True, replace=True), masks).sensitivity == 2
    assert measurement(Count, bounding(1, 1, per_row=True), masks).sensitivity == 1


def test_coordinates() -> None:
    bounds, masks = bounding(3, 2), (*ALL, *ALL)
    assert measurement(Count, bounds, masks).size == 2
    assert measurement(Pair, bounds, masks).size == 4
    assert measurement(Pair, bounds, masks, null_rows=True).size == 6
    assert measurement(Direct, bounds).empty_value == 20  # the middle of -10 and 50
    assert measurement(Sum, bounds).scale(Fraction(1, 2)) == 2 * 6 * 50 * U


def test_a_units_rows_are_those_that_any_scaled_measurement_could_count() -> None:
    bounds = bounding(3, 2)
    urgent = measurement(Count, bounds, (Mask(((URGENT, True), (PAID, False))),))
    paid = measurement(Sum, bounds, (Mask(((PAID, True),)),))
    assert set(counted_in([urgent, paid])) == {URGENT, PAID}
    assert counted_in([urgent]) == (URGENT,)
    assert counted_in([urgent, measurement(Units, bounds)]) == (URGENT,)  # people are ranked, not scaled


@pytest.mark.parametrize("mask", [Mask(()), Mask(((PAID, False),))])
def test_a_mask_without_a_true_filter_counts_any_row(mask: Mask) -> None:
    bounds = bounding(3, 2)
    urgent = measurement(Count, bounds, (Mask(((URGENT, True),)),))
    assert counted_in([urgent, measurement(Sum, bounds, (mask,))]) == ()


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_averages_by_groups_of_one_row_a_person_move_by_what_is_claimed(width: int) -> None:
    """Two groups, up to three other rows: a replaced row reaches the claim in L1, and passes none in L2."""
    lattice = Lattice(0, width, Fraction(1), Fraction(0), Fraction(width), exact=True)

    def claim(replace: bool) -> Measurement:
        bounds = Bounding(1, 1, 1, True, False, replace, True)
        return Direct(None, lattice, ALL, False, 4, bounds)

    def average(values: list[int]) -> int:
        return (2 * sum(values) + len(values)) // (2 * len(values)) if values else width // 2

    def answers(rows: tuple[tuple[int, int], ...]) -> list[int]:
        return [average([value for group, value in rows if group == one]) for one in (0, 1)]

    cells = list(product((0, 1), range(width + 1)))
    moved = [
        [
            abs(after - before)
            for before, after in zip(answers((*others, old)), answers((*others, new)), strict=True)
        ]
        for size in range(4)
        for others in combinations_with_replacement(cells, size)
        for old, new in product(cells, repeat=2)
    ]
    assert (
        max(map(sum, moved))
        <= claim(True).sensitivity
        == 2 * claim(False).sensitivity
        == 2 * (width // 2 + 1)
    )
    squares = [sum(change**2 for change in changes) for changes in moved]
    assert width**2 <= max(squares) <= claim(True).squared_sensitivity

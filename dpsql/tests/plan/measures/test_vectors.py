"""Sensitivities, by hand: soundness.md 1.1 for one unit added, twice that for one replaced, but for single numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.plan.measures.vectors import Bounding, Kind, Mask, Vector, sensitivity_of
from dpsql.relation.lattice import Lattice

STEPS = Lattice(-10, 50, Fraction(1, 10), Fraction(-1), Fraction(5), exact=True)
"""W = 60, B = 50."""


def bounding(rows: int, groups: int, *, replace: bool = False) -> Bounding:
    return Bounding(rows, groups, rows == groups == 1, groups > 1, replace, groups > 1)


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # M = 3 rows in each of C = 2 groups
        (Kind.COUNT, 6, 12),
        (Kind.PAIR, 6 * 60, 2 * 6 * 60),
        (Kind.SUM, 6 * 50, 2 * 6 * 50),
        (Kind.MOMENT, 6 * 60**2, 2 * 6 * 60**2),
        (Kind.DISTINCT, 2 * 4, 2 * 2 * 4),
        (Kind.UNITS, 2, 4),
        (Kind.DIRECT, 2 * 60, 2 * 2 * 60),
    ],
)
def test_many_rows_in_groups(kind: Kind, added: int, replaced: int) -> None:
    assert sensitivity_of(kind, STEPS, 1, 4, bounding(3, 2)) == added
    assert sensitivity_of(kind, STEPS, 1, 4, bounding(3, 2, replace=True)) == replaced


@pytest.mark.parametrize(
    ("kind", "added", "replaced"),
    [
        # one number over 3 rows a unit: a replaced one moves it by the range, not twice
        (Kind.COUNT, 3, 3),
        (Kind.SUM, 150, 3 * 50 + 3 * 10),
        (Kind.PAIR, 180, 360),
        (Kind.DISTINCT, 4, 4),
        (Kind.UNITS, 1, 1),
    ],
)
def test_one_number_without_groups(kind: Kind, added: int, replaced: int) -> None:
    assert sensitivity_of(kind, STEPS, 1, 4, bounding(3, 1)) == added
    assert sensitivity_of(kind, STEPS, 1, 4, bounding(3, 1, replace=True)) == replaced


def test_two_masks_are_two_numbers() -> None:
    """A replaced unit leaves one and enters the other."""
    assert sensitivity_of(Kind.COUNT, None, 2, 0, bounding(1, 1, replace=True)) == 2
    assert sensitivity_of(Kind.COUNT, None, 2, 0, bounding(1, 1)) == 1


def test_coordinates() -> None:
    masks = (Mask(()), Mask(()))
    assert Vector(Kind.COUNT, None, None, masks, False, 0, 1).size == 2
    assert Vector(Kind.PAIR, None, STEPS, masks, False, 0, 1).size == 4
    assert Vector(Kind.PAIR, None, STEPS, masks, True, 0, 1).size == 6
    assert Vector(Kind.DIRECT, None, STEPS, masks, False, 0, 1).empty_value == 20
    assert Vector(Kind.SUM, None, STEPS, masks, False, 0, 7).scale(Fraction(1, 2)) == 14

"""How many rows of one person should count: a choice among the values of a grid (soundness.md 3.10).

A person stands at the least place of the grid whose value is no less than their rows, so that those above a value
are those at later places. It is MAX over the places, a public number of persons further inside: people with equal
numbers of rows cost nothing, and a value that nobody reaches is as far off as that number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from ...mechanisms import RankChoice
from .ranks import RankMeasurement

__all__ = ["GRID", "ClipMeasurement", "left_above", "people_above"]

GRID = (
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000,
)  # fmt: skip
"""What comes out, whatever the data."""

_ROOT_OF_TWO = Fraction(141_421_357, 10**8)


@dataclass(frozen=True, slots=True)
class ClipMeasurement(RankMeasurement):
    """The largest place, with `left` persons beyond it besides those that MAX stays inside by."""

    left: int

    def choice(self, epsilon: Fraction) -> RankChoice:
        largest = RankMeasurement.choice(self, epsilon)
        return replace(largest, offset=largest.offset - self.left * self.claim_unit)


def people_above(largest: RankMeasurement, left: int) -> ClipMeasurement:
    """Return the choice that stays `left` persons further inside than a MAX over the places."""
    known = {field.name: getattr(largest, field.name) for field in fields(largest)}
    return ClipMeasurement(**known, left=left)


def left_above(epsilon: Fraction, together: int) -> int:
    """Return how many persons the best bound leaves above it, for counts at an epsilon (Amin et al. 2019).

    One row more in the bound costs every count together·√2/epsilon of noise, and saves each of those above a row.
    """
    return math.ceil(_ROOT_OF_TWO * together / epsilon)

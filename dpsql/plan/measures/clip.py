"""How many rows of one person should count: a choice among the values of a grid (soundness.md 3.10).

A person stands at the least place of the grid whose value is no less than their rows, so that those above a value
are those at later places. It is MAX over the places, a public number of persons further inside: people with equal
numbers of rows cost nothing, and a value that nobody reaches is as far off as that number.
"""

from __future__ import annotations

import math
from dataclasses import field, fields
from fractions import Fraction

from ...mechanisms import Rank, RankChoice, Window, log_above
from ...records import dataclass
from .ranks import RankMeasurement

__all__ = ["GRID", "ClipMeasurement", "left_above", "people_above"]

GRID = (
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000,
)  # fmt: skip
"""What comes out, whatever the data."""

_ODDS = 20
"""Prior weights apart, a value that nobody reaches has so much less weight than one that enough people are above."""
_ROOT_OF_TWO = Fraction(141_421_357, 10**8)


@dataclass(frozen=True, slots=True)
class GridChoice(RankChoice):
    """A choice among the places of `GRID`, of which each misses by a public number more."""

    more: tuple[int, ...] = field(repr=False)

    def intervals(self, window: Window) -> tuple[list[int], list[int]]:
        counts, misses = RankChoice.intervals(self, window)
        each = (miss for count, miss in zip(counts, misses, strict=True) for _ in range(count))
        return [1] * self.candidates, [miss + more for miss, more in zip(each, self.more, strict=True)]


@dataclass(frozen=True, slots=True)
class ClipMeasurement(RankMeasurement):
    """The largest place but for so many persons: `left`, and what keeps values out that hardly anybody reaches.

    A value v has the prior weight 1 / v², as the square of the noise that it costs grows by v².
    """

    left: int

    def choice(self, epsilon: Fraction) -> GridChoice:
        largest, scale = RankMeasurement.choice(self, epsilon), 2 * self.scale(epsilon)
        assert largest.shift == 0
        wanted = math.ceil(scale * log_above(Fraction(_ODDS))) + self.left * self.claim_unit
        more = tuple(math.floor(2 * scale * log_above(Fraction(value))) for value in GRID)
        return GridChoice(
            largest.candidates, 0, largest.p, largest.q, -wanted, largest.clamp, largest.gamma, more
        )

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of the rank: a value may miss by as much more as its prior weight makes up for."""
        return Rank(2 * self.scale(epsilon) / self.claim_unit, len(GRID) * GRID[-1] ** 2)


def people_above(largest: RankMeasurement, left: int) -> ClipMeasurement:
    """Return the choice that stays `left` persons further inside than a MAX over the places."""
    known = {one.name: getattr(largest, one.name) for one in fields(largest)}
    return ClipMeasurement(**known, left=left)


def left_above(epsilon: Fraction, together: int) -> int:
    """Return how many persons the best bound leaves above it, for counts at an epsilon (Amin et al. 2019).

    One row more in the bound costs every count together·√2/epsilon of noise, and saves each of those above a row.
    """
    return math.ceil(_ROOT_OF_TWO * together / epsilon)

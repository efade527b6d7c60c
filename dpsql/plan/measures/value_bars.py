"""The bar of a chosen value: the values at two fractions beside its own, drawn with it (soundness.md 1.21).

House rules:

1. The fractions follow from text, policy, epsilon, level and a count that is released already: fixed before the charge.
2. A pair holds while each end misses its rank by no more than `rows`: whoever shows it asks the laws that are on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from ...mechanisms import Law
from ...records import dataclass
from ...relation.expressions import Expr
from .measurements import Coord, Mask
from .ranks import MAX_FRACTIONS, SplitMeasurement

COUNT_MISSES = Fraction(1, 10)
"""Which part of all misses is left to the count."""
END_MISSES = Fraction(9, 20)
"""Which part is left to each end."""
_MORE_ROWS = 2
"""Between the ways to say which value a quantile is: smallest with that share, or interpolated."""
_WEIGHED = Fraction(15, 16)
"""Least weight, of a row counted, of a person who has many: of up to 64 times what counts, rounded down to 1 / 1024."""
_GRID = 10_000
"""Fractions have at most four decimals, as those that can be asked for."""

BarKey = tuple[Expr, tuple[Mask, ...]]
"""Whose values: the expression and its filter."""
Bars = Mapping[BarKey, "ValueBar"]
"""Of which chosen values there are bars, and how wide."""
NO_BARS: Bars = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ValueBar:
    """`half`: how far the outer fractions are from the asked one; `rows`: by how much each may miss its rank."""

    half: Fraction
    rows: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The coordinates at both ends of a value's bar; None: there the bar goes to the end of what values may be.

    `lowest`, `highest`: those, in steps of the lattice. `rows`: see `ValueBar`. `parts`: a chosen value stands for all
    that are apart from it by at most this part of its size; None: for itself.
    """

    low: Coord | None
    high: Coord | None
    lowest: int
    highest: int
    rows: int
    parts: int | None = None

    def least(self, chosen: int) -> int:
        """Return the least value that a chosen one may stand for."""
        return chosen if self.parts is None else max(self.lowest, chosen - abs(chosen) // self.parts)

    def most(self, chosen: int) -> int:
        """Return the largest value that a chosen one may stand for."""
        return chosen if self.parts is None else min(self.highest, chosen + abs(chosen) // self.parts)


def around(shares: Sequence[Fraction], half: Fraction) -> tuple[Fraction, ...]:
    """Return fractions with those that stand on either side of each, as far as they are inside."""
    outer = (share + way * half for share in shares if 0 < share < 1 for way in (-1, 1))
    return tuple(sorted({*shares, *(share for share in outer if 0 < share < 1)}))


def bar_of(
    split: SplitMeasurement, shares: Sequence[Fraction], rows: int, level: Fraction,
    law_of: Callable[[SplitMeasurement], Law],
) -> ValueBar | None:  # fmt: skip
    """Return the least bar that holds at a level; None: there are too few rows for any, or too many fractions.

    `split`: the measurement, with whatever fractions; `shares`: those asked for. `rows`: how many there are at least.
    `law_of`: what is known of the ranks of a measurement's values. It depends on the fractions, so a bar is looked for
    that is wide enough for its own: to be so is all that a bar needs, whichever of them is found.
    """
    weight = rows if split.bounding.per_row else rows * _WEIGHED

    def fits(half: int) -> bool:
        wide = replace(split, shares=around(shares, Fraction(half, _GRID)))
        off = law_of(wide).half_width(END_MISSES * (1 - level)) + _MORE_ROWS
        return off * _GRID <= half * weight

    widest = max(max(share, 1 - share) for share in shares if 0 < share < 1)
    if len(shares) * 3 > MAX_FRACTIONS:
        return None
    low, high = 0, 1
    while not fits(high):
        low, high = high, 2 * high
        if Fraction(high, _GRID) >= 2 * widest:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    half = Fraction(high, _GRID)
    return ValueBar(half, math.floor(half * weight) - _MORE_ROWS) if half < widest else None

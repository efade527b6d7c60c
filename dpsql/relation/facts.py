"""What may be known of a value: bounds, a lattice, the size of a text, NULL, and a finite list of values.

House rule: every figure is an exact rational; an endpoint that is not rational is widened outward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ..records import dataclass
from .catalog import Scalar
from .types import Kind, SqlType

__all__ = [
    "ONE",
    "TEXT_CUT",
    "ZERO",
    "Facts",
    "common_grid",
    "decimal_scale",
    "grid_of",
    "hull",
    "intersect",
]

ONE = Fraction(1)
ZERO = Fraction(0)

TEXT_CUT = 1_000
"""Characters to which a text is read where it is carried, or anything made of it, unless `max_length` is declared.

Long enough for names, addresses, titles and most notes; short enough that a row has room for 262 of them.
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """The possible values of an expression.

    `lo`, `hi`: inclusive bounds (numbers in their own unit, DATE in days, TIMESTAMP in microseconds,
    booleans 0 and 1), None when unbounded. `grid`: all values are integer multiples of it; None for
    reals. `nullable`: NULL is possible. `values`: all non-NULL values, where they are finite and
    known. `declared`: the bounds come from declarations, literals and what is printed, not from the type
    alone. `size`: most characters of a text, whatever the row holds (`size_rules`).
    """

    lo: Fraction | None = None
    hi: Fraction | None = None
    grid: Fraction | None = None
    nullable: bool = True
    values: tuple[Scalar, ...] | None = None
    declared: bool = False
    size: int = TEXT_CUT

    @property
    def bounded(self) -> bool:
        """Both ends are known."""
        return self.lo is not None and self.hi is not None


def grid_of(type_: SqlType) -> Fraction | None:
    """Return the lattice that a column's type puts its values on; None for floats and free NUMERIC."""
    if type_.kind is Kind.NUMERIC:
        return None if type_.scale is None else Fraction(1, 10**type_.scale)
    return None if type_.is_float else ONE


def common_grid(grids: Sequence[Fraction | None]) -> Fraction | None:
    """Return the coarsest grid that holds all the grids; None when one of them is real."""
    known = [grid for grid in grids if grid is not None]
    if not known or len(known) < len(grids):
        return None
    # of fractions in lowest terms
    return Fraction(
        math.gcd(*(grid.numerator for grid in known)), math.lcm(*(grid.denominator for grid in known))
    )


def intersect(known: Facts, other: Facts) -> Facts:
    """Return the facts of a value of which both are true; its size is the one that is known already."""
    lo = known.lo if other.lo is None else other.lo if known.lo is None else max(known.lo, other.lo)
    hi = known.hi if other.hi is None else other.hi if known.hi is None else min(known.hi, other.hi)
    values = other.values if known.values is None else known.values
    if known.values is not None and other.values is not None:
        values = tuple(value for value in known.values if value in other.values)
    bounded_here = (known.declared or other.lo is not None) and (known.declared or other.hi is not None)
    grid = known.grid if known.grid is not None else other.grid
    return Facts(lo, hi, grid, known.nullable and other.nullable, values, bounded_here, known.size)


def hull(args: Sequence[Facts]) -> Facts:
    """Return the facts of a value that is one of the arguments' values."""
    # Of all: what a filter says does not keep a longer one from a row.
    size = max((arg.size for arg in args), default=0)
    live = [arg for arg in args if arg.values != () or arg.lo is not None]  # a bare NULL adds only NULL
    if not live:
        return Facts(values=(), grid=ONE, declared=True, size=size)
    lows = [arg.lo for arg in live if arg.lo is not None]
    highs = [arg.hi for arg in live if arg.hi is not None]
    values: dict[Scalar, None] | None = {}
    for arg in live:
        if arg.values is None or values is None:
            values = None
        else:
            values.update(dict.fromkeys(arg.values))
    return Facts(
        min(lows) if len(lows) == len(live) else None,
        max(highs) if len(highs) == len(live) else None,
        common_grid([arg.grid for arg in live]),
        any(arg.nullable for arg in args),
        None if values is None else tuple(values),
        all(arg.declared for arg in live),
        size,
    )


def decimal_scale(grid: Fraction) -> int | None:
    """Return the digits after the point that a grid needs; None when no number of digits is enough."""
    return next((scale for scale in range(13) if (grid * 10**scale).denominator == 1), None)

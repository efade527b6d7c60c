"""Pieces of printed private SQL that all forms share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..errors import Refusal
from ..relation.expressions import Expr, Field, Literal, walk
from ..relation.intervals import Facts
from ..relation.types import Kind
from .quote import text

__all__ = [
    "CASTS", "LARGEST", "Number", "clamp", "combined", "decimal_scale", "double_literal", "integer", "integer_kind",
    "is_bare", "product", "reach_of", "times", "unbounded", "widened",
]  # fmt: skip

_BIG = 2**62
_HUGE = 2**125
LARGEST = Fraction(17, 10) * 10**308
"""A double below the largest one: what infinities are clamped to."""

CASTS = {
    Kind.TEXT: "VARCHAR", Kind.BOOLEAN: "BOOLEAN", Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip
"""Kind -> the engine type of a stage value or a cast."""


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number: an integer count of `grid`, or a DOUBLE when `grid` is None.

    `reach`: no value of the integer is larger than this in size, whatever the row holds; it follows
    from the printed clamps and operators alone. The SQL's type is BIGINT below 2^62, else HUGEINT.
    """

    sql: str
    grid: Fraction | None
    reach: int = 0

    @property
    def kind(self) -> str:
        """The integer type of `sql`."""
        return "BIGINT" if self.reach < _BIG else "HUGEINT"

    @property
    def is_decimal(self) -> bool:
        """Whether integers or decimals of some digits hold all its values."""
        return self.grid is not None and decimal_scale(self.grid) is not None


def integer(sql: str, grid: Fraction, reach: int, expr: Expr) -> Number:
    """Return an integer number whose operands were cast to `integer_kind(reach)`."""
    integer_kind(reach, expr)
    return Number(sql, grid, reach)


def integer_kind(reach: int, expr: Expr) -> str:
    """Return the integer type that holds values up to `reach`.

    Raises:
        Refusal: PV202 when no type does.
    """
    if reach < _BIG:
        return "BIGINT"
    if reach < _HUGE:
        return "HUGEINT"
    raise Refusal(
        "this arithmetic could overflow", sqlstate="PV202", position=expr.position,
        hint="narrow the bounds, or use fewer digits",
    )  # fmt: skip


def widened(number: Number, kind: str) -> str:
    """Return a number's SQL in an integer type at least as wide as its own."""
    return number.sql if number.kind == kind else f"CAST({number.sql} AS {kind})"


def times(number: Number, factor: int, expr: Expr) -> Number:
    """Return an integer number times a positive constant, on the same count of a finer grid."""
    assert number.grid is not None
    if factor == 1:
        return number
    reach = number.reach * factor
    kind = integer_kind(max(reach, factor), expr)
    return Number(f"({widened(number, kind)} * {factor})", number.grid / factor, max(reach, 1))


def combined(left: Number, sign: str, right: Number, expr: Expr) -> Number:
    """Return left + right or left - right of two numbers on one grid."""
    assert left.grid is not None
    assert left.grid == right.grid
    reach = left.reach + right.reach
    kind = integer_kind(reach, expr)
    return Number(f"({widened(left, kind)} {sign} {widened(right, kind)})", left.grid, reach)


def product(left: Number, right: Number, expr: Expr) -> Number:
    """Return left * right."""
    assert left.grid is not None
    assert right.grid is not None
    reach = left.reach * right.reach
    kind = integer_kind(max(reach, left.reach, right.reach), expr)
    return Number(
        f"({widened(left, kind)} * {widened(right, kind)})",
        left.grid * right.grid,
        max(reach, left.reach, right.reach),
    )


def clamp(sql: str, lo: str, hi: str, *, nan: bool = False) -> str:
    """Return `sql` limited to [lo, hi]; NULL stays NULL, and NaN becomes NULL.

    A CASE costs a fraction of LEAST(GREATEST()), and does not turn NULL into a bound.
    """
    above = f"{sql} > {hi} AND {sql} <= CAST('Infinity' AS DOUBLE)" if nan else f"{sql} > {hi}"
    return f"CASE WHEN {sql} BETWEEN {lo} AND {hi} THEN {sql} WHEN {sql} < {lo} THEN {lo} WHEN {above} THEN {hi} END"


def reach_of(facts: Facts, grid: Fraction, expr: Expr) -> int:
    """Return the largest size of a value that is clamped into its facts, in counts of the grid."""
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    return math.ceil(max(abs(facts.lo), abs(facts.hi)) / grid)


def unbounded(expr: Expr) -> Refusal:
    """Return the refusal of an expression that arithmetic cannot bound, naming the column that lacks bounds."""
    named = next((part for part in walk(expr) if isinstance(part, Field) and part.name), None)
    if named is None:
        return Refusal(
            "this expression has no finite bounds", sqlstate="PV201", position=expr.position,
            hint="keep 0 out of divisors, and clamp with GREATEST and LEAST",
        )  # fmt: skip
    return Refusal(
        f'bounds of column "{named.name}" are not declared',
        sqlstate="PV101",
        position=named.position or expr.position,
        hint=f"ask the owner to declare bounds for {named.name}",
    )


def decimal_scale(grid: Fraction) -> int | None:
    """Return the digits after the point that a grid needs; None when no number of digits is enough."""
    return next((scale for scale in range(13) if (grid * 10**scale).denominator == 1), None)


def double_literal(value: Fraction) -> str:
    """Return an exact number as the nearest DOUBLE, the largest one beyond its range."""
    value = max(min(value, LARGEST), -LARGEST)
    return f"CAST({text(repr(float(value)))} AS DOUBLE)"


def is_bare(expr: Expr) -> bool:
    """Say whether an expression is a column or a literal, which compare as they stand."""
    return isinstance(expr, (Field, Literal))

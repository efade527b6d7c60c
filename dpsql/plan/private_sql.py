"""Pieces of printed private SQL that all forms share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..errors import Refusal
from ..relation.expressions import Expr, Field, Literal, walk
from ..relation.intervals import Facts
from ..relation.types import Kind
from .quote import text

__all__ = [
    "CASTS",
    "Number",
    "clamp",
    "decimal_scale",
    "double_literal",
    "integer_type",
    "is_bare",
    "unbounded",
]

_BIG = 2**62
_HUGE = 2**125

CASTS = {
    Kind.TEXT: "VARCHAR", Kind.BOOLEAN: "BOOLEAN", Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip
"""Kind -> the engine type of a stage value or a cast."""


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number: an integer count of `grid`, or a DOUBLE when `grid` is None."""

    sql: str
    grid: Fraction | None


def clamp(sql: str, lo: str, hi: str, *, nan: bool = False) -> str:
    """Return `sql` limited to [lo, hi]; NULL stays NULL, and NaN becomes NULL.

    A CASE costs a fraction of LEAST(GREATEST()), and does not turn NULL into a bound.
    """
    above = f"{sql} > {hi} AND {sql} <= CAST('Infinity' AS DOUBLE)" if nan else f"{sql} > {hi}"
    return f"CASE WHEN {sql} BETWEEN {lo} AND {hi} THEN {sql} WHEN {sql} < {lo} THEN {lo} WHEN {above} THEN {hi} END"


def integer_type(facts: Facts, grid: Fraction, expr: Expr) -> str:
    """Return the integer type that holds every value of an expression, by interval arithmetic."""
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    reach = max(abs(facts.lo), abs(facts.hi)) / grid
    if reach < _BIG:
        return "BIGINT"
    if reach < _HUGE:
        return "HUGEINT"
    raise Refusal(
        "this arithmetic could overflow", sqlstate="PV202", position=expr.position, hint="narrow the bounds"
    )


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
    """Return an exact number as the nearest DOUBLE."""
    return f"CAST({text(repr(float(value)))} AS DOUBLE)"


def is_bare(expr: Expr) -> bool:
    """Say whether an expression is a column or a literal, which compare as they stand."""
    return isinstance(expr, (Field, Literal))

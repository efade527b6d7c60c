"""Pieces of printed private SQL that all forms share."""

from __future__ import annotations

import math
from fractions import Fraction

from ...errors import Refusal
from ...records import dataclass
from ...relation.expressions import Expr, walk
from ...relation.facts import decimal_scale
from ...relation.intervals import Facts

__all__ = ["LARGEST", "Number", "integer_kind", "is_bare", "reach_of", "unbounded"]

_BIG = 2**62
_HUGE = 2**125
LARGEST = Fraction(17, 10) * 10**308
"""A double below the largest one: what infinities are clamped to."""


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number: an integer count of `grid`, or a DOUBLE when `grid` is None.

    `reach`: no value of the integer is larger than this in size, whatever the row holds; it follows
    from the printed clamps and operators alone. The SQL's type is BIGINT below 2^62, else HUGEINT.
    Of a DOUBLE, `most` and `least` say that its size is at most 2^most and, unless it is 0, at least
    2^least: an engine may raise where a result leaves the range of doubles (`private_reals`).
    """

    sql: str
    grid: Fraction | None
    reach: int = 0
    most: int = 1024
    least: int = -1074

    @property
    def kind(self) -> str:
        """The integer type of `sql`."""
        return "BIGINT" if self.reach < _BIG else "HUGEINT"

    @property
    def is_decimal(self) -> bool:
        """Whether integers or decimals of some digits hold all its values."""
        return self.grid is not None and decimal_scale(self.grid) is not None


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


def reach_of(facts: Facts, grid: Fraction, expr: Expr) -> int:
    """Return the largest size of a value that is clamped into its facts, in counts of the grid."""
    if facts.lo is None or facts.hi is None:
        raise unbounded(expr)
    return math.ceil(max(abs(facts.lo), abs(facts.hi)) / grid)


def unbounded(expr: Expr) -> Refusal:
    """Return the refusal of an expression that arithmetic cannot bound, naming the column that lacks bounds."""
    named = next((part for part in walk(expr) if part.name), None)
    if named is None:
        return Refusal(
            "this expression has no finite bounds", sqlstate="PV201", position=expr.position,
            hint="keep 0 out of divisors, and clamp with GREATEST and LEAST",
        )  # fmt: skip
    return Refusal(
        f'bounds of column "{named.name}" are not declared',
        sqlstate="PV101",
        position=named.position or expr.position,
        hint=f"filter with {named.name} BETWEEN … AND …, or ask the owner to declare its bounds",
        owner_hint=f"write {named.name} = {{ bounds = [lower, upper] }} among its table's columns in the policy",
    )


def is_bare(expr: Expr) -> bool:
    """Say whether an expression is a column or a literal, which compare as they stand."""
    return expr.column is not None or expr.is_constant

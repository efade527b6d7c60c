"""How large a number can be, by its type and operators alone: what cannot overflow needs no look at each value."""

from __future__ import annotations

import math

from ..relation.expressions import Expr
from ..relation.types import Kind

__all__ = ["cannot_overflow"]

_LIMIT = 1e300
_WIDEST_INTEGER = 2.0**63


def cannot_overflow(expr: Expr) -> bool:
    """Say whether a sum, difference or product of doubles is finite whatever its columns hold."""
    return expr.type.kind in (Kind.NUMERIC, Kind.DOUBLE) and _magnitude(expr) < _LIMIT


def _magnitude(expr: Expr) -> float:
    """Return what the absolute value of an expression never exceeds, rounded up; infinite when not known."""
    if expr.is_constant:
        is_number = expr.type.is_number and expr.constant is not None
        return abs(float(expr.constant)) * 2 if is_number else math.inf  # type: ignore[arg-type]
    if expr.type.is_integer:
        return _WIDEST_INTEGER
    if expr.type.kind is Kind.NUMERIC and expr.type.precision is not None:
        return 10.0 ** (expr.type.precision - (expr.type.scale or 0) + 1)
    if expr.calls("add", "sub", "mul"):
        left, right = map(_magnitude, expr.args)
        return 2 * (left * right if expr.calls("mul") else left + right)
    return math.inf

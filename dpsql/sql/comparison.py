"""Comparisons brought to one form: both sides of one kind, a literal on the lattice of the column's type.

House rules:

1. What Postgres converts in silence is written out here, so that nothing below has to know two kinds:
   a date beside a timestamp, an exact number beside a floating-point one.
2. `x > 1.5` on an integer is `x > 1`: the same rows, and no engine is asked to bring a column to a
   common decimal type, which can overflow on some row (law L2).
3. Two spellings of one comparison become one expression (and one entry in the release store).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ..errors import Position
from ..relation.calendar import DAY
from ..relation.expressions import FALSE, MIRRORED, TRUE, Call, Expr, Literal
from ..relation.types import BOOLEAN, DOUBLE, NUMERIC, TIMESTAMP, Kind, SqlType
from .attach import Outer
from .constants import cast_literal, exact_value, integer_range

__all__ = ["COMPARISONS", "compare", "compare_in", "same_moments"]

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"})
_WHOLE = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}
)
"""Kinds of which a literal of a side's own type stands as it is."""
_ORDER: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "eq": operator.eq, "is_not_distinct": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def same_moments(args: list[Expr]) -> list[Expr]:
    """Return the arguments with dates as timestamps, where dates and timestamps stand side by side."""
    kinds = {arg.type.kind for arg in args}
    if not {Kind.DATE, Kind.TIMESTAMP} <= kinds:
        return args
    return [_as_timestamp(arg) if arg.type.kind is Kind.DATE else arg for arg in args]


def _as_timestamp(expr: Expr) -> Expr:
    if expr.is_constant:
        literal = cast_literal(expr, TIMESTAMP)
        assert literal is not None
        return literal
    return Call(TIMESTAMP, "cast", (expr,), position=expr.position)


def compare(function: str, left: Expr, right: Expr, position: Position | None) -> Expr:
    """Return the comparison of two expressions whose types fit."""
    if left.is_constant and right.is_constant:
        known = _constant(function, left, right)
        if known is not None:
            return Literal(BOOLEAN, known, position=position)
    elif left.is_constant:
        return compare(MIRRORED.get(function, function), right, left, position)
    elif right.constant is not None:
        on_lattice = _with_literal(function, left, right, position)
        if on_lattice is not None:
            return on_lattice
    left, right = same_moments([left, right])
    return Call(BOOLEAN, function, (left, right), position=position)


def compare_in(value: Expr, items: list[Expr], position: Position | None) -> Expr:
    """Return `value IN (literals)`, the items each once and in stable order."""
    if value.is_constant:
        return _constant_in(value, items, position)
    listed: dict[Expr, None] = {}
    is_whole = value.type.kind in _WHOLE
    for item in items:
        if is_whole and item.type == value.type:
            listed[item] = None
            continue
        is_null = item.constant is None
        equal = Call(BOOLEAN, "eq", (value, item)) if is_null else compare("eq", value, item, None)
        if equal.calls("eq") and equal.args[1].is_constant:
            value, literal = equal.args
            listed[literal] = None
    ordered = sorted(listed, key=repr)
    if not ordered:
        return _never(value, position)
    if len(ordered) == 1:
        return Call(BOOLEAN, "eq", (value, ordered[0]), position=position)
    return Call(BOOLEAN, "in", (value, *ordered), position=position)


def _constant(function: str, left: Expr, right: Expr) -> bool | None:
    """Return a comparison of two constant numbers or moments; None for others, and for NULL."""
    if left.constant is None or right.constant is None:
        return None
    if left.type.is_number and right.type.is_number:
        a, b = exact_value(left), exact_value(right)
    elif left.type.is_temporal and right.type.is_temporal:
        ends = [cast_literal(side, TIMESTAMP) for side in (left, right)]
        a, b = (None if end is None else exact_value(end) for end in ends)
    elif left.type.kind is Kind.TIME and right.type.kind is Kind.TIME:
        a, b = exact_value(left), exact_value(right)
    else:
        return None
    return None if a is None or b is None else _ORDER[function](a, b)


def _constant_in(value: Expr, items: list[Expr], position: Position | None) -> Expr:
    """Return `constant IN (literals)` as equalities joined by OR, folded where they are known."""
    found: dict[Expr, None] = {}
    for item in items:
        equal = compare("eq", value, item, position)
        if equal == TRUE:
            return equal
        if equal != FALSE:
            found[equal] = None
    if not found:
        return Literal(BOOLEAN, False, position=position)
    terms = tuple(sorted(found, key=repr))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", terms, position=position)


def _with_literal(function: str, left: Expr, right: Expr, position: Position | None) -> Expr | None:
    """Return the comparison with a constant in the left side's own kind; None when nothing is to be done."""
    if left.type.is_number and right.type.is_number:
        if left.type.is_float:
            double = cast_literal(right, DOUBLE) or Literal(DOUBLE, right.constant, position=right.position)
            return Call(BOOLEAN, function, (left, double), position=position)
        number = exact_value(right)
        if number is None:
            return None
        step = _step(left)
        if step is None:
            literal = Literal(NUMERIC, number, position=right.position) if right.type.is_float else right
            return Call(BOOLEAN, function, (left, literal), position=position)
        return _on_lattice(function, left, number, step, right.position, position)
    if left.type.kind is Kind.DATE and right.type.kind is Kind.TIMESTAMP:
        days = Fraction(right.literal_as(int), DAY)
        return _on_lattice(function, left, days, Fraction(1), right.position, position)
    return None


def _step(expr: Expr) -> Fraction | None:
    """Return the lattice that an exact type puts a value on; None when it is not known."""
    if isinstance(expr, Outer):
        return _step(expr.expr)
    if expr.type.is_integer:
        return Fraction(1)
    known = expr.column is not None and expr.type.scale is not None
    return Fraction(1, 10 ** (expr.type.scale or 0)) if known else None


def _on_lattice(
    function: str,
    left: Expr,
    number: Fraction,
    step: Fraction,
    at: Position | None,
    position: Position | None,
) -> Expr:
    """Return the comparison of values that are multiples of `step`, a whole part of 1, with any number."""
    low, high = _range(left.type)
    if low is not None and high is not None and not low <= number <= high:
        return _outside(function, left, number > high, position)
    value = number
    if step.denominator % number.denominator:  # it lies between two neighbours a and b of the lattice
        if function in ("eq", "is_not_distinct"):
            return FALSE if function == "is_not_distinct" else _never(left, position)
        if function == "ne":
            return _always(left, position)
        # above it means >= b, below it means <= a
        value = step * (math.ceil(number / step) if function in ("gt", "ge") else math.floor(number / step))
        function = "ge" if function in ("gt", "ge") else "le"
    whole = left.type.is_integer or left.type.is_temporal
    literal = Literal(left.type, int(value) if whole else value, position=at)
    return Call(BOOLEAN, function, (left, literal), position=position)


@lru_cache(64)
def _range(type_: SqlType) -> tuple[Fraction | None, Fraction | None]:
    if type_.is_integer:
        low, high = integer_range(type_)
        return Fraction(low), Fraction(high)
    if type_.kind is Kind.NUMERIC and type_.precision is not None:
        end = Fraction(10) ** (type_.precision - (type_.scale or 0)) - Fraction(1, 10 ** (type_.scale or 0))
        return -end, end
    return None, None


def _outside(function: str, left: Expr, above: bool, position: Position | None) -> Expr:
    """Return the comparison with a number above or below all that the type can hold."""
    if function == "is_not_distinct":
        return FALSE
    holds = function == "ne" or function in (("lt", "le") if above else ("gt", "ge"))
    return _always(left, position) if holds else _never(left, position)


def _always(expr: Expr, position: Position | None) -> Expr:
    """Return what is true of every value, and NULL of NULL."""
    return Call(BOOLEAN, "eq", (expr, expr), position=position)


def _never(expr: Expr, position: Position | None) -> Expr:
    """Return what is false of every value, and NULL of NULL."""
    return Call(BOOLEAN, "ne", (expr, expr), position=position)

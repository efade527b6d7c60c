"""Casts: the one function whose type is said by the call itself."""

from __future__ import annotations

import math
from fractions import Fraction

from sqlglot import exp

from ..calendar import DAY
from ..expressions import Call
from ..facts import ONE, Facts, grid_of
from ..size_rules import size_as_text
from ..types import Kind, SqlType
from .row import Args, Function, Syntax, any_null

__all__ = ["ROWS"]


def _type(args: Args) -> SqlType | None:
    raise AssertionError("casts carry their type")


def _is_between_moments(call: Call) -> bool:
    return {call.args[0].type.kind, call.type.kind} == {Kind.DATE, Kind.TIMESTAMP}


def _moment(a: Facts, call: Call) -> Facts:
    if call.type.kind is Kind.TIMESTAMP:
        lo = None if a.lo is None else a.lo * DAY
        hi = None if a.hi is None else a.hi * DAY
        return Facts(lo, hi, ONE, declared=a.declared)
    if a.lo is None or a.hi is None:
        return Facts(grid=ONE)
    return Facts(Fraction(a.lo // DAY), Fraction(a.hi // DAY), ONE, declared=a.declared)


def _cast(args: list[Facts], call: Call) -> Facts:
    a, source, target = args[0], call.args[0].type, call.type
    if _is_between_moments(call):
        return _moment(a, call)
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        step = grid_of(target)
        assert step is not None
        if a.lo is None or a.hi is None:
            return Facts(grid=step)
        lo, hi = math.floor(a.lo / step) * step, math.ceil(a.hi / step) * step
        exact = a.grid is not None and (a.grid / step).denominator == 1
        values = a.values if exact else None
        if source.kind is Kind.BOOLEAN:
            values = None if a.values is None else tuple(Fraction(bool(value)) for value in a.values)
        return Facts(a.lo if exact else lo, a.hi if exact else hi, step, values=values, declared=a.declared)
    if target.kind is Kind.TEXT:
        return Facts(values=a.values if source.kind is Kind.TEXT else None)
    return a


def _size(args: list[Facts], call: Call) -> int:
    return size_as_text(call.args[0], args[0])


def _null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or (_is_between_moments(call) and not args[0].bounded)


ROWS = (
    Function(
        "cast", "CAST(x AS type)", "another type, `x::type` too: numbers, moments, truth values "
        "as integers, all as text; `varchar(n)` cuts", _type, _cast,
        (Syntax(exp.Cast, read=("this", "to")),), size=_size, null=_null,
    ),
)  # fmt: skip

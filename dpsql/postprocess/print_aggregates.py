"""Aggregates above the release whose row has no SQL of its own, printed; `print_public` has the house rule."""

from __future__ import annotations

from collections.abc import Callable

from ..relation.aggregates import ROWS, check_printers
from ..relation.relations import AggregateCall
from ..relation.types import DOUBLE, Kind
from . import null_on_error
from .bind import engine_type, to_double, to_float
from .print_json import joined_items, joined_members

__all__ = ["print_aggregate"]

Form = Callable[[AggregateCall, list[str], str, str, bool], str]


def print_aggregate(
    call: AggregateCall, args: list[str], orders: str, tail: str, *, in_database: bool = False
) -> str:
    """Return the SQL of a call over its printed arguments, its ORDER BY inside and FILTER or OVER, `tail`, behind.

    `in_database`: for the owner's engine, whose threads add doubles in any order.
    """
    if not call.row.above:
        return _FORMS[call.function](call, args, orders, tail, in_database)
    row = "*" if not args else args[0] if len(args) == 1 else f"({', '.join(args)})"
    named = dict(zip("ab", args, strict=False))
    return call.row.above.format(row=row, word=_word(call), orders=orders, **named) + tail


def _word(call: AggregateCall) -> str:
    return "DISTINCT " if call.distinct else ""


def _total(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    """The owner's engine adds doubles with compensation: its threads share a sum in any order."""
    function = "avg" if call.function == "avg_direct" else call.function
    type_ = call.args[0].type
    if call.distinct:
        return f"TRY_CAST({function}(DISTINCT CAST({args[0]} AS DOUBLE)){tail} AS {engine_type(call.type)})"
    if in_database and (function == "avg" or (function == "sum" and not type_.is_integer)):
        added = f"f{function}({to_double(args[0])}){tail}"
        return to_float(added, type_ if function == "sum" else DOUBLE)
    return null_on_error.aggregate(function, args[0], type_, tail)


def _pair(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    return null_on_error.pair(call.function, args[0], args[1], tail)


def _percentile(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    """A value that is there where nothing is interpolated."""
    fraction = f"{call.share.numerator}e0 / {call.share.denominator}e0"
    if call.type != DOUBLE or call.function == "percentile_disc":
        return f"quantile_disc({args[0]}, {fraction}){tail}"
    return to_float(f"quantile_cont({to_double(args[0])}, {fraction}){tail}", DOUBLE)


def _array_agg(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    assert call.type.element is not None
    return f"array_agg({_word(call)}CAST({args[0]} AS {engine_type(call.type.element)}){orders}){tail}"


def _bits(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    return f"{call.function}({_word(call)}TRY_CAST({args[0]} AS {engine_type(call.type)})){tail}"


def _json(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    listed = f"array_agg({_word(call)}{args[0]}{orders}){tail}"
    lines = call.function == "json_agg_lines"
    return joined_items(listed, call.args[0].type, spaced=call.type.kind is Kind.JSONB, lines=lines)


def _json_object(call: AggregateCall, args: list[str], orders: str, tail: str, in_database: bool) -> str:
    listed = f"array_agg({{'k': {args[0]}, 'v': {args[1]}}}{orders}){tail}"
    key, value = (arg.type for arg in call.args)
    return joined_members(listed, key, value, spaced=call.type.kind is Kind.JSONB)


_FORMS: dict[str, Form] = {
    **dict.fromkeys(
        ("sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "avg_direct"), _total
    ),
    **{row.name: _pair for row in ROWS if row.is_paired},
    **dict.fromkeys(("median", "percentile_cont", "percentile_disc"), _percentile),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits), "array_agg": _array_agg,
    **dict.fromkeys(("json_agg", "json_agg_lines", "jsonb_agg"), _json),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg"), _json_object),
}  # fmt: skip
"""Aggregate -> how a call of it is printed."""

check_printers(_FORMS, lambda row: not row.above)

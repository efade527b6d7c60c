"""Aggregates of `sql.public_aggregates`, and those that take rows in an order; `print_public` has the house rule."""

from __future__ import annotations

from collections.abc import Callable

from ..relation.relations import AggregateCall
from ..relation.types import Kind
from .bind import engine_type
from .print_json import joined_items, joined_members

__all__ = ["PUBLIC_CALLS"]

Form = Callable[[AggregateCall, list[str], str, str], str]


def _string_agg(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    word = "DISTINCT " if call.distinct else ""
    return f"string_agg({word}{args[0]}, coalesce({args[1]}, ''){orders}){tail}"


def _array_agg(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    assert call.type.element is not None
    word = "DISTINCT " if call.distinct else ""
    return f"array_agg({word}CAST({args[0]} AS {engine_type(call.type.element)}){orders}){tail}"


def _bits(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    word = "DISTINCT " if call.distinct else ""
    return f"{call.function}({word}TRY_CAST({args[0]} AS {engine_type(call.type)})){tail}"


def _json(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    word = "DISTINCT " if call.distinct else ""
    lines = call.function == "json_agg_lines"
    listed = f"array_agg({word}{args[0]}{orders}){tail}"
    return joined_items(listed, call.args[0].type, spaced=call.type.kind is Kind.JSONB, lines=lines)


def _json_object(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    listed = f"array_agg({{'k': {args[0]}, 'v': {args[1]}}}{orders}){tail}"
    key, value = (arg.type for arg in call.args)
    return joined_members(listed, key, value, spaced=call.type.kind is Kind.JSONB)


def _any_value(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    return f"any_value({args[0]}{orders}){tail}"


PUBLIC_CALLS: dict[str, Form] = {
    "string_agg": _string_agg, "array_agg": _array_agg, "any_value": _any_value,
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits),
    **dict.fromkeys(("json_agg", "json_agg_lines", "jsonb_agg"), _json),
    **dict.fromkeys(("json_object_agg", "jsonb_object_agg"), _json_object),
    "mode": lambda call, args, orders, tail: f"mode({args[0]}{orders}){tail}",
}  # fmt: skip
"""Aggregate -> how a call is printed from its printed arguments, its ORDER BY inside, and FILTER or OVER behind."""

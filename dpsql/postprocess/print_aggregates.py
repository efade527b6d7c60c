"""Aggregates of `sql.public_aggregates`, and those that take rows in an order; `print_public` has the house rule."""

from __future__ import annotations

from collections.abc import Callable

from ..relation.relations import AggregateCall
from .bind import engine_type

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


def _any_value(call: AggregateCall, args: list[str], orders: str, tail: str) -> str:
    return f"any_value({args[0]}{orders}){tail}"


PUBLIC_CALLS: dict[str, Form] = {
    "string_agg": _string_agg, "array_agg": _array_agg, "any_value": _any_value,
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), _bits),
    "mode": lambda call, args, orders, tail: f"mode({args[0]}{orders}){tail}",
}  # fmt: skip
"""Aggregate -> how a call is printed from its printed arguments, its ORDER BY inside, and FILTER or OVER behind."""

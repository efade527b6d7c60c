"""Calls of the aggregates that stand above the release alone, with DISTINCT and ORDER BY inside them."""

from __future__ import annotations

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.aggregates import Aggregate
from ..relation.expressions import Expr
from ..relation.relations import AggregateCall, Order
from ..relation.types import Kind
from .bind_expression import Binder
from .bind_json import bind_json_value
from .bind_window import read_orders
from .public_aggregates import checked_result, public_row, written_arguments

__all__ = ["bind_public_aggregate", "read_public_aggregate"]


def bind_public_aggregate(binder: Binder, node: exp.Expr) -> Expr:
    """Take an aggregate out of an expression."""
    row = public_row(node)
    assert row is not None
    return binder.add_aggregate(read_public_aggregate(binder, node, row))


def read_public_aggregate(binder: Binder, node: exp.Expr, row: Aggregate) -> AggregateCall:
    """Return the aggregate that a function node stands for.

    Raises:
        Refusal: 42803 for nested aggregates, 42883 for arguments that do not fit, 42P10 for an order that DISTINCT
            does not know, 0A000 for an argument that is to be a constant.
    """
    position = binder.position(node)
    if not binder.allow_aggregates:
        raise Refusal(f"{row.name}() cannot stand {binder.place}", sqlstate="42803", position=position)
    written, distinct, order = written_arguments(node, row)
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        args, has_rows = _arguments(binder, row, written)
        orders = read_orders(binder, order)
    finally:
        binder.allow_aggregates, binder.place = True, inside
    result = checked_result(row, tuple(args), position)
    if distinct and (row.name.endswith("object_agg") or args[0].type.is_json):
        raise Refusal(
            f"{row.name}(DISTINCT …) is not answered of these arguments", sqlstate="42883", position=position,
            hint="take DISTINCT in a subquery first",
        )  # fmt: skip
    if distinct:
        orders = _of_distinct(args[0], orders, position)
    name = f"{row.name}_lines" if has_rows and row.name == "json_agg" else row.name
    return AggregateCall(result, name, tuple(args), distinct, None, orders, position=position)


def _arguments(binder: Binder, row: Aggregate, written: list[exp.Expr]) -> tuple[list[Expr], bool]:
    """Return the arguments, and whether JSON shows each on a line: rows and arrays."""
    result = row.result() if row.name in ("json_agg", "jsonb_agg") else None
    if result is None:
        return [binder.bind(one) for one in written], False
    found = [bind_json_value(binder, one, result) for one in written]
    return [value for value, _ in found], any(
        is_row or value.type.kind is Kind.ARRAY for value, is_row in found
    )


def _of_distinct(value: Expr, orders: tuple[Order, ...], position: Position | None) -> tuple[Order, ...]:
    """Return the order of distinct values: they are sorted to be told apart, as in Postgres."""
    if any(order.expr != value for order in orders):
        raise Refusal(
            "with DISTINCT, ORDER BY inside an aggregate takes its argument", sqlstate="42P10", position=position,
            hint="take DISTINCT in a subquery first",
        )  # fmt: skip
    return orders[:1] or (Order(value, False, False),)

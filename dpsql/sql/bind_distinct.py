"""DISTINCT ON: rows numbered by their order, of which the first of each group is kept."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Call, Expr, Field, Literal
from ..relation.relations import Filter, Order, OutputColumn, Relation, Window, WindowCall
from ..relation.types import BIGINT, BOOLEAN
from .bind_expression import Binder
from .bind_order import output_index
from .bind_ties import without_last

__all__ = ["bind_distinct_on", "first_rows"]


def bind_distinct_on(
    binder: Binder, node: exp.Expr, names: Sequence[str], items: Sequence[Expr], orders: Sequence[Order]
) -> list[Expr]:
    """Return the expressions of DISTINCT ON; none where there is none.

    Raises:
        Refusal: 42P10 where ORDER BY does not begin with them.
    """
    distinct = node.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    if on is None:
        return []
    keys: dict[Expr, None] = {}
    columns = [OutputColumn(expr.type, name) for expr, name in zip(items, names, strict=True)]
    for item in on.args["expressions"] if isinstance(on, exp.Tuple) else [on]:
        index = output_index(binder, item, columns, items)
        keys[items[index] if index is not None else binder.bind(item)] = None
    first = [order.expr for order in orders[: len(keys)]]
    if any(expr not in keys for expr in first):
        raise Refusal(
            "ORDER BY begins with what DISTINCT ON names", sqlstate="42P10", position=binder.position(node),
            hint="SELECT DISTINCT ON (a) … ORDER BY a, b",
        )  # fmt: skip
    return list(keys)


def first_rows(
    relation: Relation, keys: Sequence[Expr], orders: Sequence[Order], position: Position | None
) -> Relation:
    """Return the first row of each group of equal keys, in an order; columns stay as they are."""
    number = WindowCall(BIGINT, "row_number", (), tuple(keys), tuple(orders), None, position=position)
    numbered = Window(relation, (number,), position=position)
    first = Field(BIGINT, len(relation.columns))
    kept = Filter(numbered, Call(BOOLEAN, "eq", (first, Literal(BIGINT, 1))), position=position)
    return without_last(kept, len(relation.columns))

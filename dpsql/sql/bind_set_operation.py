"""UNION, INTERSECT and EXCEPT: both sides brought to the same column types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import Expr, Field
from ..relation.functions import common_type
from ..relation.relations import Order, OutputColumn, Relation, SetOperation, ordered, projected
from .bind_expression import Binder, Grammar, cast
from .bind_order import bind_limit, output_index
from .bind_window import nulls_first
from .scope import BindingContext, Scope
from .text import position_of

__all__ = ["bind_set_operation"]

_KINDS: dict[type[exp.Expr], str] = {
    exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except",
}  # fmt: skip


def bind_set_operation(node: exp.Expr, context: BindingContext, grammar: Grammar) -> Relation:
    """Return the relation of a set operation with its ORDER BY and LIMIT.

    Raises:
        Refusal: 42601 or 42804 when the sides do not match, 0A000 for an ORDER BY that is no output column.
    """
    left, right = (grammar.query(node.args[side], context) for side in ("this", "expression"))
    position = position_of(context.text, node)
    if len(left.columns) != len(right.columns):
        raise Refusal("both sides need the same number of columns", sqlstate="42601", position=position)
    outputs = []
    for a, b in zip(left.columns, right.columns, strict=True):
        both = common_type([a.type, b.type])
        if both is None:
            raise Refusal(f"{a.type} and {b.type} cannot be matched", sqlstate="42804", position=position)
        outputs.append(OutputColumn(both, a.name))
    sides = [_as_types(side, outputs) for side in (left, right)]
    keeps = not node.args.get("distinct")
    relation: Relation = SetOperation(
        _KINDS[type(node)], keeps, sides[0], sides[1], tuple(outputs), position=position
    )
    binder = Binder(context, Scope([]), grammar, place="in ORDER BY", allow_aggregates=False)
    orders = _orders(binder, node, relation.columns)
    if orders:
        relation = ordered(relation, tuple(orders))
    return bind_limit(binder, node, relation)


def _orders(binder: Binder, node: exp.Expr, columns: Sequence[OutputColumn]) -> list[Order]:
    orders = []
    for item in node.args["order"].args["expressions"] if node.args.get("order") else []:
        index = output_index(binder, item.args["this"], columns, [])
        if index is None:
            raise Refusal(
                "ORDER BY after a set operation takes an output column",
                sqlstate="0A000",
                position=binder.position(item),
            )
        orders.append(
            Order(Field(columns[index].type, index), bool(item.args.get("desc")), nulls_first(item))
        )
    return orders


def _as_types(side: Relation, outputs: list[OutputColumn]) -> Relation:
    if all(c.type == o.type for c, o in zip(side.columns, outputs, strict=True)):
        return side
    exprs: list[Expr] = []
    for column, output in zip(side.row, outputs, strict=True):
        exprs.append(cast(column, output.type, None))
    return projected(side, exprs, (column.name for column in side.columns))

"""JSON is not compared: two texts of it may be one value, so nothing sorts it, groups by it or tells it apart."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Position, Refusal
from ..relation.expressions import Expr, Scalar, walk
from ..relation.forms import Recursive, parts_of
from ..relation.relations import Aggregate, Distinct, Relation, SetOperation, Sort, Window, expressions
from ..relation.types import SqlType

__all__ = ["check_json"]


def check_json(relation: Relation) -> None:
    """Check that nothing compares JSON. Raises Refusal (42883), as Postgres does of `json`."""
    for node in parts_of(relation):
        for type_, position in _compared(node):
            if type_.is_json or (type_.element is not None and type_.element.is_json):
                raise Refusal(
                    f"values of type {type_} are not compared", sqlstate="42883", position=position or node.position,
                    hint="take a text out of it, and sort or group by that: j ->> 'a', or j::text",
                )  # fmt: skip
        for expr in expressions(node):
            for part in walk(expr):
                if isinstance(part, Scalar):
                    check_json(part.relation)


def _compared(node: Relation) -> Iterator[tuple[SqlType, Position | None]]:
    exprs: list[Expr] = []
    if isinstance(node, Aggregate):
        exprs += node.keys
        for call in node.aggregates:
            exprs += [order.expr for order in call.orders]
            if call.distinct or call.function in ("min", "max", "mode"):
                exprs += call.args
    elif isinstance(node, Sort):
        exprs += [order.expr for order in node.orders]
    elif isinstance(node, Window):
        for window in node.calls:
            exprs += [*window.partition, *(order.expr for order in window.orders)]
            if window.function in ("min", "max"):
                exprs += window.args
    for expr in exprs:
        yield expr.type, expr.position
    is_told_apart = isinstance(node, Distinct) or (isinstance(node, SetOperation) and not node.all)
    if is_told_apart or (isinstance(node, Recursive) and not node.all):
        yield from ((column.type, None) for column in node.columns)

"""Aggregate calls."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.aggregates import Aggregate
from ..relation.expressions import TRUE, Expr
from ..relation.relations import AggregateCall
from ..relation.types import BIGINT, Kind
from .aggregates import AGGREGATES, NAMED
from .bind_expression import Binder
from .bind_percentile import read_within_group
from .bind_public_aggregate import read_public_aggregate
from .bind_window import read_orders
from .public_aggregates import inner_order, public_row

__all__ = ["bind_aggregate", "bind_filter", "bind_grouping", "read_aggregate"]

_NUMBERS = {
    Kind.TEXT: "COUNT takes text; where it is a number: CAST(x AS numeric)",
    Kind.BOOLEAN: "COUNT(*) FILTER (WHERE x) counts the rows where it holds",
    Kind.DATE: "MIN, MAX, MEDIAN and COUNT take dates",
    Kind.TIMESTAMP: "MIN, MAX, MEDIAN and COUNT take timestamps",
    Kind.INTERVAL: "EXTRACT(YEAR FROM x) is a number",
}
"""Type of what an aggregate of numbers does not take -> what to write."""


def read_aggregate(binder: Binder, node: exp.Expr, row: Aggregate) -> AggregateCall:
    """Return the aggregate that a function node stands for.

    Raises:
        Refusal: 42803 for nested aggregates, 42883 for arguments that do not fit.
    """
    position, name = binder.position(node), row.name
    if not binder.allow_aggregates:
        raise Refusal(f"{name}() cannot stand {binder.place}", sqlstate="42803", position=position)
    argument = node.args.get("this")
    if isinstance(node, exp.Anonymous):
        arguments = node.args["expressions"]
        if len(arguments) != 1:
            raise Refusal(f"{node.args['this']} takes one argument", sqlstate="42883", position=position)
        argument = arguments[0]
    if argument is None or (isinstance(argument, exp.Star) and name != "count"):
        raise Refusal(
            f"{name}() takes one argument", sqlstate="42883", position=position, hint="COUNT(*) counts rows"
        )
    if isinstance(argument, exp.Star):
        if name != "count":
            raise Refusal(f"{name}(*) does not exist", sqlstate="42883", position=position)
        return AggregateCall(BIGINT, "count", (), False, None, position=position)
    if row.is_paired:
        return _read_pair(binder, node, row)
    argument, order = inner_order(argument)
    assert isinstance(argument, exp.Expr)
    distinct, parts = isinstance(argument, exp.Distinct), [argument]
    if isinstance(argument, exp.Distinct):
        parts = _told_apart(argument, name, position)
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        exprs = tuple(binder.bind(part) for part in parts)
        read_orders(binder, order)  # a sum, a count or an extreme is the same in any order
    finally:
        binder.allow_aggregates, binder.place = True, inside
    result = row.result(exprs[0].type)
    if result is None:
        raise Refusal(
            f"{name}({exprs[0].type}) does not exist",
            sqlstate="42883",
            position=position,
            hint=_NUMBERS.get(exprs[0].type.kind, "cast the argument"),
        )
    return AggregateCall(result, name, exprs, distinct and row.repeats, None, position=position)


def _told_apart(node: exp.Distinct, name: str, position: Position | None) -> list[exp.Expr]:
    """Return what DISTINCT tells apart: one expression, or for COUNT the columns of a row (…, …)."""
    expressions: list[exp.Expr] = node.args["expressions"]
    inner = expressions[0] if len(expressions) == 1 else None
    while isinstance(inner, exp.Paren):
        inner = inner.args["this"]
    is_row = isinstance(inner, exp.Tuple) or (
        isinstance(inner, exp.Anonymous) and str(inner.args["this"]).lower() == "row"
    )
    if inner is not None and is_row and name == "count" and inner.args.get("expressions"):
        return list(inner.args["expressions"])
    if inner is None or isinstance(inner, exp.Tuple):
        raise Refusal(
            "DISTINCT takes one expression inside an aggregate",
            sqlstate="0A000",
            position=position,
            hint="join the columns: COUNT(DISTINCT a || '-' || b); or count people by all columns of their key: "
            "COUNT(DISTINCT (a, b))",
        )
    return expressions


def _read_pair(binder: Binder, node: exp.Expr, row: Aggregate) -> AggregateCall:
    """Return the aggregate of two values, (Y, X)."""
    position, arguments = binder.position(node), [node.args.get("this"), node.args.get("expression")]
    if isinstance(arguments[0], exp.Distinct):
        raise Refusal(
            f"{row.name.upper()}(DISTINCT …) is not answered", position=position, hint="leave out DISTINCT"
        )
    if not all(
        isinstance(argument, exp.Expr) and not isinstance(argument, exp.Star) for argument in arguments
    ):
        raise Refusal(
            f"{row.name}() takes two arguments, y and x", sqlstate="42883", position=position,
            hint=f"{row.name}(y, x) is of y as a function of x",
        )  # fmt: skip
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        values = tuple(binder.bind(argument) for argument in arguments if isinstance(argument, exp.Expr))
    finally:
        binder.allow_aggregates, binder.place = True, inside
    result = row.result(*(value.type for value in values))
    if result is None:
        raise Refusal(
            f"{row.name}({values[0].type}, {values[1].type}) does not exist", sqlstate="42883", position=position,
            hint="cast the arguments",
        )  # fmt: skip
    return AggregateCall(result, row.name, values, False, None, position=position)


def bind_aggregate(binder: Binder, node: exp.Expr) -> Expr:
    """Take an aggregate out of an expression."""
    row = AGGREGATES[type(node)]
    return (
        _meant(binder, node, row)
        if row.shorthand
        else binder.add_aggregate(read_aggregate(binder, node, row))
    )


def _meant(binder: Binder, node: exp.Expr, row: Aggregate, kept: exp.Expr | None = None) -> Expr:
    """Return what a shorthand says of its argument, on the rows that a FILTER after it keeps."""
    if not binder.allow_aggregates:
        raise Refusal(
            f"{row.name}() cannot stand {binder.place}", sqlstate="42803", position=binder.position(node)
        )
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside an aggregate"
    try:
        parts = {"a": binder.bind_boolean(node.args["this"], f"what {row.name} takes")}
        if kept is not None:
            parts["kept"] = binder.bind_boolean(kept, "FILTER")
    finally:
        binder.allow_aggregates, binder.place = True, inside
    sql = row.shorthand if kept is None else f"{row.shorthand.removesuffix(')')} AND kept)"
    return binder.meant(sql, node, parts)


def bind_filter(binder: Binder, node: exp.Expr) -> Expr:
    """Take `aggregate FILTER (WHERE predicate)` out of an expression.

    Raises:
        Refusal: 42601 after anything but an aggregate, and what `read_aggregate` raises.
    """
    inner, where = node.args["this"], node.args["expression"]
    row = AGGREGATES.get(type(inner))
    if row is not None and row.shorthand:
        return _meant(binder, inner, row, where.args["this"])
    if row is None and isinstance(inner, exp.Anonymous):
        row = NAMED.get(str(inner.args["this"]).lower())
    public = public_row(inner)
    if row is None and public is None and not isinstance(inner, exp.WithinGroup):
        raise Refusal("FILTER stands after an aggregate", sqlstate="42601", position=binder.position(node))
    ordered = read_within_group(binder, inner) if row is None and public is None else None
    aggregate = None if row is None else read_aggregate(binder, inner, row)
    if public is not None:
        aggregate = read_public_aggregate(binder, inner, public)
    inside, binder.allow_aggregates, binder.place = binder.place, False, "inside FILTER"
    try:
        predicate = binder.bind_boolean(where.args["this"], "FILTER")
    finally:
        binder.allow_aggregates, binder.place = True, inside
    kept = None if predicate == TRUE else predicate
    if ordered is not None:
        return ordered.added(binder, kept)
    assert aggregate is not None
    return binder.add_aggregate(replace(aggregate, filter=kept))


def bind_grouping(binder: Binder, node: exp.Expr) -> Expr:
    """Take GROUPING(keys) out of an expression.

    Raises:
        Refusal: 42803 where no aggregate may stand.
    """
    if not binder.allow_aggregates:
        raise Refusal(
            f"GROUPING() cannot stand {binder.place}", sqlstate="42803", position=binder.position(node)
        )
    keys = tuple(binder.bind(part) for part in node.args["expressions"])
    return binder.add_grouping(keys, binder.position(node))

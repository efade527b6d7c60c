"""FROM: tables, CTEs, derived tables, VALUES and joins."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import TRUE, Expr, Field, Literal
from ..relation.functions import common_type
from ..relation.relations import Join, OutputColumn, Relation, Scan, Values
from .bind_expression import Binder, call, cast
from .scope import Context, Scope, Source, find_table, fold_name
from .text import position_of

__all__ = ["bind_from", "bind_values"]

BindQuery = Callable[[exp.Expr, Context], Relation]


def bind_from(node: exp.Select, context: Context, bind_query: BindQuery) -> tuple[Relation, Scope]:
    """Return the joined FROM items and the scope of their names; one row of no columns without FROM."""
    from_ = node.args.get("from_")
    if from_ is None:
        return Values(((),), ()), Scope([])
    relation, source = _item(from_.args["this"], context, bind_query, 0)
    sources = [source]
    for join in node.args.get("joins") or []:
        right, source = _item(join.args["this"], context, bind_query, len(relation.columns))
        if any(known.name == source.name for known in sources):
            raise Refusal(
                f'table name "{source.name}" is used twice',
                sqlstate="42601",
                position=position_of(context.text, join),
                hint="give one of them an alias",
            )
        sources.append(source)
        relation = _join(join, relation, right, sources, context, bind_query)
    return relation, Scope(sources)


def _item(node: exp.Expr, context: Context, bind_query: BindQuery, start: int) -> tuple[Relation, Source]:
    from .bind_select import rename

    position = position_of(context.text, node)
    alias = node.args.get("alias")
    name = fold_name(alias.args["this"])[0] if alias is not None and alias.args.get("this") else None
    columns = (alias.args.get("columns") or []) if alias is not None else []
    relation: Relation
    if isinstance(node, exp.Table):
        identifier = node.args["this"]
        written = fold_name(identifier)[0] if isinstance(identifier, exp.Identifier) else ""
        if node.args.get("db") is None and written in context.ctes:
            relation, name = context.ctes[written], name or written
        else:
            table = find_table(context, node, position)
            relation, name = Scan(table, position=position), name or table.name
    elif isinstance(node, exp.Subquery):
        relation = bind_query(node, context)
    elif isinstance(node, exp.Values):
        relation = bind_values(node, context, bind_query)
    else:
        raise Refusal("this cannot stand in FROM", position=position)
    relation = rename(relation, columns)
    return relation, Source(name or "", relation.columns, start)


def _join(
    node: exp.Expr,
    left: Relation,
    right: Relation,
    sources: list[Source],
    context: Context,
    bind_query: BindQuery,
) -> Relation:
    position = position_of(context.text, node)
    side, kind = str(node.args.get("side") or "").lower(), str(node.args.get("kind") or "").lower()
    if kind not in ("", "inner", "cross", "outer") or side not in ("", "left", "right", "full"):
        raise Refusal(f"{kind.upper()} JOIN is not supported", position=position)
    binder = Binder(context, Scope(sources), bind_query, place="in ON", allow_aggregates=False)
    condition: Expr = TRUE
    if node.args.get("on") is not None:
        condition = binder.bind_boolean(node.args["on"], "ON")
    for column in node.args.get("using") or []:
        name = fold_name(column)[0]
        pair = [_named(part, name, position) for part in (sources[:-1], sources[-1:])]
        equal = call("eq", pair, position)
        condition = equal if condition == TRUE else call("and", [condition, equal], position)
    named = side or ("cross" if condition == TRUE else "inner")
    return Join(named, left, right, condition, position=position)


def _named(sources: list[Source], name: str, position: Position | None) -> Expr:
    hits = [
        Field(column.type, source.start + index, name, position=position)
        for source in sources
        for index, column in enumerate(source.columns)
        if column.name == name
    ]
    if len(hits) != 1:
        raise Refusal(
            f'column "{name}" of USING is not in both tables once', sqlstate="42703", position=position
        )
    return hits[0]


def bind_values(node: exp.Expr, context: Context, bind_query: BindQuery) -> Relation:
    """Return the literal rows of VALUES, columns named column1, column2, …"""
    binder = Binder(context, Scope([]), bind_query, place="in VALUES", allow_aggregates=False)
    rows = []
    for row in node.args["expressions"]:
        items = row.args["expressions"] if isinstance(row, exp.Tuple) else [row]
        rows.append([binder.bind(item) for item in items])
    position = position_of(context.text, node)
    if len({len(row) for row in rows}) != 1:
        raise Refusal("the rows of VALUES differ in length", sqlstate="42601", position=position)
    types = [common_type([row[i].type for row in rows]) for i in range(len(rows[0]))]
    literals = []
    for row in rows:
        cells = []
        for cell, type_ in zip(row, types, strict=True):
            if type_ is None:
                raise Refusal("the rows of VALUES differ in type", sqlstate="42804", position=position)
            value = cast(cell, type_, position)
            if not isinstance(value, Literal):
                raise Refusal("VALUES takes literals", position=position)
            cells.append(value)
        literals.append(tuple(cells))
    outputs = tuple(OutputColumn(t, f"column{i}") for i, t in enumerate(types, 1) if t is not None)
    return Values(tuple(literals), outputs, position=position)

"""FROM: tables, CTEs, derived tables, VALUES and joins."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import TRUE, Expr, Field, Literal
from ..relation.functions import common_type
from ..relation.relations import Join, OutputColumn, Project, Relation, Scan, Values
from .bind_expression import Binder, call, cast
from .scope import Context, Scope, Source, find_table, fold_name
from .text import position_of

__all__ = ["bind_from", "bind_values", "rename"]

BindQuery = Callable[[exp.Expr, Context], Relation]


def bind_from(node: exp.Select, context: Context, bind_query: BindQuery) -> tuple[Relation, Scope]:
    """Return the joined FROM items and the scope of their names; one row of no columns without FROM.

    Raises:
        Refusal: 42P01 no such table, 42601 a name used twice, and what the joins' conditions raise.
    """
    from_ = node.args.get("from_")
    if from_ is None:
        return Values(((),), ()), Scope([])
    relation, source = _item(from_.args["this"], context, bind_query, 0)
    scope = Scope([source])
    has_comma = False
    for join in node.args.get("joins") or []:
        right, source = _item(join.args["this"], context, bind_query, len(relation.columns))
        position = position_of(context.text, join)
        if source.name and any(known.name == source.name for known in scope.sources):
            raise Refusal(
                f'table name "{source.name}" is used twice',
                sqlstate="42601",
                position=position,
                hint="give one of them an alias",
            )
        side, kind = _kind_of(join, position)
        if has_comma and side in ("right", "full"):
            # A comma binds less tightly than JOIN, so this joins the last item alone; we join from the left.
            raise Refusal(
                f"{side.upper()} JOIN after a comma is not supported",
                sqlstate="0A000",
                position=position,
                hint="write CROSS JOIN in place of the comma",
            )
        has_comma = has_comma or not (side or kind or join.args.get("on") or join.args.get("using"))
        relation, scope = _join(join, side, relation, right, scope, source, context, bind_query)
    return relation, scope


def _item(node: exp.Expr, context: Context, bind_query: BindQuery, start: int) -> tuple[Relation, Source]:
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
            relation, name = Scan(table, position=position), name or table.name.rpartition(".")[2]
    elif isinstance(node, exp.Subquery):
        relation = bind_query(node, context)
    elif isinstance(node, exp.Values):
        relation = bind_values(node, context, bind_query)
    else:
        raise Refusal("this cannot stand in FROM", position=position)
    relation = rename(relation, columns, position)
    return relation, Source(name or "", relation.columns, start)


def rename(relation: Relation, columns: list[exp.Expr], position: Position | None) -> Relation:
    """Return the relation with its first columns renamed, as `AS t(a, b)` does.

    Raises:
        Refusal: 42P10 for more names than columns.
    """
    if not columns:
        return relation
    if len(columns) > len(relation.columns):
        raise Refusal("there are more column aliases than columns", sqlstate="42P10", position=position)
    names = [fold_name(column)[0] for column in columns]
    names += [column.name for column in relation.columns[len(names) :]]
    exprs = tuple(Field(c.type, i, n) for i, (c, n) in enumerate(zip(relation.columns, names, strict=True)))
    return Project(relation, exprs, tuple(names))


def _kind_of(join: exp.Expr, position: Position | None) -> tuple[str, str]:
    """Return a join's side and kind in lower case, checked with its condition."""
    side, kind = str(join.args.get("side") or "").lower(), str(join.args.get("kind") or "").lower()
    if kind not in ("", "inner", "cross", "outer") or side not in ("", "left", "right", "full"):
        raise Refusal(f"{kind.upper()} JOIN is not supported", position=position)
    has_condition = bool(join.args.get("on") or join.args.get("using"))
    if (kind == "cross" and has_condition) or ((side or kind == "inner") and not has_condition):
        raise Refusal("JOIN takes ON or USING, CROSS JOIN neither", sqlstate="42601", position=position)
    return side, kind


def _join(
    node: exp.Expr, side: str, left: Relation, right: Relation, scope: Scope, source: Source,
    context: Context, bind_query: BindQuery,
) -> tuple[Relation, Scope]:  # fmt: skip
    """Return the join and the scope of both sides; a column of USING is one column of that scope."""
    position = position_of(context.text, node)
    condition: Expr = TRUE
    merged: list[tuple[str, Expr]] = []
    hidden: set[int] = set()
    for column in node.args.get("using") or []:
        name = fold_name(column)[0]
        first, second = _named(scope, name, position), _named(Scope([source]), name, position)
        equal = call("eq", [first, second], position)
        condition = equal if condition == TRUE else call("and", [condition, equal], position)
        merged.append((name, _merged(side, first, second)))
        hidden |= {expr.index for expr in (first, second) if isinstance(expr, Field)}
    both = scope.joined(source, merged, frozenset(hidden))
    if node.args.get("on") is not None:
        binder = Binder(context, both, bind_query, place="in ON", allow_aggregates=False)
        condition = binder.bind_boolean(node.args["on"], "ON")
    named = side or ("cross" if condition == TRUE else "inner")
    return Join(named, left, right, condition, position=position), both


def _merged(side: str, first: Expr, second: Expr) -> Expr:
    """Return the one column of USING: of the side that is kept, of either in a FULL JOIN."""
    if side == "full":
        return call("coalesce", [first, second], None)
    both = common_type([first.type, second.type])
    kept = second if side == "right" else first
    return kept if both is None else cast(kept, both, None)


def _named(scope: Scope, name: str, position: Position | None) -> Expr:
    found = scope.named(name)
    if len(found) != 1:
        raise Refusal(
            f'column "{name}" of USING is not in both tables once',
            sqlstate="42702" if found else "42703",
            position=position,
        )
    return found[0]


def bind_values(node: exp.Expr, context: Context, bind_query: BindQuery) -> Relation:
    """Return the literal rows of VALUES, columns named column1, column2, …

    Raises:
        Refusal: 42601 for rows of different lengths, 42804 of different types, PV001 for what is no literal.
    """
    binder = Binder(context, Scope([]), bind_query, place="in VALUES", allow_aggregates=False)
    rows = []
    for row in node.args["expressions"]:
        items = (row.args.get("expressions") or []) if isinstance(row, exp.Tuple) else [row]
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

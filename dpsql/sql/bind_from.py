"""FROM: tables, CTEs, derived tables, VALUES and joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.catalog import View
from ..relation.expressions import TRUE, Expr, Literal, conjunction, conjuncts
from ..relation.functions import common_type
from ..relation.map_tables import placed
from ..relation.relations import (
    Join,
    Lateral,
    OutputColumn,
    Relation,
    Scan,
    SetOperation,
    Values,
    projected,
    renamed,
)
from .attach import Attacher, attached_in, first_outer
from .bind_array import bind_rows, is_rows
from .bind_expression import Binder, Grammar, call, cast
from .scope import BindingContext, Scope, ScopeSource, find_table, fold_name, schemas_of
from .text import position_of, said_of

__all__ = ["bind_from", "bind_values", "rename"]


def bind_from(node: exp.Select, context: BindingContext, grammar: Grammar) -> tuple[Relation, Scope]:
    """Return the joined FROM items and the scope of their names; one row of no columns without FROM.

    Raises:
        Refusal: 42P01 no such table, 42601 a name used twice, and what the joins' conditions raise.
    """
    from_ = node.args.get("from_")
    if from_ is None:
        return Values(((),), ()), Scope([], outer=context.outer)
    items = _Items(context, grammar)
    relation, scope = items.item(from_.args["this"])
    return items.joined(relation, scope, node.args.get("joins") or [])


@dataclass(frozen=True, slots=True)
class _Items:
    """Binds FROM items, each with the scope of its names, columns counted from its own first."""

    context: BindingContext
    grammar: Grammar

    def joined(
        self, relation: Relation, scope: Scope, joins: Sequence[exp.Expr], is_nested: bool = False
    ) -> tuple[Relation, Scope]:
        """Return an item with its joins, from the left; no comma stands among nested ones."""
        has_comma = False
        for join in joins:
            position = position_of(self.context.text, join)
            side, kind = _kind_of(join, position)
            is_comma = not (kind or any(join.args.get(name) for name in ("side", "method", "on", "using")))
            if is_comma and is_nested:
                raise Refusal("a comma cannot stand here in FROM", sqlstate="42601", position=position)
            if has_comma and (side in ("right", "full") or join.args.get("method")):
                # A comma binds less tightly than JOIN, so this joins the last item alone; we join from the left.
                raise Refusal(
                    f"{side.upper() or 'NATURAL'} JOIN after a comma is not supported",
                    sqlstate="0A000",
                    position=position,
                    hint="write CROSS JOIN in place of the comma" if side else "write JOIN … ON",
                )
            has_comma = has_comma or is_comma
            right, other = self.item(join.args["this"], scope)
            _check_names(scope, other, position)
            relation, scope = self._join(join, side, (relation, scope), (right, other))
        return relation, scope

    def item(self, node: exp.Expr, beside: Scope | None = None) -> tuple[Relation, Scope]:
        """Return a FROM item with the joins that are nested in it; `beside`: what stands before it in FROM."""
        relation, scope = self._lateral(node, beside) if _is_lateral(node) else self._one(node)
        joins = node.args.get("joins")
        return self.joined(relation, scope, joins, is_nested=True) if joins else (relation, scope)

    def _lateral(self, node: exp.Expr, beside: Scope | None) -> tuple[Relation, Scope]:
        """Return LATERAL (SELECT …), or a function that gives rows, either of which may read what stands before it."""
        context, position = self.context, position_of(self.context.text, node)
        around = context.outer if beside is None else beside
        alias, inner = node.args.get("alias"), node
        numbered = bool(node.args.get("ordinality") or node.args.get("offset"))
        if isinstance(node, exp.Lateral):
            if node.args.get("view") or node.args.get("outer"):
                raise Refusal("this LATERAL is not supported", position=position)
            inner = node.args["this"]
        own: str | None = None
        names: tuple[str, ...] = ()
        if isinstance(inner, exp.Subquery):
            relation = self.grammar.query(inner.args["this"], replace(context, outer=around))
            name = ""
        else:
            binder = Binder(
                context, Scope([], outer=around), self.grammar, place="in FROM", allow_aggregates=False
            )
            if not (is_rows(inner) or isinstance(inner, (exp.ExplodingGenerateSeries, exp.Unnest))):
                raise Refusal(
                    f"{said_of(inner, context.text)} gives no rows in FROM here", sqlstate="0A000", position=position,
                    hint="LATERAL (SELECT …), generate_series, unnest, json_array_elements or json_each",
                )  # fmt: skip
            relation, name, names = bind_rows(binder, inner, numbered=numbered)
            own = name
        columns: list[exp.Expr] = []
        if alias is not None and alias.args.get("this"):
            name = fold_name(alias.args["this"])[0]
            columns = list(alias.args.get("columns") or [])
            own = own and name
        offset = node.args.get("offset")
        if isinstance(offset, exp.Identifier) and columns:
            columns.append(offset)  # the parser takes the name of the last column for the number's own
        if own is not None:
            relation = _named_rows(relation, own, names, numbered=numbered)
        relation = rename(relation, columns, position)
        return relation, Scope(
            [ScopeSource(name, relation.columns, 0, is_value=len(names) == 1)], outer=context.outer
        )

    def _one(self, node: exp.Expr) -> tuple[Relation, Scope]:
        context, position = self.context, position_of(self.context.text, node)
        alias = node.args.get("alias")
        name = fold_name(alias.args["this"])[0] if alias is not None and alias.args.get("this") else None
        columns = (alias.args.get("columns") or []) if alias is not None else []
        relation: Relation
        schemas: frozenset[str] = frozenset()
        if isinstance(node, exp.Table):
            identifier = node.args["this"]
            written = fold_name(identifier)[0] if isinstance(identifier, exp.Identifier) else ""
            if node.args.get("db") is None and written in context.ctes:
                relation, name = context.ctes[written], name or written
            else:
                table = find_table(context, node, position)
                schemas = schemas_of(context, table) if name is None else frozenset()
                name = name or table.name.rpartition(".")[2]
                relation = (
                    placed(table.relation, position)
                    if isinstance(table, View)
                    else Scan(table, position=position)
                )
        elif isinstance(node, exp.Subquery) and _holds_join(node, position):
            relation, scope = self.item(node.args["this"])
            if alias is None:
                return relation, scope
            shown = scope.star(None, position)
            relation = projected(relation, tuple(expr for _, expr in shown), tuple(name for name, _ in shown))
        elif isinstance(node, exp.Subquery):
            relation = self.grammar.query(node.args["this"], context)
        elif isinstance(node, exp.Values):
            relation = bind_values(node, context, self.grammar)
        else:
            raise Refusal("this cannot stand in FROM", position=position)
        is_table = isinstance(relation, Scan)
        relation = rename(relation, columns, position)
        source = ScopeSource(name or "", relation.columns, 0, schemas, is_table=is_table)
        return relation, Scope([source], outer=context.outer)

    def _join(
        self, node: exp.Expr, side: str, left: tuple[Relation, Scope], right: tuple[Relation, Scope]
    ) -> tuple[Relation, Scope]:
        """Return the join and the scope of both sides; a column of USING is one column of that scope."""
        position = position_of(self.context.text, node)
        other = right[1].moved(len(left[0].columns))
        condition: Expr = TRUE
        merged: list[tuple[str, Expr]] = []
        hidden: set[int] = set()
        for name in _shared_names(node, left[1], other):
            first, second = _named(left[1], name, position), _named(other, name, position)
            equal = call("eq", [first, second], position)
            condition = equal if condition == TRUE else call("and", [condition, equal], position)
            merged.append((name, _merged(side, first, second)))
            hidden |= {expr.column for expr in (first, second) if expr.column is not None}
        both = left[1].joined(other, merged, frozenset(hidden))
        binder = Binder(self.context, both, self.grammar, place="in ON", allow_aggregates=False)
        if node.args.get("on") is not None:
            condition = binder.bind_boolean(node.args["on"], "ON")
        if binder.attachments and side:
            raise Refusal(
                f"EXISTS, IN (SELECT …) and subqueries with outer columns cannot stand in ON of a {side.upper()} JOIN",
                sqlstate="0A000",
                position=binder.attachments[0].position,
                hint="filter the table in a subquery in FROM first",
            )
        terms = (condition,) if not binder.attachments else conjuncts(condition)
        plain = conjunction(tuple(term for term in terms if not attached_in(term)))
        named = side or ("cross" if plain == TRUE else "inner")
        joined: Relation = Join(named, left[0], right[0], plain, position=position)
        if _is_lateral(node.args["this"]) and first_outer(right[0]) is not None:
            joined = _lateral_join(side, left[0], right[0], plain, position)
        attacher = Attacher(joined, binder.attachments)
        attacher.filter(conjunction(tuple(term for term in terms if attached_in(term))), position)
        return attacher.relation, both.padded(left[1], other, side)


def _is_lateral(node: exp.Expr) -> bool:
    is_named = isinstance(node, exp.Table) and isinstance(node.args["this"], exp.Identifier)
    return isinstance(node, exp.Lateral) or (not is_named and is_rows(node))


def _lateral_join(
    side: str, left: Relation, right: Relation, condition: Expr, position: Position | None
) -> Relation:
    if side not in ("", "left"):
        raise Refusal(
            f"{side.upper()} JOIN cannot be LATERAL",
            sqlstate="42P10",
            position=position,
            hint="LEFT JOIN LATERAL",
        )
    refused = Refusal(
        "LATERAL beside people's rows is not answered", sqlstate="PV004", position=position,
        hint="aggregate the people's rows in a subquery first, and join its result",
    )  # fmt: skip
    return Lateral(side or "inner", left, right, condition, refused, position=position)


def _named_rows(relation: Relation, name: str, own: Sequence[str], *, numbered: bool) -> Relation:
    """Return the rows of a function with its columns named as Postgres does: as the item, where there is one."""
    width = len(relation.columns)
    count = width - 1 if numbered else width
    names = [*(own or [name if count == 1 else "unnest"] * count), *["ordinality"] * (width - count)]
    return renamed(relation, names)


def _holds_join(node: exp.Subquery, position: Position | None) -> bool:
    """Say whether parentheses in FROM hold a join and not a query.

    Raises:
        Refusal: 42601 when they hold one named item alone.
    """
    inner = node.args["this"]
    if not isinstance(inner, (exp.Table, exp.Subquery)):
        return False
    if inner.args.get("joins"):
        return True
    if isinstance(inner, exp.Table) or inner.args.get("alias"):
        raise Refusal("parentheses in FROM hold a query or a join", sqlstate="42601", position=position)
    return _holds_join(inner, position)


def _check_names(scope: Scope, other: Scope, position: Position | None) -> None:
    known = {source.name for source in scope.sources if source.name}
    for source in other.sources:
        if source.name in known:
            raise Refusal(
                f'table name "{source.name}" is used twice',
                sqlstate="42601",
                position=position,
                hint="give one of them an alias",
            )


def rename(relation: Relation, columns: list[exp.Expr], position: Position | None) -> Relation:
    """Return the relation with its first columns renamed, as `AS t(a, b)` does: those without a name are not seen.

    Raises:
        Refusal: 42P10 for more names than columns.
    """
    if not columns:
        return relation
    names = [column.name for column in relation.columns]
    seen = [index for index, name in enumerate(names) if name]
    if len(columns) > len(seen):
        raise Refusal("there are more column aliases than columns", sqlstate="42P10", position=position)
    for index, column in zip(seen, columns, strict=False):
        names[index] = fold_name(column)[0]
    return renamed(relation, names)


def _kind_of(join: exp.Expr, position: Position | None) -> tuple[str, str]:
    """Return a join's side and kind in lower case, checked with its condition."""
    side, kind = str(join.args.get("side") or "").lower(), str(join.args.get("kind") or "").lower()
    method = str(join.args.get("method") or "").lower()
    known = kind in ("", "inner", "cross", "outer") and side in ("", "left", "right", "full")
    if not known or method not in ("", "natural"):
        said = kind if method == "natural" else method or kind
        raise Refusal(f"{said.upper()} JOIN is not supported", position=position)
    has_condition = bool(join.args.get("on") or join.args.get("using"))
    if method and (has_condition or kind == "cross"):
        raise Refusal("NATURAL JOIN takes neither ON nor USING", sqlstate="42601", position=position)
    needs_condition = (side or kind == "inner") and not method
    if (kind == "cross" and has_condition) or (needs_condition and not has_condition):
        raise Refusal("JOIN takes ON or USING, CROSS JOIN neither", sqlstate="42601", position=position)
    return side, kind


def _shared_names(join: exp.Expr, left: Scope, right: Scope) -> list[str]:
    """Return the columns of USING, or of NATURAL: the names that both sides show."""
    if not join.args.get("method"):
        return [fold_name(column)[0] for column in join.args.get("using") or []]
    shown = {name for name, _ in right.star(None, None)}
    return list(dict.fromkeys(name for name, _ in left.star(None, None) if name in shown))


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
            f'column "{name}" of USING must be in both tables of the join, once in each',
            sqlstate="42702" if found else "42703",
            position=position,
            hint="join with ON a.x = b.y, each table's own column",
        )
    return found[0]


def bind_values(node: exp.Expr, context: BindingContext, grammar: Grammar) -> Relation:
    """Return the literal rows of VALUES, columns named column1, column2, …

    Raises:
        Refusal: 42601 for rows of different lengths, 42804 of different types, PV001 for what is no literal.
    """
    binder = Binder(
        context, Scope([], outer=context.outer), grammar, place="in VALUES", allow_aggregates=False
    )
    rows: list[list[Expr]] = []
    for row in node.args["expressions"]:
        items = (row.args.get("expressions") or []) if isinstance(row, exp.Tuple) else [row]
        rows.append([binder.bind(item) for item in items])
    position = position_of(context.text, node)
    if len({len(row) for row in rows}) != 1:
        raise Refusal("the rows of VALUES differ in length", sqlstate="42601", position=position)
    types = [common_type([row[i].type for row in rows]) for i in range(len(rows[0]))]
    literals: list[tuple[Expr, ...]] = []
    for row in rows:
        cells: list[Expr] = []
        for cell, type_ in zip(row, types, strict=True):
            if type_ is None:
                raise Refusal("the rows of VALUES differ in type", sqlstate="42804", position=position)
            value = cast(cell, type_, position)
            cells.append(value)
        literals.append(tuple(cells))
    outputs = tuple(OutputColumn(t, f"column{i}") for i, t in enumerate(types, 1) if t is not None)
    known = [tuple(cell for cell in row if isinstance(cell, Literal)) for row in literals]
    if all(len(row) == len(outputs) for row in known):
        return Values(tuple(known), outputs, position=position)
    return _computed_rows(literals, outputs, binder, position)


def _computed_rows(
    rows: list[tuple[Expr, ...]], outputs: tuple[OutputColumn, ...], binder: Binder, position: Position | None
) -> Relation:
    """Return rows of which some values are no literals: one SELECT each."""
    names = tuple(output.name for output in outputs)
    found: Relation | None = None
    for row in rows:
        attacher = Attacher(Values(((),), ()), binder.attachments)
        exprs = tuple(attacher.lift(cell) for cell in row)
        one = projected(attacher.relation, exprs, names, position)
        found = one if found is None else SetOperation("union", True, found, one, outputs, position=position)
    assert found is not None
    return found

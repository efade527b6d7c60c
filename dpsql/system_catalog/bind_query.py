"""A catalog query to one statement of the engine's: relations, joins, WITH, UNION, ORDER BY.

House rule: every relation gets an alias of ours, and every column of a subquery is c0, c1, …: no name of the
client's reaches the engine's SQL, so none can be taken for something else there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from .bind_expression import Bound, CatalogScope, CatalogSource, ExpressionBinder, Output, bind_item, sort_key
from .errors import raised, unsupported
from .functions import AGGREGATES, TranslationContext, Typed, coerce
from .objects import CatalogRelations
from .parse import (
    CallNode,
    alias_of,
    call_of,
    digits_of,
    inner,
    is_query,
    name_of,
    output_name,
    parts_of,
    plain,
    sort_keys,
)
from .pg_types import INT8, TEXT, UNKNOWN, PgType

_RELATIONS = {
    "pg_show_all_settings": ("pg_settings", ()),
    "pg_available_extensions": ("pg_available_extensions", ("installed_version",)),
    "pg_available_extension_versions": ("pg_available_extension_versions", ("installed",)),
}
"""Functions -> the view over each, and what it adds."""
_STORED = re.compile(r'c\."\w+" AS (\w+)')
"""A relation of the engine's: without a join its rows come as Postgres has them, for clients take the first."""


class QueryBinder(ExpressionBinder):
    """Binds queries."""

    def __init__(self, context: TranslationContext, relations: CatalogRelations) -> None:
        super().__init__(context)
        self._relations = relations

    def query(self, query: exp.Expr, scope: CatalogScope | None) -> Bound:
        """Return a query in the engine's SQL. Raises CatalogRefusal."""
        query, scope = plain(query), CatalogScope(scope, {})
        with_ = query.args.get("with_")
        if with_ is None:
            return self._body(query, scope)
        is_recursive = bool(with_.args.get("recursive"))
        ctes = [self._cte(cte, is_recursive, scope) for cte in with_.expressions]
        bound = self._body(query, scope)
        word = "WITH RECURSIVE" if is_recursive else "WITH"
        return Bound(f"{word} {', '.join(ctes)} {bound.sql}", bound.columns)

    def _body(self, query: exp.Expr, scope: CatalogScope) -> Bound:
        order, is_select = sort_keys(query), isinstance(query, exp.Select)
        read = _BODIES.get(type(query))
        if read is None:
            raise unsupported("something else than a query")
        bound = read(self, query, scope)
        if order and not is_select:
            keys = ", ".join(self._output_key(key, bound, scope) for key in order)
            alias = self.context.alias()
            bound = Bound(f"SELECT * FROM ({bound.sql}) AS {alias} ORDER BY {keys}", bound.columns)
        limit, offset = query.args.get("limit"), query.args.get("offset")
        if isinstance(limit, exp.Fetch):
            limit = limit.args.get("count") or exp.Literal.number(1)
        elif limit is not None:
            limit = None if isinstance(limit.expression, exp.Var) else limit.expression  # ALL
        if limit is None and offset is None:
            return bound
        sql = bound.sql
        if not (is_select or order):
            sql = f"SELECT * FROM ({sql}) AS {self.context.alias()}"
        for word, count in (("LIMIT", limit), ("OFFSET", None if offset is None else offset.expression)):
            if count is not None:
                sql += f" {word} {self._count(count, word.lower())}"
        return Bound(sql, bound.columns)

    def _count(self, expression: exp.Expr, word: str) -> str:
        count = f"({self.bind_as(expression, CatalogScope(None, {}), INT8)})"
        if digits_of(expression) is not None:
            return count
        return f"(CASE WHEN {count} < 0 THEN {raised(word)} ELSE {count} END)"

    # --- WITH, UNION, VALUES -----------------------------------------------------------------------------------

    def _cte(self, cte: exp.CTE, is_recursive: bool, scope: CatalogScope) -> str:
        alias = self.context.alias("w")
        name, names = alias_of(cte)
        if name is None:
            raise unsupported("a query of WITH without a name")
        body = plain(cte.this)
        if is_recursive and isinstance(body, exp.Union):
            first = self.query(body.this, scope)
            columns = _renamed(first.columns, names)
            scope.ctes[name] = Bound(alias, columns)
            second = self.query(body.expression, scope)
            if len(second.columns) != len(columns):
                raise unsupported("a recursive query of unequal columns")
            shape = [typed.type for _, typed in columns]
            word = "UNION" if body.args.get("distinct") else "UNION ALL"
            sql = f"{self._cast_all(first, shape)} {word} {self._cast_all(second, shape)}"
        else:
            bound = self.query(body, scope)
            columns, sql = _renamed(bound.columns, names), bound.sql
            scope.ctes[name] = Bound(alias, columns)
        listed = ", ".join(f"c{at}" for at in range(len(columns)))
        return f"{alias} ({listed}) AS ({sql})"

    def _cast_all(self, bound: Bound, shape: Sequence[PgType]) -> str:
        alias = self.context.alias()
        parts = []
        for at, ((_, typed), type_) in enumerate(zip(bound.columns, shape, strict=True)):
            target = TEXT if type_ is UNKNOWN else type_
            value = coerce(self.context, Typed(f"{alias}.c{at}", typed.type), target)
            parts.append(f"CAST({value.sql} AS {target.holder}) AS c{at}")
        return f"SELECT {', '.join(parts)} FROM ({bound.sql}) AS {alias}"

    def _set_operation(self, node: exp.SetOperation, scope: CatalogScope) -> Bound:
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        if len(left.columns) != len(right.columns):
            raise unsupported(f"{node.key} of queries of unequal columns")
        shape = [
            self.together([Typed("NULL", one.type), Typed("NULL", other.type)])[0]
            for (_, one), (_, other) in zip(left.columns, right.columns, strict=True)
        ]
        word = f"{node.key.upper()}{'' if node.args.get('distinct') else ' ALL'}"
        sql = f"{self._cast_all(left, shape)} {word} {self._cast_all(right, shape)}"
        named = enumerate(zip(left.columns, shape, strict=True))
        columns = tuple((name, Typed(f"c{at}", type_, one.modifier)) for at, ((name, one), type_) in named)
        return Bound(f"SELECT * FROM ({sql}) AS {self.context.alias()}", columns)

    def _values(self, node: exp.Values, scope: CatalogScope) -> Bound:
        rows = [[self.bind(item, scope) for item in row.expressions] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise unsupported("VALUES of unequal rows")
        columns = [self.together(list(column)) for column in zip(*rows, strict=True)]
        lines = [f"({', '.join(row)})" for row in zip(*(sqls for _, sqls in columns), strict=True)]
        names = ", ".join(f"c{at}" for at in range(len(columns)))
        sql = f"SELECT * FROM (VALUES {', '.join(lines)}) AS {self.context.alias()}({names})"
        output = tuple((f"column{at + 1}", Typed(f"c{at}", type_)) for at, (type_, _) in enumerate(columns))
        return Bound(sql, output)

    def _output_key(self, key: exp.Ordered, bound: Bound, scope: CatalogScope) -> str:
        place = _place(key.this, [name for name, _ in bound.columns])
        if place is None:
            raise unsupported("ORDER BY an expression after UNION")
        return sort_key(str(place), key)

    # --- SELECT --------------------------------------------------------------------------------------------------

    def _nested(self, node: exp.Subquery, scope: CatalogScope) -> Bound:
        if not is_query(node.this):
            raise unsupported("something else than a query")
        return self.query(node.this, scope)

    def _select(self, node: exp.Select, scope: CatalogScope) -> Bound:
        order = sort_keys(node)
        inside = CatalogScope(scope, {})
        froms = self._froms(node, inside)
        items = [found for item in node.expressions for found in self._items(item, inside)]
        listed = ", ".join(f"{_shown(typed)} AS c{at}" for at, (_, typed) in enumerate(items)) or "1"
        sql = f"SELECT {self._distinct(node, items, inside)}{listed}"
        if froms:
            sql += f" FROM {', '.join(froms)}"
        where, group, having = (node.args.get(name) for name in ("where", "group", "having"))
        if where is not None:
            sql += f" WHERE {self.condition(where.this, inside)}"
        if group is not None:
            sql += f" GROUP BY {', '.join(self._group_key(key, items, inside) for key in group.expressions)}"
        if having is not None:
            sql += f" HAVING {self.condition(having.this, inside)}"
        if order:
            sql += f" ORDER BY {', '.join(self._key(key, items, inside) for key in order)}"
        elif (
            len(froms) == 1
            and "(SELECT" in sql
            and (stored := _STORED.fullmatch(froms[0]))
            and _is_plain(node)
        ):
            sql += f" ORDER BY {stored[1]}.rowid"
        return Bound(sql, _numbered("c", items))

    def _distinct(self, node: exp.Select, items: list[Output], scope: CatalogScope) -> str:
        distinct = node.args.get("distinct")
        if distinct is None:
            return ""
        on = distinct.args.get("on")
        if on is None:
            return "DISTINCT "
        keys = on.expressions if isinstance(on, exp.Tuple) else (on,)
        return f"DISTINCT ON ({', '.join(self._group_key(key, items, scope) for key in keys)}) "

    def _items(self, item: exp.Expr, scope: CatalogScope) -> list[Output]:
        is_named = isinstance(item, exp.Alias)
        alias = name_of(item.args["alias"]) if is_named else None
        expression = inner(item.this if is_named else item)
        if expression.is_star:
            return self._stars(expression, scope)
        typed = self.bind(expression, scope)
        if typed.parameter is not None:
            typed = Typed(f"CAST($p{typed.parameter} AS VARCHAR)", TEXT)
        return [(output_name(expression) if alias is None else alias, typed)]

    def _stars(self, star: exp.Expr, scope: CatalogScope) -> list[Output]:
        if isinstance(star, exp.Dot):
            record = self.bind(star.this, scope)
            return [
                (name, Typed(f"struct_extract({record.sql}, '{name}')", type_))
                for name, type_ in record.type.fields
            ]
        sources = scope.sources
        if isinstance(star, exp.Column):
            source = scope.source(parts_of(star)[-2])
            sources = [] if source is None else [source]
        if not sources:
            raise unsupported("* without a relation")
        if isinstance(star, exp.Column):
            return [output for source in sources for output in source.columns]
        found = [output for source in sources for output in source.columns if output[0] not in source.merged]
        first = {name: place for place, name in enumerate(scope.shared)}
        return sorted(found, key=lambda output: first.get(output[0], len(first)))

    def _group_key(self, key: exp.Expr, items: list[Output], scope: CatalogScope) -> str:
        names = [name for name, _ in items]
        place = _place(key, names)
        column = parts_of(key) if isinstance(key, exp.Column) else ()
        if len(column) == 1 and any(source.find(column[0]) for source in scope.sources):
            place = None
        return self.bind_as_is(key, scope) if place is None else items[place - 1][1].sql

    def _key(self, key: exp.Ordered, items: list[Output], scope: CatalogScope) -> str:
        place = _place(key.this, [name for name, _ in items])
        if place is None:
            sql = self.bind_as_is(key.this, scope)
            place = next((at for at, item in enumerate(items, 1) if item[1].sql == sql), None)
            if place is None:
                return sort_key(sql, key)
        return sort_key(str(place), key)

    # --- FROM ----------------------------------------------------------------------------------------------------

    def _froms(self, node: exp.Select, scope: CatalogScope) -> list[str]:
        """Return the items of FROM, those joined as one."""
        first = node.args.get("from_")
        if first is None:
            return []
        groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first.this, [])]
        for join in node.args.get("joins") or ():
            if any(join.args.get(name) for name in ("side", "kind", "method", "on", "using")):
                groups[-1][1].append(join)
            else:
                groups.append((join.this, []))
        return [self._with_joins(item, joins, scope) for item, joins in groups]

    def _with_joins(self, item: exp.Expr, joins: Sequence[exp.Join], scope: CatalogScope) -> str:
        start = len(scope.sources)
        sql = self._from(item, scope)
        for join in (*(item.args.get("joins") or ()), *joins):
            sql = self._join(sql, start, join, scope)
        return sql

    def _from(self, item: exp.Expr, scope: CatalogScope) -> str:
        alias, columns = alias_of(item)
        has_ordinality = bool(item.args.get("ordinality"))
        found = item.this if isinstance(item, (exp.Table, exp.Lateral)) else item
        if isinstance(item, exp.Table) and item.args.get("rows_from"):
            if len(item.args["rows_from"]) != 1:
                raise unsupported("ROWS FROM several functions")
            found = item.args["rows_from"][0].this
        call = call_of(found)
        if call is not None:
            if item.args.get("db"):
                raise unsupported("a function of another schema")
            return self._function(call, alias, columns, has_ordinality, scope)
        if isinstance(item, exp.Table):
            schema = item.args.get("db")
            path = None if schema is None else name_of(schema), name_of(found)
            return self._table(*path, alias, columns, scope)
        if isinstance(found, exp.Subquery) and _is_item(found.this):
            if alias is not None:
                raise unsupported("an alias of a join")
            return self._with_joins(found.this, (), scope)
        if not is_query(found):
            raise unsupported("this item of FROM")
        return self._derived(self.query(found, scope), alias or "", columns, scope)

    def _derived(self, bound: Bound, name: str, names: Sequence[str], scope: CatalogScope) -> str:
        alias = self.context.alias()
        columns = _numbered(f"{alias}.c", _renamed(bound.columns, names), TEXT)
        scope.sources.append(CatalogSource(name, columns))
        return f"({bound.sql}) AS {alias}"

    def _table(
        self, schema: str | None, path: str, given: str | None, names: Sequence[str], scope: CatalogScope
    ) -> str:
        name = given or path
        cte = scope.cte(path) if schema is None else None
        if cte is not None:
            read = Bound(f"SELECT * FROM {cte.sql}", cte.columns)
            return self._derived(read, name, names, scope)
        alias = self.context.alias()
        sql, relation = self._relations.read(schema, path)
        columns = tuple(
            (column, Typed(f'{alias}."{column}"', type_, modifier))
            for column, type_, modifier, _ in relation.columns
        )
        system = {
            "tableoid": Typed(f"CAST({relation.oid} AS BIGINT)", self._relations.oid),
            "xmin": Typed("CAST(1 AS BIGINT)", self._relations.xid),
        }
        schema = None if given else relation.schema
        scope.sources.append(CatalogSource(name, _renamed(columns, names), system, schema=schema))
        return f"{sql} AS {alias}"

    def _function(
        self,
        call: CallNode,
        given: str | None,
        names: Sequence[str],
        has_ordinality: bool,
        scope: CatalogScope,
    ) -> str:
        if call.name in _RELATIONS and not call.arguments and not has_ordinality:
            return self._relation(call.name, given, names, scope)
        alias, name = self.context.alias(), given or call.name
        # Several arrays stand side by side, the shorter ones filled with NULL.
        arrays = call.arguments if call.name == "unnest" else ()
        calls = [CallNode(call.name, (array,)) for array in arrays] if len(arrays) > 1 else [call]
        items = [bind_item(self, one, scope) for one in calls]
        parts = [f"unnest({typed.sql})" if is_set else typed.sql for is_set, typed in items]
        columns: list[Output] = [
            (name if len(items) == 1 else call.name, Typed(f"{alias}.c{at}", typed.type))
            for at, (_, typed) in enumerate(items)
        ]
        if fields := columns[0][1].type.fields:
            columns = [
                (field, Typed(f"struct_extract({alias}.c0, '{field}')", type_)) for field, type_ in fields
            ]
        if has_ordinality:
            lengths = ", ".join(f"len({typed.sql})" if is_set else "1" for is_set, typed in items)
            columns.append(("ordinality", Typed(f"{alias}.c{len(parts)}", INT8)))
            parts.append(f"unnest(generate_series(1, greatest({lengths})))")
        scope.sources.append(CatalogSource(name, _renamed(columns, names)))
        listed = ", ".join(f"{part} AS c{at}" for at, part in enumerate(parts))
        return f"(SELECT {listed}) AS {alias}"

    def _relation(self, name: str, given: str | None, names: Sequence[str], scope: CatalogScope) -> str:
        """A function that a view of the catalog is made of: the view, without the columns that it adds."""
        view, added = _RELATIONS[name]
        sql = self._table("pg_catalog", view, given or name, (), scope)
        source = scope.sources[-1]
        kept = tuple(column for column in source.columns if column[0] not in added)
        source.columns, source.system = _renamed(kept, names), {}
        return sql

    def _join(self, left: str, start: int, join: exp.Join, scope: CatalogScope) -> str:
        """Return what is on the left, whose items begin at `start` in the scope, joined with another item."""
        middle = len(scope.sources)
        right = self._with_joins(join.this, (), scope)
        kind, side, on, using = (join.args.get(name) for name in ("kind", "side", "on", "using"))
        is_natural = join.args.get("method") == "NATURAL"
        if kind == "CROSS":
            return f"({left} CROSS JOIN {right})"
        if (kind or "INNER") not in ("INNER", "OUTER") or (join.args.get("method") and not is_natural):
            raise unsupported("a join of that kind")
        if on is not None:
            condition = self.condition(on, scope)
        elif using or is_natural:
            sides = scope.sources[start:middle], scope.sources[middle:]
            names = [name_of(column) for column in using] if using else _shared(*sides)
            condition = " AND ".join(self._merged(name, *sides) for name in names) or "true"
            scope.shared[:] = dict.fromkeys([*names, *scope.shared])
        else:
            raise unsupported("a join without a condition")
        return f"({left} {side or 'INNER'} JOIN {right} ON {condition})"

    def _merged(self, name: str, left: list[CatalogSource], right: list[CatalogSource]) -> str:
        pair = []
        for side in (left, right):
            found = [
                typed
                for source in side
                if name not in source.merged
                for typed in [source.find(name)]
                if typed
            ]
            if len(found) != 1:
                raise unsupported("USING a column that is not one of each side")
            pair.append(found[0])
        for source in right:
            if source.find(name) is not None:
                source.merged.add(name)
        return self.operate("=", *pair).sql


_BODIES: dict[type[exp.Expr], Callable[[QueryBinder, Any, CatalogScope], Bound]] = {
    exp.Select: QueryBinder._select,
    exp.Values: QueryBinder._values,
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), QueryBinder._set_operation),
    exp.Subquery: QueryBinder._nested,
}
"""Kind of node -> what binds the query that it is, without LIMIT; an ORDER BY of a SELECT with it."""


def _shared(left: list[CatalogSource], right: list[CatalogSource]) -> list[str]:
    there = {name for source in right for name, _ in source.columns}
    return [name for source in left for name, _ in source.columns if name in there]


def _is_item(node: exp.Expr) -> bool:
    """Say whether what stands in parentheses is no query, but an item of FROM."""
    if not isinstance(node, exp.Subquery):
        return isinstance(node, exp.Table)
    return bool(node.args.get("alias") or node.args.get("joins")) or _is_item(node.this)


def _is_plain(node: exp.Select) -> bool:
    """Say whether a SELECT gives a row for each of its relation's that it keeps."""
    if any(node.args.get(name) for name in ("distinct", "group", "having")):
        return False
    return not any(name_of(call) in AGGREGATES for call in node.find_all(exp.Anonymous))


def _shown(typed: Typed) -> str:
    return "CAST(NULL AS VARCHAR)" if typed.is_null and typed.type is UNKNOWN else typed.sql


def _renamed(columns: Sequence[Output], names: Sequence[str]) -> tuple[Output, ...]:
    if len(names) > len(columns):
        raise unsupported("more names than columns")
    return tuple((names[at] if at < len(names) else name, typed) for at, (name, typed) in enumerate(columns))


def _numbered(prefix: str, columns: Sequence[Output], untyped: PgType = UNKNOWN) -> tuple[Output, ...]:
    """Return a query's columns by what it calls them; `untyped`: the type of those that have none yet."""
    return tuple(
        (name, Typed(f"{prefix}{at}", untyped if typed.type is UNKNOWN else typed.type, typed.modifier))
        for at, (name, typed) in enumerate(columns)
    )


def _place(expression: exp.Expr, names: list[str]) -> int | None:
    """Return which column of the output, from 1, a key of ORDER BY or GROUP BY names; None for none."""
    digits = digits_of(expression)
    if digits is not None:
        place = int(digits) if len(digits) < 6 else 0
        if not 1 <= place <= len(names):
            raise unsupported("ORDER BY a column that is not there")
        return place
    if isinstance(expression, exp.Column) and not expression.table and parts_of(expression)[-1] in names:
        return names.index(parts_of(expression)[-1]) + 1
    return None

"""A catalog query to one statement of the engine's: relations, joins, WITH, UNION, ORDER BY.

House rule: every relation gets an alias of ours, and every column of a subquery is c0, c1, …: no name of the
client's reaches the engine's SQL, so none can be taken for something else there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .bind_calls import sort_key
from .bind_expression import ExpressionBinder
from .bind_sets import SET_RETURNING
from .errors import raised, unsupported
from .functions import AGGREGATES
from .output_names import output_name
from .pg_types import INT8, TEXT, UNKNOWN, PgType
from .read_relation import CatalogRelations
from .scope import Bound, CatalogScope, CatalogSource, Output
from .syntax import (
    CallNode,
    Expression,
    FieldNode,
    FromItem,
    FunctionItem,
    JoinItem,
    LiteralNode,
    Name,
    QueryItem,
    QueryNode,
    Select,
    SetOperationNode,
    SortKey,
    Star,
    TableItem,
    ValuesNode,
    nodes,
)
from .typed import TranslationContext, Typed, coerce

__all__ = ["QueryBinder"]

_RELATIONS = {
    "pg_show_all_settings": ("pg_settings", ()),
    "pg_available_extensions": ("pg_available_extensions", ("installed_version",)),
    "pg_available_extension_versions": ("pg_available_extension_versions", ("installed",)),
}
"""Functions -> the view over each, and what it adds."""
_Item = tuple[str, Typed, int, Expression | None]
"""A column of SELECT: its name, value, modifier, and the expression behind it."""


_STORED = re.compile(r'c\."\w+" AS (\w+)')
"""A relation of the engine's: without a join its rows come as Postgres has them, for clients take the first."""


class QueryBinder(ExpressionBinder):
    """Binds queries."""

    def __init__(self, context: TranslationContext, relations: CatalogRelations) -> None:
        super().__init__(context)
        self._relations = relations

    def query(self, query: QueryNode, scope: CatalogScope | None) -> Bound:
        """Return a query in the engine's SQL. Raises CatalogRefusal."""
        scope = CatalogScope(scope, {})
        ctes = [self._cte(cte.name, cte.columns, cte.query, query.is_recursive, scope) for cte in query.ctes]
        bound = self._body(query, scope)
        if not ctes:
            return bound
        word = "WITH RECURSIVE" if query.is_recursive else "WITH"
        return Bound(f"{word} {', '.join(ctes)} {bound.sql}", bound.columns, bound.modifiers)

    def _body(self, query: QueryNode, scope: CatalogScope) -> Bound:
        if isinstance(query.body, Select):
            bound = self._select(query.body, query.order, scope)
        else:
            if isinstance(query.body, ValuesNode):
                bound = self._values(query.body, scope)
            elif isinstance(query.body, SetOperationNode):
                bound = self._set_operation(query.body, scope)
            else:
                bound = self.query(query.body, scope)
            if query.order:
                keys = ", ".join(self._output_key(key, bound, scope) for key in query.order)
                alias = self.context.alias()
                bound = Bound(
                    f"SELECT * FROM ({bound.sql}) AS {alias} ORDER BY {keys}", bound.columns, bound.modifiers
                )
        if query.limit is None and query.offset is None:
            return bound
        sql = bound.sql
        if not (isinstance(query.body, Select) or query.order):
            sql = f"SELECT * FROM ({sql}) AS {self.context.alias()}"
        for word, expression in (("LIMIT", query.limit), ("OFFSET", query.offset)):
            if expression is not None:
                sql += f" {word} {self._count(expression, word.lower())}"
        return Bound(sql, bound.columns, bound.modifiers)

    def _count(self, expression: Expression, word: str) -> str:
        count = f"({self.bind_as(expression, CatalogScope(None, {}), INT8)})"
        if (
            isinstance(expression, LiteralNode)
            and isinstance(expression.value, int)
            and expression.value >= 0
        ):
            return count
        return f"(CASE WHEN {count} < 0 THEN {raised(word)} ELSE {count} END)"

    # --- WITH, UNION, VALUES -----------------------------------------------------------------------------------

    def _cte(
        self, name: str, names: tuple[str, ...], query: QueryNode, is_recursive: bool, scope: CatalogScope
    ) -> str:
        alias = self.context.alias("w")
        body = query.body
        if is_recursive and isinstance(body, SetOperationNode) and body.operator == "union":
            first = self.query(body.left, scope)
            columns = _renamed(first.columns, names)
            scope.ctes[name] = Bound(alias, columns, first.modifiers)
            second = self.query(body.right, scope)
            if len(second.columns) != len(columns):
                raise unsupported("a recursive query of unequal columns")
            shape = [typed.type for _, typed in columns]
            word = "UNION ALL" if body.is_all else "UNION"
            sql = f"{self._cast_all(first, shape)} {word} {self._cast_all(second, shape)}"
        else:
            bound = self.query(query, scope)
            columns, sql = _renamed(bound.columns, names), bound.sql
            scope.ctes[name] = Bound(alias, columns, bound.modifiers)
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

    def _set_operation(self, node: SetOperationNode, scope: CatalogScope) -> Bound:
        left, right = self.query(node.left, scope), self.query(node.right, scope)
        if len(left.columns) != len(right.columns):
            raise unsupported(f"{node.operator} of queries of unequal columns")
        shape = [
            self.together([Typed("NULL", one.type), Typed("NULL", other.type)])[0]
            for (_, one), (_, other) in zip(left.columns, right.columns, strict=True)
        ]
        word = f"{node.operator.upper()}{' ALL' if node.is_all else ''}"
        sql = f"{self._cast_all(left, shape)} {word} {self._cast_all(right, shape)}"
        named = enumerate(zip(left.columns, shape, strict=True))
        columns = tuple((name, Typed(f"c{at}", type_)) for at, ((name, _), type_) in named)
        return Bound(f"SELECT * FROM ({sql}) AS {self.context.alias()}", columns, left.modifiers)

    def _values(self, node: ValuesNode, scope: CatalogScope) -> Bound:
        rows = [[self.bind(item, scope) for item in row] for row in node.rows]
        if len({len(row) for row in rows}) != 1:
            raise unsupported("VALUES of unequal rows")
        columns = [self.together(list(column)) for column in zip(*rows, strict=True)]
        lines = [f"({', '.join(row)})" for row in zip(*(sqls for _, sqls in columns), strict=True)]
        names = ", ".join(f"c{at}" for at in range(len(columns)))
        sql = f"SELECT * FROM (VALUES {', '.join(lines)}) AS {self.context.alias()}({names})"
        output = tuple((f"column{at + 1}", Typed(f"c{at}", type_)) for at, (type_, _) in enumerate(columns))
        return Bound(sql, output, (-1,) * len(output))

    def _output_key(self, key: SortKey, bound: Bound, scope: CatalogScope) -> str:
        place = _place(key.expression, [name for name, _ in bound.columns])
        if place is None:
            raise unsupported("ORDER BY an expression after UNION")
        return sort_key(str(place), key)

    # --- SELECT --------------------------------------------------------------------------------------------------

    def _select(self, node: Select, order: Sequence[SortKey], scope: CatalogScope) -> Bound:
        inner = CatalogScope(scope, {})
        froms = [self._from(item, inner) for item in node.from_]
        items: list[_Item] = [found for item in node.items for found in self._items(*item, inner)]
        listed = ", ".join(f"{_shown(typed)} AS c{at}" for at, (_, typed, _, _) in enumerate(items)) or "1"
        sql = f"SELECT {self._distinct(node, items, inner)}{listed}"
        if froms:
            sql += f" FROM {', '.join(froms)}"
        if node.where is not None:
            sql += f" WHERE {self.condition(node.where, inner)}"
        if node.group:
            sql += f" GROUP BY {', '.join(self._group_key(key, items, inner) for key in node.group)}"
        if node.having is not None:
            sql += f" HAVING {self.condition(node.having, inner)}"
        if order:
            sql += f" ORDER BY {', '.join(self._key(key, items, node, inner) for key in order)}"
        elif (
            len(froms) == 1
            and "(SELECT" in sql
            and _is_plain(node)
            and (stored := _STORED.fullmatch(froms[0]))
        ):
            sql += f" ORDER BY {stored[1]}.rowid"
        columns = tuple((name, Typed(f"c{at}", typed.type)) for at, (name, typed, _, _) in enumerate(items))
        return Bound(sql, columns, tuple(modifier for _, _, modifier, _ in items))

    def _distinct(self, node: Select, items: list[_Item], scope: CatalogScope) -> str:
        if node.distinct is None:
            return ""
        if not node.distinct:
            return "DISTINCT "
        return f"DISTINCT ON ({', '.join(self._group_key(key, items, scope) for key in node.distinct)}) "

    def _items(self, expression: Expression, alias: str | None, scope: CatalogScope) -> list[_Item]:
        if isinstance(expression, Star):
            return _stars(expression, scope)
        if isinstance(expression, FieldNode) and expression.name == "*":
            record = self.bind(expression.expression, scope)
            return [
                (name, Typed(f"struct_extract({record.sql}, '{name}')", type_), -1, None)
                for name, type_ in record.type.fields
            ]
        typed = self.bind(expression, scope)
        if typed.parameter is not None:
            typed = Typed(f"CAST($p{typed.parameter} AS VARCHAR)", TEXT)
        modifier = scope.modifier(expression.parts) if isinstance(expression, Name) else -1
        return [(output_name(expression) if alias is None else alias, typed, modifier, expression)]

    def _group_key(self, key: Expression, items: list[_Item], scope: CatalogScope) -> str:
        names = [name for name, *_ in items]
        place = _place(key, names)
        if isinstance(key, Name) and len(key.parts) == 1 and any(s.find(key.parts[0]) for s in scope.sources):
            place = None
        return self.bind_as_is(key, scope) if place is None else items[place - 1][1].sql

    def _key(self, key: SortKey, items: list[_Item], node: Select, scope: CatalogScope) -> str:
        place = _place(key.expression, [name for name, *_ in items])
        if place is None:
            sql = self.bind_as_is(key.expression, scope)
            place = next((at for at, item in enumerate(items, 1) if item[1].sql == sql), None)
            if place is None:
                return sort_key(sql, key)
        return sort_key(str(place), key)

    # --- FROM ----------------------------------------------------------------------------------------------------

    def _from(self, item: FromItem, scope: CatalogScope) -> str:
        match item:
            case TableItem():
                return self._table(item, scope)
            case QueryItem():
                bound = self.query(item.query, scope)
                return self._derived(bound, item.alias or "", item.columns, scope)
            case FunctionItem():
                return self._function(item, scope)
            case JoinItem():
                return self._join(item, scope)

    def _derived(self, bound: Bound, name: str, names: tuple[str, ...], scope: CatalogScope) -> str:
        alias = self.context.alias()
        columns = tuple(
            (column, Typed(f"{alias}.c{at}", TEXT if typed.type is UNKNOWN else typed.type))
            for at, (column, typed) in enumerate(_renamed(bound.columns, names))
        )
        modifiers = dict(zip((column for column, _ in columns), bound.modifiers, strict=True))
        scope.sources.append(CatalogSource(name, columns, modifiers=modifiers))
        return f"({bound.sql}) AS {alias}"

    def _table(self, item: TableItem, scope: CatalogScope) -> str:
        name = item.alias or item.name
        cte = scope.cte(item.name) if item.schema is None else None
        if cte is not None:
            read = Bound(f"SELECT * FROM {cte.sql}", cte.columns, cte.modifiers)
            return self._derived(read, name, item.columns, scope)
        alias = self.context.alias()
        sql, relation = self._relations.read(self.context, item.schema, item.name)
        columns = tuple(
            (column, Typed(f'{alias}."{column}"', type_)) for column, type_, *_ in relation.columns
        )
        system = {
            "tableoid": Typed(f"CAST({relation.oid} AS BIGINT)", self._relations.oid),
            "xmin": Typed("CAST(1 AS BIGINT)", self._relations.xid),
        }
        modifiers = {column: modifier for column, _, modifier, _ in relation.columns}
        scope.sources.append(
            CatalogSource(name, _renamed(columns, item.columns), system, modifiers=modifiers,
                   schema=None if item.alias else relation.schema)
        )  # fmt: skip
        return f"{sql} AS {alias}"

    def _function(self, item: FunctionItem, scope: CatalogScope) -> str:
        if item.call.name in _RELATIONS and not item.call.arguments and not item.has_ordinality:
            return self._relation(item, scope)
        call, alias = item.call, self.context.alias()
        name = item.alias or call.name
        if call.name == "unnest" and len(call.arguments) > 1:
            return self._unnest(item, alias, scope)
        if call.name in SET_RETURNING:
            sql, type_ = SET_RETURNING[call.name](self, call, scope)
            parts = [f"unnest({sql}) AS c0"]
            if item.has_ordinality:
                parts.append(f"unnest(generate_series(1, len({sql}))) AS c1")
        else:
            typed = self.call(CallNode(call.name, call.arguments, is_bare=call.is_bare), scope)
            type_, parts = typed.type, [f"{typed.sql} AS c0"]
            if item.has_ordinality:
                parts.append("1 AS c1")
        columns: tuple[Output, ...] = ((name, Typed(f"{alias}.c0", type_)),)
        if type_.fields:
            columns = tuple(
                (field, Typed(f"struct_extract({alias}.c0, '{field}')", one)) for field, one in type_.fields
            )
        if item.has_ordinality:
            columns = (*columns, ("ordinality", Typed(f"{alias}.c1", INT8)))
        scope.sources.append(CatalogSource(name, _renamed(columns, item.columns)))
        return f"(SELECT {', '.join(parts)}) AS {alias}"

    def _relation(self, item: FunctionItem, scope: CatalogScope) -> str:
        """A function that a view of the catalog is made of: the view, without the columns that it adds."""
        name, added = _RELATIONS[item.call.name]
        sql = self._table(TableItem("pg_catalog", name, item.alias or item.call.name, ()), scope)
        source = scope.sources[-1]
        kept = tuple(column for column in source.columns if column[0] not in added)
        source.columns, source.system = _renamed(kept, item.columns), {}
        return sql

    def _unnest(self, item: FunctionItem, alias: str, scope: CatalogScope) -> str:
        """Several arrays side by side, the shorter ones filled with NULL."""
        lists = [
            SET_RETURNING["unnest"](self, CallNode("unnest", (array,)), scope)
            for array in item.call.arguments
        ]
        columns: list[Output] = [
            ("unnest", Typed(f"{alias}.c{at}", type_)) for at, (_, type_) in enumerate(lists)
        ]
        sqls = [sql for sql, _ in lists]
        if item.has_ordinality:
            longest = ", ".join(f"len({sql})" for sql in sqls)
            columns.append(("ordinality", Typed(f"{alias}.c{len(lists)}", INT8)))
            sqls.append(f"generate_series(1, greatest({longest}))")
        scope.sources.append(CatalogSource(item.alias or "unnest", _renamed(tuple(columns), item.columns)))
        listed = ", ".join(f"unnest({sql}) AS c{at}" for at, sql in enumerate(sqls))
        return f"(SELECT {listed}) AS {alias}"

    def _join(self, item: JoinItem, scope: CatalogScope) -> str:
        start = len(scope.sources)
        left = self._from(item.left, scope)
        middle = len(scope.sources)
        right = self._from(item.right, scope)
        if item.kind == "CROSS":
            return f"({left} CROSS JOIN {right})"
        if item.condition is not None:
            condition = self.condition(item.condition, scope)
        else:
            sides = scope.sources[start:middle], scope.sources[middle:]
            names = item.using if item.using is not None else _shared(*sides)
            condition = " AND ".join(self._merged(name, *sides) for name in names) or "true"
        return f"({left} {item.kind} JOIN {right} ON {condition})"

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


def _shared(left: list[CatalogSource], right: list[CatalogSource]) -> list[str]:
    there = {name for source in right for name, _ in source.columns}
    return [name for source in left for name, _ in source.columns if name in there]


def _is_plain(node: Select) -> bool:
    """Say whether a SELECT gives a row for each of its relation's that it keeps."""
    if node.distinct is not None or node.group or node.having is not None:
        return False
    return not any(isinstance(part, CallNode) and part.name in AGGREGATES for part in nodes(node))


def _shown(typed: Typed) -> str:
    return "CAST(NULL AS VARCHAR)" if typed.is_null and typed.type is UNKNOWN else typed.sql


def _renamed(columns: Sequence[Output], names: Sequence[str]) -> tuple[Output, ...]:
    if len(names) > len(columns):
        raise unsupported("more names than columns")
    return tuple((names[at] if at < len(names) else name, typed) for at, (name, typed) in enumerate(columns))


def _stars(star: Star, scope: CatalogScope) -> list[_Item]:
    sources = scope.sources
    if star.parts:
        source = scope.source(star.parts)
        sources = [] if source is None else [source]
    if not sources:
        raise unsupported("* without a relation")
    return [
        (name, typed, source.modifiers.get(name, -1), None)
        for source in sources
        for name, typed in source.columns
        if star.parts or name not in source.merged
    ]


def _place(expression: Expression, names: list[str]) -> int | None:
    """Return which column of the output, from 1, a key of ORDER BY or GROUP BY names; None for none."""
    if (
        isinstance(expression, LiteralNode)
        and isinstance(expression.value, int)
        and not isinstance(expression.value, bool)
    ):
        if not 1 <= expression.value <= len(names):
            raise unsupported("ORDER BY a column that is not there")
        return expression.value
    if isinstance(expression, Name) and len(expression.parts) == 1 and expression.parts[0] in names:
        return names.index(expression.parts[0]) + 1
    return None

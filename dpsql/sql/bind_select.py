"""Queries: WITH, FROM, WHERE, GROUP BY, HAVING, windows, SELECT, DISTINCT, ORDER BY, LIMIT, set operations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from ..errors import Refusal
from ..relation.expressions import TRUE, Call, Expr, Field, Literal, map_children
from ..relation.functions import common_type
from ..relation.relations import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    Order,
    OutputColumn,
    Project,
    Relation,
    SetOperation,
    Sort,
    Window,
    WindowCall,
)
from ..relation.types import Kind
from .bind_expression import Binder, Pending, cast
from .bind_from import bind_from, bind_values
from .bind_window import _nulls_first
from .scope import Context, Scope, fold_name
from .statement import Query
from .text import position_of

__all__ = ["bind"]

MAX_SETS = 64
"""Most grouping sets in one GROUP BY."""


def bind(query: Query, context: Context) -> Relation:
    """Return the relation that a query means, every name resolved and every expression typed.

    Raises:
        Refusal: names, types and forms that do not bind; the position points into the text.
    """
    return bind_query(query.tree, context)


def bind_query(node: exp.Expr, context: Context) -> Relation:
    """Return the relation of a SELECT, VALUES, set operation, or one of these in parentheses."""
    if isinstance(node, exp.Subquery):
        return bind_query(node.args["this"], context)
    if isinstance(node, exp.Values):
        return bind_values(node, context, bind_query)
    context = _with_ctes(node, context)
    if isinstance(node, exp.SetOperation):
        return _set_operation(node, context)
    if not isinstance(node, exp.Select):
        raise Refusal("only queries are answered", sqlstate="0A000", position=position_of(context.text, node))
    return _Select(node, context).relation()


def _with_ctes(node: exp.Expr, context: Context) -> Context:
    with_ = node.args.get("with_")
    if with_ is None:
        return context
    ctes = dict(context.ctes)
    seen: set[str] = set()
    for cte in with_.args["expressions"]:
        alias = cte.args["alias"]
        name = fold_name(alias.args["this"])[0]
        if name in seen:
            raise Refusal(f'"{name}" is named twice in WITH', sqlstate="42601")
        seen.add(name)
        relation = bind_query(cte.args["this"], replace(context, ctes=dict(ctes)))
        ctes[name] = rename(relation, alias.args.get("columns") or [])
    return replace(context, ctes=ctes)


def rename(relation: Relation, columns: list[exp.Expr]) -> Relation:
    """Return the relation with its first columns renamed, as `AS t(a, b)` does."""
    if not columns:
        return relation
    if len(columns) > len(relation.columns):
        raise Refusal("there are more column aliases than columns", sqlstate="42P10")
    names = [fold_name(column)[0] for column in columns]
    names += [column.name for column in relation.columns[len(names) :]]
    exprs = tuple(Field(c.type, i, n) for i, (c, n) in enumerate(zip(relation.columns, names, strict=True)))
    return Project(relation, exprs, tuple(names))


def _set_operation(node: exp.SetOperation, context: Context) -> Relation:
    left, right = (bind_query(node.args[side], context) for side in ("this", "expression"))
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
    kind = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}[type(node)]
    keeps = not node.args.get("distinct")
    relation: Relation = SetOperation(kind, keeps, sides[0], sides[1], tuple(outputs), position=position)
    orders = []
    binder = Binder(context, Scope([]), bind_query, place="in ORDER BY")
    for item in node.args["order"].args["expressions"] if node.args.get("order") else []:
        index = _output_index(binder, item.args["this"], relation.columns)
        if index is None:
            raise Refusal(
                "ORDER BY after a set operation takes an output column", sqlstate="0A000", position=position
            )
        descending = bool(item.args.get("desc"))
        field = Field(relation.columns[index].type, index)
        orders.append(Order(field, descending, _nulls_first(item, descending)))
    if orders:
        relation = Sort(relation, tuple(orders))
    return _limited(binder, node, relation)


def _as_types(side: Relation, outputs: list[OutputColumn]) -> Relation:
    if all(c.type == o.type for c, o in zip(side.columns, outputs, strict=True)):
        return side
    exprs = [cast(Field(c.type, i, c.name), o.type, None) if c.type != o.type else Field(c.type, i, c.name)
             for i, (c, o) in enumerate(zip(side.columns, outputs, strict=True))]  # fmt: skip
    return Project(side, tuple(exprs), tuple(column.name for column in side.columns))


def _output_index(binder: Binder, node: exp.Expr, columns: tuple[OutputColumn, ...]) -> int | None:
    """Return which output column an ORDER BY or GROUP BY item names by ordinal or by name."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        text = str(node.args["this"])
        index = int(text) - 1 if text.isdigit() else -1
        if not 0 <= index < len(columns):
            raise Refusal(
                f"there is no output column {text}", sqlstate="42P10", position=binder.position(node)
            )
        return index
    if isinstance(node, exp.Column) and node.args.get("table") is None:
        name = fold_name(node.args["this"])[0]
        found = [i for i, column in enumerate(columns) if column.name == name]
        return found[0] if found else None
    return None


def _limited(binder: Binder, node: exp.Expr, relation: Relation) -> Relation:
    def count(name: str) -> int | None:
        clause = node.args.get(name)
        if clause is None:
            return None
        value = binder.bind(clause.args["expression"])
        number = value.value if isinstance(value, Literal) else None
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise Refusal(
                f"{name.upper()} takes a literal whole number",
                sqlstate="22023",
                position=binder.position(clause),
            )
        return number

    limit, offset = count("limit"), count("offset")
    return relation if limit is None and offset is None else Limit(relation, limit, offset or 0)


class _Select:
    """One SELECT block, clause by clause."""

    def __init__(self, node: exp.Select, context: Context) -> None:
        self.node = node
        self.context = context
        self.input, scope = bind_from(node, context, bind_query)
        self.binder = Binder(context, scope, bind_query)
        for window in node.args.get("windows") or []:
            self.binder.named_windows[str(window.args["this"].args["this"]).lower()] = window

    def relation(self) -> Relation:
        where = self.node.args.get("where")
        if where is not None:
            predicate = self._plain(where.args["this"], "in WHERE")
            if predicate != TRUE:
                self.input = Filter(self.input, predicate, position=self.binder.position(where))
        names, items = self._items()
        having = self.node.args.get("having")
        condition = self.binder.bind_boolean(having.args["this"], "HAVING") if having is not None else None
        orders = self._orders(names, items)
        exprs = [*items, *(order.expr for order in orders)]
        relation = self.input
        group = self.node.args.get("group")
        if group is not None or self.binder.aggregates or condition is not None or self.binder.groupings:
            relation, lift = self._aggregate(group, names, items)
            exprs = [lift(expr) for expr in exprs]
            self.binder.windows = [_map_window(call, lift) for call in self.binder.windows]
            if condition is not None:
                relation = Filter(relation, lift(condition), position=condition.position)
        if self.binder.windows:
            start = len(relation.columns)
            relation = Window(relation, tuple(self.binder.windows))
            exprs = [_place_windows(expr, start) for expr in exprs]
        return self._output(relation, names, exprs[: len(items)], exprs[len(items) :], orders)

    def _plain(self, node: exp.Expr, place: str) -> Expr:
        """Bind a predicate that no aggregate and no window may stand in."""
        binder = self.binder
        binder.allow_aggregates, binder.place = False, place
        try:
            return binder.bind_boolean(node, place.removeprefix("in "))
        finally:
            binder.allow_aggregates, binder.place = True, "here"

    def _items(self) -> tuple[list[str], list[Expr]]:
        names: list[str] = []
        exprs: list[Expr] = []
        for item in self.node.args["expressions"]:
            star = item if isinstance(item, exp.Star) else item.args.get("this")
            if isinstance(star, exp.Star) and isinstance(item, (exp.Star, exp.Column)):
                for field in self._star(item):
                    names.append(field.name)
                    exprs.append(field)
                continue
            expr = self.binder.bind(item)
            exprs.append(expr)
            names.append(_name(item, expr))
        if not exprs:
            raise Refusal("the SELECT list is empty", sqlstate="42601")
        return names, exprs

    def _star(self, item: exp.Expr) -> list[Field]:
        position = self.binder.position(item)
        sources = self.binder.scope.sources
        table = item.args.get("table")
        if table is not None:
            name = fold_name(table)[0]
            sources = tuple(source for source in sources if source.name == name)
        if not sources:
            raise Refusal("* needs a table in FROM", sqlstate="42601", position=position)
        return [
            Field(column.type, source.start + index, column.name, position=position)
            for source in sources
            for index, column in enumerate(source.columns)
            if column.name
        ]

    def _orders(self, names: list[str], items: list[Expr]) -> list[Order]:
        order = self.node.args.get("order")
        columns = tuple(OutputColumn(e.type, n) for e, n in zip(items, names, strict=True))
        orders: list[Order] = []
        self.binder.place = "in ORDER BY"
        for item in order.args["expressions"] if order is not None else []:
            index = _output_index(self.binder, item.args["this"], columns)
            expr = items[index] if index is not None else self.binder.bind(item.args["this"])
            descending = bool(item.args.get("desc"))
            orders.append(Order(expr, descending, _nulls_first(item, descending)))
        self.binder.place = "here"
        return orders

    def _aggregate(
        self, group: exp.Expr | None, names: list[str], items: list[Expr]
    ) -> tuple[Relation, Callable[[Expr], Expr]]:
        keys, sets = self._group_keys(group, names, items)
        aggregates = tuple(self.binder.aggregates)
        groupings = []
        for wanted in self.binder.groupings:
            if not all(key in keys for key in wanted):
                raise Refusal("GROUPING takes the expressions of GROUP BY", sqlstate="42803")
            groupings.append(tuple(keys.index(key) for key in wanted))
        key_names = [_key_name(key, names, items) for key in keys]
        relation = Aggregate(
            self.input, tuple(keys), aggregates, tuple(sets), tuple(groupings), tuple(key_names),
            position=self.binder.position(self.node),
        )  # fmt: skip

        def lift(expr: Expr) -> Expr:
            if expr in keys:
                index = keys.index(expr)
                return Field(expr.type, index, key_names[index], position=expr.position)
            if isinstance(expr, Pending) and expr.kind == "window":
                return expr
            if isinstance(expr, Pending):
                start = len(keys) + (len(aggregates) if expr.kind == "grouping" else 0)
                return Field(expr.type, start + expr.index, position=expr.position)
            if isinstance(expr, Field):
                raise Refusal(
                    f'column "{expr.name}" is neither in GROUP BY nor inside an aggregate',
                    sqlstate="42803",
                    position=expr.position,
                    hint=f"aggregate it, or add {expr.name} to GROUP BY",
                )
            return map_children(expr, lift)

        return relation, lift

    def _group_keys(
        self, group: exp.Expr | None, names: list[str], items: list[Expr]
    ) -> tuple[list[Expr], list[tuple[int, ...]]]:
        keys: list[Expr] = []

        def index_of(node: exp.Expr) -> int:
            key = self._group_key(node, names, items)
            if key not in keys:
                keys.append(key)
            return keys.index(key)

        if group is None:
            return keys, [()]
        if group.args.get("all"):
            keys += dict.fromkeys(item for item in items if not _holds_pending(item))
            return keys, [tuple(range(len(keys)))]
        parts: list[list[tuple[int, ...]]] = []
        for item in group.args["expressions"]:
            parts.append(self._sets_of(item, index_of))
        sets = [tuple(sorted(set(itertools.chain(*chosen)))) for chosen in itertools.product(*parts)]
        if len(sets) > MAX_SETS:
            raise Refusal("there are too many grouping sets", sqlstate="54001", hint=f"{MAX_SETS} at most")
        return keys, sets

    def _sets_of(self, item: exp.Expr, index_of: Callable[[exp.Expr], int]) -> list[tuple[int, ...]]:
        if isinstance(item, exp.Rollup):
            groups = [self._members(part, index_of) for part in item.args["expressions"]]
            return [tuple(itertools.chain(*groups[:size])) for size in range(len(groups), -1, -1)]
        if isinstance(item, exp.Cube):
            groups = [self._members(part, index_of) for part in item.args["expressions"]]
            chosen = itertools.product((True, False), repeat=len(groups))
            return [tuple(itertools.chain(*itertools.compress(groups, pick))) for pick in chosen]
        if isinstance(item, exp.GroupingSets):
            return [s for part in item.args["expressions"] for s in self._nested(part, index_of)]
        return [self._members(item, index_of)]

    def _nested(self, part: exp.Expr, index_of: Callable[[exp.Expr], int]) -> list[tuple[int, ...]]:
        if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            return self._sets_of(part, index_of)
        return [self._members(part, index_of)]

    def _members(self, part: exp.Expr, index_of: Callable[[exp.Expr], int]) -> tuple[int, ...]:
        if isinstance(part, exp.Tuple):
            return tuple(index_of(inner) for inner in part.args["expressions"])
        inner = part.args["this"] if isinstance(part, exp.Paren) else part
        return (index_of(inner),)

    def _group_key(self, node: exp.Expr, names: list[str], items: list[Expr]) -> Expr:
        columns = tuple(OutputColumn(e.type, n) for e, n in zip(items, names, strict=True))
        self.binder.place, self.binder.allow_aggregates = "in GROUP BY", False
        try:
            key: Expr | None = None
            if isinstance(node, exp.Literal):
                index = _output_index(self.binder, node, columns)
                if index is None:
                    raise Refusal(
                        "GROUP BY takes a column, an expression or an output column's number",
                        sqlstate="42P10",
                        position=self.binder.position(node),
                    )
                key = items[index]
            elif isinstance(node, exp.Column) and node.args.get("table") is None:
                try:
                    key = self.binder.bind(node)  # an input column goes before an output name, as in Postgres
                except Refusal as refusal:
                    index = _output_index(self.binder, node, columns)
                    if refusal.sqlstate != "42703" or index is None:
                        raise
                    key = items[index]
            else:
                key = self.binder.bind(node)
        finally:
            self.binder.place, self.binder.allow_aggregates = "here", True
        if _holds_pending(key):
            raise Refusal(
                "an aggregate cannot be a group key", sqlstate="42803", position=self.binder.position(node)
            )
        if key.type.kind in (Kind.INTERVAL, Kind.OPAQUE):
            raise Refusal("this cannot be a group key", sqlstate="42804", position=self.binder.position(node))
        return key

    def _output(
        self, relation: Relation, names: list[str], items: list[Expr], sort: list[Expr], orders: list[Order]
    ) -> Relation:
        distinct = self.node.args.get("distinct")
        exprs = list(items)
        keys: list[Order] = []
        for expr, order in zip(sort, orders, strict=True):
            if expr not in exprs:
                if distinct is not None:
                    raise Refusal(
                        "with DISTINCT, ORDER BY takes what is in the SELECT list",
                        sqlstate="42P10",
                        position=expr.position,
                    )
                exprs.append(expr)
            keys.append(replace(order, expr=Field(expr.type, exprs.index(expr), position=expr.position)))
        all_names = [*names, *("" for _ in exprs[len(names) :])]
        relation = Project(relation, tuple(exprs), tuple(all_names), position=self.binder.position(self.node))
        if distinct is not None:
            relation = Distinct(relation, position=relation.position)
        if keys:
            relation = Sort(relation, tuple(keys), position=keys[0].expr.position)
        relation = _limited(self.binder, self.node, relation)
        if len(exprs) > len(items):
            kept = tuple(Field(e.type, i, n) for i, (e, n) in enumerate(zip(items, names, strict=True)))
            relation = Project(relation, kept, tuple(names))
        return relation


def _key_name(key: Expr, names: list[str], items: list[Expr]) -> str:
    if isinstance(key, Field):
        return key.name
    return names[items.index(key)] if key in items else ""


def _holds_pending(expr: Expr) -> bool:
    if isinstance(expr, Call):
        return any(_holds_pending(arg) for arg in expr.args)
    return isinstance(expr, Pending)


def _place_windows(expr: Expr, start: int) -> Expr:
    if isinstance(expr, Pending):
        return Field(expr.type, start + expr.index, position=expr.position)
    return map_children(expr, lambda child: _place_windows(child, start))


def _map_window(call: WindowCall, lift: Callable[[Expr], Expr]) -> WindowCall:
    return replace(
        call,
        args=tuple(lift(arg) for arg in call.args),
        partition=tuple(lift(part) for part in call.partition),
        orders=tuple(replace(order, expr=lift(order.expr)) for order in call.orders),
    )


def _name(item: exp.Expr, expr: Expr) -> str:
    """Return an output column's name, as Postgres gives it."""
    if isinstance(item, exp.Alias):
        return (
            str(item.args["alias"].args["this"])
            if item.args["alias"].args.get("quoted")
            else str(item.args["alias"].args["this"]).lower()
        )
    if isinstance(item, exp.Column):
        return fold_name(item.args["this"])[0]
    if isinstance(item, exp.Filter):
        return _name(item.args["this"], expr)
    if isinstance(item, exp.Window):
        return _name(item.args["this"], expr)
    if isinstance(item, exp.Cast):
        inner = _name(item.args["this"], expr)
        return inner if inner != "?column?" else str(expr.type.kind.value)
    if isinstance(item, exp.Anonymous):
        return str(item.args["this"]).lower()
    if isinstance(item, exp.Case):
        return "case"
    special = {exp.Pow: "power", exp.Variance: "variance", exp.TimestampTrunc: "date_trunc", exp.Nullif: "nullif",
               exp.StrPosition: "position", exp.StddevSamp: "stddev_samp", exp.VariancePop: "var_pop"}  # fmt: skip
    if isinstance(item, exp.Func) and not isinstance(item, (exp.And, exp.Or)):
        return special.get(type(item), item.sql_name().lower())
    return "?column?"

"""Queries: WITH, and one SELECT block clause by clause.

House rules:

1. Names are resolved as Postgres does: ORDER BY takes an output name first, GROUP BY an input column.
2. An aggregate or window call that was taken out stands as a `Pending` marker until its node exists, a
   subquery as an `Attached` marker until its join does; no marker leaves this module.
3. A subquery inside WHERE or an aggregate is joined below the aggregate, any other of a grouped SELECT above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.aggregates import Asks
from ..relation.expressions import Expr, Field, map_children, walk
from ..relation.functions import WRITTEN, common_type
from ..relation.relations import (
    Block,
    Group,
    Join,
    Lateral,
    Order,
    OutputColumn,
    Recursive,
    RecursiveRef,
    Relation,
    SetOperation,
    filtered,
    grouped,
    ordered,
    parts_of,
    projected,
    subqueries,
    windowed,
    without_repeats,
)
from ..relation.types import Kind, SqlType
from .bind_aggregate import nulls_first
from .bind_array import bind_unnest, row_call, unnested
from .bind_clauses import (
    GroupKeys,
    bind_distinct_on,
    bind_from,
    bind_group,
    bind_limit,
    bind_order,
    bind_values,
    first_rows,
    output_index,
    rename,
)
from .bind_estimates import Estimator, check_reported
from .bind_expression import Binder, Grammar, Pending, cast
from .bind_forms import CONDITIONS, FORMS
from .literals import type_word
from .scope import Attached, Attacher, BindingContext, Scope, first_outer, fold_name
from .statement import AGGREGATES, ORDERED, AdmittedQuery
from .text import position_of

# --- WITH RECURSIVE -----------------------------------------------------------------------------------------


_HINT = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT …"


def names_itself(cte: exp.Expr, name: str) -> bool:
    """Say whether a query of WITH RECURSIVE reads a table of its own name."""
    return any(
        table.args.get("db") is None
        and isinstance(table.args["this"], exp.Identifier)
        and fold_name(table.args["this"])[0] == name
        for table in cte.args["this"].find_all(exp.Table)
    )


def bind_recursive(
    cte: exp.Expr, name: str, context: BindingContext, grammar: Grammar, position: Position | None
) -> Relation:
    """Return the rows of a recursive query.

    Raises:
        Refusal: 42P19 for a form that Postgres does not take either, 42804 for sides of different types.
    """
    query = cte.args["this"]
    while isinstance(query, exp.Subquery):
        query = query.args["this"]
    if not isinstance(query, exp.Union) or any(
        query.args.get(part) for part in ("order", "limit", "offset", "with_")
    ):
        raise _wrong("a recursive query is two queries and UNION or UNION ALL between them", position)
    base = grammar.query(query.args["this"], context)
    named = [fold_name(column)[0] for column in cte.args["alias"].args.get("columns") or []]
    if len(named) > len(base.columns):
        raise Refusal("there are more column aliases than columns", sqlstate="42P10", position=position)
    names = [*named, *(column.name for column in base.columns[len(named) :])]
    outputs = tuple(OutputColumn(column.type, n) for column, n in zip(base.columns, names, strict=True))
    number = 0 if position is None else position.offset
    ref = RecursiveRef(number, outputs)
    step = grammar.query(query.args["expression"], replace(context, ctes={**context.ctes, name: ref}))
    if len(step.columns) != len(outputs):
        raise Refusal("both sides need the same number of columns", sqlstate="42601", position=position)
    _check_step(step, position)
    exprs: list[Expr] = []
    for index, (column, output) in enumerate(zip(step.columns, outputs, strict=True)):
        if common_type([column.type, output.type]) != output.type and column.type != output.type:
            raise Refusal(
                f'column {index + 1} of "{name}" is {output.type} first, and {column.type} then', sqlstate="42804",
                position=position, hint="cast it in the first query",
            )  # fmt: skip
        exprs.append(cast(Field(column.type, index), output.type, position))
    whole = projected(step, tuple(exprs), tuple(names), position)
    return Recursive(number, base, whole, not query.args.get("distinct"), outputs, position=position)


def _check_step(step: Relation, position: Position | None) -> None:
    """Check that the step reads the last round once, and row by row, as Postgres demands.

    Raises:
        Refusal: 42P19.
    """
    if _count(step) != 1:
        raise _wrong("the second query of a recursion reads the recursion once, outside subqueries", position)
    for part in parts_of(step):
        is_of_many = isinstance(part, SetOperation) or (
            isinstance(part, Block)
            and (part.group or part.windows or part.distinct or part.orders or part.limit)
        )
        if is_of_many and _count(part):
            raise _wrong(
                "the second query of a recursion neither aggregates, sorts nor combines its own rows",
                position,
            )
        if isinstance(part, Join):
            optional = {
                "left": (part.right,),
                "right": (part.left,),
                "full": part.inputs,
                "mark": (part.right,),
            }
            if any(map(_count, optional.get(part.kind, ()))):
                raise _wrong("a recursion does not stand on the optional side of a join", position)
        if isinstance(part, Lateral) and _count(part.right):
            raise _wrong("a recursion is not read inside a lateral subquery", position)


def _count(node: Relation) -> int:
    """Return how often a relation reads the recursion around it."""
    inner = {part.number for part in parts_of(node) if isinstance(part, Recursive)}
    return sum(isinstance(part, RecursiveRef) and part.number not in inner for part in _every(node))


def _every(node: Relation) -> list[Relation]:
    return [node, *(part for child in node.inputs for part in _every(child))]


def _wrong(message: str, position: Position | None) -> Refusal:
    return Refusal(message, sqlstate="42P19", position=position, hint=_HINT)


# --- UNION, INTERSECT and EXCEPT: both sides brought to the same column types -------------------------------


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
    orders = _orders_after(binder, node, relation.columns)
    if orders:
        relation = ordered(relation, tuple(orders))
    return bind_limit(binder, node, relation)


def _orders_after(binder: Binder, node: exp.Expr, columns: Sequence[OutputColumn]) -> list[Order]:
    orders = []
    for item in node.args["order"].args["expressions"] if node.args.get("order") else []:
        index = output_index(binder, item.args["this"], columns, [])
        if index is None:
            raise binder.refusal(item, "0A000", "ORDER BY after a set operation takes an output column")
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


# --- queries: WITH, and one SELECT block clause by clause ---------------------------------------------------


def bind(query: AdmittedQuery, context: BindingContext) -> Relation:
    """Return the relation that a query means, every name resolved and every expression typed.

    Raises:
        Refusal: names, types and forms that do not bind; the position points into the text.
    """
    relation = bind_query(query.tree, context)
    _check_json(relation)
    if _has_answers(context):
        check_reported(relation)
    return relation


def _has_answers(context: BindingContext) -> bool:
    tables = context.catalog.tables.values()
    return any(column.randomized is not None for table in tables for column in table.columns)


def bind_query(node: exp.Expr, context: BindingContext) -> Relation:
    """Return the relation of a SELECT, VALUES, set operation, or one of these in parentheses."""
    read = _QUERIES.get(type(node))
    if read is None:
        raise Refusal("only queries are answered", sqlstate="0A000", position=position_of(context.text, node))
    return read(node, context)


def _in_parentheses(node: exp.Expr, context: BindingContext) -> Relation:
    if node.args.get("joins") or node.args.get("alias"):
        raise Refusal(
            "a join stands in FROM alone", sqlstate="42601", position=position_of(context.text, node)
        )
    return bind_query(node.args["this"], context)


def _with_ctes(node: exp.Expr, context: BindingContext) -> BindingContext:
    """Return the context with the CTEs of a query; each sees the ones before it."""
    with_ = node.args.get("with_")
    if with_ is None:
        return context
    ctes = dict(context.ctes)
    seen: set[str] = set()
    for cte in with_.args["expressions"]:
        alias = cte.args["alias"]
        name = fold_name(alias.args["this"])[0]
        position = position_of(context.text, alias)
        if name in seen:
            raise Refusal(f'"{name}" is named twice in WITH', sqlstate="42601", position=position)
        seen.add(name)
        inner = replace(context, ctes=dict(ctes))
        if with_.args.get("recursive") and names_itself(cte, name):
            ctes[name] = bind_recursive(cte, name, inner, _GRAMMAR, position)
            _check_cte(ctes[name])
            continue
        relation = bind_query(cte.args["this"], inner)
        _check_cte(relation)
        ctes[name] = rename(relation, alias.args.get("columns") or [], position)
    return replace(context, ctes=ctes)


def _check_cte(relation: Relation) -> None:
    """Refuse outer columns in WITH: a query further inside would take them for its own query around."""
    outer = first_outer(relation)
    if outer is not None:
        raise Refusal(
            "a query in WITH cannot use columns of the query around",
            sqlstate="PV004",
            position=outer.position,
            hint="compare them in the WHERE of the subquery itself",
        )


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The SELECT list: names and expressions."""

    names: list[str]
    items: list[Expr]


def _select(node: exp.Expr, context: BindingContext) -> Relation:
    context = _with_ctes(node, context)
    relation, scope = bind_from(node, context, _GRAMMAR)
    binder = Binder(context, scope, _GRAMMAR)
    binder.estimator = Estimator.over(relation) if _has_answers(context) else None
    for window in node.args.get("windows") or []:
        binder.named_windows[fold_name(window.args["this"])[0]] = window
    below = Attacher(relation, binder.attachments)
    where = node.args.get("where")
    if where is not None:
        with binder.within("in WHERE"):
            predicate = binder.bind_boolean(where.args["this"], "WHERE")
        below.filter(_of_rows(binder, predicate), binder.position(where))
    if binder.estimator is not None:
        binder.estimator.grouped = _groups_by_answers(node, binder, binder.estimator)
    outputs = _outputs(node, binder)
    condition = _having(node, binder)
    orders, ons = _orders(node, binder, outputs)
    kept = _qualified(node, binder)
    exprs = [*outputs.items, *(order.expr for order in orders), *ons, *kept]
    group = node.args.get("group")
    level = below
    if group is not None or binder.aggregates or condition is not None or binder.groupings:
        level = _aggregate(node, binder, below, outputs)
    elif binder.estimator is not None:
        binder.estimator.refuse_rows(binder.position(node))
    if condition is not None:
        level.filter(condition, condition.position)
    exprs = [level.lift(expr) for expr in exprs]
    windows = tuple(call.map(level.lift) for call in binder.windows)
    relation = level.relation
    if windows:
        start = len(relation.columns)
        relation = windowed(relation, windows)
        exprs = [_place_windows(expr, start) for expr in exprs]
    if kept:
        relation = filtered(relation, exprs.pop(), kept[0].position)
    if binder.makes_rows:
        relation, exprs = unnested(relation, exprs)
    count = len(outputs.items)
    sorts = [replace(order, expr=expr) for order, expr in zip(orders, exprs[count:], strict=False)]
    keys = exprs[count + len(orders) :]
    return _project(node, binder, relation, _Outputs(outputs.names, exprs[:count]), sorts, keys)


def _orders(node: exp.Expr, binder: Binder, outputs: _Outputs) -> tuple[list[Order], list[Expr]]:
    """Return what ORDER BY and DISTINCT ON say, each where it stands."""
    orders: list[Order] = []
    if node.args.get("order") is not None:
        orders = bind_order(binder, node, outputs.names, outputs.items)
    if node.args.get("distinct") is None:
        return orders, []
    return orders, bind_distinct_on(binder, node, outputs.names, outputs.items, orders)


def _qualified(node: exp.Expr, binder: Binder) -> list[Expr]:
    """Return what QUALIFY says of rows with their windows; nothing where there is none.

    An output's name stands for its expression where no column has that name.

    Raises:
        Refusal: 42601 where no window is looked at.
    """
    qualify = node.args.get("qualify")
    if qualify is None:
        return []
    named = {
        fold_name(item.args["alias"])[0]: item.args["this"]
        for item in node.args["expressions"]
        if isinstance(item, exp.Alias)
    }

    def meant(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.args.get("table") is not None:
            return part
        name = part.args["this"]
        name = fold_name(name)[0] if isinstance(name, exp.Identifier) else ""
        is_output = name in named and not binder.scope.named(name)
        return exp.Paren(this=named[name].copy()) if is_output else part

    condition = binder.bind_boolean(qualify.args["this"].copy().transform(meant), "QUALIFY")
    if not any(isinstance(part, Pending) and part.kind == "window" for part in walk(condition)):
        raise Refusal(
            "QUALIFY filters rows by a window function", sqlstate="42601", position=binder.position(qualify),
            hint="write WHERE, or HAVING after GROUP BY",
        )  # fmt: skip
    return [condition]


def _of_rows(binder: Binder, predicate: Expr) -> Expr:
    """Return what a WHERE says of rows, but for what it says of randomised answers."""
    return predicate if binder.estimator is None else binder.estimator.take(predicate)


def _groups_by_answers(node: exp.Expr, binder: Binder, estimator: Estimator) -> bool:
    """Say whether a key of GROUP BY is a randomised column: known from names alone, before any key is bound."""
    group, items = node.args.get("group"), node.args["expressions"]
    if group is None:
        return False
    written = list(group.args.get("expressions") or [])
    written += items if group.args.get("all") else []
    for part in [*group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets), *group.find_all(exp.Tuple)]:
        written += part.args.get("expressions") or []
    return any(estimator.is_answer(_key_column(item, items, binder)) for item in written)


def _key_column(node: exp.Expr, items: Sequence[exp.Expr], binder: Binder) -> Expr | None:
    """Return the input column that a key is, by its name, its number or the name of an output; else None."""
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.args["this"]
    if isinstance(node, exp.Literal) and str(node.args["this"]).isdecimal():
        number = int(str(node.args["this"])[:9])
        return _key_column(items[number - 1], (), binder) if 1 <= number <= len(items) else None
    if not isinstance(node, exp.Column):
        return None
    try:
        return binder.scope.resolve(node, None)
    except Refusal:
        named = [item for item in items if isinstance(item, exp.Alias) and item.alias_or_name == node.name]
        return _key_column(named[0].args["this"], (), binder) if named else None


def _having(node: exp.Expr, binder: Binder) -> Expr | None:
    having = node.args.get("having")
    if having is None:
        return None
    binder.place = "in HAVING"
    condition = binder.bind_boolean(having.args["this"], "HAVING")
    binder.place = "here"
    return condition


def _outputs(node: exp.Expr, binder: Binder) -> _Outputs:
    found = _Outputs([], [])
    for item in node.args["expressions"]:
        if isinstance(item, (exp.Star, exp.Column)) and item.is_star:
            for name, column in _star(item, binder):
                found.names.append(name)
                found.items.append(column)
            continue
        bare = item.args["this"] if isinstance(item, exp.Alias) else item
        makes_rows = isinstance(bare, _ROWS) or row_call(bare) is not None
        expr = bind_unnest(binder, bare) if makes_rows else binder.bind(item)
        found.items.append(expr)
        found.names.append(_output_name(item, expr.type))
    if not found.items:
        raise Refusal("the SELECT list is empty", sqlstate="42601", position=binder.position(node))
    return found


def _star(item: exp.Expr, binder: Binder) -> list[tuple[str, Expr]]:
    position = binder.position(item)
    columns = binder.scope.star(item.args.get("table"), position)
    return [(name, replace(expr, position=position)) for name, expr in columns]


def _aggregate(node: exp.Expr, binder: Binder, below: Attacher, outputs: _Outputs) -> Attacher:
    """Return the groups, which turn an expression over their rows into one over theirs."""
    group = GroupKeys([], [()])
    if (written := node.args.get("group")) is not None:
        group = bind_group(binder, written, outputs.names, outputs.items)
    keys, aggregates = group.keys, tuple(call.map(below.lift) for call in binder.aggregates)
    groupings = []
    for wanted in binder.groupings:
        if not all(key in keys for key in wanted):
            at = next((key.position for key in wanted if key not in keys), None)
            raise Refusal("GROUPING takes the expressions of GROUP BY", sqlstate="42803", position=at)
        groupings.append(tuple(keys.index(key) for key in wanted))
    names = [_key_name(key, outputs) for key in keys]
    rows, placed = below.relation, keys
    if binder.makes_rows:  # a key that is of several rows makes them before they are grouped
        rows, placed = unnested(rows, keys)
    groups = Group(tuple(placed), aggregates, tuple(group.sets), tuple(groupings), tuple(names))
    position, estimator = binder.position(node), binder.estimator
    relation: Relation = grouped(rows, groups, position)
    if estimator is not None:
        relation = estimator.aggregate(rows, groups, position)

    def lift(expr: Expr) -> Expr:
        if expr in keys:
            index = keys.index(expr)
            return Field(expr.type, index, names[index], position=expr.position)
        if isinstance(expr, Attached):
            return above.column(expr)
        if isinstance(expr, Pending) and expr.kind == "window":
            return expr
        if isinstance(expr, Pending):
            start = len(keys) + (len(aggregates) if expr.kind == "grouping" else 0)
            return Field(expr.type, start + expr.index, position=expr.position)
        if expr.column is not None:
            raise _ungrouped(expr.name, expr.position)
        return map_children(expr, lift)

    above = Attacher(relation, binder.attachments, lift)
    return above


def _ungrouped(name: str, position: Position | None) -> Refusal:
    return Refusal(
        f'column "{name}" is neither in GROUP BY nor inside an aggregate',
        sqlstate="42803",
        position=position,
        hint=f"aggregate it, or add {name} to GROUP BY",
    )


def _key_name(key: Expr, outputs: _Outputs) -> str:
    if key.column is not None:
        return key.name
    return outputs.names[outputs.items.index(key)] if key in outputs.items else ""


def _place_windows(expr: Expr, start: int) -> Expr:
    if isinstance(expr, Pending):
        return Field(expr.type, start + expr.index, position=expr.position)
    return map_children(expr, lambda child: _place_windows(child, start))


def _project(
    node: exp.Expr, binder: Binder, relation: Relation, outputs: _Outputs, sorts: Sequence[Order],
    ons: Sequence[Expr],
) -> Relation:  # fmt: skip
    """Return the SELECT list over the relation, with DISTINCT, ORDER BY and LIMIT; `ons`: of DISTINCT ON.

    A sort key that is not in the SELECT list is a further column, dropped at the end.
    """
    distinct, names, items = node.args.get("distinct") if not ons else None, outputs.names, outputs.items
    exprs = [*items, *(expr for expr in dict.fromkeys(ons) if expr not in items)]
    keys: list[Order] = []
    for order in sorts:
        expr = order.expr
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
    relation = projected(relation, tuple(exprs), tuple(all_names), binder.position(node))
    if distinct is not None:
        relation = without_repeats(relation, relation.position)
    elif ons:
        groups = [Field(expr.type, exprs.index(expr), position=expr.position) for expr in ons]
        relation = first_rows(relation, groups, keys, binder.position(node.args["distinct"]))
    if keys:
        relation = ordered(relation, tuple(keys), keys[0].expr.position)
    if not (node.args.get("limit") is None and node.args.get("offset") is None):
        relation = bind_limit(binder, node, relation)
    if len(exprs) > len(items):
        kept = tuple(Field(e.type, i, n) for i, (e, n) in enumerate(zip(items, names, strict=True)))
        relation = projected(relation, kept, tuple(names))
    return relation


_ROWS = (exp.Explode, exp.ExplodingGenerateSeries)
"""What gives a row of SELECT several."""
_GRAMMAR = Grammar(bind_query, FORMS, CONDITIONS)
_QUERIES: dict[type[exp.Expr], Callable[[exp.Expr, BindingContext], Relation]] = {
    exp.Subquery: _in_parentheses,
    exp.Values: lambda node, context: bind_values(node, context, _GRAMMAR),
    **dict.fromkeys(
        _KINDS, lambda node, context: bind_set_operation(node, _with_ctes(node, context), _GRAMMAR)
    ),
    exp.Select: _select,
}
"""Kind of node -> what binds the query that it is."""


# --- the name of a column without an alias, as Postgres' FigureColname gives it -----------------------

_UNNAMED = "?column?"
_TYPES = {
    Kind.SMALLINT: "int2", Kind.INTEGER: "int4", Kind.BIGINT: "int8", Kind.REAL: "float4", Kind.DOUBLE: "float8",
    Kind.BOOLEAN: "bool",
}  # fmt: skip
_FUNCTIONS: dict[type[exp.Expr], str] = {
    **{node: row.output or row.name for node, row in WRITTEN.items()},
    exp.Explode: "unnest", exp.StrToDate: "to_date", exp.StrToTime: "to_timestamp",
    exp.ExplodingGenerateSeries: "generate_series",
    **{node: row.output for node, row in (AGGREGATES | ORDERED).items() if row.output},
}  # fmt: skip


def _output_name(item: exp.Expr, type_: SqlType) -> str:
    """Return the name of a SELECT item of a type."""
    if isinstance(item, exp.Alias):
        return fold_name(item.args["alias"])[0]
    return _figured(item, type_)[0]


_Figured = tuple[str, bool]
"""A name, and whether it is a strong one, that a cast or a CASE around it keeps."""


def _figured(item: exp.Expr, type_: SqlType | None) -> _Figured:
    """Return a name, and whether it is a strong one."""
    read = _NAMES.get(type(item))
    if read is not None:
        return read(item, type_)
    if isinstance(item, exp.Func):
        return _FUNCTIONS.get(type(item), item.sql_name().lower()), True
    return _UNNAMED, False


def _of_inner(item: exp.Expr, type_: SqlType | None) -> _Figured:
    return _figured(item.args["this"], type_)


def _of_cast(item: exp.Expr, type_: SqlType | None) -> _Figured:
    name, is_strong = _figured(item.args["this"], None)
    if isinstance(item.args["this"], exp.Array):
        return "array", True
    return (name, True) if is_strong else (_type_name(item, type_), False)


def _of_case(item: exp.Expr, type_: SqlType | None) -> _Figured:
    default = item.args.get("default")
    name, is_strong = (_UNNAMED, False) if default is None else _figured(default, None)
    return (name, True) if is_strong else ("case", False)


def _of_trim(item: exp.Expr, type_: SqlType | None) -> _Figured:
    sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    return sides.get(str(item.args.get("position") or "").upper(), "btrim"), True


def _of_subquery(item: exp.Expr, type_: SqlType | None) -> _Figured:
    query = item.args["this"]
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.args["this"]
    if not isinstance(query, exp.Select):
        return "column1", True
    first = query.args["expressions"][0]
    if isinstance(first, exp.Alias):
        return fold_name(first.args["alias"])[0], True
    name, _ = _figured(first, None)
    return name, name != _UNNAMED


_NAMES: dict[type[exp.Expr], Callable[[exp.Expr, SqlType | None], _Figured]] = {
    exp.Column: lambda item, type_: (fold_name(item.args["this"])[0], True),
    **dict.fromkeys((exp.Paren, exp.Filter, exp.Window, exp.WithinGroup, exp.Bracket), _of_inner),
    exp.Subquery: _of_subquery, exp.Cast: _of_cast, exp.Case: _of_case, exp.Trim: _of_trim,
    exp.Interval: lambda item, type_: ("interval", False),
    exp.Anonymous: lambda item, type_: (str(item.args["this"]).lower(), True),
    **dict.fromkeys(
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.ArrayContainedBy,
         exp.ArrayContainsAll, exp.ArrayOverlaps, exp.And, exp.Or),
        lambda item, type_: (_UNNAMED, False),
    ),
}  # fmt: skip
"""Kind of node -> the name of a column that is one; of any other function its own."""


def _type_name(item: exp.Expr, type_: SqlType | None) -> str:
    written = type_word(item.args["to"])
    if type_ is not None and type_.element is not None:
        return _TYPES.get(type_.element.kind, type_.element.kind.value)
    if written == "VARCHAR" or type_ is None:
        return written.lower()
    return _TYPES.get(type_.kind, type_.kind.value)


# --- JSON is not compared: two texts of it may be one value -------------------------------------------


def _check_json(relation: Relation) -> None:
    """Check that nothing compares JSON. Raises Refusal (42883), as Postgres does of `json`."""
    for node in parts_of(relation):
        for type_, position in _compared(node):
            if type_.is_json or (type_.element is not None and type_.element.is_json):
                raise Refusal(
                    f"values of type {type_} are not compared", sqlstate="42883", position=position or node.position,
                    hint="take a text out of it, and sort or group by that: j ->> 'a', or j::text",
                )  # fmt: skip
        for below in subqueries(node):
            _check_json(below)


def _compared(node: Relation) -> Iterator[tuple[SqlType, Position | None]]:
    if isinstance(node, Block):
        for expr in _compared_in(node):
            yield expr.type, expr.position
    is_told_apart = isinstance(node, (SetOperation, Recursive)) and not node.all
    if is_told_apart or (isinstance(node, Block) and node.distinct):
        yield from ((column.type, None) for column in node.columns)


def _compared_in(node: Block) -> Iterator[Expr]:
    if node.group is not None:
        yield from node.group.keys
        for call in node.group.aggregates:
            yield from (order.expr for order in call.orders)
            if call.distinct or call.row.is_extreme or call.row.asks is Asks.MODE:
                yield from call.args
    for window in node.windows:
        yield from (*window.partition, *(order.expr for order in window.orders))
        if window.row is not None and window.row.is_extreme:
            yield from window.args
    yield from (order.expr for order in node.orders)

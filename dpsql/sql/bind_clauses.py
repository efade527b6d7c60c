"""The clauses of a SELECT: FROM, GROUP BY with its grouping sets, ORDER BY, LIMIT and OFFSET.

DISTINCT ON: rows numbered by their order, of which the first of each group is kept. WITH TIES: rows ranked by theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.catalog import OwnView, Table, View
from ..relation.expressions import TRUE, Call, Expr, Field, Literal, conjunction, conjuncts
from ..relation.functions import common_type
from ..relation.relations import (
    Join,
    Lateral,
    Order,
    OutputColumn,
    Relation,
    Scan,
    SetOperation,
    Unnest,
    Values,
    WindowCall,
    all_parts,
    ends_in,
    filtered,
    limited,
    placed,
    projected,
    renamed,
    windowed,
)
from ..relation.types import BIGINT, BOOLEAN, Kind
from .bind_aggregate import nulls_first
from .bind_array import bind_rows, is_rows
from .bind_expression import Binder, Grammar, Pending, call, cast
from .literals import coerce_literal, listed
from .scope import (
    Attacher,
    BindingContext,
    Scope,
    ScopeSource,
    attached_in,
    find_table,
    first_outer,
    fold_name,
    outer_in,
    schemas_of,
)
from .statement import parse_own_view
from .text import position_of, said_of

_IN_VIEW = "in the view "
_MAX_OWN_VIEWS = 32
"""Most of an analyst's own views that a statement stands for, those in others too."""


def output_index(
    binder: Binder, node: exp.Expr, columns: Sequence[OutputColumn], items: Sequence[Expr]
) -> int | None:
    """Return which output column an ORDER BY or GROUP BY item names by its number or its bare name.

    `items`: the columns' expressions where they are known; two columns of one name are one if these are.

    Raises:
        Refusal: 42P10 for a number without a column, 42702 for a name of several, 42601 for another constant.
    """
    inner = node.args["this"] if isinstance(node, exp.Neg) else node
    if isinstance(inner, (exp.Literal, exp.Null, exp.Boolean)):
        return _ordinal(binder, node, len(columns))
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    if not isinstance(node.args["this"], exp.Identifier):
        return None
    name = fold_name(node.args["this"])[0]
    found = [index for index, column in enumerate(columns) if column.name == name]
    if found and any(not items or items[index] != items[found[0]] for index in found[1:]):
        raise Refusal(f'"{name}" is ambiguous', sqlstate="42702", position=binder.position(node))
    return found[0] if found else None


def _ordinal(binder: Binder, node: exp.Expr, count: int) -> int:
    sign, inner = (-1, node.args["this"]) if isinstance(node, exp.Neg) else (1, node)
    text = str(inner.args.get("this", ""))
    if not isinstance(inner, exp.Literal) or inner.args.get("is_string") or not text.isdigit():
        raise binder.refusal(node, "42601", "a constant here is the number of an output column")
    index = sign * int(text) - 1
    if not 0 <= index < count:
        raise binder.refusal(
            node, "42P10", f"there is no output column {sign * int(text)}", f"there are {count}"
        )
    return index


def bind_order(binder: Binder, node: exp.Expr, names: Sequence[str], items: Sequence[Expr]) -> list[Order]:
    """Return the sort keys of a SELECT: an output column by number or name, else any expression.

    An output name goes before an input column of the same name, as in Postgres.
    """
    order = node.args.get("order")
    columns = [OutputColumn(e.type, n) for e, n in zip(items, names, strict=True)]
    orders: list[Order] = []
    binder.place = "in ORDER BY"
    for item in order.args["expressions"] if order is not None else []:
        index = output_index(binder, item.args["this"], columns, items)
        expr = items[index] if index is not None else binder.bind(item.args["this"])
        orders.append(Order(expr, bool(item.args.get("desc")), nulls_first(item)))
    binder.place = "here"
    return orders


def bind_limit(binder: Binder, node: exp.Expr, relation: Relation) -> Relation:
    """Return the relation cut by the LIMIT and OFFSET of its query.

    Raises:
        Refusal: 22023 when one is not a literal whole number.
    """
    limit, offset = _count(binder, node, "limit"), _count(binder, node, "offset")
    clause = node.args.get("limit")
    if limit is not None and clause is not None and _keeps_ties(clause):
        return _with_ties(relation, limit, offset or 0, binder.position(clause))
    return relation if limit is None and offset is None else limited(relation, limit, offset or 0)


def _count(binder: Binder, node: exp.Expr, name: str) -> int | None:
    clause = node.args.get(name)
    if clause is None:
        return None
    written = _written_count(binder, clause)
    if written is None:
        return None
    value = coerce_literal(binder.bind(written), BIGINT)
    if value.is_constant and value.constant is None:
        return None
    number = value.constant_as(int)
    if number is None or value.type.kind is Kind.BOOLEAN or not 0 <= number < 2**63:
        raise binder.refusal(clause, "22023", f"{name.upper()} takes a literal whole number")
    return number


def _written_count(binder: Binder, clause: exp.Expr) -> exp.Expr | None:
    """Return what LIMIT, OFFSET or FETCH FIRST counts; None for LIMIT ALL. FETCH FIRST ROW is one.

    Raises:
        Refusal: 0A000 for PERCENT.
    """
    if not isinstance(clause, exp.Fetch):
        written: exp.Expr = clause.args["expression"]
        is_all = isinstance(written, exp.Var) and str(written.args["this"]).upper() == "ALL"
        return None if is_all else written
    options = clause.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise Refusal(
            "FETCH FIRST takes a number of rows, not PERCENT", sqlstate="0A000", position=binder.position(clause),
            hint="write LIMIT, or FETCH FIRST 10 ROWS ONLY",
        )  # fmt: skip
    return clause.args.get("count") or exp.Literal.number(1)


def _keeps_ties(clause: exp.Expr) -> bool:
    options = clause.args.get("limit_options") if isinstance(clause, exp.Fetch) else None
    return options is not None and bool(options.args.get("with_ties"))


def _with_ties(relation: Relation, limit: int, offset: int, position: Position | None) -> Relation:
    """Return the first rows in a relation's order, and those that tie with the last of them.

    Raises:
        Refusal: 42601 without ORDER BY.
    """
    if not ends_in(relation, "orders"):
        raise Refusal(
            "WITH TIES needs ORDER BY", sqlstate="42601", position=position,
            hint="ORDER BY says which rows tie; or write ROWS ONLY",
        )  # fmt: skip
    orders, width = relation.orders, len(relation.columns)
    names = ("rank", "row_number")
    calls = tuple(WindowCall(BIGINT, name, (), (), orders, None, position=position) for name in names)
    rank, number = (Field(BIGINT, width + index) for index in range(2))
    terms: list[Expr] = [Call(BOOLEAN, "le", (rank, Literal(BIGINT, limit + offset)))]
    if offset:
        terms.append(Call(BOOLEAN, "gt", (number, Literal(BIGINT, offset))))
    kept = filtered(windowed(relation.below, calls, position), conjunction(tuple(terms)), position)
    return relation.over(_without_last(kept, width))


def _without_last(relation: Relation, width: int) -> Relation:
    """Return a relation with its first columns alone."""
    row = relation.row[:width]
    return projected(relation, row, (one.name for one in row), relation.position)


# --- DISTINCT ON --------------------------------------------------------------------------------------


def bind_distinct_on(
    binder: Binder, node: exp.Expr, names: Sequence[str], items: Sequence[Expr], orders: Sequence[Order]
) -> list[Expr]:
    """Return the expressions of DISTINCT ON; none where there is none.

    Raises:
        Refusal: 42P10 where ORDER BY does not begin with them.
    """
    distinct = node.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    if on is None:
        return []
    keys: dict[Expr, None] = {}
    columns = [OutputColumn(expr.type, name) for expr, name in zip(items, names, strict=True)]
    for item in on.args["expressions"] if isinstance(on, exp.Tuple) else [on]:
        index = output_index(binder, item, columns, items)
        keys[items[index] if index is not None else binder.bind(item)] = None
    first = [order.expr for order in orders[: len(keys)]]
    if any(expr not in keys for expr in first):
        raise Refusal(
            "ORDER BY begins with what DISTINCT ON names", sqlstate="42P10", position=binder.position(node),
            hint="SELECT DISTINCT ON (a) … ORDER BY a, b",
        )  # fmt: skip
    return list(keys)


def first_rows(
    relation: Relation, keys: Sequence[Expr], orders: Sequence[Order], position: Position | None
) -> Relation:
    """Return the first row of each group of equal keys, in an order; columns stay as they are."""
    number = WindowCall(BIGINT, "row_number", (), tuple(keys), tuple(orders), None, position=position)
    numbered = windowed(relation, (number,), position)
    first = Field(BIGINT, len(relation.columns))
    kept = filtered(numbered, Call(BOOLEAN, "eq", (first, Literal(BIGINT, 1))), position)
    return _without_last(kept, len(relation.columns))


# --- GROUP BY: its keys, in the order of their first mention, and its grouping sets -------------------------


MAX_SETS = 64
"""Most grouping sets in one GROUP BY."""

Sets = list[tuple[int, ...]]


@dataclass
class GroupKeys:
    """The keys of a GROUP BY, each once, and its grouping sets as positions among them."""

    keys: list[Expr] = field(default_factory=list)
    sets: Sets = field(default_factory=list)

    def index_of(self, key: Expr) -> int:
        """Return the position of a key, adding it when it is new."""
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def holds_pending(expr: Expr) -> bool:
    """Say whether an aggregate, GROUPING() or window call was taken out of the expression."""
    return isinstance(expr, Pending) or any(map(holds_pending, expr.args))


def bind_group(binder: Binder, group: exp.Expr, names: Sequence[str], items: Sequence[Expr]) -> GroupKeys:
    """Return the keys and sets of a GROUP BY clause.

    `names`, `items`: the output columns, which a key may name by number, or by name where no input
    column has that name.

    Raises:
        Refusal: 42803 for an aggregate in a key, 42804 for a type that cannot be one, 54001 for too many sets.
    """
    found = GroupKeys()
    written = group.args.get("expressions")
    if group.args.get("all") is False or bool(group.args.get("all")) == bool(written):
        raise binder.refusal(group, "PV001", "GROUP BY takes a list of keys, or the word ALL alone")
    if group.args.get("all"):
        found.keys = list(dict.fromkeys(item for item in items if not holds_pending(item)))
        for key in found.keys:
            _check(binder, group, key)
        found.sets = [tuple(range(len(found.keys)))]
        return found

    def index_of(node: exp.Expr) -> int:
        return found.index_of(_key(binder, node, names, items))

    size = 1
    parts: list[Sets] = []
    for item in group.args["expressions"]:
        parts.append(_sets_of(item, index_of))
        size *= len(parts[-1])
        if size > MAX_SETS:
            raise _too_many()
    found.sets = [tuple(sorted(set(itertools.chain(*chosen)))) for chosen in itertools.product(*parts)]
    return found


def _too_many() -> Refusal:
    return Refusal("there are too many grouping sets", sqlstate="54001", hint=f"{MAX_SETS} at most")


def _sets_of(item: exp.Expr, index_of: Callable[[exp.Expr], int]) -> Sets:
    if isinstance(item, exp.GroupingSets):
        return [found for part in listed(item) for found in _sets_of(part, index_of)]
    choose = _CHOSEN.get(type(item))
    if choose is None:
        return [_members(item, index_of)]
    groups = [_members(part, index_of) for part in listed(item)]
    return [tuple(itertools.chain(*chosen)) for chosen in choose(groups)]


def _rolled_up(groups: Sets) -> list[Sets]:
    return [groups[:size] for size in range(len(groups), -1, -1)]


def _cubed(groups: Sets) -> list[Sets]:
    if 2 ** len(groups) > MAX_SETS:
        raise _too_many()
    picks = itertools.product((True, False), repeat=len(groups))
    return [list(itertools.compress(groups, pick)) for pick in picks]


_CHOSEN: dict[type[exp.Expr], Callable[[Sets], list[Sets]]] = {exp.Rollup: _rolled_up, exp.Cube: _cubed}
"""Kind of node -> which of its groups each of the sets has that it stands for."""


def _members(part: exp.Expr, index_of: Callable[[exp.Expr], int]) -> tuple[int, ...]:
    if isinstance(part, exp.Tuple):
        return tuple(map(index_of, listed(part)))
    return (index_of(part.args["this"] if isinstance(part, exp.Paren) else part),)


def _key(binder: Binder, node: exp.Expr, names: Sequence[str], items: Sequence[Expr]) -> Expr:
    columns = [OutputColumn(e.type, n) for e, n in zip(items, names, strict=True)]
    with binder.within("in GROUP BY"):
        if isinstance(node, exp.Column):
            key = _named_key(binder, node, columns, items)
        else:
            index = output_index(binder, node, columns, items)
            key = items[index] if index is not None else binder.bind(node)
    _check(binder, node, key)
    return key


def _named_key(
    binder: Binder, node: exp.Column, columns: Sequence[OutputColumn], items: Sequence[Expr]
) -> Expr:
    """Return the key of a name: an input column goes before an output name, as in Postgres."""
    try:
        key = binder.bind(node)
        index = output_index(binder, node, columns, items) if outer_in(key) else None
    except Refusal as refusal:
        if refusal.sqlstate != "42703":
            raise
        index = output_index(binder, node, columns, items)
        if index is None:
            raise
    return key if index is None else items[index]


def _check(binder: Binder, node: exp.Expr, key: Expr) -> None:
    if holds_pending(key):
        raise Refusal("an aggregate cannot be a group key", sqlstate="42803", position=binder.position(node))
    if attached_in(key):
        raise Refusal(
            "EXISTS, IN (SELECT …) and subqueries with outer columns cannot be a group key",
            sqlstate="0A000",
            position=binder.position(node),
            hint="name the value in a subquery in FROM, and group by that name",
        )
    if key.type.kind is Kind.INTERVAL or (key.type.kind is Kind.OPAQUE and key.type.engine is None):
        raise Refusal("this cannot be a group key", sqlstate="42804", position=binder.position(node))


# --- FROM: tables, CTEs, derived tables, VALUES and joins ---------------------------------------------------


def bind_from(node: exp.Expr, context: BindingContext, grammar: Grammar) -> tuple[Relation, Scope]:
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
                if node.args.get("only"):
                    _check_only(table, position)
                schemas = schemas_of(context, table) if name is None else frozenset()
                is_own = isinstance(table, OwnView) or (isinstance(table, Table) and table.own is not None)
                name = name or (table.name if is_own else table.name.rpartition(".")[2])
                relation = (
                    placed(table.relation, position)
                    if isinstance(table, View)
                    else self._own_view(table, position)
                    if isinstance(table, OwnView)
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
        order = relation.listed if isinstance(relation, Scan) else None
        relation = rename(relation, columns, position, order)
        source = ScopeSource(
            name or "", relation.columns, 0, schemas, is_table=order is not None, listed=order
        )
        return relation, Scope([source], outer=context.outer)

    def _own_view(self, view: OwnView, position: Position | None) -> Relation:
        """Return what an analyst's own view stands for. Raises Refusal: as its text alone; 54001 for too many."""
        context = self.context
        if sum(isinstance(one, OwnView) for one in context.found) > _MAX_OWN_VIEWS:
            raise Refusal(
                f"the statement stands for more than {_MAX_OWN_VIEWS} views", sqlstate="54001", position=position,
                hint="make a table of some: CREATE TABLE … AS SELECT",
            )  # fmt: skip
        try:
            query = parse_own_view(view.text)
            whole = replace(context, text=query.text, parameters=(), ctes={}, outer=None)
            relation = self.grammar.query(query.tree, whole)
        except Refusal as refusal:
            inner = refusal
        else:
            names = [column.name for column in relation.columns]
            names[: len(view.names)] = view.names
            return placed(renamed(relation, names) if view.names else relation, position)
        message = inner.message.removeprefix(_IN_VIEW)
        if message == inner.message:
            message = f'"{view.name}": {message}'
        raise Refusal(
            _IN_VIEW + message,
            sqlstate=inner.sqlstate,
            position=position,
            hint=inner.hint,
        )

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


def _check_only(table: Table | View | OwnView, position: Position | None) -> None:
    """Refuse ONLY of a partitioned table, which has no rows of its own: of any other its own rows alone are read."""
    if isinstance(table, Table) and table.is_partitioned:
        raise Refusal(
            "ONLY of a partitioned table has no rows",
            sqlstate="0A000",
            position=position,
            hint="leave ONLY out",
        )


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
        hint="ask for each value by itself, as in COUNT(*) FILTER (WHERE 'a' = ANY (string_to_array(words, ',')))"
        if any(isinstance(part, Unnest) for part in all_parts(right))
        else "aggregate the people's rows in a subquery first, and join its result",
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


def rename(
    relation: Relation,
    columns: list[exp.Expr],
    position: Position | None,
    listed: tuple[int, ...] | None = None,
) -> Relation:
    """Return the relation with its first columns renamed, as `AS t(a, b)` does: those without a name are not seen.

    `listed`: the order in which they are counted, where it is not their own.

    Raises:
        Refusal: 42P10 for more names than columns.
    """
    if not columns:
        return relation
    names = [column.name for column in relation.columns]
    seen = [index for index, name in enumerate(names) if name] if listed is None else listed
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
        items = listed(row) if isinstance(row, exp.Tuple) else [row]
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

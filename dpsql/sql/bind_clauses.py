"""GROUP BY: its keys, in the order of their first mention, and its grouping sets.

DISTINCT ON: rows numbered by their order, of which the first of each group is kept. WITH TIES: rows ranked by theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import Call, Expr, Field, Literal, conjunction
from ..relation.relations import (
    Order,
    OutputColumn,
    Relation,
    WindowCall,
    ends_in,
    filtered,
    limited,
    projected,
    windowed,
)
from ..relation.types import BIGINT, BOOLEAN, Kind
from .attach import attached_in, outer_in
from .bind_aggregate import nulls_first
from .bind_expression import Binder, Pending
from .constants import coerce_literal
from .scope import fold_name

__all__ = [
    "MAX_SETS",
    "GroupKeys",
    "bind_distinct_on",
    "bind_group",
    "bind_limit",
    "bind_order",
    "first_rows",
    "holds_pending",
    "output_index",
]


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
        raise Refusal(
            "a constant here is the number of an output column",
            sqlstate="42601",
            position=binder.position(node),
        )
    index = sign * int(text) - 1
    if not 0 <= index < count:
        raise Refusal(
            f"there is no output column {sign * int(text)}",
            sqlstate="42P10",
            position=binder.position(node),
            hint=f"there are {count}",
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
    number = value.constant if value.is_constant else -1
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise Refusal(
            f"{name.upper()} takes a literal whole number",
            sqlstate="22023",
            position=binder.position(clause),
        )
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
    if isinstance(expr, Call):
        return any(holds_pending(arg) for arg in expr.args)
    return isinstance(expr, Pending)


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
        raise Refusal(
            "GROUP BY takes a list of keys, or the word ALL alone",
            sqlstate="PV001",
            position=binder.position(group),
        )
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
    if isinstance(item, exp.Rollup):
        groups = [_members(part, index_of) for part in item.args["expressions"]]
        return [tuple(itertools.chain(*groups[:size])) for size in range(len(groups), -1, -1)]
    if isinstance(item, exp.Cube):
        groups = [_members(part, index_of) for part in item.args["expressions"]]
        if 2 ** len(groups) > MAX_SETS:
            raise _too_many()
        chosen = itertools.product((True, False), repeat=len(groups))
        return [tuple(itertools.chain(*itertools.compress(groups, pick))) for pick in chosen]
    if isinstance(item, exp.GroupingSets):
        return [found for part in item.args["expressions"] for found in _sets_of(part, index_of)]
    return [_members(item, index_of)]


def _members(part: exp.Expr, index_of: Callable[[exp.Expr], int]) -> tuple[int, ...]:
    if isinstance(part, exp.Tuple):
        return tuple(index_of(inner) for inner in part.args.get("expressions") or [])
    inner = part.args["this"] if isinstance(part, exp.Paren) else part
    return (index_of(inner),)


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

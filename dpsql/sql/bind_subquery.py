"""Subqueries in expressions: EXISTS and IN as mark joins, a scalar subquery with outer columns as a left join.

House rules:

1. A mark is true or false, never NULL. EXISTS is too. IN is not, so it is bound where only its truth is asked for
   (`truth` 1: TRUE must be exact, NULL may be FALSE) or, below NOT, only its falsity (-1: NULL may be TRUE).
2. A scalar subquery becomes a join only when each row finds one group at most, and a row that finds none takes
   the value of an aggregate over no rows: COUNT is 0 there.
3. Below the binder there are only closed relations: `open_query` takes the outer columns out, or refuses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.expressions import (
    TRUE,
    Call,
    Expr,
    Field,
    Literal,
    Scalar,
    conjunction,
    fields_of,
    substitute,
)
from ..relation.relations import (
    AggregateCall,
    Block,
    Group,
    Join,
    Relation,
    ends_in,
    grouped,
    projected,
    skipped,
)
from ..relation.types import BOOLEAN, DOUBLE
from .attach import (
    Attached,
    Attachment,
    Opened,
    Outer,
    check_closed,
    first_outer,
    open_query,
    outer_in,
    project_onto,
)
from .bind_expression import Binder, call, cast
from .bind_lists import any_row, lateral_value, rows_compared
from .literals import bare, listed

__all__ = ["bind_exists", "bind_in_query", "bind_scalar"]


def _bind_inside(binder: Binder, node: exp.Expr) -> Relation:
    return binder.grammar.query(node, replace(binder.context, outer=binder.scope))


def _skips_nothing(node: Relation) -> TypeGuard[Block]:
    return ends_in(node, "limit") and node.limit is not None and node.limit[0] != 0 and node.limit[1] == 0


# --- EXISTS --------------------------------------------------------------------------------------------------


def bind_exists(binder: Binder, node: exp.Expr) -> Expr:
    """Return the mark of EXISTS (SELECT …).

    Raises:
        Refusal: PV004 over an aggregate without GROUP BY, which always has a row, and what `open_query` raises.
    """
    position = binder.position(node)
    relation = _any_row(_bind_inside(binder, node.args["this"]))
    if ends_in(relation, "group") and relation.group is not None and () in relation.group.sets:
        raise Refusal(
            "EXISTS over an aggregate without GROUP BY is always true",
            sqlstate="PV004",
            position=position,
            hint="leave the aggregate out: EXISTS asks whether there is a row",
        )
    try:
        opened = open_query(relation, exists=True)
    except Refusal as refused:
        return any_row(binder, relation, TRUE, refused, position)
    return _mark(binder, opened, conjunction(opened.conditions), "EXISTS", position)


def _any_row(node: Relation) -> Relation:
    """Return a relation without what does not matter to whether it has a row."""
    while True:
        if ends_in(node, "outputs", "orders", "distinct", "windows") or _skips_nothing(node):
            node = node.below
        elif isinstance(node, Join) and (node.kind == "mark" or node.word == "scalar"):
            node = node.left
        else:
            return node


def _mark(binder: Binder, opened: Opened, condition: Expr, word: str, position: Position | None) -> Expr:
    attachment = Attachment("mark", opened.relation, condition, word, position)
    return Attached(BOOLEAN, binder.attach(attachment), 0, position=position)


# --- IN ------------------------------------------------------------------------------------------------------


def bind_in_query(binder: Binder, node: exp.Expr, truth: int) -> Expr:
    """Return the mark of x IN (SELECT …): with `truth` 1 true where IN is, with -1 false where IN is.

    Raises:
        Refusal: 0A000 where NULL and FALSE differ, 42601 for a wrong number of columns, 42883 for types that
            cannot be compared.
    """
    position = binder.position(node)
    subject = node.args["this"]
    values = [binder.bind(part) for part in _parts(subject)]
    relation = _bind_inside(binder, node.args["query"])
    if not truth:
        return _in_value(binder, relation, values, position)
    try:
        opened = _members(relation)
    except Refusal as refused:
        return any_row(binder, relation, _members_equal(relation, values, position), refused, position)
    if len(values) != len(opened.outputs):
        raise Refusal(
            f"IN compares {len(values)} with {len(opened.outputs)} columns",
            sqlstate="42601",
            position=position,
        )
    terms = list(opened.conditions)
    for value, member in zip(values, opened.outputs, strict=True):
        outside = value if value.is_constant else Outer(value.type, value, position=value.position)
        terms.append(_compared(outside, member, truth, position))
    word = "IN" if truth > 0 else "NOT IN"
    return _mark(binder, opened, conjunction(tuple(terms)), word, position)


def _in_value(binder: Binder, relation: Relation, values: list[Expr], position: Position | None) -> Expr:
    """Return the value of x IN (SELECT …), which may be NULL: above the release alone."""
    refused = Refusal(
        "the value of IN (SELECT …) may be NULL, and can only be a condition here",
        sqlstate="0A000",
        position=position,
        hint="write EXISTS (SELECT … WHERE …), or use it in WHERE, HAVING, FILTER or CASE WHEN",
    )
    return any_row(binder, relation, _members_equal(relation, values, position), refused, position)


def _members_equal(relation: Relation, values: list[Expr], position: Position | None) -> Expr:
    outside: list[Expr] = [Outer(value.type, value, position=value.position) for value in values]
    return rows_compared("eq", outside, list(relation.row), position)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    inner = bare(node)
    return listed(inner) if isinstance(inner, exp.Tuple) else [node]


def _members(relation: Relation) -> Opened:
    """Return a query opened for membership: the order of its rows and their repeats do not matter."""
    relation = skipped(relation, "orders", "distinct")
    if not ends_in(relation, "outputs"):
        return open_query(relation, exists=True)
    opened = open_query(relation.below, exists=True)
    return replace(opened, outputs=project_onto(relation.exprs, opened.outputs))


def _compared(value: Expr, member: Expr, truth: int, position: Position | None) -> Expr:
    """Return value = member; for `truth` -1 also where that is NULL."""
    equal = call("eq", [value, member], position, said="IN")
    if truth > 0:
        return equal
    sides = [side for side in (value, member) if not (side.is_constant and side.constant is not None)]
    unknown = [Call(BOOLEAN, "is_null", (side,), position=side.position) for side in sides]
    terms = tuple(sorted({equal, *unknown}, key=repr))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", terms, position=position)


# --- scalar subqueries ---------------------------------------------------------------------------------------


def bind_scalar(binder: Binder, node: exp.Expr) -> Expr:
    """Return the value of a scalar subquery: a closed one as `Scalar`, one with outer columns by a join.

    Raises:
        Refusal: 42601 when it has not one column, PV004 for outer columns in any but the form of rule 2.
    """
    position = binder.position(node)
    relation = _bind_inside(binder, node)
    if len(relation.columns) != 1:
        raise Refusal("a scalar subquery has one column", sqlstate="42601", position=position)
    if first_outer(relation) is None:
        return Scalar(relation.columns[0].type, relation, position=position)
    try:
        return _joined(binder, relation, position)
    except Refusal as refused:
        return lateral_value(binder, relation, refused, position)


def _joined(binder: Binder, relation: Relation, position: Position | None) -> Expr:
    """Return the value of a scalar subquery with outer columns as that of a grouped one, joined. Raises Refusal."""
    group, value, below, place = _over_aggregate(relation, position)
    opened = open_query(below, exists=False)
    pairs = [_equality(term, position) for term in opened.conditions]
    keys = tuple(dict.fromkeys(inner for inner, _ in pairs))

    def onto(expr: Expr) -> Expr:
        return project_onto((expr,), opened.outputs)[0]

    calls = tuple(one.map(onto) for one in group.aggregates)
    names = tuple(key.name for key in keys)
    groups = grouped(opened.relation, Group(keys, calls, (tuple(range(len(keys))),), names=names), place)
    check_closed(groups)
    if outer_in(value) or not keys:
        raise _not_joined(position)
    condition = conjunction(
        tuple(
            Call(BOOLEAN, "eq", (Field(inner.type, keys.index(inner), names[keys.index(inner)]), outer))
            for inner, outer in pairs
        )
    )
    right = _with_value(groups, len(keys), value, relation.columns[0].name)
    number = binder.attach(Attachment("left", right, condition, "scalar", position))
    found = Attached(value.type, number, len(keys), position=position)
    empty = substitute(value, tuple(_over_no_rows(one) for one in group.aggregates))
    if _is_null(empty):
        return found
    is_missing = Call(BOOLEAN, "is_null", (Attached(keys[0].type, number, 0),))
    return Call(value.type, "case", (is_missing, empty, found), position=position)


def _not_joined(position: Position | None) -> Refusal:
    return Refusal(
        "this scalar subquery uses columns of the query around in a way that is not supported",
        sqlstate="PV004",
        position=position,
        hint="aggregate rows WHERE its own column = the outer column, or join to a subquery that has GROUP BY",
    )


def _over_aggregate(
    relation: Relation, position: Position | None
) -> tuple[Group, Expr, Relation, Position | None]:
    """Return the group of all rows that a scalar subquery is made of, its value over that, its rows, its place."""
    value: Expr = Field(relation.columns[0].type, 0)
    node = relation
    while ends_in(node, "outputs", "orders", "distinct") or _skips_nothing(node):
        if node.last == "outputs":
            value = project_onto((value,), node.exprs)[0]
        node = node.below
    if not ends_in(node, "group") or node.group is None or not node.group.is_one_row or node.group.groupings:
        raise _not_joined(position)
    return node.group, value, node.below, node.position


def _equality(term: Expr, position: Position | None) -> tuple[Expr, Expr]:
    """Return the inner and the outer side of an equality, the inner one in a type that loses no difference.

    Two groups that equal one outer value would be two rows of the join: a floating-point outer side
    makes the inner one floating-point before it is a key.
    """
    if term.calls("eq"):
        for inner, outer in (term.args, term.args[::-1]):
            if fields_of(inner) and not outer_in(inner) and outer_in(outer) and not fields_of(outer):
                widen = outer.type.is_float and not inner.type.is_float
                return (cast(inner, DOUBLE, position) if widen else inner), outer
    raise _not_joined(term.position or position)


def _with_value(groups: Relation, count: int, value: Expr, name: str) -> Relation:
    """Return the `count` keys and the value of each group."""
    row = groups.row
    put = project_onto((value,), row[count:])[0]
    if len(row) == count + 1 and put == row[count]:
        return groups
    names = (*(column.name for column in groups.columns[:count]), name)
    return projected(groups, (*row[:count], put), names, groups.position)


def _over_no_rows(one: AggregateCall) -> Literal:
    return Literal(one.type, 0 if one.function == "count" else None)


_STRICT = frozenset(
    {"add", "sub", "mul", "div", "mod", "neg", "abs", "round", "floor", "ceil", "trunc", "sqrt", "ln", "log", "exp",
     "power", "sign", "cast", "length", "lower", "upper", "substr", "extract", "date_trunc"}
)  # fmt: skip


def _is_null(expr: Expr) -> bool:
    """Say whether an expression over constants is surely NULL."""
    if expr.is_constant:
        return expr.constant is None
    return expr.calls(*_STRICT) and any(_is_null(arg) for arg in expr.args)

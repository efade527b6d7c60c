"""Subqueries in expressions, and comparisons: of values, of rows of values, with what a list or a query has.

A list whose items are written is nothing but comparisons, over people's rows too; one that an array holds is for what
is released.

EXISTS and IN are mark joins, a scalar subquery with outer columns is a left join: what can be one is, since that has a
meaning over people's rows too. What is left reads the row around it and stands above the release alone; its own refusal
is kept and said where people's rows come in.

House rules:

1. A mark is true or false, never NULL. EXISTS is too. IN is not, so it is bound where only its truth is asked for
   (`truth` 1: TRUE must be exact, NULL may be FALSE) or, below NOT, only its falsity (-1: NULL may be TRUE).
2. A scalar subquery becomes a join only when each row finds one group at most, and a row that finds none takes
   the value of an aggregate over no rows: COUNT is 0 there.
3. Below the binder there are only closed relations: `open_query` takes the outer columns out, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.expressions import (
    FALSE,
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
from ..relation.functions import FUNCTIONS, common_type
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
from ..relation.types import BOOLEAN, DOUBLE, TEXT, Kind
from .bind_expression import Binder, call, cast
from .bind_moments import compared_intervals
from .literals import (
    Awaited,
    bare,
    called,
    cast_target,
    coerce_literal,
    compare_in,
    listed,
    parameter_literal,
    type_word,
)
from .scope import (
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

MAX_ITEMS = 1_000
"""Most items of a list that is one constant."""

_NAMES: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
}  # fmt: skip


def bind_comparison(binder: Binder, node: exp.Expr) -> Expr:
    """Return `x = y` and its like, of values, rows of values, or a value and what a list or a query has."""
    name = _NAMES[type(node)]
    found = _compared_rows(binder, node, name)
    if found is not None:
        return found
    listed = quantified(binder, node.args["expression"])
    if listed is not None:
        return _with_list(binder, node, name, listed)
    args = [binder.bind(node.args["this"]), binder.bind(node.args["expression"])]
    between = compared_intervals(binder, node, name, args)
    return binder.call(name, args, node, said=FUNCTIONS[name].symbol) if between is None else between


# --- lists -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """What ANY, or ALL, stands before: items that are written out, or an array."""

    is_any: bool
    items: list[Expr]
    array: Expr | None = None

    @property
    def often(self) -> int:
        """How often what is compared with it stands in the comparison."""
        return len(self.items) if self.array is None else 1


def quantified(binder: Binder, right: exp.Expr) -> Listed | None:
    """Return the list that stands on the right of an operator after ANY or ALL; None: neither does.

    Raises:
        Refusal: 0A000 for a query, PV202 for what is no list.
    """
    is_any = isinstance(right, exp.Any)
    is_all = called(right) == "all"
    if not (is_any or is_all or isinstance(right, exp.All)):
        return None
    written = right.args["expressions"] if is_all else [right.args["this"]]
    inner = written[0] if len(written) == 1 else None
    inner = None if inner is None else bare(inner)
    if isinstance(inner, exp.Subquery) and isinstance(inner.args["this"], exp.Values):
        inner = inner.args["this"]
    if inner is None or isinstance(inner, exp.Query):
        raise Refusal(
            "ANY and ALL take a list here, not a query", sqlstate="0A000", position=binder.position(right),
            hint="write x IN (SELECT …) or x NOT IN (SELECT …)",
        )  # fmt: skip
    if _is_list(inner):
        return Listed(is_any, list_items(binder, inner))
    array = binder.bind(inner)
    if array.type.kind is not Kind.ARRAY:
        raise _no_list(binder.position(inner))
    return Listed(is_any, [], array)


def _is_list(node: exp.Expr) -> bool:
    """Say whether a list is written out, as its items or as a text of them."""
    while isinstance(node, exp.Cast):
        node = node.args["this"]
    holds_query = any(isinstance(item, exp.Query) for item in listed(node))
    return node.is_string or (type(node) in _LISTS and not holds_query)


_LISTS = frozenset((exp.Array, exp.Parameter, exp.Values))


def _with_list(binder: Binder, node: exp.Expr, name: str, among: Listed) -> Expr:
    """Return `x op ANY (list)` or `x op ALL (list)`; of no items, ALL is true and ANY is not, even for NULL."""
    position, value = binder.position(node), binder.repeated(node.args["this"], among.often)
    items, array, symbol = among.items, among.array, FUNCTIONS[name].symbol
    if (name, among.is_any) in (("eq", True), ("ne", False)):
        found = None
        if array is not None:
            found = has_value(array, value, position)
        elif items and all(item.is_constant for item in items):
            found = is_in(value, items, position, "ANY")
        if found is not None:
            return found if among.is_any else Call(BOOLEAN, "not", (found,), position=position)
    if array is None:
        if not items:
            return FALSE if among.is_any else TRUE
        each = [call(name, [value, item], position, said=symbol) for item in items]
        return joined(each, position, is_any=among.is_any)
    assert array.type.element is not None
    word = "any" if among.is_any else "all"
    args = [array, coerce_literal(value, array.type.element), Literal(TEXT, name), Literal(TEXT, word)]
    return call("array_compared", args, position, said=f"{symbol} {word.upper()}")


def joined(terms: list[Expr], position: Position | None, *, is_any: bool) -> Expr:
    """Return terms joined by OR, or by AND where not any one is enough."""
    each = sorted(dict.fromkeys(terms), key=repr)
    return (
        each[0]
        if len(each) == 1
        else Call(BOOLEAN, "or" if is_any else "and", tuple(each), position=position)
    )


def is_in(value: Expr, items: list[Expr], position: Position | None, said: str) -> Expr:
    """Return whether a value is one of constants. Raises as `call`."""
    bound = call("in", [value, *items], position, said=said)
    assert isinstance(bound, Call)
    return compare_in(bound.args[0], list(bound.args[1:]), position)


def has_value(array: Expr, value: Expr, position: Position | None, name: str = "array_has") -> Expr:
    """Return a call of an array and a value, which is read as its elements are."""
    element = array.type.element
    assert element is not None
    value = coerce_literal(value, element)
    if value.type != element and common_type([element, value.type]) == element:
        value = cast(value, element, position)
    return call(name, [array, value], position, said="= ANY" if name == "array_has" else name)


def list_items(binder: Binder, node: exp.Expr) -> list[Expr]:
    """Return the items of a list: ARRAY[…], a parameter that is a list, or text such as '{a,b}', cast or not.

    Raises:
        Refusal: PV202 for what is no constant list, 22023 for text that is not written as one.
    """
    read = _ITEMS.get(type(node))
    if read is None:
        raise _no_list(binder.position(node))
    return read(binder, node)


def _of_cast(binder: Binder, node: exp.Expr) -> list[Expr]:
    to, position = node.args["to"], binder.position(node)
    inner = listed(to)
    if type_word(to) != "ARRAY" or len(inner) != 1:
        raise _no_list(position)
    target = cast_target(inner[0], position)
    return [cast(item, target, item.position) for item in list_items(binder, node.args["this"])]


def _of_values(binder: Binder, node: exp.Expr) -> list[Expr]:
    rows = [row_parts(row) or [row] for row in listed(node)]
    if any(len(row) != 1 for row in rows):
        raise _no_list(binder.position(node))
    return [binder.bind(item) for row in rows for item in row]


def _of_text(binder: Binder, node: exp.Expr) -> list[Expr]:
    if not node.is_string:
        raise _no_list(binder.position(node))
    return array_items(node.name, binder.position(node))


def _of_parameter(binder: Binder, node: exp.Expr) -> list[Expr]:
    number, value = binder.parameter_value(node)
    position = binder.position(node)
    if isinstance(value, Awaited):
        value.lists.append(True)
        return [parameter_literal(value, number, position)]
    if isinstance(value, str):
        return array_items(value, position)
    if isinstance(value, (list, tuple)):
        if len(value) > MAX_ITEMS:
            raise _too_many(position)
        return [parameter_literal(item, number, position) for item in value]
    raise _no_list(position)


_ITEMS: dict[type[exp.Expr], Callable[[Binder, exp.Expr], list[Expr]]] = {
    exp.Array: Binder.arguments,
    exp.Cast: _of_cast,
    exp.Parameter: _of_parameter,
    exp.Values: _of_values,
    exp.Literal: _of_text,
}
"""Kind of node -> what reads the items of the list that it is."""


def _no_list(position: Position | None) -> Refusal:
    return Refusal(
        "ANY and ALL take a list of constants", sqlstate="PV202", position=position,
        hint="write ARRAY[1, 2], '{1,2}', or pass a list as a parameter",
    )  # fmt: skip


def _too_many(position: Position | None) -> Refusal:
    return Refusal(f"this list has more than {MAX_ITEMS} items", sqlstate="54001", position=position)


def array_items(text: str, position: Position | None) -> list[Expr]:
    """Read Postgres' text of an array of one dimension: {a,"b c",NULL}."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        raise _no_list(position)
    items: list[Expr] = []
    rest = bare[1:-1]
    while rest.strip():
        if len(items) >= MAX_ITEMS:
            raise _too_many(position)
        item, quoted, rest = _first_item(rest.lstrip(), position)
        is_null = not quoted and item.upper() == "NULL"
        items.append(parameter_literal(None if is_null else item, 0, position))
    return items


def _first_item(text: str, position: Position | None) -> tuple[str, bool, str]:
    """Return the first item of an array's text, whether it stood in quotes, and what follows its comma."""
    found: list[str] = []
    quoted = text.startswith('"')
    at = 1 if quoted else 0
    while at < len(text) and text[at] != ('"' if quoted else ","):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        elif not quoted and text[at] in '{}"':
            raise _no_list(position)
        found.append(text[at])
        at += 1
    if quoted and at >= len(text):
        raise _no_list(position)
    rest = text[at + 1 :] if quoted else text[at:]
    rest = rest.lstrip()
    item = "".join(found) if quoted else "".join(found).strip()
    if (rest and not rest.startswith(",")) or (rest == ",") or (not quoted and not item):
        raise _no_list(position)
    return item, quoted, rest[1:]


# --- rows and queries ------------------------------------------------------------------------------------


def lateral_value(binder: Binder, relation: Relation, refused: Refusal, position: Position | None) -> Expr:
    """Return the value of a subquery's one row, taken anew for each row around it."""
    attachment = Attachment("scalar", relation, TRUE, "scalar", position, refused)
    return Attached(relation.columns[0].type, binder.attach(attachment), 0, position=position)


def any_row(
    binder: Binder, relation: Relation, condition: Expr, refused: Refusal, position: Position | None
) -> Expr:
    """Return whether a condition is true for some row of a subquery; NULL as SQL's ANY has it.

    `condition` is over the subquery's row and, in `Outer` nodes, the row around.
    """
    attachment = Attachment("any", relation, condition, "any", position, refused)
    return Attached(BOOLEAN, binder.attach(attachment), 0, position=position)


def row_parts(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the values of a row `(a, b)` or `ROW(a, b)`; None: it is none."""
    node = bare(node)
    return listed(node) if isinstance(node, exp.Tuple) or called(node) == "row" else None


_STRICT = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}


def rows_compared(name: str, left: Sequence[Expr], right: Sequence[Expr], position: Position | None) -> Expr:
    """Return the comparison of two rows, value by value from the left, as in Postgres.

    Raises:
        Refusal: 42601 for rows of different lengths.
    """
    if len(left) != len(right) or not left:
        raise Refusal(
            f"a row of {len(left)} values is compared with one of {len(right)}",
            sqlstate="42601",
            position=position,
        )
    pairs = list(zip(left, right, strict=True))
    if name in ("eq", "ne"):
        equal = [call("eq", [a, b], position, said="=") for a, b in pairs]
        both = conjunction(tuple(sorted(set(equal), key=repr)))
        return both if name == "eq" else call("not", [both], position)
    found = call(name, [*pairs[-1]], position)
    for a, b in reversed(pairs[:-1]):
        same = Call(BOOLEAN, "and", (call("eq", [a, b], position), found), position=position)
        found = Call(BOOLEAN, "or", (call(_STRICT[name], [a, b], position), same), position=position)
    return found


def _compared_rows(binder: Binder, node: exp.Expr, name: str) -> Expr | None:
    """Return `(a, b) = (c, d)`, or `x > ALL (SELECT …)`; None: it is neither."""
    left, right = row_parts(node.args["this"]), node.args["expression"]
    is_all = isinstance(right, exp.All)
    if isinstance(right, (exp.Any, exp.All)):
        inner = right.args["this"]
        while isinstance(inner, (exp.Paren, exp.Subquery)):
            inner = inner.args["this"]
        if not isinstance(inner, exp.Query):
            return None
        written = left if left is not None else [node.args["this"]]
        return _quantified(binder, node, name, [binder.bind(one) for one in written], inner, is_all=is_all)
    other = row_parts(right)
    if left is None and other is None:
        return None
    if left is None or other is None:
        raise binder.refusal(node, "42883", "a row of values is compared with another row", "(a, b) = (1, 2)")
    position = binder.position(node)
    found, others = ([binder.repeated(part, 2) for part in parts] for parts in (left, other))
    return rows_compared(name, found, others, position)


_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _quantified(
    binder: Binder, node: exp.Expr, name: str, values: list[Expr], query: exp.Expr, *, is_all: bool
) -> Expr:
    """Return `x op ANY (SELECT …)`; ALL is no row for which the opposite is true."""
    position = binder.position(node)
    relation = binder.grammar.query(query, binder.inside())
    outside: list[Expr] = [Outer(value.type, value, position=value.position) for value in values]
    row: list[Expr] = list(relation.row)
    refused = Refusal(
        "ANY and ALL take a list here, not a query", sqlstate="0A000", position=position,
        hint="write x IN (SELECT …) or x NOT IN (SELECT …)",
    )  # fmt: skip
    condition = rows_compared(name if not is_all else _NEGATED[name], outside, row, position)
    found = any_row(binder, relation, condition, refused, position)
    return call("not", [found], position) if is_all else found


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
        raise binder.refusal(node, "42601", f"IN compares {len(values)} with {len(opened.outputs)} columns")
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


_NULL_OF_NULL = frozenset(
    {"add", "sub", "mul", "div", "mod", "neg", "abs", "round", "floor", "ceil", "trunc", "sqrt", "ln", "log", "exp",
     "power", "sign", "cast", "length", "lower", "upper", "substr", "extract", "date_trunc"}
)  # fmt: skip


def _is_null(expr: Expr) -> bool:
    """Say whether an expression over constants is surely NULL."""
    if expr.is_constant:
        return expr.constant is None
    return expr.calls(*_NULL_OF_NULL) and any(_is_null(arg) for arg in expr.args)

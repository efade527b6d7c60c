"""Arrays above the release: written out, one value of one, a part of one, and all of them in rows.

`unnest(q)` of several percentiles is each row beside the numbers 1, 2, … up to how many values its array has, and the
value of that number: so the values keep their error bars. Of any other array it is a node of its own.

Functions that give rows: what is constant is written out where the statement is bound, as a series or as one row's
arrays; else the arguments read the row beside them, and the join is a lateral one. What Postgres raises for a value,
as for the elements of an object, is no row here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.calendar import DAY
from ..relation.expressions import TRUE, Call, Expr, Field, Literal, Months, Scalar
from ..relation.functions import NAMES, common_type
from ..relation.relations import (
    MAX_SERIES,
    AggregateCall,
    Group,
    Join,
    OutputColumn,
    Relation,
    Series,
    Unnest,
    Values,
    ends_in,
    filtered,
    grouped,
    skipped,
)
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    array_of,
)
from .attach import first_outer
from .bind_aggregate import MAX_FRACTIONS
from .bind_expression import Binder, call, cast
from .bind_json import as_json_value
from .bind_lists import array_items, has_value
from .constants import add_months, coerce_literal
from .literals import called, cast_target, listed, type_word
from .named_calls import bind_row, no_such_function

__all__ = [
    "ROW_CALLS",
    "bind_array",
    "bind_cardinality",
    "bind_cast",
    "bind_element",
    "bind_place",
    "bind_rows",
    "bind_series",
    "bind_unnest",
    "is_rows",
    "joined_arrays",
    "refuse_unnest",
    "row_arrays",
    "row_call",
    "unnested",
]


# --- functions that give rows -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowCall:
    """What a function gives: `arrays`, as SQL over its arguments a and b, of which each row has one value.

    `columns`: their names, none for its own. `named`: the function whose array it lays out, with all its arguments.
    """

    arrays: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    named: str = ""


_OF_JSON = {
    "array_elements": RowCall(("json_elements(a)",), ("value",)),
    "array_elements_text": RowCall(("json_texts(json_elements(a))",), ("value",)),
    "object_keys": RowCall(("json_keys(a)",)),
    "each": RowCall(("json_keys(a)", "json_values(a)"), ("key", "value")),
    "each_text": RowCall(("json_keys(a)", "json_texts(json_values(a))"), ("key", "value")),
}
ROW_CALLS = {
    **{f"{kind}_{name}": row for kind in ("json", "jsonb") for name, row in _OF_JSON.items()},
    "string_to_table": RowCall(named="string_to_array"),
    "regexp_split_to_table": RowCall(named="regexp_split_to_array"),
    "generate_subscripts": RowCall(("series(1, array_upper(a, b), 1)",)),
}
"""Name -> what it gives."""


def row_call(node: exp.Expr) -> str | None:
    """Return the name of a function that gives rows, where it is called; None: another is, or none."""
    inner = node.args["this"] if isinstance(node, exp.Table) else node
    name = called(inner)
    return name if name in ROW_CALLS else None


def is_rows(node: exp.Expr) -> bool:
    """Say whether a FROM item is a function that gives rows."""
    is_series = isinstance(node, exp.Table) and isinstance(node.args["this"], exp.ExplodingGenerateSeries)
    return is_series or isinstance(node, exp.Unnest) or row_call(node) is not None


def row_arrays(binder: Binder, node: exp.Expr, name: str) -> tuple[Expr, ...]:
    """Return the arrays that a function of `ROW_CALLS` lays out.

    Raises:
        Refusal: 42883 for arguments that it does not take, of another kind of JSON too.
    """
    row, args = ROW_CALLS[name], binder.arguments(node.args["this"] if isinstance(node, exp.Table) else node)
    if row.named:
        return (bind_row(binder, node, name, NAMES[row.named], args),)
    if name.startswith("json"):
        args = [_json(binder, node, name, args)]
    elif len(args) != 2:
        bind_row(binder, node, name, NAMES["array_upper"], args)
    parts = dict(zip("ab", args, strict=False))
    return tuple(binder.meant(sql, node, parts, name) for sql in row.arrays)


def _json(binder: Binder, node: exp.Expr, name: str, args: list[Expr]) -> Expr:
    """Return the one argument, of the kind of JSON that the name says. Raises Refusal (42883): it is of another."""
    position, wanted = binder.position(node), JSONB if name.startswith("jsonb") else JSON
    value = as_json_value(args[0], wanted, position) if len(args) == 1 else None
    if value is None or value.type.kind is not wanted.kind:
        raise Refusal(
            f"{name}() takes one value of {wanted}", sqlstate="42883", position=position,
            hint="json_… is of json, jsonb_… of jsonb",
        )  # fmt: skip
    return value


_ONE_ROW = Values(((),), ())
_HINT = "generate_series(1, 12), or generate_series(timestamp '2024-01-01', '2024-12-01', interval '1 month')"


def bind_rows(binder: Binder, node: exp.Expr, *, numbered: bool) -> tuple[Relation, str, tuple[str, ...]]:
    """Return the rows of a function in FROM, its name, and those of its columns, none where they have its own."""
    position, called = binder.position(node), row_call(node)
    if called is not None:
        arrays = row_arrays(binder, node, called)
        return Unnest(_ONE_ROW, arrays, numbered, position=position), called, ROW_CALLS[called].columns
    if isinstance(node, exp.Unnest):
        arrays = tuple(_array_in_rows(binder, part) for part in node.args["expressions"])
        return Unnest(_ONE_ROW, arrays, numbered, position=position), "unnest", ()
    series = node.args["this"] if isinstance(node, exp.Table) else node
    name = "generate_series"
    args, type_ = _arguments(binder, series, position)
    if all(arg.is_constant for arg in args):
        known = Series(_constant(args, position), type_, name)
        if not numbered:
            return replace(known, position=position), name, ()
    array = Call(array_of(type_), "series", tuple(args), position=position)
    return Unnest(_ONE_ROW, (array,), numbered, position=position), name, ()


def bind_series(binder: Binder, node: exp.Expr) -> Expr:
    """Return generate_series as an array whose rows a column of SELECT has."""
    position = binder.position(node)
    args, type_ = _arguments(binder, node, position)
    if all(arg.is_constant for arg in args):
        _constant(args, position)
    return Call(array_of(type_), "series", tuple(args), position=position)


def _array_in_rows(binder: Binder, node: exp.Expr) -> Expr:
    value = binder.bind(node)
    if value.type.kind is not Kind.ARRAY:
        raise Refusal(
            f"unnest takes an array, not {value.type}", sqlstate="42804", position=binder.position(node),
            hint="unnest(ARRAY[1, 2]), or of what array_agg made",
        )  # fmt: skip
    return value


def _arguments(binder: Binder, node: exp.Expr, position: Position | None) -> tuple[list[Expr], SqlType]:
    """Return start, stop and step, and the type of the rows.

    Raises:
        Refusal: 42883 for types that give no series, 0A000 for a step of time that is no constant.
    """
    written = [node.args.get(name) for name in ("start", "end", "step")]
    args = [binder.bind(one) for one in written if one is not None]
    kinds = {arg.type.kind for arg in args[:2] if not arg.is_constant or arg.type.kind is not Kind.TEXT}
    if kinds & {Kind.DATE, Kind.TIMESTAMP} and len(args) == 3:
        ends = [cast(coerce_literal(arg, TIMESTAMP), TIMESTAMP, position) for arg in args[:2]]
        step = coerce_literal(args[2], INTERVAL)
        if step.constant_as(Months) is None:
            raise Refusal(
                "the step of generate_series is a constant interval",
                sqlstate="0A000",
                position=position,
                hint=_HINT,
            )
        return [*ends, step], TIMESTAMP
    args = [coerce_literal(arg, INTEGER) for arg in args]
    if not all(arg.type.is_integer or arg.type.kind is Kind.NULL for arg in args) or len(args) < 2:
        types = ", ".join(str(arg.type) for arg in args)
        raise Refusal(
            f"generate_series({types}) is not answered", sqlstate="42883", position=position, hint=_HINT
        )
    type_ = BIGINT if any(arg.type.kind is Kind.BIGINT for arg in args) else INTEGER
    args = [cast(arg, type_, position) for arg in args]
    return [*args, *([Literal(type_, 1)] if len(args) == 2 else [])], type_


def _constant(args: list[Expr], position: Position | None) -> range | tuple[int, ...]:
    """Return the numbers of a series. Raises Refusal: 22023 for a step of zero, 54000 for too many."""
    if any(arg.constant is None for arg in args):
        return range(0)
    (start, stop), step = (arg.literal_as(int) for arg in args[:2]), args[2].constant_as(int)
    interval = args[2].constant_as(Months)
    if interval is not None:
        each = interval.days * DAY + interval.microseconds
        if interval.months == 0:
            step = each
        elif (interval.months > 0) != (each >= 0) and each:
            raise Refusal("the step of generate_series goes both ways", sqlstate="22023", position=position)
    if step == 0:
        raise Refusal("the step of generate_series is zero", sqlstate="22023", position=position)
    if step is not None:
        numbers = range(start, stop + (1 if step > 0 else -1), step)
        if len(numbers) > MAX_SERIES:
            raise _too_many(position)
        return numbers
    assert interval is not None
    found: list[int] = []
    current: int | None = start
    while current is not None and (current <= stop if interval.months > 0 else current >= stop):
        found.append(current)
        if len(found) > MAX_SERIES:
            raise _too_many(position)
        current = add_months(current, interval, 1)
    return tuple(found)


def _too_many(position: Position | None) -> Refusal:
    return Refusal(
        f"generate_series gives more than {MAX_SERIES} rows", sqlstate="54000", position=position,
        hint="take a larger step, or nearer ends",
    )  # fmt: skip


# --- arrays above the release: written out, one value of one, a part of one, and all of them in rows --------


_NOWHERE = 2**31 - 1


def _array(binder: Binder, node: exp.Expr, what: str) -> Expr:
    """Return an expression that is an array. Raises Refusal (42804)."""
    value = binder.bind(node)
    if value.type.kind is not Kind.ARRAY:
        raise Refusal(
            f"{what} takes an array, not {value.type}", sqlstate="42804", position=binder.position(node),
            hint="several percentiles are one: percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY x)",
        )  # fmt: skip
    return value


def bind_element(binder: Binder, node: exp.Expr) -> Expr:
    """Return `q[i]`, or the part `q[i:j]` for literals."""
    value, parts = _array(binder, node.args["this"], "[…]"), node.args["expressions"]
    if len(parts) == 1 and isinstance(parts[0], exp.Slice):
        return _slice(binder, value, parts[0])
    place = coerce_literal(binder.bind(parts[0]), INTEGER) if len(parts) == 1 else None
    if place is None or not (place.type.is_integer or place.type.kind is Kind.NULL):
        raise Refusal(
            "[…] takes one whole number, from 1", sqlstate="42804", position=binder.position(node),
            hint="cast it: q[x::integer]",
        )  # fmt: skip
    number = place.constant_as(int)
    if number is not None and not 1 <= number < _NOWHERE:
        place = Literal(INTEGER, _NOWHERE)  # before the first there is nothing, as in Postgres
    return call("element", [value, cast(place, INTEGER, None)], binder.position(node))


def _slice(binder: Binder, value: Expr, node: exp.Expr) -> Expr:
    """Return `q[i:j]`; what lies outside the array is left out, as in Postgres."""
    ends = []
    for name, default in (("this", 1), ("expression", _NOWHERE)):
        written = node.args.get(name)
        end = Literal(INTEGER, default) if written is None else coerce_literal(binder.bind(written), INTEGER)
        place = end.constant_as(int)
        if place is None or node.args.get("step") is not None:
            raise Refusal("[… : …] takes literal numbers", sqlstate="0A000", position=binder.position(node))
        ends.append(place)
    low, high = max(ends[0], 1), min(ends[1], _NOWHERE)
    if low > high:
        low, high = _NOWHERE, _NOWHERE
    return call("slice", [value, Literal(INTEGER, low), Literal(INTEGER, high)], binder.position(node))


def bind_cardinality(binder: Binder, node: exp.Expr) -> Expr:
    """Return `cardinality(q)`. Raises Refusal (42883): it is not of one argument."""
    written = listed(node)
    if len(written) != 1:
        raise no_such_function(binder, node, "cardinality")
    return binder.call("cardinality", [_array(binder, written[0], "cardinality")], node)


def bind_place(binder: Binder, node: exp.Expr) -> Expr:
    """Return `array_position(q, x)`."""
    array, position = _array(binder, node.args["this"], "array_position"), binder.position(node)
    return has_value(array, binder.bind(node.args["expression"]), position, "array_position")


def bind_unnest(binder: Binder, node: exp.Expr) -> Expr:
    """Return a mark of `unnest(q)` or a series, which `unnested` takes out; of a SELECT item alone."""
    called = row_call(node)
    if called is not None:
        arrays = row_arrays(binder, node, called)
        if len(arrays) > 1:
            raise Refusal(
                f"{called}() gives rows of two columns, which stand in FROM", sqlstate="0A000",
                position=binder.position(node), hint=f"SELECT key, value FROM t, {called}(j)",
            )  # fmt: skip
        value = arrays[0]
    elif isinstance(node, exp.ExplodingGenerateSeries):
        value = bind_series(binder, node)
    else:
        value = _array(binder, node.args["this"], "unnest")
    assert value.type.element is not None
    binder.makes_rows = True
    return Call(value.type.element, "unnest", (value,), position=binder.position(node))


def refuse_unnest(binder: Binder, node: exp.Expr) -> Expr:
    """Refuse unnest inside another expression, or in another clause. Raises Refusal (0A000)."""
    name = row_call(node) or (
        "generate_series" if isinstance(node, exp.ExplodingGenerateSeries) else "unnest"
    )
    raise Refusal(
        f"{name} stands alone in a column of SELECT", sqlstate="0A000", position=binder.position(node),
        hint="use its rows in FROM, or in the query around: SELECT … FROM (SELECT unnest(q) AS x FROM …) AS t",
    )  # fmt: skip


def bind_array(binder: Binder, node: exp.Expr) -> Expr:
    """Return `ARRAY[…]`, or `ARRAY(SELECT …)`.

    Raises:
        Refusal: 42804 for values of several types, 42601 for a query of several columns.
    """
    position, items = binder.position(node), listed(node)
    if len(items) == 1 and isinstance(items[0], exp.Query):
        return _of_query(binder, items[0])
    args = binder.arguments(node)
    if not args:
        raise Refusal(
            "the type of an empty array is not known", sqlstate="42804", position=position,
            hint="leave it out, or take an array that has values",
        )  # fmt: skip
    typed = [arg.type for arg in args if not (arg.is_constant and arg.type.kind is Kind.TEXT)]
    target = common_type(typed) if typed and len(typed) < len(args) else common_type([a.type for a in args])
    if target is not None and target.kind is Kind.NULL:
        target = TEXT
    if target is None or target.kind in (Kind.OPAQUE, Kind.INTERVAL, Kind.ARRAY):
        types = ", ".join(str(arg.type) for arg in args)
        raise Refusal(
            f"an array cannot hold ({types})", sqlstate="42804", position=position, hint="cast the values"
        )
    return call("array", [cast(coerce_literal(arg, target), target, position) for arg in args], position)


def _of_query(binder: Binder, node: exp.Expr) -> Expr:
    """Return `ARRAY(SELECT …)`: its rows in their order, and an empty array for none."""
    position = binder.position(node)
    relation = binder.grammar.query(node, binder.context)
    if len(relation.columns) != 1 or first_outer(relation) is not None:
        raise Refusal(
            "ARRAY (SELECT …) takes a query of one column without outer columns", sqlstate="0A000", position=position,
            hint="array_agg(x ORDER BY y)",
        )  # fmt: skip
    type_ = array_of(relation.columns[0].type)
    orders = relation.orders if ends_in(relation, "orders") else ()
    value = Field(relation.columns[0].type, 0, position=position)
    one = AggregateCall(type_, "array_agg", (value,), False, None, orders, position=position)
    listed = grouped(relation, Group((), (one,), ((),)), position)
    args = (Scalar(type_, listed, position=position), Call(type_, "array", ()))
    return Call(type_, "coalesce", args, position=position)


def bind_cast(binder: Binder, node: exp.Expr) -> Expr:
    """Return a cast; to an array, of a constant text of one, or of `ARRAY[…]`, value by value.

    Raises:
        Refusal: 0A000 for another value as an array, and for an array of arrays.
    """
    to = node.args["to"]
    if type_word(to) != "ARRAY":
        return binder.cast_node(node)
    position, inner, written = binder.position(node), listed(to), node.args["this"]
    element = cast_target(inner[0], position) if len(inner) == 1 else TEXT
    if element.is_json or element.kind is Kind.INTERVAL:
        raise Refusal(
            "this array is not supported in a cast", sqlstate="0A000", position=position, hint=_CAST_HINT
        )
    if isinstance(written, exp.Array):
        items = binder.arguments(written)
    else:
        value = binder.bind(written)
        if value.type.element is not None:
            return _array_cast(value, element, position)
        if value.is_constant and value.constant is None:
            return Literal(array_of(element), None, position=position)
        text = value.constant_as(str)
        if text is None:
            raise Refusal(
                f"{value.type} is not cast to {element}[] here", sqlstate="0A000", position=position, hint=_CAST_HINT
            )  # fmt: skip
        items = array_items(text, position)
    found = [cast(coerce_literal(item, element), element, position) for item in items]
    return Call(array_of(element), "array", tuple(found), position=position)


def _array_cast(value: Expr, element: SqlType, position: Position | None) -> Expr:
    """Return an array with its values cast. Raises Refusal (42804): they have no such cast."""
    assert value.type.element is not None
    if value.type.element == element:
        return value
    cast(Field(value.type.element, 0), element, position)  # says whether there is one
    return Call(array_of(element), "array_cast", (value,), position=position)


_CAST_HINT = "'{1,2}'::integer[], ARRAY[]::text[], or ARRAY[1, 2]"


def joined_arrays(binder: Binder, node: exp.Expr, args: Sequence[Expr]) -> Expr:
    """Return `q || r`, `q || x` or `x || q`; an untyped constant is the text of an array, as in Postgres.

    Raises:
        Refusal: 42883 for what is no array of the same type and no value of one.
    """
    position = binder.position(node)
    type_ = next(arg.type for arg in args if arg.type.kind is Kind.ARRAY)
    element = type_.element
    assert element is not None
    if element.kind is Kind.NUMERIC:  # of any scale, as in Postgres
        element = NUMERIC
        type_ = array_of(element)
    sides: list[Expr] = []
    for name, arg in zip(("this", "expression"), args, strict=True):
        is_bare = isinstance(node.args[name], (exp.Literal, exp.RawString, exp.Null))
        if is_bare and arg.is_constant and arg.type.kind in (Kind.TEXT, Kind.NULL):
            text = arg.constant_as(str)
            items = [] if text is None else array_items(text, position)
            found = tuple(cast(coerce_literal(item, element), element, position) for item in items)
            sides.append(Call(type_, "array", found, position=position))
        elif arg.type == type_ or (arg.type.element is not None and arg.type.element.kind is element.kind):
            sides.append(arg)
        elif arg.type == element or common_type([element, arg.type]) == element:
            sides.append(Call(type_, "array", (cast(arg, element, position),), position=position))
        else:
            raise Refusal(
                f"|| does not join ({args[0].type}, {args[1].type})", sqlstate="42883", position=position,
                hint="cast one side: two arrays of one type, or an array and a value of it",
            )  # fmt: skip
    return Call(type_, "array_joined", tuple(sides), position=position)


def unnested(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[Expr]]:
    """Return a relation with a row for each value of the arrays that are to be unnested, and the expressions over it.

    As in Postgres, the longest array says how many rows there are, and the others have NULL.
    """
    arrays = list(dict.fromkeys(expr.args[0] for expr in exprs if _is_unnest(expr)))
    if not arrays:
        return relation, list(exprs)
    if not all(_is_listed(array, relation) for array in arrays):
        start = len(relation.columns)
        rows = Unnest(relation, tuple(arrays), position=arrays[0].position)
        return rows, [
            Field(expr.type, start + arrays.index(expr.args[0]), position=expr.position)
            if _is_unnest(expr)
            else expr
            for expr in exprs
        ]
    numbers = tuple((Literal(INTEGER, number),) for number in range(1, MAX_FRACTIONS + 1))
    index = Field(INTEGER, len(relation.columns), "n")
    joined = Join("cross", relation, Values(numbers, (OutputColumn(INTEGER, "n"),)), TRUE)
    counts = [call("cardinality", [array], array.position) for array in arrays]
    most = counts[0] if len(counts) == 1 else call("greatest", counts, None)
    kept = filtered(joined, Call(BOOLEAN, "le", (index, most)))
    return kept, [
        Call(expr.type, "element", (expr.args[0], index), position=expr.position)
        if _is_unnest(expr)
        else expr
        for expr in exprs
    ]


def _is_listed(array: Expr, relation: Relation) -> bool:
    """Say whether an array has its values written out, and so no more than a statement can hold."""
    while array.column is not None:
        relation = skipped(relation, "where", "having", "distinct", "orders", "limit")
        if not ends_in(relation, "outputs"):
            return False
        array, relation = relation.exprs[array.column], relation.below
    return array.calls("array") and len(array.args) <= MAX_FRACTIONS


def _is_unnest(expr: Expr) -> bool:
    return expr.calls("unnest")

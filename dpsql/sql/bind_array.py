"""Arrays above the release: written out, one value of one, a part of one, and all of them in rows.

`unnest(q)` of several percentiles is each row beside the numbers 1, 2, … up to how many values its array has, and the
value of that number: so the values keep their error bars. Of any other array it is a node of its own.

Functions that give rows: what is constant is written out where the statement is bound, as a series or as one row's
arrays; else the arguments read the row beside them, and the join is a lateral one. What Postgres raises for a value,
as for the elements of an object, is no row here.

JSON above the release: what builds it, what takes it apart, and constants of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    PLAIN_KEY,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    array_of,
)
from .bind_expression import Binder, bind_row, call, cast, no_such_function
from .bind_subquery import array_items, has_value, row_parts
from .literals import (
    add_months,
    called,
    cast_target,
    coerce_literal,
    json_constant,
    listed,
    sorted_keys,
    type_word,
)
from .scope import Outer, Scope, first_outer, fold_name
from .text import said_of

MAX_FRACTIONS = 32
"""Most fractions of one array of percentiles."""

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
        raise binder.refusal(
            node, "42883", f"{name}() takes one value of {wanted}", "json_… is of json, jsonb_… of jsonb"
        )
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
        raise binder.refusal(node, "42804", "[…] takes one whole number, from 1", "cast it: q[x::integer]")
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
        raise binder.refusal(node, "42804", f"an array cannot hold ({types})", "cast the values")
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
        raise binder.refusal(node, "0A000", "this array is not supported in a cast", _CAST_HINT)
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
            raise binder.refusal(node, "0A000", f"{value.type} is not cast to {element}[] here", _CAST_HINT)
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


def parse_json(binder: Binder, node: exp.Expr) -> Expr:
    """Return `json '…'`. Raises Refusal (42883): it is called as a function, or of no constant text."""
    value = binder.bind(node.args["this"])
    if value.constant_as(str) is None:
        raise Refusal(
            f"{said_of(node, binder.context.text)} does not exist here", sqlstate="42883",
            position=binder.position(node), hint="json '…' of a constant, or json_build_object and its like",
        )  # fmt: skip
    return json_constant(value, JSON, binder.position(node))


def bind_json_value(binder: Binder, node: exp.Expr, result: SqlType) -> tuple[Expr, bool]:
    """Return a value that is to be part of JSON, a row of a FROM item as an object, and whether it is a row."""
    row = _row_of(binder, node, result)
    if row is not None:
        return row, True
    value = binder.bind(node)
    _check_value(value, result, binder.position(node))
    return value, False


def _check_value(value: Expr, result: SqlType, position: Position | None) -> None:
    kind = (value.type.element or value.type).kind
    if kind is Kind.JSON and result.kind is Kind.JSONB:
        raise Refusal(
            "json is not made jsonb here", sqlstate="0A000", position=position,
            hint="build it as jsonb: jsonb_build_object, jsonb_agg, to_jsonb, '…'::jsonb",
        )  # fmt: skip
    if kind in (Kind.INTERVAL, Kind.OPAQUE):
        raise Refusal(
            f"{value.type} has no JSON here", sqlstate="0A000", position=position, hint="cast it: x::text"
        )


def _row_of(binder: Binder, node: exp.Expr, result: SqlType) -> Expr | None:
    """Return a row, written as the name of a FROM item or as ROW(…), as an object; None: it is none."""
    position, parts = binder.position(node), row_parts(node)
    if parts is not None and (len(parts) > 1 or isinstance(node, exp.Anonymous)):
        values = [bind_json_value(binder, part, result)[0] for part in parts]
        return _object("json_row", [f"f{i}" for i in range(1, len(values) + 1)], values, result, position)
    name = node.args["this"] if isinstance(node, exp.Column) and node.args.get("table") is None else None
    if not isinstance(name, exp.Identifier) or binder.scope.named(*fold_name(name)):
        return None
    scope, around = binder.scope, binder.scope.outer
    fields = _fields_of(scope, name)
    if fields is None and around is not None and (found := _fields_of(around, name)) is not None:
        scope, fields = around, [(key, Outer(value.type, value, position=position)) for key, value in found]
    if fields is None:
        return None
    if scope.is_padded(name):
        raise Refusal(
            "a row that an outer join may not find is not told from one of NULL here", sqlstate="0A000",
            position=position, hint="name the columns: json_build_object('a', t.a)",
        )  # fmt: skip
    for _, value in fields:
        _check_value(value, result, position)
    return _object("json_row", [key for key, _ in fields], [value for _, value in fields], result, position)


def _fields_of(scope: Scope, name: exp.Identifier) -> list[tuple[str, Expr]] | None:
    """Return the columns of a FROM item; None: there is no such item."""
    try:
        return scope.star(name, None)
    except Refusal:
        return None


def _object(
    name: str, keys: Sequence[str], values: Sequence[Expr], result: SqlType, position: Position | None
) -> Expr:
    """Return an object of known keys; those of `jsonb` stand in its order."""
    order = sorted_keys(list(keys)) if result.kind is Kind.JSONB else range(len(keys))
    args = [arg for at in order for arg in (Literal(TEXT, keys[at]), values[at])]
    return Call(result, name, tuple(args), position=position)


def _built(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return json_build_object(…) or json_build_array(…)."""
    position, written = binder.position(node), listed(node)
    if name.endswith("array"):
        values = tuple(bind_json_value(binder, part, result)[0] for part in written)
        return Call(result, "json_array", values, position=position)
    if len(written) % 2:
        raise binder.refusal(
            node, "22023", f"{name}() takes keys and values in turn", f"{name}('a', x, 'b', y)"
        )
    keys = [binder.bind(part) for part in written[::2]]
    values = tuple(bind_json_value(binder, part, result)[0] for part in written[1::2])
    for key in keys:
        is_null = key.is_constant and key.constant is None
        if is_null or key.type.is_json or key.type.kind in (Kind.ARRAY, Kind.INTERVAL, Kind.OPAQUE):
            raise binder.refusal(
                node, "22023", "a key of JSON is a text, a number, a date or a truth value", f"{name}('a', x)"
            )
    known = [text for key in keys if (text := key.constant_as(str)) is not None]
    if len(known) == len(keys):
        return _object("json_object", known, values, result, position)
    if result.kind is Kind.JSONB:
        raise Refusal(
            "the keys of jsonb_build_object() are constant texts here", sqlstate="0A000", position=position,
            hint="json_build_object(key, x), or jsonb_object_agg(key, x)",
        )  # fmt: skip
    args = [arg for pair in zip(keys, values, strict=True) for arg in pair]
    return Call(result, "json_object", tuple(args), position=position)


def _one(binder: Binder, node: exp.Expr, name: str) -> exp.Expr:
    written = listed(node)
    if len(written) != 1:
        raise binder.refusal(node, "42883", f"{name}() takes one argument here", f"{name}(x)")
    return written[0]


def _to_json(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return to_json(x), or row_to_json(t)."""
    value, is_row = bind_json_value(binder, _one(binder, node, name), result)
    if is_row:
        return value
    if name == "row_to_json" or (name == "array_to_json" and value.type.kind is not Kind.ARRAY):
        what = "a row" if name == "row_to_json" else "an array"
        raise binder.refusal(
            node, "42883", f"{name}() takes {what}", "row_to_json(t) of a FROM item t, to_json(x) of a value"
        )
    return Call(result, "to_json", (value,), position=binder.position(node))


def _about(binder: Binder, node: exp.Expr, name: str, result: SqlType) -> Expr:
    """Return json_typeof(j) or json_array_length(j), of the kind of JSON that the name says."""
    position = binder.position(node)
    value = as_json_value(binder.bind(_one(binder, node, name)), result, position)
    if value.type.kind is not result.kind:
        raise binder.refusal(
            node, "42883", f"{name}({value.type}) does not exist", "json_… is of json, jsonb_… of jsonb"
        )
    return call(name.replace("jsonb_", "json_"), [value], position)


def as_json_value(value: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a value; a constant text as the JSON that it is."""
    return value if value.constant_as(str) is None else json_constant(value, target, position)


def bind_part(binder: Binder, node: exp.Expr) -> Expr:
    """Return `j -> key` or `j ->> key`.

    Raises:
        Refusal: 42883 for what is no JSON, or no text and no integer.
    """
    position = binder.position(node)
    value = _of(binder, node, "->")
    key = _key(binder, node.args["expression"])
    if key.type.kind is not Kind.TEXT and not key.type.is_integer and key.type.kind is not Kind.NULL:
        raise binder.refusal(
            node, "42883", f"-> takes a key or a place, not {key.type}", "j -> 'a', or j -> 0"
        )
    key = coerce_literal(key, TEXT) if not key.type.is_integer else coerce_literal(key, BIGINT)
    return _taken_out(node, Call(value.type, "json_part", (value, key), position=position))


def _taken_out(node: exp.Expr, part: Expr) -> Expr:
    """Return a part of JSON, or its text, by the operator that takes it out."""
    if type(node) not in _SCALAR:
        return part
    return _member(part, part.position) if part.type.has_members else call("json_text", [part], part.position)


_SCALAR = frozenset((exp.JSONExtractScalar, exp.JSONBExtractScalar))
"""Operators that give a text."""


def _key(binder: Binder, node: exp.Expr) -> Expr:
    """Return a key or a place; the parser has made a path of a literal one, of a single step."""
    if not isinstance(node, exp.JSONPath):
        return binder.bind(node)
    step = node.args["expressions"][-1]
    found = step.args.get("this")
    if isinstance(step, exp.JSONPathSubscript) and isinstance(found, int):
        return Literal(BIGINT, found)
    if (
        not isinstance(step, exp.JSONPathKey)
        or not isinstance(found, str)
        or len(node.args["expressions"]) != 2
    ):
        raise Refusal("-> takes a key or a place", sqlstate="0A000", hint="j -> 'a', or j -> 0")
    return Literal(TEXT, found)


def bind_path(binder: Binder, node: exp.Expr) -> Expr:
    """Return `j #> '{a,0}'` or `j #>> '{a,0}'`. Raises Refusal (PV202): the path is no constant."""
    position = binder.position(node)
    value = _of(binder, node, "#>")
    path = node.args["expression"]
    if isinstance(path, exp.Array):
        steps = binder.arguments(path)
    else:
        written = binder.bind(path).constant_as(str)
        if written is None:
            raise binder.refusal(node, "PV202", "#> takes a constant path", "j #> '{a,0}', or j -> x")
        steps = array_items(written, position)
    if any(step.constant_as(str) is None for step in steps):
        raise binder.refusal(node, "PV202", "a path of JSON has texts alone", "j #> '{a,0}'")
    if value.type.has_members:
        found = value
        for step in steps:
            found = Call(value.type, "json_part", (found, step), position=position)
    else:
        found = Call(value.type, "json_at", (value, *steps), position=position)
    return _taken_out(node, found)


def bind_has(binder: Binder, node: exp.Expr) -> Expr:
    """Return `c ? 'a'` of people's JSON. Raises Refusal: PV001 of any other."""
    value, position = binder.bind(node.args["this"]), binder.position(node)
    if not value.type.has_members:
        raise Refusal(
            "the operator ? is of people's JSON here", sqlstate="PV001", position=position,
            hint="write j -> 'a' IS NOT NULL, of an object",
        )  # fmt: skip
    key = coerce_literal(binder.bind(node.args["expression"]), TEXT)
    return _member(Call(value.type, "json_part", (value, key), position=position), position, "json_has", "?")


def _member(part: Expr, position: Position | None, function: str = "json_member", said: str = "->>") -> Expr:
    """Return a member of people's JSON as text, or whether it is there: of the column, by all keys that lead to it.

    Raises:
        Refusal: PV202 for keys that are no constants of plain characters.
    """
    keys: list[Expr] = []
    while part.calls("json_part"):
        part, key = part.args
        written = key.constant_as(str)
        if written is None or not PLAIN_KEY.fullmatch(written):
            raise Refusal(
                "a member of people's JSON has a constant key of letters, digits, _, - and blanks",
                sqlstate="PV202", position=position, hint="write c ->> 'a', or c -> 'a' ->> 'b'",
            )  # fmt: skip
        keys.insert(0, key)
    return call(function, [part, *keys], position, said=said)


def _of(binder: Binder, node: exp.Expr, symbol: str) -> Expr:
    value = binder.bind(node.args["this"])
    if not value.type.is_json and not value.type.has_members:
        raise Refusal(
            f"{symbol} takes json or jsonb, not {value.type}", sqlstate="42883", position=binder.position(node),
            hint="json_build_object('a', x), or a constant '{\"a\": 1}'::jsonb",
        )  # fmt: skip
    return value


_Form = Callable[[Binder, exp.Expr, str, SqlType], Expr]
JSON_CALLS: dict[str, tuple[_Form, SqlType]] = {
    **dict.fromkeys(("json_build_object", "json_build_array"), (_built, JSON)),
    **dict.fromkeys(("jsonb_build_object", "jsonb_build_array"), (_built, JSONB)),
    **dict.fromkeys(("to_json", "row_to_json", "array_to_json"), (_to_json, JSON)),
    "to_jsonb": (_to_json, JSONB),
    **dict.fromkeys(("json_typeof", "json_array_length"), (_about, JSON)),
    **dict.fromkeys(("jsonb_typeof", "jsonb_array_length"), (_about, JSONB)),
}
"""Name -> the function that binds a call, and the kind of JSON that it is of."""

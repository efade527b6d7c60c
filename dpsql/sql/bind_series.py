"""Functions that give rows: generate_series and unnest, parts of JSON and of texts, in FROM and in the SELECT list.

What is constant is written out where the statement is bound, as a series or as one row's arrays; else the arguments
read the row beside them, and the join is a lateral one. What Postgres raises for a value, as for the elements of an
object, is no row here.
"""

from __future__ import annotations

import calendar
import datetime
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import Position, Refusal
from ..relation.calendar import DAY
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.functions import NAMES
from ..relation.relations import MAX_SERIES, Relation, Series, Unnest, Values
from ..relation.types import BIGINT, INTEGER, INTERVAL, JSON, JSONB, TIMESTAMP, Kind, SqlType, array_of
from .bind_expression import Binder, cast
from .bind_json import as_json_value
from .constants import coerce_literal
from .named_calls import bind_row
from .tree import called

__all__ = ["ROW_CALLS", "bind_rows", "bind_series", "is_rows", "row_arrays", "row_call"]


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
        arrays = tuple(_array(binder, part) for part in node.args["expressions"])
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


def _array(binder: Binder, node: exp.Expr) -> Expr:
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
        if not isinstance(step.constant, Months):
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
    start, stop, step = (arg.constant for arg in args)
    if start is None or stop is None or step is None:
        return range(0)
    assert isinstance(start, int)
    assert isinstance(stop, int)
    if isinstance(step, Months):
        months, each = step.months, step.days * DAY + step.microseconds
        if months == 0:
            step = each
        elif (months > 0) != (each >= 0) and each:
            raise Refusal("the step of generate_series goes both ways", sqlstate="22023", position=position)
    if step == 0:
        raise Refusal("the step of generate_series is zero", sqlstate="22023", position=position)
    if isinstance(step, int):
        numbers = range(start, stop + (1 if step > 0 else -1), step)
        if len(numbers) > MAX_SERIES:
            raise _too_many(position)
        return numbers
    assert isinstance(step, Months)
    found: list[int] = []
    current: int | None = start
    while current is not None and (current <= stop if step.months > 0 else current >= stop):
        found.append(current)
        if len(found) > MAX_SERIES:
            raise _too_many(position)
        current = _later(current, step)
    return tuple(found)


def _later(moment: int, step: Months) -> int | None:
    """Return a moment an interval later, on the last day of a month that has not its day; None: beyond the calendar."""
    start = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=moment)
    month = start.year * 12 + start.month - 1 + step.months
    year, month = month // 12, month % 12 + 1
    if not 1 <= year <= 9999:
        return None
    day = min(start.day, calendar.monthrange(year, month)[1])
    moved = start.replace(year=year, month=month, day=day) - datetime.datetime(1970, 1, 1)
    return moved // datetime.timedelta(microseconds=1) + step.days * DAY + step.microseconds


def _too_many(position: Position | None) -> Refusal:
    return Refusal(
        f"generate_series gives more than {MAX_SERIES} rows", sqlstate="54000", position=position,
        hint="take a larger step, or nearer ends",
    )  # fmt: skip

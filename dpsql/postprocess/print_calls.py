"""Scalar calls over released values, each NULL where Postgres raises; `print_public` has the house rule.

Calls of functions that are named alone (`relation.functions.above`), from the SQL of their rows.

Each argument is bound once, in its type, as a field of v; a constant is written out in its place, since DuckDB reads
formats and patterns before it runs. `TRY` makes what fails NULL, as Postgres' errors are here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..plan.dialects.dialect_duckdb import DUCKDB
from ..plan.dialects.quote import literal, text
from ..relation.calendar import DAY, time_text
from ..relation.expressions import Call, Expr, Literal, Months
from ..relation.functions import FUNCTIONS, check_printers
from ..relation.functions.above.moments import HIDDEN_BRACE
from ..relation.functions.above.signature import MOST_BYTES, Signature, constants_of, fitting
from ..relation.functions.moments import bin_of, written_format
from ..relation.functions.numbers import buckets_of
from ..relation.relations import MAX_ROW_SERIES
from ..relation.types import TEXT, Kind, SqlType
from . import null_on_error
from .bind import bind, engine_type, finite, keep, print_deviate
from .null_on_error import cast
from .print_json import JSON_CALLS

# --- calls of functions that are named alone (`relation.functions.above`), from the SQL of their rows -------


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PLACE = re.compile(r"\{([a-z]|rest)\}")


def print_literal(value: Literal) -> str:
    """Return a literal in the type that carries it in the engine."""
    if value.value is None:
        return "NULL" if value.type.kind is Kind.NULL else f"CAST(NULL AS {engine_type(value.type)})"
    if value.type.is_number:
        return f"CAST({literal(value)} AS {engine_type(value.type)})"
    if value.type.kind is Kind.TIME and isinstance(value.value, int):
        return f"TIME '{time_text(value.value)}'"
    return literal(value)


def _print_named(call: Call, args: list[str]) -> str:
    """Return the call of a row that has SQL; `args` are its printed arguments."""
    row = FUNCTIONS[call.function]
    found, written = fitting(row, call.args)
    sql = written if isinstance(written, str) else written(*constants_of(found, call.args))
    bound: dict[str, str] = {}
    names: list[str] = []
    for place, (arg, printed) in enumerate(zip(call.args, args, strict=True)):
        read = _read_as(call.args, printed, found, place)
        if arg.is_constant:
            names.append(read)
            continue
        name = f"{_LETTERS[place % 26]}{place // 26 or ''}"
        bound[name] = read
        names.append(f"v.{name}")
    body = _PLACE.sub(lambda match: _put(match[1], names, found), sql).replace(HIDDEN_BRACE, "{")
    if row.strict and names:
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        body = f"CASE WHEN {there} THEN {body} END"
    body = f"TRY({body})"
    if row.grows:
        most = f"greatest({MOST_BYTES}, coalesce(strlen({names[0]}), 0))"
        body = f"list_filter([{body}], lambda made: strlen(made) <= {most})[1]"
    if bound:
        body = bind("{" + ", ".join(f"'{name}': {sql}" for name, sql in bound.items()) + "}", body)
    return _as_result(body, found.result(call.args))


def _put(place: str, names: list[str], found: Signature) -> str:
    if place == "rest":
        return ", ".join(names[len(found.words) - 1 :])
    return names[_LETTERS.index(place)]


def _read_as(args: Sequence[Expr], printed: str, found: Signature, place: int) -> str:
    """Return an argument in the type that the function takes it in; of any type, as text."""
    arg, target = args[place], found.target(place, tuple(args))
    if target is None and found.word(place) == "value":
        return printed if arg.type.kind in (Kind.TEXT, Kind.NULL) else cast(printed, arg.type, TEXT)
    if target is None:
        return printed if arg.type.kind in (Kind.TEXT, Kind.NULL) else output_text(printed, arg.type)
    if arg.type.kind is Kind.NULL:
        return f"CAST({printed} AS {engine_type(target)})"
    if target.is_integer:
        return f"TRY_CAST({printed} AS {engine_type(target)})"
    return printed if arg.type.kind is target.kind else f"CAST({printed} AS {engine_type(target)})"


def output_text(printed: str, type_: SqlType) -> str:
    """Return a value as Postgres shows it: a truth value by its letter."""
    if type_.kind is Kind.BOOLEAN:
        return bind(printed, "CASE WHEN v THEN 't' WHEN NOT v THEN 'f' END")
    return cast(printed, type_, TEXT)


def _as_result(body: str, type_: SqlType) -> str:
    if type_.kind is Kind.TEXT:
        return body
    if type_.is_float or type_.kind is Kind.NUMERIC:
        return finite(f"TRY_CAST({body} AS {engine_type(type_)})")
    return f"TRY_CAST({body} AS {engine_type(type_)})"


# --- scalar calls over released values, each NULL where Postgres raises -------------------------------------


Form = Callable[[Call, list[str]], str]
NO_PATTERN = "dpsql:pattern"
"""What the engine is told to say of a pattern that is computed and has more than plain signs."""
TOO_MANY = "dpsql:54000"
"""What the engine is told to say of rows without end, and `sealed` reads back."""


def _arithmetic(call: Call, args: list[str]) -> str:
    left, right = call.args[0].type, call.args[1].type
    if Kind.INTERVAL in (left.kind, right.kind):
        moment, interval = (0, 1) if right.kind is Kind.INTERVAL else (1, 0)
        direction, months = -1 if call.function == "sub" else 1, call.literal(interval, Months)
        return null_on_error.add_interval(
            args[moment], direction * months.months, direction * months.days, direction * months.microseconds
        )
    if left.kind is Kind.DATE and right.kind is Kind.DATE:
        return null_on_error.days_between(args[0], args[1])
    if left.kind is Kind.DATE:
        return null_on_error.add_days(
            args[0], args[1] if call.function == "add" else null_on_error.negate(args[1], call.args[1].type)
        )
    return null_on_error.arithmetic(FUNCTIONS[call.function].symbol, args[0], args[1], call.type)


def _compare(call: Call, args: list[str]) -> str:
    return f"({args[0]} {FUNCTIONS[call.function].symbol} {args[1]})"


def _listed(call: Call, args: list[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _logic(call: Call, args: list[str]) -> str:
    return "(" + f" {call.function.upper()} ".join(args) + ")"


def _case(call: Call, args: list[str]) -> str:
    type_ = engine_type(call.type) if call.type.kind is not Kind.NULL else "VARCHAR"
    branches = " ".join(
        f"WHEN {args[i]} THEN CAST({args[i + 1]} AS {type_})" for i in range(0, len(args) - 1, 2)
    )
    return f"(CASE {branches} ELSE CAST({args[-1]} AS {type_}) END)"


def _chosen(call: Call, args: list[str]) -> str:
    type_ = engine_type(call.type) if call.type.kind is not Kind.NULL else "VARCHAR"
    return f"{call.function}({', '.join(f'CAST({arg} AS {type_})' for arg in args)})"


def _round(call: Call, args: list[str]) -> str:
    places = (call.args[1].constant_as(int) if len(call.args) > 1 else None) or 0
    if call.function == "trunc":
        return null_on_error.truncate(args[0], places)
    return (
        null_on_error.round_half_even(args[0])
        if call.type.is_float
        else null_on_error.round_half_away(args[0], places)
    )


def _concat(call: Call, args: list[str]) -> str:
    texts = [
        arg if part.type.kind is Kind.TEXT else cast(arg, part.type, TEXT)
        for arg, part in zip(args, call.args, strict=True)
    ]
    if call.function == "concat":
        texts = [f"coalesce({one}, '')" for one in texts]
    joined = texts[0]
    for one in texts[1:]:
        joined = null_on_error.concatenate(joined, one)
    return joined


def _like(call: Call, args: list[str]) -> str:
    return null_on_error.like(args[0], args[1], escape=call.literal(2, str))


def _regexp(call: Call, args: list[str]) -> str:
    """Print a match with a pattern that is computed: Postgres and DuckDB read plain signs alike; others are told."""
    return _of_two(
        "CASE WHEN v.a IS NULL OR v.b IS NULL THEN NULL"
        f" WHEN regexp_full_match(v.b, {text(_PLAIN_PATTERN)}) THEN regexp_matches(v.a, '(?s)' || v.b)"
        f" ELSE error('{NO_PATTERN}') END", args,
    )  # fmt: skip


_PLAIN_PATTERN = r"\^?([A-Za-z0-9 _,:;/@#%&=<>!~\"'\x{80}-\x{10FFFF}-]|\.\*?)*\$?"


def _sign(call: Call, args: list[str]) -> str:
    return f"CAST(sign(CAST({args[0]} AS DOUBLE)) AS {engine_type(call.type)})"


def _by_row(call: Call, args: list[str]) -> str:
    sql = FUNCTIONS[call.function].above
    return _of_two(sql, args) if "v.a" in sql else sql.format(**dict(zip("abc", args, strict=False)))


def _element(call: Call, args: list[str]) -> str:
    place = args[1] if call.args[1].is_constant else keep(args[1], "v >= 1")
    return f"list_extract({args[0]}, {place})"


def _of_two(body: str, args: list[str]) -> str:
    """Return an expression of two operands, v.a and v.b, each of them printed once."""
    return f"list_transform([{{'a': {args[0]}, 'b': {args[1]}}}], lambda v: {body})[1]"


def _compared(call: Call, args: list[str]) -> str:
    """Print a value compared with each of an array, as Postgres has ANY and ALL of none and of NULL."""
    name, word = (arg.constant for arg in call.args[2:] if arg.is_constant)
    decisive, other = ("TRUE", "FALSE") if word == "any" else ("FALSE", "TRUE")
    each = f"list_transform(v.a, lambda e: e {_MIRRORED[str(name)]} v.b)"
    return _of_two(
        f"CASE WHEN len(v.a) = 0 THEN {other} WHEN list_contains({each}, {decisive}) THEN {decisive}"
        f" WHEN v.b IS NULL OR list_count(v.a) < len(v.a) THEN NULL WHEN v.a IS NOT NULL THEN {other} END", args[:2],
    )  # fmt: skip


_MIRRORED = {"eq": "=", "ne": "<>", "lt": ">", "le": ">=", "gt": "<", "ge": "<="}
"""An operator, written from the other side."""


def _array_cast(call: Call, args: list[str]) -> str:
    from_, to = call.args[0].type.element, call.type.element
    assert from_ is not None
    assert to is not None
    each = f"list_transform({args[0]}, lambda e: {cast('e', from_, to)})"
    return f"CAST({each} AS {engine_type(call.type)})"


def _series(call: Call, args: list[str]) -> str:
    """Print a series as an array: none for a NULL, an error that says so for more than may be."""
    assert call.type.element is not None
    step = call.args[2]
    if call.type.element.kind is Kind.TIMESTAMP:
        months = step.constant if step.is_constant else None
        assert isinstance(months, Months)
        width = months.months * 28 * DAY + months.days * DAY + months.microseconds
        ends = [f"epoch_us({arg})" for arg in args[:2]]
        args[2] = (
            f"to_months({months.months}) + to_days({months.days}) + to_microseconds({months.microseconds})"
        )
        too_many = "FALSE" if width else "TRUE"
        width_sql = str(width)
    else:
        ends, width_sql = [f"CAST({arg} AS HUGEINT)" for arg in args[:2]], f"CAST({args[2]} AS HUGEINT)"
        args = [f"CAST({arg} AS BIGINT)" for arg in args]
        too_many = f"{width_sql} = 0"
    count = f"({ends[1]} - {ends[0]}) // {width_sql} > {MAX_ROW_SERIES}"
    written = f"CAST(generate_series({', '.join(args)}) AS {engine_type(call.type)})"
    return f"CASE WHEN {too_many} OR {count} THEN error('{TOO_MANY}') ELSE {written} END"


CALLS: dict[str, Form] = {
    **dict.fromkeys(("add", "sub", "mul"), _arithmetic),
    "div": lambda call, args: null_on_error.divide(args[0], args[1], call.type),
    "mod": lambda call, args: null_on_error.modulo(args[0], args[1], call.type),
    "neg": lambda call, args: null_on_error.negate(args[0], call.type),
    "abs": lambda call, args: null_on_error.absolute(args[0], call.type),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"), _compare),
    "in": _listed, "and": _logic, "or": _logic,
    "case": _case, **dict.fromkeys(("coalesce", "greatest", "least"), _chosen),
    "round": _round, "trunc": _round,
    "sign": _sign, "width_bucket": lambda call, args: null_on_error.width_bucket(args[0], buckets_of(call)),
    **{name: _by_row for name, row in FUNCTIONS.items() if row.above},
    **{name: _print_named for name, row in FUNCTIONS.items() if row.sql},
    "upper": lambda call, args: bind(args[0], DUCKDB.letter_case("upper", "v")),
    "like_computed": _like, "regexp_computed": _regexp,
    "substr": lambda call, args: null_on_error.substring(*args),
    "concat": _concat, "concat_op": _concat, "like": _like,
    "extract": lambda call, args: null_on_error.extract(call.literal(0, str), args[1]),
    "date_trunc": lambda call, args: null_on_error.date_trunc(call.literal(0, str), args[1]),
    "date_bin": lambda call, args: null_on_error.date_bin(args[1], *bin_of(call)),
    "to_char": lambda call, args: null_on_error.to_char(args[0], written_format(call)),
    "cast": lambda call, args: cast(args[0], call.args[0].type, call.type),
    "deviate": print_deviate,
    "array": lambda call, args: f"CAST([{', '.join(args)}] AS {engine_type(call.type)})",
    "element": _element, "series": _series,
    "array_compared": _compared, "array_cast": _array_cast,
    **JSON_CALLS,
}  # fmt: skip
"""Function -> how a call of it is printed from its printed arguments."""

check_printers(CALLS, private=False)

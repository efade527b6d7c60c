"""Literals and types as they are written: numbers, intervals and bound parameters as Postgres types them, casts, JSON.

Texts of JSON are read as Postgres reads them: `json` as it stands, `jsonb` in its one spelling.

Parameters whose values are still to come: what type each is to have, from where it stands.

A client may prepare a statement and ask for its parameters' types before it sends a value. Such a parameter is bound
as a NULL whose place notes the first type that it is read as, which is how Postgres types an untyped `$1`.

Constants: a literal read or cast as another type, and exact arithmetic between literals.

House rules:

1. A constant that Postgres would refuse (out of range, not of the type) is refused here, with its position.
2. A literal of a floating-point type holds a number that a double holds exactly, so that two literals
   are equal here just when the engine finds them equal.

An interval is whole months, whole days and microseconds. A fraction of a month falls to days, thirty a month, and one
of a day to microseconds, as in Postgres (documentation 8.5.4).

Comparisons brought to one form: both sides of one kind, a literal on the lattice of the column's type.

House rules:

1. What Postgres converts in silence is written out here, so that nothing below has to know two kinds:
   a date beside a timestamp, an exact number beside a floating-point one.
2. `x > 1.5` on an integer is `x > 1`: the same rows, and no engine is asked to bring a column to a
   common decimal type, which can overflow on some row (law L2).
3. Two spellings of one comparison become one expression (and one entry in the release store).
"""

from __future__ import annotations

import datetime
import json
import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..regex import regex
from ..relation.calendar import (
    DAY,
    EXACT_FIELDS,
    date_text,
    extracted,
    formatted,
    parse_day,
    parse_time,
    parse_timestamp,
    seconds,
    time_text,
    timestamp_text,
    truncated,
)
from ..relation.expressions import FALSE, MIRRORED, TRUE, Call, Expr, Literal, LiteralValue, Months
from ..relation.functions.moments import written_format
from ..relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    SqlType,
    array_of,
    numeric,
)
from .scope import Outer
from .text import is_text

# --- what a tree of the parser says, read the same way everywhere -------------------------------------------


def bare(node: exp.Expr) -> exp.Expr:
    """Return a node without the brackets about it."""
    while isinstance(node, exp.Paren):
        node = node.args["this"]
    return node


def called(node: object) -> str | None:
    """Return the name of a function that the parser has no node for, in small letters; None: it is no call of one."""
    return str(node.args["this"]).lower() if isinstance(node, exp.Anonymous) else None


def listed(node: exp.Expr) -> list[exp.Expr]:
    """Return what stands in a node's list: arguments, items of a row or an array; none where it has no list."""
    return list(node.args.get("expressions") or [])


def type_word(node: exp.Expr) -> str:
    """Return the word of a type, as the parser names it: ARRAY of an array; "" where it has none."""
    return getattr(node.args.get("this"), "name", "")


# --- parameters whose values are still to come: what type each is to have, from where it stands -------------


@dataclass(frozen=True, slots=True)
class Awaited:
    """A parameter without a value; `declared`: the type that the client has said, `noted`: the types it met.

    `lists`: whether it stands where a list has to; the types are then its items'.
    """

    declared: SqlType | None = None
    noted: list[SqlType] = field(default_factory=list, compare=False, repr=False)
    lists: list[bool] = field(default_factory=list, compare=False, repr=False)

    @property
    def type(self) -> SqlType:
        """The type that a value has to have: as declared, else the first one it met, else text."""
        type_ = self.declared or next(iter(self.noted), TEXT)
        return array_of(type_) if self.lists else type_


@dataclass(frozen=True, slots=True)
class TypedNull:
    """The value NULL of a parameter whose type is known."""

    type: SqlType


@dataclass(frozen=True, slots=True)
class _Place(Position):
    """Where a parameter without a value stands."""

    awaited: Awaited


def _awaited_literal(parameter: Awaited, position: Position | None) -> Literal:
    """Return what stands for a parameter without a value."""
    at = position or Position(1, 1, 0)
    place = _Place(at.line, at.column, at.offset, parameter)
    return Literal(parameter.declared or NULL, None, position=place)


def met(expr: Expr, type_: SqlType) -> None:
    """Take note that an expression is read as a type, if it is a parameter without a value."""
    if isinstance(expr.position, _Place) and expr.is_constant and type_.kind is not NULL.kind:
        expr.position.awaited.noted.append(type_)


def sample(expr: Expr, type_: SqlType, value: LiteralValue) -> Expr:
    """Return a value for a parameter without one, where a constant of a type has to stand; others unchanged."""
    if not (isinstance(expr.position, _Place) and expr.is_constant):
        return expr
    met(expr, type_)
    return Literal(type_, value, position=expr.position)


# --- literals and types as they are written -----------------------------------------------------------------


_NUMBER = regex(r"([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?")
_MAX_DIGITS = 60
_EPOCH = datetime.datetime(1970, 1, 1)


def number_literal(text: str, position: Position | None) -> Literal:
    """Return an exact number: INTEGER, BIGINT or NUMERIC by its size and form, as Postgres types it.

    Raises:
        Refusal: 42601 when it is no number, 22023 when it is out of range.
    """
    if len(text) < 10 and text.isascii() and text.isdigit():
        return Literal(INTEGER, int(text), position=position)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[1] or match[2]) or len(text) > _MAX_DIGITS:
        raise Refusal("this number is not written right", sqlstate="42601", position=position)
    exponent = int(match[3] or 0)
    if abs(exponent) > 60:
        raise Refusal("this number is out of range", sqlstate="22023", position=position)
    value = Fraction(int((match[1] or "0") + (match[2] or ""))) * Fraction(10) ** (
        exponent - len(match[2] or "")
    )
    if match[2] is None and match[3] is None:
        if value < 2**31:
            return Literal(INTEGER, int(value), position=position)
        if value < 2**63:
            return Literal(BIGINT, int(value), position=position)
    scale = max(len(match[2] or "") - exponent, 0)
    return Literal(numeric(38, min(scale, 37)), value, position=position)


def parameter_literal(value: object, number: int, position: Position | None) -> Literal:
    """Return a bound parameter as a literal; text stays text until its context types it.

    `position`: where it stands, for one whose value is still to come (`Awaited`).

    Raises:
        Refusal: 22023 when the Python value is not of a kind that a parameter can have.
    """
    if isinstance(value, Awaited):
        return _awaited_literal(value, position)
    made = next((_MADE[kind](value) for kind in type(value).__mro__ if kind in _MADE), None)
    if made is None:
        raise Refusal(
            f"parameter ${number} has no SQL type here", sqlstate="22023",
            hint="pass None, bool, int, Decimal, a finite float, str, date, time, timedelta or datetime without zone",
        )  # fmt: skip
    return made


def _of_int(value: int) -> Literal:
    if abs(value) >= 2**63:
        return Literal(numeric(38, 0), Fraction(value))
    return Literal(INTEGER if abs(value) < 2**31 else BIGINT, value)


def _of_decimal(value: Decimal) -> Literal | None:
    if not value.is_finite() or abs(value.adjusted()) >= 60:
        return None
    return Literal(numeric(38, max(0, -int(value.as_tuple().exponent))), Fraction(value))


def _of_datetime(value: datetime.datetime) -> Literal | None:
    is_zoned = value.tzinfo is not None
    return None if is_zoned else Literal(TIMESTAMP, (value - _EPOCH) // datetime.timedelta(microseconds=1))


def _of_time(value: datetime.time) -> Literal | None:
    if value.tzinfo is not None:
        return None
    since = datetime.datetime.combine(_EPOCH, value) - _EPOCH
    return Literal(TIME, since // datetime.timedelta(microseconds=1))


def _of_timedelta(value: datetime.timedelta) -> Literal:
    rest = (value - datetime.timedelta(value.days)) // datetime.timedelta(microseconds=1)
    return Literal(INTERVAL, Months(*getattr(value, "parts", (0, value.days, rest))))


_MADE: dict[type, Callable[[Any], Literal | None]] = {
    type(None): lambda value: Literal(NULL, None),
    TypedNull: lambda value: Literal(value.type, None),
    bool: lambda value: Literal(BOOLEAN, value),
    int: _of_int,
    Decimal: _of_decimal,
    float: lambda value: Literal(DOUBLE, Fraction(value)) if math.isfinite(value) else None,
    datetime.datetime: _of_datetime,
    datetime.date: lambda value: Literal(DATE, (value - _EPOCH.date()).days),
    datetime.time: _of_time,
    Months: lambda value: Literal(INTERVAL, value),
    datetime.timedelta: _of_timedelta,
    str: lambda value: Literal(TEXT, value) if is_text(value) else None,
}
"""Kind of a parameter's value -> what makes a literal of it; None: of no value of that kind that SQL has."""


# --- types -----------------------------------------------------------------------------------------------

_NAMES = {
    "SMALLINT": SMALLINT, "INT": INTEGER, "BIGINT": BIGINT, "DECIMAL": NUMERIC, "FLOAT": REAL,
    "DOUBLE": DOUBLE, "TEXT": TEXT, "VARCHAR": TEXT, "BOOLEAN": BOOLEAN, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP, "TIME": TIME,
    "INTERVAL": INTERVAL, "JSON": JSON, "JSONB": JSONB,
}  # fmt: skip


def text_length(node: exp.Expr, position: Position | None) -> int | None:
    """Return n of a cast to varchar(n); None: it is another type.

    Raises:
        Refusal: 22023 for a length that Postgres does not take, 0A000 for char(n), which has blanks that do not count.
    """
    name, params = type_word(node), listed(node)
    if node.args.get("nested") or (name != "CHAR" and not (name == "VARCHAR" and params)):
        return None
    if name == "CHAR":
        raise Refusal(
            "char(n) is not supported in a cast", sqlstate="0A000", position=position,
            hint="x::varchar(3) cuts a text; rpad(x, 3) fills it up as well",
        )  # fmt: skip
    digits = str(params[0].args["this"].args.get("this")) if len(params) == 1 else ""
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= 10_485_760):
        raise Refusal("varchar(n) takes a length of 1 to 10485760", sqlstate="22023", position=position)
    return int(digits)


def cast_target(node: exp.Expr, position: Position | None) -> SqlType:
    """Return the type that a CAST names.

    Raises:
        Refusal: 42704-like refusal (0A000) for a type that dpsql does not compute with.
    """
    name, params = type_word(node), listed(node)
    found = _NAMES.get(name)
    if name == "TIMETZ":
        raise Refusal(
            "the type time with time zone is not supported", sqlstate="0A000", position=position,
            hint="all moments are in UTC: x::time",
        )  # fmt: skip
    if found is None or node.args.get("nested") or (params and found is not NUMERIC):
        raise Refusal(
            "this type is not supported in a cast",
            sqlstate="0A000",
            position=position,
            hint="smallint, integer, bigint, numeric, numeric(p,s), real, double precision, text, boolean, "
            "date, time, timestamp, json, jsonb",
        )
    if found is NUMERIC and params:
        digits = [str(param.args["this"].args.get("this")) for param in params]
        if len(digits) > 2 or not all(d.isascii() and d.isdigit() and len(d) <= 4 for d in digits):
            raise Refusal("this numeric(p,s) is not written right", sqlstate="42601", position=position)
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) == 2 else 0
        if not 1 <= precision <= 1000 or scale > min(precision, 38):
            raise Refusal(
                "numeric(p,s) takes 1 <= p <= 1000, s <= p and s <= 38", sqlstate="22023", position=position
            )
        return numeric(min(precision, 38), scale)
    return found


MAX_DEPTH = 100
"""Deepest nesting of a constant."""
_MAX_EXPONENT = 1_000
_DOCUMENT = "write the text of a value in JSON, its texts and keys in double quotes: '{\"a\": [1, null]}'"


@dataclass(frozen=True, slots=True)
class _Number:
    text: str


def as_json(value: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a constant, or jsonb, as one of the types of JSON.

    Raises:
        Refusal: 42804 for what has no cast, 0A000 for json as jsonb, 22023 for a text that is no JSON.
    """
    if value.is_constant and value.constant is None:
        return Literal(target, None, position=position)
    if isinstance(value.constant, str):
        return json_constant(value, target, position)
    if value.type.kind is Kind.JSONB:
        return Call(target, "json_constant", (value,), position=position)
    raise Refusal(
        f"{value.type} is not cast to {target} here", sqlstate="0A000", position=position,
        hint="a constant is: '{\"a\": 1}'::jsonb; of values use to_jsonb(x), jsonb_build_object('a', x)",
    )  # fmt: skip


def json_constant(text: Expr, target: SqlType, position: Position | None) -> Expr:
    """Return a constant text as JSON: a call, so that nothing reads it as a text. Raises Refusal (22023)."""
    assert isinstance(text.constant, str)
    read = jsonb_text if target.kind is Kind.JSONB else json_text
    return Call(target, "json_constant", (Literal(TEXT, read(text.constant, position)),), position=position)


def json_text(text: str, position: Position | None) -> str:
    """Return a text of JSON as it stands. Raises Refusal (22023): it is none."""
    _read(text, position)
    return text


def jsonb_text(text: str, position: Position | None) -> str:
    """Return the text that Postgres has of a `jsonb`. Raises Refusal (22023)."""
    return _written(_read(text, position), position)


def quoted(text: str) -> str:
    """Return a text in JSON."""
    return json.dumps(text, ensure_ascii=False)


def sorted_keys(keys: list[str]) -> list[int]:
    """Return the places of keys in the order of `jsonb`, of equal ones the last alone."""
    last = {key: place for place, key in enumerate(keys)}
    return [last[key] for key in sorted(last, key=lambda key: (len(key.encode()), key.encode()))]


def _read(text: str, position: Position | None) -> object:
    try:
        found: object = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constant,
            object_pairs_hook=_Pairs,
        )
        if _depth(text) <= MAX_DEPTH:
            return found
    except RecursionError:
        pass
    except ValueError:
        raise Refusal("this text is no JSON", sqlstate="22023", position=position, hint=_DOCUMENT) from None
    raise Refusal(
        "this JSON is nested too deeply", sqlstate="54001", position=position, hint=f"{MAX_DEPTH} levels at most"
    )  # fmt: skip


class _Pairs(list[tuple[str, object]]):
    """The members of an object, in order."""


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _depth(text: str) -> int:
    """Return a depth that the nesting of a text does not exceed."""
    depth = most = 0
    for character in text:
        if character in "[{":
            depth += 1
            most = max(most, depth)
        elif character in "]}":
            depth -= 1
    return most


def _written(value: Any, position: Position | None) -> str:
    write = _WRITERS.get(type(value))
    return _WORDS[value] if write is None else write(value, position)


_WORDS = {None: "null", True: "true", False: "false"}


def _members(value: _Pairs, position: Position | None) -> str:
    order = sorted_keys([key for key, _ in value])
    members = [(_string(value[at][0], position), _written(value[at][1], position)) for at in order]
    return "{" + ", ".join(f"{key}: {member}" for key, member in members) + "}"


def _items(value: list[object], position: Position | None) -> str:
    return "[" + ", ".join(_written(item, position) for item in value) + "]"


def _string(value: str, position: Position | None) -> str:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise Refusal(
            "this JSON has a character that no text has", sqlstate="22023", position=position,
            hint="leave \\u0000 and halves of pairs out",
        )  # fmt: skip
    return quoted(value)


def _number(value: _Number, position: Position | None) -> str:
    number = Decimal(value.text)
    if abs(number.adjusted()) > _MAX_EXPONENT:
        raise Refusal(
            "this number is out of range", sqlstate="22023", position=position,
            hint=f"{_MAX_EXPONENT} digits at most",
        )  # fmt: skip
    shown = f"{number:f}"
    return shown.removeprefix("-") if not number else shown


_WRITERS: dict[type, Callable[[Any, Position | None], str]] = {
    _Pairs: _members,
    list: _items,
    str: _string,
    _Number: _number,
}
"""Kind of a value of JSON that is no word -> what writes it."""


_MOST = 2**31
"""More months or days, or so many days of microseconds, no moment of the calendar is moved by."""


def interval_literal(text: str, unit: str | None, position: Position | None) -> Literal:
    """Return an interval, from INTERVAL '1' year, '1 year 2 days 03:04:05.6', 'P1Y2D' or '30 days ago'.

    Read as a parameter of the wire is, which is as Postgres reads it.

    Raises:
        Refusal: 22023 when it is written in another way, or is longer than any calendar.
    """
    from ..pgwire import Format, Oid, ParameterError, read_parameter  # of intervals alone

    text = text.strip()
    if unit and unit.lower() != "second":
        text = text.partition(".")[0]  # a unit outside of the quotes says how fine it is
    try:
        read = read_parameter(Oid.INTERVAL, Format.TEXT, (f"{text} {unit}" if unit else text).encode())
        return Literal(INTERVAL, _held(read.months, read.days, read.microseconds), position=position)
    except (ParameterError, ValueError):
        raise Refusal(
            "this interval is not written right",
            sqlstate="22023",
            position=position,
            hint="numbers of year, month, week, day, hour, minute or second: INTERVAL '90 day'",
        ) from None


def _sum(parts: Sequence[Months]) -> Months:
    months, days, microseconds = (
        sum(getattr(part, name) for part in parts) for name in ("months", "days", "microseconds")
    )
    return _held(months, days, microseconds)


def _times(factor: Fraction, interval: Months) -> Months:
    """Return an interval so many times; what is not whole falls to the next smaller part."""
    months = factor * interval.months
    days = factor * interval.days + (months - int(months)) * 30
    microseconds = factor * interval.microseconds + (days - int(days)) * DAY
    return _held(int(months), int(days), round(microseconds))


def _held(months: int, days: int, microseconds: int) -> Months:
    if max(abs(months), abs(days), abs(microseconds) // DAY) >= _MOST:
        raise ValueError
    return Months(months, days, microseconds)


# --- arithmetic ------------------------------------------------------------------------------------------

_UNITS = (
    Months(12, 0, 0), Months(1, 0, 0), Months(0, 7, 0), Months(0, 1, 0),
    Months(0, 0, 3_600_000_000), Months(0, 0, 60_000_000), Months(0, 0, 1_000_000),
)  # fmt: skip
"""Of what make_interval takes numbers, in its order: years, months, weeks, days, hours, minutes, seconds."""


def folded(call: Expr) -> Expr:
    """Return the value of arithmetic over constant intervals and numbers; of anything else `call` itself.

    Raises:
        Refusal: 22023 when the value is longer than any calendar.
    """
    try:
        found = _OF_INTERVALS[call.function](call)
    except ValueError:
        raise Refusal("interval out of range", sqlstate="22023", position=call.position) from None
    return call if found is None else Literal(INTERVAL, found, position=call.position)


def constant_number(arg: Expr) -> Fraction | None:
    """Return the number of a constant; None of NULL, of a double without end, and of what is no number."""
    value = arg.exact
    return value if isinstance(value, Fraction) else None


def _made(call: Expr) -> Months | None:
    numbers = [number for arg in call.args if (number := constant_number(arg)) is not None]
    if len(numbers) < len(call.args):
        return None
    return _sum([_times(number, unit) for number, unit in zip(numbers, _UNITS, strict=True)])


def _multiplied(call: Expr) -> Months | None:
    interval, factor = call.args[0].constant_as(Months), constant_number(call.args[1])
    return None if interval is None or factor is None else _times(factor, interval)


def _together(sign: int, call: Expr) -> Months | None:
    left, right = (arg.constant_as(Months) for arg in call.args)
    return None if left is None or right is None else _sum([left, _times(Fraction(sign), right)])


_OF_INTERVALS: dict[str, Callable[[Expr], Months | None]] = {
    "make_interval": _made,
    "interval_times": _multiplied,
    "intervals_added": partial(_together, 1),
    "intervals_taken": partial(_together, -1),
}
"""Function -> the value of a call of constants; None: of others."""
_LIMITS = {Kind.SMALLINT: 2**15, Kind.INTEGER: 2**31, Kind.BIGINT: 2**63}
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_FIRST, _LAST = -719_162, 2_932_896
"""Days of 0001-01-01 and 9999-12-31."""


def integer_range(type_: SqlType) -> tuple[int, int]:
    """Return the lowest and highest value of an integer type."""
    limit = _LIMITS[type_.kind]
    return -limit, limit - 1


def as_double(value: int | Fraction | float) -> Fraction | float:
    """Return the double nearest to a number, as an exact Fraction where it is finite."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return Fraction(number) if math.isfinite(number) else number


def exact_value(literal: Expr) -> Fraction | None:
    """Return the number of a literal; a double as its shortest decimal form. None: not a finite number."""
    number = constant_number(literal)
    return number if number is None or not literal.type.is_float else Fraction(repr(float(number)))


def coerce_literal(expr: Expr, target: SqlType) -> Expr:
    """Return a text literal or NULL read as `target`, as Postgres types an unknown literal; others unchanged.

    Raises:
        Refusal: 22023 when the text is no such value.
    """
    met(expr, target)
    if not expr.is_constant or target.kind in (Kind.TEXT, Kind.NULL, Kind.OPAQUE):
        return expr
    if expr.constant is None:
        return Literal(target, None, position=expr.position)
    written = expr.constant_as(str)
    if expr.type.kind is not Kind.TEXT or written is None:
        return expr
    text = written.strip()
    if target.kind is Kind.INTERVAL:
        return interval_literal(text, None, expr.position)
    if target.is_number:
        return _number_of(text, target, expr.position)
    read = _READ.get(target.kind)
    value = None if read is None else read(text)
    if value is None:
        raise _not_a(target, expr.position, _WRITTEN.get(target.kind))
    return Literal(target, value, position=expr.position)


_WRITTEN = {
    Kind.DATE: "dates: 'YYYY-MM-DD'",
    Kind.TIMESTAMP: "dates: 'YYYY-MM-DD'",
    Kind.TIME: "times: 'HH:MM' or 'HH:MM:SS', before 24:00",
}


def _not_a(target: SqlType, position: Position | None, hint: str | None = None) -> Refusal:
    return Refusal(
        f"this text is not a value of type {target}", sqlstate="22023", position=position, hint=hint
    )


def _boolean_of(written: str) -> bool | None:
    """Return what a text means; Postgres takes every beginning of a word that names one value alone."""
    text = written.lower()
    if not text or text == "o":
        return None
    for words, value in ((_TRUE, True), (_FALSE, False)):
        if any(word.startswith(text) for word in words):
            return value
    return None


_READ: dict[Kind, Callable[[str], int | bool | None]] = {
    Kind.DATE: parse_day,
    Kind.TIMESTAMP: parse_timestamp,
    Kind.TIME: parse_time,
    Kind.BOOLEAN: _boolean_of,
}
"""Kind of what is written as a text -> what reads it."""


def _number_of(text: str, target: SqlType, position: Position | None) -> Literal:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    try:
        number = number_literal(digits, position)
    except Refusal:
        raise _not_a(target, position) from None
    known = constant_number(number)
    assert known is not None
    value = sign * known
    if target.is_integer:
        if not digits.isdigit():
            raise _not_a(target, position)
        return _integer(value, target, position)
    if target.is_float:
        return Literal(target, as_double(value), position=position)
    return Literal(number.type, int(value) if number.type.is_integer else value, position=position)


def _integer(value: Fraction, target: SqlType, position: Position | None) -> Literal:
    lo, hi = integer_range(target)
    if not lo <= value <= hi:
        raise Refusal(f"this is out of range for type {target}", sqlstate="22023", position=position)
    return Literal(target, int(value), position=position)


# --- casts -------------------------------------------------------------------------------------------


def cast_literal(literal: Expr, target: SqlType) -> Expr | None:
    """Return a literal cast to a type, as Postgres does it; None when that is left to the engine.

    Raises:
        Refusal: 22023 for a value that the type cannot hold.
    """
    met(literal, target)
    value, position = literal.constant, literal.position
    if value is None:
        return Literal(target, None, position=position)
    if literal.constant_as(str) is not None:
        read = literal if target.kind is Kind.TEXT else coerce_literal(literal, target)
        is_read = read.type == target or read.constant_as(str) is not None
        return read if is_read else cast_literal(read, target)
    change = _CAST.get(literal.type.kind, _cast_number)
    return change(literal, target)


def _cast_boolean(literal: Expr, target: SqlType) -> Literal | None:
    value, position = bool(literal.constant), literal.position
    if target.kind is Kind.TEXT:
        return Literal(TEXT, "true" if value else "false", position=position)
    return Literal(target, int(value), position=position) if target.kind is Kind.INTEGER else None


def _cast_time(literal: Expr, target: SqlType) -> Literal | None:
    since = literal.constant_as(int)
    if since is None or target.kind is not Kind.TEXT:
        return None
    return Literal(TEXT, time_text(since), position=literal.position)


def _cast_moment(literal: Expr, target: SqlType) -> Literal | None:
    is_date, value, position = literal.type.kind is Kind.DATE, literal.literal_as(int), literal.position
    if target.kind is Kind.TEXT:
        return Literal(TEXT, date_text(value) if is_date else timestamp_text(value), position=position)
    if target.kind is Kind.TIME:
        return Literal(target, 0 if is_date else value % DAY, position=position)
    if not target.is_temporal:
        return None
    if literal.type.kind is not target.kind:
        value = value * DAY if is_date else value // DAY
    return Literal(target, value, position=position)


def _cast_number(literal: Expr, target: SqlType) -> Literal | None:
    number, position, is_float = constant_number(literal), literal.position, literal.type.is_float
    if number is None:
        return None
    if target.is_integer:
        return _integer(_rounded(number, 0, even=is_float), target, position)
    if target.kind is Kind.DOUBLE:
        return Literal(target, as_double(number), position=position)
    if target.kind is Kind.REAL:
        return Literal(target, _as_real(number, position), position=position)
    if target.kind is Kind.NUMERIC:
        exact = Fraction(repr(float(number))) if is_float else number
        return _cast_numeric(exact, target, position)
    if target.kind is Kind.TEXT and literal.type.is_integer:
        return Literal(TEXT, str(int(number)), position=position)
    return None


_CAST: dict[Kind, Callable[[Expr, SqlType], Literal | None]] = {
    Kind.BOOLEAN: _cast_boolean,
    Kind.INTERVAL: lambda literal, target: None,
    Kind.TIME: _cast_time,
    Kind.DATE: _cast_moment,
    Kind.TIMESTAMP: _cast_moment,
}
"""Kind of a constant that is no text and no number -> what casts it."""


def _as_real(number: Fraction, position: Position | None) -> Fraction:
    try:
        return Fraction(struct.unpack("f", struct.pack("f", float(number)))[0])
    except OverflowError:
        raise Refusal("this is out of range for type real", sqlstate="22023", position=position) from None


def _cast_numeric(number: Fraction, target: SqlType, position: Position | None) -> Literal:
    if target.scale is None or target.precision is None:
        return Literal(NUMERIC, number, position=position)
    kept = _rounded(number, target.scale, even=False)
    if abs(kept) >= Fraction(10) ** (target.precision - target.scale):
        raise Refusal(f"this is out of range for type {target}", sqlstate="22023", position=position)
    return Literal(target, kept, position=position)


def _rounded(number: Fraction, scale: int, *, even: bool) -> Fraction:
    """Return a number rounded to digits after the point: halves to even, or away from zero."""
    unit = Fraction(1, int("1" + "0" * scale))
    scaled = number / unit
    if even:
        return round(scaled) * unit
    whole = math.floor(abs(scaled) + Fraction(1, 2))
    return (whole if scaled >= 0 else -whole) * unit


# --- arithmetic --------------------------------------------------------------------------------------


def add_months(microseconds: int, interval: Months, sign: int) -> int | None:
    """Return a moment plus an interval as Postgres adds them (months first, day of month cut to fit).

    None for a result outside the years 1 to 9999.
    """
    epoch = datetime.datetime(1970, 1, 1)
    try:
        moment = epoch + datetime.timedelta(microseconds=microseconds)
        total = moment.year * 12 + moment.month - 1 + sign * interval.months
        year, month = total // 12, total % 12 + 1
        following = datetime.date(year, month, 28) + datetime.timedelta(days=4)
        last = (following - datetime.timedelta(days=following.day)).day
        moved = moment.replace(year=year, month=month, day=min(moment.day, last))
        moved += sign * datetime.timedelta(days=interval.days, microseconds=interval.microseconds)
    except (ValueError, OverflowError):
        return None
    return (moved - epoch) // datetime.timedelta(microseconds=1)


def fold(call: Call) -> Expr:
    """Return the value of arithmetic over exact constants, of a date ± interval or days, of a part of one, of texts.

    Of anything else `call` itself.

    Raises:
        Refusal: 22023 when the value is outside the result's type.
    """
    change = _FOLDED.get(call.function)
    return call if change is None else change(call)


def _part(change: Callable[[str, int], int | Fraction | None], call: Call) -> Expr:
    """Return date_trunc or extract of a constant moment: the same bounds as if it had been written out."""
    word, moment = call.args[0].constant, _moment_of(call.args[1])
    value = None if word is None or moment is None else change(str(word), moment)
    return call if value is None else Literal(call.type, value, position=call.position)


def _field(word: str, moment: int) -> int | Fraction | None:
    return (seconds if word in EXACT_FIELDS else extracted)(word, moment)


def _moment_of(arg: Expr) -> int | None:
    """Return a constant moment in microseconds."""
    value = arg.constant_as(int)
    return None if value is None else value * (DAY if arg.type.kind is Kind.DATE else 1)


def _as_written(call: Call) -> Expr:
    """Return to_char of a constant moment."""
    moment = _moment_of(call.args[0])
    text = None if moment is None else formatted(written_format(call), moment)
    return call if text is None else Literal(TEXT, text, position=call.position)


def _letters(change: Callable[[str], str], call: Call) -> Expr:
    """Return lower or upper of a constant text; letters outside ASCII are left to the engine."""
    text = call.args[0].constant_as(str)
    return call if text is None or not text.isascii() else Literal(TEXT, change(text), position=call.position)


def _joined(call: Call) -> Expr:
    """Return || of constant texts and whole numbers."""
    texts = [arg.constant_as(int) if arg.type.is_integer else arg.constant_as(str) for arg in call.args]
    return call if None in texts else Literal(TEXT, "".join(map(str, texts)), position=call.position)


def _negated(call: Call) -> Expr:
    inner = call.args[0]
    number = constant_number(inner)
    if number is None:
        value = inner.constant_as(float)
        return call if value is None else Literal(call.type, -value, position=call.position)
    if call.type.is_integer:
        return _integer(-number, call.type, call.position)
    return Literal(call.type, -number, position=call.position)


def _summed(sign: int, call: Call) -> Expr:
    """Return a sum or a difference of constants: of numbers, of a moment and days or an interval."""
    left, right = call.args
    if any(arg.is_constant and arg.constant is None and arg.type.kind is Kind.INTERVAL for arg in call.args):
        return Literal(call.type, None, position=call.position)
    start, interval = _moment_of(left), right.constant_as(Months)
    if start is not None and interval is not None:
        return _moment(add_months(start, interval, sign), TIMESTAMP, call.position)
    if call.type.kind is not Kind.DATE:
        return _exactly(lambda a, b: a + sign * b, call)
    day, days = left.constant_as(int), right.constant_as(int)
    return call if day is None or days is None else _moment(day + sign * days, DATE, call.position)


def _moment(value: int | None, type_: SqlType, position: Position | None) -> Literal:
    days = None if value is None else value if type_.kind is Kind.DATE else value // DAY
    if days is None or not _FIRST <= days <= _LAST:
        raise Refusal("this moment is out of range", sqlstate="22023", position=position)
    return Literal(type_, value, position=position)


def _exactly(operate: Callable[[Fraction, Fraction], Fraction | None], call: Call) -> Expr:
    """Return an operation on two constant numbers, none of them a double."""
    left, right = (constant_number(arg) for arg in call.args)
    value = None if call.type.is_float or left is None or right is None else operate(left, right)
    if value is None:
        return call
    if call.type.is_integer:
        return _integer(value, call.type, call.position)
    return Literal(call.type, value, position=call.position)


def _whole(operate: Callable[[Fraction, Fraction], Fraction], call: Call) -> Expr:
    """Return a division of constant integers; one by zero is left to the engine."""
    return _exactly(lambda a, b: operate(a, b) if b else None, call) if call.type.is_integer else call


_FOLDED: dict[str, Callable[[Call], Expr]] = {
    "add": partial(_summed, 1),
    "sub": partial(_summed, -1),
    "mul": partial(_exactly, operator.mul),
    "div": partial(_whole, lambda a, b: Fraction(math.trunc(a / b))),
    "mod": partial(_whole, lambda a, b: a - math.trunc(a / b) * b),
    "neg": _negated,
    "date_trunc": partial(_part, truncated),
    "extract": partial(_part, _field),
    "to_char": _as_written,
    "lower": partial(_letters, str.lower),
    "upper": partial(_letters, str.upper),
    "concat_op": _joined,
}
"""Function -> what makes a constant of a call of constants."""


COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "is_not_distinct"})
_WHOLE = frozenset(
    {Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIMESTAMP, Kind.TEXT}
)
"""Kinds of which a literal of a side's own type stands as it is."""
_ORDER: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "eq": operator.eq, "is_not_distinct": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def same_moments(args: list[Expr]) -> list[Expr]:
    """Return the arguments with dates as timestamps, where dates and timestamps stand side by side."""
    kinds = {arg.type.kind for arg in args}
    if not {Kind.DATE, Kind.TIMESTAMP} <= kinds:
        return args
    return [_as_timestamp(arg) if arg.type.kind is Kind.DATE else arg for arg in args]


def _as_timestamp(expr: Expr) -> Expr:
    if expr.is_constant:
        literal = cast_literal(expr, TIMESTAMP)
        assert literal is not None
        return literal
    return Call(TIMESTAMP, "cast", (expr,), position=expr.position)


def compare(function: str, left: Expr, right: Expr, position: Position | None) -> Expr:
    """Return the comparison of two expressions whose types fit."""
    if left.is_constant and right.is_constant:
        known = _constant(function, left, right)
        if known is not None:
            return Literal(BOOLEAN, known, position=position)
    elif left.is_constant:
        return compare(MIRRORED.get(function, function), right, left, position)
    elif right.constant is not None:
        on_lattice = _with_literal(function, left, right, position)
        if on_lattice is not None:
            return on_lattice
    left, right = same_moments([left, right])
    return Call(BOOLEAN, function, (left, right), position=position)


def compare_in(value: Expr, items: list[Expr], position: Position | None) -> Expr:
    """Return `value IN (literals)`, the items each once and in stable order."""
    if value.is_constant:
        return _constant_in(value, items, position)
    listed: dict[Expr, None] = {}
    is_whole = value.type.kind in _WHOLE
    for item in items:
        if is_whole and item.type == value.type:
            listed[item] = None
            continue
        is_null = item.constant is None
        equal = Call(BOOLEAN, "eq", (value, item)) if is_null else compare("eq", value, item, None)
        if equal.calls("eq") and equal.args[1].is_constant:
            value, literal = equal.args
            listed[literal] = None
    ordered = sorted(listed, key=repr)
    if not ordered:
        return _never(value, position)
    if len(ordered) == 1:
        return Call(BOOLEAN, "eq", (value, ordered[0]), position=position)
    return Call(BOOLEAN, "in", (value, *ordered), position=position)


def _constant(function: str, left: Expr, right: Expr) -> bool | None:
    """Return a comparison of two constant numbers or moments; None for others, and for NULL."""
    if left.constant is None or right.constant is None:
        return None
    if left.type.is_number and right.type.is_number:
        a, b = exact_value(left), exact_value(right)
    elif left.type.is_temporal and right.type.is_temporal:
        ends = [cast_literal(side, TIMESTAMP) for side in (left, right)]
        a, b = (None if end is None else exact_value(end) for end in ends)
    elif left.type.kind is Kind.TIME and right.type.kind is Kind.TIME:
        a, b = exact_value(left), exact_value(right)
    else:
        return None
    return None if a is None or b is None else _ORDER[function](a, b)


def _constant_in(value: Expr, items: list[Expr], position: Position | None) -> Expr:
    """Return `constant IN (literals)` as equalities joined by OR, folded where they are known."""
    found: dict[Expr, None] = {}
    for item in items:
        equal = compare("eq", value, item, position)
        if equal == TRUE:
            return equal
        if equal != FALSE:
            found[equal] = None
    if not found:
        return Literal(BOOLEAN, False, position=position)
    terms = tuple(sorted(found, key=repr))
    return terms[0] if len(terms) == 1 else Call(BOOLEAN, "or", terms, position=position)


def _with_literal(function: str, left: Expr, right: Expr, position: Position | None) -> Expr | None:
    """Return the comparison with a constant in the left side's own kind; None when nothing is to be done."""
    if left.type.is_number and right.type.is_number:
        if left.type.is_float:
            double = cast_literal(right, DOUBLE) or Literal(DOUBLE, right.constant, position=right.position)
            return Call(BOOLEAN, function, (left, double), position=position)
        number = exact_value(right)
        if number is None:
            return None
        step = _step(left)
        if step is None:
            literal = Literal(NUMERIC, number, position=right.position) if right.type.is_float else right
            return Call(BOOLEAN, function, (left, literal), position=position)
        return _on_lattice(function, left, number, step, right.position, position)
    if left.type.kind is Kind.DATE and right.type.kind is Kind.TIMESTAMP:
        days = Fraction(right.literal_as(int), DAY)
        return _on_lattice(function, left, days, Fraction(1), right.position, position)
    return None


def _step(expr: Expr) -> Fraction | None:
    """Return the lattice that an exact type puts a value on; None when it is not known."""
    if isinstance(expr, Outer):
        return _step(expr.expr)
    if expr.type.is_integer:
        return Fraction(1)
    known = expr.column is not None and expr.type.scale is not None
    return Fraction(1, 10 ** (expr.type.scale or 0)) if known else None


def _on_lattice(
    function: str,
    left: Expr,
    number: Fraction,
    step: Fraction,
    at: Position | None,
    position: Position | None,
) -> Expr:
    """Return the comparison of values that are multiples of `step`, a whole part of 1, with any number."""
    low, high = _range(left.type)
    if low is not None and high is not None and not low <= number <= high:
        return _outside(function, left, number > high, position)
    value = number
    if step.denominator % number.denominator:  # it lies between two neighbours a and b of the lattice
        if function in ("eq", "is_not_distinct"):
            return FALSE if function == "is_not_distinct" else _never(left, position)
        if function == "ne":
            return _always(left, position)
        # above it means >= b, below it means <= a
        value = step * (math.ceil(number / step) if function in ("gt", "ge") else math.floor(number / step))
        function = "ge" if function in ("gt", "ge") else "le"
    whole = left.type.is_integer or left.type.is_temporal
    literal = Literal(left.type, int(value) if whole else value, position=at)
    return Call(BOOLEAN, function, (left, literal), position=position)


@lru_cache(64)
def _range(type_: SqlType) -> tuple[Fraction | None, Fraction | None]:
    if type_.is_integer:
        low, high = integer_range(type_)
        return Fraction(low), Fraction(high)
    if type_.kind is Kind.NUMERIC and type_.precision is not None:
        end = Fraction(10) ** (type_.precision - (type_.scale or 0)) - Fraction(1, 10 ** (type_.scale or 0))
        return -end, end
    return None, None


def _outside(function: str, left: Expr, above: bool, position: Position | None) -> Expr:
    """Return the comparison with a number above or below all that the type can hold."""
    if function == "is_not_distinct":
        return FALSE
    holds = function == "ne" or function in (("lt", "le") if above else ("gt", "ge"))
    return _always(left, position) if holds else _never(left, position)


def _always(expr: Expr, position: Position | None) -> Expr:
    """Return what is true of every value, and NULL of NULL."""
    return Call(BOOLEAN, "eq", (expr, expr), position=position)


def _never(expr: Expr, position: Position | None) -> Expr:
    """Return what is false of every value, and NULL of NULL."""
    return Call(BOOLEAN, "ne", (expr, expr), position=position)

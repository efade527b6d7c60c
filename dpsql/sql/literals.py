"""Literals and types as they are written: numbers, intervals and bound parameters as Postgres types them, casts, JSON.

Texts of JSON are read as Postgres reads them: `json` as it stands, `jsonb` in its one spelling.

Parameters whose values are still to come: what type each is to have, from where it stands.

A client may prepare a statement and ask for its parameters' types before it sends a value. Such a parameter is bound
as a NULL whose place notes the first type that it is read as, which is how Postgres types an untyped `$1`.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ..errors import Position, Refusal
from ..records import dataclass
from ..relation.expressions import Call, Expr, Literal, LiteralValue, Months
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
from .text import is_text

__all__ = [
    "MAX_DEPTH",
    "Awaited",
    "TypedNull",
    "as_json",
    "bare",
    "called",
    "cast_target",
    "json_constant",
    "json_text",
    "jsonb_text",
    "listed",
    "met",
    "number_literal",
    "parameter_literal",
    "quoted",
    "sample",
    "sorted_keys",
    "text_length",
    "type_word",
]

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


_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3}))?")
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

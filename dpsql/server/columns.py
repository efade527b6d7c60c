"""Values to and fro: SQL types as Postgres' numbers, parameters, EXECUTE's constants by its rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from ..engine import AnswerColumn
from ..pgwire import (
    ELEMENTS,
    TYPES,
    Bind,
    FieldDescription,
    Format,
    Interval,
    Oid,
    ParameterError,
    read_parameter,
)
from ..records import dataclass
from ..relation.expressions import Months
from ..relation.types import DATE, TEXT, TIMESTAMP, Kind, SqlType
from ..sql.literals import TypedNull
from ..sql.text import read_constant
from ..system_catalog.objects import TYPE_OIDS
from .report import Fault, unsupported

_ARRAYS: dict[int, int] = {element: array for array, element in ELEMENTS.items()}
_UNKNOWN = (0, Oid.UNKNOWN)
_REFCURSOR = 1790
"""A driver that looks for the types which are read as text may find this one: the same on the wire."""
_SAME = {Oid.UNKNOWN: 0, _REFCURSOR: Oid.TEXT}
_DECLARED: dict[int, SqlType] = {
    **{oid: SqlType(kind) for kind, oid in TYPE_OIDS.items() if kind not in (Kind.JSON, Kind.JSONB)},
    Oid.TEXT: TEXT, Oid.VARCHAR: TEXT, Oid.TIMESTAMPTZ: TIMESTAMP,
}  # fmt: skip
_MOMENT = re.compile(rb"\d{4,6}-\d\d-\d\d(?:T\d| ?[+\-Z]| \d.*[+\-Z])")
_LONGEST_MOMENT = 100


def columns_of(columns: Sequence[AnswerColumn]) -> tuple[FieldDescription, ...]:
    """Return an answer's columns as a RowDescription has them, in text."""
    pairs = [(column, oid_of(column.type)) for column in columns]
    return tuple(
        FieldDescription(column.name, oid, TYPES[oid].size, column.type.modifier) for column, oid in pairs
    )


def in_formats(
    columns: Sequence[FieldDescription], formats: Sequence[Format]
) -> tuple[FieldDescription, ...]:
    """Return columns in other formats, one for each."""
    return tuple(
        column if column.format is form else replace(column, format=form)
        for column, form in zip(columns, formats, strict=True)
    )


def oid_of(type_: SqlType) -> int:
    """Return Postgres' number of a type."""
    if type_.element is not None:
        return _ARRAYS[TYPE_OIDS[type_.element.kind]]
    return TYPE_OIDS[type_.kind]


def sql_type(oid: int) -> SqlType | None:
    """Return the type that a parameter of one of Postgres' types has for the session; None: not known."""
    return _DECLARED.get(oid)


def parameter_types(declared: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the types of a statement's parameters: what the client declares holds, 0 stands for the others.

    There may be more than the statement names. Raises Fault (42704): a type does not exist.
    """
    for oid in declared:
        if oid not in TYPES and oid not in _UNKNOWN and oid != _REFCURSOR:
            raise Fault("42704", f"type {oid} does not exist", hint="send the parameter as text")
    types = [_SAME.get(oid, oid) for oid in declared]
    return (*types, *[0] * (count - len(types)))


def must_be_typed(event: Bind) -> bool:
    """Say whether a value can be read only when its type is known: in binary, or a moment with its zone or a T."""
    return any(
        form is Format.BINARY or (data is not None and len(data) < _LONGEST_MOMENT and _MOMENT.match(data))
        for form, data in zip(event.parameter_formats, event.parameters, strict=True)
    )


def read_values(event: Bind, types: Sequence[int]) -> tuple[object, ...]:
    """Return the values that a Bind gives to a statement's parameters; 0 is read as text.

    A moment with a zone becomes one without, in UTC: the only zone that there is. Raises Fault: another number of
    values than of parameters. Raises ParameterError: a value is not of its type.
    """
    if len(event.parameters) != len(types):
        raise Fault(
            "08P01", f"{len(event.parameters)} parameters are given, but the statement names {len(types)}"
        )
    given = zip(types, event.parameter_formats, event.parameters, strict=True)
    return tuple(plain(read_parameter(oid or Oid.TEXT, form, data)) for oid, form, data in given)


def typed_nulls(values: Sequence[object], types: Sequence[int]) -> tuple[object, ...]:
    """Return values for the session, each NULL as one of the type that its parameter has."""
    return tuple(
        TypedNull(known) if value is None and (known := sql_type(oid)) is not None else value
        for value, oid in zip(values, types, strict=True)
    )


def plain(value: object) -> object:
    """Return a moment with a zone as one without, in UTC, an interval as the session has it; else as it is."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Interval):
        return Months(value.months, value.days, value.microseconds)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


# --- EXECUTE's constants ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant as it was written; `type`: the name of its type, None for a bare string or NULL."""

    text: str | None
    type: str | None = None


def compile_form(form: str) -> re.Pattern[str]:
    """Return how something is written, in any case; blanks are never given back, so that it fails in linear time."""
    form = form.replace(r"\s+", r"\s++").replace(r"\s*", r"\s*+")
    return re.compile(form, re.IGNORECASE | re.DOTALL)


_TYPES = {
    "boolean": Oid.BOOL, "bool": Oid.BOOL,
    "smallint": Oid.INT2, "int2": Oid.INT2,
    "integer": Oid.INT4, "int": Oid.INT4, "int4": Oid.INT4,
    "bigint": Oid.INT8, "int8": Oid.INT8,
    "numeric": Oid.NUMERIC, "decimal": Oid.NUMERIC,
    "real": Oid.FLOAT4, "float4": Oid.FLOAT4,
    "double precision": Oid.FLOAT8, "float8": Oid.FLOAT8, "float": Oid.FLOAT8,
    "text": Oid.TEXT, "varchar": Oid.VARCHAR, "character varying": Oid.VARCHAR, "unknown": Oid.UNKNOWN,
    "date": Oid.DATE,
    "timestamp": Oid.TIMESTAMP, "timestamp without time zone": Oid.TIMESTAMP,
    "time": Oid.TIME, "time without time zone": Oid.TIME,
    "timestamptz": Oid.TIMESTAMPTZ, "timestamp with time zone": Oid.TIMESTAMPTZ,
}  # fmt: skip
_TYPE = (
    r"(?:pg_catalog\s*\.\s*)?(double\s+precision|character\s+varying|time(?:stamp)?\s+with(?:out)?\s+time\s+zone|[a-z]\w*)"
    r"(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?"
)
_BEFORE = compile_form(r"\s*(?:(?P<cast>cast\s*\(\s*)|(?P<typed>date|timestamp|time)\s*(?='))?")
_AFTER = compile_form(rf"\s*(?:::\s*(?P<type>{_TYPE})\s*)?")
_AFTER_CAST = compile_form(rf"\s+as\s+(?P<type>{_TYPE})\s*\)\s*")


def type_number(name: str) -> int:
    """Return Postgres' number of a type. Raises Fault (42704): there is none of this name."""
    match = re.fullmatch(_TYPE, name.strip(), re.IGNORECASE)
    oid = _TYPES.get(re.sub(r"\s+", " ", match[1].lower())) if match else None
    if oid is None:
        raise Fault(
            "42704", f'type "{name.strip()[:60]}" does not exist', hint="declare the parameter as text"
        )
    return oid


def read_arguments(written: str) -> tuple[Constant, ...]:
    """Read constants with commas between them. Raises Fault (0A000): one is none."""
    found, at = list[Constant](), -1
    while at < len(written):
        constant, at = _constant(written, at + 1)
        found.append(constant)
    return tuple(found)


def _constant(written: str, at: int) -> tuple[Constant, int]:
    """Return the constant that begins at a place, and where the comma after it stands. Raises Fault (0A000, 42704)."""
    before = _BEFORE.match(written, at)
    read = None if before is None else read_constant(written, before.end())
    if before is None or read is None:
        raise _no_constant()
    kind, text, end = read
    after = (_AFTER_CAST if before["cast"] else _AFTER).match(written, end)
    is_known = kind in ("string", "number") or (kind == "word" and text in ("null", "true", "false"))
    if after is None or not is_known or written[after.end() : after.end() + 1] not in ("", ","):
        raise _no_constant()
    type_ = after["type"] or before["typed"]
    if type_ is not None:
        type_number(type_)
        type_ = re.sub(r"\s+", " ", re.sub(r"\(.*", "", type_.lower())).strip()
    elif kind == "number":
        type_ = "integer" if text.lstrip("-").isdigit() else "numeric"
    elif kind == "word" and text != "null":
        type_ = "boolean"
    return Constant(None if (kind, text) == ("word", "null") else text, type_), after.end()


def _no_constant() -> Fault:
    return unsupported("an argument of EXECUTE that is no constant", "write a number, a string, NULL, a cast")


# --- as values ---------------------------------------------------------------------------------------

_HINT = "write a constant of the parameter's type"


def argument_values(name: str, arguments: Sequence[Constant], types: Sequence[int]) -> tuple[object, ...]:
    """Return one value for each parameter of the prepared statement `name`.

    Raises Fault: another number of arguments (42601), a type that the parameter's cannot be made of (42804), or a value
    that is not of its type, or not in its range (as ParameterError has it).
    """
    if not types:
        return ()  # Postgres does not look at them
    if len(arguments) != len(types):
        raise Fault(
            "42601", f'{len(arguments)} arguments are given, but prepared statement "{name}" takes {len(types)}',
            hint="give one constant for each $n",
        )  # fmt: skip
    pairs = enumerate(zip(arguments, types, strict=True), 1)
    return tuple(_value(number, argument, oid or Oid.TEXT) for number, (argument, oid) in pairs)


def _value(number: int, argument: Constant, oid: int) -> object:
    if argument.text is None:
        return None
    if argument.type is None:
        return _read(oid, argument.text)
    own = _own_type(argument)
    value, given, wanted = _read(own, argument.text), sql_type(own), sql_type(oid)
    assert given is not None, "every type that is read here is one of the session's"
    if given == wanted:
        return value
    if wanted == TEXT:
        return _text(value, argument.text)
    if wanted is not None and wanted.is_number and given.is_number:
        return _read(oid, _rounded(value, given) if wanted.is_integer else argument.text)
    if wanted is not None and wanted.is_temporal and given.is_temporal:
        return _read(oid, str(value)[:10] if wanted == DATE else str(value))
    raise Fault(
        "42804", f"parameter ${number} of type {argument.type} cannot be coerced to {wanted or 'its type'}",
        hint="write the value in quotes, without a cast",
    )  # fmt: skip


def _own_type(argument: Constant) -> int:
    assert argument.type is not None
    assert argument.text is not None
    own = type_number(argument.type)
    if argument.type == "integer" and argument.text.lstrip("-").isdigit():
        value = Decimal(argument.text)  # a bare number, of any length, is of the smallest type that holds it
        fits = [oid for oid, limit in ((Oid.INT4, 2**31), (Oid.INT8, 2**63)) if -limit <= value < limit]
        return fits[0] if fits else Oid.NUMERIC
    return Oid.TEXT if own == Oid.UNKNOWN else own


def _read(oid: int, text: str) -> object:
    try:
        return plain(read_parameter(oid, Format.TEXT, text.encode("utf-8", "replace")))
    except ParameterError as error:
        raise Fault(error.sqlstate, error.message, hint=error.hint or _HINT) from None


def _rounded(value: object, given: SqlType) -> str:
    exact = Decimal(str(value))
    if not exact.is_finite():
        return str(value)
    return f"{exact.to_integral_value(ROUND_HALF_EVEN if given.is_float else ROUND_HALF_UP):f}"


def _text(value: object, written: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime, date, time, int)):
        return str(value)
    return written

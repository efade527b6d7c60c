"""Answers' columns and clients' parameters: SQL types to Postgres' type numbers, values to and fro."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ..engine import AnswerColumn
from ..pgwire import ELEMENTS, TYPES, Bind, FieldDescription, Format, Oid, read_parameter
from ..relation.types import TEXT, TIMESTAMP, Kind, SqlType
from ..sql.parameters import TypedNull
from ..system_catalog.objects import TYPE_OIDS
from .report import Fault

__all__ = [
    "columns_of", "in_formats", "must_be_typed", "oid_of", "parameter_types", "plain", "read_values", "sql_type",
    "typed_nulls",
]  # fmt: skip

_ARRAYS: dict[int, int] = {element: array for array, element in ELEMENTS.items()}
_UNKNOWN = (0, Oid.UNKNOWN)
_REFCURSOR = 1790
"""A driver that looks for the types which are read as text may find this one: the same on the wire."""
_SAME = {Oid.UNKNOWN: 0, _REFCURSOR: Oid.TEXT}
_DECLARED: dict[int, SqlType] = {
    **{oid: SqlType(kind) for kind, oid in TYPE_OIDS.items() if kind not in (Kind.INTERVAL, Kind.JSON, Kind.JSONB)},
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
    """Return a moment with a zone as one without, in UTC; anything else as it is."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value

"""Answers' columns and clients' parameters: SQL types to Postgres' type numbers, values to and fro."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..engine import AnswerColumn
from ..pgwire import TYPES, Bind, Column, Format, Oid, read_parameter
from ..relation.types import Kind, SqlType
from .report import Fault

__all__ = ["parameter_types", "read_values", "wire_columns"]

_OIDS = {
    Kind.BOOLEAN: Oid.BOOL,
    Kind.SMALLINT: Oid.INT2,
    Kind.INTEGER: Oid.INT4,
    Kind.BIGINT: Oid.INT8,
    Kind.NUMERIC: Oid.NUMERIC,
    Kind.REAL: Oid.FLOAT4,
    Kind.DOUBLE: Oid.FLOAT8,
    Kind.TEXT: Oid.TEXT,
    Kind.DATE: Oid.DATE,
    Kind.TIMESTAMP: Oid.TIMESTAMP,
    Kind.INTERVAL: Oid.INTERVAL,
    Kind.OPAQUE: Oid.TEXT,
    Kind.NULL: Oid.TEXT,
}
_UNKNOWN = (0, Oid.UNKNOWN)


def wire_columns(columns: Sequence[AnswerColumn], formats: Sequence[Format]) -> tuple[Column, ...]:
    """Return the columns as a RowDescription has them, one format for each."""
    return tuple(_column(column, form) for column, form in zip(columns, formats, strict=True))


def _column(column: AnswerColumn, form: Format) -> Column:
    oid = _OIDS[column.type.kind]
    return Column(column.name, oid, TYPES[oid].size, _modifier(column.type), form)


def _modifier(type_: SqlType) -> int:
    if type_.kind is not Kind.NUMERIC or type_.precision is None:
        return -1
    return (type_.precision << 16 | (type_.scale or 0)) + 4


def parameter_types(declared: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the types of a statement's parameters: what the client declares holds, the others are text.

    Raises Fault: more types are declared than there are parameters, or one that does not exist.
    """
    if len(declared) > count:
        raise Fault("42P02", f"{len(declared)} parameter types are declared, but the statement names {count}")
    for oid in declared:
        if oid not in TYPES and oid not in _UNKNOWN:
            raise Fault("42704", f"type {oid} does not exist", hint="send the parameter as text")
    types = [Oid.TEXT if oid in _UNKNOWN else oid for oid in declared]
    return (*types, *[Oid.TEXT] * (count - len(types)))


def read_values(event: Bind, types: Sequence[int]) -> tuple[object, ...]:
    """Return the values that a Bind gives to a statement's parameters.

    A moment with a zone becomes one without, in UTC: the only zone that there is. Raises Fault: another number of
    values than of parameters. Raises ParameterError: a value is not of its type.
    """
    if len(event.parameters) != len(types):
        raise Fault(
            "08P01", f"{len(event.parameters)} parameters are given, but the statement names {len(types)}"
        )
    given = zip(types, event.parameter_formats, event.parameters, strict=True)
    return tuple(_plain(read_parameter(oid, form, data)) for oid, form, data in given)


def _plain(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value

"""Rows of public tables on their way from the owner's engine into the sealed one: arrays, as they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EngineFailure
from ..plan.backend_sql.print_private import PrivatePrinter
from ..plan.dialects import dialect_of
from ..plan.dialects.dialect import Dialect
from ..relation.calendar import calendar_ends
from ..relation.catalog import Column, Table
from ..relation.expressions import Field, Literal
from ..relation.intervals import Environment
from ..relation.relations import Block, Relation, Scan, skipped
from ..relation.types import Kind, SqlType
from .bind import engine_type
from .released import Array, EncodedColumn, quote

__all__ = ["FetchedTable", "carried_type", "encode_fetched", "fetch_statement", "stored_columns", "unread"]

_NEVER_CARRIED = (Kind.OPAQUE, Kind.INTERVAL)


@dataclass(frozen=True, slots=True)
class FetchedTable:
    """A named table of what was fetched: each column's arrays and the SQL that puts it together."""

    name: str
    columns: Mapping[str, EncodedColumn]


def carried_type(declared: SqlType) -> str:
    """Return the type that a fetched column travels as: every integer is a BIGINT."""
    return "BIGINT" if declared.is_integer else engine_type(declared)


def unread(declared: SqlType) -> str:
    """Return a NULL in the place of a column that nobody reads."""
    return f"CAST(NULL AS {'VARCHAR' if declared.kind in _NEVER_CARRIED else engine_type(declared)})"


def stored_columns(table: Table) -> list[str]:
    """Return a public table's columns in DuckDB, each as SQL that gives the values to post-processing and never raises.

    NUMERIC is a DOUBLE; what is not finite, and a date or timestamp outside the years 0001 to 9999, is
    NULL. A column of a type that is never carried is NULL too: `check_usable` has refused to read it.
    """
    stored = dialect_of("duckdb", None).stored
    return [
        unread(column.type)
        if column.name in table.unnamed
        else _stored(stored(quote(column.name), column.type), column.type)
        for column in table.columns
    ]


def _stored(name: str, declared: SqlType) -> str:
    if declared.is_float:
        return f"CASE WHEN isfinite({name}) THEN {name} END"
    if declared.kind is Kind.DATE:
        return f"CASE WHEN {name} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {name} END"
    if declared.kind is Kind.TIMESTAMP:
        inside = f"{name} >= TIMESTAMP '0001-01-01' AND {name} < TIMESTAMP '10000-01-01'"
        return f"CASE WHEN {inside} THEN {name} END"
    if declared.kind in _NEVER_CARRIED:
        return unread(declared)
    return f"CAST({name} AS {engine_type(declared)})"


def fetch_statement(node: Relation, columns: Sequence[int], dialect: Dialect) -> str:
    """Return the SELECT of a public table's columns, and of its rows that plain terms keep, for any engine.

    Columns are named c<i>, in the types of `carried_type`, and as `stored_columns` has them; one column of
    ones when none is read.
    """
    table = skipped(node, "where")
    assert isinstance(table, Scan)
    names = [
        dialect.stored(f"t.{dialect.identifier(column.name)}", column.type) for column in table.table.columns
    ]
    printer = PrivatePrinter(Environment(table.table.columns), names, dialect)
    shown = [f"{_fetched(printer, table.table.columns[i], i)} AS c{i}" for i in columns]
    where = f" WHERE {printer.boolean(node.predicate)}" if isinstance(node, Block) else ""
    return f"SELECT {', '.join(shown) or '1 AS one'} FROM {dialect.table(table.table)} AS t{where}"


def _fetched(printer: PrivatePrinter, column: Column, index: int) -> str:
    kind, dialect = column.type.kind, printer.dialect
    shown = printer.column(Field(column.type, index))
    if kind in _NEVER_CARRIED:
        return f"CAST(NULL AS {dialect.text})"
    if column.type.is_integer:
        return dialect.cast(shown, "BIGINT")
    if kind is Kind.NUMERIC:
        return dialect.exact_as_double(shown, column.type)
    if column.type.is_float:
        return dialect.as_double(shown)
    if column.type.is_temporal:
        first, last = (dialect.literal(Literal(column.type, end)) for end in calendar_ends(column.type))
        return f"CASE WHEN {shown} BETWEEN {first} AND {last} THEN {shown} END"
    return shown


def encode_fetched(declared: SqlType, values: Array, nulls: Array | None) -> EncodedColumn:
    """Return a fetched column as `released` carries it; `nulls`: where it is NULL, None for nowhere.

    Raises EngineFailure when the array is not of the type that the query asked for.
    """
    carried = carried_type(declared)
    wanted = {"BIGINT": "i", "DOUBLE": "f", "FLOAT": "f", "BOOLEAN": "b", "VARCHAR": "O"}.get(carried, "M")
    if values.dtype.kind != wanted:
        raise EngineFailure(f"fetch: {carried} came as {values.dtype}")
    if wanted == "f":
        floats = values.astype(np.float64)
        floats[~np.isfinite(floats)] = np.nan
        return _plain(carried, _with(floats, nulls, np.nan))
    if wanted == "M":
        moments = values.astype("datetime64[us]")
        return _plain(carried, _with(moments, nulls, np.datetime64("NaT", "us")))
    if wanted == "O":
        return _plain(carried, _with(values, nulls, None))
    whole = values.astype(np.int64 if wanted == "i" else np.bool_, copy=False)
    if nulls is None:
        return EncodedColumn(carried, {"v": whole}, '"{}v"')
    return EncodedColumn(carried, {"v": whole, "n": nulls}, 'CASE WHEN NOT "{}n" THEN "{}v" END')


def _plain(carried: str, values: Array) -> EncodedColumn:
    return EncodedColumn(carried, {"v": values}, f'TRY_CAST("{{}}v" AS {carried})')


def _with(values: Array, nulls: Array | None, mark: object) -> Array:
    if nulls is not None:
        values[nulls] = mark
    return values

"""Released tables on their way into the sealed engine: each column as plain numpy arrays.

House rules:

1. A column is carried by int64, float64, bool, datetime64[us] or object-of-text arrays alone, with
   a boolean array beside it where NULLs need one. Other dtypes are read differently by different
   versions of DuckDB (masked arrays lose their mask, arrays of objects become text, numpy text
   becomes an ENUM).
2. No double in the engine is NaN or infinite: here they become NULL. `null_on_error` relies on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure
from ..plan.backend_sql.print_private import PrivatePrinter
from ..plan.dialects import dialect_of
from ..plan.dialects.dialect import Dialect
from ..records import dataclass
from ..relation.calendar import calendar_ends
from ..relation.catalog import Column, Table
from ..relation.expressions import Field, Literal
from ..relation.intervals import Environment
from ..relation.relations import Block, Relation, Scan, skipped
from ..relation.types import Kind, SqlType
from .bind import engine_type

Array = npt.NDArray[Any]

_WIDEST = 2**126
"""Integers of this size and more are carried as DOUBLE: the sum of two below it still fits a HUGEINT."""
_LOW_HALF = 2**64 - 1


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """One column of public values: released integers, keys, or a public table's column.

    `values` holds Python values or None, or is a numpy array: int64, or object (big ints, text).
    An integer measure is declared BIGINT however wide it is; in the engine it is BIGINT when all
    values fit, else HUGEINT below 2^126, else DOUBLE. NUMERIC is carried as DOUBLE.
    """

    name: str
    type: SqlType
    values: Sequence[Any] | Array


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """A named table of public columns, all of one length; there is at least one column.

    The engine does not tell names apart by case. Raises ValueError when the columns do not fit.
    """

    name: str
    columns: tuple[ReleasedColumn, ...]

    def __post_init__(self) -> None:
        if len({len(column.values) for column in self.columns}) != 1:
            raise ValueError("a released table has at least one column, and all are of one length")
        if len({column.name.casefold() for column in self.columns}) != len(self.columns):
            raise ValueError("the columns of a released table differ by more than their case")

    @property
    def row_count(self) -> int:
        return len(self.columns[0].values)


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A column as arrays, and the SQL that puts it together again.

    `carried_as`: the DuckDB type. `arrays`: by the suffix of their name. `expression`: SQL over
    the arrays' names, with `{}` for what the suffix stands behind.
    """

    carried_as: str
    arrays: dict[str, Array]
    expression: str


def encode_column(column: ReleasedColumn) -> EncodedColumn:
    """Return the arrays and the SQL that load `column`.

    Raises ValueError for a type that is never released (OPAQUE, INTERVAL).
    """
    if column.type.is_integer:
        return _encode_integers(column.values)
    carried = _carried_as(column.type)
    kind = column.type.kind
    whole = f'TRY_CAST("{{}}v" AS {carried})'
    if carried in ("DOUBLE", "FLOAT"):
        return EncodedColumn(carried, {"v": _floats(column.values)}, whole)
    if kind is Kind.BOOLEAN:
        nulls = _nulls(column.values)
        return EncodedColumn(
            carried, {"v": np.array(column.values, dtype=bool), "n": nulls}, _nullable(whole)
        )
    if kind is Kind.DATE:
        days = np.array(column.values, dtype="datetime64[D]").astype("datetime64[us]")
        return EncodedColumn(carried, {"v": days}, whole)
    if kind is Kind.TIME:  # of times there are no arrays: as moments of one day
        moments = [None if one is None else datetime.combine(date(1970, 1, 1), one) for one in column.values]
        return EncodedColumn(
            carried,
            {"v": np.array(moments, dtype="datetime64[us]")},
            f'CAST(CAST("{{}}v" AS TIMESTAMP) AS {carried})',
        )
    if kind is Kind.TIMESTAMP:
        return EncodedColumn(carried, {"v": np.array(column.values, dtype="datetime64[us]")}, whole)
    return EncodedColumn(carried, {"v": _objects(column.values)}, whole)


def quote(name: str) -> str:
    """Return `name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def parameters_of(column: ReleasedColumn) -> tuple[str, list[Any]]:
    """Return the DuckDB type and the values as parameters: for few rows, faster than arrays.

    Raises ValueError as `encode_column` does.
    """
    values = column.values.tolist() if isinstance(column.values, np.ndarray) else list(column.values)
    carried = _integer_type(values) if column.type.is_integer else _carried_as(column.type)
    if carried in ("DOUBLE", "FLOAT"):
        floats = map(_to_float, values)
        return carried, [value if math.isfinite(value) else None for value in floats]
    if carried == "BIGINT":
        return carried, [None if value is None else int(value) for value in values]
    if carried == "HUGEINT":  # as text: DuckDB 1.4 binds a large negative int by way of a double
        return carried, [None if value is None else str(value) for value in values]
    return carried, values


def _carried_as(declared: SqlType) -> str:
    if declared.kind is Kind.INTERVAL:
        raise ValueError("an interval is never released")
    return engine_type(declared)


def _integer_type(values: Sequence[Any] | Array) -> str:
    present = [value for value in values if value is not None] or [0]
    lowest, highest = min(present), max(present)
    if lowest >= -(2**63) and highest < 2**63:
        return "BIGINT"
    return "HUGEINT" if lowest >= -_WIDEST and highest < _WIDEST else "DOUBLE"


def _encode_integers(values: Sequence[Any] | Array) -> EncodedColumn:
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return EncodedColumn("BIGINT", {"v": values.astype(np.int64, copy=False)}, '"{}v"')
    carried = _integer_type(values)
    if carried == "DOUBLE":
        return EncodedColumn(carried, {"v": _floats(values)}, '"{}v"')
    nulls = _nulls(values)
    plain = [0 if value is None else int(value) for value in values]
    if carried == "BIGINT":
        arrays = {"v": np.array(plain, dtype=np.int64), "n": nulls}
        return EncodedColumn(carried, arrays, _nullable('"{}v"'))
    halves = {
        "h": np.array([value >> 64 for value in plain], dtype=np.int64),
        "v": np.array([value & _LOW_HALF for value in plain], dtype=np.uint64),
        "n": nulls,
    }
    whole = f'CAST("{{}}h" AS HUGEINT) * {_LOW_HALF + 1} + CAST("{{}}v" AS HUGEINT)'
    return EncodedColumn(carried, halves, _nullable(whole))


def _nullable(expression: str) -> str:
    return f'CASE WHEN NOT "{{}}n" THEN {expression} END'


def _nulls(values: Sequence[Any] | Array) -> Array:
    return np.fromiter((value is None for value in values), dtype=bool, count=len(values))


def _objects(values: Sequence[Any] | Array) -> Array:
    if isinstance(values, np.ndarray) and values.dtype == object:
        return values
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values)
    return objects


def _floats(values: Sequence[Any] | Array) -> Array:
    """Return float64 with NaN, which DuckDB reads as NULL, for None and for all that is not finite."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "if":
        floats = values.astype(np.float64)
    else:
        floats = np.fromiter(map(_to_float, values), dtype=np.float64, count=len(values))
    floats[~np.isfinite(floats)] = math.nan
    return floats


def _to_float(value: int | float | Decimal | Fraction | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan


# --- rows of public tables on their way from the owner's engine into the sealed one: arrays, as they came ---


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

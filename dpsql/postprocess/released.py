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
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..relation.types import Kind, SqlType
from .bind import engine_type

__all__ = ["EncodedColumn", "ReleasedColumn", "ReleasedTable", "encode_column", "parameters_of", "quote"]

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

"""Values on their way to Spark and back: parameters, and Arrow's columns as exact Python values and as arrays.

Parameters of a statement as Spark takes them: by name, a list as one text, each text in base64.

House rules:

1. What travels is data, never a part of the statement. Spark itself writes an argument into the statement, as a
   literal that settings may read otherwise (4.3: `escapedStringLiterals`); in base64 there is nothing to read.
2. What is read back (`SparkDialect.parameter`, `SparkDialect.listed`) is exactly what was given: what is not of the
   type that it is cast to is an error, never a NULL.
"""

from __future__ import annotations

import datetime
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["array_of", "bound", "chunks_of", "rows_of"]


# --- parameters of a statement as Spark takes them ----------------------------------------------------------


def bound(parameters: Sequence[object]) -> dict[str, object]:
    """Return positional parameters, the first of which the statement calls :p1, as the arguments of `session.sql`."""
    return {f"p{number}": _carried(value) for number, value in enumerate(parameters, 1)}


def _carried(value: object) -> object:
    """Return a value as it travels: a list as a JSON array of texts and nulls."""
    if isinstance(value, list | tuple):
        return _encoded(json.dumps([None if one is None else _text(one) for one in value]))
    return _encoded(_text(value)) if isinstance(value, str | datetime.date) else value


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _text(value: object) -> str:
    """Return a value as the text that Spark casts back to the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)


# --- Arrow's columns as Spark sends them, as exact Python values and as arrays ------------------------------


_DAY = 86_400_000_000
_MOST_DAYS = (2**63 - 1) // _DAY


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return a batch's rows: numbers without decimals as `int`, others exactly as `Decimal`; what is no date to Python
    as text."""
    if not batch.num_columns:
        return iter(() for _ in range(batch.num_rows))
    return zip(*map(_values, batch.columns), strict=True)


def chunks_of(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of batches in chunks of `size`, the last one shorter; one batch is in memory at a time."""
    rows = chain.from_iterable(map(rows_of, batches))
    chunk: list[tuple[Any, ...]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def array_of(
    columns: Sequence[pa.Array], kind: pa.DataType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Return one column of all batches as an array, and where it is NULL (None: nowhere).

    Integers come with 64 bits, wider numbers as doubles; dates and timestamps in microseconds, NULL where those do not
    count so far. What the array holds at a NULL means nothing.
    """
    column = pa.chunked_array(columns, kind).combine_chunks()
    nulls = np.asarray(column.is_null(), dtype=np.bool_)
    if pa.types.is_date32(kind):
        return _days(column, nulls)
    if pa.types.is_timestamp(kind):
        found = _filled(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), 0).astype("datetime64[us]")
    elif pa.types.is_integer(kind):
        found = _filled(column.cast(pa.int64()), 0)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        found = _filled(column.cast(pa.float64()), 0.0)
    elif pa.types.is_boolean(kind):
        found = _filled(column, False)
    else:
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_pylist()
    return found, nulls if nulls.any() else None


def _filled(column: pa.Array, empty: object) -> npt.NDArray[Any]:
    filled: npt.NDArray[Any] = column.fill_null(empty).to_numpy(zero_copy_only=False)
    return filled


def _days(
    column: pa.Array, nulls: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    days = _filled(column.cast(pa.int32()), 0).astype(np.int64)
    nulls = nulls | (abs(days) > _MOST_DAYS)
    days[nulls] = 0
    return (days * _DAY).astype("datetime64[us]"), nulls if nulls.any() else None


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return _whole(column)
    if pa.types.is_date32(kind):
        return _moments(column, pa.int32(), "D")
    if pa.types.is_timestamp(kind):
        shown = column.cast(pa.timestamp("us", kind.tz))
        return _moments(shown.cast(pa.timestamp("us")), pa.int64(), "us")
    found: list[Any] = column.to_pylist()
    return found


def _whole(column: pa.Array) -> list[Any]:
    """Return decimals without a scale as integers, at once where they all have 64 bits."""
    try:
        found: list[Any] = column.cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid:
        found = [None if value is None else int(value) for value in column.to_pylist()]
    return found


def _moments(column: pa.Array, number: pa.DataType, unit: str) -> list[Any]:
    """Return dates or timestamps; text where Python has none."""
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        counted = zip(column, column.cast(number).to_pylist(), strict=True)
        found = [_moment(one, count, unit) for one, count in counted]
    return found


def _moment(one: pa.Scalar, count: int | None, unit: str) -> Any:
    try:
        return one.as_py()
    except (ValueError, OverflowError):
        return str(np.array(count, dtype=f"datetime64[{unit}]")).replace("T", " ")

"""Values on their way to Postgres and back: exact in both directions, and none that Python cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from ..errors import EngineFailure

__all__ = ["array_of", "read_as_arrays", "read_exactly", "sendable"]

_NUMERIC = psycopg.adapters.types["numeric"].oid
_DATE = psycopg.adapters.types["date"].oid
_MOMENTS = (psycopg.adapters.types["timestamp"].oid, psycopg.adapters.types["timestamptz"].oid)
_FINITE_SIGNS = (0x00, 0x40)
_DAY_ZERO = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1)
_DAYS_BEFORE = 10957  # from 1970-01-01 to 2000-01-01
_DAY = 86_400_000_000
_DAY_ENDS = (-(2**31), 2**31 - 1)
_MOMENT_ENDS = (-(2**63), 2**63 - 1)


def sendable(value: object) -> object:
    """Return a parameter as text, or a list of texts, from which the statement's own CAST reads it exactly.

    A text that Postgres cannot hold equals nothing there and is sent as NULL. Raises EngineFailure for a
    value of another type than str, bool, int, float, Decimal, date, datetime, None, or a list of these.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_text(one) for one in value]
    return _text(value)


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        is_text = "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
        return value if is_text else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal | date):
        return str(value)
    raise EngineFailure(f"refused: a parameter of the type {type(value).__name__}")


# --- rows ----------------------------------------------------------------------------------------------


class _ExactNumber(Loader):
    """NUMERIC: an int where it is shown without decimals, else a Decimal."""

    format = Format.BINARY

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        decimals = psycopg.adapters.get_loader(_NUMERIC, Format.BINARY)
        assert decimals is not None
        self._decimal = decimals(oid, context).load

    def load(self, data: Buffer) -> int | Decimal:
        number: Decimal = self._decimal(data)
        # Two bytes each: the number of digits, the weight of the first, the sign, the decimals shown.
        return int(number) if data[6:8] == b"\0\0" and data[4] in _FINITE_SIGNS else number


class _Day(Loader):
    """A date; text where Python has none."""

    format = Format.BINARY

    def load(self, data: Buffer) -> date | str:
        days = int.from_bytes(data, "big", signed=True)
        try:
            return _DAY_ZERO + timedelta(days)
        except OverflowError:
            if days in _DAY_ENDS:
                return "infinity" if days > 0 else "-infinity"
            return str(np.datetime64(days + _DAYS_BEFORE, "D"))


class _Moment(Loader):
    """A timestamp, in UTC; text where Python has none."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime | str:
        microseconds = int.from_bytes(data, "big", signed=True)
        try:
            return _EPOCH + timedelta(microseconds=microseconds)
        except OverflowError:
            if microseconds in _MOMENT_ENDS:
                return "infinity" if microseconds > 0 else "-infinity"
            return str(np.datetime64(microseconds + _DAYS_BEFORE * _DAY, "us")).replace("T", " ")


def read_exactly(cursor: psycopg.Cursor[Any]) -> None:
    """Have a cursor's binary rows hold ints and Decimals, dates, and text for what is no date to Python."""
    cursor.adapters.register_loader(_NUMERIC, _ExactNumber)
    cursor.adapters.register_loader(_DATE, _Day)
    for oid in _MOMENTS:
        cursor.adapters.register_loader(oid, _Moment)


# --- arrays --------------------------------------------------------------------------------------------


class _Whole(Loader):
    """A date or timestamp as the number that the engine keeps: days or microseconds since 2000."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int.from_bytes(data, "big", signed=True)


def read_as_arrays(cursor: psycopg.Cursor[Any]) -> None:
    """Have a cursor's binary rows hold what `array_of` takes."""
    for oid in (_DATE, *_MOMENTS):
        cursor.adapters.register_loader(oid, _Whole)


_DTYPES: dict[int, Any] = {
    psycopg.adapters.types[name].oid: dtype
    for name, dtype in {
        "int2": np.int64, "int4": np.int64, "int8": np.int64, "bool": np.bool_,
        "float4": np.float64, "float8": np.float64, "numeric": np.float64,
    }.items()
}  # fmt: skip


def array_of(oid: int, values: Sequence[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Return a column as an array, and where it is NULL (None: nowhere).

    A date or timestamp that is infinite, or that microseconds cannot count, is NULL.
    """
    nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
    if oid == _DATE or oid in _MOMENTS:
        return _moments(oid, values, nulls)
    if oid not in _DTYPES:
        found = np.empty(len(values), dtype=object)
        found[:] = values
    else:
        dtype = _DTYPES[oid]
        found = np.array([0 if value is None else value for value in values], dtype=dtype)
    return found, nulls if nulls.any() else None


def _moments(
    oid: int, values: Sequence[Any], nulls: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    unit = _DAY if oid == _DATE else 1
    counts = np.array([0 if value is None else value for value in values], dtype=np.int64)
    most = (2**63 - 1) // unit - (_DAYS_BEFORE * _DAY) // unit
    nulls = nulls | (counts > most) | (counts < -most)
    counts[nulls] = 0
    found = (counts * unit + _DAYS_BEFORE * _DAY).astype("datetime64[us]")
    return found, nulls if nulls.any() else None

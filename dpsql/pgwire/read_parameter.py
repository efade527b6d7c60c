"""A bound parameter's bytes -> its value, in text or in Postgres' binary format."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any

from .events import Format, ParameterError
from .oids import ELEMENTS, TYPES, Interval, Oid
from .read_text import TEXT_READERS
from .write_binary import EPOCH, INTERVAL, read_numeric

# --- parameters in Postgres' binary format ------------------------------------------------------------------


Reader = Callable[[bytes], Any]
"""Raises ValueError or struct.error where the bytes are not of the type, ParameterError where more can be said."""

_ARRAY_HEAD = struct.Struct(">iiI")
_DIMENSION = struct.Struct(">ii")


def _unpack(code: str) -> Reader:
    unpack = struct.Struct(f">{code}").unpack
    return lambda data: unpack(data)[0]


_INT4 = _unpack("i")
_INT8 = _unpack("q")


def _boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError
    return data != b"\0"


def _text(data: bytes) -> str:
    return _decode_text(data)


def _char(data: bytes) -> str:
    if len(data) != 1:
        raise ValueError
    return "" if data == b"\0" else _decode_text(data)


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError
    return _decode_text(data[1:])


def _decode_text(data: bytes) -> str:
    """Return a text. Raises ParameterError: it is not UTF-8, or holds a zero byte."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ParameterError("a text parameter is not UTF-8", sqlstate="22021") from None
    if "\0" in text:
        raise ParameterError("a text parameter holds a zero byte", sqlstate="22021")
    return text


def _date(data: bytes) -> date:
    try:
        return EPOCH.date() + timedelta(days=_INT4(data))
    except OverflowError:
        raise _out_of_range(Oid.DATE) from None


def _time(data: bytes) -> time:
    length = _INT8(data)
    if not 0 <= length < 86_400 * 10**6:
        raise ParameterError(f"a parameter of type {TYPES[Oid.TIME].name} is out of range", sqlstate="22008")
    return (EPOCH + timedelta(microseconds=length)).time()


def _timestamp(data: bytes) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=_INT8(data))
    except OverflowError:
        raise _out_of_range(Oid.TIMESTAMP) from None


def _timestamptz(data: bytes) -> datetime:
    return _timestamp(data).replace(tzinfo=UTC)


def _interval(data: bytes) -> Interval:
    microseconds, days, months = INTERVAL.unpack(data)
    return Interval(months, days, microseconds)


def _out_of_range(oid: Oid) -> ParameterError:
    return ParameterError(
        f"a parameter of type {TYPES[oid].name} is out of range",
        sqlstate="22008",
        hint="Years 1 to 9999 are read.",
    )


def _array(read: Reader, element: int) -> Reader:
    def read_array(data: bytes) -> list[Any]:
        dimensions, _, oid = _ARRAY_HEAD.unpack_from(data)
        if dimensions not in (0, 1) or oid != element:
            raise ParameterError("an array of this shape or element type is not read", sqlstate="0A000")
        if not dimensions:
            if len(data) != _ARRAY_HEAD.size:
                raise ValueError
            return []
        count, _ = _DIMENSION.unpack_from(data, _ARRAY_HEAD.size)
        at = _ARRAY_HEAD.size + _DIMENSION.size
        if not 0 <= 4 * count <= len(data) - at:
            raise ValueError
        values: list[Any] = []
        for _ in range(count):
            length = _INT4(data[at : at + 4])
            at += 4
            if length < -1 or length > len(data) - at:
                raise ValueError
            values.append(None if length < 0 else read(data[at : at + length]))
            at += max(length, 0)
        if at != len(data):
            raise ValueError
        return values

    return read_array


_SCALARS: dict[int, Reader] = {
    Oid.BOOL: _boolean,
    Oid.BYTEA: bytes,
    Oid.INT2: _unpack("h"),
    Oid.INT4: _INT4,
    Oid.INT8: _INT8,
    **dict.fromkeys((Oid.OID, Oid.XID, Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE), _unpack("I")),
    **dict.fromkeys((Oid.REGNAMESPACE, Oid.REGROLE), _unpack("I")),
    **dict.fromkeys((Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON), _text),
    Oid.CHAR: _char,
    Oid.JSONB: _jsonb,
    Oid.FLOAT4: _unpack("f"),
    Oid.FLOAT8: _unpack("d"),
    Oid.NUMERIC: read_numeric,
    Oid.DATE: _date,
    Oid.TIME: _time,
    Oid.TIMESTAMP: _timestamp,
    Oid.TIMESTAMPTZ: _timestamptz,
    Oid.INTERVAL: _interval,
}

BINARY_READERS: MappingProxyType[int, Reader] = MappingProxyType(
    {
        **_SCALARS,
        **{
            oid: _array(_SCALARS[element], element)
            for oid, element in ELEMENTS.items()
            if element in _SCALARS
        },
    }
)
"""A type -> the function that reads its values. The reg… types are read as their OID."""


# --- a bound parameter's bytes -> its value -----------------------------------------------------------------


def read_parameter(oid: int, format: Format, data: bytes | None) -> Any:
    """Return a parameter's value: None, bool, int, float, Decimal, str, bytes, date, datetime, Interval, or a list.

    `oid`: the type that the statement gives the parameter. Raises ParameterError: the bytes are not of the type
    (22P02 in text, 22P03 in binary, 22003, 22007, 22008, 22015, 22021), or it is not read here (0A000).
    """
    if data is None:
        return None
    readers: Mapping[int, Callable[[Any], Any]] = TEXT_READERS if format is Format.TEXT else BINARY_READERS
    reader = readers.get(oid)
    if reader is None:
        raise ParameterError(
            f"a parameter of type {TYPES[oid].name if oid in TYPES else oid} cannot be read",
            sqlstate="0A000",
            hint="Send it as text, and cast it in the statement.",
        )
    if format is Format.BINARY:
        try:
            return reader(data)
        except (ValueError, struct.error):
            message = f"incorrect binary data for a parameter of type {TYPES[oid].name}"
            raise ParameterError(message, sqlstate="22P03") from None
    text = _decode_text(data)
    try:
        return reader(text)
    except ValueError:
        message = f'invalid input syntax for type {TYPES[oid].name}: "{text[:100]}"'
        raise ParameterError(message, sqlstate="22P02") from None

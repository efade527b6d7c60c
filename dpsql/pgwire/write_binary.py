"""Values in Postgres' binary format."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from .oids import ELEMENTS, Interval, Oid

# --- NUMERIC in binary: base-10000 digits, the weight of the first, a sign, and the scale that is shown -----


MAX_WHOLE_DIGITS = 131_072
MAX_SCALE = 16_383
"""The most digits before and after the point that Postgres' NUMERIC holds."""

_HEAD = struct.Struct(">HhHH")
_POSITIVE, _NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY = 0x0000, 0x4000, 0xC000, 0xD000, 0xF000
_INFINITY_SCALE = 32  # as Postgres sends it; without meaning
_SIGNS = MappingProxyType({_POSITIVE: "", _NEGATIVE: "-"})
_SPECIAL = MappingProxyType({_NAN: "NaN", _INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"})


def _write_numeric(value: Decimal | int) -> bytes:
    """Return the bytes of a number. Raises ValueError: it has more digits than NUMERIC can hold."""
    number = Decimal(value) if isinstance(value, int) else value
    if number.is_nan():
        return _HEAD.pack(0, 0, _NAN, 0)
    if number.is_infinite():
        return _HEAD.pack(0, 0, _INFINITY if number > 0 else _MINUS_INFINITY, _INFINITY_SCALE)
    sign, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    if scale > MAX_SCALE or number.adjusted() >= MAX_WHOLE_DIGITS:
        raise ValueError("too many digits")
    if not number:
        return _HEAD.pack(0, 0, _POSITIVE, scale)
    text = "".join(map(str, digits)) + "0" * (max(int(exponent), 0) + -scale % 4)
    text = "0" * (-len(text) % 4) + text
    weight = (len(text) - scale - -scale % 4) // 4 - 1
    groups = [int(text[at : at + 4]) for at in range(0, len(text), 4)]
    while not groups[0]:
        del groups[0]
        weight -= 1
    while not groups[-1]:
        del groups[-1]
    head = _HEAD.pack(len(groups), weight, _NEGATIVE if sign else _POSITIVE, scale)
    return head + struct.pack(f">{len(groups)}H", *groups)


def read_numeric(data: bytes) -> Decimal:
    """Return the number. Raises ValueError: the bytes are not one."""
    if len(data) < _HEAD.size:
        raise ValueError("too short")
    count, weight, sign, scale = _HEAD.unpack_from(data)
    if len(data) != _HEAD.size + 2 * count:
        raise ValueError("the digits are not as many as announced")
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    if sign not in _SIGNS or scale > MAX_SCALE:
        raise ValueError("no such sign or scale")
    groups = struct.unpack_from(f">{count}H", data, _HEAD.size)
    if any(group >= 10_000 for group in groups):
        raise ValueError("a digit beyond 9999")
    text = "".join([f"{group:04d}" for group in groups]) or "0"
    exponent = 4 * (weight + 1 - count) if groups else 0
    surplus = -scale - exponent
    if surplus > 0:
        text = text[:-surplus] or "0"
    elif surplus < 0:
        text += "0" * -surplus
    number = Decimal(f"{_SIGNS[sign]}{text}E{-scale}")
    return number if number else abs(number)


# --- values in Postgres' binary format ----------------------------------------------------------------------


Writer = Callable[[Any], bytes]
"""Raises TypeError, ValueError, AttributeError, OverflowError or struct.error for a value that is not of the type."""

EPOCH = datetime(2000, 1, 1)
"""The day from which Postgres counts."""

INTERVAL = struct.Struct(">qii")
"""Microseconds, days, months."""

_EPOCH_DAY = date(2000, 1, 1).toordinal()
_INT2 = struct.Struct(">h").pack
_INT4 = struct.Struct(">i").pack
_INT8 = struct.Struct(">q").pack
_OID = struct.Struct(">I").pack
_DIMENSION = struct.Struct(">iiIii")
_MICROSECOND = timedelta(microseconds=1)


def _boolean(value: Any) -> bytes:
    if value is True:
        return b"\1"
    if value is False:
        return b"\0"
    raise TypeError("not a boolean")


def _text(value: Any) -> bytes:
    raw = str.encode(value)
    if b"\0" in raw:
        raise ValueError("a zero byte in a string")
    return raw


def _char(value: Any) -> bytes:
    raw = _text(value) or b"\0"
    if len(raw) != 1:
        raise ValueError("more than one byte")
    return raw


def _jsonb(value: Any) -> bytes:
    return b"\1" + _text(value)


def _date(value: Any) -> bytes:
    if isinstance(value, datetime):
        raise TypeError("not a date")
    return _INT4(value.toordinal() - _EPOCH_DAY)


def _time(value: Any) -> bytes:
    if time.utcoffset(value) is not None:
        raise TypeError("a time zone")
    return _timestamp(datetime.combine(EPOCH, value))


def _timestamp(value: Any) -> bytes:
    return _INT8((value - EPOCH) // _MICROSECOND)


def _timestamptz(value: Any) -> bytes:
    if value.utcoffset() is None:
        raise TypeError("no time zone")
    return _timestamp(value.astimezone(UTC).replace(tzinfo=None))


def _interval(value: Any) -> bytes:
    if isinstance(value, timedelta):
        value = Interval.of(value)
    return INTERVAL.pack(value.microseconds, value.days, value.months)


def _object_name(value: Any) -> bytes:
    return _OID(value.oid)


def _void(value: Any) -> bytes:
    return b""


def _array(write: Writer, element: Oid, *, first_index: int) -> Writer:
    def write_array(values: Any) -> bytes:
        written = [None if value is None else write(value) for value in values]
        if not written and first_index == 1:
            return struct.pack(">iiI", 0, 0, element)
        return _DIMENSION.pack(1, None in written, element, len(written), first_index) + b"".join(
            [b"\xff\xff\xff\xff" if value is None else _INT4(len(value)) + value for value in written]
        )

    return write_array


_SCALARS: dict[int, Writer] = {
    Oid.BOOL: _boolean,
    Oid.BYTEA: bytes,
    Oid.INT2: _INT2,
    Oid.INT4: _INT4,
    Oid.INT8: _INT8,
    Oid.OID: _OID,
    Oid.XID: _OID,
    **dict.fromkeys(
        (Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.PG_NODE_TREE),
        _text,
    ),
    **dict.fromkeys((Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE, Oid.REGNAMESPACE, Oid.REGROLE), _object_name),
    Oid.CHAR: _char,
    Oid.JSONB: _jsonb,
    Oid.FLOAT4: struct.Struct(">f").pack,
    Oid.FLOAT8: struct.Struct(">d").pack,
    Oid.NUMERIC: _write_numeric,
    Oid.DATE: _date,
    Oid.TIME: _time,
    Oid.TIMESTAMP: _timestamp,
    Oid.TIMESTAMPTZ: _timestamptz,
    Oid.INTERVAL: _interval,
    Oid.VOID: _void,
}

BINARY_WRITERS: MappingProxyType[int, Writer] = MappingProxyType(
    {
        **_SCALARS,
        **{
            oid: _array(_SCALARS[element], element, first_index=1)
            for oid, element in ELEMENTS.items()
            if element in _SCALARS
        },
        Oid.INT2VECTOR: _array(_INT2, Oid.INT2, first_index=0),
        Oid.OIDVECTOR: _array(_OID, Oid.OID, first_index=0),
    }
)
"""A type -> the function that writes its values. `aclitem` has no binary format in Postgres either."""

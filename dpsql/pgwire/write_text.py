"""Values as text, letter for letter as Postgres writes them (DateStyle ISO, IntervalStyle postgres).

One exception: where a float has two shortest texts, ours is the nearer or shorter one (1e+23, and not Postgres'
9.999999999999999e+22); both are the same float.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from .oids import ELEMENTS, Interval, Oid

Writer = Callable[[Any], str]
"""Raises TypeError, ValueError, OverflowError or struct.error for a value that is not of the type."""

_FLOAT4 = struct.Struct(">f")
_SMALLEST_NORMAL = 2.0**-126
_NEEDS_QUOTES = re.compile(r'[{}",\\ \t\n\r\v\f]|^$|^null$', re.IGNORECASE)


def _boolean(value: Any) -> str:
    if value is True:
        return "t"
    if value is False:
        return "f"
    raise TypeError("not a boolean")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    if "\0" in value:
        raise ValueError("a zero byte in a string")
    return value


def _bytea(value: Any) -> str:
    return "\\x" + bytes.hex(value)


def _float8(value: Any) -> str:
    if -1e15 < value < 1e15:
        text = repr(float(value))
        return text[:-2] if text.endswith(".0") else text
    return _special(value) or _scientific(repr(float(value)), 15)


def _float4(value: Any) -> str:
    if special := _special(value):
        return special
    (single,) = _FLOAT4.unpack(_FLOAT4.pack(value))
    for digits in range(6 if abs(single) >= _SMALLEST_NORMAL else 1, 10):
        text = f"{single:.{digits}g}"
        if _FLOAT4.pack(float(text)) == _FLOAT4.pack(single):
            break
    return _scientific(text, 6)


def _special(value: Any) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _scientific(text: str, from_exponent: int) -> str:
    """Return the number in Postgres' notation: an exponent below 1e-4 and from 10^`from_exponent` on."""
    number = Decimal(text)
    sign = "-" if number.is_signed() else ""
    if not number:
        return f"{sign}0"
    number = number.normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    exponent = number.adjusted()
    if -4 <= exponent < from_exponent:
        return f"{number:f}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent:+03d}"


def _numeric(value: Any) -> str:
    if isinstance(value, int):
        return int.__repr__(value)
    text = Decimal.__str__(value)
    if "E" in text:
        text = f"{value:f}"
    if text.startswith("-") and not value:
        return text[1:]
    return "NaN" if text.endswith("NaN") else text


def _date(value: Any) -> str:
    if isinstance(value, datetime):
        raise TypeError("not a date")
    return date.isoformat(value)


def _time(value: Any) -> str:
    if value.tzinfo is not None:
        raise TypeError("a time zone")
    text = time.isoformat(value)
    return text.rstrip("0") if value.microsecond else text


def _timestamp(value: Any) -> str:
    if value.tzinfo is not None:
        raise TypeError("a time zone")
    text = datetime.isoformat(value, " ")
    return text.rstrip("0") if value.microsecond else text


def _timestamptz(value: Any) -> str:
    """Write a timestamp in its own zone: the caller has moved it to the session's."""
    offset = value.utcoffset()
    if offset is None:
        raise TypeError("no time zone")
    seconds = offset // timedelta(seconds=1)
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    parts = [f"{hour:02d}"] + [
        f"{part:02d}" for part in (minute, second)[: 2 if second else 1 if minute else 0]
    ]
    return _timestamp(value.replace(tzinfo=None)) + ("-" if seconds < 0 else "+") + ":".join(parts)


def _interval(value: Any) -> str:
    if isinstance(value, timedelta):
        value = Interval.of(value)
    years = abs(value.months) // 12 * (1 if value.months >= 0 else -1)
    parts: list[str] = []
    negative_before = False
    for number, unit in ((years, "year"), (value.months - years * 12, "mon"), (value.days, "day")):
        if number:
            plus = "+" if negative_before and number > 0 else ""
            parts.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            negative_before = number < 0
    if value.microseconds or not parts:
        seconds, micro = divmod(abs(value.microseconds), 10**6)
        sign = "-" if value.microseconds < 0 else "+" if negative_before else ""
        fraction = f".{micro:06d}".rstrip("0") if micro else ""
        parts.append(f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}")
    return " ".join(parts)


def _object_name(value: Any) -> str:
    return _text(value.name)


def _void(value: Any) -> str:
    return ""


def _array(write: Writer) -> Writer:
    def write_array(values: Any) -> str:
        return "{" + ",".join(["NULL" if value is None else _quoted(write(value)) for value in values]) + "}"

    return write_array


def _quoted(text: str) -> str:
    if _NEEDS_QUOTES.search(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _vector(values: Any) -> str:
    return " ".join(map(int.__repr__, values))


_integer: Writer = int.__repr__

_SCALARS: dict[int, Writer] = {
    Oid.BOOL: _boolean,
    Oid.BYTEA: _bytea,
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8, Oid.OID, Oid.XID), _integer),
    **dict.fromkeys(
        (Oid.CHAR, Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.JSONB,
         Oid.PG_NODE_TREE, Oid.ACLITEM),
        _text,
    ),
    **dict.fromkeys(
        (Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE, Oid.REGNAMESPACE, Oid.REGROLE), _object_name
    ),
    Oid.FLOAT4: _float4,
    Oid.FLOAT8: _float8,
    Oid.NUMERIC: _numeric,
    Oid.DATE: _date,
    Oid.TIME: _time,
    Oid.TIMESTAMP: _timestamp,
    Oid.TIMESTAMPTZ: _timestamptz,
    Oid.INTERVAL: _interval,
    Oid.VOID: _void,
}  # fmt: skip

TEXT_WRITERS: MappingProxyType[int, Writer] = MappingProxyType(
    {
        **_SCALARS,
        **{oid: _array(_SCALARS[element]) for oid, element in ELEMENTS.items()},
        Oid.INT2VECTOR: _vector,
        Oid.OIDVECTOR: _vector,
    }
)
"""A type -> the function that writes its values."""

PLAIN_TEXT: frozenset[int] = frozenset(
    {Oid.BOOL, Oid.INT2, Oid.INT4, Oid.INT8, Oid.OID, Oid.XID, Oid.FLOAT4, Oid.FLOAT8, Oid.NUMERIC}
)
"""Types whose text never holds what a copy format must escape: letters, digits, signs and a point."""

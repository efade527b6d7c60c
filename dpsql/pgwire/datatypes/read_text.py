"""Parameters in text, as Postgres reads them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from ..errors import ParameterError
from .numeric import MAX_SCALE, MAX_WHOLE_DIGITS
from .oids import ELEMENTS, TYPES, Oid
from .read_text_array import split_array
from .read_text_dates import read_date, read_timestamp, read_timestamptz
from .read_text_interval import read_interval

__all__ = ["TEXT_READERS"]

Reader = Callable[[str], Any]
"""Raises ValueError where the text is not of the type, ParameterError where more can be said."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_MAX_LENGTH = 200_000
_SPACES = " \t\n\r\f\v"
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_ESCAPED = re.compile(r"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*+", re.DOTALL)
_ESCAPE = re.compile(rb"\\(\\|[0-7]{3})")
_FLOAT4 = struct.Struct(">f")


def _boolean(text: str) -> bool:
    word = text.strip(_SPACES).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError


def _integer(oid: Oid, low: int, high: int) -> Reader:
    longest = len(str(high))

    def read(text: str) -> int:
        word = text.strip(_SPACES)
        if not _INTEGER.fullmatch(word):
            raise ValueError
        digits = word.lstrip("+-").lstrip("0")
        value = int(word[: word[0] in "+-"] + (digits or "0")) if len(digits) <= longest else high + 1
        if not low <= value <= high:
            raise _out_of_range(oid, text)
        return value

    return read


def _numeric(text: str) -> Decimal:
    word = text.strip(_SPACES)
    if special := _special(word):
        return Decimal(special)
    if not _NUMBER.fullmatch(word):
        raise ValueError
    if len(word) > _MAX_LENGTH:
        raise _out_of_range(Oid.NUMERIC, text)
    try:
        number = Decimal(word)
    except ArithmeticError:
        raise _out_of_range(Oid.NUMERIC, text) from None
    _, _, exponent = number.as_tuple()
    if (
        isinstance(exponent, str)
        or -exponent > MAX_SCALE
        or exponent + len(number.as_tuple().digits) > MAX_WHOLE_DIGITS
    ):
        raise _out_of_range(Oid.NUMERIC, text)
    return number if number else abs(number)


def _float8(text: str) -> float:
    return _float(text, Oid.FLOAT8)


def _float4(text: str) -> float:
    value = _float(text, Oid.FLOAT4)
    try:
        (single,) = _FLOAT4.unpack(_FLOAT4.pack(value))
    except OverflowError:
        raise _out_of_range(Oid.FLOAT4, text) from None
    if value and not single:
        raise _out_of_range(Oid.FLOAT4, text)
    return float(single)


def _float(text: str, oid: Oid) -> float:
    word = text.strip(_SPACES)
    if special := _special(word):
        return float(special)
    if not _NUMBER.fullmatch(word):
        raise ValueError
    if len(word) > _MAX_LENGTH:
        raise _out_of_range(oid, text)
    value = float(word)
    mantissa = re.split("[eE]", word, maxsplit=1)[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("+-0.")):
        raise _out_of_range(oid, text)
    return value


def _special(word: str) -> str | None:
    if word.lower() == "nan":
        return "NaN"
    match = _INFINITY.fullmatch(word)
    return f"{match[1]}Infinity" if match else None


def _bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    if not _ESCAPED.fullmatch(text):
        raise ValueError
    return _ESCAPE.sub(lambda match: b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)]), text.encode())


def _text(text: str) -> str:
    return text


def _out_of_range(oid: Oid, text: str) -> ParameterError:
    return ParameterError(
        f'value "{text[:100]}" is out of range for type {TYPES[oid].name}', sqlstate="22003"
    )


def _array(read: Reader) -> Reader:
    return lambda text: [None if part is None else read(part) for part in split_array(text)]


def _vector(read: Reader) -> Reader:
    return lambda text: [read(part) for part in text.split()]


_OID = _integer(Oid.OID, 0, 2**32 - 1)

_SCALARS: dict[int, Reader] = {
    Oid.BOOL: _boolean,
    Oid.BYTEA: _bytea,
    Oid.INT2: _integer(Oid.INT2, -(2**15), 2**15 - 1),
    Oid.INT4: _integer(Oid.INT4, -(2**31), 2**31 - 1),
    Oid.INT8: _integer(Oid.INT8, -(2**63), 2**63 - 1),
    Oid.OID: _OID,
    Oid.XID: _OID,
    **dict.fromkeys(
        (Oid.CHAR, Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.JSONB), _text
    ),
    **dict.fromkeys((Oid.REGPROC, Oid.REGCLASS, Oid.REGTYPE, Oid.REGNAMESPACE, Oid.REGROLE), _text),
    Oid.FLOAT4: _float4,
    Oid.FLOAT8: _float8,
    Oid.NUMERIC: _numeric,
    Oid.DATE: read_date,
    Oid.TIMESTAMP: read_timestamp,
    Oid.TIMESTAMPTZ: read_timestamptz,
    Oid.INTERVAL: read_interval,
}

TEXT_READERS: MappingProxyType[int, Reader] = MappingProxyType(
    {
        **_SCALARS,
        **{oid: _array(_SCALARS[element]) for oid, element in ELEMENTS.items() if element in _SCALARS},
        Oid.INT2VECTOR: _vector(_SCALARS[Oid.INT2]),
        Oid.OIDVECTOR: _vector(_OID),
    }
)
"""A type -> the function that reads its values. The reg… types are read as the name or number that was written."""

"""NUMERIC in binary: base-10000 digits, the weight of the first, a sign, and the scale that is shown."""

from __future__ import annotations

import struct
from decimal import Decimal
from types import MappingProxyType

__all__ = ["MAX_SCALE", "MAX_WHOLE_DIGITS", "read_numeric", "write_numeric"]

MAX_WHOLE_DIGITS = 131_072
MAX_SCALE = 16_383
"""The most digits before and after the point that Postgres' NUMERIC holds."""

_HEAD = struct.Struct(">HhHH")
_POSITIVE, _NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY = 0x0000, 0x4000, 0xC000, 0xD000, 0xF000
_INFINITY_SCALE = 32  # as Postgres sends it; without meaning
_SIGNS = MappingProxyType({_POSITIVE: "", _NEGATIVE: "-"})
_SPECIAL = MappingProxyType({_NAN: "NaN", _INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"})


def write_numeric(value: Decimal | int) -> bytes:
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

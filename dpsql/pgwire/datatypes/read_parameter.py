"""A bound parameter's bytes -> its value."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ParameterError
from ..events import Format
from .oids import TYPES
from .read_binary import BINARY_READERS, decode_text
from .read_text import TEXT_READERS

__all__ = ["read_parameter"]


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
    text = decode_text(data)
    try:
        return reader(text)
    except ValueError:
        message = f'invalid input syntax for type {TYPES[oid].name}: "{text[:100]}"'
        raise ParameterError(message, sqlstate="22P02") from None

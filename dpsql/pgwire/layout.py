"""The pieces that the server's messages are made of."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import LocalProtocolError

__all__ = ["NULL", "count", "length", "message", "string", "values"]

NULL = b"\xff\xff\xff\xff"
"""The length word of a NULL."""

_MAX_COUNT = 2**16 - 1
_MAX_LENGTH = 2**31 - 1


def length(data: bytes, *, own: int = 0) -> bytes:
    """Return the length word of `data`; `own`: what the word counts of itself."""
    total = len(data) + own
    if total > _MAX_LENGTH:
        raise LocalProtocolError("More than 2 GiB cannot be sent in one message.")
    return total.to_bytes(4, "big")


def message(tag: bytes, body: bytes) -> bytes:
    """Return a message."""
    return tag + length(body, own=4) + body


def string(text: str) -> bytes:
    """Return a string with its zero byte."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("A string to be sent is not Unicode text.") from None
    if b"\0" in raw:
        raise LocalProtocolError("A string to be sent holds a zero byte.")
    return raw + b"\0"


def count(things: Sequence[object]) -> bytes:
    """Return the count of columns or parameters."""
    if len(things) > _MAX_COUNT:
        raise LocalProtocolError(f"More than {_MAX_COUNT} columns or parameters cannot be sent.")
    return len(things).to_bytes(2, "big")


def values(row: Sequence[bytes | None]) -> bytes:
    """Return a row's values, counted; None is NULL."""
    return count(row) + b"".join([NULL if value is None else length(value) + value for value in row])

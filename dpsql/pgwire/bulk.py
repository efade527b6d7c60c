"""Many rows at once -> messages, by numpy: the values of a column side by side, then all into place at once.

House rules:

1. It pays from some dozens of rows on; callers write fewer one by one. The bytes are the same.
2. A fast way either knows all values of a chunk to be of its kind, or returns None: then the type's own writer has
   the word, for each value, and for the error.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .datatypes.oids import Oid
from .errors import LocalProtocolError

__all__ = [
    "Field", "Fixed", "Texts", "bulk_binary", "bulk_text", "lines", "messages", "of_bytes", "of_texts",
    "with_nulls",
]  # fmt: skip

Array = npt.NDArray[Any]

_MAX_MESSAGE = 2**31 - 1
_HEAVY = 256
"""Mean bytes of a value from which it is copied by itself: an index for every byte would take too much memory."""
_FIXED_NOTATION = 1e15
_SAMPLE = 64
"""Where few of so many doubles are distinct (ratios of small counts), each is printed once: printing is slow."""
_COMMA, _LEAST_SIGN = ord(","), ord("-")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A column of values of one size, none of them NULL; the array is in network order."""

    values: Array

    @property
    def sizes(self) -> int:
        return self.values.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Texts:
    """A column's bytes, one value after the other, and the size of each; a NULL is empty, and marked."""

    data: Array
    sizes: Array
    nulls: Array | None = None


Field = Fixed | Texts


class _Spread:
    """The bytes of many rows, into which pieces are put from left to right."""

    def __init__(self, sizes: Array) -> None:
        """`sizes`: the bytes of each row."""
        ends = np.cumsum(sizes)
        self._at = ends - sizes
        self._out = np.empty(int(ends[-1]), dtype=np.uint8)

    def put(self, values: Array) -> None:
        """Put into each row its own value, or the one that there is."""
        width = values.dtype.itemsize
        # Every place of the bytes as the start of a value: rows begin anywhere.
        places = np.ndarray((len(self._out) - width + 1,), values.dtype, self._out, strides=(1,))
        places[self._at] = values
        self._at = self._at + width

    def put_field(self, field: Field) -> None:
        """Put a column's values into the rows."""
        if isinstance(field, Fixed):
            self.put(field.values)
            return
        begins = np.cumsum(field.sizes) - field.sizes
        if len(field.data) < _HEAVY * len(field.sizes):
            place = np.repeat(self._at - begins, field.sizes)
            place += np.arange(len(field.data))
            self._out[place] = field.data
        else:
            for at, begin, size in zip(self._at.tolist(), begins.tolist(), field.sizes.tolist(), strict=True):
                self._out[at : at + size] = field.data[begin : begin + size]
        self._at = self._at + field.sizes

    def bytes(self) -> bytes:
        """Return all, once every piece is in its place."""
        return self._out.tobytes()


def messages(tag: bytes, count: bytes, fields: Sequence[Field], size: int) -> bytes:
    """Return `size` messages of a tag, a count and the fields, each with its length word.

    Raises LocalProtocolError: a message would be too long.
    """
    spread = _begun(tag, size, 2 + 4 * len(fields), fields)
    spread.put(np.frombuffer(count, dtype=">u2"))
    for field in fields:
        lengths = np.empty(size, dtype=">i4")
        lengths[:] = field.sizes
        if isinstance(field, Texts) and field.nulls is not None:
            lengths[field.nulls] = -1
        spread.put(lengths)
        spread.put_field(field)
    return spread.bytes()


def lines(tag: bytes, delimiter: str, fields: Sequence[Field], size: int) -> bytes:
    """Return `size` messages of a tag and a line: the fields with a delimiter between. Raises as `messages`."""
    spread = _begun(tag, size, len(fields), fields)
    ends = [delimiter] * (len(fields) - 1) + ["\n"]
    for field, end in zip(fields, ends, strict=True):
        spread.put_field(field)
        spread.put(np.frombuffer(end.encode("ascii"), dtype=np.uint8))
    return spread.bytes()


def _begun(tag: bytes, size: int, more: int, fields: Sequence[Field]) -> _Spread:
    """Return messages with tag and length word; `more`: bytes of each that are of no field's value."""
    lengths = np.full(size, 4 + more, dtype=np.int64)
    for field in fields:
        lengths += field.sizes
    if int(lengths.max()) > _MAX_MESSAGE:
        raise LocalProtocolError("More than 2 GiB cannot be sent in one message.")
    spread = _Spread(lengths + 1)
    spread.put(np.frombuffer(tag, dtype=np.uint8))
    spread.put(lengths.astype(">i4"))
    return spread


def of_texts(texts: Sequence[Any]) -> Texts | None:
    """Return strings as UTF-8; None where one is no string, no Unicode or has a zero byte, or for long ones."""
    try:
        joined = ("\0".join(texts) + "\0").encode()
    except (TypeError, UnicodeEncodeError):
        return None
    if len(joined) > _HEAVY * len(texts):
        return None
    data = np.frombuffer(joined, dtype=np.uint8)
    is_end = data == 0
    ends = np.flatnonzero(is_end)
    if len(ends) != len(texts):
        return None
    return Texts(data[~is_end], np.diff(ends, prepend=-1) - 1)


def of_bytes(values: Sequence[bytes | None]) -> Texts:
    """Return what a column's writer made, with its NULLs."""
    present = [value or b"" for value in values]
    sizes = np.fromiter(map(len, present), dtype=np.int64, count=len(present))
    nulls = np.fromiter((value is None for value in values), dtype=bool, count=len(present))
    return Texts(np.frombuffer(b"".join(present), dtype=np.uint8), sizes, nulls if nulls.any() else None)


def with_nulls(write: Callable[[Sequence[Any]], Field | None], values: Sequence[Any]) -> Field | None:
    """Return what a fast way makes of the values that are not NULL, with the NULLs between them."""
    nulls = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    field = write([value for value in values if value is not None]) if nulls.any() else None
    if field is None:
        return None
    sizes = np.zeros(len(values), dtype=np.int64)
    sizes[~nulls] = field.sizes
    return Texts(field.values.view(np.uint8) if isinstance(field, Fixed) else field.data, sizes, nulls)


def bulk_text(oid: int) -> Callable[[Sequence[Any]], Texts | None]:
    """Return the fast way to write a type's values as text; what it returns is None for those it does not know."""
    return _TEXT.get(oid, _unknown)


def bulk_binary(oid: int) -> Callable[[Sequence[Any]], Field | None]:
    """Return the fast way to write a type's values in binary; None as for `bulk_text`."""
    return _BINARY.get(oid, _unknown)


def _unknown(values: Sequence[Any]) -> None:
    return None


def _numbers(code: str, values: Sequence[Any]) -> Array | None:
    """Return numbers as an array of a type code's type; None where one is no such number, or too large for it."""
    try:
        return np.frombuffer(array(code, values), dtype=np.dtype(code))
    except (TypeError, ValueError, OverflowError):
        return None


def _integers(values: Sequence[Any]) -> Texts | None:
    numbers = _numbers("q", values)
    return None if numbers is None else _printed(repr(numbers.tolist()))


def _floats(values: Sequence[Any]) -> Texts | None:
    """Return doubles below the numbers that have an exponent, which Python writes as Postgres does but for ".0"."""
    numbers = _numbers("d", values)
    if numbers is None or not bool((np.abs(numbers) < _FIXED_NOTATION).all()):
        return None
    if len(set(numbers[:_SAMPLE].tolist())) > _SAMPLE // 2:
        return _printed(repr(numbers.tolist()), point_zero=True)
    bits = numbers.view(np.int64).tolist()  # 0.0 is not -0.0
    distinct = dict(zip(bits, numbers.tolist(), strict=True))
    texts = {key: repr(number) for key, number in distinct.items()}
    return _printed(f"[{', '.join(map(texts.__getitem__, bits))}]", point_zero=True)


def _printed(shown: str, *, point_zero: bool = False) -> Texts:
    """Return a list's values from its `repr`: digits, signs, points and exponents are above the comma."""
    text = f"{shown[1:-1]}, "
    if point_zero:
        text = text.replace(".0, ", ", ")
    data = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return Texts(data[data >= _LEAST_SIGN], np.diff(np.flatnonzero(data == _COMMA), prepend=-2) - 2)


def _fixed(code: str) -> Callable[[Sequence[Any]], Field | None]:
    def write(values: Sequence[Any]) -> Field | None:
        numbers = _numbers(code, values)
        return None if numbers is None else Fixed(numbers.astype(numbers.dtype.newbyteorder(">")))

    return write


_STRINGS = (Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.PG_NODE_TREE)

_TEXT: dict[int, Callable[[Sequence[Any]], Texts | None]] = {
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8, Oid.OID, Oid.XID), _integers),
    Oid.FLOAT8: _floats,
    **dict.fromkeys(_STRINGS, of_texts),
}

_BINARY: dict[int, Callable[[Sequence[Any]], Field | None]] = {
    Oid.INT2: _fixed("h"),
    Oid.INT4: _fixed("i"),
    Oid.INT8: _fixed("q"),
    Oid.FLOAT8: _fixed("d"),
    **dict.fromkeys(_STRINGS, of_texts),
}

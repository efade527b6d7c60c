"""Values as they are written, in text and in binary; columns of them, NULL stays None; rows -> DataRow messages.

Many rows at once -> messages, by numpy: the values of a column side by side, then all into place at once.

House rules:

1. It pays from some dozens of rows on; callers write fewer one by one. The bytes are the same.
2. A fast way either knows all values of a chunk to be of its kind, or returns None: then the type's own writer has
   the word, for each value, and for the error.

One message a row is what clients want (psycopg reads a row from each), with two exceptions of Postgres' own that
they rely on as well: a binary copy's header comes in one message with the first row, and its trailer alone.

As text a value is written letter for letter as by Postgres (DateStyle ISO, IntervalStyle postgres), with one
exception: where a float has two shortest texts, ours is the nearer or shorter one (1e+23, and not Postgres'
9.999999999999999e+22); both are the same float.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain, repeat
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .messages import (
    NULL,
    CopyRows,
    DataRows,
    FieldDescription,
    Format,
    LocalProtocolError,
    count,
    length,
    message,
)
from .oids import ELEMENTS, TYPES, Interval, Oid
from .write_binary import BINARY_WRITERS

# --- values as text, letter for letter as Postgres writes them --------------------------------------------


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


# --- many rows at once -> messages, by numpy ----------------------------------------------------------------


Array = npt.NDArray[Any]

_MAX_MESSAGE = 2**31 - 1
_WIDEST = 256
"""Bytes of a value up to which there is room for the longest one of its column in every row."""
_FIXED_NOTATION = 1e15
_SAMPLE = 64
"""Where few of so many doubles are distinct (ratios of small counts), each is printed once: printing is slow."""
_COMMA, _LEAST_SIGN = ord(","), ord("-")
_GROUP, _BASE = 4, 10**4
"""Digits that are printed together, of a number below the base."""
_POWERS = np.array([10**power for power in range(1, 20)], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Texts:
    """Values of a column as they are written: where each begins in some bytes, and its size; NULLs are marked.

    A NULL's size is 0. Strings of a column are UTF-8 without a zero byte; values may share bytes.
    """

    data: Array
    begins: Array
    sizes: Array
    nulls: Array | None = None

    @classmethod
    def ending(cls, data: bytes, ends: Array, nulls: Array | None = None) -> Texts:
        """Return values one after the other, and a byte after each, where it ends."""
        begins = np.concatenate(([0], ends[:-1] + 1))
        return cls(np.frombuffer(data, dtype=np.uint8), begins, ends - begins, nulls)

    def slices(self) -> list[bytes]:
        """Return the bytes of each value."""
        data, ends = self.data.tobytes(), self.begins + self.sizes
        return [data[begin:end] for begin, end in zip(self.begins.tolist(), ends.tolist(), strict=True)]

    def replaced(self, null: bytes) -> Texts:
        """Return the values with other bytes for NULL."""
        if self.nulls is None:
            return self
        data = np.concatenate((self.data, np.frombuffer(null, dtype=np.uint8)))
        begins = np.where(self.nulls, len(self.data), self.begins)
        return Texts(data, begins, np.where(self.nulls, len(null), self.sizes))


Values = Sequence[Any] | Array | Texts
"""A column's values: one by one, as integers, doubles or booleans of an array (masked where NULL), or written."""
_Field = Array | Texts
"""A column as it is written; an array has values of one size, none of them NULL, in network order."""
_Way = Callable[[Values], _Field | None]
"""A fast way to write values, none of them NULL; what it returns is None for those it does not know."""


def _assembled(pieces: Sequence[bytes | _Field], size: int) -> bytes:
    """Return `size` rows, each of its values of the pieces in order; bytes are the same in every row.

    The rows are made in a table, where a value has the room of the longest, and what is not used is then left out.
    """
    fields = [np.frombuffer(one, dtype=f"V{len(one)}") if isinstance(one, bytes) else one for one in pieces]
    widths = [max(1, int(one.sizes.max())) if isinstance(one, Texts) else one.itemsize for one in fields]
    if max(widths) > _WIDEST:
        return _sliced(fields, size)
    table = np.empty((size, sum(widths)), dtype=np.uint8)
    is_used = np.ones(table.shape, dtype=np.bool_)
    at = 0
    for field, width in zip(fields, widths, strict=True):
        if isinstance(field, Texts):
            _places(table, at, f"V{width}")[:] = _cells(field, width)
            is_before = np.tri(width + 1, width, -1, dtype=np.bool_).view(f"V{width}").ravel()
            _places(is_used, at, f"V{width}")[:] = is_before[field.sizes]
        else:
            _places(table, at, field.dtype)[:] = field
        at += width
    return table[is_used].tobytes()


def _places(table: Array, at: int, kind: npt.DTypeLike) -> Array:
    """Return the values of a type that stand `at` so many bytes in each row of a table of bytes."""
    return np.ndarray((len(table),), kind, table, at, strides=(table.shape[1],))


def _cells(texts: Texts, width: int) -> Array:
    """Return so many bytes from where each value begins: also what stands behind it."""
    low = int(texts.begins.min())
    end = int(texts.begins.max()) + width
    data = texts.data[low:end]
    if len(data) < end - low:
        data = np.concatenate((data, np.zeros(end - low - len(data), dtype=np.uint8)))
    # Every place of the bytes as the start of a value: they begin anywhere.
    starts: Array = np.ndarray((end - low - width + 1,), f"V{width}", data, strides=(1,))
    cells: Array = starts[texts.begins - low]
    return cells


def _sliced(fields: Sequence[_Field], size: int) -> bytes:
    """Return what `_assembled` does, of values that are copied one by one: for long ones."""
    columns = list[list[bytes]]()
    for field in fields:
        if isinstance(field, Texts):
            columns.append(field.slices())
            continue
        data, width = np.broadcast_to(field, size).tobytes(), field.itemsize
        columns.append([data[at : at + width] for at in range(0, len(data), width)])
    return b"".join(chain.from_iterable(zip(*columns, strict=True)))


def messages(tag: bytes, count: bytes, fields: Sequence[_Field], size: int) -> bytes:
    """Return `size` messages of a tag, a count and the fields, each with its length word.

    Raises LocalProtocolError: a message would be too long.
    """
    pieces: list[bytes | _Field] = [count]
    for field in fields:
        lengths = np.empty(size, dtype=">i4")
        lengths[:] = field.sizes if isinstance(field, Texts) else field.itemsize
        if isinstance(field, Texts) and field.nulls is not None:
            lengths[field.nulls] = -1
        pieces += (lengths, field)
    return _assembled([tag, _lengths(2 + 4 * len(fields), fields, size), *pieces], size)


def lines(tag: bytes, delimiter: str, fields: Sequence[Texts], size: int) -> bytes:
    """Return `size` messages of a tag and a line: the fields with a delimiter between. Raises as `messages`."""
    ends = [delimiter] * (len(fields) - 1) + ["\n"]
    pieces: list[bytes | _Field] = [tag, _lengths(len(fields), fields, size)]
    for field, end in zip(fields, ends, strict=True):
        pieces += (field, end.encode("ascii"))
    return _assembled(pieces, size)


def _lengths(more: int, fields: Sequence[_Field], size: int) -> Array:
    """Return the length words of messages with these fields; `more`: bytes of each that are of no field's value."""
    lengths = np.full(size, 4 + more, dtype=np.int64)
    for field in fields:
        lengths += field.sizes if isinstance(field, Texts) else field.itemsize
    if int(lengths.max()) > _MAX_MESSAGE:
        raise LocalProtocolError("More than 2 GiB cannot be sent in one message.")
    return lengths.astype(">i4")


def of_texts(texts: Values) -> Texts | None:
    """Return strings as UTF-8; None where one is no string, no Unicode or has a zero byte."""
    if isinstance(texts, Texts):
        return texts
    try:
        joined = ("\0".join(texts) + "\0").encode()
    except (TypeError, UnicodeEncodeError):
        return None
    ends = np.flatnonzero(np.frombuffer(joined, dtype=np.uint8) == 0)
    return Texts.ending(joined, ends) if len(ends) == len(texts) else None


def of_bytes(values: Sequence[bytes | None]) -> Texts:
    """Return what a column's writer made, with its NULLs."""
    present = [value or b"" for value in values]
    sizes = np.fromiter(map(len, present), dtype=np.int64, count=len(present))
    nulls = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(present))
    data = np.frombuffer(b"".join(present), dtype=np.uint8)
    return Texts(data, np.cumsum(sizes) - sizes, sizes, nulls if nulls.any() else None)


def _known(write: _Way, values: Values) -> _Field | None:
    """Return what a fast way makes of values, NULLs among them."""
    field = write(values)
    if field is not None or isinstance(values, Texts):
        return field
    if isinstance(values, np.ma.MaskedArray):
        nulls = np.ma.getmaskarray(values)
        field = write(values.compressed())
    else:
        nulls = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
        field = write([value for value in values if value is not None]) if nulls.any() else None
    if field is None:
        return None
    if not isinstance(field, Texts):
        width = field.itemsize
        field = Texts(field.view(np.uint8), np.arange(len(field)) * width, np.full(len(field), width))
    begins, sizes = np.zeros((2, len(values)), dtype=np.int64)
    begins[~nulls], sizes[~nulls] = field.begins, field.sizes
    return Texts(field.data, begins, sizes, nulls)


def _numbers(code: str, values: Values) -> Array | None:
    """Return numbers as an array of a type code's type; None where one is no such number, or too large for it."""
    kind = np.dtype(code)
    if not isinstance(values, np.ndarray):
        try:
            return np.frombuffer(array(code, values), dtype=kind)  # type: ignore[arg-type]  # what is none is told
        except (TypeError, ValueError, OverflowError):
            return None
    if isinstance(values, np.ma.MaskedArray) or values.dtype.kind != kind.kind or values.itemsize > 8:
        return None
    if kind.kind == "i" and values.itemsize > kind.itemsize and len(values):
        limits = np.iinfo(kind)
        if values.min() < limits.min or values.max() > limits.max:
            return None
    return values.astype(kind)


def _integers(values: Values) -> Texts | None:
    """Return integers as digits, four at once from a table of all that four can be; the sign before the first."""
    numbers = _numbers("q", values)
    if numbers is None or not len(numbers):
        return None
    rest = np.abs(numbers).view(np.uint64)  # also of the least integer, which has no positive one
    sizes = np.searchsorted(_POWERS, rest, side="right") + 1
    groups = -(-int(sizes.max()) // _GROUP)
    if sizes.max() < 10:
        rest = rest.astype(np.uint32)
    cells = np.empty((len(numbers), groups + 1), dtype=np.uint32)  # the first has room for a sign
    for group in range(groups, 1, -1):
        above = rest // rest.dtype.type(_BASE)
        cells[:, group] = _digits()[rest - above * rest.dtype.type(_BASE)]
        rest = above
    cells[:, 1] = _digits()[rest]
    data = cells.view(np.uint8).ravel()
    is_negative = numbers < 0
    sizes += is_negative
    begins = np.arange(1, len(numbers) + 1) * (_GROUP * (groups + 1)) - sizes
    data[begins[is_negative]] = _LEAST_SIGN
    return Texts(data, begins, sizes)


@cache
def _digits() -> Array:
    """Return the digits of the numbers below 10,000, four in each."""
    number = np.arange(_BASE)[:, np.newaxis]
    digits = number // np.array([1000, 100, 10, 1]) % 10 + ord("0")
    table: Array = digits.astype(np.uint8).view(np.uint32).ravel()
    return table


def _floats(values: Values) -> Texts | None:
    """Return doubles below the numbers that have an exponent, which Python writes as Postgres does but for ".0"."""
    numbers = _numbers("d", values)
    if numbers is None or not len(numbers) or not bool((np.abs(numbers) < _FIXED_NOTATION).all()):
        return None
    if len(set(numbers[:_SAMPLE].tolist())) > _SAMPLE // 2:
        return _printed(numbers)
    bits, index = np.unique(numbers.view(np.int64), return_inverse=True)  # 0.0 is not -0.0
    distinct = _printed(bits.view(np.float64))
    return Texts(distinct.data, distinct.begins[index], distinct.sizes[index])


def _printed(numbers: Array) -> Texts:
    """Return doubles from the `repr` of their list: digits, signs, points and exponents are above the comma."""
    text = f"{repr(numbers.tolist())[1:-1]}, ".replace(".0, ", ", ")
    data = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    sizes = np.diff(np.flatnonzero(data == _COMMA), prepend=-2) - 2
    return Texts(data[data >= _LEAST_SIGN], np.cumsum(sizes) - sizes, sizes)


def _booleans(values: Values) -> Texts | None:
    truths = _numbers("?", values)
    if truths is None:
        return None
    return Texts(
        np.frombuffer(b"ft", dtype=np.uint8), truths.astype(np.int64), np.ones(len(truths), np.int64)
    )


def _fixed(code: str) -> _Way:
    def write(values: Values) -> Array | None:
        numbers = _numbers(code, values)
        return None if numbers is None else numbers.astype(numbers.dtype.newbyteorder(">"))

    return write


_STRINGS = (Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.PG_NODE_TREE)

_TEXT: dict[int, Callable[[Values], Texts | None]] = {
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8, Oid.OID, Oid.XID), _integers),
    Oid.FLOAT8: _floats,
    Oid.BOOL: _booleans,
    **dict.fromkeys(_STRINGS, of_texts),
}

_BINARY: dict[int, _Way] = {
    Oid.INT2: _fixed("h"),
    Oid.INT4: _fixed("i"),
    Oid.INT8: _fixed("q"),
    Oid.FLOAT8: _fixed("d"),
    Oid.BOOL: _fixed("?"),
    **dict.fromkeys(_STRINGS, of_texts),
}


# --- a column of values -> what is written of each, NULL stays None -----------------------------------------


MANY = 128
"""So many rows are faster written all at once than one by one."""

_WRONG_VALUE = (TypeError, ValueError, AttributeError, OverflowError, ArithmeticError, struct.error)
_Written = TypeVar("_Written", str, bytes)


def transpose(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Return the columns of rows. Raises LocalProtocolError: a row has not `width` values."""
    if any(size != width for size in set(map(len, rows))):
        raise LocalProtocolError(f"A row has not {width} values.")
    return [list(map(itemgetter(index), rows)) for index in range(width)]


def joined(written: Sequence[Sequence[bytes | None]], size: int) -> Iterable[bytes]:
    """Return each row's values, each with its length word; `size`: how many rows there are.

    Raises LocalProtocolError: a value is too long to be sent.
    """
    if not written:
        return [b""] * size
    fields = [[NULL if value is None else length(value) + value for value in column] for column in written]
    return map(b"".join, zip(*fields, strict=True))


def text_column(column: FieldDescription) -> Callable[[Sequence[Any]], list[str | None]]:
    """Return the function that writes the column's values as text.

    Here and there it raises LocalProtocolError, naming the column and not the value, for a value that is not of
    the column's type; and this raises it for a type that cannot be written.
    """
    return _column(column, TEXT_WRITERS)


def binary_column(column: FieldDescription) -> Callable[[Sequence[Any]], list[bytes | None]]:
    """Return the function that writes the column's values in binary; raises as `text_column` does."""
    return _column(column, BINARY_WRITERS)


def bytes_column(column: FieldDescription) -> Callable[[Sequence[Any]], list[bytes | None]]:
    """Return the function that writes the column's values in its own format; raises as `text_column` does."""
    if column.format is Format.BINARY:
        return binary_column(column)
    write = text_column(column)

    def write_encoded(values: Sequence[Any]) -> list[bytes | None]:
        try:
            return [None if text is None else text.encode() for text in write(values)]
        except UnicodeEncodeError:
            raise _wrong_value(column) from None

    return write_encoded


def field_column(column: FieldDescription) -> Callable[[Values], _Field]:
    """Return the function that writes many values at once, in the column's format; raises as `text_column` does."""
    if column.format is Format.TEXT:
        return texts_column(column)
    fast, write = _BINARY.get(column.oid, _unknown), bytes_column(column)

    def write_field(values: Values) -> _Field:
        field = _known(fast, values)
        return of_bytes(write(listed(values))) if field is None else field

    return write_field


def texts_column(column: FieldDescription) -> Callable[[Values], Texts]:
    """Return the function that writes many values at once as text; raises as `text_column` does."""
    fast, one, write = _TEXT.get(column.oid, _unknown), TEXT_WRITERS.get(column.oid), bytes_column(column)

    def each(values: Values) -> Texts | None:
        try:
            return None if one is None else of_texts(list(map(one, listed(values))))
        except _WRONG_VALUE:
            return None

    def write_texts(values: Values) -> Texts:
        for way in (fast, each):
            field = _known(way, values)
            if isinstance(field, Texts):
                return field
        return of_bytes(write(listed(values)))

    return write_texts


def _unknown(values: Values) -> None:
    return None


def listed(values: Values) -> Sequence[Any]:
    """Return a column's values one by one; NULL is None."""
    if not isinstance(values, Texts):
        return list(values.tolist()) if isinstance(values, np.ndarray) else values
    texts = [one.decode() for one in values.slices()]
    nulls = repeat(False) if values.nulls is None else values.nulls.tolist()
    return [None if is_null else text for text, is_null in zip(texts, nulls, strict=False)]


def _column(
    column: FieldDescription, writers: Mapping[int, Callable[[Any], _Written]]
) -> Callable[[Sequence[Any]], list[_Written | None]]:
    write = writers.get(column.oid)
    if write is None:
        raise LocalProtocolError(
            f"Column {column.name} has type {column.oid}, which cannot be sent in this format."
        )

    def write_values(values: Sequence[Any]) -> list[_Written | None]:
        try:
            if None in values:
                return [None if value is None else write(value) for value in values]
            return list(map(write, values))
        except _WRONG_VALUE:
            raise _wrong_value(column) from None

    return write_values


def _wrong_value(column: FieldDescription) -> LocalProtocolError:
    return LocalProtocolError(f"Column {column.name} holds what is not of type {TYPES[column.oid].name}.")


# --- many rows at once -> DataRow messages ------------------------------------------------------------


class _Messages:
    """Makes messages of a tag, the count of columns and a row's values, each with its length word."""

    def __init__(self, tag: bytes, columns: Sequence[FieldDescription]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in its format."""
        self._tag, self._count = tag, count(columns)
        self._writers = [bytes_column(column) for column in columns]
        self._columns = columns

    def of(self, columns: Sequence[Values], size: int) -> bytes:
        """Return the messages of so many rows, which are given by column; raises as `RowEncoder.encode` does."""
        if size >= MANY:
            fields = [field_column(one)(values) for one, values in zip(self._columns, columns, strict=True)]
            return messages(self._tag, self._count, fields, size)
        written = [write(listed(column)) for write, column in zip(self._writers, columns, strict=True)]
        return b"".join([message(self._tag, self._count + row) for row in joined(written, size)])


class RowEncoder:
    """Makes the DataRow messages of one result."""

    def __init__(self, columns: Sequence[FieldDescription]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in its format."""
        self._messages, self._width = _Messages(b"D", columns), len(columns)

    def encode(self, rows: Sequence[Sequence[Any]]) -> DataRows:
        """Return the messages of a chunk of rows; some thousands at a time are fastest.

        Raises LocalProtocolError, which names the column and not the value: a value is not of its column's type,
        or a row has more or fewer values than there are columns.
        """
        return self.encode_columns(transpose(rows, self._width), len(rows))

    def encode_columns(self, columns: Sequence[Values], size: int) -> DataRows:
        """Return the messages of a chunk of so many rows, which are given by column; raises as `encode`."""
        return DataRows(self._messages.of(columns, size))


# --- COPY … TO STDOUT: rows -> CopyData messages, one a row, in text, CSV or binary -------------------------


BINARY_COPY = b"PGCOPY\n\xff\r\n\0"
"""What a copy in binary begins with; flags and the length of what else stands before the rows follow."""
_SIGNATURE = BINARY_COPY + b"\0" * 8
_TRAILER = b"\xff\xff"
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\"}

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Of FORMAT text. `delimiter` is one ASCII character that is no letter, digit, point, backslash or line end."""

    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """Of FORMAT csv. `force_quote`: the columns, from 0, whose values are quoted whatever they hold."""

    delimiter: str = ","
    null: str = ""
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: frozenset[int] = frozenset()


class LineCopy:
    """Makes the messages of a copy in text or CSV."""

    def __init__(self, columns: Sequence[FieldDescription], options: TextOptions | CsvOptions) -> None:
        """Raises LocalProtocolError: a column's type cannot be written as text."""
        self._options = options
        self._names = [column.name for column in columns]
        self._writers = [text_column(column) for column in columns]
        guard = _csv_guard(options, len(columns)) if isinstance(options, CsvOptions) else _text_guard(options)
        self._header_guard = guard
        self._fields = [texts_column(column) for column in columns]
        self._is_plain = _plain_texts(options, len(columns))
        is_usual = options in (TextOptions(header=options.header), CsvOptions(header=options.header))
        self._guards = [None if is_usual and column.oid in PLAIN_TEXT else guard for column in columns]
        if isinstance(options, CsvOptions):
            for index in options.force_quote:
                self._guards[index] = _csv_quoter(options)

    def begin(self) -> CopyRows:
        """Return what comes before the first row: the names where a header is asked for."""
        if not self._options.header:
            return CopyRows(b"")
        return self._lines([tuple(map(self._header_guard, self._names))])

    def encode(self, rows: Rows) -> CopyRows:
        """Return the messages of a chunk of rows; raises as `RowEncoder.encode` does."""
        return self.encode_columns(transpose(rows, len(self._writers)), len(rows))

    def encode_columns(self, columns: Sequence[Values], size: int) -> CopyRows:
        """Return the messages of a chunk of so many rows, which are given by column; raises as `encode`."""
        if not columns:
            return self._lines([()] * size)
        if size >= MANY:
            fields = [self._field(index, column) for index, column in enumerate(columns)]
            return CopyRows(lines(b"d", self._options.delimiter, fields, size))
        return self._lines(zip(*map(self._texts, range(len(columns)), map(listed, columns)), strict=True))

    def end(self) -> CopyRows:
        """Return what comes after the last row: nothing."""
        return CopyRows(b"")

    def _field(self, index: int, column: Values) -> Texts:
        """Return many values of a column as they stand in lines."""
        if not (isinstance(self._options, CsvOptions) and index in self._options.force_quote):
            field = self._fields[index](column)
            if self._guards[index] is None or self._is_plain(field):
                return field.replaced(self._options.null.encode())
        texts = self._texts(index, listed(column))
        return of_texts(texts) or of_bytes([self._encoded(text) for text in texts])

    def _texts(self, index: int, column: Sequence[Any]) -> list[str]:
        """Return values of a column as they stand in lines."""
        null, guard = self._options.null, self._guards[index]
        texts = self._writers[index](column)
        if guard is None:
            return [null if text is None else text for text in texts]
        return [null if text is None else guard(text) for text in texts]

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise LocalProtocolError("A row to be copied holds what is not Unicode text.") from None

    def _lines(self, rows: Iterable[tuple[str, ...]]) -> CopyRows:
        join = self._options.delimiter.join
        return CopyRows(b"".join([message(b"d", self._encoded(f"{join(row)}\n")) for row in rows]))


class BinaryCopy:
    """Makes the messages of a copy in binary."""

    def __init__(self, columns: Sequence[FieldDescription]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in binary."""
        binary = [replace(column, format=Format.BINARY) for column in columns]
        self._messages, self._width = _Messages(b"d", binary), len(binary)
        self._pending = _SIGNATURE

    def begin(self) -> CopyRows:
        """Return what comes before the first row: nothing, the header waits for it."""
        return CopyRows(b"")

    def encode(self, rows: Rows) -> CopyRows:
        """Return the messages of a chunk of rows; raises as `RowEncoder.encode` does."""
        return self.encode_columns(transpose(rows, self._width), len(rows))

    def encode_columns(self, columns: Sequence[Values], size: int) -> CopyRows:
        """Return the messages of a chunk of so many rows, which are given by column; raises as `encode`."""
        wire = self._messages.of(columns, size)
        if self._pending and wire:
            end = 1 + int.from_bytes(wire[1:5], "big")
            wire = message(b"d", self._pending + wire[5:end]) + wire[end:]
            self._pending = b""
        return CopyRows(wire)

    def end(self) -> CopyRows:
        """Return what comes after the last row."""
        return CopyRows(message(b"d", self._pending + _TRAILER))


def _text_guard(options: TextOptions) -> Callable[[str], str]:
    """Return the function that escapes what has a meaning in a line."""
    escapes = {options.delimiter: options.delimiter, **_LETTERS}
    table = {ord(character): f"\\{letter}" for character, letter in escapes.items()}
    has_special = re.compile(f"[{re.escape(''.join(escapes))}]").search
    return lambda text: text.translate(table) if has_special(text) else text


def _csv_guard(options: CsvOptions, width: int) -> Callable[[str], str]:
    """Return the function that quotes where it is needed."""
    quoter = _csv_quoter(options)
    has_special = re.compile(f"[{re.escape(options.delimiter + options.quote)}\n\r]").search
    unquotable = {options.null, "\\."} if width == 1 else {options.null}
    return lambda text: quoter(text) if text in unquotable or has_special(text) else text


def _csv_quoter(options: CsvOptions) -> Callable[[str], str]:
    quote, escape = options.quote, options.escape
    table = {ord(character): escape + character for character in (quote, escape)}
    return lambda text: f"{quote}{text.translate(table)}{quote}"


def _plain_texts(options: TextOptions | CsvOptions, width: int) -> Callable[[Texts], bool]:
    """Return the function that says of many values that none has to be escaped or quoted; else it may be wrong."""
    special = "".join([options.delimiter, *_LETTERS])
    if isinstance(options, CsvOptions):
        special = f"{options.delimiter}{options.quote}\n\r" + ("\\" if width == 1 else "")
    marks, null = special.encode(), options.null.encode()

    def is_plain(texts: Texts) -> bool:
        data = texts.data.tobytes()
        if len(data.translate(None, marks)) < len(data):
            return False
        if not isinstance(options, CsvOptions):
            return True
        if null:
            return null not in data
        return bool(texts.sizes.all() if texts.nulls is None else (texts.nulls | (texts.sizes > 0)).all())

    return is_plain

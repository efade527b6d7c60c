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
_HEAVY = 256
"""Mean bytes of a value from which it is copied by itself: an index for every byte would take too much memory."""
_FIXED_NOTATION = 1e15
_SAMPLE = 64
"""Where few of so many doubles are distinct (ratios of small counts), each is printed once: printing is slow."""
_COMMA, _LEAST_SIGN = ord(","), ord("-")


@dataclass(frozen=True, slots=True)
class _Fixed:
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


_Field = _Fixed | Texts


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

    def put_field(self, field: _Field) -> None:
        """Put a column's values into the rows."""
        if isinstance(field, _Fixed):
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


def messages(tag: bytes, count: bytes, fields: Sequence[_Field], size: int) -> bytes:
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


def lines(tag: bytes, delimiter: str, fields: Sequence[_Field], size: int) -> bytes:
    """Return `size` messages of a tag and a line: the fields with a delimiter between. Raises as `messages`."""
    spread = _begun(tag, size, len(fields), fields)
    ends = [delimiter] * (len(fields) - 1) + ["\n"]
    for field, end in zip(fields, ends, strict=True):
        spread.put_field(field)
        spread.put(np.frombuffer(end.encode("ascii"), dtype=np.uint8))
    return spread.bytes()


def _begun(tag: bytes, size: int, more: int, fields: Sequence[_Field]) -> _Spread:
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


def _with_nulls(write: Callable[[Sequence[Any]], _Field | None], values: Sequence[Any]) -> _Field | None:
    """Return what a fast way makes of the values that are not NULL, with the NULLs between them."""
    nulls = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    field = write([value for value in values if value is not None]) if nulls.any() else None
    if field is None:
        return None
    sizes = np.zeros(len(values), dtype=np.int64)
    sizes[~nulls] = field.sizes
    return Texts(field.values.view(np.uint8) if isinstance(field, _Fixed) else field.data, sizes, nulls)


def bulk_text(oid: int) -> Callable[[Sequence[Any]], Texts | None]:
    """Return the fast way to write a type's values as text; what it returns is None for those it does not know."""
    return _TEXT.get(oid, _unknown)


def _bulk_binary(oid: int) -> Callable[[Sequence[Any]], _Field | None]:
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


def _fixed(code: str) -> Callable[[Sequence[Any]], _Field | None]:
    def write(values: Sequence[Any]) -> _Field | None:
        numbers = _numbers(code, values)
        return None if numbers is None else _Fixed(numbers.astype(numbers.dtype.newbyteorder(">")))

    return write


_STRINGS = (Oid.NAME, Oid.TEXT, Oid.VARCHAR, Oid.BPCHAR, Oid.UNKNOWN, Oid.JSON, Oid.PG_NODE_TREE)

_TEXT: dict[int, Callable[[Sequence[Any]], Texts | None]] = {
    **dict.fromkeys((Oid.INT2, Oid.INT4, Oid.INT8, Oid.OID, Oid.XID), _integers),
    Oid.FLOAT8: _floats,
    **dict.fromkeys(_STRINGS, of_texts),
}

_BINARY: dict[int, Callable[[Sequence[Any]], _Field | None]] = {
    Oid.INT2: _fixed("h"),
    Oid.INT4: _fixed("i"),
    Oid.INT8: _fixed("q"),
    Oid.FLOAT8: _fixed("d"),
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


def field_column(column: FieldDescription) -> Callable[[Sequence[Any]], _Field]:
    """Return the function that writes many values at once, in the column's format; raises as `text_column` does."""
    write = bytes_column(column)
    fast = _bulk_binary(column.oid) if column.format is Format.BINARY else bulk_text(column.oid)

    def write_field(values: Sequence[Any]) -> _Field:
        return fast(values) or _with_nulls(fast, values) or of_bytes(write(values))

    return write_field


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


class RowEncoder:
    """Makes the DataRow messages of one result."""

    def __init__(self, columns: Sequence[FieldDescription]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in its format."""
        self._count = count(columns)
        self._writers = [bytes_column(column) for column in columns]
        self._columns = columns

    def encode(self, rows: Sequence[Sequence[Any]]) -> DataRows:
        """Return the messages of a chunk of rows; some thousands at a time are fastest.

        Raises LocalProtocolError, which names the column and not the value: a value is not of its column's type,
        or a row has more or fewer values than there are columns.
        """
        columns = transpose(rows, len(self._writers))
        if len(rows) >= MANY:
            fields = [field_column(one)(values) for one, values in zip(self._columns, columns, strict=True)]
            return DataRows(messages(b"D", self._count, fields, len(rows)))
        written = [write(column) for write, column in zip(self._writers, columns, strict=True)]
        return DataRows(b"".join([message(b"D", self._count + row) for row in joined(written, len(rows))]))


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
        self._fast = [bulk_text(column.oid) for column in columns]
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
        columns = transpose(rows, len(self._writers))
        if not columns:
            return self._lines([()] * len(rows))
        if len(rows) >= MANY:
            fields = [self._field(index, column) for index, column in enumerate(columns)]
            return CopyRows(lines(b"d", self._options.delimiter, fields, len(rows)))
        return self._lines(zip(*map(self._texts, range(len(columns)), columns), strict=True))

    def end(self) -> CopyRows:
        """Return what comes after the last row: nothing."""
        return CopyRows(b"")

    def _field(self, index: int, column: Sequence[Any]) -> Texts:
        """Return many values of a column as they stand in lines."""
        forced = isinstance(self._options, CsvOptions) and index in self._options.force_quote
        field = None if forced else self._fast[index](column)
        if field is None or not (self._guards[index] is None or self._is_plain(field)):
            texts = self._texts(index, column)
            field = of_texts(texts) or of_bytes([self._encoded(text) for text in texts])
        return field

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
        self._count = count(columns)
        binary = [replace(column, format=Format.BINARY) for column in columns]
        self._writers = [bytes_column(column) for column in binary]
        self._fields = [field_column(column) for column in binary]
        self._pending = _SIGNATURE

    def begin(self) -> CopyRows:
        """Return what comes before the first row: nothing, the header waits for it."""
        return CopyRows(b"")

    def encode(self, rows: Rows) -> CopyRows:
        """Return the messages of a chunk of rows; raises as `RowEncoder.encode` does."""
        if self._pending and len(rows) > 1:
            return CopyRows(self.encode(rows[:1]).wire + self.encode(rows[1:]).wire)
        columns = transpose(rows, len(self._writers))
        if len(rows) >= MANY:
            fields = [write(column) for write, column in zip(self._fields, columns, strict=True)]
            return CopyRows(messages(b"d", self._count, fields, len(rows)))
        written = [write(column) for write, column in zip(self._writers, columns, strict=True)]
        parts = []
        for row in joined(written, len(rows)):
            parts.append(message(b"d", self._pending + self._count + row))
            self._pending = b""
        return CopyRows(b"".join(parts))

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
        return null not in data if null else bool(texts.sizes.all())

    return is_plain

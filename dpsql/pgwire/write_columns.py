"""A column of values -> what is written of each, NULL stays None; many rows at once -> DataRow messages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from .bulk import Field, bulk_binary, bulk_text, messages, of_bytes, with_nulls
from .datatypes.oids import TYPES
from .datatypes.write_binary import BINARY_WRITERS
from .datatypes.write_text import TEXT_WRITERS
from .errors import LocalProtocolError
from .events import Format
from .layout import NULL, count, length, message
from .replies import DataRows, FieldDescription

__all__ = [
    "MANY",
    "RowEncoder",
    "binary_column",
    "bytes_column",
    "field_column",
    "joined",
    "text_column",
    "transpose",
]

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


def field_column(column: FieldDescription) -> Callable[[Sequence[Any]], Field]:
    """Return the function that writes many values at once, in the column's format; raises as `text_column` does."""
    write = bytes_column(column)
    fast = bulk_binary(column.oid) if column.format is Format.BINARY else bulk_text(column.oid)

    def write_field(values: Sequence[Any]) -> Field:
        return fast(values) or with_nulls(fast, values) or of_bytes(write(values))

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

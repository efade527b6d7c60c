"""COPY … TO STDOUT: rows -> CopyData messages, one a row, in text, CSV or binary.

One message a row is what clients want (psycopg reads a row from each), with two exceptions of Postgres' own that
they rely on as well: a binary copy's header comes in one message with the first row, and its trailer alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .datatypes.write_text import PLAIN_TEXT
from .errors import LocalProtocolError
from .layout import NULL, count, length, message
from .replies import Column, CopyRows
from .write_columns import binary_column, text_column, transpose

__all__ = ["BinaryCopy", "CsvOptions", "LineCopy", "TextOptions"]

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
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

    def __init__(self, columns: Sequence[Column], options: TextOptions | CsvOptions) -> None:
        """Raises LocalProtocolError: a column's type cannot be written as text."""
        self._options = options
        self._names = [column.name for column in columns]
        self._writers = [text_column(column) for column in columns]
        guard = _csv_guard(options, len(columns)) if isinstance(options, CsvOptions) else _text_guard(options)
        self._header_guard = guard
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
        parts = zip(columns, self._writers, self._guards, strict=True)
        return self._lines(
            zip(*[self._guarded(write(values), guard) for values, write, guard in parts], strict=True)
        )

    def end(self) -> CopyRows:
        """Return what comes after the last row: nothing."""
        return CopyRows(b"")

    def _guarded(self, texts: list[str | None], guard: Callable[[str], str] | None) -> Iterable[str]:
        null = self._options.null
        if guard is None:
            return [null if text is None else text for text in texts]
        return [null if text is None else guard(text) for text in texts]

    def _lines(self, rows: Iterable[tuple[str, ...]]) -> CopyRows:
        join = self._options.delimiter.join
        try:
            return CopyRows(b"".join([message(b"d", f"{join(row)}\n".encode()) for row in rows]))
        except UnicodeEncodeError:
            raise LocalProtocolError("A row to be copied holds what is not Unicode text.") from None


class BinaryCopy:
    """Makes the messages of a copy in binary."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Raises LocalProtocolError: a column's type cannot be written in binary."""
        self._count = count(columns)
        self._writers = [binary_column(column) for column in columns]
        self._pending = _SIGNATURE

    def begin(self) -> CopyRows:
        """Return what comes before the first row: nothing, the header waits for it."""
        return CopyRows(b"")

    def encode(self, rows: Rows) -> CopyRows:
        """Return the messages of a chunk of rows; raises as `RowEncoder.encode` does."""
        columns = transpose(rows, len(self._writers))
        fields = [_fields(write(values)) for values, write in zip(columns, self._writers, strict=True)]
        tuples = [self._count + b"".join(row) for row in zip(*fields, strict=True)] or [self._count] * len(
            rows
        )
        if tuples:
            tuples[0] = self._pending + tuples[0]
            self._pending = b""
        return CopyRows(b"".join([message(b"d", row) for row in tuples]))

    def end(self) -> CopyRows:
        """Return what comes after the last row."""
        return CopyRows(message(b"d", self._pending + _TRAILER))


def _fields(values: list[bytes | None]) -> list[bytes]:
    return [NULL if value is None else length(value) + value for value in values]


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

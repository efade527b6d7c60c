"""COPY … TO STDOUT: rows -> CopyData messages, one a row, in text, CSV or binary.

One message a row is what clients want (psycopg reads a row from each), with two exceptions of Postgres' own that
they rely on as well: a binary copy's header comes in one message with the first row, and its trailer alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .datatypes.write_text import PLAIN_TEXT
from .errors import LocalProtocolError
from .events import Format
from .layout import count, message
from .replies import CopyRows, FieldDescription
from .write_columns import (
    MANY,
    Texts,
    bulk_text,
    bytes_column,
    field_column,
    joined,
    lines,
    messages,
    of_bytes,
    of_texts,
    text_column,
    transpose,
)

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

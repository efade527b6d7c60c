"""COPY … FROM STDIN: the bytes of CopyData messages, however they are cut, -> rows: of text, CSV, or in binary.

House rules:

1. Each byte is looked at once for where rows end, so that a row in many pieces costs no more than in one.
2. What is no row of the format is refused, with its number; nothing is guessed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from .messages import Format, ParameterError
from .read_parameter import read_parameter
from .write_columns import BINARY_COPY, CsvOptions, TextOptions

_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPED = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_END = b"\\."
_LONGEST = 4 * 2**20

Row = list[str | None]


class CopyReader:
    """Takes what comes, and gives rows of texts back, None for NULL. `rows`: how many lines were rows so far."""

    def __init__(self, options: TextOptions | CsvOptions) -> None:
        self._options, self._is_csv = options, isinstance(options, CsvOptions)
        quote, escape = (options.quote, options.escape) if isinstance(options, CsvOptions) else ("", "\\")
        self._quote, self._escape = quote.encode(), escape.encode()
        signs = {b"\n", self._quote, self._escape} - {b""}
        self._signs = re.compile(b"[" + b"".join(map(re.escape, sorted(signs))) + b"]")
        self._rest = bytearray()
        self._looked_at, self._is_quoted, self._has_ended = 0, False, False
        self._skips_header = options.header
        self.rows = 0

    def feed(self, data: bytes) -> list[Row]:
        """Return the rows that have come whole. Raises ParameterError: 22P04, 22021, or 54000 for a row too long."""
        self._rest += data
        found, begin = list[Row](), 0
        for end in self._ends():
            found += self._row(bytes(self._rest[begin:end]))
            begin = end + 1
        del self._rest[:begin]
        self._looked_at -= begin
        if len(self._rest) > _LONGEST:
            raise ParameterError(f"a line has more than {_LONGEST} bytes", sqlstate="54000")
        return found

    def finish(self) -> list[Row]:
        """Return the last row, if it has no line end. Raises as `feed`."""
        if self._is_quoted:
            raise self._wrong("a quoted value does not end")
        last, self._rest = bytes(self._rest), bytearray()
        return self._row(last) if last else []

    def _ends(self) -> Iterator[int]:
        """Yield where rows end in what has not been looked at."""
        at = self._looked_at
        while match := self._signs.search(self._rest, at):
            sign, at = match[0], match.end()
            if sign == b"\n":
                if not self._is_quoted:
                    yield match.start()
            elif sign == self._quote:  # two of them, for one of a value, end it and begin it again
                is_escape = sign == self._escape
                self._is_quoted = not self._is_quoted if is_escape or self._is_quoted else True
            elif not self._is_csv or self._is_quoted:
                at += 1  # what it stands before is no sign, also where that has not come yet
        self._looked_at = max(at, len(self._rest))

    def _row(self, line: bytes) -> list[Row]:
        """Return the row of a line; none for a header, and after the end that is written as a line."""
        line = line.removesuffix(b"\r")
        if self._has_ended or (not self._is_csv and line == _END):
            self._has_ended = True
            return []
        if self._skips_header:
            self._skips_header = False
            return []
        self.rows += 1
        text = self._text(line)
        if isinstance(self._options, CsvOptions):
            return [self._csv(text, self._options)]
        return [[self._plain(field) for field in _cut(text, self._options.delimiter)]]

    def _plain(self, field: str) -> str | None:
        if field == self._options.null:
            return None
        return field if "\\" not in field else self._text(_ESCAPED.sub(_unescaped, field.encode()))

    def _text(self, data: bytes) -> str:
        """Return text, as it came or as escapes of bytes make it. Raises ParameterError: 22021."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise ParameterError(f"line {self.rows} is not UTF-8", sqlstate="22021") from None
        if "\0" in text:
            raise ParameterError(f"line {self.rows} holds the character 0", sqlstate="22021")
        return text

    def _csv(self, text: str, options: CsvOptions) -> Row:
        if options.quote not in text:
            return [None if one == options.null else one for one in text.split(options.delimiter)]
        row, field, is_quoted, was_quoted, at = Row(), list[str](), False, False, 0
        while at < len(text):
            sign, after = text[at], text[at + 1 : at + 2]
            if is_quoted and sign == options.escape and after in (options.quote, options.escape) and after:
                field.append(after)
                at += 1
            elif sign == options.quote:
                is_quoted, was_quoted = not is_quoted, True
            elif sign == options.delimiter and not is_quoted:
                row.append(_value(field, options.null, was_quoted=was_quoted))
                field, was_quoted = [], False
            else:
                field.append(sign)
            at += 1
        if is_quoted:
            raise self._wrong("a quoted value does not end")
        return [*row, _value(field, options.null, was_quoted=was_quoted)]

    def _wrong(self, said: str) -> ParameterError:
        return ParameterError(f"line {self.rows}: {said}", sqlstate="22P04")


_COUNT, _LENGTH = struct.Struct(">h"), struct.Struct(">i")
_HEAD = len(BINARY_COPY) + 2 * _LENGTH.size


class BinaryCopyReader:
    """Takes what comes, and gives rows of values back, as `read_parameter` does. `rows`: how many came so far."""

    def __init__(self, oids: Sequence[int]) -> None:
        """`oids`: the types of the values of a row."""
        self._oids = oids
        self._rest = bytearray()
        self._has_begun, self._has_ended = False, False
        self._wanted = 0
        """How many bytes there must be before more can be read."""
        self.rows = 0

    def feed(self, data: bytes) -> list[list[Any]]:
        """Return the rows that have come whole.

        Raises ParameterError: 22P04, it is no such copy; 54000, a row is too long; and as `read_parameter`.
        """
        if self._has_ended:
            return []
        self._rest += data
        found, at = list[list[Any]](), self._begin() if len(self._rest) >= self._wanted else None
        while at is not None and not self._has_ended:
            row = self._row(at)
            if row is None:
                self._wanted -= at
                del self._rest[:at]
                break
            values, at = row
            found += values
        if len(self._rest) > _LONGEST:
            raise ParameterError(f"a row has more than {_LONGEST} bytes", sqlstate="54000")
        return found

    def finish(self) -> list[list[Any]]:
        """Return nothing. Raises ParameterError (22P04): the copy is cut off."""
        if not self._has_ended and (self._rest or not self._has_begun):
            raise self._wrong("the copy is cut off")
        return []

    def _begin(self) -> int | None:
        """Return where rows begin in what has come; None: what stands before them has not come whole."""
        if self._has_begun:
            return 0
        if not self._rest.startswith(BINARY_COPY[: len(self._rest)]):
            raise self._wrong("it is no copy in binary")
        if len(self._rest) < _HEAD:
            return None
        flags, more = struct.unpack(">Ii", self._rest[len(BINARY_COPY) : _HEAD])
        if (
            flags or not 0 <= more <= _LONGEST
        ):  # of flags, one is known, of rows with OIDs, as no server has them now
            raise self._wrong("a copy of this kind is not read")
        if len(self._rest) < _HEAD + more:
            return None
        self._has_begun = True
        return _HEAD + int(more)

    def _lacks(self, end: int) -> bool:
        """Say whether what has come ends before a place, which is waited for then."""
        self._wanted = end
        return len(self._rest) < end

    def _row(self, at: int) -> tuple[list[list[Any]], int] | None:
        """Return the row that begins somewhere, and where it ends; none, the last; None: it has not come whole."""
        data = self._rest
        if self._lacks(at + _COUNT.size):
            return None
        (count,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        if count == -1:
            self._has_ended = True
            return [], len(data)
        if count != len(self._oids):
            self.rows += 1
            raise self._wrong(f"there are {max(count, 0)} values for {len(self._oids)} columns")
        fields = list[bytes | None]()
        for _ in self._oids:
            if self._lacks(at + _LENGTH.size):
                return None
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            if length < -1:
                self.rows += 1
                raise self._wrong("a value has no length")
            if self._lacks(at + max(length, 0)):
                return None
            fields.append(None if length < 0 else bytes(data[at : at + length]))
            at += max(length, 0)
        self.rows += 1
        try:
            row = [
                read_parameter(oid, Format.BINARY, field)
                for oid, field in zip(self._oids, fields, strict=True)
            ]
        except ParameterError as error:
            raise ParameterError(
                f"line {self.rows}: {error.message}", sqlstate=error.sqlstate, hint=error.hint
            ) from None
        return [row], at

    def _wrong(self, said: str) -> ParameterError:
        return ParameterError(f"line {self.rows}: {said}", sqlstate="22P04")


def _value(field: list[str], null: str, *, was_quoted: bool) -> str | None:
    value = "".join(field)
    return None if value == null and not was_quoted else value


def _cut(text: str, delimiter: str) -> list[str]:
    """Return the fields of a line, as they are written: a delimiter behind a backslash is of the field."""
    if "\\" not in text:
        return text.split(delimiter)
    return re.findall(
        rf"(?:^|{re.escape(delimiter)})((?:\\.|[^\\{re.escape(delimiter)}]|\\$)*)", text, re.DOTALL
    )


def _unescaped(match: re.Match[bytes]) -> bytes:
    said = match[1]
    if len(said) > 1 and said[:1] == b"x":
        return bytes([int(said[1:], 16)])
    return bytes([int(said, 8) & 0xFF]) if said[:1] in b"01234567" else _LETTERS.get(said, said)

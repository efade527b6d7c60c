"""What COPY … TO STDOUT says of its lines: the options in parentheses, and those of before, in Postgres' words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..pgwire import CsvOptions, FieldDescription, TextOptions
from ..records import dataclass
from ..sql.text import read_constant
from .report import Fault, unsupported

_HINT = "FORMAT, DELIMITER, NULL, HEADER, QUOTE, ESCAPE, FORCE_QUOTE and ENCODING 'UTF8' are read"
_TRUE, _FALSE = ("true", "on", "1", ""), ("false", "off", "0")
_IN_VALUES = frozenset("\\.abcdefghijklmnopqrstuvwxyz0123456789")
_ESCAPED = re.compile(r"[eE]'((?:[^'\\]|''|\\[^0-7xuU])*)'", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """How rows are copied: `lines`, None for binary. `forced`: the columns that are quoted whatever they hold; ("*",)
    for all."""

    lines: TextOptions | CsvOptions | None = TextOptions()
    forced: tuple[str, ...] = ()

    def of(self, columns: tuple[FieldDescription, ...]) -> TextOptions | CsvOptions | None:
        """Return the options for a result's columns. Raises Fault (42703): one that is forced is none of them."""
        if not isinstance(self.lines, CsvOptions) or not self.forced:
            return self.lines
        names = [column.name for column in columns]
        if self.forced == ("*",):
            return replace(self.lines, force_quote=frozenset(range(len(names))))
        for name in self.forced:
            if name not in names:
                raise Fault(
                    "42703",
                    f'column "{name[:60]}" does not exist',
                    hint="FORCE_QUOTE names the query's",
                )
        return replace(self.lines, force_quote=frozenset(names.index(name) for name in self.forced))


def read_options(text: str) -> CopyOptions:
    """Return what stands in the parentheses after WITH. Raises Fault: it is not written right, or not done here."""
    reader, given = _Reader(text), dict[str, _Value]()
    while not reader.is_done:
        _put(given, reader.word(), reader.value())
        if not reader.is_done:
            reader.skip(",")
    return _made(given)


_OLDER = {"delimiter": "delimiter", "null": "null", "quote": "quote", "escape": "escape",
          "encoding": "encoding"}  # fmt: skip


def older_options(text: str) -> CopyOptions:
    """Return what stands after TO STDOUT without parentheses, as before Postgres 9. Raises Fault, as `read_options`."""
    reader, given = _Reader(text), dict[str, _Value]()
    while not reader.is_done:
        word = reader.word()
        if word in ("csv", "binary", "text"):
            _put(given, "format", word)
        elif word == "header":
            _put(given, "header", "")
        elif word == "force":
            if reader.word() != "quote":
                raise unsupported("this option of COPY", _HINT)
            _put(given, "force_quote", reader.names())
        elif word in _OLDER:
            reader.leave_out("as")
            _put(given, _OLDER[word], reader.value())
        else:
            raise unsupported("this option of COPY", _HINT)
    return _made(given)


def _plain(escaped: str | None) -> str:
    """Return the character that stands after a backslash, or a quote that is written twice."""
    return "'" if escaped is None else _ESCAPES.get(escaped, escaped)


class _Reader:
    """The pieces of the options, one after another."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.strip(), 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    def _piece(self) -> tuple[str, str]:
        """Return the kind and value of what stands here, and go past it."""
        rest = self._text[self._at :]
        if (escaped := _ESCAPED.match(rest)) is not None:
            value = re.sub(r"\\(.)|''", lambda found: _plain(found[1]), escaped[1], flags=re.DOTALL)
            kind, end = "string", self._at + escaped.end()
        elif rest[:1] in ("(", ")", ",", "*"):
            kind, value, end = "sign", rest[0], self._at + 1
        else:
            found = read_constant(self._text, self._at)
            if found is None:
                raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
            kind, value, end = found
        self._at = end + len(self._text[end:]) - len(self._text[end:].lstrip())
        return kind, value

    def word(self) -> str:
        kind, value = self._piece()
        if kind != "word":
            raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
        return value

    def skip(self, sign: str) -> None:
        if self._piece() != ("sign", sign):
            raise Fault("42601", "an option of COPY is not written right", hint=_HINT)

    def leave_out(self, word: str) -> None:
        before = self._at
        if self.is_done or self._piece() != ("word", word):
            self._at = before

    def value(self) -> _Value:
        """Return a constant, or names in parentheses; "" where none stands."""
        if self.is_done or self._text[self._at] == ",":
            return ""
        if self._text[self._at] in ("(", "*"):
            return self.names()
        return self._piece()[1]

    def names(self) -> tuple[str, ...]:
        """Return a list of names, in parentheses or without, or ("*",)."""
        return tuple(self._names())

    def _names(self) -> Iterator[str]:
        bracket = not self.is_done and self._text[self._at] == "("
        if bracket:
            self.skip("(")
        while True:
            kind, value = self._piece()
            if kind not in ("word", "quoted") and value != "*":
                raise Fault("42601", "an option of COPY is not written right", hint=_HINT)
            yield value
            if value == "*" or self.is_done or self._text[self._at] != ",":
                break
            self.skip(",")
        if bracket:
            self.skip(")")


_KNOWN = frozenset({"format", "header", "delimiter", "null", "quote", "escape", "force_quote", "encoding"})


def _put(given: dict[str, _Value], name: str, value: _Value) -> None:
    if name not in _KNOWN:
        raise unsupported("this option of COPY", _HINT)
    if name in given:
        raise Fault("42601", "conflicting or redundant options", hint=f"write {name.upper()} once")
    given[name] = value


def _made(given: dict[str, _Value]) -> CopyOptions:
    text = {name: value for name, value in given.items() if isinstance(value, str)}
    if set(given) - set(text) - {"force_quote"}:
        raise Fault("42601", "an option of COPY takes one value", hint=_HINT)
    form, header = text.pop("format", "text").lower(), text.pop("header", "off").lower()
    if form not in ("text", "csv", "binary") or header not in (*_TRUE, *_FALSE):
        raise unsupported("this option of COPY", _HINT)
    if text.pop("encoding", "utf8").lower().replace("-", "") not in ("utf8", "unicode"):
        raise unsupported("this encoding", "rows are copied as UTF-8")
    forced = given.get("force_quote", ())
    forced = (forced,) if isinstance(forced, str) and forced else tuple(forced)
    text.pop("force_quote", None)
    if form == "binary":
        if text or forced or header in _TRUE:
            raise Fault("42601", "binary rows have no such options", hint="FORMAT binary stands alone")
        return CopyOptions(None)
    if form == "text" and (forced or "quote" in text or "escape" in text):
        raise Fault("42601", "quotes are for CSV alone", hint="COPY … TO STDOUT (FORMAT csv, QUOTE '\"')")
    has_header = header in _TRUE
    lines = _csv(has_header, **text) if form == "csv" else _text(has_header, **text)
    _check(lines)
    return CopyOptions(lines, forced)


def _text(header: bool, delimiter: str = "\t", null: str = "\\N") -> TextOptions:
    return TextOptions(delimiter, null, header)


def _csv(
    header: bool, delimiter: str = ",", null: str = "", quote: str = '"', escape: str | None = None
) -> CsvOptions:
    return CsvOptions(delimiter, null, header, quote, quote if escape is None else escape)


def _check(lines: TextOptions | CsvOptions) -> None:
    """Check that lines can be read again. Raises Fault (22023), as Postgres."""
    signs = {"delimiter": lines.delimiter}
    if isinstance(lines, CsvOptions):
        signs |= {"quote": lines.quote, "escape": lines.escape}
    for name, sign in signs.items():
        if len(sign) != 1 or not sign.isascii() or sign in "\r\n\0":
            raise Fault(
                "22023", f"COPY {name} must be a single one-byte character", hint="e.g. ';' or E'\\t'"
            )
    if isinstance(lines, TextOptions) and lines.delimiter in _IN_VALUES:
        raise Fault(
            "22023", "COPY delimiter cannot be a letter, a digit, a point or a backslash", hint="e.g. ';'"
        )
    if isinstance(lines, CsvOptions) and lines.delimiter == lines.quote:
        raise Fault("22023", "COPY delimiter and quote must be different", hint="e.g. ';' and '\"'")
    if set(lines.null) & {*"\r\n", lines.delimiter} or (
        isinstance(lines, CsvOptions) and lines.quote in lines.null
    ):
        raise Fault(
            "22023",
            "COPY null cannot hold a delimiter, a quote or a line end",
            hint="e.g. 'NA'",
        )

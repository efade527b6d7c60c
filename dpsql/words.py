"""Figures in words, values as text, and what a mistyped name may mean: the same to an analyst, an owner and a catalog.

Values are plain, exact where the type is exact, and harmless on a terminal.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from .errors import DpsqlError
from .regex import regex


def plural(number: int, noun: str) -> str:
    """Return a noun as it stands behind a number."""
    return noun if number == 1 else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """Return so many of a thing.

    >>> [counted(n, "row") for n in (0, 1, 12_063)]
    ['0 rows', '1 row', '12,063 rows']
    """
    return f"{number:,} {plural(number, noun)}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return texts with commas, and of more than `most` how many are left out.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def small_text(number: Fraction | Decimal) -> str:
    """Return a delta as people write it.

    >>> small_text(Fraction(1, 10**9))
    '1e-9'
    """
    return f"{float(number):g}".replace("e-0", "e-")


# --- A released value as text: plain, exact where the type is exact, and harmless on a terminal -------------


_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that move the cursor, reorder or hide text: control, format, surrogate, separators."""


def plain_text(value: object) -> str:
    """Return one value as people read it; NULL is the empty text (CSV's convention)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, list):
        return "{" + ",".join("NULL" if one is None else _item(plain_text(one)) for one in value) + "}"
    return str(value)


def _item(text: str) -> str:
    """Return a value of an array as Postgres writes it: in quotes where it could be taken for something else."""
    if text and text.upper() != "NULL" and not re.search(r'[{}",\\\s]', text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def float_text(value: float) -> str:
    """Return a double as Postgres writes it: the shortest digits that mean it, 5420 and not 5420.0.

    >>> [float_text(x) for x in (0.1, 5420.0, -0.0, 1e300, float("inf"), float("nan"))]
    ['0.1', '5420', '-0', '1e+300', 'Infinity', 'NaN']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def terminal_text(text: str) -> str:
    """Return `text` with every character that could steer a terminal spelled out (ESC is \\x1b).

    Released group keys are data content: a row may hold escape sequences on purpose.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(c) if unicodedata.category(c) in _UNSAFE else c for c in text)


def _spelled(character: str) -> str:
    code = ord(character)
    if character in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def csv_lines(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield a table's lines. RFC 4180 with Postgres' NULL: an empty cell is NULL, a quoted one is the empty text."""

    def cell(value: object) -> str:
        text = plain_text(value)
        if value is not None and (not text or any(c in text for c in ',"\r\n')):
            return '"' + text.replace('"', '""') + '"'
        return text

    yield ",".join(map(cell, names))
    for row in rows:
        yield ",".join(map(cell, row))


KEYWORDS = (
    "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DESC", "DISTINCT", "ELSE", "END", "EXISTS",
    "EXPLAIN", "FALSE", "FILTER", "FROM", "GROUP BY", "HAVING", "IN", "INNER", "INTERVAL", "IS", "JOIN", "LEFT", "LIKE",
    "LIMIT", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER BY", "OVER", "PARTITION BY", "RESET", "ROLLUP", "SELECT",
    "SET", "SHOW", "THEN", "TRUE", "UNION ALL", "USING", "VALUES", "WHEN", "WHERE", "WITH", "WITHIN GROUP",
)  # fmt: skip
_LISTED = regex(r"(?:tables|columns|settings): (.+)")
_NAMED = regex(r'"([^"]+)"')
_WORD = regex(r"'(?:''|[^'])*'|\"[^\"]*\"|--[^\n]*|[A-Za-z]{4,20}")
_LONGEST = 2_000
"""Characters of a statement whose words are compared."""


def nearest(name: str, names: list[str] | tuple[str, ...], cutoff: float = 0.6) -> str | None:
    """Return the name that a mistyped one is nearest to."""
    import difflib

    by_lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), by_lower, 1, cutoff)
    return by_lower[close[0]] if close else None


def meant(error: DpsqlError, source: str) -> str | None:
    """Return what may be meant by the name that an error names, or by a word of a statement that does not parse."""
    listed = _LISTED.search(error.hint or "")
    named = _NAMED.search(error.message)
    if listed and named:
        return nearest(
            named[1].rpartition(".")[2] if "dpsql." not in named[1] else named[1], listed[1].split(", ")
        )
    if error.sqlstate != "42601" or error.hint or len(source) > _LONGEST:
        return None
    known = {word for keyword in KEYWORDS for word in (*keyword.split(), keyword.replace(" ", ""))}
    for match in _WORD.finditer(source):
        word = match[0].upper()
        joined = next(
            (keyword for keyword in KEYWORDS if " " in keyword and keyword.replace(" ", "") == word), None
        )
        if joined:
            return joined
        if word.isalpha() and word not in known and (close := nearest(word, KEYWORDS, 0.75)):
            return close
    return None

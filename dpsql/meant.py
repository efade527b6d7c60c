"""The name or keyword that a mistyped one may mean: from the error's own list of names, and the words of SQL."""

from __future__ import annotations

import re

from .errors import DpsqlError

__all__ = ["KEYWORDS", "meant", "nearest"]

KEYWORDS = (
    "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DESC", "DISTINCT", "ELSE", "END", "EXISTS",
    "EXPLAIN", "FALSE", "FILTER", "FROM", "GROUP BY", "HAVING", "IN", "INNER", "INTERVAL", "IS", "JOIN", "LEFT", "LIKE",
    "LIMIT", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER BY", "OVER", "PARTITION BY", "RESET", "ROLLUP", "SELECT",
    "SET", "SHOW", "THEN", "TRUE", "UNION ALL", "USING", "VALUES", "WHEN", "WHERE", "WITH", "WITHIN GROUP",
)  # fmt: skip
_LISTED = re.compile(r"(?:tables|columns|settings): (.+)")
_NAMED = re.compile(r'"([^"]+)"')
_WORD = re.compile(r"'(?:''|[^'])*'|\"[^\"]*\"|--[^\n]*|[A-Za-z]{4,20}")
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

"""DECLARE, FETCH, MOVE and COPY as they are written."""

from __future__ import annotations

import re

from ..sql.text import blank_prefix
from .lexical import NAME, compile_form, syntax_error, unquoted, word
from .report import Fault, unsupported
from .statements import CopyOut, Declare, Direction, Fetch

__all__ = ["read_copy", "read_declare", "read_fetch"]

_DECLARE = compile_form(
    rf"declare\s+{NAME}\s+((?:(?:binary|asensitive|insensitive|no\s+scroll|scroll)\s+)*)cursor"
    r"(?:\s+(with|without)\s+hold)?\s+for\b\s*(?=\S)"
)
_QUERIES = ("select", "with", "values", "table", "")
_COUNT = r"[+-]?\s*\d{1,10}"
_FETCH = compile_form(
    rf"(fetch|move)(?:\s+(next|prior|first|last|(?:absolute|relative)\s*{_COUNT}|{_COUNT}|all"
    rf"|(?:forward|backward)(?:\s*{_COUNT}|\s+all)?))?(?:\s+(?:from|in))?\s+{NAME}"
)
_WORDS = {
    "": (Direction.FORWARD, 1),
    "next": (Direction.FORWARD, 1),
    "prior": (Direction.BACKWARD, 1),
    "first": (Direction.ABSOLUTE, 1),
    "last": (Direction.ABSOLUTE, -1),
}
_MAX_COUNT = 2**31 - 1
_TO = (
    r"\s*to\s+stdout(?:\s+(?:with\s*)?"
    r"(?:\((?P<options>[^()]{0,200})\)|(?P<form>csv|binary|text)(?P<header>\s+header)?))?"
)
_COPY = compile_form(r"copy\s*(?P<query>\(.*\))" + _TO)
_WORD = r'(?:[a-z_][\w$]*|"(?:[^"]|"")+")'
_COPY_TABLE = compile_form(
    rf"copy\s+(?P<table>{_WORD}(?:\s*\.\s*{_WORD})?)\s*"
    rf"(?:\((?P<columns>\s*{_WORD}\s*(?:,\s*{_WORD}\s*)*)\))?" + _TO
)
_COPY_OPTION = compile_form(r"format\s+('?)(text|csv|binary)\1|header(?:\s+('?)(true|on|1|false|off|0)\3)?")


def read_declare(text: str, bare: str) -> Declare:
    """Read DECLARE; `bare` is the text without comments. Raises Fault."""
    match = _DECLARE.match(bare)
    if match is None or word(bare[match.end() :]) not in _QUERIES:
        raise syntax_error("DECLARE")
    options = " ".join(match[2].lower().split())
    is_forward_only = "no scroll" in options
    if is_forward_only and "scroll" in options.replace("no scroll", ""):
        raise Fault("42P11", "a cursor cannot be both SCROLL and NO SCROLL", hint="write one of them")
    if re.search(r"\basensitive\b", options) and re.search(r"\binsensitive\b", options):
        raise Fault("42P11", "a cursor cannot be both ASENSITIVE and INSENSITIVE", hint="write one of them")
    return Declare(
        unquoted(match[1]), blank_prefix(text[: len(bare)], match.end()), (match[3] or "").lower() == "with",
        "binary" in options, is_forward_only,
    )  # fmt: skip


def read_fetch(bare: str) -> Fetch:
    """Read FETCH or MOVE. Raises Fault: it is not written right."""
    match = _FETCH.fullmatch(bare)
    if match is None:
        raise syntax_error(word(bare).upper())
    how = (match[2] or "").lower()
    direction, count = _WORDS.get(how) or _counted(how, word(bare).upper())
    return Fetch(unquoted(match[3]), direction, count, match[1].lower() == "move")


def _counted(how: str, what: str) -> tuple[Direction, int | None]:
    name = word(how)
    direction = Direction.FORWARD if name in ("", "all") else Direction(name)
    rest = how.removeprefix(name).strip()
    if name == "all" or rest == "all":
        return direction, None
    count = int(re.sub(r"\s", "", rest)) if rest else 1
    if abs(count) > _MAX_COUNT:
        raise syntax_error(what)
    return direction, count


def read_copy(text: str, bare: str) -> CopyOut:
    """Read COPY (query) TO STDOUT, and COPY table; `bare` is the text without comments. Raises Fault."""
    match = _COPY.fullmatch(bare)
    if match is None:
        return _read_copy_table(bare)
    start, end = match.span("query")
    if word(bare[start + 1 :].lstrip()) == "execute":
        raise Fault(
            "42601", "COPY cannot run a prepared statement", hint="write its query between the brackets"
        )
    return CopyOut(blank_prefix(text[: end - 1], start + 1), *_copy_options(match))


def _read_copy_table(bare: str) -> CopyOut:
    match = _COPY_TABLE.fullmatch(bare)
    if match is None:
        raise unsupported("this form of COPY", "COPY (SELECT …) TO STDOUT (FORMAT csv, HEADER)")
    query = f"SELECT {match['columns'] or '*'} FROM {match['table']}"
    return CopyOut(query, *_copy_options(match), is_table=True)


def _copy_options(match: re.Match[str]) -> tuple[str, bool]:
    """Return the format, and whether there is a header. Raises Fault."""
    form, has_header = (match["form"] or "text").lower(), bool(match["header"])
    for option in (match["options"] or "").split(","):
        read = _COPY_OPTION.fullmatch(option.strip())
        if read is None and option.strip():
            raise unsupported("this option of COPY", "FORMAT text, csv or binary, and HEADER, are read")
        if read is not None and read[2]:
            form = read[2].lower()
        elif read is not None:
            has_header = (read[4] or "true").lower() in ("true", "on", "1")
    return form, has_header

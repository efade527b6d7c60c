"""Functions, NULL on error, of text; `null_on_error` has the house rules."""

from __future__ import annotations

from .bind import bind, keep, to_int32, to_text

__all__ = ["concatenate", "left", "like", "position", "right", "substring", "trim"]

MAX_TEXT_BYTES = 1_000_000
"""A longer concatenation is NULL: doubling a text in nested queries must not take the memory."""

_SIDES = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}


def concatenate(left: str, right: str) -> str:
    """Return `left || right` of two texts; NULL beyond `MAX_TEXT_BYTES`."""
    return keep(f"{to_text(left)} || {to_text(right)}", f"strlen(v) <= {MAX_TEXT_BYTES}")


def substring(text: str, start: str, length: str | None = None) -> str:
    """Return Postgres' `substring(text FROM start FOR length)`: positions before 1 count but hold nothing."""
    if length is None:
        return bind(f"{{'s': {to_text(text)}, 'a': {to_int32(start)}}}",
                    "CASE WHEN v.a IS NOT NULL THEN substring(v.s, greatest(v.a, 1)) END")  # fmt: skip
    operands = f"{{'s': {to_text(text)}, 'a': {to_int32(start)}, 'n': {to_int32(length)}}}"
    count = "greatest(CAST(v.a AS BIGINT) + v.n - greatest(v.a, 1), 0)"
    body = f"CASE WHEN v.a IS NOT NULL AND v.n >= 0 THEN substring(v.s, greatest(v.a, 1), {count}) END"
    return bind(operands, body)


def left(text: str, count: str) -> str:
    """Return the first `count` characters, or all but the last `-count`."""
    return f"left({to_text(text)}, {to_int32(count)})"


def right(text: str, count: str) -> str:
    """Return the last `count` characters, or all but the first `-count`."""
    return f"right({to_text(text)}, {to_int32(count)})"


def position(needle: str, text: str) -> str:
    """Return where `needle` begins in `text`, from 1, or 0."""
    return f"CAST(strpos({to_text(text)}, {to_text(needle)}) AS INTEGER)"


def trim(text: str, characters: str = "' '", side: str = "both") -> str:
    """Return `text` without `characters` at its ends. `side`: both, leading or trailing.

    DuckDB's one-argument trim also takes other spaces away; Postgres' does not.
    """
    return f"{_SIDES[side]}({to_text(text)}, {to_text(characters)})"


def like(text: str, pattern: str, *, escape: str = "\\", ignore_case: bool = False) -> str:
    """Return `text LIKE pattern ESCAPE escape`; NULL when the pattern ends in an escape.

    `escape`: one ASCII character that is no quote, from the statement; empty for none. Raises ValueError
    for any other.
    """
    word = "ILIKE" if ignore_case else "LIKE"
    if not escape:
        return f"({to_text(text)} {word} {to_text(pattern)})"
    if len(escape) != 1 or not "!" <= escape <= "~" or escape == "'":
        raise ValueError("an escape is one printable ASCII character")
    code = f"\\x{{{ord(escape):x}}}"
    complete = keep(to_text(pattern), f"regexp_full_match(v, '(?s)([^{code}]|{code}.)*')")
    return f"({to_text(text)} {word} {complete} ESCAPE '{escape}')"

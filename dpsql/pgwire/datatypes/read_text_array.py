"""Postgres' text of an array: `{1,NULL,"a \\"b\\""}`."""

from __future__ import annotations

import re

from ..errors import ParameterError

__all__ = ["split_array"]

_ELEMENT = re.compile(
    r"""[ \t\n\r\f\v]*+
        (?: "(?P<quoted>(?:[^"\\]|\\.)*+)" [ \t\n\r\f\v]*+
          | (?P<plain>(?:[^",{}\\]|\\.)*+) )
        (?P<end>[,}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def split_array(text: str) -> list[str | None]:
    """Return the texts of the elements. Raises ParameterError: not an array of one dimension (22P02, 0A000)."""
    word = text.strip(" \t\n\r\f\v")
    if word.startswith(("[", "{{")):
        raise ParameterError(
            "an array of more than one dimension, or with bounds, is not read", sqlstate="0A000"
        )
    if word.startswith("{") and word.endswith("}") and not word[1:-1].strip(" \t\n\r\f\v"):
        return []
    if not word.startswith("{"):
        raise _malformed(text)
    parts: list[str | None] = []
    at = 1
    while True:
        match = _ELEMENT.match(word, at)
        if match is None:
            raise _malformed(text)
        parts.append(_element(match, text))
        at = match.end()
        if match["end"] == "}":
            break
    if at != len(word):
        raise _malformed(text)
    return parts


def _element(match: re.Match[str], text: str) -> str | None:
    if (quoted := match["quoted"]) is not None:
        return _ESCAPE.sub(r"\1", quoted)
    plain = match["plain"].rstrip(" \t\n\r\f\v")
    if not plain:
        raise _malformed(text)
    return None if plain.lower() == "null" else _ESCAPE.sub(r"\1", plain)


def _malformed(text: str) -> ParameterError:
    return ParameterError(f'malformed array literal: "{text[:100]}"', sqlstate="22P02")

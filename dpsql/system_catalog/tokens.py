"""The words of a query's text, as Postgres reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import CatalogRefusal, unsupported

__all__ = ["MAX_TEXT", "Token", "read_tokens"]

MAX_TEXT = 65_536
"""Longest query, in characters."""

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|--[^\n]*)+)
    |(?P<comment>/\*)
    |(?P<string>'(?:[^']|'')*')
    |(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<parameter>\$[0-9]{1,5}(?![0-9A-Za-z_]))
    |(?P<dollar>\$(?P<tag>[A-Za-z_]\w*)?\$)
    |(?P<number>[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z_])|\.[0-9]+(?![A-Za-z_]))
    |(?P<word>[A-Za-z_\u0080-\uffff][\w$]*)
    |(?P<symbol>::|:=|=>|[(),.;\[\]:])
    |(?P<operator>[-+*/<>=~!@\#%^&|`?]+)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"''|\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MAY_END_IN_SIGN = frozenset("~!@#%^&|`?")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: word (lower case), quoted, string, number, parameter, symbol, operator, or end."""

    kind: str
    text: str


def read_tokens(text: str) -> list[Token]:
    """Return the words of a text, the last of kind `end`. Raises CatalogRefusal: it is no text of SQL."""
    if len(text) > MAX_TEXT:
        raise CatalogRefusal("too long", message="the statement is too long", sqlstate="54001")
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or "\0" in match.group():
            raise unsupported("a character that begins no word")
        at = match.end()
        kind, word = str(match.lastgroup), match.group()
        if kind == "tag":
            kind = "dollar"
        if kind == "comment":
            at = _end_of_comment(text, at)
        elif kind == "dollar":
            end = text.find(word, at)
            if end < 0:
                raise unsupported("a quote without an end")
            found.append(Token("string", text[at:end]))
            at = end + len(word)
        elif kind == "operator":
            word = _operator(word)
            at = match.start() + len(word)
            found.append(Token(kind, word))
        elif kind != "space":
            found.append(_READ[kind](word) if kind in _READ else Token(kind, word))
    found.append(Token("end", ""))
    return found


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    while depth:
        mark = _COMMENT.search(text, at)
        if mark is None:
            raise unsupported("a comment without an end")
        depth += 1 if mark.group() == "/*" else -1
        at = mark.end()
    return at


def _operator(word: str) -> str:
    """Return what of a run of signs is one operator: before a comment, and with + or - at its end as in Postgres."""
    for mark in ("--", "/*"):
        if mark in word[1:]:
            word = word[: word.index(mark, 1)]
    while len(word) > 1 and word[-1] in "+-" and not _MAY_END_IN_SIGN.intersection(word):
        word = word[:-1]
    return word


def _unescaped(match: re.Match[str]) -> str:
    letter = match[1]
    if letter is None:
        return "'"
    if letter[0] in "01234567":
        return chr(int(letter, 8))
    if letter[0] in "xu" and len(letter) > 1:
        return chr(int(letter[1:], 16))
    return _LETTERS.get(letter, letter)


_READ = {
    "string": lambda word: Token("string", word[1:-1].replace("''", "'")),
    "escaped": lambda word: Token("string", _ESCAPE.sub(_unescaped, word[2:-1])),
    "quoted": lambda word: Token("quoted", word[1:-1].replace('""', '"')),
    "parameter": lambda word: Token("parameter", word[1:]),
    "word": lambda word: Token("word", word.lower()),
}

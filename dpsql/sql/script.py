"""A script cut into its statements, at each semicolon that stands outside quotes and comments.

This decides nothing about privacy: every piece is parsed and admitted on its own afterwards, so a
cut in an unexpected place can only end in a refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["ScriptStatement", "after_comment", "ends_statement", "split_statements"]

_TOKEN = re.compile(
    r"""
      [eE]'(?:\\.|''|[^'\\])*(?:'|\Z)        # escape string
    | '(?:''|[^'])*(?:'|\Z)                  # string
    | "(?:""|[^"])*(?:"|\Z)                  # quoted name
    | \$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)  # dollar-quoted string
    | --[^\n]*
    | (?P<open>/\*)
    | (?P<end>;)
    | \w+                                     # a word: keeps 1e'… and name$1 from being read as quotes
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement without its semicolon; `start` is where `text` begins in the script, in characters."""

    text: str
    start: int


def split_statements(script: str) -> list[ScriptStatement]:
    """Return the statements of `script` in order; pieces of blank space and comments alone are dropped.

    >>> [s.text for s in split_statements("SELECT ';'; -- a;b\\nSHOW x")]
    ["SELECT ';'", 'SHOW x']
    """
    pieces, tail, tail_has_code = _cut(script)
    if tail_has_code:
        pieces.append(tail)
    return pieces


def ends_statement(script: str) -> bool:
    """Return whether the typed text is complete: nothing but blanks and comments after the last semicolon."""
    pieces, _, tail_has_code = _cut(script)
    return bool(pieces) and not tail_has_code


def _cut(script: str) -> tuple[list[ScriptStatement], ScriptStatement, bool]:
    """Return the finished statements, what follows the last semicolon, and whether that holds any code."""
    pieces: list[ScriptStatement] = []
    at, first = 0, -1
    while at < len(script):
        if script[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(script, at)
        end = at + 1 if token is None else token.end()
        if token is not None and token.group().startswith("--"):
            pass
        elif token is not None and token.group("open"):
            end = after_comment(script, at)
        elif token is not None and token.group("end"):
            if first >= 0:
                pieces.append(ScriptStatement(script[first:at].rstrip(), first))
            first = -1
        elif first < 0:
            first = at
        at = end
    start = first if first >= 0 else len(script)
    return pieces, ScriptStatement(script[start:].rstrip(), start), first >= 0


def after_comment(script: str, start: int) -> int:
    """Return the place after a block comment, which nests in Postgres; the end when it never closes."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(script)

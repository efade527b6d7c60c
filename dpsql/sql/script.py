"""The lexer of scripts: where quotes and comments are, and the statements between the semicolons that stand outside.

This decides nothing about privacy: every piece is parsed and admitted on its own afterwards, so a
cut in an unexpected place can only end in a refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["ScriptStatement", "blank_comments", "ends_statement", "split_statements"]

_MARK = re.compile(
    r"""
      (?<![\w$])[eE]'(?:\\.|''|[^'\\])*(?:'|\Z)     # escape string
    | '(?:''|[^'])*(?:'|\Z)                          # string
    | "(?:""|[^"])*(?:"|\Z)                          # quoted name
    | (?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)  # dollar-quoted string
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement without its semicolon; `start` is where `text` begins in the script, in characters.

    `bare`: the text with a blank for every character of a comment; nothing else moves.
    """

    text: str
    start: int
    bare: str


def split_statements(script: str) -> list[ScriptStatement]:
    """Return the statements of `script` in order; pieces of blank space and comments alone are dropped.

    >>> [s.text for s in split_statements("SELECT ';'; -- a;b\\nSHOW x")]
    ["SELECT ';'", 'SHOW x']
    """
    bare, ends = _read(script)
    pieces = list[ScriptStatement]()
    begin = 0
    for end in [*ends, len(script)]:
        code = bare[begin:end]
        start = begin + len(code) - len(code.lstrip())
        if start < end:
            text = script[start:end].rstrip()
            pieces.append(ScriptStatement(text, start, bare[start : start + len(text)]))
        begin = end + 1
    return pieces


def ends_statement(script: str) -> bool:
    """Return whether the typed text is complete: nothing but blanks and comments after the last semicolon."""
    bare, ends = _read(script)
    return bool(ends) and not bare[ends[-1] + 1 :].strip() and bool(bare.replace(";", " ").strip())


def blank_comments(text: str) -> str:
    """Return the text with a blank for every character of a comment; nothing else moves."""
    return _read(text)[0]


def _read(script: str) -> tuple[str, list[int]]:
    """Return the script without its comments, and where the semicolons between statements stand."""
    pieces, ends, at, copied = list[str](), list[int](), 0, 0
    while found := _MARK.search(script, at):
        start, at, kind = found.start(), found.end(), found.lastgroup
        if kind == "end":
            ends.append(start)
        elif kind in ("line", "block"):
            at = at if kind == "line" else _after_comment(script, start)
            pieces += [script[copied:start], re.sub(r"[^\n]", " ", script[start:at])]
            copied = at
    return "".join([*pieces, script[copied:]]), ends


def _after_comment(script: str, start: int) -> int:
    """Return the place after a block comment, which nests in Postgres; the end when it never closes."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(script)

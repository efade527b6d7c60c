"""The statement's text: limits, characters, where in it a tree node stands; and the statements of a script.

House rules: what a lenient parser could read in two ways is refused here, before it parses
(soundness.md 4.5): characters outside ASCII anywhere but inside quotes and comments, U& escapes, a carriage
return that ends a line for Postgres alone, a number that runs into a name, and string literals side by side.

Scripts are cut by a lexer of their own, which knows where quotes and comments are. It decides nothing about privacy:
every piece is parsed and admitted on its own afterwards, so a cut in an unexpected place can only end in a refusal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from ..errors import Position, Refusal
from .size import MAX_TEXT, check_tokens, check_words

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token
from dataclasses import dataclass

__all__ = [
    "MAX_TEXT",
    "PostgresAsWritten",
    "ScriptStatement",
    "blank_comments",
    "blank_prefix",
    "dialect_of",
    "ends_statement",
    "is_text",
    "mark_starts",
    "place",
    "position_of",
    "read_constant",
    "split_statements",
    "tokenize",
]

_COMMENT = re.compile(r"--[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*\*/)*\*/", re.DOTALL)
_TYPED = frozenset(
    {"BIGINT", "BOOL", "BOOLEAN", "CHAR", "DATE", "DECIMAL", "FLOAT", "INT", "INTEGER", "INTERVAL", "NUMERIC",
     "PRECISION", "REAL", "SMALLINT", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR", "ZONE"}
)  # fmt: skip
_LONE_RETURN = re.compile(r"\r(?!\n)")
_NAME = re.compile(r"[A-Za-z_]")
_FOREIGN = re.compile(r"[^\t\n\r\x20-\x7e]")


class PostgresAsWritten(Postgres):
    """Postgres whose places of arrays stand as they are written: sqlglot counts them down, to count from 0."""

    INDEX_OFFSET = 0


class PostgresWithParameters(PostgresAsWritten):
    """Postgres without dollar quotes: sqlglot reads `$1,$` as the tag of one, which no tag can be."""

    class Tokenizer(Postgres.Tokenizer):
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            **Postgres.Tokenizer.SINGLE_TOKENS,
            "$": TokenType.PARAMETER,
        }


_PARAMETER = re.compile(r"\$[0-9]")


def dialect_of(text: str) -> type[Postgres]:
    """Return the dialect that reads a statement: one with parameters has no dollar quotes."""
    return PostgresWithParameters if _PARAMETER.search(text) else PostgresAsWritten


def place(text: str, offset: int) -> Position:
    """Return the line and column (from 1) of a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, start) + 1, offset - start + 1, offset)


def is_text(value: str) -> bool:
    """Say whether a Python string is text that SQL can hold: no zero, no half of a surrogate pair."""
    return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a statement's text.

    Raises:
        Refusal: too long or too large (54001), not a text of SQL (42601), or one of the forms named above.
    """
    if len(text) > MAX_TEXT:
        raise Refusal(
            f"the statement has more than {MAX_TEXT} characters", sqlstate="54001", hint="write it shorter"
        )
    if not is_text(text):
        raise Refusal(
            "the statement holds a zero byte or half a character",
            sqlstate="42601",
            hint="send it as UTF-8 text",
        )
    check_words(text)
    try:
        tokens: list[Token] = dialect_of(text)().tokenize(text)
    except TokenError:
        raise Refusal(
            "the text ends inside a quote or a comment", sqlstate="42601", hint="close every quote"
        ) from None
    check_tokens(tokens)
    _check_characters(text, tokens)
    _check_neighbours(text, tokens)
    return tokens


def _check_characters(text: str, tokens: Sequence[Token]) -> None:
    if text.isascii() and not _FOREIGN.search(text):
        return
    start = 0
    quoted = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)
    for token in [*tokens, None]:
        end = len(text) if token is None else token.start
        gap = _COMMENT.sub(lambda match: " " * len(match.group()), text[start:end])
        bad = _FOREIGN.search(gap)
        if bad is None and token is not None and token.token_type not in quoted:
            bad = _FOREIGN.search(text[token.start : token.end + 1])
            start = token.start
        if bad is not None:
            raise Refusal(
                "a character outside plain ASCII stands outside quotes",
                sqlstate="42601",
                position=place(text, start + bad.start()),
                hint="retype the spaces and quotes around it, or quote the name",
            )
        start = end if token is None else token.end + 1


def _check_neighbours(text: str, tokens: Sequence[Token]) -> None:
    lone = _LONE_RETURN.search(text)
    if lone is not None:
        raise Refusal(
            "a carriage return stands without a line feed",
            sqlstate="42601",
            position=place(text, lone.start()),
            hint="end lines with a line feed",
        )
    strings = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)
    for kind, string, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            string.token_type in strings
            and after.token_type is TokenType.DCOLON
            and kind.text.upper() in _TYPED
        ):
            # For Postgres the cast is of the typed literal, for the parser of the text inside it.
            raise Refusal(
                "a cast stands after a typed literal",
                sqlstate="42601",
                position=place(text, after.start),
                hint="put the literal in parentheses",
            )
    for left, right in itertools.pairwise([*tokens, None]):
        assert left is not None
        if _is_unicode_escape(text, left, right):
            raise Refusal(
                "U& escapes are not read here",
                sqlstate="42601",
                position=place(text, left.start),
                hint="write the character itself inside quotes",
            )
        if right is None:
            break
        if left.token_type in strings and right.token_type in strings:
            raise Refusal(
                "two string literals stand side by side",
                sqlstate="42601",
                position=place(text, right.start),
                hint="join them with ||",
            )
        if left.token_type is TokenType.NUMBER and right.start == left.end + 1 and _NAME.match(right.text):
            raise Refusal(
                "a number runs into a name",
                sqlstate="42601",
                position=place(text, left.start),
                hint="put a space between them",
            )


def _is_unicode_escape(text: str, left: Token, right: Token | None) -> bool:
    if left.token_type is TokenType.UNICODE_STRING:
        return True
    after = text[left.end + 1 : left.end + 3]
    return left.text.lower() == "u" and right is not None and after in ("&'", '&"')


def blank_prefix(text: str, end: int) -> str:
    """Return the text with everything before `end` blanked, so that positions stay true."""
    return re.sub(r"[^\n]", " ", text[:end]) + text[end:]


_FIRST = "first"
"""Where a tree node keeps the first start of what it holds, once that is known; -1: none is known."""


def mark_starts(nodes: Sequence[exp.Expr]) -> None:
    """Have every node of a tree know where it starts, so that no search does. `nodes`: parents before children."""
    for node in reversed(nodes):
        own, parent = node.meta, node.parent
        first = min(
            (start for start in (own.get(_FIRST, -1), own.get("start", -1)) if start >= 0), default=-1
        )
        own[_FIRST] = first
        if parent is not None and first >= 0:
            above = parent.meta.get(_FIRST, -1)
            parent.meta[_FIRST] = first if above < 0 else min(above, first)


def position_of(text: str, node: exp.Expr | None) -> Position | None:
    """Return where a node starts: its own token, or the first that is known below it, or above it."""
    above = node
    while above is not None:
        start = _start(above, is_whole=above is node)
        if start >= 0:
            return place(text, start)
        above = above.parent
    return None


def _start(node: exp.Expr, *, is_whole: bool) -> int:
    """Return where a node starts, or also what it holds; -1 where that is not known."""
    meta = node._meta or {}
    if not is_whole:
        return int(meta.get("start", -1))
    if _FIRST in meta:
        return int(meta[_FIRST])
    return min(
        (below._meta["start"] for below in node.walk() if below._meta and "start" in below._meta), default=-1
    )


# --- scripts ------------------------------------------------------------------------------------------

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
_CONSTANT = re.compile(
    r"""
      '(?P<string>(?:''|[^'])*)'
    | [eE]'(?P<escaped>[^'\\]*)'
    | "(?P<quoted>(?:""|[^"])+)"
    | (?P<number>[+-]?\s*+(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)
    | (?P<word>[A-Za-z_][\w$]*)
    """,
    re.VERBOSE,
)


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


def read_constant(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the kind, the value and the end of a constant at a place of a text without comments; None: there is none.

    A string, an escaped one (without escapes), a quoted name, a number, or a word, which is in lower case then.
    """
    match = _CONSTANT.match(text, at)
    if match is None:
        return None
    kind = str(match.lastgroup)
    value = match[kind]
    if kind in ("string", "quoted"):
        quote = text[at]
        value = value.replace(2 * quote, quote)
    elif kind == "number":
        value = "".join(value.split()).lstrip("+")
    elif kind == "word":
        value = value.lower()
    return kind, value, match.end()


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

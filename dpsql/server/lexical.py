"""Names, values and comments in the statements that belong to the connection, as Postgres reads them."""

from __future__ import annotations

import re

from ..sql.script import ScriptStatement, after_comment, split_statements
from ..sql.text import MAX_TEXT
from .report import Fault

__all__ = ["NAME", "blank_comments", "compile_form", "cut", "read_list", "syntax_error", "unquoted", "word"]

_MAX_TEXT = 4 * MAX_TEXT
_MAX_STATEMENTS = 10_000
NAME = r'([a-z_][\w$]*|"(?:[^"]|"")+")'
"""A name, quoted or not, as one group of a regular expression."""

_QUOTED = re.compile(
    r"""
      (?<![\w$])[eE]'(?:\\.|''|[^'\\])*'
    | '(?:''|[^'])*'
    | "(?:""|[^"])*"
    | (?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    """,
    re.VERBOSE | re.DOTALL,
)
_VALUE = re.compile(
    r"""
      '(?P<string>(?:''|[^'])*)'
    | [eE]'(?P<escaped>[^'\\]*)'
    | "(?P<quoted>(?:""|[^"])+)"
    | (?P<number>[+-]?\s*(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!\w)
    | (?P<word>[A-Za-z_][\w$]*)
    """,
    re.VERBOSE | re.DOTALL,
)


def compile_form(form: str) -> re.Pattern[str]:
    """Return a statement's form, in any case; blanks are never given back, so that it fails in linear time."""
    form = form.replace(r"\s+", r"\s++").replace(r"\s*", r"\s*+")
    return re.compile(form, re.IGNORECASE | re.DOTALL)


def blank_comments(text: str) -> str:
    """Return the text with a blank for every character of a comment; nothing else moves."""
    if "--" not in text and "/*" not in text:
        return text
    pieces, at = list[str](), 0
    while found := _QUOTED.search(text, at):
        end = after_comment(text, found.start()) if found["block"] else found.end()
        is_comment = found["block"] or found["line"]
        pieces.append(text[at : found.start()])
        pieces.append(
            re.sub(r"[^\n]", " ", text[found.start() : end]) if is_comment else text[found.start() : end]
        )
        at = end
    return "".join([*pieces, text[at:]])


def cut(text: str) -> list[ScriptStatement]:
    """Return the statements of a text. Raises Fault: it is too long to be looked through at once."""
    if len(text) > _MAX_TEXT:
        raise Fault(
            "54001", f"the text has more than {_MAX_TEXT} characters", hint="send fewer statements at once"
        )
    found = split_statements(text)
    if len(found) > _MAX_STATEMENTS:
        raise Fault("54001", f"there are more than {_MAX_STATEMENTS} statements", hint="send fewer at once")
    return found


def unquoted(name: str) -> str:
    """Return a name as Postgres reads it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def word(text: str) -> str:
    """Return the first word in lower case; "" where the text begins otherwise."""
    match = re.match(r"[A-Za-z_]+", text)
    return match.group().lower() if match else ""


def read_list(text: str, what: str) -> tuple[str, ...]:
    """Return the values of a list with commas: strings and quoted names as they are, words in lower case.

    Raises Fault (42601): it is no such list.
    """
    values, at, text = list[str](), 0, text.strip()
    while True:
        match = _VALUE.match(text, at)
        if match is None:
            raise syntax_error(what)
        values.append(_plain(match))
        rest = text[match.end() :].lstrip()
        if not rest:
            return tuple(values)
        if not rest.startswith(","):
            raise syntax_error(what)
        at = len(text) - len(rest[1:].lstrip())


def _plain(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    text = match[kind]
    if kind == "string":
        return text.replace("''", "'")
    if kind == "quoted":
        return text.replace('""', '"')
    return (
        re.sub(r"^\+?\s*|(?<=-)\s+", "", text)
        if kind == "number"
        else text.lower()
        if kind == "word"
        else text
    )


def syntax_error(what: str) -> Fault:
    """Return the error of a statement of the connection's own that is not written right."""
    return Fault("42601", f"syntax error in {what}", hint="it is written as in Postgres 15", position=0)

"""A statement's text -> what belongs to the connection, or what the session is to answer.

House rule: this decides nothing about privacy. What is not one of the forms here goes to the session as it is.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from ..sql.text import blank_prefix, tokenize
from .report import Fault, unsupported

__all__ = [
    "Begin", "CloseCursor", "Command", "Constants", "CopyOut", "Deallocate", "Declare", "Discard", "Done",
    "End", "Engine", "Fetch", "Mark", "Marking", "Reset", "Set", "Show", "count_parameters", "read_statement",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Engine:
    """For the session: a query, EXPLAIN, or a setting of dpsql's."""

    text: str


@dataclass(frozen=True, slots=True)
class Begin:
    """A block begins."""

    tag: str


@dataclass(frozen=True, slots=True)
class End:
    """A block ends."""

    is_commit: bool


class Marking(enum.Enum):
    """What is done with a savepoint."""

    SAVE = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class Mark:
    """A savepoint is made, released or gone back to."""

    marking: Marking
    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """A client's setting gets a value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Show:
    """A client's setting is shown; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Reset:
    """A client's setting goes back; None: all, and dpsql's own too."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Deallocate:
    """A prepared statement is forgotten; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """What the connection has gathered is forgotten, or of that `what` alone."""

    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """What a pool sends when it takes a connection back, and what there is nothing of here."""

    tag: str


@dataclass(frozen=True, slots=True)
class Constants:
    """SELECT of what the connection knows of itself: functions, and the names of their columns."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY (query) TO STDOUT; `query` is blank where the words around it stood."""

    query: str
    format: str
    has_header: bool


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor is opened over a query; `is_held`: it outlives its block."""

    name: str
    query: str
    is_held: bool


@dataclass(frozen=True, slots=True)
class Fetch:
    """A cursor's next rows, `count` or all of them (None); `is_move`: they are passed over."""

    name: str
    count: int | None
    is_move: bool


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """A cursor is closed; None: all."""

    name: str | None


Command = (
    Engine
    | Begin
    | End
    | Mark
    | Set
    | Show
    | Reset
    | Deallocate
    | Discard
    | Done
    | Constants
    | CopyOut
    | Declare
    | Fetch
    | CloseCursor
)

_NAME = r'([a-z_]\w*|"(?:[^"]|"")+")'
_MODE = r"(?:isolation\s+level\s+read\s+(?:un)?committed|read\s+only|read\s+write|(?:not\s+)?deferrable)"
_MODES = rf"{_MODE}(?:\s*,?\s*{_MODE})*"
_VALUE = r"(.+)"
_FUNCTION = (
    r"(?:pg_catalog\.)?(version|current_schema|current_database|pg_backend_pid|pg_is_in_recovery|"
    r"pg_advisory_unlock_all)\s*\(\s*\)|(current_user|session_user|current_role|user|current_catalog|current_schema)"
)
_ITEM = rf"(?:{_FUNCTION})(?:\s+(?:as\s+)?{_NAME})?"
_ITEMS = re.compile(rf"select\s+{_ITEM}(?:\s*,\s*{_ITEM})*", re.IGNORECASE)
_COPY = re.compile(
    r"copy\s*(\(.*\))\s*to\s+stdout(?:\s+(?:with\s*)?(?:\(([^()]{0,200})\)|(csv|binary|text)(\s+header)?))?",
    re.IGNORECASE | re.DOTALL,
)
_DECLARE = re.compile(
    rf"declare\s+{_NAME}\s+(?:(?:insensitive|asensitive|no\s+scroll)\s+)*cursor"
    r"(?:\s+(with|without)\s+hold)?\s+for\s+(?=\S)",
    re.IGNORECASE,
)
_COPY_OPTION = re.compile(r"format\s+(text|csv|binary)|header(?:\s+(true|on|1|false|off|0))?", re.IGNORECASE)

_HINTS = {
    "prepare": ("PREPARE", "prepare through the driver; SQL's own PREPARE is not read"),
    "execute": ("EXECUTE", "prepare through the driver; SQL's own EXECUTE is not read"),
    "listen": ("LISTEN", "nothing is ever notified here"),
}


def unquoted(name: str) -> str:
    """Return a name as Postgres reads it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _value(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        return text[1:-1]
    if len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1].replace("''", ""):
        return text[1:-1].replace("''", "'")
    return text


def _set(name: str, written: str) -> Command:
    value = _value(written)
    return Reset(name) if value.lower() == "default" else Set(name, value)


def _fetch(match: re.Match[str]) -> Command:
    how = (match[2] or "next").lower()
    count = None if how == "all" else 1 if how == "next" else int(how)
    return Fetch(unquoted(match[3]), count, match[1].lower() == "move")


_FORMS: tuple[tuple[str, Callable[[re.Match[str]], Command]], ...] = (
    (rf"begin(?:\s+(?:work|transaction))?(?:\s+{_MODES})?", lambda m: Begin("BEGIN")),
    (rf"start\s+transaction(?:\s+{_MODES})?", lambda m: Begin("START TRANSACTION")),
    (r"(?:commit|end)(?:\s+(?:work|transaction))?", lambda m: End(True)),
    (r"(?:rollback|abort)(?:\s+(?:work|transaction))?", lambda m: End(False)),
    (rf"savepoint\s+{_NAME}", lambda m: Mark(Marking.SAVE, unquoted(m[1]))),
    (rf"release\s+(?:savepoint\s+)?{_NAME}", lambda m: Mark(Marking.RELEASE, unquoted(m[1]))),
    (
        rf"rollback\s+(?:(?:work|transaction)\s+)?to\s+(?:savepoint\s+)?{_NAME}",
        lambda m: Mark(Marking.ROLLBACK, unquoted(m[1])),
    ),
    (rf"set\s+transaction\s+{_MODES}", lambda m: Done("SET")),
    (rf"set\s+session\s+characteristics\s+as\s+transaction\s+{_MODES}", lambda m: Done("SET")),
    (rf"set\s+(?:session\s+)?time\s+zone\s+{_VALUE}", lambda m: _set("timezone", m[1])),
    (rf"set\s+names\s+{_VALUE}", lambda m: _set("client_encoding", m[1])),
    (rf"set\s+(?:session\s+)?([a-z_]\w*)\s*(?:=|\bto\b)\s*{_VALUE}", lambda m: _set(m[1], m[2])),
    (r"show\s+all", lambda m: Show(None)),
    (r"show\s+time\s+zone", lambda m: Show("timezone")),
    (r"show\s+transaction\s+isolation\s+level", lambda m: Show("transaction_isolation")),
    (r"show\s+session\s+authorization", lambda m: Show("session_authorization")),
    (r"show\s+([a-z_]\w*)", lambda m: Show(m[1])),
    (r"reset\s+all", lambda m: Reset(None)),
    (r"reset\s+([a-z_]\w*)", lambda m: Reset(m[1])),
    (r"deallocate\s+(?:prepare\s+)?all", lambda m: Deallocate(None)),
    (rf"deallocate\s+(?:prepare\s+)?{_NAME}", lambda m: Deallocate(unquoted(m[1]))),
    (r"discard\s+(all|plans|sequences|temp|temporary)", lambda m: Discard(m[1].lower())),
    (r"unlisten\s+\*", lambda m: Done("UNLISTEN")),
    (r"close\s+all", lambda m: CloseCursor(None)),
    (rf"close\s+{_NAME}", lambda m: CloseCursor(unquoted(m[1]))),
    (rf"(fetch|move)\s+(?:forward\s+)?(?:(\d{{1,9}}|all|next)\s+)?(?:(?:from|in)\s+)?{_NAME}", _fetch),
)
_COMPILED = tuple((re.compile(form, re.IGNORECASE | re.DOTALL), make) for form, make in _FORMS)
_OWN = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "show", "reset",
     "deallocate", "discard", "unlisten", "close", "fetch", "move"}
)  # fmt: skip
_DPSQL = re.compile(r"(?:set\s+(?:session\s+)?|show\s+|reset\s+)dpsql\s*\.", re.IGNORECASE)
_LONGEST = 1000
"""Characters of a statement of the connection's own."""
_WORD = re.compile(r"[A-Za-z]+")
_CATALOG = re.compile(r"\b(?:from|join)\s+(?:pg_catalog|information_schema)\s*\.", re.IGNORECASE)


def read_statement(text: str) -> Command:
    """Return what one statement asks for; `text` begins with its first word.

    Raises Fault: a statement of the connection's own that is not written right, or that is not supported.
    """
    first = _WORD.match(text)
    word = first.group().lower() if first else ""
    bare = text.rstrip().rstrip(";").rstrip()
    if word == "select" and _ITEMS.fullmatch(bare):
        return Constants(tuple(_items(bare)))
    if word == "copy":
        return _copy(text, bare)
    if word == "declare" and (match := _DECLARE.match(bare)):
        query = blank_prefix(text[: len(bare)], match.end())
        return Declare(unquoted(match[1]), query, (match[2] or "").lower() == "with")
    if word == "declare":
        raise unsupported("this form of DECLARE", "DECLARE name CURSOR FOR SELECT …, to be read forward")
    if word in _HINTS:
        raise unsupported(*_HINTS[word])
    if word not in _OWN or _DPSQL.match(bare):
        if _CATALOG.search(text):
            raise unsupported(
                "the system catalog", "a table that does not exist is told with the list of those that do"
            )
        return Engine(text)
    for form, make in _COMPILED if len(bare) <= _LONGEST else ():
        if match := form.fullmatch(bare):
            return make(match)
    raise Fault(
        "0A000", f"this form of {word.upper()} is not supported",
        hint="blocks are BEGIN, COMMIT, ROLLBACK and savepoints, read committed; cursors go forward; SET name = value",
        position=0,
    )  # fmt: skip


def _items(text: str) -> list[tuple[str, str]]:
    found = []
    for match in re.finditer(_ITEM, text[len("select") :], re.IGNORECASE):
        function = (match[1] or match[2]).lower()
        found.append((function, unquoted(match[3]) if match[3] else function))
    return found


def _copy(text: str, bare: str) -> CopyOut:
    match = _COPY.fullmatch(bare)
    if match is None:
        raise unsupported("this form of COPY", "COPY (SELECT …) TO STDOUT (FORMAT csv, HEADER)")
    form, has_header = (match[3] or "text").lower(), bool(match[4])
    for option in (match[2] or "").split(","):
        read = _COPY_OPTION.fullmatch(option.strip())
        if read is None and option.strip():
            raise unsupported("this option of COPY", "FORMAT text, csv or binary, and HEADER, are read")
        if read is not None and read[1]:
            form = read[1].lower()
        elif read is not None:
            has_header = (read[2] or "true").lower() in ("true", "on", "1")
    query = blank_prefix(text[: match.end(1) - 1], match.start(1) + 1)
    return CopyOut(query, form, has_header)


def count_parameters(command: Command) -> int:
    """Return the largest n of the $n in a command's query. Raises Refusal: no text of SQL."""
    if not isinstance(command, (Engine, CopyOut, Declare)):
        return 0
    text = command.text if isinstance(command, Engine) else command.query
    tokens = tokenize(text)
    if tokens and tokens[0].text.lower() == "explain":  # the tokenizer takes what follows for one string
        tokens = tokenize(blank_prefix(text, tokens[0].end + 1))
    numbers = [
        re.match(r"\$(\d{1,4})(?!\d)", text[token.start :])
        for token in tokens
        if token.token_type is TokenType.PARAMETER
    ]
    return max((int(number[1]) for number in numbers if number), default=0)

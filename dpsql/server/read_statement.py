"""A statement's text -> what belongs to the connection, or what the session is to answer.

House rule: this decides nothing about privacy. What is not one of the forms here goes to the session as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from ..sql.text import blank_prefix, tokenize
from .lexical import NAME, blank_comments, compile_form, read_list, syntax_error, unquoted, word
from .read_cursor import read_copy, read_declare, read_fetch
from .read_prepared import read_execute, read_prepare
from .report import Fault, unsupported
from .statements import (
    Begin,
    CatalogQuery,
    Characteristics,
    CloseCursor,
    Command,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    Done,
    End,
    Engine,
    Mark,
    Marking,
    Modes,
    Reset,
    Set,
    Show,
)

__all__ = ["count_parameters", "read_statement"]

_LEVEL = r"(?:serializable|repeatable\s+read|read\s+(?:un)?committed)"
_MODE = rf"(?:isolation\s+level\s+{_LEVEL}|read\s+only|read\s+write|(?:not\s+)?deferrable)"
_MODES = rf"({_MODE}(?:(?:\s*,\s*|\s+){_MODE})*)"
_BLOCK = r"(?:\s+(?:work|transaction))?"
_CHAIN = r"(?:\s+and(\s+no)?(\s+chain))?"
_SCOPE = r"set(?:\s+(session|local))?\s+"
_SETTING = r'((?:[a-z_][\w$]*|"[^"]+")(?:\s*\.\s*(?:[a-z_][\w$]*|"[^"]+"))*)'
_NOBODY = "nothing is ever notified here"


def _name(written: str) -> str:
    return ".".join(map(unquoted, re.findall(NAME, written, re.IGNORECASE)))


def _set(scope: str | None, name: str, written: str) -> Command:
    is_local = (scope or "").lower() == "local"
    if written.strip().lower() == "default":
        return Reset(name, "SET", is_local)
    return Set(name, read_list(written, "SET"), is_local)


def _zone(match: re.Match[str]) -> Command:
    written = match[2].strip()
    if written.lower() == "local":
        return _set(match[1], "timezone", "default")
    interval = re.fullmatch(r"interval\s*('[^']*')(?:\s+hour(?:\s+to\s+minute)?)?", written, re.IGNORECASE)
    return _set(match[1], "timezone", interval[1] if interval else written)


def _names(match: re.Match[str]) -> Command:
    return _set(match[1], "client_encoding", match[2] or "default")


def _modes(text: str | None) -> Modes:
    found = list[tuple[str, str]]()
    for mode in re.findall(_MODE, text or "", re.IGNORECASE):
        words = mode.lower().split()
        if words[0] == "isolation":
            found.append(("transaction_isolation", " ".join(words[2:])))
        elif words[0] == "read":
            found.append(("transaction_read_only", "on" if words[1] == "only" else "off"))
        else:
            found.append(("transaction_deferrable", "off" if words[0] == "not" else "on"))
    return tuple(found)


def _end(match: re.Match[str]) -> Command:
    return End(word(match[0]) in ("commit", "end"), match[2] is not None and match[1] is None)


def _role(match: re.Match[str]) -> Command:
    if match[1].strip().lower() in ("none", "default"):
        return Done("SET")
    raise Fault("42501", "who you are cannot be changed", hint="connect as somebody else")


def _discard(match: re.Match[str]) -> Command:
    return Discard(match[1].lower().replace("temporary", "temp"))


_CONSTRAINTS = "SET CONSTRAINTS can only be used in transaction blocks"
_FORMS: tuple[tuple[str, Callable[[re.Match[str]], Command]], ...] = (
    (rf"begin{_BLOCK}(?:\s+{_MODES})?", lambda m: Begin("BEGIN", _modes(m[1]))),
    (rf"start\s+transaction(?:\s+{_MODES})?", lambda m: Begin("START TRANSACTION", _modes(m[1]))),
    (rf"(?:commit|end|rollback|abort){_BLOCK}{_CHAIN}", _end),
    (rf"savepoint\s+{NAME}", lambda m: Mark(Marking.SAVE, unquoted(m[1]))),
    (rf"release\s+(?:savepoint\s+)?{NAME}", lambda m: Mark(Marking.RELEASE, unquoted(m[1]))),
    (
        rf"rollback{_BLOCK}\s+to\s+(?:savepoint\s+)?{NAME}",
        lambda m: Mark(Marking.ROLLBACK, unquoted(m[1])),
    ),
    (rf"set\s+(?:local\s+)?transaction\s+{_MODES}", lambda m: Characteristics(_modes(m[1]), False)),
    (
        rf"set\s+session\s+characteristics\s+as\s+transaction\s+{_MODES}",
        lambda m: Characteristics(_modes(m[1]), True),
    ),
    (r"set\s+constraints\s+.+\s(?:deferred|immediate)", lambda m: Done("SET CONSTRAINTS", _CONSTRAINTS)),
    (rf"{_SCOPE}time\s+zone\s+(.+)", _zone),
    (rf"{_SCOPE}names(?:\s+(.+))?", _names),
    (rf"{_SCOPE}xml\s+option\s+(.+)", lambda m: _set(m[1], "xmloption", m[2])),
    (r"set\s+(?:(?:session|local)\s+)?(?:role|session\s+authorization)\s+(.+)", _role),
    (rf"{_SCOPE}{_SETTING}\s*(?:=|\bto\b)\s*(.+)", lambda m: _set(m[1], _name(m[2]), m[3])),
    (r"show\s+all", lambda m: Show(None)),
    (r"show\s+time\s+zone", lambda m: Show("timezone")),
    (r"show\s+transaction\s+isolation\s+level", lambda m: Show("transaction_isolation")),
    (r"show\s+session\s+authorization", lambda m: Show("session_authorization")),
    (rf"show\s+{_SETTING}", lambda m: Show(_name(m[1]))),
    (r"reset\s+all", lambda m: Reset(None)),
    (r"reset\s+time\s+zone", lambda m: Reset("timezone")),
    (r"reset\s+transaction\s+isolation\s+level", lambda m: Done("RESET")),
    (r"reset\s+(?:role|session\s+authorization)", lambda m: Done("RESET")),
    (rf"reset\s+{_SETTING}", lambda m: Reset(_name(m[1]))),
    (r"deallocate\s+(?:prepare\s+)?all", lambda m: Deallocate(None)),
    (rf"deallocate\s+(?:prepare\s+)?{NAME}", lambda m: Deallocate(unquoted(m[1]))),
    (r"discard\s+(all|plans|sequences|temp|temporary)", _discard),
    (rf"unlisten\s+(?:\*|{NAME})", lambda m: Done("UNLISTEN")),
    (r"close\s+all", lambda m: CloseCursor(None)),
    (rf"close\s+{NAME}", lambda m: CloseCursor(unquoted(m[1]))),
)
_COMPILED = tuple((compile_form(form), make) for form, make in _FORMS)
_OWN = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "show", "reset",
     "deallocate", "discard", "unlisten", "close"}
)  # fmt: skip
_READS = "dpsql only reads: ask with SELECT"
_WITH_QUERY: dict[str, Callable[[str, str], Command]] = {
    "copy": read_copy, "declare": read_declare, "prepare": read_prepare
}  # fmt: skip
_REFUSED = {
    **dict.fromkeys(("listen", "notify"), ("0A000", _NOBODY)),
    **dict.fromkeys(("lock", "do", "call", "load"), ("0A000", _READS)),
    **dict.fromkeys(
        ("checkpoint", "vacuum", "analyze", "analyse", "cluster", "reindex", "refresh", "grant", "revoke", "create",
         "alter", "drop", "truncate", "comment", "security", "reassign", "import"), ("42501", _READS),
    ),
}  # fmt: skip
"""First words of what is never done here: SQLSTATE and hint."""
_SHOW_OWN = re.compile(r"show\s+dpsql\s*\.", re.IGNORECASE)
_LONGEST = 10_000
"""Characters of a statement of the connection's own."""
_EXPLAIN_EXECUTE = compile_form(r"explain\s*(?:\([^()]*\)\s*)?(?:(?:analyze|verbose)\s+)*execute\b")


def read_statement(text: str) -> Command:
    """Return what one statement asks for; `text` begins with its first word.

    Raises Fault: a statement of the connection's own that is not written right (42601), or that is not supported.
    """
    bare = blank_comments(text).rstrip().rstrip(";").rstrip()
    first = word(bare)
    if first in _WITH_QUERY:
        return _WITH_QUERY[first](text, bare)
    if first in ("execute", "fetch", "move", *_OWN) and len(bare) > _LONGEST:
        raise Fault("54001", f"the statement has more than {_LONGEST} characters", hint="write it shorter")
    if first == "execute":
        return read_execute(bare)
    if first in ("fetch", "move"):
        return read_fetch(bare)
    if first in _REFUSED:
        sqlstate, hint = _REFUSED[first]
        raise Fault(sqlstate, f"{first.upper()} is not done here", hint=hint)
    if first in _OWN and not _SHOW_OWN.match(bare):
        return _own(first, bare)
    if first == "explain" and _EXPLAIN_EXECUTE.match(bare):
        raise unsupported("EXPLAIN EXECUTE", "EXPLAIN the query itself, with its constants")
    return Engine(text)


def _own(first: str, bare: str) -> Command:
    for form, make in _COMPILED:
        if match := form.fullmatch(bare):
            return make(match)
    if re.match(r"set\s+transaction\s+snapshot\b", bare, re.IGNORECASE):
        raise unsupported("SET TRANSACTION SNAPSHOT", "each statement reads the database as it is")
    if re.match(r"(?:commit|rollback)\s+prepared\b", bare, re.IGNORECASE):
        raise unsupported(f"{first.upper()} PREPARED", "dpsql only reads: COMMIT or ROLLBACK end a block")
    raise syntax_error(first.upper())


def count_parameters(command: Command) -> int:
    """Return the largest n of the $n in a command's query. Raises Refusal: no text of SQL."""
    if not isinstance(command, (Engine, CatalogQuery, CopyOut, Declare)):
        return 0
    text = command.text if isinstance(command, (Engine, CatalogQuery)) else command.query
    tokens = tokenize(text)
    if tokens and tokens[0].text.lower() == "explain":  # the tokenizer takes what follows for one string
        tokens = tokenize(blank_prefix(text, tokens[0].end + 1))
    numbers = [
        re.match(r"\$(\d{1,4})(?!\d)", text[token.start :])
        for token in tokens
        if token.token_type is TokenType.PARAMETER
    ]
    return max((int(number[1]) for number in numbers if number), default=0)

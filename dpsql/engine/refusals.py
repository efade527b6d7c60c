"""The log of refusals: who was refused, when, by which code. For the owner alone; nothing is decided by it.

House rules:

1. What stands in it follows from texts, policy and ledger: what is refused is the same for neighbours (soundness.md
   3.4). No value of people's rows leads here.
2. Of statements that are parsed alone, and no utility statement: those may hold secrets. Their text only where the
   policy asks for it, and then without literals and without names that the policy does not know, unless it asks for
   them too.
3. A file of fixed size for each analyst, so that nobody pushes out another's: the oldest gives way. Its owner's alone
   (mode 600, in a folder of mode 700), beside the ledger.
4. A log that cannot be written is no reason to fail, nor to wait: what is refused stays refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlglot.tokenizer_core import TokenType

from ..errors import BudgetExhausted, DpsqlError, Refusal
from ..policy import Policy
from ..records import dataclass
from ..sql.bind_expression import is_anybodys
from ..sql.text import tokenize, unquoted

SLOTS: Final = 128
"""So many of an analyst's newest refusals are kept."""
SLOT_BYTES: Final = 1024
_WAIT_SECONDS: Final = 0.5
_MOST_ANALYSTS: Final = 1_000
_MOST_CHARACTERS: Final = 600
_MOST_NAMED: Final = 80  # characters of a name, of twelve bytes each at most, in a head of one slot
_LITERALS: Final = frozenset(
    {
        TokenType.STRING, TokenType.NUMBER, TokenType.BIT_STRING, TokenType.HEX_STRING, TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING,
    }
)  # fmt: skip
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal. `at`: UTC, to the second. `statement`, `message`: as far as the policy has them kept, else empty."""

    at: str
    analyst: str
    code: str
    statement: str = ""
    message: str = ""

    @property
    def is_of_budget(self) -> bool:
        """Whether it was not the statement that was refused, but its price."""
        return self.code == BudgetExhausted.default_sqlstate


class RefusalLog:
    """The refusals of a policy's analysts, beside its ledger. Processes may share it."""

    def __init__(self, policy: Policy) -> None:
        self._keeps = policy.server.refusals
        scheme, _, path = policy.ledger.partition(":")
        self._ledger = Path(path) if scheme == "sqlite" else policy.ledger_log
        self.folder = self._ledger.with_name(f"{self._ledger.name}.refusals")
        names = {*policy.tables, *policy.views}
        for table in policy.tables.values():
            names.update(column.name for column in table.columns)
            names.update(() if table.unit is None else table.unit.columns)
        for view in policy.views.values():
            names.update(column.name for column in view.columns)
        self._known = frozenset(part for name in names for part in (name, *name.split(".")))

    def record(self, analyst: str, error: DpsqlError, statement: str) -> None:
        """Keep a refusal of a parsed query; what is none, such as a cancel or a failure, is not kept."""
        if not isinstance(error, Refusal | BudgetExhausted):
            return
        found = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "code": error.sqlstate}
        if not statement:
            pass  # of several, of which one was refused
        elif self._keeps == "shapes":
            found["statement"] = shape_of(statement, self._known)[:_MOST_CHARACTERS]
        elif self._keeps == "texts":
            found["statement"] = " ".join(statement.split())[:_MOST_CHARACTERS]
            found["message"] = error.message[: _MOST_CHARACTERS // 4]
        with suppress(OSError, ValueError):
            if self._ledger.exists():
                self._write(analyst, found)

    def read(self) -> list[Refused]:
        """Return all that is kept, the newest first."""
        found: list[Refused] = []
        with suppress(OSError):
            for path in sorted(self.folder.iterdir()):
                with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                    found.extend(_read(path.read_bytes()))
        return sorted(found, key=lambda one: one.at, reverse=True)

    def _write(self, analyst: str, found: dict[str, str]) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(analyst.encode()).hexdigest()[:32]}.log"
        if not path.exists() and len(os.listdir(self.folder)) >= _MOST_ANALYSTS:
            return
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if not (_is_own(os.fstat(descriptor)) and _locked(descriptor)):
                return
            number = _next(os.pread(descriptor, SLOT_BYTES, 0))
            while len(slot := _slot(found)) > SLOT_BYTES:
                longest = max(("statement", "message"), key=lambda name: len(found.get(name, "")))
                found[longest] = found[longest][: -(len(found[longest]) // 8 + 1)]
            os.pwrite(descriptor, slot, SLOT_BYTES * (1 + number))
            head = {"analyst": analyst[:_MOST_NAMED], "next": str((number + 1) % SLOTS)}
            os.pwrite(descriptor, _slot(head), 0)
        finally:
            os.close(descriptor)


def shape_of(statement: str, known: frozenset[str]) -> str:
    """Return a query's text without comments, and with `?` for each literal and each name that is neither known nor
    that of a function which Postgres or dpsql has."""
    text, end = "", 0
    tokens = tokenize(statement)
    for place, token in enumerate(tokens):
        written = statement[token.start : token.end + 1]
        is_called = place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN
        is_name = token.token_type in _NAMES and not (is_called and is_anybodys(written))
        if token.token_type in _LITERALS or (is_name and unquoted(written) not in known):
            written = "?"
        text += (" " if text and token.start > end else "") + written
        end = token.end + 1
    return text


def _slot(found: dict[str, str]) -> bytes:
    return json.dumps(found).encode().ljust(SLOT_BYTES - 1) + b"\n"


def _is_own(file: os.stat_result) -> bool:
    """Say whether a file is one that this user has made here."""
    return (
        stat.S_ISREG(file.st_mode) and file.st_uid == os.geteuid() and not stat.S_IMODE(file.st_mode) & 0o077
    )


def _locked(descriptor: int) -> bool:
    """Lock a file, for which it waits a moment; return whether it is."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_WAIT_SECONDS / 100)
        else:
            return True


def _next(head: bytes) -> int:
    """Return the place of the refusal that comes next; of a head that cannot be read, the first."""
    try:
        return int(str(json.loads(head)["next"])) % SLOTS
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0


def _read(content: bytes) -> Iterator[Refused]:
    analyst = str(json.loads(content[:SLOT_BYTES])["analyst"])
    for start in range(SLOT_BYTES, len(content), SLOT_BYTES):
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            slot = json.loads(content[start : start + SLOT_BYTES])
            yield Refused(
                str(slot["at"]),
                analyst,
                str(slot["code"]),
                str(slot.get("statement", "")),
                str(slot.get("message", "")),
            )

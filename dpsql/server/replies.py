"""Replies that are remembered by the bytes that they answer: what is asked again is neither read nor written again.

House rules:

1. Remembered is how an answer was written, never whether it may be given. The session is asked each time
   (`Session.recall`: settings, access, epoch, stored answers, budget), and the reply is sent only where it gives the
   very rows that were written. Whatever has it forget an answer, or give another, ends the reply with it: a refresh, a
   new draw, a setting, a clock that is read, a public table that is.
2. NOTICEs are written anew each time: what is left of the budget, and what is told once, is of now.
3. The key is all else that decides how rows are written: the bytes, the client's settings and dpsql's own, what the
   analyst sees, and the prepared statement that is bound.
4. A batch is one query of the session's, outside a block, with no cursor open: a Query; or Bind, Describe, Execute and
   Sync, of a statement that is prepared or of one that is parsed without a name before. It leaves the connection as it
   found it, but for that statement.
5. They belong to a dataset, which another policy, or other tables, are not; `MOST_BYTES` of them, the latest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .. import pgwire
from ..cache import Cache
from .state import PreparedStatement
from .statements import Query, Statement

__all__ = ["LONGEST", "MOST_BYTES", "Batch", "Key", "Replies", "Reply", "is_batch", "statement_name"]

MOST_BYTES = 16 * 2**20
LONGEST = 16 * 1024
"""Bytes of a batch that is remembered."""
_LARGEST = 64 * 1024
"""Bytes of a reply that is remembered."""
_ROWS_FACTOR = 8
"""How many bytes the rows take that a byte of them keeps alive, at most about."""
_OVERHEAD = 2000


Key = tuple[bytes, Hashable, Hashable, Hashable]
"""The bytes of a batch, the statement that it binds, the settings, and what the analyst sees."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was sent: `before` its notices, and `after` them; to the query `text` with `values`.

    `rows`: those that were written. `unnamed`: the statement that Parse left behind; None where there was no Parse.
    """

    text: str
    values: tuple[object, ...]
    rows: Sequence[tuple[object, ...]]
    before: bytes
    after: bytes
    unnamed: PreparedStatement | None


@dataclass(slots=True)
class Batch:
    """What came at once, while it is answered: under which key its reply would be remembered, and what is in it."""

    key: Key
    events: list[pgwire.Event] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    sent: bytes = b""

    def take(self, data: bytes) -> bool:
        """Take what is sent of the reply; False where it is not one small whole."""
        is_whole, self.sent = not self.sent and len(data) <= _LARGEST, data
        return is_whole

    def parts(self) -> tuple[Query, bytes, bytes] | None:
        """Return its one query, and what was sent before and after the notices; None where it is no batch (rule 4)."""
        if (
            len(self.statements) != 1
            or not isinstance(self.statements[0], Query)
            or not is_batch(self.events)
        ):
            return None
        found = _notices(self.sent)
        return None if found is None else (self.statements[0], self.sent[: found[0]], self.sent[found[1] :])

    @property
    def parses(self) -> bool:
        """Whether it leaves an unnamed statement behind."""
        return isinstance(self.events[0], pgwire.Parse)


class Replies(Cache[Reply]):
    """The remembered replies of a dataset, for all who see the same of it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(most_bytes, _size)


def _size(key: Key, reply: Reply) -> int:
    """Return how many bytes a reply takes, at most about."""
    sent = len(reply.before) + len(reply.after)
    return _OVERHEAD + len(key[0]) + len(reply.text) + _ROWS_FACTOR * sent


def statement_name(data: bytes) -> str | None:
    """Return which statement a batch binds without a Parse; "" also for one that binds none so; None for no batch."""
    if len(data) < 6 or len(data) > LONGEST:
        return None
    if data[0] in b"QP":
        return "" if data[0] == ord("Q") or data[5] == 0 else None
    end = data.find(0, 6)
    if data[0] != ord("B") or data[5] != 0 or end < 0:
        return None
    return data[6:end].decode(errors="replace")


def is_batch(events: Sequence[pgwire.Event]) -> bool:
    """Return whether these messages, and no others, are one query of one kind of batch (rule 4)."""
    match events:
        case [pgwire.Query()]:
            return True
        case [pgwire.Parse(statement=""), pgwire.Bind(statement=""), *_]:
            events = events[1:]
    match events:
        case [pgwire.Bind("", name), *describes, pgwire.Execute("", 0), pgwire.Sync()]:
            allowed = (
                pgwire.Describe(pgwire.Target.PORTAL, ""),
                pgwire.Describe(pgwire.Target.STATEMENT, name),
            )
            return all(one in allowed for one in describes)
    return False


_BEFORE = b"12tTnD"
_NOTICE, _LAST = ord("N"), b"CZ"


def _notices(sent: bytes) -> tuple[int, int] | None:
    """Return where the notices of a reply begin and end; None where it is not rows, notices, the tag and ready."""
    tags, places, place = bytearray(), [], 0
    while place < len(sent):
        tags.append(sent[place])
        places.append(place)
        place += 1 + int.from_bytes(sent[place + 1 : place + 5], "big")
    body, last = tags[:-2], bytes(tags[-2:])
    rows = body.rstrip(b"N")
    if last != _LAST or sent[-1:] != b"I" or rows.translate(None, _BEFORE):
        return None
    return (places[len(rows)], places[len(body)])

"""The dataset that all connections share, and the sessions on it; opened anew when policy or tables have changed.

House rules:

1. A session stays on the dataset that it was opened on. When the policy says something else to its analyst, or the
   tables have changed, its connection has to end: plans, types that were described and caps are of the old one.
2. A dataset is closed when the last session on it is: a charge that runs is never given up.

House rules, replies that are remembered by the bytes that they answer:

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

import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import field

from .. import pgwire
from ..cache import Cache
from ..engine import Session
from ..engine.dataset import Dataset
from ..engine.spine import StatementTurns
from ..errors import EngineFailure, LedgerError, PolicyError
from ..memory import MIB, MemoryLimits, ResultMemory, give_back
from ..policy import Access, Analyst, Policy, ServerPolicy
from ..records import dataclass
from ..relation.catalog import Catalog
from ..sql.text_process import TextProcess
from ..system_catalog import SystemCatalog
from ..waits import Pace, Precedence, Stop, Stopped, until
from .client_settings import VERSION, VERSION_TEXT
from .processes import Place
from .report import Seldom, log
from .state import PreparedStatement
from .statements import Query, Statement

# --- replies that are remembered by the bytes that they answer ----------------------------------------------


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


# --- the dataset that all connections share, and the sessions on it -----------------------------------------


_IDLE_SECONDS = 30.0
_FILE_SECONDS = 1.0
"""How long after the last statement began a database is kept open; a DuckDB file, which nobody can write meanwhile."""

_OPEN_SECONDS = 120.0
"""How long a dataset may take to be opened anew: a peer that is silent holds up no login, and no reload, for longer."""
_TRIM_SECONDS, _TRIM_UNTIL = 10.0, 120.0


@dataclass
class _Opened:
    """A dataset, and what connections to it share. `users`: sessions on it; `is_stale`: its tables have changed."""

    dataset: Dataset
    catalogs: dict[Access, SystemCatalog]
    replies: Replies = field(default_factory=Replies)
    users: int = 0
    is_stale: bool = False


class Sessions:
    """Opens sessions on the current dataset; every method may be called from any thread."""

    def __init__(
        self,
        policy: Policy,
        precedence: Precedence,
        texts: TextProcess,
        processes: int = 1,
        place: Place | None = None,
    ) -> None:
        """Open the dataset; `precedence` and `texts`: of all that share the interpreter; `processes`: how many serve,
        and `place`, what they share.

        Raises PolicyError, LedgerError, EngineFailure: the owner has to mend something.
        """
        self._lock = threading.Lock()
        self.memory = ResultMemory(_limits(policy.server).part(processes))
        self._place = place
        self._precedence, self._texts = precedence, texts
        self._untidied = Seldom("ledger not tidied")
        self._turns = self._turns_of(policy)
        self._current = self._open(policy)
        self._opened = {id(self._current.dataset): self._current}
        self._used = self._trimmed = time.monotonic()

    @property
    def dataset(self) -> Dataset:
        """What new sessions are opened on."""
        return self._current.dataset

    def catalog(self, session: Session) -> SystemCatalog:
        """Return the system catalog of what a session's analyst sees of its dataset."""
        return self._opened[id(session.dataset)].catalogs[session.access]

    def replies(self, session: Session) -> Replies:
        """Return what is remembered of the replies about a session's dataset."""
        return self._opened[id(session.dataset)].replies

    def pace(self, analyst: str) -> Pace:
        """Return what an analyst's large answers are sent in."""
        return self._turns.pace(analyst)

    def open(self, analyst: str, kind: type[Session] = Session) -> Session:
        """Return a new session, on the tables as they are now. Raises as `__init__` does."""
        with self._lock:
            if self._current.is_stale:
                self._swap(self._open(self.dataset.policy))
            if analyst not in self.dataset.policy.analysts:  # taken out since the login
                raise PolicyError("this analyst is not in the policy")
            session = kind(self.dataset, analyst, is_shared=True, turns=self._turns)
            self._current.users += 1
            return session

    def take_in(self, member: Analyst) -> None:
        """Have a member of a group be an analyst, or an analyst another cap: no session ends for it."""
        with self._lock:
            self.dataset.take_in(member)

    def close(self, session: Session) -> None:
        """Let a session go, and its dataset with the last one if it is no longer the current one."""
        session.close()
        with self._lock:
            opened = self._opened[id(session.dataset)]
            opened.users -= 1
            if opened is not self._current:
                self._close_unused(opened)

    def is_current(self, session: Session) -> bool:
        """Return whether a session may go on: neither its policy nor the tables have changed since it was opened."""
        opened, analyst = self._opened.get(id(session.dataset)), session.analyst
        if opened is None or opened.is_stale:
            return False
        current = self.dataset.policy
        return opened is self._current or session.policy.as_for(analyst) == current.as_for(analyst)

    def replace(self, policy: Policy) -> None:
        """Have another policy from here on. Raises as `__init__` does, and then all stays as it was."""
        opened = self._open(policy)
        with self._lock:
            self._turns = self._turns_of(policy)
            self._swap(opened)

    def retire(self, session: Session) -> None:
        """Take note that the tables are no longer as a session's dataset has them."""
        self._opened[id(session.dataset)].is_stale = True

    def used(self) -> None:
        """Take note that a statement runs."""
        self._used = time.monotonic()

    def rest(self) -> None:
        """Let the database go for a while if nobody has asked anything lately: a file's owner can write it then.

        Memory that nobody uses any more is given back now and then, until long after the last statement; and the ledger
        does what no charge has to wait for.
        """
        try:
            self.dataset.store.tidy()
        except LedgerError as error:
            self._untidied.log(reason=error.message, database=self.dataset.policy.path.stem)
        now = time.monotonic()
        rested = now - self._used
        if rested < _TRIM_UNTIL and now - self._trimmed > _TRIM_SECONDS:
            give_back()
            self._trimmed = time.monotonic()
        if rested <= _FILE_SECONDS:
            return
        with self._lock:
            known = [opened.dataset for opened in self._opened.values()]
        for dataset in known:
            is_file = dataset.policy.database.startswith("duckdb:") and dataset.policy.files is None
            if is_file or rested > _IDLE_SECONDS:
                dataset.backend.close_idle()

    def forget_last_read(self) -> None:
        """Have no stored answer be given without the ledger before it is read again (soundness.md 3.17)."""
        with self._lock:
            for opened in self._opened.values():
                opened.dataset.last_read.forget()

    def tell_answered_away(self) -> None:
        """Write a line of the log for each answer that was given while the ledger was away. Once it is back."""
        with self._lock:
            known = [opened.dataset for opened in self._opened.values()]
        for dataset in known:
            for analyst, at in dataset.last_read.take_noted():
                log("answered away", analyst=analyst, given=at, database=dataset.policy.path.stem)

    def shut(self) -> None:
        """Close the current dataset, unless a session is still on it."""
        self.tell_answered_away()  # or nobody would
        with self._lock:
            self._close_unused(self._current)

    def _turns_of(self, policy: Policy) -> StatementTurns:
        shared = None if self._place is None else self._place.turn
        return StatementTurns(
            policy.server.public_at_once, self._precedence, policy.path.stem, self._texts, shared
        )

    def _swap(self, opened: _Opened) -> None:
        self._opened[id(opened.dataset)] = opened
        old, self._current = self._current, opened
        self._close_unused(old)

    def _open(self, policy: Policy) -> _Opened:
        try:
            with until(Stop.after(_OPEN_SECONDS)):
                dataset = Dataset.open(policy, memory=self.memory, leaves_core=True)
        except Stopped:
            raise EngineFailure("open: the database, or the ledger, did not answer in time") from None
        if dataset.store.lost:
            log("answers lost", reason=dataset.store.lost, database=policy.path.stem)
        told = Seldom("not verified")
        dataset.verifier.tell = lambda reason: told.log(reason=reason, database=policy.path.stem)
        try:
            known = (*policy.analysts.values(), *policy.groups.values())
            kinds = dict.fromkeys(one.access for one in known)
            return _Opened(
                dataset, {access: system_catalog(dataset.seen_by(access), policy) for access in kinds}
            )
        except BaseException:
            dataset.close()
            raise

    def _close_unused(self, opened: _Opened) -> None:
        if opened.users:
            return
        del self._opened[id(opened.dataset)]
        for catalog in opened.catalogs.values():
            catalog.close()
        opened.dataset.close()


def _limits(server: ServerPolicy) -> MemoryLimits:
    memory = None if server.memory_mib is None else server.memory_mib * MIB
    return MemoryLimits.of(memory, None if server.files_mib is None else server.files_mib * MIB)


def system_catalog(seen: Catalog, policy: Policy) -> SystemCatalog:
    """Return the system catalog of what an analyst sees. Raises EngineFailure."""
    return SystemCatalog(seen, has_delta=policy.has_delta, version=VERSION, version_text=VERSION_TEXT)

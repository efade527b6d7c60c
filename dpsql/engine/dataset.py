"""What the sessions on one dataset share: the database, the ledger, the sealed engine, what is planned and known.

Safe for threads. Nothing here is an analyst's own: plans come from the text, the policy and the schema, and answers
that are remembered are released, to every analyst who sees the same tables.

What was read of a ledger last: by it stored answers are given while the ledger is away (soundness.md 3.17).

House rules:

1. Only an answer that is in memory is given so: one that was charged for, stored, and told or about to be.
2. Each is noted, and told to the owner when the ledger is back. Where no more can be noted, none is given.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from ..backends import Backend, DuckDBBackend, open_backend, refuse_unsafe
from ..backends.backend import SchemaOnly
from ..budget import LedgerStore, Status
from ..cache import Cache
from ..errors import EngineFailure
from ..memory import ResultMemory
from ..plan.dialects import dialect_of
from ..plan.planner import Plan
from ..plan.privacy.time import Clock
from ..plan.views import build_catalog
from ..policy import Access, Analyst, Policy, check_access, load_policy, narrowed
from ..policy.measured import norms_policy, people_policy
from ..postprocess import SealedEngine
from ..postprocess.bars import has_companions
from ..records import dataclass
from ..relation.catalog import Catalog, OwnView, Table, View
from ..release.left_out import (
    LeftOut,
    LeftOutByNorms,
    find_left_out,
    find_left_out_by_norms,
    norms_key,
)
from ..release.post_processing import Compiled
from .answer import Answer, AnswerColumn, GroupNote
from .ledgers import caps_of, open_ledger
from .refusals import RefusalLog

if TYPE_CHECKING:
    from ..backends import Snapshot
    from ..release.verifying import Verifier

# --- what was read of a ledger last -------------------------------------------------------------------------


ASK_SECONDS = 1.0
"""How long a statement whose answer is in memory waits for the ledger."""
_LONGEST_SECONDS = 600.0
_PAUSE_SECONDS = 5.0
"""How long after a wait in vain such statements do not wait again."""
_MOST_NOTED = 10_000
_MOST_ANALYSTS = 1_000


class LastRead:
    """What the sessions on one dataset have read of its ledger. Safe for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._statuses: dict[str, Status] = {}
        self._epoch = 0
        self._at = self._failed = -float("inf")
        self._noted: list[tuple[str, str]] = []

    def read(self, analyst: str, status: Status) -> None:
        """Take in what was read now."""
        if len(self._statuses) < _MOST_ANALYSTS or analyst in self._statuses:
            self._statuses[analyst] = status
        self._epoch = max(self._epoch, status.epoch)  # what was read before may come later
        self._at = self._clock()
        self._failed = -float("inf")

    def failed(self) -> None:
        """Take note that the ledger does not answer."""
        self._failed = self._clock()

    def forget(self) -> None:
        """Have nothing be given by it before the ledger is read again: the owner wants another policy."""
        self._statuses, self._at = {}, -float("inf")

    @property
    def is_away(self) -> bool:
        """Whether the ledger did not answer a moment ago."""
        return self._clock() - self._failed < _PAUSE_SECONDS

    def status(self, analyst: str) -> Status | None:
        """Return what an analyst's status was when the ledger was read last; None: never, or too long ago."""
        known = self._statuses.get(analyst)
        if known is None or self._clock() - self._at > _LONGEST_SECONDS or len(self._noted) >= _MOST_NOTED:
            return None
        return known if known.epoch == self._epoch else replace(known, epoch=self._epoch)

    def note(self, analyst: str) -> GroupNote:
        """Take note of an answer that is given so; return what its analyst is told."""
        with self._lock:
            self._noted.append((analyst, datetime.now(UTC).isoformat(timespec="milliseconds")))
        seconds = int(self._clock() - self._at)
        return GroupNote(
            f"the ledger cannot be read now: this is a stored answer, under what was read of it {seconds} s ago, and "
            "less may be left"
        )

    def take_noted(self) -> list[tuple[str, str]]:
        """Return, once, to whom and when answers were given so."""
        with self._lock:
            noted, self._noted = self._noted, []
        return noted


# --- what the sessions on one dataset share -----------------------------------------------------------------


_MAX_CACHED = 256
_MOST_EXPLAINED = 2**21
"""Characters of explanations that are remembered."""


class SchemaChanged(EngineFailure):
    """The tables are no longer what the plans were made for; nothing was charged."""

    def __init__(self) -> None:
        super().__init__("the database's schema has changed; open the session again")


@dataclass(slots=True)
class PreparedPlan:
    """A planned statement with its post-processing compiled; `is_lasting`: it is worth being remembered, as it
    is short and does not read the clock.

    `is_checked`: the sealed engine has bound the post-processing over empty tables. `chosen`: the epsilon that was
    found for an accuracy, in words. `bar_notes`: on chosen values without bars, and on rows that are not shown.
    `found`: the tables and views that the text names, and those that an analyst's own views in it name.
    """

    plan: Plan
    compiled: Compiled
    intermediates: tuple[Compiled, ...]
    is_lasting: bool
    is_checked: bool = False
    chosen: str | None = None
    bar_notes: tuple[str, ...] = ()
    found: tuple[Table | View | OwnView, ...] = ()

    @property
    def reads_own(self) -> bool:
        """Whether an own table is named, whose rows may hold noise."""
        return any(isinstance(one, Table) and one.own is not None for one in self.found)

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The columns of the answer."""
        shown, root = self.compiled.relation.columns, self.plan.root
        ends: list[int | None] = [None] * len(shown)
        if len(shown) != len(root.columns):
            place = 0
            for is_barred in has_companions(root, {one.release: one for one in self.plan.releases}):
                if is_barred:
                    ends[place + 1] = ends[place + 2] = place
                place += 3 if is_barred else 1
        return tuple(AnswerColumn(one.name, one.type, end) for one, end in zip(shown, ends, strict=True))


@dataclass(frozen=True, slots=True)
class Explained:
    """What EXPLAIN said of a statement under `status`, which the ledger gives again, the very same object, while nobody
    has written to it, and under `policy`.
    """

    answer: Answer
    status: Status
    policy: Policy


def _characters(_: object, explained: Explained) -> int:
    return sum(len(str(line)) for (line,) in explained.answer.rows)


class LazySnapshot:
    """A snapshot that is opened when it is asked for; after `close`, another one would be."""

    def __init__(
        self, make: Callable[[], AbstractContextManager[Snapshot]], cancelled: threading.Event
    ) -> None:
        self._make, self._cancelled = make, cancelled
        self._context: AbstractContextManager[Snapshot] | None = None
        self._opened: Snapshot | None = None

    def open(self) -> Snapshot:
        """Return the snapshot. Raises EngineFailure: it cannot be had, or the statement is cancelled."""
        if self._opened is None:
            context = self._make()
            self._opened = context.__enter__()
            self._context = context
            if self._cancelled.is_set():
                raise EngineFailure("cancelled before anything was charged", sqlstate="57014")
        return self._opened

    def close(self) -> None:
        """Let it go, if it is open."""
        context, self._context, self._opened = self._context, None, None
        if context is not None:
            context.__exit__(None, None, None)


def _nobody(line: str) -> None:
    """Nobody listens: of an embedded session the owner is told by `dpsql verify`."""


@dataclass
class Dataset:
    """A policy with its database, its ledger and the engine that post-processes. Raises as `open`."""

    policy: Policy
    backend: Backend
    store: LedgerStore
    sealed: SealedEngine = field(default_factory=SealedEngine, repr=False)
    memory: ResultMemory | None = field(default=None, repr=False)
    """Where what answers hold is counted; None where one analyst's own process holds it."""
    tell: Callable[[str], None] = field(default=_nobody, repr=False)
    """Takes a line for the owner alone, of a plan that is not verified: a server's goes to its log."""

    def __post_init__(self) -> None:
        with self.backend.snapshot() as snapshot:
            self._live = snapshot.schema()
        self.catalog: Catalog = build_catalog(self.policy, self._live)
        if wrong := check_access(self.policy, self.catalog):
            raise wrong[0]
        self._seen: dict[Access, Catalog] = {}
        self.dialect = dialect_of(self.catalog.dialect, self.catalog.case_collation)
        self.prepared: Cache[PreparedPlan] = Cache(_MAX_CACHED)
        self.answers: Cache[Answer] = Cache(_MAX_CACHED)
        self.explained: Cache[Explained] = Cache(_MOST_EXPLAINED, _characters)
        self.last_read = LastRead()
        self._people: dict[tuple[str, str | None], tuple[Policy, Catalog]] = {}
        self._last_said: dict[object, LeftOut | LeftOutByNorms | None] = {}
        self._normed: dict[object, tuple[bytes, bytes]] = {}
        self.refusals = RefusalLog(self.policy)

    @cached_property
    def verifier(self) -> Verifier:
        """What verifies plans before they are charged: loaded where one is."""
        from ..release.verifying import Verifier

        return Verifier(self.policy, self.store, self.catalog.dialect, lambda line: self.tell(line))

    def take_in(self, member: Analyst) -> None:
        """Have a member of a group be an analyst, with the group's cap from here on. Nothing that is spent changes."""
        self.policy = self.policy.with_member(member)
        self.store.take_caps(caps_of(self.policy))

    @classmethod
    def open(
        cls,
        policy: str | os.PathLike[str] | Policy,
        *,
        backend: Backend | None = None,
        memory: ResultMemory | None = None,
        leaves_core: bool = False,
    ) -> Dataset:
        """Open what a policy names; `backend`: in place of the policy's database; `memory`: of a server.

        `leaves_core`: whether its DuckDB leaves one core to others, for as long as the dataset is there.

        Raises:
            PolicyError, LedgerError, EngineFailure: each says what the owner has to mend.
        """
        known = policy if isinstance(policy, Policy) else load_policy(policy)
        with ExitStack() as undo:
            if backend is None:
                backend = open_backend(known.database, known.read_from, known.files, copied=known.copied)
                undo.callback(backend.close_idle)
                if leaves_core and isinstance(backend, DuckDBBackend):
                    backend.leave_core()  # before it opens: a file is open in one way at a time in a process
                refuse_unsafe(backend.findings())
            store = open_ledger(known, create=False)
            undo.callback(store.close)
            dataset = cls(known, backend, store, memory=memory)
            undo.pop_all()
            return dataset

    def close(self) -> None:
        """Let the database, the ledger and the sealed engine go."""
        self.backend.close_idle()
        close = getattr(self.store, "close", None)
        if close is not None:
            close()
        self.sealed.close()

    def clock(self, *, is_open: bool = False) -> Clock | None:
        """Return which periods are over, None where the budget has none: what was over once is so for good, whatever
        this machine's clock says. `is_open`: those that have begun are read, too. Raises LedgerError."""
        time = self.policy.privacy.time
        if time is None:
            return None
        reached = datetime.fromisoformat(self.store.moment())
        return Clock.at(time, max(datetime.now(UTC), reached), is_open=is_open and time.is_open)

    def seen_by(self, access: Access) -> Catalog:
        """Return the catalog that an analyst of this access has: one for all who have the same."""
        if not access.is_narrowed:
            return self.catalog
        known = self._seen.get(access)
        return known or self._seen.setdefault(access, narrowed(self.catalog, access))

    def catalog_under(self, policy: Policy) -> Catalog:
        """Return the catalog that another policy makes of the same schema. Raises PolicyError."""
        return build_catalog(policy, self._live)

    def imagined(self, policy: Policy) -> Dataset:
        """Return this dataset under another policy, for plans alone: it has the same schema and the ledger's sums, and
        no row of it can be read. Raises PolicyError. Nothing of it is to be closed."""
        return Dataset(policy, SchemaOnly(self._live), self.store, self.sealed)

    def under_people(self, name: str, of: str | None = None) -> tuple[Policy, Catalog]:
        """Return the policy and the catalog under which the people of a table are counted by their rows."""
        if (name, of) not in self._people:
            policy = people_policy(self.policy, name, of)
            self._people[name, of] = policy, self.catalog_under(policy)
        return self._people[name, of]

    def left_out(self, name: str, max_rows: int, of: str | None = None) -> LeftOut | None:
        """Return how many rows people have of a table beside a bound, as it was measured last, or None.

        `of`: in how many groups of a column they are, in place of rows.
        An answer that is remembered says what was known then: where that has changed, none is. Raises LedgerError.
        """
        found = find_left_out(self.store, *self.under_people(name, of), name, max_rows, of)
        self._say((name, max_rows, of), found)
        return found

    def left_out_by_norms(
        self, name: str, norms: tuple[tuple[str, int], ...] | None = None
    ) -> LeftOutByNorms | None:
        """Return how many rows of a table norms leave out, as it was measured last, or None. As `left_out`.

        `norms`: by column; None: the declared ones.
        """
        asked = self.policy.tables[name].max_norm if norms is None else norms
        if (name, asked) not in self._normed:
            policies = ((one, norms_policy(self.policy, name, one)) for one in (asked, ()))
            kept, whole = (
                norms_key(policy, self.catalog_under(policy), name, one) for one, policy in policies
            )
            self._normed[name, asked] = kept, whole
        found = find_left_out_by_norms(self.store, self._normed[name, asked])
        self._say((name, asked), found)
        return found

    def _say(self, what: object, found: LeftOut | LeftOutByNorms | None) -> None:
        if self._last_said.setdefault(what, found) != found:
            self._last_said[what] = found
            self.answers.clear()

    @contextmanager
    def snapshot(self, owner: object) -> Iterator[Snapshot]:
        """Open a snapshot whose schema and constraints are the ones the plans were made for (law L9).

        What the owner asserts is verified for the version of the rows that the schema names (soundness.md 1.30).
        `owner`: who can stop it (`Backend.cancel`). Raises EngineFailure, of which SchemaChanged is one; PolicyError
        where something is not verified; LedgerError.
        """
        with self.backend.snapshot(owner) as snapshot:
            if snapshot.schema() != self._live:
                raise SchemaChanged
            if any(table.asserted for table in self._live.tables):
                from .asserted_keys import require_verified

                require_verified(self._live, self.store)
            yield snapshot

    @contextmanager
    def lazy_snapshot(self, owner: object, cancelled: threading.Event) -> Iterator[LazySnapshot]:
        """Yield what opens a snapshot on first use: a repeated question does not touch the database."""
        lazy = LazySnapshot(lambda: self.snapshot(owner), cancelled)
        try:
            yield lazy
        finally:
            lazy.close()

    def salt(self, epoch: int) -> bytes:
        """Return the owner's secret for an epoch: the salt of a relation's bounding comes from it."""
        return self.store.secret() + epoch.to_bytes(8, "big")

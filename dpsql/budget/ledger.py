"""What the ledgers on SQLite and on Postgres share: the log in front of the ledger, replay, the records.

House rules:

1. Every change is one transaction that keeps every other writer out; what keeps them out also guards
   the log.
2. Order of a record: log, fsync, insert, commit (itself synced; in SQLite with the next one that is,
   where entries alone are reserved). Whatever dies in between, the log has at least what the ledger has
   (soundness.md 3.2(3)).
3. Before any change, what the log has and the ledger lacks is replayed as spent. Replay can only
   take: a replayed entry is failed, a replayed grant is void.
4. Where log and ledger disagree in any other way, nothing is answered (LedgerError).
5. They are compared outside of every lock, and from a checkpoint on: what was compared before is believed, as far as
   its last record is still the last one, and the sums still add up (soundness.md 3.19). `verify` believes nothing.
6. A statement outside the two engines' modules is one that both understand; `?` stands for a value.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import LedgerAway, LedgerError
from ..policy import Accounting, Slices
from ..records import dataclass
from ..waits import check
from . import certificates, editions
from .chain import (
    Chain,
    Days,
    Disagreement,
    Verified,
    after_record,
    charge_slices,
    digest_of,
    linked_head,
    moment_of,
    note_day,
)
from .claim import delta_text
from .entry import (
    CHAINED,
    FORMAT,
    MALFORMED,
    OF_PERIODS,
    OF_ZCDP,
    Division,
    Entry,
    EntryState,
    EpochStart,
    Grant,
    Header,
    Move,
    Promise,
    Record,
    Run,
    Segment,
    Sums,
    add,
    newer,
    read_linked,
    read_record,
    record_text,
)
from .journal import Journal, certificates_path, sealed_path, write_whole
from .slices import Steps

_RESERVED = "SELECT seq, holder FROM record WHERE state = 'reserved'"
_NOTED = "SELECT body FROM record WHERE kind IN ('header', 'segment', 'move') ORDER BY seq"
_SPENT = "SELECT analyst, epsilon_nano, delta_atto, rho_atto FROM spent"
_TOLD_LAST = (
    "SELECT body FROM record WHERE kind IN ('entry', 'division', 'segment') ORDER BY seq DESC LIMIT 1"
)
_DIVISIONS = "SELECT body FROM record WHERE kind = 'division' ORDER BY seq"
_MET = (
    " FROM slice WHERE analyst = ?"
    " AND first_period >= COALESCE((SELECT MAX(first_period) FROM slice WHERE analyst = ? AND first_period <= ?), ?)"
    " AND first_period <= ?"
)
"""What was charged of the periods from one to another, and perhaps of some before: `met`."""
_SLICES = (
    "SELECT analyst, first_period, last_period, epsilon_nano, delta_atto, rho_atto FROM slice"
    " ORDER BY analyst, first_period"
)
_SET_SLICES = (
    "INSERT INTO slice (analyst, first_period, last_period, epsilon_nano, delta_atto, rho_atto) VALUES {values}"
    " ON CONFLICT (analyst, first_period) DO UPDATE SET last_period = excluded.last_period,"
    " epsilon_nano = excluded.epsilon_nano, delta_atto = excluded.delta_atto, rho_atto = excluded.rho_atto"
)
LATER = (
    f"TABLE IF NOT EXISTS {{of}}{certificates.TABLE}",
    f"TABLE IF NOT EXISTS {{of}}{editions.TABLE}",
    # Up to which record ledger and log were compared (`Verified.text`).
    "TABLE IF NOT EXISTS {of}checkpoint (log text PRIMARY KEY, body text NOT NULL){rowless}",
    # What was charged by day, up to which record, and the highest moment up to there.
    "TABLE IF NOT EXISTS {of}day (day text NOT NULL, analyst text NOT NULL, epsilon_nano text NOT NULL,"
    " delta_atto text NOT NULL, rho_atto text NOT NULL, number bigint NOT NULL, moment text NOT NULL,"
    " PRIMARY KEY (day, analyst)){rowless}",
    "INDEX IF NOT EXISTS latest ON {of}day (number)",
    "INDEX IF NOT EXISTS noted ON {of}record (seq) WHERE kind IN ('header', 'segment', 'move')",
    "INDEX IF NOT EXISTS checked ON {of}record (seq) WHERE kind = 'keycheck'",
    "INDEX IF NOT EXISTS reserved ON {of}record (seq) WHERE state = 'reserved'",
)
"""What a ledger of before format 4 does not have, to be written by `creating`."""
_SLICE_TABLES = (
    # What was spent by slice, by analyst; under no name by everybody together.
    "TABLE IF NOT EXISTS {of}slice (analyst text NOT NULL, first_period bigint NOT NULL,"
    " last_period bigint NOT NULL, epsilon_nano text NOT NULL, delta_atto text NOT NULL, rho_atto text NOT NULL,"
    " PRIMARY KEY (analyst, first_period)){rowless}",
    "INDEX IF NOT EXISTS divided ON {of}record (seq) WHERE kind = 'division'",
)
"""What a ledger has besides that is kept by slices."""
_ROWS = (256, 16, 1)
"""Rows that one statement writes: few texts of it are known to an engine."""
MOMENT = "SELECT moment FROM day ORDER BY number DESC LIMIT 1"
_CHECKPOINT = "SELECT body FROM checkpoint WHERE log = ?"
_NOTHING: Sums = (0, 0, 0)
_NO_PLACE = 2**62

Step = Callable[[str], None]
"""A hook that the crash tests use to stop a process at a named step."""

Statement = tuple[str, Sequence[object]]

GRANTED = "granted"
_VOID = "void"
_PAGE = 2_000
"""Records that are read at once: nobody waits for longer than that takes."""
_STRIDE = 500
"""Records from one checkpoint to the next."""
SEGMENT_BYTES = 2**26
"""A file of the log that is longer is sealed when somebody tidies: 64 MiB, of some 80,000 records."""
_FAIL = (
    "UPDATE record SET state = 'failed', holder = NULL WHERE seq = ? AND state = 'reserved' AND holder = ?"
)


class LedgerCursor(Protocol):
    """A statement's rows. They may be fetched after later statements were given."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Takes statements in their order. One whose rows are not fetched may fail as late as the next fetch."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> LedgerCursor: ...


def creating(parts: Sequence[str], written: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements that make tables and indices, as an engine writes them; what is there stays."""
    return (f"CREATE {part.format_map(written)}" for part in parts)


def utc_now() -> str:
    """Return the time as text, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def untold(is_logged: bool | None) -> None:
    """Do nothing: nobody is told what became of records that could not be written."""


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from one put in its place, or None when there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def require_same(path: Path, known: tuple[int, int] | None) -> None:
    """Raise LedgerAway where a file is not to be seen, LedgerError where it is another one than it was."""
    found = identity(path)
    if found is None:
        raise LedgerAway(
            "the ledger or its log is not to be seen in its place", hint="see that its disk is there"
        )
    if found != known:
        raise LedgerError("the ledger or its log was replaced while in use", hint="restart dpsql")


class Page(NamedTuple):
    """Some records of a ledger, (number, log, body) in order, and what the ledger said when they were read: how many
    bytes of our log it has, what is spent, and by day, where that was asked for, and by slice, where it is kept so.
    """

    rows: list[tuple[int, str, str]]
    logged: int
    spent: dict[str, Sums]
    days: Days | None
    moment: datetime | None
    slices: dict[str, Steps] | None = None

    @property
    def is_last(self) -> bool:
        """Whether there was no record after these."""
        return len(self.rows) < _PAGE


Watch = Callable[[Verified], None]


@dataclass(slots=True)
class Replayed:
    """What the log had and the ledger lacked: entries, with those that were cut off there, and grants, void now."""

    entries: int = 0
    grants: int = 0


class Ledger(ABC):
    """An open ledger and this process's log of it; safe for threads, not for use after a fork."""

    longest_pause: float
    """Seconds between two looks at a statement that draws the same."""
    _written: Mapping[str, str]
    """How the engine writes what `LATER` leaves open."""

    def __init__(self, log: Path, name: str, step: Step, promise: Promise) -> None:
        self.step = step
        self.promise = promise
        self._name = name
        self._log = log
        self._journal = Journal(log)
        self._process = os.getpid()
        self._verified = Verified(days={})
        """Up to which record this process has compared, or believed a checkpoint; replaced as a whole."""
        self._is_chained = False
        self._followed = -1
        """The number of the log's file that was seen to end as the ledger does."""
        self._kept = -1
        """The number of the last record of the checkpoint that is written down."""
        self._since = 0
        """Records that this process has added since it has compared."""
        self._is_current = False
        self._certified: tuple[object, int] | None = None
        """The bytes of all certificates in the ledger, and what others had changed when that was known."""
        self.replayed = Replayed()
        """What was found when it was opened."""
        self._appended: set[int] = set()
        self._given_up: set[int] = set()

    # What an engine has of its own.

    @property
    @abstractmethod
    def log_id(self) -> str:
        """The name of this log, where several share a ledger; empty where it has one alone."""

    @property
    @abstractmethod
    def holder(self) -> str:
        """What this ledger's reserved entries are marked with, while it is open."""

    @abstractmethod
    def close(self) -> None:
        """Let everything go. What is still reserved counts as failed from now on."""

    def tidy(self) -> None:
        """Do what can wait, beside the changes: nothing is different after it. Raises LedgerError.

        What is new is compared, and a log that has grown long is sealed.
        """
        if self._since >= _STRIDE:
            self._since = 0
            self._compare()
            self._keep_checkpoint()
        if self._journal.file_size > SEGMENT_BYTES:
            self.rotate(SEGMENT_BYTES)

    @abstractmethod
    def back_up(self, folder: Path) -> list[Path]:
        """Copy ledger and log, as they are together at one moment, into a folder that is there; return the copies.

        What is written meanwhile may be in the log's copy alone, which is how a ledger after a crash looks. Raises
        LedgerError.
        """

    @abstractmethod
    def _alone(self) -> AbstractContextManager[None]:
        """Keep this process's other threads, and whoever else writes this log, out of a change."""

    @abstractmethod
    def _change(self, *, is_logged: bool = False) -> AbstractContextManager[Database]:
        """Give one write transaction that keeps all other writers out; `is_logged`: see `write`.

        Requires: inside `_alone`.
        """

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]:
        """Give one snapshot of what is committed, without keeping a change waiting; the log may have more."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Database]:
        """Give the committed state. What the log has beyond it is not seen."""

    @abstractmethod
    def _read_together(self, statements: Sequence[Statement]) -> list[list[Any]]:
        """Return the rows of each statement; a later one sees no less than an earlier one."""

    @property
    def changes(self) -> Statement | None:
        """Asks for one value, which is another one after each change of the ledger that whoever asked before did not
        see; None: the engine has none, or `read_at_once` looks at it.
        """
        return None

    @property
    @abstractmethod
    def _logged(self) -> Statement:
        """Asks for one row: how many bytes of this log are in the ledger, and the ledger's format."""

    @abstractmethod
    def _set_logged(self, db: Database, size: int) -> None:
        """Note that so many bytes of this log are in the ledger."""

    @abstractmethod
    def _set_format(self, db: Database) -> None:
        """Note that the ledger is of the format of the promise."""

    @abstractmethod
    def _next(self, db: Database) -> LedgerCursor:
        """Ask for one row: the next record's number in the ledger, its place in this log, and the last one's body."""

    @abstractmethod
    def _insert(
        self, db: Database, number: int, record: Record, body: str, state: str | None, holder: str | None
    ) -> None:
        """Add one record, whose `seq` is its place in this log, with its text."""

    @abstractmethod
    def _page(self, db: Database, after: int, count: int) -> LedgerCursor:
        """Ask for the next records in order of number: (number, log, body)."""

    @abstractmethod
    def _body_at(self, db: Database, place: int) -> str | None:
        """Return the body of the record in a place of this log."""

    @abstractmethod
    def _number(self, free: int, place: int) -> int:
        """Return the number of a record that is put back: the free one, unless the engine numbers by place."""

    @abstractmethod
    def is_alive(self, db: Database, holder: str) -> bool:
        """Return whether the ledger that made the holder is still open. Requires: inside `write`."""

    # What they share.

    @contextmanager
    def write(self, *, is_logged: bool = False) -> Iterator[Database]:
        """Give one write transaction, with all of the log replayed.

        Commits, durably, when the block ends; undoes everything but the log when it raises. `is_logged`: the log
        has on the disk what is committed, and what it does not have is told from it again; so the ledger's own copy may
        come there later.
        """
        with self._alone(), self._counted_anew_if_undone():
            while True:
                given_up = frozenset(self._given_up)
                with self._change(is_logged=is_logged) as db:
                    logged, version = db.execute(*self._logged).fetchone()
                    self._check_format(version)
                    if version != self.promise.format:
                        self._upgrade(db, version)
                    if logged != self._journal.size():
                        self._journal.require_in_place()  # it may have been sealed while we waited for our turn
                    is_settled = not given_up and logged == self._journal.size()
                    if is_settled:
                        self._require_same_end(db)
                        self._begin_chain(db)
                        yield db
                    else:
                        self._catch_up(db, logged, given_up)
                self._given_up -= given_up | self._appended
                self._appended.clear()
                if is_settled:
                    return

    @contextmanager
    def _counted_anew_if_undone(self) -> Iterator[None]:
        """Forget how many bytes the certificates have where those of a transaction may have been undone."""
        try:
            yield
        except BaseException:
            self._certified = None
            raise

    def _upgrade(self, db: Database, version: int) -> None:
        """Bring a ledger of an earlier format to that of the promise; what is in it stays as it is."""
        if version < CHAINED:
            for statement in creating(LATER, self._written):
                db.execute(statement)
            state = self._up_to_now(db)
            for (day, name), sums in (state.days or {}).items():
                _set_day(db, day, name, sums, state.number, state.moment)
        if self.promise.period is not None and version not in OF_PERIODS:
            self._make_slices(db)
        self._set_format(db)

    def _make_slices(self, db: Database) -> None:
        for statement in creating(_SLICE_TABLES, self._written):
            db.execute(statement)

    def is_current(self) -> bool:
        """Return whether the ledger has the tables of format 4: one that was not written to since has not."""
        if not self._is_current:  # no format is ever lowered
            [[(_, version)]] = self._read_together([self._logged])
            self._is_current = int(version) >= CHAINED
        return self._is_current

    def keep_certificate(self, db: Database, one: certificates.Certificate) -> bool:
        """Store a certificate, once; say whether there was room for it. Requires: inside `write`.

        How many bytes all have is added up anew only where another connection has changed the ledger since.
        """
        if certificates.has(db, self.log_id, one.digest):
            return True
        known, others = self._certified, self._changed_by_others(db)
        is_same = known is not None and others is not None and known[0] == others
        size = known[1] if known is not None and is_same else certificates.size(db, self.log_id)
        if size + len(one.content) > certificates.MOST_BYTES:
            return False
        certificates.put(db, self.log_id, one)
        self._certified = others, size + len(one.content)
        self.step("certificate inserted")
        return True

    def _changed_by_others(self, db: Database) -> object:
        """Return what changes with every change of another connection; None: the engine does not tell."""
        return None

    def read_settled(self, *statements: Statement) -> list[list[Any]]:
        """Return the rows of each statement, with nothing that the log has missing from them."""
        [(logged, version)], *found = self._read_together([self._logged, *statements])
        self._check_format(version)
        if not self._given_up and logged == self._journal.size():
            return found
        with self.write() as db:
            return [db.execute(*statement).fetchall() for statement in statements]

    def ask(self, statement: Statement) -> list[Any]:
        """Return the rows of one statement, as of one moment, whatever the log has beside."""
        with self.read() as db:
            return db.execute(*statement).fetchall()

    def read_at_once(self, *statements: Statement) -> list[list[Any]] | None:
        """Return what `read_settled` does; None where that would have to wait, as it would for a server."""
        return None

    def append(
        self, db: Database, records: Sequence[Record], told: Callable[[bool | None], None] = untold
    ) -> int:
        """Write the records, in their order, to the log and then to the ledger; return the first one's number.

        Their `seq` is given here. Requires: inside `write`. An entry whose transaction then fails, or
        ends unknown, stays spent and is closed as failed before the next change. `told`: whether the log has them, None
        before that is known.
        """
        number, place, last = self._next(db).fetchone()
        head = linked_head(last)
        if head is None:
            raise self.disagreement()
        return self._append(db, number, place, head, records, told)

    def _append(
        self,
        db: Database,
        number: int,
        place: int,
        head: str,
        records: Sequence[Record],
        told: Callable[[bool | None], None] = untold,
    ) -> int:
        self.step("before log")
        linked = _linked([replace(record, seq=place + i) for i, record in enumerate(records)], head)
        self._appended.update(range(number, number + len(linked)))
        self._given_up |= self._appended
        before = self._journal.size()
        told(None)
        try:
            end = self._journal.append([text for _, text in linked], self.step)
        except OSError:
            if self._journal.size() == before:
                told(False)
            raise
        told(True)
        self._insert_all(db, number, linked, is_replay=False)
        self._set_logged(db, end)
        self._since += len(linked)
        self.step("inserted")
        return int(number)

    def _require_same_end(self, db: Database) -> None:
        """Raise LedgerError where a file that the log has gone on to does not end as the ledger does."""
        if self._followed != self._journal.number:
            if self._journal.record_before(self._journal.size()) != self._next(db).fetchone()[2]:
                raise self.disagreement()
            self._followed = self._journal.number

    def _begin_chain(self, db: Database) -> None:
        """See to it that the records of this log are chained from here on. Requires: all of it is in the ledger."""
        if self._is_chained:
            return
        number, place, last = self._next(db).fetchone()
        if linked_head(last) is not None:
            self._is_chained = True
            return
        chain = self._up_to_now(db).chains.get(self.log_id, Chain())
        begun = self._segment(db, chain, secrets.token_hex(16), self._journal.number, self._journal.base)
        self._append(db, number, place, chain.head, [begun])

    def _segment(self, db: Database, chain: Chain, salt: str, number: int, start: int) -> Segment:
        """Return the record by which a log goes on from what it has."""
        first = self._journal.first
        if first is None:
            raise self.disagreement()
        told = last_told(db)
        return Segment(
            seq=chain.place,
            at=utc_now(),
            dataset=first.dataset,
            log=first.log,
            promise=replace(self.promise, neighbours=first.promise.neighbours),
            salt=salt,
            number=number,
            start=start,
            epoch=int(db.execute("SELECT epoch FROM ledger").fetchone()[0]),
            spent=tuple(sorted(chain.spent.items())),
            slices=tuple((name, tuple(chain.slices[name])) for name in sorted(chain.slices)),
            ends=None if told is None else told.ends,
            times=() if told is None else told.times,
            whose=() if told is None else told.whose,
            format=self.promise.format,
        )

    def rotate(self, longer_than: int = 0) -> Path | None:
        """Seal the log's file and begin the next one; return the sealed one, None where there is nothing to seal.

        `longer_than`: bytes that the file must have for it, as another process may have sealed it.
        """
        self._compare()  # so that little is left to be read while others wait
        with self.write() as db:
            number, place, last = self._next(db).fetchone()
            if isinstance(read_record(last), Segment) or self._journal.file_size <= longer_than:
                return None
            chain = self._up_to_now(db).chains[self.log_id]
            start, sealed = self._journal.size(), sealed_path(self._log, self._journal.number)
            begun = self._segment(db, chain, chain.salt, self._journal.number + 1, start)
            linked = _linked([replace(begun, seq=place)], chain.head)
            self.step("before segment")
            if kept := certificates.lines(db, self.log_id):
                write_whole(certificates_path(sealed), "".join(kept).encode("ascii"))
                certificates.forget(db, self.log_id)
                self._certified = None
            end = self._journal.rotate(linked[0][1], self.step)
            self._insert_all(db, number, linked, is_replay=False)
            self._set_logged(db, end)
            self.step("segment inserted")
        self.step("segment committed")
        return sealed

    def give_up(self, numbers: Sequence[int]) -> None:
        """Close what is still reserved here of these entries as failed: now, unless the statement has to end and would
        wait for that; then before the next change.
        """
        self._given_up.update(numbers)
        check("to close what was reserved")
        with self.write():
            pass

    def is_running(self, db: Database, entry: int, holder: str) -> bool:
        """Return whether a reserved entry's holder lives; fails the entry for good when it is dead.

        Requires: inside `write`.
        """
        if self.is_alive(db, holder):
            return True
        db.execute(_FAIL, (entry, holder))
        return False

    def check_in_place(self) -> None:
        """Raise LedgerError after a fork, and when the log's file is not the one that was opened."""
        if os.getpid() != self._process:
            raise LedgerError("an open ledger was carried over a fork", hint="open it in the new process")
        self._journal.require_in_place()

    def _check_format(self, version: int) -> None:
        """Raise LedgerError where a newer version of dpsql has written meanwhile, or the ledger was moved."""
        if version > FORMAT:
            raise newer()
        if version in OF_ZCDP and self.promise.accounting is Accounting.PURE:
            raise moved()
        if version in OF_PERIODS and self.promise.period is None:
            raise divided()

    def damage(self) -> LedgerError:
        """Return the error for a stored answer that is not, or no longer, what was stored."""
        return LedgerError(
            f"a stored answer in the ledger {self._name} is damaged or missing",
            hint="restore the ledger from a backup: it may be older than its log, which brings it up to date; or "
            "give up what is stored with dpsql refresh: it is then drawn, and charged, anew",
        )

    def disagreement(self, what: str = "") -> LedgerError:
        """Return the error for a log and a ledger of which neither explains the other; `what`: where."""
        return LedgerError(
            f"the ledger {self._name} and its log do not agree{what and ': '}{what}",
            hint=f"restore the log {self._log.name} as it was (it is never older than the ledger, nor shared "
            "by copying); the ledger itself may be older, or missing: it is brought up to the log",
        )

    def _insert_all(
        self, db: Database, first: int, records: Iterable[tuple[Record, str]], *, is_replay: bool
    ) -> None:
        sums: dict[str, Sums] = {}
        days: Days = {}
        slices: dict[str, Steps] = {}
        before, moment = db.execute(_SPENT), _moment(db)
        number = first
        for record, body in records:
            state: str | None = None
            holder: str | None = None
            is_first = False
            match record:
                case Entry(analyst=name, charge=charge):
                    sums[name] = add(
                        sums.get(name, _NOTHING), (charge.epsilon_nano, charge.delta_atto, charge.rho_atto)
                    )
                    state = (EntryState.FAILED if is_replay else EntryState.RESERVED).value
                    holder = None if is_replay else self.holder
                case Grant():
                    state = _VOID if is_replay else GRANTED
                case EpochStart(epoch=epoch):
                    _set_epoch(db, epoch)
                    if record.retired is not None:
                        _carry_over(db, epoch, record.retired)
                case Header():
                    require_promise(db, self.promise)
                case Move():
                    self._take_move(db, record, is_replay=is_replay)
                case Division():
                    self._take_division(db, record, is_replay=is_replay)
                case Segment():
                    is_first = is_replay and self._is_new(db)
                    if is_first:  # what the files before it had counts, wherever they are
                        require_promise(db, self.promise)
                        number = self._number(number, record.seq)
                        _set_epoch(db, record.epoch)
                        for name, spent in record.spent:
                            sums[name] = add(sums.get(name, _NOTHING), spent)
                        for name, runs in record.slices:
                            slices.setdefault(name, Steps()).merge(runs)
            charge_slices(slices, record)
            note_day(days, record, is_first=is_first)
            moment = after_record(moment, record)
            self._insert(db, number, record, body, state, holder)
            number += 1
        _add_to_spent(db, _read_sums(before), sums)
        _add_to_days(db, days, number - 1, moment)
        if slices:
            _add_to_slices(db, slices)

    def _is_new(self, db: Database) -> bool:
        """Return whether the ledger has no record of this log."""
        return self._next(db).fetchone()[2] is None

    def _take_move(self, db: Database, move: Move, *, is_replay: bool) -> None:
        """Have the ledger kept in rho from now on. Raises LedgerError where it is kept in epsilon here.

        A move that is in the log is replayed as it is: whatever came after it was charged in rho, and what came
        before counts (soundness.md 3.11).
        """
        if is_replay and self.promise.accounting is Accounting.PURE:
            raise moved()
        self.promise = self.promise.after(move)
        self._set_format(db)

    def _take_division(self, db: Database, division: Division, *, is_replay: bool) -> None:
        """Have the ledger kept by periods from now on. Raises LedgerError where it is not, here; see `_take_move`."""
        if is_replay and self.promise.period is None:
            raise divided()
        self.promise = self.promise.after(division)
        self._make_slices(db)
        self._set_format(db)

    def _catch_up(self, db: Database, logged: int, given_up: frozenset[int]) -> None:
        """Replay what the log has beyond the ledger, and close what was given up."""
        if self._journal.size() < logged:
            raise self.disagreement()
        self._journal.mend()
        number, _, last = self._next(db).fetchone()
        records = self._records_from(db, logged, last)
        self._insert_all(db, number, records, is_replay=True)
        self._set_logged(db, self._journal.size())
        for entry in given_up:
            db.execute(_FAIL, (entry, self.holder))

    def _records_from(self, db: Database, logged: int, last: str | None) -> Iterator[tuple[Record, str]]:
        """Yield what the log has beyond the ledger, each record the next one of the chain."""
        head = linked_head(last)
        if last is None:
            chain = Chain()
        elif head is None:
            chain = self._up_to_now(db).chains[self.log_id]
        else:
            chain = Chain(read_record(last).seq + 1, head, True)
        is_counted = head is None
        start = logged if logged else self._journal.earliest()
        for _, text in self._journal.records(start):
            record, after = read_linked(text)
            if not is_counted and isinstance(record, Segment):
                chain.go_on_from(record)
            try:
                chain.take(record, text, after)
            except Disagreement as error:
                raise self.disagreement(str(error)) from None
            yield record, text

    def _up_to_now(self, db: Database) -> Verified:
        """Return what the ledger's records come to, in a transaction: from where they were compared on."""
        state = self._verified.copy()
        try:
            while rows := self._page(db, state.number, _PAGE).fetchall():
                for row in rows:
                    state.take(*row)
        except MALFORMED as error:
            raise self.disagreement() from error
        return state

    def _open(self, dataset: str, promise: Promise) -> None:
        """Compare log and ledger from the last checkpoint on, see that they are of this dataset and promise, bring the
        ledger up to the log, and close what the dead have left. Writes only where there is something to write.
        """
        try:
            self._look(dataset, promise)
        except MALFORMED as error:  # rows that dpsql did not write
            raise self.disagreement() from error

    def _look(self, dataset: str, promise: Promise) -> None:
        has_checkpoint = self._begin_at_checkpoint()
        try:
            self._compare()
        except LedgerError:
            if not has_checkpoint:
                raise
            self._verified, self._kept = Verified(days={}), -_STRIDE  # it may be the checkpoint that is wrong
            self._compare()
        first = self._journal.first
        if first is None:
            raise self.disagreement()
        if first.dataset != dataset:
            raise another_dataset()
        self._settle(promise)
        self._keep_checkpoint()

    def _settle(self, promise: Promise) -> None:
        with self._snapshot() as db:
            logged, _ = db.execute(*self._logged).fetchone()
            is_settled = logged == self._journal.size()
            reserved = db.execute(_RESERVED).fetchall()
            if is_settled:
                require_promise(db, promise)
        if not is_settled:
            with self._alone(), self._change() as db:
                logged, _ = db.execute(*self._logged).fetchone()
                self._journal.require_in_place()
                if self._journal.size() < logged:
                    raise self.disagreement()
                self._journal.mend()
                start = logged if logged else self._journal.earliest()
                noted: list[Record] = []
                for _, text in self._journal.records(start):
                    record = read_record(text)
                    self.replayed.entries += isinstance(record, Entry)
                    self.replayed.grants += isinstance(record, Grant)
                    noted += [record] if isinstance(record, Header | Segment | Move | Division) else []
                require_promise(db, promise, noted)
        if reserved or not is_settled:
            with self.write() as db:
                for entry, holder in db.execute(_RESERVED).fetchall():
                    is_cut_off = not self.is_running(db, entry, holder)
                    self.replayed.entries += is_cut_off and self.replayed.entries > 0

    def _begin_at_checkpoint(self) -> bool:
        """Believe what was compared before, unless something speaks against it; say whether there was anything."""
        with self._snapshot() as db:
            logged, version = db.execute(*self._logged).fetchone()
            self._check_format(version)
            if version < CHAINED:
                return False
            row = db.execute(_CHECKPOINT, (self.log_id,)).fetchone()
            if row is None:
                return False
            try:
                state = Verified.read(row[0])
                chain = state.chains[self.log_id]
                body = self._body_at(db, chain.place - 1)
            except (*MALFORMED, AttributeError, RecursionError):
                return False
        if not chain.is_chained or body is None or digest_of(body) != chain.head or state.position > logged:
            return False
        last = self._journal.record_before(state.position)
        if state.position > self._journal.base and last != body:
            return False
        self._verified, self._kept = state, state.number
        return True

    def _keep_checkpoint(self) -> None:
        """Write down how far was compared, where that is much further than was written down."""
        state = self._verified
        chain = state.chains.get(self.log_id)
        if chain is not None and chain.is_chained and state.number - self._kept >= _STRIDE:
            with self.write(is_logged=True) as db:  # a lost one is an older one
                db.execute(
                    "INSERT INTO checkpoint (log, body) VALUES (?, ?)"
                    " ON CONFLICT (log) DO UPDATE SET body = excluded.body",
                    (self.log_id, state.text()),
                )
            self._kept = state.number

    def compared(self) -> Chain:
        """Return what our log comes to, once what is new was compared."""
        self._compare()
        return self._verified.chains[self.log_id]

    def sealed_certificates(self, archive: Path | None) -> list[Path]:
        """Return the files with certificates beside the sealed ones, the newest first."""
        folders = [self._log.parent, *([] if archive is None else [archive])]
        names = [
            certificates_path(sealed_path(self._log, at)).name for at in reversed(range(self._journal.number))
        ]
        return [file for name in names for folder in folders if (file := folder / name).is_file()]

    @property
    def files(self) -> int:
        """How many files the log has."""
        return self._journal.number + 1

    def _compare(self) -> None:
        """Compare the records that are new since the last time, and all sums."""
        self._verified = self._compared(self._verified.copy(), is_whole=False)

    def verify(self, archive: Path | None = None, watch: Watch | None = None) -> Verified:
        """Compare the whole log, sealed files too, with all of the ledger, whatever was compared before.

        `archive`: where sealed files are that do not stand beside the log; `watch`: is shown what it comes to after
        each record of our log. Raises LedgerError: something is not as it was written, or missing.
        """
        self._journal.archive = archive
        with self._snapshot() as db:
            _, version = db.execute(*self._logged).fetchone()
            row = db.execute(_CHECKPOINT, (self.log_id,)).fetchone() if version >= CHAINED else None
        state = self._compared(Verified(days={}), is_whole=True, watch=watch)
        self._verified = state
        if row is not None:
            self._kept = -_STRIDE  # whatever it says, it is written anew
        self._keep_checkpoint()
        return state

    def _compared(self, state: Verified, *, is_whole: bool, watch: Watch | None = None) -> Verified:
        """Take a ledger's records to their end, each held against its line in the log."""
        try:
            while True:
                page = self._read_page(state.number, is_whole=is_whole)
                self._take_page(state, page, is_whole=is_whole, watch=watch)
                if page.is_last:
                    break
            if page.spent != state.spent:
                raise Disagreement("what is spent is not what its records add up to")
            if page.days is not None and (page.days, page.moment) != (state.days, state.moment):
                raise Disagreement("what is spent by day is not what its records add up to")
            if page.slices is not None and page.slices != state.slices:
                raise Disagreement("what is spent by period is not what its records add up to")
        except Disagreement as error:
            raise self.disagreement(str(error)) from error
        except MALFORMED as error:  # rows that dpsql did not write
            raise self.disagreement() from error
        return state

    def _read_page(self, after: int, *, is_whole: bool) -> Page:
        with self._snapshot() as db:
            logged, version = db.execute(*self._logged).fetchone()
            self._check_format(version)
            rows = self._page(db, after, _PAGE).fetchall()
            is_asked = is_whole and version >= CHAINED and len(rows) < _PAGE
            days, moment = (_days(db), _moment(db)) if is_asked else (None, None)
            slices = _slices(db) if version in OF_PERIODS and len(rows) < _PAGE else None
            return Page(rows, logged, _spent(db), days, moment, slices)

    def _go_to(self, state: Verified, place: int, lines: Iterator[tuple[int, str]]) -> None:
        """Take the log's records before the first one that the ledger has: it was lost, and made from a later file."""
        chain = state.chains[self.log_id] = Chain()
        while chain.place < place and (line := next(lines, None)) is not None:
            state.position, text = line
            chain.take(*_read_with_text(text))

    def _take_page(self, state: Verified, page: Page, *, is_whole: bool, watch: Watch | None) -> None:
        if page.logged > self._journal.size():
            self._journal.require_in_place()  # it may have been sealed since
            if page.logged > self._journal.size():
                raise Disagreement("the log is shorter than the ledger knows it")
        if page.logged < state.position:
            raise Disagreement("the ledger knows less of the log than it did")
        start, first = state.position, 0
        if not is_whole and (at_hand := self._journal.earliest(start)) > start:
            start = at_hand  # what was sealed and moved away: its records are chained in the ledger
            first = _first_place(self._journal, start, page.logged)
        lines = self._journal.records(start, page.logged)
        for number, log, body in page.rows:
            if log == self.log_id:
                if log not in state.chains and first < read_record(body).seq:
                    self._go_to(state, read_record(body).seq, lines)
                chain = state.chains.get(log)
                place = read_record(body).seq if chain is None else chain.place
                if place >= first:
                    end, line = next(lines, (0, None))
                    if line != body:
                        raise Disagreement(f"record {place} is not the log's")
                    state.position = end
            state.take(number, log, body)
            if watch is not None and log == self.log_id:
                watch(state)
        if page.is_last and next(lines, None) is not None:
            raise Disagreement("the log has a record that the ledger has not")


def _first_place(journal: Journal, start: int, stop: int) -> int:
    """Return the place of the first record from an offset on, one that no record has where there is none."""
    for _, text in journal.records(start, stop):
        return read_record(text).seq
    return _NO_PLACE


def _read_with_text(text: str) -> tuple[Record, str, str | None]:
    record, after = read_linked(text)
    return record, text, after


def _linked(records: Sequence[Record], head: str) -> list[tuple[Record, str]]:
    """Return records with their texts, each of which names the one before."""
    linked = []
    for record in records:
        text = record_text(record, head)
        linked.append((record, text))
        head = digest_of(text)
    return linked


def another_dataset() -> LedgerError:
    """Return the error for a ledger that is not this dataset's."""
    return LedgerError(
        "this ledger belongs to another dataset",
        hint="a dataset has one ledger for good: name that one in the policy",
    )


def moved() -> LedgerError:
    """Return the error for a ledger that the owner has moved to zCDP while it is kept in epsilon here."""
    return LedgerError(
        "this ledger is kept in rho: it was moved to zCDP, and the policy says otherwise",
        hint='write accounting = "zcdp" in [privacy], and start dpsql again',
    )


def divided() -> LedgerError:
    """Return the error for a ledger that the owner has divided into periods while it is kept as a whole here."""
    return LedgerError(
        "this ledger is kept by periods: it protects what a person has in one, and the policy says otherwise",
        hint="write [privacy.time] as the ledger was made for, and start dpsql again",
    )


def another_promise(made: Promise, said: Promise) -> LedgerError:
    """Return the error for a ledger whose charges mean something else than the policy's."""
    if made.period is not None and said.period is None:
        return divided()
    if made.period is None and said.period is not None:
        return LedgerError(
            "this ledger was made for all that a person ever has; the policy protects a person's data of one "
            f"{said.period.value}",
            hint=f"leave [privacy.time] out, or divide it with dpsql budget account {said.period.value}: what is "
            "promised to a person over time becomes weaker, and there is no way back",
        )
    if made.period is not None and (made.period, made.zone, made.since) != (
        said.period,
        said.zone,
        said.since,
    ):
        return LedgerError(
            f'this ledger was made for period = "{made.period.value}", zone = "{made.zone}" and since = {made.since}; '
            "the policy says otherwise",
            hint="write in [privacy.time] what it was made for: what was charged to one period is not what another had",
        )
    if made.accounting is Accounting.ZCDP and said.accounting is Accounting.PURE:
        return moved()
    if made.accounting is not said.accounting:
        return LedgerError(
            'this ledger was made for accounting = "pure"; the policy says otherwise',
            hint="write what it was made for, or move it with dpsql budget account zcdp: there is no way back",
        )
    if made.conversion_delta_atto != said.conversion_delta_atto:
        return LedgerError(
            f"this ledger was made for conversion_delta = {delta_text(made.conversion_delta_atto)}; "
            "the policy says otherwise",
            hint="it is fixed: write it in [privacy]; left out, it is half of delta",
        )
    neighbours = f'neighbours = "{made.neighbours}" and ' if made.neighbours else ""
    return LedgerError(
        f"this ledger was made for {neighbours}together = {made.together}; the policy says otherwise",
        hint="what was charged under one of them does not count under another: write in [privacy] what it was made for",
    )


def require_promise(db: Database, promise: Promise, logged: Sequence[Record] = ()) -> None:
    """Raise LedgerError where a log in the ledger was begun under another promise, and the ledger not moved since.

    `logged`: what a log has that may not be in the ledger yet.
    """
    rows = db.execute(_NOTED).fetchall()
    rows += db.execute(_DIVISIONS).fetchall() if promise.period is not None else []
    records = [*(read_record(body) for (body,) in rows), *logged]
    acts = [record for record in records if isinstance(record, Move | Division)]
    for record in records:
        if isinstance(record, Header | Segment) and not record.promise.after(*acts).agrees(promise):
            raise another_promise(record.promise.after(*acts), promise)


def last_told(db: Database) -> Entry | Division | Segment | None:
    """Return the newest record that tells where periods end, and by which time, and unit, tables were charged."""
    row = db.execute(_TOLD_LAST).fetchone()
    record = None if row is None else read_record(row[0])
    return record if isinstance(record, Entry | Division | Segment) else None


def _set_epoch(db: Database, epoch: int) -> None:
    db.execute("UPDATE ledger SET epoch = ? WHERE epoch < ?", (epoch, epoch))


def _carry_over(db: Database, epoch: int, retired: Slices) -> None:
    """Have what was stored in the epoch before answer in a new one, but for what is of retired slices."""
    rows = db.execute(
        "SELECT m.key, m.entry, r.body FROM measure m JOIN record r ON r.seq = m.entry WHERE m.epoch = ?",
        (epoch - 1,),
    ).fetchall()
    for key, entry, body in rows:
        record = read_record(body)
        slices = record.slices if isinstance(record, Entry) else None
        if slices is not None and not slices.meets(retired):
            db.execute(
                "UPDATE measure SET epoch = ? WHERE epoch = ? AND key = ? AND entry = ?",
                (epoch, epoch - 1, key, entry),
            )


def _spent(db: Database) -> dict[str, Sums]:
    return _read_sums(db.execute(_SPENT))


def _read_sums(rows: LedgerCursor) -> dict[str, Sums]:
    return {name: (int(epsilon), int(delta), int(rho)) for name, epsilon, delta, rho in rows.fetchall()}


def _add_to_spent(db: Database, spent: dict[str, Sums], more: dict[str, Sums]) -> None:
    for name, sums in more.items():
        db.execute(
            "INSERT INTO spent (analyst, epsilon_nano, delta_atto, rho_atto) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (analyst) DO UPDATE SET epsilon_nano = excluded.epsilon_nano,"
            " delta_atto = excluded.delta_atto, rho_atto = excluded.rho_atto",
            (name, *map(str, add(spent.get(name, _NOTHING), sums))),
        )


def _slices(db: Database) -> dict[str, Steps]:
    found: dict[str, list[Run]] = {}
    for name, first, last, epsilon, delta, rho in db.execute(_SLICES).fetchall():
        found.setdefault(name, []).append((first, last, (int(epsilon), int(delta), int(rho))))
    return {name: Steps(runs) for name, runs in found.items()}


def slices_met(name: str, first: int, last: int) -> Statement:
    """Ask for what was charged to an analyst, or to all under no name, of the periods from first to last."""
    columns = "SELECT first_period, last_period, epsilon_nano, delta_atto, rho_atto"
    return f"{columns}{_MET} ORDER BY first_period", (name, name, first, first, last)


def most_met(name: str, first: int, last: int, *, in_rho: bool) -> Statement:
    """Ask for the most of one of these periods: of what is added up, and of delta, each as a text that begins with
    100 + its length, so that texts and numbers have one order; NULL where nothing was charged.
    """
    most = ", ".join(f"MAX((100 + LENGTH({of})) || {of})" for of in (_added_up(in_rho=in_rho), "delta_atto"))
    return f"SELECT {most}{_MET} AND last_period >= ?", (name, name, first, first, last, first)


def alike_met(name: str, first: int, last: int, amount: int, *, in_rho: bool) -> Statement:
    """Ask which of these periods, and some beside them, were charged so much of what is added up."""
    columns, alike = "SELECT first_period, last_period", f"{_added_up(in_rho=in_rho)} = ?"
    return f"{columns}{_MET} AND last_period >= ? AND {alike}", (
        *(name, name, first, first, last, first), str(amount),
    )  # fmt: skip


def _added_up(*, in_rho: bool) -> str:
    return "rho_atto" if in_rho else "epsilon_nano"


def met(rows: Iterable[Sequence[Any]], first: int) -> list[Run]:
    """Return the runs of such rows that meet the periods from first on."""
    return [
        (begin, end, (int(epsilon), int(delta), int(rho)))
        for begin, end, epsilon, delta, rho in rows
        if end >= first
    ]


def _add_to_slices(db: Database, more: dict[str, Steps]) -> None:
    everybody = Steps()
    for steps in more.values():
        everybody.merge(steps)
    asked = [
        (name, steps, [(first, db.execute(*slices_met(name, first, last))) for first, last, _ in steps])
        for name, steps in (("", everybody), *more.items())
        if len(steps)
    ]
    changed: list[tuple[object, ...]] = []
    for name, steps, rows in asked:
        known = {run[0]: run for first, found in rows for run in met(found.fetchall(), first)}
        after = Steps(known[first] for first in sorted(known))
        after.merge(steps)
        changed += [(name, *run[:2], *map(str, run[2])) for run in after if known.get(run[0]) != run]
    while changed:
        size = next(size for size in _ROWS if size <= len(changed))
        values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * size)
        db.execute(_SET_SLICES.format(values=values), [value for row in changed[:size] for value in row])
        del changed[:size]


def _days(db: Database) -> Days:
    rows = db.execute("SELECT day, analyst, epsilon_nano, delta_atto, rho_atto FROM day").fetchall()
    return {(day, name): (int(epsilon), int(delta), int(rho)) for day, name, epsilon, delta, rho in rows}


def _moment(db: Database) -> datetime | None:
    """Return the highest moment of the ledger, None where it has no record."""
    row = db.execute(MOMENT).fetchone()
    return None if row is None else moment_of(row[0])


def _add_to_days(db: Database, more: Days, number: int, moment: datetime | None) -> None:
    for (day, name), sums in more.items():
        asked = "SELECT epsilon_nano, delta_atto, rho_atto FROM day WHERE day = ? AND analyst = ?"
        row = db.execute(asked, (day, name)).fetchone() or _NOTHING
        _set_day(db, day, name, add((int(row[0]), int(row[1]), int(row[2])), sums), number, moment)


def _set_day(db: Database, day: str, name: str, sums: Sums, number: int, moment: datetime | None) -> None:
    db.execute(
        "INSERT INTO day (day, analyst, epsilon_nano, delta_atto, rho_atto, number, moment)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, analyst) DO UPDATE SET epsilon_nano = excluded.epsilon_nano,"
        " delta_atto = excluded.delta_atto, rho_atto = excluded.rho_atto, number = excluded.number,"
        " moment = excluded.moment",
        (day, name, *map(str, sums), number, "" if moment is None else moment.isoformat()),
    )

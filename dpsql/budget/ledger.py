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
5. A statement outside the two engines' modules is one that both understand; `?` stands for a value.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from ..errors import LedgerAway, LedgerError
from ..policy import Accounting
from ..waits import check
from .claim import delta_text
from .entry import (
    CERTIFIED,
    FORMAT,
    MALFORMED,
    OF_ZCDP,
    Entry,
    EntryState,
    EpochStart,
    Grant,
    Header,
    Move,
    Promise,
    Record,
    newer,
    read_record,
    record_text,
)
from .journal import Journal

__all__ = [
    "GRANTED", "Database", "Ledger", "Statement", "Step", "identity", "read_header", "require_promise", "utc_now",
]  # fmt: skip

Step = Callable[[str], None]
"""A hook that the crash tests use to stop a process at a named step."""

Statement = tuple[str, Sequence[object]]

GRANTED = "granted"
_VOID = "void"
_PAGE = 10_000
_FAIL = (
    "UPDATE record SET state = 'failed', holder = NULL WHERE seq = ? AND state = 'reserved' AND holder = ?"
)

Sums = tuple[int, int, int]
"""Epsilon in 1e-9, delta and rho in 1e-18."""


class LedgerCursor(Protocol):
    """A statement's rows. They may be fetched after later statements were given."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """Takes statements in their order. One whose rows are not fetched may fail as late as the next fetch."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> LedgerCursor: ...


def utc_now() -> str:
    """Return the time as text, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def untold(is_logged: bool | None) -> None:
    """Do nothing: nobody is told what became of records that could not be written."""


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from one put in its place, or None when there is none."""
    try:
        stat = path.stat()
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


def read_header(journal: Journal) -> Header | None:
    """Return a log's first record if it is a header. Requires: `mend` was called."""
    for _, text in journal.records(0):
        record = read_record(text)
        return record if isinstance(record, Header) else None
    return None


class Ledger(ABC):
    """An open ledger and this process's log of it; safe for threads, not for use after a fork."""

    longest_pause: float
    """Seconds between two looks at a statement that draws the same."""

    def __init__(self, log: Path, name: str, step: Step, promise: Promise) -> None:
        self.step = step
        self.promise = promise
        self._name = name
        self._log = log
        self._journal = Journal(log)
        self._log_file = identity(log)
        self._process = os.getpid()
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

    @abstractmethod
    def tidy(self) -> None:
        """Do what can wait, beside the changes: nothing is different after it. Raises LedgerError."""

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
    def _whole(self) -> AbstractContextManager[Database]:
        """Give one snapshot in which all of this log that was committed is seen. Requires: inside `_alone`."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Database]:
        """Give the committed state. What the log has beyond it is not seen."""

    @abstractmethod
    def _read_together(self, statements: Sequence[Statement]) -> list[list[Any]]:
        """Return the rows of each statement; a later one sees no less than an earlier one."""

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

    @property
    @abstractmethod
    def _later_tables(self) -> Sequence[str]:
        """Make the tables that a ledger of before format 4 does not have."""

    @abstractmethod
    def _next(self, db: Database) -> LedgerCursor:
        """Ask for one row: the next record's number in the ledger, and its place in this log."""

    @abstractmethod
    def _insert(
        self, db: Database, number: int, record: Record, state: str | None, holder: str | None
    ) -> None:
        """Add one record, whose `seq` is its place in this log."""

    @abstractmethod
    def _page(self, db: Database, after: int, count: int) -> LedgerCursor:
        """Ask for the next records in order of number: (number, whether it is of this log, body)."""

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
        with self._alone():
            while True:
                given_up = frozenset(self._given_up)
                with self._change(is_logged=is_logged) as db:
                    logged, version = db.execute(*self._logged).fetchone()
                    self._check_format(version)
                    if version != self.promise.format:
                        self._upgrade(db, version)
                    is_settled = not given_up and logged == self._journal.size()
                    if is_settled:
                        yield db
                    else:
                        self._catch_up(db, logged, given_up)
                self._given_up -= given_up | self._appended
                self._appended.clear()
                if is_settled:
                    return

    def _upgrade(self, db: Database, version: int) -> None:
        """Bring a ledger of an earlier format to that of the promise; what is in it stays as it is."""
        for statement in self._later_tables if version < CERTIFIED else ():
            db.execute(statement)
        self._set_format(db)

    def has_certificates(self) -> bool:
        """Return whether the ledger has the tables of format 4: one that was not written to since has not."""
        [[(_, version)]] = self._read_together([self._logged])
        return int(version) >= CERTIFIED

    def read_settled(self, *statements: Statement) -> list[list[Any]]:
        """Return the rows of each statement, with nothing that the log has missing from them."""
        [(logged, version)], *found = self._read_together([self._logged, *statements])
        self._check_format(version)
        if not self._given_up and logged == self._journal.size():
            return found
        with self.write() as db:
            return [db.execute(*statement).fetchall() for statement in statements]

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
        number, place = self._next(db).fetchone()
        self.step("before log")
        placed = [replace(record, seq=place + i) for i, record in enumerate(records)]
        self._appended.update(range(number, number + len(placed)))
        self._given_up |= self._appended
        before = self._journal.size()
        told(None)
        try:
            end = self._journal.append([record_text(record) for record in placed], self.step)
        except OSError:
            if self._journal.size() == before:
                told(False)
            raise
        told(True)
        self._insert_all(db, number, placed, is_replay=False)
        self._set_logged(db, end)
        self.step("inserted")
        return int(number)

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
        require_same(self._log, self._log_file)

    def _check_format(self, version: int) -> None:
        """Raise LedgerError where a newer version of dpsql has written meanwhile, or the ledger was moved."""
        if version > FORMAT:
            raise newer()
        if version in OF_ZCDP and self.promise.accounting is Accounting.PURE:
            raise moved()

    def damage(self) -> LedgerError:
        """Return the error for a stored answer that is not, or no longer, what was stored."""
        return LedgerError(
            f"a stored answer in the ledger {self._name} is damaged or missing",
            hint="restore the ledger from a backup: it may be older than its log, which brings it up to date; or "
            "give up what is stored with dpsql refresh: it is then drawn, and charged, anew",
        )

    def disagreement(self) -> LedgerError:
        """Return the error for a log and a ledger of which neither explains the other."""
        return LedgerError(
            f"the ledger {self._name} and its log do not agree",
            hint=f"restore the log {self._log.name} as it was (it is never older than the ledger, nor shared "
            "by copying); the ledger itself may be older, or missing: it is brought up to the log",
        )

    def _insert_all(self, db: Database, first: int, records: Iterable[Record], *, is_replay: bool) -> None:
        sums: dict[str, Sums] = {}
        for number, record in enumerate(records, first):
            state: str | None = None
            holder: str | None = None
            match record:
                case Entry():
                    sums[record.analyst] = _sum_with(record, sums.get(record.analyst, (0, 0, 0)))
                    state = (EntryState.FAILED if is_replay else EntryState.RESERVED).value
                    holder = None if is_replay else self.holder
                case Grant():
                    state = _VOID if is_replay else GRANTED
                case EpochStart():
                    db.execute("UPDATE ledger SET epoch = ? WHERE epoch < ?", (record.epoch, record.epoch))
                case Header():
                    require_promise(db, self.promise)
                case Move():
                    self._take_move(db, record, is_replay=is_replay)
            self._insert(db, number, record, state, holder)
        _add_to_spent(db, sums)

    def _take_move(self, db: Database, move: Move, *, is_replay: bool) -> None:
        """Have the ledger kept in rho from now on. Raises LedgerError where it is kept in epsilon here.

        A move that is in the log is replayed as it is: whatever came after it was charged in rho, and what came
        before counts (soundness.md 3.11).
        """
        if is_replay and self.promise.accounting is Accounting.PURE:
            raise moved()
        self.promise = self.promise.after(move)
        self._set_format(db)

    def _catch_up(self, db: Database, logged: int, given_up: frozenset[int]) -> None:
        """Replay what the log has beyond the ledger, and close what was given up."""
        if self._journal.size() < logged:
            raise self.disagreement()
        self._journal.mend()
        number, place = self._next(db).fetchone()
        self._insert_all(db, number, self._records_from(logged, place), is_replay=True)
        self._set_logged(db, self._journal.size())
        for entry in given_up:
            db.execute(_FAIL, (entry, self.holder))

    def _records_from(self, logged: int, place: int) -> Iterator[Record]:
        for expected, (_, text) in enumerate(self._journal.records(logged), place):
            record = read_record(text)
            if record.seq != expected:
                raise self.disagreement()
            yield record

    def _verify(self, dataset: str, promise: Promise) -> None:
        """Compare log and ledger record by record, and the running sums with the entries."""
        try:
            self._compare(dataset, promise)
        except MALFORMED as error:  # rows that dpsql did not write
            raise self.disagreement() from error

    def _compare(self, dataset: str, promise: Promise) -> None:
        with self._alone(), self._whole() as db:
            logged, version = db.execute(*self._logged).fetchone()
            self._check_format(version)
            self._journal.mend()
            named: Header | None = None
            move: Move | None = None
            sums: dict[str, Sums] = {}
            kept = self._kept(db, sums)
            for place, (end, text) in enumerate(self._journal.records(0)):
                record = read_record(text)
                if place == 0 and isinstance(record, Header):
                    named = record
                if isinstance(record, Move):
                    move = move or record
                if record.seq != place or (end <= logged and next(kept, None) != text):
                    raise self.disagreement()
            if named is None or next(kept, None) is not None:
                raise self.disagreement()
            if named.dataset != dataset:
                raise another_dataset()
            require_promise(db, promise, (named, move))
            if _spent(db) != sums:
                raise self.disagreement()

    def _kept(self, db: Database, sums: dict[str, Sums]) -> Iterator[str]:
        """Yield the bodies of this log's records; at the end, `sums` has what the entries of all logs add up to."""
        after = -1
        while page := self._page(db, after, _PAGE).fetchall():
            after = page[-1][0]
            for _, is_ours, body in page:
                record = read_record(body)
                if isinstance(record, Entry):
                    sums[record.analyst] = _sum_with(record, sums.get(record.analyst, (0, 0, 0)))
                if is_ours:
                    yield body

    def _fail_dead(self) -> None:
        with self.write() as db:
            for entry, holder in db.execute(
                "SELECT seq, holder FROM record WHERE state = 'reserved'"
            ).fetchall():
                self.is_running(db, entry, holder)


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


def another_promise(made: Promise, said: Promise) -> LedgerError:
    """Return the error for a ledger whose charges mean something else than the policy's."""
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


def require_promise(
    db: Database, promise: Promise, logged: tuple[Header | None, Move | None] = (None, None)
) -> None:
    """Raise LedgerError where a log in the ledger was begun under another promise, and the ledger not moved since.

    `logged`: what a log has that may not be in the ledger yet.
    """
    rows = db.execute("SELECT body FROM record WHERE kind IN ('header', 'move') ORDER BY seq").fetchall()
    records = [*(read_record(body) for (body,) in rows), *logged]
    move = next((record for record in records if isinstance(record, Move)), None)
    for record in records:
        if isinstance(record, Header) and not record.promise.after(move).agrees(promise):
            raise another_promise(record.promise.after(move), promise)


def _sum_with(entry: Entry, sums: Sums) -> Sums:
    epsilon, delta, rho = sums
    charge = entry.charge
    return epsilon + charge.epsilon_nano, delta + charge.delta_atto, rho + charge.rho_atto


def _spent(db: Database) -> dict[str, Sums]:
    rows = db.execute("SELECT analyst, epsilon_nano, delta_atto, rho_atto FROM spent").fetchall()
    return {name: (int(epsilon), int(delta), int(rho)) for name, epsilon, delta, rho in rows}


def _add_to_spent(db: Database, more: dict[str, Sums]) -> None:
    if not more:
        return
    spent = _spent(db)
    for name, sums in more.items():
        new = [old + plus for old, plus in zip(spent.get(name, (0, 0, 0)), sums, strict=True)]
        db.execute(
            "INSERT INTO spent (analyst, epsilon_nano, delta_atto, rho_atto) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (analyst) DO UPDATE SET epsilon_nano = excluded.epsilon_nano,"
            " delta_atto = excluded.delta_atto, rho_atto = excluded.rho_atto",
            (name, *map(str, new)),
        )

"""The durable half of the SQLite store: files, transactions, the log in front of the ledger, replay.

House rules:

1. Every change is one `BEGIN IMMEDIATE` transaction; the lock that it takes also guards the log.
2. Order of a record: log, fsync, insert, COMMIT (itself synced). Whatever dies in between, the log
   has at least what the ledger has (amendments.md j3).
3. Before any change, what the log has and the ledger lacks is replayed as spent. Replay can only
   take: a replayed entry is failed, a replayed grant is void.
4. Where log and ledger disagree in any other way, nothing is answered (LedgerError).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ..errors import LedgerError
from .entry import FORMAT, Entry, EpochStart, Grant, Header, Record, State, read_record, record_text
from .holder import Holder, is_alive, open_alone, remove_dead
from .journal import Journal, create_journal

__all__ = ["GRANTED", "SqliteLedger", "Step", "utc_now"]

Step = Callable[[str], None]
"""A hook that the crash tests use to stop a process at a named step."""

_SCHEMA = (
    # One row: the epoch, the salt's secret, how much of the log is in the ledger.
    "CREATE TABLE ledger (epoch INTEGER NOT NULL, secret BLOB NOT NULL, log_bytes INTEGER NOT NULL)",
    # The log's records, in its own words; only `state` and `holder` ever change.
    "CREATE TABLE record (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, state TEXT, holder TEXT,"
    " body TEXT NOT NULL)",
    "CREATE INDEX granted ON record (seq) WHERE kind = 'grant'",
    # Running sums of the entries, as decimal text since they may outgrow 64 bits.
    "CREATE TABLE spent (analyst TEXT PRIMARY KEY, epsilon_nano TEXT NOT NULL, delta_atto TEXT NOT NULL,"
    " rho_atto TEXT NOT NULL) WITHOUT ROWID",
    # Which entry draws, or drew, which measure.
    "CREATE TABLE measure (epoch INTEGER NOT NULL, key BLOB NOT NULL, entry INTEGER NOT NULL,"
    " scale TEXT NOT NULL, PRIMARY KEY (epoch, key, entry)) WITHOUT ROWID",
    "CREATE TABLE draw (entry INTEGER PRIMARY KEY, measures BLOB NOT NULL, scale TEXT NOT NULL,"
    " payload BLOB NOT NULL)",
)

GRANTED = "granted"
_VOID = "void"


def utc_now() -> str:
    """Return the time as text, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class SqliteLedger:
    """An open ledger file with its log: one connection, safe for threads, not for use after a fork."""

    def __init__(self, path: Path, step: Step) -> None:
        """Requires: inside `open_alone`, with ledger and log there. Use `open`."""
        self.step = step
        self._path = path
        self._folder = _holders(path)
        self._process = os.getpid()
        self._lock = threading.Lock()
        with ExitStack() as undo:
            self._journal = Journal(_log(path))
            undo.callback(self._journal.close)
            self._db = _connect(path)
            undo.callback(self._db.close)
            self._holder = Holder(self._folder)
            self._close = undo.pop_all()
        self._close.callback(self._holder.close)
        self._files = (_identity(path), _identity(_log(path)))

    @classmethod
    def open(cls, path: Path, dataset: str, create: bool, step: Step) -> SqliteLedger:
        """Open the ledger at `path`, check it against its log, and replay what it lacks.

        A ledger that is missing while its log exists is rebuilt from the log; what is missing
        altogether is made when `create` holds. Raises LedgerError.
        """
        path = Path(os.path.realpath(path))
        if not (create or path.exists() or _log(path).exists()):
            raise LedgerError(
                f"there is no ledger {path.name}",
                hint="a new dataset: dpsql budget create; a lost ledger: restore it, or the log beside it",
            )
        with _as_ledger_errors(path), open_alone(_holders(path)):
            remove_dead(_holders(path))
            if not _log(path).exists():
                _create_log(path, dataset)
            ledger = cls(path, step)
            with ExitStack() as undo:
                undo.callback(ledger.close)
                _prepare(ledger._db)
                ledger._verify(dataset)
                with ledger.write():
                    ledger._fail_dead()
                undo.pop_all()
        return ledger

    def close(self) -> None:
        """Close the files. What is still reserved counts as failed from now on."""
        with self._lock:
            self._close.close()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one read snapshot."""
        with self._lock, _as_ledger_errors(self._path):
            self._check_same_process_and_files()
            with self._begun("BEGIN"):
                yield self._db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give the connection inside one write transaction, with all of the log replayed.

        Commits, durably, when the block ends; undoes everything but the log when it raises.
        """
        with self._lock, _as_ledger_errors(self._path):
            self._check_same_process_and_files()
            while True:
                with self._begun("BEGIN IMMEDIATE"):
                    if not self._replay_new():
                        yield self._db
                        return

    def append(self, records: Sequence[Record]) -> None:
        """Write the records to the log and then to the ledger. Requires: inside `write`."""
        self.step("before log")
        end = self._journal.append([record_text(record) for record in records], self.step)
        for record in records:
            self._insert(record, is_replay=False)
        self._db.execute("UPDATE ledger SET log_bytes = ?", (end,))
        self.step("inserted")

    def next_seq(self) -> int:
        """Return the number of the next record. Requires: inside `write`."""
        row = self._db.execute("SELECT COALESCE(MAX(seq), -1) + 1 FROM record").fetchone()
        return int(row[0])

    def is_running(self, entry: int, holder: str) -> bool:
        """Return whether a reserved entry's holder lives; fails the entry for good when it is dead.

        Requires: inside `write`.
        """
        if is_alive(self._folder, holder):
            return True
        self._db.execute(
            "UPDATE record SET state = ?, holder = NULL WHERE seq = ? AND state = ?",
            (State.FAILED.value, entry, State.RESERVED.value),
        )
        return False

    @contextmanager
    def _begun(self, begin: str) -> Iterator[None]:
        self._db.execute(begin)
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _check_same_process_and_files(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError("an open ledger was carried over a fork", hint="open it in the new process")
        if (_identity(self._path), _identity(_log(self._path))) != self._files:
            raise LedgerError("the ledger or its log was replaced while in use", hint="restart dpsql")

    def _insert(self, record: Record, *, is_replay: bool) -> None:
        state: str | None = None
        holder: str | None = None
        match record:
            case Entry():
                self._add_to_spent(record)
                state = (State.FAILED if is_replay else State.RESERVED).value
                holder = None if is_replay else self._holder.name
            case Grant():
                state = _VOID if is_replay else GRANTED
            case EpochStart():
                self._db.execute("UPDATE ledger SET epoch = ?", (record.epoch,))
            case Header():
                pass
        self._db.execute(
            "INSERT INTO record (seq, kind, state, holder, body) VALUES (?, ?, ?, ?, ?)",
            (record.seq, type(record).__name__.lower(), state, holder, record_text(record)),
        )

    def _add_to_spent(self, entry: Entry) -> None:
        old = self._db.execute(
            "SELECT epsilon_nano, delta_atto, rho_atto FROM spent WHERE analyst = ?", (entry.analyst,)
        ).fetchone()
        new = _sum_with(entry, tuple(map(int, old)) if old else (0, 0, 0))
        self._db.execute("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?)", (entry.analyst, *map(str, new)))

    def _replay_new(self) -> bool:
        """Replay what the log has beyond the ledger; return whether there was anything."""
        (known,) = self._db.execute("SELECT log_bytes FROM ledger").fetchone()
        size = self._journal.size()
        if size == known:
            return False
        if size < known:
            raise _disagreement(self._path)
        self._journal.mend()
        for _, text in self._journal.records(known):
            record = read_record(text)
            if record.seq != self.next_seq():
                raise _disagreement(self._path)
            self._insert(record, is_replay=True)
        self._db.execute("UPDATE ledger SET log_bytes = ?", (self._journal.size(),))
        return True

    def _verify(self, dataset: str) -> None:
        """Compare log and ledger record by record, and the running sums with the entries."""
        with self._begun("BEGIN IMMEDIATE"):
            (known,) = self._db.execute("SELECT log_bytes FROM ledger").fetchone()
            self._journal.mend()
            named: str | None = None
            kept = self._db.execute("SELECT body FROM record ORDER BY seq")
            sums: dict[str, tuple[int, int, int]] = {}
            for seq, (end, text) in enumerate(self._journal.records(0)):
                record = read_record(text)
                if seq == 0 and isinstance(record, Header):
                    named = record.dataset
                if record.seq != seq or (end <= known and kept.fetchone() != (text,)):
                    raise _disagreement(self._path)
                if end <= known and isinstance(record, Entry):
                    sums[record.analyst] = _sum_with(record, sums.get(record.analyst, (0, 0, 0)))
            if named is None or kept.fetchone() is not None:
                raise _disagreement(self._path)
            if named != dataset:
                raise LedgerError(
                    "this ledger belongs to another dataset",
                    hint="a dataset has one ledger for good: name that one in the policy",
                )
            rows = self._db.execute("SELECT analyst, epsilon_nano, delta_atto, rho_atto FROM spent")
            if {name: tuple(map(int, spent)) for name, *spent in rows} != sums:
                raise _disagreement(self._path)

    def _fail_dead(self) -> None:
        rows = self._db.execute("SELECT seq, holder FROM record WHERE state = ?", (State.RESERVED.value,))
        for entry, holder in rows.fetchall():
            self.is_running(entry, holder)


def _sum_with(entry: Entry, sums: tuple[int, ...]) -> tuple[int, int, int]:
    epsilon, delta, rho = sums
    charge = entry.charge
    return epsilon + charge.epsilon_nano, delta + charge.delta_atto, rho + charge.rho_atto


def _log(path: Path) -> Path:
    return path.with_name(path.name + ".log")


def _holders(path: Path) -> Path:
    return path.with_name(path.name + ".holders")


def _identity(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def _create_log(path: Path, dataset: str) -> None:
    """Make the log of a new ledger. The log is always first, so a ledger without one has lost it."""
    if path.exists():
        raise LedgerError(
            f"the ledger's log {_log(path).name} is missing",
            hint="restore it from a backup; without it nobody can tell what was spent",
        )
    create_journal(_log(path), record_text(Header(0, utc_now(), dataset)))


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database, made for its owner alone.

    A file that is there is never opened by other means than SQLite's: closing any descriptor of it
    would drop the locks of every connection of this process (sqlite.org/howtocorrupt.html 2.2).
    """
    if path.exists():
        path.chmod(0o600)
    else:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    return sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)


def _prepare(database: sqlite3.Connection) -> None:
    """Set the durability settings and make the schema in an empty file, to be filled by replay."""
    (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA fullfsync = ON")
    database.execute("PRAGMA checkpoint_fullfsync = ON")
    (level,) = database.execute("PRAGMA synchronous").fetchone()
    if mode != "wal" or level != 2:
        raise LedgerError("the ledger's file system cannot make it durable", hint="put it on a local disk")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == FORMAT:
        return
    if database.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
        raise LedgerError("this file is no ledger of this version", hint="name another file in the policy")
    database.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        database.execute(statement)
    database.execute("INSERT INTO ledger VALUES (1, ?, 0)", (secrets.token_bytes(32),))
    database.execute(f"PRAGMA user_version = {FORMAT}")
    database.execute("COMMIT")


@contextmanager
def _as_ledger_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(
            "the ledger cannot be read or written",
            hint=f"see that {path.name} and its log are sound, on a local disk with free space",
        ) from error


def _disagreement(path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {path.name} and its log do not agree",
        hint="restore the log as it was (it is never older than the ledger); the ledger itself may be "
        "older, or missing: it is brought up to the log",
    )

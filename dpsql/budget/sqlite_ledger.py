"""The ledger in a SQLite file: files, transactions, statements of its own.

House rules:

1. Every change is one `BEGIN IMMEDIATE` transaction; the lock that it takes also guards the log. What is committed is
   on the disk then; but a reservation, which the log has there, comes to it with the next commit, at the latest that
   of its draws.
2. The file is opened by SQLite alone, and made for its owner alone.
3. What SQLite keeps beside the file goes into it in `tidy`, where somebody calls that, over a connection that does
   nothing else: no charge waits for it. It has the whole of what it moves on the disk first.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from ..errors import LedgerError, LedgerMissing
from ..waits import acquire, check
from .entry import FORMAT, UNSAID, Header, Promise, Record, newer, record_text
from .journal import (
    Holder,
    busy,
    create_journal,
    file_fault,
    is_alive,
    open_alone,
    remove_dead,
    require_file,
    sealed_path,
    sqlite_fault,
)
from .ledger import (
    LATER,
    Database,
    Ledger,
    LedgerCursor,
    Statement,
    Step,
    creating,
    identity,
    require_same,
    utc_now,
)

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
_WRITTEN = {"of": "", "bytes": "BLOB", "rowless": " WITHOUT ROWID"}
_TIDY_CHANGES = 200
"""Rows that are changed until there is something to tidy: some thirty statements."""
_WAIT_SECONDS = 30.0
_LOOK_MILLISECONDS = 100
"""How long SQLite waits for another process by itself, between two looks at whether the statement has to end."""
_LONGEST_WAL = 5_000
"""Pages of 4 KiB that wait beside the file until a commit moves them itself: where nobody tidies."""


class SqliteLedger(Ledger):
    """A ledger file with its log beside it: one connection, shared by processes of one machine."""

    longest_pause = 0.05
    _written = _WRITTEN

    def __init__(self, path: Path, step: Step, promise: Promise) -> None:
        """Requires: inside `open_alone`, with ledger and log there. Use `open`."""
        super().__init__(_log(path), path.name, step, promise)
        self._path = path
        self._folder = _holders(path)
        self._lock, self._tidying = threading.Lock(), threading.Lock()
        self._synchronous = ""
        self._read_last: tuple[object, list[list[Any]]] = None, []
        with ExitStack() as undo:
            undo.callback(self._journal.close)
            self._db = _connect(path)
            undo.callback(self._db.close)
            self._tidier = _connect(path)
            undo.callback(self._tidier.close)
            self._holder = Holder(self._folder)
            self._close = undo.pop_all()
        self._close.callback(self._holder.close)
        self._file = identity(path)
        self._tidied = 0

    @classmethod
    def open(
        cls, path: Path, dataset: str, create: bool, step: Step, promise: Promise = UNSAID
    ) -> SqliteLedger:
        """Open the ledger at `path`, check it against its log, and replay what it lacks.

        A ledger that is missing while its log exists is rebuilt from the log; what is missing
        altogether is made when `create` holds. Raises LedgerError.
        """
        path = Path(os.path.realpath(path))
        with _as_ledger_errors(path):
            is_there = path.exists() or _log(path).exists()
        if not (create or is_there):
            raise LedgerMissing(
                f"there is no ledger {path.name}",
                hint="a new dataset: dpsql budget create; a lost ledger: restore it, or the log beside it",
            )
        with _as_ledger_errors(path), open_alone(_holders(path)):
            remove_dead(_holders(path))
            if not _log(path).exists():
                _create_log(path, dataset, promise)
            ledger = cls(path, step, promise)
            with ExitStack() as undo:
                undo.callback(ledger.close)
                _prepare(ledger._db)
                ledger._db.execute(f"PRAGMA busy_timeout = {_LOOK_MILLISECONDS}")
                _make_durable(ledger._tidier)
                undo.pop_all()
        with ExitStack() as undo:  # others may open it meanwhile
            undo.callback(ledger.close)
            with _as_ledger_errors(path):
                ledger._open(dataset, promise)
            undo.pop_all()
        return ledger

    @property
    def log_id(self) -> str:
        """See `Ledger.log_id`."""
        return ""

    @property
    def holder(self) -> str:
        """See `Ledger.holder`: the name of a locked file."""
        return self._holder.name

    def close(self) -> None:
        """See `Ledger.close`."""
        with self._tidying, self._lock:
            self._close.close()

    def check_in_place(self) -> None:
        """See `Ledger.check_in_place`; the ledger's file is looked at too."""
        super().check_in_place()
        require_same(self._path, self._file)

    def tidy(self) -> None:
        """See `Ledger.tidy`: move what was committed into the file, where that is much."""
        with self._tidying, _as_ledger_errors(self._path):
            self.check_in_place()
            changed = self._db.total_changes
            if changed - self._tidied >= _TIDY_CHANGES:
                self._tidier.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._tidied = changed
            super().tidy()

    def back_up(self, folder: Path) -> list[Path]:
        """See `Ledger.back_up`: the ledger first, so that the log's copy lacks nothing that the ledger's has."""
        copy = folder / self._path.name
        with self._alone(), closing(_connect(copy)) as target:
            self._db.backup(target)
        with _as_ledger_errors(folder):
            return [copy, *self._journal.copy(_log(copy))]

    def read(self) -> AbstractContextManager[Database]:
        """See `Ledger.read`."""
        return _Read(self, in_transaction=True)

    _snapshot = read

    def ask(self, statement: Statement) -> list[Any]:
        """See `Ledger.ask`: one statement of SQLite's sees one state of the file by itself."""
        with _Read(self, in_transaction=False) as db:
            return db.execute(*statement).fetchall()

    def enter(self, *, in_transaction: bool) -> Database:
        """Take the connection, for nobody else meanwhile, until `leave`. Raises LedgerError, Stopped."""
        if not acquire(self._lock, _WAIT_SECONDS, "the ledger"):
            raise busy()
        try:
            self.check_in_place()
            if in_transaction:
                self._begin("BEGIN")
        except BaseException:
            self._lock.release()
            raise
        return self._db

    def leave(self, *, is_whole: bool) -> None:
        """Give the connection back, what was begun in it at its end; `is_whole`: nothing has failed."""
        try:
            if is_whole and self._db.in_transaction:
                self._db.execute("COMMIT")
        finally:
            try:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            finally:
                self._lock.release()

    def told(self, error: BaseException) -> BaseException:
        """Return what is raised in place of an error of SQLite or the system."""
        if isinstance(error, sqlite3.Error):
            return sqlite_fault(error, self._path.name, self._path.parent)
        return file_fault(error, f"the ledger {self._path.name}") if isinstance(error, OSError) else error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not acquire(self._lock, _WAIT_SECONDS, "the ledger"):
            raise busy()
        try:
            with _as_ledger_errors(self._path):
                self.check_in_place()
                yield
        finally:
            self._lock.release()

    @contextmanager
    def _change(self, *, is_logged: bool = False) -> Iterator[Database]:
        level = "NORMAL" if is_logged else "FULL"
        if level != self._synchronous:
            self._db.execute(f"PRAGMA synchronous = {level}")
            self._synchronous = level
        with self._begun("BEGIN IMMEDIATE"):
            yield self._db

    @contextmanager
    def _begun(self, begin: str) -> Iterator[None]:
        self._begin(begin)
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _begin(self, begin: str) -> None:
        """Begin a transaction once no other process writes: at most for so long as one waits. Raises Stopped."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._db.execute(begin)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            check("the ledger")

    def _read_together(self, statements: Sequence[Statement]) -> list[list[Any]]:
        with self.read() as db:
            return [db.execute(*statement).fetchall() for statement in statements]

    def read_at_once(self, *statements: Statement) -> list[list[Any]] | None:
        """See `Ledger.read_at_once`: a file is read in a moment, unless another thread has the connection."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            with _as_ledger_errors(self._path):
                self.check_in_place()
                asked = statements, self._version(), self._journal.size()
                if asked == self._read_last[0] and not self._given_up:
                    return self._read_last[1]
                with self._begun("BEGIN"):
                    logged, version = self._db.execute(*self._logged).fetchone()
                    self._check_format(version)
                    if self._given_up or logged != self._journal.size():
                        return None
                    found = [self._db.execute(*statement).fetchall() for statement in statements]
                if asked[1] == self._version():
                    self._read_last = asked, found
                return found
        finally:
            self._lock.release()

    def _version(self) -> tuple[int, int]:
        """Return what changes with every change: of another connection, or of this one."""
        return self._changed_by_others(self._db), self._db.total_changes

    def _changed_by_others(self, db: Database) -> int:
        """See `Ledger`."""
        return int(db.execute("PRAGMA data_version").fetchone()[0])

    @property
    def _logged(self) -> Statement:
        return "SELECT log_bytes, (SELECT user_version FROM pragma_user_version) FROM ledger", ()

    def _set_logged(self, db: Database, size: int) -> None:
        db.execute("UPDATE ledger SET log_bytes = ?", (size,))

    def _set_format(self, db: Database) -> None:
        db.execute(f"PRAGMA user_version = {self.promise.format}")

    def _next(self, db: Database) -> LedgerCursor:
        return db.execute(
            "SELECT COALESCE(MAX(seq), -1) + 1, COALESCE(MAX(seq), -1) + 1,"
            " (SELECT body FROM record ORDER BY seq DESC LIMIT 1) FROM record"
        )

    def _insert(
        self, db: Database, number: int, record: Record, body: str, state: str | None, holder: str | None
    ) -> None:
        db.execute(
            "INSERT INTO record (seq, kind, state, holder, body) VALUES (?, ?, ?, ?, ?)",
            (number, type(record).__name__.lower(), state, holder, body),
        )

    def _page(self, db: Database, after: int, count: int) -> LedgerCursor:
        return db.execute(
            "SELECT seq, '', body FROM record WHERE seq > ? ORDER BY seq LIMIT ?", (after, count)
        )

    def _body_at(self, db: Database, place: int) -> str | None:
        row = db.execute("SELECT body FROM record WHERE seq = ?", (place,)).fetchone()
        return None if row is None else row[0]

    def _number(self, free: int, place: int) -> int:
        return place

    def is_alive(self, db: Database, holder: str) -> bool:
        """See `Ledger.is_alive`."""
        return is_alive(self._folder, holder)


class _Read:
    """The connection of a ledger while a block reads it: every look-up of a statement passes here."""

    __slots__ = ("_in_transaction", "_ledger")

    def __init__(self, ledger: SqliteLedger, *, in_transaction: bool) -> None:
        self._ledger, self._in_transaction = ledger, in_transaction

    def __enter__(self) -> Database:
        try:
            return self._ledger.enter(in_transaction=self._in_transaction)
        except (sqlite3.Error, OSError) as error:
            raise self._ledger.told(error) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._ledger.leave(is_whole=error is None)
        except (sqlite3.Error, OSError) as ending:
            raise self._ledger.told(ending) from ending
        if isinstance(error, (sqlite3.Error, OSError)):
            raise self._ledger.told(error) from error


def _log(path: Path) -> Path:
    return path.with_name(path.name + ".log")


def _holders(path: Path) -> Path:
    return path.with_name(path.name + ".holders")


def _create_log(path: Path, dataset: str, promise: Promise) -> None:
    """Make the log of a new ledger. The log is always first, so a ledger without one has lost it."""
    if path.exists() or sealed_path(_log(path), 0).exists():
        raise LedgerError(
            f"the ledger's log {_log(path).name} is missing",
            hint="restore it from a backup; without it nobody can tell what was spent",
        )
    create_journal(
        _log(path),
        record_text(
            Header(0, utc_now(), dataset, promise=promise, salt=secrets.token_hex(16), format=promise.format)
        ),
    )


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database, made for its owner alone.

    A file that is there is never opened by other means than SQLite's: closing any descriptor of it
    would drop the locks of every connection of this process (sqlite.org/howtocorrupt.html 2.2).
    """
    require_file(path)
    if path.exists():
        path.chmod(0o600)
    else:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    return sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)


def _prepare(database: sqlite3.Connection) -> None:
    """Set the durability settings and make the schema in an empty file, to be filled by replay."""
    (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
    _make_durable(database)
    (level,) = database.execute("PRAGMA synchronous").fetchone()
    if mode != "wal" or level != 2:
        raise LedgerError("the ledger's file system cannot make it durable", hint="put it on a local disk")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if 1 <= version <= FORMAT:
        return
    if version > FORMAT:
        raise newer()
    if database.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
        raise LedgerError("this file is no ledger", hint="name another file in the policy")
    database.execute("BEGIN IMMEDIATE")
    for statement in (*_SCHEMA, *creating(LATER, _WRITTEN)):
        database.execute(statement)
    database.execute("INSERT INTO ledger VALUES (1, ?, 0)", (secrets.token_bytes(32),))
    database.execute(f"PRAGMA user_version = {UNSAID.format}")  # what is written first raises it
    database.execute("COMMIT")


def _make_durable(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA fullfsync = ON")
    database.execute("PRAGMA checkpoint_fullfsync = ON")
    database.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_WAL}")


@contextmanager
def _as_ledger_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise sqlite_fault(error, path.name, path.parent) from error
    except OSError as error:
        raise file_fault(error, f"the ledger {path.name}") from error

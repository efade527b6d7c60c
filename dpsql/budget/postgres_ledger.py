"""The ledger on a Postgres server, shared by proxies that each keep a log of their own.

House rules:

1. Every change is one transaction that first takes a lock on the table `ledger`. The lock allows reads,
   and keeps out whoever writes to that table by hand; unlike a row lock it writes nothing itself, so a
   transaction that changes nothing costs no sync. A log is guarded by a lock on its file besides, since
   the server lets its own lock go when the connection breaks.
2. A record is known by its log, which has a random name, and its place there; its number is the
   ledger's own. So what two proxies logged never collides, and each puts back what it logged itself.
3. A holder lives as long as a session of it holds its advisory lock. A transaction that was cut off holds
   the table's lock until the server has decided it; nobody replays before that.
4. Nothing is made but by `create`. Only SELECT, INSERT and UPDATE on the tables are needed otherwise.

What is committed is on the server's disk. A fail-over to a replica that is not synchronous loses the last
commits; each proxy puts its own back from its log when it next looks, the stored answers are gone.

One connection to the ledger's server: its settings, its deadlines, and its errors in the ledger's words.

House rules:

1. No server keeps us waiting for ever: every wait has a deadline of its own here, whatever the server does, and ends
   with the statement that it is for (`Stopped`).
2. What fails is rolled back, or the connection is closed; it is made anew at its next use.
3. A commit counts when the server has said so. Anything else is unknown, and raises.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from ..errors import LedgerAway, LedgerError, LedgerMissing
from ..postgres_waits import BoundedConnection, break_off, is_lost
from ..waits import Stopped, acquire
from .entry import FORMAT, UNSAID, Header, Promise, Record, newer, record_text
from .journal import Journal, busy, create_journal, file_fault, open_alone, sealed_path
from .ledger import (
    LATER,
    Database,
    Ledger,
    LedgerCursor,
    Statement,
    Step,
    another_dataset,
    creating,
    require_promise,
    utc_now,
)

# --- one connection to the ledger's server ------------------------------------------------------------------


_DEADLINE_SECONDS = 30
"""The longest that one statement, or the wait for our turn, may take."""

_GRACE_SECONDS = 5
"""By so much the server's own deadline comes first."""

_LOCK_SECONDS = 10
_CLOSE_SECONDS = 1.0

_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": 10,
    "target_session_attrs": "read-write",
    "fallback_application_name": "dpsql ledger",
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": _DEADLINE_SECONDS * 1000,
}
"""What a URL may say otherwise."""

_SETTINGS = {
    "synchronous_commit": "on",
    "search_path": "pg_catalog, dpsql, pg_temp",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "statement_timeout": f"{_DEADLINE_SECONDS}s",
    "lock_timeout": f"{_LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{_DEADLINE_SECONDS}s",
    # A client whose machine has died holds its locks until the server notices.
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "jit": "off",
}

_SET = "SELECT " + ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items()
)


class _Connection(BoundedConnection):
    """A connection whose waits end. What runs on it is not cancelled: a commit under way may yet be heard of."""

    longest: ClassVar[float] = _DEADLINE_SECONDS + _GRACE_SECONDS


class _LedgerConnection:
    """A connection for one thread at a time, made when it is needed and made anew when it was lost.

    `greet` is called with each new connection before its first use.
    """

    def __init__(self, url: str, greet: Callable[[Database], None] | None = None) -> None:
        self._parameters: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(url)}
        self._greet = greet
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._is_closed = False

    def close(self) -> None:
        """Close for good; what waits on it for longer than a moment fails."""
        self._is_closed = True
        connection = self._connection
        if not self._lock.acquire(timeout=_CLOSE_SECONDS):
            if connection is not None:
                break_off(connection)
            self._lock.acquire()
        try:
            self._drop()
        finally:
            self._lock.release()

    @contextmanager
    def alone(self) -> Iterator[Database]:
        """Keep other threads out and give a sound connection, on which each statement stands for itself.

        What the server does wrong is raised as LedgerError. Raises Stopped.
        """
        if not acquire(self._lock, _DEADLINE_SECONDS, "the ledger"):
            raise busy()
        try:
            with _as_ledger_errors():
                self._make_ready()
                yield _Sender(self._open_connection())
        finally:
            self._lock.release()

    @contextmanager
    def together(self) -> Iterator[_Sender]:
        """Send statements without waiting: rows are there when they are fetched, or when the block has ended.

        Requires: inside `alone`.
        """
        connection = self._open_connection()
        block = _Outcome()
        try:
            with connection.pipeline(), block:
                yield _Sender(connection)
        except (psycopg.Error, Stopped) as error:
            block.failure = block.failure or error
        if block.failure is not None:
            self._clean_up()
            block.raise_failure()

    @contextmanager
    def transaction(
        self, begin: str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    ) -> Iterator[Database]:
        """Take one transaction's statements, as `together`; durable when the block has ended.

        Requires: inside `alone`.
        """
        with self.together() as db:
            db.execute(begin)
            yield db
            end = db.execute("COMMIT")
        if end.statusmessage != "COMMIT":
            raise psycopg.OperationalError("the transaction was not committed")

    def _open_connection(self) -> _Connection:
        assert self._connection is not None, "inside `alone`"
        return self._connection

    def _make_ready(self) -> None:
        if self._is_closed:
            raise LedgerError("the ledger was closed", hint="open it again")
        if self._connection is not None and is_lost(self._connection):
            self._drop()
        if self._connection is None:
            connection = _Connection.reach(**self._parameters, autocommit=True)
            try:
                connection.execute(_SET.encode())
                if self._greet is not None:
                    self._greet(_Sender(connection))
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def _clean_up(self) -> None:
        """Roll back what was begun, or close the connection where that does not work."""
        connection = self._open_connection()
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _Outcome:
    """Keeps what a block raises until what it has sent has been heard out."""

    failure: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.failure = error
        return True

    def raise_failure(self) -> None:
        """Raise what was kept, and keep it no longer: it holds on to the frames that it passed."""
        failure, self.failure = self.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure


class _Sender:
    """Sends statements over a connection; inside a pipeline they wait for the first that is fetched."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(_with_marks(sql), parameters, binary=True)


@cache
def _with_marks(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


_BUSY = {"55P03", "57014", "25P03", "40P01", "53300"}
_NO_SPACE = {"53100"}
_DAMAGED = {"XX001", "XX002"}
_UNREACHABLE = {None, "57P01", "57P02", "57P03", "57P05"}


@contextmanager
def _as_ledger_errors() -> Iterator[None]:
    """Raise what the server or the log's disk does wrong as LedgerError."""
    try:
        yield
    except psycopg.Error as error:
        raise _explained(error) from error
    except OSError as error:
        raise file_fault(error, "this machine's log of the ledger") from error


def _explained(error: psycopg.Error) -> LedgerError:
    """Return the error in constant words: which kind of failure it was, and nothing that the server said."""
    if error.sqlstate in _BUSY:
        return busy()
    if error.sqlstate == "42501":
        return LedgerError(
            "the ledger's role may not do this on its server",
            hint="to make the ledger it needs CREATE on the database; afterwards USAGE on the schema dpsql, and "
            "SELECT, INSERT and UPDATE on its tables; a ledger of an earlier version is brought up to this one by the "
            "role that made it, with dpsql budget rotate",
        )
    if error.sqlstate in _UNREACHABLE and isinstance(error, psycopg.OperationalError):
        return LedgerAway(
            "the ledger's server cannot be reached",
            hint="see that it runs, and that the role in the policy's `ledger` may log in; the password comes "
            "from the environment or a passfile",
        )
    if error.sqlstate is None and isinstance(error, psycopg.ProgrammingError):
        return LedgerError(
            "the policy's `ledger` is no URL that Postgres knows",
            hint="write postgresql://user@host/database, with libpq's parameters after a ?",
        )
    if error.sqlstate == "25006":
        return LedgerError(
            "the ledger's server takes no changes: it is a replica, or was made read-only",
            hint="name the primary server in the policy's `ledger`",
        )
    if error.sqlstate in _NO_SPACE:
        return LedgerAway(
            "there is no space left for the ledger on its server",
            hint="make room there and ask again; nothing of the ledger is lost, and what was charged stays spent",
        )
    if error.sqlstate in _DAMAGED:
        return LedgerError(
            "the ledger is damaged on its server",
            hint="restore it from a backup: what has been logged since is put back from each machine's log",
        )
    return LedgerError(
        f"the ledger cannot be read or written (SQLSTATE {error.sqlstate or 'unknown'})",
        hint="the log of the ledger's server says more",
    )


# --- the ledger on a Postgres server, shared by proxies that each keep a log of their own -------------------


_SCHEMA = (
    # One row: whose ledger it is, the epoch, the salt's secret.
    "CREATE TABLE dpsql.ledger (format int NOT NULL, dataset text NOT NULL, epoch bigint NOT NULL,"
    " secret bytea NOT NULL, one bool PRIMARY KEY DEFAULT true CHECK (one))",
    # How much of each log is in the ledger.
    "CREATE TABLE dpsql.log (id text PRIMARY KEY, bytes bigint NOT NULL)",
    # The logs' records, in their own words; only `state` and `holder` ever change.
    "CREATE TABLE dpsql.record (seq bigint PRIMARY KEY, log text NOT NULL, place bigint NOT NULL,"
    " kind text NOT NULL, state text, holder text, body text NOT NULL, UNIQUE (log, place))",
    "CREATE INDEX granted ON dpsql.record (seq) WHERE kind = 'grant'",
    # Running sums of the entries, as decimal text since they may outgrow 64 bits.
    "CREATE TABLE dpsql.spent (analyst text PRIMARY KEY, epsilon_nano text NOT NULL,"
    " delta_atto text NOT NULL, rho_atto text NOT NULL)",
    # Which entry draws, or drew, which measure.
    "CREATE TABLE dpsql.measure (epoch bigint NOT NULL, key bytea NOT NULL, entry bigint NOT NULL,"
    " scale text NOT NULL, PRIMARY KEY (epoch, key, entry))",
    "CREATE TABLE dpsql.draw (entry bigint PRIMARY KEY, measures bytea NOT NULL, scale text NOT NULL,"
    " payload bytea NOT NULL)",
)
_WRITTEN = {"of": "dpsql.", "bytes": "bytea", "rowless": ""}

_CREATION_LOCK = 0x6470_7371_6C00_0001
"""Taken while the tables are made, so that two who make them at once make them once."""


class PostgresLedger(Ledger):
    """A ledger on a server and this process's log of it.

    Two connections: one for changes, whose session is also the sign of life, and one for reads, so that
    a repeated question does not wait for somebody's charge.
    """

    longest_pause = 0.2
    _written = _WRITTEN

    def __init__(
        self,
        url: str,
        reader: _LedgerConnection,
        log: Path,
        log_id: str,
        dataset: str,
        step: Step,
        promise: Promise,
    ) -> None:
        """Requires: ledger and log are there. Use `open`."""
        super().__init__(log, "on its server", step, promise)
        self._log_id = log_id
        self._dataset = dataset
        self._key = secrets.randbits(63)
        self._session = -1
        self._reader = reader
        self._writer = _LedgerConnection(url, self._greet)

    @classmethod
    def open(
        cls, url: str, log: Path, dataset: str, create: bool, step: Step, promise: Promise = UNSAID
    ) -> PostgresLedger:
        """Open the ledger, check it against the log, and replay what it lacks.

        A log that is missing is begun. A ledger that is missing is made when `create` holds, and what the
        log has is spent in it. Raises LedgerError.
        """
        log = Path(os.path.realpath(log))
        with ExitStack() as undo, _as_ledger_errors():
            log_id = _known_log(log, dataset)
            reader = _LedgerConnection(url)
            undo.callback(reader.close)
            _find_or_make(reader, dataset, create, promise, has_log=log_id is not None)
            if log_id is None:
                log_id = _begin_log(log, dataset, promise)
            ledger = cls(url, reader, log, log_id, dataset, step, promise)
            undo.callback(ledger.close)
            ledger._open(dataset, promise)
            undo.pop_all()
        return ledger

    def tidy(self) -> None:
        """See `Ledger.tidy`; the server's own files are tidied by it."""
        with _as_ledger_errors():
            super().tidy()

    def back_up(self, folder: Path) -> list[Path]:
        """See `Ledger.back_up`. Raises LedgerError: the server has means of its own."""
        raise LedgerError(
            "a ledger on Postgres is backed up with its server",
            hint=f"pg_dump --schema=dpsql, and then a copy of {self._journal.path.name} of each machine",
        )

    @property
    def log_id(self) -> str:
        """See `Ledger.log_id`."""
        return self._log_id

    @property
    def holder(self) -> str:
        """See `Ledger.holder`: the number of an advisory lock."""
        return str(self._key)

    def close(self) -> None:
        """See `Ledger.close`."""
        self._writer.close()
        self._reader.close()
        self._journal.close()

    @contextmanager
    def read(self) -> Iterator[Database]:
        """See `Ledger.read`. Each statement sees what was committed when its turn came."""
        self.check_in_place()
        with self._reader.alone() as db:
            yield db

    def _read_together(self, statements: Sequence[Statement]) -> list[list[Any]]:
        self.check_in_place()
        with self._reader.alone():
            with self._reader.together() as db:
                asked = [db.execute(*statement) for statement in statements]
            return [rows.fetchall() for rows in asked]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.check_in_place()
        with self._writer.alone(), self._journal.held(_DEADLINE_SECONDS):
            yield

    @contextmanager
    def _change(self, *, is_logged: bool = False) -> Iterator[Database]:
        with self._writer.transaction() as db:
            db.execute("LOCK TABLE ledger IN SHARE ROW EXCLUSIVE MODE")
            asked = db.execute("SELECT dataset, pg_backend_pid() FROM ledger")
            yield db
            dataset, session = asked.fetchone() or (None, None)
            if dataset != self._dataset:
                raise another_dataset()
            if session != self._session:
                raise _pooled()

    @contextmanager
    def _snapshot(self) -> Iterator[Database]:
        self.check_in_place()
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._reader.alone(), self._reader.transaction(begin) as db:
            yield db

    def _greet(self, db: Database) -> None:
        """Take the sign of life, and look whether the server keeps what it commits."""
        db.execute("SELECT pg_advisory_lock_shared(?)", (self._key,))
        self._session = _check_server(db)

    @property
    def changes(self) -> Statement | None:
        """See `Ledger.changes`: which transactions of this server have ended, those of other databases among them."""
        return "SELECT CAST(pg_current_snapshot() AS text)", ()

    @property
    def _logged(self) -> Statement:
        return (
            "SELECT COALESCE((SELECT bytes FROM log WHERE id = ?), 0), COALESCE((SELECT format FROM ledger), 0)",
            (self._log_id,),
        )

    def _set_logged(self, db: Database, size: int) -> None:
        db.execute(
            "INSERT INTO log (id, bytes) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes",
            (self._log_id, size),
        )

    def _set_format(self, db: Database) -> None:
        db.execute("UPDATE ledger SET format = ?", (self.promise.format,))

    def _next(self, db: Database) -> LedgerCursor:
        return db.execute(
            "SELECT COALESCE(MAX(seq), -1) + 1,"
            " (SELECT COALESCE(MAX(place), -1) + 1 FROM record WHERE log = ?),"
            " (SELECT body FROM record WHERE log = ? ORDER BY place DESC LIMIT 1) FROM record",
            (self._log_id, self._log_id),
        )

    def _insert(
        self, db: Database, number: int, record: Record, body: str, state: str | None, holder: str | None
    ) -> None:
        db.execute(
            "INSERT INTO record (seq, log, place, kind, state, holder, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, self._log_id, record.seq, type(record).__name__.lower(), state, holder, body),
        )

    def _page(self, db: Database, after: int, count: int) -> LedgerCursor:
        return db.execute(
            "SELECT seq, log, body FROM record WHERE seq > ? ORDER BY seq LIMIT ?", (after, count)
        )

    def _body_at(self, db: Database, place: int) -> str | None:
        asked = "SELECT body FROM record WHERE log = ? AND place = ?"
        row = db.execute(asked, (self._log_id, place)).fetchone()
        return None if row is None else row[0]

    def _number(self, free: int, place: int) -> int:
        return free

    def is_alive(self, db: Database, holder: str) -> bool:
        """See `Ledger.is_alive`: a holder's lock can be had when nobody has it."""
        if holder == self.holder:
            return True
        (is_free,) = db.execute("SELECT pg_try_advisory_xact_lock(?)", (int(holder),)).fetchone()
        return not is_free


def _known_log(path: Path, dataset: str) -> str | None:
    """Return the name of the log that is there, or None. Raises LedgerError when it is not this dataset's."""
    if not path.exists():
        return None
    with closing(Journal(path)) as journal, journal.held(_DEADLINE_SECONDS):
        journal.mend()
        header = journal.first
    if header is None or not header.log:
        raise LedgerError(
            f"{path.name} is no log of a ledger on a server",
            hint="restore it, or move it away if it never was; a machine without a log begins one",
        )
    if header.dataset != dataset:
        raise another_dataset()
    return header.log


def _begin_log(path: Path, dataset: str, promise: Promise) -> str:
    """Make this machine's log, unless another process of it has done so just now; return its name."""
    with open_alone(path.parent):
        known = _known_log(path, dataset)
        if known is not None:
            return known
        if sealed_path(path, 0).exists():
            raise LedgerError(
                f"the ledger's log {path.name} is missing, and files that were sealed of it are there",
                hint="restore it from a backup; without it nobody can tell what was spent",
            )
        name = secrets.token_hex(16)
        salt = secrets.token_hex(16)
        header = Header(0, utc_now(), dataset, name, promise, salt, format=promise.format)
        create_journal(path, record_text(header))
        return name


def _find_or_make(
    connection: _LedgerConnection, dataset: str, create: bool, promise: Promise, *, has_log: bool
) -> None:
    """Raise LedgerError unless the server has the ledger of this dataset, or makes it.

    `has_log`: this machine has a log of it, so one that is not there was lost.
    """
    with connection.alone(), connection.transaction() as db:
        _check_server(db)
        if not _has_tables(db):
            if not create:
                raise (LedgerError if has_log else LedgerMissing)(
                    "there is no ledger in this database",
                    hint="a new dataset: dpsql budget create; a lost ledger: restore it, or create it where a "
                    "log of it is",
                )
            db.execute("SELECT pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
            if not _has_tables(db):
                _make_tables(db, dataset)
        found = db.execute("SELECT format, dataset FROM dpsql.ledger").fetchone()
        if found is None or found[0] < 1:
            raise LedgerError("this is no ledger", hint="name another database in the policy")
        if found[0] > FORMAT:
            raise newer()
        if found[1] != dataset:
            raise another_dataset()
        if (
            not has_log
        ):  # a log may know of a move that a ledger from a backup does not: `_verify` looks at both
            require_promise(db, promise)


def _has_tables(db: Database) -> bool:
    """Return whether the tables are there. Raises LedgerError when a crash of the server would empty one."""
    tables = dict(
        db.execute(
            "SELECT c.relname, c.relpersistence = 'p' FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE n.nspname = 'dpsql' AND c.relkind = 'r'"
        ).fetchall()
    )
    if not all(tables.values()):
        raise LedgerError(
            "a table of the ledger is not kept through a crash", hint="ALTER TABLE … SET LOGGED on its server"
        )
    return "ledger" in tables


def _make_tables(db: Database, dataset: str) -> None:
    if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'dpsql'").fetchone() is None:
        db.execute("CREATE SCHEMA dpsql")
    for statement in (*_SCHEMA, *creating(LATER, _WRITTEN)):
        db.execute(statement)
    db.execute(
        "INSERT INTO dpsql.ledger (format, dataset, epoch, secret) VALUES (?, ?, 1, ?)",
        (UNSAID.format, dataset, secrets.token_bytes(32)),
    )


def _check_server(db: Database) -> int:
    """Return the session's number. Raises LedgerError where a commit is not durable, or text not kept."""
    *settings, encoding, session = db.execute(
        "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
        " current_setting('synchronous_commit'), current_setting('server_encoding'), pg_backend_pid()"
    ).fetchone()
    if settings != ["on", "on", "on"]:
        raise LedgerError(
            "the ledger's server may lose what it has committed",
            hint="it must run with fsync = on and full_page_writes = on",
        )
    if encoding != "UTF8":
        raise LedgerError(
            "the ledger's database does not hold all names", hint="make it with ENCODING 'UTF8'"
        )
    return int(session)


def _pooled() -> LedgerError:
    return LedgerError(
        "the ledger's connection changes hands between transactions",
        hint="name the server itself in the policy's `ledger`, not a pooler in transaction mode",
    )

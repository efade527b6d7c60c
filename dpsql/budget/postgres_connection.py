"""One connection to the ledger's server: its settings, its deadlines, and its errors in the ledger's words.

House rules:

1. No server keeps us waiting for ever: every wait has a deadline of its own here, whatever the server does, and ends
   with the statement that it is for (`Stopped`).
2. What fails is rolled back, or the connection is closed; it is made anew at its next use.
3. A commit counts when the server has said so. Anything else is unknown, and raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from ..errors import LedgerAway, LedgerError
from ..postgres_waits import BoundedConnection, break_off, is_lost
from ..waits import Stopped, acquire
from .faults import busy, file_fault
from .ledger import Database

__all__ = ["DEADLINE_SECONDS", "LedgerConnection", "as_ledger_errors"]

DEADLINE_SECONDS = 30
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
    "tcp_user_timeout": DEADLINE_SECONDS * 1000,
}
"""What a URL may say otherwise."""

_SETTINGS = {
    "synchronous_commit": "on",
    "search_path": "pg_catalog, dpsql, pg_temp",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "statement_timeout": f"{DEADLINE_SECONDS}s",
    "lock_timeout": f"{_LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{DEADLINE_SECONDS}s",
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

    longest: ClassVar[float] = DEADLINE_SECONDS + _GRACE_SECONDS


class LedgerConnection:
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
        if not acquire(self._lock, DEADLINE_SECONDS, "the ledger"):
            raise busy()
        try:
            with as_ledger_errors():
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
def as_ledger_errors() -> Iterator[None]:
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

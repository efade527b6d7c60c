"""A Spark Connect server as a backend: queries over tables whose version is pinned, in sessions of dpsql's own.

House rules:

1. Spark has no transaction that only reads, and no role here that can only read: one query is sent, which
   `spark_guard` has looked at, and what else the server's rights allow is the owner's to mend (soundness.md 4.4, D04).
2. A snapshot is the version of the tables that was recorded: they are looked at when it begins, and after each result,
   before the last of its rows is given.
3. A session that a statement failed in, or was stopped in, is released: nothing of it stays on the server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure
from ..policy.live_schema import LiveSchema
from ..waits import acquire
from .backend import CHUNK_ROWS, Backend, Finding, OpenSnapshots, Snapshot, Stoppable, implements
from .spark_connection import SparkConnection, guarded, guarding
from .spark_deployment import verify
from .spark_guard import require_query
from .spark_tables import OpenTables, PinnedTables
from .spark_target import SparkTarget, target_of
from .spark_values import array_of, bound, chunks_of

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from ..policy.model import FileSources

__all__ = ["SparkBackend", "SparkSnapshot"]

_T = TypeVar("_T")

_MOST_SESSIONS = 16
_MOST_KEPT = 4
_WAIT_SECONDS = 30


@implements(Snapshot)
class SparkSnapshot:
    """Tables at one version, read in one session; used by one thread (but for `cancel`)."""

    def __init__(self, connection: SparkConnection) -> None:
        self._connection = connection
        self._calls = Stoppable(connection.interrupt)
        self._tables: OpenTables | None = None
        self._stream: Iterator[list[tuple[Any, ...]]] | None = None
        self._runs = 0
        self._has_failed = False

    def begin(self, tables: PinnedTables) -> None:
        """Open the tables. Raises EngineFailure and PolicyError."""
        self._tables = self._call("schema", lambda: tables.open(self._connection.session))

    def schema(self) -> LiveSchema:
        """Return the schema of the version that is read."""
        return self._opened.schema

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = CHUNK_ROWS
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run one query and yield its rows in chunks of `size`; nothing runs before the first chunk is asked for.

        The parameters are :p1, :p2, …. Rows are streamed from one execution. Numbers without decimals come as `int`,
        others exactly as `Decimal`; what is no date to Python comes as text. Only one result is read at a time.
        Raises EngineFailure; with SQLSTATE 57014 after `cancel`.
        """
        self._runs += 1
        return self._chunks(sql, parameters, self._runs, size)

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """Return nothing: the catalog of Spark enforces nothing."""
        return []

    def columns(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Run one query and return its columns as arrays, each with where it is NULL (None: nowhere).

        For integers, floats, booleans, text, dates and timestamps; wider numbers come as doubles, so print a CAST.
        Raises EngineFailure, as `run` does.
        """
        self._runs += 1
        self._give_up()
        return self._call("run", lambda: self._arrays(sql))

    def cancel(self) -> None:
        """Stop what runs, from any thread; this snapshot answers nothing more."""
        self._calls.cancel()

    def close(self) -> bool:
        """End what is still read; say whether the session can be used again."""
        self._calls.close()
        self._give_up()
        return not (self._has_failed or self._calls.is_cancelled)

    # --- one result ---------------------------------------------------------------------------------------

    @property
    def _opened(self) -> OpenTables:
        assert self._tables is not None, "the snapshot has begun"
        return self._tables

    def _chunks(
        self, sql: str, parameters: Sequence[object], turn: int, size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        require_query(sql)
        self._give_up()
        arguments = guarded("run", lambda: bound(parameters))
        self._stream = rows = chunks_of(self._connection.stream(sql, arguments), size)
        chunk = self._call("run", lambda: next(rows, None))
        while True:
            following = None if chunk is None else self._call("fetch", lambda: next(rows, None))
            if following is None:
                self._call("tables", self._check)
            if chunk is not None:
                yield chunk
            if following is None:
                return
            if turn != self._runs:
                raise RuntimeError("this result was given up when the next statement began")
            chunk = following

    def _arrays(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        require_query(sql)
        batches = list(self._connection.stream(sql, {}))
        if not batches:
            raise EngineFailure("run: an answer without columns")
        kinds = batches[0].schema.types
        found = [array_of([batch.column(i) for batch in batches], kind) for i, kind in enumerate(kinds)]
        self._check()
        return found

    def _check(self) -> None:
        self._opened.check(self._connection.session)

    def _give_up(self) -> None:
        """Stop reading an earlier result: what still runs for it has to end, and the session with it."""
        stream, self._stream = self._stream, None
        if stream is not None and self._connection.is_running:
            self._connection.interrupt()
            self._has_failed = True

    def _call(self, stage: str, action: Callable[[], _T]) -> _T:
        try:
            return self._calls.call(lambda: guarded(stage, action))
        except BaseException:
            self._has_failed = True
            raise


@implements(Backend)
class SparkBackend:
    """A Spark Connect server, reached in a session for each snapshot; safe to use from several threads."""

    dialect = "spark"

    def __init__(self, target: SparkTarget, tables: PinnedTables) -> None:
        """Point at a server; nothing is opened before the first snapshot."""
        self._target, self._tables = target, tables
        self._idle: list[SparkConnection] = []
        self._snapshots = OpenSnapshots()
        self._users = 0
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(_MOST_SESSIONS)

    @classmethod
    def of(
        cls,
        url: str,
        tables: Collection[str] | None = None,
        files: FileSources | None = None,
        *,
        is_recorded: bool = True,
    ) -> SparkBackend:
        """Return the backend of a URL. `tables`: those that are declared; None: all. `files`: a policy's, as they were
        recorded, or, not `is_recorded`, as they are now; None: the catalog's tables as they are.

        Raises PolicyError: it is no URL of a server, or holds a secret.
        """
        return cls(target_of(url), PinnedTables(files, tables, is_recorded=is_recorded))

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[SparkSnapshot]:
        """Open the tables in a session for the time of a `with` block; `owner`: whose it is, for `cancel`.

        Raises PolicyError for a server that we cannot be exact on, and EngineFailure.
        """
        with self._leased() as lease:
            snapshot = SparkSnapshot(lease.connection)
            self._snapshots.add(snapshot, owner)
            try:
                snapshot.begin(self._tables)
                yield snapshot
            finally:
                self._snapshots.remove(snapshot)
                lease.is_clean = snapshot.close()

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """Open a session of Spark's own client, with our settings, for an owner's command; nothing of it is kept.

        Raises PolicyError, and EngineFailure in place of what Spark raises.
        """
        connection = SparkConnection(self._target, seconds=None)
        try:
            with guarding("session"):
                yield connection.session
        finally:
            connection.close()

    def cancel(self, owner: object = None) -> None:
        """Stop the running statements of an owner, or all of them, from any thread."""
        self._snapshots.cancel(owner)

    def close_idle(self) -> bool:
        """Release all sessions if no snapshot is open; say whether they are released."""
        with self._lock:
            if self._users:
                return False
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        return True

    def findings(self) -> list[Finding]:
        """Return what is wrong around the server, for the owner. Raises EngineFailure, PolicyError."""
        with self._leased() as lease:
            return guarded("check", lambda: verify(lease.connection, self._target))

    @contextmanager
    def _leased(self) -> Iterator[_Lease]:
        """Give a session for one use: a kept one whose settings still hold, or a new one."""
        with self._lock:
            self._users += 1
        try:
            if not acquire(self._turns, _WAIT_SECONDS, "a session of Spark's"):
                raise EngineFailure(f"busy: all {_MOST_SESSIONS} sessions are in use")
            try:
                lease = _Lease(self._kept() or SparkConnection(self._target))
                try:
                    yield lease
                finally:
                    self._returned(lease)
            finally:
                self._turns.release()
        finally:
            with self._lock:
                self._users -= 1

    def _kept(self) -> SparkConnection | None:
        """Return a session from before, if there is one that the server still has: it forgets them, and restarts."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return None
            try:
                connection.check()
            except EngineFailure:
                connection.close()
            except BaseException:
                connection.close()
                raise
            else:
                return connection

    def _returned(self, lease: _Lease) -> None:
        with self._lock:
            if lease.is_clean and len(self._idle) < _MOST_KEPT:
                self._idle.append(lease.connection)
                return
        lease.connection.close()


@dataclass(slots=True)
class _Lease:
    """A session in use; `is_clean`: nothing failed in it, so that it can be used again."""

    connection: SparkConnection
    is_clean: bool = False

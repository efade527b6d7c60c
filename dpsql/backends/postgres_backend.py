"""A Postgres database as a backend: read-only, one REPEATABLE READ transaction a statement.

House rules:

1. Nothing of the engine's own words leaves this package: an engine error becomes an `EngineFailure` whose
   detail is the error's class and SQLSTATE. Its text may quote a value (law L6), so it reaches no log either.
2. The failure is raised after the `except` block has ended, so that no traceback holds the engine's error.
3. Only a single SELECT is run, in a READ ONLY transaction of a role that can only read: each of the three
   holds if the others fail (soundness.md 4.4, D01 and D02).
4. What a plan relies on is locked before the snapshot is taken, and looked at within it (law L9).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import capabilities, sql
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import tuple_row

from ..errors import EngineFailure, PolicyError
from ..policy.live_schema import LiveSchema
from ..postgres_waits import cancel, hang_up, wait_bounded
from ..regex import regex
from ..waits import Stop, Stopped, acquire, check, is_told, until
from .backend import CHUNK_ROWS, Backend, Finding, OpenSnapshots, Snapshot, implements, unknown_url
from .postgres_connection import (
    LOCK_SECONDS,
    Connection,
    EngineConnection,
    check_connection,
    connections,
    guarded,
    set_locally,
    target_of,
)
from .postgres_schema import (
    FoundTable,
    SchemaSnapshot,
    find_tables,
    path_of,
    read_catalog,
    read_state,
    verify,
)

# --- values on their way to Postgres and back: exact in both directions, and none that Python cannot hold ---


_NUMERIC = psycopg.adapters.types["numeric"].oid
_DATE = psycopg.adapters.types["date"].oid
_MOMENTS = (psycopg.adapters.types["timestamp"].oid, psycopg.adapters.types["timestamptz"].oid)
_FINITE_SIGNS = (0x00, 0x40)
_DAY_ZERO = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1)
_DAYS_BEFORE = 10957  # from 1970-01-01 to 2000-01-01
_DAY = 86_400_000_000
_DAY_ENDS = (-(2**31), 2**31 - 1)
_MOMENT_ENDS = (-(2**63), 2**63 - 1)


def _sendable(value: object) -> object:
    """Return a parameter as text, or a list of texts, from which the statement's own CAST reads it exactly.

    A text that Postgres cannot hold equals nothing there and is sent as NULL. Raises EngineFailure for a
    value of another type than str, bool, int, float, Decimal, date, datetime, None, or a list of these.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_text(one) for one in value]
    return _text(value)


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        is_text = "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
        return value if is_text else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal | date):
        return str(value)
    raise EngineFailure(f"refused: a parameter of the type {type(value).__name__}")


# --- rows ----------------------------------------------------------------------------------------------


class _ExactNumber(Loader):
    """NUMERIC: an int where it is shown without decimals, else a Decimal."""

    format = Format.BINARY

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        decimals = psycopg.adapters.get_loader(_NUMERIC, Format.BINARY)
        assert decimals is not None
        self._decimal = decimals(oid, context).load

    def load(self, data: Buffer) -> int | Decimal:
        number: Decimal = self._decimal(data)
        # Two bytes each: the number of digits, the weight of the first, the sign, the decimals shown.
        return int(number) if data[6:8] == b"\0\0" and data[4] in _FINITE_SIGNS else number


class _Day(Loader):
    """A date; text where Python has none."""

    format = Format.BINARY

    def load(self, data: Buffer) -> date | str:
        days = int.from_bytes(data, "big", signed=True)
        try:
            return _DAY_ZERO + timedelta(days)
        except OverflowError:
            if days in _DAY_ENDS:
                return "infinity" if days > 0 else "-infinity"
            return str(np.datetime64(days + _DAYS_BEFORE, "D"))


class _Moment(Loader):
    """A timestamp, in UTC; text where Python has none."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime | str:
        microseconds = int.from_bytes(data, "big", signed=True)
        try:
            return _EPOCH + timedelta(microseconds=microseconds)
        except OverflowError:
            if microseconds in _MOMENT_ENDS:
                return "infinity" if microseconds > 0 else "-infinity"
            return str(np.datetime64(microseconds + _DAYS_BEFORE * _DAY, "us")).replace("T", " ")


def _read_exactly(cursor: psycopg.Cursor[Any]) -> None:
    """Have a cursor's binary rows hold ints and Decimals, dates, and text for what is no date to Python."""
    cursor.adapters.register_loader(_NUMERIC, _ExactNumber)
    cursor.adapters.register_loader(_DATE, _Day)
    for oid in _MOMENTS:
        cursor.adapters.register_loader(oid, _Moment)


# --- arrays --------------------------------------------------------------------------------------------


class _Whole(Loader):
    """A date or timestamp as the number that the engine keeps: days or microseconds since 2000."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int.from_bytes(data, "big", signed=True)


def _read_as_arrays(cursor: psycopg.Cursor[Any]) -> None:
    """Have a cursor's binary rows hold what `_array_of` takes."""
    for oid in (_DATE, *_MOMENTS):
        cursor.adapters.register_loader(oid, _Whole)


_DTYPES: dict[int, Any] = {
    psycopg.adapters.types[name].oid: dtype
    for name, dtype in {
        "int2": np.int64, "int4": np.int64, "int8": np.int64, "bool": np.bool_,
        "float4": np.float64, "float8": np.float64, "numeric": np.float64,
    }.items()
}  # fmt: skip


def _array_of(oid: int, values: Sequence[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Return a column as an array, and where it is NULL (None: nowhere).

    A date or timestamp that is infinite, or that microseconds cannot count, is NULL.
    """
    nulls = np.fromiter((value is None for value in values), np.bool_, len(values))
    if oid == _DATE or oid in _MOMENTS:
        return _moments(oid, values, nulls)
    if oid not in _DTYPES:
        found = np.empty(len(values), dtype=object)
        found[:] = values
    else:
        dtype = _DTYPES[oid]
        found = np.array([0 if value is None else value for value in values], dtype=dtype)
    return found, nulls if nulls.any() else None


def _moments(
    oid: int, values: Sequence[Any], nulls: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    unit = _DAY if oid == _DATE else 1
    counts = np.array([0 if value is None else value for value in values], dtype=np.int64)
    most = (2**63 - 1) // unit - (_DAYS_BEFORE * _DAY) // unit
    nulls = nulls | (counts > most) | (counts < -most)
    counts[nulls] = 0
    found = (counts * unit + _DAYS_BEFORE * _DAY).astype("datetime64[us]")
    return found, nulls if nulls.any() else None


# --- a Postgres database as a backend: read-only, one REPEATABLE READ transaction a statement ---------------


_T = TypeVar("_T")

_SELECT = regex(r"[ \t\r\n(]*(SELECT|WITH|VALUES)\b", re.IGNORECASE | re.ASCII)
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_MARK = "dpsql_begun"
# No such table, no right to it, something else than a table: it was another one when it was found.
_GONE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.WrongObjectType,
)


@implements(Snapshot)
class PostgresSnapshot:
    """One read-only transaction; made by `PostgresBackend.snapshot`, used by one thread (but for `cancel`)."""

    def __init__(self, connection: Connection, *, is_ours: bool) -> None:
        """`is_ours`: the connection has our settings, and keeps a prepared statement for us."""
        self._connection = connection
        self._is_ours = is_ours
        self._stop = Stop()
        self._stream: Generator[tuple[Any, ...], None, None] | None = None
        self._runs = 0
        self._catalog: SchemaSnapshot | None = None

    def begin(self, known: SchemaSnapshot | None, names: Collection[str] | None) -> SchemaSnapshot:
        """Begin: lock the tables, take the snapshot, and return the catalog as the snapshot has it.

        `known`: what an earlier snapshot found, which is returned if it still holds. A table that is locked
        keeps its columns and constraints until the transaction ends. Raises EngineFailure.
        """
        for catalog in (known, None, None):
            tables = (
                catalog.tables if catalog is not None else self._call("begin", partial(self._find, names))
            )
            if not self._call("begin", partial(self._lock, tables)):
                continue
            if catalog is None:
                catalog = self._call(
                    "schema", partial(read_catalog, self._query, tables, is_all=names is None)
                )
            elif self._call("schema", partial(read_state, self._query, catalog.state_query)) != catalog.state:
                self._call("begin", partial(self._execute, "ROLLBACK"))
                continue
            self._catalog = catalog
            return catalog
        raise EngineFailure("begin: the tables change while they are being locked")

    def schema(self) -> LiveSchema:
        """Return the schema as this transaction sees it."""
        assert self._catalog is not None, "the snapshot has begun"
        return self._catalog.schema

    def run(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT and yield its rows in chunks of `size`; nothing runs before the first chunk is asked for.

        The parameters $1, $2, … travel as text: the statement casts each to its type, `CAST($1 AS bigint[])`
        for a list. Rows are streamed from one execution, since a cursor of the server's would not be planned
        in parallel. Numbers without decimals come as `int`, others exactly as `Decimal`. What is no date
        to Python comes as text: print a CAST where that matters. Only one result is read at a time.
        Raises EngineFailure; with SQLSTATE 57014 after `cancel`.
        """
        self._runs += 1
        return self._chunks(sql, [_sendable(value) for value in parameters], self._runs, size)

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Snapshot`."""
        self._runs += 1
        self._give_up()
        return self._call("schema", partial(self._query, sql, ()))

    def columns(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Run one SELECT and return its columns as arrays, each with where it is NULL (None: nowhere).

        For integers, floats, booleans, text, dates and timestamps; an infinite date is NULL. Wider numbers
        come as doubles unasked, so print a CAST. What the array holds at a NULL means nothing. Raises
        EngineFailure, as `run` does.
        """
        self._runs += 1
        return self._call("run", partial(self._arrays, sql))

    def findings(self, names: Collection[str] | None) -> list[Finding]:
        """Begin, and return what is wrong with the role and the server. Raises EngineFailure."""
        self._call("begin", lambda: self._execute("; ".join(self._opening())))
        host = self._connection.info.host
        is_near = host.startswith("/") or host in ("", "localhost", "127.0.0.1", "::1")
        is_private = is_near or self._connection.pgconn.ssl_in_use
        return self._call("check", lambda: verify(self._query, names, is_private=is_private))

    def cancel(self) -> None:
        """Stop what runs, from any thread; this snapshot answers nothing more. Whoever waits for it looks often."""
        self._stop.set()

    def close(self) -> None:
        """End the transaction. A connection of ours that is not clean after that is closed."""
        with until(self._stop), suppress(psycopg.Error, Stopped):
            if self._is_ours and is_told():
                self._leave()  # A cancel that arrives late would stop the next statement on it.
            if self._stream is not None:
                self._stream.close()
            if not self._connection.closed:
                self._execute("ROLLBACK")
        if self._is_ours and self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._connection.close()

    def _leave(self) -> None:
        """Have the server stop what it may still be sending, and close the connection."""
        if self._connection.info.transaction_status == TransactionStatus.ACTIVE:
            cancel(self._connection)
        hang_up(self._connection)

    # --- one result ---------------------------------------------------------------------------------------

    def _chunks(
        self, sql: str, parameters: list[object], turn: int, size: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        _require_select(sql)
        rows = self._call("run", lambda: self._started(sql, parameters, size))
        for stage in _stages():
            if turn != self._runs:
                raise RuntimeError("this result was given up when the next statement began")
            chunk = self._call(stage, lambda: list(islice(rows, size)))
            if not chunk:
                return
            yield chunk

    def _started(
        self, sql: str, parameters: list[object], size: int
    ) -> Generator[tuple[Any, ...], None, None]:
        self._give_up()
        cursor = self._cursor()
        _read_exactly(cursor)
        at_once = size if capabilities.has_stream_chunked() else 1
        rows = cursor.stream(sql.encode(), parameters, binary=True, size=at_once)
        self._stream = rows  # type: ignore[assignment]  # a generator, though declared as an iterator
        return self._stream  # type: ignore[return-value]

    def _arrays(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        _require_select(sql)
        self._give_up()
        cursor = self._cursor()
        _read_as_arrays(cursor)
        cursor.execute(sql.encode(), binary=True, prepare=False)
        oids = [column.type_code for column in cursor.description or ()]
        rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(oids)
        return [_array_of(oid, values) for oid, values in zip(oids, columns, strict=True)]

    def _give_up(self) -> None:
        """Stop reading an earlier result, which fails the transaction: go back to where it began."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            if self._connection.info.transaction_status == TransactionStatus.INERROR:
                self._execute(f"ROLLBACK TO SAVEPOINT {_MARK}")

    # --- the transaction ------------------------------------------------------------------------------------

    def _find(self, names: Collection[str] | None) -> tuple[FoundTable, ...]:
        self._execute("; ".join(self._opening()))
        tables = find_tables(self._query, names)
        self._execute("ROLLBACK")
        return tables

    def _lock(self, tables: Sequence[FoundTable]) -> bool:
        """Begin with the tables locked. The first query after the locks takes the snapshot."""
        statements = self._opening()
        if locked := [sql.Identifier(*table.path).as_string(None) for table in tables if table.is_lockable]:
            statements.append(f"LOCK TABLE {', '.join(locked)} IN ACCESS SHARE MODE")
        statements.append(f"SAVEPOINT {_MARK}")
        try:
            self._execute("; ".join(statements))
        except _GONE:
            self._execute("ROLLBACK")
            return False
        return True

    def _opening(self) -> list[str]:
        return [_BEGIN] if self._is_ours else [_BEGIN, set_locally()]

    def _execute(self, statements: str) -> None:
        self._cursor().execute(statements.encode(), prepare=False)

    def _query(self, text: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._cursor().execute(text.encode(), parameters, prepare=self._is_ours).fetchall()

    def _cursor(self) -> psycopg.RawCursor[tuple[Any, ...]]:
        return psycopg.RawCursor(self._connection, row_factory=tuple_row)

    def _call(self, stage: str, action: Callable[[], _T]) -> _T:
        """Return what the action returns; once the statement has to end, all that it raises or returns is Stopped."""
        with until(self._stop):
            check(stage)
            try:
                result = guarded(stage, action)
            except EngineFailure as error:
                failure = error
            else:
                check(stage)
                return result
            check(stage)
        raise failure


@implements(Backend)
class PostgresBackend:
    """A Postgres database, reached over a pool of connections; safe to use from several threads."""

    dialect = "postgres"

    def __init__(self, url: str, tables: Collection[str] | None = None) -> None:
        """Point at a database; nothing is opened before the first snapshot.

        `tables`: the names that the policy declares: a snapshot locks these tables and its schema shows no
        other. None: all that the role may read, to look at a database that has no policy yet. Raises
        PolicyError for a URL that is none, or that holds a password.
        """
        self._target = target_of(url)
        self._names = None if tables is None else frozenset(tables)
        self._given: Connection | None = None
        self._connections = connections(self._target)
        self._known: SchemaSnapshot | None = None
        self._snapshots = OpenSnapshots()
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    @classmethod
    def of(cls, url: str, tables: Collection[str] | None) -> PostgresBackend:
        """Return the backend of a URL. Raises PolicyError: it is none of a server."""
        if "://" not in url:
            raise unknown_url()
        return cls(url, tables)

    @classmethod
    def over(cls, connection: Connection, tables: Collection[str] | None = None) -> PostgresBackend:
        """Wrap a connection that the caller owns: for tests and for embedding.

        It must be idle when a snapshot opens, and is left as it was: our settings last for the transaction. It is
        closed where a statement has to end and the server does not answer.
        Its role is not looked at. Raises PolicyError for a closed connection, or a server that we cannot
        be exact on.
        """
        if connection.closed:
            raise PolicyError("the Postgres connection is closed; open it before handing it in")
        check_connection(connection)
        backend = cls("postgresql://", tables)
        backend._given = connection
        return backend

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[PostgresSnapshot]:
        """Open one read-only transaction for the time of a `with` block, over locked tables.

        `owner`: whose it is, for `cancel`.

        Raises PolicyError for a server that we cannot be exact on, and EngineFailure.
        """
        with self._connection() as connection:
            snapshot = PostgresSnapshot(connection, is_ours=self._given is None)
            self._snapshots.add(snapshot, owner)
            with self._lock:
                known = self._known
            try:
                found = snapshot.begin(known, self._names)
                self._known = found if self._is_complete(found) else None
                yield snapshot
            finally:
                self._snapshots.remove(snapshot)
                snapshot.close()

    def cancel(self, owner: object = None) -> None:
        """Stop the running statements of an owner, or all of them, from any thread."""
        self._snapshots.cancel(owner)

    def close_idle(self) -> bool:
        """Close all connections if no snapshot is open; say whether they are closed."""
        return self._given is None and self._connections.close()

    def findings(self) -> list[Finding]:
        """Return what is wrong with the role and the server, for the owner. Raises EngineFailure."""
        with self._connection() as connection:
            snapshot = PostgresSnapshot(connection, is_ours=self._given is None)
            try:
                return snapshot.findings(self._names)
            finally:
                snapshot.close()

    def _is_complete(self, catalog: SchemaSnapshot) -> bool:
        """Say whether a catalog may be used again: a table that is missing may be there the next time."""
        return self._names is not None and len({path_of(name) for name in self._names}) == len(catalog.tables)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Give a connection for one use; it is idle, and commits each statement by itself."""
        if self._given is not None:
            with self._borrowed(self._given) as connection:
                yield connection
            return
        with self._connections.one() as connection:
            yield connection

    @contextmanager
    def _borrowed(self, connection: Connection) -> Iterator[Connection]:
        if not acquire(self._turn, LOCK_SECONDS, "the connection"):
            raise EngineFailure("busy: the connection serves another statement")
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise EngineFailure("busy: the connection is closed, or inside a transaction of its owner")
            commits = connection.autocommit
            guarded("begin", lambda: connection.set_autocommit(True))
            try:
                with _bounded(connection):
                    yield connection
            finally:
                with suppress(psycopg.Error):
                    connection.set_autocommit(commits)
        finally:
            self._turn.release()


@contextmanager
def _bounded(connection: Connection) -> Iterator[None]:
    """Have an owner's connection wait as ours do within the block."""

    def wait(generator: Generator[Any, Any, _T], *args: Any, **options: Any) -> _T:
        bounded = wait_bounded(connection, generator, EngineConnection.longest, cancels=True)
        return type(connection).wait(connection, bounded, *args, **options)

    connection.wait = wait  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del connection.wait


def _require_select(sql: str) -> None:
    """Refuse what is not a SELECT by its first word. A second statement, the protocol does not take."""
    if not _SELECT.match(sql):
        raise EngineFailure("refused: not a single SELECT")


def _stages() -> Iterator[str]:
    yield "run"
    while True:
        yield "fetch"

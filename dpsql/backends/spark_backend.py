"""A Spark Connect server as a backend: queries over tables whose version is pinned, in sessions of dpsql's own.

House rules:

1. Spark has no transaction that only reads, and no role here that can only read: one query is sent, which
   `require_query` has looked at, what else the server's rights allow is the owner's to mend (soundness.md 4.4, D04).
2. A snapshot is the version of the tables that was recorded: they are looked at before it begins, and those that a
   statement reads after its result, before the last of its rows is given.
3. A session that a statement failed in, or was stopped in, is released: nothing of it stays on the server.

House rules, values on their way to Spark and back:

1. What travels is data, never a part of the statement. Spark itself writes an argument into the statement, as a
   literal that settings may read otherwise (4.3: `escapedStringLiterals`); in base64 there is nothing to read.
2. What is read back (`SparkDialect.parameter`, `SparkDialect.listed`) is exactly what was given: what is not of the
   type that it is cast to is an error, never a NULL.

House rule, what an owner's Spark has to be like before it is served: what cannot be seen is said to be unseen.
Nothing of it protects an answer: it keeps a mistake elsewhere from becoming a write, and people other than analysts
from the rows (soundness.md 4.4 and 6). What would make answers wrong, another version or a setting that does not
hold, is refused when a session is opened.
"""

from __future__ import annotations

import datetime
import json
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import EngineFailure
from ..policy.live_schema import LiveSchema
from .backend import (
    CHUNK_ROWS,
    Backend,
    Finding,
    OpenSnapshots,
    Pool,
    Severity,
    Snapshot,
    Stoppable,
    implements,
)
from .spark_connection import SparkConnection, SparkTarget, guarded, guarding, require_query, target_of
from .spark_tables import OpenTables, PinnedTables

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from ..policy.model import FileSources

# --- parameters of a statement as Spark takes them ----------------------------------------------------------


def bound(parameters: Sequence[object]) -> dict[str, object]:
    """Return positional parameters, the first of which the statement calls :p1, as the arguments of `session.sql`."""
    return {f"p{number}": _carried(value) for number, value in enumerate(parameters, 1)}


def _carried(value: object) -> object:
    """Return a value as it travels: a list as a JSON array of texts and nulls."""
    if isinstance(value, list | tuple):
        return _encoded(json.dumps([None if one is None else _text(one) for one in value]))
    return _encoded(_text(value)) if isinstance(value, str | datetime.date) else value


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _text(value: object) -> str:
    """Return a value as the text that Spark casts back to the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)


# --- Arrow's columns as Spark sends them, as exact Python values and as arrays ------------------------------


_DAY = 86_400_000_000
_MOST_DAYS = (2**63 - 1) // _DAY


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Return a batch's rows: numbers without decimals as `int`, others exactly as `Decimal`; what is no date to Python
    as text."""
    if not batch.num_columns:
        return iter(() for _ in range(batch.num_rows))
    return zip(*map(_values, batch.columns), strict=True)


def chunks_of(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of batches in chunks of `size`, the last one shorter; one batch is in memory at a time."""
    rows = chain.from_iterable(map(rows_of, batches))
    chunk: list[tuple[Any, ...]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def array_of(
    columns: Sequence[pa.Array], kind: pa.DataType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Return one column of all batches as an array, and where it is NULL (None: nowhere).

    Integers come with 64 bits, wider numbers as doubles; dates and timestamps in microseconds, NULL where those do not
    count so far. What the array holds at a NULL means nothing.
    """
    column = pa.chunked_array(columns, kind).combine_chunks()
    nulls = np.asarray(column.is_null(), dtype=np.bool_)
    if pa.types.is_date32(kind):
        return _days(column, nulls)
    if pa.types.is_timestamp(kind):
        found = _filled(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), 0).astype("datetime64[us]")
    elif pa.types.is_integer(kind):
        found = _filled(column.cast(pa.int64()), 0)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        found = _filled(column.cast(pa.float64()), 0.0)
    elif pa.types.is_boolean(kind):
        found = _filled(column, False)
    else:
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_pylist()
    return found, nulls if nulls.any() else None


def _filled(column: pa.Array, empty: object) -> npt.NDArray[Any]:
    filled: npt.NDArray[Any] = column.fill_null(empty).to_numpy(zero_copy_only=False)
    return filled


def _days(
    column: pa.Array, nulls: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    days = _filled(column.cast(pa.int32()), 0).astype(np.int64)
    nulls = nulls | (abs(days) > _MOST_DAYS)
    days[nulls] = 0
    return (days * _DAY).astype("datetime64[us]"), nulls if nulls.any() else None


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return _whole(column)
    if pa.types.is_date32(kind):
        return _moments(column, pa.int32(), "D")
    if pa.types.is_timestamp(kind):
        shown = column.cast(pa.timestamp("us", kind.tz))
        return _moments(shown.cast(pa.timestamp("us")), pa.int64(), "us")
    found: list[Any] = column.to_pylist()
    return found


def _whole(column: pa.Array) -> list[Any]:
    """Return decimals without a scale as integers, at once where they all have 64 bits."""
    try:
        found: list[Any] = column.cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid:
        found = [None if value is None else int(value) for value in column.to_pylist()]
    return found


def _moments(column: pa.Array, number: pa.DataType, unit: str) -> list[Any]:
    """Return dates or timestamps; text where Python has none."""
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        counted = zip(column, column.cast(number).to_pylist(), strict=True)
        found = [_moment(one, count, unit) for one, count in counted]
    return found


def _moment(one: pa.Scalar, count: int | None, unit: str) -> Any:
    try:
        return one.as_py()
    except (ValueError, OverflowError):
        return str(np.array(count, dtype=f"datetime64[{unit}]")).replace("T", " ")


# --- what an owner's Spark has to be like before it is served, as far as a client can see it ----------------


_ADDRESS = "spark.connect.grpc.binding.address"
_NAMES = (
    _ADDRESS,
    "spark.eventLog.enabled",
    "spark.master",
    "spark.network.crypto.enabled",
    "spark.scheduler.mode",
    "spark.sql.extensions",
    "spark.ui.enabled",
)
_KNOWN_EXTENSIONS = frozenset({
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
})  # fmt: skip
_SHOWN = "statements, with what analysts wrote in them, and exact numbers of rows"
_UNSEEN = (
    "Spark tells nobody what its own credentials may do to the storage: give the server such as read the tables, and "
    "do nothing else; every client of it has them"
)


def verify(connection: SparkConnection, target: SparkTarget) -> list[Finding]:
    """Return what is wrong with a server, as warnings; the last one is of what cannot be seen. Raises EngineFailure."""
    found = connection.options(_NAMES)
    said = [*_door(found, target), *_inside(found), _UNSEEN]
    return [Finding(Severity.WARNING, sentence) for sentence in said]


def _door(found: dict[str, str], target: SparkTarget) -> Iterator[str]:
    if not _asks_token(target):
        yield (
            "the server asks for no token: whoever reaches its port can read the tables, and run programs on it; start "
            "it with spark.connect.authenticate.token"
        )
    if target.is_near and not target.uses_tls and found[_ADDRESS] not in ("127.0.0.1", "localhost", "::1"):
        yield (
            f"the server listens beyond this machine, and speaks no TLS; start it with {_ADDRESS} = 127.0.0.1"
        )


def _inside(found: dict[str, str]) -> Iterator[str]:
    is_spread = not found["spark.master"].startswith("local")
    if is_spread and found["spark.network.crypto.enabled"] != "true":
        yield (
            "the server's processes send each other rows unencrypted, unless their network sees to that; "
            "spark.network.crypto.enabled does"
        )
    if found["spark.scheduler.mode"].upper() != "FAIR":
        yield (
            "the server runs statements in the order in which they came, so that short ones wait for long ones; start "
            "it with spark.scheduler.mode = FAIR"
        )
    if found["spark.eventLog.enabled"] == "true":
        yield f"the server's event log keeps {_SHOWN}; let nobody read it who may not read the tables"
    if found["spark.ui.enabled"] != "false":
        yield f"the server's web pages show {_SHOWN}; start it with spark.ui.enabled = false"
    others = {name.strip() for name in found["spark.sql.extensions"].split(",")} - _KNOWN_EXTENSIONS - {""}
    if others:
        yield (
            f"the server has {len(others)} of spark.sql.extensions that dpsql is not tested with; one may change what "
            "a statement means"
        )


def _asks_token(target: SparkTarget) -> bool:
    """Say whether a client without a token is turned away. Raises EngineFailure: the token cannot be read."""
    if target.token() is None:
        return False  # it let us in
    try:
        SparkConnection(replace(target, has_token=False)).close()
    except EngineFailure:
        return True
    return False


# --- A Spark Connect server as a backend --------------------------------------------------------------------


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
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
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
                self._call("tables", lambda: self._check(sql))
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
        self._check(sql)
        return found

    def _check(self, sql: str) -> None:
        """Look at what a statement has read. Raises FilesChanged."""
        self._opened.check(self._connection.session, self._opened.read_by(sql))

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
        self._pool = Pool(
            lambda: SparkConnection(target),
            _is_sound,
            lambda one: one.is_clean,
            "session",
            most=_MOST_SESSIONS,
            kept=_MOST_KEPT,
            seconds=_WAIT_SECONDS,
        )
        self._snapshots = OpenSnapshots()

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
        with self._pool.one() as connection:
            snapshot = SparkSnapshot(connection)
            self._snapshots.add(snapshot, owner)
            try:
                snapshot.begin(self._tables)
                yield snapshot
            finally:
                self._snapshots.remove(snapshot)
                connection.is_clean = snapshot.close()

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
        return self._pool.close()

    def findings(self) -> list[Finding]:
        """Return what is wrong around the server, for the owner. Raises EngineFailure, PolicyError."""
        with self._pool.one() as connection:
            return guarded("check", lambda: verify(connection, self._target))


def _is_sound(connection: SparkConnection) -> bool:
    """Say whether the server still has a session as it was: it forgets them, and restarts."""
    connection.is_clean = False
    try:
        connection.check()
    except EngineFailure:
        return False
    return True

"""An analyst's own tables: a sealed DuckDB beside the ledger, a file for each analyst, and one in memory for a session.

What is in them is released or public already, or was sent by the analyst: to write it and to read it is
post-processing (soundness.md 3.21). No statement of anybody reaches this database: what runs here is printed here.

House rules:

1. A file is one analyst's. Its name is made of theirs, it says whose it is, and is opened for nobody else.
2. It is sealed before the first statement: no other file, no network, no extension, no setting (`seal`).
3. What one statement writes is written whole or not at all, and so is what a block of statements writes. What stood at
   a savepoint is never written again: a table of then gets a copy, which is written, and it goes when the block ends.
4. What may be kept is counted before it is written: rows and bytes of a table, tables and bytes of an analyst.
5. The engine's error text may quote what is stored, so it goes nowhere: a failure's detail is the error's class.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, Refusal
from ..memory import MIB
from ..records import dataclass
from ..relation.types import Kind, SqlType
from ..seal import NO_WAY_OUT, seal
from ..waits import check
from .rows import ReleasedColumn, encode_column, quote
from .rows import carried_type as stored_type

MOST_ROWS = 1_000_000
"""Most rows of a table."""
_MOST_OBJECTS = 1_000
_MOST_SCHEMAS = 100
_SPARE = 4
"""How many times what may be kept a file may take on the disk: what was dropped leaves room in it."""
_MEMORY_MIB = 256
_CHUNK = 20_000
_BUSY_SECONDS, _BUSY_PAUSE = 2.0, 0.05
_FORMAT = "3"
_LOADING = "loading$"
_WIDTHS = {Kind.BOOLEAN: 1, Kind.DATE: 4}
_NEVER = (Kind.INTERVAL, Kind.OPAQUE, Kind.ARRAY, Kind.TIME)

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name VARCHAR, value VARCHAR);
CREATE TABLE IF NOT EXISTS space (name VARCHAR);
CREATE SEQUENCE IF NOT EXISTS number;
CREATE TABLE IF NOT EXISTS object (number BIGINT, space VARCHAR, name VARCHAR, made VARCHAR, rows BIGINT,
    bytes BIGINT);
"""


def file_of(folder: Path, analyst: str) -> Path:
    """Return the file of an analyst's own tables: letters of the name, and a digest of all of it."""
    letters = re.sub(r"[^a-z0-9]", "", analyst.lower())[:16]
    digest = hashlib.sha256(analyst.encode("utf-8", errors="surrogatepass")).hexdigest()[:24]
    return folder / f"{letters}-{digest}.duckdb"


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of an own table or view; `is_noisy`: noise has moved its numbers; `is_end`: they are ends of bars."""

    name: str
    type: SqlType
    not_null: bool = False
    is_noisy: bool = False
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """A query as it was asked, of which a table has the rows.

    `settings`: each with its value as it is shown, the ledger entry up to which draws answered among them.
    `draws_ends`: whether ends of chosen values were drawn with bars.
    """

    text: str
    parameters: tuple[str | int | float | bool | None, ...]
    settings: tuple[tuple[str, str], ...]
    draws_ends: bool


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A table, or (`text`) a view. `reads`: public columns that its rows rest on. `names`: what a view calls columns.

    `drops`: it goes at the end of the block that made it. `is_chosen`: noise has moved which rows there are. `origin`:
    the query whose answer its rows are; None: they are not, or no noise is in them.
    """

    space: str
    name: str
    columns: tuple[StoredColumn, ...]
    reads: frozenset[str] = frozenset()
    text: str | None = None
    names: tuple[str, ...] = ()
    drops: bool = False
    is_chosen: bool = False
    origin: Origin | None = None
    number: int = 0
    rows: int = 0
    bytes: int = 0

    @property
    def is_view(self) -> bool:
        """Whether it is a view."""
        return self.text is not None

    def made(self) -> str:
        """Return what is stored of it beside its name and size."""
        columns = [
            [c.name, c.type.kind.value, c.type.precision, c.type.scale, c.not_null, c.is_noisy, c.is_end]
            for c in self.columns
        ]
        origin = None if self.origin is None else astuple(self.origin)
        return json.dumps(
            [columns, sorted(self.reads), self.text, self.names, self.drops, self.is_chosen, origin]
        )

    @classmethod
    def read(cls, row: Sequence[Any]) -> StoredObject:
        """Return an object as `made` has written it; `row`: number, space, name, made, rows, bytes."""
        number, space, name, made, rows, size = row
        return cls(space, name, *_read_made(made), number, rows, size)


@lru_cache(maxsize=2_048)
def _read_made(
    made: str,
) -> tuple[tuple[StoredColumn, ...], frozenset[str], str | None, tuple[str, ...], bool, bool, Origin | None]:
    """Return what `StoredObject.made` has written: of a thousand tables, a statement changes one."""
    columns, reads, text, names, drops, is_chosen, origin = json.loads(made)
    known = tuple(
        StoredColumn(one, SqlType(Kind(kind), precision, scale), not_null, is_noisy, is_end)
        for one, kind, precision, scale, not_null, is_noisy, is_end in columns
    )
    return known, frozenset(reads), text, tuple(names), drops, is_chosen, _read_origin(origin)


def _read_origin(origin: list[Any] | None) -> Origin | None:
    if origin is None:
        return None
    text, parameters, settings, draws_ends = origin
    return Origin(text, tuple(parameters), tuple((name, value) for name, value in settings), draws_ends)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store has: schemas that were made, and objects by schema and name."""

    spaces: frozenset[str] = frozenset()
    objects: dict[tuple[str, str], StoredObject] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How many bytes all tables take, as they are counted."""
        return sum(one.bytes for one in self.objects.values())


_T = TypeVar("_T")
_EMPTY = Contents()
_Rows = list[tuple[Any, ...]]
_SPACES, _OBJECTS = "SELECT name FROM space", "SELECT number, space, name, made, rows, bytes FROM object"


@dataclass(slots=True)
class _Savepoint:
    """What stood at a savepoint: `kept`, the rows of schemas and objects; None: what stands now, nothing was written.

    `next`: tables of a smaller number stood there, and are not written.
    """

    kept: tuple[_Rows, _Rows] | None = None
    next: int = 0


_Stamp = tuple[tuple[int, int, int] | None, ...]


# --- a database, as this process has it open ----------------------------------------------------------------


class _Database:
    """One sealed DuckDB that sessions of this process share; it is open while somebody uses it."""

    def __init__(self, path: Path | None, whose: str) -> None:
        """`path`: None for one in memory. `whose`: the analyst and the dataset, as the file says them."""
        self._path, self._whose = path, whose
        self._lock = threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._users = 0
        self._known: tuple[_Stamp, Contents] | None = None

    @property
    def is_there(self) -> bool:
        """Whether anything was ever kept."""
        return self._connection is not None or (self._path is not None and self._path.exists())

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield the database. Raises EngineFailure: 55006, another process has it open; or it cannot be opened."""
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
            self._users += 1
            database = self._connection
        try:
            yield database
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._path is not None:
                    self._close()

    def contents(self) -> Contents:
        """Return what is committed. Raises as `opened`."""
        if not self.is_there:
            return _EMPTY
        with self._lock:
            if self._known is not None and self._known[0] == self._stamp():
                return self._known[1]
            with self.opened() as database:
                stamp = self._stamp()
                cursor = database.cursor()
                try:
                    found = guarded("contents", lambda: contents_of(cursor))
                finally:
                    cursor.close()
                self._known = stamp, found
            self._restamp()
            return found

    def forget(self) -> None:
        """Have the contents be read anew: something was committed."""
        with self._lock:
            self._known = None

    @contextmanager
    def committing(self) -> Iterator[Contents | None]:
        """Yield what is committed while nobody else commits; None where nobody else could. Raises as `opened`."""
        with self._lock:
            yield None if self._path is None else self.contents()
            self._known = None

    def hold(self) -> None:
        """Take note of what a database in memory holds now."""
        if self._path is not None:
            return
        size = 0 if self._connection is None else self.contents().bytes
        with _FILES_LOCK:
            held = _HELD.setdefault(self._whose, {})
            held[id(self)] = size
            if not size:
                del held[id(self)]
            if not held:
                del _HELD[self._whose]

    def held_elsewhere(self) -> int:
        """Return how many bytes the temporary tables of the analyst's other sessions take."""
        if self._path is not None:
            return 0
        with _FILES_LOCK:
            return sum(size for one, size in _HELD.get(self._whose, {}).items() if one != id(self))

    def size(self) -> int:
        """Return how many bytes the file takes on the disk, with its log."""
        return sum(0 if one is None else one[1] for one in self._stamp())

    def _stamp(self) -> _Stamp:
        if self._path is None:
            return ()
        return tuple(map(_stat, (self._path, self._log)))

    def protect(self) -> None:
        """Have the log be readable by its owner alone, as the file is."""
        if self._path is not None:
            with suppress(OSError):  # it is gone, or not there yet
                os.chmod(self._log, 0o600)

    @property
    def _log(self) -> Path:
        assert self._path is not None
        return self._path.with_name(self._path.name + ".wal")

    def _restamp(self) -> None:
        """Take note of how the file is now that it is closed, which is still what is known of it."""
        if self._known is not None and self._connection is None:
            self._known = self._stamp(), self._known[1]

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        was_known = self._known is not None and self._known[0] == self._stamp()
        if connection is not None:
            guarded("close", connection.close)
        if was_known:
            self._restamp()

    def close(self) -> None:
        """Let a database in memory go."""
        with self._lock:
            if self._connection is not None and not self._users:
                self._close()
                self.hold()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._path is None:
            database = guarded("open", lambda: duckdb.connect(":memory:"))
            guarded("seal", lambda: seal(database, _MEMORY_MIB, {}))
        else:
            database = self._open_file(self._path)
        try:
            self._begin(database)
        except BaseException:  # whatever ends it, the file is let go
            database.close()
            raise
        return database

    def _open_file(self, path: Path) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            **NO_WAY_OUT, "allow_unsigned_extensions": "false", "memory_limit": f"{_MEMORY_MIB}MiB",
            "temp_directory": "", "threads": "1", "lock_configuration": "true",
        }  # fmt: skip
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EngineFailure(f"workspace: {type(error).__name__}") from None
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            failure = None
            try:
                database = duckdb.connect(str(path), config=config)
                os.chmod(path, 0o600)
                return database
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    failure = EngineFailure(f"workspace: {type(error).__name__}")
            except (duckdb.Error, OSError) as error:
                failure = EngineFailure(f"workspace: {type(error).__name__}")
            if failure is not None:
                raise failure
            if time.monotonic() > until:
                raise EngineFailure(
                    "workspace: busy", sqlstate="55006", limit="your own tables are open in another process"
                )
            check("the workspace")
            time.sleep(_BUSY_PAUSE)

    def _begin(self, database: duckdb.DuckDBPyConnection) -> None:
        """Make the tables of an empty database. Raises EngineFailure: it is somebody else's, or of another kind."""
        cursor = database.cursor()
        about = {"format": _FORMAT, "whose": self._whose}
        try:
            there = guarded(
                "look", lambda: cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            )
            if ("about",) not in there:
                rows = ", ".join(f"('{name}', ?)" for name in about)
                sql = f"BEGIN; {_TABLES} COMMIT"
                guarded("make", lambda: cursor.execute(sql))
                guarded(
                    "make", lambda: cursor.execute(f"INSERT INTO about VALUES {rows}", list(about.values()))
                )
            found = guarded("look", lambda: cursor.execute("SELECT name, value FROM about").fetchall())
        finally:
            cursor.close()
        if dict(found) != about:
            raise EngineFailure("workspace: somebody else's, or of another version")


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


_FILES: dict[Path, _Database] = {}
_FILES_LOCK = threading.Lock()
_HELD: dict[str, dict[int, int]] = {}
"""Bytes of the temporary tables of each analyst's sessions."""


def _shared(path: Path, whose: str) -> _Database:
    with _FILES_LOCK:
        return _FILES.setdefault(path, _Database(path, whose))


def guarded(stage: str, action: Callable[[], _T]) -> _T:
    """Return what an action returns. Raises EngineFailure, Refusal: the engine's own error, without its words."""
    failure: EngineFailure | Refusal
    try:
        return action()
    except duckdb.InterruptException:
        failure = EngineFailure("workspace: cancelled", sqlstate="57014")
    except duckdb.OutOfMemoryException:
        failure = full(f"a statement's rows take more than {_MEMORY_MIB} MiB")
    except duckdb.TransactionException:
        failure = Refusal(
            "another session has changed the same tables of yours", sqlstate="40001", hint="begin again"
        )
    except (duckdb.Error, ValueError, TypeError) as error:  # the last two: nothing of ours has written it
        failure = EngineFailure(f"workspace {stage}: {type(error).__name__}")
    raise failure


def full(said: str) -> Refusal:
    """Return the refusal of what is too much to be kept."""
    return Refusal(f"the workspace is full: {said}", sqlstate="53100", hint="DROP what you need no more")


def contents_of(cursor: duckdb.DuckDBPyConnection) -> Contents:
    """Return what a cursor's transaction sees. Raises duckdb.Error."""
    spaces = cursor.execute(_SPACES).fetchall()
    rows = cursor.execute(_OBJECTS).fetchall()
    objects = map(StoredObject.read, rows)
    return Contents(frozenset(name for (name,) in spaces), {(one.space, one.name): one for one in objects})


# --- the store of one session -------------------------------------------------------------------------------


class Store:
    """A session's way to one database of own tables: an analyst's file, or the session's own in memory.

    One thread uses it, but for `cancel`.
    """

    def __init__(self, path: Path | None, whose: str, most_mib: int) -> None:
        """`most_mib`: what may be kept. Once it was open it stays so until `close`, since to open it takes 60 ms."""
        self._database = _Database(None, whose) if path is None else _shared(path, whose)
        self._most = most_mib * MIB
        self._is_kept = False
        self._kept = ExitStack()
        self._block = ExitStack()
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._running: duckdb.DuckDBPyConnection | None = None
        self._before = _EMPTY
        self._savepoints = list[_Savepoint]()
        self._is_swept = True
        """Whether every table of the block at hand is one of its objects."""

    @property
    def has_block(self) -> bool:
        """Whether something was begun to be written, and is not committed, or a savepoint was made."""
        return self._cursor is not None or bool(self._savepoints)

    # --- savepoints ------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Make a savepoint of the block at hand."""
        self._savepoints.append(_Savepoint())

    def release(self, count: int) -> None:
        """Have only so many savepoints be left."""
        del self._savepoints[count:]

    def undo(self, count: int) -> None:
        """Have nothing be there of what was written since the last of so many savepoints, which stays.

        Raises EngineFailure, Refusal: it is there, and the block has to be rolled back.
        """
        last = self._savepoints[count - 1]
        if last.kept is not None and self._cursor is not None:
            cursor, (spaces, objects) = self._cursor, last.kept
            guarded("undo", lambda: _restore(cursor, spaces, objects))
            self._database.hold()
        last.kept = None
        self.release(count)

    def _note(self, cursor: duckdb.DuckDBPyConnection) -> int:
        """Have each savepoint know what stands there, now that it is written to; return the last one's `next`."""
        if not self._savepoints:
            return 0
        self._is_swept = False
        if self._savepoints[-1].kept is None:
            rows = cursor.execute(_SPACES).fetchall(), cursor.execute(_OBJECTS).fetchall()
            number = 1 + max((row[0] for row in rows[1]), default=0)
            for one in self._savepoints:
                if one.kept is None:
                    one.kept, one.next = rows, number
        return self._savepoints[-1].next

    def contents(self) -> Contents:
        """Return what this session sees. Raises EngineFailure."""
        if self._cursor is None:
            return self._database.contents()
        cursor = self._cursor
        return guarded("contents", lambda: contents_of(cursor))

    @contextmanager
    def change(self, *, in_block: bool) -> Iterator[Change]:
        """Have what is written in the block be there as a whole after it, or with the block at hand.

        Raises EngineFailure, Refusal; after that of a block at hand nothing more may be written in it.
        """
        if self._cursor is None:
            self._begin()
        cursor = self._cursor
        assert cursor is not None
        try:
            if self._database.size() > _SPARE * self._most + 16 * MIB:
                raise full("its file takes too much of the disk")
            first = guarded("savepoint", lambda: self._note(cursor))
            yield Change(cursor, self._most, self._database.held_elsewhere(), first)
        except BaseException:  # whatever ends the statement, nothing of it is kept
            if not in_block:
                self.roll_back()
            raise
        if not in_block:
            self.commit()
        else:
            self._database.hold()

    def commit(self) -> None:
        """Have what the block at hand has written be there. Raises Refusal (40001), EngineFailure: it is not."""
        cursor = self._cursor
        if cursor is None:
            self._savepoints.clear()
            return
        try:
            guarded("commit", lambda: _drop_ended(cursor))
            if not self._is_swept:
                guarded("commit", lambda: _drop_loose(cursor))
            with self._database.committing() as others:
                if others is not None:
                    mine = guarded("contents", lambda: contents_of(cursor))
                    _check_beside(self._before, mine, others, self._most)
                guarded("commit", lambda: cursor.execute("COMMIT"))
            self._database.protect()
        finally:
            self._end()

    def roll_back(self) -> None:
        """Have nothing be there of what the block at hand has written."""
        self._savepoints.clear()
        if self._cursor is not None:
            self._end()

    def read(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Return the columns of one SELECT of ours as arrays, each with where it is NULL (None: nowhere)."""
        with self._database.opened() as database:
            own = self._cursor is None
            cursor = database.cursor() if self._cursor is None else self._cursor
            self._running = cursor
            try:
                guarded("read", lambda: cursor.execute(sql))
                found = guarded("read", cursor.fetchnumpy)
            finally:
                self._running = None
                if own:
                    cursor.close()
            self._keep()
        return [
            (one.data, np.ma.getmaskarray(one)) if isinstance(one, np.ma.MaskedArray) else (one, None)
            for one in found.values()
        ]

    def cancel(self) -> None:
        """Stop what is read, from any thread."""
        running = self._running
        if running is not None:
            with suppress(duckdb.Error):
                running.interrupt()

    def clear(self) -> None:
        """Have all tables in memory be gone, also for the savepoints of the block at hand."""
        count = len(self._savepoints)
        self.close()
        self._savepoints = [_Savepoint() for _ in range(count)]

    def close(self) -> None:
        """Let the database go; what a block has not committed is not there."""
        self.roll_back()
        self._kept.close()
        self._is_kept = False
        self._database.close()

    def _begin(self) -> None:
        database = self._block.enter_context(self._database.opened())
        self._keep()
        try:
            cursor = self._cursor = guarded("cursor", database.cursor)
            guarded("begin", lambda: cursor.execute("BEGIN"))
            self._before = guarded("contents", lambda: contents_of(cursor))
        except BaseException:  # whatever ends it, no block is left open
            self._end()
            raise

    def _keep(self) -> None:
        if not self._is_kept:
            self._is_kept = True
            self._kept.enter_context(self._database.opened())

    def _end(self) -> None:
        cursor, self._cursor = self._cursor, None
        self._savepoints.clear()
        self._is_swept = True
        if cursor is not None:
            with suppress(duckdb.Error):  # closed without COMMIT, it has written nothing
                cursor.close()
        self._database.forget()
        self._block.close()
        self._database.hold()


def _drop_ended(cursor: duckdb.DuckDBPyConnection) -> None:
    for one in contents_of(cursor).objects.values():
        if one.drops:
            cursor.execute(f"DROP TABLE t{one.number}")
            cursor.execute("DELETE FROM object WHERE number = ?", [one.number])


def _drop_loose(cursor: duckdb.DuckDBPyConnection) -> None:
    """Have tables be gone that are no objects any more, since a savepoint: what stood there, or came after it."""
    known = {f"t{one.number}" for one in contents_of(cursor).objects.values()}
    for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        if re.fullmatch("t[0-9]+", name) and name not in known:
            cursor.execute(f"DROP TABLE {name}")


def _restore(cursor: duckdb.DuckDBPyConnection, spaces: _Rows, objects: _Rows) -> None:
    """Have schemas and objects be those of some rows; the tables that these name are as they were."""
    for table, rows, now in (
        ("space", spaces, cursor.execute(_SPACES).fetchall()),
        ("object", objects, cursor.execute(_OBJECTS).fetchall()),
    ):
        key = "name" if table == "space" else "number"
        for row in set(now).difference(rows):
            cursor.execute(f"DELETE FROM {table} WHERE {key} = ?", [row[0]])
        for row in set(rows).difference(now):
            cursor.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row))


def _check_beside(before: Contents, mine: Contents, others: Contents, most: int) -> None:
    """Raise Refusal where what a block leaves does not go with what others have committed since it began.

    Each sees the file as it was: two could make one name, or fill the last room, and neither would meet the other.
    """
    known = {one.number for one in before.objects.values()}
    for place, one in others.objects.items():
        if one.number not in known and mine.objects.get(place) not in (None, before.objects.get(place)):
            raise Refusal(
                f'another session of yours has made "{one.name}"', sqlstate="40001", hint="begin again"
            )
    grown = mine.bytes - before.bytes
    if grown > 0 and others.bytes + grown > most:
        raise full(f"{most // MIB} MiB at most")
    more = len(mine.objects) - len(before.objects)
    if more > 0 and len(others.objects) + more > _MOST_OBJECTS:
        raise full(f"{_MOST_OBJECTS} tables and views at most")


class Change:
    """What one statement writes. Every method raises EngineFailure, Refusal."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, most: int, elsewhere: int, first: int = 0) -> None:
        """`most`: bytes that may be kept, of which some are `elsewhere`. `first`: the number of the first table that
        is written in its place; others stood at a savepoint."""
        self._cursor, self._most, self._elsewhere, self._first = cursor, most, elsewhere, first
        self._copies = dict[int, int]()

    def check_room(self) -> None:
        """Raise Refusal (53100) where nothing more can be kept."""
        contents = self.contents()
        if len(contents.objects) >= _MOST_OBJECTS:
            raise full(f"{_MOST_OBJECTS} tables and views at most")
        if contents.bytes + self._elsewhere >= self._most:
            raise self._full()

    def add_space(self, name: str) -> None:
        """Make a schema."""
        if len(self.contents().spaces) >= _MOST_SCHEMAS:
            raise full(f"{_MOST_SCHEMAS} schemas at most")
        self._run("INSERT INTO space VALUES (?)", name)

    def drop_space(self, name: str) -> None:
        """Have a schema be gone, which is empty."""
        self._run("DELETE FROM space WHERE name = ?", name)

    def add(self, made: StoredObject) -> StoredObject:
        """Make a table without rows, or a view; return it with its number."""
        if len(self.contents().objects) >= _MOST_OBJECTS:
            raise full(f"{_MOST_OBJECTS} tables and views at most")
        ((number,),) = self._run("SELECT nextval('number')")
        size = len(made.made())
        self._run(
            "INSERT INTO object VALUES (?, ?, ?, ?, 0, ?)", number, made.space, made.name, made.made(), size
        )
        if not made.is_view:
            columns = ", ".join(f"c{i} {_type_of(one)}" for i, one in enumerate(made.columns))
            self._run(f"CREATE TABLE t{number} ({columns or 'one BIGINT'})")
        self._check_bytes()
        return self._found(number)

    def drop(self, one: StoredObject) -> None:
        """Have a table or view be gone."""
        number = self._number(one)
        if not one.is_view and number >= self._first:
            self._run(f"DROP TABLE t{number}")
        self._run("DELETE FROM object WHERE number = ?", number)

    def rename(self, one: StoredObject, name: str) -> None:
        """Have a table or view be called otherwise."""
        self._run("UPDATE object SET name = ? WHERE number = ?", name, self._number(one))

    def redefine(self, one: StoredObject, added: StoredColumn | None = None) -> None:
        """Store columns and reads anew; `added`: its last column, which has NULL in every row."""
        if added is not None:
            self._run(
                f"ALTER TABLE t{self._written(one)} ADD COLUMN c{len(one.columns) - 1} {_type_of(added)}"
            )
        made = one.made()
        self._run(
            "UPDATE object SET made = ?, bytes = bytes + ? - length(made) WHERE number = ?",
            made,
            len(made),
            self._number(one),
        )
        self._check_bytes()

    def empty(self, one: StoredObject) -> None:
        """Have all rows of a table be gone."""
        number = self._written(one, has_rows=False)
        self._run(f"DELETE FROM t{number}")
        self._run("UPDATE object SET rows = 0, bytes = length(made) WHERE number = ?", number)

    def insert(self, one: StoredObject, rows: Iterable[Sequence[Any]]) -> int:
        """Write rows into a table, values of its columns in order; return how many."""
        total = size = 0
        number, given = self._written(one), iter(rows)
        while chunk := list(islice(given, _CHUNK)):
            total += len(chunk)
            if one.rows + total > MOST_ROWS:
                raise full(f'"{one.name}" would have more than {MOST_ROWS} rows')
            columns = list(zip(*chunk, strict=True)) if one.columns else []
            size += sum(
                _bytes_of(values, column.type) for values, column in zip(columns, one.columns, strict=True)
            )
            if size > self._most:
                raise self._full()
            self._load(number, one, columns, len(chunk))
        self._run(
            "UPDATE object SET rows = rows + ?, bytes = bytes + ? WHERE number = ?", total, size, number
        )
        self._check_bytes()
        return total

    def _number(self, one: StoredObject) -> int:
        """Return the number that a table or view has by now."""
        return self._copies.get(one.number, one.number)

    def _written(self, one: StoredObject, *, has_rows: bool = True) -> int:
        """Return the number of a table that may be written: a copy's, where it stood at a savepoint."""
        number = self._number(one)
        if number >= self._first:
            return number
        ((copy,),) = self._run("SELECT nextval('number')")
        self._run(f"CREATE TABLE t{copy} AS SELECT * FROM t{number}{'' if has_rows else ' LIMIT 0'}")
        self._run("UPDATE object SET number = ? WHERE number = ?", copy, number)
        self._copies[one.number] = int(copy)
        return int(copy)

    def _load(self, number: int, one: StoredObject, columns: Sequence[Sequence[Any]], count: int) -> None:
        if not one.columns:
            self._run(f"INSERT INTO t{number} SELECT 1 FROM range({count})")
            return
        arrays: dict[str, Any] = {}
        shown: list[str] = []
        for index, (column, values) in enumerate(zip(one.columns, columns, strict=True)):
            if column.not_null and None in values:
                raise Refusal(
                    f'NULL for "{column.name}" of "{one.name}", which is NOT NULL', sqlstate="23502",
                    hint="give it a value: coalesce(x, 0)",
                )  # fmt: skip
            encoded = encode_column(ReleasedColumn(column.name, column.type, list(values)))
            arrays |= {f"{index}{suffix}": array for suffix, array in encoded.arrays.items()}
            shown.append(f"TRY_CAST({encoded.expression.replace('{}', str(index))} AS {_type_of(column)})")

        def load() -> None:
            self._cursor.register(_LOADING, arrays)
            self._cursor.execute(f"INSERT INTO t{number} SELECT {', '.join(shown)} FROM {quote(_LOADING)}")
            self._cursor.unregister(_LOADING)

        guarded("insert", load)

    def contents(self) -> Contents:
        """Return what is there now."""
        return guarded("contents", lambda: contents_of(self._cursor))

    def _found(self, number: int) -> StoredObject:
        return next(one for one in self.contents().objects.values() if one.number == number)

    def _check_bytes(self) -> None:
        if self.contents().bytes + self._elsewhere > self._most:
            raise self._full()

    def _full(self) -> Refusal:
        return full(f"{self._most // MIB} MiB at most")

    def _run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return guarded("write", lambda: self._cursor.execute(sql, list(values)).fetchall())


def _type_of(column: StoredColumn) -> str:
    if column.type.kind in _NEVER:
        raise Refusal(
            f'"{column.name}" is {column.type}, which is not kept in a table', sqlstate="0A000",
            hint="cast it to text, or take numbers out of it",
        )  # fmt: skip
    return "VARCHAR" if column.type.kind is Kind.NULL else stored_type(column.type)


def _bytes_of(values: Sequence[Any], type_: SqlType) -> int:
    """Return about how many bytes the values of a column take."""
    if type_.kind is Kind.TEXT or type_.is_json or type_.kind is Kind.NULL:
        return sum(
            8 + (0 if value is None else len(str(value).encode("utf-8", "replace"))) for value in values
        )
    return len(values) * _WIDTHS.get(type_.kind, 8)

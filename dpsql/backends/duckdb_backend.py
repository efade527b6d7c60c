"""A DuckDB database as a backend: read-only, sealed from files and network, one transaction a statement.

House rules:

1. Nothing of the engine's own words leaves this module: an engine error becomes an `EngineFailure` whose
   detail is the error's class. Its text may quote a value (law L6), so it reaches no log either (law L8).
2. The failure is raised after the `except` block has ended, so that no traceback holds the engine's error.
3. Only a single SELECT is run. The file is opened read-only and the configuration is locked besides:
   each of the two holds if the other one fails (soundness.md 4.4, D01 and D03).

A copy of the owner's DuckDB file, which is asked in its place, so that the owner can write the file meanwhile.

House rules:

1. Only an owner's command makes a copy: of the file as no writer has it open, whole or not at all. Its name is made of
   its content, and the record beside the policy names the one that is asked.
2. While the ledger goes to a new epoch no copy is recorded, and nothing is answered: no draw of one version is stored
   in the epoch of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..errors import EngineFailure, PolicyError
from ..plan.dialects.dialect_duckdb import DIRECT_BITS
from ..policy.live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable, allowed_in, without_days
from ..policy.model import CopySource
from ..regex import regex
from ..relation import types
from ..relation.catalog import Proved
from ..relation.types import SqlType, numeric
from ..seal import NO_WAY_OUT
from ..waits import check
from .backend import (
    CHUNK_ROWS,
    Backend,
    Finding,
    OpenSnapshots,
    Severity,
    Snapshot,
    Stoppable,
    implements,
    unknown_url,
)
from .check_bounds import ValueRange, read_bounds

# --- the schema, out of the catalog functions -------------------------------------------------------------


Query = Callable[[str], list[tuple[Any, ...]]]
"""Runs one SELECT and returns all of its rows."""

State = tuple[str, list[tuple[Any, ...]]]
"""The schema in which names are looked up first; each table and view: its schema, name, SQL, and whether a view."""

_TYPES = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.SMALLINT,
    "SMALLINT": types.SMALLINT,
    "UTINYINT": types.INTEGER,
    "USMALLINT": types.INTEGER,
    "INTEGER": types.INTEGER,
    "UINTEGER": types.BIGINT,
    "BIGINT": types.BIGINT,
    "UBIGINT": numeric(20, 0),
    "HUGEINT": numeric(38, 0),
    "FLOAT": types.REAL,
    "DOUBLE": types.DOUBLE,
    "VARCHAR": types.TEXT,
    "DATE": types.DATE,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": types.TIMESTAMP,
    "INTERVAL": types.INTERVAL,
}
_DECIMAL = regex(r"DECIMAL\(([0-9]+),([0-9]+)\)")
_LABEL = r"'(?:[^']|'')*'"
_ENUM = regex(rf"ENUM\(({_LABEL}(?:, {_LABEL})*)\)")

_VIEW = "is a view; write view = true, and declare the tables that it reads"
_COLLATION = (exp.CollateColumnConstraint, exp.Collate)
_GENERATED = (exp.ComputedColumnConstraint, exp.GeneratedAsIdentityColumnConstraint)

_TABLES = """
SELECT schema_name, table_name, sql, false FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal
UNION ALL
SELECT schema_name, view_name, sql, true FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal
ORDER BY 1, 2"""
_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, NOT is_nullable
FROM duckdb_columns() WHERE database_name = current_database() AND NOT internal
ORDER BY schema_name, table_name, column_index"""
_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, expression,
       referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = current_database()
ORDER BY schema_name, table_name, constraint_index"""


def read_type(engine_type: str) -> tuple[SqlType, tuple[str, ...] | None]:
    """Return our type for DuckDB's type text, and the labels if it is an ENUM.

    An ENUM is TEXT. A moment with a time zone is read in UTC. What we cannot compute with exactly is OPAQUE: other
    precisions of TIMESTAMP, UUID, BLOB, nested types, JSON, UHUGEINT, and every name that is not listed.
    HUGEINT is numeric(38,0) although it holds a little more: clamp before any cast.
    """
    if engine_type in _TYPES:
        return _TYPES[engine_type], None
    if found := _DECIMAL.fullmatch(engine_type):
        return numeric(int(found[1]), int(found[2])), None
    if found := _ENUM.fullmatch(engine_type):
        labels = re.findall(_LABEL, found[1])
        return types.TEXT, tuple(label[1:-1].replace("''", "'") for label in labels)
    return types.OPAQUE, None


def read_state(query: Query) -> State:
    """Return all tables and views of the current database (temporary ones are in another). Touches no row.

    A table's SQL says its columns, their types in full, labels, constraints and collations, so equal states without a
    view are of equal schemas. A view's columns may come from another database.
    """
    ((default_schema,),) = query("SELECT current_schema()")
    return default_schema, query(_TABLES)


def read_schema(query: Query, state: State | None = None) -> LiveSchema:
    """Return all tables and views of the current database; `state`: as it was read in this transaction."""
    default_schema, found = state or read_state(query)
    columns: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for schema, table, *column in query(_COLUMNS):
        columns[schema, table].append(tuple(column))
    constraints: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for schema, table, *constraint in query(_CONSTRAINTS):
        constraints[schema, table].append(tuple(constraint))
    tables = [
        _read_table((schema, table), sql, is_view, columns[schema, table], constraints[schema, table])
        for schema, table, sql, is_view in found
    ]
    return LiveSchema(default_schema, tuple(tables))


def _read_table(
    path: tuple[str, str],
    sql: str,
    is_view: bool,
    column_rows: list[tuple[Any, ...]],
    constraint_rows: list[tuple[Any, ...]],
) -> LiveTable:
    kinds = {name.lower(): read_type(engine_type)[0] for name, engine_type, *_ in column_rows}
    bounds: dict[str, ValueRange] = {}
    primary_key: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = []
    foreign_keys: list[LiveForeignKey] = []
    for kind, names, expression, referenced_table, referenced in constraint_rows:
        match kind:
            case "PRIMARY KEY":
                primary_key = tuple(names)
            case "UNIQUE":
                unique.append(tuple(names))
            case "FOREIGN KEY":  # DuckDB allows none across schemas.
                foreign_keys.append(
                    LiveForeignKey(tuple(names), (path[0], referenced_table), tuple(referenced))
                )
            case "CHECK":
                for name, interval in read_bounds(expression, kinds, "duckdb").items():
                    bounds[name] = bounds.get(name, ValueRange()).intersect(interval)
    text_columns = {name for name, kind in kinds.items() if kind == types.TEXT}
    made = "" if is_view else sql
    collated = _columns_with("collate", _COLLATION, made, text_columns)
    generated = _columns_with("generated", _GENERATED, made, set(kinds))
    columns = []
    for name, engine_type, not_null in column_rows:
        kind, labels = read_type(engine_type)
        is_bytewise = name.lower() not in collated
        interval = bounds.get(name.lower(), ValueRange())
        columns.append(
            LiveColumn(
                name=name,
                type=kind if is_bytewise else types.OPAQUE,
                engine_type=engine_type,
                not_null=not_null,
                lo=interval.lo,
                hi=interval.hi,
                listed=interval.listed,
                enum_values=labels,
                is_bytewise=is_bytewise,
                is_generated=name.lower() in generated,
            )
        )
    unusable = _VIEW if is_view else None
    return LiveTable(
        path, without_days(columns), primary_key, tuple(unique), tuple(foreign_keys), unusable,
        definition=sql if is_view else "",
        proved=None if is_view else _proved((primary_key, *unique), foreign_keys, columns),
    )  # fmt: skip


def _proved(
    keys: Sequence[tuple[str, ...]], foreign_keys: Sequence[LiveForeignKey], columns: Sequence[LiveColumn]
) -> Proved:
    """Return what DuckDB's own tables prove: it knows no constraint that is deferred, or not validated."""
    return Proved(
        tuple(key for key in keys if key),
        tuple((one.columns, one.table, one.referenced) for one in foreign_keys),
        allowed_in(columns),
    )


def _columns_with(word: str, nodes: tuple[type[exp.Expr], ...], sql: str, names: set[str]) -> set[str]:
    """Return those of the lower-case names whose definition in the table's CREATE text holds such a node.

    DuckDB shows collations there alone, and generated columns before version 2 too. Where the text has
    the word and cannot be read, all of the names are returned: that refuses columns and admits none.
    """
    if word not in sql.lower():
        return set()
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except SqlglotError:
        return names
    definitions = {column.name.lower(): column for column in tree.find_all(exp.ColumnDef)}
    if not isinstance(tree, exp.Create) or not names <= definitions.keys():
        return names
    return {name for name in names if definitions[name].find(*nodes)}


# --- the backend ------------------------------------------------------------------------------------------


_T = TypeVar("_T")

_DECIMAL_DIGITS = 38
_BUSY = "55006"
_BUSY_SECONDS, _BUSY_PAUSE = 2.0, 0.05
"""How long a statement waits for a file that a writer has open, and how often it looks."""

# What the printed SQL relies on. Verified, not set, on a connection that is somebody else's.
MEANING = {
    "default_collation": "",
    "default_null_order": "NULLS_LAST",
    "default_order": "ASCENDING",
    "ieee_floating_point_ops": "true",
    "integer_division": "false",
}


_OPENING = threading.Lock()
"""Held while a file is opened: one that another backend has opened is locked, and none is while it is set up."""
_DIRECT = 4
"""How many statements may group by direct tables at a time; one more groups as any other does."""


class _DirectCursors:
    """Cursors of one sealed database that may group by a place for each value: by tables of 2^22 places.

    Others may not, since the engine does so by how far the values in the data are from each other (soundness.md 1.42).
    A cursor's own setting has to be made before the configuration is locked, so they are made beforehand.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._free = [connection.cursor() for _ in range(_DIRECT)]
        self._is_closed = False
        self._lock = threading.Lock()
        for cursor in self._free:
            cursor.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")

    def take(self) -> duckdb.DuckDBPyConnection | None:
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Take a cursor back when its transaction is to end."""
        try:
            cursor.execute("ROLLBACK")
        except duckdb.Error:
            cursor.close()
            return
        with self._lock:
            if not self._is_closed:
                self._free.append(cursor)
                return
        cursor.close()

    def close(self) -> None:
        """Close those that are free, and each other one when it comes back: the file is open while one is."""
        with self._lock:
            self._is_closed = True
            for cursor in self._free:
                cursor.close()
            self._free = []


@implements(Snapshot)
class DuckDBSnapshot:
    """One read-only transaction; made by `DuckDBBackend.snapshot`, used by one thread (but for `cancel`)."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        seen: list[LiveSchema] | None,
        read: Callable[[Query], LiveSchema] = read_schema,
        direct: _DirectCursors | None = None,
    ) -> None:
        """`seen`: where the schema is kept while it cannot change; None: in this transaction. `read`: reads it.

        `direct`: of a file without a writer, so that all its cursors see the same rows.
        """
        self._cursor = cursor
        self._direct = direct
        self._taken: duckdb.DuckDBPyConnection | None = None
        self._seen: list[LiveSchema] = [] if seen is None else seen
        self._read = read
        self._hold: Callable[[], None] = _nothing
        self._calls = Stoppable(self._interrupt)
        self._runs = 0
        self._call("begin", lambda: cursor.execute("BEGIN TRANSACTION READ ONLY"))

    def schema(self) -> LiveSchema:
        """Return the schema as this transaction sees it. Raises EngineFailure."""
        if not self._seen:
            self._seen.append(
                self._call("schema", lambda: self._read(lambda sql: self._cursor.execute(sql).fetchall()))
            )
        return self._seen[0]

    def run(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT and yield its rows in chunks of `size`; nothing runs before the first chunk is asked for.

        `parameters` are bound as they are, integers and decimals exactly; they have at most 38 digits.
        Integers and decimals of any width come as exact Python `int` and `Decimal`. Dates beyond Python's
        range come as text and infinite ones as its first or last day: print a CAST where that matters.
        Only one result is read at a time. Raises EngineFailure; with SQLSTATE 57014 after `cancel`.
        """
        self._runs += 1
        return self._chunks(sql, tuple(parameters), self._runs, size, is_direct=is_direct)

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Snapshot`."""
        self._runs += 1
        return self._call("schema", lambda: self._cursor.execute(sql).fetchall())

    def columns(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Run one SELECT and return its columns as arrays, each with where it is NULL (None: nowhere).

        For integers up to 64 bits, floats, booleans, text, dates and timestamps: wider numbers come as
        doubles unasked, so print a CAST. What the array holds at a NULL means nothing. Raises
        EngineFailure, as `run` does.
        """
        self._runs += 1
        self._call("run", lambda: self._execute(sql, (), self._cursor))
        found = self._call("fetch", self._cursor.fetchnumpy)
        self._hold()
        return [_array(values) for values in found.values()]

    def watch(self, hold: Callable[[], None]) -> None:
        """Have `hold` raise after a result has been read, if what it was read from is not what it was."""
        self._hold = hold

    def cancel(self) -> None:
        """Stop what runs, from any thread; this snapshot answers nothing more."""
        self._calls.cancel()

    def close(self) -> None:
        """End the transaction: it has written nothing, so closing its connection is enough."""
        self._calls.close()
        self._cursor.close()
        if self._direct is not None and self._taken is not None:
            self._direct.give_back(self._taken)

    def _chunks(
        self, sql: str, parameters: tuple[object, ...], turn: int, size: int, *, is_direct: bool
    ) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._call("begin", self._direct_cursor) if is_direct else self._cursor
        self._call("run", lambda: self._execute(sql, parameters, cursor))
        while True:
            if turn != self._runs:
                raise RuntimeError("this result was given up when the next statement began")
            rows = self._call("fetch", lambda: cursor.fetchmany(size))
            self._hold()
            if not rows:
                return
            yield rows

    def _direct_cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor that may group by a direct table, in a transaction too; this one's where none is free."""
        if self._taken is None and self._direct is not None:
            self._taken = self._direct.take()
            if self._taken is not None:
                self._taken.execute("BEGIN TRANSACTION READ ONLY")
        return self._cursor if self._taken is None else self._taken

    def _execute(self, sql: str, parameters: tuple[object, ...], cursor: duckdb.DuckDBPyConnection) -> None:
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise EngineFailure("refused: not a single SELECT")
        cursor.execute(statements[0], [_bindable(value) for value in parameters])

    def _call(self, stage: str, action: Callable[[], _T]) -> _T:
        return self._calls.call(lambda: guarded(stage, action))

    def _interrupt(self) -> None:
        for cursor in (self._cursor, self._taken):
            with suppress(duckdb.Error):  # A connection that has just been closed runs nothing.
                if cursor is not None:
                    cursor.interrupt()


@implements(Backend)
class DuckDBBackend:
    """A DuckDB file, opened when a snapshot needs it; safe to use from several threads."""

    dialect = "duckdb"

    def __init__(self, path: Path) -> None:
        """Point at a file. Nothing is opened, and nothing is checked, before the first snapshot."""
        self._path: Path | None = path.absolute()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._direct: _DirectCursors | None = None
        self._threads: dict[str, str] = {}
        self._schema_seen: list[LiveSchema] = []  # a file that is open for reading has no writer
        self._last_read: tuple[State, LiveSchema] | None = None
        self._snapshots = OpenSnapshots()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, url: str, tables: object = None) -> DuckDBBackend:
        """Return the backend of a URL. Raises PolicyError: it names no file."""
        path = url.removeprefix("duckdb:")
        if not path or path.startswith(":"):
            raise unknown_url()
        return cls(Path(path))

    @classmethod
    def over(cls, connection: duckdb.DuckDBPyConnection) -> DuckDBBackend:
        """Wrap a connection that the caller owns: for tests and for embedding.

        Its database is neither sealed nor opened read-only, and what it has not committed is not seen.
        Raises PolicyError when a setting that dpsql relies on has been changed.
        """
        shown = guarded("settings", partial(_settings, connection, tuple(MEANING)))
        for (name, expected), found in zip(MEANING.items(), shown, strict=True):
            if found.lower() != expected.lower():
                fix = f"SET {name} = '{expected}' before handing it in"
                raise PolicyError(f"the DuckDB connection has {name} = '{found}'; {fix}")
        backend = cls(Path())
        backend._path = None
        backend._connection = connection
        return backend

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[DuckDBSnapshot]:
        """Open one read-only transaction for the time of a `with` block; `owner`: whose it is, for `cancel`.

        Raises EngineFailure when the file is missing or broken; with SQLSTATE 55006 when a writer has held it for
        as long as is waited.
        """
        snapshot = self._entered(owner)
        try:
            yield snapshot
        finally:
            self._left(snapshot)

    def _left(self, snapshot: DuckDBSnapshot) -> None:
        with self._lock:
            self._snapshots.remove(snapshot)
            snapshot.close()

    def _entered(self, owner: object) -> DuckDBSnapshot:
        """Return a snapshot. Waits a little for a file that is held by a writer, and not for one in a longer load."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                with self._lock:
                    cursor = self._open_cursor()
                    seen = None if self._path is None else self._schema_seen
                    snapshot = DuckDBSnapshot(cursor, seen, self._read_schema, self._direct)
                    self._snapshots.add(snapshot, owner)
                    return snapshot
            except EngineFailure as failure:
                if failure.sqlstate != _BUSY or time.monotonic() > until:
                    raise
            check("the database file")
            time.sleep(_BUSY_PAUSE)

    def cancel(self, owner: object = None) -> None:
        """Stop the running statements of an owner, or all of them, from any thread."""
        self._snapshots.cancel(owner)

    def close_idle(self) -> bool:
        """Close the file if no snapshot is open, so that a writer can have it; say whether it is closed."""
        with self._lock:
            if self._snapshots or self._path is None:
                return False
            if self._connection is not None:
                self._let_go()
                self._connection.close()
                self._connection = None
                self._schema_seen = []
            return True

    def leave_core(self) -> None:
        """Have the engine leave one of this process' cores to others, from the next time that the file is opened."""
        self._threads = {"threads": str(max(1, len(os.sched_getaffinity(0)) - 1))}

    def findings(self) -> list[Finding]:
        """Return nothing: a file has no roles, and it is sealed when it is opened."""
        return []

    def _read_schema(self, query: Query) -> LiveSchema:
        state = read_state(query)
        if self._last_read is not None and self._last_read[0] == state:
            return self._last_read[1]
        found = read_schema(query, state)
        if not any(is_view for *_, is_view in state[1]):
            self._last_read = state, found
        return found

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._let_go()
            self._connection, self._direct = guarded("open", self._opened)
        return guarded("cursor", self._connection.cursor)

    def _opened(self) -> tuple[duckdb.DuckDBPyConnection, _DirectCursors | None]:
        """Return the database as it is opened, locked when all is set; it is locked where this process has it open."""
        config: dict[str, Any] = {**MEANING, **NO_WAY_OUT, **self._threads}
        with _OPENING:
            connection = duckdb.connect(str(self._path), read_only=True, config=config)
            try:
                ((is_locked,),) = connection.execute(
                    "SELECT current_setting('lock_configuration')"
                ).fetchall()
                direct = None if is_locked else _DirectCursors(connection)
                if not is_locked:
                    connection.execute("SET GLOBAL lock_configuration = true")
            except BaseException:
                connection.close()
                raise
        return connection, direct

    def _let_go(self) -> None:
        if self._direct is not None:
            self._direct.close()
            self._direct = None


def _nothing() -> None:
    """A file that is open for reading has no writer, and a transaction of its own."""


def _bindable(value: object) -> object:
    """Return a parameter in a form that is bound exactly; DuckDB binds wider numbers as DOUBLE unasked.

    Integers beyond 64 bits become DECIMAL. Raises EngineFailure beyond 38 digits, and for a NaN Decimal.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int) or max(len(digits) + max(exponent, 0), -exponent) > _DECIMAL_DIGITS:
            raise EngineFailure("refused: a parameter of more than 38 digits")
    return value


def _array(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    if not isinstance(values, np.ma.MaskedArray):
        return values, None
    return values.data, np.ma.getmaskarray(values)


def _settings(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> list[str]:
    """Return the values of settings, as text."""
    shown = ", ".join(f"CAST(current_setting('{name}') AS VARCHAR)" for name in names)
    (row,) = connection.cursor().execute(f"SELECT {shown}").fetchall()
    return [str(value) for value in row]


def guarded(stage: str, action: Callable[[], _T]) -> _T:
    """Return what the action returns; every error of the engine becomes an EngineFailure without its text.

    ValueError and OverflowError are what the Python binding raises for a value that Python cannot hold.
    """
    try:
        return action()
    except duckdb.InterruptException:
        failure = EngineFailure("cancelled", sqlstate="57014")
    except (duckdb.Error, ValueError, OverflowError) as error:
        detail = _describe(stage, error)
        failure = EngineFailure(detail, sqlstate=_BUSY if detail.startswith("busy: ") else None)
    raise failure


def _describe(stage: str, error: Exception) -> str:
    """Return what the owner's log may say: the stage and the class of the error, never its text."""
    if stage == "open" and isinstance(error, duckdb.ConnectionException):
        return "busy: this process has the database file open for writing"
    if stage == "open":
        # No row has been read yet: this text is about the file alone. It is looked at, not passed on.
        text = re.sub(r'"[^"]*"', "", str(error))
        for words, said in _OF_FILES.items():
            if words in text:
                return said
    return f"{stage}: {type(error).__name__}"


_OF_FILES = {
    "Could not set lock": "busy: another process has the database file open for writing",
    "does not exist": "open: the database file does not exist",
    "Is a directory": "open: that is a folder, and no file",
    "Permission denied": "open: this user may not read the file",
    "not a valid DuckDB": "open: the file is no DuckDB database",
    "external extensions": "open: the file is no DuckDB database",  # it is SQLite's
    "version number": "open: the file was written by another version of DuckDB",
    "read enough bytes": "open: the file is damaged, or was cut short",
    "Corrupt database": "open: the file is damaged, or was cut short",
}
"""What the engine's text about a file that cannot be opened has in it, and what is said of that."""


# --- a copy of the owner's DuckDB file, which is asked in its place -----------------------------------------


_BLOCK = 1 << 20


class DuckDBCopy(DuckDBBackend):
    """The copy that the record names: another one from the next snapshot on, where the record has changed."""

    def __init__(self, source: CopySource) -> None:
        """Nothing is opened, and nothing is looked for, before the first snapshot."""
        super().__init__(source.record)
        self._source = source

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        name = _recorded(self._source)
        if not name:
            raise EngineFailure(
                "busy: no copy of the database file is recorded; dpsql refresh", sqlstate="55006"
            )
        path = self._source.record.with_name(name)
        if path != self._path:
            # cursors of snapshots that are still open keep what they were opened on
            self._path, self._connection, self._schema_seen = path, None, []
            self._let_go()
        return super()._open_cursor()


def _recorded(source: CopySource) -> str:
    """Return the file name of the copy that is asked; "" while there is none. Raises PolicyError."""
    try:
        name = json.loads(source.record.read_bytes())["copy"]
    except FileNotFoundError:
        raise PolicyError(
            f"{source.record.name}: no copy of the database file has been made", hint="dpsql refresh makes it"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str) or os.path.basename(name) != name:
        raise PolicyError(f"{source.record.name}: is no record of a copy; dpsql refresh writes it anew")
    return name


def copy_findings(source: CopySource) -> list[Finding]:
    """Return what an owner should know of the copy: that there is none, or an old one. Raises PolicyError."""
    if not source.record.exists():
        return [
            Finding(Severity.WARNING, "no copy of the database file has been made yet", "dpsql budget create")
        ]
    name = _recorded(source)
    copy = source.record.parent / name
    if not name or not copy.is_file():
        return [Finding(Severity.ERROR, "the copy of the database file is not there", "dpsql refresh")]
    if source.path.stat().st_mtime_ns > copy.stat().st_mtime_ns:
        return [
            Finding(Severity.WARNING, "the database file has changed since it was copied", "dpsql refresh")
        ]
    return []


def make_copy(source: CopySource) -> str:
    """Copy the owner's file as it is now, and return the copy's name; what is half done is taken away again.

    Raises PolicyError: the copy cannot be written; EngineFailure: the file cannot be read, or a writer has it open.
    """
    draft = source.record.with_name(f"{source.stem}-copy.part")
    _remove(draft)
    original = DuckDBBackend(source.path)
    try:
        # Open for reading, no other program can open it for writing.
        with original.snapshot():
            has_log = _copy_bytes(source.path, draft)
        original.close_idle()
        if has_log:
            guarded("copy", lambda: _put_together(draft))
        name = f"{source.stem}-copy-{_hash(draft)[:16]}.duckdb"
        os.replace(draft, draft.with_name(name))
    except OSError as error:
        raise PolicyError(f"{source.path.name}: the copy cannot be made: {error.strerror}") from None
    finally:
        original.close_idle()
        _remove(draft)
    return name


def suspend_copy(source: CopySource) -> None:
    """Record that no copy is asked until another one is. Raises PolicyError."""
    _write(source, "")


def record_copy(source: CopySource, name: str) -> None:
    """Record the copy that is asked from now on, and delete the others. Raises PolicyError."""
    _write(source, name)
    for other in source.record.parent.glob(f"{_escaped(source.stem)}-copy-*.duckdb"):
        if other.name != name:
            _remove(other)


def _escaped(stem: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in stem)


def _copy_bytes(path: Path, draft: Path) -> bool:
    """Copy a file, and the log beside it, which has what was written last; say whether there was one.

    The files stay open until both are copied: a lock of this process ends with the first one that is closed.
    """
    with path.open("rb") as original:
        log = path.with_name(f"{path.name}.wal")
        _write_through(original, draft)
        shutil.copymode(path, draft)
        if not log.exists():
            return False
        with log.open("rb") as written:
            _write_through(written, draft.with_name(f"{draft.name}.wal"))
    return True


def _write_through(original: BinaryIO, target: Path) -> None:
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        shutil.copyfileobj(original, file, _BLOCK)
        file.flush()
        os.fsync(file.fileno())


def _put_together(draft: Path) -> None:
    """Write what the log has into the copy itself."""
    with duckdb.connect(str(draft), config={**NO_WAY_OUT, "lock_configuration": "true"}) as copy:
        copy.execute("CHECKPOINT")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(source: CopySource, name: str) -> None:
    draft = source.record.with_name(f"{source.record.name}.new")
    try:
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"copy": name}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, source.record)
    except OSError as error:
        _remove(draft)
        raise PolicyError(f"{source.record.name}: cannot be written: {error.strerror}") from None


def _remove(path: Path) -> None:
    for one in (path, path.with_name(f"{path.name}.wal")):
        with suppress(OSError):
            one.unlink()

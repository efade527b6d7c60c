"""Parquet files as a backend: each table is a view over a list of files, in a DuckDB that can read these alone.

House rules (soundness.md 1.27):

1. The list is the recorded one, file by file: no pattern reaches the engine, and no directory is allowed, since a
   connection may write into one that is.
2. The views are made before the engine is sealed; nothing can be made after that. A file that is allowed could be
   written by COPY: only a single SELECT is ever run, which is what `DuckDBSnapshot` holds, and files that nobody may
   write are safer still.
3. Reading fails for no row, and passes over none: files whose columns have not one schema are not recorded, nor files
   of which some value cannot be read, or is not as is said of it there (`verify_claims`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from ..errors import EngineFailure, FilesChanged, PolicyError
from ..plan.dialects.quote import identifier, table_name, text
from ..policy.live_schema import LiveSchema, LiveTable
from ..policy.model import FileSources
from ..seal import NO_WAY_OUT
from .backend import Backend, implements
from .duckdb_backend import MEANING, DuckDBBackend, DuckDBSnapshot, Query, guarded, read_schema
from .pinned_files import PinnedFile, Pins, look_at, pin, read_record, version_of
from .verify_claims import doubting, verify_claims

_AS_IT_IS = "hive_partitioning = false, union_by_name = false, filename = false, binary_as_string = false"
FILE_OPTIONS = f"{_AS_IT_IS}, file_row_number = false"
"""How files are read, whatever their names and the engine's own guesses are."""

# Moments of other units and zones, as the one that we compute with: neither fails for any value. What may be said of
# doubles leaves NaN out, which is above all numbers, so that `x > 6` would pass over a NaN that has only small numbers
# beside it (law L1); and nothing tells whether a bloom filter of intervals holds them. Both are read in a form that is
# held against neither.
_READ_AS = {
    "DOUBLE": "CASE WHEN isnan({0}) THEN 'nan'::DOUBLE ELSE {0} END",
    "FLOAT": "CASE WHEN isnan({0}) THEN 'nan'::FLOAT ELSE {0} END",
    "INTERVAL": "CASE WHEN {0} IS NULL THEN NULL ELSE {0} END",
    "TIMESTAMP WITH TIME ZONE": "{} AT TIME ZONE 'UTC'",
    "TIMESTAMP_NS": "CAST({} AS TIMESTAMP)",
    "TIMESTAMP_MS": "CAST({} AS TIMESTAMP)",
    "TIMESTAMP_S": "CAST({} AS TIMESTAMP)",
}
_MOST_APART = 16
_NARROWED = "holds numbers of more digits than the engine reads; write it with at most 38"


@implements(Backend)
class DuckDBFiles(DuckDBBackend):
    """The tables of a policy that are files, as they were recorded. Safe to use from several threads."""

    def __init__(self, files: FileSources, *, is_recorded: bool = True) -> None:
        """Point at files. Nothing is opened before the first snapshot.

        `is_recorded` False: as they are now, for the owner's eyes; nothing may be answered from such a one.
        """
        super().__init__(Path())
        self._files, self._is_recorded = files, is_recorded
        self._opening = threading.Lock()
        self._pins: Pins = {}
        self._refused: dict[str, dict[str, str]] = {}
        self._spill: str | None = None

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[DuckDBSnapshot]:
        """Open a transaction over the files, which are the recorded ones now and after each result.

        Raises FilesChanged, EngineFailure.
        """
        with self._opening:  # what is read, what is said of it and what is watched are of one list
            pins = self._known()
            _hold(pins)
            with self._lock:
                if pins != self._pins:
                    self._connection, self._schema_seen = None, []
                    self._pins = pins
            snapshot = self._entered(owner)
            snapshot.watch(lambda: _hold(pins))
            try:
                snapshot.schema()
            except EngineFailure:
                self._left(snapshot)
                raise
        try:
            yield snapshot
        finally:
            self._left(snapshot)

    def close_idle(self) -> bool:
        """Let the files go if no snapshot is open, and what was spilled beside them."""
        is_closed = super().close_idle()
        if is_closed and self._spill is not None:
            shutil.rmtree(self._spill, ignore_errors=True)
            self._spill = None
        return is_closed

    def _known(self) -> Pins:
        if not self._is_recorded:
            return pin(self._files, "database", is_whole=False)
        found = read_record(self._files.record)
        if found is None:
            raise FilesChanged("files: not recorded", is_recorded=False)
        if found.keys() != self._files.tables.keys():
            raise FilesChanged("files: the policy has other tables than were recorded", is_recorded=True)
        return found

    def _open_cursor(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._spill = self._spill or tempfile.mkdtemp(prefix="dpsql-")
            self._connection, self._refused = _open(self._pins, self._spill, self._threads)
        return guarded("open", self._connection.cursor)

    def _read_schema(self, query: Query) -> LiveSchema:
        schema = read_schema(query)
        return replace(schema, tables=tuple(self._as_table(table) for table in schema.tables))

    def _as_table(self, table: LiveTable) -> LiveTable:
        """Return a view of ours as the table that it stands for: none of its keys is enforced.

        What is asserted is shown as asserted: who answers asks the ledger whether it holds in this version.
        """
        name = next(name for name in self._pins if _path_of(name) == table.path)
        asserted = self._files.keys.get(name, ())
        columns = tuple(
            replace(
                column,
                not_null=column.name in asserted,
                refused=self._refused[name].get(column.name, column.refused),
            )
            for column in table.columns
        )
        pins = self._pins[name]
        return LiveTable(
            table.path, columns, version=version_of(pins), asserted=asserted,
            parts=frozenset(one.place() for one in pins),
        )  # fmt: skip


def pin_verified(files: FileSources, where: str) -> Pins:
    """Return what the files are, once every value of every one has been read. An owner's act: it reads all rows.

    Raises PolicyError: the files of a table have not one schema, or a value cannot be read. Raises EngineFailure.
    """
    pins = pin(files, where, is_whole=True)
    spill = tempfile.mkdtemp(prefix="dpsql-")
    try:
        with doubting(_config(spill)) as connection:
            for name, ones in pins.items():
                _look_at(f"{where}: tables.{name}.source", ones, connection, spill)
        connection, _ = _open(pins, spill, {})
        with connection:
            for name in pins:
                _read_all(f"{where}: tables.{name}.source", name, connection)
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    _hold(pins)
    return pins


def write_copy(
    files: FileSources, where: str, sql: str, target: Path, columns: frozenset[str]
) -> tuple[int, bool]:
    """Write what a SELECT over the tables gives as one Parquet file, all of it or nothing: an owner's act.

    `columns`: those that it has; a file that is there is replaced where it has these and no others, and is read by no
    table of the SELECT. Return how many rows it has, and whether there was one. Raises PolicyError, EngineFailure.
    """
    pins = pin(files, where, is_whole=False)
    draft, spill = target.with_name(f"{target.name}.new"), tempfile.mkdtemp(prefix="dpsql-")
    try:
        with guarded("open", lambda: duckdb.connect(":memory:", config=_config(spill))) as connection:
            was_there, is_read = (
                target.exists(),
                any(one.path == str(target) for ones in pins.values() for one in ones),
            )
            if is_read or (was_there and not _has_columns(connection, target, columns)):
                raise PolicyError(
                    f'{where}: "{target.name}" is there, which is no such copy',
                    hint="name the copy otherwise with --into, or remove that file",
                )
            guarded("open", lambda: _make_views(connection, pins))
            try:
                copied = f"COPY ({sql}) TO {text(str(draft))} (FORMAT parquet)"
                ((rows,),) = connection.execute(copied).fetchall()
            except duckdb.Error as error:
                problem = PolicyError(
                    f'{where}: "{target.name}" cannot be written ({type(error).__name__}), and nothing was changed',
                    hint="the folder must be one that you may write into, with room for the copy",
                )
            else:
                _hold(pins)
                shutil.copymode(next(iter(pins.values()))[0].path, draft)
                with open(draft, "rb") as file:
                    os.fsync(file.fileno())
                os.replace(draft, target)
                return int(rows), was_there
        raise problem
    except OSError as error:
        raise PolicyError(f'{where}: "{target.name}" cannot be written: {error.strerror}') from None
    finally:
        if draft.is_file():
            draft.unlink()
        shutil.rmtree(spill, ignore_errors=True)


def _has_columns(connection: duckdb.DuckDBPyConnection, path: Path, columns: frozenset[str]) -> bool:
    try:
        return {name for name, _ in _described(connection, look_at(str(path)))} == columns
    except (duckdb.Error, PolicyError):
        return False


def _look_at(
    where: str, pins: tuple[PinnedFile, ...], connection: duckdb.DuckDBPyConnection, spill: str
) -> None:
    """Hold the files of a table to one schema, and what each says of its values to these."""
    schemas: dict[tuple[tuple[str, str], ...], str] = {}
    for one in pins:
        try:
            schemas.setdefault(tuple(_described(connection, one)), one.path)
        except duckdb.Error:
            problem = PolicyError(f'{where}: "{one.path}" cannot be read; write it anew')
        else:
            continue
        raise problem
    if len(schemas) > 1:
        first, other = list(schemas.values())[:2]
        raise PolicyError(
            f'{where}: "{first}" and "{other}" have columns of other names, types or order; write them alike'
        )
    for one in pins:
        source = f"read_parquet([{text(one.path)}], {_AS_IT_IS}"
        try:
            verify_claims(where, one.path, source, spill, connection)
        except duckdb.Error as error:
            problem = _unreadable(where, error)
        else:
            continue
        raise problem


def _read_all(where: str, name: str, connection: duckdb.DuckDBPyConnection) -> None:
    """Read each value as statements do: one that cannot be would be an error that tells of its row (law L2)."""
    try:  # no name stands for a whole row: a column may be called so
        connection.execute(f"SELECT max(hash(*COLUMNS(*))) FROM {table_name(_path_of(name))}").fetchall()
    except duckdb.Error as error:
        problem = _unreadable(where, error)
    else:
        return
    raise problem


def _unreadable(where: str, error: duckdb.Error) -> PolicyError:
    return PolicyError(f"{where}: a file cannot be read to its end ({type(error).__name__}); write it anew")


def _hold(pins: Pins) -> None:
    """Raise FilesChanged unless all files are what they were."""
    for name, ones in pins.items():
        for one in ones:
            if not one.is_now():
                raise FilesChanged(f"files: {one.path} of {name} is not what was recorded", is_recorded=True)


def _open(
    pins: Pins, spill: str, threads: dict[str, str]
) -> tuple[duckdb.DuckDBPyConnection, dict[str, dict[str, str]]]:
    """Return a sealed database with a view for each table, and why which of its columns cannot be declared."""
    config = {**_config(spill), **threads}
    connection = guarded("open", lambda: duckdb.connect(":memory:", config=config))
    refused = {}

    def make() -> None:
        _make_views(connection, pins)
        for name, ones in pins.items():
            refused[name] = dict.fromkeys(_shown_narrower(connection, ones), _NARROWED)
        paths = ", ".join(text(one.path) for ones in pins.values() for one in ones)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    guarded("open", make)
    return connection, refused


def _make_views(connection: duckdb.DuckDBPyConnection, pins: Pins) -> None:
    for name, ones in pins.items():
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(_path_of(name)[0])}")
        connection.execute(f"CREATE VIEW {table_name(_path_of(name))} AS {_select(connection, ones)}")


def _config(spill: str) -> dict[str, Any]:
    """Return the settings of a database before its files are known, which closes all but these."""
    before = {name: value for name, value in NO_WAY_OUT.items() if name != "enable_external_access"}
    return {**MEANING, **before, "temp_directory": spill}


def _select(connection: duckdb.DuckDBPyConnection, pins: tuple[PinnedFile, ...]) -> str:
    """Return the text of a table's view.

    Of a list the engine knows no statistics, of one file it does: a few files are read one beside the other, and
    joins over them take as long as over tables.
    """
    columns = _described(connection, pins[0])
    shown = []
    for name, type_ in columns:
        column = identifier(name)
        shown.append(f"{_READ_AS[type_].format(column)} AS {column}" if type_ in _READ_AS else column)
    are_few = len(pins) <= _MOST_APART and all(_described(connection, one) == columns for one in pins[1:])
    read = [(one,) for one in pins] if are_few else [pins]
    return " UNION ALL ".join(f"SELECT {', '.join(shown)} FROM {_listed(ones)}" for ones in read)


def _described(connection: duckdb.DuckDBPyConnection, one: PinnedFile) -> list[tuple[str, str]]:
    """Return the names and types of a file's columns, in order."""
    found = connection.execute(f"DESCRIBE SELECT * FROM {_listed((one,))}").fetchall()
    return [(name, type_) for name, type_, *_ in found]


def _shown_narrower(connection: duckdb.DuckDBPyConnection, pins: tuple[PinnedFile, ...]) -> list[str]:
    """Return the columns whose numbers have more digits in a file than the engine's type for them holds."""
    return _names(connection, "SELECT DISTINCT name FROM parquet_schema({}) WHERE precision > 38", pins)


def _names(connection: duckdb.DuckDBPyConnection, sql: str, pins: tuple[PinnedFile, ...]) -> list[str]:
    listed = f"[{', '.join(text(one.path) for one in pins)}]"
    return [str(row[0]) for row in connection.execute(sql.format(listed)).fetchall()]


def _listed(pins: tuple[PinnedFile, ...]) -> str:
    return f"read_parquet([{', '.join(text(one.path) for one in pins)}], {FILE_OPTIONS})"


def _path_of(name: str) -> tuple[str, str]:
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else ("main", name)

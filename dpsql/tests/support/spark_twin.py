"""A DuckDB database and its copies in Spark, behind a backend that has DuckDB's keys.

A file has no key and no CHECK: what a policy takes from those of DuckDB's tables, the schema that a session sees here
has too, so that one plan holds for both engines. Types, and how texts compare, are those that Spark tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb

from ...backends import Backend, DuckDBBackend, Snapshot
from ...backends.spark_backend import SparkBackend
from ...backends.spark_connection import target_of
from ...backends.spark_tables import OpenTables, PinnedTables, read_table
from ...policy.live_schema import LiveSchema, LiveTable
from .spark_copy import in_schema, name_in_spark

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

__all__ = ["CopiesBackend", "OneCopy", "spelled_as_in_duckdb"]

_VIEW = re.compile(r"CREATE VIEW (\w+) AS ([^;]*);")
_INFINITE = {
    "5881580-07-11": "infinity", "5877642-06-24 (BC)": "-infinity",
    "294247-01-10 04:00:54.775807": "infinity", "290309-12-21 (BC) 19:59:05.224193": "-infinity",
}  # fmt: skip
Rows = list[tuple[Any, ...]]


class _CopiedTables(PinnedTables):
    """The tables of copies, which nobody changes: what they are is asked once."""

    def __init__(self, schema: LiveSchema) -> None:
        super().__init__(None)
        self._schema = schema

    def open(self, session: SparkSession) -> OpenTables:
        return OpenTables(self._schema, {})


class _CopySnapshot:
    """A snapshot whose tables of `main` are those of the first of a backend's copies; the others are asked with it."""

    def __init__(self, snapshot: Snapshot, backend: CopiesBackend) -> None:
        self._snapshot, self._backend = snapshot, backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[Rows]:
        schemas = self._backend.schemas
        if len(schemas) == 1:
            yield from self._snapshot.run(in_schema(sql, schemas[0]), parameters, size)
        else:
            rows = self._backend.keep(sql, parameters, self._asked_of(schemas, sql, parameters))
            yield from [rows] if rows else []  # as a snapshot gives no chunk without rows

    def columns(self, sql: str) -> Any:
        return self._snapshot.columns(in_schema(sql, self._backend.schemas[0]))

    def _asked_of(self, schemas: Sequence[str], sql: str, parameters: Sequence[object]) -> dict[str, Rows]:
        parts = (
            f"SELECT {number}, one.* FROM ({in_schema(sql, schema)}) AS one"
            for number, schema in enumerate(schemas)
        )
        found: dict[str, Rows] = {schema: [] for schema in schemas}
        for chunk in self._snapshot.run(" UNION ALL ".join(parts), parameters):
            for number, *row in chunk:
                found[schemas[number]].append(tuple(row))
        return found


class CopiesBackend:
    """A backend over copies of one database, or of several with the same tables; a session reads the first of `schemas`.

    What a session asks is asked of all of them in one query, as Spark takes as long to begin a query as to run ten.
    """

    def __init__(
        self, url: str, source: duckdb.DuckDBPyConnection, schemas: Sequence[str], views: str = ""
    ) -> None:
        """`source`: what was copied; all of the copies are of its tables. `views`: SQL that made views over them."""
        self.schemas = tuple(schemas)
        self._known: dict[tuple[str, str], dict[str, Rows]] = {}
        with DuckDBBackend.over(source).snapshot() as snapshot:
            enforced = snapshot.schema()
        live = _told(url, self.schemas[0], enforced, dict(_VIEW.findall(views)))
        self._backend: Backend = SparkBackend(target_of(url), _CopiedTables(live))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[_CopySnapshot]:
        with self._backend.snapshot(owner) as snapshot:
            yield _CopySnapshot(snapshot, self)

    def read(self, *schemas: str) -> None:
        """Have the next queries be asked of other copies, and forget what the earlier ones gave."""
        self.schemas, self._known = schemas, {}

    def keep(self, sql: str, parameters: Sequence[object], found: dict[str, Rows]) -> Rows:
        """Keep what a query gave in each of the copies; return the rows of the first one."""
        self._known[sql, repr(tuple(parameters))] = found
        return found[self.schemas[0]]

    def at(self, schema: str) -> OneCopy:
        """Return one of the copies, to be measured as a snapshot is."""
        return OneCopy(self, schema)

    def rows(self, schema: str, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Return a printed query's rows in one of the copies. Raises EngineFailure, if it fails in any of them."""
        asked = sql, repr(tuple(parameters))
        if asked not in self._known:
            with self.snapshot() as snapshot:
                rows = [row for chunk in snapshot.run(sql, parameters) for row in chunk]
            if len(self.schemas) == 1:
                self.keep(sql, parameters, {self.schemas[0]: rows})
        return self._known[asked][schema]


class OneCopy:
    """What is asked of one of several copies, as of a snapshot."""

    def __init__(self, backend: CopiesBackend, schema: str) -> None:
        self._backend, self._schema = backend, schema

    def run(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Rows]:
        """Give the rows of a printed query. Raises EngineFailure."""
        yield self._backend.rows(self._schema, sql, parameters)


def spelled_as_in_duckdb(value: Any) -> Any:
    """Return a key of Spark's as DuckDB writes it, if it is the last or first day or moment, which DuckDB calls infinite.

    Such a key is never published: how it is written is of no account, but that there is one text for each.
    """
    return _INFINITE.get(value, value) if isinstance(value, str) else value


def _told(url: str, schema: str, enforced: LiveSchema, views: dict[str, str]) -> LiveSchema:
    """Return the schema that Spark tells of a copy, under the paths and with the constraints of DuckDB's tables.

    `views`: each view's query.
    """
    backend = SparkBackend(target_of(url), _CopiedTables(enforced))
    with backend.session() as session:
        tables = tuple(
            replace(one, definition=views[one.path[1]])
            if one.definition
            else _as_enforced(read_table(session, (schema, name_in_spark(one.path[1]))), one)
            for one in enforced.tables
        )
    backend.close_idle()
    return replace(enforced, tables=tables, dialect="spark")


def _as_enforced(told: LiveTable, enforced: LiveTable) -> LiveTable:
    columns = []
    for column, one in zip(told.columns, enforced.columns, strict=True):
        assert column.name == one.name
        held = replace(column, not_null=one.not_null, lo=one.lo, hi=one.hi, enum_values=one.enum_values)
        columns.append(held)
    return replace(
        told, path=enforced.path, columns=tuple(columns), primary_key=enforced.primary_key, unique=enforced.unique, proved=enforced.proved,
        foreign_keys=enforced.foreign_keys,
    )  # fmt: skip

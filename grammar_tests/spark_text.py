"""What Spark would be asked, without one: the schema of DuckDB's tables in Spark's types, with DuckDB's keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
from datasets import CountingBackend, DataSets, PolicyData

from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.policy.live_schema import LiveColumn, LiveSchema
from dpsql.relation import types
from dpsql.relation.types import SqlType, numeric
from dpsql.verify.certificate import Facts

__all__ = ["LESS_ON_SPARK", "REFUSED_ON_SPARK", "SparkTexts", "facts_on_spark"]

REFUSED_ON_SPARK = frozenset({"frames_by_value", "json_members", "numbered", "patterns", "time"})
"""Files of cases that Spark refuses: it reads the regular expressions that LIKE can say alone, has no frames in linear
time by RANGE and no column of JSON, and enforces no key."""

LESS_ON_SPARK = frozenset({"two_people_clamped"})
"""Files of cases whose noise is less elsewhere: Spark keeps no step of a query, so such rows are kept by rank there."""

_VIEW = re.compile(r"CREATE VIEW (\w+) AS ([^;]*);")
_NAMES = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "UTINYINT": "smallint",
    "USMALLINT": "int", "UINTEGER": "bigint", "UBIGINT": "decimal(20,0)", "HUGEINT": "decimal(38,0)",
    "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string", "UUID": "string", "BLOB": "binary", "DATE": "date",
    "BOOLEAN": "boolean", "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp_ntz",
}  # fmt: skip
_TYPES = {
    "boolean": types.BOOLEAN, "tinyint": types.SMALLINT, "smallint": types.SMALLINT, "int": types.INTEGER,
    "bigint": types.BIGINT, "float": types.REAL, "double": types.DOUBLE, "string": types.TEXT, "date": types.DATE,
    "timestamp_ntz": types.TIMESTAMP,
}  # fmt: skip


class SparkTexts:
    """Sessions on policies' databases, one on DuckDB and one that plans for Spark, kept for many statements."""

    def __init__(self, data: DataSets) -> None:
        self._data = data
        self._known: dict[tuple[str, str], _Sessions] = {}

    def of(self, policy: str, analyst: str) -> _Sessions:
        """Return the sessions of an analyst of a policy."""
        if (policy, analyst) not in self._known:
            self._known[policy, analyst] = _Sessions(self._data, self._data.of(policy), analyst)
        return self._known[policy, analyst]


class _Sessions:
    def __init__(self, data: DataSets, source: PolicyData, analyst: str) -> None:
        self._listing, self._text = _Listing(source.wild), _SparkText(source.wild, source.schema)
        self.here, _ = data.session(source.policy, self._listing, analyst, stays=True)
        self.there, _ = data.session(source.policy, self._text, analyst, stays=True)
        self._listing.read.clear()

    def pass_on(self) -> None:
        """Have what DuckDB has listed be listed again."""
        self._text.listed[:] = self._listing.read
        self._listing.read.clear()
        self.here.dataset.prepared.clear()  # so that each statement lists anew
        self.there.dataset.prepared.clear()


class _SparkText:
    """A backend that plans and asks nothing. What lists the keys of public tables is answered by DuckDB, in order."""

    dialect = "spark"

    def __init__(self, source: duckdb.DuckDBPyConnection, views: str) -> None:
        """`views`: SQL that made views over the tables."""
        with DuckDBBackend.over(source).snapshot() as snapshot:
            enforced = snapshot.schema()
        texts = dict(_VIEW.findall(views))
        self._live = replace(
            enforced,
            dialect="spark",
            tables=tuple(
                replace(
                    one,
                    columns=tuple(map(_column, one.columns)),
                    definition=texts.get(one.path[1], one.definition),
                )
                for one in enforced.tables
            ),
        )
        self.listed: list[list[tuple[Any, ...]]] = []

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Any]:
        yield _TextSnapshot(self._live, self.listed)

    def cancel(self, owner: object = None) -> None:
        """Nothing runs."""

    def close_idle(self) -> bool:
        return True

    def findings(self) -> list[Any]:
        return []


class _TextSnapshot:
    def __init__(self, live: LiveSchema, listed: list[list[tuple[Any, ...]]]) -> None:
        self._live, self._listed = live, listed

    def schema(self) -> LiveSchema:
        return self._live

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        yield self._listed.pop(0)


class _Listing(CountingBackend):
    """A backend that keeps what was read, too."""

    def __init__(self, source: duckdb.DuckDBPyConnection) -> None:
        super().__init__(DuckDBBackend.over(source), [])
        self.read: list[list[tuple[Any, ...]]] = []

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Any]:
        with self._backend.snapshot(owner) as snapshot:
            yield _Kept(snapshot, self.read)


class _Kept:
    def __init__(self, snapshot: Snapshot, read: list[list[tuple[Any, ...]]]) -> None:
        self._snapshot, self._read = snapshot, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        self._read.append(
            [row for chunk in self._snapshot.run(sql, parameters, size, is_direct=is_direct) for row in chunk]
        )
        yield self._read[-1]


def facts_on_spark(facts: Facts) -> Facts:
    """Return the facts of DuckDB's tables in Spark's words."""
    tables = {
        name: replace(
            table, columns={column: _known(_name(type_)) for column, type_ in table.columns.items()}
        )
        for name, table in facts.tables.items()
    }
    return replace(facts, engine="spark", tables=tables)


def _known(name: str) -> str:
    """Return a type as it is recorded: of texts that were seen to be UTF-8."""
    return "string valid" if name == "string" else name


def _name(engine_type: str) -> str:
    if engine_type.startswith("ENUM("):
        return "string"
    return _NAMES.get(engine_type, engine_type.lower())


def _column(column: LiveColumn) -> LiveColumn:
    name = _name(column.engine_type)
    return replace(column, engine_type=name, type=_type(name), is_bytewise=True, max_length=None)


def _type(name: str) -> SqlType:
    if found := re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", name):
        return numeric(int(found[1]), int(found[2]))
    return _TYPES.get(name, types.OPAQUE)

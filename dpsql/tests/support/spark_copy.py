"""A DuckDB database copied into Spark by way of Parquet files, table by table: the same rows for both engines.

What Spark cannot hold comes as near as it can: an ENUM and a UUID are texts there, a HUGEINT is a DECIMAL(38, 0), whose
39 digits it has not, and files have no keys. The days and moments that DuckDB calls infinite are days and moments like
others, far away at the same place in the order. A table's name has letters, digits and _ alone, and no capitals.
"""

from __future__ import annotations

import re
import uuid
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from .postgres_copy import tables_of
from .spark_server import SparkServer

__all__ = ["SparkOwner", "copy_tables", "in_schema", "keep_representable", "name_in_spark"]

_TYPES = {
    "UTINYINT": "SMALLINT", "USMALLINT": "INT", "UINTEGER": "BIGINT", "UBIGINT": "DECIMAL(20, 0)",
    "HUGEINT": "DECIMAL(38, 0)", "VARCHAR": "STRING", "UUID": "STRING", "BLOB": "BINARY",
    "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
}  # fmt: skip
_MOST = 10**38 - 1
_TABLE = re.compile(r'(["`])main\1\.(["`])((?:(?!\2).|\2\2)*)\2')
"""How printed SQL names a table of DuckDB's."""


class SparkOwner:
    """Who makes the tables that are read: a session on a server, for the time of a `with` block."""

    def __init__(self, server: SparkServer) -> None:
        self.url, self._port = server.url, server.port

    def __enter__(self) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the client says of pandas as it is imported
            from pyspark.sql.connect.session import SparkSession
        self._session = SparkSession.builder.remote(f"sc://127.0.0.1:{self._port}").create()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement; return its rows."""
        return [tuple(row) for row in self._session.sql(sql).collect()]

    def make_schema(self) -> str:
        """Make a schema; return its name, which no other has."""
        name = f"copy_{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {name}")
        return name


def copy_tables(source: duckdb.DuckDBPyConnection, owner: SparkOwner, folder: Path, files: int = 1) -> str:
    """Return a new schema that has all tables of the main schema of `source`.

    The rows of each are in so many files below `folder`.
    """
    schema = owner.make_schema()
    for table, columns in tables_of(source).items():
        place = folder / schema / name_in_spark(table)
        place.mkdir(parents=True)
        values = ", ".join(_value(_quoted(name), type_) for name, type_ in columns)
        for number in range(files):
            rows = f"SELECT {values} FROM {_quoted(table)} WHERE rowid % {files} = {number} ORDER BY rowid"
            source.execute(f"COPY ({rows}) TO '{place / f'{number}.parquet'}' (FORMAT parquet)")
        shown = ", ".join(f"{_in_backticks(name)} {_spark_type(type_)}" for name, type_ in columns)
        owner.run(
            f"CREATE TABLE {schema}.{name_in_spark(table)} ({shown}) USING parquet LOCATION '{place.as_uri()}'"
        )
    return schema


def keep_representable(source: duckdb.DuckDBPyConnection) -> None:
    """Change the rows to those that the copy has: what Spark cannot hold, neither engine has then."""
    for table, columns in tables_of(source).items():
        for name in (_quoted(name) for name, type_ in columns if type_ == "HUGEINT"):
            source.execute(
                f"UPDATE {_quoted(table)} SET {name} = {_within(name)} WHERE {name} <> {_within(name)}"
            )


def name_in_spark(table: str) -> str:
    """Return what a table is called in the copy."""
    return re.sub("[^a-z0-9_]", "_", table.lower())


def in_schema(sql: str, schema: str) -> str:
    """Return printed SQL over the tables of a copy."""
    return _TABLE.sub(lambda found: f"{schema}.{name_in_spark(found[3])}", sql)


def _value(name: str, type_: str) -> str:
    if type_ == "HUGEINT":  # a file would hold it as a double
        return f"CAST({_within(name)} AS DECIMAL(38, 0)) AS {name}"
    return f"CAST({name} AS VARCHAR) AS {name}" if type_ == "UUID" or type_.startswith("ENUM(") else name


def _within(name: str) -> str:
    return f"CASE WHEN {name} > {_MOST} THEN {_MOST} WHEN {name} < -{_MOST} THEN -{_MOST} ELSE {name} END"


def _spark_type(type_: str) -> str:
    return "STRING" if type_.startswith("ENUM(") else _TYPES.get(type_, type_)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

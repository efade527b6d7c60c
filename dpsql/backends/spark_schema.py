"""What Spark's catalog says of a table, as dpsql sees it: names, types, and how each column is read.

House rules:

1. Nothing is a key here and nothing is NOT NULL: Spark's catalogs enforce neither, whatever a table declares.
2. A column that dpsql shows otherwise than Spark has it (`shown`) is read by a form that fails for no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from ..policy.live_schema import LiveColumn, LiveSchema, LiveTable
from ..relation import types
from ..relation.types import SqlType, numeric

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

__all__ = ["Details", "live_columns", "quoted", "read_details", "read_schema", "read_type", "shown"]

_TYPES = {
    "boolean": types.BOOLEAN,
    "tinyint": types.SMALLINT,
    "smallint": types.SMALLINT,
    "int": types.INTEGER,
    "bigint": types.BIGINT,
    "float": types.REAL,
    "double": types.DOUBLE,
    "string": types.TEXT,
    "date": types.DATE,
    "timestamp_ntz": types.TIMESTAMP,
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where a field keeps that it was declared as char(n) or varchar(n); it is a string everywhere else."""

_MOMENT = "timestamp"
_COLLATED = "string collate "
_DETAILS = "# Detailed Table Information"
_VIEW = "is a view, whose text is not read on Spark; declare the tables that it reads, or write its rows to a table"
_OTHER = "is kept as {}, of which no version can be read again; keep it as Parquet files or Delta"
_ICEBERG = (
    "is kept as Iceberg, which passes over files and rows by metrics that cannot be verified; keep it as Parquet files "
    "or Delta"
)
KEPT = ("parquet", "delta")
"""The providers of tables whose rows can be fixed, and are read whatever is said of them beside."""


def read_type(engine_type: str) -> SqlType:
    """Return our type for Spark's, as `simpleString` has it.

    A collated string is OPAQUE, and so is every type that is not listed: binary, nested ones, variant, intervals.
    """
    if found := _DECIMAL.fullmatch(engine_type):
        return numeric(int(found[1]), int(found[2]))
    return _TYPES.get(engine_type, types.OPAQUE)


def quoted(*names: str) -> str:
    """Return a name as Spark reads it under every setting."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def shown(field: StructField) -> str:
    """Return how a column is read: a moment in UTC, char(n) without what it is padded with, anything else as it is.

    A double is read in a form that no source holds its statistics against: these know no NaN (soundness.md 1.32).
    """
    name, type_ = quoted(field.name), field.dataType.simpleString()
    if type_ in ("float", "double"):
        return f"CASE WHEN isnan({name}) THEN CAST('NaN' AS {type_}) ELSE {name} END AS {name}"
    if type_ == _MOMENT:
        return f"CAST({name} AS TIMESTAMP_NTZ) AS {name}"
    if str(field.metadata.get(_DECLARED, "")).startswith("char("):
        return f"rtrim({name}) AS {name}"
    return name


def live_columns(fields: StructType) -> tuple[LiveColumn, ...]:
    """Return a table's columns as they are read."""
    return tuple(map(_live_column, fields.fields))


def _live_column(field: StructField) -> LiveColumn:
    engine_type = field.dataType.simpleString()
    if engine_type == _MOMENT:
        engine_type = "timestamp_ntz"
    is_bytewise = not engine_type.startswith(_COLLATED)
    return LiveColumn(field.name, read_type(engine_type), engine_type, is_bytewise=is_bytewise)


class Details:
    """What the catalog says of a table beside its columns: `provider`, lower case; `location`; `is_view`."""

    def __init__(self, rows: list[tuple[str, str]]) -> None:
        """`rows`: names and values of DESCRIBE TABLE EXTENDED, in order."""
        names = [name for name, _ in rows]
        start = len(names) - 1 - names[::-1].index(_DETAILS) if _DETAILS in names else len(names)
        found = dict(reversed(rows[start:]))
        self.provider = found.get("Provider", "").lower()
        self.location = found.get("Location", "")
        self.is_view = found.get("Type", "").upper() in ("VIEW", "METRIC_VIEW", "MATERIALIZED_VIEW")

    @property
    def unusable(self) -> str | None:
        """Why no policy may declare it, as the end of a sentence; None for a table whose rows can be fixed."""
        if self.is_view:
            return _VIEW
        if self.provider == "iceberg":
            return _ICEBERG
        return None if self.provider in KEPT else _OTHER.format(self.provider or "something unknown")


def read_details(session: SparkSession, path: tuple[str, str]) -> Details:
    """Return what the catalog says of a table. Raises what Spark raises."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {quoted(*path)}").collect()
    return Details([(str(row[0]), str(row[1])) for row in rows])


def read_schema(session: SparkSession, names: frozenset[str] | None = None) -> LiveSchema:
    """Return the catalog's tables as they are now; `names`: those that a policy declares, None: all. Reads no row.

    They are for the owner's eyes: no version of theirs is fixed. Raises what Spark raises.
    """
    default = str(session.catalog.currentDatabase())
    tables = tuple(
        read_table(session, path)
        for path in _paths(session)
        if names is None or (path[1] if path[0] == default else f"{path[0]}.{path[1]}") in names
    )
    return LiveSchema(default, tables, dialect="spark")


def read_table(session: SparkSession, path: tuple[str, str]) -> LiveTable:
    """Return one of the catalog's tables as it is now; what the server itself cannot read is there without columns."""
    try:
        details = read_details(session, path)
        if details.unusable is not None:
            return LiveTable(path, (), unusable=details.unusable)
        return LiveTable(path, live_columns(session.table(quoted(*path)).schema))
    except PySparkException as error:
        condition = error.getCondition()
        if not condition:  # the server did not say it: it is not there any more
            raise
    return LiveTable(path, (), unusable=f"cannot be read by the server ({condition}); mend it there")


def _paths(session: SparkSession) -> Iterator[tuple[str, str]]:
    for (schema,) in sorted(tuple(row)[:1] for row in session.sql("SHOW SCHEMAS").collect()):
        found = session.sql(f"SHOW TABLES IN {quoted(schema)}").collect()
        yield from sorted((schema, row["tableName"]) for row in found if not row["isTemporary"])

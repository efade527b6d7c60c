"""Reads the schema of a DuckDB database out of its catalog functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..policy.live_schema import LiveColumn, LiveForeignKey, LiveSchema, LiveTable, allowed_in, without_days
from ..relation import types
from ..relation.catalog import Proved
from ..relation.types import SqlType, numeric
from .check_bounds import ValueRange, read_bounds

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
_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")
_LABEL = r"'(?:[^']|'')*'"
_ENUM = re.compile(rf"ENUM\(({_LABEL}(?:, {_LABEL})*)\)")

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

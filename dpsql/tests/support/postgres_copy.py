"""A DuckDB database copied into Postgres, table by table: the same rows for both engines.

What Postgres cannot represent comes as near as it can: dates and timestamps beyond its calendar become
infinite ones, and the character U+0000, which it has not, goes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import psycopg

__all__ = ["Tables", "copy_rows", "copy_schema", "keep_representable", "tables_of"]

Tables = Mapping[str, Sequence[tuple[str, str]]]
"""Each table's columns with their types."""

_TYPES = {
    "JSON": "jsonb",
    "TINYINT": "smallint", "UTINYINT": "integer", "USMALLINT": "integer", "UINTEGER": "bigint",
    "UBIGINT": "numeric(20,0)", "HUGEINT": "numeric(39,0)", "FLOAT": "real", "DOUBLE": "double precision",
    "VARCHAR": "text", "BLOB": "bytea", "TIMESTAMP WITH TIME ZONE": "timestamptz",
}  # fmt: skip
_COLUMNS = """
SELECT table_name, column_name, data_type, NOT is_nullable FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal
  AND table_oid IN (SELECT table_oid FROM duckdb_tables() WHERE database_name = current_database())
ORDER BY table_oid, column_index"""
_CONSTRAINTS = """
SELECT table_name, constraint_type, constraint_column_names, expression, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = current_database() AND schema_name = 'main'
ORDER BY table_oid, constraint_index"""
_RANGES = {
    "DATE": ("4713-01-01 (BC)", "5874897-12-31"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"), ("4713-01-01 (BC)", "infinity")),
}
"""The years that Postgres has."""


def copy_schema(
    source: duckdb.DuckDBPyConnection, target: psycopg.Connection[Any], schema: str = "public"
) -> None:
    """Make all tables of the main schema with their keys, foreign keys and CHECK constraints, without rows."""
    columns: dict[str, list[str]] = defaultdict(list)
    for table, name, type_, not_null in source.execute(_COLUMNS).fetchall():
        columns[table].append(
            f"{_quoted(name)} {_type(target, schema, type_)}{' NOT NULL' if not_null else ''}"
        )
    for table, kind, names, expression, parent, referenced in source.execute(_CONSTRAINTS).fetchall():
        listed = ", ".join(map(_quoted, names))
        if kind in ("PRIMARY KEY", "UNIQUE"):
            columns[table].append(f"{kind} ({listed})")
        elif kind == "CHECK":
            columns[table].append(f"CHECK ({expression})")
        elif kind == "FOREIGN KEY":
            keys = ", ".join(map(_quoted, referenced))
            columns[table].append(
                f"FOREIGN KEY ({listed}) REFERENCES {_quoted(schema)}.{_quoted(parent)} ({keys})"
            )
    with target.transaction():
        for table, parts in columns.items():
            _run(target, f"CREATE TABLE {_quoted(schema)}.{_quoted(table)} ({', '.join(parts)})")


def tables_of(source: duckdb.DuckDBPyConnection) -> Tables:
    """Return the tables of the main schema."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for table, name, type_, _ in source.execute(_COLUMNS).fetchall():
        found[table].append((name, type_))
    return found


def copy_rows(
    source: duckdb.DuckDBPyConnection,
    target: psycopg.Connection[Any],
    schema: str = "public",
    tables: Tables | None = None,
) -> None:
    """Replace the rows of all tables, or of `tables`, by those of the source, in its order."""
    found = tables_of(source) if tables is None else tables
    rows = {table: source.execute(_read(table, columns)).fetchall() for table, columns in found.items()}
    with target.transaction(), target.cursor() as cursor:
        places = [f"{_quoted(schema)}.{_quoted(table)}" for table in found]
        # In this order no foreign key is in the way; few rows are deleted faster than a table is truncated.
        cursor.execute("; ".join(f"DELETE FROM {place}" for place in reversed(places)).encode())
        for place, lines in zip(places, rows.values(), strict=True):
            if lines:
                with cursor.copy(f"COPY {place} FROM STDIN".encode()) as copy:
                    for line in lines:
                        copy.write_row(line)


def keep_representable(source: duckdb.DuckDBPyConnection, tables: Tables | None = None) -> None:
    """Change the rows to those that the copy has: what Postgres cannot hold, neither engine has then.

    `tables`: those of the source, where they are known.
    """
    for table, columns in (tables_of(source) if tables is None else tables).items():
        changed = {_quoted(name): made for name, type_ in columns if (made := _representable(name, type_))}
        if changed:
            values = ", ".join(f"{name} = {value}" for name, (value, _) in changed.items())
            where = " OR ".join(is_beyond for _, is_beyond in changed.values())
            source.execute(f"UPDATE {_quoted(table)} SET {values} WHERE {where}")


def _representable(name: str, type_: str) -> tuple[str, str] | None:
    """Return a column as the copy has it, and what is true of a row where that is another value; None where none is."""
    name = _quoted(name)
    if type_ == "VARCHAR":
        return f"replace({name}, chr(0), '')", f"contains({name}, chr(0))"
    if type_ not in _RANGES:
        return None
    low, high = (f"CAST('{end}' AS {type_})" for end in _RANGES[type_])
    least, most = (f"CAST('{end}' AS {type_})" for end in ("-infinity", "infinity"))
    inside = f"CASE WHEN {name} < {low} THEN {least} WHEN {name} > {high} THEN {most} ELSE {name} END"
    return inside, f"{name} < {low} OR {name} > {high}"


def _read(table: str, columns: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(_value(_quoted(name), type_) for name, type_ in columns)
    return f"SELECT {shown} FROM {_quoted(table)} ORDER BY rowid"


def _type(target: psycopg.Connection[Any], schema: str, type_: str) -> str:
    if not type_.startswith("ENUM("):
        return _TYPES.get(type_, type_)
    name = f"{_quoted(schema)}.{_quoted('enum_' + hashlib.sha256(type_.encode()).hexdigest()[:8])}"
    _run(
        target,
        f"DO $x$ BEGIN CREATE TYPE {name} AS {type_}; EXCEPTION WHEN duplicate_object THEN NULL; END $x$",
    )
    return name


def _value(name: str, type_: str) -> str:
    if type_ == "VARCHAR":
        return f"replace({name}, chr(0), '')"
    if type_ == "BLOB":
        return f"'\\x' || hex({name})"
    if type_ in _RANGES:
        shown = f"replace(CAST({name} AS VARCHAR), ' (BC)', ' BC')"
        low, high = (f"CAST('{end}' AS {type_})" for end in _RANGES[type_])
        return (
            f"CASE WHEN {name} < {low} THEN '-infinity' WHEN {name} > {high} THEN 'infinity' ELSE {shown} END"
        )
    return f"CAST({name} AS VARCHAR)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _run(target: psycopg.Connection[Any], statement: str) -> None:
    target.execute(statement.encode())

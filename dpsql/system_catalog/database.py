"""The sealed engine that holds the catalog's relations: in memory, one thread, no way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ..errors import EngineFailure
from ..seal import seal
from .builtin import Builtin
from .relations import HELPERS

__all__ = ["CATALOG", "HELPER", "open_database"]

CATALOG, HELPER = "c", "h"
"""The engine's schemas: of pg_catalog's relations, and of the tables that functions look in."""

_Tables = dict[str, list[tuple[Any, ...]]]
_MEMORY_MIB = 256


def open_database(
    rows: _Tables, helpers: _Tables, builtin: Builtin
) -> tuple[duckdb.DuckDBPyConnection, frozenset[str]]:
    """Return the engine with everything in it, and the names of the relations that have rows.

    `rows`, `helpers`: what `relations` makes. Raises EngineFailure.
    """
    database = duckdb.connect(":memory:")
    try:
        database.execute(f"CREATE SCHEMA {CATALOG}; CREATE SCHEMA {HELPER}")
        for name, found in rows.items():
            columns = builtin.relations["pg_catalog", name].columns
            shape = ", ".join(f'"{column}" {type_.holder}' for column, type_, *_ in columns)
            holders = [type_.holder for _, type_, *_ in columns]
            _fill(database, f"{CATALOG}.{name}", shape, holders, found)
        for name, found in helpers.items():
            holders = [column.split()[1] for column in HELPERS[name].split(", ")]
            _fill(database, f"{HELPER}.{name}", HELPERS[name], holders, found)
        seal(database, _MEMORY_MIB, {"max_expression_depth": 500})
    except duckdb.Error as error:
        database.close()
        raise EngineFailure(f"the system catalog cannot be made: {error}") from error
    return database, frozenset(rows)


def _fill(
    database: duckdb.DuckDBPyConnection,
    table: str,
    shape: str,
    holders: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    database.execute(f"CREATE TABLE {table} ({shape})")
    if not rows:
        return
    # A column that is one value throughout (most are) is written as a constant; the first one never is.
    parts: list[str] = []
    values: list[Any] = []
    for holder, column in zip(holders, zip(*rows, strict=True), strict=True):
        first = column[0]
        if parts and all(value is None for value in column):
            parts.append(f"CAST(NULL AS {holder})")
            continue
        is_constant = bool(parts) and not isinstance(first, list) and all(value == first for value in column)
        values.append(first if is_constant else list(column))
        place = f"${len(values)}"
        parts.append(f"CAST({place if is_constant else f'unnest({place})'} AS {holder})")
    database.execute(f"INSERT INTO {table} SELECT {', '.join(parts)}", values)

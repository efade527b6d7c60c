"""Empty DuckDBs and sealed engines that many tests use one after another: to open one takes longer than many tests do.

House rule: what a test left is looked for in the catalog and in what is set, and a database that cannot be emptied is
closed, never handed on. Who makes macros (to look for them takes as long as to open a database), or sets what is not
listed here for a whole database, opens one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

import duckdb

from dpsql.backends.duckdb_backend import MEANING
from dpsql.postprocess import SealedEngine

__all__ = ["empty_duckdb", "warm_sealed"]

_MOST_IDLE = 4

_MADE = (
    "SELECT 'VIEW', schema_name, view_name, view_oid FROM duckdb_views() WHERE NOT internal AND NOT temporary",
    "SELECT 'TABLE', schema_name, table_name, table_oid FROM duckdb_tables() WHERE NOT internal AND NOT temporary",
    "SELECT 'SEQUENCE', schema_name, sequence_name, sequence_oid FROM duckdb_sequences() WHERE NOT temporary",
    "SELECT 'TYPE', schema_name, type_name, type_oid FROM duckdb_types() WHERE NOT internal AND database_name = 'memory'",
    "SELECT 'SCHEMA', '', schema_name, oid FROM duckdb_schemas()"
    " WHERE NOT internal AND database_name = 'memory' AND schema_name <> 'main'",
)
"""What can be made in a database, in the order in which it is dropped: kind, schema, name, and when it was made."""

_SET = (
    *MEANING,
    "threads",
    "memory_limit",
    "preserve_insertion_order",
    "disabled_optimizers",
    "enable_external_access",
)
_STATE = f"""
SELECT (SELECT list(database_name ORDER BY 1) FROM duckdb_databases()),
       {", ".join(f"current_setting('{name}')" for name in _SET)}"""


class _Kept:
    """One database, with what was set and attached when it was new."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self._new = self._state()

    def is_emptied(self) -> bool:
        """Drop all that was made; say whether nothing is left, and the database is as it was when it was new."""
        with suppress(duckdb.Error):
            for made in _MADE:
                found = self.database.execute(f"{made} ORDER BY 4 DESC").fetchall()
                for kind, schema, name, _ in found:
                    path = ".".join(
                        f'"{part.replace(chr(34), chr(34) * 2)}"' for part in (schema, name) if part
                    )
                    self.database.execute(f"DROP {kind} {path}")
            left = self.database.execute(" UNION ALL ".join(_MADE)).fetchall()
            return not left and self._state() == self._new
        return False

    def _state(self) -> list[tuple[object, ...]]:
        return self.database.execute(_STATE).fetchall()


_idle: list[_Kept] = []


@contextmanager
def empty_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to an empty DuckDB in memory, that no one else has."""
    kept = _idle.pop() if _idle else _Kept()
    connection = kept.database.cursor()
    try:
        yield connection
    finally:
        connection.close()
        if len(_idle) < _MOST_IDLE and kept.is_emptied():
            _idle.append(kept)
        else:
            kept.database.close()


class _Warm(SealedEngine):
    def close(self) -> None:
        """Stay: whoever closes it shares it with others."""


@cache
def warm_sealed() -> SealedEngine:
    """Return one sealed engine for all datasets of this process: it keeps nothing between statements."""
    return _Warm()

"""Puts rows into a table of DuckDB by one statement: one for each row costs ten times as much as what is tested."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

__all__ = ["insert", "insert_texts"]


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]], columns: str = "*"
) -> None:
    """Put rows into a table, in their order, each value cast to its column's type. `columns`: those that are given."""
    if not rows:
        return
    types = [kind for _, kind, *_ in connection.execute(f"SELECT {columns} FROM {table} LIMIT 0").description]
    cells = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in types)
    into = table if columns == "*" else f"{table} ({columns})"
    connection.execute(f"INSERT INTO {into} SELECT {cells}", [list(one) for one in zip(*rows, strict=True)])


def insert_texts(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[str | None]]
) -> None:
    """Put rows into a table, each value as a text says it, as `insert` does."""
    if rows:
        cells = ", ".join(["unnest(CAST(? AS VARCHAR[]))"] * len(rows[0]))
        connection.execute(
            f"INSERT INTO {table} SELECT {cells}", [list(one) for one in zip(*rows, strict=True)]
        )

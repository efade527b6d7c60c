"""What would make an owner's Postgres faster: an index on the column that says whose a row is."""

from __future__ import annotations

from collections.abc import Iterable

from ..relation.catalog import Catalog
from . import Snapshot
from .deployment import Finding, Severity
from .postgres_schema import path_of

__all__ = ["missing_indexes"]

_LARGE = 100_000
"""Rows from which on an index is worth its place, by the catalog's own estimate; none before the first ANALYZE."""

_UNINDEXED = f"""
SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
  pg_catalog.quote_ident(a.attname)
FROM ROWS FROM (pg_catalog.unnest(CAST($1 AS text[])), pg_catalog.unnest(CAST($2 AS text[])),
  pg_catalog.unnest(CAST($3 AS text[]))) AS w (space, name, shown)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = w.space
JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name AND c.relkind = 'r'
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = w.shown AND NOT a.attisdropped
WHERE c.reltuples >= {_LARGE} AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL
    AND i.indkey[0] = a.attnum)
ORDER BY 1, 2"""


def missing_indexes(snapshot: Snapshot, catalog: Catalog) -> list[Finding]:
    """Return a line for each large table whose rows' owners no index lists. Reads the catalog alone, never a row.

    Raises EngineFailure.
    """
    asked = [
        (*path_of(table.name), table.unit.columns[0])
        for table in catalog.tables.values()
        if table.unit is not None and not table.unit.is_unique
    ]
    columns = [list(column) for column in zip(*asked, strict=True)]
    rows = (row for chunk in snapshot.run(_UNINDEXED, columns) for row in chunk) if asked else ()
    return list(_advised(rows))


def _advised(rows: Iterable[tuple[str, ...]]) -> Iterable[Finding]:
    for table, column in rows:
        yield Finding(
            Severity.WARNING,
            f"no index on {table} begins with {column}, by which each statement counts a person's rows",
            f"CREATE INDEX ON {table} ({column})",
        )

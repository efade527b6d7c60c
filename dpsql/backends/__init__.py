"""The owner's database behind one small protocol: introspect the schema, run one SELECT, give exact rows.

A backend decides nothing: it runs what the planner printed, inside one read-only snapshot.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING

from ..policy.model import ENGINES, FILES
from .backend import Backend, Finding, Snapshot, refuse_unsafe, unknown_url
from .duckdb_backend import DuckDBBackend, DuckDBCopy

if TYPE_CHECKING:
    from ..policy.model import CopySource, FileSources
    from .postgres_backend import PostgresBackend

__all__ = [
    "Backend", "DuckDBBackend", "Finding", "PostgresBackend", "Snapshot", "open_backend", "refuse_unsafe",
]  # fmt: skip


def open_backend(
    url: str,
    tables: Collection[str] | None = None,
    files: FileSources | None = None,
    *,
    is_recorded: bool = True,
    copied: CopySource | None = None,
) -> Backend:
    """Return the backend for a policy's `database` URL: `duckdb:` and a file, or `postgresql://…`.

    `tables`: the names that the policy declares; None: whatever is there. `files`: the policy's, where its tables are
    files, or on Spark: as they were recorded, or, not `is_recorded`, as they are now. `copied`: where a copy of a file
    is asked. Nothing is opened yet. Raises PolicyError for a URL of another kind, or with a password.
    """
    if files is not None and url == FILES:
        # with what reads Parquet's own words, which no other database needs
        from .duckdb_files import DuckDBFiles

        return DuckDBFiles(files, is_recorded=is_recorded)
    if copied is not None:
        return DuckDBCopy(copied)
    module, _, name = ENGINES.get(url.partition(":")[0], "").partition(":")
    if not module:
        raise unknown_url()
    opened = getattr(import_module(module), name)
    recorded = {} if files is None else {"files": files, "is_recorded": is_recorded}
    backend: Backend = opened.of(url, tables, **recorded)
    return backend


def __getattr__(name: str) -> type[PostgresBackend]:
    """Import Postgres' driver when it is first asked for: it takes as long as all the rest."""
    if name != "PostgresBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .postgres_backend import PostgresBackend

    return PostgresBackend

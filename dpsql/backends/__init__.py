"""The owner's database behind one small protocol: introspect the schema, run one SELECT, give exact rows.

A backend decides nothing: it runs what the planner printed, inside one read-only snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError
from ..policy.live_schema import LiveSchema
from .deployment import Finding, refuse_unsafe
from .duckdb_backend import DuckDBBackend

if TYPE_CHECKING:
    from .postgres_backend import PostgresBackend

__all__ = [
    "Backend", "DuckDBBackend", "Finding", "PostgresBackend", "Snapshot", "open_backend", "refuse_unsafe",
]  # fmt: skip


class Snapshot(Protocol):
    """One read-only transaction: everything it returns is of one moment."""

    def schema(self) -> LiveSchema:
        """Return the live schema. Raises EngineFailure."""
        ...

    def run(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT; yield its rows in chunks, integers exact. Raises EngineFailure."""
        ...

    def columns(self, sql: str) -> list[tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """Run one SELECT; return its columns as arrays, each with where it is NULL. Raises EngineFailure."""
        ...

    def cancel(self) -> None:
        """Stop what this snapshot runs, from any thread: the running call raises EngineFailure 57014."""
        ...


class Backend(Protocol):
    """An engine. `dialect` is the name that the printer knows it by."""

    @property
    def dialect(self) -> str:
        """Return the dialect's name: `duckdb` or `postgres`."""
        ...

    def snapshot(self, owner: object = None) -> AbstractContextManager[Snapshot]:
        """Open one read-only transaction for the time of a `with` block; `owner`: whose it is, for `cancel`.

        Raises EngineFailure.
        """
        ...

    def cancel(self, owner: object = None) -> None:
        """Stop the running statements of an owner, or all of them, from any thread."""
        ...

    def close_idle(self) -> bool:
        """Let go of the database if no snapshot is open; say whether it is let go."""
        ...

    def findings(self) -> list[Finding]:
        """Return what is wrong around the database, for the owner: rights beyond reading. Raises EngineFailure."""
        ...


def open_backend(url: str, tables: Collection[str] | None = None) -> Backend:
    """Return the backend for a policy's `database` URL: `duckdb:` and a file, or `postgresql://…`.

    `tables`: the names that the policy declares; None: whatever is there. Nothing is opened yet. Raises
    PolicyError for a URL of another kind, or with a password.
    """
    if url.startswith(("postgresql://", "postgres://")):
        from .postgres_backend import PostgresBackend

        return PostgresBackend(url, tables)
    scheme, _, rest = url.partition(":")
    if scheme != "duckdb" or not rest or rest.startswith(":"):
        raise PolicyError(
            'database: unknown kind of URL; write "duckdb:<file>" or postgresql://user@host/database'
        )
    return DuckDBBackend(Path(rest))


def __getattr__(name: str) -> type[PostgresBackend]:
    """Import Postgres' driver when it is first asked for: it takes as long as all the rest."""
    if name != "PostgresBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .postgres_backend import PostgresBackend

    return PostgresBackend

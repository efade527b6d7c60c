"""What an engine has to do: the protocol of all backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import PolicyError
from ..policy.live_schema import LiveSchema
from .deployment import Finding

__all__ = ["CHUNK_ROWS", "Backend", "Snapshot", "implements", "unknown_url"]

_T = TypeVar("_T", bound=type)
CHUNK_ROWS = 65536


class Snapshot(Protocol):
    """One read-only transaction: everything it returns is of one moment."""

    def schema(self) -> LiveSchema:
        """Return the live schema. Raises EngineFailure."""
        ...

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = CHUNK_ROWS
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT; yield its rows in chunks of `size`, integers exact. Raises EngineFailure."""
        ...

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one SELECT of the engine's own catalog, which reads no row of a table. Raises EngineFailure.

        Of Spark nothing is asked: what its tables are is recorded.
        """
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
        """Return the dialect's name: `duckdb`, `postgres` or `spark`."""
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


def implements(protocol: type) -> Callable[[_T], _T]:
    """Return the decorator of a class that has all of a protocol: what it forgets is an error when it is made."""

    def checked(cls: _T) -> _T:
        missing = [name for name in vars(protocol) if not name.startswith("_") and not hasattr(cls, name)]
        if missing:
            raise TypeError(f"{cls.__name__} does not have: {', '.join(missing)}")
        return cls

    return checked


def unknown_url() -> PolicyError:
    """Return the error of a `database` URL that no engine opens."""
    return PolicyError(
        'database: unknown kind of URL; write "duckdb:<file>", postgresql://user@host/database or spark://host:port'
    )

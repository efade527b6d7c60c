"""What an engine has to do: the protocol of all backends, and how another thread stops one of its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import EngineFailure, PolicyError
from ..policy.live_schema import LiveSchema
from ..records import dataclass
from ..waits import acquire

# --- what is wrong around a database that a backend is to serve: rights that dpsql's role should not have ---


class Severity(Enum):
    """An error keeps a database from being served; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence for the owner, and the SQL that mends it ("" where there is none)."""

    severity: Severity
    sentence: str
    fix: str = ""

    def to_text(self) -> str:
        """Return the finding as a line for the owner: `database: …; run …`."""
        return f"database: {self.sentence}{f'; run {self.fix}' if self.fix else ''}"


def refuse_unsafe(findings: Sequence[Finding]) -> None:
    """Raise PolicyError with all errors among the findings, and with the SQL that mends them as the hint."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return
    sentences = "; ".join(finding.sentence for finding in errors)
    fixes = list(dict.fromkeys(finding.fix for finding in errors if finding.fix))
    raise PolicyError(f"database: {sentences}", hint="run " + "\n      ".join(fixes) if fixes else None)


# --- what an engine has to do: the protocol of all backends -------------------------------------------------


_T = TypeVar("_T", bound=type)
CHUNK_ROWS = 65536


class Snapshot(Protocol):
    """One read-only transaction: everything it returns is of one moment."""

    def schema(self) -> LiveSchema:
        """Return the live schema. Raises EngineFailure."""
        ...

    def run(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run one SELECT; yield its rows in chunks of `size`, integers exact. Raises EngineFailure.

        `is_direct`: what it groups by is in a range that its text has, and the engine may group by a place for each.
        """
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


# --- an engine's calls, one at a time, each of which another thread can stop; and whose they are ------------


_Result = TypeVar("_Result")
_PAUSES = (0.01, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.1, 0.2, 0.2, 0.2)


class Stoppable:
    """Runs calls of one connection; after `cancel`, every call fails with SQLSTATE 57014."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        """`interrupt` asks the engine to stop what it runs now, from any thread; it never raises."""
        self._interrupt = interrupt
        self._cancelled = threading.Event()
        self._at_rest = threading.Event()
        self._at_rest.set()
        self._cancelling = threading.RLock()
        self._is_closed = False

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called before `close`."""
        return self._cancelled.is_set()

    def call(self, action: Callable[[], _Result]) -> _Result:
        """Return what the action returns; it raises EngineFailure and nothing else of the engine's."""
        self._at_rest.clear()
        try:
            if not self._cancelled.is_set():
                result = action()
            if self._cancelled.is_set():
                raise EngineFailure("cancelled", sqlstate="57014")
            return result
        except EngineFailure:
            if not self._cancelled.is_set():
                raise
        finally:
            self._at_rest.set()
        raise EngineFailure("cancelled", sqlstate="57014")

    def cancel(self) -> None:
        """Stop what runs, from any thread.

        An engine forgets an interrupt that comes just before a statement starts, so it is repeated until
        the engine rests, for at most a second.
        """
        with self._cancelling:
            if self._is_closed:
                return
            self._cancelled.set()
            for pause in _PAUSES:
                self._interrupt()
                if self._at_rest.wait(pause):
                    return

    def close(self) -> None:
        """Wait for a `cancel` that is under way; later ones do nothing."""
        with self._cancelling:
            self._is_closed = True


class _Closing(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closing)


class Pool(Generic[C]):
    """Connections to one server, made by the statements that need them, and kept while they are sound."""

    def __init__(
        self,
        make: Callable[[], C],
        is_sound: Callable[[C], bool],
        keeps: Callable[[C], bool],
        what: str,
        *,
        most: int,
        kept: int,
        seconds: float,
    ) -> None:
        """`is_sound`: whether one that was kept can be used; `keeps`: whether one that was used is kept, of `kept`.

        `what`: what they are called, of which there are `most` at a time; `seconds`: how long is waited for one.
        """
        self._make, self._is_sound, self._keeps = make, is_sound, keeps
        self._what, self._most, self._kept, self._seconds = what, most, kept, seconds
        self.idle: list[C] = []
        self._users = 0
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(most)

    @contextmanager
    def one(self) -> Iterator[C]:
        """Give one for one use. Raises what `make` and `is_sound` raise; EngineFailure where none is free, Stopped."""
        with self._lock:
            self._users += 1
        try:
            if not acquire(self._places, self._seconds, f"a free {self._what}"):
                raise EngineFailure(f"busy: all {self._most} {self._what}s are in use")
            try:
                connection = self._sound() or self._make()
                try:
                    yield connection
                finally:
                    self._returned(connection)
            finally:
                self._places.release()
        finally:
            with self._lock:
                self._users -= 1

    def close(self) -> bool:
        """Close all if nobody uses one; say whether they are closed."""
        with self._lock:
            if self._users:
                return False
            idle = self.idle[:]
            self.idle.clear()
        for connection in idle:
            connection.close()
        return True

    def _sound(self) -> C | None:
        """Return one that was used last of those that are sound; the others may rest."""
        while True:
            with self._lock:
                connection = self.idle.pop() if self.idle else None
            if connection is None:
                return None
            is_sound = False
            try:
                is_sound = self._is_sound(connection)
            finally:
                if not is_sound:
                    connection.close()
            if is_sound:
                return connection

    def _returned(self, connection: C) -> None:
        with self._lock:
            if self._keeps(connection) and len(self.idle) < self._kept:
                self.idle.append(connection)
                return
        connection.close()


class OpenSnapshots:
    """The open snapshots of a backend, each with whose it is; safe to use from several threads."""

    def __init__(self) -> None:
        self._owners: dict[Snapshot, object] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._owners)

    def add(self, snapshot: Snapshot, owner: object) -> None:
        """Have `cancel` reach a snapshot."""
        with self._lock:
            self._owners[snapshot] = owner

    def remove(self, snapshot: Snapshot) -> None:
        """Have `cancel` reach it no more."""
        with self._lock:
            del self._owners[snapshot]

    def cancel(self, owner: object = None) -> None:
        """Stop what an owner's snapshots run, or all of them, from any thread."""
        with self._lock:
            running = [one for one, whose in self._owners.items() if owner is None or whose is owner]
        for snapshot in running:
            snapshot.cancel()


@implements(Snapshot)
class _Schema:
    def __init__(self, live: LiveSchema) -> None:
        self._live = live

    def schema(self) -> LiveSchema:
        """Return the schema that is known."""
        return self._live

    def run(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        size: int = CHUNK_ROWS,
        *,
        is_direct: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Never run anything."""
        _unread()

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        """Never run anything."""
        _unread()

    def columns(self, sql: str) -> NoReturn:
        """Never run anything."""
        _unread()

    def cancel(self) -> None:
        """Do nothing: nothing runs."""


@implements(Backend)
class SchemaOnly:
    """A backend for plans alone."""

    def __init__(self, live: LiveSchema) -> None:
        self._live = live

    @property
    def dialect(self) -> str:
        """The engine's, of which the schema is."""
        return self._live.dialect

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Snapshot]:
        """Open nothing."""
        yield _Schema(self._live)

    def cancel(self, owner: object = None) -> None:
        """Do nothing: nothing runs."""

    def close_idle(self) -> bool:
        """Nothing is held."""
        return True

    def findings(self) -> list[Finding]:
        """Nothing is known of rights."""
        return []


def _unread() -> NoReturn:
    raise AssertionError("a plan reads no row")

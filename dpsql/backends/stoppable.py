"""An engine's calls, one at a time, each of which another thread can stop; and whose they are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import EngineFailure
from .backend import Snapshot

__all__ = ["OpenSnapshots", "Stoppable"]

_T = TypeVar("_T")
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

    def call(self, action: Callable[[], _T]) -> _T:
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

"""The watchdog: one thread for the process that interrupts statements whose time is up.

A thread for every statement would cost more than the statement. An interrupt between two steps of a
statement is lost, so a statement that is late, or cancelled, is interrupted again on every patrol until it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Watch", "interrupt_after"]

_PATROL_SECONDS = 0.05


class Interruptible(Protocol):
    """What can be told from another thread to give up."""

    def interrupt(self) -> None: ...


@dataclass(eq=False, slots=True)
class Watch:
    """One statement under watch; `is_late`: it was interrupted since its time was up, not cancelled."""

    statement: Interruptible
    deadline: float
    is_late: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Interrupt the statement until it ends, from any thread. Requires: its block has not ended."""
        self.is_cancelled = True
        self.statement.interrupt()

    def patrol(self, now: float) -> None:
        """Interrupt the statement if it has to end."""
        self.is_late = self.is_late or (now >= self.deadline and not self.is_cancelled)
        if self.is_late or self.is_cancelled:
            self.statement.interrupt()


@contextmanager
def interrupt_after(statement: Interruptible, seconds: float) -> Iterator[Watch]:
    """Interrupt `statement` when the block takes more than `seconds` (to within 0.05).

    Ensures: `interrupt` is never called by the watchdog after the block has ended.
    """
    watch = Watch(statement, time.monotonic() + seconds)
    _WATCHDOG.add(watch)
    try:
        yield watch
    finally:
        _WATCHDOG.remove(watch)


class _Watchdog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._busy = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        with self._lock:
            self._watches.add(watch)
            self._busy.set()
            if self._thread is None or not self._thread.is_alive():  # none yet, or lost in a fork
                self._thread = threading.Thread(target=self._patrol, name="dpsql-watchdog", daemon=True)
                self._thread.start()

    def remove(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)

    def _patrol(self) -> None:
        while self._busy.wait():
            time.sleep(_PATROL_SECONDS)
            self._interrupt_late()

    def _interrupt_late(self) -> None:
        """Do one round; a function of its own, so that no statement is kept alive between rounds."""
        now = time.monotonic()
        with self._lock:
            for watch in self._watches:
                watch.patrol(now)
            if not self._watches:
                self._busy.clear()


_WATCHDOG = _Watchdog()

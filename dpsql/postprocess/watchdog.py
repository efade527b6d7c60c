"""The watchdog: one thread for the process that interrupts statements whose time is up.

A thread for every statement would cost more than the statement. An interrupt between two steps of a
statement is lost, so a statement that is late is interrupted again on every patrol until it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["interrupt_after"]

_PATROL_SECONDS = 0.05


class Interruptible(Protocol):
    """What can be told from another thread to give up."""

    def interrupt(self) -> None: ...


@contextmanager
def interrupt_after(statement: Interruptible, seconds: float) -> Iterator[None]:
    """Interrupt `statement` when the block takes more than `seconds` (to within 0.05).

    Ensures: `interrupt` is never called after the block has ended.
    """
    _WATCHDOG.add(statement, time.monotonic() + seconds)
    try:
        yield
    finally:
        _WATCHDOG.remove(statement)


class _Watchdog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, tuple[Interruptible, float]] = {}
        self._busy = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, statement: Interruptible, deadline: float) -> None:
        with self._lock:
            self._deadlines[id(statement)] = (statement, deadline)
            self._busy.set()
            if self._thread is None or not self._thread.is_alive():  # none yet, or lost in a fork
                self._thread = threading.Thread(target=self._patrol, name="dpsql-watchdog", daemon=True)
                self._thread.start()

    def remove(self, statement: Interruptible) -> None:
        with self._lock:
            del self._deadlines[id(statement)]

    def _patrol(self) -> None:
        while self._busy.wait():
            time.sleep(_PATROL_SECONDS)
            self._interrupt_late()

    def _interrupt_late(self) -> None:
        """Do one round; a function of its own, so that no statement is kept alive between rounds."""
        now = time.monotonic()
        with self._lock:
            for statement, deadline in self._deadlines.values():
                if now >= deadline:
                    statement.interrupt()
            if not self._deadlines:
                self._busy.clear()


_WATCHDOG = _Watchdog()

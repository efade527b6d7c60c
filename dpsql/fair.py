"""Turns at something that few may do at once: shared between those who wait, and not by who waits most often."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import EngineFailure

__all__ = ["FairTurns"]

_LOOK_SECONDS = 0.05


class FairTurns:
    """At most `most` turns at once, `each` of one owner; who was served longest ago is the next. Safe for threads."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def turn(self, owner: str, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn, and have it until the block ends. Raises EngineFailure (57014): cancelled meanwhile."""
        turn = threading.Event()
        with self._lock:
            self._waiting.setdefault(owner, deque()).append(turn)
            self._admit()
        try:
            while not turn.is_set() and not turn.wait(_LOOK_SECONDS):
                if is_cancelled():
                    raise EngineFailure("cancelled", sqlstate="57014")
            yield
        finally:
            with self._lock:
                self._leave(owner, turn)
                self._admit()

    def _admit(self) -> None:
        """Give out the turns that there are."""
        while sum(self._running.values()) < self._most:
            ready = (one for one in self._waiting if self._running.get(one, 0) < self._each)
            owner = next(ready, None)
            if owner is None:
                return
            queue = self._waiting[owner]
            queue.popleft().set()
            self._running[owner] = self._running.get(owner, 0) + 1
            self._waiting.move_to_end(owner)
            if not queue:
                del self._waiting[owner]

    def _leave(self, owner: str, turn: threading.Event) -> None:
        if turn.is_set():
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]
            return
        queue = self._waiting[owner]
        queue.remove(turn)
        if not queue:
            del self._waiting[owner]

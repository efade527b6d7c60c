"""Turns at something that few may do at once: shared between those who wait, and not by who waits most often."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .errors import EngineFailure

__all__ = ["Turn", "Turns"]

_LOOKS = 0.05
"""Seconds after which who waits looks whether it is cancelled."""


@dataclass(eq=False, slots=True)
class Turn:
    """Somebody's place among those that wait, and then its turn."""

    turns: Turns
    owner: str
    cancelled: Callable[[], bool]
    come: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let others have the turn within the block, and wait for another after it. Raises EngineFailure (57014)."""
        self.turns.leave(self)
        try:
            yield
        finally:
            self.turns.wait(self)


class Turns:
    """At most `total` turns at once, `each` of one owner; None: as many as there are."""

    def __init__(self, total: int | None, each: int | None) -> None:
        self._total, self._each = total, each
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        self._held: dict[str, int] = {}

    @contextmanager
    def turn(self, owner: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have a turn within the block. Raises EngineFailure (57014): cancelled before it came."""
        turn = Turn(self, owner, cancelled)
        self.wait(turn)
        try:
            yield turn
        finally:
            self.leave(turn)

    def wait(self, turn: Turn) -> None:
        """Wait for a turn. Raises EngineFailure (57014), and then `leave` does nothing."""
        with self._lock:
            self._waiting.setdefault(turn.owner, deque()).append(turn)
            self._grant()
        while not turn.come.wait(_LOOKS):
            if turn.cancelled():
                with self._lock:
                    if not turn.come.is_set():
                        self._forget(turn)
                        raise EngineFailure("cancelled while it waited for its turn", sqlstate="57014")

    def leave(self, turn: Turn) -> None:
        """Give a turn up, if it has come."""
        with self._lock:
            if not turn.come.is_set():
                return
            turn.come.clear()
            self._held[turn.owner] -= 1
            if not self._held[turn.owner]:
                del self._held[turn.owner]
            self._grant()

    def _forget(self, turn: Turn) -> None:
        waiting = self._waiting[turn.owner]
        waiting.remove(turn)
        if not waiting:
            del self._waiting[turn.owner]

    def _grant(self) -> None:
        """Give what turns there are: to each owner one, in order, whoever had one last behind all others."""
        while (owner := self._next()) is not None:
            waiting = self._waiting.pop(owner)
            turn = waiting.popleft()
            if waiting:
                self._waiting[owner] = waiting  # behind all others
            self._held[owner] = self._held.get(owner, 0) + 1
            turn.come.set()

    def _next(self) -> str | None:
        if self._total is not None and sum(self._held.values()) >= self._total:
            return None
        return next(
            (one for one in self._waiting if self._each is None or self._held.get(one, 0) < self._each), None
        )

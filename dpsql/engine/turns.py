"""Turns of what a server computes: whose is next goes round the analysts, however many connections each has.

House rules:

1. A turn is held while the interpreter or an engine computes for one statement. Nothing that waits for something else
   is done within a planning turn (`Turn.paused`).
2. Order and length of turns depend on texts, public rows and released values alone, as their work does: no turn is held
   while the owner's engine reads private rows.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from ..errors import EngineFailure

__all__ = ["StatementTurns", "Turn", "Turns"]

_LONG = 4_000
"""Characters from which on a statement is planned among the long ones, for which no short one waits."""
_LOOKS = 0.1
"""Seconds after which who waits looks whether it is cancelled."""


@dataclass(eq=False, slots=True)
class Turn:
    """One statement's place among those that wait, and then its turn."""

    turns: Turns
    analyst: str
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
    """At most `total` turns at once, `each` of one analyst; None: as many as there are."""

    def __init__(self, total: int | None, each: int | None) -> None:
        self._total, self._each = total, each
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        self._held: dict[str, int] = {}

    @contextmanager
    def turn(self, analyst: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have a turn within the block. Raises EngineFailure (57014): cancelled before it came."""
        turn = Turn(self, analyst, cancelled)
        self.wait(turn)
        try:
            yield turn
        finally:
            self.leave(turn)

    def wait(self, turn: Turn) -> None:
        """Wait for a turn. Raises EngineFailure (57014), and then `leave` does nothing."""
        with self._lock:
            self._waiting.setdefault(turn.analyst, deque()).append(turn)
            self._grant()
        while not turn.come.wait(_LOOKS):
            if turn.cancelled():
                with self._lock:
                    if not turn.come.is_set():
                        self._forget(turn)
                        raise EngineFailure("cancelled before anything was charged", sqlstate="57014")

    def leave(self, turn: Turn) -> None:
        """Give a turn up, if it has come."""
        with self._lock:
            if not turn.come.is_set():
                return
            turn.come.clear()
            self._held[turn.analyst] -= 1
            if not self._held[turn.analyst]:
                del self._held[turn.analyst]
            self._grant()

    def _forget(self, turn: Turn) -> None:
        waiting = self._waiting[turn.analyst]
        waiting.remove(turn)
        if not waiting:
            del self._waiting[turn.analyst]

    def _grant(self) -> None:
        """Give what turns there are: to each analyst one, in order, whoever had one last behind all others."""
        while (analyst := self._next()) is not None:
            waiting = self._waiting.pop(analyst)
            turn = waiting.popleft()
            if waiting:
                self._waiting[analyst] = waiting  # behind all others
            self._held[analyst] = self._held.get(analyst, 0) + 1
            turn.come.set()

    def _next(self) -> str | None:
        if self._total is not None and sum(self._held.values()) >= self._total:
            return None
        return next(
            (one for one in self._waiting if self._each is None or self._held.get(one, 0) < self._each), None
        )


class StatementTurns:
    """The turns of one server: to plan, one short and one long statement at a time; to compute what is free."""

    def __init__(self, public_at_once: int) -> None:
        """`public_at_once`: statements of one analyst that read public rows, or post-process releases."""
        self._short, self._long, self._free = Turns(1, 1), Turns(1, 1), Turns(None, public_at_once)

    def to_plan(self, size: int, analyst: str, cancelled: Callable[[], bool]) -> AbstractContextManager[Turn]:
        """Have the turn to parse and plan a statement of so many characters. Raises EngineFailure (57014)."""
        return (self._long if size > _LONG else self._short).turn(analyst, cancelled)

    def to_compute(self, analyst: str, cancelled: Callable[[], bool]) -> AbstractContextManager[Turn]:
        """Have a turn for what costs nothing. Raises EngineFailure (57014)."""
        return self._free.turn(analyst, cancelled)

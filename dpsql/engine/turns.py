"""Turns of what a server computes: whose is next goes round the analysts, however many connections each has.

House rules:

1. A turn is held while the interpreter or an engine computes for one statement. Nothing that waits for something else
   is done within a planning turn (`Turn.paused`).
2. Order and length of turns depend on texts, public rows and released values alone, as their work does: no turn is held
   while the owner's engine reads private rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from ..fair import Turn, Turns

__all__ = ["StatementTurns"]

_LONG = 4_000
"""Characters from which on a statement is planned among the long ones, for which no short one waits."""


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

"""Turns of what a server computes: whose is next goes round the analysts, however many connections each has.

House rules:

1. A turn is held while the interpreter or an engine computes for one statement. Nothing that waits for something else
   is done within a planning turn (`Turn.paused`).
2. Order and length of turns depend on texts, public rows and released values alone, as their work does: no turn is held
   while the owner's engine reads private rows.
3. A short statement goes before the long work of others (`Precedence`): before long texts, which are planned in pieces,
   and before large answers, which are kept in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ..fair import Pace, Place, Precedence, Turn, Turns
from ..sql.text_process import TextProcess

__all__ = ["LONG", "StatementTurns"]

LONG = 4_000
"""Characters from which on a statement is read and planned among the long ones, for which no short one waits."""
_MUCH = 0.5
"""Seconds that an analyst has taken lately, from which on its long texts are read in another process first."""


class StatementTurns:
    """The turns of one policy: to plan, one short and one long statement at a time; to compute what is free."""

    def __init__(
        self,
        public_at_once: int,
        precedence: Precedence | None = None,
        database: str = "",
        texts: TextProcess | None = None,
    ) -> None:
        """`public_at_once`: statements of one analyst that read public rows, or post-process releases.

        `precedence`: of all that share the interpreter, in which the analysts of this `database` are others than those
        of the same name elsewhere. `texts`: theirs, too; None: all texts are read here.
        """
        self._texts = texts
        self._short, self._long, self._free = Turns(1, 1), Turns(1, 1), Turns(None, public_at_once)
        self._precedence, self._database = precedence or Precedence(), database

    def place(self, analyst: str) -> Place:
        """Return where a statement of an analyst goes ahead of others' long work."""
        return Place(self._precedence, self._name(analyst))

    def pace(self, analyst: str) -> Pace:
        """Return what long work of an analyst is done in."""
        return Pace(self._precedence, self._name(analyst))

    def elsewhere(self, size: int, analyst: str) -> TextProcess | None:
        """Return where a text of so many characters is checked first; None: here, of who has taken little lately."""
        if size <= LONG or self._precedence.taken(self._name(analyst)) < _MUCH:
            return None
        return self._texts

    def _name(self, analyst: str) -> str:
        return f"{self._database} {analyst}"

    @contextmanager
    def to_plan(self, size: int, analyst: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have the turn to parse and plan a statement of so many characters. Raises EngineFailure (57014)."""
        if size <= LONG:
            with self._short.turn(analyst, cancelled) as turn:
                yield turn
            return
        with self._long.turn(analyst, cancelled) as turn, self.pace(analyst).piece():
            yield turn

    def to_compute(self, analyst: str, cancelled: Callable[[], bool]) -> AbstractContextManager[Turn]:
        """Have a turn for what costs nothing. Raises EngineFailure (57014)."""
        return self._free.turn(analyst, cancelled)

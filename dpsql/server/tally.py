"""How many statements were answered and refused since the server began, and how long they took.

House rule: what is counted are kinds, codes and seconds. No text of an analyst, no value, no name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Literal

from .log import Seldom

__all__ = ["SECONDS", "Outcome", "Tally"]

Outcome = Literal["charged", "stored", "public", "catalog"]
"""How a query was answered: with new noise, from the store, without people's rows, from the system catalog."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper ends of the classes in which durations are counted; what took longer is in one more."""


class Tally:
    """Counts of one database. Written by the event loop alone."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.answered: Counter[Outcome] = Counter()
        self.refused: Counter[str] = Counter()
        """By SQLSTATE."""
        self.durations = [0] * (len(SECONDS) + 1)
        """Answered queries by the classes of `SECONDS`, from the client's message to the reply."""
        self.seconds = 0.0
        self._told: dict[tuple[str, str], Seldom] = {}

    def answer(self, outcome: Outcome, seconds: float) -> None:
        """Count a query that was answered."""
        self.answered[outcome] += 1
        self.durations[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

    def refuse(self, sqlstate: str, analyst: str, process_id: int) -> None:
        """Count a statement that was not, and have the owner told: of each analyst and code once in ten seconds."""
        self.refused[sqlstate] += 1
        told = self._told.setdefault((analyst, sqlstate), Seldom("refused"))
        told.log(analyst=analyst, sqlstate=sqlstate, process=process_id, database=self.database)

"""What was read of a ledger last: by it stored answers are given while the ledger is away (soundness.md 3.17).

House rules:

1. Only an answer that is in memory is given so: one that was charged for, stored, and told or about to be.
2. Each is noted, and told to the owner when the ledger is back. Where no more can be noted, none is given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from ..budget import Status
from .answer import GroupNote

__all__ = ["ASK_SECONDS", "LastRead"]

ASK_SECONDS = 1.0
"""How long a statement whose answer is in memory waits for the ledger."""
_LONGEST_SECONDS = 600.0
_PAUSE_SECONDS = 5.0
"""How long after a wait in vain such statements do not wait again."""
_MOST_NOTED = 10_000
_MOST_ANALYSTS = 1_000


class LastRead:
    """What the sessions on one dataset have read of its ledger. Safe for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._statuses: dict[str, Status] = {}
        self._epoch = 0
        self._at = self._failed = -float("inf")
        self._noted: list[tuple[str, str]] = []

    def read(self, analyst: str, status: Status) -> None:
        """Take in what was read now."""
        if len(self._statuses) < _MOST_ANALYSTS or analyst in self._statuses:
            self._statuses[analyst] = status
        self._epoch = max(self._epoch, status.epoch)  # what was read before may come later
        self._at = self._clock()
        self._failed = -float("inf")

    def failed(self) -> None:
        """Take note that the ledger does not answer."""
        self._failed = self._clock()

    def forget(self) -> None:
        """Have nothing be given by it before the ledger is read again: the owner wants another policy."""
        self._statuses, self._at = {}, -float("inf")

    @property
    def is_away(self) -> bool:
        """Whether the ledger did not answer a moment ago."""
        return self._clock() - self._failed < _PAUSE_SECONDS

    def status(self, analyst: str) -> Status | None:
        """Return what an analyst's status was when the ledger was read last; None: never, or too long ago."""
        known = self._statuses.get(analyst)
        if known is None or self._clock() - self._at > _LONGEST_SECONDS or len(self._noted) >= _MOST_NOTED:
            return None
        return known if known.epoch == self._epoch else replace(known, epoch=self._epoch)

    def note(self, analyst: str) -> GroupNote:
        """Take note of an answer that is given so; return what its analyst is told."""
        with self._lock:
            self._noted.append((analyst, datetime.now(UTC).isoformat(timespec="milliseconds")))
        seconds = int(self._clock() - self._at)
        return GroupNote(
            f"the ledger cannot be read now: this is a stored answer, under what was read of it {seconds} s ago, and "
            "less may be left"
        )

    def take_noted(self) -> list[tuple[str, str]]:
        """Return, once, to whom and when answers were given so."""
        with self._lock:
            noted, self._noted = self._noted, []
        return noted

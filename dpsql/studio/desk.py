"""An analyst's desk: a session that asks, and one that only plans while the analyst types.

House rules:

1. One planning at a time, and the last text wins: a newer one stops what is planned, and those between are dropped.
2. The session that plans cannot read a row: where it would open the owner's database, it says so instead.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import NoReturn, TypeVar

from ..dbapi.connection import Schema
from ..engine.answer import Answer
from ..engine.dataset import Dataset, LazySnapshot
from ..engine.session import Session
from ..engine.settings import Settings
from ..errors import EngineFailure
from ..records import dataclass

_T = TypeVar("_T")
_MOST_ASKED = 50
USUAL_LEVEL = Fraction(19, 20)
"""The level of the bars that every answer has here."""


class Unread(Exception):
    """A price depends on public rows, and nothing is read while somebody types."""


class Overtaken(Exception):
    """A newer text came: nobody waits for this one."""


class TypingSession(Session):
    """A session for prices: it raises Unread where another would open the owner's database."""

    @contextmanager
    def snapshot(self) -> Iterator[LazySnapshot]:
        def refuse() -> NoReturn:
            raise Unread

        yield LazySnapshot(refuse, self._cancelled)

    def cancel(self) -> None:
        """Stop what is planned. Nothing else runs here."""
        self._cancelled.set()


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement that was answered here: its number at this desk, its text, when (UTC), and the answer."""

    number: int
    sql: str
    at: str
    answer: Answer


class Desk:
    """One analyst's place at a dataset that others may use too. Any thread may call it.

    `name`: the analyst's, as the ledger has it. `began`: when it was set up.
    """

    def __init__(self, dataset: Dataset, name: str, keeps: int = _MOST_ASKED) -> None:
        """`keeps`: answers that can be seen again."""
        self.dataset, self.name = dataset, name
        self.asking = self._opened(Session)
        self.settings = self.asking.settings.with_usual_bars(USUAL_LEVEL)
        """What the analyst has set."""
        self._typing = self._opened(TypingSession)
        self._asked: deque[Asked] = deque(maxlen=keeps)
        self._numbers, self.began = itertools.count(1), datetime.now(UTC).replace(microsecond=0)
        self._arrivals, self._newest = itertools.count(1), 0
        self._planning, self._running = threading.Lock(), threading.Lock()

    def _opened(self, kind: type[Session]) -> Session:
        """Return a session of this desk's."""
        return kind(self.dataset, self.name, is_shared=True)

    @cached_property
    def _schema(self) -> Schema:
        """What answers SHOW TABLES and DESCRIBE."""
        return Schema(self.asking)

    def _answer(self, sql: str) -> Answer:
        """Answer a statement. Raises DpsqlError."""
        try:
            of_schema = self._schema.answer(sql, ())
            return self.asking.execute(sql) if of_schema is None else of_schema
        finally:
            self.dataset.backend.close_idle()  # while somebody thinks, whoever loads data may

    def _let_go(self) -> None:
        """Close what was opened."""
        self._schema.close()
        self.asking.close()
        self._typing.close()

    def close(self) -> None:
        """Let both sessions go; a statement that runs is stopped, and what it has charged stays spent."""
        while not self._running.acquire(timeout=0.1):
            self.cancel()
        self._running.release()
        self._typing.cancel()
        with self._running, self._planning:
            self._let_go()

    def plan(self, call: Callable[[Session], _T], settings: Settings) -> _T:
        """Return what is planned for the newest text. Raises Overtaken: it is not this one; Unread; DpsqlError."""
        mine = self._newest = next(self._arrivals)
        self._typing.cancel()
        with self._planning:
            if mine != self._newest:
                raise Overtaken
            bars = settings.intervals if settings.draws_ends else None  # usual ones change nothing drawn
            self._typing.settings = replace(settings, intervals=bars)
            try:
                return call(self._typing)
            except EngineFailure as failure:
                if failure.sqlstate == "57014" and mine != self._newest:
                    raise Overtaken from None
                raise

    def look(self, call: Callable[[Session], _T]) -> _T:
        """Return what is asked of the session that plans, in its turn. Raises what the call raises."""
        with self._planning:
            return call(self._typing)

    def under(self, **values: str) -> Settings:
        """Return the settings with some of the page's own controls. Raises Refusal: a value is none."""
        settings = self.settings
        for name, value in values.items():
            settings = settings.set(f"dpsql.{name}", value, self.dataset.policy)
        return settings

    def run(self, sql: str, settings: Settings | None) -> Asked:
        """Answer a statement, one at a time. `settings`: for it alone; None: it sets what holds from here on.

        Raises DpsqlError.
        """
        with self._running:
            self.asking.settings = settings or self.settings
            asked = Asked(next(self._numbers), sql, _now(), self._answer(sql))
            self._asked.append(asked)
            if settings is None:
                self.settings = self.asking.settings
            return asked

    def asked(self, number: int) -> Asked | None:
        """Return an answer that is kept here; None where it is not, or no more."""
        return next((one for one in self.all_asked() if one.number == number), None)

    def all_asked(self) -> list[Asked]:
        """Return the answers that are kept, the newest first."""
        return [*reversed(self._asked.copy())]

    def cancel(self) -> None:
        """Stop the running statement; what it has charged stays spent."""
        self.asking.cancel()
        self._schema.interrupt()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

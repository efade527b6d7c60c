"""A session that the threads of one connection share.

House rules:

1. The session is touched with the lock held, but for `cancel`: one statement runs at a time.
2. What a cursor asks for itself (its error bars) is the session's setting for the time of its statement alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ..engine import Answer, Explanation, Receipt, Session
from ..engine.answer import budget_text
from ..engine.batch import PricedBatch, read_batch, script_of
from ..engine.settings import Settings
from ..policy import Policy
from ..relation.catalog import Catalog
from .errors import InterfaceError, guarded
from .placeholders import ParameterizedStatement, is_setting, read_statement
from .schema import Schema

__all__ = ["Accuracy", "Epsilon", "Level", "Outcome", "SharedSession", "setting_text"]

Epsilon = str | float | Decimal | Fraction | None
"""What a statement may spend."""

Level = float | Decimal | str | None
"""A level of error bars, such as 0.95; None or "off" for none."""

Accuracy = float | Decimal | str | None
"""By how much answers may be off, such as 50 or "2 %"; None or "off" for what an epsilon gives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement that was answered: with which values and under which settings."""

    statement: ParameterizedStatement
    values: tuple[object, ...]
    settings: Settings
    answer: Answer


def setting_text(value: float | Decimal | Fraction | str | None) -> str:
    """Return a setting's value as SET takes it: a number in the digits that were written, None as off."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Fraction) and value.denominator != 1:
        value = Decimal(value.numerator) / Decimal(value.denominator)
    return "off" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


class SharedSession:
    """One session and its lock. Every method may be called from any thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._is_open = True
        self._is_released = False
        self._receipt: Receipt | None = None
        self._schema = Schema(session)

    @property
    def is_open(self) -> bool:
        """Whether `close` has not been called."""
        return self._is_open

    @property
    def receipt(self) -> Receipt | None:
        """What the last answer cost; None before the first."""
        return self._receipt

    @property
    def analyst(self) -> str:
        """Whose statements these are, for the ledger."""
        return self._session.analyst

    @property
    def policy(self) -> Policy:
        """What the owner declared."""
        return self._session.policy

    @property
    def catalog(self) -> Catalog:
        """The declared tables and columns, as the database had them when the session was opened."""
        return self._session.catalog

    @property
    def time_limit(self) -> float | None:
        """Most seconds for post-processing; None for the usual limit."""
        return self._session.time_limit

    @time_limit.setter
    def time_limit(self, seconds: float | None) -> None:
        with self._lock:
            self._session.time_limit = seconds

    @property
    def settings(self) -> Settings:
        """The settings of the statement that runs next."""
        with self._lock:
            return self._session.settings

    def require_open(self) -> None:
        """Raise InterfaceError when the connection is closed."""
        if not self._is_open:
            raise InterfaceError("the connection is closed")

    def run(
        self, statement: ParameterizedStatement, values: tuple[object, ...], own: Mapping[str, str]
    ) -> Outcome:
        """Answer a statement; `own`: settings of its own by name, the rest are the connection's.

        Raises:
            ProgrammingError, NotSupportedError, DataError: refused; nothing was charged.
            OperationalError: the budget is spent (nothing was charged), or what runs below failed.
            InterfaceError: the connection is closed.
        """
        asked = own if own and not is_setting(statement.text) else None
        with self._lock, self._under(asked) as settings:
            answer = guarded(lambda: self._answered(statement.text, values), statement.find)
            self._receipt = answer.receipt or self._receipt
            return Outcome(statement, values, settings, answer)

    def _answered(self, text: str, values: tuple[object, ...]) -> Answer:
        return self._schema.answer(text, values) or self._session.execute(text, values)

    def budget(self) -> str:
        """Return what is spent and what is left, in words. Raises as `run`."""
        with self._lock:
            self.require_open()
            session = self._session
            return guarded(lambda: budget_text(session.budget(), session.policy.defaults.epsilon))

    def explain(
        self, statement: ParameterizedStatement, values: tuple[object, ...], settings: Settings | None
    ) -> Explanation:
        """Return how a query is answered under some settings; None: the connection's. Raises as `run`."""
        with self._lock, self._under(settings):
            return guarded(lambda: self._session.explain(statement.text, values), statement.find)

    def price(self, statements: str | Sequence[str], epsilon: Fraction | None) -> PricedBatch:
        """Return what a batch would cost. Raises as `run`."""
        with self._lock:
            self.require_open()
            return guarded(lambda: self._session.price(statements, epsilon=epsilon))

    def release(self, statements: str | Sequence[str], epsilon: Fraction | None) -> list[Outcome]:
        """Answer a batch, all of it or nothing. Raises as `run`."""
        with self._lock:
            self.require_open()
            session, script = self._session, script_of(statements)
            answers = guarded(lambda: session.release(script, epsilon=epsilon))
            read = read_batch(session, script)
            self._receipt = next((one.receipt for one in reversed(answers) if one.receipt), self._receipt)
            return [
                Outcome(read_statement(one.query.text, ()), (), one.settings, answer)
                for one, answer in zip(read, answers, strict=True)
            ]

    def set(self, name: str, text: str) -> None:
        """Set one of the session's settings. Raises ProgrammingError or DataError for a bad value."""
        with self._lock:
            self.require_open()
            self._session.settings = self._with(self._session.settings, name, text)

    def restore(self, settings: Settings) -> None:
        """Have settings that the session had before. Raises InterfaceError when the connection is closed."""
        with self._lock:
            self.require_open()
            self._session.settings = settings

    def check_setting(self, name: str, text: str) -> None:
        """Raise ProgrammingError or DataError for a value that a setting cannot have."""
        self._with(self._session.settings, name, text)

    def cancel(self) -> None:
        """Stop the statement that runs now; what it has charged stays spent."""
        self.require_open()
        self._schema.interrupt()
        self._session.cancel()

    def close(self) -> None:
        """Stop what runs, wait for its end and let everything go; once closed, nothing."""
        if self._is_open:
            self._is_open = False
            self._session.cancel()
        with self._lock:
            if not self._is_released:
                self._is_released = True
                self._schema.close()
                self._session.close()

    def _with(self, settings: Settings, name: str, text: str) -> Settings:
        return guarded(lambda: settings.set(name, text, self._session.policy))

    @contextmanager
    def _under(self, asked: Mapping[str, str] | Settings | None) -> Iterator[Settings]:
        """Have the session under its own settings, the ones asked for, or its own but for some.

        Requires: the lock is held.
        """
        self.require_open()
        kept = self._session.settings
        if asked is None:
            yield kept
            return
        settings = kept
        if isinstance(asked, Settings):
            settings = asked
        else:
            for name, text in asked.items():
                settings = self._with(settings, name, text)
        self._session.settings = settings
        try:
            yield self._session.settings
        finally:
            self._session.settings = kept

"""Warns the owner, in the log, when most of a budget is spent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..budget import BudgetStore, Charge, Status
from .log import log

__all__ = ["BudgetWatch"]

_LEVELS = (80, 95)
"""Per cent of a cap."""


class BudgetWatch:
    """Looks at a ledger; each level of each cap is told once, and again once the cap was raised above it."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._spent: Charge | None = None
        self._told: dict[tuple[str, str], int] = {}

    def look(self, store: BudgetStore, analysts: Iterable[str]) -> None:
        """Warn where a cap of all, or of one of `analysts`, has reached a level. Raises LedgerError."""
        everybody = store.status()
        for scope, what, percent in _shares("everybody", everybody):
            self._tell(scope, what, percent)
        spent = store.spent()
        if spent == self._spent:
            return
        for name in analysts:
            for scope, what, percent in _shares(name, store.status(name)):
                if scope == name:
                    self._tell(scope, what, percent)
        self._spent = spent

    def _tell(self, scope: str, what: str, percent: int) -> None:
        level = max((level for level in _LEVELS if level <= percent), default=0)
        if level > self._told.get((scope, what), 0):
            log("budget low", of=scope, what=what, percent=percent, database=self._database)
        self._told[scope, what] = level


def _shares(name: str, status: Status) -> Iterator[tuple[str, str, int]]:
    """Yield whose each cap is, of what, and how many per cent of it are spent."""
    unit = "rho" if status.in_rho else "epsilon"
    for scope in status.scopes:
        what = f"{unit} until {scope.until}" if scope.until else unit
        owner = name if scope.whose.startswith("your own") else "everybody"
        yield owner, what, _percent(scope.spent, scope.cap)
    yield "everybody", "delta", _percent(status.delta_spent_atto, status.delta_cap_atto)


def _percent(spent: int, cap: int) -> int:
    return 100 * spent // cap if cap else 0

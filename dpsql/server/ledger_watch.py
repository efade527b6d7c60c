"""What the server looks at in the background: whether the ledger can be used, and how much of a budget is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor

from ..budget import BudgetStore, Charge, Status
from ..errors import DpsqlError
from .log import log, place_of

__all__ = ["BudgetWatch", "Health"]


class Health:
    """`is_good`: as of the last look. Each change is a line of the log, which alone says why."""

    def __init__(self, probe: Callable[[], object], pool: Executor, seconds: float) -> None:
        """`probe` looks at the ledger and raises where it cannot be used; every `seconds`, on the pool."""
        self.is_good = True
        self._probe, self._pool, self._seconds = probe, pool, seconds

    async def watch(self) -> None:
        """Look until cancelled. A look that takes longer than the time between two counts as failed."""
        loop = asyncio.get_running_loop()
        while True:
            look = loop.run_in_executor(self._pool, self._probe)
            done, _ = await asyncio.wait({look}, timeout=self._seconds)
            if not done:
                self._set(False, "the ledger does not answer")
                await asyncio.wait({look})
            error = look.exception()
            if error is None:
                self._set(True)
            elif isinstance(error, DpsqlError):
                self._set(False, error.message)
            else:
                self._set(False, place_of(error))
            await asyncio.sleep(self._seconds)

    def _set(self, is_good: bool, reason: str | None = None) -> None:
        if is_good is self.is_good:
            return
        self.is_good = is_good
        if is_good:
            log("healthy")
        else:
            log("unhealthy", reason=reason)


_LEVELS = (80, 95)
"""Per cent of a cap."""


class BudgetWatch:
    """Looks at a ledger; each level of each cap is told once, and again once the cap was raised above it."""

    def __init__(self) -> None:
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
            log("budget low", of=scope, what=what, percent=percent)
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

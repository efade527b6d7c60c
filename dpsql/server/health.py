"""Whether the ledger can be used, looked at in the background: without it nothing can be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from ..errors import DpsqlError
from .log import log, place_of

__all__ = ["Health"]


class Health:
    """`is_good`: as of the last look. Each change is a line of the log, which alone says why."""

    def __init__(self, probe: Callable[[], object], pool: Executor, seconds: float, database: str) -> None:
        """`probe` looks at a database's ledger and raises where it cannot be used; every `seconds`, on the pool."""
        self.is_good = True
        self._probe, self._pool, self._seconds, self._database = probe, pool, seconds, database

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
            log("healthy", database=self._database)
        else:
            log("unhealthy", reason=reason, database=self._database)

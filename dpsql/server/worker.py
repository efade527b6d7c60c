"""One connection's session on the threads of the pool: cancelled from outside, and answering on the grid."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from ..engine import Answer, AnswerColumn, Session
from ..engine.dataset import SchemaChanged
from ..engine.turns import LONG
from ..errors import DpsqlError, EngineFailure
from ..relation.types import SqlType
from .channel import Channel
from .client_settings import release_time
from .report import ClientGone
from .sessions import Sessions

__all__ = ["Worker"]

_T = TypeVar("_T")
_AGAIN = 0.1
"""Seconds between two attempts to stop a statement: the first may come before it has begun."""


class Worker:
    """A session whose calls are awaited one at a time; a client that leaves stops its statement."""

    def __init__(
        self, session: Session, sessions: Sessions, pool: ThreadPoolExecutor, stops: ThreadPoolExecutor,
        channel: Channel, check: Callable[[], None],
    ) -> None:  # fmt: skip
        """`stops`: threads that stop statements, one for each of `pool`, so that none waits for another's engine.
        `check` raises Fault where no statement may be begun any more.
        """
        self.session = session
        self._check = check
        self._sessions, self._pool, self._stops, self._channel = sessions, pool, stops, channel
        self.pace = sessions.pace(session.analyst)
        self._has_grid = session.policy.server.has_grid
        session.release_time = release_time if self._has_grid else None
        self._longest = release_time(0.0, session.policy.server.statement_seconds)
        self._running: asyncio.Future[Any] | None = None
        self._stop_it: Callable[[], object] = self._stop_session
        self._is_busy = False
        self._cancelled = asyncio.Event()
        self._cancelled_at = 0.0
        self._is_expired = False
        self._stopping: asyncio.Task[None] | None = None

    async def describe(self, sql: str, values: Sequence[object]) -> tuple[AnswerColumn, ...]:
        """Return the columns that a statement would give. Raises as `Session.describe`, and ClientGone."""
        if self.session.is_planned(sql, values):
            return self.session.describe(sql, values)
        with self.session.ahead(len(sql)):
            return await self._call(lambda: self.session.describe(sql, values))

    async def describe_parameters(
        self, sql: str, declared: Sequence[SqlType | None]
    ) -> tuple[tuple[AnswerColumn, ...], tuple[SqlType, ...]]:
        """Return a statement's columns and its parameters' types. Raises as `describe`."""
        with self.session.ahead(len(sql)):
            return await self._call(lambda: self.session.describe_parameters(sql, declared))

    async def read(self, text: str, read: Callable[[], _T]) -> _T:
        """Return what `read` makes of a text; a long one is read in turn. Raises what it raises, and ClientGone."""
        if len(text) <= LONG:
            return read()
        return await self._call(lambda: self.session.read_in_turn(text, read))

    async def execute(self, sql: str, values: Sequence[object], timeout: float | None) -> Answer:
        """Answer a statement; what fails comes back on the grid alone.

        What is drawn is on the grid already: the session stores it no sooner, so that whoever waits for it, or finds
        it, learns no more. Raises what `Session.execute` raises, and ClientGone.
        """
        self._check()
        start = asyncio.get_running_loop().time()
        self._sessions.used()
        with self._busy(timeout):
            try:
                known = self.recall(sql, values)
                if known is not None:
                    return known
                with self.session.ahead(len(sql)):
                    return await self._call(lambda: self.session.execute(sql, values))
            except ClientGone:
                raise
            except Exception as error:
                if isinstance(error, SchemaChanged):
                    self._sessions.retire(self.session)
                await self._wait(start)
                if isinstance(error, EngineFailure):
                    self._tell_limit(error, timeout)
                raise

    def recall(self, sql: str, values: Sequence[object]) -> Answer | None:
        """Return the answer that is remembered of a statement, in no time; None where there is none, or none now."""
        self._sessions.used()
        try:
            return self.session.recall(sql, values)
        except DpsqlError:  # told to who executes it
            return None

    async def look_up(
        self, action: Callable[[], _T], stop: Callable[[], object], timeout: float | None
    ) -> _T:
        """Return what an action of another engine returns, which `stop` ends; raises what it raises, and ClientGone."""
        with self._busy(timeout):
            try:
                with self.session.ahead(0):
                    return await self._call(action, stop)
            except EngineFailure as error:
                self._tell_limit(error, timeout)
                raise

    def _tell_limit(self, error: EngineFailure, timeout: float | None) -> None:
        """Have an error of a statement that was not cancelled, but ran out of time, say whose limit that was."""
        if error.sqlstate != "57014" or not self._is_expired:
            return
        if timeout is not None and timeout <= self._longest:
            error.message = f"the statement took more than {timeout:g} seconds, its statement_timeout"
            error.hint = "SET statement_timeout = 0 takes the limit away"
        else:
            error.message = (
                f"the statement took more than {self._longest:g} seconds, the longest that this server waits"
            )

    @contextmanager
    def _busy(self, timeout: float | None) -> Iterator[None]:
        """Have what runs in the block be what `cancel` stops, and the client's limit, or the owner's if it is less."""
        self._cancelled.clear()
        self._is_expired = False
        self.session.time_limit = timeout
        self._is_busy = True
        limit = min(timeout or self._longest, self._longest)
        timer = asyncio.get_running_loop().call_later(limit, self._expire)
        try:
            yield
        finally:
            self._is_busy = False
            timer.cancel()

    def cancel(self) -> None:
        """Stop the running statement; nothing when there is none."""
        if not self._is_busy or self._cancelled.is_set():
            return
        self._cancelled_at = asyncio.get_running_loop().time()
        self._cancelled.set()
        if self._running is not None:
            self._stopping = asyncio.ensure_future(self._stop(self._running))

    def _expire(self) -> None:
        self._is_expired = True
        self.cancel()

    async def close(self) -> None:
        """Let the session go."""
        await asyncio.wrap_future(self._pool.submit(self._sessions.close, self.session))

    async def _call(self, action: Callable[[], _T], stop: Callable[[], object] | None = None) -> _T:
        future = asyncio.get_running_loop().run_in_executor(self._pool, action)
        self._running, self._stop_it = future, stop or self._stop_session
        try:
            both: set[asyncio.Future[Any]] = {future, self._channel.lost}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                await self._stop(future)
                future.exception()
                raise ClientGone
            return future.result()
        finally:
            self._running = None

    def _stop_session(self) -> None:
        if self._is_expired:
            self.session.expire()
        else:
            self.session.cancel()

    async def _stop(self, future: asyncio.Future[Any]) -> None:
        while not future.done():
            await asyncio.get_running_loop().run_in_executor(self._stops, self._stop_it)
            await asyncio.wait({future}, timeout=_AGAIN)

    async def _wait(self, start: float) -> None:
        """Wait for the grid's next moment; a cancel begins a grid of its own."""
        if not self._has_grid:
            return
        loop = asyncio.get_running_loop()
        if not self._cancelled.is_set():
            due = release_time(start, loop.time())
            try:
                await asyncio.wait_for(self._cancelled.wait(), due - loop.time())
            except TimeoutError:
                return
        due = release_time(self._cancelled_at, loop.time())
        await asyncio.sleep(due - loop.time())

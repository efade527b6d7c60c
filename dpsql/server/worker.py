"""One connection's session on the threads of the pool: cancelled from outside, and answering on the grid."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from ..engine import Answer, AnswerColumn, BoundNote, EditionNote, GroupNote, RankNote, Receipt, Session
from ..engine.dataset import SchemaChanged
from ..engine.settings import decimal_text
from ..engine.spine import LONG
from ..errors import DpsqlError, EngineFailure, Refusal
from ..pgwire import FieldDescription, NoticeResponse
from ..relation.types import SqlType
from ..sql.text import check_words
from ..system_catalog import CatalogRefusal, ConnectionFacts, Reads, ResultColumn, SystemCatalog
from .channel import Channel
from .database import Replies, Reply, Sessions, system_catalog
from .report import ClientGone, Outcome, Tally, log, log_together
from .state import ClientSettings, release_time
from .statements import Catalog, CopyIn, Query, Result, columns_of, oid_of, sql_type

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
        session.workspace.in_block = True  # what ends a block ends what it writes, too
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
        self.resumed: Callable[[], None] = _nothing
        """Called when a thread's call is done: until then the event loop was for others."""

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

    async def settle(self, *, is_commit: bool) -> None:
        """End what a block has written to own tables. Raises Refusal (40001), EngineFailure: it is not there."""
        workspace = self.session.workspace
        if workspace.has_block:
            await self._call(workspace.commit if is_commit else workspace.roll_back, _nothing)

    async def undo(self, count: int) -> None:
        """Have nothing be there of what was written since the last of so many savepoints. Raises as `settle`."""
        await self._call(lambda: self.session.workspace.undo(count), _nothing)

    async def clear_temporary(self) -> None:
        """Have the session's temporary tables be gone."""
        await self._call(self.session.workspace.clear_temporary, _nothing)

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
            self.resumed()

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


def _nothing() -> None:
    """What ends soon is not stopped."""


# --- queries of one connection ------------------------------------------------------------------------------


class Queries:
    """Describes and answers the queries of a connection."""

    def __init__(
        self, worker: Worker, catalog: SystemCatalog, replies: Replies, database: str, process_id: int, tally: Tally,
        others: Callable[[], Sequence[str]],
    ) -> None:  # fmt: skip
        """`others`: the names of the databases on this port that the analyst can log in to besides."""
        self.replies = replies
        self._answered: tuple[str, tuple[object, ...], Answer] | None = None
        self._noticed: tuple[Receipt, bytes] | None = None
        self._counted: tuple[Receipt, str, str] | None = None
        self.worker, self._tally, self._others = worker, tally, others
        self._shared, self._database, self._process_id = catalog, database, process_id
        self._own: tuple[object, SystemCatalog] | None = None
        """The system catalog with own tables, of what was there when it was made."""

    def reads(self, text: str) -> Reads:
        """Return what a query reads; one that is too large for either is the session's, which refuses it."""
        try:
            self.worker.session.read_text(check_words, text)
        except Refusal:
            return Reads.OTHER
        return self._shared.reads(text)

    async def describe(
        self, query: Query | Catalog, values: Sequence[object], client: ClientSettings
    ) -> tuple[FieldDescription, ...]:
        """Return a query's columns; nothing is run. Raises DpsqlError, ClientGone."""
        if isinstance(query, Catalog):
            return (await self._described(query, client))[0]
        return columns_of(await self.worker.describe(query.text, values))

    async def describe_parameters(
        self, query: Query | Catalog, types: Sequence[int], client: ClientSettings
    ) -> tuple[tuple[FieldDescription, ...], tuple[int, ...]]:
        """Return a query's columns and its parameters' types before a value is known; 0 in `types` is found.

        Raises as `describe`.
        """
        if isinstance(query, Catalog):
            return await self._described(replace(query, types=tuple(types)), client)
        columns, found = await self.worker.describe_parameters(query.text, [sql_type(oid) for oid in types])
        return columns_of(columns), tuple(
            given or oid_of(type_) for given, type_ in zip(types, found, strict=True)
        )

    async def run(self, query: Query | Catalog, values: Sequence[object], client: ClientSettings) -> Result:
        """Answer a query once. Raises DpsqlError, Fault, ClientGone."""
        start = time.monotonic()
        if isinstance(query, Catalog):
            facts = self._facts(client)
            found = self.worker.look_up(
                lambda: self._catalog().run(query.text, facts, values, query.types),
                self._interrupt,
                client.timeout,
            )
            try:
                columns, rows = await found
            except CatalogRefusal as refusal:
                raise self._told(refusal) from None
            self._tally.answer("catalog", time.monotonic() - start)
            return Result("SELECT", _columns(columns), rows)
        answer = await self.worker.execute(query.text, values, client.timeout)
        self.count(answer, time.monotonic() - start)
        is_small = isinstance(answer.rows, list)  # a large one goes once it is read, and is never given again
        self._answered = (query.text, tuple(values), answer) if is_small else None
        return Result(answer.command, columns_of(answer.columns), answer.rows, self.notices(answer, client))

    async def copy_target(self, copy: CopyIn, client: ClientSettings) -> list[int]:
        """Return the types of the values that a row of a copy has. Raises DpsqlError, ClientGone."""
        session = self.worker.session
        types = await self.worker.look_up(
            lambda: session.copy_target(copy.table, copy.names), session.cancel, client.timeout
        )
        return list(map(oid_of, types))

    async def copy_rows(
        self, copy: CopyIn, rows: Sequence[Sequence[Any]], first: int, client: ClientSettings
    ) -> None:
        """Write rows of a copy; `first`: the number of the first. Raises DpsqlError, ClientGone."""
        session = self.worker.session
        await self.worker.look_up(
            lambda: session.copy_rows(copy.table, copy.names, rows, first), session.cancel, client.timeout
        )

    def count(self, answer: Answer, seconds: float) -> None:
        """Have the owner know of an answer: in the counts, and in the log if it is of people's rows."""
        receipt = answer.receipt
        self._tally.answer(_outcome(receipt), seconds)
        if receipt is None:
            return
        asyncio.get_running_loop().call_soon(self._log, receipt, seconds)  # no client waits for the log

    def _log(self, receipt: Receipt, seconds: float) -> None:
        known = self._counted
        if known is None or known[0] is not receipt:
            known = self._counted = receipt, decimal_text(receipt.epsilon), decimal_text(receipt.left)
        log_together(
            "answered", analyst=self.worker.session.analyst, epsilon=known[1], left=known[2],
            ms=round(1000 * seconds), process=self._process_id,
        )  # fmt: skip

    # --- what is asked again ----------------------------------------------------------------------------

    @property
    def seen(self) -> Hashable:
        """What the analyst sees of the dataset, as what can be compared."""
        return self.worker.session.access

    def repeatable(self, query: Query) -> tuple[tuple[object, ...], Sequence[tuple[object, ...]]] | None:
        """Return values and rows of the query that was answered last, where the session would give them again.

        Not of an answer that was charged: it may never be asked for again.
        """
        asked, self._answered = self._answered, None
        if asked is None or asked[0] != query.text:
            return None
        text, values, answer = asked
        if answer.receipt is not None and (answer.receipt.epsilon or answer.receipt.delta):
            return None
        known = self.worker.recall(text, values)
        return None if known is None or known.rows is not answer.rows else (values, answer.rows)

    def recall(self, reply: Reply) -> Answer | None:
        """Return the answer to a query whose reply is remembered, as it is now; None where it is another by now."""
        answer = self.worker.recall(reply.text, reply.values)
        return None if answer is None or answer.rows is not reply.rows else answer

    def notices_again(self, answer: Answer, client: ClientSettings) -> bytes:
        """Return `notices` as they are written; those under the receipt that came last are there still."""
        if answer.receipt is None or not client.wants_notices:
            return b""
        known = self._noticed
        if known is None or known[0] is not answer.receipt:
            written = b"".join(notice.encode() for notice in self.notices(answer, client))
            known = self._noticed = answer.receipt, written
        return known[1]

    def notices(self, answer: Answer, client: ClientSettings) -> tuple[NoticeResponse, ...]:
        """Return what a client is told beside an answer's rows."""
        if answer.receipt is None or not client.wants_notices:
            return ()
        line = _receipt_line(answer.receipt)
        lines = [line] if line else []
        told = (BoundNote, EditionNote, GroupNote, RankNote)
        lines += [note for note in answer.receipt.notes if isinstance(note, told)]
        return tuple(NoticeResponse("00000", text) for text in lines)

    async def _described(
        self, query: Catalog, client: ClientSettings
    ) -> tuple[tuple[FieldDescription, ...], tuple[int, ...]]:
        facts = self._facts(client)
        found = self.worker.look_up(
            lambda: self._catalog().describe(query.text, facts, query.types), lambda: None, None
        )
        try:
            columns, types = await found
        except CatalogRefusal as refusal:
            raise self._told(refusal) from None
        return _columns(columns), types

    def _catalog(self) -> SystemCatalog:
        """Return the system catalog with the analyst's own tables, made anew where those have changed."""
        session = self.worker.session
        seen = session.seen
        if seen is session.catalog:
            return self._shared
        key = seen.own, seen.own_schemas
        if self._own is None or self._own[0] != key:
            made = system_catalog(seen, session.policy)
            self.close()
            self._own = key, made
        return self._own[1]

    def _interrupt(self) -> None:
        for catalog in (self._shared, *(() if self._own is None else (self._own[1],))):
            catalog.interrupt(self._process_id)

    def close(self) -> None:
        """Let the system catalog of own tables go."""
        own, self._own = self._own, None
        if own is not None:
            own[1].close()

    @property
    def database(self) -> str:
        """The name of what is asked, as the log and the counts have it."""
        return self._tally.database

    def refused(self, sqlstate: str) -> None:
        """Have the owner know of a statement that ended in an error."""
        self._tally.refuse(sqlstate, self.worker.session.analyst, self._process_id)

    def _told(self, refusal: CatalogRefusal) -> CatalogRefusal:
        """Have the owner told which kind of query of a client is not answered."""
        log("catalog query refused", reason=refusal.kind[:80], process=self._process_id)
        return refusal

    def _facts(self, client: ClientSettings) -> ConnectionFacts:
        settings = {name.lower(): value for name, value in client.show_all()}
        return ConnectionFacts(client.user, self._database, self._process_id, settings, tuple(self._others()))


def _outcome(receipt: Receipt | None) -> Outcome:
    if receipt is None:
        return "public"
    return "charged" if receipt.epsilon else "stored"


def _columns(columns: Sequence[ResultColumn]) -> tuple[FieldDescription, ...]:
    return tuple(
        FieldDescription(column.name, column.oid, column.size, column.modifier) for column in columns
    )


def _receipt_line(receipt: Receipt) -> str:
    """Return what a statement cost and what is left; nothing where nothing private was asked."""
    left = receipt.said_left
    if receipt.epsilon:
        return f"charged {receipt.said_charge}; {left}"
    free_left = f"epsilon {left}" if receipt.left_words is None else left
    return f"free: answered before; {free_left}" if receipt.reused else ""

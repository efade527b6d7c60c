"""Queries of one connection: to the session, or to the system catalog, which knows declared names and types alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial

from ..engine import Answer, BoundNote, GroupNote, RankNote, Receipt
from ..engine.settings import decimal_text
from ..errors import Refusal
from ..pgwire import FieldDescription, NoticeResponse
from ..sql.text import check_words
from ..system_catalog import CatalogRefusal, ConnectionFacts, Reads, ResultColumn, SystemCatalog
from .client_settings import ClientSettings
from .columns import columns_of, oid_of, sql_type
from .replies import Replies, Reply
from .report import Outcome, Tally, log
from .statements import Catalog, Query, Result
from .worker import Worker

__all__ = ["Queries"]


class Queries:
    """Describes and answers the queries of a connection."""

    def __init__(
        self, worker: Worker, catalog: SystemCatalog, replies: Replies, database: str, process_id: int, tally: Tally,
        others: Callable[[], Sequence[str]],
    ) -> None:  # fmt: skip
        """`others`: the names of the databases on this port that the analyst can log in to besides."""
        self.replies = replies
        self._answered: tuple[str, tuple[object, ...], Answer] | None = None
        self.worker, self._tally, self._others = worker, tally, others
        self._catalog, self._database, self._process_id = catalog, database, process_id

    def reads(self, text: str) -> Reads:
        """Return what a query reads; one that is too large for either is the session's, which refuses it."""
        try:
            self.worker.session.read_text(check_words, text)
        except Refusal:
            return Reads.OTHER
        return self._catalog.reads(text)

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
                lambda: self._catalog.run(query.text, facts, values, query.types),
                lambda: self._catalog.interrupt(self._process_id), client.timeout,
            )  # fmt: skip
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

    def count(self, answer: Answer, seconds: float) -> None:
        """Have the owner know of an answer: in the counts, and in the log if it is of people's rows."""
        self._tally.answer(_outcome(answer.receipt), seconds)
        if answer.receipt is not None:
            asyncio.get_running_loop().call_soon(partial(  # after the reply: no client waits for the log
                log, "answered", analyst=self.worker.session.analyst, epsilon=decimal_text(answer.receipt.epsilon),
                left=decimal_text(answer.receipt.left), ms=round(1000 * seconds), process=self._process_id,
            ))  # fmt: skip

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
        if answer.receipt is None or answer.receipt.epsilon or answer.receipt.delta:
            return None
        known = self.worker.recall(text, values)
        return None if known is None or known.rows is not answer.rows else (values, answer.rows)

    def recall(self, reply: Reply) -> Answer | None:
        """Return the answer to a query whose reply is remembered, as it is now; None where it is another by now."""
        answer = self.worker.recall(reply.text, reply.values)
        return None if answer is None or answer.rows is not reply.rows else answer

    def notices(self, answer: Answer, client: ClientSettings) -> tuple[NoticeResponse, ...]:
        """Return what a client is told beside an answer's rows."""
        if answer.receipt is None or not client.wants_notices:
            return ()
        line = _receipt_line(answer.receipt)
        lines = [line] if line else []
        lines += [note for note in answer.receipt.notes if isinstance(note, (BoundNote, GroupNote, RankNote))]
        return tuple(NoticeResponse("00000", text) for text in lines)

    async def _described(
        self, query: Catalog, client: ClientSettings
    ) -> tuple[tuple[FieldDescription, ...], tuple[int, ...]]:
        facts = self._facts(client)
        found = self.worker.look_up(
            lambda: self._catalog.describe(query.text, facts, query.types), lambda: None, None
        )
        try:
            columns, types = await found
        except CatalogRefusal as refusal:
            raise self._told(refusal) from None
        return _columns(columns), types

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

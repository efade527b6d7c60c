"""One connection after its login: the client's messages to replies; the simple protocol is answered here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..pgwire import (
    Bind,
    Close,
    CommandComplete,
    Describe,
    EmptyQueryResponse,
    Event,
    Execute,
    Flush,
    Format,
    Parse,
    ProtocolConnection,
    Query,
    ReadyForQuery,
    RowDescription,
    State,
    Sync,
    Unreadable,
)
from ..sql.script import ScriptStatement
from .columns import in_formats
from .commands import Commands
from .extended import Extended
from .lexical import cut
from .outbox import Outbox
from .report import ClientGone, Fault, report, unsupported
from .runner import StatementRunner
from .statements import Command, Result
from .transaction import BlockKind

__all__ = ["Conversation"]


class Conversation:
    """Answers events; `write` sends bytes to the client and waits while it does not read."""

    def __init__(
        self, connection: ProtocolConnection, commands: Commands, write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._outbox = Outbox(connection, write)
        self._runner = StatementRunner(commands)
        self._extended = Extended(self._outbox, self._runner)
        self._start = 0
        """Where the statement at hand begins in what the client sent."""

    async def answer(self, event: Event) -> None:
        """Answer one event; an error is told to the client. Raises ClientGone."""
        self._start = self._extended.start = 0
        try:
            await self._dispatch(event)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  # `report` tells a bug from an error, and the text of neither
            told = report(error, self._start or self._extended.start)
            self._runner.commands.queries.refused(told.sqlstate)
            self._outbox.send(told, *self._runner.abort())
        if self._outbox.state in (State.QUERY_FAILED, State.QUERY_NEXT):
            await self._ready()

    async def flush(self) -> None:
        """Send what was replied so far."""
        await self._outbox.flush()

    async def take_turns(self) -> None:
        """Let the other connections go on, after a while; and send what is much already."""
        await self._outbox.take_turns()

    async def _dispatch(self, event: Event) -> None:
        match event:
            case Query():
                await self._query(event.sql)
            case Parse():
                await self._extended.parse(event)
            case Bind():
                await self._extended.bind(event)
            case Describe():
                await self._extended.describe(event)
            case Execute():
                await self._extended.execute(event)
            case Close():
                self._extended.close(event)
            case Sync():
                await self._ready()
            case Flush():
                await self.flush()
            case Unreadable():
                raise Fault(event.sqlstate, event.message)
            case _:
                raise unsupported("the function call of the old protocol", "send a SELECT")

    async def _ready(self) -> None:
        statuses = self._runner.settle()
        self._outbox.send(*statuses, ReadyForQuery(self._runner.commands.block.status))
        await self.flush()

    async def _query(self, sql: str) -> None:
        """Answer a text of statements; none runs if one of the connection's own is not written right."""
        self._runner.portals.close("")
        self._runner.statements.close("")
        pieces = cut(sql)
        if not pieces:
            self._outbox.send(EmptyQueryResponse())
        commands = [self._read(piece) for piece in pieces]
        for piece, command in zip(pieces, commands, strict=True):
            self._start = piece.start
            if isinstance(command, Fault):
                self._runner.commands.block.check(None)
                raise command
            self._runner.open_block(BlockKind.SINGLE if len(pieces) == 1 else BlockKind.SERIES)
            await self._reply(await self._runner.run(command, (), piece.start))
            await self.take_turns()

    def _read(self, piece: ScriptStatement) -> Command | Fault:
        """Return what a statement asks for, or why it is refused when its turn comes. Raises Fault (42601)."""
        self._start = piece.start
        try:
            return self._runner.read(piece.text)
        except Fault as fault:
            if fault.sqlstate == "42601":
                raise
            return fault

    async def _reply(self, result: Result) -> None:
        if result.copy is not None:
            await self._outbox.copy(result, result.copy)
        elif result.columns:
            formats = [Format(result.is_binary)] * len(result.columns)
            self._outbox.send(RowDescription(in_formats(result.columns, formats)))
            await self._outbox.rows(result, formats, 0, len(result.rows))
        tag = CommandComplete(result.tag_of(len(result.rows)))
        self._outbox.send(*result.notices, *result.statuses, tag)

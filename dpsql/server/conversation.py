"""One connection after its login: the client's messages to replies, in the simple and the extended protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..engine import AnswerColumn
from ..pgwire import (
    BinaryCopy,
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    Connection,
    CopyDone,
    CopyOutResponse,
    CsvOptions,
    Describe,
    EmptyQueryResponse,
    Event,
    Execute,
    Flush,
    Format,
    LineCopy,
    NoData,
    NoticeResponse,
    ParameterDescription,
    Parse,
    ParseComplete,
    PortalSuspended,
    Query,
    ReadyForQuery,
    RowDescription,
    RowEncoder,
    ServerMessage,
    State,
    Sync,
    Target,
    TextOptions,
    TransactionStatus,
    Unreadable,
)
from ..sql.script import Statement, split_statements
from ..sql.text import MAX_TEXT
from .columns import parameter_types, read_values, wire_columns
from .commands import Commands, Result
from .portals import Portal, Portals, Prepared, missing
from .read_statement import (
    CloseCursor,
    Command,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Engine,
    Fetch,
    count_parameters,
    read_statement,
)
from .report import ClientGone, Fault, report, unsupported

__all__ = ["Conversation"]

_CHUNK = 2000
_MAX_NAMED = 1000
_FULL = 64 * 1024
_MAX_TEXT = 4 * MAX_TEXT


class Conversation:
    """Answers events; `write` sends bytes to the client and waits while it does not read."""

    def __init__(
        self, connection: Connection, commands: Commands, write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._connection, self._commands, self._write = connection, commands, write
        self._statements: dict[str, Prepared] = {}
        self._portals = Portals()
        self._out = bytearray()
        self._start = 0
        """Where the statement at hand begins in what the client sent."""

    async def answer(self, event: Event) -> None:
        """Answer one event; an error is told to the client. Raises ClientGone."""
        self._start = 0
        try:
            await self._dispatch(event)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  # `report` tells a bug from an error, and the text of neither
            self._commands.block.fail()
            self._send(report(error, self._start))
        if self._connection.state in (State.QUERY_FAILED, State.QUERY_NEXT):
            await self._ready()

    async def flush(self) -> None:
        """Send what was replied so far."""
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._write(data)

    async def _dispatch(self, event: Event) -> None:
        match event:
            case Query():
                await self._query(event.sql)
            case Parse():
                self._parse(event)
            case Bind():
                self._bind(event)
            case Describe():
                await self._describe(event)
            case Execute():
                await self._execute(event)
            case Close():
                self._close(event)
            case Sync():
                await self._ready()
            case Flush():
                await self.flush()
            case Unreadable():
                raise Fault(event.sqlstate, event.message)
            case _:
                raise unsupported("the function call of the old protocol", "send a SELECT")

    def _send(self, *replies: ServerMessage) -> None:
        self._out += self._connection.send(*replies)

    async def _ready(self) -> None:
        status = self._commands.block.status
        if status is TransactionStatus.IDLE:
            self._portals.clear(keep_held=True)
        self._send(ReadyForQuery(status))
        await self.flush()

    # --- the simple protocol -----------------------------------------------------------------------

    async def _query(self, sql: str) -> None:
        self._portals.close("")
        self._statements.pop("", None)
        pieces = _pieces(sql)
        if not pieces:
            self._send(EmptyQueryResponse())
        for piece in pieces:
            self._start = piece.start
            result = await self._run(read_statement(piece.text), ())
            if result.columns and result.copy is None:
                formats = [Format.TEXT] * len(result.columns)
                self._send(RowDescription(wire_columns(result.columns, formats)))
                await self._rows(result, formats, 0, len(result.rows))
            elif result.copy is not None:
                await self._copy(result, result.copy)
            self._finish(result, len(result.rows))

    async def _run(self, command: Command, values: tuple[object, ...]) -> Result:
        """Run a command once, with what it does to statements and portals. Raises as `Commands.run`."""
        self._commands.block.check(command)
        if isinstance(command, Declare):
            return self._declare(command, values)
        if isinstance(command, Fetch):
            return await self._fetch(command)
        if isinstance(command, CloseCursor):
            return self._close_cursor(command)
        result = await self._commands.run(command, values)
        if isinstance(command, Deallocate):
            self._forget(command.name)
        elif isinstance(command, Discard) and command.what == "all":
            self._forget(None)
            self._portals.clear()
        elif isinstance(command, End) and result.tag == "ROLLBACK":
            self._portals.clear()
        return result

    # --- SQL's own cursors -------------------------------------------------------------------------

    def _declare(self, command: Declare, values: tuple[object, ...]) -> Result:
        """Open a cursor; its query runs when the first rows are fetched."""
        if not command.is_held and self._commands.block.status is TransactionStatus.IDLE:
            raise Fault("25P01", "DECLARE without WITH HOLD can only be used in a block", hint="BEGIN first")
        prepared = Prepared(Engine(command.query), (), self._start)
        cursor = Portal(prepared, Bind(command.name, "", (), (), ()), values, command.is_held)
        self._portals.add(command.name, cursor)
        return Result("DECLARE CURSOR")

    async def _fetch(self, command: Fetch) -> Result:
        cursor = self._portals.find(command.name)
        notices: tuple[NoticeResponse, ...] = ()
        if cursor.result is None:
            assert cursor.prepared.command is not None, "only Parse makes a statement of nothing"
            cursor.result = await self._run(cursor.prepared.command, cursor.values)
            notices = cursor.result.notices
        first, end = cursor.take(command.count)
        if command.is_move:
            return Result(f"MOVE {end - first}", notices=notices)
        return Result("FETCH", cursor.result.columns, cursor.result.rows[first:end], notices)

    def _close_cursor(self, command: CloseCursor) -> Result:
        if command.name is None:
            self._portals.clear()
            return Result("CLOSE CURSOR ALL")
        self._portals.find(command.name)
        self._portals.close(command.name)
        return Result("CLOSE CURSOR")

    def _forget(self, name: str | None) -> None:
        if name is None:
            self._statements.clear()
        elif self._statements.pop(name, None) is None:
            raise missing("26000", "prepared statement", name)

    def _finish(self, result: Result, count: int) -> None:
        self._send(*result.notices, *result.statuses, CommandComplete(result.tag_of(count)))

    async def _rows(self, result: Result, formats: list[Format], first: int, end: int) -> None:
        encoder = RowEncoder(wire_columns(result.columns, formats))
        for start in range(first, end, _CHUNK):
            self._send(encoder.encode(result.rows[start : min(start + _CHUNK, end)]))
            await self._relieve()

    async def _copy(self, result: Result, how: CopyOut) -> None:
        is_binary = how.format == "binary"
        columns = wire_columns(result.columns, [Format(is_binary)] * len(result.columns))
        options = TextOptions if how.format == "text" else CsvOptions
        encoder = BinaryCopy(columns) if is_binary else LineCopy(columns, options(header=how.has_header))
        self._send(CopyOutResponse(Format(is_binary), len(columns)), encoder.begin())
        for start in range(0, len(result.rows), _CHUNK):
            self._send(encoder.encode(result.rows[start : start + _CHUNK]))
            await self._relieve()
        self._send(encoder.end(), CopyDone())

    async def _relieve(self) -> None:
        if len(self._out) >= _FULL:
            await self.flush()
        await asyncio.sleep(0)

    # --- the extended protocol ---------------------------------------------------------------------

    def _parse(self, event: Parse) -> None:
        if event.statement and event.statement in self._statements:
            raise Fault(
                "42P05", f'prepared statement "{event.statement}" already exists', hint="close it first"
            )
        if len(self._statements) >= _MAX_NAMED:
            raise Fault("53400", "too many prepared statements", hint="close some")
        pieces = _pieces(event.sql)
        if len(pieces) > 1:
            raise Fault(
                "42601", "there is more than one statement", hint="prepare one at a time",
                position=pieces[1].start,
            )  # fmt: skip
        prepared = Prepared(None, parameter_types(event.parameter_types, 0), 0) if not pieces else None
        for piece in pieces:
            self._start = piece.start
            command = read_statement(piece.text)
            self._commands.block.check(command)
            types = parameter_types(event.parameter_types, count_parameters(command))
            prepared = Prepared(command, types, piece.start)
        assert prepared is not None
        self._statements[event.statement] = prepared
        self._send(ParseComplete())

    def _bind(self, event: Bind) -> None:
        prepared = self._find_statement(event.statement)
        if prepared.command is not None:
            self._commands.block.check(prepared.command)
        self._portals.add(event.portal, Portal(prepared, event, read_values(event, prepared.types)))
        self._send(BindComplete())

    async def _describe(self, event: Describe) -> None:
        if event.target is Target.STATEMENT:
            prepared = self._find_statement(event.name)
            columns = await self._columns(prepared, (None,) * len(prepared.types))
            prepared.described = columns
            self._send(ParameterDescription(prepared.types))
            formats = [Format.TEXT] * len(columns)
        else:
            portal = self._portals.find(event.name)
            columns = await self._columns(portal.prepared, portal.values)
            formats = portal.formats(len(columns))
        self._send(RowDescription(wire_columns(columns, formats)) if columns else NoData())

    async def _columns(self, prepared: Prepared, values: tuple[object, ...]) -> tuple[AnswerColumn, ...]:
        self._start = prepared.start
        if prepared.command is None:
            return ()
        command = prepared.command
        self._commands.block.check(command)
        if isinstance(command, Fetch):
            cursor = self._portals.find(command.name)
            return () if command.is_move else await self._columns(cursor.prepared, cursor.values)
        columns = await self._commands.describe(command, values)
        told = prepared.described
        if told is not None and [c.type.kind for c in told] != [c.type.kind for c in columns]:
            raise Fault(
                "0A000", "the result's types depend on the parameters, and are others than Describe has told",
                hint="cast the parameters: CAST($1 AS integer)",
            )  # fmt: skip
        return columns

    async def _execute(self, event: Execute) -> None:
        portal = self._portals.find(event.portal)
        prepared = portal.prepared
        self._start = prepared.start
        if prepared.command is None:
            self._send(EmptyQueryResponse())
            return
        result = portal.result
        notes: list[Any] = []
        if result is None:
            if prepared.described is not None and portal.values:
                await self._columns(prepared, portal.values)
            result = portal.result = await self._run(prepared.command, portal.values)
            notes = [*result.notices, *result.statuses]
        if result.copy is not None:
            await self._copy(result, result.copy)
            self._send(*notes, CommandComplete(result.tag_of(len(result.rows))))
            return
        first, end = portal.take(event.max_rows if event.max_rows > 0 else None)
        if result.columns:
            await self._rows(result, portal.formats(len(result.columns)), first, end)
        is_suspended = bool(result.columns) and event.max_rows > 0 and end - first == event.max_rows
        last = PortalSuspended() if is_suspended else CommandComplete(result.tag_of(end - first))
        self._send(*notes, last)

    def _close(self, event: Close) -> None:
        if event.target is Target.STATEMENT:
            self._statements.pop(event.name, None)
        else:
            self._portals.close(event.name)
        self._send(CloseComplete())

    def _find_statement(self, name: str) -> Prepared:
        found = self._statements.get(name)
        if found is None:
            raise missing("26000", "prepared statement", name)
        return found


def _pieces(text: str) -> list[Statement]:
    """Return the statements of a text. Raises Fault: it is too long to be looked through at once."""
    if len(text) > _MAX_TEXT:
        raise Fault(
            "54001", f"the text has more than {_MAX_TEXT} characters", hint="send fewer statements at once"
        )
    return split_statements(text)

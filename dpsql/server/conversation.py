"""One connection after its login: the client's messages, of the simple and the extended protocol, to replies.

Replies go out in batches, and no more of them are in memory than the client reads (`Outbox`).

One dispatcher has each kind of statement answered, for both protocols (`Dispatcher`): queries by the session or the
system catalog (`Queries`), blocks and settings by the connection's own (`ConnectionState`); cursors and prepared
statements are answered here.

House rule: a cursor's query runs once, when its first rows are fetched, and is charged then; every later fetch reads
what was kept. What is prepared or declared is described at once, so that its errors come there; that costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from functools import partial

from .. import pgwire
from ..errors import DpsqlError
from ..pgwire import Bind, FieldDescription, Format, NoticeResponse, Oid, ServerMessage
from ..postprocess.rows import LargeRows, PackedTexts, Values
from ..records import dataclass
from ..sql.text import ScriptStatement, split_statements
from ..waits import Pace
from . import statements as ask
from .database import Batch, Key, Reply, statement_name
from .report import ClientGone, Fault, elsewhere, report, unsupported
from .state import (
    BlockKind,
    ConnectionState,
    Portal,
    Portals,
    PreparedStatement,
    PreparedStatements,
    as_described,
    fitted,
)
from .statements import (
    Catalog,
    Copy,
    CopyIn,
    Direction,
    Query,
    Result,
    Statement,
    argument_values,
    count_parameters,
    cut,
    in_formats,
    must_be_typed,
    parameter_types,
    read_statement,
    read_values,
    typed_nulls,
)
from .worker import Queries

# --- each kind of statement to what answers it ------------------------------------------------------------


_READS_NOTHING = (
    ask.Begin, ask.Characteristics, ask.Done, ask.End, ask.Mark, ask.Set, ask.Show, ask.Fetch,
)  # fmt: skip
"""Statements after which a block's modes may still be set."""
_OF_ROWS = (ask.Query, ask.Catalog, ask.Show, ask.Execute)
"""Statements whose portal can be fetched from."""


class Dispatcher:
    """Reads, describes and runs the statements of a connection, and has its prepared statements and portals."""

    def __init__(self, state: ConnectionState, queries: Queries) -> None:
        self.state, self.queries = state, queries
        self.prepared, self.portals = PreparedStatements(queries.worker.session.share()), state.portals

    @property
    def is_bare(self) -> bool:
        """Whether no portal is open, and another statement may be prepared."""
        return not self.portals and self.prepared.has_room

    def read(self, piece: ScriptStatement) -> Statement:
        """Return what a statement asks for. Raises as `read_statement`."""
        return read_statement(piece, self.queries.reads)

    async def run(self, statement: Statement, values: tuple[object, ...], start: int) -> Result:
        """Run a statement once; `start`: where it begins in what the client sent.

        Raises DpsqlError, Fault, ClientGone.
        """
        self.state.check(statement)
        if not isinstance(statement, _READS_NOTHING):
            self.state.has_queried = True
        match statement:
            case ask.Query() | ask.Catalog():
                return await self.queries.run(statement, values, self.state.client)
            case ask.Copy():
                with elsewhere() if statement.is_table else nullcontext():
                    if statement.options.forced:  # names that are none are told before anything is charged
                        described = await self.queries.describe(statement.query, values, self.state.client)
                        statement.options.of(described)
                    found = await self.queries.run(statement.query, values, self.state.client)
                return replace(found, tag="COPY", copy=statement)
            case ask.CopyIn():
                raise unsupported(
                    "COPY … FROM STDIN here",
                    "send it alone, by the simple protocol, as drivers' own copies are",
                )
            case ask.Show():
                return self.state.show(statement)
            case ask.Set():
                return self.state.set(statement)
            case ask.Begin() | ask.Characteristics():
                return self.state.set_modes(statement)
            case ask.End():
                return await self._end(statement)
            case ask.Mark():
                if statement.marking is ask.Marking.ROLLBACK and self.state.depth:
                    await self.queries.worker.undo(self.state.place(statement))
                return self.state.mark(statement)
            case ask.Declare():
                return await self._declare(statement, values, start)
            case ask.Fetch():
                return await self._fetch(statement)
            case ask.CloseCursor():
                return _forget(self.portals, statement.name, "CLOSE CURSOR")
            case ask.Prepare():
                return await self._prepare(statement, start)
            case ask.Execute():
                query, given = self._prepared_query(statement)
                with elsewhere():
                    return await self.queries.run(query, given, self.state.client)
            case ask.Deallocate():
                return _forget(self.prepared, statement.name, "DEALLOCATE")
            case ask.Discard():
                return await self._discard(statement)
            case ask.Done():
                warning = None if self.state.is_lasting else statement.warning
                return Result(statement.tag, notices=self.state.warn("25P01", warning))

    async def _end(self, statement: ask.End) -> Result:
        """End a block, with what it has written to own tables. Raises as `settle`; then it is rolled back."""
        is_commit = statement.is_commit and not self.state.is_failed
        try:
            await self.settle(is_commit=is_commit)
        except Exception:
            self.state.end(replace(statement, is_commit=False, is_chain=False))
            raise
        return self.state.end(statement)

    async def settle(self, *, is_commit: bool) -> None:
        """Have what was written to own tables be there, or not. Raises Refusal (40001), EngineFailure: it is not."""
        await self.queries.worker.settle(is_commit=is_commit)

    async def columns(self, statement: Statement, values: tuple[object, ...]) -> tuple[FieldDescription, ...]:
        """Return a statement's columns; runs nothing. Raises as `run`."""
        self.state.check(statement)
        match statement:
            case ask.Query() | ask.Catalog():
                return await self.queries.describe(statement, values, self.state.client)
            case ask.Show():
                return self.state.show(statement).columns
            case ask.Fetch() if not statement.is_move and self.portals.has(statement.name):
                return await self._portal_columns(self.portals.find(statement.name))
            case ask.Execute() if self.prepared.has(statement.name):
                query, given = self._prepared_query(statement)
                return await self.queries.describe(query, given, self.state.client)
        return ()

    async def _discard(self, statement: ask.Discard) -> Result:
        tag = f"DISCARD {statement.what.upper()}"
        if statement.what == "temp":
            await self.queries.worker.clear_temporary()
        if statement.what != "all":
            return Result(tag)
        if not self.state.is_alone:
            raise Fault("25001", "DISCARD ALL cannot run inside a block", hint="COMMIT or ROLLBACK first")
        await self.queries.worker.clear_temporary()
        self.prepared.clear()
        self.portals.clear()
        self.state.reset_all()
        return Result(tag)

    # --- cursors ---------------------------------------------------------------------------------------

    def open_portal(self, name: str, portal: Portal) -> None:
        """Open a portal of the block at hand. Raises Fault."""
        portal.level = self.state.depth
        self.portals.add(name, portal)

    async def fill(self, portal: Portal, start: int) -> Result:
        """Run a portal's statement, and have it keep its rows. Raises as `run`, and Fault (53400) for too many rows."""
        assert portal.prepared.statement is not None, "only Parse makes a statement of nothing"
        if isinstance(portal.prepared.statement, _OF_ROWS):
            self.portals.check_room()
        result = await self.run(portal.prepared.statement, portal.values, start)
        self.portals.keep(portal, result)
        return result

    async def _declare(self, statement: ask.Declare, values: tuple[object, ...], start: int) -> Result:
        columns = await self.queries.describe(statement.query, values, self.state.client)
        if not statement.is_held and not self.state.is_lasting:
            raise Fault("25P01", "DECLARE without WITH HOLD can only be used in a block", hint="BEGIN first")
        portal = Portal(
            PreparedStatement(statement.query, (), len(values), start), Bind(statement.name, "", (), (), ()), values,
            is_cursor=True, is_held=statement.is_held, is_binary=statement.is_binary,
            is_forward_only=statement.is_forward_only, columns=columns,
        )  # fmt: skip
        self.open_portal(statement.name, portal)
        return Result("DECLARE CURSOR")

    async def _portal_columns(self, portal: Portal) -> tuple[FieldDescription, ...]:
        if portal.result is not None:
            return portal.result.columns
        statement = portal.prepared.statement
        if portal.is_cursor or not isinstance(statement, _OF_ROWS):
            return portal.columns
        return await self.columns(statement, portal.values)

    async def _fetch(self, statement: ask.Fetch) -> Result:
        portal = self.portals.find(statement.name)
        if not isinstance(portal.prepared.statement, _OF_ROWS):
            raise Fault(
                "55000", f'portal "{statement.name}" cannot be run', hint="only a query's rows are fetched"
            )
        portal.check(statement)
        notices: tuple[NoticeResponse, ...] = ()
        is_nothing = statement.count == 0 and statement.direction is not Direction.ABSOLUTE
        if portal.result is None and not is_nothing:
            had_queried = self.state.has_queried
            with elsewhere():
                notices = (await self.fill(portal, portal.prepared.start)).notices
            self.state.has_queried = had_queried  # a fetch settles no modes
        rows = [] if portal.result is None else portal.take(statement)
        if statement.is_move:
            return Result(f"MOVE {len(rows)}", notices=notices)
        columns = await self._portal_columns(portal)
        return Result("FETCH", columns, rows, notices, is_binary=portal.is_binary)

    # --- prepared statements ---------------------------------------------------------------------------

    def typed(self, statement: Statement, declared: tuple[int, ...], start: int) -> PreparedStatement:
        """Return a statement as it is prepared, with the types that are declared. Raises Fault, Refusal."""
        count = count_parameters(statement)
        return PreparedStatement(statement, parameter_types(declared, count), count, start)

    async def infer(self, prepared: PreparedStatement) -> None:
        """Find a statement's columns, and the types of its parameters that nobody has declared. Raises as `run`."""
        statement = prepared.statement
        if isinstance(statement, (ask.Query, ask.Catalog)):
            named, others = prepared.types[: prepared.count], prepared.types[prepared.count :]
            found = await self.queries.describe_parameters(statement, named, self.state.client)
            prepared.described, prepared.types = found[0], (*found[1], *others)
            if isinstance(statement, ask.Catalog):
                prepared.statement = replace(statement, types=found[1])
        elif statement is not None:
            prepared.described = await self.columns(statement, (None,) * prepared.count)
            prepared.types = tuple(oid or Oid.TEXT for oid in prepared.types)

    async def _prepare(self, statement: ask.Prepare, start: int) -> Result:
        prepared = self.typed(statement.query, statement.types, start)
        await self.infer(prepared)
        self.prepared.add(statement.name, prepared)
        return Result("PREPARE")

    def _prepared_query(self, statement: ask.Execute) -> tuple[ask.Query | ask.Catalog, tuple[object, ...]]:
        prepared = self.prepared.find(statement.name)
        if not isinstance(prepared.statement, (ask.Query, ask.Catalog)):
            raise unsupported("EXECUTE of what is no query", "execute it through the driver")
        values = argument_values(statement.name, statement.arguments, prepared.types)
        return prepared.statement, values[: prepared.count]


def _forget(known: Portals | PreparedStatements, name: str | None, tag: str) -> Result:
    """Close what has this name, or all. Raises Fault: there is none."""
    if name is None:
        known.clear()
        return Result(f"{tag} ALL")
    known.find(name)
    known.close(name)
    return Result(tag)


# --- messages to replies ----------------------------------------------------------------------------------


_CHUNK = 2000
_CELLS = 8_000
_FULL = 64 * 1024
_TURN = 0.005
"""Seconds that a connection may have the event loop for, while others wait."""


_COPIED = 5_000
"""Rows of a copy that are written together."""


@dataclass
class _Copying:
    """A copy of rows that the client sends, and those of them that are not written yet."""

    statement: CopyIn
    reader: pgwire.CopyReader | pgwire.BinaryCopyReader
    rows: list[list[str | None]] = field(default_factory=list)


class Outbox:
    """Gathers replies; `write` sends bytes to the client and waits while it does not read."""

    def __init__(
        self, connection: pgwire.ProtocolConnection, write: Callable[[bytes], Awaitable[None]], pace: Pace
    ) -> None:
        """`pace`: of the analyst, whose large answers stand back behind others' short statements."""
        self._connection, self._write, self._pace = connection, write, pace
        self._out = bytearray()
        self._turned = 0.0

    def begin_turn(self) -> None:
        """Take note that the event loop was for others until now."""
        self._turned = asyncio.get_running_loop().time()

    def send(self, *replies: ServerMessage) -> None:
        """Add replies."""
        self._out += self._connection.send(*replies)

    async def flush(self) -> None:
        """Send what was replied so far."""
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            await self._write(data)

    async def rows(self, result: Result, formats: Sequence[Format], first: int, end: int) -> None:
        """Add a result's rows from the index `first` up to `end`."""
        await self._written(pgwire.RowEncoder(in_formats(result.columns, formats)), result, first, end)

    async def copy(self, result: Result, how: Copy) -> None:
        """Add a result as a copy."""
        lines = how.options.of(result.columns)
        columns = in_formats(result.columns, [Format(lines is None)] * len(result.columns))
        encoder = pgwire.BinaryCopy(columns) if lines is None else pgwire.LineCopy(columns, lines)
        self.send(pgwire.CopyOutResponse(Format(lines is None), len(columns)), encoder.begin())
        await self._written(encoder, result, 0, len(result.rows))
        self.send(encoder.end(), pgwire.CopyDone())

    async def _written(
        self, encoder: pgwire.RowEncoder | pgwire.BinaryCopy | pgwire.LineCopy, result: Result, first: int, end: int
    ) -> None:  # fmt: skip
        step = max(16, min(_CHUNK, _CELLS // max(1, len(result.columns))))
        while first < end:
            began = time.monotonic()
            stop = min(first + step, end)
            columns = _columns(result.rows, first, stop)
            if columns is None:
                self.send(encoder.encode(result.rows[first:stop]))
            else:
                stop = first + len(columns[0])
                self.send(encoder.encode_columns(columns, stop - first))
            first = stop
            seconds = time.monotonic() - began
            await self.take_turns()
            if first < end:
                await self._pace.stand_back(seconds)
            else:  # also what a cursor gives piece by piece
                self._pace.take(seconds)

    async def take_turns(self) -> None:
        """Send what is much already, and let the other connections go on when this one has had its time."""
        if len(self._out) >= _FULL:
            await self.flush()
        if asyncio.get_running_loop().time() - self._turned > _TURN:
            await asyncio.sleep(0)
            self.begin_turn()


def _columns(rows: Sequence[tuple[object, ...]], low: int, high: int) -> list[Values] | None:
    """Return the first of the rows between two places by column, where they are kept so."""
    columns = rows.columns(low, high) if isinstance(rows, LargeRows) else None
    if columns is None:
        return None
    return [
        pgwire.Texts.ending(one.data, one.ends, one.nulls) if isinstance(one, PackedTexts) else one
        for one in columns
    ]


class Conversation:
    """Answers events; `write` sends bytes to the client and waits while it does not read."""

    def __init__(
        self,
        connection: pgwire.ProtocolConnection,
        dispatcher: Dispatcher,
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self.outbox = Outbox(connection, self._send, dispatcher.queries.worker.pace)
        self._connection, self._write = connection, write
        self._dispatcher, self._state, self._queries = dispatcher, dispatcher.state, dispatcher.queries
        self._worker = dispatcher.queries.worker
        self._worker.resumed = self.outbox.begin_turn
        self._batch: Batch | None = None
        """What came at once and may be remembered with its reply."""
        self._start = 0
        """Where the statement at hand begins in what the client sent."""
        self._copy: _Copying | None = None
        """The copy whose rows the client sends."""

    async def repeat(self, data: bytes) -> bool:
        """Answer what came at once, if its reply is remembered; else it has to be read. Raises ClientGone."""
        self._batch = None
        key = self._key(data)
        if key is None:
            return False
        queries = self._queries
        reply = queries.replies.get(key)
        if reply is None:
            self._batch = Batch(key)
            return False
        start = time.monotonic()
        answer = queries.recall(reply)
        if answer is None:
            queries.replies.drop(key)
            return False
        notices, seconds = queries.notices_again(answer, self._state.client), time.monotonic() - start
        if reply.unnamed is not None:
            self._dispatcher.prepared.add("", replace(reply.unnamed))
        elif data[0] == ord("Q"):
            self._dispatcher.prepared.close("")
        queries.count(answer, seconds)
        await self._write(b"".join((reply.before, notices, reply.after)))
        return True

    def _key(self, data: bytes) -> Key | None:
        """Return under which key the reply to a batch is remembered; None where none may be (`database.Replies`)."""
        name = statement_name(data)
        dispatcher, state = self._dispatcher, self._state
        if name is None or not (self._connection.is_idle and state.is_bare and dispatcher.is_bare):
            return None
        bound = None
        if data[0] == ord("B"):
            if not dispatcher.prepared.has(name):
                return None
            bound = dispatcher.prepared.find(name).key
        return data, bound, state.settings, self._queries.seen

    def _remember(self) -> None:
        """Remember the reply to what came at once, if it is one that is (`database.Replies`)."""
        batch, self._batch = self._batch, None
        if batch is None or (parts := batch.parts()) is None:
            return
        query, before, after = parts
        if batch.key != self._key(batch.key[0]) or (asked := self._queries.repeatable(query)) is None:
            return
        unnamed = replace(self._dispatcher.prepared.find("")) if batch.parses else None
        self._queries.replies.put(batch.key, Reply(query.text, *asked, before, after, unnamed))

    async def _send(self, data: bytes) -> None:
        """Send what was replied; of what is large, or comes in parts, nothing is kept to be remembered."""
        if self._batch is not None and not self._batch.take(data):
            self._batch = None
        await self._write(data)

    async def answer(self, event: pgwire.Event) -> None:
        """Answer one event; an error is told to the client. Raises ClientGone."""
        self._start = 0
        if self._batch is not None:
            self._batch.events.append(event)
        try:
            await self._answer(event)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  # `report` tells a bug from an error, and the text of neither
            told = report(error, self._start, database=self._queries.database)
            self._queries.refused(told.sqlstate)
            await self._abort()
            self.outbox.send(told, *self._state.changes())
        if self._connection.state in (pgwire.State.QUERY_FAILED, pgwire.State.QUERY_NEXT):
            await self._ready()

    async def _answer(self, event: pgwire.Event) -> None:
        match event:
            case pgwire.Query():
                await self._query(event.sql)
            case pgwire.Parse():
                await self._parse(event)
            case pgwire.Bind():
                await self._bind(event)
            case pgwire.Describe():
                await self._describe(event)
            case pgwire.Execute():
                await self._execute(event)
            case pgwire.Close():
                self._close(event)
            case pgwire.Sync():
                await self._ready()
            case pgwire.Flush():
                await self.outbox.flush()
            case pgwire.CopyChunk() | pgwire.CopyEnd() | pgwire.CopyFail():
                await self._take(event)
            case pgwire.Unreadable():
                raise Fault(event.sqlstate, event.message)
            case _:
                raise unsupported("the function call of the old protocol", "send a SELECT")

    async def _abort(self) -> None:
        """Undo what no BEGIN has made."""
        if self._state.kind is not BlockKind.BEGUN:
            await self._dispatcher.settle(is_commit=False)
        self._state.abort()

    async def _ready(self) -> None:
        if self._state.kind is not BlockKind.BEGUN:
            try:
                await self._dispatcher.settle(is_commit=True)
            except DpsqlError as error:
                self.outbox.send(report(error, self._start, database=self._queries.database))
                self._state.abort()
        self._state.settle()
        self.outbox.send(*self._state.changes(), pgwire.ReadyForQuery(self._state.status))
        await self.outbox.flush()
        self._remember()

    def _read(self, piece: ScriptStatement) -> Statement | Fault:
        """Return what a statement asks for, or why it is refused when its turn comes. Raises Fault (42601)."""
        self._start = piece.start
        try:
            return self._dispatcher.read(piece)
        except Fault as fault:
            if fault.sqlstate == "42601":
                raise
            return fault

    def _accepted(self, read: Statement | Fault) -> Statement:
        """Return a statement whose turn has come. Raises Fault: it is refused, or the block has failed."""
        self._state.check(None if isinstance(read, Fault) else read)
        if isinstance(read, Fault):
            raise read
        return read

    def _note(self, statement: Statement) -> None:
        """Take note that a statement of what came at once is run."""
        if self._batch is not None:
            self._batch.statements.append(statement)

    def _read_all(self, text: str) -> list[tuple[ScriptStatement, Statement | Fault]]:
        """Return a text's statements as they were cut, and as they are read. Raises as `_read`."""
        return [(piece, self._read(piece)) for piece in self._cut(text)]

    def _cut(self, text: str) -> list[ScriptStatement]:
        return cut(text, partial(self._worker.session.read_text, split_statements))

    # --- the simple protocol ---------------------------------------------------------------------------

    async def _query(self, sql: str) -> None:
        """Answer a text of statements; none runs if one of the connection's own is not written right."""
        self._dispatcher.portals.close("")
        self._dispatcher.prepared.close("")
        pieces = await self._worker.read(sql, partial(self._read_all, sql))
        if not pieces:
            self.outbox.send(pgwire.EmptyQueryResponse())
        for piece, read in pieces:
            self._start = piece.start
            statement = self._accepted(read)
            self._state.open(BlockKind.SINGLE if len(pieces) == 1 else BlockKind.SERIES)
            self._note(statement)
            if isinstance(statement, CopyIn) and piece is pieces[-1][0]:
                await self._begin_copy(statement)
                return
            result = await self._dispatcher.run(statement, (), piece.start)
            if piece is pieces[-1][0] and self._state.kind is not BlockKind.BEGUN:
                await self._dispatcher.settle(is_commit=True)
            formats = [Format(result.is_binary)] * len(result.columns)
            if result.columns and result.copy is None:
                self.outbox.send(pgwire.RowDescription(in_formats(result.columns, formats)))
            last = pgwire.CommandComplete(result.tag_of(len(result.rows)))
            await self._reply(result, formats, (0, len(result.rows)), result.notices, last)
            await self.outbox.take_turns()

    async def _reply(
        self, result: Result, formats: Sequence[Format], part: tuple[int, int],
        notices: Sequence[pgwire.NoticeResponse], last: ServerMessage,
    ) -> None:  # fmt: skip
        """Send rows of a result, or all of them as a copy, and what comes after them."""
        if result.copy is not None:
            await self.outbox.copy(result, result.copy)
        elif result.columns:
            await self.outbox.rows(result, formats, *part)
        self.outbox.send(*notices, *self._state.changes(), last)

    # --- rows that the client sends --------------------------------------------------------------------

    async def _begin_copy(self, statement: CopyIn) -> None:
        """Have the client send rows for an own table. Raises DpsqlError: it takes none."""
        self._state.has_queried = True
        oids, lines = await self._queries.copy_target(statement, self._state.client), statement.lines
        reader = pgwire.BinaryCopyReader(oids) if lines is None else pgwire.CopyReader(lines)
        self._copy = _Copying(statement, reader)
        self.outbox.send(pgwire.CopyInResponse(Format(lines is None), len(oids)))
        await self.outbox.flush()

    async def _take(self, event: pgwire.CopyChunk | pgwire.CopyEnd | pgwire.CopyFail) -> None:
        """Take rows as they come; what is written of them is there when the block ends. Raises Fault, DpsqlError."""
        copy = self._copy
        assert copy is not None, "the table of states lets them through in a copy alone"
        if isinstance(event, pgwire.CopyFail):
            raise Fault(
                "57014", "COPY FROM STDIN was given up by the client", hint="nothing of it is written"
            )
        is_end = isinstance(event, pgwire.CopyEnd)
        copy.rows += (
            copy.reader.finish() if isinstance(event, pgwire.CopyEnd) else copy.reader.feed(event.data)
        )
        if copy.rows and (is_end or len(copy.rows) >= _COPIED):
            first = copy.reader.rows - len(copy.rows) + 1
            await self._queries.copy_rows(copy.statement, copy.rows, first, self._state.client)
            copy.rows = []
        if not is_end:
            return
        if self._state.kind is not BlockKind.BEGUN:
            await self._dispatcher.settle(is_commit=True)
        self.outbox.send(pgwire.CommandComplete(f"COPY {copy.reader.rows}"))

    # --- the extended protocol -------------------------------------------------------------------------

    async def _parse(self, event: pgwire.Parse) -> None:
        """Prepare a statement. Raises Fault, Refusal."""
        self._dispatcher.prepared.check(event.statement)
        pieces = await self._worker.read(event.sql, partial(self._cut, event.sql))
        if len(pieces) > 1:
            raise Fault(
                "42601", "there is more than one statement", hint="prepare one at a time",
                position=pieces[1].start,
            )  # fmt: skip
        prepared = PreparedStatement(None, parameter_types(event.parameter_types, 0), 0, 0)
        for piece in pieces:
            statement = self._accepted(await self._worker.read(piece.text, partial(self._read, piece)))
            typed = partial(self._dispatcher.typed, statement, event.parameter_types, piece.start)
            prepared = await self._worker.read(piece.text, typed)
            if isinstance(statement, Catalog):
                await self._dispatcher.infer(prepared)
        self._dispatcher.prepared.add(event.statement, prepared)
        self.outbox.send(pgwire.ParseComplete())

    async def _bind(self, event: pgwire.Bind) -> None:
        """Open a portal; a value that only its type can read has it found, where nobody has declared it.

        Raises Fault, ParameterError, and as `Dispatcher.infer`.
        """
        prepared = self._dispatcher.prepared.find(event.statement)
        self._state.check(prepared.statement)
        if 0 in prepared.types and must_be_typed(event):
            await self._dispatcher.infer(prepared)
        values = read_values(event, prepared.types)[: prepared.count]
        if isinstance(prepared.statement, Query):
            values = typed_nulls(values, prepared.types[: prepared.count])
        size = sum(len(value) for value in event.parameters if value is not None)
        portal = Portal(prepared, replace(event, parameters=()), values, size=size)
        self._dispatcher.open_portal(event.portal, portal)
        self.outbox.send(pgwire.BindComplete())

    async def _describe(self, event: pgwire.Describe) -> None:
        """Describe a statement or a portal; nothing is run. Raises as `Dispatcher.columns`."""
        if event.target is pgwire.Target.STATEMENT:
            prepared = self._dispatcher.prepared.find(event.name)
            self._start = prepared.start
            self._state.check(prepared.statement)
            if prepared.described is None:
                await self._dispatcher.infer(prepared)
            columns = prepared.described or ()
            types = tuple(oid or pgwire.Oid.TEXT for oid in prepared.types)
            self.outbox.send(pgwire.ParameterDescription(types))
            formats = [Format.TEXT] * len(columns)
        else:
            portal = self._dispatcher.portals.find(event.name)
            columns = await self._columns(portal.prepared, portal.values)
            formats = portal.formats(len(columns))
        described = pgwire.RowDescription(in_formats(columns, formats)) if columns else pgwire.NoData()
        self.outbox.send(described)

    async def _columns(
        self, prepared: PreparedStatement, values: tuple[object, ...]
    ) -> tuple[FieldDescription, ...]:
        """Return the columns as Describe has told them already, or as they are. Raises as `Dispatcher.columns`."""
        self._start = prepared.start
        if prepared.statement is None:
            return ()
        columns = await self._dispatcher.columns(prepared.statement, values)
        return columns if prepared.described is None else as_described(columns, prepared.described)

    async def _execute(self, event: pgwire.Execute) -> None:
        """Run a portal, or go on with it. Raises as `Dispatcher.run`."""
        portal = self._dispatcher.portals.find(event.portal)
        prepared, result = portal.prepared, portal.result
        self._start = prepared.start
        if prepared.statement is None:
            self.outbox.send(pgwire.EmptyQueryResponse())
            return
        is_first = self._state.kind is BlockKind.NONE
        self._state.open(BlockKind.SINGLE if is_first else BlockKind.PIPELINE)
        self._state.check(prepared.statement)
        self._note(prepared.statement)
        if portal.is_broken or (result is not None and (result.copy or not result.columns)):
            raise Fault("55000", f'portal "{event.portal}" cannot be run', hint="bind it again")
        notices: Sequence[pgwire.NoticeResponse] = ()
        if result is None:
            result = await self._fill(portal)
            notices = result.notices
        limit = event.max_rows if result.copy is None else 0
        formats = portal.formats(len(result.columns)) if result.columns and result.copy is None else []
        first, end = portal.take_forward(limit or None)
        is_suspended = bool(formats) and 0 < limit == end - first
        last = (
            pgwire.PortalSuspended() if is_suspended else pgwire.CommandComplete(result.tag_of(end - first))
        )
        await self._reply(result, formats, (first, end), notices, last)
        if result.copy is not None:
            portal.result = replace(result, rows=())

    async def _fill(self, portal: Portal) -> Result:
        """Run a portal's statement, under the columns that Describe has told. Raises as `Dispatcher.run`."""
        told = None
        if portal.prepared.described is not None and portal.values:
            told = await self._columns(portal.prepared, portal.values)
        result = await self._dispatcher.fill(portal, portal.prepared.start)
        if told is not None:
            result = portal.result = fitted(result, told)
        return result

    def _close(self, event: pgwire.Close) -> None:
        """Forget a statement or a portal, if there is one."""
        if event.target is pgwire.Target.STATEMENT:
            self._dispatcher.prepared.close(event.name)
        else:
            self._dispatcher.portals.close(event.name)
        self.outbox.send(pgwire.CloseComplete())

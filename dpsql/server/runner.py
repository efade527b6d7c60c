"""Runs one connection's statements: with its cursors and prepared statements, and in its blocks.

House rule: a cursor's query runs once, when its first rows are fetched, and is charged then; every later fetch reads
what was kept. What is prepared or declared is described at once, so that its errors come there; that costs nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ..pgwire import Bind, FieldDescription, NoticeResponse, Oid, ParameterStatus
from .arguments import argument_values
from .columns import parameter_types
from .commands import Commands
from .portals import Portal, Portals
from .prepared import PreparedStatement, PreparedStatements
from .queries import Query
from .read_statement import count_parameters, read_statement
from .report import Fault, elsewhere, unsupported
from .statements import (
    Begin,
    CatalogQuery,
    Characteristics,
    CloseCursor,
    Command,
    Deallocate,
    Declare,
    Direction,
    Discard,
    Done,
    End,
    Engine,
    ExecutePrepared,
    Fetch,
    Mark,
    Marking,
    PrepareQuery,
    Reset,
    Result,
    Set,
    Show,
)
from .transaction import BlockKind

__all__ = ["StatementRunner"]

_READS_NOTHING = (Begin, Characteristics, Done, End, Mark, Set, Reset, Show, Fetch)
"""Commands after which a block's modes may still be set."""
_OF_ROWS = (Engine, CatalogQuery, Show, ExecutePrepared)
"""Commands whose portal can be fetched from."""


class StatementRunner:
    """A connection's statements, prepared statements and portals."""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self.statements = PreparedStatements()
        self.portals = Portals(commands.worker.session.share())

    def read(self, text: str) -> Command:
        """Return what a statement asks for. Raises Fault, as `read_statement` and `Queries.sort`."""
        command = read_statement(text)
        return self.commands.queries.sort(text) if isinstance(command, Engine) else command

    # --- blocks ----------------------------------------------------------------------------------------

    def open_block(self, kind: BlockKind) -> None:
        """Have the next statement stand in a block: its own, or that of all which were sent with it."""
        self.commands.open_block(kind)

    def settle(self) -> tuple[ParameterStatus, ...]:
        """End a block that no BEGIN has made, once all that was sent at once is answered."""
        if self.commands.block.kind is BlockKind.BEGUN:
            return ()
        self.portals.commit()
        return self.commands.close_block(is_commit=True)

    def abort(self) -> tuple[ParameterStatus, ...]:
        """Take note of an error: the block has failed, or what no BEGIN has made is undone."""
        if self.commands.block.kind is BlockKind.BEGUN:
            return self.commands.fail_block()
        self.portals.roll_back()
        return self.commands.close_block(is_commit=False)

    # --- statements ------------------------------------------------------------------------------------

    async def run(self, command: Command, values: tuple[object, ...], start: int) -> Result:
        """Run a command once; `start`: where it begins in what the client sent.

        Raises DpsqlError, Fault, ClientGone.
        """
        block = self.commands.block
        block.check(command)
        if not isinstance(command, _READS_NOTHING):
            block.has_queried = True
        match command:
            case Declare():
                return await self._declare(command, values, start)
            case Fetch():
                return await self._fetch(command)
            case CloseCursor():
                return self._close_cursor(command)
            case PrepareQuery():
                return await self._prepare(command, start)
            case ExecutePrepared():
                return await self._execute(command)
            case Deallocate():
                return self._deallocate(command)
            case _:
                result = await self.commands.run(command, values)
        self._follow(command, result)
        return result

    async def columns(self, command: Command, values: tuple[object, ...]) -> tuple[FieldDescription, ...]:
        """Return a command's columns; runs nothing. Raises as `run`."""
        self.commands.block.check(command)
        if isinstance(command, Fetch):
            if command.is_move or not self.portals.has(command.name):
                return ()
            return await self._portal_columns(self.portals.find(command.name))
        if isinstance(command, ExecutePrepared):
            if not self.statements.has(command.name):
                return ()
            return await self.commands.describe(*self._prepared_query(command))
        return await self.commands.describe(command, values)

    def _follow(self, command: Command, result: Result) -> None:
        """Close the portals that a command ends."""
        if isinstance(command, Discard) and command.what == "all":
            self.statements.clear()
            self.portals.clear()
        elif isinstance(command, End):
            if result.tag == "COMMIT":
                self.portals.commit()
            else:
                self.portals.roll_back()
        elif isinstance(command, Mark):
            depth = self.commands.block.depth
            if command.marking is Marking.ROLLBACK:
                self.portals.roll_back(depth)
            elif command.marking is Marking.RELEASE:
                self.portals.release(depth)

    # --- cursors ---------------------------------------------------------------------------------------

    def open_portal(self, name: str, portal: Portal) -> None:
        """Open a portal of the block at hand. Raises Fault."""
        portal.level = self.commands.block.depth
        self.portals.add(name, portal)

    async def fill(self, portal: Portal, start: int) -> Result:
        """Run a portal's command, and have it keep its rows. Raises as `run`, and Fault (53400) for too many rows."""
        assert portal.prepared.command is not None, "only Parse makes a statement of nothing"
        if isinstance(portal.prepared.command, _OF_ROWS):
            self.portals.check_room()
        result = await self.run(portal.prepared.command, portal.values, start)
        self.portals.keep(portal, result)
        return result

    async def _declare(self, command: Declare, values: tuple[object, ...], start: int) -> Result:
        query = self.commands.queries.sort(command.query)
        columns = await self.commands.describe(query, values)
        if not command.is_held and not self.commands.block.is_lasting:
            raise Fault("25P01", "DECLARE without WITH HOLD can only be used in a block", hint="BEGIN first")
        prepared = PreparedStatement(query, (), len(values), start)
        self.open_portal(
            command.name,
            Portal(
                prepared, Bind(command.name, "", (), (), ()), values, True, command.is_held, command.is_binary,
                command.is_forward_only, columns,
            ),
        )  # fmt: skip
        return Result("DECLARE CURSOR")

    async def _portal_columns(self, portal: Portal) -> tuple[FieldDescription, ...]:
        if portal.result is not None:
            return portal.result.columns
        command = portal.prepared.command
        if portal.is_cursor or not isinstance(command, _OF_ROWS):
            return portal.columns
        return await self.columns(command, portal.values)

    async def _fetch(self, command: Fetch) -> Result:
        portal = self.portals.find(command.name)
        if not isinstance(portal.prepared.command, _OF_ROWS):
            raise Fault(
                "55000", f'portal "{command.name}" cannot be run', hint="only a query's rows are fetched"
            )
        portal.check(command)
        notices: tuple[NoticeResponse, ...] = ()
        if portal.result is None and not (command.count == 0 and command.direction is not Direction.ABSOLUTE):
            block = self.commands.block
            had_queried = block.has_queried
            with elsewhere():
                notices = (await self.fill(portal, portal.prepared.start)).notices
            block.has_queried = had_queried  # a fetch settles no modes
        if portal.result is None:
            columns = await self._portal_columns(portal)
            return (
                Result("MOVE 0") if command.is_move else Result("FETCH", columns, is_binary=portal.is_binary)
            )
        rows = portal.take(command)
        if command.is_move:
            return Result(f"MOVE {len(rows)}", notices=notices)
        return Result("FETCH", portal.result.columns, rows, notices, is_binary=portal.is_binary)

    def _close_cursor(self, command: CloseCursor) -> Result:
        if command.name is None:
            self.portals.clear()
            return Result("CLOSE CURSOR ALL")
        self.portals.find(command.name)
        self.portals.close(command.name)
        return Result("CLOSE CURSOR")

    # --- prepared statements ---------------------------------------------------------------------------

    async def _prepare(self, command: PrepareQuery, start: int) -> Result:
        count = count_parameters(Engine(command.query))
        query, types = self.commands.queries.sort(command.query), parameter_types(command.types, count)
        prepared = PreparedStatement(query, types, count, start)
        await self.infer(prepared)
        self.statements.add(command.name, prepared)
        return Result("PREPARE")

    async def infer(self, prepared: PreparedStatement) -> None:
        """Find a statement's columns, and the types of its parameters that nobody has declared. Raises as `run`."""
        command = prepared.command
        if isinstance(command, (Engine, CatalogQuery)):
            named, others = prepared.types[: prepared.count], prepared.types[prepared.count :]
            found = await self.commands.queries.describe_parameters(command, named, self.commands.client)
            prepared.described, prepared.types = found[0], (*found[1], *others)
            if isinstance(command, CatalogQuery):
                prepared.command = replace(command, types=found[1])
        elif command is not None:
            prepared.described = await self.columns(command, (None,) * prepared.count)
            prepared.types = tuple(oid or Oid.TEXT for oid in prepared.types)

    def _prepared_query(self, command: ExecutePrepared) -> tuple[Query, tuple[object, ...]]:
        prepared = self.statements.find(command.name)
        if not isinstance(prepared.command, (Engine, CatalogQuery)):
            raise unsupported("EXECUTE of what is no query", "execute it through the driver")
        values = argument_values(command.name, command.arguments, prepared.types)
        return prepared.command, values[: prepared.count]

    async def _execute(self, command: ExecutePrepared) -> Result:
        query, values = self._prepared_query(command)
        with elsewhere():
            return await self.commands.run(query, values)

    def _deallocate(self, command: Deallocate) -> Result:
        if command.name is None:
            self.statements.clear()
            return Result("DEALLOCATE ALL")
        self.statements.find(command.name)
        self.statements.close(command.name)
        return Result("DEALLOCATE")

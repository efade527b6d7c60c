"""The one dispatcher: each kind of statement to what answers it, for both protocols.

Queries go to the session or to the system catalog (`Queries`), blocks and settings to the connection's own
(`ConnectionState`); cursors and prepared statements are answered here.

House rule: a cursor's query runs once, when its first rows are fetched, and is charged then; every later fetch reads
what was kept. What is prepared or declared is described at once, so that its errors come there; that costs nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from ..pgwire import Bind, FieldDescription, NoticeResponse, Oid
from ..sql.text import ScriptStatement
from . import statements as ask
from .columns import argument_values, parameter_types
from .report import Fault, elsewhere, unsupported
from .state import ConnectionState, Portal, Portals, PreparedStatement, PreparedStatements
from .statements import Direction, Result, Statement, count_parameters, read_statement
from .worker import Queries

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

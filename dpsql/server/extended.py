"""The extended protocol: Parse, Bind, Describe, Execute and Close of one connection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..pgwire import (
    Bind,
    BindComplete,
    Close,
    CloseComplete,
    CommandComplete,
    Describe,
    EmptyQueryResponse,
    Execute,
    FieldDescription,
    Format,
    NoData,
    Oid,
    ParameterDescription,
    Parse,
    ParseComplete,
    PortalSuspended,
    RowDescription,
    Target,
)
from .columns import in_formats, must_be_typed, parameter_types, read_values, typed_nulls
from .lexical import cut
from .outbox import Outbox
from .portals import Portal
from .prepared import PreparedStatement, as_described, fitted
from .read_statement import count_parameters
from .report import Fault
from .runner import StatementRunner
from .statements import CatalogQuery, Command, Engine
from .transaction import BlockKind

__all__ = ["Extended"]


class Extended:
    """Answers the messages up to Sync; `start` is where the statement at hand begins in what the client sent."""

    def __init__(self, outbox: Outbox, runner: StatementRunner) -> None:
        self._outbox, self._runner = outbox, runner
        self.start = 0

    async def parse(self, event: Parse) -> None:
        """Prepare a statement. Raises Fault, Refusal."""
        self._runner.statements.check(event.statement)
        pieces = cut(event.sql)
        if len(pieces) > 1:
            raise Fault(
                "42601", "there is more than one statement", hint="prepare one at a time",
                position=pieces[1].start,
            )  # fmt: skip
        prepared = PreparedStatement(None, parameter_types(event.parameter_types, 0), 0, 0)
        for piece in pieces:
            self.start = piece.start
            command = self._read(piece.text)
            self._runner.commands.block.check(command)
            count = count_parameters(command)
            types = parameter_types(event.parameter_types, count)
            prepared = PreparedStatement(command, types, count, piece.start)
            if isinstance(command, CatalogQuery):
                await self._runner.infer(prepared)
        self._runner.statements.add(event.statement, prepared)
        self._outbox.send(ParseComplete())

    def _read(self, text: str) -> Command:
        try:
            return self._runner.read(text)
        except Fault as fault:
            if fault.sqlstate != "42601":
                self._runner.commands.block.check(None)
            raise

    async def bind(self, event: Bind) -> None:
        """Open a portal; a value that only its type can read has it found, where nobody has declared it.

        Raises Fault, ParameterError, and as `Runner.infer`.
        """
        prepared = self._runner.statements.find(event.statement)
        self._runner.commands.block.check(prepared.command)
        if 0 in prepared.types and must_be_typed(event):
            await self._runner.infer(prepared)
        values = read_values(event, prepared.types)[: prepared.count]
        if isinstance(prepared.command, Engine):
            values = typed_nulls(values, prepared.types[: prepared.count])
        size = sum(len(value) for value in event.parameters if value is not None)
        portal = Portal(prepared, replace(event, parameters=()), values, size=size)
        self._runner.open_portal(event.portal, portal)
        self._outbox.send(BindComplete())

    async def describe(self, event: Describe) -> None:
        """Describe a statement or a portal; nothing is run. Raises as `Runner.columns`."""
        if event.target is Target.STATEMENT:
            prepared = self._runner.statements.find(event.name)
            self.start = prepared.start
            self._runner.commands.block.check(prepared.command)
            if prepared.described is None:
                await self._runner.infer(prepared)
            columns = prepared.described or ()
            self._outbox.send(ParameterDescription(tuple(oid or Oid.TEXT for oid in prepared.types)))
            formats = [Format.TEXT] * len(columns)
        else:
            portal = self._runner.portals.find(event.name)
            columns = await self._columns(portal.prepared, portal.values)
            formats = portal.formats(len(columns))
        self._outbox.send(RowDescription(in_formats(columns, formats)) if columns else NoData())

    async def _columns(
        self, prepared: PreparedStatement, values: tuple[object, ...]
    ) -> tuple[FieldDescription, ...]:
        """Return the columns as Describe has told them already, or as they are. Raises as `Runner.columns`."""
        self.start = prepared.start
        if prepared.command is None:
            return ()
        columns = await self._runner.columns(prepared.command, values)
        return columns if prepared.described is None else as_described(columns, prepared.described)

    async def execute(self, event: Execute) -> None:
        """Run a portal, or go on with it. Raises as `Runner.run`."""
        portal = self._runner.portals.find(event.portal)
        prepared = portal.prepared
        self.start = prepared.start
        if prepared.command is None:
            self._outbox.send(EmptyQueryResponse())
            return
        is_first = self._runner.commands.block.kind is BlockKind.NONE
        self._runner.open_block(BlockKind.SINGLE if is_first else BlockKind.PIPELINE)
        self._runner.commands.block.check(prepared.command)
        result = portal.result
        notes: list[Any] = []
        if portal.is_broken or (result is not None and (result.copy or not result.columns)):
            raise Fault("55000", f'portal "{event.portal}" cannot be run', hint="bind it again")
        if result is None:
            told = None
            if prepared.described is not None and portal.values:
                told = await self._columns(prepared, portal.values)
            result = await self._runner.fill(portal, prepared.start)
            if told is not None:
                result = portal.result = fitted(result, told)
            notes = [*result.notices, *result.statuses]
        if result.copy is not None:
            await self._outbox.copy(result, result.copy)
            portal.result = replace(result, rows=())
            self._outbox.send(*notes, CommandComplete(result.tag_of(len(result.rows))))
            return
        first, end = portal.take_forward(event.max_rows if event.max_rows > 0 else None)
        if result.columns:
            await self._outbox.rows(result, portal.formats(len(result.columns)), first, end)
        is_suspended = bool(result.columns) and event.max_rows > 0 and end - first == event.max_rows
        last = PortalSuspended() if is_suspended else CommandComplete(result.tag_of(end - first))
        self._outbox.send(*notes, last)

    def close(self, event: Close) -> None:
        """Forget a statement or a portal, if there is one."""
        if event.target is Target.STATEMENT:
            self._runner.statements.close(event.name)
        else:
            self._runner.portals.close(event.name)
        self._outbox.send(CloseComplete())

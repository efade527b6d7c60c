"""What statements do on one connection: blocks, settings, and the session's answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from ..engine.settings import OWN, Settings
from ..pgwire import FieldDescription, NoticeResponse, Oid, ParameterStatus
from .client_settings import ClientSettings
from .queries import Queries
from .report import Fault, elsewhere
from .statements import (
    Begin,
    CatalogQuery,
    Characteristics,
    Command,
    CopyOut,
    Discard,
    Done,
    End,
    Engine,
    Mark,
    Reset,
    Result,
    Set,
    Show,
)
from .transaction import BlockKind, TransactionBlock
from .worker import Worker

__all__ = ["Commands", "Result"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a rollback restores. `lasting`: dpsql's own settings after the block; None: as they are."""

    client: ClientSettings
    own: Settings
    lasting: Settings | None


@dataclass
class Commands:
    """One connection's state that statements read and change."""

    worker: Worker
    queries: Queries
    client: ClientSettings
    first: Settings
    """What dpsql's own settings were at connect."""
    block: TransactionBlock[_Kept] = field(default_factory=TransactionBlock)
    _lasting: Settings | None = None

    async def describe(self, command: Command, values: Sequence[object]) -> tuple[FieldDescription, ...]:
        """Return a command's columns; runs nothing. Raises as `run`."""
        if isinstance(command, (Engine, CatalogQuery)):
            return await self.queries.describe(command, values, self.client)
        return self._show(command).columns if isinstance(command, Show) else ()

    async def run(self, command: Command, values: Sequence[object]) -> Result:
        """Run a command once.

        Raises DpsqlError, Fault, ClientGone.
        """
        if isinstance(command, (Engine, CatalogQuery)):
            return await self.queries.run(command, values, self.client)
        if isinstance(command, CopyOut):
            with elsewhere() if command.is_table else nullcontext():
                result = await self.queries.run(self.queries.sort(command.query), values, self.client)
            return replace(result, tag="COPY", copy=command)
        if isinstance(command, Show):
            return self._show(command)
        if isinstance(command, (Begin, Characteristics)):
            return self._modes(command)
        if isinstance(command, (End, Mark)):
            return self._end(command) if isinstance(command, End) else self._mark(command)
        if isinstance(command, (Set, Reset)):
            return self._set(command)
        if isinstance(command, Discard):
            return self._discard(command)
        assert isinstance(command, Done), "cursors and prepared statements belong to the runner"
        is_warned = command.warning is not None and not self.block.is_lasting
        return Result(command.tag, notices=self._warn("25P01", command.warning if is_warned else None))

    # --- blocks --------------------------------------------------------------------------------------

    def open_block(self, kind: BlockKind) -> None:
        """Have the next statement stand in a block, if no BEGIN has made one."""
        if self.block.open(kind, self._now()):
            self.client = self.client.in_block()

    def close_block(self, *, is_commit: bool) -> tuple[ParameterStatus, ...]:
        """End the block, whatever made it; return what the client has to be told."""
        is_commit, kept = self.block.end(is_commit, self._now())
        return self._restore(_after_block(kept) if is_commit else kept)

    def fail_block(self) -> tuple[ParameterStatus, ...]:
        """Have the block that BEGIN made fail; return what the client has to be told."""
        return self._restore(self.block.fail())

    def _now(self) -> _Kept:
        return _Kept(self.client, self.worker.session.settings, self._lasting)

    def _restore(self, kept: _Kept) -> tuple[ParameterStatus, ...]:
        self.worker.session.settings, self._lasting = kept.own, kept.lasting
        return self._keep(kept.client)

    def _modes(self, command: Begin | Characteristics) -> Result:
        if isinstance(command, Characteristics) and command.is_session:
            return Result("SET", statuses=self._keep(self.client.with_modes(command.modes, "default_")))
        warning = None
        for name, value in command.modes:
            self._check_mode(name, value)
        if isinstance(command, Begin):
            notices = self._warn("25001", self.block.begin())
        else:
            if not self.block.is_lasting:
                warning = "SET TRANSACTION can only be used in transaction blocks"
            notices = self._warn("25P01", warning)
        statuses = self._keep(self.client.with_modes(command.modes))
        return Result(
            command.tag if isinstance(command, Begin) else "SET", notices=notices, statuses=statuses
        )

    def _check_mode(self, name: str, value: str) -> None:
        """Raise Fault (25001) if a mode of the block at hand is settled."""
        is_level = name == "transaction_isolation"
        if name == "transaction_read_only" or (is_level and self.client.show(name)[1] == value):
            return
        if self.block.has_queried or self.block.depth:
            what = "the isolation level" if is_level else "DEFERRABLE"
            raise Fault("25001", f"{what} must be set before any query of the block", hint="BEGIN with it")

    def _end(self, command: End) -> Result:
        written = "COMMIT" if command.is_commit else "ROLLBACK"
        was_begun, modes = self.block.kind is BlockKind.BEGUN, self.client.modes()
        if command.is_chain and not was_begun:
            raise Fault("25P01", f"{written} AND CHAIN can only be used in a block", hint="BEGIN first")
        warning = None if was_begun else "there is no transaction in progress"
        notices = self._warn("25P01", warning)
        tag = "COMMIT" if command.is_commit and not self.block.is_failed else "ROLLBACK"
        statuses = self.close_block(is_commit=command.is_commit)
        if command.is_chain:
            self.open_block(BlockKind.BEGUN)
            self._keep(self.client.with_modes(modes))
        return Result(tag, notices=notices, statuses=statuses)

    def _mark(self, command: Mark) -> Result:
        statuses = self._restore(self.block.mark(command, self._now()))
        return Result(command.marking.value, statuses=statuses)

    # --- settings ------------------------------------------------------------------------------------

    def _set(self, command: Set | Reset) -> Result:
        tag = "SET" if isinstance(command, Set) else command.tag
        name, warning = command.name, None
        if command.is_local and not self.block.is_lasting:
            warning = "SET LOCAL can only be used in transaction blocks"
        notices = self._warn("25P01", warning)
        if name is None:
            return Result(tag, statuses=self._reset_all())
        if name.startswith("dpsql."):
            self._set_own(command, name)
            return Result(tag, notices=notices)
        if isinstance(command, Reset):
            return Result(
                tag, (), (), notices, self._keep(self.client.reset(name, is_local=command.is_local))
            )
        if name.startswith("transaction_") and len(command.values) == 1:
            self._check_mode(name, command.values[0].lower())
        changed = self.client.set(name, command.values, is_local=command.is_local)
        taken = self.client.warning(name, command.values)
        if taken is not None and self.client.wants_warnings:
            notices = (*notices, taken)
        return Result(tag, notices=notices, statuses=self._keep(changed))

    def _set_own(self, command: Set | Reset, name: str) -> None:
        """Set one of dpsql's own settings. Raises Refusal."""
        session = self.worker.session

        def changed(settings: Settings) -> Settings:
            if isinstance(command, Set):
                return settings.set(name, ", ".join(command.values), session.policy)
            fresh = settings.reset(name, session.policy)
            own = name.removeprefix("dpsql.")
            return replace(fresh, **{own: getattr(self.first, own)})

        now = session.settings
        if command.is_local:
            self._lasting = now if self._lasting is None else self._lasting
        elif self._lasting is not None:
            self._lasting = changed(self._lasting)
        session.settings = changed(now)

    def _discard(self, command: Discard) -> Result:
        if command.what == "all" and not self.block.is_alone:
            raise Fault("25001", "DISCARD ALL cannot run inside a block", hint="COMMIT or ROLLBACK first")
        statuses = self._reset_all() if command.what == "all" else ()
        return Result(f"DISCARD {command.what.upper()}", statuses=statuses)

    def _reset_all(self) -> tuple[ParameterStatus, ...]:
        self.worker.session.settings, self._lasting = self.first, None
        return self._keep(self.client.reset_all())

    def _keep(self, settings: ClientSettings) -> tuple[ParameterStatus, ...]:
        """Take over the client's settings, and return what it has to be told."""
        if not settings.may_report(self.client):
            self.client = settings
            return ()
        before, self.client = self.client.reported(), settings
        after = settings.reported()
        return tuple(ParameterStatus(name, after[name]) for name in after if after[name] != before[name])

    def _warn(self, sqlstate: str, message: str | None) -> tuple[NoticeResponse, ...]:
        if message is None or not self.client.wants_warnings:
            return ()
        return (NoticeResponse(sqlstate, message, severity="WARNING"),)

    # --- answers -------------------------------------------------------------------------------------

    def _show(self, command: Show) -> Result:
        if command.name is not None:
            name, value = self.client.show(command.name)
            return Result("SHOW", (FieldDescription(name, Oid.TEXT),), [(value,)])
        columns = (FieldDescription("name", Oid.TEXT), FieldDescription("setting", Oid.TEXT))
        settings = self.worker.session.settings
        return Result(
            "SHOW",
            columns,
            sorted([*self.client.show_all(), *[(name, settings.show(name)) for name in OWN]]),
        )


def _after_block(kept: _Kept) -> _Kept:
    own = kept.own if kept.lasting is None else kept.lasting
    return _Kept(kept.client.after_block(), own, None)

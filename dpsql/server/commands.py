"""What statements do on one connection: blocks, settings, and the session's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..engine import Answer, AnswerColumn, Receipt
from ..engine.settings import Settings, decimal_text
from ..pgwire import NoticeResponse, ParameterStatus
from ..relation.types import BOOLEAN, INTEGER, TEXT, SqlType
from .client_settings import VERSION_TEXT, ClientSettings
from .log import log
from .read_statement import (
    Begin,
    Command,
    Constants,
    CopyOut,
    Deallocate,
    Discard,
    Done,
    End,
    Engine,
    Mark,
    Reset,
    Set,
    Show,
)
from .transaction import Block
from .worker import Worker

__all__ = ["Commands", "Result"]

_FUNCTIONS: dict[str, SqlType] = {"pg_backend_pid": INTEGER, "pg_is_in_recovery": BOOLEAN}
_Kept = tuple[ClientSettings, Settings]


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gives: rows, or its tag alone; `copy`: the rows go out as a copy."""

    tag: str
    columns: tuple[AnswerColumn, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    notices: tuple[NoticeResponse, ...] = ()
    statuses: tuple[ParameterStatus, ...] = ()
    copy: CopyOut | None = None

    def tag_of(self, count: int) -> str:
        """Return the tag after so many rows."""
        return f"{self.tag} {count}" if self.tag in ("SELECT", "COPY", "FETCH") else self.tag


@dataclass
class Commands:
    """One connection's state that statements read and change."""

    worker: Worker
    client: ClientSettings
    database: str
    process_id: int
    first: Settings
    """What dpsql's own settings were at connect."""
    block: Block[_Kept] = field(default_factory=Block)

    async def describe(self, command: Command, values: Sequence[object]) -> tuple[AnswerColumn, ...]:
        """Return a command's columns; runs nothing. Raises as `run`."""
        if isinstance(command, Engine):
            return await self.worker.describe(command.text, values)
        if isinstance(command, Show):
            return self._show(command).columns
        return self._constants(command).columns if isinstance(command, Constants) else ()

    async def run(self, command: Command, values: Sequence[object]) -> Result:
        """Run a command once.

        Raises DpsqlError, Fault, ClientGone.
        """
        if isinstance(command, Engine):
            return await self._answer(command.text, values)
        if isinstance(command, CopyOut):
            result = await self._answer(command.query, values)
            return Result("COPY", result.columns, result.rows, result.notices, copy=command)
        if isinstance(command, Show):
            return self._show(command)
        if isinstance(command, Constants):
            return self._constants(command)
        if isinstance(command, (Begin, End, Mark)):
            return self._in_block(command)
        if isinstance(command, (Set, Reset, Deallocate, Discard)):
            return self._change(command)
        assert isinstance(command, Done), "cursors belong to the conversation"
        return Result(command.tag)

    async def _answer(self, sql: str, values: Sequence[object]) -> Result:
        answer = await self.worker.execute(sql, values, self.client.timeout)
        analyst = self.worker.session.analyst
        if answer.receipt is not None:
            log(
                "answered", analyst=analyst, epsilon=decimal_text(answer.receipt.epsilon),
                left=decimal_text(answer.receipt.left), process=self.process_id,
            )  # fmt: skip
        return Result(answer.command, answer.columns, answer.rows, self._notices(answer))

    def _notices(self, answer: Answer) -> tuple[NoticeResponse, ...]:
        if answer.receipt is None or not self.client.wants_notices:
            return ()
        line = _receipt_line(answer.receipt)
        return (NoticeResponse("00000", line),) if line else ()

    def _show(self, command: Show) -> Result:
        if command.name is not None:
            name, value = self.client.show(command.name)
            return Result("SHOW", (AnswerColumn(name, TEXT),), [(value,)])
        columns = (AnswerColumn("name", TEXT), AnswerColumn("setting", TEXT))
        settings = self.worker.session.settings
        own = [(name, settings.show(name)) for name in ("dpsql.epsilon", "dpsql.intervals", "dpsql.reuse")]
        return Result("SHOW", columns, sorted([*self.client.show_all(), *own]))

    def _constants(self, command: Constants) -> Result:
        values: dict[str, object] = {
            "version": VERSION_TEXT,
            "current_schema": self.worker.session.catalog.default_schema,
            "pg_backend_pid": self.process_id,
            "pg_is_in_recovery": False,
            "pg_advisory_unlock_all": "",
            **dict.fromkeys(("current_database", "current_catalog"), self.database),
            **dict.fromkeys(("current_user", "session_user", "current_role", "user"), self.client.user),
        }
        columns = tuple(
            AnswerColumn(name, _FUNCTIONS.get(function, TEXT)) for function, name in command.items
        )
        return Result("SELECT", columns, [tuple(values[function] for function, _ in command.items)])

    def _in_block(self, command: Begin | End | Mark) -> Result:
        now = (self.client, self.worker.session.settings)
        warning = None
        if isinstance(command, Begin):
            tag, warning = self.block.begin(command, now)
        elif isinstance(command, End):
            tag, now, warning = self.block.end(command, now)
        else:
            tag, now = command.marking.value, self.block.mark(command, now)
        self.worker.session.settings = now[1]
        code = "25001" if isinstance(command, Begin) else "25P01"
        notices = (NoticeResponse(code, warning, severity="WARNING"),) if warning else ()
        return Result(tag, notices=notices, statuses=self._keep(now[0]))

    def _change(self, command: Set | Reset | Deallocate | Discard) -> Result:
        if isinstance(command, Set):
            return Result("SET", statuses=self._keep(self.client.set(command.name, command.value)))
        if isinstance(command, Reset) and command.name is not None:
            return Result("RESET", statuses=self._keep(self.client.reset(command.name)))
        if isinstance(command, Reset):
            return Result("RESET", statuses=self._reset_all())
        if isinstance(command, Deallocate):
            return Result("DEALLOCATE" if command.name else "DEALLOCATE ALL")
        statuses = self._reset_all() if command.what == "all" else ()
        return Result(f"DISCARD {command.what.upper()}", statuses=statuses)

    def _reset_all(self) -> tuple[ParameterStatus, ...]:
        self.worker.session.settings = self.first
        return self._keep(self.client.reset_all())

    def _keep(self, settings: ClientSettings) -> tuple[ParameterStatus, ...]:
        """Take over the client's settings, and return what it has to be told."""
        before, self.client = self.client.reported(), settings
        after = settings.reported()
        return tuple(ParameterStatus(name, after[name]) for name in after if after[name] != before[name])


def _receipt_line(receipt: Receipt) -> str:
    """Return what a statement cost and what is left; nothing where nothing private was asked."""
    left = f"{decimal_text(receipt.left)} left"
    if receipt.epsilon:
        delta = f", delta {decimal_text(receipt.delta)}" if receipt.delta else ""
        return f"charged epsilon {decimal_text(receipt.epsilon)}{delta}; {left}"
    return f"free: answered before; epsilon {left}" if receipt.reused else ""

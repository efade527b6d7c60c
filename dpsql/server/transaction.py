"""A client's block: what it can see of one. The ledger stands outside: no charge is ever rolled back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..pgwire import TransactionStatus
from .read_statement import Begin, Command, End, Mark, Marking
from .report import Fault

__all__ = ["Block"]

_Kept = TypeVar("_Kept")
_MAX_SAVEPOINTS = 100


@dataclass
class Block(Generic[_Kept]):
    """The block that a connection is in, if any; `_Kept` is what a rollback restores: the settings."""

    status: TransactionStatus = TransactionStatus.IDLE
    _before: list[tuple[str, _Kept]] = field(default_factory=list)
    """What was kept at BEGIN, under "", and at each savepoint."""

    def check(self, command: Command) -> None:
        """Raise Fault (25P02) if the block has failed and the command does not end it or go back in it."""
        ends = isinstance(command, End) or (isinstance(command, Mark) and command.marking is Marking.ROLLBACK)
        if self.status is TransactionStatus.FAILED and not ends:
            raise Fault(
                "25P02", "the block has failed: statements are ignored until it ends", hint="ROLLBACK"
            )

    def fail(self) -> None:
        """Take note of an error."""
        if self.status is TransactionStatus.IN_BLOCK:
            self.status = TransactionStatus.FAILED

    def begin(self, command: Begin, now: _Kept) -> tuple[str, str | None]:
        """Begin; return the tag, and a warning for a block in a block."""
        if self.status is not TransactionStatus.IDLE:
            return command.tag, "there is already a transaction in progress"
        self.status = TransactionStatus.IN_BLOCK
        self._before = [("", now)]
        return command.tag, None

    def end(self, command: End, now: _Kept) -> tuple[str, _Kept, str | None]:
        """End; return the tag, the settings from here on, and a warning where there was no block."""
        if self.status is TransactionStatus.IDLE:
            return "COMMIT" if command.is_commit else "ROLLBACK", now, "there is no transaction in progress"
        is_commit = command.is_commit and self.status is TransactionStatus.IN_BLOCK
        kept = now if is_commit else self._before[0][1]
        self.status = TransactionStatus.IDLE
        self._before = []
        return "COMMIT" if is_commit else "ROLLBACK", kept, None

    def mark(self, command: Mark, now: _Kept) -> _Kept:
        """Make, release or go back to a savepoint; return the settings from here on.

        Raises Fault: outside a block (25P01), no such savepoint (3B001), or too many (54000).
        """
        what = command.marking
        if self.status is TransactionStatus.IDLE:
            raise Fault("25P01", f"{what.value} can only be used in a block", hint="BEGIN first")
        if what is Marking.SAVE:
            if len(self._before) > _MAX_SAVEPOINTS:
                raise Fault("54000", "too many savepoints", hint="release some")
            self._before.append((command.name, now))
            return now
        places = [place for place, (name, _) in enumerate(self._before) if place and name == command.name]
        if not places:
            raise Fault("3B001", f'savepoint "{command.name}" does not exist')
        if what is Marking.RELEASE:
            del self._before[places[-1] :]
            return now
        del self._before[places[-1] + 1 :]
        self.status = TransactionStatus.IN_BLOCK
        return self._before[places[-1]][1]

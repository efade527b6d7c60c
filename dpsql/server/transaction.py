"""A client's block: what it can see of one. The ledger stands outside: no charge is ever rolled back.

As in Postgres, every statement stands in a block: one of its own, one of all statements of a Query (a series) or up
to a Sync (a pipeline), or one that BEGIN made and that ReadyForQuery tells of.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..pgwire import TransactionStatus
from .report import Fault
from .statements import Command, End, Mark, Marking

__all__ = ["BlockKind", "TransactionBlock"]

_Kept = TypeVar("_Kept")
_MAX_SAVEPOINTS = 100


class BlockKind(enum.Enum):
    """What made the block."""

    NONE = enum.auto()
    SINGLE = enum.auto()
    PIPELINE = enum.auto()
    SERIES = enum.auto()
    BEGUN = enum.auto()


@dataclass
class TransactionBlock(Generic[_Kept]):
    """The block that a connection is in, if any; `_Kept` is what a rollback restores: the settings."""

    kind: BlockKind = BlockKind.NONE
    is_failed: bool = False
    has_queried: bool = False
    """Whether a statement has read: its modes are settled from then on."""
    _before: list[tuple[str, _Kept]] = field(default_factory=list)
    """What was kept at its beginning, under "", and at each savepoint."""

    @property
    def status(self) -> TransactionStatus:
        """What ReadyForQuery says."""
        if self.kind is not BlockKind.BEGUN:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if self.is_failed else TransactionStatus.IN_BLOCK

    @property
    def is_lasting(self) -> bool:
        """Whether more than one statement can stand in it: a cursor may be opened, SET LOCAL lasts."""
        return self.kind in (BlockKind.SERIES, BlockKind.BEGUN)

    @property
    def is_alone(self) -> bool:
        """Whether nothing else stands in it."""
        return self.kind in (BlockKind.NONE, BlockKind.SINGLE)

    @property
    def depth(self) -> int:
        """How many savepoints there are."""
        return max(len(self._before) - 1, 0)

    def check(self, command: Command | None) -> None:
        """Raise Fault (25P02) if the block has failed and the command does not end it or go back in it."""
        ends = isinstance(command, End) or (isinstance(command, Mark) and command.marking is Marking.ROLLBACK)
        if self.is_failed and not ends:
            raise Fault(
                "25P02", "the block has failed: statements are ignored until it ends", hint="ROLLBACK"
            )

    def open(self, kind: BlockKind, now: _Kept) -> bool:
        """Open a block that no BEGIN has made, or make a single one a series; return whether it is new."""
        if self.kind is BlockKind.NONE:
            self.kind, self.is_failed, self.has_queried, self._before = kind, False, False, [("", now)]
            return True
        if self.kind is BlockKind.SINGLE:
            self.kind = kind
        return False

    def begin(self) -> str | None:
        """Make it a block that lasts until its end; return a warning where it is one already."""
        warning = "there is already a transaction in progress" if self.kind is BlockKind.BEGUN else None
        self.kind = BlockKind.BEGUN
        return warning

    def fail(self) -> _Kept:
        """Take note of an error; return the settings of before it: those of the last savepoint, or of BEGIN."""
        self.is_failed = True
        return self._before[-1][1]

    def end(self, is_commit: bool, now: _Kept) -> tuple[bool, _Kept]:
        """End; return whether it is a commit, and the settings from here on."""
        is_commit = is_commit and not self.is_failed
        kept = now if is_commit or not self._before else self._before[0][1]
        self.kind, self.is_failed, self.has_queried, self._before = BlockKind.NONE, False, False, []
        return is_commit, kept

    def mark(self, command: Mark, now: _Kept) -> _Kept:
        """Make, release or go back to a savepoint; return the settings from here on.

        Raises Fault: outside a block (25P01), no such savepoint (3B001), or too many (54000).
        """
        what = command.marking
        if self.kind is not BlockKind.BEGUN:
            written = "ROLLBACK TO SAVEPOINT" if what is Marking.ROLLBACK else what.value
            written = "RELEASE SAVEPOINT" if what is Marking.RELEASE else written
            raise Fault("25P01", f"{written} can only be used in a block", hint="BEGIN first")
        if what is Marking.SAVE:
            if len(self._before) > _MAX_SAVEPOINTS:
                raise Fault("54000", "too many savepoints", hint="release some")
            self._before.append((command.name, now))
            return now
        places = [place for place, (name, _) in enumerate(self._before) if place and name == command.name]
        if not places:
            raise Fault(
                "3B001", f'savepoint "{command.name}" does not exist', hint="it was released, or never made"
            )
        if what is Marking.RELEASE:
            del self._before[places[-1] :]
            return now
        del self._before[places[-1] + 1 :]
        self.is_failed = False
        return self._before[places[-1]][1]

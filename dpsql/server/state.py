"""What the statements of a connection read and change: its block, and what that holds: settings and portals.

The ledger stands outside: no charge is ever rolled back. As in Postgres, every statement stands in a block: one of its
own, one of all statements of a Query (a series) or up to a Sync (a pipeline), or one that BEGIN made and that
ReadyForQuery tells of.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable

from ..engine import Session
from ..engine.settings import OWN
from ..pgwire import FieldDescription, NoticeResponse, Oid, ParameterStatus, TransactionStatus
from .client_settings import ClientSettings
from .portals import Portals
from .report import Fault
from .statements import Begin, Characteristics, End, Mark, Marking, Result, Set, Show, Statement

__all__ = ["BlockKind", "ConnectionState"]

_MAX_SAVEPOINTS = 100


class BlockKind(enum.Enum):
    """What made the block."""

    NONE = enum.auto()
    SINGLE = enum.auto()
    PIPELINE = enum.auto()
    SERIES = enum.auto()
    BEGUN = enum.auto()


class ConnectionState:
    """The block that a connection is in, if any, its settings, which a rollback restores, and its portals."""

    def __init__(self, session: Session, client: ClientSettings) -> None:
        self.client = self._told = client
        """The settings now, and as the client knows them."""
        self.kind = BlockKind.NONE
        self.is_failed = False
        self.has_queried = False
        """Whether a statement of the block has read: its modes are settled from then on."""
        self.portals = Portals(session.share())
        self._session = session
        session.settings = client.own
        self._shown: tuple[object, Hashable] = None, None
        """The client's settings when they were last compared, and what with."""
        self._before = list[tuple[str, ClientSettings]]()
        """What held at the block's beginning, under "", and at each savepoint."""

    # --- the block -----------------------------------------------------------------------------------

    @property
    def status(self) -> TransactionStatus:
        """What ReadyForQuery says."""
        if self.kind is not BlockKind.BEGUN:
            return TransactionStatus.IDLE
        return TransactionStatus.FAILED if self.is_failed else TransactionStatus.IN_BLOCK

    @property
    def is_bare(self) -> bool:
        """Whether there is no block, and no setting that holds until one ends."""
        return self.kind is BlockKind.NONE and not self.client.local

    @property
    def settings(self) -> Hashable:
        """All settings, outside a block, as what can be compared."""
        if self._shown[0] is not self.client.now:
            self._shown = self.client.now, tuple(sorted(self.client.now.items()))
        return self._shown[1]

    @property
    def is_lasting(self) -> bool:
        """Whether more than one statement can stand in the block: a cursor may be opened, SET LOCAL lasts."""
        return self.kind in (BlockKind.SERIES, BlockKind.BEGUN)

    @property
    def is_alone(self) -> bool:
        """Whether nothing else stands in the block."""
        return self.kind in (BlockKind.NONE, BlockKind.SINGLE)

    @property
    def depth(self) -> int:
        """How many savepoints there are."""
        return max(len(self._before) - 1, 0)

    def check(self, statement: Statement | None) -> None:
        """Raise Fault (25P02) if the block has failed and the statement does not end it or go back in it."""
        ends = isinstance(statement, End) or (
            isinstance(statement, Mark) and statement.marking is Marking.ROLLBACK
        )
        if self.is_failed and not ends:
            raise Fault(
                "25P02", "the block has failed: statements are ignored until it ends", hint="ROLLBACK"
            )

    def open(self, kind: BlockKind) -> None:
        """Have the next statement stand in a block, if no BEGIN has made one; a single one becomes a series."""
        if self.kind is BlockKind.NONE:
            self._before = [("", self.client)]
            self.kind, self.is_failed, self.has_queried = kind, False, False
            self.client = self.client.in_block()
        elif self.kind is BlockKind.SINGLE:
            self.kind = kind

    def settle(self) -> None:
        """End a block that no BEGIN has made, once all that was sent at once is answered."""
        if self.kind is not BlockKind.BEGUN:
            self._close(is_commit=True)

    def abort(self) -> None:
        """Take note of an error: what no BEGIN has made is undone, or what was since the last savepoint, or BEGIN."""
        if self.kind is BlockKind.BEGUN:
            self.is_failed = True
            self._keep(self._before[-1][1])
        else:
            self._close(is_commit=False)

    def _close(self, *, is_commit: bool) -> None:
        """End the block, whatever made it."""
        after = self.client
        if is_commit and not self.is_failed:
            after = after.after_block()
            self.portals.commit()
        else:
            after = self._before[0][1] if self._before else after
            self.portals.roll_back()
        self.kind, self.is_failed, self.has_queried, self._before = BlockKind.NONE, False, False, []
        self._keep(after)

    def end(self, statement: End) -> Result:
        """Commit or roll back; the tag says which it was."""
        was_begun, modes = self.kind is BlockKind.BEGUN, self.client.modes()
        if statement.is_chain and not was_begun:
            written = "COMMIT" if statement.is_commit else "ROLLBACK"
            raise Fault("25P01", f"{written} AND CHAIN can only be used in a block", hint="BEGIN first")
        notices = self.warn("25P01", None if was_begun else "there is no transaction in progress")
        tag = "COMMIT" if statement.is_commit and not self.is_failed else "ROLLBACK"
        self._close(is_commit=statement.is_commit)
        if statement.is_chain:
            self.open(BlockKind.BEGUN)
            self._keep(self.client.with_modes(modes))
        return Result(tag, notices=notices)

    def mark(self, statement: Mark) -> Result:
        """Make, release or go back to a savepoint.

        Raises Fault: outside a block (25P01), no such savepoint (3B001), or too many (54000).
        """
        what = statement.marking
        if self.kind is not BlockKind.BEGUN:
            written = {Marking.ROLLBACK: "ROLLBACK TO SAVEPOINT", Marking.RELEASE: "RELEASE SAVEPOINT"}
            raise Fault(
                "25P01", f"{written.get(what, what.value)} can only be used in a block", hint="BEGIN first"
            )
        if what is Marking.SAVE:
            if len(self._before) > _MAX_SAVEPOINTS:
                raise Fault("54000", "too many savepoints", hint="release some")
            self._before.append((statement.name, self.client))
            return Result(what.value)
        names = [name for name, _ in self._before]
        if statement.name not in names[1:]:
            raise Fault(
                "3B001", f'savepoint "{statement.name}" does not exist', hint="it was released, or never made"
            )
        place = len(names) - 1 - names[::-1].index(statement.name)
        if what is Marking.RELEASE:
            del self._before[place:]
            self.portals.release(self.depth)
            return Result(what.value)
        del self._before[place + 1 :]
        self.portals.roll_back(self.depth)
        self.is_failed = False
        self._keep(self._before[place][1])
        return Result(what.value)

    def set_modes(self, statement: Begin | Characteristics) -> Result:
        """Begin a block, or set the modes of the one at hand, or of all to come."""
        if isinstance(statement, Characteristics) and statement.is_session:
            self._keep(self.client.with_modes(statement.modes, "default_"))
            return Result("SET")
        for name, value in statement.modes:
            self._check_mode(name, value)
        if isinstance(statement, Begin):
            tag, is_begun = statement.tag, self.kind is BlockKind.BEGUN
            notices = self.warn("25001", "there is already a transaction in progress" if is_begun else None)
            self.kind = BlockKind.BEGUN
        else:
            tag, warning = "SET", "SET TRANSACTION can only be used in transaction blocks"
            notices = self.warn("25P01", None if self.is_lasting else warning)
        self._keep(self.client.with_modes(statement.modes))
        return Result(tag, notices=notices)

    def _check_mode(self, name: str, value: str) -> None:
        """Raise Fault (25001) if a mode of the block at hand is settled."""
        is_level = name == "transaction_isolation"
        if name == "transaction_read_only" or (is_level and self.client.show(name)[1] == value):
            return
        if self.has_queried or self.depth:
            what = "the isolation level" if is_level else "DEFERRABLE"
            raise Fault("25001", f"{what} must be set before any query of the block", hint="BEGIN with it")

    # --- settings ------------------------------------------------------------------------------------

    def show(self, statement: Show) -> Result:
        """Show a client's setting, or all."""
        if statement.name is not None:
            name, value = self.client.show(statement.name)
            return Result("SHOW", (FieldDescription(name, Oid.TEXT),), [(value,)])
        columns = (FieldDescription("name", Oid.TEXT), FieldDescription("setting", Oid.TEXT))
        own = [(name, self.client.own.show(name)) for name in OWN]
        return Result("SHOW", columns, sorted([*self.client.show_all(), *own]))

    def set(self, statement: Set) -> Result:
        """Set a setting, or have it go back. Raises Fault, Refusal."""
        name, values = statement.name, statement.values
        if name is None:
            self.reset_all()
            return Result(statement.tag)
        warning = "SET LOCAL can only be used in transaction blocks"
        is_warned = statement.is_local and not self.is_lasting
        notices = self.warn("25P01", warning if is_warned else None)
        if values is None:
            changed = self.client.reset(name, is_local=statement.is_local)
        else:
            if name.startswith("transaction_") and len(values) == 1:
                self._check_mode(name, values[0].lower())
            changed = self.client.set(name, values, is_local=statement.is_local)
            notices += self.warn("01000", self.client.warning(name, values))
        self._keep(changed)
        return Result(statement.tag, notices=notices)

    def reset_all(self) -> None:
        """Have all settings be as they were at connect."""
        self._keep(self.client.reset_all())

    def warn(self, sqlstate: str, message: str | None) -> tuple[NoticeResponse, ...]:
        """Return a warning, if there is one and the client wants to be told."""
        if message is None or not self.client.wants_warnings:
            return ()
        return (NoticeResponse(sqlstate, message, severity="WARNING"),)

    def changes(self) -> list[ParameterStatus]:
        """Return what the client has to be told of its settings, which it then knows."""
        told, self._told = self._told, self.client
        if not self._told.may_differ(told):
            return []
        before, after = told.reported(), self._told.reported()
        return [ParameterStatus(name, after[name]) for name in after if after[name] != before[name]]

    def _keep(self, settings: ClientSettings) -> None:
        """Take over settings, of which the session has dpsql's own."""
        if settings.may_differ(self.client):
            self._session.settings = settings.own
        self.client = settings

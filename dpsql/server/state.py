"""What the statements of a connection read and change: its block, and what that holds: settings and portals.

The ledger stands outside: no charge is ever rolled back. As in Postgres, every statement stands in a block: one of its
own, one of all statements of a Query (a series) or up to a Sync (a pipeline), or one that BEGIN made and that
ReadyForQuery tells of.

Prepared statements and portals, and how far each was read; a cursor of SQL is a portal too, which share their names.

Where a cursor stands after FETCH and MOVE, and which rows they give, are Postgres' rules as arithmetic. A position is
a row's number from 1; 0 is before the first, `size` + 1 after the last.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar, overload

from ..engine import Session
from ..engine.settings import OWN
from ..memory import Share, weight_of
from ..pgwire import Bind, FieldDescription, Format, NoticeResponse, Oid, ParameterStatus, TransactionStatus
from ..records import dataclass
from .client_settings import ClientSettings
from .report import Fault
from .statements import (
    Begin,
    Characteristics,
    Direction,
    End,
    Fetch,
    Mark,
    Marking,
    Result,
    Set,
    Show,
    Statement,
)

# --- prepared statements and portals, and how far each was read ---------------------------------------------


_MAX = 1000
"""Portals, and prepared statements, of a connection."""
_MAX_BYTES = 32 * 2**20
_LITTLE = 4096
"""Bytes up to which a portal is not counted, and characters up to which a statement's text is not."""
_MAX_ROWS = 2_000_000
"""Rows that a connection's portals may keep together; one released result has at most a million."""
_HINT = "close cursors that are read; to ask again what was charged is free"
_LIMITS = {Oid.INT2: 2**15, Oid.INT4: 2**31, Oid.INT8: 2**63}


@dataclass
class PreparedStatement:
    """A prepared statement; `statement` None: the text held none. `described`: what Describe has told of it.

    `types`: of its parameters, of which its text names the first `count`; 0: not known yet, and read as text.
    `start`: where it begins in what the client sent.
    """

    statement: Statement | None
    types: tuple[int, ...]
    count: int
    start: int
    described: tuple[FieldDescription, ...] | None = None
    share: Share | None = None
    """Where its text is counted, if it is long and has a name."""

    @property
    def key(self) -> Hashable:
        """All that an execution depends on, as what can be compared."""
        return self.statement, self.types, self.count, self.described


_T = TypeVar("_T", "PreparedStatement", "Portal")


class _Named(Generic[_T]):
    """What a connection keeps by name; "" is the protocol's unnamed one, which gives way to the next."""

    _what: str
    _taken: str
    _missing: str

    def __init__(self, share: Share | None = None) -> None:
        """`share`: where long texts and parameters are counted, and rows that are kept in memory."""
        self._share = share
        self._known: dict[str, _T] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def has_room(self) -> bool:
        """Whether there may be one more."""
        return len(self._known) < _MAX

    def check(self, name: str) -> None:
        """Raise Fault if no more can be added: the name is taken, or there are too many (53400)."""
        if name and name in self._known:
            raise Fault(self._taken, f'{self._what} "{name}" already exists', hint="close it first")
        if not self.has_room:
            raise Fault("53400", f"too many {self._what}s", hint="close some")

    def find(self, name: str) -> _T:
        """Return what has this name. Raises Fault: there is none."""
        found = self._known.get(name)
        if found is None:
            hint = "it ends with its block, or was closed"
            raise Fault(self._missing, f'{self._what} "{name}" does not exist', hint=hint)
        return found

    def has(self, name: str) -> bool:
        """Say whether there is one of this name."""
        return name in self._known

    def close(self, name: str) -> None:
        """Forget what has this name, if there is one."""
        self._known.pop(name, None)

    def clear(self) -> None:
        """Forget all."""
        self._known = {}

    def _count(self, kept: _T, size: int) -> None:
        """Count what is kept, for as long as it is. Raises EngineFailure (53200): no room."""
        if self._share is None or size <= _LITTLE:
            return
        kept.share = kept.share or self._share.another()
        kept.share.take(size, seconds=0)


class PreparedStatements(_Named[PreparedStatement]):
    """The prepared statements of a connection: those of the protocol and of SQL, for both share their names."""

    _what, _taken, _missing = "prepared statement", "42P05", "26000"

    def add(self, name: str, prepared: PreparedStatement) -> None:
        """Add a statement; the unnamed one takes the place of the last. Raises as `check`; EngineFailure (53200)."""
        self.check(name)
        if name:
            self._count(prepared, len(repr(prepared.statement)))
        self._known[name] = prepared

    def clear(self) -> None:
        """Forget all that have a name."""
        self._known = {name: prepared for name, prepared in self._known.items() if not name}


def as_described(
    columns: Sequence[FieldDescription], told: Sequence[FieldDescription]
) -> tuple[FieldDescription, ...]:
    """Return the columns that Describe has told, if they can hold what comes: where the values of parameters give
    them other types, these are within the integers. Raises Fault (0A000): it is of another kind."""
    for column, known in zip(columns, told, strict=True):
        if column.oid != known.oid and not (column.oid in _LIMITS and known.oid in _LIMITS):
            raise Fault(
                "0A000", "the result's types depend on the parameters, and are others than Describe has told",
                hint="cast the parameters: CAST($1 AS integer)",
            )  # fmt: skip
    return tuple(told)


def fitted(result: Result, told: tuple[FieldDescription, ...]) -> Result:
    """Return a result under the columns that were told. Raises Fault (22003): an integer is too large for its own."""
    for index, (column, known) in enumerate(zip(result.columns, told, strict=True)):
        if column.oid == known.oid:
            continue
        limit = _LIMITS[Oid(known.oid)]
        if any(not -limit <= row[index] < limit for row in result.rows if row[index] is not None):  # type: ignore[operator]  # integers
            raise Fault(
                "22003", f'"{known.name}" is out of the range that Describe has told',
                hint="cast it: CAST(… AS bigint); what was charged answers again, free",
            )  # fmt: skip
    return replace(result, columns=told)


@dataclass
class Portal:
    """A prepared statement with its parameters; once it has run, its result, and where the last row taken stands.

    `position`: from 1; 0 is before the first row, one more than there are is after the last. `is_held`: its rows
    outlive the block, and (`is_kept`) have. `level`: how many savepoints there were when it was opened.
    """

    prepared: PreparedStatement
    bind: Bind
    values: tuple[object, ...]
    is_cursor: bool = False
    is_held: bool = False
    is_binary: bool = False
    is_forward_only: bool = True
    columns: tuple[FieldDescription, ...] = ()
    """What a cursor's query was found to give before it has run."""
    level: int = 0
    is_kept: bool = False
    is_broken: bool = False
    result: Result | None = None
    position: int = 0

    size: int = 0
    """Bytes of its parameters."""
    share: Share | None = None
    """Where parameters and rows are counted, if they are many bytes."""

    def formats(self, count: int) -> list[Format]:
        """Return the formats of so many columns. Raises ParameterError: Bind names another number."""
        return list(self.bind.column_formats(count))

    def check(self, how: Fetch) -> None:
        """Raise Fault (55000) if the rows cannot be fetched so; the portal cannot be read on after that."""
        if self.is_broken:
            raise Fault("55000", f'portal "{how.name}" cannot be run', hint="close it, and open it again")
        if self.is_forward_only and _needs_backward(how, self.position, self._size):
            self.is_broken = True
            raise Fault("55000", "the cursor can only go forward", hint="DECLARE … SCROLL CURSOR")

    def take(self, how: Fetch) -> Sequence[tuple[object, ...]]:
        """Return the next rows, and stand at the last of them. Requires: it has run."""
        assert self.result is not None
        places, self.position = step(how, self.position, self._size)
        return _Taken(self.result.rows, range(places.start - 1, places.stop - 1, places.step))

    def take_forward(self, limit: int | None) -> tuple[int, int]:
        """Return the index of the next row and of the end of the next `limit` rows, and pass over them."""
        places, position = step(Fetch("", Direction.FORWARD, limit, False), self.position, self._size)
        self.position = position
        return (places[0] - 1, places[-1]) if places else (0, 0)

    @property
    def _size(self) -> int:
        return 0 if self.result is None else len(self.result.rows)


class Portals(_Named[Portal]):
    """The portals of a connection, by name."""

    _what, _taken, _missing = "portal", "42P03", "34000"

    def add(self, name: str, portal: Portal) -> None:
        """Open a portal; the unnamed one takes the place of the last. Raises as `check`, EngineFailure (53200)."""
        self.check(name)
        if sum(other.size for key, other in self._known.items() if key != name) + portal.size > _MAX_BYTES:
            raise Fault("53400", "the open portals keep too much", hint="close some, or bind shorter values")
        self._count(portal, portal.size)
        self._known[name] = portal

    def check_room(self) -> None:
        """Raise Fault (53400) if no more rows can be kept."""
        if self._rows() >= _MAX_ROWS:
            raise Fault("53400", "the open cursors keep too many rows", hint=_HINT)

    def keep(self, portal: Portal, result: Result) -> None:
        """Have a portal keep its rows. Raises Fault (53400): all together would be too many."""
        if result.columns and result.copy is None and self._rows() + len(result.rows) > _MAX_ROWS:
            raise Fault("53400", "the open cursors would keep too many rows", hint=_HINT)
        if isinstance(result.rows, list):  # others are counted where they were made
            self._count(portal, weight_of(result.rows))
        portal.result = result

    def commit(self) -> None:
        """Close what ends with its block; what is held is kept from here on."""
        self._known = {name: portal for name, portal in self._known.items() if portal.is_held}
        for portal in self._known.values():
            portal.is_kept, portal.level = True, 0

    def roll_back(self, level: int = 0) -> None:
        """Close what was opened in the block, or after so many savepoints of it."""
        self._known = {
            name: portal for name, portal in self._known.items() if portal.is_kept or portal.level < level
        }

    def release(self, level: int) -> None:
        """Take note that there are only so many savepoints left."""
        for portal in self._known.values():
            portal.level = min(portal.level, level)

    def _rows(self) -> int:
        return sum(len(portal.result.rows) for portal in self._known.values() if portal.result is not None)


class _Taken(Sequence[tuple[object, ...]]):
    """Some of a result's rows, which are made when they are read; a slice is a list."""

    def __init__(self, rows: Sequence[tuple[object, ...]], places: range) -> None:
        self._rows, self._places = rows, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> tuple[object, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[object, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[object, ...] | list[tuple[object, ...]]:
        places = self._places[place]
        if isinstance(places, int):
            return self._rows[places]
        if not places:
            return []
        return list(self._rows[min(places[0], places[-1]) : max(places[0], places[-1]) + 1])[:: places.step]


# --- where a cursor stands ------------------------------------------------------------------------------

_Step = tuple[range, int]
"""The numbers of the rows in the order they come, and the position after them."""


def step(how: Fetch, position: int, size: int) -> _Step:
    """Return which rows a fetch gives, and where it ends."""
    count, is_forward = how.count, how.direction is not Direction.BACKWARD
    if how.direction is Direction.ABSOLUTE and count is not None:
        return _at(count if count >= 0 else size + 1 + count, size)
    if count is not None and (count == 0 or how.direction is Direction.RELATIVE):
        return _at(position + count, size)
    if count is not None and count < 0:
        count, is_forward = -count, not is_forward
    if is_forward:
        end = size + 1 if count is None else min(position + count, size + 1)
        return range(position + 1, min(end, size) + 1), end
    end = 0 if count is None else max(position - count, 0)
    return range(position - 1, max(end, 1) - 1, -1), end


def _at(place: int, size: int) -> _Step:
    """Return the row of a position, if there is one; what goes further ends before the first or after the last."""
    place = min(max(place, 0), size + 1)
    return range(place, place + (1 <= place <= size)), place


def _needs_backward(how: Fetch, position: int, size: int) -> bool:
    """Say whether a fetch is one that a cursor without SCROLL refuses; some are, wherever the cursor stands."""
    count = how.count
    if how.direction is Direction.ABSOLUTE:
        count = count or 0
        return count < 0 or (position > 0 and count <= position)
    if count == 0:
        return not how.is_move and (how.direction is Direction.BACKWARD or 1 <= position <= size)
    backward = how.direction is Direction.BACKWARD
    if backward and count is None and how.is_move:
        return position > 0
    return backward != (count is not None and count < 0)


# --- what the statements of a connection read and change ----------------------------------------------------


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
            self._session.workspace.save()
            return Result(what.value)
        place = self.place(statement)
        if what is Marking.RELEASE:
            del self._before[place:]
            self.portals.release(self.depth)
            self._session.workspace.release(self.depth)
            return Result(what.value)
        del self._before[place + 1 :]
        self.portals.roll_back(self.depth)
        self.is_failed = False
        self._keep(self._before[place][1])
        return Result(what.value)

    def place(self, statement: Mark) -> int:
        """Return how many savepoints there are up to the one that a statement names. Raises Fault (3B001): none is."""
        names = [name for name, _ in self._before]
        if statement.name not in names[1:]:
            raise Fault(
                "3B001", f'savepoint "{statement.name}" does not exist', hint="it was released, or never made"
            )
        return len(names) - 1 - names[::-1].index(statement.name)

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

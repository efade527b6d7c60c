"""Portals, and how far each was read; a cursor of SQL is a portal too, for both share their names.

Where a cursor stands after FETCH and MOVE, and which rows they give, are Postgres' rules as arithmetic. A position is
a row's number from 1; 0 is before the first, `size` + 1 after the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from ..memory import Share, weight_of
from ..pgwire import Bind, FieldDescription, Format
from .prepared import PreparedStatement, missing
from .report import Fault
from .statements import Direction, Fetch, Result

__all__ = ["Portal", "Portals", "step"]

_MAX = 1000
_MAX_BYTES = 32 * 2**20
_MAX_ROWS = 2_000_000
"""Rows that a connection's portals may keep together; one released result has at most a million."""
_HINT = "close cursors that are read; to ask again what was charged is free"


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
    weight: int = 0
    """Bytes of its rows in memory, where they are counted here."""

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


class Portals:
    """The portals of a connection, by name."""

    def __init__(self, share: Share | None = None) -> None:
        """`share`: where the rows are counted that they keep in memory."""
        self._open: dict[str, Portal] = {}
        self._share = share

    def __len__(self) -> int:
        return len(self._open)

    def add(self, name: str, portal: Portal) -> None:
        """Open a portal; the unnamed one takes the place of the last. Raises Fault."""
        if name and name in self._open:
            raise Fault("42P03", f'portal "{name}" already exists', hint="close it first")
        if len(self._open) >= _MAX:
            raise Fault("53400", "too many portals", hint="close some")
        if sum(other.size for key, other in self._open.items() if key != name) + portal.size > _MAX_BYTES:
            raise Fault("53400", "the open portals keep too much", hint="close some, or bind shorter values")
        self._open[name] = portal

    def find(self, name: str) -> Portal:
        """Return a portal. Raises Fault: there is none of this name."""
        found = self._open.get(name)
        if found is None:
            raise missing("34000", "portal", name)
        return found

    def has(self, name: str) -> bool:
        """Say whether a portal is open."""
        return name in self._open

    def close(self, name: str) -> None:
        """Close a portal, if it is open."""
        self._open.pop(name, None)
        self._give_back()

    def check_room(self) -> None:
        """Raise Fault (53400) if no more rows can be kept."""
        if self._rows() >= _MAX_ROWS:
            raise Fault("53400", "the open cursors keep too many rows", hint=_HINT)

    def keep(self, portal: Portal, result: Result) -> None:
        """Have a portal keep its rows. Raises Fault (53400): all together would be too many."""
        if result.columns and result.copy is None and self._rows() + len(result.rows) > _MAX_ROWS:
            raise Fault("53400", "the open cursors would keep too many rows", hint=_HINT)
        if self._share is not None and isinstance(
            result.rows, list
        ):  # others are counted where they were made
            weight = weight_of(result.rows)
            self._share.settle(self._share.memory, self._weight() + weight, seconds=0)
            portal.weight = weight
        portal.result = result

    def clear(self) -> None:
        """Close all portals."""
        self._open = {}
        self._give_back()

    def commit(self) -> None:
        """Close what ends with its block; what is held is kept from here on."""
        self._open = {name: portal for name, portal in self._open.items() if portal.is_held}
        for portal in self._open.values():
            portal.is_kept, portal.level = True, 0
        self._give_back()

    def roll_back(self, level: int = 0) -> None:
        """Close what was opened in the block, or after so many savepoints of it."""
        self._open = {
            name: portal for name, portal in self._open.items() if portal.is_kept or portal.level < level
        }
        self._give_back()

    def release(self, level: int) -> None:
        """Take note that there are only so many savepoints left."""
        for portal in self._open.values():
            portal.level = min(portal.level, level)

    def _weight(self) -> int:
        return sum(portal.weight for portal in self._open.values())

    def _give_back(self) -> None:
        """Count no more than what the portals that are left keep."""
        if self._share is not None and self._share.memory:
            self._share.give(self._share.memory - self._weight())

    def _rows(self) -> int:
        return sum(len(portal.result.rows) for portal in self._open.values() if portal.result is not None)


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
    if how.direction is Direction.ABSOLUTE:
        return _absolute(how.count or 0, size)
    if how.direction is Direction.RELATIVE:
        return _relative(how.count or 0, position, size)
    count = how.count
    forward = how.direction is Direction.FORWARD
    if count == 0:
        return _again(position, size)
    if count is not None and count < 0:
        forward, count = not forward, -count
    return _forward(count, position, size) if forward else _backward(count, position, size)


def _again(position: int, size: int) -> _Step:
    """A count of zero gives the row at hand once more."""
    return (range(position, position + 1) if 1 <= position <= size else range(0)), position


def _forward(count: int | None, position: int, size: int) -> _Step:
    if count is None or position + count > size:
        return range(position + 1, size + 1), size + 1
    return range(position + 1, position + count + 1), position + count


def _backward(count: int | None, position: int, size: int) -> _Step:
    after = 0 if count is None else max(position - count, 0)
    return range(position - 1, max(after, 1) - 1, -1), after


def _absolute(count: int, size: int) -> _Step:
    if count == 0:
        return range(0), 0
    if count > 0:
        return _forward(1, min(count - 1, size + 1), size)
    return _backward(1, max(size + 2 + count, 0), size)


def _relative(count: int, position: int, size: int) -> _Step:
    if count == 0:
        return _again(position, size)
    if count > 0:
        return _forward(1, min(position + count - 1, size + 1), size)
    return _backward(1, max(position + count + 1, 0), size)


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

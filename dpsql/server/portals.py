"""Prepared statements and portals; a cursor of SQL is a portal too, for both share their names."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine import AnswerColumn
from ..pgwire import Bind, Format
from .commands import Result
from .read_statement import Command
from .report import Fault

__all__ = ["Portal", "Portals", "Prepared", "missing"]

_MAX = 1000


@dataclass
class Prepared:
    """A prepared statement; `command` None: the text held none. `described`: what Describe has told of it.

    `start`: where it begins in what the client sent.
    """

    command: Command | None
    types: tuple[int, ...]
    start: int
    described: tuple[AnswerColumn, ...] | None = None


@dataclass
class Portal:
    """A prepared statement with its parameters; once it has run, its result and the next row to send."""

    prepared: Prepared
    bind: Bind
    values: tuple[object, ...]
    is_held: bool = False
    result: Result | None = None
    next_row: int = 0

    def formats(self, count: int) -> list[Format]:
        """Return the formats of so many columns. Raises ParameterError: Bind names another number."""
        return list(self.bind.column_formats(count))

    def take(self, limit: int | None) -> tuple[int, int]:
        """Return the first row and the end of the next rows, and pass over them. Requires: it has run."""
        assert self.result is not None
        first, size = self.next_row, len(self.result.rows)
        self.next_row = size if limit is None else min(first + limit, size)
        return first, self.next_row


class Portals:
    """The portals of a connection, by name."""

    def __init__(self) -> None:
        self._open: dict[str, Portal] = {}

    def add(self, name: str, portal: Portal) -> None:
        """Open a portal; the unnamed one takes the place of the last. Raises Fault."""
        if name and name in self._open:
            raise Fault("42P03", f'portal "{name}" already exists', hint="close it first")
        if len(self._open) >= _MAX:
            raise Fault("53400", "too many portals", hint="close some")
        self._open[name] = portal

    def find(self, name: str) -> Portal:
        """Return a portal. Raises Fault: there is none of this name."""
        found = self._open.get(name)
        if found is None:
            raise missing("34000", "portal", name)
        return found

    def close(self, name: str) -> None:
        """Close a portal, if it is open."""
        self._open.pop(name, None)

    def clear(self, *, keep_held: bool = False) -> None:
        """Close all portals, or all that end with a block."""
        self._open = {name: portal for name, portal in self._open.items() if keep_held and portal.is_held}


def missing(sqlstate: str, what: str, name: str) -> Fault:
    """Return the error for a name that stands for nothing."""
    return Fault(sqlstate, f'{what} "{name}" does not exist', hint="it ends with its block, or was closed")

"""Prepared statements: those of the protocol and of SQL, for both share their names."""

from __future__ import annotations

from dataclasses import dataclass

from ..pgwire import Column
from .report import Fault
from .statements import Command

__all__ = ["Prepared", "PreparedStatements", "missing"]

_MAX = 1000


@dataclass
class Prepared:
    """A prepared statement; `command` None: the text held none. `described`: what Describe has told of it.

    `types`: of its parameters, of which its text names the first `count`; 0: not known yet, and read as text.
    `start`: where it begins in what the client sent.
    """

    command: Command | None
    types: tuple[int, ...]
    count: int
    start: int
    described: tuple[Column, ...] | None = None


class PreparedStatements:
    """The prepared statements of a connection, by name; "" is the protocol's unnamed one."""

    def __init__(self) -> None:
        self._known: dict[str, Prepared] = {}

    def check(self, name: str) -> None:
        """Raise Fault if no statement can be added: the name is taken (42P05), or there are too many (53400)."""
        if name and name in self._known:
            raise Fault("42P05", f'prepared statement "{name}" already exists', hint="close it first")
        if len(self._known) >= _MAX:
            raise Fault("53400", "too many prepared statements", hint="close some")

    def add(self, name: str, prepared: Prepared) -> None:
        """Add a statement; the unnamed one takes the place of the last. Raises as `check`."""
        self.check(name)
        self._known[name] = prepared

    def find(self, name: str) -> Prepared:
        """Return a statement. Raises Fault (26000): there is none of this name."""
        found = self._known.get(name)
        if found is None:
            raise missing("26000", "prepared statement", name)
        return found

    def has(self, name: str) -> bool:
        """Say whether there is a statement of this name."""
        return name in self._known

    def close(self, name: str) -> None:
        """Forget a statement, if there is one."""
        self._known.pop(name, None)

    def clear(self) -> None:
        """Forget all that have a name."""
        self._known = {name: prepared for name, prepared in self._known.items() if not name}


def missing(sqlstate: str, what: str, name: str) -> Fault:
    """Return the error for a name that stands for nothing."""
    return Fault(sqlstate, f'{what} "{name}" does not exist', hint="it ends with its block, or was closed")

"""The exceptions of PEP 249, and how dpsql's own become one of them.

House rules:

1. The class comes from the code, by the table that Postgres' drivers use; the code from `dpsql.errors.CODES`.
2. What leaves carries the designed message, hint and position and nothing else: no cause, no context and no
   frames of the engine, since those may hold what is not for the analyst (law L8).
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from ..errors import DpsqlError, EngineFailure, Position

T = TypeVar("T")


class Warning(Exception):
    """Part of PEP 249; dpsql raises none: what an analyst should know of an answer is in its receipt."""


class Error(Exception):
    """The base of all errors of a connection and its cursors.

    Attributes: `sqlstate` (None for wrong use of the interface itself), `message`, `hint`, `position`
    (a place in the statement as it was written), and `cost` (what a statement that failed had spent by then,
    in words; None where it cannot have spent anything).
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        hint: str | None = None,
        position: Position | None = None,
        cost: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint
        self.position = position
        self.cost = cost

    def __str__(self) -> str:
        where = f" at {self.position}" if self.position else ""
        code = f"{self.sqlstate}{where}: " if self.sqlstate else ""
        cost = f"\nDETAIL: {self.cost}" if self.cost else ""
        hint = f"\nHINT: {self.hint}" if self.hint else ""
        return f"{code}{self.message}{cost}{hint}"


class InterfaceError(Error):
    """The interface was used wrongly: a closed connection or cursor."""


class DatabaseError(Error):
    """The base of all errors that a statement may meet."""


class DataError(DatabaseError):
    """A value that has no place: a parameter or the value of a setting."""


class OperationalError(DatabaseError):
    """No fault of the statement's: the budget is spent, it was cancelled, the database, policy or ledger failed."""


class IntegrityError(DatabaseError):
    """A row of a table of one's own that its columns do not take."""


class InternalError(DatabaseError):
    """Something of one's own stands in the way, such as a view over a table that is to go."""


class ProgrammingError(DatabaseError):
    """The statement is refused, or its parameters do not fit."""


class NotSupportedError(DatabaseError):
    """A statement or clause that is not supported, or a package that is not installed."""


_CLASSES: MappingProxyType[str, type[DatabaseError]] = MappingProxyType(
    {
        "0A": NotSupportedError,
        "22": DataError,
        "23": IntegrityError,
        "2B": InternalError,
        "3F": ProgrammingError,
        "40": OperationalError,
        "42": ProgrammingError,
        "P0": DataError,
        "PV": ProgrammingError,
        "53": OperationalError,
        "54": OperationalError,
        "55": OperationalError,
        "57": OperationalError,
        "58": OperationalError,
        "F0": OperationalError,
        "XX": InternalError,
    }
)
"""The first two characters of a code and the exception it becomes."""


def guarded(action: Callable[[], T], find: Callable[[Position], Position] | None = None) -> T:
    """Return what the action returns; `find` tells where in the written text a position is.

    Raises: for each DpsqlError, the exception of PEP 249 that its code stands for, with the same message.
    """
    try:
        return action()
    except DpsqlError as error:
        failure = _translated(error, find)
    raise failure


def _translated(error: DpsqlError, find: Callable[[Position], Position] | None) -> DatabaseError:
    position = error.position
    if position is not None and find is not None:
        position = find(position)
    kind = _CLASSES[error.sqlstate[:2]]
    return kind(error.message, sqlstate=error.sqlstate, hint=_hint(error), position=position, cost=error.cost)


def _hint(error: DpsqlError) -> str | None:
    """Return the error's hint; for an engine's failure one that holds in the analyst's own process."""
    if not isinstance(error, EngineFailure) or error.sqlstate in ("55006", "57V01"):
        return error.hint
    if error.sqlstate == "57014":
        return None
    return "the owner can run dpsql check: it says whether the database can be opened and read"

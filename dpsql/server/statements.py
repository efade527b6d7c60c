"""What one statement asks for: a value of its own kind for each, as `read_statement` makes them; and what it gives."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ..pgwire import FieldDescription, NoticeResponse
from .columns import Constant
from .copy_options import CopyOptions

__all__ = [
    "Begin", "Catalog", "Characteristics", "CloseCursor", "Copy", "Deallocate", "Declare", "Direction", "Discard",
    "Done", "End", "Execute", "Fetch", "Mark", "Marking", "Modes", "Prepare", "Query", "Result", "Set", "Show",
    "Statement",
]  # fmt: skip

Modes = tuple[tuple[str, str], ...]
"""Names and values of the settings that a transaction's modes stand for."""


@dataclass(frozen=True, slots=True)
class Query:
    """For the session: a query, EXPLAIN, or SHOW of a setting of dpsql's; blank where other words stood."""

    text: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """A query of the system catalog; `types`: of its parameters, where they are known."""

    text: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """A block begins."""

    tag: str
    modes: Modes = ()


@dataclass(frozen=True, slots=True)
class End:
    """A block ends; `is_chain`: another begins at once, with its modes."""

    is_commit: bool
    is_chain: bool = False


class Marking(enum.Enum):
    """What is done with a savepoint."""

    SAVE = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK = "ROLLBACK"


@dataclass(frozen=True, slots=True)
class Mark:
    """A savepoint is made, released or gone back to."""

    marking: Marking
    name: str


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The modes of the block at hand, or of all from now on (`is_session`)."""

    modes: Modes
    is_session: bool


@dataclass(frozen=True, slots=True)
class Set:
    """A setting gets a value, of one or several parts, or goes back (None); no name: all go back.

    `is_local`: until the block ends. `tag`: as it was written.
    """

    name: str | None
    values: tuple[str, ...] | None = None
    is_local: bool = False
    tag: str = "SET"


@dataclass(frozen=True, slots=True)
class Show:
    """A client's setting is shown; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Prepare:
    """A query is prepared under a name; `types`: the declared types of its first parameters, as Postgres' numbers."""

    name: str
    types: tuple[int, ...]
    query: Query | Catalog


@dataclass(frozen=True, slots=True)
class Execute:
    """A prepared statement is run."""

    name: str
    arguments: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """A prepared statement is forgotten; None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """What the connection has gathered is forgotten, or of that `what` alone."""

    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """What there is nothing of here, so that it is done already."""

    tag: str
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY (query) TO STDOUT. `is_table`: COPY table; no position in the query that says the same is the client's."""

    query: Query | Catalog
    options: CopyOptions
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor is opened over a query; `is_held`: it outlives its block."""

    name: str
    query: Query | Catalog
    is_held: bool = False
    is_binary: bool = False
    is_forward_only: bool = False


class Direction(enum.Enum):
    """How a fetch counts."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class Fetch:
    """A cursor's rows, `count` or all of them (None); `is_move`: they are passed over."""

    name: str
    direction: Direction
    count: int | None
    is_move: bool


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """A cursor is closed; None: all."""

    name: str | None


Statement = (
    Query | Catalog | Begin | End | Mark | Characteristics | Set | Show | Prepare | Execute | Deallocate | Discard
    | Done | Copy | Declare | Fetch | CloseCursor
)  # fmt: skip

_COUNTED = ("SELECT", "COPY", "FETCH")


@dataclass(frozen=True, slots=True)
class Result:
    """Rows, or a tag alone; `copy`: the rows go out as a copy; `is_binary`: they are those of a binary cursor."""

    tag: str
    columns: tuple[FieldDescription, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    notices: tuple[NoticeResponse, ...] = ()
    copy: Copy | None = None
    is_binary: bool = False

    def tag_of(self, count: int) -> str:
        """Return the tag after so many rows."""
        return f"{self.tag} {count}" if self.tag in _COUNTED else self.tag

"""Prepared statements: those of the protocol and of SQL, for both share their names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from ..memory import Share
from ..pgwire import FieldDescription, Oid
from .report import Fault
from .statements import Result, Statement

__all__ = ["PreparedStatement", "PreparedStatements", "as_described", "fitted", "missing"]

_MAX = 1000
_LITTLE = 4096
"""Characters up to which a text is not counted."""
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


class PreparedStatements:
    """The prepared statements of a connection, by name; "" is the protocol's unnamed one."""

    def __init__(self, share: Share | None = None) -> None:
        """`share`: where long texts are counted."""
        self._share = share
        self._known: dict[str, PreparedStatement] = {}

    @property
    def has_room(self) -> bool:
        """Whether there may be one more."""
        return len(self._known) < _MAX

    def check(self, name: str) -> None:
        """Raise Fault if no statement can be added: the name is taken (42P05), or there are too many (53400)."""
        if name and name in self._known:
            raise Fault("42P05", f'prepared statement "{name}" already exists', hint="close it first")
        if not self.has_room:
            raise Fault("53400", "too many prepared statements", hint="close some")

    def add(self, name: str, prepared: PreparedStatement) -> None:
        """Add a statement; the unnamed one takes the place of the last. Raises as `check`; EngineFailure (53200)."""
        self.check(name)
        if name and self._share is not None and (size := len(repr(prepared.statement))) > _LITTLE:
            prepared.share = self._share.another()
            prepared.share.take(size, seconds=0)
        self._known[name] = prepared

    def find(self, name: str) -> PreparedStatement:
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

"""The type objects and constructors of PEP 249, and a result's description."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from ..engine import AnswerColumn
from ..relation.types import Kind, SqlType

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Date", "DateFromTicks", "Description",
    "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks", "TypeObject", "describe",
]  # fmt: skip

Description = tuple[str, str, None, int | None, int | None, int | None, None]
"""A column: name, type code (an SQL type's name), display size, bytes, precision, scale, may be NULL."""


class TypeObject:
    """Equal to each type code of one group: `description[0][1] == dpsql.NUMBER`."""

    __hash__ = None  # type: ignore[assignment]  # equal things would need equal hashes

    def __init__(self, name: str, *kinds: Kind) -> None:
        self._name = name
        self._codes = frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._codes == other._codes and self._name == other._name
        return other in self._codes if isinstance(other, str) else NotImplemented

    def __repr__(self) -> str:
        return f"dpsql.{self._name}"


STRING = TypeObject("STRING", Kind.TEXT, Kind.JSON, Kind.JSONB, Kind.NULL)
NUMBER = TypeObject(
    "NUMBER", Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE, Kind.BOOLEAN
)
DATETIME = TypeObject("DATETIME", Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL)
BINARY = TypeObject("BINARY", Kind.OPAQUE)
ROWID = TypeObject("ROWID")

_BYTES = {
    Kind.BOOLEAN: 1, Kind.SMALLINT: 2, Kind.INTEGER: 4, Kind.BIGINT: 8, Kind.REAL: 4, Kind.DOUBLE: 8,
    Kind.DATE: 4, Kind.TIMESTAMP: 8, Kind.INTERVAL: 16,
}  # fmt: skip


def describe(columns: Sequence[AnswerColumn]) -> list[Description] | None:
    """Return the description of a result; None for a statement that has none.

    The type code is the SQL type's name, such as "bigint" or "date[]". Whether a column may be NULL is not known
    (None).
    """
    return [_described(column.name, column.type) for column in columns] or None


def _described(name: str, type_: SqlType) -> Description:
    code = type_.kind.value if type_.element is None else f"{type_.element.kind.value}[]"
    return (name, code, None, _BYTES.get(type_.kind), type_.precision, type_.scale, None)


Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date of a moment in seconds since 1970."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day of a moment in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local date and time of a moment in seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks)

"""SQL types as dpsql knows them: one small set with Postgres' meaning, whatever the engine below."""

from __future__ import annotations

import enum
import re
from functools import lru_cache

from ..records import dataclass
from ..regex import regex

PLAIN_KEY = regex(r"(?=.*[^\W\d])[\w -]{1,100}", re.ASCII)
"""A key of JSON that no engine reads as a path, a place or a pattern."""


class Kind(enum.Enum):
    """What a value is. OPAQUE (uuid, blob, …) can only be a privacy unit; NULL is the type of a bare NULL.

    ARRAY, JSON and JSONB are above the release alone: several values in one. TIME is the time of day that a moment has;
    below the release it is printed as its whole microseconds, and no table has a column of it.
    """

    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    NUMERIC = "numeric"
    REAL = "real"
    DOUBLE = "double precision"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"
    INTERVAL = "interval"
    OPAQUE = "opaque"
    ARRAY = "array"
    JSON = "json"
    JSONB = "jsonb"
    NULL = "unknown"

    __hash__ = (
        object.__hash__
    )  # a member is one object; Enum's own is Python code, called for every test of a type


_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_FLOATS = frozenset({Kind.REAL, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type; `precision` and `scale` are for NUMERIC alone (None: no fixed scale).

    `engine`: the engine's own type where our kind stands for several and values are compared: of OPAQUE
    keys, and HUGEINT, which is NUMERIC(38,0) to us. Two of those are one type only if it is the same.
    `element`: of an ARRAY. `has_members`: an OPAQUE column of people's is JSON, of which members are read.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    engine: str | None = None
    element: SqlType | None = None
    has_members: bool = False

    @property
    def is_integer(self) -> bool:
        """SMALLINT, INTEGER or BIGINT."""
        return self.kind in _INTEGERS

    @property
    def is_float(self) -> bool:
        """REAL or DOUBLE."""
        return self.kind in _FLOATS

    @property
    def is_number(self) -> bool:
        """Any type of arithmetic."""
        return self.kind in _INTEGERS or self.kind in _FLOATS or self.kind is Kind.NUMERIC

    @property
    def is_temporal(self) -> bool:
        """DATE or TIMESTAMP."""
        return self.kind is Kind.DATE or self.kind is Kind.TIMESTAMP

    @property
    def is_json(self) -> bool:
        """JSON or JSONB."""
        return self.kind is Kind.JSON or self.kind is Kind.JSONB

    @property
    def modifier(self) -> int:
        """What Postgres keeps of a NUMERIC's digits beside the type; -1 where nothing is kept."""
        if self.kind is not Kind.NUMERIC or self.precision is None:
            return -1
        return (self.precision << 16 | (self.scale or 0)) + 4

    def __repr__(self) -> str:
        return _said(self)

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.element}[]"
        if self.kind is Kind.NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        if self.kind is Kind.OPAQUE and self.engine is not None:
            return self.engine.lower()
        return self.kind.value


@lru_cache(256)
def _said(of: SqlType) -> str:
    """Return what stands of a type in the keys of stored answers, for each node of an expression."""
    return (
        f"SqlType(kind={of.kind!r}, precision={of.precision!r}, scale={of.scale!r}, engine={of.engine!r}, "
        f"element={of.element!r}, has_members={of.has_members!r})"
    )


BOOLEAN = SqlType(Kind.BOOLEAN)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
NUMERIC = SqlType(Kind.NUMERIC)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
TEXT = SqlType(Kind.TEXT)
DATE = SqlType(Kind.DATE)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIME = SqlType(Kind.TIME)
INTERVAL = SqlType(Kind.INTERVAL)
OPAQUE = SqlType(Kind.OPAQUE)
JSON = SqlType(Kind.JSON)
JSONB = SqlType(Kind.JSONB)
NULL = SqlType(Kind.NULL)


def array_of(element: SqlType) -> SqlType:
    """Return the type of an array."""
    return SqlType(Kind.ARRAY, element=element)


def numeric(precision: int, scale: int) -> SqlType:
    """Return NUMERIC(precision, scale)."""
    return SqlType(Kind.NUMERIC, precision, scale)

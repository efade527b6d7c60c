"""Values that Python has no type for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Interval", "ObjectName"]

_DAY = 86_400 * 10**6


@dataclass(frozen=True, slots=True)
class Interval:
    """A Postgres interval: three numbers that do not convert into each other."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @classmethod
    def of(cls, length: timedelta) -> Interval:
        """Return days and time of a timedelta, both of its sign, as Postgres writes them.

        One that knows its own three numbers (`parts`) has those.
        """
        parts: tuple[int, int, int] | None = getattr(length, "parts", None)
        if parts is not None:
            return cls(*parts)
        total = length // timedelta(microseconds=1)
        days = abs(total) // _DAY * (1 if total >= 0 else -1)
        return cls(0, days, total - days * _DAY)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """A regclass, regtype, regproc and the like: the name as text, the OID in binary.

    Any value with these two attributes is written as one.
    """

    oid: int
    name: str

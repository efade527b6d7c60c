"""Functions that put values into bins, which are known beforehand: `width_bucket`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..expressions import Call
from ..facts import ONE, ZERO, Facts
from ..types import INTEGER, SqlType
from .row import Args, Function

__all__ = ["MAX_BUCKETS", "ROWS", "Buckets", "buckets_of"]

MAX_BUCKETS = 1_000
"""Most buckets of `width_bucket`: as many groups as are derived from bounds."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """`count` buckets of one width from `low` to `high`, downwards where `low` is above; 0 and `count` + 1 beyond.

    `of_doubles`: computed in doubles, as Postgres does where one of the arguments is one; else exactly. As Postgres 16
    and later do: those before add 1 before they cut, so that a double just below an edge may be beyond it.
    """

    low: Fraction
    high: Fraction
    count: int
    of_doubles: bool

    @property
    def rises(self) -> bool:
        """Whether greater values have greater numbers."""
        return self.low < self.high

    @property
    def width(self) -> Fraction:
        """From one end to the other: of doubles their difference as a double."""
        ends = max(self.low, self.high), min(self.low, self.high)
        return Fraction(float(ends[0]) - float(ends[1])) if self.of_doubles else ends[0] - ends[1]

    @property
    def edges(self) -> list[Fraction]:
        """The ends of the buckets, of exact ones, from `low` to `high`."""
        return [self.low + (self.high - self.low) * k / self.count for k in range(self.count + 1)]

    def number(self, value: Fraction) -> int:
        """Return the bucket of a value."""
        value = Fraction(float(value)) if self.of_doubles else value
        if (value < self.low) if self.rises else (value > self.low):
            return 0
        if (value >= self.high) if self.rises else (value <= self.high):
            return self.count + 1
        if not self.of_doubles:
            return math.floor(abs(value - self.low) * self.count / self.width) + 1
        share = abs(float(value) - float(self.low)) / float(self.width)
        return min(int(self.count * share), self.count - 1) + 1


def buckets_of(call: Call) -> Buckets:
    """Return the buckets of a call of `width_bucket`, whose ends and count are literals."""
    low, high, count = (arg.constant for arg in call.args[1:] if arg.is_constant)
    assert isinstance(low, (int, Fraction))
    assert isinstance(high, (int, Fraction))
    assert isinstance(count, int)
    of_doubles = any(arg.type.is_float for arg in call.args[:3])
    if of_doubles:
        low, high = Fraction(float(low)), Fraction(float(high))
    return Buckets(Fraction(low), Fraction(high), count, of_doubles)


def _type(args: Args) -> SqlType | None:
    return INTEGER if all(arg.type.is_number for arg in args) and args[3].type.is_integer else None


def _bucket(args: list[Facts], call: Call) -> Facts:
    buckets, a = buckets_of(call), args[0]
    first, last = ZERO, Fraction(buckets.count + 1)
    if a.lo is not None and a.hi is not None:
        ends = [Fraction(buckets.number(end)) for end in (a.lo, a.hi)]
        first, last = min(ends), max(ends)
    return Facts(first, last, ONE, declared=True)


ROWS = (
    Function(
        "width_bucket", "width_bucket(x, 0, 10, 5)",
        "which of so many bins of one width `x` is in, from 1; 0 and one more than all beyond them",
        _type, _bucket,
    ),
)  # fmt: skip

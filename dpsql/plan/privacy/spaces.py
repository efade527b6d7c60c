"""What a column, or a key, can be before a row is seen, in parts that can be split: for `existing`.

House rule: a column is what its declaration says, as the printed SQL clamps it there; one that has none is
what its type allows, moments beyond the calendar and NaN among them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ...relation.calendar import DAY, boundary, calendar_ends
from ...relation.catalog import Column
from ...relation.expressions import Field, LiteralValue
from ...relation.facts import Facts
from ...relation.intervals import Environment, facts_of
from ...relation.types import Kind
from .cells import Number, Other, Part, Span, Value, point

__all__ = ["Listed", "Space", "space_of"]


@dataclass(frozen=True)
class Space(ABC):
    """What one variable of a cell can be; `parts`: all of it, none twice."""

    parts: tuple[Value, ...]

    def split(self, value: Value) -> tuple[Value, ...]:
        """Return the parts of a value of a cell; none when it is not to be split. UNKNOWN is the whole."""
        if value is Part.UNKNOWN:
            return self.parts
        return self.halves(value) if isinstance(value, Span) and not value.is_point else ()

    @abstractmethod
    def halves(self, span: Span) -> tuple[Value, ...]:
        """Return two parts of a span that is no point."""


@dataclass(frozen=True)
class Listed(Space):
    """Finitely many values."""

    def halves(self, span: Span) -> tuple[Value, ...]:
        return ()


@dataclass(frozen=True)
class _Exact(Space):
    """Multiples of `grid`."""

    grid: Fraction

    def halves(self, span: Span) -> tuple[Value, ...]:
        middle = math.floor((Fraction(span.lo) + Fraction(span.hi)) / 2 / self.grid) * self.grid
        return Span(span.lo, middle), Span(middle + self.grid, span.hi)


@dataclass(frozen=True)
class _Moments(Space):
    """Days or microseconds, `scale` microseconds each; split where a year, a month, … begins."""

    scale: int

    def halves(self, span: Span) -> tuple[Value, ...]:
        lo, hi = int(span.lo), int(span.hi)
        first = boundary(lo * self.scale, hi * self.scale) if (hi - lo) * self.scale >= DAY // 1440 else None
        middle = (lo + hi) // 2 + 1 if first is None else first // self.scale
        middle = middle if lo < middle <= hi else (lo + hi) // 2 + 1
        return Span(lo, middle - 1), Span(middle, hi)


@dataclass(frozen=True)
class _Doubles(Space):
    """Doubles; split at the literals that stand about, then in the middle."""

    cuts: tuple[float, ...] = field(default=())

    def halves(self, span: Span) -> tuple[Value, ...]:
        lo, hi = float(span.lo), float(span.hi)
        inside = [cut for cut in self.cuts if lo <= cut <= hi]
        if inside:
            cut = inside[len(inside) // 2]
            parts = (lo, _before(cut)), (cut, cut), (_after(cut), hi)
            found = tuple(Span(first, last) for first, last in parts if first <= last)
            return found if len(found) > 1 else ()
        middle = _middle(lo, hi)
        return Span(lo, middle), Span(_after(middle), hi)


def _before(number: float) -> float:
    return math.nextafter(number, -math.inf)


def _after(number: float) -> float:
    return math.nextafter(number, math.inf)


def _middle(lo: float, hi: float) -> float:
    """Return a double from `lo` to below `hi`."""
    if lo < 0 <= hi:
        middle = _before(0.0)
    elif math.isinf(hi) or math.isinf(lo):
        middle = max(lo * 2, 1.0) if math.isinf(hi) else min(hi * 2, -1.0)
    else:
        middle = lo / 2 + hi / 2
    return min(max(middle, lo), _before(hi))


def space_of(
    column: Field,
    env: Environment,
    literals: Sequence[LiteralValue],
    ends: Sequence[LiteralValue] = (),
    *,
    is_key: bool,
) -> Space | None:
    """Return what a column can be in a row that passes the filter; None where that has no list and no ends.

    `literals`: what the statement may compare it with, `ends`: those of them by order. `is_key`: the column is a group
    key itself, so that what its declaration does not list is no group.
    """
    facts, declared = facts_of(column, env), env.columns[column.index]
    null: tuple[Value, ...] = (None,) if facts.nullable else ()
    kind = column.type.kind
    if kind is Kind.TEXT:
        return _texts(facts, declared, literals, ends, null, is_key=is_key)
    if kind is Kind.BOOLEAN:
        return Listed((False, True, *null))
    if column.type.is_float:
        cuts = {float(value) for value in literals if isinstance(value, (float, int, Fraction))}
        return _Doubles((*_span(facts, -math.inf, math.inf), Part.NAN, *null), tuple(sorted(cuts)))
    if column.type.is_temporal:
        return _moments(column, facts, null)
    if facts.values is not None:
        return Listed((*(point(value) for value in _within(facts)), *null))
    if facts.grid is None or facts.lo is None or facts.hi is None:
        return None
    return _Exact((*_span(facts, facts.lo, facts.hi), *null), facts.grid)


def _texts(
    facts: Facts,
    column: Column,
    literals: Sequence[LiteralValue],
    ends: Sequence[LiteralValue],
    null: tuple[Value, ...],
    *,
    is_key: bool,
) -> Space | None:
    if facts.values is None and column.values is None:
        return None
    values = [value for value in facts.values or () if isinstance(value, str)]
    if column.max_length is not None and any(len(value) > column.max_length for value in values):
        return None
    if facts.values is not None and (column.values is None or is_key):
        return Listed((*values, *null))
    named = dict.fromkeys([*values, *(value for value in literals if isinstance(value, str))])
    others = frozenset(value for value in (*named, *(column.values or ())) if isinstance(value, str))
    return Listed((*named, *_between(ends, others), *null))


def _between(ends: Sequence[LiteralValue], others: frozenset[str]) -> Iterator[Other]:
    """Yield the texts that are none of `others`, in parts between some ends; nothing is below the empty text."""
    texts = sorted({end for end in ends if isinstance(end, str)})
    for lo, hi in zip([None, *texts], [*texts, None], strict=True):
        if hi != "":
            yield Other(others, lo, hi)


def _within(facts: Facts) -> list[Number]:
    numbers = [value for value in facts.values or () if isinstance(value, (int, Fraction))]
    return [v for v in numbers if (facts.lo is None or facts.lo <= v) and (facts.hi is None or v <= facts.hi)]


def _moments(column: Field, facts: Facts, null: tuple[Value, ...]) -> Space:
    if facts.values is not None:
        return Listed((*(point(int(value)) for value in _within(facts)), *null))
    beyond = [part for part, end in ((Part.PAST, facts.lo), (Part.FUTURE, facts.hi)) if end is None]
    ends = calendar_ends(column.type)
    scale = DAY if column.type.kind is Kind.DATE else 1
    return _Moments((*_span(facts, *map(Fraction, ends)), *beyond, *null), scale)


def _span(facts: Facts, lo: Number, hi: Number) -> tuple[Span, ...]:
    """Return the span between the ends that are known, or those that are given; none where they cross."""
    first, last = (end if known is None else known for known, end in ((facts.lo, lo), (facts.hi, hi)))
    if isinstance(lo, float):
        first, last = float(first), float(last)
    return (Span(first, last),) if first <= last else ()

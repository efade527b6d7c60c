"""What the clocks of a zone show, as steps over instants: the same integers for every engine.

    >>> clock_steps("Europe/Berlin", parse("2024-03-01"), parse("2024-05-01"))
    one hour, from 2024-03-31 01:00 on two

Engines bring zone databases of their own, which may differ; so the steps are read here, from Python's, and printed.
A time that clocks skip is read by what they showed before, one that they show twice is the later one, as Postgres
resolves both: so what a clock showed changes its meaning at one reading, the first that the change leads to.

House rule: nothing here raises, whatever the integers and for every name that `zone_names` has.
"""

from __future__ import annotations

import datetime
import itertools
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache

from ..records import dataclass
from .calendar import DAY, step_units, truncated

__all__ = [
    "MAX_CHANGES", "MAX_YEARS", "Steps", "back_steps", "clock_steps", "cut_ends", "cut_values", "moment_steps",
    "zone_names",
]  # fmt: skip

MAX_CHANGES = 100
"""Most changes of a zone's clocks within bounds: fifty years of summer times."""
MAX_YEARS = 300
"""Most years between bounds; each is looked through day by day, once."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = 1_000_000
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_WIDTHS = {"year": 370 * DAY, "quarter": 95 * DAY, "month": 32 * DAY, "week": 7 * DAY, "day": DAY}
"""Unit that is counted by the clocks once it is cut -> a time that leads from its start into the next one."""


@cache
def zone_names() -> frozenset[str]:
    """Return the names of zones, of places alone."""
    return frozenset(
        name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/")
    )


@dataclass(frozen=True, slots=True)
class Steps:
    """Microseconds to add to a moment: `first`, and from each moment of `changes` on what stands beside it."""

    first: int
    changes: tuple[tuple[int, int], ...]

    def at(self, moment: int) -> int:
        """Return what is added to a moment."""
        place = bisect_right([start for start, _ in self.changes], moment)
        return self.first if place == 0 else self.changes[place - 1][1]

    def ends(self, lo: int, hi: int) -> Iterator[int]:
        """Yield the first and last moment of each step in [lo, hi]."""
        yield from (lo, hi)
        for start, _ in self.changes:
            if lo < start <= hi:
                yield from (start - 1, start)

    def span(self, lo: int, hi: int) -> tuple[int, int]:
        """Return the least and greatest moment that those in [lo, hi] become."""
        moved = [moment + self.at(moment) for moment in self.ends(lo, hi)]
        return min(moved), max(moved)


def _steps(first: int, changes: list[tuple[int, int]], lo: int, hi: int) -> Steps:
    """Return steps as they are in (lo, hi], neighbours of one value as one."""
    kept: list[tuple[int, int]] = []
    for start, value in sorted(changes):
        if start <= lo:
            first = value
        elif start <= hi and value != (kept[-1][1] if kept else first):
            kept.append((start, value))
    return Steps(first, tuple(kept))


def _offset(zone: zoneinfo.ZoneInfo, second: int) -> int:
    shift = (_EPOCH + datetime.timedelta(seconds=second)).astimezone(zone).utcoffset()
    assert shift is not None
    return shift // datetime.timedelta(microseconds=1)


@lru_cache(maxsize=4096)
def _changes_in(name: str, year: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return what the clocks are ahead of UTC when a year begins, and its changes: (moment, ahead from then on).

    No zone has had two changes within a day that undid each other; that is tested for every zone.
    """
    zone = zoneinfo.ZoneInfo(name)
    start, end = (
        (datetime.datetime(y, 1, 1, tzinfo=datetime.UTC) - _EPOCH) // datetime.timedelta(seconds=1)
        for y in (year, year + 1)
    )
    first = before = _offset(zone, start)
    changes = []
    for second in range(start, end, 86_400):
        after = _offset(zone, second + 86_400)
        if after == before:
            continue
        low, high = second, second + 86_400
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        changes.append((high * _SECOND, after))
        before = after
    return first, tuple(changes)


def _year(moment: int) -> int | None:
    try:
        return (_EPOCH + datetime.timedelta(microseconds=moment)).year
    except OverflowError:
        return None


@lru_cache(maxsize=1024)
def clock_steps(zone: str, lo: int, hi: int) -> Steps | None:
    """Return what leads from the moments in [lo, hi] to what the clocks of a zone show.

    None where there are over MAX_CHANGES or MAX_YEARS, or the ends of the calendar are near.
    """
    first, last = _year(lo), _year(hi)
    if first is None or last is None or lo > hi:
        return None
    if first < _FIRST_YEAR or last > _LAST_YEAR or last - first >= MAX_YEARS:
        return None
    found: list[tuple[int, int]] = []
    for year in range(first, last + 1):
        found += _changes_in(zone, year)[1]
        if len(found) > MAX_CHANGES + 4:
            return None
    steps = _steps(_changes_in(zone, first)[0], found, lo, hi)
    return steps if len(steps.changes) <= MAX_CHANGES else None


@lru_cache(maxsize=1024)
def moment_steps(zone: str, lo: int, hi: int) -> Steps | None:
    """Return what leads from readings of a zone's clocks in [lo, hi] to their moments; None as `clock_steps`."""
    near = clock_steps(zone, lo - 2 * DAY, hi + 2 * DAY)
    if near is None:
        return None
    return _steps(-near.first, [(start + ahead, -ahead) for start, ahead in near.changes], lo, hi)


@lru_cache(maxsize=1024)
def back_steps(unit: str, zone: str, lo: int, hi: int) -> Steps | None:
    """Return what is added to the clocks of moments in [lo, hi], once they are cut to a unit, to be a moment again.

    Cut to an hour or a minute, clocks stay what they are ahead, as in Postgres. None as `clock_steps`.
    """
    clock = clock_steps(zone, lo, hi)
    if clock is None or unit not in _WIDTHS:
        return (
            None if clock is None else Steps(-clock.first, tuple((at, -ahead) for at, ahead in clock.changes))
        )
    first, last = clock.span(lo, hi)
    moments = moment_steps(zone, first - _WIDTHS[unit], last)
    if moments is None:
        return None
    starts = {_start_from(unit, reading) for reading, _ in moments.changes}
    edges = [lo, *(at for at, _ in clock.changes), hi + 1]
    changes: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(edges):
        ahead = clock.at(start)
        cut = truncated(unit, start + ahead)
        if cut is None:
            return None
        changes.append((start, moments.at(cut)))
        changes += [
            (at - ahead, moments.at(at)) for at in starts if at is not None and start < at - ahead < end
        ]
    return _steps(changes[0][1], changes, lo, hi)


def _start_from(unit: str, reading: int) -> int | None:
    """Return where a unit begins, at a reading of the clocks or next after it."""
    start = truncated(unit, reading)
    if start is None or start == reading:
        return start
    return truncated(unit, start + _WIDTHS[unit])


def cut_ends(unit: str, zone: str, lo: int, hi: int) -> tuple[int, int] | None:
    """Return the least and greatest date_trunc(unit, ·, zone) over [lo, hi]; None as `clock_steps`."""
    clock, back = clock_steps(zone, lo, hi), back_steps(unit, zone, lo, hi)
    if clock is None or back is None:
        return None
    found: list[int] = []
    for moment in (*clock.ends(lo, hi), *back.ends(lo, hi)):
        cut = truncated(unit, moment + clock.at(moment))
        if cut is None:
            return None
        found.append(cut + back.at(moment))
    return min(found), max(found)


def cut_values(unit: str, zone: str, lo: int, hi: int, limit: int) -> list[int] | None:
    """Return all values of date_trunc(unit, ·, zone) over [lo, hi], in order.

    None where there are over `limit`, and as `clock_steps`.
    """
    clock, back = clock_steps(zone, lo, hi), back_steps(unit, zone, lo, hi)
    if clock is None or back is None:
        return None
    edges = sorted({lo, hi + 1, *(at for at, _ in clock.changes), *(at for at, _ in back.changes)})
    found: set[int] = set()
    for start, end in itertools.pairwise(edges):
        ahead = clock.at(start)
        cuts = step_units(unit, start + ahead, end - 1 + ahead, limit)
        if cuts is None:
            return None
        found.update(cut + back.at(start) for cut in cuts)
        if len(found) > limit:
            return None
    return sorted(found)

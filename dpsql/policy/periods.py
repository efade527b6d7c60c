"""Periods of time by their numbers, and the slices of a person's data that a statement reaches.

A *slice* is what one person has in one period, or their undated rows; what lies before the first period is one slice
with the number before its. Whose data a charge is for is said by slices.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

from ..records import dataclass
from .model import Period

UNDATED = -1
"""The number that stands for undated rows among periods."""

MOST_NUMBER = 10**7
"""No period has a larger number: days go to 3,652,059."""

Times = tuple[tuple[str, str], ...]
"""Tables in order, each with the time by which its rows are of a period, as people write it; "" of undated ones."""


def start_of(period: Period, day: date) -> date:
    """Return the first day of the period that a day is in."""
    match period:
        case Period.DAY:
            return day
        case Period.WEEK:
            return day - timedelta(days=day.weekday())
        case Period.MONTH:
            return day.replace(day=1)
        case Period.YEAR:
            return day.replace(month=1, day=1)


def number_of(period: Period, day: date) -> int:
    """Return the number of the period that a day is in: that of the next one is one more."""
    match period:
        case Period.DAY:
            return day.toordinal()
        case Period.WEEK:
            return start_of(period, day).toordinal() // 7
        case Period.MONTH:
            return 12 * day.year + day.month - 1
        case Period.YEAR:
            return day.year


def first_day(period: Period, number: int) -> date:
    """Return the first day of the period of a number."""
    match period:
        case Period.DAY:
            return date.fromordinal(number)
        case Period.WEEK:
            return date.fromordinal(7 * number + 1)
        case Period.MONTH:
            return date(number // 12, number % 12 + 1, 1)
        case Period.YEAR:
            return date(number, 1, 1)


def end_of(period: Period, day: date) -> date:
    """Return the first day of the next period."""
    days = {Period.DAY: 1, Period.WEEK: 7, Period.MONTH: 31, Period.YEAR: 366}[period]
    return start_of(period, start_of(period, day) + timedelta(days=days))


@lru_cache(maxsize=2**13)
def instant_of(period: Period, number: int, zone: str) -> datetime:
    """Return the moment, in UTC, at which the period of a number begins in a zone."""
    day = first_day(period, number)
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def last_closed(period: Period, zone: str, settle: timedelta, now: datetime) -> int:
    """Return the number of the last period that was over, by `settle`, at a moment."""
    return number_of(period, (now - settle).astimezone(ZoneInfo(zone)).date()) - 1


@lru_cache(maxsize=64)
def ends_digest(period: Period, first: int, until: int, zone: str) -> str:
    """Return the sha256, in hex, of the moments at which the periods from first to until begin in a zone."""
    begins = (instant_of(period, number, zone).isoformat() for number in range(first, until + 1))
    return hashlib.sha256("\n".join(begins).encode("ascii")).hexdigest()


class Over(enum.Enum):
    """What one person who is in several of the periods that a statement reaches loses by it, of its charge e.

    ONCE: e. EACH: e for each of them, and under zCDP rho for each, as no number is of two periods. ALL: e for each of
    k, and k² times rho.
    """

    ONCE = "once"
    EACH = "each"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices that a statement is charged to: runs of periods, by their first and last numbers, and undated rows.

    The runs are in order, and between two of them is at least one period. `column`: of time, as people write it, for
    words alone; `over`: what a person loses over the periods; `times`: of the tables that are read.
    """

    periods: tuple[tuple[int, int], ...]
    is_undated: bool = False
    column: str = field(default="", compare=False)
    over: Over = field(default=Over.ALL, compare=False)
    times: Times = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not (self.periods or self.is_undated):
            raise ValueError("a charge has a slice")
        before = -2  # no period, and none is beside it
        for first, last in self.periods:
            if (
                type(first) is not int
                or type(last) is not int
                or not before + 1 < first <= last <= MOST_NUMBER
            ):
                raise ValueError("runs of periods are in order, and apart")
            before = last

    @classmethod
    def of(
        cls, numbers: Iterable[int], *, is_undated: bool = False, column: str = "", over: Over = Over.ALL,
        times: Times = (),
    ) -> Slices:  # fmt: skip
        """Return the slices of the periods of these numbers."""
        return cls(_together((number, number) for number in numbers), is_undated, column, over, times)

    @staticmethod
    def joined(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return runs that are in order and apart for some that need not be."""
        return _together(runs)

    def union(self, other: Slices) -> Slices:
        """Return the slices of both; a person loses what the larger of both ways comes to."""
        over = max(self.over, other.over, key=list(Over).index)
        return Slices(
            _together((*self.periods, *other.periods)),
            is_undated=self.is_undated or other.is_undated,
            column=self.column or other.column,
            over=over,
            times=tuple(sorted({*self.times, *other.times})),
        )

    def meets(self, other: Slices) -> bool:
        """Say whether some slice is one of both."""
        pairs = itertools.product(self.runs, other.runs)
        return any(
            first <= others_last and others_first <= last
            for (first, last), (others_first, others_last) in pairs
        )

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The runs, that of undated rows, which is `UNDATED` alone, before all others."""
        return ((UNDATED, UNDATED), *self.periods) if self.is_undated else self.periods

    @property
    def count(self) -> int:
        """How many periods there are."""
        return sum(last - first + 1 for first, last in self.periods)

    def text(self, period: Period, since: date | None = None) -> str:
        """Return them for people: `2026-03 to 2026-05, 2026-08 and undated rows`; `since`: of the first period."""
        told = [run_text(period, first, last, since) for first, last in self.periods]
        listed = ", ".join(told)
        return listed + (" and " if listed else "") + "undated rows" if self.is_undated else listed


def most_of(parts: Iterable[tuple[Slices | None, Fraction]]) -> Fraction:
    """Return what the slice has that has most of all that is added to some slices each; None: to all of them."""
    everywhere, steps = Fraction(0), dict[int, Fraction]()
    for slices, amount in parts:
        if slices is None:
            everywhere += amount
            continue
        for first, last in slices.runs:
            steps[first] = steps.get(first, Fraction(0)) + amount
            steps[last + 1] = steps.get(last + 1, Fraction(0)) - amount
    most = now = Fraction(0)
    for place in sorted(steps):
        now += steps[place]
        most = max(most, now)
    return everywhere + most


def run_text(period: Period, first: int, last: int, since: date | None = None) -> str:
    """Return a run of periods for people: `2026-03 to 2026-05`; `since`: of the first period that has a name."""
    if first == UNDATED:
        return "undated rows"
    before = None if since is None else number_of(period, since) - 1
    ends = "on" if last == MOST_NUMBER else f"to {period_text(period, last)}"
    if before is not None and first <= before:
        return f"before {since}" if last <= before else f"before {since} {ends}"
    own = period_text(period, first)
    return own if first == last else f"{own} {ends}"


def period_text(period: Period, number: int) -> str:
    """Return a period for people: `2026-03-01`, `2026-W10`, `2026-03`, `2026`."""
    day = first_day(period, number)
    match period:
        case Period.DAY:
            return day.isoformat()
        case Period.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case Period.MONTH:
            return f"{day.year:04}-{day.month:02}"
        case Period.YEAR:
            return f"{day.year:04}"


def number_in(period: Period, text: str) -> int | None:
    """Return the number of the period that `period_text` says so; None: it is none."""
    whole = {Period.MONTH: f"{text}-01", Period.YEAR: f"{text}-01-01"}.get(period, text)
    try:
        number = number_of(period, date.fromisoformat(whole))
    except ValueError:
        return None
    return number if period_text(period, number) == text else None


def _together(runs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)

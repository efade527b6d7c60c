"""Steps of zones' clocks: known values on both sides of changes, and faults that would read the wrong side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from dpsql.relation import calendar
from dpsql.relation.calendar import MAX_CHANGES, Steps, clock_steps, cut_ends, moment_steps

from ..laws.planting import plant

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_CACHED = (calendar.clock_steps, calendar.moment_steps, calendar.back_steps, calendar._changes_in)


def number(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


_LO, _HI = number("2011-01-01"), number("2024-12-31")
KNOWN = (
    (clock_steps, "Europe/Zurich", "2024-03-31 00:59:59.999999", "2024-03-31 01:59:59.999999"),
    (clock_steps, "Europe/Zurich", "2024-03-31 01:00", "2024-03-31 03:00"),
    (clock_steps, "Europe/Zurich", "2024-10-27 00:59", "2024-10-27 02:59"),
    (clock_steps, "Europe/Zurich", "2024-10-27 01:00", "2024-10-27 02:00"),
    (
        moment_steps,
        "Europe/Zurich",
        "2024-03-31 02:30",
        "2024-03-31 01:30",
    ),  # skipped: as the clocks went before
    (moment_steps, "Europe/Zurich", "2024-03-31 03:00", "2024-03-31 01:00"),
    (moment_steps, "Europe/Zurich", "2024-10-27 01:59", "2024-10-26 23:59"),
    (moment_steps, "Europe/Zurich", "2024-10-27 02:30", "2024-10-27 01:30"),  # shown twice: the later one
    (clock_steps, "Pacific/Apia", "2011-12-30 10:00", "2011-12-31 00:00"),  # a day that was left out
)
CUT = (
    ("year", "America/Sao_Paulo", "2012-06-01", "2012-01-01 02:00"),
    ("month", "Europe/Zurich", "2024-03-31 21:59", "2024-02-29 23:00"),
    ("month", "Europe/Zurich", "2024-03-31 22:00", "2024-03-31 22:00"),
    ("hour", "Europe/Zurich", "2024-10-27 00:30", "2024-10-27 00:00"),
    ("hour", "Europe/Zurich", "2024-10-27 01:30", "2024-10-27 01:00"),
)


def check() -> None:
    for cached in _CACHED:
        cached.cache_clear()
    for steps, zone, moment, shown in KNOWN:
        found = steps(zone, _LO, _HI)
        assert found is not None
        assert number(moment) + found.at(number(moment)) == number(shown), (zone, moment)
    for unit, zone, moment, start in CUT:
        assert cut_ends(unit, zone, number(moment), number(moment)) == (number(start), number(start))
        clock, back = calendar.clock_steps(zone, _LO, _HI), calendar.back_steps(unit, zone, _LO, _HI)
        assert clock is not None
        assert back is not None
        cut = calendar.truncated(unit, number(moment) + clock.at(number(moment)))
        assert cut is not None
        assert cut + back.at(number(moment)) == number(start), (unit, moment)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    for cached in _CACHED:
        cached.cache_clear()


def test_what_clocks_show_around_their_changes() -> None:
    check()


FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "what the clocks were ahead before the change": (
        calendar._changes_in.__wrapped__, "(high * _SECOND, after)", "(high * _SECOND, before)",
    ),
    "a change one second late": (calendar._changes_in.__wrapped__, "(high * _SECOND,", "((high + 1) * _SECOND,"),
    "the moment of a change still of the step before": (Steps.at, "bisect_right", "__import__('bisect').bisect_left"),
    "readings that change where the clocks left off": (
        calendar.moment_steps.__wrapped__, "(start + ahead, -ahead)", "(start + near.at(start - 1), -ahead)",
    ),
    "the start of a unit by the first step of all": (calendar.back_steps.__wrapped__, "moments.at(at)", "moments.first"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], old: str, new: str) -> None:
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check()


def test_what_is_not_written_out() -> None:
    assert clock_steps("Europe/Zurich", number("1990-01-01"), number("2039-12-31")) is not None
    assert clock_steps("Europe/Zurich", number("1980-01-01"), number("2039-12-31")) is None, MAX_CHANGES
    assert clock_steps("Asia/Tokyo", number("1700-01-01"), number("2024-01-01")) is None, "300 years"
    assert clock_steps("Asia/Tokyo", number("0001-01-01"), number("0001-02-01")) is None, "the calendar's end"
    assert clock_steps("Asia/Tokyo", -(2**63), 2**63) is None

"""Periods by number, and the slices that a charge is for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.policy import Over, Period, Slices
from dpsql.policy.periods import UNDATED, end_of, first_day, instant_of, last_closed, number_of, start_of

DAYS = st.dates(date(1, 1, 1), date(9998, 12, 31))
NUMBERS = st.sets(st.integers(0, 40))


@given(st.sampled_from(Period), DAYS)
def test_a_number_leads_back_to_the_first_day(period: Period, day: date) -> None:
    number = number_of(period, day)
    assert first_day(period, number) == start_of(period, day)
    assert first_day(period, number + 1) == end_of(period, day)


def test_numbers_are_those_that_ledgers_keep() -> None:
    day = date(2026, 3, 5)
    assert [number_of(period, day) for period in Period] == [739680, 105668, 24314, 2026]


def test_a_period_begins_at_midnight_of_its_zone() -> None:
    march = number_of(Period.MONTH, date(2026, 3, 1))
    assert instant_of(Period.MONTH, march, "UTC") == datetime(2026, 3, 1, tzinfo=UTC)
    assert instant_of(Period.MONTH, march, "Europe/Berlin") == datetime(2026, 2, 28, 23, tzinfo=UTC)
    assert instant_of(Period.MONTH, march + 3, "Europe/Berlin") == datetime(2026, 5, 31, 22, tzinfo=UTC)
    gap = number_of(Period.DAY, date(2018, 11, 4))  # no midnight there: the clock went from 0:00 to 1:00
    assert instant_of(Period.DAY, gap, "America/Sao_Paulo") == datetime(2018, 11, 4, 3, tzinfo=UTC)


@given(NUMBERS, NUMBERS, st.booleans(), st.booleans())
def test_slices_are_a_set_of_numbers(one: set[int], other: set[int], first: bool, second: bool) -> None:
    if not (one or first) or not (other or second):
        with pytest.raises(ValueError, match="a charge has a slice"):
            Slices.of(set())
        return
    union = Slices.of(one, is_undated=first).union(Slices.of(other, is_undated=second))
    assert union == Slices.of(one | other, is_undated=first or second)
    assert {n for begin, end in union.periods for n in range(begin, end + 1)} == one | other
    assert union.count == len(one | other)
    assert (union.runs[0] == (UNDATED, UNDATED)) is (first or second)


@pytest.mark.parametrize("runs", [((3, 2),), ((1, 2), (3, 4)), ((5, 6), (1, 2)), ((-1, 3),), ((0, 10**8),)])
def test_runs_are_in_order_and_apart(runs: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="in order"):
        Slices(runs)


def test_a_person_loses_what_the_larger_way_comes_to() -> None:
    each = Slices(((1, 1),), column="orders.ordered_at", over=Over.EACH)
    once = Slices(((2, 2),), over=Over.ONCE)
    assert once.union(each).over is Over.EACH
    assert once.union(each).column == "orders.ordered_at"
    assert each.union(Slices(((9, 9),))).over is Over.ALL
    assert each == Slices(((1, 1),)), "words and ways are not compared"


def test_words() -> None:
    march = number_of(Period.MONTH, date(2026, 3, 1))
    slices = Slices(((march, march + 2), (march + 5, march + 5)), is_undated=True)
    assert slices.text(Period.MONTH) == "2026-03 to 2026-05, 2026-08 and undated rows"
    assert Slices((), is_undated=True).text(Period.MONTH) == "undated rows"
    assert (
        Slices(((march - 1, march),)).text(Period.MONTH, date(2026, 3, 1)) == "before 2026-03-01 to 2026-03"
    )
    assert Slices(((march - 1, march - 1),)).text(Period.MONTH, date(2026, 3, 1)) == "before 2026-03-01"
    week = number_of(Period.WEEK, date(2027, 1, 1))
    assert Slices(((week, week),)).text(Period.WEEK) == "2026-W53"
    day = number_of(Period.DAY, date(2026, 3, 1))
    assert Slices(((day, day + 1),)).text(Period.DAY) == "2026-03-01 to 2026-03-02"
    assert Slices(((2024, 2026),)).text(Period.YEAR) == "2024 to 2026"
    assert end_of(Period.YEAR, date(2026, 5, 1)) - timedelta(days=1) == date(2026, 12, 31)


def test_a_period_closes_when_it_is_over_by_what_late_rows_may_take() -> None:
    march = number_of(Period.MONTH, date(2026, 3, 1))
    days = timedelta(days=3)
    for text, zone, closed in [
        ("2026-04-03T23:59:59+00:00", "UTC", march - 1),
        ("2026-04-04T00:00:00+00:00", "UTC", march),
        ("2026-04-03T22:00:00+00:00", "Europe/Berlin", march),
        ("2026-04-03T21:59:00+00:00", "Europe/Berlin", march - 1),
    ]:
        assert last_closed(Period.MONTH, zone, days, datetime.fromisoformat(text)) == closed, text

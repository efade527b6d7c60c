"""Periods: a ration inside the total, by the clock in UTC. Whatever the clock says, no period's ration is passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.budget import Caps, LedgerStore, Ration, ledger, ledger_store, postgres_ledger, sqlite_ledger
from dpsql.errors import BudgetExhausted
from dpsql.mechanisms import rho_within
from dpsql.policy import Accounting, Period
from dpsql.policy.periods import end_of, number_of, start_of

from .samples import EPSILON, IN_RHO, Place, claim, measurement
from .test_accounting import HALF

TENTH = EPSILON // 10
Clock = Callable[[str], None]


@pytest.fixture
def place(place: Place, accounting: Accounting) -> Place:
    """Give each place twice: for a ledger in epsilon, and for one in rho."""
    return replace(place, accounting=accounting)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    def be(day: str) -> None:
        for module in (ledger, ledger_store, postgres_ledger, sqlite_ledger):
            monkeypatch.setattr(module, "utc_now", lambda: f"{day}T12:00:00+00:00")

    be("2026-01-31")
    return be


def caps(ration: Ration) -> Caps:
    return Caps(10 * EPSILON, 10**12, {"alice": 3 * EPSILON}, ration)


def monthly(epsilon: int | None = EPSILON, own: int | None = None, *, carries: bool = False) -> Ration:
    return Ration(Period.MONTH, epsilon, {} if own is None else {"alice": own}, carries)


def buys(store: LedgerStore, name: str, analyst: str = "bob", epsilon: int = TENTH) -> int:
    """Buy until it is refused; return how often."""
    for number in range(500):
        try:
            store.reserve(claim(measurement(f"{name} {number}", epsilon=epsilon), analyst=analyst))
        except BudgetExhausted:
            return number
    raise AssertionError("it is never refused")


def held(place: Place, epsilon: int = EPSILON, times: int = 1) -> int:
    """Return how many statements at a tenth so many rations hold."""
    if place.accounting is Accounting.PURE:
        return times * epsilon // TENTH
    from fractions import Fraction

    return times * rho_within(Fraction(epsilon, EPSILON), HALF) // (5 * 10**15)


def test_a_ration_is_spent_and_comes_back_with_the_next_month(place: Place, clock: Clock) -> None:
    store = place.open(caps(monthly()))
    assert buys(store, "january") == held(place)
    with pytest.raises(BudgetExhausted, match="this month's budget") as caught:
        store.reserve(claim(measurement("more"), analyst="bob"))
    assert "2026-02-01 (UTC)" in (caught.value.hint or "")
    clock("2026-02-01")
    assert store.status().rations[0].spent == 0
    assert buys(store, "february") == held(place)
    store.close()
    again = place.open(caps(monthly()))
    assert buys(again, "again") == 0
    (ration,) = again.status().rations
    assert (ration.whose, ration.until, ration.left < ration.cap) == ("this month's", "2026-03-01", True)
    again.close()


def test_an_analyst_has_a_ration_of_their_own(place: Place, clock: Clock) -> None:
    store = place.open(caps(monthly(None, EPSILON)))
    assert buys(store, "alice", "alice") == held(place)
    with pytest.raises(BudgetExhausted, match="your own month's budget"):
        store.reserve(claim(measurement("more"), analyst="alice"))
    assert store.status("bob").rations == ()
    store.reserve(claim(measurement("bob's"), analyst="bob"))
    store.close()


def test_what_is_left_over_is_carried_where_the_owner_says_so(place: Place, clock: Clock) -> None:
    store = place.open(caps(monthly(carries=True)))
    assert buys(store, "january") == held(place)
    clock("2026-04-15")
    assert buys(store, "april, as the clock says") == 0
    store.confirm_clock("owner")
    assert buys(store, "april") == held(place, times=4) - held(place)
    store.close()
    place.lose()
    again = place.open(caps(monthly(carries=True)))
    assert buys(again, "again") == 0, "the log knows when the ledger was made"
    again.close()


def test_a_clock_that_goes_backwards_gives_nothing_back(place: Place, clock: Clock) -> None:
    store = place.open(caps(monthly()))
    assert buys(store, "january") == held(place)
    clock("2026-02-01")
    assert buys(store, "february") == held(place)
    for day in ("2026-01-15", "2025-12-24"):
        clock(day)
        with pytest.raises(BudgetExhausted, match="this month's budget") as caught:
            store.reserve(claim(measurement("more"), analyst="bob"))
        assert f"the clock says {day}" in (caught.value.hint or "")
        assert "dpsql budget clock" in (caught.value.hint or "")
    assert store.log(1)[0].at == "2026-02-01T12:00:00+00:00"
    store.close()
    place.lose()
    again = place.open(caps(monthly()))
    assert buys(again, "replayed") == 0, "its records have the moment"
    again.close()


def test_what_is_charged_under_a_clock_that_is_behind_has_the_ledgers_moment(
    place: Place, clock: Clock
) -> None:
    store = place.open(caps(monthly()))
    clock("2026-02-01")
    store.reserve(claim(measurement("a"), analyst="bob"))
    clock("1999-12-31")
    store.reserve(claim(measurement("b"), analyst="bob"))
    store.grant(None, 1, "owner")
    assert [entry.at for entry in store.log(2)] == ["2026-02-01T12:00:00+00:00"] * 2
    assert store.moment() == "2026-02-01T12:00:00+00:00"
    store.close()


def test_a_leap_of_the_clock_waits_for_the_owners_word(place: Place, clock: Clock) -> None:
    store = place.open(caps(monthly()))
    assert buys(store, "january") == held(place)
    clock("2026-02-02")
    for _ in range(2):
        with pytest.raises(BudgetExhausted) as caught:
            store.reserve(claim(measurement("leap"), analyst="bob"))
        assert "more than a day after the ledger's last moment, 2026-01-31T12:00:00+00:00" in (
            caught.value.hint or ""
        )
        store.grant(None, 1, "an owner's act is no word about the clock")
    assert store.status().clock
    store.close()
    other = place.open(caps(monthly()))
    assert other.confirm_clock("owner") == "2026-02-02T12:00:00+00:00"
    assert not other.status().clock
    assert buys(other, "february") == held(place)
    other.close()
    place.lose()
    again = place.open(caps(monthly()))
    assert again.moment() == "2026-02-02T12:00:00+00:00"
    again.close()


def test_the_owner_takes_a_wrong_clock_back(place: Place, clock: Clock) -> None:
    """One year is confirmed by mistake: the true one can be, and what was charged meanwhile stays where it is."""
    store = place.open(caps(monthly()))
    clock("2099-01-01")
    store.confirm_clock("owner")
    store.reserve(claim(measurement("far"), analyst="bob"))
    clock("2026-01-31")
    assert store.status().clock
    store.confirm_clock("owner")
    assert not store.status().clock
    assert buys(store, "january") == held(place)
    store.close()


def test_a_quiet_week_of_a_running_server_is_no_leap(
    place: Place, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = place.open(caps(monthly()))
    assert buys(store, "january") == held(place)
    size = place.log.stat().st_size
    store.tidy()
    assert place.log.stat().st_size == size, "the last record is fresh"
    for day in range(1, 8):
        clock(f"2026-02-0{day}")
        monkeypatch.setattr(store, "_look_at_clock", 0.0)
        store.tidy()
    assert store.moment() == "2026-02-07T12:00:00+00:00"
    store.close()
    again = place.open(caps(monthly()))
    assert buys(again, "february") == held(place)
    again.close()


def test_a_machine_that_joins_with_a_wrong_clock_moves_nothing(place: Place, clock: Clock) -> None:
    if place.is_sqlite:
        pytest.skip("a file has one log")
    store = place.open(caps(monthly()))
    assert buys(store, "january") == held(place)
    clock("2027-05-05")
    second = replace(place, log=place.log.with_name("second.log")).open(caps(monthly()), create=False)
    assert buys(second, "may") == 0
    second.close()
    store.close()


def test_the_total_is_the_promise(place: Place, clock: Clock) -> None:
    store = place.open(replace(caps(monthly()), epsilon_nano=EPSILON // 2))
    first = buys(store, "january")
    clock("2026-02-01")
    assert first == held(place, EPSILON // 2)
    assert buys(store, "february") == 0
    store.close()


def test_two_who_race_do_not_pass_a_ration(place: Place, clock: Clock) -> None:
    stores = [place.open(caps(monthly())) for _ in range(2)]
    if not place.is_sqlite:
        stores[1].close()
        stores[1] = replace(place, log=place.log.with_name("second.log")).open(caps(monthly()), create=False)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: buys(stores[n % 2], f"{n}"), range(4)))
    assert sum(found) == held(place)
    for store in stores:
        store.close()


def test_a_moved_ledger_counts_the_period_in_rho(place: Place, clock: Clock) -> None:
    pure = replace(place, accounting=Accounting.PURE)
    store = pure.open(caps(monthly()))
    store.reserve(claim(measurement("a"), analyst="bob"))
    store.move_to_zcdp(IN_RHO.conversion_delta_atto, "owner")
    store.close()
    after = replace(place, accounting=Accounting.ZCDP).open(caps(monthly()))
    assert after.status().rations[0].spent == 5 * 10**15
    after.close()


DAYS = st.dates(date(1999, 1, 1), date(2100, 1, 1))


@given(st.sampled_from(list(Period)), DAYS)
def test_periods_follow_one_another(period: Period, day: date) -> None:
    start, end = start_of(period, day), end_of(period, day)
    assert start <= day < end == start_of(period, end)
    assert (
        number_of(period, start) == number_of(period, end - timedelta(days=1)) == number_of(period, end) - 1
    )


@settings(max_examples=15, deadline=None)
@given(days=st.lists(st.integers(0, 60), min_size=1, max_size=40))
def test_whatever_the_clock_says_no_ration_is_passed(
    days: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("ledger")
    place = Place(f"sqlite:{folder / 'ledger.db'}", folder / "ledger.db.log")
    moments: list[date] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (ledger, ledger_store, sqlite_ledger):
            patch.setattr(module, "utc_now", lambda: "2026-01-01T00:00:00+00:00")
        store = place.open(caps(Ration(Period.WEEK, 3 * TENTH, {})))
        for number, after in enumerate(days):
            day = date(2026, 1, 1) + timedelta(days=after)
            patch.setattr(ledger_store, "utc_now", lambda day=day: f"{day}T00:00:00+00:00")
            try:
                store.reserve(claim(measurement(f"{number}"), analyst="bob"))
            except BudgetExhausted:
                assert store.status().rations[0].left == 0
            moments.append(date.fromisoformat(store.moment()[:10]))
        assert moments == sorted(moments)
        assert all(
            after - before <= timedelta(days=1) for before, after in pairwise([date(2026, 1, 1), *moments])
        )
        spent = Counter(
            number_of(Period.WEEK, date.fromisoformat(entry.at[:10])) for entry in store.log(1_000)
        )
        assert max(spent.values(), default=0) <= 3
        store.close()

"""What a person may have lost over several periods: counted anew, person by person, and as caps that only refuse more."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from dpsql.budget import Caps, Charge, LedgerStore
from dpsql.budget.entry import Division, Entry, Header, Segment
from dpsql.budget.slices import Odometer, Steps
from dpsql.errors import BudgetExhausted
from dpsql.mechanisms import Laplace, rho_within
from dpsql.policy import Accounting, Over, Period, Slices
from dpsql.policy.periods import MOST_NUMBER, UNDATED

from .samples import BY_MONTH, EPSILON, IN_RHO, MARCH, Place, claim, measurement

TENTH = EPSILON // 10
BEFORE = 10
LENGTHS = (2, 5)


@pytest.fixture
def place(place: Place) -> Place:
    return replace(place, is_sliced=True)


def entry(slices: Slices, epsilon: int) -> Entry:
    return Entry(
        0,
        "2026-01-01",
        1,
        "bob",
        "SELECT 1",
        "",
        (),
        Laplace(Fraction(1)),
        Charge.pure(epsilon),
        slices=slices,
    )


def drawn(chance: random.Random, most: int = 30) -> Slices:
    first = chance.randrange(BEFORE - 2, most)
    runs = [(first, first + chance.randrange(8))]
    if chance.random() < 0.3:
        runs.append((runs[0][1] + 2, runs[0][1] + 2 + chance.randrange(3)))
    return Slices(tuple(runs), is_undated=chance.random() < 0.3, over=chance.choice(list(Over)))


def loses(statement: Entry, periods: set[int], *, in_rho: bool) -> int:
    """Return what somebody who is in some periods loses by a statement (soundness.md 3.22): counted by hand."""
    assert statement.slices is not None
    numbers = {
        n for first, last in statement.slices.runs for n in range(max(first, BEFORE), last + 1) if first >= 0
    }
    numbers |= {UNDATED} if statement.slices.is_undated else set()
    met = len(numbers & periods)
    one = statement.charge.rho_atto if in_rho else statement.charge.epsilon_nano
    if not met:
        return 0
    if statement.slices.over is Over.ONCE:
        return one
    return one * met * (met if in_rho and statement.slices.over is Over.ALL else 1)


@pytest.mark.parametrize("in_rho", [False, True])
def test_no_person_loses_more_than_what_is_counted_and_some_lose_that(in_rho: bool) -> None:
    for seed in range(40):
        chance = random.Random(seed)
        statements = [entry(drawn(chance), chance.randrange(1, 9)) for _ in range(25)]
        odometer = Odometer(BEFORE, LENGTHS, in_rho)
        odometer.read(enumerate(statements))
        odometer.read(enumerate(statements[:9]))  # again: nothing is counted twice
        for length in LENGTHS:
            for begin in range(BEFORE, 45):
                window = set(range(begin, begin + length))
                assert odometer.lost(length, begin) == sum(
                    loses(one, window, in_rho=in_rho) for one in statements
                )
            worst = odometer.worst(length)
            assert worst.amount == max(odometer.lost(length, begin) for begin in range(BEFORE, 45))
            assert worst.amount == odometer.lost(length, worst.first)
        everybody = {UNDATED, *range(BEFORE, 60)}
        assert odometer.ever == sum(loses(one, everybody, in_rho=in_rho) for one in statements)
        for _ in range(50):
            begin = chance.randrange(BEFORE, 40)
            some = {begin + step for step in range(5) if chance.random() < 0.6}
            assert sum(loses(one, some, in_rho=in_rho) for one in statements) <= odometer.lost(5, begin)


@pytest.mark.parametrize("in_rho", [False, True])
def test_what_would_be_lost_is_what_is_lost_afterwards(in_rho: bool) -> None:
    chance = random.Random(5)
    odometer = Odometer(BEFORE, LENGTHS, in_rho)
    for number in range(100):
        new = [entry(drawn(chance), chance.randrange(1, 9)) for _ in range(2)]
        charges = [(one.slices, one.charge) for one in new if one.slices is not None]
        found = {length: odometer.after(length, charges) for length in LENGTHS}
        ever = odometer.ever_after(charges)
        odometer.read(enumerate(new, 2 * number))
        assert odometer.ever == ever
        for length, after in found.items():
            assert after is not None
            assert odometer.lost(length, after.first) == after.amount
    assert odometer.after(2, [(Slices((), is_undated=True), Charge.pure(1))]) is None


@pytest.mark.parametrize("in_rho", [False, True])
def test_sums_of_a_later_file_count_for_no_less_than_its_records(in_rho: bool) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        statements = [entry(drawn(chance), chance.randrange(1, 9)) for _ in range(20)]
        steps = Steps()
        for one in statements:
            assert one.slices is not None
            sums = one.charge.epsilon_nano, 0, one.charge.rho_atto
            for first, last in one.slices.runs:
                steps.add(first, last, sums)
        header = Header(0, "", "", promise=BY_MONTH, format=6)
        segment = Segment(20, "", "", "", BY_MONTH, "", 1, 0, 1, (), (("bob", tuple(steps)),), format=6)
        whole, later = Odometer(BEFORE, LENGTHS, in_rho), Odometer(BEFORE, LENGTHS, in_rho)
        whole.read(enumerate([header, *statements, *([segment] if seed % 2 else [])]))
        later.read([(20, segment)])
        for length, begin in itertools.product(LENGTHS, range(BEFORE, 45)):
            assert later.lost(length, begin) >= whole.lost(length, begin)
        assert later.ever >= whole.ever


def test_what_a_division_charges_counts_once_in_each_window() -> None:
    for last in (20, MOST_NUMBER):
        odometer = Odometer(BEFORE, LENGTHS, in_rho=False)
        slices = Slices(((0, last),), is_undated=True, over=Over.ONCE)
        spent = (("alice", (3, 0, 9)), ("bob", (4, 0, 16)))
        odometer.read([(0, Division(0, "", Period.MONTH, "UTC", date(2024, 1, 1), slices, spent, "owner"))])
        assert odometer.ever == 7
        assert [odometer.lost(5, begin) for begin in (BEFORE, 19, 20, 21)] == [7, 7, 7, 7 if last > 20 else 0]
        assert odometer.worst(5).amount == 7


def ask(store: LedgerStore, name: str, slices: Slices, epsilon: int = TENTH) -> None:
    store.reserve(claim(replace(measurement(name, epsilon=epsilon), slices=slices), analyst="bob"))


def of(first: int, last: int, over: Over = Over.EACH) -> Slices:
    return Slices(((MARCH + first, MARCH + last),), over=over)


def test_twelve_months_in_a_row_have_a_cap_of_their_own(place: Place) -> None:
    caps = Caps(10 * EPSILON, 0, {}, windows=((12, 6 * EPSILON),))
    store = place.open(caps)
    for month in range(12):
        ask(store, f"m{month}", of(month, month), EPSILON // 2)
    told = r"who is in all of 2026-03 to 2027-02 would lose epsilon 6\.1, and over 12 months it is at most 6"
    with pytest.raises(BudgetExhausted, match=told):
        ask(store, "refused", of(5, 5))
    ask(store, "next", of(12, 12), EPSILON // 2)
    ask(store, "far", of(30, 31), 3 * EPSILON)
    store.close()
    store = place.open(caps, create=False)  # read anew from the records
    with pytest.raises(BudgetExhausted, match="2026-04 to 2027-03"):
        ask(store, "refused", of(12, 12), 1)
    with pytest.raises(BudgetExhausted, match=r"2027-12 to 2028-11 would lose epsilon 6\.000000009"):
        ask(store, "over", of(24, 32, Over.ALL), 1)
    assert store.odometer().worst(12).amount == 6 * EPSILON
    store.close()
    wide = place.open(replace(caps, windows=((12, 7 * EPSILON), (2, 6 * EPSILON))), create=False)
    ask(wide, "more", of(5, 5), EPSILON)
    wide.close()


def test_everybody_has_an_odometer(place: Place) -> None:
    caps = Caps(10 * EPSILON, 0, {}, person_nano=EPSILON)
    store = place.open(caps)
    ask(store, "by person", of(0, 8, Over.ONCE), 2 * TENTH)
    ask(store, "by month", of(0, 3), 2 * TENTH)
    with pytest.raises(
        BudgetExhausted, match=r"in every month so far would lose epsilon 1\.000000002, and it is at most 1"
    ):
        ask(store, "refused", of(7, 8), 1)
    store.close()
    store = place.open(replace(caps, person_nano=EPSILON + 2), create=False)
    ask(store, "two", of(7, 8), 1)
    assert store.odometer().ever == EPSILON + 2
    store.close()


def test_under_zcdp_a_sum_over_months_costs_their_square(place: Place) -> None:
    place = replace(place, accounting=Accounting.ZCDP)
    conversion = Fraction(IN_RHO.conversion_delta_atto, 10**18)
    caps = Caps(10 * EPSILON, 10**12, {}, windows=((3, EPSILON),), person_nano=2 * EPSILON)
    store = place.open(caps)
    few = TENTH // 10
    rho = few**2 // 2
    ask(store, "each", of(0, 2), few)
    assert store.odometer().lost(3, MARCH) == 3 * rho
    ask(store, "all", of(0, 2, Over.ALL), few)
    assert store.odometer().lost(3, MARCH) == 12 * rho
    assert store.odometer().ever == 12 * rho
    cap = rho_within(Fraction(1), conversion)
    while store.odometer().lost(3, MARCH) + 9 * rho <= cap:
        ask(store, f"more {store.odometer().ever}", of(0, 2, Over.ALL), few)
    with pytest.raises(BudgetExhausted, match="over 3 months it is at most 0"):
        ask(store, "refused", of(0, 2, Over.ALL), few)
    assert cap - 9 * rho < store.odometer().lost(3, MARCH) <= cap
    store.close()


def test_other_windows_need_another_store(place: Place) -> None:
    store = place.open(Caps(EPSILON, 0, {}, windows=((12, EPSILON),)))
    with pytest.raises(ValueError, match="with a store"):
        store.take_caps(Caps(EPSILON, 0, {}))
    store.close()
    for windows in (((1, EPSILON),), ((12, -1),)):
        with pytest.raises(ValueError, match="integer in"):
            Caps(EPSILON, 0, {}, windows=windows)

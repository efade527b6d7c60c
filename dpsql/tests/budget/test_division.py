"""A ledger that was kept as a whole is divided into periods: what was charged counts in each of those that were."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from dpsql.budget import Caps, LedgerStore, ledger, ledger_store, postgres_ledger, sqlite_ledger
from dpsql.budget.journal import sealed_path
from dpsql.budget.slices import twice
from dpsql.errors import BudgetExhausted, LedgerError
from dpsql.policy import Accounting, Neighbours, Slices
from dpsql.policy.periods import MOST_NUMBER, UNDATED

from .samples import BY_MONTH, EPSILON, IN_RHO, MARCH, Place, claim, measurement
from .test_crash import _die as die

TENTH = EPSILON // 10
WIDE = Caps(100 * EPSILON, 10**12, {"alice": 50 * EPSILON})


@pytest.fixture
def place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    for module in (ledger, ledger_store, postgres_ledger, sqlite_ledger):
        monkeypatch.setattr(module, "utc_now", lambda: "2026-03-31T23:30:00+00:00")
    return place


def filled(place: Place) -> LedgerStore:
    store = place.open(WIDE)
    store.reserve(claim(measurement("a", epsilon=TENTH, delta=1000), analyst="alice"))
    store.reserve(claim(measurement("b", epsilon=2 * TENTH), analyst="bob"))
    return store


def by_month(place: Place) -> Place:
    return replace(place, is_sliced=True)


def test_each_slice_up_to_the_running_one_has_twice_what_was_charged(place: Place) -> None:
    store = filled(place)
    spent = store.spent()
    division = store.divide(BY_MONTH, is_all=False, by="owner")
    assert division.slices == Slices(((0, MARCH),), is_undated=True)
    alice = 2 * TENTH, math.ceil(1000 * (1 + math.exp(0.1))), 4 * TENTH**2 // 2
    bob = 4 * TENTH, 0, 4 * (2 * TENTH) ** 2 // 2
    everybody = alice[0] + bob[0], alice[1], alice[2] + bob[2]
    for name, sums in ((None, everybody), ("alice", alice), ("bob", bob)):
        assert list(store.slices(name)) == [(UNDATED, UNDATED, sums), (0, MARCH, sums)]
    assert store.spent() == spent, "the sum of what was charged is a figure that stays"
    later = replace(measurement("c", epsilon=100 * EPSILON), slices=Slices(((MARCH + 1, MARCH + 1),)))
    store.reserve(claim(later, analyst="bob"))
    earlier = replace(measurement("d", epsilon=99 * EPSILON + 5 * TENTH), slices=Slices(((MARCH, MARCH),)))
    with pytest.raises(BudgetExhausted, match=r"2026-03 has epsilon 99\.4 left of 100"):
        store.reserve(claim(earlier, analyst="bob"))
    store.close()
    runs = [(UNDATED, UNDATED, everybody), (0, MARCH, everybody)]
    for _ in range(2):
        store = by_month(place).open(WIDE, create=False)
        assert list(store.slices())[:2] == runs
        store.verify()
        with pytest.raises(LedgerError, match="by periods already"):
            store.divide(BY_MONTH, is_all=False, by="owner")
        store.close()
        place.lose()
        store = by_month(place).open(WIDE, create=not place.is_sqlite)
        assert list(store.slices())[:2] == runs
        store.rotate()
        store.close()
    with pytest.raises(LedgerError, match="kept by periods"):
        place.open(WIDE)
    place.lose()
    for number in range(2):
        sealed_path(place.log, number).unlink(missing_ok=True)
    store = by_month(place).open(WIDE, create=not place.is_sqlite)
    assert list(store.slices())[:2] == runs
    store.close()


def test_a_division_is_a_record_that_says_what_it_counts(place: Place) -> None:
    store = filled(place)
    store.divide(replace(BY_MONTH, zone="Europe/Berlin"), is_all=False, by="owner")
    with store._ledger.read() as db:
        ((body,),) = db.execute("SELECT body FROM record WHERE kind = 'division'").fetchall()
    written = json.loads(body)
    assert written["spent"][0][:2] == ["alice", 2 * TENTH]
    assert written["slices"] == {"periods": [[0, MARCH + 1]], "undated": True, "over": "once"}, (
        "it is April there"
    )
    assert (written["period"], written["since"], written["zone"], written["by"]) == (
        "month", "2024-01-01", "Europe/Berlin", "owner",
    )  # fmt: skip
    store.close()


def test_a_division_says_by_which_time_rows_are_of_a_period(place: Place) -> None:
    """By another one there could be rows of periods to come, which what was charged before does not count for."""
    store = filled(place)
    store.divide(BY_MONTH, is_all=False, by="owner", times=(("orders", "ordered_at"), ("users", "")))
    store.require_times((("orders", "ordered_at"), ("users", "")))
    with pytest.raises(LedgerError, match='rows of "orders" were charged by time = "ordered_at"'):
        store.require_times((("orders", "shipped_at"),))
    store.close()


def test_all_periods_that_are_to_come_may_be_charged_too(place: Place) -> None:
    store = filled(place)
    store.divide(BY_MONTH, is_all=True, by="owner")
    assert list(store.slices())[1][:2] == (0, MOST_NUMBER)
    assert store.left_of(Slices(((MARCH + 100, MARCH + 101),))).status.epsilon_spent_nano == 6 * TENTH
    assert store.status().of == "before 2024-01-01 on"
    store.close()


def test_between_replaced_people_what_was_charged_is_what_counts(place: Place) -> None:
    promise = replace(place.promise, neighbours=Neighbours.REPLACE_ONE.value)
    store = place.open(WIDE, promise=promise)
    store.reserve(claim(measurement("a", epsilon=TENTH, delta=1000), analyst="alice"))
    store.divide(replace(BY_MONTH, neighbours=promise.neighbours), is_all=False, by="owner")
    assert list(store.slices())[1] == (0, MARCH, (TENTH, 1000, TENTH**2 // 2))
    store.close()


def test_a_moved_ledger_is_divided_and_a_divided_one_moved(place: Place) -> None:
    for order in (False, True):
        store = filled(place)
        acts = [
            lambda store=store: store.move_to_zcdp(IN_RHO.conversion_delta_atto, "owner"),
            lambda store=store: store.divide(BY_MONTH, is_all=False, by="owner"),
        ]
        for act in reversed(acts) if order else acts:
            act()
        assert store.slices().meet(MARCH, MARCH)[0][2][2] == 4 * 5 * TENTH**2 // 2
        store.close()
        both = replace(by_month(place), accounting=Accounting.ZCDP)
        store = both.open(WIDE, create=False)
        store.verify()
        store.close()
        for other in (place, by_month(place), replace(place, accounting=Accounting.ZCDP)):
            with pytest.raises(LedgerError):
                other.open(WIDE, create=False)
        place.lose()
        place.log.unlink()


def test_who_has_not_all_records_is_refused(place: Place) -> None:
    """What a later file says was spent does not say in how many draws: none of it would be doubled as it has to be."""
    store = filled(place)
    store.rotate()
    store.close()
    place.lose()
    sealed = sealed_path(place.log, 0)
    kept = sealed.read_bytes()
    sealed.unlink()
    store = place.open(WIDE, create=not place.is_sqlite)
    with pytest.raises(LedgerError, match="does not have all of its records"):
        store.divide(BY_MONTH, is_all=False, by="owner")
    store.close()
    sealed.write_bytes(kept)
    place.lose()
    store = place.open(WIDE, create=not place.is_sqlite)
    store.divide(BY_MONTH, is_all=False, by="owner")
    store.close()


@pytest.mark.parametrize(
    ("step", "is_divided"),
    [("before log", False), ("log written", True), ("log synced", True), ("inserted", True)],
)
def test_killed_while_it_is_divided_it_is_divided_or_as_it_was(
    place: Place, step: str, is_divided: bool
) -> None:
    filled(place).close()
    die("divide", place, step)
    kept = by_month(place) if is_divided else place
    other = place if is_divided else by_month(place)
    for _ in range(2):
        with pytest.raises(LedgerError):
            other.open(WIDE, create=False)
        store = kept.open(WIDE, create=False)
        assert store.spent().epsilon_nano == 3 * TENTH
        if is_divided:
            assert store.slices().meet(MARCH, MARCH)[0][2][0] == 6 * TENTH
        store.verify()
        store.close()


def test_what_stands_on_a_clock_that_was_ahead_counts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(place)
    for module in (ledger, ledger_store):
        monkeypatch.setattr(module, "utc_now", lambda: "2026-05-02T00:00:00+00:00")
    store.reserve(claim(measurement("later"), analyst="bob"))
    for module in (ledger, ledger_store):
        monkeypatch.setattr(module, "utc_now", lambda: "2026-03-01T00:00:00+00:00")
    assert store.divide(BY_MONTH, is_all=False, by="owner").slices.periods == ((0, MARCH + 2),)
    store.close()


def test_a_promise_has_periods_to_divide_into(place: Place) -> None:
    store = filled(place)
    with pytest.raises(ValueError, match="into periods"):
        store.divide(place.promise, is_all=False, by="owner")
    assert store.spent().epsilon_nano == 3 * TENTH
    store.close()


@pytest.mark.parametrize("epsilon", [1, TENTH, 10 * EPSILON, 20 * EPSILON])
def test_twice_a_charge_is_never_less(epsilon: int) -> None:
    found = twice((epsilon, 10**6, epsilon**2 // 2))
    assert found[0] == 2 * epsilon
    assert found[2] == 4 * (epsilon**2 // 2)
    assert found[1] >= 10**6 * (1 + math.exp(epsilon / 10**9)) * (1 - 1e-12)
    assert found[1] <= math.ceil(10**6 * (1 + math.exp(epsilon / 10**9)) * (1 + 1e-12)) + 1
    assert twice((epsilon, 0, 1)) == (2 * epsilon, 0, 4)

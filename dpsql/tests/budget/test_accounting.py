"""A ledger that is kept in rho: its caps are those of the conversion, each part of delta is counted once, and one that
was kept in epsilon comes to it with all of its past, or not at all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.budget import Caps, Charge, LedgerStore, MeasurementClaim, Promise
from dpsql.budget.entry import EntryState
from dpsql.errors import BudgetExhausted, LedgerError
from dpsql.mechanisms import Laplace, epsilon_of_rho, rho_within
from dpsql.policy import Accounting

from .samples import CAPS, EPSILON, IN_RHO, Place, buy, claim, draw, key, measurement, pure
from .test_crash import child

TENTH = EPSILON // 10
CONVERSION = IN_RHO.conversion_delta_atto
HALF = Fraction(CONVERSION, 10**18)
CAP = rho_within(Fraction(10), HALF)
NOBODY = Caps(10 * EPSILON, 10**12, {})


@pytest.fixture
def in_rho(place: Place) -> Place:
    return replace(place, accounting=Accounting.ZCDP)


def costing(name: str, rho: int, delta: int = 0) -> MeasurementClaim:
    """Return a measurement of which the mechanism says what it costs."""
    charge = Charge(max(1, isqrt(2 * rho)), delta, rho)
    return MeasurementClaim((key(name),), Laplace(Fraction(10)), charge, name)


def test_as_many_statements_fit_as_the_conversion_says(in_rho: Place) -> None:
    store = in_rho.open(NOBODY)
    store.reserve(claim(costing("many", 294 * 5 * 10**15)))
    store.reserve(claim(measurement("295")))
    with pytest.raises(BudgetExhausted) as caught:
        store.reserve(claim(measurement("296")))
    assert caught.value.message == (
        "needs epsilon 0.1 (rho 0.005); at most epsilon 0.082968886 (rho 0.003442) fits what is left of the dataset's "
        "budget"
    )
    store.reserve(claim(measurement("fits", epsilon=82968886)))
    store.close()


def test_the_caps_are_reached_exactly_and_not_passed(in_rho: Place) -> None:
    store = in_rho.open(Caps(10 * EPSILON, 10**12, {"alice": EPSILON}))
    own = rho_within(Fraction(1), HALF)
    store.reserve(claim(costing("a", own, delta=CONVERSION)))
    with pytest.raises(BudgetExhausted, match="your own"):
        store.reserve(claim(costing("b", 1)))
    with pytest.raises(BudgetExhausted, match=r"needs delta 0.000000000000000001, left 0 of the dataset's"):
        store.reserve(claim(costing("b", 1, delta=1), analyst="bob"))
    with pytest.raises(BudgetExhausted, match="the dataset's"):
        store.reserve(claim(costing("b", CAP - own + 1), analyst="bob"))
    store.reserve(claim(costing("b", CAP - own), analyst="bob"))
    status = store.status("alice")
    assert (status.rho_spent_atto, status.rho_cap_atto) == (CAP, CAP)
    assert (status.delta_spent_atto, status.delta_cap_atto) == (CONVERSION, 10**12 - CONVERSION)
    assert (status.epsilon_spent_nano, status.analyst_spent_nano) == (10 * EPSILON, EPSILON)
    assert status.left_nano == 0
    store.close()


def test_a_grant_is_in_epsilon_and_the_cap_is_that_of_the_sum(in_rho: Place) -> None:
    store = in_rho.open(Caps(EPSILON, 10**12, {"alice": EPSILON}))
    store.grant(None, EPSILON, "owner")
    store.grant("alice", EPSILON // 2, "owner")
    status = store.status("alice")
    assert status.rho_cap_atto == rho_within(Fraction(2), HALF) != 2 * rho_within(Fraction(1), HALF)
    assert status.analyst_rho_cap_atto == rho_within(Fraction(3, 2), HALF)
    store.close()


def test_a_delta_below_the_conversion_holds_nothing(in_rho: Place) -> None:
    in_rho.open(NOBODY).close()
    store = in_rho.open(Caps(10 * EPSILON, CONVERSION - 1, {}))
    with pytest.raises(BudgetExhausted):
        store.reserve(claim(costing("a", 1)))
    store.close()


def test_the_conversion_delta_is_fixed(in_rho: Place) -> None:
    in_rho.open().close()
    from dpsql.budget import open_store

    other = replace(IN_RHO, conversion_delta_atto=CONVERSION + 1)
    with pytest.raises(
        LedgerError, match=r"made for conversion_delta = 0.0000005; the policy says otherwise"
    ):
        open_store(in_rho.url, "campus", CAPS, create=True, log=in_rho.log, promise=other)


def test_a_ledger_of_one_accounting_is_not_opened_for_the_other(place: Place, in_rho: Place) -> None:
    place.open().close()
    with pytest.raises(LedgerError, match='made for accounting = "pure"'):
        in_rho.open()
    place.open().close()
    place.lose()
    place.log.unlink()
    in_rho.open().close()
    for _ in range(2):
        with pytest.raises(LedgerError, match="kept in rho"):
            place.open()
        in_rho.lose()  # its log says the same
    in_rho.open().close()


# Statements that are chosen after seeing what came before.


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_sequence_passes_the_caps(data: st.DataObject) -> None:
    """The filter over random sequences, each step chosen with all that is known: about what is left, above, below."""
    from dpsql.budget.entry import Status
    from dpsql.budget.filter import in_accounting, refuse_over_cap

    epsilon = data.draw(st.integers(10**6, 10**11))
    delta = data.draw(st.integers(2, 10**15))
    conversion = data.draw(st.integers(1, delta))
    promise = Promise(accounting=Accounting.ZCDP, conversion_delta_atto=conversion)
    total = Charge(0, 0, 0)
    while data.draw(st.booleans()) or total == Charge(0, 0, 0):
        known = Status(total.epsilon_nano, epsilon, total.delta_atto, delta, total.rho_atto, 0, None, 1)
        status = in_accounting(known, promise)
        left = status.rho_cap_atto - status.rho_spent_atto
        near = st.sampled_from([max(1, left + by) for by in range(-2, 3)])
        rho = data.draw(near | st.integers(1, max(1, left)) | st.integers(1, 10**19))
        part = data.draw(st.integers(0, delta) | st.just(0))
        charge = Charge(max(1, isqrt(2 * rho)), part, rho)
        try:
            refuse_over_cap(status, charge)
        except BudgetExhausted:
            assert rho > left or part > delta - conversion - total.delta_atto
            if data.draw(st.booleans()):
                break
            continue
        total += charge
        spent = epsilon_of_rho(total.rho_atto, Fraction(conversion, 10**18))
        assert spent <= Fraction(epsilon, 10**9)
        assert total.delta_atto + conversion <= delta


# Moving a ledger that was kept in epsilon.


def moved(place: Place) -> LedgerStore:
    store = place.open(NOBODY)
    store.move_to_zcdp(CONVERSION, "owner")
    store.close()
    return replace(place, accounting=Accounting.ZCDP).open(NOBODY)


def test_a_moved_ledger_counts_its_past(place: Place, in_rho: Place) -> None:
    store = place.open(NOBODY)
    buy(store, "a", epsilon=3 * TENTH, delta=11)
    buy(store, "b", epsilon=TENTH + 1)
    lost = store.reserve(claim(measurement("c", epsilon=2 * TENTH)))
    store.fail(lost)
    open_one = store.reserve(claim(measurement("d", epsilon=4 * TENTH)))
    past = pure(3 * TENTH, TENTH + 1, 2 * TENTH, 4 * TENTH, delta=11)
    after = store.move_to_zcdp(CONVERSION, "owner")
    assert (after.rho_spent_atto, after.delta_spent_atto) == (past.rho_atto, 11)
    assert after.rho_cap_atto == CAP
    store.close()
    again = in_rho.open(NOBODY)
    assert again.spent() == past
    assert again.status().rho_spent_atto == past.rho_atto
    assert again.lookup([key("a")], Laplace(Fraction(10))) is not None, "what is stored answers as before"
    assert again.lookup([key("d")], Laplace(Fraction(10))) is None, f"{open_one.to_draw} was given up"
    with pytest.raises(LedgerError, match="kept in rho already"):
        again.move_to_zcdp(CONVERSION, "owner")
    again.close()
    with pytest.raises(LedgerError, match="kept in rho"):
        place.open(NOBODY)


@pytest.mark.parametrize("by", [0, 1])
def test_the_past_has_to_fit(place: Place, by: int) -> None:
    """Open entries and failed ones are of the past too; at the boundary it fits, one step above it does not."""
    epsilon = isqrt(2 * (CAP - 5 * 10**15))
    while Charge.pure(epsilon).rho_atto > CAP - 5 * 10**15:
        epsilon -= 1
    store = place.open(NOBODY)
    store.reserve(claim(measurement("open", epsilon=epsilon + by)))
    store.fail(store.reserve(claim(measurement("failed"))))
    if by:
        before = place.log.read_bytes()
        with pytest.raises(LedgerError, match=r"holds rho 1\.478"):
            store.move_to_zcdp(CONVERSION, "owner")
        assert place.log.read_bytes() == before
        buy(store, "b")
    else:
        store.move_to_zcdp(CONVERSION, "owner")
    store.close()


@pytest.mark.parametrize("by", [0, 1])
def test_what_thresholds_have_spent_has_to_fit_beside_the_conversion(place: Place, by: int) -> None:
    store = place.open(NOBODY)
    buy(store, "a", delta=10**12 - CONVERSION + by)
    if by:
        with pytest.raises(LedgerError, match="groups found in the data have spent delta"):
            store.move_to_zcdp(CONVERSION, "owner")
    else:
        assert store.move_to_zcdp(CONVERSION, "owner").delta_cap_atto == 10**12 - CONVERSION
    store.close()


def test_a_running_server_that_keeps_it_in_epsilon_stops(place: Place) -> None:
    running = place.open(NOBODY)
    begun = running.reserve(claim(measurement("a")))
    store = moved(place)
    size = place.log.stat().st_size
    for use in (
        lambda: buy(running, "b"),
        lambda: running.commit(begun, [draw("a")]),
        running.status,
        lambda: running.grant(None, 1, "owner"),
    ):
        with pytest.raises(LedgerError, match="kept in rho"):
            use()
    assert place.log.stat().st_size == size
    assert store.spent() == pure(TENTH), "what it has begun stays spent"
    store.close()
    running.close()


STEPS = {"before log": False, "log written": True, "log synced": True, "inserted": True}


@pytest.mark.parametrize("step", STEPS)
def test_killed_while_it_moves_it_is_moved_whole_or_not(place: Place, in_rho: Place, step: str) -> None:
    store = place.open(NOBODY)
    buy(store, "a")
    store.close()
    with child("move", *place.arguments, step) as process:
        process.communicate(timeout=600)
    keeps, other = (in_rho, place) if STEPS[step] else (place, in_rho)
    for _ in range(2):
        with pytest.raises(LedgerError):
            other.open(NOBODY)
        store = keeps.open(NOBODY)
        assert store.spent() == pure(TENTH)
        store.close()
    if STEPS[step]:
        store = keeps.open(NOBODY)
        buy(store, "b")
        store.close()


def test_a_moved_ledger_that_was_lost_comes_back_moved(place: Place, in_rho: Place) -> None:
    store = place.open(NOBODY)
    buy(store, "a")
    put_back = place.backup() if place.is_sqlite else None
    store.close()
    store = moved(place)
    buy(store, "b")
    store.close()
    place.lose()
    if put_back is not None:
        put_back()  # from before it was moved
    with pytest.raises(LedgerError):
        place.open(NOBODY)
    store = in_rho.open(NOBODY)
    assert store.spent() == pure(TENTH, TENTH)
    assert [entry.state for entry in store.log(1)] == [EntryState.FAILED]
    store.close()
    in_rho.open(NOBODY).close()

"""Asking again for more where rho adds up: the draws that count are those found by whoever reserves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.budget import Charge, Claim, Draw, LedgerStore, MeasurementClaim, Reservation, ledger_store
from dpsql.budget.claim import fresh_of
from dpsql.budget.match import choose_draws
from dpsql.mechanisms import ATTO, Gaussian, Wish, precision_of
from dpsql.policy import Accounting
from dpsql.tests.laws.planting import plant

from .samples import IN_RHO, Place, key
from .samples import claim as claim_of

Patch = pytest.MonkeyPatch
MILLI = ATTO // 1000


def claim(*measurements: MeasurementClaim, reuse: bool = True) -> Claim:
    """Return a claim of somebody without a cap of their own."""
    return claim_of(*measurements, analyst="bob", reuse=reuse)


def wanted(rho_milli: int, *names: str, squared: int = 1, wish: bool = True) -> MeasurementClaim:
    rho = rho_milli * MILLI
    law = Gaussian.for_rho(squared, Fraction(rho, ATTO))
    return MeasurementClaim(
        tuple(map(key, names or "a")),
        law,
        Charge(1, 0, rho),
        "count",
        None,
        Wish(squared, rho, True) if wish else None,
    )


def finish(store: LedgerStore, asked: Claim, reservation: Reservation, payload: bytes = b"noisy") -> None:
    draws = []
    for one, fresh in zip(asked.measurements, reservation.fresh, strict=True):
        if fresh is not None:
            draws.append(Draw(one.measures, fresh.law, payload))
    store.commit(reservation, draws)


def pay(store: LedgerStore, *asked: MeasurementClaim, reuse: bool = True) -> int:
    """Return what is charged for some measurements, in rho of 1e-18."""
    whole = claim(*asked, reuse=reuse)
    reservation = store.reserve(whole)
    finish(store, whole, reservation)
    return reservation.charge.rho_atto


@pytest.fixture
def kept(place: Place, tmp_path: Path) -> Iterator[LedgerStore]:
    store = Place(place.url, place.log, Accounting.ZCDP).open(promise=IN_RHO)
    yield store
    store.close()


def check_the_difference(store: LedgerStore) -> None:
    paid = [pay(store, wanted(rho)) for rho in (5, 20, 125, 125, 20)]
    assert paid == [5 * MILLI, 15 * MILLI, 105 * MILLI, 0, 0]
    assert store.spent().rho_atto == 125 * MILLI
    (together,) = store.lookup([key("a")], Gaussian(Fraction(2))) or ((),)
    assert len(together) == 3
    precision = precision_of([one.law for one in together])
    assert abs(precision * 4 - 1) < Fraction(1, 2**16)
    assert store.lookup([key("a")], Gaussian(Fraction(2) - Fraction(1, 1024))) is None


def test_the_difference_is_paid(kept: LedgerStore) -> None:
    check_the_difference(kept)


@pytest.mark.parametrize("steps", [(1, 2, 3, 7, 11, 50, 77), (3, 500), (9, 10)])
def test_any_steps_cost_what_the_last_alone_costs(kept: LedgerStore, steps: tuple[int, ...]) -> None:
    total = sum(pay(kept, wanted(rho)) for rho in steps)
    assert total == kept.spent().rho_atto
    assert abs(total - steps[-1] * MILLI) <= 2 * 10**-5 * steps[-1] * MILLI
    assert kept.lookup([key("a")], wanted(steps[-1]).law) is not None


def check_another_sensitivity(store: LedgerStore) -> None:
    """What is stored is worth what it would have cost this measurement, not what was paid for it."""
    assert pay(store, wanted(20, "a", "b", squared=2)) == 20 * MILLI
    assert pay(store, wanted(125, "a")) == 115 * MILLI
    assert pay(store, wanted(300, "b", "c")) == 300 * MILLI  # of c nothing is stored
    (both,) = store.quote(claim(wanted(400, "a", "b")))
    assert both is not None
    assert both.charge.rho_atto + both.stored == pytest.approx(400 * MILLI, rel=1e-5)
    assert both.stored == pytest.approx(125 * MILLI, rel=1e-5)  # the one with less precision


def test_another_sensitivity(kept: LedgerStore) -> None:
    check_another_sensitivity(kept)


def test_reuse_off_pays_in_full_and_counts_for_later_readers(kept: LedgerStore) -> None:
    assert [pay(kept, wanted(20), reuse=False) for _ in range(2)] == [20 * MILLI] * 2
    assert pay(kept, wanted(40)) == 0
    assert pay(kept, wanted(125)) == 85 * MILLI


def check_epoch(store: LedgerStore) -> None:
    assert pay(store, wanted(20)) == 20 * MILLI
    store.advance_epoch()
    assert pay(store, wanted(125)) == 125 * MILLI


def test_another_epoch_counts_for_nothing(kept: LedgerStore) -> None:
    check_epoch(kept)


def test_what_failed_counts_for_nothing(kept: LedgerStore) -> None:
    kept.fail(kept.reserve(claim(wanted(20))))
    assert pay(kept, wanted(125)) == 125 * MILLI


def test_an_epoch_that_begins_between_two_looks_mixes_nothing(kept: LedgerStore) -> None:
    """What a reservation is combined with is of its own epoch, and so is what it stores."""
    pay(kept, wanted(20))
    asked = claim(wanted(125))
    reservation = kept.reserve(asked)
    (fresh,) = reservation.fresh
    assert fresh is not None
    assert [one is None for one in fresh.beside[0]] == [True, False]
    kept.advance_epoch()
    finish(kept, asked, reservation)
    assert kept.lookup([key("a")], Gaussian(Fraction(10))) is None
    assert pay(kept, wanted(125)) == 125 * MILLI


def check_race(place: Place) -> None:
    """Two that ask for more at once pay the difference once, whoever comes first."""
    promise = IN_RHO
    stores = [Place(place.url, place.log, Accounting.ZCDP).open(promise=promise)]
    pay(stores[0], wanted(5))
    steps = (20, 125, 125, 60)
    paid: list[int] = []
    start = threading.Barrier(len(steps))

    def ask(rho: int) -> None:
        start.wait()
        paid.append(pay(stores[0], wanted(rho)))

    threads = [threading.Thread(target=ask, args=(rho,)) for rho in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paid) == len(steps)
    assert stores[0].spent().rho_atto == sum(paid) + 5 * MILLI
    assert abs(sum(paid) - 120 * MILLI) <= 4 * 10**-5 * 125 * MILLI
    stores[0].close()


def test_a_race(place: Place) -> None:
    check_race(place)


def test_a_repeat_finds_what_the_first_was_told(kept: LedgerStore) -> None:
    """The answer is a function of the set of draws: the same right after they were drawn and ever after."""
    names = ("a", "b")
    pay(kept, wanted(20, "a"))
    pay(kept, wanted(20, "b", "c", wish=False))
    asked = claim(wanted(125, *names))
    reservation = kept.reserve(asked)
    finish(kept, asked, reservation, b"new")
    (fresh,) = reservation.fresh
    assert fresh is not None
    told = tuple(
        tuple(b"new" if one is None else one.payload for one in together) for together in fresh.beside
    )
    found = kept.lookup([key(name) for name in names], wanted(125).law)
    assert found is not None
    assert told == tuple(tuple(one.payload for one in together) for together in found)


# --- mutants ---------------------------------------------------------------------------------------------------


def test_combine_across_epochs(kept: LedgerStore, monkeypatch: Patch) -> None:
    plant(monkeypatch, ledger_store._drawn, ("m.epoch = (SELECT", "m.epoch <= (SELECT"))
    with pytest.raises(AssertionError):
        check_epoch(kept)


def test_count_what_was_paid_for_another_sensitivity(kept: LedgerStore, monkeypatch: Patch) -> None:
    plant(monkeypatch, Wish.missing, ("known)", "known * 2 / self.size)"))
    with pytest.raises(AssertionError):
        check_another_sensitivity(kept)


def test_count_the_best_coordinate(kept: LedgerStore, monkeypatch: Patch) -> None:
    plant(monkeypatch, fresh_of, ("min(map(", "max(map("))
    with pytest.raises(AssertionError):
        check_another_sensitivity(kept)


def test_make_less_noise_than_is_paid(kept: LedgerStore, monkeypatch: Patch) -> None:
    """The charge of every draw is the loss of its own noise."""
    plant(monkeypatch, Wish.law, ("Fraction(loss, ATTO)", "Fraction(self.loss, ATTO)"))
    with pytest.raises(AssertionError):
        check_charges(kept)


def check_charges(store: LedgerStore) -> None:
    for rho in (5, 20, 125):
        asked = claim(wanted(rho))
        reservation = store.reserve(asked)
        (fresh,) = reservation.fresh
        assert fresh is not None
        assert Fraction(fresh.charge.rho_atto, ATTO) >= 1 / (2 * fresh.law.scale**2)
        finish(store, asked, reservation)


def test_the_charge_is_that_of_the_noise(kept: LedgerStore) -> None:
    check_charges(kept)


def test_do_not_wait_for_what_is_drawn(place: Place, monkeypatch: Patch) -> None:
    store = Place(place.url, place.log, Accounting.ZCDP).open(promise=IN_RHO)

    def two(store: LedgerStore) -> None:
        first = claim(wanted(20))
        running = store.reserve(first)
        later = threading.Timer(0.2, lambda: finish(store, first, running))
        later.start()
        try:
            assert pay(store, wanted(125)) == 105 * MILLI
        finally:
            later.join()

    two(store)
    store.advance_epoch()
    plant(monkeypatch, LedgerStore._must_wait, ("return len(dead) < len(holders)", "return False"))
    with pytest.raises(AssertionError):
        two(store)
    store.close()


def test_choose_by_the_law_that_is_wanted() -> None:
    """A coarse draw counts for what it is."""
    laws = {1: Gaussian(Fraction(2)), 2: Gaussian(Fraction(200))}
    assert choose_draws([laws], Gaussian(Fraction(3, 2))) is None

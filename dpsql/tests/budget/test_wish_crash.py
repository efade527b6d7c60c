"""Top-ups of real processes: killed at every step, and two at once. Never charged less than drawn, nothing lost twice."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from dpsql.budget import EntryState
from dpsql.policy import Accounting
from dpsql.tests.support.length import long_where

from .samples import IN_RHO, Place
from .test_crash import CHARGED, child
from .test_crash import _die as die
from .test_race import _desks as desks
from .test_race import _hear as hear
from .test_race import _say as say
from .test_wish import MILLI, pay, wanted


@pytest.fixture
def place(place: Place) -> Place:
    return replace(place, accounting=Accounting.ZCDP)


@long_where(lambda place, step: place is not None and step in list(CHARGED)[::2])
@pytest.mark.parametrize("step", CHARGED)
def test_killed_at_any_step_the_difference_is_counted_once(place: Place, step: str) -> None:
    """What was stored stays stored: whoever asks again pays the difference to that, or nothing where it was drawn."""
    store = place.open(promise=IN_RHO)
    assert pay(store, wanted(20)) == 20 * MILLI
    store.close()
    die("wish", place, step)
    committed = step == "draws committed"
    spent = (125 if CHARGED[step] else 20) * MILLI
    for _ in range(2):
        store = place.open(create=False)
        assert store.spent().rho_atto == spent
        assert (store.lookup(wanted(125).measures, wanted(125).law) is not None) == committed
        (kept,) = store.lookup(wanted(20).measures, wanted(20).law) or ((),)
        assert len(kept) == 1 + committed
        states = [entry.state for entry in store.log(10)]
        assert states.count(EntryState.COMMITTED) == 1 + committed
        assert EntryState.RESERVED not in states
        store.close()
    store = place.open(create=False)
    assert pay(store, wanted(125)) == (0 if committed else 105 * MILLI)
    assert store.spent().rho_atto == spent + (0 if committed else 105 * MILLI)
    assert pay(store, wanted(125)) == 0
    store.close()


def test_two_processes_pay_a_difference_once(place: Place) -> None:
    """They ask for more of the same at once: one draws it, both are told the same, and nothing is paid twice."""
    rounds = 12
    owner = place.open(promise=IN_RHO)
    for number in range(rounds):
        pay(owner, wanted(2, f"tile {number}"))
    with ExitStack() as stack:
        askers = [
            stack.enter_context(child("share_wish", *desk.arguments, str(rounds))) for desk in desks(place)
        ]
        for _ in range(rounds):
            for asker in askers:
                say(asker, "10")
            heard = [hear(asker).split(" ", 1) for asker in askers]
            assert sorted(int(charge) for charge, _ in heard) == [0, 8 * MILLI]
            assert len({told for _, told in heard}) == 1
    assert owner.spent().rho_atto == rounds * 10 * MILLI
    owner.close()


def test_two_processes_that_want_different_amounts(place: Place) -> None:
    """Whoever comes second pays what is missing to theirs: together never more than the larger alone, and what they are
    told has it.
    """
    rounds = 12
    owner = place.open(promise=IN_RHO)
    with ExitStack() as stack:
        askers = [
            stack.enter_context(child("share_wish", *desk.arguments, str(rounds))) for desk in desks(place)
        ]
        for number in range(rounds):
            for asker, rho in zip(askers if number % 2 else reversed(askers), ("5", "20"), strict=True):
                say(asker, rho)
            charges = [int(hear(asker).split(" ", 1)[0]) for asker in askers]
            assert sum(charges) == 20 * MILLI
            assert owner.lookup(wanted(20, f"tile {number}").measures, wanted(20).law) is not None
    assert owner.spent().rho_atto == rounds * 20 * MILLI
    owner.close()

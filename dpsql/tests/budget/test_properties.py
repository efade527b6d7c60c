"""Any sequence of acts, restarts and losses of the ledger: spent is the sum of what was reserved."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dpsql.budget import CLOSE, UNSAID, ZERO, Caps, Charge, Claim, Draw, LedgerStore, Promise, Reservation
from dpsql.errors import BudgetExhausted, EngineFailure
from dpsql.mechanisms import Laplace, Law, epsilon_of_rho, rho_within
from dpsql.policy import Accounting
from dpsql.tests.support.length import tried

from .samples import Place, claim, key, measurement

CAP, DELTA_CAP, ALICE = 60, 40, 30
CONVERSION = Fraction(DELTA_CAP // 2, 10**18)
IN_RHO = Promise(accounting=Accounting.ZCDP, conversion_delta_atto=DELTA_CAP // 2)
NAMES = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
MEASUREMENT = st.builds(
    lambda names, scale, epsilon, delta: measurement(*names, scale=scale, epsilon=epsilon, delta=delta),
    NAMES, st.integers(1, 4), st.integers(1, 6), st.integers(0, 4),
)  # fmt: skip
CLAIM = st.builds(
    lambda measurements, analyst, reuse: claim(*measurements, analyst=analyst, reuse=reuse),
    st.lists(MEASUREMENT, max_size=3), st.sampled_from(["alice", "bob"]), st.booleans(),
)  # fmt: skip


class Ledger(RuleBasedStateMachine):
    """A ledger at `place`, or in a file of its own; on a server with a second proxy, whose log is its own."""

    def __init__(self, place: Place | None, accounting: Accounting) -> None:
        super().__init__()
        self.in_rho = accounting is Accounting.ZCDP
        self.folder = Path(tempfile.mkdtemp())
        url = place.url if place else f"sqlite:{self.folder / 'ledger.db'}"
        self.desks = [Place(url, self.folder / "ledger.db.log", accounting)]
        if place:
            place.edit("DROP SCHEMA IF EXISTS dpsql CASCADE")
            self.desks.append(Place(url, self.folder / "second.log", accounting))
        self.caps = Caps(CAP, DELTA_CAP, {"alice": ALICE})
        self.stores = self._open()
        self.charged = {"alice": ZERO, "bob": ZERO}
        self.rho = 0
        self.granted = 0
        self.running: list[tuple[LedgerStore, Reservation, list[Draw]]] = []
        self.drawn = 0

    def _open(self) -> list[LedgerStore]:
        return [desk.open(self.caps, promise=IN_RHO if self.in_rho else UNSAID) for desk in self.desks]

    def _is_over(self, total: Charge, own: Charge, analyst: str) -> bool:
        """Say whether sums are above a cap: what the model knows of the two kinds of accounting."""
        if not self.in_rho:
            return (
                total.epsilon_nano > CAP + self.granted
                or total.delta_atto > DELTA_CAP
                or (analyst == "alice" and own.epsilon_nano > ALICE)
            )
        return (
            total.rho_atto > rho_within(Fraction(CAP + self.granted, 10**9), CONVERSION)
            or total.delta_atto > DELTA_CAP // 2
            or (analyst == "alice" and own.rho_atto > rho_within(Fraction(ALICE, 10**9), CONVERSION))
        )

    def _close(self) -> None:
        self.running.clear()
        for store in self.stores:
            store.close()

    def teardown(self) -> None:
        self._close()
        shutil.rmtree(self.folder)

    @rule(wanted=CLAIM, at=st.integers(0, 1))
    def reserve(self, wanted: Claim, at: int) -> None:
        store = self.stores[at % len(self.stores)]
        total = self.charged["alice"] + self.charged["bob"]
        try:
            got = store.reserve(wanted, wait_seconds=0)
        except EngineFailure:
            assert self.running
            return
        except BudgetExhausted:
            most = sum((each.charge for each in wanted.measurements), ZERO)
            assert self._is_over(total + most, self.charged[wanted.analyst] + most, wanted.analyst)
            return
        missed = [each for each, found in zip(wanted.measurements, got.found, strict=True) if found is None]
        assert got.charge == sum((each.charge for each in missed), ZERO)
        for each, found in zip(wanted.measurements, got.found, strict=True):
            if found is not None:
                assert wanted.reuse
                for measure, together in zip(each.measures, found, strict=True):
                    assert all(measure in one.measures for one in together)
                    precision = sum(1 / one.law.spread for one in together)
                    assert precision * each.law.spread * (CLOSE if len(together) > 1 else 1) >= 1
        self.charged[wanted.analyst] += got.charge
        if missed:
            own = self.charged[wanted.analyst]
            assert not self._is_over(total + got.charge, own, wanted.analyst)
        self.rho += sum(each.charge.rho_atto for each in missed)
        if got.to_draw:
            self.running.append((store, got, [self._draw(each.measures, each.law) for each in missed]))

    def _draw(self, measures: tuple[bytes, ...], law: Law) -> Draw:
        self.drawn += 1
        return Draw(measures or (key("late"),), law, b"%d" % self.drawn)

    @precondition(lambda self: self.running)
    @rule(commits=st.booleans())
    def end(self, commits: bool) -> None:
        store, reservation, draws = self.running.pop()
        if commits:
            store.commit(reservation, draws)
        else:
            store.fail(reservation)

    @rule()
    def restart(self) -> None:
        self._close()
        self.stores = self._open()

    @rule()
    def lose_the_ledger(self) -> None:
        self._close()
        self.desks[0].lose()
        self.granted = 0
        self.stores = self._open()

    @rule()
    def refresh(self) -> None:
        self.stores[-1].advance_epoch()
        assert self.stores[-1].lookup([key("a")], Laplace(Fraction(100))) is None

    @rule(epsilon=st.integers(1, 10))
    def grant(self, epsilon: int) -> None:
        self.stores[-1].grant(None, epsilon, "owner")
        self.granted += epsilon

    @invariant()
    def spent_is_the_sum_of_all_that_was_reserved(self) -> None:
        total = self.charged["alice"] + self.charged["bob"]
        assert self.stores[-1].spent() == total
        status = self.stores[-1].status("alice")
        own = self.charged["alice"]
        if self.in_rho:
            assert status.analyst_rho_spent_atto == own.rho_atto
            assert status.analyst_spent_nano <= ALICE
            assert status.epsilon_spent_nano == epsilon_of_rho(self.rho, CONVERSION) * 10**9
        else:
            assert status.analyst_spent_nano == own.epsilon_nano <= ALICE
        assert status.rho_spent_atto == self.rho
        assert status.epsilon_cap_nano == CAP + self.granted
        assert sum((entry.charge for entry in self.stores[-1].log(1000)), ZERO) == total


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_spent_is_what_was_reserved_whatever_happens(
    engine: str, accounting: Accounting, request: pytest.FixtureRequest
) -> None:
    place: Place | None = request.getfixturevalue("shared") if engine == "postgres" else None
    examples, steps = (tried(1, 5), 20) if place else (tried(3, 25), 30)
    run_state_machine_as_test(
        lambda: Ledger(place, accounting),
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )

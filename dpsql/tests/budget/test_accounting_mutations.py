"""The tests of a ledger in rho have power: each known fault of its arithmetic turns one of them red."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.budget import claim, entry, filter, ledger_store
from dpsql.errors import BudgetExhausted
from dpsql.mechanisms import rho_of_pure, rho_within
from dpsql.policy import Accounting

from . import test_accounting as good
from .samples import Place

Patch = pytest.MonkeyPatch
Check = Callable[[Place], None]


@dataclass(frozen=True)
class Mutant:
    """A fault, how it is put in, and what must see it."""

    name: str
    plant: Callable[[Patch], None]
    check: Check


def in_rho(place: Place) -> Place:
    return replace(place, accounting=Accounting.ZCDP)


def past(place: Place) -> None:
    good.test_the_past_has_to_fit(place, 1)


def thresholds(place: Place) -> None:
    good.test_what_thresholds_have_spent_has_to_fit_beside_the_conversion(place, 1)


def counted(place: Place) -> None:
    good.test_a_moved_ledger_counts_its_past(place, in_rho(place))


def exact(place: Place) -> None:
    good.test_the_caps_are_reached_exactly_and_not_passed(in_rho(place))


def many(place: Place) -> None:
    good.test_as_many_statements_fit_as_the_conversion_says(in_rho(place))


def of_status(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Have the status that the filter decides by be another."""

    def plant(patch: Patch) -> None:
        original = filter.in_accounting

        def mutant(*arguments: Any) -> Any:
            return change(original(*arguments))

        patch.setattr(ledger_store, "in_accounting", mutant)

    return plant


def of_rho(rho: Callable[[int], int]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(claim, "rho_of_pure", rho)


def of_cap(cap: Callable[[Fraction, Fraction], int]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(filter, "rho_within", cap)


def without_delta(patch: Patch) -> None:
    original = filter.refuse_over_cap
    patch.setattr(
        ledger_store,
        "refuse_over_cap",
        lambda status, charge: original(status, replace(charge, delta_atto=0)),
    )


def forgetting(patch: Patch) -> None:
    original = filter.refuse_past
    patch.setattr(ledger_store, "refuse_past", lambda status: original(replace(status, rho_spent_atto=0)))


def half(status: Any) -> Any:
    return replace(status, delta_cap_atto=status.delta_cap_atto - status.conversion_delta_atto)


def whole(status: Any) -> Any:
    return replace(status, delta_cap_atto=status.delta_cap_atto + status.conversion_delta_atto)


MUTANTS = [
    Mutant("a cap of e²/2", of_cap(lambda e, _: rho_of_pure(int(e * 10**9))), many),
    Mutant("a cap at all of delta", of_cap(lambda e, d: rho_within(e, 2 * d)), many),
    Mutant("a cap rounded up", of_cap(lambda e, d: rho_within(e, d) + 1), exact),
    Mutant("a pure entry's rho is e²", of_rho(lambda nano: nano * nano), many),
    Mutant("a pure entry's rho is next to nothing", of_rho(lambda _: 1), many),
    Mutant("the deltas of thresholds are not counted", without_delta, exact),
    Mutant("the conversion's delta is counted twice", of_status(half), exact),
    Mutant("the conversion's delta is not counted", of_status(whole), exact),
    Mutant("nor when a ledger is moved", of_status(whole), thresholds),
    Mutant("the past is forgotten", forgetting, past),
    Mutant("an analyst's cap is that of everybody", of_status(
        lambda status: replace(status, analyst_rho_cap_atto=status.rho_cap_atto)), exact),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_known_fault_is_seen(mutant: Mutant, tmp_path: Path, monkeypatch: Patch) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    mutant.plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, BudgetExhausted)):
        mutant.check(place)


def test_open_entries_that_a_move_forgets_are_seen(tmp_path: Path, monkeypatch: Patch) -> None:
    """A move that counts what has a draw alone: of the three entries one is open and one has failed."""
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    original = ledger_store.LedgerStore._status

    def committed(self: Any, *rows: Any, analyst: str | None, clock: str | None = None) -> Any:
        status = original(self, *rows, analyst=analyst, clock=clock)
        bodies = self._ledger._db.execute("SELECT body FROM record WHERE state = 'committed'").fetchall()
        charges = [entry.read_record(body).charge for (body,) in bodies]
        return replace(status, rho_spent_atto=sum((charge.rho_atto for charge in charges), 0))

    monkeypatch.setattr(ledger_store.LedgerStore, "_status", committed)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        counted(place)

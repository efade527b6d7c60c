"""Two real processes on one ledger."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from pathlib import Path

import pytest

from dpsql.mechanisms import rho_within
from dpsql.policy import Accounting

from .conftest import Kept
from .samples import Place, buy, pure
from .test_crash import child


@pytest.fixture
def place(place: Place, kept: Kept) -> Place:
    """Give each place for each way of keeping a ledger: in epsilon, by periods, and, under `long`, in rho."""
    return kept(place)


ROUNDS = 30


def _say(process: subprocess.Popen[str], word: str = "go") -> None:
    assert process.stdin is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _desks(place: Place) -> list[Place]:
    """Return where two processes open the ledger: on one machine, or on a server from two with a log each."""
    return [place, place if place.is_sqlite else replace(place, log=place.log.with_name("second.log"))]


def test_two_processes_racing_for_the_last_epsilon_have_one_winner(place: Place) -> None:
    owner = place.open()
    wins = [0, 0]
    is_pure, epsilons = place.accounting is Accounting.PURE, list[int]()
    with ExitStack() as stack:
        racers = [stack.enter_context(child("race", *desk.arguments, str(ROUNDS))) for desk in _desks(place)]
        for number in range(ROUNDS):
            left = min(owner.status().rho_cap_atto, rho_within(Fraction(1), Fraction(5, 10**7)))
            spent = owner.status().rho_spent_atto
            epsilons.append(1 if is_pure else isqrt(11 * (left - spent) // 10))  # rho is left for one alone
            for racer in racers if number % 2 else reversed(racers):
                _say(racer, str(epsilons[-1]))
            heard = [_hear(racer) for racer in racers]
            assert sorted(heard) == ["lost", "won"]
            wins[heard.index("won")] += 1
            if is_pure:
                owner.grant(None, 1, "owner")  # the racers' own cap is 1: one more for the next round
    assert owner.spent() == pure(*epsilons)
    assert all(wins), "both were near enough to win some rounds"
    owner.close()


def test_the_same_question_from_two_processes_is_drawn_once(place: Place) -> None:
    owner = place.open()
    with ExitStack() as stack:
        askers = [stack.enter_context(child("share", *desk.arguments, str(ROUNDS))) for desk in _desks(place)]
        for _ in range(ROUNDS):
            for asker in askers:
                _say(asker)
            heard = [_hear(asker).split() for asker in askers]
            assert sum(int(drew) for drew, _ in heard) == 1
            assert len({payload for _, payload in heard}) == 1
    assert owner.spent() == pure(*ROUNDS * [1])
    owner.close()


def test_a_new_ledger_opened_by_many_at_once_is_made_once(place: Place) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: place.open(), range(6)))
    assert len({store.secret() for store in stores}) == 1
    for store in stores:
        store.close()


def test_a_second_store_in_the_process_leaves_the_first_one_locked(tmp_path: Path) -> None:
    place = Place(f"sqlite:{tmp_path / 'ledger.db'}", tmp_path / "ledger.db.log")
    first = place.open()
    buy(first, "a")
    second = place.open()
    with child("visit", *place.arguments) as visitor:
        visitor.communicate(timeout=600)
        assert visitor.returncode == 0
    assert (tmp_path / "ledger.db-wal").exists(), "the visitor took itself for the last one"
    second.close()
    buy(first, "b")
    first.close()
    place.open().close()

"""Two real processes on one ledger."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from dpsql.budget import Charge

from .samples import buy, open_store
from .test_crash import child

ROUNDS = 40


def _say(process: subprocess.Popen[str], word: str = "go") -> None:
    assert process.stdin is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_racing_for_the_last_epsilon_have_one_winner(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    owner = open_store(path)
    wins = [0, 0]
    with ExitStack() as stack:
        racers = [stack.enter_context(child("race", str(path), str(ROUNDS))) for _ in range(2)]
        for number in range(ROUNDS):
            for racer in racers if number % 2 else reversed(racers):
                _say(racer)
            heard = [_hear(racer) for racer in racers]
            assert sorted(heard) == ["lost", "won"]
            wins[heard.index("won")] += 1
            owner.grant(None, 1, "owner")  # the racers' own cap is 1: one more for the next round
    assert owner.spent() == Charge(ROUNDS, 0)
    assert all(wins), "both were near enough to win some rounds"
    owner.close()


def test_the_same_question_from_two_processes_is_drawn_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    owner = open_store(path)
    with ExitStack() as stack:
        askers = [stack.enter_context(child("share", str(path), str(ROUNDS))) for _ in range(2)]
        for _ in range(ROUNDS):
            for asker in askers:
                _say(asker)
            heard = [_hear(asker).split() for asker in askers]
            assert sum(int(drew) for drew, _ in heard) == 1
            assert len({payload for _, payload in heard}) == 1
    assert owner.spent() == Charge(ROUNDS, 0)
    owner.close()


def test_a_new_ledger_opened_by_many_at_once_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: open_store(path), range(6)))
    assert len({store.secret() for store in stores}) == 1
    for store in stores:
        store.close()


def test_a_second_store_in_the_process_leaves_the_first_one_locked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = open_store(path)
    buy(first, "a")
    second = open_store(path)
    with child("visit", str(path)) as visitor:
        visitor.communicate(timeout=60)
        assert visitor.returncode == 0
    assert (tmp_path / "ledger.db-wal").exists(), "the visitor took itself for the last one"
    second.close()
    buy(first, "b")
    first.close()
    open_store(path).close()

"""Turns go round the analysts, however many statements each has waiting; who is cancelled leaves the queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from dpsql.engine.spine import StatementTurns
from dpsql.errors import EngineFailure
from dpsql.waits import Turns


def _never() -> bool:
    return False


class _Waiting:
    """Statements that wait, each in a thread of its own, and in which order their turns came."""

    def __init__(self, turns: Turns) -> None:
        self.order: list[str] = []
        self._turns, self._threads = turns, list[threading.Thread]()

    def add(self, name: str, analyst: str) -> None:
        """Have a statement wait, behind those that wait already."""
        before = _count(self._turns)
        self._threads.append(threading.Thread(target=self._take, args=(name, analyst)))
        self._threads[-1].start()
        while _count(self._turns) == before:
            pass

    def end(self) -> list[str]:
        """Wait for all, and return their order."""
        for thread in self._threads:
            thread.join(timeout=60)
        return self.order

    def _take(self, name: str, analyst: str) -> None:
        with self._turns.turn(analyst, _never):
            self.order.append(name)


def _count(turns: Turns) -> int:
    return sum(map(len, turns._waiting.values()))


def test_many_statements_of_one_analyst_count_as_one() -> None:
    turns = Turns(1, 1)
    waiting = _Waiting(turns)
    with turns.turn("mallory", _never):
        for number in range(5):
            waiting.add(f"m{number}", "mallory")
        waiting.add("a0", "alice")
        waiting.add("a1", "alice")
        waiting.add("b0", "bob")
    assert waiting.end() == ["m0", "a0", "b0", "m1", "a1", "m2", "m3", "m4"]


def test_an_analyst_has_so_many_at_once_and_others_theirs() -> None:
    turns = Turns(None, 2)
    with ExitStack() as held:
        for analyst in ("a", "a", "b", "c"):
            held.enter_context(turns.turn(analyst, _never))
        with pytest.raises(EngineFailure) as stopped, turns.turn("a", lambda: True):
            raise AssertionError("a third turn of one analyst")
    assert stopped.value.sqlstate == "57014"
    assert not turns._held
    assert not turns._waiting


def test_who_is_cancelled_leaves_its_place() -> None:
    turns = Turns(1, 1)
    waiting = _Waiting(turns)
    with turns.turn("a", _never):
        with pytest.raises(EngineFailure), turns.turn("b", lambda: True):
            raise AssertionError("two turns at once")
        waiting.add("c", "c")
    assert waiting.end() == ["c"]


def test_a_turn_that_is_paused_lets_others_go_on() -> None:
    turns = Turns(1, 1)
    waiting = _Waiting(turns)
    with turns.turn("a", _never) as turn:
        waiting.add("b", "b")
        with turn.paused():
            assert waiting.end() == ["b"]
        assert turns._held == {"a": 1}
    assert not turns._held


@pytest.mark.parametrize(
    "other", [lambda turns: turns.to_plan(60_000, "b", _never), lambda turns: turns.to_compute("a", _never)]
)
def test_a_short_statement_waits_for_no_long_one(other: Callable[[StatementTurns], Turns]) -> None:
    turns = StatementTurns(1)
    with turns.to_plan(10, "a", _never), other(turns):  # type: ignore[attr-defined]
        pass

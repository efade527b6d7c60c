"""Whoever works for a statement waits no longer than it may last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from dpsql.errors import EngineFailure
from dpsql.waits import GRACE_SECONDS, Stop, Stopped, acquire, apart, check, is_over, is_told, until


def took(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def nothing(_: object) -> None:
    """Undo nothing."""


def test_who_works_for_no_statement_is_never_told() -> None:
    assert not is_told()
    check("nothing")
    assert apart(lambda: threading.current_thread(), "nothing", nothing) is threading.current_thread()


def test_a_stop_is_seen_in_its_block_and_in_those_within() -> None:
    stop, other = Stop(), Stop()
    with until(stop):
        with until(other):
            assert not is_told()
            stop.set()
            assert is_told()
            assert not is_over()
            with pytest.raises(Stopped) as caught:
                check("a thing")
        assert is_told()
    assert not is_told()
    assert (caught.value.sqlstate, caught.value.detail) == ("57014", "cancelled: a thing")
    assert isinstance(caught.value, EngineFailure)
    with until(stop):
        stop.clear()
        assert not is_told()


def test_one_that_tells_by_itself() -> None:
    with until(Stop.after(0.05)):
        assert not is_told()
        time.sleep(0.06)
        assert is_told()
        time.sleep(GRACE_SECONDS)
        assert is_over()


def test_to_be_told_again_does_not_begin_anew() -> None:
    stop = Stop()
    stop.set()
    first = stop.at
    stop.set()
    assert stop.at == first


def test_a_stop_of_one_thread_is_none_of_anothers() -> None:
    stop, seen = Stop(), list[bool]()
    stop.set()
    with until(stop):
        thread = threading.Thread(target=lambda: seen.append(is_told()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_a_lock_is_waited_for_until_the_stop() -> None:
    lock, stop = threading.Lock(), Stop.after(0.2)
    assert acquire(lock, 5, "it")
    with until(stop), pytest.raises(Stopped):
        acquire(lock, 5, "it")
    assert not acquire(lock, 0.1, "it")
    lock.release()
    with until(stop):
        assert acquire(lock, 5, "it"), (
            "one that is free is taken by who has to end too: to put things in order"
        )


def test_what_does_not_look_is_left_behind_and_undone() -> None:
    goes_on, undone = threading.Event(), list[object]()

    def looks_up() -> str:
        assert goes_on.wait(60)
        return "late"

    def asks() -> None:
        with until(Stop.after(0.1)), pytest.raises(Stopped):
            apart(looks_up, "a name", undone.append)

    assert took(asks) < 0.1 + GRACE_SECONDS + 0.5
    goes_on.set()
    deadline = time.monotonic() + 10
    while not undone and time.monotonic() < deadline:
        time.sleep(0.01)
    assert undone == ["late"]


def test_what_is_done_apart_sees_the_stop_and_raises_here() -> None:
    def fails() -> None:
        check("within")
        raise ValueError("mine")

    with until(Stop()), pytest.raises(ValueError, match="mine"):
        apart(fails, "it", nothing)
    stop = Stop()
    stop.set()
    with until(stop), pytest.raises(Stopped) as caught:
        apart(fails, "it", nothing)
    assert caught.value.detail == "cancelled: within"

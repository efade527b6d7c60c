"""Failed logins: one answer for every reason, at one time, and slower the more of them there are."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpsql.policy import load_policy
from dpsql.server.login import Logins
from dpsql.server.throttle import LONGEST, Throttle

from .by_hand import HungUp, Wire, login, prove
from .conftest import PASSWORD, Served, make_dataset, run_server

WRONG = {
    "password": ("alice", "wrong", "people"),
    "user": ("nobody", "wrong", "people"),
    "database": ("alice", PASSWORD, "other"),
    "no password": ("nameless", "wrong", "people"),
}


def delays(throttle: Throttle, peer: str, count: int, now: float = 0.0) -> list[float]:
    found = []
    for _ in range(count):
        found.append(throttle.fail(peer, now))
        throttle.told(peer)
    return found


def test_the_delay_grows() -> None:
    assert delays(Throttle(), "192.0.2.1", 10) == [0, 0, 0, 0.25, 0.5, 1, 2, 4, LONGEST, LONGEST]


def test_failures_are_forgotten_in_time() -> None:
    throttle = Throttle()
    delays(throttle, "192.0.2.1", 50)
    assert throttle.fail("192.0.2.1", 30) == LONGEST
    assert throttle.fail("192.0.2.1", 300) == 0


def test_another_address_is_not_delayed() -> None:
    throttle = Throttle()
    delays(throttle, "192.0.2.1", 50)
    assert throttle.fail("192.0.2.2", 0) == 0


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("2001:db8::1", "2001:db8::ffff:1", True), ("2001:db8::1", "2001:db8:0:1::1", False),
     ("::ffff:192.0.2.1", "192.0.2.1", True), ("fe80::1%eth0", "fe80::2%eth0", True), ("", "", True)],
)  # fmt: skip
def test_who_is_one(one: str, other: str, is_same: bool) -> None:
    throttle = Throttle()
    delays(throttle, one, 20)
    assert (throttle.fail(other, 0) > 0) is is_same


def test_many_addresses_together_are_slow_and_remembered_within_bounds() -> None:
    throttle = Throttle()
    found = [throttle.fail(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", 0) for i in range(100_000)]
    assert found[:100] == [0] * 100
    assert found[100] > 0
    assert found[-1] == LONGEST
    assert len(throttle) == 4096


def test_an_address_that_does_not_wait_gets_no_further_attempt() -> None:
    throttle = Throttle()
    for _ in range(8):
        assert not throttle.is_busy("192.0.2.1")
        throttle.fail("192.0.2.1", 0)
    assert throttle.is_busy("192.0.2.1")
    assert not throttle.is_busy("192.0.2.2")
    throttle.told("192.0.2.1")
    assert not throttle.is_busy("192.0.2.1")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> object:
    policy = make_dataset(tmp_path_factory.mktemp("guarded"))
    with run_server(policy) as served:
        yield served


def refused(server: Served) -> list[dict[str, object]]:
    return [line for line in server.lines if line["event"] == "login refused"]


def test_every_reason_has_the_same_answer_and_the_same_delays(guarded: Served) -> None:
    """Each reason from an address of its own: what is told, and when it is told, are the same."""
    addresses = {reason: f"127.0.1.{number}" for number, reason in enumerate(WRONG, 1)}

    def fail(reason: str) -> list[tuple[str, bytes]]:
        told = []
        for _ in range(6):
            with Wire(guarded.port, addresses[reason]) as wire:
                told.append(login(wire, *WRONG[reason]))
                assert wire.is_closed()
        return told

    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(fail, WRONG))
    assert answers == [[("E", answers[0][0][1])] * 6] * len(WRONG)
    guarded.wait_for("login refused", 6 * len(WRONG))
    scheduled = {
        reason: [line["delay"] for line in refused(guarded) if line["peer"] == address]
        for reason, address in addresses.items()
    }
    assert scheduled == {reason: [0, 0, 0, 0.25, 0.5, 1] for reason in WRONG}


def test_the_delay_is_waited_for_and_a_right_login_is_not_delayed(guarded: Served) -> None:
    def fail() -> None:
        with Wire(guarded.port, "127.0.2.1") as wire:
            login(wire, *WRONG["password"])

    for _ in range(6):
        fail()
    assert [line["delay"] for line in refused(guarded) if line["peer"] == "127.0.2.1"][-1] == 1
    for _ in range(20):  # until the others are in while the failure waits: that takes a moment, not the delay
        told: list[float] = []
        thread = threading.Thread(target=lambda told=told: (fail(), told.append(time.monotonic())))
        start = time.monotonic()
        thread.start()
        guarded.wait_for("login refused", len(refused(guarded)) + 1)
        for address in ("127.0.2.2", "127.0.2.1"):
            with Wire(guarded.port, address) as wire:
                assert login(wire, "alice", PASSWORD)[0] == "R"
        were_before = not told
        thread.join()
        assert told[0] - start >= 2
        if were_before:
            return
    pytest.fail("right logins are as late as wrong ones")


def test_leaving_does_not_shorten_the_delay(guarded: Served) -> None:
    """A guesser who does not wait for the answer keeps its places: in the end it is let in no more."""

    def guess() -> bool:
        before = len(refused(guarded))
        with Wire(guarded.port, "127.0.3.1") as wire:
            try:
                prove(wire, *WRONG["password"])
            except HungUp:
                return False
            guarded.wait_for("login refused", before + 1)
        return True

    assert not all(guess() for _ in range(20))
    with Wire(guarded.port, "127.0.3.2") as wire:
        assert login(wire, "alice", PASSWORD)[0] == "R"


@pytest.mark.parametrize("user", ["my secret password", 'x"}\n{"event": "stopped', "\x1b[2J", "y" * 5000])
def test_the_log_holds_no_name_that_is_no_analyst(guarded: Served, user: str) -> None:
    before = len(refused(guarded))
    with Wire(guarded.port, "127.0.4.1") as wire:
        login(wire, user, "wrong")
    guarded.wait_for("login refused", before + 1)
    line = refused(guarded)[-1]
    assert line["reason"] == "user"
    assert line["analyst"] is None
    assert user[:20] not in str(guarded.lines)


def test_no_secret_is_in_the_log(guarded: Served, tmp_path: Path) -> None:
    with Wire(guarded.port, "127.0.5.1") as wire:
        assert login(wire, "alice", PASSWORD)[0] == "R"
    text = str(guarded.lines)
    assert "SCRAM-SHA-256$" not in text
    assert PASSWORD not in text


def test_a_database_that_does_not_exist_has_the_same_dialogue_and_no_password(tmp_path: Path) -> None:
    logins = Logins(load_policy(make_dataset(tmp_path)), b"secret")
    for user in ("alice", "nobody"):
        here, elsewhere = logins.verifier(user, "people"), logins.verifier(user, "other")
        assert (here.salt, here.iterations) == (elsewhere.salt, elsewhere.iterations)
    assert logins.verifier("alice", "people").stored_key != logins.verifier("alice", "other").stored_key

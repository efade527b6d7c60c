"""Failed logins: one answer for every reason, at one time, and slower the more of them there are."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from dpsql.policy import load_policy
from dpsql.server.database import Logins
from dpsql.server.listener import LONGEST, MOST_OF_ADDRESS, MOST_OF_NAME, Strangers, Throttle, Turns

from ..pgwire.frontend import startup
from .by_hand import HungUp, Wire, login, prove
from .conftest import PASSWORD, Served, make_dataset, run_server

WRONG = {
    "password": ("alice", "wrong", "people"),
    "user": ("nobody", "wrong", "people"),
    "database": ("alice", "wrong", "other"),
    "no password": ("nameless", "wrong", "people"),
}


def delays(throttle: Throttle, peer: str, count: int, now: float = 0.0) -> list[float]:
    return [throttle.fail(peer, now) for _ in range(count)]


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


def test_turns_of_a_name_and_of_an_address_are_few() -> None:
    """In the order of asking; another name of the same address waits for the address alone."""

    async def ask(turns: Turns, user: str, peer: str, had: list[str], end: asyncio.Event) -> None:
        async with turns.turn(peer, user):
            had.append(user)
            await end.wait()

    async def run() -> None:
        turns, had, end = Turns(), list[str](), asyncio.Event()
        asked = [
            asyncio.create_task(ask(turns, "alice", "192.0.2.1", had, end)) for _ in range(MOST_OF_NAME + 2)
        ]
        await asyncio.sleep(0)
        asked += [
            asyncio.create_task(ask(turns, f"user {i}", "192.0.2.1", had, end))
            for i in range(MOST_OF_ADDRESS)
        ]
        asked += [asyncio.create_task(ask(turns, "alice", "192.0.2.2", had, end))]
        for _ in range(5):
            await asyncio.sleep(0)
        others = MOST_OF_ADDRESS - MOST_OF_NAME
        assert sorted(had) == sorted(["alice"] * (MOST_OF_NAME + 1) + [f"user {i}" for i in range(others)])
        asked[0].cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert had[-1] == f"user {others}", "it has asked the address before the next alice could"
        end.set()
        await asyncio.wait(asked)
        assert (len(turns), len(had)) == (0, MOST_OF_NAME + 3 + MOST_OF_ADDRESS)

    asyncio.run(run())


@dataclass(eq=False)
class Caller:
    peer: str
    is_idle: bool = True
    has_gone: bool = False

    def stop(self) -> None:
        self.has_gone = True


def test_a_newcomer_takes_the_place_of_the_oldest_who_says_nothing() -> None:
    strangers = Strangers(8)
    here = [Caller("192.0.2.1", is_idle=number != 0) for number in range(4)]
    for caller in here:
        assert strangers.make_room(caller.peer)
        strangers.add(caller)
    assert strangers.make_room("192.0.2.1")
    assert [caller.has_gone for caller in here] == [False, True, False, False], (
        "the first waits for its answer"
    )
    strangers.remove(here[1])
    assert len(strangers) == 3
    here.append(Caller("192.0.2.1"))
    strangers.add(here[-1])
    others = [Caller(f"192.0.2.{number}") for number in range(2, 6)]
    for caller in others:
        assert strangers.make_room(caller.peer)
        strangers.add(caller)
    assert strangers.make_room("192.0.2.9"), "of the address with the most"
    assert [caller.has_gone for caller in here] == [False, True, True, False, False]
    for caller in (*here, *others):
        caller.is_idle = False
    strangers.add(Caller("192.0.2.1", is_idle=False))
    assert not strangers.make_room("192.0.2.1")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> object:
    policy = make_dataset(tmp_path_factory.mktemp("guarded"))
    with run_server(policy) as served:
        yield served


def refused(server: Served) -> list[dict[str, object]]:
    return [line for line in server.lines if line["event"] == "login refused"]


def next_delay(server: Served, peer: str, fail: Callable[[], object]) -> float:
    """Have a login of a peer fail, and return the delay that the server says it has."""
    before = sum(line["peer"] == peer for line in refused(server))
    fail()
    deadline = time.monotonic() + 300
    while len(found := [line["delay"] for line in refused(server) if line["peer"] == peer]) <= before:
        assert time.monotonic() < deadline, server.lines
        time.sleep(0.02)
    return float(str(found[before]))


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

    delays = [0.0]
    while delays[-1] < 1:  # the sixth, where the first are not forgotten meanwhile
        delays.append(next_delay(guarded, "127.0.2.1", fail))
        assert len(delays) < 60
    for _ in range(20):  # until the others are in while the failure waits: that takes a moment, not the delay
        told: list[float] = []
        thread = threading.Thread(target=lambda told=told: (fail(), told.append(time.monotonic())))
        start = time.monotonic()
        delay = next_delay(guarded, "127.0.2.1", thread.start)
        for address in ("127.0.2.2", "127.0.2.1"):
            with Wire(guarded.port, address) as wire:
                assert login(wire, "alice", PASSWORD)[0] == "R"
        were_before = not told
        thread.join()
        assert told[0] - start >= delay
        if were_before and delay >= 2:
            return
    pytest.fail("right logins are as late as wrong ones")


def test_who_does_not_wait_guesses_no_faster(guarded: Served) -> None:
    """Of many guesses at once as many are looked at as there are turns, and the next ones when these are told."""
    before = len(refused(guarded))
    for _ in range(8):  # each is told before the next: the delay is the longest then
        with Wire(guarded.port, "127.0.3.1") as wire:
            assert login(wire, *WRONG["password"])[0] == "E"
    guarded.wait_for("login refused", before + 8)
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(guarded.port, "127.0.3.1")) for _ in range(3 * MOST_OF_NAME)]
        start = time.monotonic()
        for wire in wires:
            prove(wire, *WRONG["password"])
        guarded.wait_for("login refused", before + 8 + MOST_OF_NAME)
        while time.monotonic() < start + LONGEST - 0.5:
            assert len(refused(guarded)) == before + 8 + MOST_OF_NAME
            time.sleep(0.05)
        guarded.wait_for("login refused", before + 8 + MOST_OF_NAME + 1)
    with Wire(guarded.port, "127.0.3.2") as wire:
        assert login(wire, "alice", PASSWORD)[0] == "R"


def test_a_guess_of_one_who_has_left_is_not_looked_at(guarded: Served) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            with Wire(guarded.port, "127.0.3.5") as wire:
                login(wire, *WRONG["password"])
        for _ in range(MOST_OF_NAME):
            prove(stack.enter_context(Wire(guarded.port, "127.0.3.5")), *WRONG["password"])
        with Wire(guarded.port, "127.0.3.5") as gone:
            prove(gone, *WRONG["password"])
        with Wire(guarded.port, "127.0.3.5") as wire:
            assert login(wire, "alice", PASSWORD)[0] == "R", "its turn comes"
        assert sum(line["peer"] == "127.0.3.5" for line in refused(guarded)) == 8 + MOST_OF_NAME


def test_guessers_and_the_silent_hold_up_nobody_of_their_address(tmp_path: Path) -> None:
    """All behind one address, as behind a proxy: some who guess, and more than there may be who say nothing."""
    with run_server(make_dataset(tmp_path), "--max-connections", "20") as server, ExitStack() as stack:
        has_ended = threading.Event()

        def guess(user: str) -> None:
            while not has_ended.is_set():
                with contextlib.suppress(HungUp, OSError), Wire(server.port) as wire:
                    login(wire, user, "wrong")

        def say_nothing() -> None:
            kept = []
            while not has_ended.wait(0.05):
                with contextlib.suppress(OSError):
                    kept.append(stack.enter_context(Wire(server.port)))

        names = [*["poor"] * 5, *(f"user {number}" for number in range(5))]
        threads = [threading.Thread(target=guess, args=(name,)) for name in names]
        threads.append(threading.Thread(target=say_nothing))
        for thread in threads:
            thread.start()
        try:
            server.wait_for("strangers full")
            for _ in range(20):
                with Wire(server.port) as wire:
                    assert login(wire, "alice", PASSWORD)[0] == "R"
        finally:
            has_ended.set()
            for thread in threads:
                thread.join()


# --- proxies ---------------------------------------------------------------------------------------------------


def header(source: str, *, command: int = 0x21, rest: bytes = b"") -> bytes:
    address = ipaddress.ip_address(source).packed
    body = address * 2 + struct.pack("!HH", 40000, 5433) + rest
    family = 0x11 if len(address) == 4 else 0x21
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", command, family, len(body)) + body


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    policy = make_dataset(tmp_path_factory.mktemp("proxied"))
    with run_server(policy, "--trusted-proxy", "127.0.0.9", "--trusted-proxy", "127.0.9.0/24") as served:
        yield served


@pytest.mark.parametrize(
    ("sent", "peer"),
    [(header("127.0.7.1"), "127.0.7.1"), (header("::1", rest=b"\x04\0\x01x"), "::1"),
     (header("192.0.2.1", command=0x20), "127.0.9.7"),
     (b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", 0x21, 0x31, 3) + b"abc", "127.0.9.7")],
    ids=["IPv4", "IPv6 and more", "for itself", "a socket of Unix"],
)  # fmt: skip
def test_a_trusted_proxy_says_whom_it_speaks_for(behind_proxy: Served, sent: bytes, peer: str) -> None:
    before = sum(line["event"] == "connected" for line in behind_proxy.lines)
    with Wire(behind_proxy.port, "127.0.9.7") as wire:
        for piece in (sent[:1], sent[1:20], sent[20:]):
            wire.send(piece)
        assert login(wire, "alice", PASSWORD)[0] == "R"
        behind_proxy.wait_for("connected", before + 1)
    assert [line["peer"] for line in behind_proxy.lines if line["event"] == "connected"][-1] == peer


@pytest.mark.parametrize(
    "sent",
    [startup(user="alice"), b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", header("192.0.2.1", command=0x22),
     header("192.0.2.1")[:14] + b"\xff\xff" + bytes(9999), header("192.0.2.1")[:14] + b"\0\x04" + bytes(4)],
    ids=["nothing", "version 1", "a command unknown", "too long", "too short"],
)  # fmt: skip
def test_a_proxy_that_says_nothing_of_it_is_hung_up(behind_proxy: Served, sent: bytes) -> None:
    with Wire(behind_proxy.port, "127.0.0.9") as wire:
        wire.send(sent)
        assert wire.is_closed()
    behind_proxy.wait_for("no proxy header")


def test_nobody_else_is_believed(behind_proxy: Served) -> None:
    with Wire(behind_proxy.port, "127.0.0.8") as wire:
        wire.send(header("192.0.2.1"))
        with pytest.raises(HungUp):
            login(wire, "alice", PASSWORD)


def test_from_elsewhere_it_must_be_encrypted_all_the_same(behind_proxy: Served) -> None:
    with Wire(behind_proxy.port, "127.0.0.9") as wire:
        wire.send(header("192.0.2.1"))
        wire.send(startup(user="alice", database="people"))
        tag, body = wire.message()
        assert (tag, b"must be encrypted" in body) == ("E", True)


def test_failures_are_those_of_the_address_behind_the_proxy(behind_proxy: Served) -> None:
    def fail(peer: str) -> float:
        before = len(refused(behind_proxy))
        with Wire(behind_proxy.port, "127.0.0.9") as wire:
            wire.send(header(peer))
            login(wire, *WRONG["password"])
        behind_proxy.wait_for("login refused", before + 1)
        delay = refused(behind_proxy)[-1]["delay"]
        assert isinstance(delay, (int, float))
        return float(delay)

    assert [fail("127.0.8.1") for _ in range(4)] == [0, 0, 0, 0.25]
    assert fail("127.0.8.2") == 0


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


def test_a_database_that_does_not_exist_has_the_same_dialogue(tmp_path: Path) -> None:
    logins = Logins([load_policy(make_dataset(tmp_path))], b"secret")
    for user in ("alice", "nobody"):
        assert logins.verifier(user, "people") == logins.verifier(user, "other")
    assert logins.find("alice", "other") is None


def test_a_database_that_does_not_exist_is_told_to_who_has_proved_a_password(guarded: Served) -> None:
    for _ in range(8):  # no guess, so that none of them waits
        with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
            guarded.connect(dbname="other")
    assert {line["delay"] for line in refused(guarded) if line["reason"] == "database"} == {0}
    with Wire(guarded.port, "127.0.9.1") as wire:
        kind, body = login(wire, "alice", PASSWORD, "other")
        assert kind == "R"
        while kind == "R":
            kind, body = wire.message()
        assert kind == "E"
        assert b"C3D000\0" in body
        assert wire.is_closed()

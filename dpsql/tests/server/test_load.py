"""A crowd, and clients that behave badly in numbers: all are answered, charged once, and nothing is left behind."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ..pgwire.frontend import SYNC, bind, cancel, close, describe, execute, parse, query, startup, tagged
from .by_hand import HungUp, Wire, login
from .conftest import COUNT, PASSWORD, Served, left, make_dataset, run_server
from .test_limits import COUNTING, Usage, needs_proc

DASHBOARD = (
    COUNT, f"{COUNT} WHERE age > 50", "SELECT AVG(age), COUNT(age) FROM person", "SELECT SUM(age) FROM person WHERE age < 40",
    "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY city",
    "SELECT city, AVG(age) FROM person GROUP BY city HAVING COUNT(*) > 10 ORDER BY city",
)  # fmt: skip
LONG = "SELECT a.i, a.i + 1, b.i FROM number AS a, number AS b LIMIT 100000"
WIDE = "SELECT " + ", ".join(f"a.i AS {'x' * 40}{number}" for number in range(200)) + " FROM number AS a"


def known(server: Served, user: str = "alice") -> Wire:
    """Return a wire that has logged in."""
    wire = Wire(server.port)
    assert login(wire, user, PASSWORD)[0] == "R"
    until_ready(wire)
    return wire


def until_ready(wire: Wire) -> list[str]:
    """Return the tags of the messages up to ReadyForQuery, or to the end."""
    tags = [""]
    while tags[-1] not in ("Z", "E!"):
        tag, body = wire.message()
        if tag == "":
            return [*tags[1:], ""]
        tags.append("E!" if tag == "E" and b"VFATAL\0" in body else tag)
    return tags[1:]


def refresh(server: Served, seed: int) -> dict[str, list[tuple[Any, ...]]]:
    """Return one client's view of the dashboard, asked in an order of its own."""
    order = random.Random(seed).sample(DASHBOARD, len(DASHBOARD))
    with server.connect() as connection:
        return {sql: connection.execute(sql).fetchall() for sql in order}


@pytest.mark.parametrize("clients", [6, pytest.param(50, marks=pytest.mark.long)])
def test_a_crowd_before_one_dashboard(tmp_path: Path, clients: int) -> None:
    """Each release is charged once, whoever came first; once all are drawn all get the same numbers, and those that
    another process reads from the store (soundness.md 3.8, editions)."""
    policy = make_dataset(tmp_path)
    with run_server(policy, "--max-connections", "120") as server:
        with ThreadPoolExecutor(clients) as threads:
            first = list(threads.map(lambda seed: refresh(server, seed), range(clients)))
            views = list(threads.map(lambda seed: refresh(server, seed), range(clients)))
        with server.connect() as alone:
            spent = Decimal(500) - Decimal(left(alone))
    with run_server(policy) as later:
        views.append(refresh(later, clients))
        assert not any(Decimal(line["epsilon"]) for line in later.lines if line["event"] == "answered")
    assert all(view == views[0] for view in views)
    assert all(len(view[sql]) == len(views[0][sql]) for view in first for sql in DASHBOARD[:5])
    charged = [Decimal(line["epsilon"]) for line in server.lines if line["event"] == "answered"]
    assert abs(sum(charged) - spent) < Decimal("0.0001"), "what is left is shown rounded down, a charge up"
    assert spent <= Decimal("0.1") * len(DASHBOARD)
    assert sum(map(bool, charged)) <= len(DASHBOARD)
    assert len(charged) == 2 * clients * len(DASHBOARD)


def test_what_one_client_may_keep(server: Served) -> None:
    """Prepared statements, portals and savepoints without end: refused from some number on, and let go."""
    with known(server) as wire:
        for kept in (
            [parse(f"s{number}", "SELECT 1") + SYNC for number in range(1100)],
            [query("BEGIN"), *(query(f"SAVEPOINT s{number}") for number in range(150)), query("ROLLBACK")],
            [query("BEGIN"), parse("", "SELECT 1") + SYNC, *(bind(f"p{n}") + SYNC for n in range(1100))],
        ):
            wire.send(b"".join(kept))
            answers = [until_ready(wire) for _ in kept]
            assert answers[0][0] != "E"
            assert any("E" in answer for answer in answers), "there is a limit"
        wire.send(query("ROLLBACK; DISCARD ALL"))
        until_ready(wire)
        wire.send(query("DISCARD ALL") + query("SELECT 1"))
        until_ready(wire)
        assert until_ready(wire) == ["T", "D", "C", "Z"]


def test_a_pipeline_without_end(server: Served) -> None:
    """Thousands of messages before the first Sync: each is answered, none is lost."""
    count = 2000
    with known(server) as wire:
        one = parse("", "SELECT $1::int") + bind("", values=[b"7"]) + describe("P") + execute() + close("P")
        with ThreadPoolExecutor(1) as threads:
            sending = threads.submit(wire.send, one * count + SYNC)
            tags = until_ready(wire)
            sending.result()
        assert "".join(tags) == "12TDC3" * count + "Z"


def test_keys_that_are_guessed(server: Served) -> None:
    """Requests to cancel with wrong keys stop nobody, and leave the server as it was."""
    with server.connect() as connection, ThreadPoolExecutor(1) as threads:
        process_id = connection.info.backend_pid
        running = threads.submit(connection.execute, "SELECT COUNT(*) FROM number AS a WHERE a.i % 7 = 3")
        for number in range(300):
            with Wire(server.port) as wire:
                wire.send(cancel(process_id, struct.pack(">I", number)))
                assert wire.is_closed()
        assert running.result().fetchone() == (4286,)
    assert not [line for line in server.lines if line["event"] == "cancelled"]


def count_of(server: Served, event: str) -> int:
    return sum(line["event"] == event for line in server.lines)


def spend(left_before: str, connection: psycopg.Connection[Any]) -> Decimal:
    return Decimal(left_before) - Decimal(left(connection))


def test_clients_that_are_killed_are_charged_once(server: Served) -> None:
    """A reset at any moment after Execute: a question is charged once or, where it never began, not at all."""
    rng = random.Random(1)
    with server.connect() as observer:
        before, gone = left(observer), count_of(server, "disconnected")
        questions = [f"{COUNT} WHERE age > {number % 90} AND id < {number + 5000}" for number in range(20)]
        for sql in questions:
            with known(server) as wire:
                wire.send(parse("", sql) + bind() + describe("P") + execute("", 1) + execute("", 1) + SYNC)
                time.sleep(rng.random() * 0.05)
                wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        deadline = time.monotonic() + 300
        while count_of(server, "disconnected") < gone + len(questions):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        once = spend(before, observer)
        assert once <= Decimal("0.1") * len(questions)
        assert once % Decimal("0.1") == 0


def test_a_server_that_is_killed_forgets_no_charge(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    told: list[tuple[str, int]] = []

    def ask(server: Served, first: int) -> None:
        with contextlib.suppress(psycopg.Error), server.connect() as connection:
            for number in range(first, 10**6, 10):
                sql = f"{COUNT} WHERE id < {5000 + number}"
                row = connection.execute(sql).fetchone()
                assert row is not None
                told.append((sql, row[0]))

    with pytest.raises(AssertionError), run_server(policy) as server, ThreadPoolExecutor(6) as threads:  # noqa: PT012
        for first in range(6):
            threads.submit(ask, server, first)
        while len(told) <= 6:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGKILL)
    with run_server(policy) as server, server.connect() as connection:
        before = left(connection)
        assert Decimal(500) - Decimal(before) >= Decimal("0.1") * len(told)
        assert Decimal(500) - Decimal(before) <= Decimal("0.1") * (len(told) + 6), "nothing nobody asked"
        for sql, number in told[::5]:
            assert connection.execute(sql).fetchone() == (number,)
        assert left(connection) == before


def test_a_series_ends_with_the_policy_it_began_under(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy) as server, known(server) as wire:
        wire.send(query(";".join(f"{COUNT} WHERE age > {number}" for number in range(15))))
        server.wait_for("answered")
        policy.write_text(re.sub(r"\[analysts.alice\][^\[]*", "", policy.read_text()))
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded")
        before = count_of(server, "answered")
        until_ready(wire)
        server.wait_for("disconnected")
        after = count_of(server, "answered")
    assert after <= before + 1, "the statement that ran then is the last"


# --- long: numbers ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_hundred_connections_each_asking(tmp_path: Path) -> None:
    def ask(number: int) -> object:
        with server.connect() as connection:
            for round_ in range(3):
                connection.execute(f"{COUNT} WHERE age > {(number + round_) % 40}")
            return connection.execute("SELECT COUNT(*) FROM number").fetchone()

    policy = make_dataset(tmp_path)
    policy.write_text(re.sub(r"\[analysts.(poor|nameless)\][^\[]*", "", policy.read_text()))
    with run_server(policy, max_connections=250) as server, ThreadPoolExecutor(200) as threads:
        assert list(threads.map(ask, range(200))) == [(30000,)] * 200
        with server.connect() as alone:
            assert Decimal(500) - Decimal(left(alone)) == Decimal("4.0")


@contextlib.contextmanager
def held(server: Served, source: str, count: int, first: bytes) -> Iterator[None]:
    """Hold connections that have sent the beginning of something."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            with contextlib.suppress(OSError):
                stack.enter_context(Wire(server.port, source)).send(first)
        yield


def reads_slowly(server: Served) -> None:
    with known(server) as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send(query(LONG))
        for _ in range(4):
            time.sleep(0.2)
            wire.exactly(1)


def is_killed_amid_a_result(server: Served) -> None:
    with known(server) as wire:
        wire.send(query(LONG))
        wire.exactly(1000)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def closes_its_side(server: Served) -> None:
    with known(server) as wire:
        wire.send(query(f"{COUNT} WHERE age > 12"))
        wire.socket.shutdown(socket.SHUT_WR)
        while wire.exactly(1):
            pass


def asks_and_leaves(server: Served) -> None:
    with server.connect() as connection:
        connection.execute(f"{COUNT} WHERE age > 3")


def fails_to_log_in(server: Served) -> None:
    with Wire(server.port, f"127.0.9.{random.randrange(1, 250)}") as wire:
        login(wire, "alice", "wrong")


KINDS: tuple[Callable[[Served], None], ...] = (
    reads_slowly, is_killed_amid_a_result, closes_its_side, asks_and_leaves, fails_to_log_in, asks_and_leaves,
)  # fmt: skip


def crowd(server: Served, seconds: float, seed: int) -> int:
    """Play clients of all kinds from eight threads for so long; return how many there were."""
    end = time.monotonic() + seconds

    def play(number: int) -> int:
        rng, count = random.Random(seed + number), 0
        while time.monotonic() < end:
            with contextlib.suppress(OSError, HungUp, psycopg.OperationalError):
                rng.choice(KINDS)(server)
            count += 1
        return count

    with ThreadPoolExecutor(8) as threads:
        return sum(threads.map(play, range(8)))


def settled(server: Served, policy: Path, tasks: int) -> Usage:
    """Return what the server holds once it has at most so many tasks, or after some seconds."""
    for _ in range(120):
        time.sleep(1)
        usage = Usage.of(server.process.pid, policy)
        if usage.tasks <= tasks:
            break
    return usage


@pytest.mark.long
@needs_proc
def test_bad_clients_leave_nothing_behind(tmp_path: Path) -> None:
    """What was grown once is no leak: the same crowd a second time and a third adds nothing."""
    policy = make_dataset(tmp_path)
    with run_server(policy, code=COUNTING, max_connections=60, write_seconds=5) as server:
        usages = []
        for turn in range(3):
            with (
                held(server, "127.0.10.1", 20, startup(user="alice")[:9]),
                held(server, "127.0.10.2", 20, b"\x16\3"),
            ):
                count = crowd(server, 15, turn)
            with server.connect() as honest:
                assert honest.execute("SELECT 1").fetchone() == (1,)
            usages.append(settled(server, policy, usages[-1].tasks if usages else 0))
            print(count, usages[-1])
    assert usages[2].tasks <= usages[1].tasks
    assert usages[2].descriptors <= usages[1].descriptors + 2
    assert usages[2].threads <= usages[1].threads + 8  # the pool has at most one for each connection
    assert usages[2].memory < usages[1].memory + 100  # results of 100,000 rows come and go at the same time


@pytest.mark.long
def test_others_are_answered_during_a_pipeline_with_long_replies(tmp_path: Path) -> None:
    with run_server(make_dataset(tmp_path)) as server, known(server) as wire:
        wire.send(parse("wide", WIDE) + SYNC)
        until_ready(wire)
        with ThreadPoolExecutor(1) as threads, server.connect() as observer:
            sending = threads.submit(wire.send, describe("S", "wide") * 30_000 + tagged("X"))
            sending.result()
            with server.connect(connect_timeout=300) as other:
                assert other.execute("SELECT 1").fetchone() == (1,)
            assert observer.execute("SELECT 1").fetchone() == (1,)
            wire.socket.close()

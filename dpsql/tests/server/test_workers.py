"""`dpsql serve --workers`: several processes are one server, for limits, cancels, charges, signals and deaths."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psycopg
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.errors import EngineFailure
from dpsql.policy import load_policy
from dpsql.server.listener import LONGEST, Throttle
from dpsql.server.processes import OneOf, Place, make_place
from dpsql.tests.support.forked import Forked, run_forked
from dpsql.tests.support.length import tried

from .conftest import COUNT, SLOW, Served, make_dataset, run_server

WORKERS = 2


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("workers"))


@pytest.fixture(scope="module")
def server(policy: Path) -> Iterator[Served]:
    with run_server(policy, "--workers", str(WORKERS), "--max-connections", "8") as served:
        served.wait_for("listening", WORKERS - 1)  # the first was read
        yield served


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def processes(served: Served) -> list[int]:
    """The workers, as children of the parent."""
    at = f"/proc/{served.process.pid}/task/{served.process.pid}/children"
    return [int(one) for one in Path(at).read_text().split()]


def spent(policy: Path) -> int:
    store = open_ledger(load_policy(policy), create=False)
    try:
        return store.status().epsilon_spent_nano
    finally:
        store.close()


def of_each(served: Served, stack: ExitStack) -> list[psycopg.Connection[object]]:
    """A connection to each worker."""
    found: dict[int, psycopg.Connection[object]] = {}
    for _ in range(100):
        one = served.connect()
        if found.setdefault(one.info.backend_pid % WORKERS, one) is not one:
            one.close()
        if len(found) == WORKERS:
            return [stack.enter_context(found[at]) for at in range(WORKERS)]
    raise AssertionError("the port is shared by none")


def test_all_serve_and_what_is_asked_of_both_is_drawn_once(server: Served, policy: Path) -> None:
    before = spent(policy)
    with ExitStack() as stack:
        both = of_each(server, stack)
        with ThreadPoolExecutor(WORKERS) as threads:
            rows = list(threads.map(lambda one: one.execute(COUNT).fetchall(), both))
        again = [one.execute(COUNT).fetchall() for one in both]
    assert rows[0] == rows[1] == again[0] == again[1]
    assert spent(policy) - before == 100_000_000


def test_a_cancel_reaches_the_process_that_it_is_for(server: Served) -> None:
    """Whom the system hands the cancel to is by chance: nine of nine arrive."""
    with ExitStack() as stack:
        for number in range(9):
            one = of_each(server, stack)[number % WORKERS]
            timer = threading.Timer(0.7, one.cancel)
            timer.start()
            began = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled):
                one.execute(SLOW)
            assert time.monotonic() - began < 50
            timer.join()
            stack.close()


def test_another_key_cancels_nothing(server: Served) -> None:
    with ExitStack() as stack:
        one = of_each(server, stack)[0]
        for number in (one.info.backend_pid, -1, -2, -(2**31), 2**31 - 1):
            for _ in range(8):
                with socket.create_connection(("127.0.0.1", server.port)) as stranger:
                    stranger.sendall(struct.pack("!iiii", 16, 80877102, number, 12345))
        assert one.execute("SELECT COUNT(*) FROM number AS a, number AS b WHERE a.i < 300").fetchone() == (
            9000000,
        )


def test_connections_are_counted_over_all(server: Served) -> None:
    """Of eight an analyst has four where there are others, and gets a place again once one has left."""
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(server.connect())
        for _ in range(6):
            with pytest.raises(psycopg.OperationalError, match="too many connections"):
                server.connect()
        for _ in range(4):
            stack.enter_context(server.connect(user="poor"))
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            server.connect(user="poor")

    def is_free() -> bool:
        with suppress(psycopg.OperationalError):
            server.connect().close()
            return True
        return False

    until(is_free)


def test_failed_logins_are_counted_over_all(server: Served) -> None:
    """The fourth waits, whichever process each was told to."""
    before = sum(line["event"] == "login refused" for line in server.lines)
    for _ in range(7):
        with pytest.raises(psycopg.OperationalError):
            server.connect(password="wrong")
    server.wait_for("login refused", before + 7)
    delays = [line["delay"] for line in server.lines if line["event"] == "login refused"][before:]
    assert sorted(delays)[:3] == [0, 0, 0]
    assert delays[4:] == sorted(delays[4:])
    assert min(delays[4:]) > 0
    with server.connect() as right:
        assert right.execute("SELECT 1").fetchone() == (1,)


def test_a_reload_reaches_all(server: Served) -> None:
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reloaded", WORKERS)


def test_killed_under_load(tmp_path: Path) -> None:
    """What was answered is charged, what was reserved stays so, the ledger is sound, and another takes its place."""
    policy = make_dataset(tmp_path)
    answered: list[int] = []
    with run_server(policy, "--workers", "2") as served:
        served.wait_for("listening", 1)
        has_ended, numbers = threading.Event(), iter(range(10**6))

        def ask() -> None:
            while not has_ended.is_set():
                with suppress(psycopg.Error), served.connect() as one:
                    while not has_ended.is_set():
                        number = next(numbers)
                        one.execute(
                            f"SELECT COUNT(*) FROM person WHERE age > {number % 97} AND id > {number}"
                        ).fetchall()
                        answered.append(number)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for kills in range(1, tried(2, 4)):
                there, had = processes(served), len(answered)
                until(lambda had=had: len(answered) > had + 3)
                os.kill(there[kills % 2], signal.SIGKILL)
                served.wait_for("worker ended", kills)
                served.wait_for("listening", kills + 1)
        finally:
            has_ended.set()
            for thread in threads:
                thread.join()
        assert len(processes(served)) == 2
    assert spent(policy) >= len(set(answered)) * 100_000_000
    checked = run_forked(["-m", "dpsql.cli", "-P", str(policy), "budget", "verify"])
    assert checked.returncode == 0, checked.stderr


def test_what_runs_may_finish(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy, "--workers", "2", "--grace", "120") as served, ThreadPoolExecutor(2) as threads:
        served.wait_for("listening", 1)
        with ExitStack() as stack:
            both = of_each(served, stack)
            long = "SELECT COUNT(*) FROM number AS a, number AS b WHERE a.i < 3000 AND a.i * b.i % 7 = 3"
            asked = threads.submit(lambda: both[0].execute(long).fetchone())
            time.sleep(0.2)
            assert not asked.done()
            served.process.send_signal(signal.SIGTERM)
            assert asked.result()[0] > 0
        assert served.process.wait(60) == 0
        served.wait_for("stopped", 3)


def test_they_stop_where_the_parent_is_killed(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    command = ["-m", "dpsql.cli", "-P", str(policy), "serve", "--port", "0", "--workers", "2"]
    parent = Forked(command, stderr=subprocess.PIPE, text=True)
    assert parent.stderr is not None
    told: list[dict[str, object]] = []
    while sum(line["event"] == "listening" for line in told) < 2:
        told.append(json.loads(parent.stderr.readline()))
    parent.kill()
    parent.wait()
    rest = [json.loads(line)["event"] for line in parent.stderr]  # until both have closed it
    parent.stderr.close()
    assert rest.count("stopped") == 2


def test_what_cannot_begin_is_told_once(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    begin = ["-m", "dpsql.cli", "-P", str(policy), "serve", "--workers", "2", "--port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run_forked([*begin, str(taken.getsockname()[1])])
    assert (done.returncode, "is taken" in done.stderr) == (2, True)
    for made in ("people.db", "people.db.log"):
        (tmp_path / made).unlink()
    done = run_forked([*begin, "0"])
    assert done.returncode == 7
    assert done.stderr.count("ERROR") == 1


# --- what they share, by itself -----------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    make_place(tmp_path)
    both = Place(tmp_path, 0), Place(tmp_path, 1)
    yield both
    for one in both:
        one.close()


def test_a_limit_is_that_of_all(places: tuple[Place, Place]) -> None:
    first, second = places
    assert [one.admit("a", 4, 2) for one in (first, second, first)] == [None, None, "analyst"]
    assert [second.admit("b", 4, 2), first.admit("b", 4, 2), second.admit("c", 4, 2)] == [None, None, "all"]
    first.forget(1)  # it was killed: it had an "a" and a "b"
    assert [first.admit("a", 4, 2), first.admit("a", 4, 2)] == [None, "analyst"]
    first.leave("a")
    with closing(Place(first._folder, 1)) as anew:
        assert anew.admit("a", 4, 2) is None


def test_failures_are_those_of_all(places: tuple[Place, Place]) -> None:
    alone, (one, other) = Throttle(), map(Throttle, places)
    for number in range(30):
        peer, now = f"192.0.2.{number % 3}", 100.0 + number / 7
        assert (one if number % 2 else other).fail(peer, now) == alone.fail(peer, now)


def test_a_place_that_is_gone_lets_nobody_in(places: tuple[Place, Place]) -> None:
    places[0].close()
    assert places[0].admit("a", 4, 2) == "all"
    assert Throttle(places[0]).fail("192.0.2.1", 1.0) == LONGEST


def test_a_turn_is_one_of_all(places: tuple[Place, Place]) -> None:
    first, second = places
    with first.turn("alice", 1, lambda: False):
        with pytest.raises(EngineFailure), second.turn("alice", 1, lambda: True):
            pass
        with second.turn("bob", 1, lambda: True), second.turn("alice", 2, lambda: True):
            pass
    with second.turn("alice", 1, lambda: True):
        pass


def test_a_number_says_whose_it_is() -> None:
    for of in (2, 3, 4):
        for number in range(of):
            one = OneOf(number, of, 5433, "there", 3, tuple(range(of)))
            assert OneOf.parse(one.text) == one
            ids = [one.new_id() for _ in range(200)]
            assert all(one.is_own(each) and 0 < each < 2**31 for each in ids)


def test_a_full_inbox_loses_cancels_and_stops_nobody() -> None:
    inbox, outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with inbox, outbox:
        one = OneOf(0, 2, 5433, "there", inbox.fileno(), (inbox.fileno(), outbox.fileno()))
        for _ in range(5000):
            one.hand_on(3, b"key!")
        inbox.setblocking(False)
        told = list(one.handed(inbox))
        assert told[:2] == [(3, b"key!"), (3, b"key!")]
        assert len(told) < 5000


def test_who_left_while_nothing_could_be_said_is_not_counted_for_ever(places: tuple[Place, Place]) -> None:
    first, second = places
    assert first.admit("a", 4, 1) is None
    with closing(sqlite3.connect(first._folder / "shared.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        first.leave("a")
        other.execute("ROLLBACK")
    assert second.admit("a", 4, 1) == "analyst"
    assert first.admit("a", 4, 1) is None


def test_a_process_that_begins_counts_nothing_of_the_one_before_it(places: tuple[Place, Place]) -> None:
    first, _ = places
    assert first.admit("a", 4, 1) is None
    with closing(Place(first._folder, 0)) as anew:
        assert anew.admit("a", 4, 1) is None

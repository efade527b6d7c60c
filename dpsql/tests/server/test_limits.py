"""Limits, each met with a real socket: how many, how long, how large; and a flood."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.server.channel import accepted, open_listeners

from ..pgwire.frontend import SSL, query, startup, tagged
from .by_hand import HungUp, Wire, login
from .conftest import COUNT, PASSWORD, TUNED, Served, left, make_dataset, run_server

WITHOUT_GRID = "\n[server]\ngrid = false\n"


def refusal(server: Served, **options: Any) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        server.connect(**options)
    return str(caught.value)


def test_without_the_grid(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(policy.read_text() + WITHOUT_GRID)
    never = "import dpsql.server.worker as worker\nworker.release_time = lambda start, now: start + 10**6\n"
    with run_server(policy, code=never + TUNED) as server, server.connect() as connection:
        for age in range(5):
            assert connection.execute(f"{COUNT} WHERE age > {age}").fetchone()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT SUM(nosuch) FROM person")


def test_connections_of_all_and_of_one_analyst(tmp_path: Path) -> None:
    with run_server(make_dataset(tmp_path), "--max-connections", "4") as server:
        with server.connect(), server.connect():
            assert "too many connections" in refusal(server), "half of all is the most of one analyst"
            with server.connect(user="poor"), server.connect(user="poor"):
                assert "too many connections" in refusal(server, user="poor")
            server.connect(user="poor").close()
        server.wait_for("disconnected", 5)
        assert [line["limit"] for line in server.lines if line["event"] == "full"] == ["analyst", "all"]


def test_a_connection_that_says_nothing(tmp_path: Path) -> None:
    with run_server(make_dataset(tmp_path), "--idle", "1") as server, server.connect() as idle:
        server.wait_for("idle")
        with pytest.raises(psycopg.OperationalError, match="idle for too long"):
            idle.execute("SELECT 1")


def test_a_connection_that_says_something_in_time(tmp_path: Path) -> None:
    """One timer looks at all of a connection's waits: what counts is the one at hand."""
    with run_server(make_dataset(tmp_path), "--idle", "2") as server, server.connect() as busy:
        for _ in range(3):
            time.sleep(1)
            busy.execute("SELECT 1")
        assert not [line for line in server.lines if line["event"] == "idle"]
        server.wait_for("idle")


def test_an_only_analyst_may_have_all_connections(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(re.sub(r"\[analysts.poor\][^\[]*", "", policy.read_text()))
    with run_server(policy, "--max-connections", "2") as server, server.connect(), server.connect():
        assert "too many connections" in refusal(server)


def test_strangers(tmp_path: Path) -> None:
    """Of one address half as many as of all: the oldest go, learn nothing, and are one line of the log."""
    with (
        run_server(make_dataset(tmp_path), "--max-connections", "1") as server,
        contextlib.ExitStack() as stack,
    ):
        crowd = [stack.enter_context(Wire(server.port, "127.0.6.1")) for _ in range(16)]
        others = [stack.enter_context(Wire(server.port, f"127.0.7.{number + 1}")) for number in range(16)]
        for number in range(5):
            stack.enter_context(Wire(server.port, f"127.0.6.{1 + number % 2}"))
            assert crowd[number].is_closed()
        server.wait_for("strangers full")
        assert not any(is_closed_now(wire) for wire in [*crowd[5:], *others])
        with Wire(server.port, "127.0.6.1") as wire:
            assert login(wire, "alice", PASSWORD)[0] == "R"
        assert crowd[5].is_closed()
    assert sum(line["event"] == "strangers full" for line in server.lines) == 1


def is_closed_now(wire: Wire) -> bool:
    wire.socket.setblocking(False)
    try:
        return wire.socket.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        wire.socket.setblocking(True)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that waits for nobody."""
    policy = make_dataset(tmp_path_factory.mktemp("hasty"))
    with run_server(policy, write_seconds=0.5) as served:
        yield served


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that gives no time to log in: nobody gets in on a slow machine."""
    with run_server(make_dataset(tmp_path_factory.mktemp("impatient")), authentication_seconds=0.3) as served:
        yield served


@pytest.mark.parametrize("sent", [b"", SSL, startup(user="alice")[:7], startup(user="alice")])
def test_a_login_that_does_not_come(impatient: Served, sent: bytes) -> None:
    with Wire(impatient.port) as wire:
        wire.send(sent)
        while tag := wire.exactly(1):
            assert tag != b"E"


def test_a_client_that_does_not_read(hasty: Served, policy: Path) -> None:
    """It is dropped, and what it still wanted is not run."""
    with hasty.connect() as observer:
        before = left(observer)
        with Wire(hasty.port) as wire:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            assert login(wire, "alice", PASSWORD)[0] == "R"
            while wire.message()[0] != "Z":
                pass
            rows = "SELECT a.i, a.i, a.i, a.i, a.i, a.i FROM number AS a, number AS b LIMIT 200000"
            wire.send(query(f"{rows}; {COUNT} WHERE age > 77"))
            hasty.wait_for("not reading")
            hasty.wait_for("disconnected")
        assert left(observer) == before


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (struct.pack(">i", 10_005), b"longer than the 10000 bytes"),
        (startup(user="alice") + b"p" + struct.pack(">i", 1_029), b"longer than the 1024 bytes"),
    ],
)
def test_sizes_before_the_login(server: Served, sent: bytes, told: bytes) -> None:
    with Wire(server.port) as wire:
        wire.send(sent)
        while (message := wire.message())[0] == "R":
            pass
        assert message[0] == "E"
        assert told in message[1]
        assert b"C08P01\0" in message[1]


@pytest.mark.parametrize(
    ("tag", "size"), [("Q", 2**22 + 1), ("P", 2**22 + 1), ("S", 10_001), ("Q", 2**31 - 5)]
)
def test_sizes_after_the_login(server: Served, tag: str, size: int) -> None:
    with Wire(server.port) as wire:
        assert login(wire, "alice", PASSWORD)[0] == "R"
        while wire.message()[0] != "Z":
            pass
        wire.send(tagged(tag)[:1] + struct.pack(">i", size + 4))
        tag, body = wire.message()
        assert tag == "E"
        assert b"C08P01\0" in body
        assert wire.is_closed()


def test_a_machine_that_is_gone_is_noticed() -> None:
    async def accept() -> socket.socket:
        (listener,) = open_listeners("127.0.0.1", 0)
        with listener, socket.create_connection(listener.getsockname()):
            async for connection, peer in accepted(listener):
                assert peer == "127.0.0.1"
                return connection
        raise AssertionError

    with asyncio.run(accept()) as connection:
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


FEW_DESCRIPTORS = (
    "import os, resource\nn = len(os.listdir('/proc/self/fd'))\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (n + 20, n + 20))\n" + TUNED
)
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")


@needs_proc
def test_no_descriptors_left(tmp_path: Path) -> None:
    """The server waits, neither busy nor dead, and goes on when it can."""
    with run_server(make_dataset(tmp_path), code=FEW_DESCRIPTORS, authentication_seconds=60) as server:
        with contextlib.ExitStack() as stack:
            for _ in range(30):
                stack.enter_context(Wire(server.port))
            server.wait_for("out of descriptors")
            before = processor_seconds(server.process.pid)
            time.sleep(1)
            assert processor_seconds(server.process.pid) - before < 0.5
        for _ in range(6000):
            with contextlib.suppress(HungUp), Wire(server.port) as wire:
                if login(wire, "alice", PASSWORD)[0] == "R":
                    break
            time.sleep(0.05)
        else:
            pytest.fail("nobody is let in again")


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


COUNTING = TUNED.replace(
    "asyncio.run(server.run())",
    """
import signal
async def main():
    tell = lambda: print(len(asyncio.all_tasks()), file=open(sys.argv[1] + ".tasks", "w"), flush=True)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell)
    await server.run()
asyncio.run(main())
""",
)


@dataclass(frozen=True)
class Usage:
    """What a server's process holds; memory in MiB."""

    tasks: int
    descriptors: int
    threads: int
    memory: float

    @classmethod
    def of(cls, process: int, policy: Path) -> Usage:
        told = Path(f"{policy}.tasks")
        told.unlink(missing_ok=True)
        os.kill(process, signal.SIGUSR1)
        while not told.exists() or not told.read_text().endswith("\n"):
            time.sleep(0.05)
        status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        return cls(
            int(told.read_text()),
            len(os.listdir(f"/proc/{process}/fd")),
            int(status["Threads"]),
            int(status["VmRSS"].split()[0]) / 1024,
        )


def flood(port: int, seconds: float, rate: int) -> int:
    """Open so many connections a second, of five kinds, and hold the last 50; return how many there were."""
    first = [b"", b"GET / HTTP/1.1\r\n\r\n", startup(user="alice"), startup(user="alice")[:9], SSL]
    held: deque[socket.socket] = deque()
    start, count = time.monotonic(), 0
    while (now := time.monotonic()) < start + seconds:
        if count > (now - start) * rate:
            time.sleep(0.001)
            continue
        with contextlib.suppress(OSError):
            wire = socket.create_connection(("127.0.0.1", port), 5, source_address=("127.0.8.1", 0))
            held.append(wire)
            wire.sendall(first[count % len(first)])
        count += 1
        if len(held) > 50:
            held.popleft().close()
    for wire in held:
        wire.close()
    return count


@pytest.mark.long
@needs_proc
def test_a_flood_leaves_nothing_behind(tmp_path: Path) -> None:
    """A thousand connections a second for ten seconds against places for 32; others get in meanwhile."""
    policy = make_dataset(tmp_path)
    with run_server(policy, code=COUNTING, max_connections=4) as server:
        server.connect().close()
        server.wait_for("disconnected")
        flood(server.port, 1, 1000)  # what is grown once is no leak
        time.sleep(1.5)  # the last are hung up on
        before = Usage.of(server.process.pid, policy)
        with ThreadPoolExecutor() as threads:
            flooding = threads.submit(flood, server.port, 10, 1000)
            let_in = 0
            while not flooding.done():
                with server.connect() as connection:
                    let_in += connection.execute("SELECT 1").fetchone() == (1,)
        server.wait_for("disconnected", let_in + 1)
        time.sleep(1.5)
        after = Usage.of(server.process.pid, policy)
        print(flooding.result(), let_in, before, after)
    assert flooding.result() > 500
    assert let_in
    assert after.tasks == before.tasks
    assert after.descriptors <= before.descriptors + 4  # the dataset's own connections
    assert after.threads < before.threads + 20  # the pools fill as they are used
    assert after.memory < before.memory + 20
    assert len(server.lines) < 3 * let_in + 50

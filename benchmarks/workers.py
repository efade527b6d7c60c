"""A remembered answer by the wire: what it takes of the processor, and how many more two processes of a server give.

Two cores that others use show no speed by the clock. An answer that takes no more of the processor where two processes
give them can be given twice as often by two cores, as they share nothing but the ledger, which nobody waits for. What
an answer takes stands beside an event loop that gives the same bytes and does nothing else, and beside Postgres, which
groups as many rows anew: the same client asks all of them in turn.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from benchmarks.wire import PASSWORD, running_server, serveable
from dpsql.tests.support.postgres_server import ADMINISTRATOR, PostgresServer, find_servers

__all__ = ["measure"]

_COUNT = "SELECT major, COUNT(*) AS n FROM student GROUP BY major"
_CLIENTS, _EACH = 12, 1000
"""Clients of each process, and how often each asks, or one for all of them: enough that a process seldom sleeps between
two answers."""
_FLOOR = """
import asyncio, sys
class Same(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.has_begun = transport, False
    def data_received(self, data):
        if not self.has_begun:
            self.has_begun = len(data) != 8
            self.transport.write(bytes.fromhex(sys.argv[1]) if self.has_begun else b"N")
        elif data[:1] == b"Q":
            self.transport.write(bytes.fromhex(sys.argv[2]))
        else:
            self.transport.close()
async def main():
    server = await asyncio.get_running_loop().create_server(Same, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
"""A server that lets everybody in with its first argument, and replies its second one to each text."""
_OF_FLOOR = 4.8
"""How often what the floor takes an answer may take: 0.10 ms where the floor took 0.021, when the limit was said."""
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(size: Size) -> Iterator[Figure]:
    """Yield how many times as much two processes can give, and what a remembered answer and EXPLAIN take."""
    policy = serveable(make_campus(size))
    texts = dict.fromkeys(("one", "two", "single", "floor", "single floor", "postgres"), _COUNT)
    texts["explain"] = f"EXPLAIN {_COUNT}"
    with ExitStack() as stack:
        one_at, alone = stack.enter_context(running_server(policy))
        two_at, parent = stack.enter_context(running_server(policy, "--workers", "2"))
        floor_at, floor = stack.enter_context(_floor())
        postgres_at, postmaster = stack.enter_context(_postgres())
        while len(_children(parent.pid)) < 2:  # the second worker begins after the first
            time.sleep(0.1)
        time.sleep(3)
        told: dict[str, list[float]] = {name: [] for name in texts}
        for number in range(1 + max(3, size.repeats)):
            for name, text in texts.items():
                script = policy.parent / f"{name}.sql"
                script.write_text(text + ";\n")
                at, servers = one_at, [alone.pid]
                if name == "two":
                    at, servers = two_at, _children(parent.pid)
                elif name.endswith("floor"):
                    at, servers = floor_at, [floor.pid]
                elif name == "postgres":
                    at, servers = postgres_at, [postmaster]
                taken = _taken(servers, script, at, 1 if name.startswith("single") else _CLIENTS)
                told[name] += [taken] if number else []  # the first time has it remembered
    took = {name: median(times) for name, times in told.items()}
    where = f"an answer takes {took['one']:.3f} ms of processor in one process, {took['two']:.3f} ms where two serve"
    yield Figure(
        "two workers: answers on two cores, beside one process on one",
        2 * took["one"] / took["two"], 1.8, "x", where, True,
    )  # fmt: skip
    for name, taken, floor_took in (
        ("one client", took["single"], took["single floor"]),
        ("twelve clients", took["one"], took["floor"]),
    ):
        where = (
            f"{taken:.3f} ms of processor by the wire, an event loop alone {floor_took:.3f};"
            f" Postgres {took['postgres']:.3f} for the groups of as many rows"
        )
        yield Figure(f"a remembered answer, {name}", taken / floor_took, _OF_FLOOR, "x the event loop", where)
    yield Figure("EXPLAIN of the same text again", took["explain"], 0.5, "ms", "of processor, by the wire")


@contextmanager
def _floor() -> Iterator[tuple[dict[str, Any], subprocess.Popen[bytes]]]:
    """Run an event loop that replies eight rows to whatever is asked; yield where it is, and its process."""
    columns = b"".join(
        name + struct.pack("!xihihih", 0, 0, oid, length, -1, 0)
        for name, oid, length in ((b"major", 25, -1), (b"n", 20, 8))
    )
    row = struct.pack("!hi", 2, 6) + b"majors" + struct.pack("!i", 4) + b"1234"
    reply = [(b"T", struct.pack("!h", 2) + columns), *[(b"D", row)] * 8, (b"C", b"SELECT 8\0"), (b"Z", b"I")]
    begun = [(b"R", bytes(4)), (b"Z", b"I")]
    sent = [
        b"".join(kind + struct.pack("!i", len(body) + 4) + body for kind, body in messages).hex()
        for messages in (begun, reply)
    ]
    with subprocess.Popen([sys.executable, "-c", _FLOOR, *sent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = {
            "host": "127.0.0.1",
            "port": int(process.stdout.readline()),
            "user": "analyst",
            "dbname": "any",
        }
        try:
            yield address, process
        finally:
            process.terminate()


@contextmanager
def _postgres() -> Iterator[tuple[dict[str, Any], int]]:
    """Run a Postgres with as many rows as the demo has students; yield where it is, and its first process."""
    with PostgresServer(find_servers()[-1]) as server:
        database = server.create_database()
        with server.admin(database) as admin:
            admin.execute(
                "CREATE TABLE student AS SELECT 'm' || i % 8 AS major FROM generate_series(1, 12000) AS t (i)"
            )
            admin.execute(f"ALTER ROLE {ADMINISTRATOR} PASSWORD '{PASSWORD}'")
        address = {"host": "127.0.0.1", "port": server.port, "user": ADMINISTRATOR, "dbname": database}
        yield address, int((server.folder / "data" / "postmaster.pid").read_text().split()[0])


def _taken(servers: Sequence[int], script: Path, address: dict[str, Any], clients: int) -> float:
    """Return milliseconds of processor that an answer takes the servers, asked by pgbench, by so many clients each."""
    command = [
        shutil.which("pgbench") or "pgbench", "-n", "-f", str(script), "-c", str(clients * len(servers)), "-j", "1",
        "-t", str(_EACH * _CLIENTS // clients), "-h", address["host"], "-p", str(address["port"]),
        "-U", address["user"], address["dbname"],
    ]  # fmt: skip
    before = sum(map(_processor, servers))
    subprocess.run(command, env={"PGPASSWORD": PASSWORD, "PATH": ""}, capture_output=True, check=True)
    return 1000 * (sum(map(_processor, servers)) - before) / (_EACH * _CLIENTS * len(servers))


def _processor(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # with those of its children that have ended


def _children(parent: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

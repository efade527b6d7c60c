"""Several processes of one server: how many remembered answers they give beside one, by the processor that each takes.

Two cores that others use show no speed by the clock. An answer that takes no more of the processor where two processes
give them can be given twice as often by two cores, as they share nothing but the ledger, which nobody waits for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size
from benchmarks.wire import PASSWORD, running_server, serveable

__all__ = ["measure"]

_COUNT = "SELECT major, COUNT(*) AS n FROM student GROUP BY major"
_CLIENTS, _EACH = 12, 1000
"""Clients of each process, and how often each asks, or one for all of them: enough that a process seldom sleeps between
two answers."""
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(size: Size) -> Iterator[Figure]:
    """Yield how many times as much two processes can give, and what a remembered answer and EXPLAIN take."""
    policy = serveable(make_campus(size))
    texts = {"one": _COUNT, "two": _COUNT, "explain": f"EXPLAIN {_COUNT}", "single": _COUNT}
    with ExitStack() as stack:
        one_at, alone = stack.enter_context(running_server(policy))
        two_at, parent = stack.enter_context(running_server(policy, "--workers", "2"))
        while len(_children(parent.pid)) < 2:  # the second worker begins after the first
            time.sleep(0.1)
        time.sleep(3)
        told: dict[str, list[float]] = {name: [] for name in texts}
        for number in range(1 + max(3, size.repeats)):
            for name, text in texts.items():
                script = policy.parent / f"{name}.sql"
                script.write_text(text + ";\n")
                at, servers = (two_at, _children(parent.pid)) if name == "two" else (one_at, [alone.pid])
                taken = _taken(servers, script, at, 1 if name == "single" else _CLIENTS)
                told[name] += [taken] if number else []  # the first time has it remembered
    one, two, explain, single = (median(times) for times in told.values())
    where = f"an answer takes {one:.3f} ms of processor in one process, {two:.3f} ms where two serve"
    yield Figure(
        "two workers: answers on two cores, beside one process on one", 2 * one / two, 1.8, "x", where, True
    )
    yield Figure("a remembered answer, one client", single, 0.1, "ms", "of processor, by the wire")
    yield Figure("a remembered answer, twelve clients", one, 0.1, "ms", "of processor, by the wire")
    yield Figure("EXPLAIN of the same text again", explain, 0.5, "ms", "of processor, by the wire")


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
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _children(parent: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

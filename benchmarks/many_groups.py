"""A release of many groups: our own work beside the engine's, and the memory that the process takes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.dataset import make_database, open_bench
from benchmarks.figure import Figure, Size, Times

__all__ = ["measure", "peak_memory"]

_QUERIES = {
    "thresholded, COUNT(*)": "SELECT place, COUNT(*) AS n FROM person GROUP BY place",
    "thresholded, COUNT(*), AVG": "SELECT place, COUNT(*) AS n, AVG(whole) AS a FROM person GROUP BY place",
    "declared, COUNT(*)": "SELECT p, q, COUNT(*) AS n FROM person GROUP BY p, q",
}


def measure(size: Size) -> Iterator[Figure]:
    """Yield, for each query in a process of its own, our seconds and the whole process's peak memory."""
    make_database(size)
    for name, sql in _QUERIES.items():
        raw = _in_process(size, sql, "raw")
        ours = _in_process(size, sql, "ours")
        own = ours["whole"] - ours["engine"] - ours["sealed"]
        where = (
            f"{ours['rows']:.0f} rows; engine {ours['engine']:.2f} s, fetching its rows {ours['fetching']:.2f} s,"
            f" sealed engine {ours['sealed']:.2f} s"
        )
        yield Figure(f"own work (processor), {name}", ours["own"], 3, "s", f"{own:.1f} s wall; {where}")
        yield Figure(
            f"peak memory, {name}", ours["memory"], 1024, "MiB", f"the raw query's {raw['memory']:.0f} MiB"
        )


def _in_process(size: Size, sql: str, kind: str) -> dict[str, float]:
    task = json.dumps({"sql": sql, "kind": kind, "size": asdict(size) | {"folder": str(size.folder)}})
    command = [sys.executable, "-m", "benchmarks.many_groups", task]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _run(task: str) -> None:
    asked = json.loads(task)
    size = Size(**asked["size"] | {"folder": Path(asked["size"]["folder"])})
    rows: list[object] = []
    with open_bench(size) as bench:
        clocks = bench.clocks
        bench.session.execute("SET dpsql.epsilon = 5")
        if asked["kind"] == "raw":
            times = Times.of(lambda: rows.extend(bench.run_exact(asked["sql"])))
        else:
            times = Times.of(lambda: rows.extend(bench.session.execute(asked["sql"]).rows))
        found = {"engine": clocks.engine, "fetching": clocks.fetching, "sealed": clocks.sealed}
        own = times.processor / 1000 - clocks.engine_cpu - clocks.sealed_cpu
    print(
        json.dumps(
            found | {"own": own, "whole": times.wall / 1000, "rows": len(rows), "memory": peak_memory()}
        )
    )


def peak_memory() -> float:
    """Return this process's peak memory in MiB; getrusage would count the parent's before exec, on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    _run(sys.argv[1])

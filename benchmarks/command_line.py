"""`dpsql query` on the demo, the whole process from start to finish: processor time, beside what its libraries take."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size

__all__ = ["measure"]

_MOST = 0.4
_MOST_OF_BARE = _MOST / 0.13
"""The same where Python with DuckDB takes more than the 0.13 s that it took when this was said."""
_SQL = "SELECT major, COUNT(*) AS n, AVG(gpa) AS gpa FROM student GROUP BY major ORDER BY n DESC"


def measure(size: Size) -> Iterator[Figure]:
    """Yield the processor time of a query that is charged, of one that is in the store, and of `--help`."""
    start = ["-m", "dpsql.cli"]
    query = [*start, "--policy", str(make_campus(size)), "query", "--epsilon"]
    _taken([*query, "0.01", _SQL])
    runs: dict[str, list[float]] = {name: [] for name in ("bare", "libraries", "charged", "stored", "help")}
    for number in range(
        max(5, size.repeats)
    ):  # in turn, so that what else the machine does falls on all of them
        runs["bare"].append(_taken(["-c", "import duckdb"]))
        runs["libraries"].append(_taken(["-c", "import duckdb, sqlglot, numpy, click"]))
        runs["charged"].append(_taken([*query, f"0.0{number + 2}", _SQL]))
        runs["stored"].append(_taken([*query, "0.01", _SQL]))
        runs["help"].append(_taken([*start, "--help"]))
    bare, libraries, charged, stored, told = (median(times) for times in runs.values())
    where = f"of processor; importing its libraries alone takes {libraries:.2f} s"
    for name, taken in (("charged", charged), ("stored", stored)):
        yield Figure(f"dpsql query, {name}", taken, _MOST, "s", where)
        yield Figure(
            f"{name}, beside Python with DuckDB, {bare:.2f} s",
            taken / bare,
            _MOST_OF_BARE,
            "x of its processor",
        )
    yield Figure("dpsql --help", told, 0.2, "s", where)


def _taken(arguments: Sequence[str]) -> float:
    """Return the processor time of a run of Python, of all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

"""`dpsql query` on the demo, the whole process from start to finish."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.demo import make_campus
from benchmarks.figure import Figure, Size, milliseconds

__all__ = ["measure"]

_SQL = "SELECT major, COUNT(*) AS n, AVG(gpa) AS gpa FROM student GROUP BY major ORDER BY n DESC"


def measure(size: Size) -> Iterator[Figure]:
    """Yield the best time of a query that is charged, and of one that is in the store."""
    policy = str(make_campus(size))
    start = [sys.executable, "-m", "dpsql.cli"]
    run = partial(subprocess.run, capture_output=True, check=True)
    imports = min(
        milliseconds(partial(run, [sys.executable, "-c", "import dpsql.engine.session, dpsql.cli"]))
        for _ in range(size.repeats)
    )
    python = min(milliseconds(partial(run, [sys.executable, "-c", ""])) for _ in range(size.repeats))
    command = [*start, "--policy", policy, "query", "--epsilon"]
    charged = min(
        milliseconds(partial(run, [*command, f"0.0{number + 1}", _SQL])) for number in range(size.repeats)
    )
    stored = min(milliseconds(partial(run, [*command, "0.01", _SQL])) for _ in range(size.repeats))
    where = f"Python {python / 1000:.2f} s, with imports {imports / 1000:.2f} s"
    yield Figure("dpsql query, charged", charged / 1000, 0.8, "s", where)
    yield Figure("dpsql query, stored", stored / 1000, 0.8, "s", where)

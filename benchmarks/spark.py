"""Spark: queries of TPC-H, and rows of persons by group, against the analyst's own in the same server.

Asked by dpsql's own planning and backend, on `local[2]` and on a standalone master with two workers of one core, at
each scale of `--scale`, and over 100 million visits from scale 3 on, fewer below. `make test-spark` installs the Spark,
or DPSQL_SPARK_HOME names one. The data are files, made in the run's folder by `tpchgen-cli` and Spark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure, Size, Times, compare
from benchmarks.tpch import policy_text
from benchmarks.tpch_queries import QUERIES
from dpsql import Session
from dpsql.backends.spark_backend import SparkBackend
from dpsql.engine.dataset import Dataset
from dpsql.policy import Policy, load_policy
from dpsql.tests.support.spark_server import SparkServer

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

__all__ = ["STATEMENTS", "measure"]

SCALES = (0.1, 1.0, 3.0)
_PEOPLE = "SELECT {}, COUNT(DISTINCT o_custkey) FROM orders GROUP BY 1"
_GROUPED = "SELECT {0}, COUNT(*), SUM(o_totalprice) FROM orders GROUP BY {0}"
STATEMENTS = {
    "Q1": (QUERIES[1], QUERIES[1], 4.0),
    "Q6": (QUERIES[6], QUERIES[6], 4.0),
    "Q12": (QUERIES[12], QUERIES[12], 2.0),
    "orders by priority": (_PEOPLE.format("o_orderpriority"), _GROUPED.format("o_orderpriority"), 2.0),
    "orders by clerk, found": (_PEOPLE.format("o_clerk"), _GROUPED.format("o_clerk"), None),
}
"""What an analyst asks, what dpsql is asked, and how many times as long it may take."""
_VISITS = "SELECT {}, COUNT(DISTINCT owner) FROM visit GROUP BY 1"
_GROUPED_VISITS = "SELECT month, COUNT(*), SUM(minutes) FROM visit GROUP BY month"
_TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")
_KEYS = {"customer": "c_custkey", "orders": "o_orderkey"}
_PRODUCTION = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "8",
}
_WORKERS = {"local[2]": 0, "two workers": 2}
_VISIT_POLICY = """
database = "{url}"
ledger = "sqlite:visit.db"
[privacy]
epsilon = 1000
[tables.visit]
source = "{folder}/*.parquet"
unit = "owner"
max_rows = 40
[tables.visit.columns]
month = {{ bounds = [1, 12] }}
minutes = {{ bounds = [0, 90] }}
"""
_MADE_VISITS = """
SELECT (xxhash64(id) & 2147483647) % {people} AS owner, CAST(id % 12 + 1 AS INT) AS month,
  CAST(id * 7 % 91 AS INT) AS minutes
FROM range({rows})
"""


def measure(size: Size, scales: Sequence[float] | None = None) -> Iterator[Figure]:
    """Yield the ratio of each statement's time to the exact one's, by scale and by processes, and our own memory."""
    is_quick = size.rows < 1_000_000
    asked = tuple(scales or ((0.01,) if is_quick else SCALES))
    for place, workers in _WORKERS.items():
        with SparkServer(workers=workers, settings=_PRODUCTION, memory="2g") as server:
            before = _resident()
            for scale in asked:
                repeats = max(2, int(size.repeats / (1 + scale)))
                yield from _tpch(server, size.folder, scale, place, repeats)
            yield Figure(f"{place}: our own memory, more at the end", _resident() - before, 200, "MiB")
    with SparkServer(settings=_PRODUCTION, memory="2g") as server:
        rows = 100_000 if is_quick else int(100_000_000 * min(1.0, max(asked) / 3))
        before = _resident()
        yield from _visits(server, size.folder, rows, max(2, size.repeats // 3))
        yield Figure("visits: our own memory, more at the end", _resident() - before, 200, "MiB")


def _tpch(server: SparkServer, folder: Path, scale: float, place: str, repeats: int) -> Iterator[Figure]:
    made = _made(folder, scale)
    files = {name: made / f"{name}.parquet" for name in _TABLES}
    with _asking(_tpch_policy(made, server.url), files) as both:
        for name, (exact, private, limit) in STATEMENTS.items():
            yield _compared(f"{place}, scale {scale:g}: {name}", both, exact, private, limit, repeats)


def _visits(server: SparkServer, folder: Path, rows: int, repeats: int) -> Iterator[Figure]:
    made = folder / f"spark-visits-{rows}"
    people = max(10, rows // 10)
    if not made.exists():
        with SparkBackend.of(server.url).session() as session:
            table = session.sql(_MADE_VISITS.format(rows=rows, people=people))
            table.write.parquet(f"{made}.unfinished")
        Path(f"{made}.unfinished").rename(made)
    with _asking(_VISIT_POLICY.format(url=server.url, folder=made), {"visit": made}) as both:
        exact = _VISITS.format("month")
        yield _compared(f"{rows} visits by month", both, exact, _GROUPED_VISITS, 2.0, repeats)


def _compared(
    name: str, both: tuple[SparkSession, Session], exact: str, private: str, limit: float | None, repeats: int
) -> Figure:
    """Compare a statement with an exact one, in turn, by the median of the pairs' ratios of wall time."""
    raw, ours = both

    def run_raw() -> Times:
        return Times.of(lambda: raw.sql(exact).toArrow())

    run_ours = partial(Times.of, partial(ours.execute, private))
    for _ in range(max(1, repeats // 2)):  # Java compiles what runs often
        run_raw(), run_ours()
    found = compare(run_raw, run_ours, repeats, of=lambda times: times.wall)
    return Figure(name, found.ratio, limit, "x", str(found))


@contextmanager
def _asking(policy: str, files: dict[str, Path]) -> Iterator[tuple[SparkSession, Session]]:
    """Give a session of Spark's own client over the files, and one of dpsql's, its tables recorded."""
    with tempfile.TemporaryDirectory(prefix="dpsql-bench-") as folder:
        path = Path(folder) / "dpsql.toml"
        path.write_text(policy)
        command = [sys.executable, "-m", "dpsql.cli", "-P", str(path), "budget", "create"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        known = load_policy(path)
        with _raw(known, files) as raw, Session(Dataset.open(known)) as ours:
            ours.execute("SET dpsql.reuse = off")
            yield raw, ours


@contextmanager
def _raw(policy: Policy, files: dict[str, Path]) -> Iterator[SparkSession]:
    with SparkBackend.of(policy.database).session() as session:
        for name, path in files.items():
            session.read.parquet(str(path)).createOrReplaceTempView(name)
        yield session


def _made(folder: Path, scale: float) -> Path:
    """Make the files of a scale, unless they are there."""
    made = (folder / f"spark-tpch-{scale:g}").absolute()
    if not made.exists():
        beside = Path(sys.executable).with_name("tpchgen-cli")
        unfinished = f"{made}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(beside) if beside.exists() else "tpchgen-cli", "parquet", "-s", str(scale)]
        subprocess.run([*command, "--output-dir", unfinished], check=True, stdout=subprocess.DEVNULL)
        Path(unfinished).rename(made)
    return made


def _tpch_policy(made: Path, url: str) -> str:
    """Return the policy of the grammar tests on these files, with the keys that lead to the customer."""
    text = policy_text(url, "sqlite:spark.db")
    for name in _TABLES:
        key = f'key = ["{_KEYS[name]}"]\n' if name in _KEYS else ""
        text = text.replace(f"[tables.{name}]\n", f'[tables.{name}]\nsource = "{made}/{name}.parquet"\n{key}')
    return text


def _resident() -> float:
    """Return the memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

"""Rows of Parquet files numbered within a person, and the same rows by weight, beside the analyst's own query."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.figure import Figure, Size, Times, compare, milliseconds
from dpsql import Session

__all__ = ["measure"]

_PARTS = 4
_GROUPS = 50
_BASE = """
database = "duckdb:"
[privacy]
epsilon = 9000
[tables.visit]
source = "visit/*.parquet"
unit = "owner"
max_rows = 25
[tables.visit.columns]
g = { bounds = [0, 49] }
minutes = { bounds = [0, 100] }
"""
_COPY = """
[tables.visit_prepared]
source = "visit_prepared.parquet"
unit = "owner"
key = ["owner", "n"]
row_number = "n"
max_rows = 25
[tables.visit_prepared.columns]
g = { bounds = [0, 49] }
minutes = { bounds = [0, 100] }
"""
_STATEMENTS = {
    "by 50 keys": ("SELECT g, COUNT(*), SUM(minutes) FROM {table} GROUP BY g", 1.8),
    "not grouped": ("SELECT COUNT(*), SUM(minutes) FROM {table}", 4.5),
}


def measure(size: Size) -> Iterator[Figure]:
    """Yield how long the copy and its verification take, and the ratios of statements over it and over the base."""
    folder = size.folder / f"prepared-files-{size.rows}"
    (folder / "visit").mkdir(parents=True)
    with duckdb.connect() as connection:
        for part in range(_PARTS):
            columns = (
                f"CAST(hash(i) % {size.units} AS BIGINT) AS owner",
                f"CAST(hash(i + 1) % {_GROUPS} AS INTEGER) AS g",
                "CAST(hash(i + 2) % 100 AS INTEGER) AS minutes",
            )
            rows = f"SELECT {', '.join(columns)} FROM range({part}, {size.rows}, {_PARTS}) AS t (i)"
            connection.execute(f"COPY ({rows}) TO '{folder}/visit/{part}.parquet'")
    policy = folder / "visits.toml"
    policy.write_text(_BASE)
    yield Figure("the copy is made", _seconds(policy, "prepare", "visit"), None, "s")
    policy.write_text(_BASE + _COPY)
    yield Figure("all is verified and recorded", _seconds(policy, "budget", "create"), None, "s")
    with Session.open(policy) as session, session.dataset.backend.snapshot() as snapshot:

        def run(sql: str) -> None:
            for _ in snapshot.run(sql):
                pass

        for name, (statement, limit) in _STATEMENTS.items():
            raw = statement.format(table="main.visit")
            for table, most in (("visit_prepared", limit), ("visit", None)):
                (release,) = session.explain(statement.format(table=table)).plan.releases
                (query,) = release.queries(tuple(range(len(release.measurements))))
                assert ('"n" BETWEEN 1 AND' in query.sql) == (table == "visit_prepared")
                run(raw), run(query.sql)
                asked = partial(Times.of, partial(run, raw)), partial(Times.of, partial(run, query.sql))
                found = compare(*asked, max(3, size.repeats))
                how = "numbered" if most is not None else "by weight"
                yield Figure(f"files, {name}, {how}", found.ratio, most, "x", str(found))


def _seconds(policy: Path, *words: str) -> float:
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(policy), *words]
    run = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return milliseconds(run) / 1000

"""A new statement over 15,000 rows, charged and drawn: processor time, beside the raw query, EXPLAIN, and the disk."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import duckdb

from benchmarks.dataset import HEAD
from benchmarks.figure import Figure, Size, Times
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy

__all__ = ["measure"]

_ASKED = {
    "a count": "SELECT COUNT(*) AS n FROM student WHERE gpa > {}",
    "counts by group": "SELECT major, COUNT(*) AS n FROM student WHERE gpa > {} GROUP BY major",
    "a count and an average": "SELECT COUNT(*) AS n, AVG(gpa) AS gpa FROM student WHERE gpa > {}",
}
_TABLE = """
[tables.student]
unit = "id"
[tables.student.columns]
major = { values = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"] }
gpa = { bounds = [0, 4] }
"""
_SYNCS = 2
"""Of a release: the line of the log, and the draws with the certificate."""
_MOST = 8.0
_MOST_OF_RAW = _MOST / 1.2
"""The same where the raw query takes more than the 1.2 ms that it took when this was said."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the processor time of fresh releases, and how much that is of the raw query's; no two statements have the
    same rows.
    """
    policy = _make(size.folder)
    sync = _synced(size.folder, 10 * size.repeats)
    raw_file = size.folder / "raw.duckdb"
    shutil.copy(size.folder / "fresh.duckdb", raw_file)
    with Session.open(policy) as session, duckdb.connect(raw_file, read_only=True) as raw:
        session.execute("SET dpsql.epsilon = 0.0001")
        for kind, (name, sql) in enumerate(_ASKED.items()):
            texts = [sql.format(f"{1 + kind * 0.5 + n / 1000:.3f}") for n in range(30 * size.repeats)]
            raw_times, answered = _in_turn(lambda text: raw.execute(text).fetchall(), session.execute, texts)
            explained = _each(session.execute, [f"EXPLAIN {text.replace('> ', '< ')}" for text in texts])
            taken, query = (median(one.processor for one in times) for times in (answered, raw_times))
            where = (
                f"{median(one.wall for one in answered):.1f} ms by the clock, its EXPLAIN"
                f" {median(one.processor for one in explained):.1f} ms of processor; {_SYNCS} syncs of the disk"
                f" {_SYNCS * sync.processor:.2f}, {_SYNCS * sync.wall:.1f} ms by the clock"
            )
            yield Figure(f"a fresh release, {name}", taken, _MOST, "ms of processor", where)
            yield Figure(
                f"beside the raw query, {query:.1f} ms", taken / query, _MOST_OF_RAW, "x of its processor"
            )


def _each(execute: Callable[[str], object], texts: list[str]) -> list[Times]:
    return _warm([_timed(execute, text) for text in texts])


def _in_turn(
    one: Callable[[str], object], other: Callable[[str], object], texts: list[str]
) -> tuple[list[Times], list[Times]]:
    times = [(_timed(one, text), _timed(other, text)) for text in texts]
    return _warm([first for first, _ in times]), _warm([second for _, second in times])


def _timed(execute: Callable[[str], object], text: str) -> Times:
    return Times.of(lambda: execute(text))


def _warm(times: list[Times]) -> list[Times]:
    return times[len(times) // 6 :]  # the first ones find modules and caches cold


def _synced(folder: Path, count: int) -> Times:
    """Return what it takes to have a kilobyte more of a file on the disk."""
    fd = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        times = []
        for _ in range(count):
            os.write(fd, bytes(1024))
            times.append(Times.of(lambda: os.fsync(fd)))
            time.sleep(0.002)
    finally:
        os.close(fd)
    return Times(median(one.wall for one in times), median(one.processor for one in times))


def _make(folder: Path) -> Path:
    with duckdb.connect(folder / "fresh.duckdb") as database:
        database.execute("CREATE TABLE student (id BIGINT PRIMARY KEY, major VARCHAR, gpa DOUBLE)")
        database.execute(
            "INSERT INTO student SELECT i, 'm' || (i % 8), (i % 41) / 10.0 FROM range(15000) AS t(i)"
        )
    policy = folder / "fresh.toml"
    policy.write_text(HEAD.format(database="duckdb:fresh.duckdb", ledger="fresh.db") + _TABLE)
    open_ledger(load_policy(policy), create=True).close()
    return policy

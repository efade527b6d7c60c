"""Eight tiles of a dashboard, asked one after the other, read together: what least squares take off their errors.

Deviations are those of the laws on the answers; beside them what the numbers are off by, over many such dashboards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from benchmarks.figure import Figure, Size
from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine import batch
from dpsql.engine.batch import price_batch, read_batch, run_batch
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.release.consistent import consistent
from dpsql.release.run import ReleasedRows

__all__ = ["measure"]

_POLICY = """
database = "duckdb:{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 1000
[defaults]
epsilon = 0.1
[tables.student]
unit = "id"
[tables.student.columns]
major = {{ values = ["Art", "Biology", "CS", "Law"] }}
abroad = {{}}
n = {{ bounds = [0, 999] }}
"""
_ALL = "('Art', 'Biology', 'CS', 'Law')"
_TILES = (
    "SELECT COUNT(*) FROM student WHERE major = 'CS' AND n <> {k}",
    f"SELECT COUNT(*) FROM student WHERE major IN {_ALL} AND n <> {{k}}",
    "SELECT major, COUNT(*) FROM student WHERE n <> {k} GROUP BY major",
    "SELECT major, abroad, COUNT(*) FROM student WHERE n <> {k} GROUP BY major, abroad",
    "SELECT COUNT(*) FROM student WHERE major = 'Law' AND n <> {k}",
    "SELECT COUNT(*) FROM student WHERE major = 'Art' AND n <> {k}",
    "SELECT abroad, COUNT(*) FROM student WHERE major = 'CS' AND n <> {k} GROUP BY abroad",
    "SELECT abroad, COUNT(*) FROM student WHERE major = 'Law' AND n <> {k} GROUP BY abroad",
)
_SHOWN = (("the total", 1, 12.0), ("majors", 2, 11.2), ("a drilled-down major", 0, 8.6))


def measure(size: Size) -> Iterator[Figure]:
    """Yield what eight tiles cost, and the deviation of some of their counts, by themselves and read together."""
    database = _make_students(size.folder / "agreement.duckdb")
    policy_path = size.folder / "agreement.toml"
    ledger = f"agreement-{len(list(size.folder.glob('agreement-*.db')))}.db"
    policy = parse_policy(_POLICY.format(database=database, ledger=ledger), policy_path)
    seen: list[tuple[list[ReleasedRows], list[ReleasedRows]]] = []

    def see(rows: Sequence[ReleasedRows]) -> list[ReleasedRows]:
        seen.append((list(rows), consistent(rows)))
        return seen[-1][1]

    off: dict[tuple[int, int], list[float]] = defaultdict(list)
    count = 20 if size.rows < 1_000_000 else 200
    with duckdb.connect(str(database), read_only=True) as connection:
        truths = [
            [sorted(connection.execute(tile.format(k=k)).fetchall()) for tile in _TILES] for k in range(count)
        ]
    with Session(Dataset(policy, DuckDBBackend(database), open_ledger(policy, create=True))) as session:
        for k in range(count):
            texts = [tile.format(k=k) for tile in _TILES]
            alone = [session.execute(text).rows for text in texts]
            with patch.object(batch, "consistent", see):
                together = _released(session, ";\n".join(texts))
            for place, truth in enumerate(truths[k]):
                for kind, found in enumerate((alone, together)):
                    for said, exact in zip(sorted(found[place]), truth, strict=True):
                        off[place, kind].append(float(said[-1] - exact[-1]))
        charged = Fraction(session.budget().epsilon_spent_nano, 10**9) / count
    yield Figure("eight tiles, one after the other", float(charged), 0.4, "epsilon")
    for name, place, most in _SHOWN:
        apart, agreed = (_deviation(rows[place]) for rows in seen[-1])
        measured = ", ".join(
            f"{math.sqrt(sum(e * e for e in off[place, i]) / len(off[place, i])):.1f}" for i in (0, 1)
        )
        where = f"{apart:.1f} by itself; off by {measured} over {count} dashboards"
        yield Figure(f"{name}, read together", agreed, most, "rows", where)


def _deviation(rows: ReleasedRows) -> float:
    """Return the largest deviation of a count over its groups."""
    return math.sqrt(max(law.spread for law in rows.measurements[0].laws))


def _released(session: Session, script: str) -> list[list[Any]]:
    statements = read_batch(session, script)
    price = price_batch(session, statements).charge
    assert price.epsilon_nano == 0, "all of it was asked before"
    return [list(answer.rows) for answer in run_batch(session, statements, None, price)]


def _make_students(path: Path) -> Path:
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE student (id INTEGER PRIMARY KEY, major TEXT NOT NULL, abroad BOOLEAN NOT NULL, "
                "n INTEGER NOT NULL);"
                "INSERT INTO student SELECT i, ['Art', 'Biology', 'CS', 'Law'][1 + (hash(i) % 4)::INTEGER], "
                "hash(i + 1) % 3 = 0, hash(i + 2) % 1000 FROM range(20000) AS t(i)"
            )
    return path

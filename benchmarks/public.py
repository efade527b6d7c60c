"""Public tables: the same statement asked of the database as written, and of a session; beside a release too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy

__all__ = ["measure"]

_TABLES = """
CREATE TABLE maker (id BIGINT PRIMARY KEY, land INTEGER NOT NULL, name VARCHAR NOT NULL, note VARCHAR);
CREATE TABLE part (id BIGINT PRIMARY KEY, kind VARCHAR NOT NULL, size INTEGER NOT NULL, name VARCHAR NOT NULL);
CREATE TABLE offer (part BIGINT, maker BIGINT, stock INTEGER, cost DECIMAL(15,2), PRIMARY KEY (part, maker));
CREATE TABLE person (id BIGINT PRIMARY KEY, land INTEGER NOT NULL);
INSERT INTO maker SELECT i, hash(i) % 25, 'maker ' || i, repeat('x', 60) FROM range($1 // 80) AS r(i);
INSERT INTO part SELECT i, 'kind ' || hash(i) % 150, hash(i + 1) % 50, 'part ' || i FROM range($1 // 4) AS r(i);
INSERT INTO offer SELECT i // 4, hash(i // 4) % ($1 // 80 - 8) + 2 * (i % 4), hash(i) % 10000,
    (hash(i + 2) % 100000) / 100 FROM range($1) AS r(i);
INSERT INTO person SELECT i, hash(i) % 25 FROM range($1) AS r(i);
"""

_POLICY = """
database = "duckdb:{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 1000
[tables.person]
unit = "id"
[tables.person.columns]
land = {{ bounds = [0, 24] }}
[tables.maker]
public = true
[tables.part]
public = true
[tables.offer]
public = true
"""

_PUBLIC = {
    "every row": "SELECT SUM(cost * stock) AS worth, COUNT(*) AS n FROM offer",
    "groups above a share of the whole": """
        SELECT part, SUM(cost * stock) AS worth FROM offer, maker WHERE maker = id AND land = 7 GROUP BY part
        HAVING SUM(cost * stock) > (SELECT SUM(cost * stock) * 0.0001 FROM offer, maker WHERE maker = id AND land = 7)
        ORDER BY worth DESC, part""",
    "the cheapest offer of each part": """
        SELECT m.name, p.id, o.cost FROM part p, offer o, maker m,
            (SELECT part AS k, MIN(cost) AS least FROM offer GROUP BY part) AS c
        WHERE p.id = o.part AND o.maker = m.id AND p.size = 15 AND k = p.id AND o.cost = least ORDER BY p.id, m.name""",
    "makers counted by kind": """
        SELECT kind, size, COUNT(DISTINCT maker) AS makers FROM offer JOIN part ON part = id
        WHERE kind <> 'kind 7' AND size IN (3, 9, 14, 19, 23, 36, 45, 49) GROUP BY kind, size
        ORDER BY makers DESC, kind, size""",
}
_BESIDE = """
    SELECT m.name, p.n FROM maker m JOIN (SELECT land, COUNT(*) AS n FROM person GROUP BY land) AS p ON p.land = m.land
    WHERE m.id < 100 ORDER BY m.name"""


def measure(size: Size) -> Iterator[Figure]:
    """Yield each statement's ratio of processor time to the database's own; the last one's releases are stored."""
    path, ledger = size.folder / "public.duckdb", size.folder / "public-ledger.db"
    _make(path, max(size.rows // 12, 2000))
    ledger.unlink(missing_ok=True)
    policy = parse_policy(_POLICY.format(database=path, ledger=ledger), size.folder / "public.toml")
    backend = DuckDBBackend(path)
    with (
        backend.snapshot() as snapshot,
        Session(Dataset(policy, backend, open_ledger(policy, create=True))) as session,
    ):
        for name, sql in (*_PUBLIC.items(), ("beside a stored release", _BESIDE)):
            session.execute(sql)
            compared = compare(partial(_raw, snapshot, sql), partial(_ours, session, sql), size.repeats)
            yield Figure(f"public: {name}", compared.ratio, 3 if sql != _BESIDE else None, "x", str(compared))


def _make(path: Path, rows: int) -> None:
    if path.exists():
        return
    with duckdb.connect(str(path)) as connection:
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement, [rows] if "$1" in statement else [])


def _raw(snapshot: Snapshot, sql: str) -> Times:
    def action() -> list[tuple[Any, ...]]:
        return [row for chunk in snapshot.run(sql) for row in chunk]

    return Times.of(action)


def _ours(session: Session, sql: str) -> Times:
    return Times.of(partial(session.execute, sql))

"""The data of the measurements, made once a run: rows that are persons, and rows that belong to persons.

`person`: one row per unit, 10 million of them at full size. `visit`: as many rows, of `owner`s who have
ten each. The declared bounds hold, but for 1 % of `stray`. The sessions over it charge a real ledger and
draw real noise; clocks show what is the engines'.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.backends import Backend, DuckDBBackend, Snapshot
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.policy.live_schema import LiveSchema
from dpsql.postprocess import SealedEngine

__all__ = [
    "HEAD",
    "MAJORS",
    "VISITORS",
    "WEIGHED",
    "Bench",
    "Clocks",
    "TimedBackend",
    "TimedSealedEngine",
    "by_weights",
    "make_database",
    "open_bench",
]

MAJORS = ", ".join(f'"major {number:02}"' for number in range(20))
_SIDE = 315
"""A person is in one of _SIDE * _SIDE cells: with NULLs a little below the most groups that are declared."""

_PERSON = """
CREATE TABLE person (
    id BIGINT PRIMARY KEY, major VARCHAR, whole INTEGER, held INTEGER NOT NULL, stray INTEGER, money DECIMAL(9,2),
    real DOUBLE, place BIGINT, p SMALLINT, q SMALLINT)
"""
_PERSONS = f"""
INSERT INTO person SELECT
    i, 'major ' || lpad(CAST(hash(i) % 20 AS VARCHAR), 2, '0'), CAST(hash(i + 1) % 1000 AS INTEGER),
    CAST(hash(i + 2) % 1000 AS INTEGER), CAST(hash(i + 6) % 1000 AS INTEGER),
    CAST(hash(i + 3) % 100000 AS DECIMAL(9,2)) / 100,
    CAST(hash(i + 4) % 1000000 AS DOUBLE) / 1e4, i % $1, hash(i) % {_SIDE}, hash(i + 5) % {_SIDE}
FROM range($2) AS t(i)
"""
_VISITS = """
INSERT INTO visit SELECT
    hash(i) % $1, CAST(hash(i + 1) % 12 AS INTEGER), 'major ' || lpad(CAST(hash(i + 2) % 20 AS VARCHAR), 2, '0'),
    CAST(hash(i + 3) % 100 AS INTEGER)
FROM range($2) AS t(i)
"""

HEAD = """
database = "{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 1000
delta = 0.5
[defaults]
epsilon = 1
max_epsilon = 5
delta = 1e-4
"""
_PEOPLE = f"""
[tables.person]
unit = "id"
[tables.person.columns]
major = {{ values = [{MAJORS}] }}
whole = {{ bounds = [0, 1000] }}
held = {{ bounds = [0, 1000] }}
stray = {{ bounds = [0, 990] }}
money = {{ bounds = [0, 1000] }}
real = {{ bounds = [0, 100] }}
place = {{}}
p = {{ bounds = [0, {_SIDE - 1}] }}
q = {{ bounds = [0, {_SIDE - 1}] }}
"""
VISITORS = f"""
[tables.owner]
unit = "id"
[tables.visit]
unit = {{{{ column = "owner", references = "owner.id" }}}}
max_rows = {{rows}}
max_rows_per_group = 20
max_groups = {{groups}}
[tables.visit.columns]
month = {{{{ bounds = [0, 11] }}}}
major = {{{{ values = [{MAJORS}] }}}}
minutes = {{{{ bounds = [0, 100] }}}}
"""


WEIGHED = {60: 1.2, 9: 0.7}
"""max_rows that nobody has more rows than, and that half of the people have; the most that `by_weights` may be."""
_BY_PARTS = """
WITH heavy AS (SELECT owner AS hu, COUNT(*) AS t FROM {table} GROUP BY owner HAVING COUNT(*) > {most})
SELECT k0, CAST(SUM(m) AS BIGINT) AS m FROM (
    SELECT month AS k0, 1024 * COUNT(*) AS m FROM {table} GROUP BY month
    UNION ALL
    SELECT k0, SUM((c0 * {most} * 1024) {div} t - 1024 * c0) AS m FROM (
        SELECT hu, t, month AS k0, COUNT(*) AS c0 FROM {table} CROSS JOIN heavy WHERE owner = hu GROUP BY hu, t, month
    ) AS p GROUP BY k0
) AS b GROUP BY k0
"""


def by_weights(bench: Bench, size: Size, max_rows: int, table: str, div: str) -> Figure:
    """Return how long the SQL of a count by month takes as it is printed, and as it was by parts of each person."""
    bench.clocks.reset()
    bench.session.execute("SELECT month, COUNT(*) FROM visit GROUP BY month")
    (printed,) = bench.clocks.queries
    before = _BY_PARTS.format(table=table, most=max_rows, div=div)
    runs = [partial(Times.of, partial(bench.run_exact, sql)) for sql in (before, printed)]
    found = compare(*runs, max(2, size.repeats // 2), of=lambda times: times.wall)
    name = f"{table}: at most {max_rows} rows of a person by one weight, beside parts by group"
    return Figure(name, found.ratio, WEIGHED[max_rows], "x", str(found))


def make_database(size: Size) -> Path:
    """Make the tables in the run's folder, unless they are there, and return the file's path."""
    path = size.folder / "big.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(_PERSON)
            connection.execute(_PERSONS, [size.groups, size.rows])
            connection.execute("CREATE TABLE owner (id BIGINT PRIMARY KEY)")
            connection.execute("INSERT INTO owner SELECT i FROM range($1) AS t(i)", [size.units])
            connection.execute(
                "CREATE TABLE visit (owner BIGINT NOT NULL REFERENCES owner (id), month INTEGER,"
                " major VARCHAR, minutes INTEGER)"
            )
            connection.execute(_VISITS, [size.units, size.rows])
    return path


@dataclass
class Clocks:
    """Seconds in the owner's engine, in fetching its rows, and in the sealed engine; wall, and processor."""

    engine: float = 0.0
    engine_cpu: float = 0.0
    fetching: float = 0.0
    sealed: float = 0.0
    sealed_cpu: float = 0.0
    queries: list[str] = field(default_factory=list)

    def reset(self) -> None:
        """Start anew."""
        self.engine = self.engine_cpu = self.fetching = self.sealed = self.sealed_cpu = 0.0
        self.queries = []


@dataclass
class _TimedSnapshot:
    snapshot: Snapshot
    clocks: Clocks

    def schema(self) -> LiveSchema:
        return self.snapshot.schema()

    def catalog(self, sql: str) -> list[tuple[Any, ...]]:
        return self.snapshot.catalog(sql)

    def columns(self, sql: str) -> Any:
        return self.snapshot.columns(sql)

    def run(
        self, sql: str, parameters: Sequence[object] = (), size: int = 65536, *, is_direct: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        self.clocks.queries.append(sql)
        chunks = self.snapshot.run(sql, parameters, size, is_direct=is_direct)
        is_first = True
        while True:
            start, processor = time.perf_counter(), time.process_time()
            chunk = next(chunks, None)
            if is_first:
                self.clocks.engine += time.perf_counter() - start
                self.clocks.engine_cpu += time.process_time() - processor
            else:
                self.clocks.fetching += time.perf_counter() - start
            is_first = False
            if chunk is None:
                return
            yield chunk

    def cancel(self) -> None:
        self.snapshot.cancel()


@dataclass
class TimedBackend:
    backend: Backend
    clocks: Clocks

    @property
    def dialect(self) -> str:
        return self.backend.dialect

    @contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Snapshot]:
        with self.backend.snapshot(owner) as snapshot:
            yield _TimedSnapshot(snapshot, self.clocks)

    def cancel(self, owner: object = None) -> None:
        self.backend.cancel(owner)

    def close_idle(self) -> bool:
        return self.backend.close_idle()


class TimedSealedEngine(SealedEngine):
    def __init__(self, clocks: Clocks) -> None:
        super().__init__()
        self._clocks = clocks

    def sharing(self, is_cancelled: object, owner: str = "") -> SealedEngine:
        return self

    def _run(self, *asked: Any) -> Any:
        start, processor = time.perf_counter(), time.process_time()
        try:
            return super()._run(*asked)
        finally:
            self._clocks.sealed += time.perf_counter() - start
            self._clocks.sealed_cpu += time.process_time() - processor


@dataclass(frozen=True, slots=True)
class Bench:
    """A session on the big tables, its clocks, and the way to run the analyst's own exact query beside it."""

    session: Session
    clocks: Clocks
    snapshot: Snapshot

    def run_exact(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the exact rows of a query, run as written through the same connection settings."""
        return [row for chunk in self.snapshot.run(sql) for row in chunk]


@contextmanager
def open_bench(size: Size, *, max_groups: int | None = None, max_rows: int | None = None) -> Iterator[Bench]:
    """Open a session with a new ledger: over `visit` when `max_groups` is given, else over `person`.

    `max_rows`: of a person, if not 20 a group.
    """
    number = len(list(size.folder.glob("ledger-*.db")))
    path, ledger = make_database(size), size.folder / f"ledger-{number}.db"
    tables = _PEOPLE
    if max_groups is not None:
        rows = max_rows or 20 * max_groups
        tables = VISITORS.replace("per_group = 20", f"per_group = {min(rows, 20)}")
        tables = tables.format(rows=rows, groups=min(rows, max_groups))
    policy = parse_policy(
        HEAD.format(database=f"duckdb:{path}", ledger=ledger) + tables, size.folder / "big.toml"
    )
    clocks, backend = Clocks(), DuckDBBackend(path)
    timed, sealed = TimedBackend(backend, clocks), TimedSealedEngine(clocks)
    with (
        backend.snapshot() as snapshot,
        Session(Dataset(policy, timed, open_ledger(policy, create=True), sealed)) as session,
    ):
        yield Bench(session, clocks, snapshot)

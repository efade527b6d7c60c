"""A ledger that is kept by periods: what a look at what is left, and a charge, take beside one kept as a whole; and
what statements take on Postgres that read one month, or bound people by month.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import psycopg

from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.budget import Caps, Charge, Claim, LedgerStore, MeasurementClaim, Promise, open_store
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import Laplace
from dpsql.policy import Period, Slices, load_policy
from dpsql.policy.periods import number_of
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_DAYS = 3_650
_FIRST = number_of(Period.DAY, date(2019, 1, 1))
_BY_DAY = Promise(period=Period.DAY, since=date(2019, 1, 1))
_LENGTHS = (1, 1, 7, 7, 30, 30, 90, 365)
_NAMES = ("alice", "bob", "eve")


def measure(size: Size) -> Iterator[Figure]:
    """Yield the milliseconds of looks and charges over ten years of days, the most runs, and what a charge adds."""
    count = 20_000 if size.rows > 1_000_000 else 400
    by_day, looks = _charge(size.folder / "by-day.db", count, _BY_DAY)
    whole, statuses = _charge(size.folder / "whole.db", count, Promise())
    where = f"{count:,} statements over {_DAYS:,} days"
    least = 0.1 if count > 1000 else None
    yield Figure(
        "by day: a look at what is left, beside a status", 1000 * (looks - statuses), least, "ms", where
    )
    yield Figure(
        "by day: a charge, beside that of a ledger as a whole", 1000 * (by_day - whole), 1, "ms", where
    )
    yield Figure("by day: a charge", by_day / whole, None, "× that of a ledger as a whole", where)
    yield from _on_duckdb(size)
    yield from _on_postgres(size)


def _charge(path: Path, count: int, promise: Promise) -> tuple[float, float]:
    """Charge so many statements; return the processor's seconds of a charge, and of a look before it."""
    for file in path.parent.glob(path.name + "*"):
        if file.is_file():
            file.unlink()
    caps = Caps(10**15, 10**18, dict.fromkeys(_NAMES))
    rng, looks, spent = random.Random(35), 0.0, 0.0
    with closing(open_store(f"sqlite:{path}", "days", caps, create=True, log=path, promise=promise)) as store:
        for number in range(count):
            slices = _slices(rng)
            wanted = MeasurementClaim((), Laplace(Fraction(10)), Charge.pure(10**8), "", slices=slices)
            if promise.period is None:
                wanted = replace(wanted, slices=None)
            looks += _seconds_of_look(store, None if promise.period is None else slices)
            began = time.process_time()
            store.reserve(Claim(_NAMES[number % 3], "SELECT 1", (wanted,)))
            spent += time.process_time() - began
    return spent / count, looks / count


def _seconds_of_look(store: LedgerStore, slices: Slices | None) -> float:
    began = time.process_time()
    if slices is None:
        store.status()
    else:
        store.left_of(slices)
    return time.process_time() - began


def _slices(rng: random.Random) -> Slices:
    length = rng.choice(_LENGTHS)
    last = _FIRST + rng.randrange(length - 1, _DAYS)
    return Slices(((last - length + 1, last),))


_TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE visit (owner INTEGER NOT NULL, seen TIMESTAMP NOT NULL, kind INTEGER NOT NULL);
INSERT INTO person SELECT i FROM generate_series(0, {people} - 1) AS t (i);
INSERT INTO visit SELECT CAST(floor({people} * power(random(), 2)) AS INTEGER),
    TIMESTAMP '2024-01-01' + CAST(i % 366 AS INTEGER) * INTERVAL '1 day', i % 8
    FROM generate_series(1, {rows}) AS t (i);
ANALYZE
"""
_POLICY = """
database = "{database}"
ledger = "sqlite:{ledger}"
[privacy]
epsilon = 1000
{section}
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.visit]
unit = {{ column = "owner", references = "person.id" }}
{time}
max_rows = 4
[tables.visit.columns]
seen = {{}}
kind = {{ values = [0, 1, 2, 3, 4, 5, 6, 7] }}
"""
_BY_MONTH = {"section": '[privacy.time]\nperiod = "month"\nsince = 2024-01-01', "time": 'time = "seen"'}
_ONE_TOTAL = {"section": "", "time": ""}
_YEAR = "seen >= '2024-01-01' AND seen < '2025-01-01'"
_MAY = "seen >= '2024-05-01' AND seen < '2024-06-01'"
_BY_KIND = "SELECT kind, {what} FROM visit WHERE {where} GROUP BY kind"


def _on_duckdb(size: Size) -> Iterator[Figure]:
    """Yield the processor's time of printed statements on DuckDB."""
    path, rows = size.folder / "visits.db", min(size.rows, 5_000_000)
    with duckdb.connect(str(path)) as connection:
        for statement in _filled(rows):
            connection.execute(statement)
    printed = _printed(size, f"duckdb:{path}")
    with duckdb.connect(str(path), read_only=True, config={"threads": 2}) as connection:

        def run(sql: str) -> object:
            return connection.execute(sql).fetchall()

        yield from _beside(size, "DuckDB", rows, printed, run, of=lambda times: times.processor)


def _on_postgres(size: Size) -> Iterator[Figure]:
    """Yield the wall time of printed statements on Postgres."""
    rows = min(size.rows, 1_000_000)
    with PostgresServer(find_servers()[-1], settings={"shared_buffers": "1GB"}) as server:
        database = server.create_database()
        with server.admin(database) as admin:
            for statement in _filled(rows):
                admin.execute(statement.encode())
        url = server.create_reader(database)
        printed = _printed(size, url)
        with psycopg.connect(url) as reader:

            def run(sql: str) -> object:
                return reader.execute(sql.encode()).fetchall()

            yield from _beside(size, "Postgres", rows, printed, run, of=lambda times: times.wall)


def _filled(rows: int) -> list[str]:
    return _TABLES.format(rows=rows, people=max(100, rows // 20)).split(";")


def _printed(size: Size, database: str) -> dict[str, str]:
    """Return the statements that are printed: of one month, with a total for each and with one for ever; of a year."""
    found = {}
    for name, parts, where in (
        ("month", _BY_MONTH, _MAY),
        ("month of one total", _ONE_TOTAL, _MAY),
        ("year", _BY_MONTH, _YEAR),
    ):
        path, ledger = size.folder / "visits.toml", size.folder / f"visits-{len(found)}-{database[:4]}.db"
        path.write_text(_POLICY.format(database=database, ledger=ledger, **parts), "utf-8")
        open_ledger(load_policy(path), create=True).close()
        with Session.open(path) as session:
            (release,) = session.explain(_BY_KIND.format(what="COUNT(*)", where=where)).plan.releases
            (query,) = release.queries(tuple(range(len(release.measurements))))
            found[name] = query.sql
    return found


def _beside(
    size: Size,
    engine: str,
    rows: int,
    printed: dict[str, str],
    run: Callable[[str], object],
    *,
    of: Callable[[Times], float],
) -> Iterator[Figure]:
    """Yield the ratios of what is printed: a month beside the same with one total, and each beside counting people."""

    def seconds(sql: str) -> Times:
        return Times.of(partial(run, sql))

    month, year = (_BY_KIND.format(what="COUNT(DISTINCT owner)", where=where) for where in (_MAY, _YEAR))
    for what, ours, name, other, limit in (
        ("one month", "month", "the same with one total for ever", printed["month of one total"], 1.1),
        ("one month", "month", "COUNT(DISTINCT person)", month, None),
        ("by (person, month) over 12", "year", "COUNT(DISTINCT person)", year, 3.5),
    ):
        found = compare(partial(seconds, other), partial(seconds, printed[ours]), size.repeats, of)
        yield Figure(f"{engine}: {what}, beside {name}", found.ratio, limit, "×", f"{rows:,} rows; {found}")

"""A ledger that is kept by periods: what a look at what is left, and a charge, take beside one kept as a whole; and
what statements take on Postgres that read one month, or bound people by month.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path

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
CREATE TABLE visit (owner INTEGER NOT NULL, at TIMESTAMP NOT NULL, kind INTEGER NOT NULL);
INSERT INTO person SELECT generate_series(0, {people} - 1);
INSERT INTO visit SELECT floor({people} * power(random(), 2)), TIMESTAMP '2024-01-01' + (i % 366) * INTERVAL '1 day',
    i % 8 FROM generate_series(1, {rows}) AS t (i);
ANALYZE
"""
_POLICY = """
database = "{database}"
[privacy]
epsilon = 1000
[privacy.time]
period = "month"
since = 2024-01-01
[defaults]
epsilon = 0.1
[tables.person]
unit = "id"
[tables.visit]
unit = {{ column = "owner", references = "person.id" }}
time = "at"
max_rows = 4
[tables.visit.columns]
at = {{}}
kind = {{ values = [0, 1, 2, 3, 4, 5, 6, 7] }}
"""
_YEAR = "at >= '2024-01-01' AND at < '2025-01-01'"
_MAY = "at >= '2024-05-01' AND at < '2024-06-01'"


def _on_postgres(size: Size) -> Iterator[Figure]:
    """Yield the wall time of printed statements beside the raw ones, and beside counting the people."""
    rows, people = min(size.rows, 1_000_000), max(100, min(size.rows, 1_000_000) // 20)
    with PostgresServer(find_servers()[-1], settings={"shared_buffers": "1GB"}) as server:
        database = server.create_database()
        with server.admin(database) as admin:
            for statement in _TABLES.format(rows=rows, people=people).split(";"):
                admin.execute(statement)
        url = server.create_reader(database)
        path = size.folder / "visits.toml"
        path.write_text(_POLICY.format(database=url), "utf-8")
        open_ledger(load_policy(path), create=True).close()
        with Session.open(path) as session, psycopg.connect(url) as reader:

            def seconds(sql: str) -> Times:
                return Times.of(lambda: reader.execute(sql.encode()).fetchall())

            for what, where in (("one month", _MAY), ("by (person, month) over 12", _YEAR)):
                asked = f"SELECT kind, COUNT(*) FROM visit WHERE {where} GROUP BY kind"
                counted = f"SELECT kind, COUNT(DISTINCT owner) FROM visit WHERE {where} GROUP BY kind"
                (release,) = session.explain(asked).plan.releases
                (query,) = release.queries(tuple(range(len(release.measurements))))
                for name, raw in (("the raw query", asked), ("COUNT(DISTINCT person)", counted)):
                    found = compare(
                        partial(seconds, raw),
                        partial(seconds, query.sql),
                        size.repeats,
                        lambda times: times.wall,
                    )
                    told = f"{rows:,} rows, {people:,} people; {found}"
                    yield Figure(f"Postgres: {what}, beside {name}", found.ratio, None, "×", told)

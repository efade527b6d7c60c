"""The same statements on Postgres: against the analyst's own exact query, and COUNT(DISTINCT person)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.dataset import (
    HEAD,
    MAJORS,
    VISITORS,
    WEIGHED,
    Bench,
    Clocks,
    TimedBackend,
    TimedSealedEngine,
    by_weights,
)
from benchmarks.figure import Figure, Size, Times, compare
from dpsql import Session
from dpsql.backends import open_backend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_TABLES = """
CREATE TABLE person (
    id bigint PRIMARY KEY, major text, whole integer, held integer NOT NULL, money numeric(9,2),
    open numeric, real double precision);
INSERT INTO person SELECT
    i, 'major ' || lpad((abs(hashint8(i)::bigint) % 20)::text, 2, '0'), abs(hashint8(i + 1)::bigint) % 1000,
    abs(hashint8(i + 2)::bigint) % 1000, (abs(hashint8(i + 3)::bigint) % 100000)::numeric / 100,
    (abs(hashint8(i + 3)::bigint) % 100000)::numeric / 100,
    (abs(hashint8(i + 4)::bigint) % 1000000)::double precision / 1e4
FROM generate_series(1, {rows}) AS t(i);
CREATE TABLE owner (id bigint PRIMARY KEY);
INSERT INTO owner SELECT i FROM generate_series(0, {units} - 1) AS t(i);
CREATE TABLE visit (owner bigint NOT NULL REFERENCES owner (id), month integer, major text, minutes integer);
INSERT INTO visit SELECT
    abs(hashint8(i)::bigint) % {units}, abs(hashint8(i + 1)::bigint) % 12,
    'major ' || lpad((abs(hashint8(i + 2)::bigint) % 20)::text, 2, '0'), abs(hashint8(i + 3)::bigint) % 100
FROM generate_series(1, {rows}) AS t(i);
CREATE TABLE buyer (id bigint PRIMARY KEY);
INSERT INTO buyer SELECT i FROM generate_series(0, {units} / 3) AS t(i);
CREATE TABLE purchase (
    id bigint PRIMARY KEY, buyer_id bigint NOT NULL REFERENCES buyer (id), day date NOT NULL,
    total numeric(12,2) NOT NULL);
INSERT INTO purchase SELECT
    i, abs(hashint8(i)::bigint) % ({units} / 3), date '2020-01-01' + (abs(hashint8(i + 1)::bigint) % 2555)::int,
    (abs(hashint8(i + 2)::bigint) % 5000000)::numeric / 100
FROM generate_series(0, {units}) AS t(i);
CREATE TABLE product (id bigint PRIMARY KEY, category text NOT NULL);
INSERT INTO product SELECT i, 'category ' || lpad((i % 20)::text, 2, '0') FROM generate_series(0, 9999) AS t(i);
CREATE TABLE item (
    purchase_id bigint NOT NULL REFERENCES purchase (id), product_id bigint NOT NULL REFERENCES product (id),
    quantity integer NOT NULL, price numeric(10,2) NOT NULL);
INSERT INTO item SELECT
    abs(hashint8(i)::bigint) % {units}, abs(hashint8(i + 1)::bigint) % 10000,
    1 + abs(hashint8(i + 2)::bigint) % 10, (abs(hashint8(i + 3)::bigint) % 100000)::numeric / 100
FROM generate_series(1, {units} * 4) AS t(i);
ANALYZE
"""
_PEOPLE = f"""
[tables.person]
unit = "id"
[tables.person.columns]
major = {{ values = [{MAJORS}] }}
whole = {{ bounds = [0, 1000] }}
held = {{ bounds = [0, 1000] }}
money = {{ bounds = [0, 1000] }}
open = {{ bounds = [0, 1000], step = 0.01 }}
real = {{ bounds = [0, 100] }}
"""
_CATEGORIES = ", ".join(f'"category {number:02}"' for number in range(20))
_SHOP = f"""
[tables.buyer]
unit = "id"
[tables.purchase]
unit = {{ column = "buyer_id", references = "buyer.id" }}
max_rows = 32
[tables.purchase.columns]
id = {{}}
day = {{ bounds = [2020-01-01, 2026-12-31] }}
total = {{ bounds = [0, 50000] }}
[tables.item]
unit = {{ column = "purchase_id", references = "purchase.id" }}
max_rows = 47
[tables.item.columns]
product_id = {{}}
quantity = {{ bounds = [1, 10] }}
price = {{ bounds = [0, 1000] }}
[tables.product]
public = true
[tables.product.columns]
id = {{}}
category = {{ values = [{_CATEGORIES}] }}
"""
_SALES = {
    "SELECT date_trunc('month', day) AS m, COUNT(*), SUM(total) FROM purchase GROUP BY 1": 5.5,
    "SELECT p.category, COUNT(*), SUM(i.quantity * i.price) FROM item i JOIN product p ON p.id = i.product_id"
    " GROUP BY p.category": 9.0,
}
"""The sums of a month, and of a join of three tables with the owner's: against the analyst's own query."""
_COLUMNS = {"whole": 2.0, "held": 2.0, "money": 2.0, "open": 2.0, "real": 2.5}
_SUMS = ("SUM({0})", "AVG({0})", "COUNT(*), SUM({0}), AVG({0})")
_COUNTS = ("COUNT(DISTINCT owner)", "COUNT(*)", "AVG(minutes)", "COUNT(*), SUM(minutes)")
_GROUPS = {20: 3.0, 3: 6.0}
"""max_groups that does not bind, and one that does: the most that the ratio may be."""


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratios of wall time, on the newest Postgres at hand."""
    with PostgresServer(
        find_servers()[-1], settings={"shared_buffers": "1GB", "max_wal_size": "8GB"}
    ) as server:
        database = server.create_database()
        with server.admin(database) as connection:
            for statement in _TABLES.format(rows=size.rows // 2, units=size.units // 2).split(";"):
                connection.execute(statement)
        reader = server.create_reader(database)
        with _open(size, _SHOP, reader) as bench:
            for sql, limit in _SALES.items():
                yield _ratio(bench, sql, sql, limit, size)
        with _open(size, _PEOPLE, reader) as bench:
            for (column, limit), sums, key in itertools.product(_COLUMNS.items(), _SUMS, ("major", None)):
                shown = sums.format(column) if key is None else f"{key}, {sums.format(column)}"
                sql = f"SELECT {shown} FROM person{'' if key is None else f' GROUP BY {key}'}"
                yield _ratio(bench, sql, sql, limit, size)
            exact = "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY real) FROM person"
            yield _ratio(bench, exact, "SELECT MEDIAN(real) FROM person", 1.5, size)
        for max_rows in WEIGHED:
            tables = VISITORS.replace("per_group = 20", f"per_group = {min(max_rows, 20)}")
            with _open(size, tables.format(rows=max_rows, groups=min(max_rows, 20)), reader) as bench:
                yield by_weights(bench, size, max_rows, "public.visit", "/")
        for groups, limit in _GROUPS.items():
            with _open(size, VISITORS.format(rows=20 * groups, groups=groups), reader) as bench:
                for key, counts in itertools.product(("month", "major"), _COUNTS):
                    exact = f"SELECT {key}, COUNT(DISTINCT owner) FROM visit GROUP BY {key}"
                    sql = f"SELECT {key}, {counts} FROM visit GROUP BY {key}"
                    yield _ratio(bench, exact, sql, limit, size, f", at most {groups} groups of a person")


def _ratio(bench: Bench, exact: str, sql: str, limit: float, size: Size, note: str = "") -> Figure:
    raw = partial(
        Times.of,
        partial(bench.run_exact, exact.replace("FROM ", "FROM public.").replace("JOIN ", "JOIN public.")),
    )
    ours = partial(Times.of, partial(bench.session.execute, sql))
    raw(), ours()
    found = compare(raw, ours, max(2, size.repeats // 2), of=lambda times: times.wall)
    return Figure(f"Postgres: {sql}{note}", found.ratio, limit, "x", str(found))


@contextmanager
def _open(size: Size, tables: str, reader: str) -> Iterator[Bench]:
    number = len(list(size.folder.glob("ledger-*.db")))
    head = HEAD.format(database=reader, ledger=size.folder / f"ledger-{number}.db")
    policy = parse_policy(head + tables, size.folder / "postgres.toml")
    clocks, backend = Clocks(), open_backend(policy.database, policy.tables)
    timed, sealed = TimedBackend(backend, clocks), TimedSealedEngine(clocks)
    with (
        backend.snapshot() as snapshot,
        Session(Dataset(policy, timed, open_ledger(policy, create=True), sealed)) as session,
    ):
        session.execute("SET dpsql.reuse = off")
        yield Bench(session, clocks, snapshot)

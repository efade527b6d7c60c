"""Rows numbered within a person, and the same rows by weight: the printed SQL beside the analyst's own query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.dataset import HEAD
from benchmarks.figure import Compared, Figure, Size, Times, compare, milliseconds
from dpsql import Session
from dpsql.backends import open_backend
from dpsql.backends.prepared_rows import numbering_of, prepare
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import Policy, parse_policy
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_GROUPS = 50
_POLICY = """
[tables.owner]
unit = "id"
[tables.visit]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = {rows}
[tables.visit.columns]
g = {{ bounds = [0, 49] }}
minutes = {{ bounds = [0, 100] }}
"""
_COPY = """
[tables.visit_prepared]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = {rows}
row_number = "n"
[tables.visit_prepared.columns]
g = {{ bounds = [0, 49] }}
minutes = {{ bounds = [0, 100] }}
"""
_RANGED = _POLICY.replace("max_rows", "unit_range = [0, {last}]\nmax_rows")
_STATEMENTS = {
    "by 50 keys": "SELECT g, COUNT(*), SUM(minutes) FROM {table} GROUP BY g",
    "not grouped": "SELECT COUNT(*), SUM(minutes) FROM {table}",
}
_BOUNDS = {"a few": 25, "half of the people": 9, "nearly all": 2}
"""max_rows by how many people have more: each has ten rows in the mean."""
_LIMITS = {
    "duckdb": {"by 50 keys": 1.8, "not grouped": 4.5},
    "postgres": {"by 50 keys": 1.5, "not grouped": 1.5},
}


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratios on DuckDB and on the newest Postgres at hand, numbered and by weight."""
    path = size.folder / "prepared.duckdb"
    url = f"duckdb:{path}"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE owner AS SELECT i AS id FROM range($1) AS t(i)", [size.units])
            connection.execute("ALTER TABLE owner ADD PRIMARY KEY (id)")
            connection.execute(
                "CREATE TABLE visit (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL, g INTEGER NOT NULL, minutes INTEGER)"
            )
            connection.execute(
                "INSERT INTO visit SELECT i, hash(i) % $1, CAST(hash(i + 1) % $2 AS INTEGER), "
                "CAST(hash(i + 2) % 100 AS INTEGER) FROM range($3) AS t(i)",
                [size.units, _GROUPS, size.rows],
            )
        yield _made(size, url, "duckdb")
    yield from _ratios(size, url, "duckdb", lambda times: times.processor)
    yield from _in_a_range(size, url)
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
    with PostgresServer(find_servers()[-1], settings=settings) as server:
        name = server.create_database()
        rows, units = size.rows // 2, size.units // 2
        with server.admin(name) as connection:
            connection.execute(
                f"CREATE TABLE owner AS SELECT i::bigint AS id FROM generate_series(0, {units} - 1) AS t(i)"
            )
            connection.execute("ALTER TABLE owner ADD PRIMARY KEY (id)")
            connection.execute(
                "CREATE TABLE visit (id bigint PRIMARY KEY, owner bigint NOT NULL, g integer NOT NULL, minutes integer)"
            )
            connection.execute(
                f"INSERT INTO visit SELECT i, abs(hashint8(i)::bigint) % {units}, "
                f"abs(hashint8(i + 1)::bigint) % {_GROUPS}, abs(hashint8(i + 2)::bigint) % 100 "
                f"FROM generate_series(1, {rows}) AS t(i)"
            )
        url = server.url(name)
        yield _made(size, url, "postgres")
        with server.admin(name) as connection:
            connection.execute("VACUUM ANALYZE")
        yield from _ratios(size, url, "postgres", lambda times: times.wall)


def _in_a_range(size: Size, url: str) -> Iterator[Figure]:
    """Yield what is gained where the owner says how people are numbered: the same rows by weight, beside without."""
    for above, rows in _BOUNDS.items():
        found = {}
        for ranged in (False, True):
            policy = _policy(
                size, url, rows, (_RANGED if ranged else _POLICY).replace("{last}", str(size.units - 1))
            )
            ledger = open_ledger(policy, create=True)
            backend = open_backend(url, policy.read_from)
            with Session(Dataset(policy, backend, ledger)) as session:
                (release,) = session.explain(_STATEMENTS["not grouped"].format(table="visit")).plan.releases
                (found[ranged],) = release.queries(tuple(range(len(release.measurements))))
        assert found[True].is_direct
        backend.close_idle()
        with backend.snapshot() as snapshot:
            asked = [
                partial(Times.of, lambda one=one: list(snapshot.run(one.sql, is_direct=one.is_direct)))  # type: ignore[misc]
                for one in found.values()
            ]
            faster: Compared = compare(*asked, max(3, size.repeats), of=lambda times: times.processor)
        title = f"duckdb, not grouped, {above} above R = {rows}, in a range of numbers beside without"
        limit = 0.7 if above == "a few" else None
        yield Figure(title, faster.ratio, limit, "x", str(faster))


def _policy(size: Size, url: str, rows: int, tables: str) -> Policy:
    ledger = size.folder / f"prepared-{len(list(size.folder.glob('prepared-*.db')))}.db"
    text = HEAD.format(database=url, ledger=ledger) + tables.format(rows=rows)
    return parse_policy(text, Path(size.folder) / "prepared.toml")


def _made(size: Size, url: str, engine: str) -> Figure:
    """Return how long `dpsql prepare` takes."""
    policy = _policy(size, url, 25, _POLICY)
    backend = open_backend(url)
    with backend.snapshot() as snapshot:
        live = snapshot.schema()
    backend.close_idle()
    found = numbering_of("visit", policy, policy.tables["visit"], live, "visit_prepared", "n")
    spent = milliseconds(lambda: prepare(url, found, live))
    return Figure(f"{engine}: the copy is made", spent / 1000, None, "s")


def _ratios(size: Size, url: str, engine: str, of: Callable[[Times], float]) -> Iterator[Figure]:
    for above, rows in _BOUNDS.items():
        policy = _policy(size, url, rows, _POLICY + _COPY)
        backend = open_backend(url, policy.read_from)
        with (
            Session(Dataset(policy, backend, open_ledger(policy, create=True))) as session,
            backend.snapshot() as snapshot,
        ):

            def run(sql: str, snapshot: object = snapshot) -> list[object]:
                return [row for chunk in snapshot.run(sql) for row in chunk]  # type: ignore[attr-defined]

            for name, statement in _STATEMENTS.items():
                raw = statement.format(table="visit" if engine == "duckdb" else "public.visit")
                for table, limit in (("visit_prepared", _LIMITS[engine][name]), ("visit", None)):
                    (release,) = session.explain(statement.format(table=table)).plan.releases
                    (query,) = release.queries(tuple(range(len(release.measurements))))
                    assert ('"n" BETWEEN 1 AND' in query.sql) == (table == "visit_prepared")
                    run(raw), run(query.sql)
                    asked = partial(Times.of, partial(run, raw)), partial(Times.of, partial(run, query.sql))
                    found: Compared = compare(*asked, max(3, size.repeats), of=of)
                    how = "numbered" if limit is not None else "by weight"
                    title = f"{engine}, {name}, {above} above R = {rows}, {how}"
                    yield Figure(title, found.ratio, limit, "x", str(found))

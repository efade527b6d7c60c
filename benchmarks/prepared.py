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
_STAYS = 4
_POLICY = """
[tables.owner]
unit = "id"
[tables.visit]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = {rows}
[tables.visit.columns]
g = {{ bounds = [0, 49] }}
stay = {{}}
minutes = {{ bounds = [0, 100] }}
[tables.note]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = 4
[tables.stay]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = 4
[tables.stay.columns]
id = {{}}
ward = {{ bounds = [0, 19] }}
"""
_COPY = """
[tables.visit_prepared]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = {rows}
row_number = "n"
[tables.visit_prepared.columns]
g = {{ bounds = [0, 49] }}
stay = {{}}
minutes = {{ bounds = [0, 100] }}
[tables.note_prepared]
unit = {{ column = "owner", references = "owner.id" }}
max_rows = 4
row_number = "n"
"""
_RANGED = _POLICY.replace("max_rows", "unit_range = [0, {last}]\nmax_rows")
_STATEMENTS = {
    "by 50 keys": "SELECT g, COUNT(*), SUM(minutes) FROM {at}visit{copy} GROUP BY g",
    "not grouped": "SELECT COUNT(*), SUM(minutes) FROM {at}visit{copy}",
}
_JOINED = {
    "all pairs of a person": "SELECT v.g, COUNT(*), SUM(v.minutes) FROM {at}visit{copy} v JOIN {at}note{copy} w "
    "ON w.owner = v.owner GROUP BY v.g",
    "with the stay of each": "SELECT s.ward, COUNT(*), SUM(v.minutes) FROM {at}visit{copy} v JOIN {at}stay s "
    "ON s.id = v.stay AND s.owner = v.owner GROUP BY s.ward",
}
"""Of two tables whose rows multiply, and of one whose rows each lead to one of another."""
_BOUNDS = {"a few": 25, "half of the people": 9, "nearly all": 2}
"""max_rows by how many people have more: each has ten rows in the mean."""
_LIMITS = {
    "duckdb": {"by 50 keys": 1.8, "not grouped": 4.5} | dict.fromkeys(_JOINED, 1.5),
    "postgres": {"by 50 keys": 1.5, "not grouped": 1.5} | dict.fromkeys(_JOINED, 1.5),
}


def measure(size: Size) -> Iterator[Figure]:
    """Yield the ratios on DuckDB and on the newest Postgres at hand, numbered and by weight."""
    path = size.folder / "prepared.duckdb"
    url = f"duckdb:{path}"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            for text in _tables("hash({})", "range({}) AS t(i)", size.rows, size.units):
                connection.execute(text)
        yield from _made(size, url, "duckdb")
    yield from _ratios(size, url, "duckdb", lambda times: times.processor)
    yield from _in_a_range(size, url)
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
    with PostgresServer(find_servers()[-1], settings=settings) as server:
        name = server.create_database()
        with server.admin(name) as connection:
            rows = "generate_series(0, {} - 1) AS t(i)"
            for text in _tables("abs(hashint8({})::bigint)", rows, size.rows // 2, size.units // 2):
                connection.execute(text)
        url = server.url(name)
        yield from _made(size, url, "postgres")
        with server.admin(name) as connection:
            connection.execute("VACUUM ANALYZE")
        yield from _ratios(size, url, "postgres", lambda times: times.wall)


def _tables(hashed: str, counted: str, rows: int, units: int) -> Iterator[str]:
    """Yield what makes the tables: ten visits, a note and four stays of a person in the mean; a visit is in a stay."""

    def drawn(most: int, salt: int = 0) -> str:
        return f"CAST({hashed.format(f'i + {salt}')} % {most} AS INTEGER)"

    yield "CREATE TABLE owner (id BIGINT PRIMARY KEY)"
    yield f"INSERT INTO owner SELECT i FROM {counted.format(units)}"
    yield (
        "CREATE TABLE visit (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL, g INTEGER NOT NULL, stay BIGINT, "
        "minutes INTEGER)"
    )
    yield (
        f"INSERT INTO visit SELECT i, {drawn(units)}, {drawn(_GROUPS, 1)}, "
        f"CAST({drawn(units)} AS BIGINT) * {_STAYS} + {drawn(_STAYS, 3)}, {drawn(100, 2)} FROM {counted.format(rows)}"
    )
    yield "CREATE TABLE note (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL)"
    yield f"INSERT INTO note SELECT i, {drawn(units, 4)} FROM {counted.format(units)}"
    yield "CREATE TABLE stay (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL, ward INTEGER NOT NULL)"
    stays = counted.format(units * _STAYS)
    yield f"INSERT INTO stay SELECT i, CAST(floor(i / {_STAYS}) AS BIGINT), {drawn(20)} FROM {stays}"


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
                (release,) = session.explain(_STATEMENTS["not grouped"].format(at="", copy="")).plan.releases
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


def _made(size: Size, url: str, engine: str) -> Iterator[Figure]:
    """Yield how long `dpsql prepare` takes."""
    policy = _policy(size, url, 25, _POLICY)
    for name in ("visit", "note"):
        backend = open_backend(url)
        with backend.snapshot() as snapshot:
            live = snapshot.schema()
        backend.close_idle()
        found = numbering_of(name, policy, policy.tables[name], live, f"{name}_prepared", "n")
        spent = milliseconds(partial(prepare, url, found, live))
        yield Figure(f"{engine}: the copy of {name} is made", spent / 1000, None, "s")


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

            asked = _STATEMENTS | (_JOINED if above == "a few" else {})
            for name, statement in asked.items():
                raw = statement.format(at="" if engine == "duckdb" else "public.", copy="")
                for copy, limit in (("_prepared", _LIMITS[engine][name]), ("", None)):
                    (release,) = session.explain(statement.format(at="", copy=copy)).plan.releases
                    (query,) = release.queries(tuple(range(len(release.measurements))))
                    assert ('"n" BETWEEN 1 AND' in query.sql) == (copy != "")
                    run(raw), run(query.sql)
                    ways = partial(Times.of, partial(run, raw)), partial(Times.of, partial(run, query.sql))
                    found: Compared = compare(*ways, max(3, size.repeats), of=of)
                    how = "numbered" if copy else "by weight"
                    title = f"{engine}, {name}, {above} above R = {rows}, {how}"
                    yield Figure(title, found.ratio, limit, "x", str(found))

"""One person with very many keys: what found groups take with that person and without, beside the engine's GROUP BY."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg

from benchmarks.dataset import HEAD
from benchmarks.figure import Figure, Size, Times
from benchmarks.many_groups import peak_memory
from dpsql import Session
from dpsql.backends import open_backend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.postprocess import SealedEngine
from dpsql.tests.support.postgres_server import PostgresServer, find_servers

__all__ = ["measure"]

_QUERIES = {
    "COUNT(*), SUM(x)": "SELECT key, COUNT(*) AS n, SUM(x) AS s FROM visit GROUP BY key",
    "COUNT(DISTINCT x)": "SELECT key, COUNT(DISTINCT x) AS d FROM visit GROUP BY key",
    "MEDIAN(x)": "SELECT key, MEDIAN(x) AS m FROM visit GROUP BY key",
}
_RAW = "SELECT COUNT(*), SUM(n), SUM(s) FROM (SELECT key, COUNT(*) AS n, SUM(x) AS s FROM visit GROUP BY key) AS g"
"""The engine's aggregate alone: none of its groups is fetched."""
_POLICY = """
[tables.owner]
unit = "id"
[tables.visit]
unit = { column = "owner", references = "owner.id" }
max_rows = 20
max_groups = 5
[tables.visit.columns]
key = {}
x = { bounds = [0, 100] }
"""
_KEYS = {"duckdb": "hash(i + 7) % 1000", "postgres": "abs(hashint8(i + 7)::bigint) % 1000"}
_OWNERS = {"duckdb": "hash(i) % {units}", "postgres": "abs(hashint8(i)::bigint) % {units}"}
_SERIES = {"duckdb": "range({rows})", "postgres": "generate_series(0, {rows} - 1)"}
_MOST = 1.2


def measure(size: Size) -> Iterator[Figure]:
    """Yield peak memory and seconds of each statement on both engines, each in a process of its own."""
    server = PostgresServer(find_servers()[-1], settings={"shared_buffers": "512MB", "max_wal_size": "8GB"})
    with server:
        for engine in ("duckdb", "postgres"):
            places = {
                there: _made(engine, size, server if engine == "postgres" else None, there=there)
                for there in (False, True)
            }
            raw = {there: _in_process(place, _RAW, "raw", size) for there, place in places.items()}
            for name, sql in _QUERIES.items():
                ours = {there: _in_process(place, sql, "ours", size) for there, place in places.items()}
                # where the engine is a process of its own, ours takes what it does without that person
                alike = raw[True] if engine == "duckdb" else ours[False]
                limit = _MOST * alike["memory"]
                yield Figure(
                    f"{engine}, {name}: peak memory with that person", ours[True]["memory"], limit, "MiB",
                    f"{ours[False]['memory']:.0f} without; the engine's aggregate {raw[True]['memory']:.0f}"
                    f" with, {raw[False]['memory']:.0f} without",
                )  # fmt: skip
                yield Figure(
                    f"{engine}, {name}: seconds with that person", ours[True]["wall"], None, "s",
                    f"{ours[False]['wall']:.1f} without; the engine's aggregate {raw[True]['wall']:.1f} with,"
                    f" {raw[False]['wall']:.1f} without; {ours[True]['rows']:.0f} and {ours[False]['rows']:.0f} rows",
                )  # fmt: skip


def _made(engine: str, size: Size, server: PostgresServer | None, *, there: bool) -> str:
    """Make the table, with the one person or without, and return where it is."""
    rows, units, keys = size.rows // 5, size.units // 5, 3 * size.rows // 10
    tables = [
        "CREATE TABLE owner (id bigint PRIMARY KEY)",
        f"INSERT INTO owner SELECT i FROM {_SERIES[engine].format(rows=units + 1)} AS t(i)",
        "CREATE TABLE visit (owner bigint NOT NULL REFERENCES owner (id), key text, x integer)",
        f"INSERT INTO visit SELECT {_OWNERS[engine].format(units=units)}, 'key ' || ({_KEYS[engine]}), i % 100"
        f" FROM {_SERIES[engine].format(rows=rows)} AS t(i)",
    ]
    if there:
        tables += [
            f"INSERT INTO visit SELECT {units}, 'of one ' || i, i % 100"
            f" FROM {_SERIES[engine].format(rows=keys)} AS t(i)"
        ]
    if server is None:
        path = size.folder / f"keys-{there}.duckdb"
        if not path.exists():
            with duckdb.connect(str(path)) as connection:
                for sql in tables:
                    connection.execute(sql)
        return f"duckdb:{path}"
    database = server.create_database()
    with server.admin(database) as admin:
        for sql in (*tables, "ANALYZE"):
            admin.execute(sql)
    return server.create_reader(database)


def _in_process(place: str, sql: str, kind: str, size: Size) -> dict[str, float]:
    number = len(list(size.folder.glob("keys-ledger-*.db")))
    ledger = str(size.folder / f"keys-ledger-{number}.db")
    task = json.dumps({"sql": sql, "kind": kind, "place": place, "ledger": ledger})
    command = [sys.executable, "-m", "benchmarks.keys_of_one", task]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _run(task: str) -> None:
    asked = json.loads(task)
    place, rows = asked["place"], list[object]()
    if asked["kind"] == "raw" and place.startswith("duckdb:"):
        with duckdb.connect(place.removeprefix("duckdb:"), read_only=True) as connection:
            times = Times.of(lambda: rows.extend(connection.execute(asked["sql"]).fetchall()))
    elif asked["kind"] == "raw":
        with psycopg.connect(place) as reader:
            times = Times.of(lambda: rows.extend(reader.execute(asked["sql"]).fetchall()))
    else:
        head = HEAD.format(database=place, ledger=asked["ledger"])
        policy = parse_policy(head + _POLICY, Path(asked["ledger"] + ".toml"))
        backend = open_backend(policy.database, policy.tables)
        with Session(Dataset(policy, backend, open_ledger(policy, create=True), SealedEngine())) as session:
            times = Times.of(lambda: rows.extend(session.execute(asked["sql"]).rows))
    print(json.dumps({"memory": peak_memory(), "wall": times.wall / 1000, "rows": len(rows)}))


if __name__ == "__main__":
    _run(sys.argv[1])

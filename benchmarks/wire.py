"""The server beside Postgres itself, asked by the same clients: an open connection, many rows, many clients."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from benchmarks.demo import campus_queries, make_campus
from benchmarks.figure import Figure, Size, milliseconds
from dpsql import Session
from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.postgres_server import ADMINISTRATOR, PostgresServer, find_servers

__all__ = ["PASSWORD", "measure", "running_server", "serveable"]

PASSWORD = "benchmark"
_ONE = "SELECT n FROM one"
_COUNT = "SELECT major, COUNT(*) AS n FROM student GROUP BY major"
_FRESH = "SELECT COUNT(*) AS n, AVG(gpa) AS a FROM student WHERE gpa > 2"
_WIDE = {
    "integers": ("SELECT place, COUNT(*) AS n FROM wide GROUP BY place", "SELECT place, n FROM wide"),
    "integer, double, text": (
        "SELECT place, CAST(COUNT(*) AS double precision) / 3 AS share, 'place ' || place AS name"
        " FROM wide GROUP BY place",
        "SELECT place, share, name FROM wide",
    ),
}
_TRANSACTIONS = re.compile(r"tps = ([0-9.]+)")


def measure(size: Size) -> Iterator[Figure]:
    """Yield ratios to Postgres, what the wire adds to a session, and what fifty clients cost each other.

    Both are asked over TCP on the loopback, without TLS.
    """
    installation = find_servers()[-1]
    with PostgresServer(installation) as postgres:
        database = postgres.create_database()
        with postgres.admin(database) as admin:
            admin.execute("CREATE TABLE one AS SELECT 7 AS n")
            admin.execute(f"ALTER ROLE {ADMINISTRATOR} PASSWORD '{PASSWORD}'")
        address = postgres.url(database, password=PASSWORD)
        with psycopg.connect(address, autocommit=True, sslmode="disable") as connection:
            yield from _small(size, connection)
            yield from _large(size, connection)


def _small(size: Size, postgres: psycopg.Connection[Any]) -> Iterator[Figure]:
    policy = serveable(make_campus(size))
    with _server(policy) as address, psycopg.connect(**address, autocommit=True) as ours:
        ours.execute(_COUNT)
        for name, is_prepared in (("simple", None), ("prepared", True)):
            ask = partial(_ask, ours, _COUNT, is_prepared)
            raw = partial(_ask, postgres, _ONE, is_prepared)
            ratio, one, other = _pairs(raw, ask, 100 * size.repeats)
            where = f"Postgres {one:.3f} ms, dpsql {other:.3f} ms"
            yield Figure(f"identical statement again over an open connection, {name}", ratio, 4, "x", where)
        for setting in ("SET dpsql.epsilon = 0.000001", "SET dpsql.reuse = off"):
            ours.execute(setting)
        with Session.open(policy, analyst="analyst") as session:
            session.execute("SET dpsql.epsilon = 0.000001")
            session.execute("SET dpsql.reuse = off")
            _, one, other = _pairs(
                lambda: session.execute(_FRESH), lambda: _ask(ours, _FRESH, None), 20 * size.repeats
            )
        yield Figure("added to a fresh release by the wire", other - one, 2, "ms", f"session {one:.2f} ms")
        yield from _crowd(size, policy, address)


def _crowd(size: Size, policy: Path, address: dict[str, Any]) -> Iterator[Figure]:
    """Yield how much slower an answer is when fifty clients refresh one dashboard, by pgbench."""
    bench = shutil.which("pgbench")
    if bench is None:
        return
    with Session.open(policy, analyst="analyst") as session:
        texts = campus_queries(session)
    script = policy.parent / "dashboard.sql"
    script.write_text("".join(f"{text.rstrip(';')};\n" for text in texts))
    with psycopg.connect(**address, autocommit=True) as connection:
        for text in texts:
            connection.execute(text)
    for mode in ("simple", "extended", "prepared"):
        rates = {clients: _dashboards(bench, script, address, clients, mode) for clients in (1, 50)}
        where = f"{len(texts)} statements; one client {rates[1]:.1f} dashboards/s, fifty {rates[50]:.1f}"
        yield Figure(f"an answer among fifty clients, {mode}", rates[1] / rates[50], 3, "x", where)


def _dashboards(bench: str, script: Path, address: dict[str, Any], clients: int, mode: str) -> float:
    command = [
        bench, "-n", "-f", str(script), "-c", str(clients), "-j", "1", "-T", "5", "-M", mode,
        "-h", address["host"], "-p", str(address["port"]), "-U", address["user"], address["dbname"],
    ]  # fmt: skip
    done = subprocess.run(
        command, env={"PGPASSWORD": PASSWORD, "PATH": ""}, capture_output=True, text=True, check=True
    )
    found = _TRANSACTIONS.search(done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


def _large(size: Size, postgres: psycopg.Connection[Any]) -> Iterator[Figure]:
    """Yield rows a second of a large released result, as a share of Postgres' own."""
    groups = size.groups
    policy = _make_wide(size)
    postgres.execute(
        "CREATE TABLE wide AS SELECT i::int AS place, i::bigint AS n, i / 3.0::double precision AS share,"
        f" 'place ' || i AS name FROM generate_series(0, {groups - 1}) AS t(i)"
    )
    with _server(policy) as address, psycopg.connect(**address, autocommit=True) as ours:
        ours.execute("SET dpsql.epsilon = 1")
        for name, (mine, theirs) in _WIDE.items():
            ours.execute(mine)
            ways: dict[str, tuple[Callable[[psycopg.Connection[Any], str], int], float]] = {
                "rows": (_fetch, 0.4), "rows, binary": (partial(_fetch, binary=True), 0.4),
                "rows of a cursor on the server": (_scroll, 0.4),
                "COPY": (_copy, 0.2), "COPY, binary": (partial(_copy, options=" (FORMAT binary)"), 0.2),
            }  # fmt: skip
            for way, (read, least) in ways.items():
                asked = (partial(read, postgres, theirs), partial(read, ours, mine))
                one, other = _rates(asked, max(2, size.repeats // 2))
                where = f"Postgres {one / 1000:.0f} k rows/s, dpsql {other / 1000:.0f} k"
                yield Figure(f"{way}, {name}", other / one, least, "of Postgres", where, True)


def _rates(asked: Sequence[Callable[[], int]], repeats: int) -> list[float]:
    """Return the best rows a second of each; they take turns, so that a busy spell meets all."""
    rates = [0.0 for _ in asked]
    for _ in range(repeats):
        for index, read in enumerate(asked):
            start = time.perf_counter()
            count = read()
            rates[index] = max(rates[index], count / (time.perf_counter() - start))
    return rates


def _fetch(connection: psycopg.Connection[Any], text: str, *, binary: bool = False) -> int:
    return len(connection.cursor(binary=binary).execute(text).fetchall())


def _scroll(connection: psycopg.Connection[Any], text: str) -> int:
    with connection.transaction(), connection.cursor("rows") as cursor:
        cursor.itersize = 50_000
        return sum(1 for _ in cursor.execute(text))


def _copy(connection: psycopg.Connection[Any], text: str, options: str = "") -> int:
    cursor = connection.cursor()
    with cursor.copy(f"COPY ({text}) TO STDOUT{options}") as copy:
        for _ in copy:
            pass
    return cursor.rowcount


def _ask(connection: psycopg.Connection[Any], text: str, prepare: bool | None) -> object:
    return connection.execute(text, prepare=prepare).fetchall()


def _pairs(raw: Callable[[], object], ours: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Return the median of the pairs' ratios, and the median milliseconds of each."""
    for _ in range(10):
        raw(), ours()
    pairs = [(milliseconds(raw), milliseconds(ours)) for _ in range(repeats)]
    ratio = statistics.median(other / one for one, other in pairs)
    return ratio, statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def serveable(policy: Path) -> Path:
    """Return the policy without the grid, with the benchmark's password for its analyst."""
    text = policy.read_text()
    verifier = f'password = "{make_verifier(PASSWORD).text()}"'
    text = re.sub('^password = ".*"$', lambda _: verifier, text, flags=re.MULTILINE)
    if verifier not in text:
        text += f"\n[analysts.analyst]\nepsilon = 10\n{verifier}\n"
    if "grid = false" not in text:
        text += "\n[server]\ngrid = false\n"
    policy.write_text(text)
    return policy


def _make_wide(size: Size) -> Path:
    """Make a table whose `place` has many public values, and a policy that lets all be counted."""
    path, policy = size.folder / "wide.duckdb", size.folder / "wide.toml"
    with duckdb.connect(path) as database:
        database.execute("CREATE OR REPLACE TABLE wide (id BIGINT PRIMARY KEY, place INTEGER NOT NULL)")
        database.execute(
            f"INSERT INTO wide SELECT i, i % {size.groups} FROM range({20 * size.groups}) AS r(i)"
        )
    policy.write_text(
        'database = "duckdb:wide.duckdb"\nledger = "sqlite:wide.db"\n[privacy]\nepsilon = 1000\ndelta = 1e-3\n'
        '[defaults]\nepsilon = 5\nmax_epsilon = 10\ndelta = 1e-4\n[tables.wide]\nunit = "id"\n'
        "[tables.wide.columns]\nplace = {}\n"
    )
    serveable(policy)
    open_ledger(load_policy(policy), create=True).close()
    return policy


@contextmanager
def _server(policy: Path) -> Iterator[dict[str, Any]]:
    """Run the server on a free port; yield where it is."""
    with running_server(policy) as (address, _):
        yield address


@contextmanager
def running_server(policy: Path, *options: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[bytes]]]:
    """Run the server on a free port; yield where it is, and its process."""
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(policy), "serve", "--port", "0", *options]
    with (policy.parent / "serve.log").open("w+") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            port = _port(policy.parent / "serve.log", process)
            address = {
                "host": "127.0.0.1", "port": port, "user": "analyst", "password": PASSWORD,
                "dbname": policy.stem, "sslmode": "disable",
            }  # fmt: skip
            yield address, process
        finally:
            process.terminate()
            process.wait(30)


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{"):
                return int(json.loads(line)["port"])
        time.sleep(0.05)
    raise RuntimeError("the server has not begun: " + log.read_text())

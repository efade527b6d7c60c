"""A client that cancels, runs out of time or is gone: the engine's own work ends, not only the wait for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers

from ..conftest import PASSWORD, Served

WAIT = 100.0
_PUBLIC = "SELECT COUNT(*) FROM number AS a, number AS b, number AS c WHERE a.i * b.i % 7 = c.i % {}"
"""Days of work, of the owner's engine or of the sealed one."""
_PRIVATE = (
    "SELECT COUNT(*) FROM (SELECT p.id, COUNT(*) AS n FROM person AS p, number AS a, number AS b"
    " WHERE a.i < 990 AND b.i < 990 AND p.age <> a.i AND a.i <> b.i GROUP BY p.id) AS t WHERE t.n > {}"
)
"""Many minutes of work of the owner's engine, after a charge."""


@dataclass(frozen=True)
class Watched:
    """A served dataset, and what says whether its engine works."""

    served: Served
    is_at_work: Callable[[], bool]

    def wait(self, *, at_work: bool) -> None:
        """Wait until the engine works, or no longer does."""
        deadline = time.monotonic() + WAIT
        while self.is_at_work() is not at_work:
            assert time.monotonic() < deadline, f"the engine works: {not at_work}"


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _computes(process: int) -> bool:
    """Return whether a process has computed in each of three moments, or in none of them: whatever the load."""
    while True:
        seen = set()
        for _ in range(3):
            before = _cpu_seconds(process)
            time.sleep(0.4)
            seen.add(_cpu_seconds(process) - before > 0.06)
        if len(seen) == 1:
            return seen.pop()


@pytest.fixture
def start(start_postgres: Callable[[Installation], PostgresServer]) -> PostgresServer:
    return start_postgres(find_servers()[-1])


ENGINES = ("public-duckdb", "private-duckdb", "public-postgres", "private-postgres")


def on(*quick: str) -> pytest.MarkDecorator:
    """Have a test on each engine, on these in the short run too: what ends a statement does so whatever it does."""
    cases = [*quick, *(pytest.param(one, marks=pytest.mark.long) for one in ENGINES if one not in quick)]
    return pytest.mark.parametrize("watched", cases, indirect=True)


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> tuple[Watched, str]:
    """A server with a statement that works for long, in each engine."""
    kind, engine = request.param.split("-")
    served: Served = request.getfixturevalue(f"on_{engine}")
    sql = _PUBLIC if kind == "public" else _PRIVATE
    if engine == "duckdb" or kind == "public":  # the sealed engine joins public tables of Postgres
        return Watched(served, lambda: _computes(served.process.pid)), sql
    server = request.getfixturevalue("start")

    def is_active() -> bool:
        with server.admin("postgres") as admin:
            found = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dpsql' AND state = 'active'"
                " AND query ILIKE '%count(%'"
            ).fetchone()
        time.sleep(0.05)
        return bool(found and found[0])

    return Watched(served, is_active), sql


@contextmanager
def _psql(served: Served, sql: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        "psql",
        "-X",
        "-h",
        "127.0.0.1",
        "-p",
        str(served.port),
        "-U",
        "alice",
        "-d",
        "people",
        "-c",
        sql,
    ]
    env = {"PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8", "PGSSLMODE": "prefer"}
    running = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


_number = iter(range(10, 90))
"""So that no statement is one that was asked before."""


def _left(served: Served) -> Decimal:
    with served.connect() as connection:
        (said,) = connection.execute("SHOW dpsql.budget").fetchone() or ("",)
    return Decimal(str(said).split()[0])


@on("public-duckdb", "private-postgres")
def test_ctrl_c_in_psql_ends_the_engines_work(watched: tuple[Watched, str]) -> None:
    watch, sql = watched
    before = _left(watch.served)
    with _psql(watch.served, sql.format(next(_number))) as psql:
        watch.wait(at_work=True)
        psql.send_signal(signal.SIGINT)
        said = psql.communicate(timeout=WAIT)[0]
    assert "the statement was cancelled" in said
    watch.wait(at_work=False)
    assert ("nothing was charged" in said) is (sql is _PUBLIC)
    assert (_left(watch.served) == before) is (sql is _PUBLIC)


@on("private-duckdb")
def test_a_closed_socket_ends_the_engines_work(watched: tuple[Watched, str]) -> None:
    watch, sql = watched
    connection = watch.served.connect()
    try:
        connection.pgconn.send_query(sql.format(next(_number)).encode())
        watch.wait(at_work=True)
        with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as own:
            own.shutdown(socket.SHUT_RDWR)
        watch.wait(at_work=False)
    finally:
        connection.close()


@on("private-duckdb", "public-postgres")
def test_statement_timeout_ends_the_engines_work(watched: tuple[Watched, str]) -> None:
    watch, sql = watched
    with watch.served.connect() as connection:
        connection.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(sql.format(next(_number)).encode())
        watch.wait(at_work=False)

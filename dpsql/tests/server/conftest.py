"""`dpsql serve` as a process of its own, over a small DuckDB dataset; a real ledger and a real policy file."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.forked import Forked
from dpsql.tests.support.prototype import made_once

PASSWORD = "correct horse"
COUNT = "SELECT COUNT(*) AS n FROM person"
SLOW = "SELECT COUNT(*) FROM number AS a, number AS b WHERE a.i * b.i % 7 = 3"
"""A minute's work."""
CHARGED = f"SELECT COUNT(*) FROM ({COUNT}) AS t, number AS a, number AS b, number AS c WHERE a.i * b.i % 7 = c.i + t.n"
"""A charge, and then hours of post-processing."""
POLICY = f"""
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 1000
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 120] }}
city = {{ values = ["north", "south"] }}
[tables.number]
public = true
[tables.thing]
public = true
[analysts.alice]
epsilon = 500
password = "{make_verifier(PASSWORD).text()}"
[analysts.poor]
epsilon = 0.15
password = "{make_verifier(PASSWORD).text()}"
[analysts.nameless]
epsilon = 1
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, city TEXT);
INSERT INTO person SELECT i, i % 100, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END FROM range(2000) AS r(i);
CREATE TABLE number (i BIGINT);
INSERT INTO number SELECT i FROM range(30000) AS r(i);
CREATE TABLE thing (
    small SMALLINT, whole INTEGER, big BIGINT, money DECIMAL(9, 2), single REAL, double DOUBLE,
    flag BOOLEAN, name TEXT, day DATE, moment TIMESTAMP);
INSERT INTO thing VALUES
    (1, 2, 9007199254740993, 12.50, 1.5, 0.1, true, 'ä ''quoted''', '2020-02-29', '2020-02-29 12:30:00.000001');
"""


@dataclass
class Served:
    """A running server: its port, the first line of its log and the others."""

    port: int
    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    first: dict[str, Any] = field(default_factory=dict)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.address(**options), autocommit=True)

    def address(self, **options: Any) -> dict[str, Any]:
        usual = {"host": "127.0.0.1", "port": self.port, "user": "alice", "password": PASSWORD}
        return {**usual, "dbname": "people", "sslmode": "disable", **options}

    def psql(self, sql: str, *options: str, env: dict[str, str] | None = None) -> str:
        """Return what psql shows of a script, errors in their place."""
        done = subprocess.run(
            ["psql", "-X", "-h", "127.0.0.1", "-p", str(self.port), "-U", "alice", "-d", "people", *options],
            input=sql, env={"PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8", **(env or {})}, text=True, timeout=600,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        return done.stdout

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait for so many lines of the log."""
        deadline = time.monotonic() + 300
        while sum(line["event"] == event for line in self.lines) < count:
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.02)


TUNED = """
import asyncio, json, sys
from pathlib import Path
from dpsql.policy import load_policy
from dpsql.server import Options, Server
server = Server([load_policy(Path(sys.argv[1]))], Options(port=0, **json.loads(sys.argv[2])))
asyncio.run(server.run())
"""


@contextmanager
def run_server(policy: Path, *options: str, code: str = TUNED, **tuned: float) -> Iterator[Served]:
    """Run `dpsql serve` on a free port; at the end it stops by SIGTERM, and it has met no bug.

    `tuned`: those of `Options` that have no option of the command line, and `code` that starts with them.
    """
    arguments = ["-m", "dpsql.cli", "-P", str(policy), "serve", "--port", "0", *options]
    if tuned or code is not TUNED:
        arguments = ["-c", code, str(policy), json.dumps(tuned)]
    process = Forked(arguments, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("{"), first + process.stderr.read()
    served = Served(json.loads(first)["port"], process, first=json.loads(first))
    stream = process.stderr
    reader = threading.Thread(target=lambda: served.lines.extend(map(json.loads, iter(stream.readline, ""))))
    reader.start()
    try:
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(300) == 0
        finally:
            process.kill()
            reader.join()
            stream.close()
    assert not [line for line in served.lines if line["event"] in ("bug", "unsaid")]


@made_once
def make_dataset(folder: Path) -> Path:
    """Write database, policy and an empty ledger; return the policy's path."""
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA)
    path = folder / "people.toml"
    path.write_text(POLICY)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module")
def server(policy: Path) -> Iterator[Served]:
    with run_server(policy) as served:
        yield served


@contextmanager
def cancelling(cancel: Callable[[], object]) -> Iterator[None]:
    """Have what a connection runs in the block cancelled, by its `cancel`: again and again, until it has begun."""
    has_ended = threading.Event()

    def insist() -> None:
        while not has_ended.wait(0.02):
            cancel()

    thread = threading.Thread(target=insist)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def wait_for_a_charge(folder: Path, since: int) -> None:
    """Wait until the log of a dataset's ledger is longer than it was."""
    deadline = time.monotonic() + 300
    while length_of_log(folder) <= since:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def length_of_log(folder: Path) -> int:
    return (folder / "people.db.log").stat().st_size


Connect = Callable[..., psycopg.Connection[Any]]


@pytest.fixture
def connect(server: Served) -> Iterator[Connect]:
    """Open connections that are closed at the end."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(server.connect(**options))


@pytest.fixture
def connection(connect: Connect) -> psycopg.Connection[Any]:
    return connect()


def left(connection: psycopg.Connection[Any]) -> str:
    """Return what is left of the analyst's budget."""
    row = connection.execute("SHOW dpsql.budget").fetchone()
    assert row is not None
    return str(row[0]).split()[0]


needs_psql = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")

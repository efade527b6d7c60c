"""One small dataset, served twice: from a DuckDB file and from a real Postgres with the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.dataset import open_ledger
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.postgres_copy import copy_rows, copy_schema
from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers

from ..conftest import PASSWORD, Served, run_server
from ..test_channel import Pair, make_pair

ROWS = 20_000
"""Of the table `number`: more than any client takes at once."""
SCHEMA = f"""
CREATE TABLE person (
    id INTEGER PRIMARY KEY, age INTEGER NOT NULL, city TEXT, income DECIMAL(9, 2), height DOUBLE, born DATE,
    active BOOLEAN);
INSERT INTO person
    SELECT i, i % 100, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END, (i % 1000) * 1.25, 1.5 + (i % 50) / 100,
        DATE '1950-01-01' + CAST(i % 20000 AS INTEGER), i % 3 = 0
    FROM range(2000) AS r(i);
CREATE TABLE loan (
    loan_id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), amount INTEGER, taken TIMESTAMP);
INSERT INTO loan SELECT i, i % 2000, i % 90, TIMESTAMP '2024-01-01' + to_hours(CAST(i AS INTEGER)) FROM range(4000) AS r(i);
CREATE TABLE number (i BIGINT PRIMARY KEY);
INSERT INTO number SELECT i FROM range({ROWS}) AS r(i);
CREATE TABLE thing (
    id INTEGER PRIMARY KEY, small SMALLINT, whole INTEGER, big BIGINT, money DECIMAL(9, 2), single REAL, double DOUBLE,
    flag BOOLEAN, name TEXT, day DATE, moment TIMESTAMP);
INSERT INTO thing VALUES
    (1, 1, 2, 9007199254740993, 12.50, 1.5, 0.1, true, 'ä ''quoted''', '2020-02-29', '2020-02-29 12:30:00.000001'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""
POLICY = """
database = "{database}"
ledger = "sqlite:people.db"
dataset = "people"
[privacy]
epsilon = 9000
delta = 0.01
[server]
grid = false
[tables.person]
unit = "id"
description = "one row each"
[tables.person.columns]
age = {{ bounds = [0, 120], description = "in years" }}
city = {{ values = ["north", "south"] }}
income = {{ bounds = [0, 2000] }}
height = {{ bounds = [1, 2.5], step = 0.01 }}
born = {{ bounds = [1900-01-01, 2020-12-31] }}
active = {{}}
[tables.loan]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
max_rows_per_group = 3
max_groups = 2
[tables.loan.columns]
loan_id = {{}}
amount = {{ bounds = [0, 100] }}
taken = {{ bounds = [2024-01-01T00:00:00, 2025-01-01T00:00:00] }}
[tables.number]
public = true
[tables.thing]
public = true
[analysts.alice]
epsilon = 8000
password = "{verifier}"
"""
SLOW = "SELECT COUNT(*) FROM number AS a, number AS b, number AS c WHERE a.i * b.i % 7 = c.i % 7"
"""Some minutes' work."""


def _serve(folder: Path, database: str, pair: Pair | None) -> Iterator[Served]:
    path = folder / "people.toml"
    path.write_text(POLICY.format(database=database, verifier=make_verifier(PASSWORD).text()))
    open_ledger(load_policy(path), create=True).close()
    options = ("--certificate", str(pair.certificate), "--key", str(pair.key)) if pair else ()
    with run_server(path, *options) as server:
        yield server


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair | None:
    """The certificate of both servers; None where nothing can make one."""
    return make_pair(tmp_path_factory.mktemp("tls"), "server") if shutil.which("openssl") else None


@pytest.fixture(scope="session")
def on_duckdb(tmp_path_factory: pytest.TempPathFactory, pair: Pair | None) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("duckdb")
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.execute(SCHEMA)
    yield from _serve(folder, "duckdb:people.duckdb", pair)


@pytest.fixture(scope="session")
def on_postgres(
    tmp_path_factory: pytest.TempPathFactory,
    start_postgres: Callable[[Installation], PostgresServer],
    pair: Pair | None,
) -> Iterator[Served]:
    engine = start_postgres(find_servers()[-1])
    name = engine.create_database()
    with duckdb.connect() as source, engine.admin(name) as target:
        source.execute(SCHEMA)
        copy_schema(source, target)
        copy_rows(source, target)
    yield from _serve(tmp_path_factory.mktemp("postgres"), engine.create_reader(name), pair)
    engine.drop_database(name)


_ON_EACH = frozenset({"test_psycopg3", "test_growth", "test_json_arrays"})
"""The client that stands for all of them, and what is about the engine behind."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put other clients under `long` over Postgres: what they read is the server's own words, whatever engine is
    behind it."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == Path(__file__).parent:
            of = item.callspec.params if hasattr(item, "callspec") else {}
            if of.get("served") == "postgres" and item.path.stem not in _ON_EACH:
                item.add_marker(pytest.mark.long)


@pytest.fixture(params=["duckdb", "postgres"])
def served(request: pytest.FixtureRequest) -> Served:
    """The server, over each engine."""
    found: Served = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.fixture
def spent(served: Served) -> Callable[[], Decimal]:
    """Give a function that says how much epsilon was charged since it was called last."""
    with served.connect() as connection:

        def read() -> Decimal:
            row = connection.execute("SHOW dpsql.budget").fetchone()
            assert row is not None
            return Decimal(str(row[0]).split()[0])

        left = [read()]

        def since() -> Decimal:
            left.append(read())
            return left[-2] - left[-1]

        yield since


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


THING = (1, 1, 2, 9007199254740993, Decimal("12.50"), 1.5, 0.1, True, "ä 'quoted'", date(2020, 2, 29),
         datetime(2020, 2, 29, 12, 30, 0, 1))  # fmt: skip
"""The first row of `thing`, as Python drivers read it; the second is its number and NULLs."""
VALUES = dict(
    zip(
        ("small", "whole", "big", "money", "single", "double", "flag", "name", "day", "moment"),
        THING[1:],
        strict=True,
    )
)

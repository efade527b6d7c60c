"""Forms and aggregates above the release and on public tables: what a real Postgres answers, letter for letter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import Refusal
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_fixtures import postgres, start_postgres
from dpsql.tests.support.postgres_server import PostgresServer

__all__ = ["postgres", "start_postgres"]

POLICY = """
database = "duckdb:shop.duckdb"
ledger = "sqlite:{folder}/shop.db"
[privacy]
epsilon = 9000
delta = 1e-3
[tables.student]
unit = "id"
[tables.student.columns]
major = {{ values = ["a", "b", "c"] }}
gpa = {{ bounds = [0, 4] }}
[tables.t]
public = true
[tables.emp]
public = true
[tables.nothing]
public = true
"""
COLUMNS = "id int, name text, n int, d date, b boolean, x double precision, big bigint, dec numeric(9,2), ts timestamp"
EMPLOYEES = [(1, None, "ann"), (2, 1, "bob"), (3, 1, "cat"), (4, 2, "dan"), (5, 4, "eve")]

STATEMENTS = tuple(
    line
    for line in (Path(__file__).parent / "forms_above.sql").read_text().splitlines()
    if line and not line.startswith("--")
)


def made_rows(count: int) -> list[tuple[Any, ...]]:
    """Return rows with NULLs, ties and repeats, the same each time."""
    rng = random.Random(18)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    rows: list[tuple[Any, ...]] = []
    for number in range(1, count + 1):
        day = date(2024, 1, 29) + timedelta(days=rng.randrange(6) * 9)
        moment = datetime(2024, 2, 27, 22) + timedelta(hours=rng.randrange(9) * 5)
        rows.append(
            (number, maybe(rng.choice("abxy")), maybe(rng.randrange(-2, 6)), maybe(day), maybe(rng.random() < 0.5),
             maybe(rng.randrange(-6, 9) / 4), maybe(rng.randrange(-9, 9) * 10**9),
             maybe(Decimal(rng.randrange(-400, 400)) / 100), maybe(moment))
        )  # fmt: skip
    return rows


def tables(major_of: str) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
    yield f"CREATE TABLE t ({COLUMNS})", made_rows(40)
    yield f"CREATE TABLE nothing ({COLUMNS})", ()
    yield "CREATE TABLE emp (id int, boss int, name text)", EMPLOYEES
    yield (
        "CREATE TABLE student (id int PRIMARY KEY, major text, gpa double precision)",
        [(i, "abc"[i % 3], float(i % 5)) for i in range(30)],
    )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("forms")
    policy = parse_policy(POLICY.format(folder=folder), folder / "shop.toml")
    with duckdb.connect() as connection:
        for create, rows in tables("duckdb"):
            connection.execute(create)
            name = create.split()[2]
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", list(row))
        dataset = Dataset(policy, DuckDBBackend.over(connection), open_ledger(policy, create=True))
        with Session(dataset, _noise=ZeroNoise()) as opened:
            yield opened


@pytest.fixture(scope="module")
def oracle(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with postgres.admin(postgres.create_database()) as connection:
        connection.execute("SET timezone = 'UTC'")
        for create, rows in tables("postgres"):
            connection.execute(create.replace("name text", 'name text COLLATE "C"'))
            name = create.split()[2]
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
        yield connection


def plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return round(float(value), 8)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value


def shown(rows: Sequence[Sequence[Any]], *, ordered: bool) -> list[list[Any]]:
    found = [[plain(value) for value in row] for row in rows]
    return found if ordered else sorted(found, key=repr)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_postgres_answers_the_same(
    session: Session, oracle: psycopg.Connection[tuple[Any, ...]], sql: str
) -> None:
    ordered = "ORDER BY" in sql.rpartition(")")[2]
    before = session.budget().epsilon_spent_nano
    answer = session.execute(sql)
    cursor = oracle.execute(sql.encode())
    assert shown(answer.rows, ordered=ordered) == shown(cursor.fetchall(), ordered=ordered)
    assert [column.name for column in answer.columns] == [column.name for column in cursor.description or ()]
    if "student" not in sql:
        assert session.budget().epsilon_spent_nano == before


REFUSED = (
    ("SELECT string_agg(major, ',') FROM student", "PV001"),
    ("SELECT array_agg(gpa) FROM student", "PV001"),
    ("SELECT s.major FROM student s, LATERAL (SELECT s.gpa AS g) x", "PV004"),
    ("SELECT t.id, x.c FROM t, LATERAL (SELECT count(*) AS c FROM student s WHERE s.gpa > t.n) x", "PV004"),
    ("SELECT t.id, (SELECT count(*) FROM student s WHERE s.gpa > t.n) FROM t", "PV004"),
    ("SELECT count(*) FROM student WHERE gpa > ALL (SELECT n FROM t)", "0A000"),
    ("SELECT id, g FROM student, generate_series(1, id) g", "PV004"),
    ("WITH RECURSIVE r AS (SELECT id FROM student UNION ALL SELECT id + 1 FROM r WHERE id < 3) SELECT count(*) FROM r", "PV003"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + 1 FROM r JOIN student s ON s.gpa = r.n) SELECT count(*) FROM r", "PV003"),
    ("SELECT DISTINCT ON (major) gpa FROM student ORDER BY major", "PV003"),
    ("SELECT sum(gpa) OVER (PARTITION BY id ORDER BY gpa RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM student", "PV002"),
    ("SELECT count(*) FROM generate_series(1, 2000000)", "54000"),
    ("SELECT count(*) FROM t, generate_series(1, t.n * 1000000)", "54000"),
    ("SELECT count(*) FROM t, generate_series(1, t.n + 10000)", "54000"),
    ("SELECT count(*) FROM generate_series(1, 5, 0)", "22023"),
    ("SELECT count(*) FROM t WHERE name ~ '((a{1,100}){1,100}){1,100}b'", "22023"),
    ("SELECT count(*) FROM t WHERE name ~ '((a{1,100}|b){1,10}c){1,10}'", "22023"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + g FROM r, generate_series(1, 1000) g) SELECT count(*) FROM r", "54001"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n + g) % 9 FROM r, generate_series(1, 300000) g) SELECT n FROM r", "54001"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT count(*) FROM r) SELECT * FROM r", "42P19"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n FROM r a, r b) SELECT * FROM r", "42P19"),
    ("SELECT id FROM t FETCH FIRST 2 ROWS WITH TIES", "42601"),
    ("SELECT DISTINCT ON (name) id FROM t ORDER BY id", "42P10"),
    ("SELECT [1, 2]", "42601"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "code"), REFUSED)
def test_what_is_not_answered_is_refused_and_free(session: Session, sql: str, code: str) -> None:
    before = session.budget().epsilon_spent_nano
    with pytest.raises(Refusal) as refused:
        session.execute(sql)
    assert refused.value.sqlstate == code
    assert session.budget().epsilon_spent_nano == before

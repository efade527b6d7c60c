"""Law L10 in every interface: what one person's rows could make grow is refused, or alike with them and without.

Neighbouring databases on each engine: `with` has one person with very many rows, `without` has them not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner

import dpsql
from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.errors import ON_THE_WIRE
from dpsql.pgwire import make_verifier
from dpsql.policy import load_policy
from dpsql.tests.support.length import long_where
from dpsql.tests.support.postgres_copy import copy_rows, copy_schema
from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers

from ..conftest import PASSWORD, run_server

SCHEMA = """
CREATE TABLE student (id INTEGER PRIMARY KEY, gpa DOUBLE NOT NULL, note TEXT);
CREATE TABLE visit (visit_id INTEGER PRIMARY KEY, student_id INTEGER NOT NULL REFERENCES student (id), minutes INTEGER);
CREATE TABLE digit (d INTEGER);
INSERT INTO student SELECT i, 2.5, 'x' FROM range(50) AS r(i);
INSERT INTO visit SELECT i, i % 50, 7 FROM range(100) AS r(i);
INSERT INTO digit SELECT i % 10 FROM range(2000) AS r(i);
"""
EXTREME = """
INSERT INTO student VALUES (4242, 3.9, repeat('ŉ', 200000));
INSERT INTO visit SELECT 1000 + i, 4242, i FROM range(3000) AS r(i);
"""
POLICY = """
database = "{database}"
ledger = "sqlite:growth.db"
dataset = "growth"
[privacy]
epsilon = 1000
delta = 0.01
[server]
grid = false
[tables.student]
unit = "id"
max_rows = 8
max_rows_per_group = 4
max_groups = 2
[tables.student.columns]
gpa = {{ bounds = [2, 4], step = 0.01 }}
note = {{}}
[tables.visit]
unit = {{ column = "student_id", references = "student.id" }}
max_rows = 8
max_rows_per_group = 4
max_groups = 2
[tables.visit.columns]
visit_id = {{}}
minutes = {{ bounds = [0, 100] }}
[tables.digit]
public = true
[analysts.alice]
epsilon = 1000
password = "{verifier}"
"""


def nested(levels: int) -> str:
    """Return a count over texts that a person's subqueries make six times longer each."""
    inner = "SELECT id, 'xxxxxxxxxxxxxxxxxxxx' AS n FROM student WHERE id = 4242 AND gpa > 3.0"
    for _ in range(levels):
        inner = f"SELECT id, MAX(concat(n, n, n, n, n, n)) AS n FROM ({inner}) AS t GROUP BY id"
    return f"SELECT COUNT(*) FROM ({inner}) AS z WHERE n > 'a'"


def copies(count: int) -> str:
    """Return a count over a table joined with itself, on the person."""
    joins = "".join(f" JOIN visit AS v{i} ON v{i}.student_id = v0.student_id" for i in range(1, count))
    return f"SELECT COUNT(*) FROM visit AS v0{joins} WHERE v0.minutes >= 0"


FANS = "SELECT COUNT(*) FROM visit" + "".join(f" CROSS JOIN digit AS d{i}" for i in range(4))
REFUSED = {nested(10): "54001", nested(5): "54001", copies(16): "PV201", copies(8): "PV201", FANS: "PV201"}
ANSWERED = (nested(2), copies(2), "SELECT COUNT(*) FROM student WHERE upper(note || note) > 'a'",
            "SELECT COUNT(*) FROM visit AS v WHERE EXISTS (SELECT 1 FROM visit AS w WHERE w.student_id = v.student_id "
            "AND w.minutes > v.minutes)")  # fmt: skip


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def policies(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    start_postgres: Callable[[Installation], PostgresServer],
) -> Iterator[tuple[Path, Path]]:
    """Give the policies of the database with the extreme person and of the one without."""
    found, names = [], []
    engine = start_postgres(find_servers()[-1]) if request.param == "postgres" else None
    for extreme in (EXTREME, ""):
        folder = tmp_path_factory.mktemp("growth")
        place = ":memory:" if engine else str(folder / "growth.duckdb")
        with duckdb.connect(place) as source:
            source.execute(SCHEMA + extreme)
            database = "duckdb:growth.duckdb"
            if engine is not None:
                names.append(engine.create_database())
                with engine.admin(names[-1]) as target:
                    copy_schema(source, target)
                    copy_rows(source, target)
                database = engine.create_reader(names[-1])
        path = folder / "growth.toml"
        path.write_text(POLICY.format(database=database, verifier=make_verifier(PASSWORD).text()))
        open_ledger(load_policy(path), create=True).close()
        found.append(path)
    yield found[0], found[1]
    for name in names:
        assert engine is not None
        engine.drop_database(name)


def by_python(policy: Path, sql: str) -> str:
    with dpsql.connect(policy, analyst="alice") as connection:
        try:
            (row,) = connection.cursor().execute(sql).fetchall()
        except dpsql.dbapi.Error as error:
            return str(getattr(error, "sqlstate", ""))
        return type(row[0]).__name__


def by_command(policy: Path, sql: str) -> str:
    done = CliRunner().invoke(program, ["-P", str(policy), "query", "--format", "json", sql])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    if done.exit_code:
        return next(code for code in ("54001", "PV201", "other") if code in done.stderr + "other")
    (row,) = json.loads(done.stdout)["rows"]
    return type(row[0]).__name__


@long_where(lambda policies, ask: (policies == "postgres") is (ask is by_command))
@pytest.mark.parametrize("ask", [by_python, by_command])
def test_a_growing_statement_is_alike_for_neighbours(
    policies: tuple[Path, Path], ask: Callable[[Path, str], str]
) -> None:
    for sql, code in REFUSED.items():
        assert [ask(policy, sql) for policy in policies] == [code, code]
    for sql in ANSWERED:
        assert [ask(policy, sql) for policy in policies] == ["int", "int"]


@long_where(lambda policies: policies == "duckdb")
def test_a_growing_statement_is_alike_over_the_wire(policies: tuple[Path, Path]) -> None:
    for policy in policies:
        with run_server(policy) as served, served.connect(dbname="growth") as connection:
            connection.execute("SET dpsql.epsilon = 0.000001")
            before = connection.execute("SHOW dpsql.budget").fetchone()
            for sql, code in REFUSED.items():
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute(sql)
                assert refused.value.sqlstate == ON_THE_WIRE.get(code, code)
            assert connection.execute("SHOW dpsql.budget").fetchone() == before
            for sql in ANSWERED:
                assert connection.execute(sql).fetchone()

"""`dpsql serve` and `dpsql query` on a real Spark: what an analyst writes is data to it.

The words that Spark takes for more than a text, in every place that an analyst's text or constant can reach: each
answer is that of the same statement on DuckDB, or the same refusal, and nothing is written, read or run beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import DpsqlError, Refusal
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.policy import load_policy
from dpsql.tests.support.spark_server import SparkServer

from .conftest import PASSWORD, Served, make_verifier, needs_psql, run_server

pytestmark = pytest.mark.spark

COUNT = "SELECT city, COUNT(*) AS n FROM visit GROUP BY city ORDER BY city"
POLICY = f"""
database = "{{database}}"
ledger = "sqlite:{{ledger}}.db"
[privacy]
epsilon = 9000
[defaults]
epsilon = 10
max_epsilon = 10
[tables.visit]
{{source}}unit = "person"
max_rows = 10
[tables.visit.columns]
spent = {{{{ bounds = [0, 1000] }}}}
city = {{{{ values = ["Bonn", "it's", '\\\\', "${{{{env:HOME}}}}"] }}}}
note = {{{{ max_length = 40 }}}}
[analysts.alice]
epsilon = 8000
password = "{make_verifier(PASSWORD).text()}"
"""
ROWS = r"""
SELECT i % 400 AS person, i % 13 AS spent, DATE '2026-01-01' + CAST(i % 50 AS INTEGER) AS day,
  CASE i % 4 WHEN 0 THEN 'Bonn' WHEN 1 THEN 'it''s' WHEN 2 THEN '\' ELSE '${env:HOME}' END AS city,
  CASE i % 3 WHEN 0 THEN 'x\'' OR 1=1 --' WHEN 1 THEN 'a\b%_c' ELSE '\' END AS note
FROM range(4000) AS r(i)
"""

HOSTILE = (
    "\\",
    "x\\' OR 1=1 --",
    "${env:HOME}",
    "'; INSERT OVERWRITE DIRECTORY '{folder}/out' SELECT java_method('java.lang.System', 'getenv', 'HOME') --"
    " \\' UNION ALL SELECT 1 FROM text.`/etc/passwd` /* */ ${system:user.name} :p1 X'41' \\",
)
PLACES = (
    "SELECT COUNT(*) FROM visit WHERE city = {0}",
    "SELECT COUNT(*) FROM visit WHERE note <> {0}",
    "SELECT COUNT(*) FROM visit WHERE city IN ('Bonn', {0})",
    "SELECT COUNT(*) FROM visit WHERE note > {0} OR city = {0}",
    "SELECT COUNT(*) FROM visit WHERE note LIKE {0}",
    "SELECT COUNT(*) FROM visit WHERE note LIKE {0} ESCAPE '!'",
    "SELECT COUNT(*) FROM visit WHERE note LIKE '%' || {0} || '%'",
    "SELECT COUNT(*) FROM visit WHERE position({0} IN note) > 0",
    "SELECT COUNT(*) FROM visit WHERE replace(note, {0}, 'y') = note",
    "SELECT COUNT(*) FROM visit WHERE length(note || {0}) > 20",
    "SELECT COUNT(*) FROM visit WHERE to_char(day, {0}) = '2026'",
    "SELECT COUNT(*) FROM visit WHERE coalesce(note, {0}) = {0}",
    "SELECT COUNT(*) FROM visit WHERE split_part(note, {0}, 1) = 'x'",
    "SELECT CASE WHEN note = {0} THEN 'a' ELSE {0} END AS k, COUNT(*) FROM visit GROUP BY k",
    "SELECT COUNT(*) FILTER (WHERE note = {0}), SUM(CASE WHEN city = {0} THEN spent ELSE 0 END) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE day > CAST({0} AS DATE)",
    "SELECT COUNT(*) FROM visit WHERE day AT TIME ZONE {0} > DATE '2026-01-05'",
    "SELECT {0} AS k, COUNT(*) FROM visit",
)
NAMES = (
    'SELECT COUNT(*) FROM "{0}"',
    'SELECT COUNT(*) FROM visit AS "{0}" WHERE "{0}".spent > 3',
    'SELECT COUNT(*) AS "{0}" FROM visit',
    'SELECT "{0}" FROM (SELECT city AS "{0}", spent FROM visit) AS t GROUP BY "{0}"',
    'WITH "{0}" AS (SELECT spent AS "{0}" FROM visit) SELECT SUM("{0}") FROM "{0}"',
    'SELECT SUM("{0}") FROM visit',
)
REFUSED = (
    "SELECT java_method('java.lang.System', 'getenv', 'HOME') FROM visit",
    "SELECT COUNT(*) FROM visit WHERE reflect('java.lang.System', 'exit', '1') = ''",
    "SELECT COUNT(*) FROM text.`/etc/passwd`",
    'SELECT COUNT(*) FROM "text"."/etc/passwd"',
    "INSERT OVERWRITE DIRECTORY '{folder}/out' SELECT 1",
    "SELECT COUNT(*) FROM visit; DROP TABLE visit",
    "SELECT COUNT(*) FROM visit /* ' */ -- '\nUNION ALL SELECT 1 FROM parquet.`{folder}/visit`",
    "COPY visit TO '{folder}/out'",
    "COPY visit TO PROGRAM 'touch {folder}/out'",
    "COPY (SELECT COUNT(*) FROM visit) TO '{folder}/out'",
    "SET spark.sql.variable.substitute = true",
    "SET dpsql.epsilon = '${{env:HOME}}'",
    "SET timezone = '\\'' OR 1=1 --'",
    "ADD JAR '{folder}/x.jar'",
    "CREATE TABLE out USING parquet LOCATION '{folder}/out' AS SELECT 1",
    "CACHE TABLE visit",
)


@dataclass(frozen=True)
class World:
    """One set of rows behind a Spark and in a DuckDB: the policies, and the folder in which nothing may appear."""

    folder: Path
    spark: Path
    duck: Path


def make_world(folder: Path, server: SparkServer) -> World:
    """Write the rows and both policies, and record the tables."""
    (folder / "visit").mkdir()
    with duckdb.connect(str(folder / "visit.duckdb")) as database:
        database.execute(f"CREATE TABLE visit AS {ROWS}")
        database.execute("CREATE TABLE person AS SELECT DISTINCT person AS id FROM visit")
        database.execute(f"COPY visit TO '{folder}/visit/1.parquet'")
    spark, duck = folder / "people.toml", folder / "duck.toml"
    spark.write_text(
        POLICY.format(database=server.url, ledger="spark", source=f'source = "{folder}/visit/*.parquet"\n')
    )
    duck.write_text(POLICY.format(database="duckdb:visit.duckdb", ledger="duck", source=""))
    open_ledger(load_policy(duck), create=True).close()
    command(spark, "budget", "create")
    return World(folder, spark, duck)


def command(policy: Path, *words: str) -> str:
    """Run a command and return what it shows."""
    done = subprocess.run(
        [sys.executable, "-m", "dpsql.cli", "-P", str(policy), *words], text=True, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def world(spark: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("spark-served"), spark)


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Served]:
    with run_server(world.spark) as served:
        yield served


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# --- constants and names ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sessions(world: World) -> Iterator[tuple[Session, Session]]:
    with Session(Dataset.open(world.spark)) as spark, Session(Dataset.open(world.duck)) as duck:
        yield spark, duck


def outcome(session: Session, sql: str, *parameters: object) -> Any:
    """Return a statement's rows, rounded as the noise at so large an epsilon is small, or how it is refused."""
    try:
        return sorted(map(repr, session.execute(sql, parameters).rows))
    except DpsqlError as error:
        return error.sqlstate


def exact(session: Session, sql: str) -> Any:
    """Return the exact integers that a statement's release reads, or how it is refused."""
    try:
        plan = session.explain(sql).plan
        found = []
        with session.dataset.backend.snapshot() as snapshot:
            for release in plan.releases:
                for query in release.queries(tuple(range(len(release.measurements)))):
                    parameters = ["salt"] if query.salted else []
                    found.append(
                        sorted(repr(row) for chunk in snapshot.run(query.sql, parameters) for row in chunk)
                    )
        return found
    except Refusal as refusal:
        return refusal.sqlstate


def written(world: World) -> set[str]:
    return {
        path.name
        for path in world.folder.rglob("*")
        if "-ledger" not in path.name and path.suffix not in (".db",)
    }


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_constant_is_a_text(world: World, sessions: tuple[Session, Session], place: str) -> None:
    spark, duck = sessions
    before = written(world)
    for hostile in HOSTILE:
        sql = place.format(quoted(hostile.replace("{folder}", str(world.folder))))
        assert exact(spark, sql) == exact(duck, sql), sql
    assert not (world.folder / "out").exists()
    assert {name for name in written(world) - before if not name.startswith("people")} == set()


@pytest.mark.parametrize("place", NAMES)
def test_a_hostile_name_is_a_name(world: World, sessions: tuple[Session, Session], place: str) -> None:
    spark, duck = sessions
    for hostile in HOSTILE:
        sql = place.format(hostile.replace("{folder}", str(world.folder)).replace('"', '""'))
        assert exact(spark, sql) == exact(duck, sql), sql
    assert not (world.folder / "out").exists()


@pytest.mark.parametrize("sql", REFUSED)
def test_what_reaches_beyond_the_tables_is_refused(
    world: World, sessions: tuple[Session, Session], sql: str
) -> None:
    sql = sql.replace("{folder}", str(world.folder))
    found = [outcome(session, sql) for session in sessions]
    assert found[0] == found[1]
    assert isinstance(found[0], str)
    assert not (world.folder / "out").exists()


def test_a_constant_decides_what_it_says(sessions: tuple[Session, Session]) -> None:
    """The rows have these very texts: a literal that meant another one would count none, or all."""
    spark, _ = sessions
    for text in ("x\\' OR 1=1 --", "\\"):
        ((rows,),) = exact(spark, f"SELECT COUNT(*) FROM visit WHERE note = {quoted(text)}")
        assert 1300 <= int(rows.strip("(),")) / WEIGHT <= 1340


# --- a server with real clients -----------------------------------------------------------------------------


@needs_psql
def test_psql_asks_spark(served: Served) -> None:
    shown = served.psql(f"\\d visit\n{COUNT};\nEXPLAIN {COUNT};\n")
    assert "person" in shown
    assert "Bonn" in shown
    assert "${env:HOME}" in shown
    assert "try_validate_utf8(CAST(`city` AS STRING))" in shown  # Spark's own SQL, as it is sent
    assert "ERROR" not in shown


@needs_psql
def test_psql_sends_hostile_scripts(world: World, served: Served) -> None:
    script = "".join(f"{sql.replace('{folder}', str(world.folder))};\n" for sql in REFUSED)
    script += "".join(
        f"SELECT COUNT(*) AS n FROM visit WHERE note = {quoted(text)};\n" for text in HOSTILE[:5]
    )
    shown = served.psql(script + "SELECT 41 + 1 AS alive;\n")
    assert "42" in shown
    assert os.environ.get("HOME", "/root") + "\n" not in shown
    assert "the database could not answer this statement" not in shown, (
        "refused before it is sent, or a constant"
    )
    assert not (world.folder / "out").exists()


def test_parameters_are_data(served: Served) -> None:
    sql = "SELECT COUNT(*) AS n FROM visit WHERE note = %s"
    with served.connect() as connection:
        for text in ("x\\' OR 1=1 --", "\\", "${env:HOME}", "'; DROP TABLE visit --"):
            ((count,),) = connection.execute(sql, [text]).fetchall()
            assert abs(count - (1333 if text in ("x\\' OR 1=1 --", "\\") else 0)) < 100
        with connection.cursor() as cursor, cursor.copy(f"COPY ({COUNT}) TO STDOUT") as copied:
            assert len(b"".join(copied).splitlines()) == 4


def test_the_command_line_asks_spark(world: World) -> None:
    assert "Bonn" in command(world.spark, "query", "--format", "csv", COUNT)
    assert "try_validate_utf8(CAST(`city` AS STRING))" in command(world.spark, "explain", COUNT)

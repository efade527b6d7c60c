"""One small database on every engine, for the tests that hold on all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.backends import Backend, PostgresBackend, open_backend
from dpsql.policy import LiveSchema, LiveTable
from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import Installation, PostgresServer

SECRET = "Chandler"
STUDENTS = (
    "CREATE TABLE student (id INTEGER PRIMARY KEY, name VARCHAR)",
    "CREATE SEQUENCE numbers",
    f"INSERT INTO student VALUES (1, '{SECRET}'), (2, 'Ada')",
)


@dataclass(frozen=True)
class Engine:
    """A backend over the students, and the words of its engine that differ."""

    backend: Backend
    url: str

    def series(self, count: int, name: str = "i") -> str:
        """Return a table of the numbers from 0 on."""
        if self.backend.dialect == "duckdb":
            return f"range({count}) AS r_{name}({name})"
        return f"generate_series(0, {count}::bigint - 1) AS r_{name}({name})"

    @property
    def long(self) -> str:
        """A statement that runs until it is stopped."""
        numbers = f"{self.series(10**9)}, {self.series(10**6, 'j')}"
        return f"SELECT COUNT(*) FROM {numbers} WHERE (i * j) % 7 = 3"

    def named(self, sql: str) -> str:
        """Return a statement with its names in their schema, as the printer writes them."""
        schema = "main" if self.backend.dialect == "duckdb" else "public"
        return re.sub(r"\b(student|numbers)\b", rf"{schema}.\1", sql)

    def rows(self, sql: str, *parameters: object) -> list[tuple[object, ...]]:
        """Run one statement in a snapshot of its own."""
        with self.backend.snapshot() as snapshot:
            return [row for chunk in snapshot.run(self.named(sql), parameters) for row in chunk]


_OF_EACH_MAJOR = frozenset({"test_postgres_constraints", "test_postgres_schema", "test_postgres_deployment",
                            "test_postgres_advice"})  # fmt: skip
"""What reads a catalog: majors differ there."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the oldest Postgres under `long` for what statements, transactions and faults do on the newest as on it."""
    for item in items:
        of = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if item.path.parent == Path(__file__).parent and item.path.stem not in _OF_EACH_MAJOR:
            major = of.get("engine", of.get("postgres"))
            if isinstance(major, Installation) and major != postgres_majors()[-1]:
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def students(start_postgres: Callable[[Installation], PostgresServer]) -> Callable[[Installation], str]:
    """Give the URL of a Postgres database of students, by installation; nobody writes to it."""

    @cache
    def made(installation: Installation) -> str:
        server = start_postgres(installation)
        database = server.create_database()
        with server.admin(database) as connection:
            for statement in STUDENTS:
                connection.execute(statement)
        return server.create_reader(database)

    return made


@pytest.fixture(scope="session", params=postgres_majors(), ids=lambda found: f"pg{found.major}")
def postgres(
    request: pytest.FixtureRequest, start_postgres: Callable[[Installation], PostgresServer]
) -> PostgresServer:
    """Give a running server of each major: catalogs and settings are what majors differ in."""
    return start_postgres(request.param)


@pytest.fixture(params=["duckdb", *postgres_majors()], ids=lambda p: p if p == "duckdb" else f"pg{p.major}")
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, students: Callable[[Installation], str]
) -> Iterator[Engine]:
    """Give each engine in turn; after the test its backend must be idle."""
    if request.param == "duckdb":
        url = f"duckdb:{tmp_path / 'campus.duckdb'}"
        with duckdb.connect(url.removeprefix("duckdb:")) as connection:
            for statement in STUDENTS:
                connection.execute(statement)
    else:
        url = students(request.param)
    backend = open_backend(url, ["student"])
    yield Engine(backend, url)
    assert backend.close_idle()


# --- a Postgres with several tables -------------------------------------------------------------------------

CAMPUS = ("student", "loan", "clinic.visit")
OURS = "FROM pg_stat_activity WHERE datname = pg_catalog.current_database() AND usename = 'reader'"
CAMPUS_SQL = """
CREATE SCHEMA clinic;
CREATE TABLE student (id integer PRIMARY KEY, name varchar);
CREATE TABLE loan (student_id integer REFERENCES student (id));
CREATE TABLE clinic.visit (student_id integer);
CREATE TABLE undeclared (x integer);
INSERT INTO student VALUES (1, 'Chandler'), (2, 'Ada');
"""


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(CAMPUS_SQL)
    postgres.create_reader(name)
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def reading(postgres: PostgresServer) -> Iterator[PostgresBackend]:
    """Give a backend for all tests that need no other database than this one."""
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute(CAMPUS_SQL)
    backend = PostgresBackend(postgres.create_reader(name), CAMPUS)
    yield backend
    assert backend.close_idle()


@pytest.fixture
def owner(postgres: PostgresServer, database: str) -> Iterator[psycopg.Connection[Any]]:
    with postgres.admin(database) as connection:
        yield connection


@pytest.fixture
def backend(postgres: PostgresServer, database: str) -> Iterator[PostgresBackend]:
    backend = PostgresBackend(postgres.url(database, "reader"), CAMPUS)
    yield backend
    assert backend.close_idle()


def rows(backend: PostgresBackend, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    with backend.snapshot() as snapshot:
        return [row for chunk in snapshot.run(sql, parameters) for row in chunk]


# --- a schema of a test's own ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emptied(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """Give one database for all tests of a server; each test begins with an empty schema."""
    with postgres.admin(postgres.create_database()) as connection:
        yield connection


Read = Callable[..., LiveSchema]
Table = Callable[..., LiveTable]


@pytest.fixture
def schema_of(emptied: psycopg.Connection[Any]) -> Read:
    def read(*statements: str, names: tuple[str, ...] | None = None) -> LiveSchema:
        schemas = emptied.execute(
            "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
        ).fetchall()
        for (schema,) in schemas:
            emptied.execute(f"DROP SCHEMA {schema} CASCADE")
        emptied.execute("CREATE SCHEMA public")
        for statement in statements:
            emptied.execute(statement)
        with PostgresBackend.over(emptied, names).snapshot() as snapshot:
            return snapshot.schema()

    return read


@pytest.fixture
def table_of(schema_of: Read) -> Callable[..., LiveTable]:
    def read(*statements: str) -> LiveTable:
        (table,) = schema_of(*statements).tables
        return table

    return read

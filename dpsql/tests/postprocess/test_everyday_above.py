"""Sixty statements that analysts write above a release, over the demo with its tables public: as a real Postgres has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.types.string import TextLoader

from dpsql.backends import DuckDBBackend
from dpsql.cli.demo import write_database
from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.tests.support.postgres_fixtures import postgres, start_postgres
from dpsql.tests.support.postgres_server import PostgresServer

from .test_forms_above import shown

__all__ = ["postgres", "start_postgres"]

STATEMENTS = tuple((Path(__file__).parent / "everyday_above.sql").read_text(encoding="utf-8").splitlines())
TABLES = {"student": "id", "loan": "student_id", "enrolment": "student_id", "course": "id"}
POLICY = """
database = "duckdb:campus.duckdb"
ledger = "sqlite:{folder}/campus.db"
[privacy]
epsilon = 1
[tables.person]
unit = "id"
""" + "".join(f"[tables.{name}]\npublic = true\n" for name in TABLES)

_TEXT = 'text COLLATE "C"'


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A few hundred of the demo's students, and what belongs to them."""
    path = tmp_path_factory.mktemp("campus") / "demo.duckdb"
    write_database(path)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        connection.execute(f"ATTACH '{path}' AS demo (READ_ONLY)")
        for name, key in TABLES.items():
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM demo.{name} WHERE {key} <= 800")
        connection.execute("DETACH demo")
        yield connection


@pytest.fixture(scope="module")
def session(campus: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("everyday")
    policy = parse_policy(POLICY.format(folder=folder), folder / "campus.toml")
    with Session(Dataset(policy, DuckDBBackend.over(campus), open_ledger(policy, create=True))) as opened:
        yield opened


@pytest.fixture(scope="module")
def oracle(
    campus: duckdb.DuckDBPyConnection, postgres: PostgresServer
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with postgres.admin(postgres.create_database()) as connection:
        connection.execute("SET timezone = 'UTC'")
        for kind in ("json", "jsonb"):
            connection.adapters.register_loader(kind, TextLoader)
        for name in TABLES:
            columns = campus.execute(f"DESCRIBE {name}").fetchall()
            types = (f"{column} {_TEXT if type_ == 'VARCHAR' else type_}" for column, type_, *_ in columns)
            connection.execute(f"CREATE TABLE {name} ({', '.join(types)})".encode())
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for row in campus.execute(f"SELECT * FROM {name}").fetchall():
                    copy.write_row(row)
        yield connection


@pytest.mark.parametrize("sql", STATEMENTS)
def test_postgres_answers_the_same(
    session: Session, oracle: psycopg.Connection[tuple[Any, ...]], sql: str
) -> None:
    ordered = "ORDER BY" in sql.rpartition(")")[2]
    answer, cursor = session.execute(sql), oracle.execute(sql.encode())
    assert shown(answer.rows, ordered=ordered) == shown(cursor.fetchall(), ordered=ordered)
    assert [column.name for column in answer.columns] == [column.name for column in cursor.description or ()]

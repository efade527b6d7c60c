"""What one analyst does not see, by DB-API and SQLAlchemy: neither answers nor metadata have it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
import sqlalchemy

import dpsql
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
salary = { bounds = [0, 9000] }
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 5
[tables.visit.columns]
days = { bounds = [0, 9] }
[tables.ward]
public = true
[analysts.alice]
epsilon = 5
tables = ["visit", "ward"]
hide = ["ward.code"]
[analysts.carol]
epsilon = 5
hide = ["person.salary"]
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, salary INTEGER);
CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), days INTEGER);
CREATE TABLE ward (name VARCHAR PRIMARY KEY, code VARCHAR UNIQUE);
INSERT INTO person SELECT i, 40, 1000 FROM range(50) t(i);
INSERT INTO visit SELECT i, 3 FROM range(50) t(i);
INSERT INTO ward VALUES ('a', 'secret');
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as made:
        made.execute(SCHEMA)
    found = tmp_path / "people.toml"
    found.write_text(POLICY)
    open_ledger(load_policy(found), create=True).close()
    return found


def test_the_schema_is_what_the_analyst_sees(path: Path) -> None:
    with dpsql.connect(path, "alice") as connection:
        assert [row[0] for row in connection.execute("SHOW TABLES")] == ["visit", "ward"]
        assert [row[0] for row in connection.execute("DESCRIBE ward")] == ["name"]
        with pytest.raises(dpsql.ProgrammingError, match='table "person" does not exist'):
            connection.execute("DESCRIBE person")
        sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        seen = connection.execute(sql).fetchall()
        assert {row.table_name for row in seen} == {"visit", "ward"}
        assert "code" not in {row.column_name for row in seen}
        shown = connection._repr_html_()
        assert ">visit</td>" in shown
        assert ">person</td>" not in shown


def test_a_connection_answers_what_its_analyst_sees(path: Path) -> None:
    with dpsql.connect(path, analyst="alice") as connection:
        cursor = connection.cursor()
        assert cursor.execute("SELECT COUNT(*) FROM visit").fetchall()
        assert cursor.execute("SELECT * FROM ward").fetchall() == [("a",)]
        with pytest.raises(dpsql.ProgrammingError, match='table "person" does not exist'):
            cursor.execute("SELECT COUNT(*) FROM person")
        with pytest.raises(dpsql.ProgrammingError, match='column "code" does not exist'):
            cursor.execute("SELECT code FROM ward")
    with dpsql.connect(path, analyst="carol") as connection:
        cursor = connection.cursor()
        assert cursor.execute("SELECT AVG(age) FROM person").fetchall()
        with pytest.raises(dpsql.ProgrammingError, match='column "salary" does not exist'):
            cursor.execute("SELECT AVG(salary) FROM person")


def test_reflection_shows_what_its_analyst_sees(path: Path) -> None:
    engine = sqlalchemy.create_engine(f"dpsql:///{path}?analyst=alice")
    try:
        inspector = sqlalchemy.inspect(engine)
        assert inspector.get_table_names() == ["visit", "ward"]
        assert [column["name"] for column in inspector.get_columns("ward")] == ["name"]
        assert inspector.get_unique_constraints("ward") == []
        assert inspector.get_foreign_keys("visit") == []
        assert "person." not in str(inspector.get_table_comment("visit"))
        assert "person." not in str(inspector.get_columns("visit"))
        with pytest.raises(sqlalchemy.exc.NoSuchTableError):
            inspector.get_columns("person")
    finally:
        engine.dispose()

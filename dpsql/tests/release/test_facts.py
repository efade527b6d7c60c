"""What a verifier is told of a database: what its engine enforces for all rows, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.backends import DuckDBBackend, PostgresBackend
from dpsql.policy import Policy, parse_policy
from dpsql.release import facts
from dpsql.release.facts import read_facts
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read
from dpsql.verify.certificate import ForeignKey, Unit

POLICY = """
database = "{url}"
[privacy]
epsilon = 10
delta = 1e-6
neighbours = "replace-one"
together = 2
accounting = "zcdp"
[tables.person]
unit = "id"
[tables.visit]
unit = {{ column = "person", references = "person.id" }}
[tables.drug]
unit = {{ column = "visit", references = "visit.id" }}
[tables.place]
public = true
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT UNIQUE, height DOUBLE PRECISION UNIQUE, born DATE NOT NULL);
CREATE TABLE visit (
  id BIGINT PRIMARY KEY, person INTEGER NOT NULL REFERENCES person (id), day DATE, UNIQUE (person, day)
);
CREATE TABLE drug (visit BIGINT, amount DECIMAL(8, 2));
CREATE TABLE place (code VARCHAR PRIMARY KEY);
"""
LOOSE = """
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
ALTER TABLE place ALTER COLUMN code TYPE text COLLATE loose
"""


def policy(url: str = "duckdb:people.duckdb", text: str = POLICY) -> Policy:
    return parse_policy(text.format(url=url), Path("people.toml"))


def read(backend: Any, said: Policy | None = None) -> Any:
    with backend.snapshot() as snapshot:
        return read_facts(snapshot, said or policy(), lambda *asked: None)


@pytest.fixture
def database() -> Any:
    with duckdb.connect() as connection:
        yield connection


def test_of_duckdb(database: duckdb.DuckDBPyConnection) -> None:
    database.execute(SCHEMA.replace("UNIQUE, born", "UNIQUE CHECK (height < 3), born"))
    found = read(DuckDBBackend.over(database))
    assert (found.engine, found.neighbours, found.together, found.accounting) == (
        "duckdb", "replace-one", 2, "zcdp",
    )  # fmt: skip
    person, visit, drug = (found.tables[f"main.{name}"] for name in ("person", "visit", "drug"))
    assert person.columns == {"id": "INTEGER", "name": "VARCHAR", "height": "DOUBLE", "born": "DATE"}
    assert person.unique == (("id",), ("name",)), "equal doubles need not be one value"
    assert person.not_null == ("id", "born")
    assert person.checks == ("(height < 3)",)
    assert person.unit == Unit(("id",))
    assert visit.unique == (("id",), ("person", "day"))
    assert visit.foreign_keys == (ForeignKey(("person",), "main.person", ("id",)),)
    assert visit.unit == Unit(("person",)), "it holds the person's own number"
    assert drug.unit == Unit(("visit",), "main.visit", ("id",))
    assert found.tables["main.place"].unit is None


def test_a_collated_text_is_no_key(database: duckdb.DuckDBPyConnection) -> None:
    database.execute(SCHEMA.replace("name TEXT UNIQUE", "name TEXT COLLATE NOCASE UNIQUE"))
    person = read(DuckDBBackend.over(database)).tables["main.person"]
    assert person.unique == (("id",),)
    assert person.columns["name"] == "VARCHAR COLLATE unknown"


def test_of_postgres_what_holds_for_all_rows_alone(postgres: PostgresServer) -> None:
    database = postgres.create_database()
    with postgres.admin(database) as owner:
        owner.execute(
            SCHEMA.encode()
            + b"""
            CREATE DOMAIN day AS date; ALTER TABLE visit ADD COLUMN seen day, ADD COLUMN code varchar(9);
            ALTER TABLE visit ADD COLUMN late integer UNIQUE DEFERRABLE INITIALLY DEFERRED;
            CREATE UNIQUE INDEX late_days ON visit (day) WHERE day > '2020-01-01';
            CREATE UNIQUE INDEX lowered ON visit (lower(code));
            CREATE UNIQUE INDEX both_ids ON visit (code, seen) INCLUDE (day);
            ALTER TABLE visit ADD CHECK (code < 'b'), ADD CHECK (late > 0) NOT VALID;
            CREATE TYPE kind AS ENUM ('a', 'b''c'); ALTER TABLE drug ADD COLUMN kind kind;
            """
        )
        if postgres.has_icu():
            owner.execute(LOOSE.encode())
        let_read(owner, "public")
    backend = PostgresBackend(postgres.url(database, READER), ["person", "visit", "drug", "place"])
    found = read(backend, policy("postgresql://reader@h/d"))
    assert backend.close_idle()
    visit = found.tables["public.visit"]
    assert set(visit.unique) == {("id",), ("person", "day"), ("code", "seen")}
    assert visit.columns == {
        "id": "bigint", "person": "integer", "day": "date", "seen": "date", "code": "character varying(9)",
        "late": "integer",
    }  # fmt: skip
    assert visit.not_null == ("id", "person")
    assert visit.checks == ("((code)::text < 'b'::text)",), (
        "of the other nobody has looked at the rows that were there"
    )
    assert found.tables["public.drug"].unit == Unit(("visit",), "public.visit", ("id",))
    assert found.tables["public.drug"].columns["kind"] == "ENUM('a', 'b''c')"
    place = found.tables["public.place"]
    if postgres.has_icu():
        assert (place.unique, place.columns) == ((), {"code": "text COLLATE loose"})
    else:
        assert (place.unique, place.columns) == ((("code",),), {"code": "character varying"})
    assert found.tables["public.person"].unique == (("id",), ("name",))


def test_a_table_of_which_nothing_is_enforced_for_all_rows_is_left_out(postgres: PostgresServer) -> None:
    database = postgres.create_database()
    with postgres.admin(database) as owner:
        owner.execute(SCHEMA.encode() + b"CREATE TABLE more () INHERITS (person);")
        let_read(owner, "public")
    backend = PostgresBackend(postgres.url(database, READER), ["person", "visit", "drug", "place"])
    found = read(backend, policy("postgresql://reader@h/d"))
    assert backend.close_idle()
    assert "public.person" not in found.tables
    assert "public.visit" in found.tables


def test_it_is_short_and_shares_nothing_with_plans() -> None:
    source = Path(facts.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 220, "it has to be believed"
    tree = ast.parse(source)
    typing_only = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [
        node
        for part in tree.body
        if part not in typing_only
        for node in ast.walk(part)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert sorted(str(node.module) for node in imports) == [
        "backends.spark_tables", "errors", "verify.certificate",
    ]  # fmt: skip

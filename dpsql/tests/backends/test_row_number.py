"""Each way in which a number of a person's rows would hold nothing is refused, by a sentence of its own, on both engines
(soundness.md 1.39): each was seen to let a person have more rows between 1 and R than R. Those of files are among the
laws (`tests/laws/test_numbered_files.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dpsql.backends import DuckDBBackend, PostgresBackend
from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check, parse_policy
from dpsql.relation.catalog import RowNumber
from dpsql.tests.support.postgres_server import PostgresServer

POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.visit]
unit = { column = "owner", references = "person.id" }
row_number = "n"
max_rows = 3
columns = { g = {} }
"""
KEY = "CREATE TABLE person (id INTEGER PRIMARY KEY, code INTEGER UNIQUE NOT NULL); "
WHOLE = "CREATE TABLE visit (owner INTEGER NOT NULL, n INTEGER NOT NULL, g INTEGER, PRIMARY KEY (owner, n))"

ON_BOTH = {
    "a decimal": (WHOLE.replace("n INTEGER", "n NUMERIC(9, 2)"), "(9,2), of which many values may lie between 1 and 2"),
    "a double": (WHOLE.replace("n INTEGER", "n DOUBLE PRECISION"), "of which many values may lie between 1 and 2"),
    "NULL numbers": (
        "CREATE TABLE visit (owner INTEGER NOT NULL, n INTEGER, g INTEGER, UNIQUE (owner, n))",
        '"n" may be NULL',
    ),
    "NULL owners": (
        "CREATE TABLE visit (owner INTEGER, n INTEGER NOT NULL, g INTEGER, UNIQUE (owner, n))",
        '"owner" may be NULL',
    ),
    "no key": (WHOLE.replace(", PRIMARY KEY (owner, n)", ""), "no PRIMARY KEY or UNIQUE constraint"),
    "a wider key": (WHOLE.replace("(owner, n)", "(owner, n, g)"), "no PRIMARY KEY or UNIQUE constraint"),
    "a CHECK alone": (
        WHOLE.replace("PRIMARY KEY (owner, n)", "CHECK (n BETWEEN 1 AND 3)"),
        "no PRIMARY KEY or UNIQUE constraint",
    ),
    "no column": (WHOLE.replace("n INTEGER NOT NULL", "no INTEGER").replace(", n)", ")"), 'has no column "n"'),
    "a view": (
        WHOLE.replace("TABLE visit", "TABLE base") + "; CREATE VIEW visit AS SELECT * FROM base",
        "is a view",
    ),
}  # fmt: skip
ON_POSTGRES = {
    "deferrable": (WHOLE.replace("(owner, n))", "(owner, n) DEFERRABLE)"), "is DEFERRABLE"),
    "partial": (
        WHOLE.replace(", PRIMARY KEY (owner, n)", "") + "; CREATE UNIQUE INDEX ON visit (owner, n) WHERE n < 4",
        "is of some rows alone",
    ),
    "an expression": (
        WHOLE.replace(", PRIMARY KEY (owner, n)", "") + "; CREATE UNIQUE INDEX ON visit (owner, (n + 0))",
        "is of an expression",
    ),
    "invalid": (
        WHOLE.replace(", PRIMARY KEY (owner, n)", "") + "; CREATE UNIQUE INDEX i ON visit (owner, n); "
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass",
        "is not valid",
    ),
    "invalid on a partition": (
        WHOLE + " PARTITION BY HASH (owner); CREATE TABLE part PARTITION OF visit FOR VALUES WITH (MODULUS 1, REMAINDER 0); "
        "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'part'::regclass",
        "is not valid",
    ),
    "on a partition alone": (
        WHOLE.replace(", PRIMARY KEY (owner, n)", "") + " PARTITION BY HASH (owner); CREATE TABLE part PARTITION OF visit "
        "FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE UNIQUE INDEX ON part (owner, n)",
        "no PRIMARY KEY or UNIQUE constraint",
    ),
    "a child": (WHOLE + "; CREATE TABLE child () INHERITS (visit)", "has inheritance children"),
    "a materialized view": (
        WHOLE.replace("TABLE visit", "TABLE base") + "; CREATE MATERIALIZED VIEW visit AS SELECT * FROM base",
        "is a materialized view",
    ),
    "computed": (
        "CREATE TABLE visit (owner INTEGER NOT NULL, g INTEGER NOT NULL, n NUMERIC GENERATED ALWAYS AS (g) STORED NOT NULL, "
        "PRIMARY KEY (owner, g))",
        "of which many values may lie between 1 and 2",
    ),
}  # fmt: skip
OWNED = 'unit = { column = "owner", references = "person.id" }'
POLICIES = {
    "a column": ("columns = { g = {} }", "columns = { n = {} }", "no statement reads it"),
    "the owner": ('row_number = "n"', 'row_number = "owner"', "says whose a row is"),
    "far owner": (
        'references = "person.id" }', 'references = "person.code" }', "the person's own key has to stand in the row",
    ),
    "no bound": ("max_rows = 3\n", "", "declare that too"),
    "public": (f"{OWNED}\nrow_number = \"n\"\nmax_rows = 3", "public = true\nrow_number = \"n\"", "nobody has several here"),
    "each row": (f"{OWNED}\nrow_number = \"n\"\nmax_rows = 3", 'unit = "row"\nrow_number = "n"', "nobody has several here"),
}  # fmt: skip


Live = Callable[[str], LiveSchema]


@pytest.fixture
def on_duckdb() -> Iterator[Live]:
    with duckdb.connect() as connection:

        def live(schema: str) -> LiveSchema:
            connection.execute(schema)
            with DuckDBBackend.over(connection).snapshot() as snapshot:
                return snapshot.schema()

        yield live


@pytest.fixture
def on_postgres(postgres: PostgresServer) -> Iterator[Live]:
    name = postgres.create_database()

    def live(schema: str) -> LiveSchema:
        with postgres.admin(name) as connection:
            connection.execute(schema)
        backend = PostgresBackend(postgres.url(name))
        with backend.snapshot() as snapshot:
            found = snapshot.schema()
        backend.close_idle()
        return found

    yield live
    postgres.drop_database(name)


def refused(folder: Path, live: LiveSchema, said: str, text: str = POLICY) -> None:
    policy = parse_policy(text, folder / "laws.toml")
    with pytest.raises(PolicyError, match=re.escape(said)):
        build_catalog(policy, live)
    assert any(said in problem for problem in check(policy, live).problems), "and check says the same"


@pytest.mark.parametrize("trap", ON_BOTH)
def test_a_trap_on_duckdb(tmp_path: Path, on_duckdb: Live, trap: str) -> None:
    schema, said = ON_BOTH[trap]
    refused(tmp_path, on_duckdb(KEY + schema), said)


@pytest.mark.parametrize("trap", [*ON_BOTH, *ON_POSTGRES])
def test_a_trap_on_postgres(tmp_path: Path, on_postgres: Live, trap: str) -> None:
    schema, said = (ON_BOTH | ON_POSTGRES)[trap]
    refused(tmp_path, on_postgres(KEY + schema), said)


def test_an_index_of_duckdb_is_no_constraint(tmp_path: Path, on_duckdb: Live) -> None:
    schema = WHOLE.replace(", PRIMARY KEY (owner, n)", "") + "; CREATE UNIQUE INDEX i ON visit (owner, n)"
    refused(tmp_path, on_duckdb(KEY + schema), "no PRIMARY KEY or UNIQUE constraint")


@pytest.mark.parametrize("key", ["PRIMARY KEY (owner, n)", "UNIQUE (n, owner)"])
def test_what_the_engine_holds_is_taken(tmp_path: Path, on_duckdb: Live, on_postgres: Live, key: str) -> None:
    schema = KEY + WHOLE.replace("PRIMARY KEY (owner, n)", key)
    for live in (on_duckdb(schema), on_postgres(schema)):
        policy = parse_policy(POLICY, tmp_path / "laws.toml")
        unit = build_catalog(policy, live).tables["visit"].unit
        assert unit is not None
        assert unit.row_number == RowNumber("n", 3)
        assert not check(policy, live).problems


@pytest.mark.parametrize("how", POLICIES)
def test_a_policy_that_means_nothing(tmp_path: Path, on_duckdb: Live, how: str) -> None:
    old, new, said = POLICIES[how]
    assert old in POLICY
    text = POLICY.replace(old, new)
    with pytest.raises(PolicyError, match=said):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), on_duckdb(KEY + WHOLE))


TIMED = POLICY.replace(
    "[defaults]", '[privacy.time]\nperiod = "month"\nsince = 2020-01-01\n[defaults]'
).replace('row_number = "n"', 'time = "seen"\nrow_number = ["month", "n"]')
WITH_MONTH = """CREATE TABLE visit (owner INTEGER NOT NULL, month DATE NOT NULL, n INTEGER NOT NULL, seen TIMESTAMP,
  g INTEGER, PRIMARY KEY (owner, month, n))"""
OF_MONTHS = {
    "NULL months": (
        WITH_MONTH.replace("month DATE NOT NULL", "month DATE").replace("PRIMARY KEY", "UNIQUE"),
        '"month" may be NULL',
    ),
    "no month in the key": (
        WITH_MONTH.replace("(owner, month, n)", "(owner, n)"),
        'no PRIMARY KEY or UNIQUE constraint of "owner", "month", "n" keeps',
    ),
    "a wider key": (WITH_MONTH.replace("month, n)", "month, n, g)"), "no PRIMARY KEY or UNIQUE constraint"),
    "the time in place of the month": (
        WITH_MONTH.replace("(owner, month, n)", "(owner, seen, n)"), "no PRIMARY KEY or UNIQUE constraint",
    ),
    "a moment": (WITH_MONTH.replace("month DATE", "month TIMESTAMP"), "of which period a row is by its first day; make it a date"),
    "a number of the month": (WITH_MONTH.replace("month DATE", "month INTEGER"), '"month" is integer, and says'),
    "no month": (WITH_MONTH.replace("month DATE", "other DATE").replace("owner, month", "owner, other"), 'has no column "month"'),
    "a decimal": (WITH_MONTH.replace("n INTEGER", "n NUMERIC(9, 2)"), "of which many values may lie between 1 and 2"),
}  # fmt: skip


@pytest.mark.parametrize("trap", OF_MONTHS)
def test_a_trap_of_periods(tmp_path: Path, on_duckdb: Live, on_postgres: Live, trap: str) -> None:
    schema, said = OF_MONTHS[trap]
    for live in (on_duckdb, on_postgres):
        refused(tmp_path, live(KEY + schema), said, TIMED)


def test_beside_a_time_a_number_has_a_period(tmp_path: Path, on_duckdb: Live, on_postgres: Live) -> None:
    for live in (on_duckdb(KEY + WITH_MONTH), on_postgres(KEY + WITH_MONTH)):
        policy = parse_policy(TIMED, tmp_path / "laws.toml")
        unit = build_catalog(policy, live).tables["visit"].unit
        assert unit is not None
        assert unit.row_number == RowNumber("n", 3, "month")
        assert not check(policy, live).problems


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('row_number = ["month", "n"]', 'row_number = "n"', "the first of them may all be of one; write two columns"),
        ('time = "seen"\nrow_number', 'row_number', 'which these have not; write "n" alone'),
        ('["month", "n"]', '["g", "month", "n"]', 'write the column of numbers, or '),
        ('["month", "n"]', '["owner", "n"]', '"owner" says whose a row is'),
        ('["month", "n"]', '["n", "n"]', "names each column of a key once"),
    ],
)  # fmt: skip
def test_which_columns_a_policy_names(tmp_path: Path, on_duckdb: Live, old: str, new: str, said: str) -> None:
    assert old in TIMED
    other = '[tables.other]\nunit = "owner"\ntime = "seen"\nmax_rows = 1\n'
    schema = on_duckdb(KEY + WITH_MONTH + "; CREATE TABLE other (owner INTEGER, seen DATE)")
    with pytest.raises(PolicyError, match=said):
        build_catalog(parse_policy(TIMED.replace(old, new) + other, tmp_path / "laws.toml"), schema)


def test_without_a_budget_by_period_a_number_is_alone(tmp_path: Path, on_duckdb: Live) -> None:
    text = POLICY.replace('row_number = "n"', 'row_number = ["month", "n"]')
    with pytest.raises(PolicyError, match='which these have not; write "n" alone'):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), on_duckdb(KEY + WITH_MONTH))


def test_a_number_that_is_computed(tmp_path: Path, on_duckdb: Live) -> None:
    schema = (
        "CREATE TABLE visit (owner INTEGER NOT NULL, g INTEGER, n INTEGER GENERATED ALWAYS AS (g) VIRTUAL)"
    )
    refused(tmp_path, on_duckdb(KEY + schema), "is computed when it is read")


@pytest.mark.parametrize("why", ["deferrable", "partial", "expression", "invalid"])
def test_why_a_key_holds_nothing(tmp_path: Path, on_duckdb: Live, why: str) -> None:
    """As a Postgres says it; a key of other columns is not what was meant."""
    live = on_duckdb(KEY + ON_BOTH["no key"][0])
    said = {
        "deferrable": 'the key of "owner", "n" is DEFERRABLE, .*; make it NOT DEFERRABLE',
        "partial": 'the key of "owner", "n" is of some rows alone',
        "expression": 'the key of "owner", "n" is of an expression',
        "invalid": 'the key of "owner", "n" is not valid',
    }
    for key, expected in (("n", "owner"), said[why]), (("owner", "g"), "no PRIMARY KEY or UNIQUE constraint"):
        tables = tuple(replace(one, loose_keys=((key, why),)) for one in live.tables)
        with pytest.raises(PolicyError, match=expected):
            build_catalog(parse_policy(POLICY, tmp_path / "laws.toml"), replace(live, tables=tables))


@pytest.mark.parametrize("nullable", ["hospital", "no"])
def test_each_column_of_a_person_is_there(tmp_path: Path, on_duckdb: Live, nullable: str) -> None:
    schema = """
        CREATE TABLE person (hospital TEXT, no INTEGER, PRIMARY KEY (hospital, no));
        CREATE TABLE visit (hospital TEXT NOT NULL, no INTEGER NOT NULL, n INTEGER NOT NULL, g INTEGER, UNIQUE (hospital, no, n))
    """
    text = POLICY.replace('unit = "id"', 'unit = ["hospital", "no"]').replace(
        OWNED, 'unit = { column = ["hospital", "no"], references = ["person.hospital", "person.no"] }'
    )
    live = on_duckdb(schema)
    unit = build_catalog(parse_policy(text, tmp_path / "laws.toml"), live).tables["visit"].unit
    assert unit is not None
    assert unit.row_number == RowNumber("n", 3)
    columns = lambda one: tuple(replace(c, not_null=c.not_null and c.name != nullable) for c in one.columns)  # noqa: E731
    tables = tuple(
        replace(one, columns=columns(one)) if one.path[1] == "visit" else one for one in live.tables
    )
    with pytest.raises(PolicyError, match='"hospital", "no" may be NULL'):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), replace(live, tables=tables))


def test_one_of_several_columns(tmp_path: Path, on_duckdb: Live) -> None:
    text = POLICY.replace("columns = { g = {} }", "columns = { g = {}, n = {} }")
    with pytest.raises(PolicyError, match="no statement reads it"):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), on_duckdb(KEY + WHOLE))

"""Attacks that Postgres alone makes possible: values that one comparison calls equal and another tells apart."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.backends import PostgresBackend
from dpsql.errors import PolicyError, Refusal
from dpsql.plan.measures.measurements import Joint, Moment
from dpsql.policy import build_catalog, parse_policy
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

from ..laws.measured import Groups, World, measure_release

_POLICY = """
database = "postgresql://reader@/attacks"
ledger = "sqlite:attacks.db"
[privacy]
epsilon = 99
delta = 0.5
[tables.person]
unit = "id"
[tables.person.columns]
id = {}
[tables.visit]
unit = { column = "who", references = "person.id" }
max_rows = 1
max_rows_per_group = 1
max_groups = 1
[tables.visit.columns]
who = {}
n = { bounds = [0, 9] }
"""
_REAL = "x = { bounds = [0, 9] }\n"
_LOOSE = """
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN spelled AS text COLLATE loose;
"""
Owner = psycopg.Connection[Any]


@contextmanager
def database(server: PostgresServer, statements: str) -> Iterator[tuple[Owner, PostgresBackend]]:
    """Give a database made by these statements, and the backend that reads it."""
    name = server.create_database()
    with server.admin(name) as owner:
        owner.execute(statements.encode())
        let_read(owner, "public")
        backend = PostgresBackend(server.url(name, READER), ["person", "visit"])
        yield owner, backend
        assert backend.close_idle()
    server.drop_database(name)


def world(backend: PostgresBackend, folder: Path, columns: str = "") -> World:
    policy = parse_policy(_POLICY + columns, folder / "attacks.toml")
    with backend.snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    return World(duckdb.connect(), None, backend, policy, catalog)


def measured(one: World, sql: str) -> dict[int, Groups]:
    """Return the exact measures of a statement, in whole rows: nobody here passes a bound."""
    (release,) = one.plan(sql).releases
    with one.backend.snapshot() as snapshot:
        found = measure_release(release, snapshot)
    fine = {number: release.measurements[number].denominator for number in found}
    assert all(value % fine[number] == 0 for number in found for (value,) in found[number].values())
    return {
        number: {key: (value // fine[number],) for key, (value,) in groups.items()}
        for number, groups in found.items()
    }


# --- whose rows these are --------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["text COLLATE loose", "spelled", "citext"])
def test_spellings_of_one_key_are_not_several_units(
    postgres: PostgresServer, tmp_path: Path, type_: str
) -> None:
    """A foreign key lets 'bob', 'Bob' and 'BOB' all mean one person, who would count three times."""
    prepared = "CREATE EXTENSION citext;" if type_ == "citext" else _LOOSE
    with postgres.admin() as administrator:
        available = "SELECT FROM pg_available_extensions WHERE name = 'citext'"
        has_citext = administrator.execute(available).fetchone() is not None
    if not (has_citext if type_ == "citext" else postgres.has_icu()):
        pytest.skip("never: this build of Postgres has no such text")
    schema = f"""
    CREATE TABLE person (id {type_} PRIMARY KEY);
    CREATE TABLE visit (who {type_} REFERENCES person, n integer);
    INSERT INTO person VALUES ('bob');
    INSERT INTO visit VALUES ('bob', 1), ('Bob', 1), ('BOB', 1)"""
    with (
        database(postgres, prepared + schema) as (_, backend),
        pytest.raises(PolicyError, match=r'"(who|id)" has a collation'),
    ):
        world(backend, tmp_path)


def test_a_number_without_a_scale_is_no_unit(postgres: PostgresServer, tmp_path: Path) -> None:
    """It is read with few decimals, at which two persons would be one; and 1.0 and 1.00 would be hashed apart."""
    schema = """
    CREATE TABLE person (id numeric PRIMARY KEY); CREATE TABLE visit (who numeric, n integer);
    INSERT INTO person VALUES (1), (1.0000001), (1.0000002)"""
    with (
        database(postgres, schema) as (_, backend),
        pytest.raises(PolicyError, match='"id" is numeric without a scale, which cannot identify a unit'),
    ):
        world(backend, tmp_path)


# --- equal numbers that are spelled apart -------------------------------------------------------------------

_NUMBERS = "CREATE TABLE person (id integer PRIMARY KEY); CREATE TABLE visit (who integer, n numeric);"
_SPELT = (
    "SELECT CAST(m AS text), COUNT(*) FROM (SELECT who, MIN(n) AS m FROM visit GROUP BY who) x GROUP BY 1",
    "SELECT CAST(n AS text), COUNT(*) FROM (SELECT who, n, ROW_NUMBER() OVER (PARTITION BY who ORDER BY n) AS k FROM visit) x WHERE k = 1 GROUP BY 1",
    "SELECT CAST(m AS text), COUNT(*) FROM (SELECT who, FIRST_VALUE(n) OVER (PARTITION BY who ORDER BY n) AS m FROM visit) x GROUP BY 1",
    "SELECT CAST(m AS text), COUNT(*) FROM (SELECT who, LAG(n) OVER (PARTITION BY who ORDER BY n) AS m FROM visit) x GROUP BY 1",
    "SELECT CAST(n AS text), COUNT(*) FROM (SELECT DISTINCT who, n FROM visit) x GROUP BY 1",
)


def in_order(owner: Owner, rows: Collection[tuple[int, str]], order: int) -> None:
    """Put a table's rows into another physical order."""
    shuffled = random.Random(order).sample(list(rows), len(rows))
    owner.execute("TRUNCATE visit")
    with owner.cursor() as cursor:
        cursor.executemany("INSERT INTO visit VALUES (%s, CAST(%s AS numeric))", shuffled)


@pytest.mark.parametrize("sql", _SPELT)
def test_a_spelling_does_not_depend_on_the_order_of_rows(
    postgres: PostgresServer, tmp_path: Path, sql: str
) -> None:
    """Of 1, 1.0 and 1.00 any may be the one that MIN, GROUP BY or a window keeps."""
    rows = [(who, f"{n}{tail}") for who in range(8) for n in (1, 2) for tail in ("", ".0", ".00", ".000")]
    with database(postgres, _NUMBERS) as (owner, backend):
        owner.execute("INSERT INTO person SELECT generate_series(0, 7)")
        one = world(backend, tmp_path)
        in_order(owner, rows, 0)
        first = measured(one, sql)
        for order in range(1, 6):
            in_order(owner, rows, order)
            assert measured(one, sql) == first


def test_no_number_is_not_larger_than_all(postgres: PostgresServer, tmp_path: Path) -> None:
    """Read as a double, a NULL once became NaN, which is above every number."""
    with database(postgres, _NUMBERS) as (owner, backend):
        owner.execute("INSERT INTO person VALUES (1), (2), (3)")
        owner.execute("ALTER TABLE visit ADD x double precision")
        owner.execute("INSERT INTO visit VALUES (1, NULL, 1), (2, 0, 1), (3, 2, 1), (1, 2, NULL)")
        one = world(backend, tmp_path, _REAL)
        assert measured(one, "SELECT COUNT(*) FROM visit WHERE n > x") == {0: {(): (1,)}}


def test_products_of_a_sum_are_wider_than_the_sum(postgres: PostgresServer, tmp_path: Path) -> None:
    """A sum of integers is a bigint, which 8·W times the sum of 80,000 values of 4,000,000 is not."""
    schema = "CREATE TABLE person (id integer PRIMARY KEY); CREATE TABLE visit (who integer, x integer, n numeric);"
    fill = "INSERT INTO visit SELECT i, 4000000 FROM generate_series(1, 80000) AS i"
    columns = "x = { bounds = [0, 4000000] }\n"
    with database(postgres, schema + fill) as (_, backend):
        one = world(backend, tmp_path, columns)
        (release,) = one.plan("SELECT VAR_POP(x) FROM visit").releases
        with backend.snapshot() as snapshot:
            found = measure_release(release, snapshot)
    (joint,) = release.measurements
    assert isinstance(joint, Joint)
    squares = [part.kind for part in joint.parts].index(Moment.kind)
    assert found[0][()][squares] == 80_000 * 4_000_000**2 * joint.denominator


# --- a role that can do more than read ----------------------------------------------------------------------


_ODD = """
CREATE TABLE person (id integer PRIMARY KEY);
CREATE TABLE visit (who integer REFERENCES person, n integer, j jsonb, long interval, b boolean, x double precision);
INSERT INTO person VALUES (1), (2);
INSERT INTO visit VALUES (1, 1, '1', '1 mon', true, NULL), (2, NULL, '1.0', '30 days', NULL, 2)"""
_ODD_COLUMNS = "j = {}\nlong = {}\nb = {}\n" + _REAL


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT j) FROM visit",
        "SELECT COUNT(DISTINCT long) FROM visit",
        "SELECT COUNT(*) FROM (SELECT DISTINCT who, long FROM visit) AS v",
        "SELECT COUNT(f) FROM (SELECT who, FIRST_VALUE(j) OVER (PARTITION BY who ORDER BY n) AS f FROM visit) AS v",
    ],
)
def test_equal_values_of_several_spellings_are_not_told_apart(
    postgres: PostgresServer, tmp_path: Path, sql: str
) -> None:
    """Which spelling is kept depends on the order of the rows, everybody's."""
    with database(postgres, _ODD) as (_, backend), pytest.raises(Refusal) as refused:
        world(backend, tmp_path, _ODD_COLUMNS).plan(sql)
    assert refused.value.sqlstate == "PV202"


@pytest.mark.parametrize(
    ("sql", "measures"),
    [
        (
            "SELECT COUNT(*) FROM (SELECT who, MIN(b) AS m, MAX(b) AS o FROM visit GROUP BY who) AS v WHERE m AND o",
            1,
        ),
        ("SELECT COUNT(*) FROM visit WHERE power(n, 0) = 1", 1),
        (
            "SELECT COUNT(l) FROM (SELECT who, lag(power(n, 2)) OVER (PARTITION BY who ORDER BY n) AS l FROM visit) AS v",
            0,
        ),
        (
            "SELECT COUNT(l) FROM (SELECT who, lag('x') OVER (PARTITION BY who ORDER BY n) AS l FROM visit) AS v",
            0,
        ),
        ("SELECT COUNT(*) FROM visit WHERE CASE WHEN n > 0 THEN TRUE ELSE NULL END", 1),
    ],
)
def test_a_value_has_its_type_in_every_place(
    postgres: PostgresServer, tmp_path: Path, sql: str, measures: int
) -> None:
    with database(postgres, _ODD) as (_, backend):
        found = measured(world(backend, tmp_path, _ODD_COLUMNS), sql)
    assert found[0] == {(): (measures,)}


def sentences(server: PostgresServer, owner: Owner, name: str) -> str:
    backend = PostgresBackend(server.url(owner.info.dbname, name), ["person", "visit"])
    found = " ".join(finding.sentence for finding in backend.findings())
    assert backend.close_idle()
    return found


def test_what_a_member_may_do_by_set_role_is_seen(postgres: PostgresServer) -> None:
    with database(postgres, _NUMBERS) as (owner, _):
        try:
            owner.execute(
                "CREATE ROLE attacks_writer; CREATE ROLE attacks_reader LOGIN NOINHERIT IN ROLE attacks_writer;"
                "GRANT INSERT ON visit TO attacks_writer; GRANT CREATE ON SCHEMA public TO attacks_writer;"
                "GRANT USAGE ON SCHEMA public TO attacks_reader; GRANT SELECT ON person, visit TO attacks_reader"
            )
            found = sentences(postgres, owner, "attacks_reader")
        finally:
            owner.execute(
                "DROP OWNED BY attacks_reader, attacks_writer; DROP ROLE attacks_reader, attacks_writer"
            )
    assert "may write to public.visit" in found
    assert "may create objects in the schema public" in found


def test_a_role_that_maintains_a_table_is_seen(postgres: PostgresServer) -> None:
    """It may lock the table against everybody."""
    if postgres.major < 17:
        pytest.skip("never: this right came with Postgres 17")
    with database(postgres, _NUMBERS) as (owner, _):
        try:
            owner.execute(
                "CREATE ROLE attacks_keeper LOGIN; GRANT USAGE ON SCHEMA public TO attacks_keeper;"
                "GRANT SELECT ON person TO attacks_keeper; GRANT SELECT, MAINTAIN ON visit TO attacks_keeper"
            )
            found = sentences(postgres, owner, "attacks_keeper")
        finally:
            owner.execute("DROP OWNED BY attacks_keeper; DROP ROLE attacks_keeper")
    assert "may write to public.visit" in found

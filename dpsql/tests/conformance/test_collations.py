"""Text is compared by its bytes, whatever collation a database or a column has: the same groups, units and joins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb
import psycopg
import pytest

from dpsql.backends import PostgresBackend
from dpsql.policy import build_catalog, parse_policy
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_copy import copy_rows
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.postgres_twin import READER, let_read

from ..laws.measured import World, fixed_intermediates, measure_release, world

_POLICY = """
database = "duckdb:collations.duckdb"
ledger = "sqlite:collations.db"
[privacy]
epsilon = 99
delta = 0.5
[tables.person]
unit = "name"
[tables.person.columns]
name = {}
city = { values = ["a", "A", "é"] }
[tables.visit]
unit = { column = "who", references = "person.name" }
max_rows = 4
max_rows_per_group = 2
max_groups = 2
[tables.visit.columns]
who = {}
city = {}
tag = {}
n = { bounds = [0, 9] }
[tables.place]
public = true
"""
_SCHEMA = """
CREATE TABLE person (name VARCHAR PRIMARY KEY, city VARCHAR);
CREATE TABLE visit (who VARCHAR, city VARCHAR, tag VARCHAR, n INTEGER);
CREATE TABLE place (city VARCHAR, zone VARCHAR);
"""
_NAMES = ["a", "b", "é", "ss", "😀", "", "z z", "10", "9"]
_ALIKE = ["A", "B", "e\u0301", "ß", "zz", "Z Z", "１０"]
_CITIES = ["a", "A", "é", "e\u0301", "á", "ß", "ss", "", " ", "a ", "Z", "z", "I", "ı"]
STATEMENTS = (
    "SELECT city, COUNT(*), SUM(n) FROM visit GROUP BY city",
    "SELECT city, tag, COUNT(*) FROM visit GROUP BY city, tag",
    "SELECT city, COUNT(*) FROM person GROUP BY city",
    "SELECT COUNT(DISTINCT tag), COUNT(DISTINCT who) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE city = 'a' OR tag IN ('ß', 'z')",
    "SELECT COUNT(*) FROM visit WHERE city < 'b' AND tag > 'A'",
    "SELECT COUNT(*) FROM visit WHERE city LIKE 'a%' OR tag LIKE '_'",
    "SELECT COUNT(*) FROM visit WHERE city = tag OR city || 'x' = tag || 'x' OR least(city, tag) = 'Z'",
    "SELECT COUNT(*) FROM visit WHERE position('s' IN city) = 1 OR nullif(tag, 'A') IS NULL OR tag IS DISTINCT FROM 'É'",
    "SELECT upper(city), COUNT(*) FROM visit GROUP BY 1",
    "SELECT p.city, COUNT(*) FROM person p JOIN visit v ON v.who = p.name GROUP BY p.city",
    "SELECT COUNT(*) FROM visit a JOIN visit b ON a.who = b.who AND a.city = b.tag",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.who = p.name AND v.city = p.city)",
    "SELECT z.zone, COUNT(*) FROM visit v JOIN place z ON z.city = v.city GROUP BY z.zone",
    "SELECT COUNT(*) FROM (SELECT who, city, ROW_NUMBER() OVER (PARTITION BY who ORDER BY city, tag, n) AS k FROM visit) t WHERE k = 3 AND city > 'a'",
    "SELECT COUNT(*) FROM visit v JOIN (SELECT city, COUNT(*) AS c FROM visit GROUP BY city) t ON t.city = v.city",
    "SELECT COUNT(*) FROM visit WHERE city = (SELECT MIN(zone) FROM place)",
)
COLLATIONS = ("default", "C", "loose", "numeric", "upper", "ignoring")
_ICU = """
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION numeric (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION upper (provider = icu, locale = 'en-u-kf-upper');
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("collations")
    with world(folder, policy=parse_policy(_POLICY, folder / "c.toml"), schema=_SCHEMA) as made:
        yield made


def fill(connection: duckdb.DuckDBPyConnection, names: list[str]) -> None:
    """Give every person visits to many places, of which a collation may think that some are one."""
    for table in ("person", "visit", "place"):
        connection.execute(f"DELETE FROM {table}")
    insert(connection, "person", [(name, _CITIES[i % 5]) for i, name in enumerate(names)])
    visits = [
        (name, _CITIES[(i + j) % len(_CITIES)], _CITIES[(3 * i + 5 * j) % len(_CITIES)], (i * j) % 11)
        for i, name in enumerate([*_NAMES, *_ALIKE])
        for j in range(12)
    ]
    insert(connection, "visit", visits)
    insert(connection, "place", [(city, city.upper()) for city in _CITIES])


def measured(one: World) -> list[object]:
    found = []
    for sql in STATEMENTS:
        plan = one.plan(sql)
        intermediates = fixed_intermediates(plan)
        with one.backend.snapshot() as snapshot:
            found.append(
                (sql, [measure_release(release, snapshot, intermediates) for release in plan.releases])
            )
    return found


def collated(name: str) -> str:
    return "" if name == "default" else f' COLLATE "{name}"'


@pytest.mark.parametrize("collation", COLLATIONS)
@pytest.mark.parametrize("locale", [None, "en-US", "tr-TR"])
def test_no_collation_changes_an_integer(
    here: World, postgres: PostgresServer, collation: str, locale: str | None
) -> None:
    if not postgres.has_icu() and (locale is not None or collation not in ("default", "C")):
        pytest.skip("notyet: this build of Postgres knows no ICU, and so no other collation")
    fill(here.connection, [*_NAMES, *_ALIKE])
    with ExitStack() as stack:
        database = postgres.create_database(icu_locale=locale)
        owner: psycopg.Connection[tuple[object, ...]] = stack.enter_context(postgres.admin(database))
        if postgres.has_icu():
            owner.execute(_ICU.encode())
        schema = _SCHEMA
        if collation in ("loose", "ignoring"):  # no key of a person may have such a collation
            schema = schema.replace("(name VARCHAR", "(name text").replace("(who VARCHAR", "(who text")
        owner.execute(schema.replace("VARCHAR", f"text{collated(collation)}").encode())
        copy_rows(here.connection, owner)
        let_read(owner, "public")
        backend = PostgresBackend(postgres.url(database, READER), here.policy.tables)
        with backend.snapshot() as snapshot:
            catalog = build_catalog(here.policy, snapshot.schema())
        there = World(here.connection, None, backend, here.policy, catalog)
        assert measured(there) == measured(here)
        assert backend.close_idle()

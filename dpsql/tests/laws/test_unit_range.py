"""Rows that are read of people with a number within a range alone (soundness.md 1.42). The range is 1 to 5, R is 3.

Who is outside is nobody: of any two databases that differ in such a person, every number is the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_release import ReleasePrinter
from dpsql.plan.privacy import analyze
from dpsql.plan.views import build_catalog
from dpsql.policy import Neighbours, parse_policy
from dpsql.relation.catalog import Catalog
from dpsql.tests.support.postgres_server import PostgresServer

from .held import verdict, worst_losses
from .measured import World, world
from .planting import plant

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE visit (owner INTEGER NOT NULL, g INTEGER, word TEXT, minutes INTEGER);
CREATE TABLE wallet (owner INTEGER NOT NULL UNIQUE, level INTEGER)
"""
POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
[defaults]
epsilon = 1
[tables.person]
unit = "id"
columns = { city = { values = ["a", "b"] } }
[tables.visit]
unit = { column = "owner", references = "person.id" }
unit_range = [1, 5]
max_rows = 3
columns = { g = { values = [0, 1, 2] }, word = { values = ["x", "y"] }, minutes = { bounds = [-5, 4] } }
[tables.wallet]
unit = { column = "owner", references = "person.id" }
unit_range = [1, 5]
columns = { level = { values = [0, 1] } }
"""

DIRECT = (
    "SELECT COUNT(*), SUM(minutes) FROM visit",
    "SELECT word, COUNT(*) FROM visit GROUP BY word",
    "SELECT COUNT(*) FROM visit WHERE g = 1",
    "SELECT COUNT(*) FILTER (WHERE g = 1), AVG(minutes) FROM visit",
    "SELECT COUNT(DISTINCT owner) FROM visit",
)
"""What has a list of people by a place for each, and no key that is a whole number."""
PLAIN = (
    "SELECT g, COUNT(*), SUM(minutes) FROM visit GROUP BY g",
    "SELECT word, COUNT(DISTINCT owner) FROM visit GROUP BY word",
    "SELECT p.city, COUNT(*) FROM visit v JOIN person p ON p.id = v.owner GROUP BY p.city",
    "SELECT COUNT(*) FROM person p LEFT JOIN visit v ON v.owner = p.id AND v.g = 1",
    "SELECT COUNT(*) FROM visit v JOIN wallet w ON w.owner = v.owner WHERE w.level = 1",
    "SELECT COUNT(*) FROM wallet w WHERE EXISTS (SELECT 1 FROM visit v WHERE v.owner = w.owner)",
    "SELECT COUNT(*) FROM visit v JOIN visit w ON w.owner = v.owner",
    "SELECT SUM(c) FROM (SELECT owner, COUNT(*) AS c FROM visit GROUP BY owner) t WHERE c BETWEEN 0 AND 9",
    "SELECT MEDIAN(minutes) FROM visit",
    "SELECT COUNT(DISTINCT g) FROM visit",
    "SELECT COUNT(*) FROM (SELECT g FROM visit UNION ALL SELECT level FROM wallet) t",
)


@dataclass(frozen=True)
class People:
    """The rows of a database, by table: visits are (owner, g, word, minutes)."""

    person: tuple[tuple[object, ...], ...]
    visit: tuple[tuple[object, ...], ...]
    wallet: tuple[tuple[object, ...], ...]

    def without(self, one: int) -> People:
        """Return the database without a person's rows."""
        found = ([row for row in rows if row[0] != one] for rows in (self.person, self.visit, self.wallet))
        return People(*map(tuple, found))


def put(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put rows in, in a physical order that depends on `order`."""
    for name, rows in (("person", people.person), ("visit", people.visit), ("wallet", people.wallet)):
        connection.execute(f"DELETE FROM {name}")
        shuffled = list(rows)
        random.Random(order).shuffle(shuffled)
        if shuffled:
            marks = ", ".join("?" * len(shuffled[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", shuffled)


def some(seed: int) -> People:
    """People at the ends of the range, within it, and far outside; some have more rows than count."""
    draw = random.Random(seed)
    ids = [1, 2, 5, 0, 6, -(2**31), 2**31 - 1]
    visits = [
        (one, draw.choice([0, 1, 2, 7, None]), draw.choice(["x", "y", "z", None]), draw.choice([-9, 0, 4, None]))
        for one in ids for _ in range(draw.randrange(9))
    ]  # fmt: skip
    wallets = [(one, draw.randrange(2)) for one in draw.sample(ids, 5)]
    return People(tuple((one, draw.choice("abc")) for one in ids), tuple(visits), tuple(wallets))


def opened(
    folder: Path, engine: PostgresServer | None = None, *, replace_one: bool = False
) -> Iterator[World]:
    policy = parse_policy(POLICY, folder / "laws.toml")
    neighbours = Neighbours.REPLACE_ONE if replace_one else Neighbours.ADD_REMOVE
    policy = replace(policy, privacy=replace(policy.privacy, neighbours=neighbours))
    with world(folder, policy=policy, schema=SCHEMA, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory.mktemp("ranges"), engine)


check = partial(worst_losses, put)


@pytest.mark.parametrize("sql", DIRECT + PLAIN)
def test_every_part_has_the_range(adding: World, sql: str) -> None:
    """Each place where the table is read is followed by the filter, and all of it is verified."""
    for release in adding.plan(sql).releases:
        for query in release.queries(tuple(range(len(release.measurements)))):
            reads = query.sql.count('"visit"') + query.sql.count('"wallet"')
            assert query.sql.count(" >= 1)") == query.sql.count(" <= 5)") >= reads > 0, query.sql
    assert verdict(adding, sql) == ""


@pytest.mark.parametrize("sql", DIRECT + PLAIN)
def test_a_direct_table_is_for_people_alone(adding: World, sql: str) -> None:
    (release,) = adding.plan(sql).releases
    found = [query.is_direct for query in release.queries(tuple(range(len(release.measurements))))]
    assert any(found) is (sql in DIRECT and adding.catalog.dialect == "duckdb")


@pytest.mark.parametrize("seed", range(4))
def test_who_is_outside_moves_nothing(adding: World, seed: int) -> None:
    people = some(seed)
    outside = [people.without(one) for one in (0, 6, -(2**31), 2**31 - 1)]
    only = tuple(sql for sql in DIRECT + PLAIN if "person" not in sql)
    assert check(adding, only, people, outside) == [0] * len(only)


@pytest.mark.parametrize("seed", range(4))
def test_no_claim_is_passed(adding: World, seed: int) -> None:
    people = some(seed)
    check(adding, DIRECT + PLAIN, people, [people.without(one) for one in (1, 2, 5)])


def test_replaced_by_somebody_outside(tmp_path: Path) -> None:
    people = some(1)
    for made in opened(tmp_path, replace_one=True):
        rows = tuple((0 if row[0] == 5 else row[0], *row[1:]) for row in people.without(0).visit)
        check(made, DIRECT, people.without(0), [replace(people.without(0), visit=rows)])


def test_another_range_is_another_question(adding: World) -> None:
    (release,) = adding.plan(DIRECT[0]).releases
    table = adding.catalog.tables["visit"]
    assert table.unit is not None
    wider = replace(table, unit=replace(table.unit, range=(1, 6)))
    other = replace(adding, catalog=replace(adding.catalog, tables={**adding.catalog.tables, "visit": wider}))
    (another,) = other.plan(DIRECT[0]).releases
    assert release.identity != another.identity


def test_the_range_is_no_column_to_ask_for(adding: World) -> None:
    with pytest.raises(Refusal):
        adding.plan("SELECT unit_range FROM visit")


# --- the engine's plan --------------------------------------------------------------------------------------


def made_file(path: Path, *, outlying: bool) -> DuckDBBackend:
    """A file of nine thousand people, and one whose number is far from theirs, or who is not there."""
    path.mkdir()
    with duckdb.connect(str(path / "laws.db")) as connection:
        connection.execute(SCHEMA)
        connection.execute("INSERT INTO visit SELECT i % 9000, i % 3, 'x', 1 FROM range(30000) AS t(i)")
        # without anybody outside the engine proves the filter by its statistics and leaves it out (1.42, what is left)
        connection.execute("INSERT INTO visit VALUES (10001, 1, 'x', 1), (-1, 1, 'x', 1)")
        if outlying:
            connection.execute("INSERT INTO visit VALUES (2147483647, 1, 'x', 1)")
    return DuckDBBackend(path / "laws.db")


def engine_plan(backend: DuckDBBackend, sql: str, *, is_direct: bool) -> str:
    """The operators of the engine's plan of a SELECT, on the cursor that it would be run on."""
    with backend.snapshot() as snapshot:
        cursor = snapshot._direct_cursor() if is_direct else snapshot._cursor
        ((_, plan),) = cursor.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    return _operators(json.loads(plan)[0])


def _operators(node: dict[str, Any]) -> str:
    return f"{node['name']}({', '.join(map(_operators, node['children']))})"


@pytest.mark.parametrize("sql", DIRECT)
def test_the_plan_is_the_same_with_an_outlying_person(tmp_path: Path, sql: str) -> None:
    for made in opened(tmp_path):
        text = POLICY.replace("[1, 5]", "[0, 10000]")
        (release,) = replace(made, catalog=_catalog(made, text, tmp_path)).plan(sql).releases
        queries = release.queries(tuple(range(len(release.measurements))))
    backends = [made_file(tmp_path / how, outlying=how == "far") for how in ("near", "far")]
    for query in queries:
        assert query.is_direct
        near, far = (engine_plan(backend, query.sql, is_direct=True) for backend in backends)
        assert "PERFECT_HASH_GROUP_BY" in near
        assert near == far
    bare = "SELECT owner, COUNT(*) FROM visit GROUP BY owner"
    assert "PERFECT" in engine_plan(backends[0], bare, is_direct=True), "what this setting is kept from"
    assert "PERFECT" not in engine_plan(backends[1], bare, is_direct=True)
    assert "PERFECT" not in engine_plan(backends[0], bare, is_direct=False), "no other statement has it"


def _catalog(made: World, text: str, folder: Path) -> Catalog:
    with made.backend.snapshot() as snapshot:
        return build_catalog(parse_policy(text, folder / "wide.toml"), snapshot.schema())


# --- mutants ------------------------------------------------------------------------------------------------


def test_leave_the_range_out(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, analyze._Analysis.relation, (", within_range(node)", ", ()"))
    with pytest.raises(AssertionError):
        test_every_part_has_the_range(adding, DIRECT[0])
    with pytest.raises(AssertionError):
        test_who_is_outside_moves_nothing(adding, 1)


def test_take_any_key_for_no_number(adding: World, monkeypatch: Patch) -> None:
    if adding.catalog.dialect != "duckdb":
        pytest.skip("never: no other engine has a direct table")
    plant(monkeypatch, ReleasePrinter._is_direct, ("key.type.kind is Kind.TEXT", "True"))
    with pytest.raises(AssertionError):
        test_a_direct_table_is_for_people_alone(adding, PLAIN[0])

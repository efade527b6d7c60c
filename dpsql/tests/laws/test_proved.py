"""What is answered exactly and free holds of every row that the database lets in (soundness.md 1.16).

Whether a filter on one table leaves rows is a matter of each row by itself. So the table holds every row that the engine
takes of what is tried, NULL and values just beyond each constraint among it: a filter that none of these passes is
empty in each of its parts, any two neighbours among them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import psycopg
import pytest

from dpsql.backends import postgres_schema
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import Law
from dpsql.plan import planner
from dpsql.plan.planner import Plan
from dpsql.plan.privacy import contradiction
from dpsql.plan.privacy.rows import Release
from dpsql.policy import load_policy
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

VALUES = {
    "state": ("'open'", "'paid'", "'lost'", "'OPEN'", "''"),
    "note": ("'a'", "'b'", "'c'", "'a '"),
    "n": ("0", "1", "9", "10", "-1"),
    "k": ("1", "2", "3"),
    "d": ("1.50", "2.00", "1.51", "2.01"),
    "flag": ("true", "false"),
    "day": ("'2024-01-01'", "'2024-12-31'", "'2023-12-31'", "'2025-01-01'", "'infinity'", "'-infinity'"),
    "from_day": ("'2024-01-01'", "'2023-12-31'", "'infinity'"),
    "mood": ("'sad'", "'glad'", "'mad'"),
    "f": ("0.0", "0.1", "0.3", "7.0", "-1.0", "'NaN'"),
    "late": ("1", "2", "5"),
    "free": ("1", "2", "5"),
}
"""What is tried of each column, in SQL: what its constraint lets in, and what it does not."""
_TABLE = """
CREATE TYPE moods AS ENUM ('sad', 'glad');
CREATE TABLE item (id INTEGER PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('open', 'paid')),
  note VARCHAR CHECK (note = 'a' OR note = 'b'), n INTEGER CHECK (n BETWEEN 0 AND 9), k INTEGER CHECK (k IN (1, 2)),
  d NUMERIC(6, 2) CHECK (d > 1 AND d <= 2), flag BOOLEAN,
  day DATE CHECK (day BETWEEN '2024-01-01' AND '2024-12-31'), from_day DATE CHECK (from_day >= '2024-01-01'), mood moods, f DOUBLE PRECISION CHECK (f >= 0 AND f <= 0.3),
  late INTEGER, free INTEGER, never INTEGER CHECK (never > 5 AND never < 3));
"""
_POLICY = """
database = "{url}"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 1000
delta = 1e-6
[defaults]
epsilon = 1
[tables.item]
unit = "id"
[tables.item.columns]
state = {{ values = ["open", "paid", "gone"] }}
note = {{ values = ["a", "b"] }}
n = {{ bounds = [0, 20] }}
k = {{ bounds = [1, 5] }}
d = {{}}
flag = {{}}
day = {{}}
from_day = {{}}
mood = {{}}
f = {{ bounds = [0, 10] }}
late = {{}}
free = {{ bounds = [1, 5] }}
never = {{}}
"""

Ask = Callable[[str], int]


class World:
    """A database with all rows that it takes, asked directly and by a session."""

    def __init__(self, policy: Path, session: Session, truth: Ask) -> None:
        session.execute("SET dpsql.unlisted = on")
        self.policy = policy
        self.session = session
        self.truth = truth

    def is_free(self, sql: str) -> bool:
        """Say whether a statement is answered by what the schema proves, or by its text."""
        return all(one.is_empty for one in self.plan(sql).releases)

    def plan(self, sql: str) -> Plan:
        return self.session.explain(sql).plan


def _rows() -> Iterator[str]:
    """Yield rows as INSERT statements: each value by itself, and some together."""
    draw = random.Random(5)
    alone = [{name: value} for name, values in VALUES.items() for value in values]
    mixed = [
        {name: draw.choice(values) for name, values in VALUES.items() if draw.random() < 0.3}
        for _ in range(600)
    ]
    for number, row in enumerate(({}, *alone, *mixed)):
        given = {"id": str(number), "state": "'open'", **row}
        yield f"INSERT INTO item ({', '.join(given)}) VALUES ({', '.join(given.values())})"


def _policy(tmp_path: Path, url: str) -> Path:
    path = tmp_path / "item.toml"
    path.write_text(_POLICY.format(url=url))
    open_ledger(load_policy(path), create=True).close()
    return path


def _on_duckdb(tmp_path: Path) -> Iterator[World]:
    with duckdb.connect(str(tmp_path / "item.duckdb")) as connection:
        connection.execute(_TABLE)
        for row in _rows():
            try:
                connection.execute(row)
            except (duckdb.ConstraintException, duckdb.ConversionException):
                continue

    shutil.copy(tmp_path / "item.duckdb", tmp_path / "truth.duckdb")
    path = _policy(tmp_path, "duckdb:item.duckdb")
    with duckdb.connect(str(tmp_path / "truth.duckdb")) as connection, Session.open(path) as session:

        def truth(sql: str) -> int:
            (found,) = connection.execute(sql).fetchone() or (None,)
            assert isinstance(found, int)
            return found

        yield World(path, session, truth)


def _on_postgres(tmp_path: Path, postgres: PostgresServer) -> Iterator[World]:
    name = postgres.create_database()
    with postgres.admin(name) as admin:
        admin.execute(_TABLE)
        for row in _rows():
            try:
                admin.execute(row)
            except (psycopg.errors.CheckViolation, psycopg.errors.InvalidTextRepresentation):
                continue
        admin.execute("ALTER TABLE item ADD CHECK (late IN (1, 2)) NOT VALID")

        def truth(sql: str) -> int:
            (found,) = admin.execute(sql).fetchone() or (None,)
            assert isinstance(found, int)
            return found

        path = _policy(tmp_path, postgres.create_reader(name))
        with Session.open(path) as session:
            yield World(path, session, truth)


@pytest.fixture(scope="module", params=[False, True], ids=["duckdb", "postgres"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("item")
    yield from _on_postgres(folder, postgres) if request.param else _on_duckdb(folder)


@pytest.fixture
def anew(world: World) -> Iterator[World]:
    """The world with a session that has planned nothing yet."""
    with Session.open(world.policy) as session:
        yield World(world.policy, session, world.truth)


def accepted_values(column: str, values: str) -> str:
    """Return what dbt 1.x sends for its test of this name."""
    return (
        "select\n      count(*) as failures\n    from (\n      \nwith all_values as (\n\n    select\n        "
        f"{column} as value_field,\n        count(*) as n_records\n\n    from item\n    group by {column}\n\n)\n\n"
        f"select *\nfrom all_values\nwhere value_field not in (\n    {values}\n)\n\n    ) dbt_internal_test"
    )


PROVED = (
    accepted_values("state", "'open','paid'"),
    accepted_values("state", "'open','paid','lost'"),
    accepted_values("note", "'a','b'"),
    accepted_values("k", "1,2"),
    accepted_values("flag", "true,false"),
    accepted_values("mood", "'sad','glad'"),
    "SELECT COUNT(*) FROM item WHERE state NOT IN ('open', 'paid')",
    "SELECT COUNT(*) FROM item WHERE n > 9",
    "SELECT COUNT(*) FROM item WHERE n < 0 OR n > 9",
    "SELECT COUNT(*) FROM item WHERE NOT (n BETWEEN 0 AND 9)",
    "SELECT COUNT(*) FROM item WHERE d > 2",
    "SELECT COUNT(*) FROM item WHERE day > '2024-12-31'",
    "SELECT COUNT(*) FROM item WHERE NOT (day BETWEEN '2024-01-01' AND '2024-12-31')",
    "SELECT sum(CASE WHEN (from_day IS NOT NULL AND NOT (from_day >= DATE '2024-01-01')) THEN 1 ELSE 0 END) FROM item",
    "SELECT COUNT(*) FROM item WHERE flag <> true AND flag <> false",
    "SELECT COUNT(*) FROM (SELECT state FROM item GROUP BY state HAVING state = 'gone') AS t",
    "SELECT sum(CASE WHEN (state IS NULL) THEN 1 ELSE 0 END) FROM item",
    "SELECT coalesce(sum(CASE WHEN (n IS NOT NULL AND NOT (n >= 0 AND n <= 9)) THEN 1 ELSE 0 END), 0) FROM item",
    "SELECT sum(CASE WHEN (note IS NOT NULL AND note NOT IN ('a', 'b')) THEN 1 ELSE 0 END) FROM item",
    "SELECT sum(CASE WHEN (id IN (SELECT id FROM item WHERE id IS NOT NULL GROUP BY id HAVING count(id) > 1)) THEN 1 ELSE 0 "
    "END) FROM item",
    "SELECT sum(CASE WHEN (num > 1) THEN 1 ELSE 0 END) FROM (SELECT id, count(*) OVER (PARTITION BY id) AS num FROM item) t",
    "SELECT COUNT(*) FROM (SELECT n AS m FROM (SELECT n, COUNT(*) AS c FROM item GROUP BY n) AS t) AS u WHERE m >= 10",
)
NOT_PROVED = (
    accepted_values("state", "'open'"),
    accepted_values("k", "1"),
    accepted_values("late", "1,2"),  # NOT VALID, or nothing
    "SELECT COUNT(*) FROM item WHERE late > 2",
    "SELECT COUNT(*) FROM item WHERE free > 5",  # declared alone
    "SELECT COUNT(*) FROM item WHERE from_day > '9999-12-31'",  # infinity passes
    "SELECT COUNT(*) FROM item WHERE day IS NULL",
    "SELECT COUNT(*) FROM item WHERE f > 7",  # a float
    "SELECT COUNT(*) FROM item WHERE n IS NULL",  # a CHECK passes NULL
    "SELECT COUNT(*) FROM item WHERE note IS NULL",
    "SELECT COUNT(*) FROM item WHERE never IS NULL",
    "WITH a AS (SELECT k, COUNT(*) AS c FROM item GROUP BY k) "
    "SELECT COUNT(*) FROM a WHERE k NOT IN (1, 2) UNION ALL SELECT COUNT(*) FROM a",  # another use has no filter
    "SELECT sum(CASE WHEN (n IS NULL) THEN 1 ELSE 0 END) FROM item",
    "SELECT COUNT(*) FROM item WHERE COALESCE(n, 10) > 9",
    "SELECT COUNT(*) FROM (SELECT k FROM item GROUP BY k HAVING k IS NULL) AS t",
    "SELECT COUNT(*) FROM (SELECT * FROM item WHERE false) AS a FULL JOIN item AS b ON a.id = b.id",
    "SELECT COUNT(*) FROM (SELECT * FROM item WHERE n > 9) AS a FULL JOIN item AS b ON a.id = b.id",
    "SELECT COUNT(*) FROM (SELECT k FROM item GROUP BY k HAVING k NOT IN (1, 2) OR k IS NULL) AS t",
)


def test_what_constraints_leave_of_values_is_exact_and_free(world: World) -> None:
    before = world.session.budget().epsilon_spent_nano
    for sql in PROVED:
        assert world.is_free(sql), sql
        assert world.session.execute(sql).rows == [(0,)] == [(world.truth(sql),)], sql
    assert world.session.budget().epsilon_spent_nano == before


def test_what_they_do_not_prove_is_charged(world: World) -> None:
    for sql in NOT_PROVED:
        assert not world.is_free(sql), sql
    assert world.truth("SELECT COUNT(*) FROM item WHERE late > 2") > 0


def _term(draw: random.Random) -> str:
    name = draw.choice(list(VALUES))
    some = draw.sample(VALUES[name], min(len(VALUES[name]), draw.randint(1, 3)))
    some = [one for one in some if one not in ("'mad'", "'NaN'", "'infinity'", "'-infinity'")] or [
        VALUES[name][0]
    ]
    form = draw.choice(
        ("{} = {}", "{} <> {}", "{} IN ({})", "{} NOT IN ({})", "{} > {}", "{} <= {}", "{} IS NULL")
    )
    if name in ("flag", "mood", "state", "note") and form[3:4] in "><" and form != "{} <> {}":
        form = "{} NOT IN ({})"
    listed = ", ".join(some) if "(" in form else some[0]
    text = form.format(name, listed) if form != "{} IS NULL" else f"{name} IS NULL"
    return f"NOT ({text})" if draw.random() < 0.2 else text


@pytest.mark.parametrize("conditions", [60, pytest.param(400, marks=pytest.mark.long)])
def test_no_row_that_is_let_in_passes_what_is_said_to_be_empty(world: World, conditions: int) -> None:
    """Filters as they come, below a release and on its keys above it."""
    draw, free = random.Random(29), 0
    for _ in range(conditions):
        terms = [_term(draw) for _ in range(draw.randint(1, 3))]
        where = draw.choice((" AND ", " OR ")).join(terms)
        names = [name for name in VALUES if name in where.replace("(", " ").split()]
        keys = ", ".join(names)
        grouped = f"SELECT COUNT(*) FROM (SELECT {keys}, COUNT(*) AS c FROM item GROUP BY {keys}) AS t WHERE {where}"
        summed = f"SELECT SUM(CASE WHEN {where} THEN 1 ELSE 0 END) FROM item"
        for sql in (summed, f"SELECT COUNT(*) FROM item WHERE {where}", *([] if "f" in names else [grouped])):
            if world.is_free(sql):
                free += 1
                assert world.truth(sql) == 0, sql
    assert free > 0.15 * conditions


# --- aggregates beside others: the same statement without those that are 0 ------------------------------------


BESIDE = {
    "count(*)": "",
    "sum(n)": "",
    "avg(n)": "",
    "count(*), count(n)": "",
    "count(DISTINCT k)": "",
    "count(*), sum(n) ": "GROUP BY k",
    "sum(n), sum(k)": "WHERE flag GROUP BY state",
}
"""What is asked beside an aggregate with a condition of its own, and of which rows."""
CONDITIONED = (
    "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
    "sum(CASE WHEN {} THEN n ELSE 0 END)",
    "count(*) FILTER (WHERE {})",
    "count(CASE WHEN {} THEN k END)",
)
GREAT_EXPECTATIONS = (
    'SELECT count(*) AS "table.row_count", sum(CASE WHEN (state IS NULL) THEN 1 ELSE 0 END) AS '
    '"column_values.nonnull.unexpected_count" FROM item'
)
"""What Great Expectations 1.x bundles into one statement."""


def experiments(plan: Plan) -> list[tuple[bytes, tuple[bytes, ...], Law, Fraction]]:
    """Return what is measured, in order: under what it is stored, with which noise, for what charge."""
    return [
        (one.identity, one.measure_keys(index, one.salted(b""), b""), measure.law, measure.epsilon)
        for one in plan.releases
        for index, measure in enumerate(one.measures)
    ]


def zeros_hold(world: World, condition: str, call: str, beside: str, rows: str) -> bool:
    """Hold a statement to what is true, and to the statement without what is 0; say whether something is."""
    keys, what = rows.partition("GROUP BY ")[2], f"FROM item {rows}"
    asked = f"{keys}{', ' if keys else ''}{beside}"
    plan, alone = (
        world.plan(f"SELECT {shown} {what}") for shown in (f"{asked}, {call.format(condition)}", asked)
    )
    (release,) = plan.releases
    if not release.zeros:
        assert len(release.formulas[-1].coordinates) > 0
        assert plan.epsilon == Fraction(1)
        return False
    assert release.zeros == {len(release.formulas) - 1}
    assert world.truth(f"SELECT count(*) FROM item WHERE {condition}") == 0
    assert experiments(plan) == experiments(alone)
    assert (plan.epsilon, plan.delta) == (alone.epsilon, alone.delta)
    return True


def test_what_is_zero_beside_others_is_neither_measured_nor_charged(world: World) -> None:
    """Conditions as they come: what is dropped is 0 on every row, and the rest is the statement without it."""
    draw, dropped = random.Random(31), 0
    for _ in range(tried(80, 150)):
        terms = [_term(draw) for _ in range(draw.randint(1, 2))]
        condition = draw.choice((" AND ", " OR ")).join(terms)
        beside, rows = draw.choice(list(BESIDE.items()))
        dropped += zeros_hold(world, condition, draw.choice(CONDITIONED), beside, rows)
    assert dropped > tried(6, 12)


def test_what_great_expectations_sends_is_charged_for_its_count_alone(world: World) -> None:
    world.session.execute("SET dpsql.epsilon = 0.5")  # which nothing else asks at
    answer = world.session.execute(GREAT_EXPECTATIONS)
    ((count, unexpected),) = answer.rows
    assert answer.receipt is not None
    assert (unexpected, answer.receipt.epsilon) == (0, Fraction(1, 2))
    assert any("can count in sum(…): exact and free, the database" in note for note in answer.receipt.notes)
    again = world.session.execute("SELECT count(*) FROM item")
    assert again.rows == [(count,)]
    assert again.receipt is not None
    assert again.receipt.epsilon == 0, "it is the same count"
    world.session.execute("SET dpsql.epsilon = 1")


@pytest.mark.parametrize("world", [False], indirect=True, ids=["duckdb"])
def test_a_zero_that_is_planted_is_seen(world: World, anew: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def believes(release: Release, *, proved: bool = False) -> frozenset[int]:
        return frozenset(i for i, call in enumerate(release.aggregates) if call.filter is not None)

    case = ("n IS NULL", CONDITIONED[2], "count(*)", "")
    assert not zeros_hold(world, *case)
    monkeypatch.setattr(planner, "count_nothing", believes)
    with pytest.raises(AssertionError):
        zeros_hold(anew, *case)


@pytest.mark.parametrize("world", [False], indirect=True, ids=["duckdb"])
def test_a_share_that_is_planted_for_what_is_zero_is_seen(
    world: World, anew: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ("n > 9", CONDITIONED[2], "count(*)", "")
    assert zeros_hold(world, *case)
    whole = planner.choose_measurements
    monkeypatch.setattr(planner, "choose_measurements", lambda asked: whole(replace(asked, zeros=())))
    with pytest.raises(AssertionError):
        zeros_hold(anew, *case)


@pytest.mark.parametrize("world", [True], indirect=True, ids=["postgres"])
def test_a_planted_belief_in_what_is_not_validated_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = accepted_values("late", "1,2")
    text = postgres_schema._CATALOG.replace("k.contype = 'c' AND k.convalidated", "k.contype = 'c'")
    assert text != postgres_schema._CATALOG
    monkeypatch.setattr(postgres_schema, "_CATALOG", text)
    with Session.open(world.policy) as session:
        assert "no row can count" in session.explain(sql).text()
    assert world.truth(sql) > 0


def test_a_check_that_is_planted_to_exclude_null_is_seen(
    anew: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contradiction.facts_in

    def forgets(*args: object, **more: object) -> contradiction.Facts:
        facts = whole(*args, **more)  # type: ignore[arg-type]
        return replace(facts, not_null=facts.not_null | facts.allowed.keys())

    monkeypatch.setattr(contradiction, "facts_in", forgets)
    sql = "SELECT COUNT(*) FROM item WHERE n IS NULL"
    assert anew.is_free(sql)
    assert anew.truth(sql) > 0

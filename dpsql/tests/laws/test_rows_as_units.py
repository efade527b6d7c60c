"""L1, L2, L4 and L9 where each row is a unit by itself (soundness.md 1.33): neighbours differ in one row."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.engine.audit.statements import statements
from dpsql.errors import Refusal
from dpsql.plan.planner import Plan
from dpsql.plan.privacy import analyze, ownership, release_boundary
from dpsql.policy import Accounting, Neighbours
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_rows import (
    ENDS,
    HEAVY,
    SCHEMA_OF_ROWS,
    Rows,
    load_rows,
    policy_of_rows,
    random_rows,
    visit_row,
    without_people,
)

from .measured import Measured, World, compared, fixed_intermediates, measure_release, world
from .planting import plant

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("rows")
    with world(folder, policy=policy_of_rows(folder), schema=SCHEMA_OF_ROWS, server=engine) as made:
        made.connection.execute(
            "INSERT INTO person VALUES (1, 5, 2, 9, 'x', 'red', '2009-12-31', true), "
            "(7, 5, 2, 9, 'x', 'red', '2009-12-31', true)"
        )
        yield made


def under(made: World, **changed: Any) -> World:
    """Return a world under another promise; its catalog does not depend on it."""
    policy = replace(made.policy, privacy=replace(made.policy.privacy, **changed))
    return replace(made, policy=policy)


def measured(made: World, plans: Sequence[Plan], database: Rows, order: int = 0) -> list[Measured]:
    made.settle(load_rows, database, order)
    with made.backend.snapshot() as snapshot:
        return [
            [measure_release(one, snapshot, fixed_intermediates(plan)) for one in plan.releases]
            for plan in plans
        ]


def hold(made: World, sqls: Sequence[str], database: Rows, neighbours: Sequence[Rows]) -> dict[str, Fraction]:
    """Hold the claims of statements on neighbours; return the largest loss of each, in what it may lose."""
    plans = [made.plan(sql) for sql in sqls]
    here = measured(made, plans, database)
    worst = dict.fromkeys(sqls, Fraction(0))
    for neighbour in neighbours:
        there = measured(made, plans, neighbour, 1)
        for sql, plan, left, right in zip(sqls, plans, here, there, strict=True):
            worst[sql] = max(worst[sql], compared(plan, left, right, sql))
    return worst


def each_less(database: Rows) -> list[Rows]:
    return [database.without(place) for place in range(len(database.visit) + len(database.later))]


# --- answered ----------------------------------------------------------------------------------------------

TIGHT = (
    "SELECT COUNT(*) FROM visit",
    "SELECT city, COUNT(*) FROM visit GROUP BY city",
    "SELECT tag, COUNT(*) FROM visit GROUP BY tag",
    "SELECT SUM(n) FROM visit",
    "SELECT city, SUM(d) FROM visit GROUP BY city",
    "SELECT COUNT(*) FROM visit v JOIN ward w ON w.city = v.city",
    "SELECT w.beds, COUNT(*) FROM visit v LEFT JOIN ward w ON w.city = v.city GROUP BY w.beds",
    "SELECT COUNT(*) FROM visit WHERE EXISTS (SELECT 1 FROM shift s WHERE s.city = visit.city)",
    "SELECT COUNT(*) FROM visit v JOIN (SELECT city, COUNT(*) AS c FROM shift GROUP BY city) s ON s.city = v.city",
    "SELECT COUNT(*) FROM (SELECT city FROM visit UNION ALL SELECT city FROM later) t",
    "SELECT COUNT(DISTINCT n) FROM visit",
)
"""Answers that some row moves by all that is claimed."""

ALSO = (
    "SELECT AVG(n), VAR_SAMP(x), COUNT(*) FROM visit",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY ROLLUP (city, flag)",
    "SELECT city, MEDIAN(n) FROM visit GROUP BY city",
    "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) FROM visit",
    "SELECT PERCENTILE_CONT(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY y) FROM (SELECT d AS y, tag FROM visit) t",
    "SELECT MIN(n), MAX(x), CORR(n, x) FROM visit",
    "SELECT MODE() WITHIN GROUP (ORDER BY city) FROM visit",
    "SELECT COUNT(*) FROM visit v WHERE n > (SELECT AVG(n) FROM visit w WHERE w.city = v.city)",
    "SELECT COUNT(*) FROM visit v WHERE n > (SELECT COUNT(*) FROM person)",
    "SELECT (SELECT COUNT(*) FROM visit), (SELECT COUNT(*) FROM later), (SELECT COUNT(*) FROM person)",
    "SELECT city, COUNT(*) AS c FROM visit GROUP BY city ORDER BY c DESC LIMIT 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT tag FROM visit) t",
)
"""Others that are answered."""


def test_one_row_moves_an_answer_by_what_is_claimed(rows: World) -> None:
    worst = hold(rows, (*TIGHT, *ALSO), HEAVY, each_less(HEAVY))
    assert {sql: worst[sql] for sql in TIGHT} == dict.fromkeys(TIGHT, Fraction(1))


def test_every_measurement_is_of_one_row(rows: World) -> None:
    for sql in (*TIGHT, *ALSO):
        for release in rows.plan(sql).releases:
            bounding = release.bounding
            assert (bounding.in_all, bounding.in_group, bounding.groups, bounding.per_row) == (1, 1, 1, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"neighbours": Neighbours.REPLACE_ONE},
        {"accounting": Accounting.ZCDP},
        {"neighbours": Neighbours.REPLACE_ONE, "accounting": Accounting.ZCDP},
    ],
    ids=["replaced", "zcdp", "replaced, zcdp"],
)
def test_other_promises_hold(rows: World, changed: dict[str, Any]) -> None:
    neighbours = [HEAVY.without(place) for place in range(4)]
    if "neighbours" in changed:
        neighbours = [HEAVY.replaced(place, HEAVY.visit[2]) for place in (0, 3, 5)]
    hold(under(rows, **changed), (*TIGHT, *ALSO), HEAVY, neighbours)


def test_several_rows_together(rows: World) -> None:
    three = HEAVY.without(0).without(0).without(2)
    worst = hold(under(rows, together=3), (*TIGHT, *ALSO), HEAVY, [three])
    assert worst[TIGHT[0]] == 1


SEEDS = 4
ASKED = 250


def accepted(made: World, seed: int) -> list[str]:
    """Return statements of every shape over the tables of rows and the public ones, as far as they are answered."""
    found = []
    for one in statements(without_people(made.catalog), seed, ASKED):
        try:
            plan = made.plan(one.sql)
        except Refusal:
            continue
        if any(not release.is_empty for release in plan.releases):
            found.append(one.sql)
    return found


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, SEEDS))]
)
def test_statements_of_every_shape_keep_their_claims(rows: World, seed: int) -> None:
    """Nothing fails over hostile values either (L2)."""
    rng, sqls = random.Random(seed), accepted(rows, seed)
    assert len(sqls) > 20
    for database in (HEAVY, random_rows(rng)):
        places = range(len(database.visit) + len(database.later))
        hold(rows, sqls, database, [database.without(place) for place in rng.sample(places, 2)])


def test_rows_in_another_order_are_the_same(rows: World) -> None:
    plans = [rows.plan(sql) for sql in (*TIGHT, *ALSO)]
    assert measured(rows, plans, HEAVY, 0) == measured(rows, plans, HEAVY, 5)


# --- refused -----------------------------------------------------------------------------------------------

REFUSED = (
    "SELECT COUNT(*) FROM visit a JOIN visit b ON a.n = b.n",
    "SELECT COUNT(*) FROM visit a, visit b",
    "SELECT COUNT(*) FROM visit a JOIN visit b ON a.n = b.n AND a.tag = b.tag AND a.city = b.city AND a.day = b.day",
    "SELECT COUNT(*) FROM visit a JOIN later b ON a.n = b.n",
    "SELECT COUNT(*) FROM visit a JOIN person b ON a.n = b.id",
    "SELECT COUNT(*) FROM person b JOIN visit a ON a.n = b.id",
    *(f"SELECT COUNT(*) FROM {one} {kind} JOIN {other} ON visit.n = {key}"
      for kind in ("LEFT", "RIGHT", "FULL")
      for one, other, key in (("visit", "later", "later.n"), ("visit", "person", "person.id"), ("person", "visit", "person.id"))),
    "SELECT COUNT(*) FROM visit a LEFT JOIN visit b ON a.n = b.n",
    "SELECT COUNT(*) FROM ward LEFT JOIN visit ON visit.city = ward.city",
    "SELECT COUNT(*) FROM visit RIGHT JOIN ward ON visit.city = ward.city",
    "SELECT COUNT(*) FROM visit FULL JOIN ward ON visit.city = ward.city",
    "SELECT COUNT(*) FROM visit JOIN shift ON visit.city = shift.city",
    "SELECT COUNT(*) FROM visit LEFT JOIN shift ON visit.city = shift.city",
    "SELECT COUNT(*) FROM visit CROSS JOIN ward",
    "SELECT COUNT(*) FROM visit JOIN ward ON visit.n > ward.beds",
    "SELECT COUNT(*) FROM visit v JOIN ward w ON w.city = v.city JOIN shift s ON s.city = w.city",
    *(f"SELECT COUNT(*) FROM {one} a WHERE {word} (SELECT 1 FROM {other} b WHERE a.{left} = b.{right})"
      for word in ("EXISTS", "NOT EXISTS")
      for one, other, left, right in (("visit", "visit", "n", "n"), ("visit", "later", "n", "n"),
                                      ("visit", "person", "n", "id"), ("person", "visit", "id", "n"),
                                      ("ward", "visit", "city", "city"))),
    *(f"SELECT COUNT(*) FROM {one} WHERE {left} {word} (SELECT {right} FROM {other})"
      for word in ("IN", "NOT IN")
      for one, other, left, right in (("visit", "visit", "n", "n"), ("visit", "person", "n", "id"),
                                      ("person", "visit", "id", "n"), ("ward", "visit", "city", "city"))),
    "SELECT COUNT(*) FROM visit WHERE EXISTS (SELECT 1 FROM later)",
    "SELECT COUNT(*) FROM (SELECT n FROM visit UNION ALL SELECT n FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit WHERE n > 0 UNION ALL SELECT n FROM visit WHERE n <= 0) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit UNION SELECT n FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit UNION ALL SELECT id FROM person) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit UNION ALL SELECT n FROM shift) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit UNION ALL SELECT n FROM later UNION ALL SELECT n FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit INTERSECT SELECT n FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit EXCEPT SELECT n FROM visit) t",
    "WITH v AS (SELECT n FROM visit) SELECT COUNT(*) FROM v a JOIN v b ON a.n = b.n",
    "WITH v AS (SELECT n FROM visit) SELECT COUNT(*) FROM v WHERE n IN (SELECT n FROM v)",
    "WITH v AS (SELECT n FROM visit UNION ALL SELECT n FROM later) SELECT COUNT(*) FROM v a JOIN later b ON a.n = b.n",
    "WITH v AS (SELECT n FROM visit UNION ALL SELECT n FROM later) SELECT COUNT(*) FROM (SELECT n FROM v UNION ALL SELECT n FROM later) t",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER () AS r FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY n, tag, city) AS r FROM visit) t WHERE r = 1",
    "SELECT SUM(s) FROM (SELECT SUM(n) OVER (PARTITION BY city) AS s FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT n, LAG(n) OVER (ORDER BY n) AS l FROM visit) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (city) city, n FROM visit ORDER BY city, n) t",
    "SELECT COUNT(*) FROM (SELECT n FROM visit LIMIT 3) t",
    "SELECT n FROM visit",
    "SELECT COUNT(*) FROM visit v CROSS JOIN LATERAL (SELECT w.n FROM visit w WHERE w.n = v.n) l",
    "SELECT COUNT(rowid) FROM visit",
)  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_one_row_a_unit_is_refused(rows: World, sql: str) -> None:
    with pytest.raises(Refusal):
        rows.plan(sql)


def test_groups_of_all_columns_are_a_release(rows: World) -> None:
    """No columns are the unit: GROUP BY below another aggregate is noised, and not counted per person."""
    plan = rows.plan("SELECT COUNT(*) FROM (SELECT city, n, COUNT(*) AS c FROM visit GROUP BY city, n) t")
    (release,) = plan.releases
    assert len(release.release.keys) == 2


# --- mutants -----------------------------------------------------------------------------------------------

Pieces = tuple[tuple[str, str], ...]
SECOND: tuple[Callable[..., Any], Pieces] = (
    ownership._each_row, (("if len(owned) > 1:", "if False:"), ("item is not row and", "not item.source.is_private and")),
)  # fmt: skip
NO_COLUMNS: tuple[Callable[..., Any], Pieces] = (
    ownership._table_source,
    (("total = rows = groups = 1", "total = rows = groups = 1; identities = {(): (table.name, ())}"),),
)
FAULTS: dict[str, tuple[tuple[tuple[Callable[..., Any], Pieces], ...], str]] = {
    "a second source": ((SECOND,), "SELECT COUNT(*) FROM visit a, visit b"),
    "another table of rows": ((SECOND,), "SELECT COUNT(*) FROM visit a JOIN later b ON a.city = b.city"),
    "people": ((SECOND,), "SELECT COUNT(*) FROM visit a JOIN person b ON a.n <> b.id"),
    "copies by a public table": (
        ((ownership._each_row, (("if item is not row and not has_one:", "if False:"),)),),
        "SELECT COUNT(*) FROM visit JOIN shift ON visit.city = shift.city"),
    "a table in both parts of a union": (
        ((analyze._check_once, (("if left.row_tables & right.row_tables:", "if False:"),)),),
        "SELECT COUNT(*) FROM (SELECT n FROM visit UNION ALL SELECT n FROM visit) t"),
    "an identity without columns": (
        (SECOND, NO_COLUMNS), "SELECT COUNT(*) FROM visit a WHERE EXISTS (SELECT 1 FROM visit b WHERE b.n > 6)"),
    "the same of an outer join": (
        (SECOND, NO_COLUMNS), "SELECT COUNT(*) FROM visit a LEFT JOIN visit b ON a.city = b.city WHERE b.n >= 0"),
}  # fmt: skip
PAIR = Rows((ENDS, *(visit_row(city="a", n=str(i)) for i in range(3))), (ENDS, visit_row(city="a", n="1")))


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_seen(rows: World, monkeypatch: Patch, name: str) -> None:
    planted, sql = FAULTS[name]
    with pytest.raises(Refusal):
        rows.plan(sql)
    for function, changes in planted:
        plant(monkeypatch, function, *changes)
    with pytest.raises(AssertionError):
        hold(rows, [sql], PAIR, each_less(PAIR))


def test_take_every_key_for_a_unit(rows: World, monkeypatch: Patch) -> None:
    """An owner without columns is had by no keys: else each GROUP BY would be per person, and not noised."""
    sql = "SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS c FROM visit GROUP BY city) t"
    assert len(rows.plan(sql).releases[0].release.keys) == 1
    plant(
        monkeypatch,
        release_boundary.owner_of,
        ("if not rows.owner:\n        return ()", "if not rows.owner:\n        return tuple(fields_in_keys := [k for k in keys if isinstance(k, Field)])"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        assert len(rows.plan(sql).releases[0].release.keys) == 1

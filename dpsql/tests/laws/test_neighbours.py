"""L1 and L9: what the printed SQL gives for neighbouring databases stays within the joint claim.

The claim of a statement is Σ over releases, measurements, groups and coordinates of |change| / scale <= epsilon,
in exact arithmetic, for every unit and whatever the rows hold (soundness.md 5.2(1); law L1).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import settings

from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.planner import Plan
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import (
    NEWCOMER,
    UNITS,
    Database,
    load,
    replaced,
    without,
)

from .examples import HEAVY, NOBODY, REPEATED, WIDE, visit
from .measured import Measured, World, compared, measure_release, world

FUZZ = settings(REPEATED, max_examples=tried(6, 40))
LONG = settings(FUZZ, max_examples=3000, derandomize=False)
INTERMEDIATES = (2.5, -1.0, None, 0.0)


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("add"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("replace"), replace_one=True, server=engine) as made:
        yield made


def planned(world: World, sql: str) -> Plan | None:
    try:
        return world.plan(sql)
    except Refusal:
        return None


def measured(world: World, plans: list[Plan], database: Database, order: int) -> list[Measured | None]:
    """Return the exact integers of each plan; None where the engine failed (test_total.py has that)."""
    world.settle(load, database, order)
    return [measured_here(world, plan) for plan in plans]


def measured_here(world: World, plan: Plan) -> Measured | None:
    try:
        with world.backend.snapshot() as snapshot:
            return [measure_release(release, snapshot, INTERMEDIATES) for release in plan.releases]
    except EngineFailure:
        return None


def check(world: World, sql: str, database: Database, neighbours: list[Database]) -> Fraction | None:
    """Hold a statement's claim against all neighbours; return the largest loss per epsilon, None if it is refused."""
    (worst,) = check_all(world, [sql], database, neighbours)
    return worst


def check_all(
    world: World, sqls: list[str], database: Database, neighbours: list[Database]
) -> list[Fraction | None]:
    """Hold the claims of several statements; the rows are put in once for all of them."""
    plans = {sql: plan for sql in sqls if (plan := planned(world, sql)) is not None and plan.releases}
    here = measured(world, list(plans.values()), database, 0)
    worst = {sql: Fraction(0) for sql, found in zip(plans, here, strict=True) if found is not None}
    for order, neighbour in enumerate(neighbours if plans else (), 1):
        there = measured(world, list(plans.values()), neighbour, order)
        for (sql, plan), left, right in zip(plans.items(), here, there, strict=True):
            if left is not None and right is not None:
                worst[sql] = max(worst[sql], compared(plan, left, right, sql))
    return [worst.get(sql) for sql in sqls]


def neighbours_of(world: World, database: Database, newcomer: Database) -> list[Database]:
    owned = {unit for unit, _ in (*database.persons, *database.visits)}
    units = [unit for unit in UNITS if unit in owned]
    if world.policy.privacy.neighbours.value == "replace-one":
        return [replaced(database, unit, newcomer) for unit in units]
    return [without(database, unit) for unit in units]


TIGHT = (
    "SELECT COUNT(*) FROM visit",
    "SELECT city, COUNT(*) FROM visit GROUP BY city",
    "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag",
    "SELECT COUNT(DISTINCT person_id) FROM visit",
    "SELECT city, SUM(n) FROM visit GROUP BY city",
    "SELECT city, AVG(d) FROM visit GROUP BY city",
    "SELECT city, COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit GROUP BY city",
    "SELECT SUM(x) FROM visit",
    "SELECT AVG(x) FROM visit",
    "SELECT COUNT(*) FROM person",
    "SELECT AVG(height) FROM person",
    "SELECT SUM(height) FROM person",
    "SELECT COUNT(*), AVG(age) FROM person",
    "SELECT dp_avg_direct(age) FROM person WHERE age BETWEEN 0 AND 5",
)
TIGHT_AND_WIDE = (
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY city, flag",
    "SELECT city, flag, SUM(x) FROM visit GROUP BY city, flag",
    "SELECT city, flag, AVG(d) FROM visit GROUP BY city, flag",
    "SELECT city, flag, level, COUNT(DISTINCT person_id) FROM visit GROUP BY city, flag, level",
    "SELECT city, flag, COUNT(*) FROM visit GROUP BY ROLLUP (city, flag)",
    "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag",
    "SELECT n, tag, COUNT(DISTINCT person_id) FROM visit GROUP BY n, tag",
    "SELECT tag, n, COUNT(DISTINCT person_id) FROM visit GROUP BY ROLLUP (tag, n)",
    "SELECT flag, COUNT(*) FROM visit GROUP BY flag",
    "SELECT COUNT(DISTINCT tag) FROM visit",
    "SELECT city, COUNT(DISTINCT tag) FROM visit GROUP BY city",
    "SELECT city, flag, COUNT(DISTINCT tag) FROM visit GROUP BY city, flag",
    "SELECT city, flag, COUNT(DISTINCT tag), COUNT(*) FROM visit GROUP BY city, flag",
    "SELECT VAR_POP(x) FROM visit",
)


@pytest.mark.parametrize("sql", TIGHT)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """The scale is not larger than it has to be: a heavy unit moves the answer by all of it, but for parts of 2^-20."""
    worst = check(adding, sql, HEAVY, neighbours_of(adding, HEAVY, NOBODY))
    assert worst is not None
    assert 0.9999 < worst <= 1


@pytest.mark.parametrize("sql", TIGHT_AND_WIDE)
def test_the_bound_is_reached_in_a_wide_domain(adding: World, sql: str) -> None:
    """One with more than twice the groups and the values that count moves the answer by what counts, and no more."""
    assert check(adding, sql, WIDE, [without(WIDE, 1)]) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, COUNT(*) FROM visit GROUP BY city",
        "SELECT COUNT(*) FROM visit",
        "SELECT SUM(x) FROM visit",
    ],
)
def test_the_bound_is_reached_by_replacing(replacing: World, sql: str) -> None:
    here = Database((), tuple(visit(1, city=c, x="4", n="7") for c in ("a", "b") for _ in range(4)))
    there = Database((), tuple(visit(1, city="c", x="-1", n="-3") for _ in range(4)))
    loss_here = check(replacing, sql, here, [replaced(here, 1, NOBODY), replaced(here, 1, there)])
    both = Database((), (*there.visits, *(visit(1, x="-1") for _ in range(4))))
    found = [loss_here, check(replacing, sql, here, [replaced(here, 1, both)])]
    assert 1 in found


NOBODYS = Database(
    (), tuple(visit(None, city=c, tag="p", n="7", x="4", flag="true") for c in "abc" for _ in range(9))
)


def check_nobodys_rows(adding: World, sql: str) -> None:
    """Rows whose owner is NULL count nowhere: nobody could ask for their removal."""
    plan = planned(adding, sql)
    assert plan is not None
    with_them = Database(HEAVY.persons, HEAVY.visits + NOBODYS.visits)
    here, there = (measured(adding, [plan], database, 0)[0] for database in (HEAVY, with_them))
    assert here is not None
    assert here == there


@pytest.mark.parametrize("sql", TIGHT[:8])
def test_rows_without_an_owner_count_nowhere(adding: World, sql: str) -> None:
    check_nobodys_rows(adding, sql)


PARTS = "SELECT COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit"


def replaced_in_parts(replacing: World) -> Fraction | None:
    """Return the loss where all of one's rows are in one part of an ungrouped count, and the other's in the other."""
    here, there = (Database((), tuple(visit(1, flag=flag) for _ in range(6))) for flag in ("true", "false"))
    return check(replacing, PARTS, here, [replaced(here, 1, there)])


def test_the_bound_of_parts_is_reached_by_replacing(replacing: World) -> None:
    assert replaced_in_parts(replacing) == 1


def test_a_newcomer_is_no_unit_of_the_database() -> None:
    """Replacing is removing and adding: the two owners differ, so that both count in full."""
    assert NEWCOMER not in UNITS

"""L1 and L9 over several tables: whatever joins, subqueries and windows stand below a release, the joint claim holds.

As test_neighbours.py, in the world of `random_joins`: all of one person's rows go, from every table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import Phase, example, given, settings

from dpsql.errors import EngineFailure
from dpsql.plan.planner import Plan
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_joins import (
    HEAVY,
    SCHEMA,
    Database,
    databases,
    load,
    orphaned,
    policy_of,
    row,
    units_of,
    without,
)

from .examples import REPEATED
from .measured import REACHED, Measured, World, compared, fixed_intermediates, measure_release, world
from .test_neighbours import planned

FUZZ = settings(REPEATED, max_examples=tried(4, 25))


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("add")
    with world(folder, policy=policy_of(folder), schema=SCHEMA, server=engine) as made:
        yield made


def measured(
    world: World, plans: list[Plan], database: Database, order: int, put: Callable[..., None] = load
) -> list[Measured | None]:
    """Return the exact integers of each plan; None where the engine failed (test_total_joined.py has that)."""
    world.settle(put, database, order)
    return [measured_here(world, plan) for plan in plans]


def measured_here(world: World, plan: Plan) -> Measured | None:
    intermediates = fixed_intermediates(plan)
    try:
        with world.backend.snapshot() as snapshot:
            return [measure_release(release, snapshot, intermediates) for release in plan.releases]
    except EngineFailure:
        return None


def check(
    world: World, sql: str, database: Database, neighbours: list[Database], put: Callable[..., None] = load
) -> Fraction | None:
    """Hold a statement's claim against all neighbours; return the largest loss per epsilon, None if it is refused."""
    (worst,) = check_all(world, [sql], database, neighbours, put)
    return worst


def check_all(
    world: World,
    sqls: list[str],
    database: Database,
    neighbours: list[Database],
    put: Callable[..., None] = load,
) -> list[Fraction | None]:
    """Hold the claims of several statements; the rows are put in, by `put`, once for all of them."""
    plans = {sql: plan for sql in sqls if (plan := planned(world, sql)) is not None and plan.releases}
    here = measured(world, list(plans.values()), database, 0, put)
    worst = {sql: Fraction(0) for sql, found in zip(plans, here, strict=True) if found is not None}
    for order, neighbour in enumerate(neighbours if plans else (), 1):
        there = measured(world, list(plans.values()), neighbour, order, put)
        for (sql, plan), left, right in zip(plans.items(), here, there, strict=True):
            if left is not None and right is not None:
                worst[sql] = max(worst[sql], compared(plan, left, right, sql))
    return [worst.get(sql) for sql in sqls]


def less(database: Database) -> list[Database]:
    return [gone(database, unit) for unit in units_of(database) for gone in (without, orphaned)]


# --- by hand ---------------------------------------------------------------------------------------------

TIGHT = (
    "SELECT COUNT(*) FROM account a JOIN booking b ON a.no = b.account_no",
    "SELECT COUNT(*) FROM note a JOIN note b ON a.person_id = b.person_id",
    "SELECT a.kind, SUM(b.amount) FROM account a JOIN booking b ON a.no = b.account_no GROUP BY a.kind",
    "SELECT n.city, COUNT(*) FROM note n CROSS JOIN tag t GROUP BY n.city",
    "SELECT COUNT(*) FROM person p JOIN profile f ON f.person_id = p.id",
    "SELECT f.level, COUNT(*) FROM profile f JOIN person p ON f.person_id = p.id GROUP BY f.level",
    "SELECT COUNT(*) FROM account a WHERE EXISTS (SELECT 1 FROM booking b WHERE b.account_no = a.no)",
    "SELECT COUNT(*) FROM person p WHERE 2 <= (SELECT COUNT(*) FROM note n WHERE n.person_id = p.id)",
    "SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id) t WHERE c > 2",
    "SELECT c, COUNT(*) FROM (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id) t GROUP BY c",
    "SELECT SUM(s) FROM (SELECT person_id, SUM(n) AS s FROM note GROUP BY person_id) t",
    "SELECT COUNT(*) FROM (SELECT person_id, n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM note) t WHERE k <= 9",
    "SELECT COUNT(*) FROM (SELECT person_id AS u FROM note UNION ALL SELECT person_id FROM account) t JOIN note n ON n.person_id = t.u",
    "SELECT COUNT(*) FROM note n JOIN (SELECT city, COUNT(*) AS c FROM note GROUP BY city) t ON t.city = n.city",
)  # fmt: skip


@pytest.mark.parametrize("sql", TIGHT)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """The scale is not larger than it has to be: a heavy unit moves some answer by all of it."""
    worst = check(adding, sql, HEAVY, [without(HEAVY, 1)])
    assert worst is not None
    assert worst >= REACHED


def test_the_bound_is_reached_by_the_rows_that_a_cut_leaves(adding: World) -> None:
    """Which six of the bookings are joined is a hash's choice; of one account's six all pairs count."""
    bookings = tuple(one for one in HEAVY.tables["booking"] if str(one[1]).endswith("0"))
    few = Database({**HEAVY.tables, "booking": bookings})
    sql = "SELECT COUNT(*) FROM booking b JOIN booking c ON b.account_no = c.account_no"
    assert check(adding, sql, few, [without(few, 1)]) == 1


ATTACKS = (
    # public rows that stay where nothing matches
    "SELECT t.tag, COUNT(n.person_id), COUNT(DISTINCT n.city) FROM tag t LEFT JOIN note n ON n.tag = t.tag GROUP BY t.tag",
    "SELECT t.tag, COUNT(n.n) FROM note n RIGHT JOIN tag t ON n.tag = t.tag AND n.city = 'a' GROUP BY t.tag",
    # a key on the nullable side is not one key of a person
    "SELECT f.city, COUNT(*) FROM note n LEFT JOIN profile f ON f.person_id = n.person_id AND n.city = 'a' GROUP BY f.city",
    "SELECT t.c, COUNT(*) FROM person p LEFT JOIN (SELECT tag AS k, COUNT(*) AS c FROM note GROUP BY tag) t ON t.k = p.home GROUP BY t.c",
    # rows that are there because nothing matches
    "SELECT COUNT(*) FROM account a FULL JOIN note n ON n.person_id = a.person_id AND n.n > 100 WHERE a.no IS NULL",
    "SELECT COUNT(*) FROM booking b WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.no = b.account_no)",
    "SELECT COUNT(*) FROM note n LEFT JOIN person p ON p.id = n.person_id WHERE p.id IS NULL",
    # a literal that several keys are equal to as doubles
    "SELECT COUNT(*) FROM account WHERE no = CAST(9007199254740992 AS double precision)",
    "SELECT big, COUNT(*) FROM booking WHERE big = 9007199254740992.0000000000000000001 GROUP BY big",
    # copies by public rows, one of whose keys is not unique
    "SELECT n.city, COUNT(*) FROM note n LEFT JOIN tag t ON t.tag = n.tag GROUP BY n.city",
    "SELECT COUNT(*) FROM note n JOIN (SELECT tag, COUNT(*) AS c FROM note GROUP BY ROLLUP (tag)) t ON t.tag = n.tag",
    # ties in the order of a window
    "SELECT COUNT(*) FROM (SELECT person_id, city, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM note) t WHERE k = 1 AND city = 'a'",
    "SELECT COUNT(*) FROM (SELECT person_id, n, FIRST_VALUE(n) OVER (PARTITION BY person_id ORDER BY day) AS k FROM note) t WHERE k > 2",
    # a subquery that numbers rows first has its columns in other places than its sources
    "SELECT COUNT(*) FROM (SELECT n, person_id, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY x) AS a, "
    "ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS b FROM (SELECT n, person_id, x, day FROM note) s) t WHERE a = b",
    # a subquery of several tables whose keys are a person's without saying whose
    "SELECT COUNT(*) FROM account a JOIN (SELECT b.account_no, COUNT(*) AS c FROM booking b JOIN account d ON d.no = b.account_no "
    "JOIN person p ON p.id = d.person_id GROUP BY b.account_no) t ON t.account_no = a.no WHERE t.c > 2",
)  # fmt: skip


@pytest.mark.parametrize("sql", ATTACKS)
@settings(FUZZ, max_examples=3, phases=tuple(Phase)[: tried(1, len(Phase))])
@given(databases())
@example(HEAVY)
def test_an_attack_moves_no_more_than_the_bound(adding: World, sql: str, database: Database) -> None:
    assert check(adding, sql, database, less(database)) is not None


NUMBERED = "SELECT COUNT(*) FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM note) t WHERE k <= 9"


def check_nobodys_rows(adding: World, sql: str) -> None:
    """Rows whose owner is NULL make no person below a release either."""
    plan = planned(adding, sql)
    assert plan is not None
    nobodys = tuple(row("note", None, n="5", x="2", tag="t", city="a") for _ in range(9))
    more = Database({**HEAVY.tables, "note": HEAVY.tables["note"] + nobodys})
    here, there = (measured(adding, [plan], database, 0)[0] for database in (HEAVY, more))
    assert here is not None
    assert here == there


@pytest.mark.parametrize("sql", [TIGHT[9], NUMBERED])
def test_rows_without_an_owner_make_no_person(adding: World, sql: str) -> None:
    check_nobodys_rows(adding, sql)


def test_ties_of_two_windows_are_broken_alike(adding: World) -> None:
    """Which of some equal rows is the k-th is one choice for all windows, however the rows are stored."""
    plan = adding.plan(
        "SELECT COUNT(*) FROM (SELECT person_id, n, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS a, "
        "ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY n) AS b FROM note) t WHERE a < b"
    )
    stored = (
        "DELETE FROM note; INSERT INTO note (person_id, n, day) SELECT u, 1, DATE '2020-01-01' "
        "FROM range(1, 6) AS a (u), range(2500) AS b (i) ORDER BY hash(u * 10000 + i + {})"
    )
    found = []
    for order in range(8):
        adding.connection.execute(stored.format(order))
        adding.refresh()
        with adding.backend.snapshot() as snapshot:
            found.append(measure_release(plan.releases[0], snapshot))
    assert all(other == found[0] for other in found)

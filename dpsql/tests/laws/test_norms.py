"""Norms (soundness.md 1.36): what is printed is one whole weight a person, which keeps every bound, for all groupings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isqrt

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.errors import EngineFailure, Refusal
from dpsql.plan import planner
from dpsql.plan.backend_sql import print_release
from dpsql.plan.measures import measurements
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, Row, databases, load, policy_of, without

from .examples import HEAVY, NOBODY, REPEATED, WIDE, visit
from .measured import World, measure_release, world
from .planting import plant
from .test_neighbours import check, neighbours_of

FUZZ = settings(REPEATED, max_examples=tried(4, 25))
LONG = settings(FUZZ, max_examples=1500, derandomize=False)
MOST, OF_MONTH, OF_CITY, OF_DAY = 6, 5, 4, 2
CITY = "SELECT city, COUNT(*) FROM visit GROUP BY city"
DAY = "SELECT day, COUNT(*) FROM visit GROUP BY day"
MONTH = "SELECT date_trunc('month', day), COUNT(*) FROM visit GROUP BY date_trunc('month', day)"
QUARTER = MONTH.replace("month", "quarter")
BOTH = "SELECT day, city, COUNT(*) FROM visit GROUP BY day, city"
FLAG = "SELECT flag, COUNT(*) FROM visit GROUP BY flag"
ALL = "SELECT COUNT(*) FROM visit"
Patch = pytest.MonkeyPatch


def opened(
    folder: pytest.TempPathFactory, engine: PostgresServer | None, *, replace_one: bool = False
) -> Iterator[World]:
    place = folder.mktemp("norms")
    policy = policy_of(place, replace_one=replace_one)
    table = replace(
        policy.tables["visit"], max_norm=(("month(day)", OF_MONTH), ("city", OF_CITY), ("day", OF_DAY))
    )
    policy = replace(
        policy,
        privacy=replace(policy.privacy, accounting=Accounting.ZCDP),
        tables={**policy.tables, "visit": table},
    )
    with world(place, policy=policy, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def normed(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine)


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, replace_one=True)


def on_days(unit: int, days: dict[str, int], city: str | None = None) -> list[tuple[int | None, Row]]:
    return [
        visit(unit, day=day, city=city, n="7", flag="true") for day, rows in days.items() for _ in range(rows)
    ]


ONE_PLACE = Database((), tuple(on_days(1, {"2020-02-02": 31}, "a")))
APART = Database((), tuple(on_days(1, {f"2020-02-{i + 1:02}": 1 + i % 2 for i in range(7)}, "b")))
UNLISTED = Database(
    (), tuple(on_days(1, {f"2021-{1 + i // 28:02}-{1 + i % 28:02}": 1 for i in range(60)}, "z"))
)
"""Sixty rows on sixty days that no list has: one place, and 60 in root-sum-of-squares there."""
BEYOND = Database((), tuple(on_days(1, {"2020-12-31": 9, "2021-01-01": 9, "2022-07-01": 9}, "z")))
"""Rows beyond the bounds are of the last month, where months are computed of days; no other day is one of the list."""
A_QUARTER = Database(
    (),
    tuple(
        row
        for n in range(8)
        for row in on_days(1, {f"2020-0{4 + n % 3}-{1 + n:02}": 1}, ("a", "b", "c", "z")[n % 4])
    ),
)
"""Eight days of one quarter that no norm but that by days cuts: 2·√8 rows of it."""


# --- the printed form ---------------------------------------------------------------------------------------


def weight_of(rows: Counter[tuple[str | None, str | None]], unit: int) -> int:
    """Return the largest weight that keeps every bound of a person, in exact integers; `rows`: by city and day."""
    places: dict[int, Counter[object]] = {most: Counter() for most in (OF_MONTH, OF_CITY, OF_DAY)}
    for (city, day), count in rows.items():
        places[OF_CITY][city if city in ("a", "b", "c") else None] += count
        places[OF_MONTH][None if day is None else min(day, "2020-12-31")[:7]] += count
        places[OF_DAY][day if day is not None and day.startswith("2020") else None] += count
    total = rows.total()
    bounds = [MOST * unit // total]
    for most, counts in places.items():
        squares = sum(count**2 for count in counts.values())
        bounds.append(isqrt((most * unit) ** 2 // squares))
    return min(unit, *bounds)


def expected(database: Database, unit: int) -> int:
    """Return the count of all rows, each weighed."""
    people: dict[int, Counter[tuple[str | None, str | None]]] = {}
    for owner, cells in database.visits:
        if owner is not None:
            row = dict(zip(("city", "day"), (cells[10], cells[12]), strict=True))
            people.setdefault(owner, Counter())[row["city"], row["day"]] += 1
    return sum(weight_of(rows, unit) * rows.total() for rows in people.values())


def totals(world: World, sql: str) -> tuple[int, int]:
    """Return what the groups of a count add up to, that of all others too, and U."""
    (release,) = world.plan(sql).releases
    with world.backend.snapshot() as snapshot:
        (counts,) = measure_release(release, snapshot).values()
    return sum(value for (value,) in counts.values()), release.measurements[0].denominator


@settings(FUZZ, max_examples=tried(5, 40))
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3), st.sampled_from([None, "a", "b", "z"]),
            st.sampled_from([None, "2020-01-01", "2020-01-02", "2020-02-01", "2020-12-01", "2021-01-01", "2022-01-01"]), st.integers(1, 12),
        ),
        max_size=12,
    )
)  # fmt: skip
@example([(1, "z", f"2021-01-{i:02}", 1) for i in range(1, 29)])
@example([(1, "a", "2020-01-01", 1), (1, "b", "2020-01-02", 2)])
def test_the_weight_is_the_largest_and_one_for_all_groupings(
    normed: World, rows: list[tuple[int, str | None, str | None, int]]
) -> None:
    visits = tuple(visit(unit, city=city, day=day) for unit, city, day, count in rows for _ in range(count))
    database = Database((), visits)
    normed.settle(load, database)
    total, unit = totals(normed, ALL)
    assert total == expected(database, unit)
    assert {totals(normed, sql) for sql in (CITY, DAY, BOTH, FLAG, MONTH, QUARTER)} <= {(total, unit)}


# --- neighbours ---------------------------------------------------------------------------------------------


@FUZZ
@given(statements("one table"), databases())
@example(CITY, HEAVY)
@example(DAY, UNLISTED)
@example(MONTH, BEYOND)
@example(MONTH.replace(" GROUP", " WHERE day > '2020-04-30' GROUP"), BEYOND)
@example(QUARTER, A_QUARTER)
@example(BOTH, APART)
@example("SELECT day, city, AVG(n), COUNT(*) FILTER (WHERE flag) FROM visit GROUP BY day, city", WIDE)
@example("SELECT city, CORR(n, x), VAR_POP(d) FROM visit GROUP BY city", HEAVY)
def test_a_person_moves_no_more_than_is_claimed(normed: World, sql: str, database: Database) -> None:
    try:
        if normed.plan(sql).intermediates:
            return  # what they are is no number of rows
        check(normed, sql, database, neighbours_of(normed, database, NOBODY))
    except (Refusal, EngineFailure):
        return


@pytest.mark.long
@LONG
@given(statements("one table"), databases())
def test_a_person_moves_no_more_at_length(normed: World, sql: str, database: Database) -> None:
    test_a_person_moves_no_more_than_is_claimed.hypothesis.inner_test(normed, sql, database)  # type: ignore[attr-defined]


@pytest.mark.parametrize("sql", [CITY, DAY, MONTH, "SELECT day, SUM(n) FROM visit GROUP BY day"])
def test_a_person_who_is_replaced_moves_no_more(replacing: World, sql: str) -> None:
    for here in (ONE_PLACE, UNLISTED, APART, BEYOND):
        assert check(
            replacing,
            sql,
            here,
            neighbours_of(replacing, here, Database((), tuple(on_days(1, {"2020-05-05": 30}, "c")))),
        )


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        (CITY, OF_CITY),
        (DAY, OF_DAY),
        (BOTH, OF_DAY),
        (MONTH, OF_MONTH),
        (QUARTER, MOST),
        (FLAG, MOST),
        (ALL, MOST),
    ],
)
def test_noise_follows_the_least_norm_that_the_groups_refine(normed: World, sql: str, most: int) -> None:
    (release,) = normed.plan(sql).releases
    (measurement,) = release.measurements
    assert measurement.squared_sensitivity == (most * measurement.denominator) ** 2


@pytest.mark.parametrize(
    ("sql", "database"), [(CITY, ONE_PLACE), (DAY, ONE_PLACE), (DAY, UNLISTED), (BOTH, ONE_PLACE)]
)
def test_the_bound_is_reached(normed: World, sql: str, database: Database) -> None:
    """By whoever has all rows in one place, by the least norm of all: T_day of T_city."""
    worst = check(normed, sql, database, [without(database, 1)])
    assert worst is not None
    assert worst > (0.99 if sql != CITY else 0.24)


def test_a_list_that_is_narrower_holds_no_norm(normed: World) -> None:
    """`other` has rows of the places that the list leaves out."""
    (release,) = normed.plan("SELECT day, COUNT(*) FROM visit WHERE day < '2020-03-01' GROUP BY day").releases
    assert release.axes is None or release.axes[0].others
    assert release.measurements[0].squared_sensitivity == (MOST * release.measurements[0].denominator) ** 2


# --- mutants ------------------------------------------------------------------------------------------------

_WITHIN, _NORMED = print_release.ReleasePrinter._within, planner._normed
MUTANTS: dict[str, tuple[Callable[..., object], str, str, str, Database]] = {
    "places by values as they are": (_WITHIN, 'f"SELECT {by}, {place} AS g', 'f"SELECT {by}, {name} AS g', DAY, UNLISTED),
    "rows of listed places alone": (_WITHIN, "FROM ({placed}) AS r GROUP BY {by}, g", "FROM ({placed}) AS r WHERE g IS NOT NULL GROUP BY {by}, g", DAY, UNLISTED),
    "rows and not their squares": (_WITHIN, '"SUM(c * c)"', '"SUM(c)"', DAY, ONE_PLACE),
    "a root that is not tested": (_WITHIN, "* s <= {most} THEN {x}\"", "* s >= 0 THEN {x} + 1\"", DAY, ONE_PLACE),
    "the greatest weight": (print_release.ReleasePrinter._lighter, "MIN(w)", "MAX(w)", DAY, ONE_PLACE),
    "every norm holds": (_NORMED, "one == key and _holds(norm, one, own, release)", "True", FLAG, APART),
    "months hold quarters": (_NORMED, "one == key and _holds(norm, one, own, release)", "one.calls('date_trunc') and key.calls('date_trunc')", QUARTER, A_QUARTER),
    "a norm as it is in rows": (measurements.Bounding.capped, "min(squared, self.in_norm**2)", "min(squared, self.in_norm)", DAY, ONE_PLACE),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_plant(normed: World, monkeypatch: Patch, name: str) -> None:
    function, old, new, sql, database = MUTANTS[name]
    assert check(normed, sql, database, [without(database, 1)])
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        check(normed, sql, database, [without(database, 1)])


def test_forget_norms_in_what_is_stored(normed: World) -> None:
    """Numbers that are weighed otherwise are other numbers."""
    (release,) = normed.plan(CITY).releases
    without_norms = replace(release, bounding=replace(release.bounding, norms=()))

    def family(plan: ReleasePlan) -> bytes | None:
        return plan.family(0, ())

    assert family(release) != family(without_norms)

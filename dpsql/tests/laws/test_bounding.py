"""Counts and sums as they are printed (all rows as they are, and a correction for units with more than R) beside the
plain form of the same bound: every unit's part of every group times the weight by its rows t (1.9), integer for integer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import example, given, settings

from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.backend_sql.print_sums import UnitSums
from dpsql.plan.measures.measurements import (
    WEIGHT,
    BoundingQuery,
    Joint,
    Pair,
    counted_in,
)
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.tests.support import random_joins
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_databases import Database, databases, load

from .examples import HEAVY, ORDINARY, REPEATED, visit
from .measured import World, fixed_intermediates, measure_release, world

FUZZ = settings(REPEATED, max_examples=tried(6, 40))
LONG = settings(FUZZ, max_examples=3000, derandomize=False)
Patch = pytest.MonkeyPatch


# --- the plain form ------------------------------------------------------------------------------------------


def by_window(release: ReleasePlan, numbers: tuple[int, ...]) -> BackendQuery:
    """Print scaled measurements with t as a window over each unit's groups: slow, and easy to believe."""
    printer = print_release.ReleasePrinter(
        release.release.rows, release.release.keys, release.measurements, release.bounding, release.domains, {},
        release.dialect, axes=release.axes,
    )  # fmt: skip
    filters = counted_in(release.measurements)
    inner = printer._inner(numbers, shows_unit=True)
    flags = [f"{inner.item(inner.printer.boolean(term), 'f')} IS TRUE" for term in filters]
    sums = UnitSums(inner)
    most = release.bounding.in_all
    weight = release.dialect.quotient(
        str(most * WEIGHT), f"GREATEST(t, {most})", wide=False, most=most * WEIGHT
    )
    coordinates = [
        (f"m{number}_{i}", f"SUM({sql} * {weight})")
        for number in numbers
        for i, sql in enumerate(release.measurements[number].whole(sums))
    ]
    counted = f"COUNT(*) FILTER (WHERE {' OR '.join(flags)})" if flags else "COUNT(*)"
    t = f"CAST(SUM({counted}) OVER (PARTITION BY u) AS BIGINT) AS t"
    by = ["u", *printer.key_names]
    units = f"SELECT {sums.sql(by)}, {t} FROM ({inner.sql()}) AS r GROUP BY {', '.join(by)}"
    sql = printer._by_group(f"({units}) AS p", [(name, f"COALESCE({one}, 0)") for name, one in coordinates])
    return print_release._query(sql, numbers, inner.sources)


def compare(world: World, plan: Plan) -> int:
    """Hold the printed form against the plain one on what the world holds; return how many measurements were
    compared."""
    compared = 0
    for release in plan.releases:
        numbers = tuple(
            i
            for i, measurement in enumerate(release.measurements)
            if measurement.query is BoundingQuery.SCALED
        )
        if release.bounding.per_row or release.is_empty or not numbers:
            continue
        queries: list[Callable[[ReleasePlan, tuple[int, ...]], tuple[BackendQuery, ...]]] = [
            lambda one, _, numbers=numbers: tuple(q for q in printed(one, numbers)),
            lambda one, _, numbers=numbers: (by_window(one, numbers),),
        ]
        found = []
        for query in queries:
            with pytest.MonkeyPatch.context() as patch, world.backend.snapshot() as snapshot:
                patch.setattr(ReleasePlan, "queries", query)
                found.append(measure_release(release, snapshot, fixed_intermediates(plan)))
        assert found[0] == found[1], [q.sql for q in printed(release, numbers)]
        compared += len(numbers)
    return compared


printed = ReleasePlan.queries


def check(world: World, sql: str) -> int:
    try:
        return compare(world, world.plan(sql))
    except (Refusal, EngineFailure):
        return 0


CITIES = "SELECT city, COUNT(*), SUM(n), AVG(x), VAR_POP(d) FROM visit GROUP BY city"
PARTS = "SELECT city, COUNT(*) FILTER (WHERE flag), SUM(n) FILTER (WHERE tag = 'p') FROM visit GROUP BY city"


@FUZZ
@given(statements("one table"), databases())
@example(CITIES, HEAVY)
@example(PARTS, HEAVY)
@example("SELECT SUM(big), COUNT(x), AVG(x) FROM visit WHERE n > 0", HEAVY)
def test_the_printed_form_is_the_plain_one(single: World, sql: str, database: Database) -> None:
    single.settle(load, database)
    check(single, sql)


@FUZZ
@given(statements(), random_joins.databases())
def test_the_printed_form_is_the_plain_one_over_joins(
    joined: World, sql: str, database: random_joins.Database
) -> None:
    joined.settle(random_joins.load, database)
    check(joined, sql)


@pytest.mark.long
@LONG
@given(statements("one table"), databases())
def test_the_printed_form_is_the_plain_one_at_length(single: World, sql: str, database: Database) -> None:
    single.settle(load, database)
    check(single, sql)


@pytest.mark.long
@LONG
@given(statements(), random_joins.databases(most=14))
def test_the_printed_form_is_the_plain_one_over_joins_at_length(
    joined: World, sql: str, database: random_joins.Database
) -> None:
    joined.settle(random_joins.load, database)
    check(joined, sql)


def test_all_kinds_that_are_scaled_are_compared(single: World) -> None:
    plan = single.plan(CITIES)
    assert {measurement.kind for release in plan.releases for measurement in release.measurements} >= {
        Pair.kind,
        Joint.kind,
    }
    single.settle(load, HEAVY)
    assert compare(single, plan) == len(plan.releases[0].measurements)
    assert compare(single, single.plan(PARTS)) == 2


# --- mutants that are private, and wrong ------------------------------------------------------------------------


OWNED = '("person_id" IS NOT NULL)'


def rewritten(patch: Patch, change: Callable[[str], str]) -> None:
    scaled = print_release.ReleasePrinter.scaled

    def mutant(self: print_release.ReleasePrinter, numbers: tuple[int, ...]) -> BackendQuery:
        query = scaled(self, numbers)
        assert change(query.sql) != query.sql
        return BackendQuery(change(query.sql), query.measurements, query.salted, query.intermediates)

    patch.setattr(print_release.ReleasePrinter, "scaled", mutant)


def test_scale_units_with_few_rows_up(single: World, monkeypatch: Patch) -> None:
    single.settle(load, ORDINARY)
    everybody = (
        (r"HAVING COUNT\(\*\) > \d+", "HAVING COUNT(*) > 0"),
        (r"GREATEST\((COUNT\(\*\)), \d+\)", r"\1"),
    )
    rewritten(monkeypatch, lambda sql: reduce(lambda one, pair: re.sub(*pair, one), everybody, sql))
    with pytest.raises(AssertionError):
        compare(single, single.plan(CITIES))


def test_count_rows_of_declared_groups_alone(single: World, monkeypatch: Patch) -> None:
    far = Database((), tuple(visit(1, city=city, n="7") for city in "abz" for _ in range(4)))
    single.settle(load, far)
    assert compare(single, single.plan(CITIES))
    rewritten(
        monkeypatch,
        lambda sql: sql.replace(OWNED, f"{OWNED} AND city IN ('a', 'b')", 1),
    )
    with pytest.raises(AssertionError):
        compare(single, single.plan(CITIES))


def test_count_rows_of_one_mask_alone(single: World, monkeypatch: Patch) -> None:
    single.settle(load, HEAVY)
    rewritten(monkeypatch, lambda sql: sql.replace(OWNED, f"{OWNED} AND flag", 1))
    with pytest.raises(AssertionError):
        compare(single, single.plan(PARTS))


# --- how little is lost ------------------------------------------------------------------------------------------


def test_one_row_too_many_loses_fractions_of_a_row(tmp_path_factory: pytest.TempPathFactory) -> None:
    """41 rows in 41 groups at R = 40: each group keeps 40/41 of its row, but for a fraction; whole rows would keep
    none."""
    folder = tmp_path_factory.mktemp("fractions")
    policy = random_joins.policy_of(folder, rows=40, groups=1)
    with world(folder, policy=policy, schema=random_joins.SCHEMA) as made:
        notes = tuple(random_joins.row("note", 1, n="1", city="a", ref=str(i)) for i in range(41))
        nothing: dict[str, tuple[random_joins.Row, ...]] = dict.fromkeys(random_joins.PRIVATE, ())
        made.settle(random_joins.load, random_joins.Database({**nothing, "note": notes}))
        (release,) = made.plan(
            f"SELECT ref, COUNT(*) FROM note WHERE ref IN ({', '.join(map(str, range(41)))}) GROUP BY ref"
        ).releases
        with made.backend.snapshot() as snapshot:
            (counts,) = measure_release(release, snapshot).values()
        (measurement,) = release.measurements
        assert (release.bounding.in_all, measurement.denominator, len(counts)) == (40, WEIGHT, 41)
        total = sum(value for (value,) in counts.values())
        assert 40 * measurement.denominator - 41 <= total <= 40 * measurement.denominator

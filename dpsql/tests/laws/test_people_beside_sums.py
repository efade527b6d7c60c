"""The count of people in the statement of the sums, beside a statement for each of the two: integer for integer.

And the groups that come to the test of soundness.md 1.7: those that keep people, however the others come out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.errors import EngineFailure, Refusal
from dpsql.plan.backend_sql import print_release
from dpsql.plan.planner import Plan
from dpsql.plan.privacy.rows import selects_in
from dpsql.plan.release_plan import ReleasePlan
from dpsql.release.privatise import Exact, publish
from dpsql.testing.injected_noise import CountingNoise
from dpsql.tests.support import random_joins
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_databases import Database, databases, load

from .examples import HEAVY, REPEATED, WIDE, visit
from .measured import Groups, World, fixed_intermediates, measure_release
from .planting import plant
from .test_mutations import adding, holds

__all__ = ["adding"]

FUZZ = settings(REPEATED, max_examples=tried(6, 40))
LONG = settings(FUZZ, max_examples=3000, derandomize=False)
Patch = pytest.MonkeyPatch


PEOPLE = "SELECT tag, COUNT(DISTINCT person_id), COUNT(*), SUM(n) FROM visit GROUP BY tag"
KEYS = st.sampled_from(("tag", "n", "tag, n", "x > 0, tag", "city, tag"))
SUMS = st.lists(
    st.sampled_from(
        ("COUNT(*)", "SUM(n)", "AVG(x)", "COUNT(*) FILTER (WHERE flag)", "SUM(n) FILTER (WHERE tag = 'p')", "VAR_POP(d)")
    ),
    min_size=1, max_size=3,
)  # fmt: skip
WHERE = st.sampled_from(("", "WHERE n > 0", "WHERE flag OR city = 'a'"))


def compare(world: World, plan: Plan) -> int:
    """Hold one statement against two on what the world holds; return how many releases had both in one.

    Who has more groups than are kept has them of a heap in the one, where the engine has any, and of a window in the two.
    """
    compared = 0
    for release in plan.releases:
        blocks = selects_in(release.release.rows)
        if release.is_empty or any(item.source.most is not None for block in blocks for item in block.items):
            continue  # which rows are cut depends on the columns that are read
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(print_release, "_FAR", 1)
            together = _measured(world, release, plan)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(print_release.ReleasePrinter, "is_count_of_all_people", lambda self, ranked: False)
            apart = _measured(world, release, plan)
            queries = release.queries(tuple(range(len(release.measurements))))
        assert together == apart, [query.sql for query in queries]
        compared += len(release.queries(tuple(range(len(release.measurements))))) < len(queries)
    return compared


def _measured(world: World, release: ReleasePlan, plan: Plan) -> dict[int, Groups]:
    with world.backend.snapshot() as snapshot:
        return measure_release(release, snapshot, fixed_intermediates(plan))


def check(world: World, sql: str) -> None:
    try:
        compare(world, world.plan(sql))
    except (Refusal, EngineFailure):
        return


@FUZZ
@given(KEYS, SUMS, WHERE, databases())
@example("tag", ["COUNT(*) FILTER (WHERE flag)"], "", WIDE)
@example("tag, n", ["SUM(n)", "COUNT(*)"], "", HEAVY)
def test_one_statement_counts_what_two_do(
    single: World, keys: str, sums: list[str], where: str, database: Database
) -> None:
    single.settle(load, database)
    check(
        single,
        f"SELECT {keys}, COUNT(DISTINCT person_id), {', '.join(sums)} FROM visit {where} GROUP BY {keys}",
    )


@FUZZ
@given(statements(), random_joins.databases())
def test_one_statement_counts_what_two_do_over_joins(
    joined: World, sql: str, database: random_joins.Database
) -> None:
    joined.settle(random_joins.load, database)
    check(joined, sql)


@pytest.mark.long
@LONG
@given(statements(), random_joins.databases(most=14))
def test_one_statement_counts_what_two_do_over_joins_at_length(
    joined: World, sql: str, database: random_joins.Database
) -> None:
    joined.settle(random_joins.load, database)
    check(joined, sql)


def test_both_ways_are_compared(single: World) -> None:
    single.settle(load, WIDE)
    assert compare(single, single.plan(PEOPLE)) == 1
    for apart in ("SELECT city, tag, COUNT(*) FROM visit GROUP BY city, tag", "SELECT COUNT(*) FROM visit"):
        assert compare(single, single.plan(apart)) == 0


# --- the groups that are tested ----------------------------------------------------------------------------------


def groups_tested(world: World, minimum_units: int) -> tuple[int, list[int]]:
    """Return how many groups come to the test, and the count of people in each that the statement returns."""
    world.settle(
        load, Database((), tuple(visit(unit, tag=tag) for unit in (1, 2) for tag in "abcdefgh"[: 4 * unit]))
    )
    (release,) = world.plan(PEOPLE).releases
    assert release.counted is not None
    people = _measured(world, release, world.plan(PEOPLE))[release.counted]
    exact, noise = Exact(), CountingNoise()
    counts = [count for (count,) in people.values()]
    exact.add([[tag for (tag,) in people]], {(release.counted, 0): counts}, len(counts))
    publish(exact, release, noise, minimum_units)
    return len(noise.given), counts


def test_a_group_that_keeps_nobody_is_not_tested(single: World, monkeypatch: Patch) -> None:
    for minimum in (1, 2):
        asked, counts = groups_tested(single, minimum)
        assert 0 not in counts
        assert len(counts) < 8
        assert sum(counts) == 4, "each of two units keeps two groups"
        assert asked == sum(count >= minimum for count in counts)
    plant(monkeypatch, publish, ("counts >= minimum_units", "counts >= minimum_units - 1"))
    asked, counts = groups_tested(single, 2)
    assert asked > sum(count >= 2 for count in counts)


def test_groups_that_are_not_tested_are_summed_whoever_keeps_them(single: World) -> None:
    """Keys that are read from public tables have no test: one person would take the rows of others in and out."""
    groups_tested(single, 1)
    (release,) = single.plan(PEOPLE).releases
    listed = replace(release, counted=None)
    measured = _measured(single, listed, single.plan(PEOPLE))
    assert all("people" not in query.sql for query in listed.queries(tuple(measured)))
    assert all(len(groups) == 8 for number, groups in measured.items() if number != release.counted)


FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "one group more than C": (
        print_release.ReleasePrinter._people, "self.key_names, self.bounding.groups)",
        "self.key_names, self.bounding.groups + 1)",
    ),
    "what is beyond C stays in": (print_release.ReleasePrinter._people, '"kept" if self.bounding.ranked', '"p" if self.bounding.ranked'),
    "who is above C stays whole too": (
        print_release.ReleasePrinter._kept, 'self.dialect.without(source, "above", self.unit, columns)',
        """f"SELECT {', '.join(columns)} FROM {source}\"""",
    ),
    "who is above R counts in groups that somebody keeps": (
        print_release.ReleasePrinter._heavy_of_people, '_heavy("p"', '_heavy("(SELECT * FROM p LIMIT 1) AS p"',
    ),
    "t is of the groups that its unit keeps": (
        print_release.ReleasePrinter._heavy_of_people, '_heavy("p"',
        '_heavy("(SELECT p.* FROM p SEMI JOIN kept USING (u, k0)) AS p"',
    ),
    "t is of one group": (print_release.ReleasePrinter._heavy_of_people, '"SUM(c)"', '"MAX(c)"'),
    "t is the number of groups": (print_release.ReleasePrinter._heavy_of_people, '"SUM(c)"', '"COUNT(*)"'),
}  # fmt: skip


@pytest.mark.parametrize("far", [1, 64])
@pytest.mark.parametrize(("function", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(
    adding: World, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str, far: int
) -> None:
    monkeypatch.setattr(print_release, "_FAR", far)
    sql = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
    others = (visit(2 + place // 2, tag=tag) for place, tag in enumerate("abcdefgh"))
    many = Database((), (*(visit(1, tag=tag) for tag in "abcdefgh" for _ in range(6)), *others))
    holds(adding, sql, many)
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        holds(adding, sql, many)

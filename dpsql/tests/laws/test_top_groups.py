"""The largest groups, chosen before they are measured: the joint claim on real engines, the law of the choice by
enumeration, and known ways to be wrong (soundness.md 1.23)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsql.mechanisms import SampledNoise
from dpsql.plan import planner, release_plan
from dpsql.plan.backend_sql import print_release, print_sums
from dpsql.plan.measures import least_error
from dpsql.plan.measures.least_error import TopGroups
from dpsql.plan.release_plan import ReleasePlan
from dpsql.release import privatise
from dpsql.release.privatise import Exact, draw_picks, pick_groups
from dpsql.release.released import Groups
from dpsql.testing.injected_noise import SeededSource, ZeroNoise
from dpsql.tests.mechanisms.test_permute_and_flip import law_of
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, databases, load, policy_of, replaced

from .examples import HEAVY, NOBODY, WIDE, visit
from .measured import REACHED, World, measure_release, world
from .test_mutations import holds, rewrite
from .test_neighbours import FUZZ, LONG, check, check_all, neighbours_of

Patch = pytest.MonkeyPatch

STATEMENTS = (
    "SELECT city, COUNT(*) FROM visit GROUP BY city ORDER BY 2 DESC LIMIT 1",
    "SELECT city, COUNT(*) AS n FROM visit GROUP BY city ORDER BY n DESC LIMIT 3",
    "SELECT city, COUNT(n) AS c, AVG(d) FROM visit GROUP BY city ORDER BY c DESC LIMIT 2",
    "SELECT n, SUM(d) AS s FROM visit GROUP BY n ORDER BY s DESC LIMIT 2",
    "SELECT city, flag, SUM(d) AS s, COUNT(*) FROM visit GROUP BY city, flag ORDER BY s DESC, city LIMIT 2",
    "SELECT n, COUNT(DISTINCT person_id) AS p FROM visit GROUP BY n ORDER BY p DESC LIMIT 2",
    "SELECT n, COUNT(DISTINCT tag), COUNT(*) AS c FROM visit GROUP BY n ORDER BY c DESC LIMIT 2",
    "SELECT city, COUNT(*) FILTER (WHERE flag) AS c, MEDIAN(n) FROM visit GROUP BY city ORDER BY c DESC LIMIT 1",
    "SELECT v.city, COUNT(*) AS c FROM visit v JOIN person p ON p.id = v.person_id GROUP BY 1 ORDER BY c DESC LIMIT 2",
    "SELECT city, SUM(big % 7) AS s FROM visit GROUP BY city ORDER BY s DESC LIMIT 1",
)


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    """Two rows count in a group and 16 groups of a unit: R is 32."""
    folder = tmp_path_factory.mktemp("add")
    with world(folder, policy=policy_of(folder, rows=2, groups=16), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("replace")
    policy = policy_of(folder, replace_one=True, rows=2, groups=16)
    with world(folder, policy=policy, server=engine) as made:
        yield made


# --- the claim ------------------------------------------------------------------------------------------


def chosen(release: ReleasePlan) -> TopGroups:
    assert release.top is not None
    return release.top


@pytest.mark.parametrize("sql", STATEMENTS)
def test_all_of_these_choose(adding: World, sql: str) -> None:
    (release,) = adding.plan(sql).releases
    assert chosen(release).count == int(sql[-1])
    assert sum(release.losses) <= 1


@FUZZ
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4), databases())
def test_one_unit_less(adding: World, sqls: list[str], database: Database) -> None:
    check_all(adding, sqls, database, neighbours_of(adding, database, NOBODY))


@FUZZ
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4), databases(), databases(most=8))
def test_one_unit_replaced(replacing: World, sqls: list[str], database: Database, newcomer: Database) -> None:
    check_all(replacing, sqls, database, neighbours_of(replacing, database, newcomer))


@pytest.mark.long
@LONG
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4), databases())
def test_one_unit_less_at_length(adding: World, sqls: list[str], database: Database) -> None:
    check_all(adding, sqls, database, neighbours_of(adding, database, NOBODY))


ONE, THREE = STATEMENTS[:2]


def in_cities(rows: dict[str | None, int], unit: int = 1) -> Database:
    """One unit with so many visits in each city."""
    cities = [city for city, count in rows.items() for _ in range(count)]
    return Database((), tuple(visit(unit, city=city, n="7", d="5") for city in cities))


EVERYWHERE = in_cities({"a": 9, "b": 9, "c": 9, None: 9})


@pytest.mark.parametrize("sql", [ONE, THREE])
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """A person in every group moves all scores by M, and the counts of any chosen ones by all that they may."""
    assert check(adding, sql, EVERYWHERE, neighbours_of(adding, EVERYWHERE, NOBODY)) >= REACHED


def test_the_bound_is_reached_by_replacing(replacing: World) -> None:
    """Of two scores one rises by M and one falls by M; the first city is the one that is counted here."""
    here, there = in_cities({"a": 9}), in_cities({"b": 9})
    assert REACHED <= check(replacing, ONE, here, [replaced(here, 1, there)]) / Fraction(3, 4) <= 1


def test_scores_only_rise_with_one_more_person(adding: World) -> None:
    """What permute-and-flip without a 2 rests on: a person adds to every score, whatever the rows hold."""
    for database in (HEAVY, WIDE, EVERYWHERE)[: tried(2, 3)]:
        for sql in STATEMENTS:
            (release,) = adding.plan(sql).releases
            with_all, *without_one = [
                measured_scores(adding, release, one)
                for one in (database, *neighbours_of(adding, database, NOBODY))
            ]
            for others in without_one:
                changes = [with_all[key][0] - others[key][0] for key in with_all]
                assert min(changes) >= 0
                assert max(changes) <= chosen(release).each


def measured_scores(world: World, release: ReleasePlan, database: Database) -> dict[Any, tuple[int, ...]]:
    world.settle(load, database)
    assert release.selection is not None
    with world.backend.snapshot() as snapshot:
        return measure_release(release, snapshot)[release.selection]


def test_scores_are_what_a_person_may_add(adding: World) -> None:
    """By the definition: of each person in each city at most two rows; a city that is not declared has no score."""
    rows = {(1, "a"): 5, (1, "b"): 1, (2, "a"): 1, (3, "a"): 2, (3, None): 9, (4, "elsewhere"): 7}
    visits = tuple(visit(unit, city=city) for (unit, city), count in rows.items() for _ in range(count))
    (release,) = adding.plan(ONE).releases
    found = measured_scores(adding, release, Database((), visits))
    assert found == {("a",): (5,), ("b",): (1,), ("c",): (0,), (None,): (2,)}


def test_what_is_chosen_is_measured_alone(adding: World) -> None:
    """A person's rows in other groups take nothing from those that were chosen."""
    adding.settle(load, in_cities({"a": 2, "b": 2, "c": 60}))
    (release,) = adding.plan(
        "SELECT city, COUNT(*) AS n FROM visit GROUP BY city ORDER BY n DESC LIMIT 2"
    ).releases
    for groups, counts in (((("a",), ("b",)), (2, 2)), ((("b",), ("c",)), (2 * 4 / 62, 60 * 4 / 62))):
        (query,) = release.queries((0,), groups)
        with adding.backend.snapshot() as snapshot:
            rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
        assert {(key,): count // 2**20 for key, count in rows} == dict(
            zip(groups, map(int, counts), strict=True)
        )


# --- the law of the choice --------------------------------------------------------------------------------

Law = dict[tuple[int, ...], float]


def law_of_choices(scores: Sequence[int], gamma: Fraction, count: int) -> Law:
    """Return the probability of each set of `count` candidates, by all orders in which they may be chosen."""
    found: Counter[tuple[int, ...]] = Counter()

    def peel(left: tuple[int, ...], taken: tuple[int, ...], chance: float) -> None:
        if len(taken) == count:
            found[tuple(sorted(taken))] += chance  # type: ignore[assignment]
            return
        for place, p in enumerate(law_of([scores[i] for i in left], gamma)):
            peel(left[:place] + left[place + 1 :], (*taken, left[place]), chance * p)

    peel(tuple(range(len(scores))), (), 1.0)
    return dict(found)  # type: ignore[arg-type]


def worst(changes: Sequence[tuple[int, ...]], gamma: Fraction, count: int) -> float:
    """Return the largest log-ratio over all counts 0 .. 3 of three groups and what a neighbour has more or less."""
    laws = {
        scores: law_of_choices(scores, gamma, count) for scores in itertools.product(range(-1, 5), repeat=3)
    }
    return max(
        abs(math.log(laws[here][sets] / laws[there][sets]))
        for here in itertools.product(range(4), repeat=3)
        for change in changes
        if (there := tuple(a + b for a, b in zip(here, change, strict=True))) in laws
        for sets in laws[here]
    )


ADD = tuple(itertools.product((0, 1), repeat=3))
REPLACE = tuple(itertools.product((-1, 0, 1), repeat=3))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("changes", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_the_log_ratio_of_neighbours(changes: tuple[tuple[int, ...], ...], factor: int, count: int) -> None:
    """Three groups of 0 to 3 people, each of whom may be in all: at most epsilon, by enumeration."""
    gamma = Fraction(1, factor * count)
    assert worst(changes, gamma, count) <= 1 + 1e-9
    if factor == 2:
        assert worst(changes, 2 * gamma, count) > 1  # without the 2 it is not private


def test_the_gamma_of_a_plan(adding: World, replacing: World) -> None:
    """Epsilon over the choices, over M, and over 2 where a person takes another's place."""
    for where, factor in ((adding, 1), (replacing, 2)):
        for sql, count in ((ONE, 1), (THREE, 3)):
            (release,) = where.plan(sql).releases
            assert release.selection is not None
            epsilon = release.measures[release.selection].epsilon
            assert 1 / release.measures[release.selection].scale == epsilon / (count * factor * 2)


def picked(release: ReleasePlan, scores: Sequence[int], noise: Any) -> ReleasedKeys:
    groups = Groups((list("xyz"),), 3)
    exact = Exact()
    exact.add([list("xyz")], {(release.selection or 0, 0): list(scores)}, 3)
    found = pick_groups(exact, release, groups, draw_picks(release, 3, noise)).groups
    assert found is not None
    return tuple(key for (key,) in found.tuples())


ReleasedKeys = tuple[Any, ...]


@pytest.mark.parametrize("scores", [(3, 1, 0), (2, 2, 2), (0, 0, 0)])
def test_the_choice_has_the_law(adding: World, scores: tuple[int, ...]) -> None:
    """Sets of two of three: chi-squared against the enumeration, which rejects the law of twice the scale."""
    sql = "SELECT city, COUNT(*) AS n FROM visit GROUP BY city ORDER BY n DESC LIMIT 2"
    release = adding.plan(sql).releases[0].spending((Fraction(1), Fraction(4)))
    assert release.selection is not None
    gamma, noise, runs = 1 / release.measures[release.selection].scale, SampledNoise(SeededSource(5)), 4000
    found = Counter(picked(release, scores, noise) for _ in range(runs))
    sets = list(itertools.combinations(range(3), 2))
    counts = [found[tuple("xyz"[i] for i in one)] for one in sets]
    assert sum(counts) == runs

    def p_value(rate: Fraction) -> float:
        law = law_of_choices(scores, rate, 2)
        return float(stats.chisquare(counts, [runs * law[one] for one in sets]).pvalue)

    assert p_value(gamma) > 1e-4
    if len(set(scores)) > 1:
        assert p_value(gamma / 2) < 1e-9


def test_all_are_chosen_where_there_are_no_more(adding: World) -> None:
    """A declared list may come to fewer groups than it has spellings: then all of them are chosen."""
    (release,) = adding.plan(THREE).releases
    assert picked(release, (0, 5, 2), ZeroNoise()) == ("x", "y", "z")
    (two,) = adding.plan(
        "SELECT city, COUNT(*) AS n FROM visit GROUP BY city ORDER BY n DESC LIMIT 2"
    ).releases
    assert picked(two, (0, 5, 2), ZeroNoise()) == ("y", "z")


# --- known ways to be wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", STATEMENTS[:9])
def test_the_laws_hold_without_a_mutant(adding: World, sql: str) -> None:
    for database in (HEAVY, WIDE, EVERYWHERE):
        holds(adding, sql, database)


def test_forget_what_a_person_may_add_to_a_score(adding: World, monkeypatch: Patch) -> None:
    changed = rewrite(monkeypatch, lambda sql: sql.replace("LEAST(c0, 2)", "c0"))
    with pytest.raises(AssertionError):
        holds(adding, ONE, EVERYWHERE)
    assert changed


def test_a_choice_that_claims_less_than_a_persons_rows(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(TopGroups, "each", property(lambda self: self.of.reach))
    monkeypatch.setattr(print_sums.CappedSums, "named", lambda self, sql, prefix: (
        f"COALESCE(SUM(LEAST({print_sums.UnitSums.named(self, sql, prefix)}, 2)), 0)"
    ))  # fmt: skip
    with pytest.raises(AssertionError):
        holds(adding, ONE, EVERYWHERE)


def test_forget_that_choices_follow_each_other(adding: World, monkeypatch: Patch) -> None:
    """Each of n choices at all of epsilon."""
    monkeypatch.setattr(TopGroups, "added", property(lambda self: self.each))
    holds(adding, ONE, EVERYWHERE)
    with pytest.raises(AssertionError):
        holds(adding, THREE, EVERYWHERE)


def test_forget_the_two_of_replacing(replacing: World, monkeypatch: Patch) -> None:
    here, there = in_cities({"b": 9}), in_cities({"c": 9})
    assert check(replacing, ONE, here, [replaced(here, 1, there)]) == Fraction(1, 2)
    monkeypatch.setattr(TopGroups, "of_one", property(lambda self: self.added))
    with pytest.raises(AssertionError):
        check(replacing, ONE, here, [replaced(here, 1, there)])


def test_a_score_that_falls(adding: World, monkeypatch: Patch) -> None:
    """A sum that one more person may make smaller is no score: scores would move both ways."""
    sql = "SELECT city, SUM(n) AS s FROM visit GROUP BY city ORDER BY s DESC LIMIT 1"
    both = Database(
        (), tuple(visit(1, city=city, n=n) for city, n in (("b", "7"), ("c", "-3")) for _ in range(9))
    )
    (release,) = adding.plan(sql).releases
    assert release.top is None
    with monkeypatch.context() as patch:
        patch.setattr(least_error, "_score", lambda call, env, bounding, units: (
            least_error.choose_measurements(least_error.Asked([call], env, bounding, units)).measurements[0]
        ))  # fmt: skip
        with pytest.raises(AssertionError):
            holds(adding, sql, both)


def test_measure_what_is_chosen_by_the_bound_of_all_groups(adding: World, monkeypatch: Patch) -> None:
    """R in the printed SQL, where the scale was computed from n · M."""
    original = print_release.ReleasePrinter.of_groups

    def of_groups(self: Any, groups: Any) -> Any:
        release = original(self, groups)
        release.bounding = replace(release.bounding, in_all=32, groups=16)
        return release

    monkeypatch.setattr(print_release.ReleasePrinter, "of_groups", of_groups)
    with pytest.raises(AssertionError):
        holds(adding, ONE, EVERYWHERE)


def test_spend_epsilon_on_both(adding: World, monkeypatch: Patch) -> None:
    """The whole epsilon for the choice, and again for the counts."""
    original = release_plan.loss_of
    monkeypatch.setattr(
        planner,
        "loss_of",
        lambda release, epsilon, blocks, _, **more: original(release, epsilon, blocks, 1, **more),
    )
    with pytest.raises(AssertionError):
        holds(adding, ONE, EVERYWHERE)


def test_choose_twice_the_same(adding: World, monkeypatch: Patch) -> None:
    """Among all of them again, a group would come twice: there are fewer than were asked for."""
    (release,) = adding.plan(THREE).releases
    monkeypatch.setattr(privatise, "_left", lambda plan, groups: [groups])
    assert len(picked(release, (0, 5, 2), ZeroNoise())) < 3

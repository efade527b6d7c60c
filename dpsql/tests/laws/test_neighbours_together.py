"""L1 for several units together: k of them removed or replaced at once stay within the joint claim (soundness.md
1.19)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.mechanisms import Truncated
from dpsql.plan import planner, release_plan
from dpsql.plan.measures.measurements import Direct, Measurement
from dpsql.plan.measures.ranks import RankMeasurement
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import (
    UNITS,
    Database,
    policy_of,
    without,
)

from .examples import person, visit
from .measured import World, world
from .test_neighbours import TIGHT, check

TOGETHER = 3


def opened(
    folder: pytest.TempPathFactory, engine: PostgresServer | None, *, replace_one: bool
) -> Iterator[World]:
    place = folder.mktemp("together")
    alone = policy_of(place, replace_one=replace_one)
    policy = replace(alone, privacy=replace(alone.privacy, together=TOGETHER))
    with world(place, policy=policy, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, replace_one=False)


def fewer(database: Database, units: tuple[int, ...]) -> Database:
    """Return the database without these units."""
    for unit in units:
        database = without(database, unit)
    return database


def neighbours(database: Database) -> list[Database]:
    """Return what some units removed together leave: three, or fewer where there are no more."""
    owned = [unit for unit in UNITS if any(unit == u for u, _ in (*database.persons, *database.visits))]
    return [fewer(database, units) for units in itertools.combinations(owned, min(TOGETHER, len(owned)))]


CROWD = Database(
    (),
    tuple(
        visit(unit, city=city, tag=tag, n="7", x="4", d="5", flag="true")
        for unit in UNITS[:TOGETHER] for city in ("a", "b", "c") for tag in ("p", "q") for _ in range(3)
    ),
)  # fmt: skip
"""So many units, each with more rows and groups than count, in the same groups."""
RANKED = (
    "SELECT MEDIAN(n) FROM visit",
    "SELECT city, PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY n) FROM visit GROUP BY city",
)
MANY = (*(sql for sql in TIGHT if "FROM visit" in sql), *RANKED)


@pytest.mark.parametrize("sql", MANY)
def test_the_bound_of_several_is_reached(adding: World, sql: str) -> None:
    """Three heavy units move an answer by three times what one may: the factor is not larger than it has to be."""
    worst = check(adding, sql, CROWD, neighbours(CROWD))
    assert worst is not None
    assert 0.99 < worst <= 1


def test_forget_the_others(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the scale of one unit."""
    monkeypatch.setattr(Measurement, "sensitivity", Measurement.of_one)
    for sql in MANY:
        with pytest.raises(AssertionError):
            check(adding, sql, CROWD, neighbours(CROWD))


@pytest.mark.parametrize("sql", RANKED)
def test_what_is_chosen_by_rank_has_the_factor_in_all_that_is_made_of_it(adding: World, sql: str) -> None:
    """The exponent, and with it how many rows are read: a choice with a third of the epsilon is what one unit has."""
    (release,) = adding.plan(sql).releases
    (measurement,), (choice,) = release.measurements, release.choices.values()
    alone = replace(measurement, bounding=replace(measurement.bounding, together=1))
    assert isinstance(alone, RankMeasurement)
    assert measurement.sensitivity == TOGETHER * alone.sensitivity
    assert choice == alone.choice(release.measures[0].epsilon / TOGETHER)
    assert release.measures[0].law == alone.law(release.measures[0].epsilon / TOGETHER)


AGED = Database(
    tuple(
        person(unit, age="120" if place < TOGETHER else "0", team="red")
        for place, unit in enumerate(UNITS[:4])
    ),
    (),
)
AVERAGE = "SELECT dp_avg_direct(age) FROM person"


def test_one_average_stays_in_its_interval(adding: World) -> None:
    """However many leave: three of four who have the largest value move it by three quarters of all that it can."""
    assert check(adding, AVERAGE, AGED, neighbours(AGED)) == Fraction(3, 4)
    (release,) = adding.plan(AVERAGE).releases
    assert release.measurements[0].sensitivity == 120


def test_averages_of_groups_are_taken_for_one(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the interval of one coordinate for all groups."""
    ages = Database(
        tuple(
            person(unit, age="120" if place < TOGETHER else "0", team=("red", "blue")[place % 2])
            for place, unit in enumerate((*UNITS[:TOGETHER], 7, 8))
        ),
        (),
    )
    by_team = "SELECT team, dp_avg_direct(age) FROM person GROUP BY team"
    assert check(adding, by_team, ages, neighbours(ages)) is not None
    monkeypatch.setattr(Direct, "_is_alone", property(lambda m: True))
    with pytest.raises(AssertionError):
        check(adding, by_team, ages, neighbours(ages))


FOUND = "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag"


@pytest.mark.parametrize("together", [1, 2])
def test_delta_for_fewer(adding: World, monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    """Mutant: the rule of showing spends the delta of fewer units than the promise speaks of."""
    original = release_plan.key_rule

    def short(counted: Measurement, epsilon: Fraction, delta: Fraction, _: int) -> Truncated:
        return original(counted, epsilon, delta, together)

    assert check(adding, FOUND, CROWD, neighbours(CROWD)) is not None
    monkeypatch.setattr(planner, "key_rule", short)
    with pytest.raises(AssertionError):
        check(adding, FOUND, CROWD, neighbours(CROWD))

"""L1 in zCDP datasets: Σ change²/(2 sigma²) over all that a statement measures stays within its rho (soundness.md 1.25).

That Σ change² stays within each claim is held by the other neighbour tests as well, whatever the accounting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.mechanisms import ATTO, Gaussian, Rank, RankSplit, Thresholded, Truncated, rho_of_pure
from dpsql.plan import planner, release_plan
from dpsql.plan.measures.measurements import Count, Direct, Joint, Measurement, Sum
from dpsql.plan.measures.ranks import RankMeasurement, SplitMeasurement, WeighedChoice
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import (
    UNITS,
    Database,
    policy_of,
    replaced,
    without,
)

from .examples import NOBODY, WIDE, visit
from .measured import World, world
from .planting import plant
from .test_neighbours import check

TOGETHER = 3


def opened(
    folder: pytest.TempPathFactory, engine: PostgresServer | None, *, replace_one: bool, together: int = 1
) -> Iterator[World]:
    place = folder.mktemp("zcdp")
    pure = policy_of(place, replace_one=replace_one)
    privacy = replace(pure.privacy, accounting=Accounting.ZCDP, together=together)
    with world(place, policy=replace(pure, privacy=privacy), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, replace_one=False)


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, replace_one=True)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, replace_one=False, together=TOGETHER)


ONE_CITY = Database(
    (),
    tuple(
        visit(unit, city="a", tag=f"{unit} {i}", n="7", x="4", d="5", flag="true")
        for unit in UNITS[:TOGETHER]
        for i in range(12)
    ),
)
"""Units with more rows than count, all in one group and of one part of any filter: where L2 is as large as L1."""
ANOTHER_CITY = Database(
    (), tuple(visit(1, city="b", tag="t", n="-3", x="-1", d="0", flag="false") for _ in range(12))
)
REACHED = (
    "SELECT COUNT(*) FROM visit",
    "SELECT city, COUNT(*) FROM visit GROUP BY city",
    "SELECT city, SUM(n) FROM visit GROUP BY city",
    "SELECT city, AVG(d) FROM visit GROUP BY city",
    "SELECT city, COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit GROUP BY city",
    "SELECT COUNT(DISTINCT tag) FROM visit",
    "SELECT CORR(n, n) FROM visit",
    "SELECT MEDIAN(n) FROM visit",
)
NARROW = "SELECT city, flag, COUNT(DISTINCT person_id) FROM visit GROUP BY city, flag"
SEVERAL = (
    "SELECT COUNT(*), SUM(n), SUM(d) FROM visit",
    "SELECT COUNT(*), COUNT(DISTINCT tag), SUM(n) FROM visit",
)


@pytest.mark.parametrize("sql", REACHED)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """All of rho is taken by one person who has all rows in one group: the noise is not larger than it has to be."""
    worst = check(adding, sql, ONE_CITY, [without(ONE_CITY, 1)])
    assert worst is not None
    assert 0.98 < worst <= 1


def test_the_bound_of_people_is_reached(adding: World) -> None:
    worst = check(adding, NARROW, WIDE, [without(WIDE, 1)])
    assert worst is not None
    assert 0.98 < worst <= 1


@pytest.mark.parametrize("sql", REACHED[1:3])
def test_the_bound_of_a_replaced_unit_is_reached(replacing: World, sql: str) -> None:
    """A count, of one sign, takes twice one unit's; a sum of numbers of both signs four times."""
    there = Database((), tuple(visit(9, city="a" if "SUM" in sql else "b", n="-3") for _ in range(12)))
    worst = check(replacing, sql, ONE_CITY, [replaced(ONE_CITY, 1, there)])
    assert worst is not None
    assert worst > (0.49 if "SUM" in sql else 0.98)


def test_one_row_in_a_group_by_the_engines_own_keys(adding: World) -> None:
    """Of whoever has one row in each group, Σ change² is R, not R²: a claim that rests on an enforced key alone."""
    (release,) = adding.plan("SELECT team, COUNT(*) FROM person GROUP BY team").releases
    (measurement,) = release.measurements
    assert measurement.squared_sensitivity == 1
    (release,) = adding.plan("SELECT city, COUNT(*) FROM visit GROUP BY city").releases
    (measurement,) = release.measurements
    assert measurement.squared_sensitivity == measurement.sensitivity**2


def planned_laws(release: ReleasePlan) -> list[type]:
    return [type(release.measures[number].law) for number in range(len(release.measurements))]


def test_every_kind_has_its_law_and_its_part_of_rho(adding: World) -> None:
    (release,) = adding.plan(
        "SELECT COUNT(*), VAR_POP(x), COUNT(DISTINCT tag), MEDIAN(n) FROM visit"
    ).releases
    laws = planned_laws(release)
    assert laws.count(Rank) == 1
    assert laws.count(Gaussian) == len(laws) - 1
    count, epsilon = len(laws), adding.policy.defaults.epsilon
    assert {one.loss.rho for one in release.measures} == {-(-(epsilon**2 * ATTO) // (2 * count))}
    choice = next(n for n, one in enumerate(release.measurements) if isinstance(one, RankMeasurement))
    assert (
        release.choices[choice].gamma
        == release.measures[choice].epsilon / release.measurements[choice].sensitivity
    )
    for one in release.measures:
        assert rho_of_pure(int(one.epsilon * 10**9)) <= one.rho_atto


def test_measurements_are_compared_by_the_spread_that_they_get(adding: World) -> None:
    """Counts by masks add their noises, and n that share rho have n times the variance: fewer masks pay than of epsilon.

    Two filters and all rows: 2 + 2 + 4 noises of 1 against 3 · 3; three filters: 3 · 4 + 8 against 4 · 4.
    """
    filters = [f"COUNT(*) FILTER (WHERE {test})" for test in ("flag", "n > 1", "d > 1")]
    (two,) = adding.plan(f"SELECT COUNT(*), {', '.join(filters[:2])} FROM visit").releases
    assert [one.size for one in two.measurements] == [4]
    (three,) = adding.plan(f"SELECT COUNT(*), {', '.join(filters)} FROM visit").releases
    assert [one.size for one in three.measurements] == [1, 1, 1, 1]


def test_found_groups_have_the_rule_that_shows_more(adding: World) -> None:
    (release,) = adding.plan("SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag").releases
    assert isinstance(release.key_law, (Thresholded, Truncated))
    assert release.measures[0].law == release.key_law


# --- mutants: each is a fault that somebody could make, and must be red ----------------------------------------


def held(worlds: tuple[World, ...], cases: tuple[tuple[str, Database, Database], ...]) -> None:
    for here in worlds:
        for sql, database, neighbour in cases:
            check(here, sql, database, [neighbour])


LESS = tuple((sql, ONE_CITY, without(ONE_CITY, 1)) for sql in (*REACHED, *SEVERAL))
MOVED = tuple((sql, ONE_CITY, replaced(ONE_CITY, 1, ANOTHER_CITY)) for sql in REACHED[1:5])


def test_the_cases_of_the_mutants_hold(adding: World, replacing: World, several: World) -> None:
    held((adding, several), LESS)
    held((replacing,), MOVED)
    check(several, REACHED[0], ONE_CITY, [NOBODY])


def test_the_root_of_the_measurements_is_forgotten(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: each of k measurements has the noise of one alone, and all of rho is charged once."""

    plan = World.plan

    def planned(self: World, sql: str) -> Plan:
        found = plan(self, sql)
        return replace(found, releases=tuple(map(louder, found.releases)))

    def louder(release: ReleasePlan) -> ReleasePlan:
        rho = sum(release.losses, Fraction(0))
        return replace(
            release,
            measures=tuple(
                replace(one, given=Gaussian.for_rho(one.measurement.squared_sensitivity, rho))
                for one in release.measures
            ),
        )

    monkeypatch.setattr(World, "plan", planned)
    held((adding,), LESS[:2])
    for sql in SEVERAL:
        with pytest.raises(AssertionError):
            check(adding, sql, ONE_CITY, [without(ONE_CITY, 1)])


def test_the_number_of_coordinates_drawn_together_is_forgotten(
    adding: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: what is drawn together has one coordinate's part of rho in each of them."""
    monkeypatch.setattr(Joint, "squared", property(lambda m: m.added * m.most_in_group))
    with pytest.raises(AssertionError):
        check(adding, REACHED[-2], ONE_CITY, [without(ONE_CITY, 1)])


def test_what_is_drawn_together_is_replaced_as_if_of_one_sign(
    replacing: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: twice, where coordinates are of either sign."""
    here = Database((), tuple(visit(1, n="20", x="4") for _ in range(12)))
    there = Database((), tuple(visit(1, n="-20", x="4") for _ in range(12)))
    sql = "SELECT REGR_SLOPE(n, x) FROM visit"
    check(replacing, sql, here, [there])
    monkeypatch.setattr(Joint, "has_one_sign", property(lambda m: True))
    monkeypatch.setattr(
        Joint, "squared_of_one", property(lambda m: 2 * m.squared * m.denominator**2 // m.per_mask)
    )
    with pytest.raises(AssertionError):
        check(replacing, sql, here, [there])


def test_rho_as_epsilon(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a share of epsilon² in place of epsilon²/2."""
    original = release_plan.loss_of

    def twice(release: object, epsilon: Fraction, *rest: object, **more: object) -> object:
        share = original(release, epsilon, *rest, **more)  # type: ignore[arg-type]
        return replace(share, rho=2 * (share.rho or 0))

    monkeypatch.setattr(planner, "loss_of", twice)
    with pytest.raises(AssertionError):
        check(adding, REACHED[0], ONE_CITY, [without(ONE_CITY, 1)])


@pytest.mark.parametrize("kind", [Count, Sum, Measurement])
def test_rows_are_spread_by_declaration(
    adding: World, kind: type[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: √C·M for R, though no operator holds a person to M rows of a group."""
    monkeypatch.setattr(
        kind, "squared", property(lambda m: m.bounding.groups * m.bounding.in_group**2 * m.reach**2)
    )
    with pytest.raises(AssertionError):
        held((adding,), LESS)


def test_one_row_in_a_group_is_believed(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: R for R², without the key that it rests on."""
    monkeypatch.setattr(Measurement, "most_in_group", property(lambda m: 1))
    with pytest.raises(AssertionError):
        held((adding,), LESS)


def test_delta_one_for_delta_two(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the figure in L1 is taken for a square, as if it were one."""
    monkeypatch.setattr(Measurement, "squared_of_one", property(lambda m: m.of_one))
    with pytest.raises(AssertionError):
        held((adding,), LESS)


def test_replaced_counts_as_removed(replacing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: no factor for what comes."""
    monkeypatch.setattr(
        Measurement,
        "squared_of_one",
        property(lambda m: min(m.squared * m.denominator**2, m.of_one**2)),
    )
    with pytest.raises(AssertionError):
        held((replacing,), MOVED)


def test_all_sums_have_one_sign(replacing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: twice for four times, where what goes is positive and what comes negative."""
    monkeypatch.setattr(Sum, "has_one_sign", property(lambda m: True))
    crowd = Database((), tuple(visit(1, city="a", x="4") for _ in range(12)))
    there = Database((), tuple(visit(1, city="a", x="-4") for _ in range(12)))
    sql = "SELECT city, SUM(x - 1.5) FROM visit GROUP BY city"
    with pytest.raises(AssertionError):
        check(replacing, sql, crowd, [replaced(crowd, 1, there)])


def test_together_counts_once_and_not_squared(several: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: k for k²."""
    monkeypatch.setattr(
        Measurement, "squared_sensitivity", property(lambda m: m.bounding.together * m.squared_of_one)
    )
    with pytest.raises(AssertionError):
        check(several, REACHED[0], ONE_CITY, [NOBODY])


LOW = Database(
    (),
    (
        *(visit(7, city=city, n="-3") for city in ("a", "b")),
        *(visit(8, city=city, n="-3") for city in ("c", None)),
    ),
)
"""Who stays has the least value, in each city."""


def joined_by(units: tuple[int, ...], *cities: tuple[str | None, ...]) -> Database:
    """Return that database with units that have the largest value in many rows, each in two cities."""
    rows = [
        visit(unit, city=city, n="7")
        for unit, where in zip(units, cities, strict=True)
        for city in where
        for _ in range(12)
    ]
    return Database((), (*LOW.visits, *rows))


DIRECT = "SELECT city, dp_avg_direct(n) FROM visit GROUP BY city"
THREE = joined_by(UNITS[:3], ("a", "b"), ("b", "c"), ("c", "a"))
ONE, OTHER = joined_by(UNITS[:1], ("a", "b")), joined_by(UNITS[:1], ("c", None))


def test_averages_of_several_stay_in_their_interval(several: World, replacing: World) -> None:
    """Each group that persons come to or leave moves by W at most, however many they are."""
    for worst in (check(several, DIRECT, THREE, [LOW]), check(replacing, DIRECT, ONE, [OTHER])):
        assert worst is not None
        assert worst > 0.3


@pytest.mark.parametrize(("old", "new"), [("together * (2 if", "1 * (2 if"), ("changed * groups", "1")])
def test_an_average_forgets_who_else_moves_it(
    several: World, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    """Mutants: the square of one unit for that of several, and that of one group for all of a unit's."""
    plant(monkeypatch, Direct._squared, (old, new))
    with pytest.raises(AssertionError):
        check(several, DIRECT, THREE, [LOW])


def test_an_average_forgets_who_comes(replacing: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the square of who goes for that of both."""
    plant(monkeypatch, Direct._squared, ("(2 if self.bounding.replace_one else 1)", "1"))
    with pytest.raises(AssertionError):
        check(replacing, DIRECT, ONE, [OTHER])


def test_an_average_in_groups_is_taken_for_one(several: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: all groups together stay in the interval of one."""
    monkeypatch.setattr(Direct, "_is_alone", property(lambda m: True))
    with pytest.raises(AssertionError):
        check(several, DIRECT, THREE, [LOW])


def test_each_group_has_noise_of_its_own_sensitivity(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the sensitivity is split over groups, as if a person's rows were spread evenly over them."""
    monkeypatch.setattr(
        Measurement, "squared", property(lambda m: max(1, m.added**2 // max(1, m.bounding.groups) ** 2))
    )
    with pytest.raises(AssertionError):
        held((adding,), LESS)


def test_a_choice_at_four_times_epsilon(adding: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the exponential mechanism is taken for cheaper than bounded range makes it."""
    monkeypatch.setattr(WeighedChoice, "choosing", lambda choice, loss: 4 * loss.epsilon)
    with pytest.raises(AssertionError):
        check(adding, REACHED[-1], ONE_CITY, [without(ONE_CITY, 1)])


SPLITS = {
    2: "PERCENTILE_CONT(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY n)",
    3: "PERCENTILE_CONT(ARRAY[0.1, 0.3, 0.5, 0.7, 0.9]) WITHIN GROUP (ORDER BY n)",
}
"""Fractions of the same rows, by how many depths they are chosen at."""


def rho_of_split(release: ReleasePlan) -> Fraction:
    """Return what choices of all depths cost: each is bounded range, and a unit may have all its weight in one part."""
    split, measurement = release.choices[0], release.measurements[0]
    assert isinstance(split, RankSplit)
    ranges: defaultdict[int, Fraction] = defaultdict(Fraction)
    for share, depth in zip(split.between, split.depths, strict=True):
        one = split.choice(share, split.candidates)
        reach = 2 * one.gamma * max(one.p, one.q - one.p) * measurement.sensitivity
        ranges[depth] = max(ranges[depth], reach)
    return sum((reach**2 / 8 for reach in ranges.values()), Fraction(0))


def check_depths(adding: World, depths: int) -> None:
    (release,) = adding.plan(f"SELECT {SPLITS[depths]} FROM visit").releases
    rho = Fraction(release.measures[0].rho_atto, ATTO)
    assert rho * (1 - Fraction(1, 10**6)) <= rho_of_split(release) <= rho


@pytest.mark.parametrize("depths", [2, 3])
def test_the_depths_of_a_split_add_up_to_its_rho(adding: World, depths: int) -> None:
    """Each has 2e / √D: rho adds, and all of it is used."""
    check_depths(adding, depths)


@pytest.mark.parametrize("root", [Fraction(1), Fraction(3, 2), Fraction(2)])
def test_depths_that_have_more_or_less(
    adding: World, monkeypatch: pytest.MonkeyPatch, root: Fraction
) -> None:
    """Mutants: as if losses were added, a root that is rounded up, the whole for each depth."""
    monkeypatch.setattr(SplitMeasurement, "root_of_depths", root)
    with pytest.raises(AssertionError):
        check_depths(adding, 2)


@pytest.mark.parametrize("fewer", [1, 2])
def test_a_threshold_for_fewer_groups(
    adding: World, several: World, monkeypatch: pytest.MonkeyPatch, fewer: int
) -> None:
    """Mutant: delta of one group, or of one person, for all."""
    original = Thresholded.within

    def short(noise: Gaussian, delta: Fraction, groups: int, together: int) -> Thresholded:
        return original(noise, delta, 1 if fewer == 1 else groups, 1 if fewer == 2 else together)

    monkeypatch.setattr(Thresholded, "within", short)
    sql = "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag"
    with pytest.raises(AssertionError):
        check(adding if fewer == 1 else several, sql, ONE_CITY, [without(ONE_CITY, 1)])

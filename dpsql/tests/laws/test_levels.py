"""Levels for running totals (soundness.md 1.37): their losses add up to the charge, and each pays for what moves it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings

from dpsql import Session
from dpsql.plan import planner
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.plan.strategies import running_totals
from dpsql.plan.views import build_catalog
from dpsql.policy import Accounting
from dpsql.postprocess.simulate import Seeded
from dpsql.release import levels
from dpsql.release.estimate import PARTS
from dpsql.release.facts import read_facts
from dpsql.release.levels import with_levels
from dpsql.release.run import PlanRunner, ReleasedRows
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, databases, load, policy_of, without
from dpsql.verify.certificate import Certificate, Charge

from .conftest import OpenDesk
from .examples import HEAVY, NOBODY, REPEATED, WIDE
from .measured import World, compared, world
from .planting import plant
from .test_neighbours import measured_here, neighbours_of
from .test_norms import APART, ONE_PLACE, UNLISTED

FUZZ = settings(REPEATED, max_examples=tried(1, 8))
DAYS = "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) AS n FROM visit GROUP BY day"
FEES = "SELECT day, city, SUM(SUM(n)) OVER (PARTITION BY city ORDER BY day DESC) AS n FROM visit GROUP BY day, city"
AGES = "SELECT age, SUM(COUNT(*)) OVER (ORDER BY age) AS n FROM person GROUP BY age"
QUARTERS = (
    "SELECT day, AVG(COUNT(*)) OVER (ORDER BY day DESC ROWS BETWEEN CURRENT ROW AND 89 FOLLOWING) AS n FROM visit "
    "GROUP BY day"
)
COUNTS = "SELECT day, COUNT(*) FROM visit GROUP BY day"
Patch = pytest.MonkeyPatch


def opened(
    folder: pytest.TempPathFactory, engine: PostgresServer | None, *, is_zcdp: bool, replace_one: bool = False
) -> Iterator[World]:
    place = folder.mktemp("levels")
    policy = policy_of(place, replace_one=replace_one)
    if is_zcdp:
        visit = replace(policy.tables["visit"], max_norm=(("day", 2),))
        policy = replace(
            policy,
            privacy=replace(policy.privacy, accounting=Accounting.ZCDP),
            tables={**policy.tables, "visit": visit},
        )
    with world(place, policy=policy, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, is_zcdp=False)


@pytest.fixture(scope="module")
def squared(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, is_zcdp=True)


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, is_zcdp=True, replace_one=True)


def levelled(made: World, sql: str) -> Plan:
    return with_levels(made.plan(sql), made.catalog)


def complete(made: World) -> World:
    """Return a world whose owner says that no visit is on another day."""
    visit = made.policy.tables["visit"]
    columns = tuple(replace(one, complete=one.complete or one.name == "day") for one in visit.columns)
    policy = replace(made.policy, tables={**made.policy.tables, "visit": replace(visit, columns=columns)})
    with made.backend.snapshot() as snapshot:
        return replace(made, policy=policy, catalog=build_catalog(policy, snapshot.schema()))


def check(made: World, sql: str, database: Database, neighbours: list[Database]) -> Fraction:
    """Hold that all releases together cost no more than is charged; return the largest loss per epsilon, or rho."""
    plan, found = levelled(made, sql), Fraction(0)
    assert plan.strategies, sql
    made.settle(load, database)
    here = measured_here(made, plan)
    for order, neighbour in enumerate(neighbours, 1):
        made.settle(load, neighbour, order)
        there = measured_here(made, plan)
        if here is not None and there is not None:
            found = max(found, compared(plan, here, there, sql))
    return found


@pytest.mark.parametrize("sql", some([DAYS, FEES, AGES], 2))
@FUZZ
@given(databases())
@example(HEAVY)
@example(UNLISTED)
@example(WIDE)
def test_a_person_moves_all_levels_by_no_more_than_is_charged(
    pure: World, squared: World, sql: str, database: Database
) -> None:
    for made in (pure, squared):
        check(made, sql, database, neighbours_of(made, database, NOBODY))


def test_a_person_who_is_replaced_moves_no_more(replacing: World) -> None:
    for database in (ONE_PLACE, UNLISTED, APART):
        check(replacing, DAYS, database, neighbours_of(replacing, database, ONE_PLACE))


def test_the_charge_is_reached(pure: World, squared: World) -> None:
    """By whoever has all rows on one day, which is one month and one year too; by a norm of days it is T_day of it."""
    assert check(pure, DAYS, HEAVY, [without(HEAVY, 1)]) > Fraction(99, 100)
    assert check(squared, DAYS, ONE_PLACE, [without(ONE_PLACE, 1)]) > Fraction(1, 4)


def test_each_level_pays_for_its_own_norm(squared: World) -> None:
    """A norm of days is none of months: a month's groups have R."""
    days, *others = levelled(squared, DAYS).releases
    squares = [
        Fraction(one.measurements[0].squared_sensitivity, one.measurements[0].denominator ** 2)
        for one in (days, *others)
    ]
    assert squares == [4, *(36 for _ in others)]


# --- what it is worth -------------------------------------------------------------------------------------------


DATES = np.arange("2020-01-01", "2021-01-01", dtype="datetime64[D]")
KEYS = {
    "by day": np.arange(len(DATES)),
    "by week": (DATES.astype(int) + 3) // 7,
    "by month": DATES.astype("datetime64[M]").astype(int),
    "by quarter": DATES.astype("datetime64[M]").astype(int) // 3,
    "by year": DATES.astype("datetime64[Y]").astype(int),
}


def deviation(spreads: dict[str, float], longest: int) -> float:
    """Return the deviation of sums over days up to each, of so many at most, by normal equations, where groups of the
    calendar were drawn with these variances."""
    normal = np.zeros((len(DATES), len(DATES)))
    for name, spread in spreads.items():
        normal += (KEYS[name][:, None] == KEYS[name][None, :]) / spread
    totals = np.tril(np.ones_like(normal)) - np.tril(np.ones_like(normal), -longest)
    return float(np.sqrt(np.diag(totals @ np.linalg.inv(normal) @ totals.T).mean()))


def spread_of(release: ReleasePlan) -> float:
    return float(release.measures[0].law.spread / release.measurements[0].denominator ** 2)


def spreads_of(plan: Plan) -> dict[str, float]:
    """Return by what each grouping of a plan is, the variance of its groups."""
    (strategy,) = plan.strategies
    numbers = zip(("by day", *strategy.names), (0, *strategy.levels), strict=True)
    return {name: spread_of(plan.releases[number]) for name, number in numbers}


def dense(plan: Plan, longest: int) -> tuple[float, float]:
    """Return the deviation of sums over days up to each, of so many at most; and that of sums of days alone."""
    assert plan.plain is not None
    (whole,) = plan.plain.releases
    return deviation(spreads_of(plan), longest), deviation({"by day": spread_of(whole)}, longest)


@pytest.mark.parametrize(
    ("sql", "sums", "longest"), [(DAYS, "running totals", 366), (QUARTERS, "moving sums", 90)]
)
def test_what_is_expected_is_what_the_draws_tell(
    squared: World, pure: World, sql: str, sums: str, longest: int
) -> None:
    for made in (squared, pure):
        plan = levelled(complete(made), sql)
        (strategy,) = plan.strategies
        assert strategy.sums == sums
        off, alone = dense(plan, longest)
        assert strategy.off == pytest.approx(off, rel=0.06)  # of some totals, and of all
        assert strategy.alone == pytest.approx(alone, rel=0.06)
        assert strategy.off < 0.9 * strategy.alone


@pytest.mark.parametrize(("sql", "longest"), [(DAYS, 366), (QUARTERS, 90)])
def test_no_other_shares_are_much_better(squared: World, pure: World, sql: str, longest: int) -> None:
    """Where a fifth of any level's share is another's, or all have the same, sums are at most a hundredth more exact."""
    for made, power in ((squared, 1), (pure, 2)):
        plan = levelled(complete(made), sql)
        spreads, (strategy,) = spreads_of(plan), plan.strategies
        losses = [float(plan.releases[number].losses[0]) for number in (0, *strategy.levels)]
        shares = {name: loss / sum(losses) for name, loss in zip(spreads, losses, strict=True)}

        def off(others: dict[str, float], *, own: dict[str, float] = shares, power: int = power) -> float:
            given = {name: spread * (own[name] / others[name]) ** power for name, spread in spreads.items()}  # noqa: B023
            return deviation(given, longest)

        best = off(shares)
        for one, other in itertools.permutations(shares, 2):
            moved = {**shares, one: 0.8 * shares[one], other: shares[other] + 0.2 * shares[one]}
            assert off(moved) > 0.99 * best, (one, other)
        assert off(dict.fromkeys(shares, 1 / len(shares))) > 0.99 * best


FRAMES = {
    "ORDER BY day": (-math.inf, 0),
    "ORDER BY day DESC": (0, math.inf),
    "ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING": (-math.inf, -1),
    "ORDER BY day ROWS 6 PRECEDING": (-6, 0),
    "ORDER BY day ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING": (-3, 2),
    "ORDER BY day DESC ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING": (-2, 3),
    "ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": None,
    "ORDER BY day RANGE BETWEEN INTERVAL '6 days' PRECEDING AND CURRENT ROW": None,
    "ORDER BY day ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW": None,
}


@pytest.mark.parametrize("window", FRAMES)
def test_a_frame_says_from_where_to_where_sums_go(pure: World, window: str) -> None:
    plan = pure.plan(f"SELECT day, SUM(COUNT(*)) OVER ({window}) AS n FROM visit GROUP BY day")
    found = [span for one in running_totals(plan.root).values() for span in one.spans]
    assert found == ([] if FRAMES[window] is None else [FRAMES[window]])


def test_a_running_total_is_charged_as_ever_and_free_again(desk: OpenDesk) -> None:
    session = opened_desk(desk, HEAVY)
    first, price = answered(session, DAYS)
    assert price == session.settings.epsilon
    shown = str(session.explain(DAYS))
    assert 'release r1 from "visit", by ' in shown
    assert "running totals of" in shown
    assert "a total is expected within ±" in " ".join(shown.split())
    assert answered(session, DAYS) == (first, 0)


def test_counts_that_are_stored_give_running_totals_for_nothing(desk: OpenDesk) -> None:
    session = opened_desk(desk, HEAVY)
    counts, _ = answered(session, COUNTS)
    totals, price = answered(session, DAYS)
    assert price == 0
    assert totals == running(counts)


def test_without_noise_they_are_exact(desk: OpenDesk) -> None:
    totals, _ = answered(opened_desk(desk, WIDE, ZeroNoise()), DAYS)
    counts, _ = answered(opened_desk(desk, WIDE, ZeroNoise()), COUNTS)
    assert totals == running(counts)


def opened_desk(desk: OpenDesk, database: Database, noise: ZeroNoise | None = None) -> Session:
    made = desk(noise)
    made.settle(database)
    return made.session


def answered(session: Session, sql: str) -> tuple[list[tuple[object, ...]], Fraction]:
    answer = session.execute(sql)
    assert answer.receipt is not None
    return sorted(answer.rows, key=lambda row: (row[0] is None, row[0])), answer.receipt.epsilon


def running(counts: list[tuple[Any, ...]]) -> list[tuple[object, ...]]:
    totals = itertools.accumulate(count for _, count in counts)
    return [(day, total) for (day, _), total in zip(counts, totals, strict=True)]


def coverage(session: Session, patch: Patch, rounds: int, sql: str = DAYS) -> float:
    """Return how often the bars of an answer, moved by what is drawn again through its table, hold the truth."""
    seen: list[ReleasedRows] = []
    answer = Session.answer

    def see(self: Session, prepared: Any, runner: PlanRunner, *rest: Any) -> Any:
        seen[:] = runner.rows
        return answer(self, prepared, runner, *rest)

    session.execute("SET dpsql.intervals = 0.95")
    with patch.context() as own:
        own.setattr(Session, "answer", see)
        shown, _ = answered(session, sql)
    days, source = seen[0], Seeded(b"drawn again")
    ((told,), groups), unit = (days.fitted[0], days.groups), days.plan.measurements[0].denominator
    assert groups is not None
    order = sorted(range(groups.size), key=lambda i: (groups.tuples()[i][0] is None, groups.tuples()[i][0]))
    off = []
    for _ in range(rounds):
        noises = []
        for one in told.observed:
            drawn = (law.draw(len(one.numbers), source).astype(object) * int(one.weights[id_] * PARTS)
                     for id_, law in one.laws.items())  # fmt: skip
            noises.append(sum(drawn).tolist())  # type: ignore[union-attr]
        table = told.design.table(noises)
        assert table is not None
        off.append(np.cumsum(np.array(told.values(table), dtype=float)[order]) / unit)
    ends = np.array([[float(low) - float(n), float(high) - float(n)] for _, n, low, high in shown])  # type: ignore[arg-type]
    found = -np.array(off)
    return float(((found >= ends[:, 0]) & (found <= ends[:, 1])).mean())


def test_bars_of_running_totals_hold(desk: OpenDesk, monkeypatch: Patch) -> None:
    assert 0.93 <= coverage(opened_desk(desk, HEAVY), monkeypatch, 100) <= 0.975


@pytest.mark.long
def test_bars_of_running_totals_hold_in_thousands_of_draws(desk: OpenDesk, monkeypatch: Patch) -> None:
    assert 0.94 <= coverage(opened_desk(desk, HEAVY), monkeypatch, 3000) <= 0.965


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM visit GROUP BY day",
        "SELECT day, SUM(n) OVER (ORDER BY day) FROM (SELECT day, COUNT(*) AS n FROM visit GROUP BY day HAVING COUNT(*) > 9) AS t",
        "SELECT day, SUM(n) OVER (ORDER BY n) FROM (SELECT day, COUNT(*) AS n FROM visit GROUP BY day) AS t",
        "SELECT day, MAX(COUNT(*)) OVER (ORDER BY day) FROM visit GROUP BY day",
        "SELECT city, SUM(COUNT(*)) OVER (ORDER BY city) FROM visit GROUP BY city",
        "SELECT day, SUM(COUNT(DISTINCT person_id)) OVER (ORDER BY day) FROM visit GROUP BY day",
    ],
)
def test_other_texts_are_planned_as_ever(pure: World, sql: str) -> None:
    plan = pure.plan(sql)
    assert with_levels(plan, pure.catalog) is plan


# --- verified, and mutants --------------------------------------------------------------------------------------


def certificate(made: World, plan: Plan) -> Certificate:
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *asked: None)
        return certificate_of(plan.releases, facts)


def cheaper(found: Certificate) -> Certificate:
    """A level of which a half is not charged."""
    days, level, *others = found.releases
    (one,) = level.measurements
    less = Charge(one.share.epsilon / 2, one.share.delta, one.share.rho / 2)
    changed = replace(level, measurements=(replace(one, share=less),), charge=less)
    return replace(found, releases=(days, changed, *others))


def uncounted(found: Certificate) -> Certificate:
    """A charge without its last level."""
    *_, last = found.releases
    whole = found.charge
    less = Charge(
        whole.epsilon - last.charge.epsilon, whole.delta - last.charge.delta, whole.rho - last.charge.rho
    )
    return replace(found, charge=less)


def narrower(found: Certificate) -> Certificate:
    """A level that claims to be moved by no more than the days are."""
    days, level, *others = found.releases
    (own,), (one,) = days.measurements, level.measurements
    changed = replace(level, measurements=(replace(one, sensitivity=own.sensitivity, law=own.law),))
    return replace(found, releases=(days, changed, *others))


@pytest.mark.parametrize("change", [cheaper, uncounted, narrower])
def test_levels_are_verified_one_by_one(squared: World, change: Callable[[Certificate], Certificate]) -> None:
    found = certificate(squared, levelled(squared, DAYS))
    assert rule_against(found) == ""
    assert rule_against(change(found)).startswith("laws: ")


def test_forget_to_share_the_charge(squared: World, pure: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        levels.with_levels,
        ("releases[number], *more = spent", "releases[number], more = release, spent[1:]"),
    )
    for made, database in ((squared, ONE_PLACE), (pure, HEAVY)):
        with pytest.raises(AssertionError):
            check(made, DAYS, database, [without(database, 1)])


def test_leave_shares_equal(squared: World, pure: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, levels._Expected.improved, ("for _ in range(steps):", "for _ in range(0):"))
    levels._best_of.cache_clear()
    try:
        with pytest.raises(AssertionError):
            test_no_other_shares_are_much_better(squared, pure, DAYS, 366)
    finally:
        levels._best_of.cache_clear()


def test_take_the_norm_of_days_for_months(squared: World, monkeypatch: Patch) -> None:
    apart = APART
    assert check(squared, DAYS, apart, [without(apart, 1)]) <= 1
    plant(monkeypatch, planner._normed, ("one == key and _holds(norm, one, own, release)", "True"))
    with pytest.raises(AssertionError):
        check(squared, DAYS, apart, [without(apart, 1)])

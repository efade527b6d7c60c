"""L1 and L6 for draws by period: each is charged to its period alone, and is one number whenever it is asked
(soundness.md 1.41).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.plan.planner import Plan
from dpsql.plan.privacy import time
from dpsql.plan.privacy.rows import Source
from dpsql.plan.release_plan import ReleasePlan
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import REACHED, World, loss
from .periods import (
    NOW,
    SCHEMA,
    SOME,
    Shop,
    hold,
    measured,
    neighbours,
    plan_at,
    policy_of,
    put,
    random_shop,
    reach_of,
    shops,
    verdict,
)
from .planting import plant

Patch = pytest.MonkeyPatch

BY_MONTH = "SELECT date_trunc('month', bought), COUNT(*) FROM orders WHERE {} GROUP BY 1"
SPLIT = [
    BY_MONTH.format(SOME),
    "SELECT date_trunc('month', bought), COUNT(*), SUM(amount) FROM orders GROUP BY 1",
    f"SELECT date_trunc('day', bought), COUNT(*), AVG(amount) FROM orders WHERE {SOME} GROUP BY 1",
    "SELECT to_char(bought, 'YYYY-MM'), COUNT(DISTINCT user_id) FROM orders GROUP BY 1",
    f"SELECT u.city, date_trunc('month', o.bought), COUNT(*) FROM orders o JOIN users u ON u.id = o.user_id WHERE {SOME} GROUP BY 1, 2",
    f"SELECT date_trunc('month', o.bought), SUM(i.n) FROM items i JOIN orders o ON o.id = i.order_id WHERE {SOME} GROUP BY 1",
    f"SELECT date_trunc('month', bought), kind, COUNT(*) FROM orders WHERE {SOME} GROUP BY 1, 2",
    f"SELECT date_trunc('month', bought), median(amount) FROM orders WHERE {SOME} GROUP BY 1",
    "SELECT date_trunc('month', day), COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 2",
    "SELECT extract(year FROM bought), extract(month FROM bought), COUNT(*) FROM orders GROUP BY 1, 2",
    "SELECT m, n, COUNT(*) FROM (SELECT user_id, date_trunc('month', bought) AS m, COUNT(*) AS n FROM orders GROUP BY 1, 2) t GROUP BY 1, 2",
    f"SELECT m, AVG(n), SUM(s) FROM (SELECT user_id, date_trunc('month', bought) AS m, COUNT(*) AS n, MAX(amount) AS s FROM orders WHERE {SOME} GROUP BY 1, 2) t GROUP BY 1",
    "SELECT m, SUM(n) OVER (ORDER BY m) FROM (SELECT date_trunc('month', bought) AS m, COUNT(*) AS n FROM orders GROUP BY 1) t",
]  # fmt: skip


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_no_slice_moves_all_draws_of_a_statement_by_more_than_its_charge(
    tmp_path: Path, accounting: str
) -> None:
    worst = Fraction(0)
    with shops(tmp_path, policy=policy_of(accounting)) as made:
        planned = {sql: plan_at(made, sql) for sql in SPLIT}
        assert all(len(one.apart) == 1 for one in planned.values())
        assert {verdict(made, one) for one in planned.values()} == {""}
        for seed in range(tried(1, 2) if accounting == "pure" else 1):
            worst = max(worst, held(made, planned, seed))
    assert accounting == "zcdp" or worst >= REACHED


def test_no_slice_moves_them_on_postgres(tmp_path: Path, postgres: PostgresServer) -> None:
    with shops(tmp_path, postgres) as made:
        planned = {sql: plan_at(made, sql) for sql in SPLIT}
        assert {verdict(made, one) for one in planned.values()} == {""}
        held(made, planned, 1)


BOUNDARY = [
    "SELECT COUNT(*), SUM(amount) FROM orders",
    "SELECT SUM(n) FROM items",
    "SELECT u.city, COUNT(*) FROM orders o JOIN users u ON u.id = o.user_id WHERE bought >= '2026-02-10' GROUP BY 1",
    "SELECT COUNT(*) FROM orders WHERE amount > 0 AND bought >= '2026-01-01'",
]


def test_no_slice_moves_what_is_split_where_periods_are_not_over(tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        planned = {sql: plan_at(made, sql, is_open=True) for sql in BOUNDARY}
        assert [one.apart for one in planned.values()] == [((0, 1),)] * len(BOUNDARY)
        assert {verdict(made, one) for one in planned.values()} == {""}
        assert max(held(made, planned, seed) for seed in range(2)) >= REACHED
        for sql in BOUNDARY:
            today, tomorrow = (
                by_slice(plan_at(made, sql, NOW + timedelta(day), is_open=True)) for day in (0, 1)
            )
            assert [today[one] == tomorrow[one] for one in today] == [True, False], sql


def held(made: World, planned: dict[str, Plan], seed: int) -> Fraction:
    """Hold what statements charge in a random database; return the most that was reached of it."""
    rng, most = random.Random(seed), Fraction(0)
    shop, person = random_shop(rng), rng.randrange(4)
    plans, has = [*planned.values()], shop.slices(person)
    here = measured(made, plans, shop)
    for gone in neighbours(shop, person, rng):
        there = measured(made, plans, shop.without(person, gone))
        for sql, plan, left, right in zip(planned, plans, here, there, strict=True):
            hold(plan, left, right, gone, sql, has)
            charged = {one for release in plan.releases for one in reach_of(release)}
            if len(gone) == 1 and gone <= charged and not any(release.is_zcdp for release in plan.releases):
                lost = sum(
                    (loss(release, *both) for release, *both in zip(plan.releases, left, right, strict=True)),
                    Fraction(0),
                )
                assert lost <= plan.epsilon, sql
                most = max(most, lost / plan.epsilon)
    return most


# --- the same number whenever it is asked -------------------------------------------------------------------


def keys_of(release: ReleasePlan) -> tuple[tuple[bytes, ...], ...]:
    """Return what the measurements of a release are stored under."""
    relation = release.salted(b"")
    return tuple(release.measure_keys(i, relation, b"") for i in range(len(release.measurements)))


def by_slice(plan: Plan) -> dict[object, tuple[object, ...]]:
    """Return what is asked of each period, and what it is stored under."""
    return {
        release.slices: (keys_of(release), [query.sql for query in release.queries(release.fresh)])
        for release in plan.releases
    }


def hold_same_numbers(made: World) -> None:
    """A month that closes, and one asked by itself, changes nothing of another; no two have one key."""
    for sql in SPLIT:
        now, later = by_slice(plan_at(made, sql)), by_slice(plan_at(made, sql, NOW + timedelta(70)))
        assert SOME in sql or len(later) > len(now)
        assert {one: later[one] for one in now} == now, sql
        stored = [key for keys, _ in later.values() for one in keys for key in one]  # type: ignore[attr-defined]
        assert len(stored) == len(set(stored)), sql
    whole = by_slice(plan_at(made, BY_MONTH.format("bought >= '2026-01-01'")))
    for low, high in itertools.pairwise(("2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01")):
        where = f"bought >= '{low}' AND bought < '{high}'"
        for sql in (BY_MONTH.format(where), f"SELECT COUNT(*) FROM orders WHERE {where}"):
            ((slices, asked),) = by_slice(plan_at(made, sql)).items()
            assert whole[slices] == asked


def test_a_new_period_moves_no_number_of_another(tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        hold_same_numbers(made)


def test_a_period_that_is_not_over_is_another_number_each_day(tmp_path: Path) -> None:
    """Of the same rows as once it is over, and of no other period's; a draw over it and others is of that day too."""
    reaching = [sql for sql in SPLIT if SOME not in sql]
    with shops(tmp_path) as made:
        for sql in (*reaching, "SELECT COUNT(*) FROM orders", "SELECT COUNT(DISTINCT user_id) FROM orders"):
            days = [plan_at(made, sql, NOW + timedelta(day), is_open=True) for day in (0, 0, 1)]
            assert {verdict(made, one) for one in days[1:]} == {""}
            today, again, tomorrow = map(by_slice, days)
            assert today == again
            (moved,) = [one for one in today if tomorrow[one] != today[one]]
            assert moved == [*today][-1]
            assert today[moved][1] == tomorrow[moved][1]
            closed = by_slice(plan_at(made, sql))
            assert all(closed[one] == asked for one, asked in today.items() if one != moved)


# --- the rows that are counted ------------------------------------------------------------------------------

FILTERS = [
    "bought BETWEEN '2026-01-05' AND '2026-02-01'",
    "bought::date >= '2026-01-15' AND bought < '2026-03-15'",
    "extract(month FROM bought) IN (1, 3) AND bought >= '2026-01-01' AND bought < '2026-04-01'",
    "bought >= '2026-01-01' AND bought < '2026-04-01' AND NOT (bought >= '2026-02-01' AND bought < '2026-03-01')",
    "(bought >= '2026-03-02' OR bought < '2026-02-01') AND bought >= '2026-01-01' AND bought < '2026-04-01'",
    "bought >= '2026-01-31 13:00' AND bought < '2026-03-16' AND amount > 0",
    "bought > '2025-12-31 23:59:59.999999' AND bought <= '2026-03-31 23:59:59.999999'",
]  # fmt: skip
GROUPS = ["date_trunc('month', bought)", "date_trunc('week', bought)", "date_trunc('day', bought)"]


def small_shop(rng: random.Random) -> Shop:
    """Return a database in which nobody is above a bound, with rows at the very ends of months."""
    moments = [
        datetime(2026, 1, 31, 12),
        datetime(2026, 2, 1),
        datetime(2026, 1, 1),
        datetime(2026, 3, 15, 5),
    ]
    ends = [datetime(2026, 2, 1), datetime(2026, 3, 1), datetime(2026, 4, 1)]
    moments += [one - timedelta(microseconds=1) for one in ends]
    orders = [(i, i // 2, rng.choice(moments), rng.randint(-3, 4), "x") for i in range(40)]
    return Shop((), tuple(orders), (), ())


def hold_rows(made: World) -> None:
    """Counts by each period, added up, are those of the statement's own SQL."""
    shop = small_shop(random.Random(3))
    with empty_duckdb() as plain:
        plain.execute(SCHEMA)
        put(plain, shop, 0)
        for where, key in itertools.product(FILTERS, GROUPS):
            sql = f"SELECT {key}, COUNT(*) FROM orders WHERE {where} GROUP BY 1"
            plan = plan_at(made, sql)
            (numbers,) = measured(made, [plan], shop)
            told = sorted(row[1] for row in plain.execute(sql).fetchall())
            units = [release.measurements[0].denominator for release in plan.releases]
            parts = zip(numbers, units, strict=True)
            found = sorted(one // unit for release, unit in parts for (one, *_) in release[0].values() if one)
            assert found == told, sql


BY_PERSON = [
    "SELECT m, n, COUNT(*) FROM (SELECT user_id, date_trunc('month', bought) AS m, COUNT(*) AS n FROM orders GROUP BY 1, 2) t GROUP BY 1, 2",
    "SELECT m, n, COUNT(*) FROM (SELECT user_id, MIN(date_trunc('month', bought)) AS m, COUNT(*) AS n FROM orders GROUP BY 1) t GROUP BY 1, 2",
    "SELECT m, COUNT(*) FROM (SELECT date_trunc('month', bought) AS m, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY bought, id) AS k FROM orders) t WHERE k = 1 GROUP BY 1",
    "SELECT date_trunc('month', bought), COUNT(*) FROM orders o JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY 1) t ON t.user_id = o.user_id WHERE n = 2 GROUP BY 1",
]  # fmt: skip


def hold_people(made: World) -> None:
    """What a person has in each period is of that period alone; what they have in all is not made of it."""
    shop = small_shop(random.Random(4))
    with empty_duckdb() as plain:
        plain.execute(SCHEMA)
        put(plain, shop, 0)
        for sql in BY_PERSON:
            plan = plan_at(made, sql)
            (numbers,) = measured(made, [plan], shop)
            told = sorted(row[-1] for row in plain.execute(sql).fetchall())
            units = [release.measurements[0].denominator for release in plan.releases]
            parts = zip(numbers, units, strict=True)
            found = sorted(one // unit for release, unit in parts for (one, *_) in release[0].values() if one)
            assert found == told, sql


def test_people_are_counted_by_what_they_have_in_each_period(tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        assert [bool(plan_at(made, sql).apart) for sql in BY_PERSON] == [True, False, False, False]
        hold_people(made)


def test_each_row_is_counted_once(tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        hold_rows(made)


# --- planted faults -----------------------------------------------------------------------------------------


def every_term_dropped(patch: Patch) -> None:
    """A term that cuts a period is dropped with those that do not."""
    patch.setattr(time, "_holds", lambda term, env, moments: bool(time.fields_of(term)) and time.fields_of(term) <= moments)  # fmt: skip


def groups_of_two_periods(patch: Patch) -> None:
    """A week that two months have is two draws, and two rows."""
    patch.setattr(time, "_are_apart", lambda parts: True)


def periods_alike(patch: Patch) -> None:
    """Scans of two periods are the same rows: one draw stands for all."""
    plant(patch, Source.__post_init__, ("if self.table is not None and", "if False and"))


def end_kept_open(patch: Patch) -> None:
    """`<=` holds of a period that it cuts at its last moment."""
    patch.setattr(time, "_COMPARED", {**time._COMPARED, "lt": lambda low, high, value: low < value})


def people_by_all_periods(patch: Patch) -> None:
    """What a person has in all periods is taken for what they have in each."""
    patch.setattr("dpsql.plan.planner.are_of_one_period", lambda parts: True)


FAULTS: list[tuple[Callable[[Patch], None], Callable[[World], None]]] = [
    (every_term_dropped, hold_rows),
    (groups_of_two_periods, hold_rows),
    (end_kept_open, hold_rows),
    (periods_alike, hold_same_numbers),
    (people_by_all_periods, hold_people),
]


@pytest.mark.parametrize(("fault", "law"), FAULTS, ids=lambda one: one.__name__)
def test_each_fault_dies(
    tmp_path: Path, monkeypatch: Patch, fault: Callable[[Patch], None], law: Callable[[World], None]
) -> None:
    with shops(tmp_path) as made:
        fault(monkeypatch)
        with pytest.raises((AssertionError, KeyError, ValueError)):
            law(made)


def test_of_many_days_all_are_one_draw(tmp_path: Path) -> None:
    """More periods than are drawn by themselves: as one, by person and period."""
    sql = "SELECT date_trunc('day', bought), COUNT(*) FROM orders GROUP BY 1"
    with shops(tmp_path, policy=policy_of(period="day")) as made:
        soon = plan_at(made, sql, datetime(2026, 4, 1, tzinfo=UTC))
        assert len(soon.releases) == len(soon.apart[0]) > 80
        late = plan_at(made, sql, datetime(2026, 6, 1, tzinfo=UTC))
        assert (len(late.releases), late.apart) == (1, ())

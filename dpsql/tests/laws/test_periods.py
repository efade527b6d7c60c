"""L1 for data by periods: nobody's rows of one period move more than that period is charged (soundness.md 1.40).

A neighbour lacks one person's rows of one month, or their undated rows; all rows of a person move what their slices were
charged together (T4). Periods that are not charged are read by nobody.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.engine.audit.statements import statements
from dpsql.errors import Refusal
from dpsql.plan import planner
from dpsql.plan.backend_sql import print_source
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.planner import Plan
from dpsql.plan.privacy import time as periods
from dpsql.plan.privacy.time import Clock
from dpsql.policy import parse_policy
from dpsql.policy.periods import instant_of
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import REACHED, World, loss, world
from .periods import (
    NOW,
    ONE,
    POLICY,
    SCHEMA,
    SOME,
    STATEMENTS,
    Numbers,
    Shop,
    first,
    hold,
    measured,
    neighbours,
    plan_at,
    policy_of,
    random_shop,
    reach_of,
    shops,
    slice_of,
    verdict,
    way_of,
)
from .planting import plant

Patch = pytest.MonkeyPatch


def held_in(made: World, shop: Shop, rng: random.Random, planned: dict[str, Plan]) -> list[Fraction]:
    """Hold statements' claims for one person's slices in a database; return the most that each reached."""
    statements, plans = [*planned], [*planned.values()]
    here = measured(made, plans, shop)
    worst = [Fraction(0)] * len(plans)
    person = rng.randrange(4)
    has = shop.slices(person)
    for order, gone in enumerate(neighbours(shop, person, rng), 1):
        there = measured(made, plans, shop.without(person, gone), order)
        for place, (plan, sql) in enumerate(zip(plans, statements, strict=True)):
            worst[place] = max(worst[place], hold(plan, here[place], there[place], gone, sql, has))
    return worst


@pytest.mark.parametrize("sql", STATEMENTS, ids=range(len(STATEMENTS)))
def test_each_is_bounded_as_its_proof_says_and_verified(sql: str, tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        planned = plan_at(made, sql)
        assert {way_of(one) for one in planned.releases} == {STATEMENTS[sql]}
        assert verdict(made, planned) == ""


@pytest.mark.parametrize("accounting", some(["pure", "zcdp"], 1))  # in rho: `test_each_period`
def test_no_slice_moves_more_than_it_is_charged(tmp_path: Path, accounting: str) -> None:
    rng = random.Random(39)
    worst: dict[str, Fraction] = {}
    with shops(tmp_path, policy=policy_of(accounting)) as made:
        planned = {sql: plan_at(made, sql) for sql in STATEMENTS}
        for _ in range(
            tried(1, 6) if accounting == "pure" else 1
        ):  # whose loss is in rho: the rows moved are the same
            found = held_in(made, random_shop(rng), rng, planned)
            worst = {s: max(worst.get(s, Fraction(0)), one) for s, one in zip(STATEMENTS, found, strict=True)}
    if accounting == "pure":
        reached = [sql for sql, one in worst.items() if one >= REACHED]
        assert {STATEMENTS[sql] for sql in reached} == {"one", "pair", "person", "undated"}, worst


def test_no_slice_moves_more_than_it_is_charged_on_postgres(tmp_path: Path, postgres: PostgresServer) -> None:
    rng = random.Random(93)
    with shops(tmp_path, postgres) as made:
        planned = {sql: plan_at(made, sql) for sql in STATEMENTS}
        for sql, plan in planned.items():
            assert ({way_of(one) for one in plan.releases}, verdict(made, plan)) == ({STATEMENTS[sql]}, ""), (
                sql
            )
        held_in(made, random_shop(rng), rng, planned)


def test_statements_of_every_shape_hold_their_claims_and_are_verified(tmp_path: Path) -> None:
    """Those of the search (`engine/audit/statements.py`): joins, subqueries, windows, unions, keys that are found.

    A form without a rule of the verifier's, such as an average of a constant that CASE hides, is refused before it is
    charged; of those that are drawn here one is left.
    """
    rng, planned = random.Random(11), dict[str, Plan]()
    with shops(tmp_path) as made:
        for one in statements(made.catalog, 11, tried(40, 90)):
            with suppress(Refusal):
                planned[one.sql] = plan_at(made, one.sql)
        verdicts = {sql: verdict(made, plan) for sql, plan in planned.items() if plan.releases}
        assert [sql for sql, why in verdicts.items() if why and "CASE WHEN (1 IN (-3, 100))" not in sql] == []
        held_in(made, random_shop(rng), rng, planned)
    assert len(planned) > tried(20, 45)


VIEWS = """
CREATE VIEW spent AS SELECT user_id, bought, amount FROM orders WHERE amount > 0;
CREATE VIEW firsts AS SELECT user_id, MIN(bought) AS bought, COUNT(*) AS n FROM orders GROUP BY user_id;
CREATE VIEW places AS SELECT u.city, o.bought FROM users u JOIN orders o ON o.user_id = u.id
"""
OF_VIEWS = {
    f"SELECT COUNT(*), SUM(amount) FROM spent WHERE {ONE}": "one",
    "SELECT date_trunc('month', bought), COUNT(*) FROM spent GROUP BY 1": "one",
    "SELECT SUM(amount) FROM spent": "pair",
    f"SELECT city, COUNT(*) FROM places WHERE {ONE} GROUP BY city": "one",
    "SELECT city, COUNT(*) FROM places GROUP BY city": "pair",
    "SELECT n, COUNT(*) FROM firsts GROUP BY n": "person",
}


def test_views_of_timed_rows_are_bounded_as_their_texts_are(tmp_path: Path) -> None:
    shown = {
        "spent": "{ bought = {}, amount = { bounds = [0, 4] } }",
        "firsts": "{ bought = {}, n = { values = [1, 2, 3] } }",
        "places": "{ city = {}, bought = {} }",
    }
    more = "".join(f"[tables.{name}]\nview = true\ncolumns = {said}\n" for name, said in shown.items())
    text = POLICY.format(privacy="", period="month", zone="UTC") + more
    rng, policy = random.Random(40), parse_policy(text, tmp_path / "laws.toml")
    with world(tmp_path, policy=policy, schema=SCHEMA, views=VIEWS) as made:
        planned = {sql: plan_at(made, sql) for sql in OF_VIEWS}
        for sql, plan in planned.items():
            assert ({way_of(one) for one in plan.releases}, verdict(made, plan)) == ({OF_VIEWS[sql]}, ""), sql
        held_in(made, random_shop(rng), rng, planned)


def test_of_a_scan_without_a_period_nothing_is_read(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM (SELECT user_id FROM orders UNION ALL SELECT user_id FROM orders WHERE bought < '2020-01-01') t"
    with shops(tmp_path) as made:
        planned = plan_at(made, sql)
        assert verdict(made, planned) == ""
        (release,) = planned.releases
        assert reach_of(release) == {first(), first() + 1, first() + 2}


# --- histories ----------------------------------------------------------------------------------------------


def moved_on(shop: Shop, rng: random.Random, month: datetime) -> Shop:
    """Return a database after some time: new rows, late ones, ones of the future, corrected times, erased rows."""
    orders = [row for row in shop.orders if rng.random() > 0.1]
    top = max((row[0] for row in shop.orders), default=0)
    assert isinstance(top, int)
    for number in range(rng.randint(1, 5)):
        at = rng.choice((month, datetime(2026, 1, 9), datetime(2026, 2, 9), datetime(2030, 1, 1)))
        orders.append((top + 1 + number, rng.randrange(3), at, rng.randint(-3, 4), "x"))
    place = rng.randrange(len(orders))
    number, owner, _, amount, kind = orders[place]
    orders[place] = number, owner, rng.choice((month, datetime(2026, 1, 2))), amount, kind
    return Shop(shop.users, tuple(orders), shop.items, shop.visits)


@pytest.mark.parametrize(
    "is_open", some([False, True], 1), ids=["closed", "open"]
)  # open: `test_each_period` too
def test_histories_of_data_that_grow_cost_a_slice_no_more_than_was_charged(
    tmp_path: Path, is_open: bool
) -> None:
    """Statements follow each other while rows come late, are corrected and erased: a (person, month) is what they have
    in it at each moment, and what it loses of all answers is what that month was charged, before it is over too."""
    rng = random.Random(7)
    asked = [
        "SELECT COUNT(*), SUM(amount) FROM orders",
        "SELECT date_trunc('month', bought), COUNT(*) FROM orders WHERE bought >= '2026-02-01' GROUP BY 1",
        f"SELECT COUNT(*) FROM orders WHERE {SOME}",
        "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t GROUP BY n",
        "SELECT city, COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id) GROUP BY city",
        "SELECT kind, COUNT(*) FROM orders WHERE bought < '2026-03-01' GROUP BY kind",
    ]
    reached = 0
    with shops(tmp_path) as made:
        for _ in range(tried(4, 8)):
            shop = random_shop(rng, 3)
            lost: dict[tuple[int, int | None], Fraction] = {}
            charged: dict[int | None, Fraction] = {}
            for month, day in ((2, 7), (3, 7), (3, 9), (4, 7), (5, 7)):
                now = datetime(2026, month, day, tzinfo=UTC)
                shop = moved_on(shop, rng, now.replace(tzinfo=None))
                sql = rng.choice(asked if month > 2 else asked[:1])
                plan = plan_at(made, sql, now, is_open=is_open)
                (here,) = measured(made, [plan], shop)
                for release in plan.releases:
                    for one in reach_of(release):
                        paid = sum((each.epsilon for each in release.measures), Fraction(0))
                        charged[one] = charged.get(one, Fraction(0)) + paid
                for person in range(3):
                    for gone in [*shop.slices(person), None]:
                        (there,) = measured(made, [plan], shop.without(person, {gone}))
                        moved = lost_of(plan, here, there)
                        lost[person, gone] = lost.get((person, gone), Fraction(0)) + moved
            for (_, slice_), total in lost.items():
                if slice_ is not None:
                    assert total <= charged.get(slice_, Fraction(0))
                    reached += total >= charged.get(slice_, Fraction(0)) * REACHED and total > 0
    assert reached > tried(2, 5)


def lost_of(plan: Plan, here: Numbers, there: Numbers) -> Fraction:
    both = zip(plan.releases, here, there, strict=True)
    return sum((loss(release, left, right) for release, left, right in both), Fraction(0))


# --- what is counted, and when ------------------------------------------------------------------------------


def test_rows_of_several_months_are_counted_per_person_as_they_are(tmp_path: Path) -> None:
    """A person with 2 orders in each of two months has 4, though 2 is the bound of a month."""
    sql = "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t GROUP BY n"
    orders = tuple((i, 0, datetime(2026, 1 + i % 2, 5), 1, "x") for i in range(4))
    with shops(tmp_path) as made:
        ((found,),) = measured(made, [plan_at(made, sql)], Shop(((0, "A", 1),), orders, (), ()))
    assert {key[0]: count for key, (count, *_) in found[0].items() if count} == {4: 1}


def test_of_each_scan_a_person_is_bounded_by_its_own_months(tmp_path: Path) -> None:
    """2 orders of February beside 2 visits of each of three months, as one number; and 2 orders in place of 2 others."""
    joined, marked = (
        sql
        for sql in STATEMENTS
        if "orders o" in sql and ONE in sql and STATEMENTS[sql] == "person" and "users" not in sql
    )
    with shops(tmp_path) as made:
        for sql, claim in ((joined, 2 * 6), (marked, 2 * 2)):
            (release,) = plan_at(made, sql).releases
            measurement = release.measurements[0]
            assert Fraction(measurement.sensitivity, measurement.denominator) == claim


def test_april_is_not_read_before_it_is_over_and_settled(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM orders"
    april = slice_of(datetime(2026, 4, 2))
    with shops(tmp_path) as made:
        for day, is_over in (
            (datetime(2026, 5, 3, 23, tzinfo=UTC), False),
            (datetime(2026, 5, 4, tzinfo=UTC), True),
        ):
            (release,) = plan_at(made, sql, day).releases
            assert (april in reach_of(release)) == is_over


def test_what_lies_before_the_first_month_is_read_by_nobody(tmp_path: Path) -> None:
    with shops(tmp_path) as made:
        (release,) = plan_at(made, "SELECT COUNT(*) FROM orders").releases
        assert reach_of(release) == {first(), first() + 1, first() + 2}
        with pytest.raises(Refusal, match="no month that this statement reads is over"):
            plan_at(made, "SELECT COUNT(*) FROM orders WHERE bought < '2025-12-01'")


REACHES = [
    ("bought BETWEEN '2026-01-05' AND '2026-02-01'", {0, 1}),
    ("bought::date = '2026-02-14'", {1}),
    ("extract(month FROM bought) = 3 AND bought >= '2026-01-01'", {2}),
    ("date_trunc('month', bought) IN ('2026-01-01', '2026-03-01')", {0, 2}),
    ("bought >= '2026-01-01' AND NOT (bought >= '2026-02-01' AND bought < '2026-03-01')", {0, 2}),
    ("(bought >= '2026-03-02' OR bought < '2026-02-01') AND bought >= '2026-01-01'", {0, 2}),
    ("to_char(bought, 'YYYY-MM') = '2026-02'", {1}),
    ("extract(month FROM bought) = 3", {2}),
    ("bought >= now() - INTERVAL '2 months'", {1, 2}),
    ("amount > 2 AND bought >= '2026-03-01'", {2}),
]


@pytest.mark.parametrize(("where", "months"), REACHES, ids=[where for where, _ in REACHES])
def test_the_months_of_a_filter_are_found(tmp_path: Path, where: str, months: set[int]) -> None:
    with shops(tmp_path) as made:
        (release,) = plan_at(made, f"SELECT COUNT(*) FROM orders WHERE {where}").releases
        assert {one - first() for one in reach_of(release) if one is not None} == months


@pytest.mark.parametrize(
    ("period", "zone"),
    [
        ("day", "UTC"), ("day", "Asia/Kolkata"), ("week", "Europe/Berlin"), ("month", "America/New_York"),
        ("year", "Asia/Kolkata"),
    ],
)  # fmt: skip
def test_ends_of_periods_are_instants_and_verified(tmp_path: Path, period: str, zone: str) -> None:
    """A row a microsecond before an end of a period is the old one's, a row at it the next one's."""
    now = datetime(2028, 3, 20, tzinfo=UTC)
    with shops(tmp_path, policy=policy_of(period=period, zone=zone)) as made:
        for sql in (
            "SELECT COUNT(*) FROM orders",
            "SELECT SUM(n) FROM items",
            "SELECT COUNT(DISTINCT user_id) FROM orders",
        ):
            planned = plan_at(made, sql, now)
            assert verdict(made, planned) == ""
            (release,) = planned.releases
            assert release.slices is not None
        kind = made.policy.privacy.time
        assert kind is not None
        (low, high) = (
            instant_of(kind.period, number, zone).replace(tzinfo=None) for number in ends_of(made, now)
        )
        orders = [
            (i, i, at, 1, "x")
            for i, at in enumerate((low - timedelta(microseconds=1), low, high, high + timedelta(1)))
        ]
        ((found,),) = measured(
            made,
            [plan_at(made, "SELECT COUNT(DISTINCT user_id) FROM orders", now)],
            Shop((), tuple(orders), (), ()),
        )
        assert found[0] == {(): (1,)}


def test_a_day_that_a_zone_has_left_out_is_one_without_rows(tmp_path: Path) -> None:
    """In Apia no moment was of 30 December 2011: two days begin at one instant."""
    policy = policy_of(period="day", zone="Pacific/Apia")
    time = policy.privacy.time
    assert time is not None
    since = replace(time, since=date(2011, 12, 27))
    with shops(tmp_path, policy=replace(policy, privacy=replace(policy.privacy, time=since))) as made:
        for sql in (
            "SELECT COUNT(*), SUM(amount) FROM orders",
            "SELECT COUNT(*) FROM visits",
            "SELECT SUM(n) FROM items",
        ):
            planned = plan_at(made, sql, datetime(2012, 1, 8, tzinfo=UTC))
            assert verdict(made, planned) == ""


def ends_of(made: World, now: datetime) -> tuple[int, int]:
    """Return the first period that is read, and the first that is not."""
    time = made.policy.privacy.time
    assert time is not None
    closed = Clock.at(time, now).read
    return closed.start, closed.stop


# --- planted faults: the unsound variants -------------------------------------------------------------------


def by_owner_alone(patch: Patch) -> None:
    """Rows of several months are bounded by person, at one month's bound, as if none were replaced."""
    patch.setattr(planner, "is_of_one_period", lambda rows, clock: True)


def not_replaced(patch: Patch) -> None:
    """In (c) a person is taken to come or go, and not to change."""
    plant(patch, periods.by_person, ("is_replaced=is_ever", "is_replaced=False"))


def without_end(patch: Patch) -> None:
    """The scan has no upper bound."""
    plant(patch, SourcePrinter._scan, (" AND {column} < {word} '{high}'", ""))


def without_beginning(patch: Patch) -> None:
    """The scan has no lower bound."""
    plant(patch, SourcePrinter._scan, ("{column} >= {word} '{low}' AND ", ""))


def one_number(patch: Patch) -> None:
    """All periods have one number: what bounds a person's rows of one month depends on the next."""
    plant(patch, print_source._numbered, ("if len(numbers) < 2:", "if True:"))


def undated_free(patch: Patch) -> None:
    """A block that can show an undated row alone is not charged to undated rows."""
    patch.setattr(periods, "joins_plainly", lambda rows: True)
    patch.setattr(planner, "joins_plainly", lambda rows: True)


def first_run_charged(patch: Patch) -> None:
    """What is charged is less than what is printed."""
    plant(patch, periods.slices_of, ("for first, last in one.periods", "for first, last in one.periods[:1]"))


def other_peoples_undated(patch: Patch) -> None:
    """In (c) nothing is charged to undated rows."""
    plant(patch, periods.slices_of, ("rows.is_replaced or not joins_plainly(rows)", "False"))


def two_months_a_period(patch: Patch) -> None:
    """A number stands for two periods."""
    plant(patch, periods._spans, ("numbered = tuple(zip(ends, found, strict=True))", "numbered = tuple(zip(ends, [n // 2 for n in found], strict=True))"))  # fmt: skip


FAULTS: dict[Callable[[Patch], None], str] = {
    by_owner_alone: "MODE",
    not_replaced: ") t GROUP BY n",
    without_end: "SUM(amount) FROM orders WHERE",
    without_beginning: "SUM(amount) FROM orders WHERE",
    one_number: "MODE",
    undated_free: "LEFT JOIN orders",
    first_run_charged: "extract(month",
    other_peoples_undated: "users",
    two_months_a_period: "MODE",
}
"""Each with a part of the statements in which it is seen."""
GAPS = "SELECT COUNT(*) FROM orders WHERE extract(month FROM bought) IN (1, 3) AND bought >= '2026-01-01'"


UNDATED_ALONE = Shop(tuple((person, "AB"[person % 2], 5) for person in range(4)), (), (), ())
"""People who ordered nothing: what goes of them has no time."""


def held_in_all(made: World, word: str) -> None:
    rng = random.Random(5)
    planned = {sql: plan_at(made, sql) for sql in (*STATEMENTS, GAPS) if word in sql}
    held_in(made, UNDATED_ALONE, random.Random(0), planned)
    for _ in range(40):
        held_in(made, random_shop(rng), rng, planned)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_unsound_variant_dies(
    tmp_path: Path, monkeypatch: Patch, fault: Callable[[Patch], None]
) -> None:
    with shops(tmp_path) as made:
        fault(monkeypatch)
        with pytest.raises((AssertionError, ValueError)):
            held_in_all(made, FAULTS[fault])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_verifier_sees_each(tmp_path: Path, monkeypatch: Patch, fault: Callable[[Patch], None]) -> None:
    with shops(tmp_path) as made:
        fault(monkeypatch)
        rules = {sql: verdict(made, plan_at(made, sql, NOW)) for sql in (*STATEMENTS, GAPS)}
        assert any(rules.values())

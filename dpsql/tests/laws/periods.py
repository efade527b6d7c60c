"""A shop whose data grow: people's rows of several months, undated ones, and what one slice less does to numbers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb

from dpsql.plan.planner import Plan, PrivacyParameters, plan
from dpsql.plan.privacy.time import Clock
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.policy.model import Accounting, Policy
from dpsql.policy.periods import number_of
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import BindingContext
from dpsql.sql.statement import AdmittedQuery, parse_statement
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import (
    Groups,
    World,
    distance,
    fixed_intermediates,
    measure_release,
    squared_distance,
    world,
)

SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, city TEXT, age INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, bought TIMESTAMP, amount INTEGER, kind TEXT);
CREATE TABLE items (order_id INTEGER, n INTEGER);
CREATE TABLE visits (user_id INTEGER, day DATE)
"""
POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
{privacy}
[privacy.time]
period = "{period}"
zone = "{zone}"
since = 2026-01-01
[defaults]
epsilon = 1
[tables.users]
unit = "id"
columns = {{ id = {{}}, city = {{ values = ["A", "B"] }}, age = {{ bounds = [0, 9] }} }}
[tables.orders]
unit = {{ column = "user_id", references = "users.id" }}
time = "bought"
max_rows = 2
columns = {{ id = {{}}, user_id = {{ bounds = [0, 3] }}, bought = {{}}, amount = {{ bounds = [-3, 4] }}, kind = {{}} }}
[tables.items]
unit = {{ column = "order_id", references = "orders.id" }}
time = "orders.bought"
max_rows = 3
columns = {{ n = {{ bounds = [0, 2] }} }}
[tables.visits]
unit = "user_id"
time = "day"
max_rows = 2
columns = {{ day = {{}} }}
"""
NOW = datetime(2026, 4, 10, tzinfo=UTC)
"""March is over, and settled; April is not."""

MONTHS = (
    date(2025, 11, 3),
    date(2026, 1, 31),
    date(2026, 2, 1),
    date(2026, 3, 15),
    date(2026, 4, 1),
    date(2031, 6, 1),
)
Row = tuple[object, ...]


@dataclass(frozen=True)
class Shop:
    """The rows of a database, by table."""

    users: tuple[Row, ...]
    orders: tuple[Row, ...]
    items: tuple[Row, ...]
    visits: tuple[Row, ...]

    def without(self, person: int, slices: Iterable[int | None]) -> Shop:
        """Return the database without a person's rows of some periods; None: their undated ones."""
        gone = set(slices)

        def stays(owner: object, at: object) -> bool:
            return owner != person or slice_of(at) not in gone

        lost = {row[0] for row in self.orders if not stays(row[1], row[2])}
        return Shop(
            tuple(row for row in self.users if row[0] != person or None not in gone),
            tuple(row for row in self.orders if row[0] not in lost),
            tuple(row for row in self.items if row[0] not in lost),
            tuple(row for row in self.visits if stays(*row)),
        )

    def slices(self, person: int) -> set[int]:
        """Return the periods that a person has rows of."""
        moments = [row[2] for row in self.orders if row[1] == person]
        moments += [row[1] for row in self.visits if row[0] == person]
        return {slice_of(at) for at in moments if at is not None}


NO_TIME = -7


def slice_of(at: object) -> int:
    """Return the period of a moment; all that lies before the first is one, and no time is none."""
    if at is None:
        return NO_TIME
    assert isinstance(at, date)
    return max(number_of(POLICY_OF_MONTHS.time.period, at), first() - 1)


def first() -> int:
    """Return the number of the first month."""
    return 12 * 2026


def policy_of(accounting: str = "pure", period: str = "month", zone: str = "UTC") -> Policy:
    """Return the shop's policy."""
    text = POLICY.format(privacy=f'accounting = "{accounting}"', period=period, zone=zone)
    return parse_policy(text, Path("/nowhere/laws.toml"))


POLICY_OF_MONTHS = policy_of().privacy
assert POLICY_OF_MONTHS.time is not None


def put(connection: duckdb.DuckDBPyConnection, shop: Shop, order: int) -> None:
    """Put a database in."""
    for name in ("users", "orders", "items", "visits"):
        connection.execute(f"DELETE FROM {name}")
        rows = list(getattr(shop, name))
        random.Random(order).shuffle(rows)
        insert(connection, name, rows)


def random_shop(rng: random.Random, people: int = 4) -> Shop:
    """Return a database: people with rows above their bounds in some months, late, future and timeless ones."""
    orders: list[Row] = []
    items: list[Row] = []
    visits: list[Row] = []
    for person in range(people):
        for month in MONTHS:
            for _ in range(rng.choice((0, 1, 1, 2, 5))):
                at = None if rng.random() < 0.05 else datetime(month.year, month.month, month.day, 12)
                number = len(orders)
                orders.append(
                    (number, person, at, rng.randint(-5, 6), rng.choice(("x", "y", f"own{person}")))
                )
                items += [(number, rng.randint(-1, 3)) for _ in range(rng.choice((0, 1, 4)))]
            visits += [(person, month)] * rng.choice((0, 1, 3))
    users = tuple((person, rng.choice("AB"), rng.randint(0, 12)) for person in range(people))
    return Shop(users, tuple(orders), tuple(items), tuple(visits))


@contextmanager
def shops(
    folder: Path, server: PostgresServer | None = None, policy: Policy | None = None
) -> Iterator[World]:
    """Open a shop's database."""
    with world(folder, policy=policy or policy_of(), schema=SCHEMA, server=server) as made:
        yield made


def plan_at(made: World, sql: str, now: datetime = NOW, *, is_open: bool = False) -> Plan:
    """Return a statement's plan as it is made at a moment. Raises Refusal."""
    query = parse_statement(sql)
    assert isinstance(query, AdmittedQuery)
    moment = int(now.timestamp()) * 10**6
    relation = bind(query, BindingContext(made.catalog, query.text, (), moment, {}))
    time, defaults = made.policy.privacy.time, made.policy.defaults
    assert time is not None
    privacy = PrivacyParameters(
        defaults.epsilon, defaults.delta, defaults.minimum_units, replace_one=False,
        accounting=made.policy.privacy.accounting, clock=Clock.at(time, now, is_open=is_open),
    )  # fmt: skip
    return plan(relation, made.catalog, privacy)


Numbers = list[dict[int, Groups]]


def measured(made: World, plans: Iterable[Plan], shop: Shop, order: int = 0) -> list[Numbers]:
    """Return the exact integers of plans over a database."""
    made.settle(put, shop, order)
    with made.backend.snapshot() as snapshot:
        return [
            [measure_release(one, snapshot, fixed_intermediates(each)) for one in each.releases]
            for each in plans
        ]


def reach_of(release: ReleasePlan) -> set[int | None]:
    """Return the slices that a release is charged to."""
    assert release.slices is not None
    numbers: set[int | None] = {n for low, high in release.slices.periods for n in range(low, high + 1)}
    return numbers | ({None} if release.slices.is_undated else set())


def hold(
    plan_: Plan, here: Numbers, there: Numbers, gone: set[int | None], sql: str, has: set[int]
) -> Fraction:
    """Hold what a statement claims where one person's rows of some slices are gone; return the most that is reached.

    `has`: the periods of that person. In (a) and (b) what goes of several periods moves by as much for each; in (c) once
    (T4). Undated rows that are not charged for stand beside timed ones alone, and take those along.
    """
    most = Fraction(0)
    for release, left, right in zip(plan_.releases, here, there, strict=True):
        if release.is_empty:
            continue
        charged = reach_of(release)
        touched = len((gone | (has if None in gone - charged else set())) & charged)
        if release.release.rows.is_replaced:
            touched = min(touched, 1)
        for number, measurement in enumerate(release.measurements):
            moved = distance(release, number, left[number], right[number])
            claim = touched * measurement.sensitivity
            assert moved <= claim, (
                sql,
                measurement.kind,
                moved,
                claim,
                sorted(map(str, gone)),
                sorted(map(str, charged)),
            )
            is_claimed = release.is_zcdp or not measurement.bounding.one_a_group
            if is_claimed and number not in release.choices:
                squared = squared_distance(release, number, left[number], right[number])
                assert squared <= touched**2 * measurement.squared_sensitivity, (sql, measurement.kind)
            if touched:
                most = max(most, Fraction(moved) / claim)
    return most


def neighbours(shop: Shop, person: int, rng: random.Random) -> Iterator[set[int | None]]:
    """Yield what goes: each period of a person, what has no time, the undated rows, all of them; some at random."""
    slices: list[int | None] = sorted(shop.slices(person))
    for one in (*slices, NO_TIME, None):
        yield {one}
    yield {*slices, NO_TIME, None}
    if len(slices) > 2:
        yield {None, *rng.sample(slices, 2)}


def verdict(made: World, planned: Plan) -> str:
    """Return the rule by which a plan is not verified; "" where it is."""
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    return rule_against(certificate_of(planned.releases, facts))


ONE = "bought >= '2026-02-01' AND bought < '2026-03-01'"
SOME = "bought >= '2026-01-15' AND bought < '2026-04-01'"

STATEMENTS = {
    # (a) one period: by person, as without periods
    f"SELECT COUNT(*), SUM(amount) FROM orders WHERE {ONE}": "one",
    f"SELECT kind, COUNT(*) FROM orders WHERE {ONE} GROUP BY kind": "one",
    f"SELECT COUNT(DISTINCT user_id) FROM orders WHERE {ONE}": "one",
    f"SELECT u.city, SUM(o.amount) FROM orders o JOIN users u ON u.id = o.user_id WHERE {ONE} GROUP BY u.city": "one",
    "SELECT COUNT(*) FROM orders o JOIN visits v ON v.user_id = o.user_id "
    f"WHERE {ONE} AND v.day >= '2026-02-01' AND v.day < '2026-03-01'": "one",
    f"SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders WHERE {ONE} GROUP BY user_id) t GROUP BY n": "one",
    # groups are periods: (a) in each of them
    f"SELECT date_trunc('month', bought), COUNT(*), SUM(amount) FROM orders WHERE {SOME} GROUP BY 1": "one",
    f"SELECT date_trunc('day', o.bought), u.city, AVG(o.amount) FROM orders o JOIN users u ON u.id = o.user_id WHERE {SOME} GROUP BY 1, 2": "one",
    "SELECT date_trunc('month', day), COUNT(*), COUNT(DISTINCT user_id) FROM visits WHERE day < '2026-03-01' GROUP BY 1": "one",
    f"SELECT to_char(bought, 'YYYY-MM'), kind, COUNT(*) FROM orders WHERE {SOME} AND amount > 0 GROUP BY 1, 2": "one",
    # (b) by (person, period)
    "SELECT COUNT(*), AVG(amount), STDDEV(amount) FROM orders": "pair",
    f"SELECT u.city, COUNT(*) FROM orders o JOIN users u ON u.id = o.user_id WHERE {SOME} GROUP BY u.city": "pair",
    f"SELECT SUM(i.n) FROM items i JOIN orders o ON o.id = i.order_id WHERE {SOME}": "pair",
    "SELECT SUM(n) FROM items": "pair",
    "SELECT COUNT(*) FROM (SELECT user_id FROM orders UNION ALL SELECT user_id FROM visits) t": "pair",
    f"SELECT median(amount) FROM orders WHERE {SOME}": "pair",
    f"SELECT MODE() WITHIN GROUP (ORDER BY amount) FROM orders WHERE {SOME}": "pair",
    "SELECT s, COUNT(*) FROM (SELECT order_id, SUM(n) AS s FROM items GROUP BY order_id) t GROUP BY s": "pair",
    f"SELECT CORR(amount, o.id % 5) FROM orders o WHERE {SOME}": "pair",
    # (c) by person, who is replaced
    "SELECT COUNT(DISTINCT user_id) FROM orders": "person",
    "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t GROUP BY n": "person",
    f"SELECT kind, COUNT(*) FROM orders WHERE {SOME} GROUP BY kind": "person",
    f"SELECT COUNT(*) FROM orders o JOIN visits v ON v.user_id = o.user_id WHERE {SOME}": "person",
    f"SELECT COUNT(*) FROM orders o JOIN visits v ON v.user_id = o.user_id WHERE {ONE}": "person",
    f"SELECT o.amount > 0, COUNT(*) FROM orders o WHERE {ONE} AND EXISTS (SELECT 1 FROM visits v WHERE v.user_id = o.user_id) "
    "GROUP BY 1": "person",
    "SELECT u.city, COUNT(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.city": "person",
    "SELECT city, COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.amount > 0) GROUP BY city": "person",
    "SELECT city, COUNT(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.user_id = u.id) GROUP BY city": "person",
    f"SELECT u.city, COUNT(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id AND {ONE} GROUP BY u.city": "person",
    "SELECT amount, COUNT(*) FROM (SELECT amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY bought) AS place FROM orders) t "
    "WHERE place = 1 GROUP BY amount": "person",
    "SELECT COUNT(*) FROM (SELECT id FROM users UNION ALL SELECT user_id FROM orders) t": "person",
    "SELECT u.city, COUNT(*) FROM users u JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t ON t.user_id = u.id "
    "GROUP BY u.city": "person",
    # undated rows alone
    "SELECT city, COUNT(*), AVG(age) FROM users GROUP BY city": "undated",
}  # fmt: skip


def way_of(release: ReleasePlan) -> str:
    """Return by what a release's rows are bounded."""
    rows = release.release.rows
    if rows.is_replaced:
        return "person"
    assert release.slices is not None
    if not release.slices.periods:
        return "undated"
    return "pair" if len(rows.root[1]) > 1 else "one"


def under_zcdp(policy: Policy) -> Policy:
    """Return the policy whose losses add up in rho."""
    return replace(policy, privacy=replace(policy.privacy, accounting=Accounting.ZCDP))

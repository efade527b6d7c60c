"""L1 for rows that are kept by the number that they have among their person's of one period (soundness.md 1.39, 1.40).

R is 2 of each month. Numbers and first days are whatever the key admits: with holes, below 1, beyond R, of another month
than the row's, of rows without a time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.audit.statements import statements
from dpsql.engine.contribution import bounds_of
from dpsql.errors import Refusal
from dpsql.plan import planner
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.planner import Plan
from dpsql.plan.privacy import time as periods
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy, units
from dpsql.policy.model import Policy
from dpsql.release.facts import read_facts
from dpsql.release.verifying import certificate_of, rule_against
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, fixed_intermediates, measure_release, world
from .periods import (
    MONTHS,
    NO_TIME,
    Numbers,
    Row,
    hold,
    plan_at,
    slice_of,
    under_zcdp,
    verdict,
    way_of,
)
from .planting import plant

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE calls (user_id INTEGER NOT NULL, month DATE NOT NULL, n INTEGER NOT NULL, seen TIMESTAMP, day DATE, g INTEGER,
  amount INTEGER, UNIQUE (user_id, month, n));
CREATE TABLE pets (user_id INTEGER NOT NULL, n SMALLINT NOT NULL, legs INTEGER, PRIMARY KEY (n, user_id));
CREATE TABLE kinds (no INTEGER PRIMARY KEY, name TEXT);
INSERT INTO kinds VALUES (0, 'a'), (1, 'b'), (2, 'b')
"""
POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
[privacy.time]
period = "month"
since = 2026-01-01
[defaults]
epsilon = 1
[tables.users]
unit = "id"
columns = { id = {}, city = { values = ["A", "B"] } }
[tables.calls]
unit = { column = "user_id", references = "users.id" }
time = "seen"
row_number = ["month", "n"]
max_rows = 2
columns = { user_id = {}, seen = {}, g = { values = [0, 1, 2] }, amount = { bounds = [-3, 4] } }
[tables.pets]
unit = "user_id"
row_number = "n"
max_rows = 2
columns = { user_id = {}, legs = { bounds = [0, 4] } }
[tables.kinds]
public = true
columns = { name = { values = ["a", "b"] } }
"""
ONE = "seen >= '2026-02-01' AND seen < '2026-03-01'"
ALL = "seen >= '2026-01-01' AND seen < '2026-04-01'"

BY_NUMBER = {
    f"SELECT COUNT(*) FROM calls WHERE {ONE}": "one",
    f"SELECT g, COUNT(*), SUM(amount) FROM calls WHERE {ONE} GROUP BY g": "one",
    f"SELECT u.city, AVG(c.amount) FROM calls c JOIN users u ON u.id = c.user_id WHERE {ONE} GROUP BY u.city": "one",
    f"SELECT date_trunc('month', seen), COUNT(*), SUM(amount) FROM calls WHERE {ALL} GROUP BY 1": "one",
    "SELECT to_char(seen, 'YYYY-MM'), g, COUNT(*) FROM calls GROUP BY 1, 2": "one",
    "SELECT COUNT(*), SUM(amount) FROM calls": "pair",
    f"SELECT COUNT(*) FROM calls WHERE {ALL}": "pair",
    "SELECT g, COUNT(*) FILTER (WHERE amount > 0), COUNT(*) FROM calls GROUP BY g": "pair",
    "SELECT k.name, COUNT(*) FROM calls c JOIN kinds k ON k.no = c.g GROUP BY k.name": "pair",
    "SELECT u.city, COUNT(*) FROM calls c JOIN users u ON u.id = c.user_id GROUP BY u.city": "pair",
    "SELECT u.city, COUNT(*) FROM calls c LEFT JOIN users u ON u.id = c.user_id GROUP BY u.city": "person",
    "SELECT COUNT(*), SUM(amount) FROM calls c LEFT JOIN users u ON u.id = c.user_id": "person",
    f"SELECT g, COUNT(*) FROM calls c LEFT JOIN users u ON u.id = c.user_id WHERE {ONE} GROUP BY g": "person",
    "SELECT COUNT(*), SUM(legs) FROM pets": "undated",
    "SELECT u.city, COUNT(*) FROM pets p JOIN users u ON u.id = p.user_id GROUP BY u.city": "undated",
}  # fmt: skip
"""What is answered by number, and by which claim."""
BY_WEIGHT = {
    "SELECT COUNT(*) FROM calls WHERE seen >= '2026-02-02' AND seen < '2026-03-01'": "one",
    f"SELECT COUNT(*) FROM calls WHERE {ONE} AND g = 1": "one",
    f"SELECT COUNT(DISTINCT user_id) FROM calls WHERE {ONE}": "one",
    "SELECT COUNT(*) FROM calls WHERE seen >= '2026-01-15'": "pair",
    "SELECT median(amount) FROM calls": "pair",
    "SELECT COUNT(*) FROM calls WHERE extract(month FROM seen) IN (1, 3)": "pair",
    f"SELECT COUNT(*) FROM calls c JOIN pets p ON p.user_id = c.user_id WHERE {ONE}": "person",
    "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM calls GROUP BY user_id) t GROUP BY n": "person",
    "SELECT u.city, COUNT(*) FROM users u LEFT JOIN calls c ON c.user_id = u.id GROUP BY u.city": "person",
}
ASKED = BY_NUMBER | BY_WEIGHT


@dataclass(frozen=True)
class People:
    """The rows of a database: of calls (user, month, n, seen, day, g, amount), of pets (user, n, legs)."""

    users: tuple[Row, ...]
    calls: tuple[Row, ...]
    pets: tuple[Row, ...]

    def without(self, person: int, gone: Iterable[int | None]) -> People:
        """Return the database without a person's rows of some periods; None: their undated ones."""
        slices = set(gone)
        users, pets = (
            tuple(row for row in rows if row[0] != person or None not in slices)
            for rows in (self.users, self.pets)
        )
        calls = tuple(row for row in self.calls if row[0] != person or slice_of(row[3]) not in slices)
        return People(users, calls, pets)

    def slices(self, person: int) -> set[int]:
        """Return the periods that a person has rows of."""
        return {slice_of(row[3]) for row in self.calls if row[0] == person and row[3] is not None}


def put(connection: duckdb.DuckDBPyConnection, people: People, order: int = 0) -> None:
    """Put a database in, in a physical order that depends on `order`."""
    for name in ("users", "calls", "pets"):
        connection.execute(f"DELETE FROM {name}")
        rows = list(getattr(people, name))
        random.Random(order).shuffle(rows)
        insert(connection, name, rows)


def random_people(rng: random.Random) -> People:
    """Return people with rows above R in some months, whose numbers and first days are in part made by hand."""
    calls: dict[tuple[int, date, int], Row] = {}
    for person in range(4):
        for month in MONTHS:
            for i in range(rng.choice((0, 1, 2, 4))):
                moment = datetime(month.year, month.month, rng.choice((1, month.day)), 12)
                seen = None if rng.random() < 0.05 else moment
                said = rng.choice((month, *MONTHS)) if rng.random() < 0.2 else month
                key = person, said.replace(day=1), i + 1 if rng.random() < 0.7 else rng.randint(-1, 4)
                calls[key] = (*key, seen, moment.date(), rng.choice((0, 1, 2, 7, None)), rng.randint(-5, 6))
    pets = {(person, rng.randint(-1, 4)): rng.randint(0, 6) for person in (0, 0, 0, 1, 1, 2, 3)}
    users = tuple((person, rng.choice("ABC")) for person in (0, 1, 2))
    return People(users, tuple(calls.values()), tuple((*key, legs) for key, legs in pets.items()))


def heavy() -> People:
    """A person with R rows of each month, many of higher numbers, below 1, and of the first days of other months; and
    one whose rows have a first day each that is no month's."""
    months = [date(2026, month, 1) for month in (1, 2, 3)]
    calls: list[Row] = []
    for month in months:
        moment = datetime(month.year, month.month, 9)
        calls += [(0, month, n, moment, moment.date(), 0, 4) for n in range(-2, 6)]
        calls += [(0, date(2019, month.month, 1), n, moment, moment.date(), 0, 4) for n in (1, 2)]
        for day in range(1, 29):
            at = datetime(month.year, month.month, day)
            calls += [
                (1, at.date() + timedelta(400), n, at, at.date() + timedelta(400), 1, -3) for n in (1, 2)
            ]
    pets = tuple((0, n, 4) for n in range(-1, 5))
    return People(((0, "A"), (1, "B"), (2, "A")), tuple(calls), pets)


@contextmanager
def opened(
    folder: Path,
    server: PostgresServer | None = None,
    *,
    policy: Callable[[Policy], Policy] = lambda policy: policy,
    text: str = POLICY,
    schema: str = SCHEMA,
) -> Iterator[World]:
    made = policy(parse_policy(text, folder / "laws.toml"))
    with world(folder, policy=made, schema=schema, server=server) as found:
        yield found


def measured(made: World, plans: Iterable[Plan], people: People, order: int = 0) -> list[Numbers]:
    """Return the exact integers of plans over a database."""
    made.settle(put, people, order)
    with made.backend.snapshot() as snapshot:
        return [
            [measure_release(one, snapshot, fixed_intermediates(each)) for one in each.releases]
            for each in plans
        ]


def held_in(made: World, people: People, person: int, planned: dict[str, Plan]) -> dict[str, Fraction]:
    """Hold statements' claims for one person's slices, alone and together; return the most that each reached."""
    plans, has = [*planned.values()], people.slices(person)
    here = measured(made, plans, people)
    worst = dict.fromkeys(planned, Fraction(0))
    slices: list[int | None] = [*sorted(has), NO_TIME, None]
    for order, gone in enumerate([*({one} for one in slices), set(slices)], 1):
        there = measured(made, plans, people.without(person, gone), order)
        for sql, plan, left, right in zip(planned, plans, here, there, strict=True):
            worst[sql] = max(worst[sql], hold(plan, left, right, gone, sql, has))
    return worst


def numbers_of(plan: Plan) -> list[bool]:
    return [release.bounding.numbered is not None for release in plan.releases]


# --- what is claimed ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened(tmp_path_factory.mktemp("numbered")) as found:
        yield found


@pytest.mark.parametrize("sql", ASKED)
def test_the_choice_is_of_text_and_policy_and_verified(made: World, sql: str) -> None:
    planned = plan_at(made, sql)
    assert {way_of(one) for one in planned.releases} == {ASKED[sql]}
    assert set(numbers_of(planned)) == {sql in BY_NUMBER}
    for release in planned.releases if sql in BY_NUMBER else ():
        (query,) = release.queries(tuple(range(len(release.measurements))))
        assert "BETWEEN 1 AND 2)" in query.sql
        assert ("""s."month" = """ in query.sql) == (ASKED[sql] != "undated")
        assert "heavy" not in query.sql
    assert verdict(made, planned) == ""


def test_no_slice_moves_more_than_it_is_charged(made: World) -> None:
    rng = random.Random(38)
    planned = {sql: plan_at(made, sql) for sql in BY_NUMBER}
    for _ in range(tried(2, 20)):
        held_in(made, random_people(rng), rng.randrange(4), planned)


def test_the_claims_are_reached(made: World) -> None:
    planned = {sql: plan_at(made, sql) for sql in BY_NUMBER}
    worst = held_in(made, heavy(), 0, planned)
    assert {way for sql, way in BY_NUMBER.items() if worst[sql] == 1} == {"one", "pair", "person", "undated"}


def test_no_slice_moves_more_on_postgres(tmp_path: Path, postgres: PostgresServer) -> None:
    rng = random.Random(83)
    with opened(tmp_path, postgres) as made:
        planned = {sql: plan_at(made, sql) for sql in ASKED}
        for sql, plan in planned.items():
            assert (set(numbers_of(plan)), verdict(made, plan)) == ({sql in BY_NUMBER}, ""), sql
        held_in(made, heavy(), 0, planned)
        held_in(made, random_people(rng), 1, planned)


def test_no_slice_moves_more_in_rho(tmp_path: Path) -> None:
    rng = random.Random(3)
    with opened(tmp_path, policy=under_zcdp) as made:
        planned = {sql: plan_at(made, sql) for sql in ASKED}
        assert [sql for sql, plan in planned.items() if verdict(made, plan)] == []
        assert max(held_in(made, heavy(), 0, planned).values()) == 1
        held_in(made, random_people(rng), 0, planned)


def test_statements_of_every_shape_hold_their_claims(made: World) -> None:
    rng, planned = random.Random(5), dict[str, Plan]()
    for number, one in enumerate(statements(made.catalog, 5, tried(90, 300))):
        with suppress(Refusal):
            plan = plan_at(made, one.sql)
            if any(numbers_of(plan)) or number < tried(10, 100):
                planned[one.sql] = plan
    held_in(made, heavy(), 0, planned)
    for _ in range(tried(0, 4)):
        held_in(made, random_people(rng), rng.randrange(4), planned)
    verdicts = {sql: verdict(made, plan) for sql, plan in planned.items() if plan.releases}
    assert [sql for sql, why in verdicts.items() if why and "CASE WHEN (1 IN (-3, 100))" not in sql] == []
    assert any(any(numbers_of(plan)) for plan in planned.values())


def test_a_row_of_another_first_day_counts_for_nobody(made: World) -> None:
    sql, moment = f"SELECT COUNT(*) FROM calls WHERE {ONE}", datetime(2026, 2, 9)
    days = date(2026, 2, 1), date(2026, 1, 1), date(2026, 2, 9), date(1, 1, 1)
    rows = tuple((0, day, 1, moment, moment.date(), 0, 0) for day in days)
    ((found,),) = measured(made, [plan_at(made, sql)], People((), rows, ()))
    assert found[0] == {(): (1,)}


# --- several periods of one person --------------------------------------------------------------------------

OF_PERSONS = [sql for sql, way in BY_NUMBER.items() if way == "person" and ONE not in sql]


@pytest.mark.parametrize(("ever", "is_by_number"), [(6, True), (9, True), (5, False), (4, False)])
def test_up_to_max_rows_ever_the_numbers_of_all_months_bound_a_person(
    tmp_path: Path, ever: int, is_by_number: bool
) -> None:
    """Three months of 2 rows are 6: where a person counts with fewer in all, rows are weighed."""
    text = POLICY.replace(
        'row_number = ["month", "n"]\n', f'row_number = ["month", "n"]\nmax_rows_ever = {ever}\n'
    )
    with opened(tmp_path, text=text) as made:
        planned = {sql: plan_at(made, sql) for sql in OF_PERSONS}
        assert {one for plan in planned.values() for one in numbers_of(plan)} == {is_by_number}
        assert {verdict(made, plan) for plan in planned.values()} == {""}
        held_in(made, heavy(), 0, planned)
        pairs = plan_at(made, "SELECT COUNT(*) FROM calls")
        assert numbers_of(pairs) == [True], "by person and period it is one month's"


def test_what_is_said_of_it(made: World) -> None:
    for sql, said in (
        (f"SELECT COUNT(*) FROM calls WHERE {ONE}", "2 rows, numbered 1 to 2"),
        ("SELECT COUNT(*) FROM calls", "2 rows, numbered 1 to 2"),
        (OF_PERSONS[0], "6 rows, numbered 1 to 2 of each period"),
    ):
        (release,) = plan_at(made, sql).releases
        assert bounds_of(release) == [said]


# --- stored draws -------------------------------------------------------------------------------------------


def family(release: ReleasePlan) -> bytes:
    found = release.family(0, ())
    assert found is not None
    return found


def test_no_draw_by_number_answers_by_weight_or_by_another_first_day(made: World) -> None:
    (numbered,) = plan_at(made, f"SELECT g, COUNT(*) FROM calls WHERE {ONE} GROUP BY g").releases
    (weighed,) = plan_at(made, f"SELECT g, COUNT(*) FROM calls WHERE {ONE} AND g >= 0 GROUP BY g").releases
    bounding = numbered.bounding
    assert bounding.numbered is not None
    others = [
        replace(bounding, numbered=None),
        replace(bounding, numbered=replace(bounding.numbered, by_period=("day", 2))),
        replace(bounding, numbered=replace(bounding.numbered, by_period=("month", 1))),
        replace(bounding, numbered=replace(bounding.numbered, column="m")),
        replace(bounding, numbered=replace(bounding.numbered, by_period=None)),
    ]
    families = {family(replace(numbered, bounding=one)) for one in (bounding, *others)}
    assert len(families | {family(weighed)}) == len(others) + 2
    assert numbered.identity != weighed.identity


def test_a_month_is_one_draw_whatever_else_is_asked_with_it(made: World) -> None:
    def drawn(sql: str) -> dict[object, bytes]:
        return {release.slices: release.identity for release in plan_at(made, sql).releases}

    whole = drawn("SELECT date_trunc('month', seen), COUNT(*) FROM calls GROUP BY 1")
    ((month, alone),) = drawn(f"SELECT COUNT(*) FROM calls WHERE {ONE}").items()
    assert len(whole) == 3
    assert whole[month] == alone


# --- planted faults -----------------------------------------------------------------------------------------


def no_first_day(patch: Patch) -> None:
    """Rows of any first day are read."""
    plant(patch, SourcePrinter._scan, ("if by is not None:", "if False:"))


def first_day_of_each_day(patch: Patch) -> None:
    """The first day is asked to be that of a finer calendar's period."""
    plant(patch, SourcePrinter._scan, ("= {_numbered(column, word, days)}", "= CAST({column} AS DATE) + 400"))


def at_least_its_first_day(patch: Patch) -> None:
    plant(
        patch, SourcePrinter._scan,
        ('{quoted(by.by_period[0])} = {_numbered(', '{quoted(by.by_period[0])} <> {_numbered('),
    )  # fmt: skip


def one_more(patch: Patch) -> None:
    plant(patch, SourcePrinter.block, ("AND {by_number[1]})", "AND {by_number[1] + 1})"))


def no_lower_end(patch: Patch) -> None:
    plant(patch, SourcePrinter.block, ("{column} BETWEEN 1 AND {", "{column} <= {"))


def person_taken_for_a_pair(patch: Patch) -> None:
    """In (c) what is claimed is one month's."""
    plant(patch, periods.by_person, ("_ever(table.unit, max(1, len(numbers)))", "table.unit"))
    plant(patch, planner._numbered, ("rows.is_replaced and most * periods > bounding.in_all", "False"))


FAULTS: dict[Callable[[Patch], None], str] = {
    no_first_day: "one",
    first_day_of_each_day: "one",
    at_least_its_first_day: "pair",
    one_more: "pair",
    no_lower_end: "one",
    person_taken_for_a_pair: "person",
}
"""Each with the claim that it breaks."""


def hold_heavy(made: World, planned: dict[str, Plan]) -> None:
    for person in (0, 1):
        held_in(made, heavy(), person, planned)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_unsound_variant_dies_and_is_seen(
    tmp_path: Path, monkeypatch: Patch, fault: Callable[[Patch], None]
) -> None:
    fault(monkeypatch)
    with opened(tmp_path) as made:
        planned = {sql: plan_at(made, sql) for sql, way in BY_NUMBER.items() if way == FAULTS[fault]}
        assert any(verdict(made, plan) for plan in planned.values())
        with pytest.raises(AssertionError):
            hold_heavy(made, planned)


def test_of_another_calendar_the_verifier_takes_none(tmp_path: Path, monkeypatch: Patch) -> None:
    """It moves nothing further, and counts nobody."""
    plant(monkeypatch, periods._spans, ("first_day(clock.time.period, number).isoformat() for", "first_day(clock.time.period, number + 1).isoformat() for"))  # fmt: skip
    with opened(tmp_path) as made:
        planned = {sql: plan_at(made, sql) for sql, way in BY_NUMBER.items() if way != "undated"}
        assert all(verdict(made, plan) for plan in planned.values())


@pytest.mark.parametrize(
    ("key", "piece"),
    [
        ("", ("if any(set(key) == wanted for key in table.proved.keys):", "if True:")),
        (", UNIQUE (user_id, month, n, amount)", ("set(key) == wanted for key", "set(key) >= wanted for key")),
        (", UNIQUE (user_id, seen, n)", ("if any(set(key) == wanted for key in table.proved.keys):", "if True:")),
    ],
)  # fmt: skip
def test_a_key_that_holds_less(tmp_path: Path, monkeypatch: Patch, key: str, piece: tuple[str, str]) -> None:
    plant(monkeypatch, units._require_key_of_numbers, piece)
    sql, moments = f"SELECT COUNT(*) FROM calls WHERE {ONE}", [datetime(2026, 2, 1 + i) for i in range(9)]
    rows = tuple((0, date(2026, 2, 1), 1, at, at.date(), 0, i) for i, at in enumerate(moments))
    with opened(tmp_path, schema=SCHEMA.replace(", UNIQUE (user_id, month, n)", key)) as made:
        planned = {sql: plan_at(made, sql)}
        assert verdict(made, planned[sql]) != ""
        with pytest.raises(AssertionError):
            held_in(made, People((), rows, ()), 0, planned)


def changed_texts(made: World, sql: str, *pieces: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what the verifier says of a statement's text with each piece of it changed."""
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    whole = certificate_of(plan_at(made, sql).releases, facts)
    ((query,), release) = whole.releases[0].queries, whole.releases[0]
    assert rule_against(whole) == ""
    for old, new in pieces:
        assert old in query.sql, (old, query.sql)
        changed = replace(query, sql=query.sql.replace(old, new))
        yield new, rule_against(replace(whole, releases=(replace(release, queries=(changed,)),)))


ASKS = """s."month" = """


@pytest.mark.parametrize(
    "sql", [f"SELECT COUNT(*) FROM calls WHERE {ONE}", "SELECT COUNT(*) FROM calls", OF_PERSONS[1]]
)
def test_a_text_without_a_premise_is_not_verified(made: World, sql: str) -> None:
    pieces = [
        (ASKS, """s."month" <> """),
        (ASKS, """s."month" >= """),
        (ASKS, """s."day" = """),
        (ASKS, """s."user_id" = """),
        (ASKS, """TRUE OR s."month" = """),
        (ASKS, """t0."month" = """),
        ("DATE '2026-02-01'", "DATE '2026-02-02'"),
        ("DATE '2026-02-01'", "DATE '2026-01-26'"),
        ("DATE '2026-02-01'", "NULL"),
        ("DATE '2026-02-01'", """s."day" """),
        ("DATE '2026-02-01'", "TIMESTAMP '2026-02-01 00:00:00'"),
        ("""t0."n" BETWEEN 1 AND 2""", """t0."n" BETWEEN 0 AND 2"""),
        ("""t0."n" BETWEEN 1 AND 2""", """t0."n" <= 2"""),
        ('"main"."calls" AS s', '"main"."calls.by month" AS s'),
    ]
    for new, rule in changed_texts(made, sql, *pieces):
        assert rule != "", new


def test_facts_without_a_premise_are_not_enough(made: World) -> None:
    """A first day that is NULL is none of a period, so that nothing rests on there being none."""
    with made.backend.snapshot() as snapshot:
        facts = read_facts(snapshot, made.policy, lambda *_: None)
    (name, table), *_ = ((name, one) for name, one in facts.tables.items() if name.endswith(".calls"))
    for sql in (f"SELECT COUNT(*) FROM calls WHERE {ONE}", "SELECT COUNT(*) FROM calls", OF_PERSONS[0]):
        releases = plan_at(made, sql).releases
        for said in (
            replace(table, unique=(("user_id", "n", "amount"),)),
            replace(table, unique=(("user_id", "month", "g"),)),
            replace(table, unique=(("user_id", "month", "n", "g"),)),
            replace(table, unique=()),
            replace(table, not_null=("month", "n")),
            replace(table, not_null=("user_id", "month")),
            replace(table, columns={**table.columns, "month": "TIMESTAMP"}),
            replace(table, columns={**table.columns, "n": "DOUBLE"}),
        ):
            others = {**facts.tables, name: said}
            assert rule_against(certificate_of(releases, replace(facts, tables=others))) != "", said

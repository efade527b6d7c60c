"""Rows of two people under a budget by periods: by person, who is replaced (soundness.md 1.38, 1.40).

A neighbour lacks one person's rows of one month, in all tables, or their undated ones; votes on their posts stay, and point
at nothing. R_a is 2 of a month of votes and 3 of all, R_b is 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.plan import planner
from dpsql.plan.planner import Plan
from dpsql.plan.privacy import time as periods
from dpsql.policy import parse_policy
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer

from .measured import World, distance, measure_release, squared_distance, world
from .periods import plan_at, reach_of, verdict, way_of
from .planting import plant

Patch = pytest.MonkeyPatch

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE post (id INTEGER PRIMARY KEY, owner INTEGER, cat TEXT);
CREATE TABLE reply (id INTEGER PRIMARY KEY, owner INTEGER, seen TIMESTAMP);
CREATE TABLE vote (id INTEGER PRIMARY KEY, voter INTEGER, post INTEGER, reply INTEGER, seen TIMESTAMP, kind INTEGER)
"""
POLICY = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
delta = 1e-6
accounting = "{accounting}"
[privacy.time]
period = "month"
since = 2026-01-01
[defaults]
epsilon = 1
[tables.person]
unit = "id"
columns = {{ id = {{}}, city = {{ values = ["a", "b"] }} }}
[tables.post]
unit = {{ column = "owner", references = "person.id" }}
columns = {{ id = {{}}, cat = {{ values = ["x", "y"] }} }}
[tables.reply]
unit = {{ column = "owner", references = "person.id" }}
time = "seen"
columns = {{ id = {{}}, seen = {{}} }}
[tables.vote]
unit = {{ column = "voter", references = "person.id" }}
time = "seen"
max_rows = 2
max_rows_ever = 3
also = [
  {{ column = "post", references = "post.id", max_rows = 3 }}, {{ column = "reply", references = "reply.id", max_rows = 3 }},
]
columns = {{ id = {{}}, seen = {{}}, kind = {{ values = [0, 1, 2] }} }}
"""
ONE = "v.seen >= '2026-02-01' AND v.seen < '2026-03-01'"
STATEMENTS = (
    "SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id",
    "SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id GROUP BY v.kind",
    f"SELECT v.kind, COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE {ONE} GROUP BY v.kind",
    "SELECT date_trunc('month', v.seen), COUNT(*) FROM vote v JOIN post p ON v.post = p.id "
    "WHERE v.seen >= '2026-01-01' AND v.seen < '2026-04-01' GROUP BY 1",
    "SELECT p.cat, a.city, COUNT(*) FROM vote v JOIN post p ON v.post = p.id JOIN person a ON a.id = p.owner GROUP BY p.cat, a.city",
    f"SELECT COUNT(*) FROM vote v JOIN post p ON v.post = p.id WHERE p.owner = v.voter AND {ONE}",
    "SELECT v.kind, COUNT(*) FROM vote v JOIN reply r ON v.reply = r.id GROUP BY v.kind",
    f"SELECT v.kind, COUNT(*) FROM vote v JOIN reply r ON v.reply = r.id WHERE {ONE} GROUP BY v.kind",
    f"SELECT COUNT(*) FROM vote v JOIN reply r ON v.reply = r.id WHERE {ONE} AND r.seen >= '2026-02-01' AND r.seen < '2026-03-01'",
)  # fmt: skip
Rows = dict[str, list[tuple[object, ...]]]


def put(connection: duckdb.DuckDBPyConnection, rows: Rows, order: int) -> None:
    for name in ("person", "post", "reply", "vote"):
        connection.execute(f"DELETE FROM {name}")
        own = list(rows[name])
        random.Random(order).shuffle(own)
        insert(connection, name, own)


def month(at: object) -> int | None:
    assert at is None or isinstance(at, date)
    return None if at is None else 12 * at.year + at.month - 1


TIMED = {"reply": (1, 2), "vote": (1, 4)}
UNDATED = {"person": 0, "post": 1}


def without(rows: Rows, person: int, gone: int | None) -> Rows:
    """Return a database without a person's rows of a month; None: their undated ones."""
    found = dict(rows)
    if gone is None:
        for name, owner in UNDATED.items():
            found[name] = [row for row in rows[name] if row[owner] != person]
    else:
        for name, (owner, at) in TIMED.items():
            found[name] = [row for row in rows[name] if row[owner] != person or month(row[at]) != gone]
    return found


def drawn(seed: int) -> Rows:
    draw = random.Random(seed)
    months = [datetime(2026, one, 9) for one in (1, 2, 2, 3)] + [datetime(2025, 5, 1), None]
    authors = draw.choice([[1], [1, 2], [1, 2, 3, None]])
    post = [(i, draw.choice(authors), draw.choice("xy")) for i in range(6)]
    reply = [(i, draw.choice(authors), draw.choice(months)) for i in range(6)]
    vote = [
        (
            i,
            draw.choice([1, 1, 2, 3, 4, 5, 6, 7]),
            draw.randrange(7),
            draw.randrange(7),
            draw.choice(months),
            draw.randrange(3),
        )
        for i in draw.sample(range(500), 40)
    ]
    return {
        "person": [(i, draw.choice("ab")) for i in range(1, 8)],
        "post": post,
        "reply": reply,
        "vote": vote,
    }


@contextmanager
def forum(folder: Path, server: PostgresServer | None = None, accounting: str = "pure") -> Iterator[World]:
    policy = parse_policy(POLICY.format(accounting=accounting), folder / "laws.toml")
    with world(folder, policy=policy, schema=SCHEMA, server=server) as made:
        yield made


def measured(made: World, plans: list[Plan], rows: Rows, order: int) -> list[list[dict[int, object]]]:
    made.settle(put, rows, order)
    with made.backend.snapshot() as snapshot:
        return [[measure_release(one, snapshot) for one in each.releases] for each in plans]  # type: ignore[misc]


def hold(made: World, statements: tuple[str, ...], rows: Rows, person: int) -> Fraction:
    """Hold what each slice of a person moves: its claim where it is charged, and nothing else; return the most reached."""
    plans = [plan_at(made, sql) for sql in statements]
    here, most = measured(made, plans, rows, 0), Fraction(0)
    slices = {
        month(row[at]) for name, (owner, at) in TIMED.items() for row in rows[name] if row[owner] == person
    } - {None}
    for order, gone in enumerate([*slices, None], 1):
        there = measured(made, plans, without(rows, person, gone), order)
        for sql, plan, left, right in zip(statements, plans, here, there, strict=True):
            for release, one, other in zip(plan.releases, left, right, strict=True):
                charged = gone in reach_of(release)
                for number, measurement in enumerate(release.measurements):
                    moved = distance(release, number, one[number], other[number])  # type: ignore[arg-type]
                    assert moved <= charged * measurement.sensitivity, (sql, gone)
                    squared = squared_distance(release, number, one[number], other[number])  # type: ignore[arg-type]
                    assert squared <= charged * measurement.squared_sensitivity, (sql, gone)
                    most = max(most, Fraction(moved) / measurement.sensitivity)
    return most


def authored() -> Rows:
    """Person 1's post has votes of many; without it, an undated row, they point at nothing."""
    vote = [(100 + i, 10 + i, 1, None, datetime(2026, 2, 9), 0) for i in range(12)]
    return {"person": [(i, "a") for i in range(1, 30)], "post": [(1, 1, "x")], "reply": [], "vote": vote}


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_by_person_alone_and_verified(tmp_path: Path, engine: PostgresServer | None, accounting: str) -> None:
    with forum(tmp_path, engine, accounting) as made:
        for sql in STATEMENTS:
            planned = plan_at(made, sql)
            assert {way_of(one) for one in planned.releases} == {"person"}, sql
            assert verdict(made, planned) == "", sql
            undated = "post" in sql.split("WHERE")[0]
            assert all((None in reach_of(one)) == undated for one in planned.releases), sql
        alone = plan_at(made, f"SELECT COUNT(*) FROM vote v WHERE {ONE}").releases[0]
        assert way_of(alone) == "one", "what reads no reference is as it was"
        own = plan_at(
            made,
            f"SELECT a.city, COUNT(*) FROM vote v JOIN person a ON a.id = v.voter WHERE {ONE} GROUP BY a.city",
        )
        assert (way_of(own.releases[0]), verdict(made, own)) == ("one", "")


def test_voters_are_bounded_by_the_months_of_votes(tmp_path: Path) -> None:
    """Replies are read of all months and votes of one: R_a is 2, and 3 where votes are of all; 2 R_a + 3, replaced."""
    by_kind = "SELECT v.kind, COUNT(*) FROM vote v JOIN reply r ON v.reply = r.id"
    with forum(tmp_path) as made:
        for where, claim in ((f" WHERE {ONE}", 14), ("", 18)):
            (release,) = plan_at(made, f"{by_kind}{where} GROUP BY v.kind").releases
            (measurement,) = release.measurements
            assert Fraction(measurement.sensitivity, measurement.denominator) == claim


def test_no_slice_moves_more_than_it_is_charged(tmp_path: Path, engine: PostgresServer | None) -> None:
    with forum(tmp_path, engine) as made:
        assert hold(made, STATEMENTS, authored(), 1) > 0
        for seed in range(tried(1, 4)):
            for person in (1, 2):
                hold(made, STATEMENTS, drawn(seed), person)


def test_no_slice_moves_more_where_rho_adds_up(tmp_path: Path, engine: PostgresServer | None) -> None:
    with forum(tmp_path, engine, "zcdp") as made:
        hold(made, STATEMENTS, authored(), 1)
        hold(made, STATEMENTS, drawn(5), 1)


# --- mutants ------------------------------------------------------------------------------------------------


def test_take_it_as_rows_of_one_period(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    """Who is pointed at has an undated row, which nothing was charged to; the verifier sees it too."""
    plant(
        monkeypatch,
        planner._ByPeriods.plan,
        ("any(reads_references(release.rows) for release in ordered(person))", "False"),
    )
    with forum(tmp_path, engine) as made:
        assert verdict(made, plan_at(made, STATEMENTS[2])) != ""
        with pytest.raises(AssertionError):
            hold(made, (STATEMENTS[2],), authored(), 1)


def test_charge_nothing_to_undated_rows(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    plant(monkeypatch, periods.slices_of, ("rows.is_replaced or not joins_plainly(rows)", "False"))
    with forum(tmp_path, engine) as made:
        assert verdict(made, plan_at(made, STATEMENTS[1])) != ""
        with pytest.raises(AssertionError):
            hold(made, (STATEMENTS[1],), authored(), 1)


def test_bound_a_person_by_one_month(
    tmp_path: Path, engine: PostgresServer | None, monkeypatch: Patch
) -> None:
    """Over several periods a person is replaced: R_a is of all of them, and the claim twice."""
    plant(monkeypatch, periods.by_person, ("is_replaced=is_ever", "is_replaced=False"))
    with forum(tmp_path, engine) as made:
        assert verdict(made, plan_at(made, STATEMENTS[1])) != ""

"""What an owner measures of a table (soundness.md 3.10): the exact law, the claim on real engines, charge first."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import bounds
from dpsql.engine.audit.audit import moved, steps_of, window_of
from dpsql.engine.bounds import Measured, Wish, measure, people_between
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.engine.session import Session
from dpsql.errors import BudgetExhausted, EngineFailure
from dpsql.mechanisms import Laplace, RankChoice, Window
from dpsql.plan.measures import ranks
from dpsql.plan.measures.measurements import Measurement
from dpsql.plan.measures.ranks import GRID
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Policy, load_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import (
    SCHEMA,
    Database,
    load,
    policy_of,
    policy_text,
    replaced,
    without,
)

from .conftest import Desk, OpenDesk, make_desk
from .examples import HEAVY, NOBODY, ORDINARY, WIDE, visit
from .measured import measure_release
from .test_charge_first import Watched
from .test_mutations import rewrite

Patch = pytest.MonkeyPatch
TENTH = Fraction(1, 10)


def wish(epsilon: Fraction = Fraction(1), **more: Any) -> Wish:
    return Wish("visit", epsilon, Fraction(1), **more)


def found(session: Session, wanted: Wish) -> Measured:
    measured = measure(session, wanted, "dpsql bounds visit")
    assert isinstance(measured, Measured)
    return measured


def crowd(counts: tuple[int, ...]) -> Database:
    """People with so many visits each."""
    return Database((), tuple(visit(unit) for unit, count in enumerate(counts) for _ in range(count)))


@pytest.fixture(scope="module")
def at_engine(
    tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None
) -> Iterator[dict[str, Desk]]:
    """Desks without noise under each promise, on each engine."""
    with ExitStack() as stack:
        desks = {}
        for name, replace_one, together in (
            ("add", False, 1),
            ("replace", True, 1),
            ("three", False, 3),
        ):
            folder = tmp_path_factory.mktemp(name)
            policy = policy_of(folder, replace_one=replace_one)
            policy = replace(policy, privacy=replace(policy.privacy, together=together))
            desks[name] = make_desk(stack, folder, ZeroNoise(), server=engine, policy=policy)
        yield desks


def again(desk: Desk, database: Database) -> Session:
    """Return a session over these people, for which nothing is stored."""
    desk.settle(database)
    desk.session.dataset.store.advance_epoch()
    return desk.session


# --- what comes out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "database", [HEAVY, NOBODY, ORDINARY, WIDE], ids=["heavy", "nobody", "ordinary", "wide"]
)
def test_it_is_on_the_grid_whatever_the_data(desk: OpenDesk, database: Database) -> None:
    opened = desk()
    opened.settle(database)
    for epsilon in ("0.1", "9"):
        measured = found(opened.session, wish(Fraction(epsilon)))
        assert measured.suggested in (*GRID, 6)
        assert {one.max_rows for one in measured.left_out} == {6, measured.suggested}


def test_people_are_counted_as_they_are(at_engine: dict[str, Desk]) -> None:
    session = again(at_engine["add"], crowd((0, 1, 6, 6, 7, 30, 200)))
    measured = found(session, wish())
    (declared,) = (one for one in measured.left_out if one.max_rows == 6)
    assert (declared.above, declared.people) == (3, 6)
    assert declared.kept == pytest.approx(
        31 / (31 + sum(min(count, declared.rungs[-1]) - 6 for count in (7, 30, 200)))
    )


@pytest.mark.parametrize(
    ("counts", "best"),
    [
        ((4,) * 90, 6),
        ((1,) * 90, 1),
        ((2,) * 60 + (9,) * 60, 6),
        ((2,) * 60 + (29,) * 60, 30),
        ((2,) * 90 + (9,) * 5, 2),
        ((20_001,) * 60, 10_000),
    ],
)
def test_the_best_leaves_as_many_as_it_costs(desk: OpenDesk, counts: tuple[int, ...], best: int) -> None:
    """At epsilon 1 for it and for later questions the best one has 6 + 2 people above it or at it.

    Where it is near the 6 that are declared, these stay.
    """
    opened = desk(ZeroNoise())
    opened.connection.execute(
        "INSERT INTO visit (person_id) SELECT u FROM (SELECT unnest(?) AS c, generate_subscripts(?, 1) AS u), range(c)",
        [list(counts), list(counts)],
    )
    wanted = replace(wish(Fraction(1)), epsilon=Fraction(4))
    assert found(opened.session, wanted).suggested == best


def test_the_ends_of_a_column_stay_in_the_range_that_was_said(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(HEAVY)
    wanted = wish(columns=(("x", (Fraction(-7), Fraction(9))), ("day", None)))
    numbers, days = (column.bounds for column in found(opened.session, wanted).columns)
    assert numbers is not None
    assert days is not None
    assert -7 <= numbers[0] <= numbers[1] <= 9  # type: ignore[operator]  # numbers
    assert days[0].year == days[1].year == 2020  # type: ignore[union-attr]  # dates


# --- the exact law, by enumeration ------------------------------------------------------------------------


def choice_of(session: Session, epsilon: Fraction) -> RankChoice:
    return bounds._choice(session, wish(), epsilon).choices[0]


def window_over(choice: RankChoice, counts: tuple[int, ...]) -> Window:
    """Return the window of people with so many rows, as the printed SQL gives it."""
    places = [
        min(i for i, value in enumerate(GRID) if count <= value or i == len(GRID) - 1) for count in counts
    ]
    rows = []
    for place in sorted(set(places)):
        less, own = sum(other < place for other in places), places.count(place)
        centre = choice.p * len(places) + choice.offset
        if choice.q * (less + own) - centre > -choice.clamp and choice.q * less - centre < choice.clamp:
            rows.append((place, less, own, len(places)))
    return window_of(rows)


def misses(choice: RankChoice, counts: tuple[int, ...]) -> list[int]:
    spread: list[int] = []
    for end, miss in steps_of(choice, window_over(choice, counts)):
        spread += [miss] * (end - len(spread))
    return spread


PEOPLE = [
    counts for size in range(5) for counts in itertools.combinations_with_replacement((1, 2, 9, 20_000), size)
]


def test_the_score_is_how_far_the_people_above_are_from_the_wanted_ones(desk: OpenDesk) -> None:
    """Of value v: 0 where as many as wanted are above v or at it, else by how many people that misses."""
    session = desk().session
    choice = choice_of(session, Fraction(1, 2))
    wanted, most = -choice.offset, max(GRID)
    assert wanted == math.ceil(4 * math.log(20)) + 2
    for counts in [*PEOPLE, (1,) * 60 + (9,) * 40, (3,) * wanted]:
        held = [min(count, most) for count in counts]
        for place, value in enumerate(GRID):
            above = sum(count > value for count in held)
            or_at = sum(count > (GRID[place - 1] if place else 0) for count in held)
            miss = min(choice.clamp, max(0, above - wanted, wanted - or_at))
            assert misses(choice, counts)[place] == miss + math.floor(8 * math.log(value))


@pytest.mark.parametrize("replaces", [False, True])
def test_what_comes_out_has_the_ratio_that_is_charged(desk: OpenDesk, replaces: bool) -> None:
    session, epsilon = desk().session, Fraction(1)
    original = choice_of(session, epsilon)
    worst = Fraction(0)
    for offset in (original.offset, -2, -1):  # the wanted number itself is public, whatever it is
        choice = replace(original, offset=offset)
        laws = {counts: _law(choice, counts) for counts in PEOPLE}
        for counts in PEOPLE:
            for fewer in (counts[:i] + counts[i + 1 :] for i in range(len(counts))):
                others = [tuple(sorted((*fewer, new))) for new in (1, 2, 9, 20_000)] if replaces else [fewer]
                for other in others:
                    worst = max(
                        worst, *(abs(math.log(a / b)) for a, b in zip(laws[counts], laws[other], strict=True))
                    )  # type: ignore[assignment]
    assert 0.5 < worst <= float(epsilon) + 1e-9


def _law(choice: RankChoice, counts: tuple[int, ...]) -> list[float]:
    weights = [math.exp(-float(choice.gamma) * miss) for miss in misses(choice, counts)]
    return [weight / math.fsum(weights) for weight in weights]


# --- the claim, on real engines ---------------------------------------------------------------------------


RUNGS = (6, 30)


def plans(desk: Desk, rungs: tuple[int, ...] = RUNGS) -> tuple[ReleasePlan, ReleasePlan]:
    """Return the choice, and the numbers of people between rungs; each at epsilon 1."""
    policy, catalog = desk.session.dataset.under_people("visit")
    counts = people_between(policy, catalog, "visit", rungs, None, Fraction(1))
    return bounds._choice(desk.session, wish(), Fraction(1)), counts


def exact(desk: Desk, database: Database, *releases: ReleasePlan) -> list[Any]:
    """Return the first exact numbers of each release over a database."""
    desk.settle(database)
    with desk.session.dataset.backend.snapshot() as snapshot:
        return [measure_release(release, snapshot)[0] for release in releases]


def worst(desk: Desk, *, replaces: bool) -> tuple[int, int]:
    """Return the most by which one person moves a score, and all numbers of people together."""
    choice, counts = plans(desk)
    scores, numbers = [0], [0]
    for database in (HEAVY, ORDINARY, crowd((1, 5, 6, 7, 8, 29, 31, 200))):
        units = {unit for unit, _ in database.visits if unit is not None}
        score, people = exact(desk, database, choice, counts)
        for unit in units:
            others = (
                [replaced(database, unit, crowd(tuple([0] * 9 + [count]))) for count in (1, 7, 30, 99)]
                if replaces
                else [without(database, unit)]
            )
            for other in others:
                other_score, other_people = exact(desk, other, choice, counts)
                scores.append(moved(score[()], other_score[()]))
                numbers.append(difference(people, other_people))
    return max(scores), max(numbers)


def difference(one: dict[Any, Any], other: dict[Any, Any]) -> int:
    """Return by how much numbers differ, over all parts."""
    empty = [0, 0]
    pairs = (zip(one.get(key, empty), other.get(key, empty), strict=True) for key in {*one, *other})
    return sum(abs(a - b) for pair in pairs for a, b in pair)


UNIT = 24
"""What a person weighs between rungs of 6 and 30."""


def test_one_person_moves_a_score_by_one_and_the_numbers_by_one_person(at_engine: dict[str, Desk]) -> None:
    desk = at_engine["add"]
    assert worst(desk, replaces=False) == (1, UNIT)
    assert [release.measurements[0].sensitivity for release in plans(desk)] == [1, UNIT]


@pytest.mark.parametrize("promise", ["add", "replace"])
def test_one_person_moves_the_numbers_of_groups_by_one_person(
    at_engine: dict[str, Desk], promise: str
) -> None:
    """Counted by the values of a column, NULL one of them: replaced, by two."""
    desk, most = at_engine[promise], UNIT if promise == "add" else 2 * UNIT
    policy, catalog = desk.session.dataset.under_people("visit", "city")
    counts = people_between(policy, catalog, "visit", RUNGS, "city", Fraction(1))
    assert counts.measurements[0].sensitivity == most
    found = [0]
    for database in (HEAVY, WIDE):
        (people,) = exact(desk, database, counts)
        for unit in {unit for unit, _ in database.visits if unit is not None}:
            other = replaced(database, unit, HEAVY) if promise == "replace" else without(database, unit)
            found.append(difference(people, *exact(desk, other, counts)))
    assert 0 < max(found) <= most


def test_a_person_replaced_moves_the_numbers_by_two(at_engine: dict[str, Desk]) -> None:
    desk = at_engine["replace"]
    assert worst(desk, replaces=True) == (1, 2 * UNIT)
    assert [release.measurements[0].sensitivity for release in plans(desk)] == [1, 2 * UNIT]


def test_of_three_together_it_is_three_times_as_much(at_engine: dict[str, Desk]) -> None:
    choice, counts = plans(at_engine["three"])
    assert (choice.measurements[0].sensitivity, counts.measurements[0].sensitivity) == (3, 3 * UNIT)
    assert counts.measures[0].law == Laplace(Fraction(3 * UNIT))
    assert choice.choices[0].gamma == Fraction(1, 6)
    assert choice.choices[0].offset == -(math.ceil(6 * math.log(20)) + math.ceil(3 * math.sqrt(2)))


def test_a_person_who_stands_for_several(at_engine: dict[str, Desk], monkeypatch: Patch) -> None:
    changed = rewrite(
        monkeypatch, lambda sql: sql.replace('GROUP BY "person_id"', 'GROUP BY "person_id", "city"')
    )
    score, numbers = worst(at_engine["add"], replaces=False)
    assert score > 1 or numbers > UNIT
    assert changed


@pytest.mark.parametrize("factor", [2, 10])
def test_a_hasty_choice(desk: OpenDesk, monkeypatch: Patch, factor: int) -> None:
    original = ranks.ClipMeasurement.choice
    monkeypatch.setattr(
        ranks.ClipMeasurement,
        "choice",
        lambda self, epsilon: replace(original(self, epsilon), gamma=factor * original(self, epsilon).gamma),
    )
    with pytest.raises(AssertionError):
        test_what_comes_out_has_the_ratio_that_is_charged(desk, False)


def test_a_smaller_sensitivity(at_engine: dict[str, Desk], monkeypatch: Patch) -> None:
    """Two numbers as if they were one, where what goes stands in the one and what comes in the other."""
    monkeypatch.setattr(Measurement, "of_one", property(lambda self: self.added))
    with pytest.raises(AssertionError):
        test_a_person_replaced_moves_the_numbers_by_two(at_engine)


def test_which_people_are_wanted_is_part_of_what_is_stored(desk: OpenDesk, monkeypatch: Patch) -> None:
    opened = desk()
    opened.settle(ORDINARY)

    def charged(for_epsilon: str) -> int:
        return found(opened.session, replace(wish(), for_epsilon=Fraction(for_epsilon))).spent.epsilon_nano

    assert charged("1") > 0
    assert charged("1") == 0
    assert charged("0.1") > 0
    opened.session.dataset.store.advance_epoch()
    monkeypatch.setattr(ReleasePlan, "salted", lambda self, extra: self.identity)
    assert (charged("0.5") > 0, charged("0.01")) == (True, 0), "one question answers another"


# --- charge first -----------------------------------------------------------------------------------------


def watched(desk: OpenDesk, fault: type[Exception] | None = None) -> tuple[Session, Watched]:
    opened = desk()
    opened.settle(HEAVY)
    box: list[Session] = []
    seen = Watched(DuckDBBackend.over(opened.connection), box, fault)
    box.append(Session(Dataset(opened.policy, seen, opened.session.dataset.store), "owner test"))
    return box[0], seen


def test_it_charges_before_it_reads(desk: OpenDesk) -> None:
    session, seen = watched(desk)
    columns = (("x", None), ("n", None))
    measured = found(session, wish(Fraction(6, 5), columns=columns))
    whole, early = 1_200_000_000, 600_000_000
    assert session.dataset.store.spent().epsilon_nano == whole == measured.spent.epsilon_nano
    assert set(seen.spent_at) == {early, whole}
    assert [entry.analyst for entry in session.dataset.store.log(9)] == ["owner test"] * len(
        session.dataset.store.log(9)
    )
    free = found(session, wish(Fraction(6, 5), columns=columns))
    assert free.spent.epsilon_nano == 0
    assert (free.suggested, free.left_out, free.columns) == (
        measured.suggested,
        measured.left_out,
        measured.columns,
    )
    assert free.paid == measured.paid


def test_what_fails_stays_spent(desk: OpenDesk) -> None:
    session, _ = watched(desk, EngineFailure)
    with pytest.raises(EngineFailure):
        found(session, wish())
    assert session.dataset.store.spent().epsilon_nano == 250_000_000


def test_a_budget_that_does_not_hold_all_is_not_touched(
    desk: OpenDesk, tmp_path: Path, monkeypatch: Patch
) -> None:
    policy = policy_of(tmp_path)
    small = replace(policy, privacy=replace(policy.privacy, epsilon=Fraction(3, 4)))
    session = desk(policy=small).session
    with pytest.raises(BudgetExhausted):
        found(session, wish())
    assert session.dataset.store.spent().epsilon_nano == 0
    monkeypatch.setattr(bounds, "refuse_over_cap", lambda *args: None)
    with pytest.raises(BudgetExhausted):
        found(session, wish())
    assert session.dataset.store.spent().epsilon_nano == 250_000_000, "a part of an answer"


def test_nothing_is_spent_where_a_person_has_one_row(desk: OpenDesk) -> None:
    opened = desk()
    assert isinstance(measure(opened.session, replace(wish(), table="person"), ""), str)
    assert opened.session.dataset.store.spent().epsilon_nano == 0


_KILLED = """
import os, sys
from fractions import Fraction
from pathlib import Path
from dpsql.backends import duckdb_backend
from dpsql.engine.bounds import Wish, measure
from dpsql.engine.session import Session
reads = []
original = duckdb_backend.DuckDBSnapshot.run
def run(self, sql, parameters=(), **how):
    reads.append(sql)
    if len(reads) == int(sys.argv[2]):
        os._exit(9)
    return original(self, sql, parameters, **how)
duckdb_backend.DuckDBSnapshot.run = run
with Session.open(Path(sys.argv[1])) as session:
    measure(session, Wish("visit", Fraction(1), Fraction(1)), "dpsql bounds visit")
"""


@pytest.mark.parametrize(("reads", "spent", "stored"), [(1, 250_000_000, 0), (2, 10**9, 1)])
def test_killed_between_charge_and_read(tmp_path: Path, reads: int, spent: int, stored: int) -> None:
    with duckdb.connect(str(tmp_path / "laws.duckdb")) as connection:
        connection.execute(SCHEMA)
        load(connection, HEAVY)
    path = tmp_path / "laws.toml"
    path.write_text(policy_text(), "utf-8")
    policy: Policy = load_policy(path)
    open_ledger(policy, create=True).close()
    done = subprocess.run([sys.executable, "-c", _KILLED, str(path), str(reads)], check=False)
    assert done.returncode == 9
    store = open_ledger(policy, create=False)
    try:
        assert store.spent().epsilon_nano == spent
        assert sum(entry.state.value == "committed" for entry in store.log(10)) == stored
    finally:
        store.close()

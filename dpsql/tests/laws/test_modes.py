"""MODE on real engines: what values weigh, the joint claim, the exact law of what comes out, known faults (1.21)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpsql.mechanisms import FlipChoice
from dpsql.mechanisms.choice import first_bytes_of
from dpsql.plan.measures import ranks
from dpsql.plan.measures.ranks import ModeMeasurement
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.mechanisms.test_permute_and_flip import law_of
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, load

from .conftest import OpenDesk
from .examples import HEAVY, ORDINARY, WIDE, person, visit
from .measured import World, measure_release, world
from .test_mutations import holds
from .test_ranks import _cells, crowd
from .watching import order_of

Patch = pytest.MonkeyPatch
CALL = "SELECT MODE() WITHIN GROUP (ORDER BY {}) AS m FROM visit"


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("add"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("replace"), replace_one=True, server=engine) as made:
        yield made


def test_known_values_weigh_what_their_rows_do(adding: World) -> None:
    """People of many rows weigh as much as R rows; other values and NULL weigh nothing, and do not count in t."""
    database, names = crowd(8), list(_cells())
    adding.settle(load, database)
    for column in ("city", "n"):
        (release,) = adding.plan(CALL.format(column)).releases
        (measurement,) = release.measurements
        assert isinstance(measurement, ModeMeasurement)
        values = [str(value) for value in measurement.candidates]
        rows = [
            (unit, cells[names.index(column)])
            for unit, cells in database.visits
            if unit is not None and cells[names.index(column)] in values
        ]
        sizes: defaultdict[int, int] = defaultdict(int)
        for unit, _ in rows:
            sizes[unit] += 1
        most, expected = measurement.bounding.in_all, defaultdict[int, int](int)
        for unit, cell in rows:
            expected[values.index(str(cell))] += most * 1024 // max(most, sizes[unit])
        with adding.backend.snapshot() as snapshot:
            (found,) = measure_release(release, snapshot).values()
        assert dict(found[()]) == expected


CALLS = (
    CALL.format("city"),
    CALL.format("flag"),
    CALL.format("day"),
    "SELECT city, MODE() WITHIN GROUP (ORDER BY n) FROM visit GROUP BY city",
    "SELECT tag, MODE() WITHIN GROUP (ORDER BY city) FILTER (WHERE flag), COUNT(*) FROM visit GROUP BY tag",
    "SELECT city, MODE() WITHIN GROUP (ORDER BY n) FROM visit GROUP BY ROLLUP (city)",
    "SELECT MODE() WITHIN GROUP (ORDER BY age) FROM person",
)


@pytest.mark.parametrize(
    "database",
    [HEAVY, WIDE, pytest.param(ORDINARY, marks=pytest.mark.long)],
    ids=["heavy", "wide", "ordinary"],
)
@pytest.mark.parametrize("sql", CALLS)
def test_one_unit_moves_weights_by_the_claim_at_most(
    adding: World, replacing: World, sql: str, database: Database
) -> None:
    holds(adding, sql, database)
    holds(replacing, sql, database)


@pytest.mark.parametrize(
    "mutant", [lambda self: self.bounding.in_all, lambda self: self.unit], ids=["forget U", "forget R"]
)
def test_a_smaller_sensitivity(adding: World, monkeypatch: Patch, mutant: Callable[[Any], int]) -> None:
    monkeypatch.setattr(ModeMeasurement, "added", property(mutant))
    with pytest.raises(AssertionError):
        holds(adding, CALLS[0], HEAVY)


def _ratio(here: World, sql: str, databases: tuple[Database, Database]) -> float:
    """Return the worst log-ratio of what comes out, in the exact law that the plan draws from."""
    (release,) = here.plan(sql).releases
    choice, laws = release.choices[0], []
    assert isinstance(choice, FlipChoice)
    for database in databases:
        here.settle(load, database)
        with here.backend.snapshot() as snapshot:
            weights = dict(measure_release(release, snapshot)[0][()])
        scores = [weights.get(place, 0) for place in range(choice.candidates)]
        laws.append(law_of(scores, choice.gamma))
    return max(abs(math.log(p / q)) for p, q in zip(*laws, strict=True))


def test_what_comes_out_has_the_ratio_that_is_charged(
    adding: World, replacing: World, monkeypatch: Patch
) -> None:
    """One person more at a value, and one who moves from a value to another."""
    rest = tuple(person(unit, team=team) for unit, team in enumerate(("red", "blue"), 2))
    more = (Database((*rest, person(1, team="red")), ()), Database(rest, ()))
    moves = (Database((*rest, person(1, team="red")), ()), Database((*rest, person(1, team="blue")), ()))
    sql = "SELECT MODE() WITHIN GROUP (ORDER BY team) FROM person"
    assert 0.3 < _ratio(adding, sql, more) <= 1
    assert 0.2 < _ratio(replacing, sql, moves) <= 1
    original = ranks.FlipChoice
    monkeypatch.setattr(ranks, "FlipChoice", lambda count, gamma: original(count, 4 * gamma))
    assert _ratio(adding, sql, more) > 1
    assert _ratio(replacing, sql, moves) > 1


@pytest.mark.parametrize("column", ["city", "n", "flag", "day"])
def test_without_noise_it_is_the_most_frequent_value(desk: OpenDesk, column: str) -> None:
    opened = desk(ZeroNoise())
    opened.settle(Database((), tuple(visit(unit, city="ab"[unit % 3 == 0], n="5" if unit % 4 else "1",
                                           flag="true" if unit % 3 else "false",
                                           day="2020-01-07" if unit % 3 else "2020-01-02") for unit in range(40))))  # fmt: skip
    ((found,),) = opened.session.execute(CALL.format(column)).rows
    ((mine,),) = opened.connection.execute(
        f"SELECT {column} FROM visit GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1"
    ).fetchall()
    assert found == mine


def test_the_bits_of_declared_groups_are_drawn_before_the_engine_is_asked(
    desk: OpenDesk, monkeypatch: Patch
) -> None:
    assert order_of(
        desk, monkeypatch, "SELECT city, MODE() WITHIN GROUP (ORDER BY flag) FROM visit GROUP BY city"
    ) == [f"bits {4 * first_bytes_of(2)}", "rows"]


def test_too_many_candidates_for_too_many_groups_are_refused(adding: World, monkeypatch: Patch) -> None:
    from dpsql.errors import Refusal
    from dpsql.plan import planner

    adding.plan(CALLS[3])
    monkeypatch.setattr(planner, "MAX_SCORED", 20)
    with pytest.raises(Refusal, match="mode of 11 values in 4 groups"):
        adding.plan(CALLS[3])

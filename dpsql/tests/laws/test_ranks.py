"""Choices by rank on real engines: the printed window against all rows, the joint claim, known ways to be wrong (1.20)."""

from __future__ import annotations

import datetime
import math
import random
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from dpsql.engine.audit.audit import moved, steps_of
from dpsql.mechanisms import RankChoice, Window
from dpsql.plan.backend_sql import print_sums
from dpsql.plan.measures import ranks
from dpsql.plan.measures.ranks import RankMeasurement
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import parse_policy
from dpsql.relation.intervals import LogLattice
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, load, policy_of, policy_text

from .conftest import OpenDesk
from .examples import HEAVY, NOBODY, ORDINARY, WIDE, person, visit
from .measured import World, measure_release, world
from .planting import plant
from .test_mutations import holds
from .test_neighbours import neighbours_of
from .watching import order_of

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def sharp(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    """A world at epsilon 10: T is a few rows, so that windows leave rows out."""
    folder = tmp_path_factory.mktemp("sharp")
    with world(folder, policy=policy_of(folder, epsilon="10"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    """A sharp world whose numbers have a log scale."""
    folder = tmp_path_factory.mktemp("logged")
    text = policy_text(epsilon="10")
    for column in LOG_COLUMNS:
        text = re.sub(rf"(?m)^({column} = .*) }}$", r'\1, scale = "log" }', text)
    assert text.count('scale = "log"') == len(LOG_COLUMNS)
    with world(folder, policy=parse_policy(text, folder / "laws.toml"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("add"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("replace"), replace_one=True, server=engine) as made:
        yield made


# --- the window against all rows ------------------------------------------------------------------------

_DAY = datetime.date(1970, 1, 1)
_MOMENT = datetime.datetime(1970, 1, 1)


def crowd(seed: int) -> Database:
    """Two hundred people with no, some or very many visits, all over and beyond the declared bounds."""
    drawn = random.Random(seed)
    visits = []
    for unit in range(200):
        for _ in range(drawn.choice((0, 1, 1, 3, 6, 7, 25))):
            day = datetime.date(2019, 10, 1) + datetime.timedelta(days=drawn.randrange(600))
            seen = datetime.datetime(2019, 12, 1) + datetime.timedelta(
                microseconds=drawn.randrange(15 * 10**12)
            )
            visits.append(
                visit(
                    unit,
                    n=drawn.choice((None, *map(str, range(-5, 10)))),
                    d=drawn.choice((None, f"{drawn.randrange(-100, 700) / 100:.2f}")),
                    x=drawn.choice((None, "NaN", "inf", "-inf", repr(drawn.uniform(-2, 5)))),
                    big=str(drawn.randrange(2**61)), day=drawn.choice((None, "infinity", day.isoformat())),
                    seen=drawn.choice((None, "-infinity", seen.isoformat(sep=" "))),
                    city=drawn.choice(("a", "b", "elsewhere", None)), flag=drawn.choice(("true", "false", None)),
                )
            )  # fmt: skip
    people = tuple(person(unit, age=str(drawn.randrange(130))) for unit in range(200))
    return Database(people, tuple(visits))


def place_of(measurement: RankMeasurement, choice: RankChoice, cell: str | None) -> int | None:
    """Return the candidate that a value counts as, by the lattice's definition."""
    lattice = measurement.known_lattice
    if cell is None or cell == "NaN":
        return None
    if cell.endswith(("inf", "infinity")):
        z = lattice.low if cell.startswith("-") else lattice.high
    elif cell.count("-") >= 2 and ":" not in cell:
        z = (datetime.date.fromisoformat(cell) - _DAY).days
    elif ":" in cell:
        z = (datetime.datetime.fromisoformat(cell) - _MOMENT) // datetime.timedelta(microseconds=1)
    elif lattice.exact:
        z = int(Fraction(cell) / lattice.step)
    else:
        z = round(min(max(float(cell), float(lattice.lo)), float(lattice.hi)) * float(1 / lattice.step))
    z = min(max(z, lattice.low), lattice.high)
    if isinstance(lattice, LogLattice):
        grid = grid_of(lattice.low, lattice.high)
        return bisect_left(grid, z) if z >= 0 else bisect_right(grid, z) - 1
    return (z - lattice.low) >> choice.shift


@cache
def grid_of(low: int, high: int) -> list[int]:
    """Return the candidates of a log scale by their definition: at most eleven leading bits, and the ends for those
    beyond."""
    sizes = {0, *(m << e for e in range(max(abs(low), abs(high)).bit_length()) for m in range(1, 2**11 + 1))}
    grid = sorted({*sizes, *(-size for size in sizes)})
    first = bisect_right(grid, low) - 1 if low < 0 else bisect_left(grid, low)
    last = bisect_left(grid, high) if high >= 0 else bisect_right(grid, high) - 1
    return [max(low, min(high, one)) for one in grid[first : last + 1]]


def whole(release: ReleasePlan, rows: list[tuple[int, tuple[Any, ...], str | None]]) -> dict[Any, Any]:
    """Return the misses of all candidates by group, from all rows (unit, key, cell) and by the definition."""
    (measurement,) = release.measurements
    assert isinstance(measurement, RankMeasurement)
    choice = release.choices[0]
    held = [
        (unit, key, place)
        for unit, key, cell in rows
        if (place := place_of(measurement, choice, cell)) is not None
    ]
    sizes: defaultdict[int, int] = defaultdict(int)
    for unit, _, _ in held:
        sizes[unit] += 1
    most = measurement.bounding.in_all
    weights: defaultdict[Any, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for unit, key, place in held:
        weights[key][place] += most * measurement.unit // max(most, sizes[unit])
    found = {}
    for key, histogram in weights.items():
        window, below = Window([], [], [], sum(histogram.values())), 0
        for place, weight in sorted(histogram.items()):
            window.candidates.append(place)
            window.less.append(below)
            window.weights.append(weight)
            below += weight
        found[key] = steps_of(choice, window)
    return found


def _is_of_all_rows(here: World, database: Database, column: str, call: str) -> None:
    here.settle(load, database)
    names = list(_cells())
    for key in (None, "city"):
        sql = f"SELECT {key + ', ' if key else ''}{call.format(column)} FROM visit{' GROUP BY 1' if key else ''}"
        (release,) = here.plan(sql).releases
        rows = [
            (unit, (cells[names.index(key)],) if key else (), cells[names.index(column)])
            for unit, cells in database.visits
            if unit is not None
        ]
        expected = {group: steps for group, steps in whole(release, rows).items() if group != ("elsewhere",)}
        with here.backend.snapshot() as snapshot:
            (found,) = measure_release(release, snapshot).values()
        assert {group for group in found if group in expected} == set(expected)
        assert all(_same(found[group], steps) for group, steps in expected.items())


def _same(left: Any, right: Any) -> bool:
    return moved(left, right) == 0


COLUMNS = ("n", "d", "x", "big", "day", "seen")
LOG_COLUMNS = ("x", "big", "d")


def _in_turn(columns: tuple[str, ...], calls: tuple[str, ...]) -> list[object]:
    """Return all pairs, every other one under `long`: each column and each call is in some that are not."""
    return [
        pytest.param(column, call, marks=() if (i + j) % 2 == 0 else pytest.mark.long)
        for i, column in enumerate(columns)
        for j, call in enumerate(calls)
    ]


@pytest.mark.parametrize(
    ("column", "call"),
    _in_turn(
        COLUMNS, ("MEDIAN({})", "MIN({})", "MAX({})", "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY {} DESC)")
    ),
)
def test_the_window_is_that_of_all_rows(sharp: World, column: str, call: str) -> None:
    _is_of_all_rows(sharp, crowd(COLUMNS.index(column)), column, call)


@pytest.mark.parametrize(
    ("column", "call"),
    _in_turn(LOG_COLUMNS, ("MEDIAN({})", "MIN({})", "PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY {})")),
)
def test_so_it_is_on_a_log_scale(logged: World, column: str, call: str) -> None:
    _is_of_all_rows(logged, crowd(LOG_COLUMNS.index(column)), column, call)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("up = 2**shift - 1", "up = 2**shift"),
        ("rungs = LOG_PARTS << shift, LOG_PARTS << (shift + 1), shift * LOG_PARTS",
         "rungs = LOG_PARTS << shift, LOG_PARTS << (shift + 1), shift * LOG_PARTS // 2"),
        ("f\"{sign}({rungs}", "f\"({rungs}"),
        ("BETWEEN {max(first, lattice.low)}", "BETWEEN {max(first, lattice.low) + 1}"),
    ],
    ids=["a rung too far", "half of the rungs", "the same rung below zero", "the least value is none"],
)  # fmt: skip
def test_plant_in_the_log_scale(logged: World, monkeypatch: Patch, old: str, new: str) -> None:
    plant(monkeypatch, print_sums.print_candidate, (old, new))
    with pytest.raises(AssertionError):
        _is_of_all_rows(logged, crowd(0), "x", "MEDIAN({})")


@pytest.mark.parametrize("database", [HEAVY, WIDE, ORDINARY], ids=["heavy", "wide", "ordinary"])
def test_one_unit_moves_scores_on_a_log_scale_by_the_claim_at_most(logged: World, database: Database) -> None:
    holds(logged, "SELECT MEDIAN(x) FROM visit", database)
    holds(
        logged,
        "SELECT city, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY big) FROM visit GROUP BY city",
        database,
    )


def _cells() -> tuple[str, ...]:
    from dpsql.tests.support.random_databases import VISIT

    return tuple(VISIT.cells)


def test_a_window_leaves_most_rows_out(sharp: World) -> None:
    """What is read of many rows is what T allows, in one pass over few candidates and in two over many."""
    sharp.settle(load, crowd(7))
    for column in ("n", "x"):
        (release,) = sharp.plan(f"SELECT MEDIAN({column}) FROM visit WHERE {column} IS NOT NULL").releases
        choice, (query,) = release.choices[0], release.queries((0,))
        assert ("JOIN s" in query.sql) == (column == "x")
        with sharp.backend.snapshot() as snapshot:
            rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
        assert 0 < len(rows) <= 2 * choice.clamp // choice.q + 2
        assert all(
            choice.q * (less + w) - n > -choice.clamp and choice.q * less - n < choice.clamp
            for _, less, w, n in rows
        )
        assert sum(w for *_, w, _ in rows) < rows[0][3]


def test_filters_and_row_level(sharp: World) -> None:
    database = crowd(9)
    sharp.settle(load, database)
    names = _cells()
    for truth in ("true", "false"):
        word = "flag" if truth == "true" else "NOT flag"
        (release,) = sharp.plan(f"SELECT MEDIAN(n) FILTER (WHERE {word}) FROM visit").releases
        rows = [
            (unit, (), cells[names.index("n")])
            for unit, cells in database.visits
            if cells[names.index("flag")] == truth and unit is not None
        ]
        with sharp.backend.snapshot() as snapshot:
            (found,) = measure_release(release, snapshot).values()
        assert _same(found[()], whole(release, rows)[()])
    (release,) = sharp.plan("SELECT MEDIAN(age) FROM person").releases
    with sharp.backend.snapshot() as snapshot:
        (found,) = measure_release(release, snapshot).values()
    ages = [(unit, (), cells[0]) for unit, cells in database.persons]
    assert _same(found[()], whole(release, ages)[()])
    assert "heavy" not in release.queries((0,))[0].sql


# --- the claim ------------------------------------------------------------------------------------------

CALLS = (
    "SELECT MEDIAN(n) FROM visit",
    "SELECT city, MEDIAN(n) FROM visit GROUP BY city",
    "SELECT city, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY d), MIN(n) FROM visit GROUP BY city",
    "SELECT flag, city, MAX(x) FILTER (WHERE n > 0) FROM visit GROUP BY flag, city",
    "SELECT tag, MEDIAN(n), COUNT(*) FROM visit GROUP BY tag",
    "SELECT city, MEDIAN(n) FROM visit GROUP BY ROLLUP (city)",
    "SELECT team, MEDIAN(height) FROM person GROUP BY team",
)


@pytest.mark.parametrize(
    "database",
    [HEAVY, WIDE, pytest.param(ORDINARY, marks=pytest.mark.long)],
    ids=["heavy", "wide", "ordinary"],
)
@pytest.mark.parametrize("sql", CALLS)
def test_one_unit_moves_scores_by_the_claim_at_most(
    adding: World, replacing: World, sql: str, database: Database
) -> None:
    holds(adding, sql, database)
    holds(replacing, sql, database)


def test_the_claim_is_nearly_reached(adding: World) -> None:
    """A unit of R rows at one end moves a score by all that is claimed."""
    rest = tuple(visit(unit, n="7") for unit in range(2, 9))
    database = Database((), (*rest, *(visit(1, n="-3") for _ in range(6))))
    (release,) = adding.plan("SELECT MEDIAN(n) FROM visit").releases
    found = []
    for world_now in (database, Database((), rest)):
        adding.settle(load, world_now)
        with adding.backend.snapshot() as snapshot:
            found.append(measure_release(release, snapshot)[0][()])
    assert moved(*found) == release.measurements[0].sensitivity == 6 * 1024


# --- known ways to be wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mutant", "sql"),
    [
        (lambda self: self.bounding.in_all * self.unit, "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY n) FROM visit"),
        (lambda self: self.unit * max(self.share.numerator, 1), "SELECT MEDIAN(n) FROM visit"),
        (lambda self: self.bounding.in_all * max(self.share.numerator, 1), "SELECT MEDIAN(n) FROM visit"),
    ],
    ids=["forget q", "forget R", "forget U"],
)  # fmt: skip
def test_a_smaller_sensitivity(
    adding: World, monkeypatch: Patch, mutant: Callable[[Any], int], sql: str
) -> None:
    monkeypatch.setattr(RankMeasurement, "added", property(mutant))
    with pytest.raises(AssertionError):
        holds(adding, sql, HEAVY)


def test_replaced_groups_as_if_there_were_one(replacing: World, monkeypatch: Patch) -> None:
    """What goes stands in one group, what comes in another: twice what an addition moves, not q."""
    stands = Database((), tuple(visit(1, city="a", n="7") for _ in range(6)))
    comes = Database((), tuple(visit(1, city="b", n="7") for _ in range(6)))
    sql = "SELECT city, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY n) FROM visit GROUP BY city"
    assert _worst(replacing, sql, stands, comes) <= 1
    original = RankMeasurement.sensitivity.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        RankMeasurement,
        "sensitivity",
        property(lambda self: self.replaced_alone if self.bounding.grouped else original(self)),
    )
    assert _worst(replacing, sql, stands, comes) > 1


def _worst(here: World, sql: str, one: Database, other: Database) -> Fraction:
    """Return Σ over groups of the most that a score moves, over the claim."""
    (release,) = here.plan(sql).releases
    found = []
    for database in (one, other):
        here.settle(load, database)
        with here.backend.snapshot() as snapshot:
            found.append(measure_release(release, snapshot)[0])
    change = sum(moved(found[0][key], found[1][key]) for key in found[0])
    return Fraction(change, release.measurements[0].sensitivity)


def _ratio(here: World, sql: str, databases: tuple[Database, Database]) -> float:
    """Return the worst log-ratio of what comes out, in the exact law that the plan draws from."""
    (release,) = here.plan(sql).releases
    choice, laws = release.choices[0], []
    for database in databases:
        here.settle(load, database)
        with here.backend.snapshot() as snapshot:
            steps = measure_release(release, snapshot)[0][()]
        misses = [
            miss
            for start, (end, miss) in zip([0, *(e for e, _ in steps)], steps, strict=False)
            for _ in range(end - start)
        ]
        weights = [math.exp(-float(choice.gamma) * miss) for miss in misses]
        laws.append([weight / math.fsum(weights) for weight in weights])
    return max(abs(math.log(p / q)) for p, q in zip(*laws, strict=True))


def test_what_comes_out_has_the_ratio_that_is_charged(adding: World, monkeypatch: Patch) -> None:
    rest = tuple(person(unit, age=age) for unit, age in enumerate(("10", "10", "10", "90", "90"), 2))
    pair = (Database((*rest, person(1, age="0")), ()), Database(rest, ()))
    sql = "SELECT MEDIAN(age) FROM person"
    assert 0.5 < _ratio(adding, sql, pair) <= 1
    (release,) = adding.plan(sql).releases
    assert release.choices[0].gamma == Fraction(1, 2)
    ranks._choice.cache_clear()
    original = ranks.RankChoice

    def hasty(*args: Any) -> RankChoice:
        return original(*args[:-1], 2 * args[-1])

    monkeypatch.setattr(ranks, "RankChoice", hasty)
    try:
        assert _ratio(adding, sql, pair) > 1
    finally:
        monkeypatch.undo()
        ranks._choice.cache_clear()


# --- what leaves ----------------------------------------------------------------------------------------


def test_without_noise_a_percentile_is_the_engine_s(desk: OpenDesk) -> None:
    opened = desk(ZeroNoise())
    opened.settle(crowd(3))
    for share in ("0.1", "0.25", "0.5", "0.9"):
        sql = "SELECT PERCENTILE_DISC({}) WITHIN GROUP (ORDER BY age) FROM person"
        ((mine,),) = opened.session.execute(sql.format(share)).rows
        ((theirs,),) = opened.connection.execute(
            f"SELECT quantile_disc(least(age, 120), {share}) FROM person"
        ).fetchall()
        assert mine == theirs, share


def test_the_bits_of_declared_groups_are_drawn_before_the_engine_is_asked(
    desk: OpenDesk, monkeypatch: Patch
) -> None:
    assert order_of(desk, monkeypatch, "SELECT city, MEDIAN(n) FROM visit GROUP BY city") == [
        f"bits {4 * 16}",
        "rows",
    ]


def test_only_the_chosen_values_are_stored(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(ORDINARY)
    sql = "SELECT MEDIAN(n), MAX(day) FROM visit"
    answer = opened.session.execute(sql)
    assert answer.rows == opened.session.execute(sql).rows
    with opened.session.dataset.store._ledger.read() as db:  # type: ignore[attr-defined]
        payloads = [bytes(row[0]) for row in db.execute("SELECT payload FROM draw").fetchall()]
        laws = [row[0] for row in db.execute("SELECT scale FROM draw").fetchall()]
    assert len(payloads) == 2
    assert all(law.startswith("rank ") for law in laws)
    for payload in payloads:
        assert payload[: payload.index(b"}") + 1].count(b"[") == 2
    entries = opened.session.dataset.store.log(10)
    assert {entry.note for entry in entries} == {
        "visit: rank of an expression, sensitivity 3, scale 6",
        "visit: rank of an expression, sensitivity 6, scale 12",
    }


def test_a_finer_choice_serves_and_a_coarser_one_does_not(desk: OpenDesk) -> None:
    opened = desk()
    opened.settle(ORDINARY)
    sql = "SELECT MEDIAN(n) FROM visit"
    opened.session.execute(sql)
    spent = opened.session.dataset.store.spent().epsilon_nano
    opened.session.execute("SET dpsql.epsilon = '0.5'")
    opened.session.execute(sql)
    assert opened.session.dataset.store.spent().epsilon_nano == spent
    opened.session.execute("SET dpsql.epsilon = '2'")
    opened.session.execute(sql)
    assert opened.session.dataset.store.spent().epsilon_nano == spent + 2 * 10**9
    opened.session.execute("SELECT PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY n) FROM visit")
    assert opened.session.dataset.store.spent().epsilon_nano == spent + 4 * 10**9


def test_one_person_s_rows_do_not_grow_what_is_read(sharp: World) -> None:
    """A person of very many rows: each weighs next to nothing, and what is read has its public bound."""
    many = 40_000
    sharp.settle(load, ORDINARY)
    sharp.connection.execute(
        f"INSERT INTO visit (person_id, x) SELECT 77, 1 + i / {many}.0 FROM range({many}) AS t(i)"
    )
    sharp.refresh()
    (release,) = sharp.plan("SELECT MEDIAN(x) FROM visit").releases
    (query,) = release.queries((0,))
    with sharp.backend.snapshot() as snapshot:
        rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
    assert len(rows) <= 5
    choice = release.choices[0]
    assert 2 * choice.clamp // choice.q + 2 <= ranks.MAX_READ


@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_candidates_grow_wider_where_more_could_be_read(tmp_path: Any, epsilon: str) -> None:
    folder = tmp_path
    with world(folder, policy=policy_of(folder, epsilon=epsilon)) as made:
        (release,) = made.plan("SELECT MEDIAN(big) FROM visit").releases
        choice = release.choices[0]
        assert min(choice.candidates, 2 * choice.clamp // choice.q + 2) <= ranks.MAX_READ
        assert (choice.shift > 0) == (epsilon == "0.001")
        load(made.connection, NOBODY)
        assert neighbours_of(made, NOBODY, NOBODY) == []

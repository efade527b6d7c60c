"""Several fractions of the same rows on real engines: their weights against all rows, the joint claim, what is asked
again where too little was read, and known ways to be wrong (soundness.md 1.21)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.engine.audit.audit import Weights
from dpsql.mechanisms import RankSplit, SampledNoise
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_release import Part
from dpsql.plan.dialects import Dialect, dialect_of
from dpsql.plan.measures.ranks import SplitMeasurement
from dpsql.plan.release_plan import ReleasePlan
from dpsql.relation.types import BIGINT, TEXT
from dpsql.release import run
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, load

from .conftest import OpenDesk
from .examples import HEAVY, ORDINARY, WIDE, visit
from .measured import World, measure_release, world
from .planting import plant
from .test_mutations import holds
from .test_ranks import _cells, crowd, place_of
from .watching import order_of

Patch = pytest.MonkeyPatch
THREE = (
    "MEDIAN({0}), PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY {0}), "
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY {0} DESC)"
)


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("add"), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("replace"), replace_one=True, server=engine) as made:
        yield made


# --- what is read against all rows ----------------------------------------------------------------------


def bits_of(unit: int) -> int:
    """Return the hash bits of a person, by their definition."""
    return (unit % (2**31 - 1) * 48271 % (2**31 - 1)) & 4095


def weights_of(release: ReleasePlan, rows: list[tuple[int, tuple[Any, ...], str | None]]) -> dict[Any, Any]:
    """Return the weights of all candidates by group, from all rows (unit, key, cell) and by the definition."""
    (measurement,) = release.measurements
    assert isinstance(measurement, SplitMeasurement)
    choice = release.choices[0]
    held = [
        (unit, key, place)
        for unit, key, cell in rows
        if (place := place_of(measurement, choice, cell)) is not None  # type: ignore[arg-type]
    ]
    sizes: defaultdict[int, int] = defaultdict(int)
    for unit, _, _ in held:
        sizes[unit] += 1
    assert isinstance(choice, RankSplit)
    most, bits = measurement.bounding.in_all, choice.hash_bits
    found: defaultdict[Any, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for unit, key, place in held:
        found[key][place << bits | bits_of(unit) & 2**bits - 1] += (
            most * measurement.unit // max(most, sizes[unit])
        )
    return {key: Weights(sorted(weights.items())) for key, weights in found.items()}


@pytest.mark.parametrize("column", ["n", "d", "x", "big", "day", "seen"])
def test_what_is_read_is_what_all_rows_weigh(adding: World, column: str) -> None:
    database, names = crowd(3), list(_cells())
    adding.settle(load, database)
    for key in (None, "city"):
        sql = f"SELECT {key + ', ' if key else ''}{THREE.format(column)} FROM visit{' GROUP BY 1' if key else ''}"
        (release,) = adding.plan(sql).releases
        rows = [
            (unit, (cells[names.index(key)],) if key else (), cells[names.index(column)])
            for unit, cells in database.visits
            if unit is not None
        ]
        expected = weights_of(release, rows)
        with adding.backend.snapshot() as snapshot:
            (found,) = measure_release(release, snapshot).values()
        assert all(found[group] == weights for group, weights in expected.items() if group in found)
        assert {group for group, weights in found.items() if weights} == expected.keys() - {("elsewhere",)}


@pytest.mark.parametrize("key", [None, "city", "tag"])
def test_a_part_is_read_with_the_weights_of_the_whole(adding: World, key: str | None) -> None:
    _check_parts(adding, key)


def _check_parts(here: World, key: str | None) -> None:
    """What is asked of a part is what all rows weigh there, people of many rows too."""
    here.settle(load, crowd(4))
    sql = f"SELECT {key + ', ' if key else ''}{THREE.format('n')} FROM visit{' GROUP BY 1' if key else ''}"
    (release,) = here.plan(sql).releases
    split = release.choices[0]
    assert isinstance(split, RankSplit)
    with here.backend.snapshot() as snapshot:
        (whole,) = [
            measured for number, measured in measure_release(release, snapshot).items() if number == 0
        ]
        for group, weights in whole.items():
            ends = [split.candidates // 3, split.candidates // 2 + 11]
            for low, high in ((0, ends[0]), (ends[0] + 1, ends[1]), (ends[1] + 1, split.candidates - 1)):
                query = release.part_query(0, Part(group, low, high, split.read))
                rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
                wide = len(release.release.keys)
                assert {row[:wide] for row in rows} <= {group}
                found = sorted((row[wide], row[wide + 2]) for row in rows)
                assert found == [(place, weight) for place, weight in weights if low <= place <= high]
                assert all(row[-1] == sum(weight for _, weight in found) for row in rows)


def test_a_mutant_that_weighs_the_rows_of_a_part_anew(adding: World, monkeypatch: Patch) -> None:
    """A person's rows in a part are fewer than they are in all: each would weigh more there."""
    plant(
        monkeypatch, print_release.ReleasePrinter.window,
        ('self._read_twice("a", rows)',
         'self._read_twice("a", rows if part is None else f"SELECT * FROM ({rows}) AS a WHERE {self._in_part(part)}")'),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        _check_parts(adding, None)


@pytest.mark.parametrize("bits", [1, 12])
def test_the_bits_of_a_person_are_the_same_on_all_engines(adding: World, bits: int) -> None:
    dialect: Dialect = dialect_of(adding.catalog.dialect, adding.catalog.case_collation)
    with adding.backend.snapshot() as snapshot:

        def read(sql: str) -> int:
            ((found,),) = [row for chunk in snapshot.run(f"SELECT {sql} AS h", []) for row in chunk]
            return int(found)

        for unit in (0, 1, 7, 2**31 - 1, 2**40 + 5, 2**62):
            shown = dialect.scattered([(f"CAST({unit} AS BIGINT)", BIGINT)], bits)
            assert read(shown) == bits_of(unit) & 2**bits - 1
        assert (
            0 <= read(dialect.scattered([("CAST(-9223372036854775807 AS BIGINT)", BIGINT)], bits)) < 2**bits
        )
        for name in ("", "ann", "bob"):
            expected = int(hashlib.md5(name.encode()).hexdigest()[:3], 16) & 2**bits - 1
            assert read(dialect.scattered([(f"'{name}'", TEXT)], bits)) == expected
        expected = int(hashlib.md5(b"ann\x1f7").hexdigest()[:3], 16) & 2**bits - 1
        assert read(dialect.scattered([("'ann'", TEXT), ("7", BIGINT)], bits)) == expected


# --- the claim ------------------------------------------------------------------------------------------

CALLS = (
    f"SELECT {THREE.format('n')} FROM visit",
    f"SELECT city, {THREE.format('n')} FROM visit GROUP BY city",
    f"SELECT flag, city, {THREE.format('x')}, MIN(x), COUNT(*) FROM visit GROUP BY flag, city",
    "SELECT MEDIAN(n) FILTER (WHERE flag), PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY n) FILTER (WHERE flag) FROM visit",
    f"SELECT tag, {THREE.format('n')} FROM visit GROUP BY tag",
    f"SELECT city, {THREE.format('n')} FROM visit GROUP BY ROLLUP (city)",
    f"SELECT team, {THREE.format('height')} FROM person GROUP BY team",
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


def test_fractions_of_the_same_rows_are_one_measurement(adding: World) -> None:
    """However often each is asked for; other rows, and MIN and MAX, are measured by themselves."""
    (release,) = adding.plan(
        f"SELECT {THREE.format('n')}, MEDIAN(n), MIN(n), MEDIAN(x), MEDIAN(n) FILTER (WHERE flag) FROM visit"
    ).releases
    assert [measurement.size for measurement in release.measurements] == [3, 1, 1, 1]
    split = release.choices[0]
    assert isinstance(split, RankSplit)
    assert split.shares == (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10))
    measurement, epsilon = release.measurements[0], release.measures[0].epsilon
    assert split.scale == Fraction(measurement.bounding.in_all * 1024 * 2) / epsilon
    assert split.choice(Fraction(1, 2), 9).gamma == epsilon / 2 / (2 * measurement.bounding.in_all * 1024)


@pytest.mark.parametrize(
    "mutant", [lambda self: self.bounding.in_all, lambda self: self.unit], ids=["forget U", "forget R"]
)
def test_a_smaller_sensitivity(adding: World, monkeypatch: Patch, mutant: Callable[[Any], int]) -> None:
    monkeypatch.setattr(SplitMeasurement, "added", property(mutant))
    with pytest.raises(AssertionError):
        holds(adding, CALLS[0], HEAVY)


def test_forget_the_depths(adding: World, monkeypatch: Patch) -> None:
    """Every depth with the whole epsilon: the exact joint law is in tests/mechanisms; here, what a plan hands over."""
    (release,) = adding.plan(CALLS[0]).releases
    loss = _loss_of(release)
    assert loss == release.measures[0].epsilon
    monkeypatch.setattr(SplitMeasurement, "depths", property(lambda self: 1))
    (release,) = adding.plan(CALLS[0]).releases
    assert _loss_of(release) == 2 * release.measures[0].epsilon


def _loss_of(release: ReleasePlan) -> Fraction:
    """Return what the choices that a unit can be in lose: at each depth the largest of them, with all of its weight."""
    split, measurement = release.choices[0], release.measurements[0]
    assert isinstance(split, RankSplit)
    losses: defaultdict[int, Fraction] = defaultdict(Fraction)
    for f, depth in zip(split.between, split.depths, strict=True):
        one = split.choice(f, split.candidates)
        losses[depth] = max(
            losses[depth], 2 * one.gamma * max(one.p, one.q - one.p) * measurement.sensitivity
        )
    return sum(losses.values(), Fraction(0))


# --- in a session ---------------------------------------------------------------------------------------

SESSION = f"SELECT city, {THREE.format('n')} FROM visit GROUP BY city"


def test_what_was_not_read_is_asked_for_and_changes_nothing(desk: OpenDesk, monkeypatch: Patch) -> None:
    """One more query in the same snapshot, of the group that misses it alone, under the same charge."""
    plain, again = desk(ZeroNoise()), desk(ZeroNoise())
    asked: list[str] = []
    original = run.PlanRunner._ask

    def ask(self: Any, exact: Any, plan: Any, query: Any, snapshot: Any, salt: str) -> None:
        asked.append(query.sql)
        original(self, exact, plan, query, snapshot, salt)

    monkeypatch.setattr(run.PlanRunner, "_ask", ask)
    for opened in (plain, again):
        opened.settle(crowd(6))
    expected = plain.session.execute(SESSION)
    assert len(asked) == 1
    asked.clear()
    monkeypatch.setattr(
        RankSplit, "read", property(lambda self: tuple(replace(one, clamp=3000) for one in self.all_read()))
    )
    monkeypatch.setattr(
        RankSplit,
        "all_read",
        lambda self: self.near(0, len(self.shares), Fraction(0), Fraction(1)),
        raising=False,
    )
    found = again.session.execute(SESSION)
    assert found.rows == expected.rows
    assert len(asked) > 1
    assert all("v BETWEEN" in sql for sql in asked[1:])
    assert found.receipt is not None
    assert expected.receipt is not None
    assert found.receipt.epsilon == expected.receipt.epsilon


def test_the_bits_of_all_fractions_are_drawn_before_the_engine_is_asked(
    desk: OpenDesk, monkeypatch: Patch
) -> None:
    assert order_of(desk, monkeypatch, SESSION) == [f"bits {4 * 3 * 16}", "rows"]


def test_each_fraction_has_bits_of_its_own(desk: OpenDesk, monkeypatch: Patch) -> None:
    seen: list[bytes] = []

    class Watched(SampledNoise):
        def choose(self, counts: Any, exponents: Any, gamma: Fraction, first: bytes) -> tuple[int, int]:
            seen.append(first)
            return super().choose(counts, exponents, gamma, first)

    opened = desk(Watched())
    opened.settle(ORDINARY)
    opened.session.execute(SESSION)
    assert len(seen) == 4 * 3
    assert len(set(seen)) == len(seen)
    assert all(len(first) == 16 for first in seen)


def test_a_fraction_that_was_drawn_with_others_serves_alone(desk: OpenDesk) -> None:
    """Where its law is as good as the one that is asked for; another fraction is another measure."""
    opened = desk()
    opened.settle(crowd(2))
    three = opened.session.execute(SESSION)
    assert opened.session.execute(SESSION).rows == three.rows
    spent = opened.session.dataset.store.spent().epsilon_nano
    opened.session.execute("SET dpsql.epsilon = '0.02'")
    alone = opened.session.execute("SELECT city, MEDIAN(n) FROM visit GROUP BY city")
    assert list(alone.rows) == [row[:2] for row in three.rows]
    assert opened.session.dataset.store.spent().epsilon_nano == spent
    opened.session.execute(
        "SELECT city, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY n) FROM visit GROUP BY city"
    )
    assert opened.session.dataset.store.spent().epsilon_nano > spent


def test_ties_do_not_bend_the_fractions_beside_them(desk: OpenDesk, monkeypatch: Patch) -> None:
    """Six in ten rows at one value: with the bits of persons all three are right, without them they are not."""
    ages = ["7"] * 60 + [str(-3 + i % 10) for i in range(40)]
    database = Database((), tuple(visit(unit, n=age) for unit, age in enumerate(ages * 8)))
    exact = sorted(int(age) for age in ages * 8)
    quarters = [exact[len(exact) // 4], exact[len(exact) // 2], exact[-len(exact) // 4]]
    fractions = ", ".join(f"PERCENTILE_DISC({f}) WITHIN GROUP (ORDER BY n)" for f in (0.25, 0.5, 0.75))

    def answer() -> list[int]:
        opened = desk(ZeroNoise())
        opened.settle(database)
        return list(opened.session.execute(f"SELECT {fractions} FROM visit").rows[0])

    assert answer() == quarters
    monkeypatch.setattr(Dialect, "scattered", lambda self, parts, bits: "0")
    assert answer() != quarters


def test_one_person_s_rows_do_not_grow_what_is_read(adding: World) -> None:
    """A person of very many rows weighs what R allows; what is read has a public bound."""
    many = 40_000
    adding.settle(load, ORDINARY)
    adding.connection.execute(
        f"INSERT INTO visit (person_id, x) SELECT 77, 1 + i / {many}.0 FROM range({many}) AS t(i)"
    )
    adding.refresh()
    (release,) = adding.plan(f"SELECT {THREE.format('x')} FROM visit").releases
    split = release.choices[0]
    assert isinstance(split, RankSplit)
    (query,) = release.queries((0,))
    with adding.backend.snapshot() as snapshot:
        rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
    assert len(rows) <= 8
    assert split.most_read <= 2**20

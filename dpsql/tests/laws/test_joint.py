"""What is drawn together (soundness.md 1.22): the claim on neighbours, Postgres' meaning, the draws, and the mutants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import EngineFailure, Unverified
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_sums import GroupSums
from dpsql.plan.measures import normal_form
from dpsql.plan.measures.measurements import WEIGHT, Joint
from dpsql.policy import parse_policy
from dpsql.testing.injected_noise import CountingNoise, ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb, warm_sealed
from dpsql.tests.support.length import some
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database

from .conftest import OpenDesk
from .examples import HEAVY, NOBODY, visit
from .measured import World, world
from .test_neighbours import check, neighbours_of
from .test_one_draw import cost

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module", params=[False, True], ids=["adding", "replacing"])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None
) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("joint"), replace_one=request.param, server=engine) as opened:
        yield opened


@pytest.fixture
def adding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("mutant")) as made:
        yield made


def holds(world: World, sql: str, database: Database = HEAVY) -> None:
    assert check(world, sql, database, neighbours_of(world, database, NOBODY)) is not None


STATEMENTS = (
    "SELECT VAR_POP(x), AVG(x), COUNT(x) FROM visit",
    "SELECT city, STDDEV(n), SUM(n) FROM visit GROUP BY city",
    "SELECT CORR(n, x) FROM visit",
    "SELECT city, COVAR_SAMP(x, n), REGR_SLOPE(d, n), VAR_POP(n) FROM visit GROUP BY city",
    "SELECT tag, CORR(x, d) FROM visit GROUP BY tag",
    "SELECT city, CORR(n, d) FILTER (WHERE flag), REGR_AVGX(n, d) FROM visit GROUP BY city",
    "SELECT REGR_SXY(n, x), REGR_COUNT(n, x), VAR_SAMP(d) FROM visit WHERE n > 0",
    "SELECT CORR(age, height), REGR_R2(age, height) FROM person",
    "SELECT CORR(big, n) FROM visit",
)

SEVEN = Database(
    (), tuple(visit(1, city=city, n="7", x="4", d="5") for city in ("a", "a", "b", "b", "c", "c", None))
)
"""One more row than R of one unit, in groups none of whose parts is a whole number of fractions."""


@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_unit_moves_the_norm_by_the_claim_at_most(either: World, sql: str) -> None:
    assert any(
        isinstance(one, Joint) for release in either.plan(sql).releases for one in release.measurements
    )
    for database in (HEAVY, SEVEN):
        holds(either, sql, database)


@pytest.mark.parametrize("sql", STATEMENTS[1:4])
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    worst = check(adding, sql, HEAVY, neighbours_of(adding, HEAVY, NOBODY))
    assert worst is not None
    assert 0.4 < worst <= 1


# --- Postgres' meaning ------------------------------------------------------------------------------------------

PAIRS = Database(
    (),
    (
        visit(1, n="1", x="0.5", d="2", city="a"), visit(2, n="3", x="1.5", d="2", city="a"),
        visit(3, n="5", x="1", d="2", city="a"), visit(4, n="7", x="3", d="2", city="b"),
        visit(5, n="2", x=None, d="1", city="a"), visit(6, n=None, x="2", d="1", city="a"),
        visit(7, n=None, x=None, d="1", city="b"), visit(8, n="-1", x="-1", d="2", city="a"),
    ),
)  # fmt: skip
FUNCTIONS = (
    "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx",
    "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy",
)  # fmt: skip


@pytest.fixture
def exact(desk: OpenDesk, monkeypatch: Patch) -> Callable[[str, Database], tuple[Any, Any]]:
    """Give what a statement answers without noise, and what the engine answers."""
    monkeypatch.setattr("dpsql.postprocess.print_public._noise", lambda plan, formula: (0.0, 0.0))
    opened = desk(ZeroNoise())

    def ask(sql: str, database: Database) -> tuple[Any, Any]:
        opened.settle(database)
        opened.session.execute("SET dpsql.reuse = off")
        return opened.session.execute(sql).rows, opened.connection.execute(sql).fetchall()

    return ask


@pytest.mark.parametrize("function", some([*FUNCTIONS], 6))
def test_without_noise_it_is_what_postgres_answers(
    exact: Callable[[str, Database], tuple[Any, Any]], function: str
) -> None:
    """Over rows that have both; either way round; DuckDB's functions are Postgres'."""
    for call in (f"{function}(n, x)", f"{function}(x, n)", f"{function}(x, n) FILTER (WHERE n > 0)"):
        ((ours,),), ((theirs,),) = exact(f"SELECT {call} FROM visit", PAIRS)
        assert float(ours) == pytest.approx(float(theirs), rel=1e-6), call


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("corr(n, d)", None), ("corr(d, n)", None), ("regr_slope(n, d)", None), ("regr_intercept(n, d)", None),
        ("regr_r2(n, d)", None), ("regr_r2(d, n)", 1.0), ("regr_slope(d, n)", 0.0), ("covar_pop(n, d)", 0.0),
        ("regr_sxx(n, d)", 0.0), ("regr_avgx(n, d)", 2.0),
    ],
)  # fmt: skip
def test_of_a_constant(
    exact: Callable[[str, Database], tuple[Any, Any]], call: str, expected: float | None
) -> None:
    """As Postgres: d is 2 wherever x is."""
    ((ours,),), _ = exact(f"SELECT {call} FROM visit WHERE d = 2", PAIRS)
    assert (ours is None) == (expected is None)
    assert ours is None or float(ours) == pytest.approx(expected, abs=1e-9)


def test_of_one_row_and_of_none(exact: Callable[[str, Database], tuple[Any, Any]]) -> None:
    """What Postgres says of one row; COVAR_SAMP counts two at least, and is a number."""
    one = Database((), PAIRS.visits[:1])
    for function, expected in (("corr", None), ("regr_slope", None), ("covar_pop", 0.0), ("regr_count", 1)):
        ((ours,),), ((theirs,),) = exact(f"SELECT {function}(n, x) FROM visit", one)
        assert ours == expected
        assert theirs is None or math.isnan(theirs) or theirs == expected
    ((ours,),), _ = exact("SELECT covar_samp(n, x) FROM visit", one)
    assert math.isfinite(float(ours))
    ((nothing, count),), _ = exact("SELECT corr(n, x), regr_count(n, x) FROM visit", NOBODY)
    assert (nothing, count) == (None, 0)  # by the noisy count alone, as AVG: it may be 0 where there are rows


# --- the draws --------------------------------------------------------------------------------------------------


def test_a_part_asked_alone_is_answered_from_the_draw(desk: OpenDesk) -> None:
    """Where it is no wider than asked alone: of people's rows, and of persons."""
    for table, value, first in (("visit", "n", "VAR_POP(n)"), ("person", "age", "STDDEV(age)")):
        opened = desk(ZeroNoise())
        opened.settle(HEAVY)
        execute = opened.session.execute
        assert cost(execute(f"SELECT {first} FROM {table} WHERE {value} IS NOT NULL")) > 0
        execute(
            "SET dpsql.epsilon = 0.3"
        )  # one coordinate of three has the spread of a draw of its own at 0.55
        for call in (f"SUM({value})", f"AVG({value})", "COUNT(*)", first):
            found = execute(f"SELECT {call} FROM {table} WHERE {value} IS NOT NULL")
            assert cost(found) == 0, (table, call)


def test_every_coordinate_has_a_number_of_its_own(desk: OpenDesk) -> None:
    noise = CountingNoise(10**9)
    opened = desk(noise)
    opened.settle(HEAVY)
    opened.session.execute("SELECT city, CORR(n, x) FROM visit GROUP BY city")
    cities = len(
        opened.session.explain("SELECT city, CORR(n, x) FROM visit GROUP BY city").plan.releases[0].groups
        or ()
    )
    assert len(noise.given) == 6 * (cities + 1)  # those of all other cities have theirs too


# --- mutants ----------------------------------------------------------------------------------------------------

CORR = "SELECT city, CORR(n, x) FROM visit GROUP BY city"


def test_round_weights_up(adding: World, monkeypatch: Patch) -> None:
    """Seven rows of a person weigh up to seven parts more than is claimed."""

    def up(self: Any, rows: str) -> str:
        most, t = self.bounding.in_all * WEIGHT, f"GREATEST({rows}, {self.bounding.in_all})"
        return f"(({most} + {t} - 1) // {t})"

    holds(adding, CORR, SEVEN)
    monkeypatch.setattr(print_release.ReleasePrinter, "_weight", up)
    with pytest.raises(AssertionError):
        holds(adding, CORR, SEVEN)


@pytest.mark.parametrize("place", range(1, 6))
def test_forget_the_reach_of_a_coordinate(adding: World, monkeypatch: Patch, place: int) -> None:
    original = Joint.reaches

    def forgotten(self: Joint) -> tuple[int, ...]:
        assert original.fget is not None
        reaches = list(original.fget(self))
        reaches[place] = 1
        return tuple(reaches)

    monkeypatch.setattr(Joint, "reaches", property(forgotten))
    with pytest.raises(AssertionError):
        holds(adding, CORR)


def test_forget_a_row_in_weights(adding: World, monkeypatch: Patch) -> None:
    original = print_release.ReleasePrinter._weight
    monkeypatch.setattr(
        print_release.ReleasePrinter, "_weight", lambda self, rows: original(self, f"{rows} - 1")
    )  # fmt: skip
    with pytest.raises(AssertionError):
        holds(adding, CORR, SEVEN)


def test_take_half_of_the_sensitivity(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Joint, "added", property(lambda self: self.bounding.in_all // 2))
    with pytest.raises(AssertionError):
        holds(adding, CORR)


def test_ask_for_one_of_the_two_values_alone(
    exact: Callable[[str, Database], tuple[Any, Any]], monkeypatch: Patch
) -> None:
    """A mask of x alone is private, and wrong."""
    ask = "SELECT corr(n, x) FROM visit"
    ((ours,),), ((theirs,),) = exact(ask, PAIRS)
    assert ours == pytest.approx(theirs, rel=1e-6)
    original = normal_form.present
    monkeypatch.setattr(
        normal_form, "present", lambda value, env: original(value, env) if "DOUBLE" in repr(value) else None
    )
    ((ours,),), ((theirs,),) = exact(f"{ask} AS v", PAIRS)
    assert ours != pytest.approx(theirs, rel=1e-6)


WIDE = """
database = "duckdb:wide.duckdb"
ledger = "sqlite:wide.db"
[privacy]
epsilon = 1
verify = "{verify}"
[tables.person]
unit = "id"
[tables.person.columns]
pay = {{ bounds = [0, 2000000] }}
worth = {{ bounds = [0, 1000000000000] }}
"""


def correlated(folder: Path, verify: str) -> object:
    """Ask 200,000 people at the ends of their bounds: a sum of 4·10^11 that fits 64 bits, and not times 3·10^7."""
    folder.mkdir()
    with empty_duckdb() as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, pay INTEGER, worth BIGINT);"
            "INSERT INTO person SELECT i, 2000000, 1000000000000 FROM range(200000) AS t (i)"
        )
        policy = parse_policy(WIDE.format(verify=verify), folder / "wide.toml")
        with closing(open_ledger(policy, create=True)) as store:
            dataset = Dataset(policy, DuckDBBackend.over(connection), store, warm_sealed())
            with Session(dataset, "ann", _noise=ZeroNoise()) as session:
                return session.execute("SELECT CORR(pay, worth) FROM person").rows


def test_a_side_of_a_product_is_as_wide_as_the_product(tmp_path: Path, monkeypatch: Patch) -> None:
    """Whether a statement fails would tell of the sum; the verifier sees the fault before the engine does."""
    assert correlated(tmp_path / "wide", "refuse")
    monkeypatch.setattr(GroupSums, "typed", lambda self, measurement, sql: sql)
    with pytest.raises(Unverified):
        correlated(tmp_path / "refused", "refuse")
    with pytest.raises(EngineFailure):
        correlated(tmp_path / "narrow", "log")

"""Sums of several columns as one vector (soundness.md 1.22): the claim on neighbours, Postgres' meaning, what it costs.

No answer is wider than by a share of epsilon for each column, and no statement costs more, whatever is stored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql import Session
from dpsql.engine import spine
from dpsql.plan.backend_sql.print_sums import GroupSums, WeighedSums
from dpsql.plan.measures.measurements import Joint, Present
from dpsql.plan.planner import Plan, drawn_together
from dpsql.release import beside
from dpsql.release.beside import find_together
from dpsql.release.price import expected_error
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database

from .conftest import OpenDesk
from .examples import HEAVY, NOBODY, visit
from .measured import World, world
from .test_beside import TILES, opened, spent, tile
from .test_joint import PAIRS, SEVEN
from .test_neighbours import check, neighbours_of
from .test_one_draw import cost

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module", params=[False, True], ids=["adding", "replacing"])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None
) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("together"), replace_one=request.param, server=engine) as made:
        yield made


@pytest.fixture
def adding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("mutant")) as made:
        yield made


STATEMENTS = (
    "SELECT AVG(n), AVG(x), COUNT(*) FROM visit",
    "SELECT city, SUM(n), SUM(far), COUNT(x), AVG(x) FROM visit GROUP BY city",
    "SELECT tag, AVG(n), AVG(d) FROM visit GROUP BY tag",
    "SELECT city, AVG(n) FILTER (WHERE flag), SUM(d), COUNT(*) FROM visit WHERE n IS NOT NULL GROUP BY city",
    "SELECT VAR_POP(n), AVG(d), STDDEV(x) FROM visit",
    "SELECT AVG(age), SUM(height), AVG(score) FROM person WHERE age IS NOT NULL",
    "SELECT AVG(n), MEDIAN(d), SUM(x), COUNT(DISTINCT person_id) FROM visit",
)

THERE = Database(
    (),
    tuple(
        visit(u, city="ab"[u % 2], n=n, x=x, d=d, far=far)
        for u, n, x, d, far in (
            (1, "7", None, "5", None), (1, None, "4", "5", "1000000000000000100"), (2, "-3", "-1", None, None),
            (2, None, None, None, "1000000000000000000"), (3, "1", "2", "0", None),
        )
    ),
)  # fmt: skip
"""Each value is NULL in other rows."""


def joined_plans(plan: Plan) -> list[Plan]:
    """Return the plans of a statement of one release that draw several columns together, each as if it were taken."""
    (release,) = plan.releases
    return [replace(plan, releases=(other,)) for other in drawn_together(release)]


def holds(world: World, monkeypatch: Patch, sql: str) -> Fraction:
    """Hold the claims of all joint draws of a statement; return the largest loss per epsilon."""
    worst = []
    plans = joined_plans(world.plan(sql))
    assert plans
    for plan in plans:
        assert any(isinstance(one, Joint) for one in plan.releases[0].measurements)
        with monkeypatch.context() as patch:
            patch.setattr(World, "plan", lambda self, text, plan=plan: plan)
            for database in (HEAVY, SEVEN, THERE):
                worst.append(check(world, sql, database, neighbours_of(world, database, NOBODY)))
    return max(one for one in worst if one is not None)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_unit_moves_the_norm_by_the_claim_at_most(either: World, monkeypatch: Patch, sql: str) -> None:
    assert holds(either, monkeypatch, sql) > Fraction(1, 4)


# --- the meaning ------------------------------------------------------------------------------------------------

CALLS = (
    "AVG(n)", "SUM(x)", "COUNT(x)", "COUNT(*)", "AVG(d)", "SUM(n) FILTER (WHERE d = 2)", "VAR_POP(n)", "COUNT(n) FILTER (WHERE x > 1)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_it_is_what_the_engine_answers(desk: OpenDesk, monkeypatch: Patch, seed: int) -> None:
    """Each value is NULL in other rows: a count of its own for each; whether it is narrower or not."""
    monkeypatch.setattr(beside, "_deviations", lambda *given: [0.0])
    opened = desk(ZeroNoise())
    opened.settle(PAIRS)
    chosen = random.Random(seed).sample(CALLS, 4)
    sql = f"SELECT {', '.join(dict.fromkeys(('AVG(n)', 'AVG(x)', *chosen)))} FROM visit"
    found = opened.session.explain(sql).plan.releases[0].measurements
    assert any(
        isinstance(one, Joint) and any(isinstance(part, Present) for part in one.parts) for one in found
    )
    (ours,), (theirs,) = opened.session.execute(sql).rows, opened.connection.execute(sql).fetchall()
    assert [float(one) for one in ours] == pytest.approx([float(one) for one in theirs], rel=1e-6)


# --- how exact, and at what price -------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path / "loans") as made:
        yield made


def alone(session: Session, sql: str) -> Plan:
    """Return the plan that has a share of epsilon for each column."""
    session.execute("SET dpsql.reuse = off")
    plan = session.explain(sql).plan
    session.execute("SET dpsql.reuse = on")
    return plan


def gains(session: Session, sql: str) -> list[float]:
    """Return by how much each number of a statement is narrower than with a share of epsilon for each column."""
    here, there = session.explain(sql).plan, alone(session, sql)
    assert here.epsilon <= there.epsilon
    (one,), (other,) = here.releases, there.releases
    return [
        float(expected_error(other, index)[0] / expected_error(one, index)[0])
        for index in range(len(one.formulas))
    ]


@pytest.mark.parametrize(
    ("more", "least"),
    [
        ("AVG(amount), AVG(balance)", 1.5),
        ("SUM(amount), SUM(balance)", 1.5),
        ("COUNT(*), AVG(amount), AVG(balance), AVG(age)", 1.5),
        ("AVG(fee), AVG(amount)", 1.2),  # one has a count of its own
        ("VAR_POP(amount), AVG(balance)", 1.2),
    ],
)
def test_several_columns_are_narrower(session: Session, more: str, least: float) -> None:
    assert min(gains(session, tile(more))) >= least
    told = " ".join(session.explain(tile(more)).text().split())
    assert "in one draw" in told
    assert 1 - Fraction(1, 10**8) < cost(session.execute(tile(more))) <= 1


def test_groups_that_are_found_too(session: Session) -> None:
    sql = "SELECT street, AVG(amount), AVG(balance) FROM loan GROUP BY street"
    assert min(gains(session, sql)) >= 1.5
    assert cost(session.execute(sql)) == 1
    session.dataset.answers.clear()
    assert cost(session.execute(sql)) == 0


def test_one_column_is_asked_as_ever(session: Session) -> None:
    for more in ("AVG(amount)", "COUNT(*), SUM(amount)", "MEDIAN(amount), AVG(fee)"):
        assert find_together(session.explain(tile(more)).plan) is None


def test_what_is_stored_of_a_column_goes_before_what_costs_more(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 0.5")
    session.execute(tile("AVG(amount)"))
    session.execute("SET dpsql.epsilon = 1")
    assert cost(session.execute(tile("AVG(amount), AVG(balance)"))) == Fraction(1, 2)


def test_a_third_column_costs_its_part_beside_two_that_are_stored(session: Session) -> None:
    session.execute(tile("AVG(amount), AVG(balance)"))
    assert cost(session.execute(tile("AVG(amount), AVG(balance), AVG(age)"))) <= Fraction(1, 3)


def check_sequence(folder: Path, seed: int, patch: Patch) -> None:
    """Statements in a random order cost no more in all than with a share of epsilon for each column."""
    chance = random.Random(seed)
    pool = ("AVG(amount)", "AVG(balance)", "SUM(age)", "AVG(fee)", "COUNT(*)", "SUM(amount)", "VAR_POP(age)")
    asked = [tile(", ".join(chance.sample(pool, chance.choice((1, 2, 2, 3))))) for _ in range(6)]
    paid = []
    for is_joined in (True, False):
        with opened(folder / f"{seed}{is_joined}") as session, patch.context() as within:
            if not is_joined:
                within.setattr(spine, "find_together", lambda plan: None)
            for sql in asked:
                answer = session.execute(sql)
                session.dataset.answers.clear()
                again = session.execute(sql)
                assert (cost(again), again.rows) == (0, answer.rows), sql
            paid.append(spent(session))
    assert paid[0] <= paid[1] + Fraction(1, 10**6), (asked, paid)


@pytest.mark.parametrize("seed", range(3))
def test_sequences_cost_no_more(tmp_path: Path, monkeypatch: Patch, seed: int) -> None:
    check_sequence(tmp_path, seed, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 43))
def test_many_sequences_cost_no_more(tmp_path: Path, monkeypatch: Patch, seed: int) -> None:
    check_sequence(tmp_path, seed, monkeypatch)


@pytest.mark.parametrize("sql", TILES)
def test_nothing_is_wider(session: Session, sql: str) -> None:
    assert min(gains(session, sql)) >= 1


# --- mutants ----------------------------------------------------------------------------------------------------


def test_forget_the_reach_of_a_column(adding: World, monkeypatch: Patch) -> None:
    original: Callable[[Joint], tuple[int, ...]] = Joint.reaches.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Joint, "reaches", property(lambda self: (*original(self)[:-1], 1)))
    with pytest.raises(AssertionError):
        holds(adding, monkeypatch, STATEMENTS[0])


@pytest.mark.parametrize("sums", [GroupSums, WeighedSums])
def test_count_rows_without_a_value(adding: World, monkeypatch: Patch, sums: type) -> None:
    """What a NULL adds to a sum from the middle is nothing: else it is the middle itself, beyond all reach."""
    monkeypatch.setattr(sums, "_may_be_null", lambda self, measurement: False)
    with pytest.raises(AssertionError):
        holds(adding, monkeypatch, STATEMENTS[1])


def test_take_a_wider_answer(session: Session, monkeypatch: Patch) -> None:
    """Squares of two columns are drawn together, and the average of a third is wider in their vector than alone."""
    sql = tile("VAR_POP(amount), AVG(balance), STDDEV(age)")

    def check_it() -> None:
        assert min(gains(session, sql)) >= 1

    check_it()
    monkeypatch.setattr(beside, "_deviations", lambda *given: [0.0])
    with pytest.raises(AssertionError):
        check_it()


def test_pay_more_for_it(session: Session, monkeypatch: Patch) -> None:
    def price(self: Any) -> Fraction:
        return Fraction(0)

    monkeypatch.setattr("dpsql.release.run.PlanRunner.price", price)
    monkeypatch.setattr(spine, "find_beside", lambda *given: None)
    with pytest.raises(AssertionError):
        test_what_is_stored_of_a_column_goes_before_what_costs_more(session)

"""What the mechanisms do together: choices of groups beside choices by rank, in zCDP datasets, and with what is stored.

Each alone is held by the tests of its own section (soundness.md 1.20, 1.21, 1.23 and 1.25); here are the pairs of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.mechanisms import Near, RankSplit
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_release import Part
from dpsql.plan.measures.least_error import TopGroups
from dpsql.plan.measures.measurements import Joint
from dpsql.plan.measures.ranks import ModeMeasurement
from dpsql.policy import Accounting, Policy
from dpsql.release import run
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import warm_sealed
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, load, policy_of

from .examples import NOBODY, visit
from .measured import World, measure_release, world
from .test_neighbours import check

Patch = pytest.MonkeyPatch

THREE = "PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.9]) WITHIN GROUP (ORDER BY n)"
LARGEST = f"SELECT city, COUNT(*) AS c, {THREE} FROM visit GROUP BY city ORDER BY c DESC LIMIT 1"


def of(folder: Path, accounting: Accounting) -> Policy:
    """Two rows count in a group and 16 groups of a unit."""
    pure = policy_of(folder, rows=2, groups=16)
    return replace(pure, privacy=replace(pure.privacy, accounting=accounting))


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("pure")
    with world(folder, policy=of(folder, Accounting.PURE), server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def in_rho(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("zcdp")
    with world(folder, policy=of(folder, Accounting.ZCDP), server=engine) as made:
        yield made


# --- choices by rank of groups that were chosen -------------------------------------------------------------

TWO_CITIES = Database(
    (),
    tuple(
        visit(unit, city=city, n=n)
        for unit in range(1, 4)
        for city, n, rows in (("a", "1", 2), ("a", "5", 1), ("b", "7", 60))
        for _ in range(rows)
    ),
)
"""People with a few rows in one city and very many in another, which is not measured."""


def check_a_part(here: World) -> None:
    """What is asked of a part weighs what it weighs in the window: rows of groups that were not chosen are in no t."""
    here.settle(load, TWO_CITIES)
    (release,) = here.plan(LARGEST).releases
    (number,) = release.choices
    split, chosen = release.choices[number], release.groups[:1] if release.groups else None
    assert isinstance(split, RankSplit)
    assert chosen == (("a",),)
    with here.backend.snapshot() as snapshot:
        weights = measure_release(release, snapshot)[number][("a",)]
        query = release.part_query(number, Part(("a",), 0, split.candidates - 1, split.read), chosen)
        rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
    assert weights
    assert sorted((row[1], row[3]) for row in rows) == list(weights)


def test_a_part_of_a_chosen_group_has_the_weights_of_its_window(adding: World) -> None:
    check_a_part(adding)


def test_a_mutant_that_weighs_a_part_by_rows_of_all_groups(adding: World, monkeypatch: Patch) -> None:
    original = print_release.ReleasePrinter.part
    monkeypatch.setattr(print_release.ReleasePrinter, "part", lambda *given: original(*given[:-1]))
    with pytest.raises(AssertionError):
        check_a_part(adding)


def test_a_session_asks_for_parts_of_the_chosen_groups(tmp_path: Path, monkeypatch: Patch) -> None:
    """No statement after the choice is asked without the filter to what was chosen."""
    policy = of(tmp_path, Accounting.PURE)
    asked: list[str] = []
    original = run.PlanRunner._ask

    def ask(self: run.PlanRunner, *args: object) -> None:
        asked.append(args[2].sql)  # type: ignore[attr-defined]
        original(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(run.PlanRunner, "_ask", ask)

    def least(split: RankSplit) -> tuple[Near, ...]:
        """Return less than choices need."""
        return tuple(replace(one, clamp=1) for one in split.near(0, 3, Fraction(0), Fraction(1)))

    monkeypatch.setattr(RankSplit, "read", property(least))
    with world(tmp_path, policy=policy) as made:
        made.settle(load, TWO_CITIES)
        store = open_ledger(policy, create=True)
        with Session(
            Dataset(policy, made.backend, store, warm_sealed()), "tester", _noise=ZeroNoise()
        ) as session:
            assert session.execute(LARGEST).rows[0][0] == "a"
    _, *others = asked
    assert any("v BETWEEN" in sql for sql in others)
    for sql in others:
        assert all("IN ('a')" in where for where in re.findall(r'"visit" WHERE (.*?)\) AS ', sql)), sql
        assert 'FROM "main"."visit")' not in sql


# --- in rho ------------------------------------------------------------------------------------------------


def test_what_is_measured_of_chosen_groups_is_planned_by_rho(in_rho: World, adding: World) -> None:
    """Under rho sums that share it are less off than a joint draw: of chosen groups as of all (soundness.md 1.25)."""
    sql = "SELECT city, COUNT(*) AS c, VAR_POP(x) FROM visit GROUP BY city ORDER BY c DESC LIMIT 1"
    for here, is_joint in ((in_rho, False), (adding, True)):
        (release,) = here.plan(sql).releases
        assert release.top is not None
        assert release.unselected is not None
        kinds = {measurement.kind for measurement in release.measurements} - {TopGroups.kind}
        assert kinds == {measurement.kind for measurement in release.unselected.measurements}
        assert (Joint.kind in kinds) == is_joint


MODES = "SELECT MODE() WITHIN GROUP (ORDER BY city) FROM visit"
ONE_CITY = Database((), tuple(visit(1, city="a") for _ in range(40)))


def test_the_most_frequent_value_takes_all_of_its_rho(in_rho: World) -> None:
    """It is a pure draw: one person who has all rows moves it by its whole epsilon, and rho is half of that squared."""
    worst = check(in_rho, MODES, ONE_CITY, [NOBODY])
    assert worst is not None
    assert 0.98 < worst <= 1


def test_a_mutant_that_takes_mode_for_a_choice_by_rank(in_rho: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr(ModeMeasurement, "choosing", lambda mode, loss: 2 * loss.epsilon)
    with pytest.raises(AssertionError):
        check(in_rho, MODES, ONE_CITY, [NOBODY])

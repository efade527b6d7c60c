"""An attacker's view of whole releases at epsilon 1, on the students with and without Chandler (soundness.md 5.3).

The printed SQL runs on both databases; the production noise is then replayed many times in process. For an
event chosen on one half of the draws, Clopper-Pearson bounds on the other half give a lower bound of epsilon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta  # type: ignore[import-untyped]  # has no types

from dpsql.backends import DuckDBBackend
from dpsql.engine.audit.audit import ERROR, attack, scores
from dpsql.mechanisms import Laplace, Law, Noise, SampledNoise
from dpsql.plan.planner import Plan
from dpsql.policy import build_catalog, parse_policy
from dpsql.relation.catalog import Scalar
from dpsql.release.privatise import Exact, publish
from dpsql.testing.injected_noise import ZeroNoise

from .measured import Groups, World, measure_release

_POLICY = """
database = "duckdb:campus.duckdb"
ledger = "sqlite:ledger.db"
[privacy]
epsilon = 10
delta = 0.1
[defaults]
epsilon = 1
delta = 1e-2
[tables.student]
unit = "id"
[tables.student.columns]
name = {}
gpa = { bounds = [2.0, 4.0], step = 0.01 }
major = { values = ["m0", "m1", "m2"] }
[tables.loan]
unit = { column = "student_id", references = "student.id" }
max_rows = 6
max_rows_per_group = 3
max_groups = 2
[tables.loan.columns]
branch = { values = ["a", "b", "c"] }
title = {}
days = { bounds = [0, 10] }
"""
_SCHEMA = """
CREATE TABLE student (id INTEGER PRIMARY KEY, name VARCHAR, gpa DECIMAL(3,2), major VARCHAR);
CREATE TABLE loan (student_id INTEGER REFERENCES student (id), branch VARCHAR, title VARCHAR, days INTEGER);
INSERT INTO student SELECT i, 'student', 2 + (i % 20) / 10, 'm' || (i % 3) FROM range(50) t(i);
INSERT INTO loan SELECT i % 50, chr((97 + i % 3)::INTEGER), 'book ' || i % 4, i % 11 FROM range(200) t(i);
"""
_CHANDLER = """
INSERT INTO student VALUES (99, 'Chandler', 4.0, 'm1');
INSERT INTO loan SELECT 99, chr((97 + i % 3)::INTEGER), 'book ' || i % 4, 10 FROM range(1000) t(i);
"""


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    connection = duckdb.connect()
    connection.execute(_SCHEMA)
    policy = parse_policy(_POLICY, tmp_path_factory.mktemp("audit") / "campus.toml")
    backend = DuckDBBackend.over(connection)
    with backend.snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    yield World(connection, None, backend, policy, catalog)
    connection.close()


@dataclass(frozen=True)
class HalfNoise(ZeroNoise):
    """The mutant that the audit must find: noise of half the scale."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return SampledNoise().draw(Laplace(law.scale / 2), count)


Measures = list[dict[int, Groups]]


def exact_on_both(campus: World, plan: Plan) -> tuple[Measures, Measures]:
    """Return the exact measures with Chandler, and without him."""
    found: list[Measures] = []
    for there in (False, True):
        if there:
            campus.connection.execute(_CHANDLER)
        with campus.backend.snapshot() as snapshot:
            found.append([measure_release(release, snapshot) for release in plan.releases])
    campus.connection.execute("DELETE FROM loan WHERE student_id = 99")
    campus.connection.execute("DELETE FROM student WHERE id = 99")
    return found[1], found[0]


def audit(campus: World, sql: str, noise: Noise, runs: int) -> float:
    """Return the best lower bound of the statement's epsilon that an attacker gets, in both directions."""
    plan = campus.plan(sql)
    with_him, without_him = exact_on_both(campus, plan)
    here = scores(plan, with_him, without_him, noise, runs)
    there = scores(plan, without_him, with_him, noise, runs)
    return max(attack(here, -there).epsilon, attack(there, -here).epsilon)


TIGHT = (
    "SELECT COUNT(*) FROM student",
    "SELECT SUM(gpa) FROM student",
    "SELECT COUNT(*) FROM loan",
    "SELECT COUNT(*) FROM loan AS a JOIN loan AS b ON a.student_id = b.student_id",
)
STATEMENTS = (
    *TIGHT,
    "SELECT AVG(gpa) FROM student",
    "SELECT COUNT(DISTINCT name) FROM student",
    "SELECT major, COUNT(*) FROM student GROUP BY major",
    "SELECT major, AVG(gpa), COUNT(*) FROM student GROUP BY major",
    "SELECT branch, COUNT(*) FROM loan GROUP BY branch",
    "SELECT branch, AVG(days), COUNT(DISTINCT title) FROM loan GROUP BY branch",
    "SELECT title, COUNT(*) FROM loan GROUP BY title",
    "SELECT VAR_POP(days) FROM loan",
    "SELECT CORR(days, days * days) FROM loan",
    "SELECT major, AVG(days) FROM loan JOIN student ON student_id = id GROUP BY major",
    "SELECT AVG(n) FROM (SELECT student_id, COUNT(*) AS n FROM loan GROUP BY student_id) AS t",
    "SELECT COUNT(*) FROM student WHERE EXISTS (SELECT 1 FROM loan WHERE student_id = id AND days > 9)",
)


def _audited(campus: World, sql: str, runs: int) -> float:
    plan = campus.plan(sql)
    assert plan.epsilon <= 1
    return audit(campus, sql, SampledNoise(), runs)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_attacker_finds_more_than_epsilon(campus: World, sql: str) -> None:
    assert _audited(campus, sql, 20_000) <= 1


@pytest.mark.long
@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_attacker_finds_more_than_epsilon_at_length(campus: World, sql: str) -> None:
    assert _audited(campus, sql, 400_000) <= 1


@pytest.mark.long
@pytest.mark.parametrize("sql", TIGHT)
def test_the_noise_is_not_larger_than_it_has_to_be(campus: World, sql: str) -> None:
    assert audit(campus, sql, SampledNoise(), 400_000) > 0.9


@pytest.mark.parametrize("sql", [*TIGHT, "SELECT branch, COUNT(*) FROM loan GROUP BY branch"])
def test_the_audit_finds_half_the_noise(campus: World, sql: str) -> None:
    """The audit has power: a build with half the noise has epsilon 2, and does not pass."""
    assert audit(campus, sql, HalfNoise(), 20_000) > 1


@pytest.mark.parametrize(
    "runs", [pytest.param(100_000, id="short"), pytest.param(2_000_000, id="long", marks=pytest.mark.long)]
)
def test_a_key_of_one_unit_is_hidden_but_for_delta(campus: World, runs: int) -> None:
    """Pr[key published | one unit has it] <= delta / C, counted over a million such keys (delta is 1/100)."""
    (release,) = campus.plan("SELECT title, COUNT(*) FROM loan GROUP BY title").releases
    assert release.counted is not None
    exact = Exact()
    keys: list[Scalar] = [f"{number}" for number in range(runs)]
    ones = [1] * runs
    exact.add([keys], {(release.counted, 0): ones}, runs)
    published = publish(exact, release, SampledNoise(), 1)
    hits = len(published.values[0])
    at_most = float(release.delta) / release.bounding.groups
    low = float(beta.ppf(ERROR, hits, runs - hits + 1)) if hits else 0.0
    assert low <= at_most
    assert hits > 0, "the threshold is far higher than it has to be"
    for fault in (_Wider(), _Generous()):
        exact = Exact()
        exact.add([keys], {(release.counted, 0): ones}, runs)
        leaked = len(publish(exact, release, fault, 1).values[0])
        assert float(beta.ppf(ERROR, leaked, runs - leaked + 1)) > at_most, (
            "the test would not see a wrong rule"
        )


class _Wider(ZeroNoise):
    """Noise that is wider than what the rule was computed for."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return SampledNoise().draw(Laplace(law.scale * 3 / 2), count)


class _Generous(SampledNoise):
    """A coin that shows every group it is thrown for."""

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        return np.ones(count, dtype=np.bool_)


def test_the_students_of_the_reference(campus: World, tmp_path: Path) -> None:
    """soundness.md 5.3: 14650 against 14250 hundredths, sensitivity 400."""
    plan = campus.plan("SELECT SUM(gpa) FROM student")
    with_him, without_him = exact_on_both(campus, plan)
    assert with_him[0][0][()][0] - without_him[0][0][()][0] == 400
    assert plan.releases[0].measurements[0].sensitivity == 400

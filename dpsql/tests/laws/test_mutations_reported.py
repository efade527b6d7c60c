"""Estimates over randomised answers (soundness.md 1.24): what they must not get wrong, and that each fault is seen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.mechanisms import Channel, randomized_response
from dpsql.policy import load_policy
from dpsql.sql import bind_estimates, bind_select
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.duckdb_pool import empty_duckdb
from dpsql.tests.support.inserted import insert
from dpsql.tests.support.length import tried

from .planting import plant

Patch = pytest.MonkeyPatch
POLICY = """
database = "duckdb:few.duckdb"
ledger = "sqlite:few.db"
[privacy]
epsilon = 1000
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [-5, 9] }
town = { values = ["x", "y"] }
drug = { values = ["a", "b", { null = true }], randomized = { p = 0.75 } }
ill = { values = [true, false], randomized = { p = 0.5, q = 0.25 } }
[tables.sent]
public = true
[tables.sent.columns]
drug = { values = ["a", "b", { null = true }], randomized = { p = 0.75 } }
[tables.line]
public = true
"""
DRUG, ILL = Channel.of_truth(3, Fraction(3, 4)), Channel.of_bit(Fraction(1, 2), Fraction(1, 4), 0)
STATEMENTS = [
    "SELECT COUNT(*) FROM person WHERE drug = 'a'",
    "SELECT COUNT(*) FILTER (WHERE ill), COUNT(*) FROM person",
    "SELECT drug, COUNT(*), SUM(age) FROM person GROUP BY drug",
    "SELECT town, ill, AVG(age) FROM person WHERE drug IS NULL GROUP BY town, ill",
    "SELECT SUM(age) FILTER (WHERE drug = 'b'), SUM(age) FILTER (WHERE ill) FROM person",
]


@dataclass(repr=False)
class Few:
    """A session without noise over few people, and the connection that fills its tables."""

    session: Session
    connection: duckdb.DuckDBPyConnection


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Few]:
    (tmp_path / "few.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "few.toml"), create=True).close()
    with empty_duckdb() as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, town VARCHAR, drug VARCHAR, ill BOOLEAN NOT NULL);"
            "CREATE TABLE sent (survey INTEGER, drug VARCHAR); CREATE TABLE line (survey INTEGER, k INTEGER)"
        )
        with Session.open(tmp_path / "few.toml", backend=DuckDBBackend.over(connection)) as made:
            made._noise = ZeroNoise()
            made.execute("SET dpsql.reuse = off")
            yield Few(made, connection)


def fill(few: Few, people: list[tuple[object, ...]], sent: Sequence[tuple[int, int]] = ()) -> None:
    """Put people, and surveys' answers by their numbers, into the tables."""
    few.connection.execute("DELETE FROM person; DELETE FROM sent")
    insert(few.connection, "person", people)
    numbers = np.array(sent, dtype=np.int64).reshape(-1, 2)
    few.connection.register("answers", {"survey": numbers[:, 0].copy(), "said": numbers[:, 1].copy()})
    few.connection.execute("INSERT INTO sent SELECT survey, (['a', 'b', NULL])[said + 1] FROM answers")


def people_of(seed: int) -> list[tuple[object, ...]]:
    rng = random.Random(seed)
    drugs = ["a", "b", None, "other"]
    return [
        (
            i,
            rng.choice([None, -99, -5, 3, 9, 99]),
            rng.choice(["x", "y", None]),
            rng.choice(drugs),
            rng.random() < 0.5,
        )
        for i in range(rng.randrange(1, 9))
    ]


# --- the laws ----------------------------------------------------------------------------------------------


def check_the_inverse() -> None:
    for channel in (DRUG, ILL):
        for one in range(channel.size):
            chosen = frozenset({one})
            inside, outside = channel.weights(chosen)
            for true in range(channel.size):
                said = range(channel.size)
                mean = sum(channel.chance(true, s) * (inside if s in chosen else outside) for s in said)
                assert mean == (true in chosen)


def check_estimates(few: Few) -> None:
    """Each estimate is the sum of its rows' weights, written out here."""
    people = people_of(3)
    fill(few, people)
    drugs: list[object] = ["a", "b", None]
    for value in drugs:
        inside, outside = DRUG.weights(frozenset({drugs.index(value)}))
        said = "drug IS NULL" if value is None else f"drug = '{value}'"
        true = [(p[3] == value, p[4]) for p in people if p[3] in drugs]
        wanted = float(sum(inside if hit else outside for hit, _ in true))
        ((count,),) = few.session.execute(f"SELECT COUNT(*) FROM person WHERE {said}").rows
        assert count == pytest.approx(wanted)
        yes, no = ILL.weights(frozenset({0}))
        both = float(sum((inside if hit else outside) * (yes if ill else no) for hit, ill in true))
        ((count,),) = few.session.execute(f"SELECT COUNT(*) FROM person WHERE {said} AND ill").rows
        assert count == pytest.approx(both)
    groups = dict(few.session.execute("SELECT drug, COUNT(*) FROM person GROUP BY drug").rows)
    for value, count in groups.items():
        inside, outside = DRUG.weights(frozenset({drugs.index(value)}))
        assert count == pytest.approx(
            float(sum(inside if p[3] == value else outside for p in people if p[3] in drugs))
        )


def check_bars(few: Few) -> None:
    """Of 400 public surveys some 95 % hold the truth, which is 30 of 90."""
    rng = np.random.default_rng(8)
    truth = np.repeat(np.arange(3), 30)
    sent: list[tuple[int, int]] = []
    for survey in range(400):
        lies = rng.random(90) >= 0.75
        said = (truth + lies * rng.integers(1, 3, 90)) % 3
        sent += [(survey, int(one)) for one in said]
    fill(few, [], sent)
    few.session.execute("SET dpsql.intervals = 0.95")
    for sql, expected in (
        ("SELECT survey, COUNT(*) FILTER (WHERE drug = 'a') AS n FROM sent GROUP BY survey", 400),
        ("SELECT survey, drug, COUNT(*) AS n FROM sent GROUP BY survey, drug", 1200),
    ):
        rows = few.session.execute(sql).rows
        assert len(rows) == expected
        assert 0.92 < np.mean([row[-2] <= 30 <= row[-1] for row in rows]) < 0.98


def check_no_other_use(few: Few) -> None:
    for sql in (
        "SELECT COUNT(*) FROM sent s JOIN person p ON s.drug = p.drug",
        "SELECT DISTINCT drug FROM sent",
        "SELECT drug FROM sent UNION SELECT drug FROM sent",
        "SELECT survey FROM sent ORDER BY drug",
        "SELECT COUNT(*) FROM line WHERE k IN (SELECT survey FROM (SELECT upper(drug) AS d, survey FROM sent) t WHERE d = 'A')",
        "SELECT COUNT(*) FROM line l WHERE EXISTS (SELECT 1 FROM sent s WHERE s.survey = l.survey AND s.drug > 'a')",
    ):
        with pytest.raises(Refusal, match="randomised"):
            few.session.execute(sql)


def check_no_copies(few: Few) -> None:
    for sql in (
        "SELECT COUNT(*) FROM sent s JOIN line l ON s.survey = l.survey WHERE s.drug = 'a'",
        "SELECT s.drug, COUNT(*) FROM sent s, line l GROUP BY s.drug",
        "SELECT COUNT(*) FROM person p JOIN person q ON p.id = q.id WHERE p.ill AND q.ill",
    ):
        with pytest.raises(Refusal, match="randomised"):
            few.session.execute(sql)


def check_one_error_for_one_estimate(few: Few) -> None:
    """Two estimates of one row have errors of their own: the bar of their difference is about √2 times one's."""
    check_bars(few)
    few.session.execute("SET dpsql.intervals = 0.95")
    row = few.session.execute(
        "SELECT a, b, a - b AS d FROM (SELECT COUNT(*) FILTER (WHERE drug = 'a') AS a,"
        " COUNT(*) FILTER (WHERE drug = 'b') AS b FROM sent) AS t"
    ).rows[0]
    one, two, both = (row[i + 2] - row[i + 1] for i in (0, 3, 6))
    assert 1.25 < both / ((one + two) / 2) < 1.6


@pytest.mark.parametrize("check", [check_estimates, check_bars, check_no_other_use, check_no_copies,
                                   check_one_error_for_one_estimate])  # fmt: skip
def test_it_holds(few: Few, check: Callable[[Few], None]) -> None:
    check(few)


def test_the_inverse_holds() -> None:
    check_the_inverse()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_person_moves_a_release_by_more_than_its_claim(few: Few, sql: str) -> None:
    """Small databases with each person in turn taken out: the exact integers of the printed SQL."""
    plan = few.session.explain(sql).plan
    for seed in range(tried(1, 6)):
        people = people_of(seed)
        whole = measured(few, sql, people)
        for gone in people:
            without = measured(few, sql, [one for one in people if one is not gone])
            for number, measurement in enumerate(plan.releases[0].measurements):
                keys = whole[number].keys() | without[number].keys()
                none = (measurement.empty_value,) * measurement.size
                moved = sum(
                    abs(a - b)
                    for key in keys
                    for a, b in zip(whole[number].get(key, none), without[number].get(key, none), strict=True)
                )
                assert moved <= measurement.sensitivity


def measured(few: Few, sql: str, people: list[tuple[object, ...]]) -> list[dict[object, tuple[int, ...]]]:
    """Return the exact integers of each measurement by group, from the printed SQL itself."""
    (release,) = few.session.explain(sql).plan.releases
    found: list[dict[object, tuple[int, ...]]] = [{} for _ in release.measurements]
    keys = len(release.release.keys)
    with empty_duckdb() as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, town VARCHAR, drug VARCHAR, ill BOOLEAN NOT NULL)"
        )
        insert(connection, "person", people)
        for query in release.queries(tuple(range(len(release.measurements)))):
            for row in connection.execute(query.sql).fetchall():
                place = keys
                for number in range(len(release.measurements)):
                    size = release.measurements[number].size
                    found[number][row[:keys]] = tuple(int(x) for x in row[place : place + size])
                    place += size
    return found


# --- the mutants -------------------------------------------------------------------------------------------

Mutant = tuple[Callable[[Patch], None], Callable[[Few], None]]


def _planted(function: Callable[..., object], old: str, new: str) -> Callable[[Patch], None]:
    return lambda patch: plant(patch, function, (old, new))


MUTANTS: dict[str, Mutant] = {
    "weights of no are those of yes": (
        _planted(randomized_response.Channel.weights, "self.yes not in chosen", "False"),
        lambda few: check_the_inverse(),
    ),
    "one missed value for all of the set": (
        _planted(randomized_response.Channel.weights, "missed = len(chosen) * self.q", "missed = Fraction(0)"),
        lambda few: check_the_inverse(),
    ),
    "weights of two columns are those of one": (
        _planted(bind_estimates.Estimator.parts, "weight *= factor", "weight = factor"),
        check_estimates,
    ),
    "unknown counts as true": (
        _planted(bind_estimates.chosen_by, "is True", "is not False"),
        check_estimates,
    ),
    "no own variance": (
        _planted(bind_estimates._EstimateBuilder._measure, "weight**2", "weight"),
        check_bars,
    ),
    "no own variance of groups": (
        _planted(bind_estimates._inverted, "power = 1 + i % 2", "power = 1"),
        check_bars,
    ),
    "one error for all estimates": (
        _planted(bind_estimates._EstimateBuilder._marked, "place * _MOST_AT + self._numbers % _MOST_AT", "0"),
        check_one_error_for_one_estimate,
    ),
    "the whole is not checked": (
        lambda patch: patch.setattr(bind_select, "check_reported", lambda relation: None),
        check_no_other_use,
    ),
    "copies are not seen": (
        lambda patch: patch.setattr(bind_estimates, "stands_once", lambda *given: True),
        check_no_copies,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("mutant", "check"), MUTANTS.values(), ids=MUTANTS)
def test_each_fault_is_seen(
    few: Few, monkeypatch: Patch, mutant: Callable[[Patch], None], check: Callable[[Few], None]
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(few)

"""Values that noise must not bring about, and notes that say which groups an answer has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

import dpsql
from dpsql.cli.application import program
from dpsql.engine import Session
from dpsql.engine.answer import GroupNote, OnceNote
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import NothingShown, Refusal
from dpsql.mechanisms import Law
from dpsql.policy import load_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import long_where
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 100
delta = 1e-6
[defaults]
epsilon = 1
max_epsilon = 10
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 9] }
floor = { bounds = [1, 3] }
city = { values = ["north", "south"] }
job = {}
well = { values = [true] }
shift = { bounds = [1, 3] }
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, floor INTEGER NOT NULL, city TEXT, job TEXT,
                     well BOOLEAN, shift INTEGER NOT NULL DEFAULT 1 CHECK (shift BETWEEN 1 AND 3));
INSERT INTO person (id, age, floor, city, job) SELECT i, i % 4, 1 + i % 3, 'north', CASE WHEN i < 300 THEN 'clerk' ELSE 'rare' || i END
FROM range(302) AS r(i);
"""


class Shifted(ZeroNoise):
    """A noise that is one number everywhere."""

    def __init__(self, number: int) -> None:
        self.number = number

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, self.number, dtype=np.int64)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return make(tmp_path)


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(SCHEMA)
    path = tmp_path / "people.toml"
    path.write_text(POLICY)
    open_ledger(load_policy(path), create=True).close()
    return path


Open = Callable[[int], Session]


@pytest.fixture
def opened(people: Path) -> Iterator[Open]:
    dataset = Dataset.open(people)
    yield lambda noise: Session(dataset, is_shared=True, _noise=Shifted(noise))
    dataset.close()


# --- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0, -5])
def test_an_average_of_nobody_is_null(opened: Open, noise: int) -> None:
    session = opened(noise)
    session.execute("SET dpsql.intervals = 0.95")
    nobody = "FROM person WHERE city = 'south'"
    assert session.execute(f"SELECT AVG(age) AS a {nobody}").rows == [(None, None, None)]
    assert session.execute(f"SELECT COALESCE(AVG(age), -1) {nobody}").rows[0][0] == -1
    assert session.execute(f"SELECT SUM(age), COUNT(age) {nobody}").rows[0][0] is not None


_OF_PAIRS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_AVGX", "REGR_AVGY",
             "REGR_SXX", "REGR_SYY", "REGR_SXY")  # fmt: skip


@long_where(lambda noise, call: noise == 0 and call not in ("VAR_POP(age)", "CORR(age, floor)"))
@pytest.mark.parametrize("noise", [0, -5])
@pytest.mark.parametrize(
    "call",
    [*(f"{name}(age)" for name in ("STDDEV", "STDDEV_POP", "VAR_SAMP", "VAR_POP")), "VAR_POP(1 + 0 * age)",
     *(f"{name}(age, floor)" for name in _OF_PAIRS)],
)  # fmt: skip
def test_what_is_computed_of_nobodys_values_is_null_as_an_average_is(
    opened: Open, noise: int, call: str
) -> None:
    """And its bar with it: else an empty group had the middle of the range (soundness.md 1.4, 1.22)."""
    session = opened(noise)
    session.execute("SET dpsql.intervals = 0.95")
    assert session.execute(f"SELECT {call} AS a FROM person WHERE city = 'south'").rows == [
        (None, None, None)
    ]
    groups = session.execute(f"SELECT city, {call} AS a FROM person GROUP BY city ORDER BY city").rows
    assert [row[1:] for row in groups if row[0] != "north"] == [(None, None, None)]


def test_a_spread_of_somebody_is_not_null(opened: Open) -> None:
    (row,) = (
        opened(0)
        .execute("SELECT STDDEV_POP(age), COVAR_POP(age, floor), REGR_SXX(age, floor) FROM person")
        .rows
    )
    assert float(row[0]) == pytest.approx(1.12, abs=0.05)
    assert None not in row


def test_an_average_of_somebody_is_not(opened: Open) -> None:
    assert opened(0).execute("SELECT AVG(age) FROM person WHERE id < 300").rows[0][0] == pytest.approx(
        1.5, abs=0.1
    )
    cities = (
        opened(0).execute("SELECT city, AVG(age), COUNT(*) FROM person GROUP BY city ORDER BY 2 DESC, 1").rows
    )
    assert [row[0] for row in cities if row[1] is not None] == ["north"]
    assert len(cities) == 2


def test_what_is_asked_with_an_average_of_nobody_is_total(opened: Open) -> None:
    """NULL goes on as any NULL: through arithmetic, comparison, and down again as an intermediate result."""
    session = opened(0)
    nobody = "(SELECT AVG(age) FROM person WHERE city = 'south')"
    assert session.execute(f"SELECT COUNT(*) FROM person WHERE age > {nobody}").rows == [(0,)]
    assert session.execute(f"SELECT SUM(LEAST(age, {nobody})) FROM person").rows[0][0] == pytest.approx(
        452, abs=1
    )


@pytest.mark.parametrize(
    ("column", "most"), [("age", 10), ("floor", 3), ("city", 2), ("age % 2 = 0", 2), ("job", None)]
)
def test_distinct_values_are_as_many_as_can_be(opened: Open, column: str, most: int | None) -> None:
    sql = f"SELECT COUNT(DISTINCT {column}) AS n FROM person"
    for noise in (10**6, -(10**6)):
        session = opened(noise)
        session.execute("SET dpsql.intervals = 0.95")
        session.execute("SET dpsql.reuse = off")
        ((found, low, high),) = session.execute(sql).rows
        assert found == (max(0, noise) if most is None else most if noise > 0 else 0) or most is None
        assert found >= 0
        assert 0 <= low <= found <= high
        assert most is None or high <= most


def test_the_bars_of_distinct_values_are_those_of_the_noise_within_their_ends(opened: Open) -> None:
    session = opened(0)
    session.execute("SET dpsql.intervals = 0.95")
    assert session.execute("SELECT COUNT(DISTINCT age) AS n FROM person").rows == [(4, 1, 7)]
    assert session.execute("SELECT COUNT(DISTINCT city) AS n FROM person").rows == [(1, 0, 2)]


def test_a_number_is_cut_to_an_average_that_was_drawn(opened: Open) -> None:
    """The bounds are those of what is averaged: no other declaration is needed."""
    sql = "SELECT SUM(LEAST(age, (SELECT AVG(floor) FROM person))) FROM person"
    session = opened(0)
    (_, outer) = session.explain(sql).plan.releases
    lattice = outer.measurements[0].lattice
    assert lattice is not None
    assert (lattice.lo, lattice.hi) == (0, 9)
    assert session.execute(sql).rows[0][0] == pytest.approx(76 + 2 * 75 + 2 * 75, abs=1)
    (_, outer) = session.explain("SELECT SUM((SELECT AVG(floor) FROM person) * 2) FROM person").plan.releases
    lattice = outer.measurements[0].lattice
    assert lattice is not None
    assert (lattice.lo, lattice.hi) == (2, 6)


def test_a_subquery_without_ends_is_refused_with_what_to_write(opened: Open) -> None:
    count = "(SELECT COUNT(*) FROM person)"
    session = opened(0)
    with pytest.raises(dpsql.DpsqlError) as refused:
        session.execute(f"SELECT SUM(LEAST(age, {count})) FROM person")
    assert refused.value.sqlstate == "PV201"
    assert refused.value.hint == "give the subquery's value two ends: GREATEST(low, LEAST(high, (SELECT …)))"
    written = (
        refused.value.hint.split(": ")[1]
        .replace("low", "0")
        .replace("high", "9")
        .replace("(SELECT …)", count)
    )
    assert session.execute(f"SELECT SUM(LEAST(age, {written})) FROM person").rows[0][0] > 0


# --- notes ----------------------------------------------------------------------------------------------------

NULL = '"age" may be NULL, so NULL is one of its groups whether or not it occurs; WHERE … IS NOT NULL leaves it out'
BY_AGE = "SELECT age, COUNT(*) FROM person GROUP BY age"
BY_JOB = "SELECT job, COUNT(*) FROM person GROUP BY job"
EMPTY = "SELECT job, COUNT(*) FROM person WHERE age = 9 GROUP BY job"


READ = "texts are cut to 1,000 characters: those that begin alike are one group"
"""Said once in a session, of the first key that is a text."""


def group_notes(session: Session, sql: str) -> list[str]:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return [note for note in receipt.notes if isinstance(note, GroupNote)]


def test_a_group_of_null_is_explained_once(opened: Open) -> None:
    session = opened(0)
    assert group_notes(session, BY_AGE) == [NULL]
    assert isinstance(group_notes(opened(0), BY_AGE)[0], OnceNote)
    for again in (BY_AGE, f"{BY_AGE} ORDER BY 1", "SELECT age, SUM(floor) FROM person GROUP BY age"):
        assert group_notes(session, again) == []
    assert f"note: {NULL[:40]}" in session.explain(BY_AGE).text()
    for without in (
        "SELECT floor, COUNT(*) FROM person GROUP BY floor",
        "SELECT age, COUNT(*) FROM person WHERE age IS NOT NULL GROUP BY age",
        "SELECT age, COUNT(*) FROM person WHERE age IN (1, 2) GROUP BY age",
        "SELECT city, COUNT(*) FROM person GROUP BY city",
    ):
        assert group_notes(opened(0), without) == []


def test_remainders_below_0_are_explained_where_nothing_says_that_there_are_none(opened: Open) -> None:
    said = (
        "groups below 0 are listed, as nothing says that id is not: WHERE id >= 0 leaves them out, and so do bounds that the "
        "owner declares, or a CHECK"
    )
    session = opened(0)
    by = "SELECT {} AS k, COUNT(*) FROM person{} GROUP BY 1"
    assert [row[0] for row in session.execute(by.format("id % 3", " WHERE TRUE")).rows] == [-2, -1, 0, 1, 2]
    for key in ("id % 3", "mod(id + 1, 3) + 1"):
        assert said in group_notes(opened(0), by.format(key, ""))
    for key, where in (
        ("id % 3", " WHERE id >= 0"),
        ("abs(id) % 3", ""),
        ("floor % 2", ""),
        ("shift % 2", ""),
    ):
        assert said not in group_notes(opened(0), by.format(key, where))


def test_groups_that_are_found_say_how_many_people_they_need(opened: Open) -> None:
    session = opened(0)
    (release,) = session.explain(BY_JOB).plan.releases
    assert release.tau == 21
    said = ['groups by "job" with fewer than about 21 people are not shown']
    assert session.execute(BY_JOB).rows == [("clerk", 300)]
    assert group_notes(session, BY_JOB) == said
    assert group_notes(opened(0), f"{BY_JOB} HAVING COUNT(*) < 0") == [*said, READ]


def test_what_a_stored_answer_needed_is_said_of_its_own_draw(opened: Open) -> None:
    """Asked again at less epsilon, it is answered by the draw that is there."""
    session = opened(0)
    *said, read = group_notes(session, BY_JOB)
    assert read == READ
    session.execute("SET dpsql.epsilon = 0.1")
    assert session.explain(BY_JOB).plan.releases[0].tau != 21
    assert group_notes(session, BY_JOB) == said


def test_an_answer_without_groups_says_why(opened: Open) -> None:
    session = opened(0)
    assert session.execute(EMPTY).rows == []
    said = [
        'no group by "job" is shown: none has about 21 people or more; groups that are listed, in the policy or in '
        "WHERE key IN (…), are shown however few people they have"
    ]
    assert group_notes(session, EMPTY) == said
    assert group_notes(session, EMPTY) == said, "also from the store"
    assert (
        group_notes(session, "SELECT job, COUNT(*) FROM person WHERE age = 9 AND job IN ('x') GROUP BY job")
        == []
    )


def test_an_answer_without_groups_is_an_error_where_that_is_asked_for(opened: Open) -> None:
    session = opened(0)
    session.execute("SET dpsql.on_empty = error")
    said = []
    for _ in range(2):  # drawn, and from the store
        with pytest.raises(NothingShown) as error:
            session.execute(EMPTY)
        assert error.value.sqlstate == "P0002"
        assert error.value.message.startswith('no group by "job" is shown: none has about 21 people')
        said.append(error.value.cost)
    assert str(said[0]).startswith("epsilon 1,")
    assert said[1] is None
    assert session.execute("SELECT COUNT(*) FROM person").rows
    session.execute("RESET dpsql.on_empty")
    assert session.execute(EMPTY).rows == []
    with pytest.raises(Refusal):
        session.execute("SET dpsql.on_empty = on")


def test_where_an_analyst_reads_it(people: Path) -> None:
    done = CliRunner().invoke(program, ["-P", str(people), "query", EMPTY])
    assert done.exit_code == 0
    assert 'NOTE: no group by "job" is shown' in done.stderr
    assert "NOTE" not in done.stdout
    with dpsql.connect(people) as connection:
        cursor = connection.execute(BY_AGE)
        assert cursor.receipt is not None
        assert NULL in cursor.receipt.notes


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT age, COUNT(*) FROM person GROUP BY ROLLUP (age)", '"age"'),
        ("SELECT age, city, COUNT(*) FROM person GROUP BY CUBE (age, city, shift)", '"age" or "city"'),
        ("SELECT well, COUNT(*) FROM person GROUP BY ROLLUP (well)", '"well"'),
        ("SELECT age > 3, COUNT(*) FROM person GROUP BY ROLLUP (age > 3)", None),
        ("SELECT shift, COUNT(*) FROM person GROUP BY ROLLUP (shift)", None),  # the engine holds the bounds
        ("SELECT floor, COUNT(*) FROM person GROUP BY floor", None),  # no total is shown
        (
            "SELECT (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM person GROUP BY ROLLUP (city)) AS t) AS m",
            '"city"',
        ),
    ],
)
def test_a_total_of_declared_groups_says_what_it_leaves_out(opened: Open, sql: str, keys: str | None) -> None:
    """Rows whose key is outside its declared bounds or values are in no cell, and so in no total (soundness.md 1.18)."""
    receipt = opened(0).execute(sql).receipt
    assert receipt is not None
    said = [note for note in receipt.notes if note.startswith("totals of")]
    assert len(said) == (keys is not None)
    assert keys is None or f"leave out rows whose {keys} is outside" in said[0]


# --- bars, as tools want them ------------------------------------------------------------------------------


def test_the_columns_of_a_bar_have_the_names_that_are_set(opened: Open) -> None:
    session = opened(0)
    session.execute("SET dpsql.intervals = 0.95")
    assert [column.name for column in session.execute("SELECT COUNT(*) AS n FROM person").columns] == [
        "n", "n_low", "n_high",
    ]  # fmt: skip
    session.execute("SET dpsql.interval_names = '%__yhat_lower %__yhat_upper'")
    named = session.execute("SELECT COUNT(*) AS n FROM person")
    assert [column.name for column in named.columns] == ["n", "n__yhat_lower", "n__yhat_upper"]
    assert session.execute("SHOW dpsql.interval_names").rows == [("%__yhat_lower %__yhat_upper",)]
    session.execute("RESET dpsql.interval_names")
    assert session.execute("SHOW dpsql.interval_names").rows == [("%_low %_high",)]


@pytest.mark.parametrize("names", ["%_low", "%_a %_a", "% %_b", "%a%b %c", "a b", "%_a %_b %_c", ""])
def test_names_of_bars_that_are_none_are_refused(opened: Open, names: str) -> None:
    with pytest.raises(Refusal) as error:
        opened(0).execute(f"SET dpsql.interval_names = '{names}'")
    assert error.value.sqlstate == "22023"


def test_half_a_bar_and_a_number_with_its_bar(opened: Open) -> None:
    session = opened(0)
    low, high, half, text, number = session.execute(
        "SELECT dp_low(n), dp_high(n), dp_bar(n), dp_text(n), n FROM (SELECT COUNT(*) AS n FROM person) AS t"
    ).rows[0]
    assert half == (high - low) / 2 > 0
    assert text == f"{number} ± {math.ceil(half)}"
    nobody = "FROM person WHERE city = 'south'"
    assert session.execute(f"SELECT dp_text(AVG(age)), dp_bar(AVG(age)), dp_text(7) {nobody}").rows == [
        (None, None, "7")
    ]
    mean = session.execute("SELECT AVG(age) / 1000 AS a, dp_text(AVG(age) / 1000) FROM person").rows[0]
    assert str(mean[1]).startswith(str(round(float(mean[0]), 2))[:3])
    assert " ± " in str(mean[1])
    with pytest.raises(Refusal):
        session.execute("SELECT dp_bar(dp_low(COUNT(*))) FROM person")

"""Values that are chosen by rank beside all that is done with noise: bars, sums of cells, stored groupings,
accuracies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import RankNote, Session
from dpsql.engine.dataset import open_ledger
from dpsql.errors import Refusal
from dpsql.mechanisms import Rank
from dpsql.plan.privacy import release_boundary
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import load_policy
from dpsql.postprocess import bars
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 100
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
city = { values = ["a", "b", "c"] }
street = {}
[tables.place]
public = true
"""
ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, city VARCHAR NOT NULL, street VARCHAR);
INSERT INTO person SELECT i, 10 + i % 3 * 40 + i % 7, chr((97 + i % 3)::INTEGER), 's' || i % 2 FROM range(9000) AS t(i);
CREATE TABLE place (name VARCHAR PRIMARY KEY);
INSERT INTO place VALUES ('s0'), ('s7');
"""
MEDIANS = "SELECT city, MEDIAN(age) AS m FROM person GROUP BY city"
Patch = pytest.MonkeyPatch


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(ROWS)
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    return tmp_path / "people.toml"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open(make(tmp_path)) as opened:
        yield opened


def charged(session: Session, sql: str) -> Fraction:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return receipt.epsilon


def shown(session: Session, sql: str) -> list[dict[str, object]]:
    answer = session.execute(sql)
    names = [column.name for column in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows]


# --- what a receipt says ------------------------------------------------------------------------------------

FRACTIONS = "SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age) AS q, MEDIAN(age) AS m FROM person"


def ranks_of(session: Session, sql: str) -> list[str]:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return [note for note in receipt.notes if isinstance(note, RankNote)]


def test_a_receipt_says_how_far_a_rank_may_be(session: Session) -> None:
    """121 candidates, epsilon 0.1, q = 2: 1 / (0.1 / 2) / 2 · 2 · ln(121 · 20) = 10 · ln 2420 = 77.9 rows."""
    said = "median(age): the value is within 78 rows of the true median, at 95 %"
    assert ranks_of(session, OTHERS[0]) == [said]
    assert ranks_of(session, OTHERS[0]) == [said]  # from the store
    session._noise = ZeroNoise()
    session.execute("SELECT COUNT(age) FROM person")
    # 9000 people, and a bar of ± 30
    known = [f"{said}: 0.87 % of the rows, of which there are 8,970 or more"]
    assert ranks_of(session, OTHERS[0]) == known
    assert ranks_of(session, OTHERS[0]) == known  # this one is remembered
    assert session.recall(OTHERS[0]) is not None


def test_of_a_finer_draw_that_answers_it_says_the_rank(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 1.0")
    fine = ranks_of(session, OTHERS[0])
    session.execute("SET dpsql.epsilon = 0.1")
    assert ranks_of(session, OTHERS[0]) == fine == [
        "median(age): the value is within 8 rows of the true median, at 95 %"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT MIN(age) FROM person", "min(age): at most 312 rows are smaller than the value, at 95 %"),
        ("SELECT MODE() WITHIN GROUP (ORDER BY age) FROM person",
         "mode(age): the value has at most 78 rows fewer than the most frequent one"),
        ("SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC) FROM person",
         "percentile_disc(age): the value is within 141 rows of the true percentile 0.1"),
        (FRACTIONS, "percentile_cont(age): each of 3 values is within"),
    ],
)  # fmt: skip
def test_each_kind_has_its_words(session: Session, sql: str, said: str) -> None:
    (note,) = ranks_of(session, sql)
    assert note.startswith(said)
    assert note.endswith(", at 95 %")


BY_AGE = {
    "by value": "SELECT age, COUNT(*) FROM person GROUP BY age",
    "by blocks of 4": "SELECT age / 4, COUNT(*) FROM person GROUP BY 1",
}


@pytest.mark.parametrize("name", BY_AGE)
def test_a_stored_histogram_narrows_how_far_a_rank_may_be(session: Session, name: str) -> None:
    """3,000 people of each city, of seven ages: there nearly all others miss by hundreds of rows."""
    session._noise = ZeroNoise()
    session.execute("SET dpsql.epsilon = 1.0")
    session.execute(BY_AGE[name])
    session.execute("SET dpsql.epsilon = 0.1")
    (note,) = ranks_of(session, OTHERS[0])
    rows = re.fullmatch(
        rf"median\(age\): the value is within (\d+) rows of the true median, at 95 %, as stored counts {name} show: "
        r".* % of the rows, of which there are 8,\d+ or more",
        note,
    )
    assert rows is not None, note
    assert 10 <= int(rows[1]) < 60
    (note,) = ranks_of(session, "SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) AS m FROM person")
    assert "as stored counts" in note


def test_a_histogram_of_groups_narrows_ranks_in_groups(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 1.0")
    session.execute("SELECT city, age, COUNT(*) FROM person GROUP BY city, age")
    session.execute("SET dpsql.epsilon = 0.1")
    (note,) = ranks_of(session, MEDIANS)
    assert ", as stored counts by value show" in note


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(age) FROM person WHERE city = 'a'",
        "SELECT MEDIAN(age) FILTER (WHERE city = 'a') FROM person",
        "SELECT MEDIAN(age + 1) FROM person",
        "SELECT MIN(age) FROM person",
        "SELECT MODE() WITHIN GROUP (ORDER BY age) FROM person",
        FRACTIONS,
        MEDIANS,
    ],
)
def test_a_histogram_of_other_rows_or_of_other_choices_does_not(session: Session, sql: str) -> None:
    session.execute("SET dpsql.epsilon = 1.0")
    session.execute(BY_AGE["by value"])
    session.execute("SET dpsql.epsilon = 0.1")
    assert all("stored counts" not in note for note in ranks_of(session, sql))


@pytest.mark.parametrize("count", ["COUNT(*)", "COUNT(age), AVG(age)"])
def test_a_count_in_the_same_statement_gives_the_share(session: Session, count: str) -> None:
    (note,) = ranks_of(session, f"SELECT city, MEDIAN(age), {count} FROM person GROUP BY city")
    assert " % of the rows of a group, of which there are 2," in note


@pytest.mark.parametrize(
    "count", ["COUNT(*) FILTER (WHERE city = 'b')", "COUNT(DISTINCT age)", "COUNT(street)"]
)
def test_a_count_of_other_rows_does_not(session: Session, count: str) -> None:
    (note,) = ranks_of(session, f"SELECT MEDIAN(age), {count} FROM person")
    assert note.endswith(", at 95 %")


# --- bars ---------------------------------------------------------------------------------------------------

WITHOUT_BARS = {
    "alone": "SELECT MEDIAN(age) AS m, MAX(age) AS n FROM person",
    "groups": "SELECT city, MIN(age) AS m FROM person GROUP BY city",
    "arithmetic": "SELECT MEDIAN(age) + COUNT(*) AS m, ROUND(CAST(MEDIAN(age) AS NUMERIC), 1) AS n FROM person",
    "window": "SELECT city, SUM(MEDIAN(age)) OVER () AS m FROM person GROUP BY city",
    "sum": f"SELECT SUM(m) AS m, MAX(m) AS n FROM ({MEDIANS}) AS t",
    "rollup": "SELECT city, MEDIAN(age) AS m FROM person GROUP BY ROLLUP (city)",
    "limit": f"{MEDIANS} ORDER BY m DESC LIMIT 2",
    "scalar": "SELECT 1 + (SELECT MEDIAN(age) FROM person) AS m",
    "found": "SELECT street, PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) AS m FROM person GROUP BY street",
    "union": "SELECT MEDIAN(age) AS m FROM person UNION ALL SELECT MIN(age) FROM person",
}


@pytest.mark.parametrize("form", WITHOUT_BARS)
def test_what_is_made_of_a_chosen_value_has_no_bars(session: Session, form: str) -> None:
    """The columns are there, and their values NULL."""
    session.execute("SET dpsql.intervals = 0.9")
    rows = shown(session, WITHOUT_BARS[form])
    assert rows
    for row in rows:
        bars = [value for name, value in row.items() if name.endswith(("_low", "_high"))]
        assert len(bars) == 2 * ("m" in row) + 2 * ("n" in row)
        assert set(bars) == {None}, row


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city, MEDIAN(age) AS m, COUNT(*) AS n FROM person GROUP BY city",
        "SELECT city, MEDIAN(age) AS m, SUM(COUNT(*)) OVER () AS n FROM person GROUP BY city",
        "SELECT SUM(m) AS m, SUM(n) AS n FROM (SELECT city, MEDIAN(age) AS m, COUNT(*) AS n FROM person GROUP BY city) AS t",
        "SELECT street, MEDIAN(age) AS m, COUNT(*) AS n FROM person GROUP BY street",
    ],
)
def test_what_stands_beside_it_keeps_its_bars(session: Session, sql: str) -> None:
    session.execute("SET dpsql.intervals = 0.9")
    for row in shown(session, sql):
        assert row["m_low"] is row["m_high"] is None
        assert row["n_low"] < row["n"] < row["n_high"]  # type: ignore[operator]


def test_a_mutant_that_simulates_a_chosen_value(session: Session, monkeypatch: Patch) -> None:
    """No noise is on it, so there is nothing to draw: it ends the statement, and shows no bars."""
    session.execute("SET dpsql.intervals = 0.9")
    plant(monkeypatch, bars._Lifter._release, ("isinstance(one, Chosen)", "False"))
    with pytest.raises(AssertionError, match="only what was added"):
        session.execute(WITHOUT_BARS["sum"])


# --- sums of cells ------------------------------------------------------------------------------------------

ROLLUP = "SELECT city, MEDIAN(age) AS m, COUNT(*) AS n FROM person GROUP BY ROLLUP (city)"


def check_sets(session: Session) -> None:
    session._noise = ZeroNoise()
    answer = session.execute(ROLLUP)
    assert {row[0]: row[2] for row in answer.rows} == {"a": 3000, "b": 3000, "c": 3000, None: 9000}
    medians = {row[0]: row[1] for row in answer.rows}
    assert medians["a"] < 20 < 50 < medians["b"] < 60 < 90 < medians["c"]  # type: ignore[operator]
    assert medians[None] == medians["b"]
    assert answer.receipt is not None
    assert any("by its rank is chosen for each grouping set" in note for note in answer.receipt.notes)


def test_each_grouping_set_has_a_choice_of_its_own(session: Session) -> None:
    check_sets(session)


def test_a_mutant_that_adds_chosen_values_up(session: Session, monkeypatch: Patch) -> None:
    monkeypatch.setattr(release_boundary, "adds_up", lambda call, keys, rows: True)
    with pytest.raises(AssertionError, match="no sum of others"):
        check_sets(session)


# --- the store ----------------------------------------------------------------------------------------------

OTHERS = (
    "SELECT MEDIAN(age) FROM person",
    "SELECT MEDIAN(age) FROM person WHERE city = 'a'",
    "SELECT city, MEDIAN(age) FROM person WHERE city IN ('a', 'b') GROUP BY city",
)


def check_stored(session: Session) -> None:
    """A stored grouping of counts answers a filter; of chosen values it answers itself alone."""
    assert charged(session, MEDIANS)
    assert not charged(session, MEDIANS)
    assert all(charged(session, sql) for sql in OTHERS)


def test_a_chosen_value_is_never_served_from_other_groups(session: Session) -> None:
    check_stored(session)


@pytest.mark.parametrize(
    ("draws_others", "error", "said"),
    [(True, ValueError, "cannot reshape array of size 3"), (False, TypeError, "no noise is on it")],
)
def test_a_mutant_that_stores_it_as_a_grouping(
    session: Session, monkeypatch: Patch, draws_others: bool, error: type[Exception], said: str
) -> None:
    """The kind of its query keeps it out, and its law as well; with both forgotten, that it has no value of the rows of
    all other groups, which a grouping is drawn with (soundness.md 1.34); and where none is, that a rank has no noise.
    """
    plant(monkeypatch, ReleasePlan.family, ("measurement.query is not BoundingQuery.SCALED", "False"))
    if not draws_others:
        monkeypatch.setattr(ReleasePlan, "axes", None)
    check_stored(session)
    monkeypatch.setattr(Rank, "is_additive", True)
    session.execute("SET dpsql.epsilon = 1.0")
    with pytest.raises(error, match=said):  # a grouping that is drawn is read together with those before it
        charged(session, "SELECT city, MIN(age) FROM person GROUP BY city")


# --- accuracies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(age) FROM person",
        "SELECT COUNT(*), MAX(age) FROM person",
        "SELECT city, MIN(age) FROM person GROUP BY city",
    ],
)
def test_no_accuracy_can_be_asked_for_of_a_rank(session: Session, sql: str) -> None:
    session.execute("SET dpsql.accuracy = 50")
    with pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert caught.value.sqlstate == "PV301"
    assert caught.value.position is not None
    assert caught.value.message == "an accuracy cannot be asked for of a value that is chosen by its rank"
    with pytest.raises(Refusal):
        session.explain(sql)


def test_the_hint_is_what_the_largest_epsilon_gives(session: Session) -> None:
    session.execute("SET dpsql.accuracy = 50")
    with pytest.raises(Refusal) as caught:
        session.execute(OTHERS[0])
    # 121 candidates, ages 0 to 120: 2 / q · ln(121 / 0.05) / 1 = ln(2420) = 7.79, in whole rows
    assert (
        caught.value.hint
        == "within 8 rows of the wanted one is what epsilon 1 gives; SET dpsql.accuracy = off"
    )


# --- which groups there are ---------------------------------------------------------------------------------


def test_groups_that_the_filter_excludes_are_not_answered(session: Session) -> None:
    rows = session.execute("SELECT city, MEDIAN(age) FROM person WHERE city <> 'a' GROUP BY city").rows
    assert sorted(str(row[0]) for row in rows) == ["b", "c"]


def test_keys_of_a_public_table(session: Session) -> None:
    """The groups are the table's: one of nobody has a value too."""
    session._noise = ZeroNoise()
    sql = "SELECT p.name, MEDIAN(v.age) AS m FROM place AS p JOIN person AS v ON v.street = p.name GROUP BY p.name"
    found = {row[0]: row[1] for row in session.execute(sql).rows}
    assert set(found) == {"s0", "s7"}
    assert 50 < found["s0"] < 60  # type: ignore[operator]
    assert found["s7"] == 0  # of nobody: without noise the first of candidates that are all alike

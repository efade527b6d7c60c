"""Bars of medians and percentiles: when there are some, what they are made of, and that they hold the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.engine import RankNote, Session
from dpsql.engine import notes as engine_bars
from dpsql.engine.dataset import open_ledger
from dpsql.mechanisms import SampledNoise
from dpsql.plan.measures.formulas import Chosen
from dpsql.plan.measures.ranks import Ends, SplitMeasurement, ValueBar
from dpsql.policy import load_policy
from dpsql.release import answer_bars
from dpsql.release.privatise import Exact, draw, privatise
from dpsql.release.released import Groups
from dpsql.testing.injected_noise import SeededSource, ZeroNoise
from dpsql.tests.support.length import tried

Patch = pytest.MonkeyPatch
POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 1000
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
pay = { bounds = [0, 1000], step = 0.01 }
rent = { bounds = [0, 10000], scale = "log" }
city = { values = ["a", "b", "c"] }
street = {}
born = { bounds = [1900-01-01, 2020-12-31] }
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 5
[tables.visit.columns]
cost = { bounds = [0, 500] }
"""
ROWS = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, pay DOUBLE NOT NULL, city VARCHAR NOT NULL,
    street VARCHAR NOT NULL, born DATE NOT NULL, rent NUMERIC(10, 2) NOT NULL);
INSERT INTO person SELECT i, CASE WHEN i % 10 = 0 THEN NULL WHEN i % 5 < 3 THEN 40 ELSE i * 7919 % 121 END,
    1000 * pow((i * 104729 % 100003) / 100003.0, 3), chr((97 + i % 3)::INTEGER), 's' || i % 2, DATE '1950-01-01' + i::INTEGER,
    300.25 FROM range(9000) AS t(i);
CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), cost INTEGER NOT NULL);
INSERT INTO visit SELECT i % 3000, i * 48271 % 501 FROM range(6000) AS t(i);
INSERT INTO visit SELECT 0, 500 FROM range(300);
"""
MEDIAN = "SELECT MEDIAN(age) AS m FROM person"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Give what opens a session with bars at 95 %, on a pure or a zCDP dataset."""
    with ExitStack() as stack:

        def open_it(**changes: str) -> Session:
            with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
                connection.execute(ROWS)
            text = POLICY
            if changes.get("accounting") == "zcdp":
                text = text.replace("epsilon = 1000", 'epsilon = 100\naccounting = "zcdp"')
            (tmp_path / "people.toml").write_text(text)
            open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
            session = stack.enter_context(Session.open(tmp_path / "people.toml"))
            session.execute("SET dpsql.intervals = 0.95")
            return session

        yield open_it


def ask(session: Session, sql: str) -> tuple[dict[str, Any], Fraction, list[str]]:
    """Return an answer's first row, its charge, and what it says of ranks."""
    answer = session.execute(sql)
    assert answer.receipt is not None
    names = [column.name for column in answer.columns]
    notes = [note for note in answer.receipt.notes if isinstance(note, RankNote)]
    return dict(zip(names, answer.rows[0], strict=True)), answer.receipt.epsilon, notes


# --- when there are some ------------------------------------------------------------------------------------


@pytest.mark.parametrize("accounting", ["pure", "zcdp"])
def test_a_counted_median_has_bars_at_the_same_charge(
    opened: Callable[..., Session], accounting: str
) -> None:
    session = opened(accounting=accounting)
    row, charge, notes = ask(session, MEDIAN)
    assert (row["m_low"], row["m_high"]) == (None, None)
    assert notes[-1] == (
        "median(age) has no bars: they need count(age) of the same rows and groups, a charge of its own, and then a part "
        "of this value's epsilon, which makes it less exact; SET dpsql.intervals = off asks for none"
    )
    ask(session, "SELECT COUNT(*) FROM person")  # of other rows: who has no age counts here
    assert ask(session, MEDIAN)[0]["m_low"] is None
    ask(session, "SELECT COUNT(age) FROM person")
    row, again, notes = ask(session, MEDIAN)
    assert (again, len(notes)) == (charge, 1)
    assert 0 <= row["m_low"] <= row["m"] <= row["m_high"] <= 120
    assert ask(session, MEDIAN) == (row, 0, notes)  # a repeated question is free, and shows the same


def test_the_fractions_beside_it(opened: Callable[..., Session]) -> None:
    """Two depths at 0.05 each: b = 2 · 20 · 2 rows, times the place of each fraction between its neighbours.

    Of the lower one the place is f = (1/2 - δ) / (1/2), and what it looks for is off by f of what the median is.
    """
    session = opened()
    session._noise = ZeroNoise()
    ask(session, "SELECT COUNT(age) FROM person")
    release = session.explain(MEDIAN).plan.releases[0]
    (measurement,), (formula,) = release.measurements, release.formulas
    assert isinstance(measurement, SplitMeasurement)
    assert isinstance(formula, Chosen)
    assert formula.ends is not None
    low, middle, high = measurement.shares
    assert (middle, middle - low) == (Fraction(1, 2), high - middle)
    fewest = 8100 - math.ceil(10 * math.log(1 / 0.005))  # of the 8100 with an age; its bar leaves out 0.5 %

    def needed(half: float) -> int:
        place = (0.5 - half) / 0.5
        off = 40 * (max(place, 1 - place) + place / 2)
        return math.ceil(off * math.log(2 * 121 * 4096 / (0.05 * 9 / 20))) + 2

    half = float(middle - low)
    assert needed(half) <= half * fewest
    assert needed(half - 1e-4) > (half - 1e-4) * fewest
    assert formula.ends.rows == math.floor(half * fewest) - 2
    assert "its bars from the value at 0.3" in session.explain(MEDIAN).text()


def test_at_an_end_one_side_is_the_bound(opened: Callable[..., Session]) -> None:
    session = opened()
    session.execute("SET dpsql.epsilon = 0.5")
    ask(session, "SELECT COUNT(age) FROM person")
    row, _, _ = ask(session, "SELECT PERCENTILE_DISC(0.995) WITHIN GROUP (ORDER BY age) AS m FROM person")
    assert row["m_low"] < row["m"] <= row["m_high"] == 120
    row, _, _ = ask(
        session, "SELECT PERCENTILE_DISC(0.995) WITHIN GROUP (ORDER BY age DESC) AS m FROM person"
    )
    assert 0 == row["m_low"] <= row["m"] < row["m_high"]


WITHOUT = {
    "SELECT MIN(age) AS m FROM person": "inside the end",
    "SELECT MAX(age) AS m FROM person": "inside the end",
    "SELECT PERCENTILE_CONT(0) WITHIN GROUP (ORDER BY age) AS m FROM person": "inside the end",
    "SELECT MODE() WITHIN GROUP (ORDER BY age) AS m FROM person": "its number of rows",
    "SELECT street, MEDIAN(age) AS m FROM person GROUP BY street": "the policy list",
    "SELECT MEDIAN(age) AS m FROM person WHERE age > (SELECT AVG(age) FROM person)": "wait for no subquery",
    "SELECT MEDIAN(age) AS m FROM person WHERE city = 'a'": "they need count(age)",
}


@pytest.mark.parametrize("sql", WITHOUT)
def test_why_there_are_none_is_said(opened: Callable[..., Session], sql: str) -> None:
    session = opened()
    ask(session, "SELECT COUNT(age) FROM person")
    row, _, notes = ask(session, sql)
    assert (row["m_low"], row["m_high"]) == (None, None)
    assert WITHOUT[sql] in notes[-1]
    assert notes[-1] in session.explain(sql).text().replace("\n  ", " ")


def test_too_few_rows_have_none(opened: Callable[..., Session]) -> None:
    session = opened()
    session._noise = ZeroNoise()
    few = " WHERE age = 3"
    ask(session, "SELECT COUNT(pay) FROM person" + few)
    row, _, notes = ask(session, "SELECT MEDIAN(pay) AS m FROM person" + few)
    assert row["m_low"] is None
    assert "need more rows" in notes[-1]


def test_dates_have_no_columns_of_bars_and_no_fractions_for_them(opened: Callable[..., Session]) -> None:
    session = opened()
    ask(session, "SELECT COUNT(born) FROM person")
    row, _, notes = ask(session, "SELECT MEDIAN(born) AS m FROM person")
    assert (list(row), len(notes)) == (["m"], 1)


def test_a_draw_that_may_be_further_off_shows_none(
    opened: Callable[..., Session], monkeypatch: Patch
) -> None:
    """Bars ask the laws of the draws that answer, not those of the plan."""
    session = opened()
    ask(session, "SELECT COUNT(age) FROM person")
    monkeypatch.setattr(answer_bars, "END_MISSES", Fraction(9, 40))
    row, _, _ = ask(session, MEDIAN)
    assert (row["m_low"], row["m_high"]) == (None, None)


def test_several_fractions_and_filters_each_have_their_own(opened: Callable[..., Session]) -> None:
    session = opened()
    session.execute("SET dpsql.epsilon = 1")
    ask(session, "SELECT city, COUNT(pay) FROM person GROUP BY city")
    ask(session, "SELECT city, COUNT(age) FILTER (WHERE age > 5) FROM person GROUP BY city")
    row, _, notes = ask(
        session,
        "SELECT city, MEDIAN(pay) AS a, PERCENTILE_CONT(0.8) WITHIN GROUP (ORDER BY pay) AS b, "
        "MEDIAN(age) FILTER (WHERE age > 5) AS c FROM person GROUP BY city ORDER BY city",
    )
    assert len(notes) == 2
    for name in "abc":
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert row["a_low"] < row["a_high"]


# --- they hold the truth ------------------------------------------------------------------------------------


def bars_of(session: Session, sql: str, count: int) -> Iterator[tuple[float, float]]:
    """Yield the bars of many draws of a statement of one chosen value, over the same rows."""
    release = session.explain(sql).plan.releases[0]
    (formula,), (query,) = release.formulas, release.queries((0,))
    assert isinstance(formula, Chosen)
    ends = formula.ends
    assert ends is not None
    assert formula.coordinate is not None
    with session.dataset.backend.snapshot() as snapshot:
        rows = [row for chunk in snapshot.run(query.sql, []) for row in chunk]
    exact, noise, alone = Exact(), SampledNoise(SeededSource(7)), Groups((), 1)
    exact.add_windows(0, [], list(zip(*rows, strict=True)), len(rows))
    for _ in range(count):
        values = privatise(exact, release, 0, alone, draw(release, 0, 1, noise), lambda *_: Exact()).values
        low = ends.lowest if ends.low is None else int(values[ends.low.place][0])
        high = ends.highest if ends.high is None else int(values[ends.high.place][0])
        middle = int(values[formula.coordinate.place][0])
        yield float(min(low, middle) * formula.step), float(max(high, middle) * formula.step)


ASKED = {
    "ties": ("person", "age", 0.5),
    "skew": ("person", "pay", 0.9),
    "low": ("person", "pay", 0.02),
    "weighed": ("visit", "cost", 0.75),
}


def covered(session: Session, form: str, count: int) -> float:
    """Return how often bars hold both forms of the true percentile of the rows as they are weighed."""
    table, column, share = ASKED[form]
    ask(session, f"SELECT COUNT({column}) FROM {table}")
    owner = "id" if table == "person" else "person_id"
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        rows = connection.execute(
            f"SELECT {column}, least(1, 5.0 / COUNT(*) OVER (PARTITION BY {owner})) FROM {table} "
            f"WHERE {column} IS NOT NULL ORDER BY 1"
        ).fetchall()
    values, weights = np.array([row[0] for row in rows], float), np.cumsum([float(row[1]) for row in rows])
    truths = [values[np.searchsorted(weights, share * weights[-1])]]
    if table == "person":
        truths.append(np.quantile(values, share))
    sql = f"SELECT PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {column}) FROM {table}"
    step = 0.01 if column == "pay" else 1
    good = [
        all(low - step <= truth <= high + step for truth in truths)
        for low, high in bars_of(session, sql, count)
    ]
    return float(np.mean(good))


@pytest.mark.parametrize("form", ASKED)
def test_bars_hold_the_truth(opened: Callable[..., Session], form: str) -> None:
    assert covered(opened(), form, tried(20, 60)) >= 0.95


@pytest.mark.long
@pytest.mark.parametrize(("form", "accounting"), [("skew", "pure"), ("weighed", "pure"), ("skew", "zcdp")])
def test_bars_hold_the_truth_in_many_draws(
    opened: Callable[..., Session], form: str, accounting: str
) -> None:
    assert covered(opened(accounting=accounting), form, 4000) >= 0.95


def test_a_mutant_with_a_thirtieth_of_the_width(opened: Callable[..., Session], monkeypatch: Patch) -> None:
    """What is known holds for the worst rows: bars of a tenth of the width would still do for these."""
    inner = engine_bars.bar_of

    def narrow(*given: Any) -> ValueBar | None:
        bar = inner(*given)
        return bar and ValueBar(Fraction(math.ceil(bar.half * 10_000 / 30), 10_000), bar.rows)

    monkeypatch.setattr(engine_bars, "bar_of", narrow)
    assert covered(opened(), "skew", 60) < 0.9


# --- on a log scale ---------------------------------------------------------------------------------------------


def _rent_bar(session: Session) -> dict[str, Any]:
    session.execute("SET dpsql.epsilon = 1")
    session.execute("SELECT COUNT(rent) FROM person")
    return ask(session, "SELECT MEDIAN(rent) AS m FROM person")[0]


def test_a_bar_on_a_log_scale_holds_all_that_its_ends_stand_for(opened: Callable[..., Session]) -> None:
    """All rows have one value that is none of the scale: it is told as the next one, and the bar holds it."""
    row = _rent_bar(opened())
    assert row["m"] == 300.32  # 1877 * 16
    assert row["m_low"] <= 300.25 <= row["m_high"]
    assert row["m_high"] - row["m_low"] < 0.7


def test_ends_that_stand_for_themselves_alone_miss_it(
    opened: Callable[..., Session], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Ends, "least", lambda self, chosen: chosen)
    assert _rent_bar(opened())["m_low"] > 300.25


def test_explain_says_that_the_scale_is_a_log_one(opened: Callable[..., Session]) -> None:
    session = opened()
    said = session.explain("SELECT MAX(rent) AS m FROM person")
    # 2048 rungs, 8 octaves of 1024 up to 2^19, and of 10^6 hundredths the last stretch
    assert "11171 candidates, 1/1024 apart by size (scale log)" in str(said)

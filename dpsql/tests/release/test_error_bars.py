"""Error bars hold the truth as often as they say, whatever stands above the releases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.postprocess import bars, sealed
from dpsql.postprocess.simulate import Showing, shown_ends
from dpsql.release import answer_bars
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.laws.planting import plant
from dpsql.tests.support.length import some, tried
from dpsql.tests.support.repeated_answers import Repeated, repeated

POLICY = """
database = "duckdb:visits.duckdb"
ledger = "sqlite:visits.db"
[privacy]
epsilon = 100
delta = 1e-5
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 100] }
city = { values = ["a", "b", "c", "d", "e", "f"] }
month = { values = [1, 2, 3, 4] }
street = {}
[tables.place]
public = true
"""
ROWS = """
CREATE TABLE person AS SELECT i AS id, i * 7 % 83 AS age, substr('aabbbcdddddef', i % 13 + 1, 1) AS city,
    i % 4 + 1 AS month, i % 40 AS street FROM range(2600) AS r(i);
ALTER TABLE person ADD PRIMARY KEY (id);
CREATE TABLE place AS SELECT * FROM (VALUES ('a', 1200, 'x'), ('b', 900, 'x'), ('c', 800, 'y'), ('d', 2000, 'y')) AS v(city, size, area);
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
        connection.execute(ROWS)
    (tmp_path / "visits.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "visits.toml"), create=True).close()
    with Session.open(tmp_path / "visits.toml") as opened:
        yield opened


LINEAR = {
    "share": "SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM person GROUP BY city",
    "total": "SELECT city, SUM(COUNT(*)) OVER () AS total FROM person GROUP BY city",
    "running": "SELECT month, SUM(COUNT(*)) OVER (ORDER BY month) AS running FROM person GROUP BY month",
    "lag": "SELECT month, COUNT(*) - LAG(COUNT(*), 1, 0) OVER (ORDER BY month) AS step FROM person GROUP BY month",
    "average": "SELECT month, AVG(COUNT(*)) OVER (ORDER BY month ROWS 1 PRECEDING) AS mean FROM person GROUP BY month",
    "rollup": "SELECT city, COUNT(*) AS n, SUM(age) AS years FROM person GROUP BY ROLLUP (city)",
    "averages": "SELECT city, AVG(age) AS mean, COUNT(*) AS n FROM person GROUP BY ROLLUP (city)",
    "union": "SELECT 'all' AS k, COUNT(*) AS n FROM person UNION ALL SELECT 'old', COUNT(*) FROM person WHERE age > 50",
    "rank": "SELECT city, COUNT(*) AS n, 0 * RANK() OVER (ORDER BY city) AS r FROM person GROUP BY city",
    "sum": "SELECT 1 AS k, SUM(n) AS total FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t",
    "join": "SELECT p.area, SUM(t.n) AS n FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t"
    " JOIN place AS p ON p.city = t.city GROUP BY p.area",
    "both": "SELECT a.city, a.n - 2 * b.n AS d FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS a"
    " JOIN (SELECT city, COUNT(*) AS n FROM person WHERE age > 40 GROUP BY city) AS b ON a.city = b.city",
    "scalar": "SELECT city, COUNT(*) - (SELECT COUNT(*) FROM person WHERE age < 30) AS d FROM person GROUP BY city",
    "scalars": "SELECT 1 AS k, (SELECT COUNT(*) FROM person) - (SELECT COUNT(*) FROM person WHERE age < 3) AS d",
    "several": "SELECT city, SUM(age) AS years, COUNT(*) AS n FROM person GROUP BY city",
    "outer": "SELECT p.city, p.size - t.n AS d FROM place AS p LEFT JOIN"
    " (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t ON p.city = t.city",
    "whole": "SELECT city, month, SUM(COUNT(*)) OVER (PARTITION BY city) AS n FROM person GROUP BY city, month",
}


def held(
    session: Session, sql: str, monkeypatch: pytest.MonkeyPatch, count: int, keys: int = 1
) -> dict[str, float]:
    return repeated(session, sql, monkeypatch).coverage(count, keys)


def least(count: int) -> float:
    """Return how many of 100 answers hold the truth at least: a little more than four standard deviations below 95 %."""
    return float(0.95 - 4.2 * (0.95 * 0.05 / count) ** 0.5)


@pytest.mark.parametrize("form", some([*LINEAR], 7))
def test_linear_forms(session: Session, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Of 4,000 answers under `long`."""
    count = tried(40, 100)
    for share in held(session, LINEAR[form], monkeypatch, count, 2 if form == "whole" else 1).values():
        assert share >= least(count), (form, share)


@pytest.mark.long
@pytest.mark.parametrize("form", LINEAR)
def test_linear_forms_of_many_draws(session: Session, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    for share in held(session, LINEAR[form], monkeypatch, 4000, 2 if form == "whole" else 1).values():
        assert 0.94 <= share <= 0.965, (form, share)


def test_unions_share_the_columns_that_number_their_rows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a tree of unions rows are told apart by the leaf they are of, and each row's bar is its own."""
    leaves = [f"SELECT {i} AS k, COUNT(*) AS n FROM person WHERE age < {70 - 10 * i}" for i in range(1, 7)]
    leaves.append("SELECT CAST(month + 10 AS INTEGER), COUNT(*) FROM person GROUP BY month")
    sql = f"SELECT k, SUM(n) OVER (ORDER BY k) AS n FROM ({' UNION ALL '.join(leaves)}) AS t"
    statement = repeated(session, sql, monkeypatch)
    (simulation,) = statement.compiled.simulations
    assert len(simulation.numbers) == 2, "the leaf, and the row in it"
    assert statement.coverage(15)["n"] >= 0.85
    widths = [high - low for *_, low, high in next(statement.answers(1))]
    assert widths[0] < widths[-1], "of two rows that are taken for one the bar spans both"


def test_bars_above_many_unions_take_little_memory(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window above them is simulated in a database of the small limit, and not once more in a large one."""
    opened: list[int] = []
    monkeypatch.setattr(
        sealed, "_open_sealed", lambda mib, made=sealed._open_sealed: opened.append(mib) or made(mib)
    )
    leaves = [f"SELECT {i} AS k, COUNT(*) AS n FROM person WHERE age < {90 - 2 * i}" for i in range(1, 31)]
    session.execute("SET dpsql.intervals = 0.95")
    answer = session.execute(
        f"SELECT k, SUM(n) OVER (ORDER BY k) AS n FROM ({' UNION ALL '.join(leaves)}) AS t"
    )
    assert len(answer.rows) == 30
    assert all(low <= n <= high for _, n, low, high in answer.rows)
    assert set(opened) <= {sealed._SMALL_MIB}


# --- few rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", some(["STDDEV", "VAR_POP", "VAR_SAMP"], 1))
def test_variances_of_twenty_rows(session: Session, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    session.execute("SET dpsql.epsilon = 0.1")
    sql = f"SELECT city, {function}(age) AS v FROM person WHERE id < 130 GROUP BY city"
    share = held(session, sql, monkeypatch, tried(100, 300))["v"]
    assert share >= 0.93


def test_what_is_rounded_has_the_rounded_bars(session: Session) -> None:
    """Of a variance of few rows too; nothing is simulated for an exact one."""
    session.execute("SET dpsql.epsilon = 0.5")
    session.execute("SET dpsql.intervals = 0.95")
    sql = "SELECT STDDEV(age) AS a, ROUND(STDDEV(age), 1) AS b, ROUND(CAST(AVG(age) AS NUMERIC), 0) AS c FROM person WHERE id < 60"
    ((_, low, high, shown, rounded_low, rounded_high, *rest),) = session.execute(sql).rows
    assert (rounded_low, rounded_high) == (round(low, 1), round(high, 1))
    assert rounded_low <= float(shown) <= rounded_high
    assert all(float(value).is_integer() for value in rest)


# --- the largest, and those that were chosen -----------------------------------------------------------------

MONTHS = "(SELECT city, month, COUNT(*) AS n FROM person GROUP BY city, month) AS t"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1 AS k, MAX(n) AS top, MIN(n) AS low FROM {MONTHS}",
        f"SELECT city, MAX(n) AS top FROM {MONTHS} GROUP BY city",
    ],
)
def test_extremes(session: Session, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    session.execute("SET dpsql.epsilon = 0.02")
    assert min(held(session, sql, monkeypatch, 100).values()) >= 0.92


@pytest.mark.parametrize(
    ("value", "epsilon"),
    [("COUNT(*)", "0.02"), pytest.param("COUNT(*) + 0", "0.02", marks=pytest.mark.long), ("AVG(age)", "0.5")],
)
def test_rows_that_a_limit_chose_by_noise(
    session: Session, monkeypatch: pytest.MonkeyPatch, value: str, epsilon: str
) -> None:
    """All of the rows that are shown have their truth in their bars, in 95 of 100 answers."""
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    whole = f"SELECT city, month, {value} AS n FROM person GROUP BY city, month"
    truth = {row[:2]: row[2] for row in repeated(session, whole, monkeypatch).truth}
    statement = repeated(session, f"{whole} ORDER BY n DESC LIMIT 3", monkeypatch)
    count = tried(40, 100)
    good = [
        all(low <= truth[city, month] <= high for city, month, _, low, high in answer)
        for answer in statement.answers(count)
    ]
    assert sum(good) >= least(count) * count
    by_key = repeated(session, f"{whole} ORDER BY city, month LIMIT 3", monkeypatch)
    widths = [max(high - low for *_, low, high in next(one.answers(1))) for one in (statement, by_key)]
    assert widths[0] > widths[1]


@pytest.mark.parametrize("level", ["0.9999", "0.01"])
def test_any_level_has_bars(session: Session, level: str) -> None:
    """Each end of the levels that may be set: no bar is upside down, none raises."""
    session.execute("SET dpsql.epsilon = 1")
    session.execute(f"SET dpsql.intervals = {level}")
    for sql in (
        *SAME,
        f"{SAME[1]} ORDER BY a LIMIT 2",
        "SELECT city, COUNT(*) AS n FROM person GROUP BY city ORDER BY n LIMIT 2",
    ):
        for row in session.execute(sql).rows:
            place = 0 if len(row) == 3 else 1
            assert row[place + 1] <= row[place + 2]


@pytest.mark.parametrize("value", some(["STDDEV(age)", "VAR_SAMP(age)"], 1))
def test_variances_of_many_groups_need_no_draws(
    session: Session, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """From so many rows on all have bars by the ellipsoid: as often right as they say, and like what draws say."""
    session.execute("SET dpsql.epsilon = 1")
    statement = repeated(session, f"SELECT city, {value} AS v FROM person GROUP BY city", monkeypatch)
    drawn = next(statement.answers(1))
    monkeypatch.setattr(answer_bars, "_MANY_ROWS", 6)
    monkeypatch.setattr(answer_bars, "error_bars", None)
    assert statement.coverage(60)["v"] >= 0.93
    widths = [
        np.median([row[3] - row[2] for row in answer]) for answer in (drawn, next(statement.answers(1)))
    ]
    assert 0.9 * widths[0] <= widths[1] <= 1.4 * widths[0]


# --- groups found by threshold ---------------------------------------------------------------------------------


def test_found_groups_have_the_bars_of_shown_counts(session: Session) -> None:
    """Through the whole session: the count itself, what is computed from it, and a measure with noise of its own."""
    session._noise = ZeroNoise()
    session.execute("SET dpsql.epsilon = 0.7")
    session.execute("SET dpsql.found_share = 0.5")
    session.execute("SET dpsql.intervals = 0.95")
    sql = "SELECT street, COUNT(*) AS n, COUNT(*) + 0.5 AS m, SUM(age) AS s FROM person GROUP BY street"
    release = session.explain(sql).plan.releases[0]
    law = release.key_law
    assert law is not None
    rows = session.execute(sql).rows
    assert len(rows) == 40
    rule = Showing(law, law.bound, 1, float(law.coin))
    low, high = shown_ends(rule, np.array([row[1] for row in rows]), 0.05)
    half = law.half_width(Fraction(1, 20))
    for row, fewest, most in zip(rows, low, high, strict=True):
        assert row[2:4] == (fewest, most)
        assert row[2] < row[1] - half, "a count so near to the threshold may come from any smaller group"
        assert fewest + 0.5 <= row[5] < row[4]
        assert row[6] == pytest.approx(most + 0.5, abs=half / 3)
        assert row[8] + row[9] == pytest.approx(2 * row[7], abs=2)
    # on the plateau a share of the draws near 2.5 % is what tells the end: most rows say it, one or another does not
    assert float(np.median([row[5] for row in rows])) == pytest.approx(low[0] + 0.5, abs=10)


# --- which columns, and the same in every session ----------------------------------------------------------------


def names(session: Session, sql: str) -> list[str]:
    session.execute("SET dpsql.intervals = 0.95")
    return [column.name for column in session.describe(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT city, month, COUNT(*) AS n FROM person GROUP BY city, month", ["n"]),
        ("SELECT month + 1 AS m, 2 AS two, COUNT(*) AS n FROM person GROUP BY month", ["n"]),
        ("SELECT city, size FROM place", []),
        ("SELECT area, COUNT(*) AS k, SUM(size) AS s FROM place GROUP BY area", []),
        (
            "SELECT p.size, t.n FROM place AS p JOIN (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t"
            " ON p.city = t.city",
            ["n"],
        ),
        ("SELECT month, GROUPING(month) AS g, COUNT(*) AS n FROM person GROUP BY ROLLUP (month)", ["n"]),
        ("SELECT month, COUNT(*) AS n FROM person GROUP BY month UNION ALL SELECT 0, 0", ["n"]),
        ("SELECT month, RANK() OVER (ORDER BY month) AS r, COUNT(*) AS n FROM person GROUP BY month", ["n"]),
        ("SELECT month, RANK() OVER (ORDER BY COUNT(*)) AS r FROM person GROUP BY month", ["r"]),
        ("SELECT COUNT(*) AS k FROM (SELECT month, COUNT(*) AS n FROM person GROUP BY month) AS t", []),
        ("SELECT COUNT(*) AS k FROM (SELECT street, COUNT(*) AS n FROM person GROUP BY street) AS t", ["k"]),
    ],
)
def test_what_noise_can_move_has_columns(session: Session, sql: str, expected: list[str]) -> None:
    shown = names(session, sql)
    assert [name.removesuffix("_low") for name in shown if name.endswith("_low")] == expected
    assert [name.removesuffix("_high") for name in shown if name.endswith("_high")] == expected


SAME = (
    LINEAR["share"],
    "SELECT city, AVG(age) AS a, STDDEV(age) AS s FROM person GROUP BY city",
    "SELECT street, COUNT(*) AS n, COUNT(*) * 2 AS twice, AVG(age) AS a FROM person GROUP BY street",
    "SELECT MAX(n) AS top FROM (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t",
)


def test_one_set_of_draws_has_one_set_of_bars(session: Session) -> None:
    """In every session, whatever was asked before, and however the answer was remembered."""
    session.execute("SET dpsql.epsilon = 1")
    session.execute("SET dpsql.intervals = 0.95")
    first = [list(session.execute(sql).rows) for sql in SAME]
    with Session.open(session.dataset.policy.path) as other:
        other.execute("SET dpsql.epsilon = 1")
        other.execute("SET dpsql.intervals = 0.95")
        again = [list(other.execute(sql).rows) for sql in reversed(SAME)]
    assert again[::-1] == first


def test_other_draws_have_other_replicas(session: Session) -> None:
    """Two numbers that came out equal are simulated apart: their difference has a bar."""
    session._noise = ZeroNoise()
    session.execute("SET dpsql.intervals = 0.95")
    (row,) = session.execute(
        "SELECT (SELECT COUNT(*) FROM person WHERE age < 200) - (SELECT COUNT(*) FROM person WHERE age < 300) AS d"
    ).rows
    assert row[0] == 0
    assert row[2] - row[1] > 10


# --- bounds -------------------------------------------------------------------------------------------------


def test_what_is_simulated_together_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows have fewer draws, too many have bars of NULL and a note; the answer stands."""
    session.execute("SET dpsql.intervals = 0.95")
    drawn: list[int] = []
    inner = answer_bars.joint_bars

    def noted(engine: Any, sql: str, width: int, together: Any, tables: Any, draws: int, *rest: Any) -> Any:
        drawn.append(draws)
        return inner(engine, sql, width, together, tables, draws, *rest)

    monkeypatch.setattr(answer_bars, "joint_bars", noted)
    session.execute(LINEAR["total"])
    session.dataset.answers.clear()
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 12 * 300)
    assert session.execute(LINEAR["total"]).rows[0][2] is not None
    session.dataset.answers.clear()
    monkeypatch.setattr(answer_bars, "_ENOUGH_CELLS", 12 * 90)
    assert session.execute(LINEAR["total"]).rows[0][2] is not None
    session.dataset.answers.clear()
    monkeypatch.setattr(answer_bars, "_MAX_CELLS", 12 * 90)
    answer = session.execute(LINEAR["total"])
    assert drawn == [2000, 300, 100]
    assert all(row[2] is None and row[1] is not None for row in answer.rows)
    assert answer.receipt is not None
    assert any("error bars" in note for note in answer.receipt.notes)


# --- faults that the tests above see --------------------------------------------------------------------------------


def test_a_mutant_with_the_same_draws_for_equal_numbers(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_bars, "_identity", lambda rows, place: b"")
    with pytest.raises(AssertionError):
        test_other_draws_have_other_replicas(session)


def test_a_mutant_that_draws_anew_in_each_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_bars, "seed_of", lambda *known: os.urandom(16))
    with pytest.raises(AssertionError):
        test_one_set_of_draws_has_one_set_of_bars(session)


@pytest.mark.parametrize(
    ("form", "function", "old", "new"),
    [
        ("total", bars._Lifter._window, "*by_draw)", ")"),
        ("sum", bars._simulated_call, "below.simulated", "below.released"),
        ("total", answer_bars._replicas, "noises = _noises(rows, apart, size * draws)",
         "noises = {place: np.tile(one, size) for place, one in _noises(rows, apart, draws).items()}"),
    ],
)  # fmt: skip
def test_mutants_of_joint_simulation(
    session: Session, monkeypatch: pytest.MonkeyPatch, form: str, function: Any, old: str, new: str
) -> None:
    """Sums over all draws at once, of released numbers, of one draw for all rows."""
    plain = repeated(session, LINEAR[form], monkeypatch)
    width = mean_width(plain)
    plant(monkeypatch, function, (old, new))
    session.dataset.prepared.clear()
    session.dataset.answers.clear()
    other = mean_width(repeated(session, LINEAR[form], monkeypatch))
    assert other is None or width is None or not 0.8 * width < other < 1.25 * width


def mean_width(statement: Repeated) -> float | None:
    """Return how wide the bars of one answer are; None where there are none."""
    (answer,) = statement.answers(1)
    if any(row[-1] is None or row[-2] is None for row in answer):
        return None
    return sum(row[-1] - row[-2] for row in answer) / len(answer)

"""Gaussian noise through whole statements: EXPLAIN, accuracies, bars, found groups and what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.engine import Session
from dpsql.engine.accuracy import STEP
from dpsql.engine.answer import Answer
from dpsql.engine.dataset import open_ledger
from dpsql.engine.preview import preview
from dpsql.mechanisms import ATTO, Gaussian, Laplace, Thresholded, precision_of, sum_of
from dpsql.policy import load_policy
from dpsql.tests.support.length import first, tried

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
delta = 1e-4
accounting = "zcdp"
{more}
[defaults]
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = {{ bounds = [0, 90] }}
name = {{}}
city = {{ values = ["a", "b", "c"] }}
smoker = {{}}
[tables.visit]
unit = {{ column = "person_id", references = "person.id" }}
max_rows = 6
[tables.visit.columns]
day = {{ bounds = [0, 10] }}
"""
COUNT = "SELECT COUNT(*) FROM person"
CITIES = "SELECT city, COUNT(*) AS n FROM person GROUP BY city"
NAMES = "SELECT name, COUNT(*) AS n FROM person GROUP BY name"
BOTH = "SELECT COUNT(*) AS n, SUM(day) AS s FROM visit"

Open = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, name VARCHAR NOT NULL, city VARCHAR NOT "
            "NULL, smoker BOOLEAN NOT NULL);"
            "CREATE TABLE visit (person_id INTEGER NOT NULL REFERENCES person (id), day INTEGER NOT NULL);"
            "INSERT INTO person SELECT i, i % 90, CASE WHEN i < 4000 THEN 'n' || (i % 4) ELSE 'm' || i END, "
            "chr((97 + i % 3)::INTEGER), i % 2 = 0 FROM range(9000) t(i);"
            "INSERT INTO visit SELECT i % 900, i % 10 FROM range(9000) t(i)"
        )
    with ExitStack() as stack:

        def session(more: str = "", *settings: str) -> Session:
            path = tmp_path / "people.toml"
            path.write_text(POLICY.format(more=more))
            open_ledger(load_policy(path), create=True).close()
            made = stack.enter_context(Session.open(path))
            for setting in settings:
                made.execute(f"SET {setting}")
            return made

        yield session


def test_explain_says_the_law_and_the_sensitivity_in_l2(opened: Open) -> None:
    session = opened()
    text = session.explain(COUNT).text()
    assert "  count of rows: epsilon 0.1 (rho 0.005)\n" in text
    assert "    sensitivity (L2) 1, discrete Gaussian sigma 10, variance 100, ± 20 at 95 %" in text
    (release,) = session.explain(COUNT).as_dict()["releases"]  # type: ignore[misc]
    measure = release["measures"][0]
    assert (measure["scale"], measure["law"], measure["rho"]) == ("10", "discrete Gaussian", "0.005")
    assert "Laplace" not in session.explain(f"{BOTH} WHERE day > 3").text()


@pytest.mark.parametrize(
    "sql",
    [f"{COUNT} WHERE age BETWEEN 5 AND 2", "SELECT MEDIAN(age) FROM person WHERE 1 = 2", f"{CITIES} LIMIT 0"],
)
def test_what_is_empty_by_its_text_is_free(opened: Open, sql: str) -> None:
    session = opened()
    assert "free" in session.explain(sql).text() or "charge: nothing" in session.explain(sql).text()
    assert session.explain(sql).as_dict()
    session.execute(sql)
    assert session.dataset.store.spent().rho_atto == 0


def test_explain_of_several_together(opened: Open) -> None:
    text = opened("together = 3").explain(COUNT).text()
    assert "protects any 3 persons together: sensitivity (L2) 3 × 1, discrete Gaussian sigma 30," in text


def test_explain_of_found_groups(opened: Open) -> None:
    text = opened().explain(NAMES).text()
    assert "  groups: those whose noisy count of people reaches 50\n" in text
    assert "the noise lifts a group of few people so high with probability delta 1e-6 at most" in text


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        CITIES,
        BOTH,
        "SELECT SUM(age) FROM person",
        "SELECT city, COUNT(*) FROM person GROUP BY ROLLUP (city)",
    ],
)
@pytest.mark.parametrize("wanted", first(1, [7, 100]))
def test_an_accuracy_takes_the_least_epsilon(opened: Open, sql: str, wanted: int) -> None:
    """What is chosen keeps ± within the wish, and one step less would not."""
    session = opened("", "dpsql.epsilon = 1")
    factor = 1000 if "SUM" in sql else 1
    session.execute(f"SET dpsql.accuracy = {wanted * factor}")
    epsilon = session.explain(sql).plan.epsilon
    session.execute("SET dpsql.accuracy = off")

    def half(at: Fraction) -> float:
        session.execute(f"SET dpsql.epsilon = {float(at):.6f}")
        found = []
        for release in session.explain(sql).plan.releases:
            for formula in release.formulas:
                noises = [(release.measures[i.measure].law, float(w)) for i, w in formula.terms]  # type: ignore[union-attr]
                spread = sum(w**2 * float(law.spread) for law, w in noises)
                cells = 3 if "ROLLUP" in sql else 1
                one = len(noises) * cells == 1
                found.append(
                    noises[0][0].half_width(Fraction(1, 20)) * abs(noises[0][1])
                    if one
                    else 1.959964 * (spread * cells) ** 0.5
                )
        return max(found)

    assert half(epsilon) <= wanted * factor * 1.001
    assert half(epsilon - STEP) > wanted * factor * 0.99


def test_bars_hold_the_truth(opened: Open) -> None:
    """Of 180 counts, or 600, about 95 % have a bar that holds them (z below 5)."""
    session = opened("", "dpsql.intervals = 0.95", "dpsql.reuse = off")
    held = []
    for k in range(tried(60, 200)):
        for _, n, low, high in session.execute(CITIES.replace("GROUP", f"WHERE age <> {200 + k} GROUP")).rows:
            held.append(low <= 3000 <= high)
            assert abs(n - 3000) < 100
    assert abs(np.mean(held) - 0.95) < 5 * (0.05 * 0.95 / len(held)) ** 0.5 + 0.01


def test_found_groups_are_shown_with_their_bars(opened: Open) -> None:
    session = opened("", "dpsql.intervals = 0.95")
    rows = session.execute(f"{NAMES} ORDER BY name").rows
    assert [row[0] for row in rows] == ["n0", "n1", "n2", "n3"]
    assert all(low <= n <= high and high - low < 80 for _, n, low, high in rows)
    (release,) = session.explain(NAMES).plan.releases
    assert isinstance(release.key_law, Thresholded)
    again = session.execute(f"{NAMES} ORDER BY name")
    assert again.rows == rows
    assert again.receipt is not None
    assert again.receipt.reused


def test_a_stored_grouping_answers_its_tiles(opened: Open) -> None:
    session = opened("", "dpsql.epsilon = 0.2")
    cells = dict(session.execute("SELECT smoker, COUNT(*) FROM person GROUP BY smoker").rows)
    session.execute("SET dpsql.epsilon = 0.1")
    tile = session.execute("SELECT COUNT(*) FROM person WHERE smoker")
    assert tile.rows == [(cells[True],)]
    total = session.execute(COUNT)
    assert total.rows == [(sum(cells.values()),)]
    assert total.receipt is not None
    assert total.receipt.reused
    assert session.dataset.store.spent().rho_atto == ATTO // 50


def test_a_count_beside_an_average_is_taken_from_the_store(opened: Open) -> None:
    session = opened("", "dpsql.epsilon = 0.5")
    session.execute("SELECT COUNT(*) FROM person")
    before = session.dataset.store.spent().rho_atto
    session.execute("SELECT AVG(age), COUNT(*) FROM person")
    assert session.dataset.store.spent().rho_atto - before <= ATTO // 8


def test_a_pure_draw_serves_by_its_spread(opened: Open) -> None:
    """Laws of two families are compared by variance: 2·9² is more than 10², and 2·7² is less."""
    wanted = Gaussian.for_rho(1, Fraction(1, 200))
    assert Laplace(Fraction(7)).spread <= wanted.spread < Laplace(Fraction(9)).spread
    assert sum_of(wanted, 4).spread == 4 * wanted.spread


def test_a_preview_has_the_plans_figures(opened: Open) -> None:
    session = opened()
    shown = preview(session.policy, session.dataset.catalog)
    count = shown.tables[0].questions[0].figures[0]
    assert count.plus_minus[0] == 20.0


# --- asking again for more ---------------------------------------------------------------------------------------


def asked(session: Session, epsilon: str, sql: str = COUNT) -> tuple[Answer, str]:
    """Return the answer at an epsilon, and what EXPLAIN said of its charge before."""
    session.execute(f"SET dpsql.epsilon = {epsilon}")
    (charge,) = (line for line in session.explain(sql).text().split("\n") if line.startswith("charge:"))
    return session.execute(sql), charge


@pytest.mark.parametrize("sql", [COUNT, CITIES, BOTH, "SELECT AVG(day) FROM visit"])
def test_asking_again_for_more_pays_the_difference(opened: Open, sql: str) -> None:
    """0.1, then 0.2, then 0.5 cost what 0.5 alone costs, to the last digit, and have its noise."""
    session, alone = opened(), Fraction(125, 1000)
    said = [asked(session, epsilon, sql) for epsilon in ("0.1", "0.2", "0.5")]
    assert [answer.receipt.rho for answer, _ in said if answer.receipt] == [
        5 * ATTO // 1000, 15 * ATTO // 1000, 105 * ATTO // 1000
    ]  # fmt: skip
    assert session.budget().rho_spent_atto == alone * ATTO
    assert [charge.partition(";")[0] for _, charge in said] == [
        "charge: as epsilon 0.1 (rho 0.005) (nothing, if it is answered already)",
        "charge: 0.015 of rho more",
        "charge: 0.105 of rho more",
    ]
    assert "; 0.005 is stored (as epsilon 0.2 (rho 0.02) in all)" in said[1][1]
    again, charge = asked(session, "0.5", sql)
    assert again.rows == said[2][0].rows
    assert again.receipt is not None
    assert again.receipt.rho == 0
    assert said[1][0].receipt is not None
    assert "0.015 of rho more; 0.005 is stored" in said[1][0].receipt.notes
    assert "of rho more" not in charge
    (release,) = session.explain(sql).plan.releases
    for number in range(len(release.measurements)):
        measures = release.measure_keys(number, release.salted(b""), b"")
        for together in session.dataset.store.lookup(measures, release.measures[number].law) or ():
            variance = 1 / precision_of([one.law for one in together])
            assert variance <= release.measures[number].law.spread * (1 + Fraction(1, 2**16))
            assert len(together) == 3


def test_its_bars_are_those_of_one_draw(opened: Open) -> None:
    session = opened()
    for epsilon in ("0.1", "0.2", "0.5"):
        asked(session, epsilon)
    session.execute("SET dpsql.intervals = 0.95")
    ((n, low, high),) = session.execute(COUNT).rows
    assert (n - low, high - n) == (4, 4)
    assert Gaussian(Fraction(2)).half_width(Fraction(1, 20)) == 4


def test_reuse_off_joins_what_is_stored(opened: Open) -> None:
    session = opened("", "dpsql.epsilon = 0.2")
    first = session.execute(COUNT).rows[0][0]
    session.execute("SET dpsql.reuse = off")
    fresh = session.execute(COUNT)
    assert fresh.receipt is not None
    assert fresh.receipt.rho == ATTO // 50
    session.execute("SET dpsql.reuse = on")
    mean = session.execute(COUNT)
    assert abs(mean.rows[0][0] - Fraction(first + fresh.rows[0][0], 2)) <= Fraction(1, 2)
    assert mean.receipt is not None
    assert mean.receipt.rho == 0
    last, charge = asked(session, "0.3")
    assert charge.startswith("charge: 0.005 of rho more; 0.04 is stored")
    assert session.execute(COUNT).rows == last.rows


def test_a_new_epoch_begins_anew(opened: Open) -> None:
    session = opened()
    asked(session, "0.2")
    session.dataset.store.advance_epoch()
    again, charge = asked(session, "0.5")
    assert "of rho more" not in charge
    assert again.receipt is not None
    assert again.receipt.rho == ATTO // 8


def test_found_groups_are_paid_in_full(opened: Open) -> None:
    """What decides which groups are shown is never combined."""
    session = opened()
    asked(session, "0.5", NAMES)
    again, charge = asked(session, "1", NAMES)
    assert "of rho more" not in charge
    assert again.receipt is not None
    assert again.receipt.rho == ATTO // 2

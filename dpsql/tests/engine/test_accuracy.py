"""`SET dpsql.accuracy`: the least epsilon that gives an accuracy, or a refusal that says what it would take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.engine import Session, accuracy
from dpsql.engine.accuracy import STEP
from dpsql.engine.dataset import open_ledger
from dpsql.errors import BudgetExhausted, Refusal
from dpsql.mechanisms import Laplace
from dpsql.policy import load_policy
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.length import first
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 90] }
name = {}
city = { values = ["a", "b", "c"] }
[tables.visit]
unit = { column = "person_id", references = "person.id" }
max_rows = 6
[tables.visit.columns]
day = { bounds = [0, 10] }
[analysts.alice]
epsilon = 0.1
"""
COUNT = "SELECT COUNT(*) FROM person"
SUM = "SELECT SUM(age) FROM person"
AVG = "SELECT AVG(age) FROM person"
CITIES = "SELECT city, COUNT(*) FROM person GROUP BY city"
NAMES = "SELECT name, COUNT(*) FROM person GROUP BY name"
TWENTIETH = Fraction(1, 20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path)


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, name VARCHAR, city VARCHAR);"
            "CREATE TABLE visit (person_id INTEGER REFERENCES person (id), day INTEGER);"
            "INSERT INTO person SELECT i, i % 90, 'n' || (i % 5), chr((97 + i % 3)::INTEGER) FROM range(9000) t(i);"
            "INSERT INTO visit SELECT i % 900, i % 10 FROM range(9000) t(i)"
        )
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    return tmp_path / "people.toml"


@pytest.fixture
def session(path: Path) -> Iterator[Session]:
    with Session.open(path) as opened:
        opened._noise = ZeroNoise()
        yield opened


def wish(session: Session, text: str) -> None:
    session.execute(f"SET dpsql.accuracy = '{text}'")


def charged(session: Session, sql: str) -> Fraction:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return receipt.epsilon


def refused(session: Session, sql: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert caught.value.sqlstate == "PV301"
    return caught.value


@pytest.mark.parametrize(
    ("text", "epsilon"), [("50", "0.0594"), ("5", "0.5382"), ("1234.5", "0.0025"), ("3", "0.8319")]
)
def test_the_least_epsilon_for_a_count(session: Session, text: str, epsilon: str) -> None:
    """The least of the steps: half_width(1 / e, 5 %) <= ± < half_width(1 / (e - step), 5 %)."""
    wish(session, text)
    found = charged(session, COUNT)
    assert found == Fraction(epsilon)
    assert (
        Laplace(1 / found).half_width(TWENTIETH)
        <= Fraction(text)
        < Laplace(1 / (found - STEP)).half_width(TWENTIETH)
    )


@pytest.mark.parametrize(
    "sql", [SUM, CITIES, NAMES, "SELECT COUNT(*) FROM visit", "SELECT SUM(day), COUNT(*) FROM visit"]
)
@pytest.mark.parametrize("level", ["0.5", "0.95", "0.999"])
def test_what_explain_expects_is_within_the_wish(session: Session, sql: str, level: str) -> None:
    """And one step of epsilon less would not be enough, for the same measures."""
    session.execute(f"SET dpsql.intervals = {level}")
    wish(session, "700")
    plan = session.explain(sql).plan
    (release,) = plan.releases

    def widest(epsilon: Fraction) -> float:
        needs = [accuracy._Need(release, i, 1, Fraction(700)) for i in range(len(release.formulas))]
        found = [accuracy._half_width(need, epsilon, Fraction(1), Fraction(level)) for need in needs]
        return max(float(half) for half in found if half is not None)

    epsilon = -(-plan.epsilon // STEP) * STEP
    assert widest(epsilon) <= 700 < widest(epsilon - STEP)


def test_a_repeated_wish_is_free_and_a_coarser_one_too(session: Session) -> None:
    wish(session, "50")
    first = session.execute(COUNT)
    again = session.execute(COUNT)
    assert again.rows == first.rows
    wish(session, "80")
    assert charged(session, COUNT) == 0
    session.execute("SET dpsql.accuracy = off")
    session.execute("SET dpsql.epsilon = 0.05")
    assert charged(session, COUNT) == 0
    session.execute("SET dpsql.epsilon = 0.06")
    assert charged(session, COUNT) == Fraction("0.0085276")  # precision goes by squares: 0.0594 is stored


def test_beyond_the_limit_it_says_what_it_would_take_and_what_fits(session: Session) -> None:
    wish(session, "50")
    error = refused(session, SUM)
    assert error.message == "± 50 takes epsilon 5.3382, and a statement may take 1 at most"
    assert error.hint == "± 270 is what epsilon 1 gives; or SET dpsql.accuracy = off"
    wish(session, "270")
    assert charged(session, SUM) <= 1


def test_what_explain_and_the_receipt_say(session: Session) -> None:
    wish(session, "50")
    shown = session.explain(COUNT)
    assert (
        "charge: epsilon 0.0594 chosen for ± 50 (nothing, if it is answered already); 50 left" in shown.text()
    )
    assert shown.as_dict()["chosen"] == "epsilon 0.0594 chosen for ± 50"
    receipt = session.execute(COUNT).receipt
    assert receipt is not None
    assert receipt.notes[0] == "epsilon 0.0594 chosen for ± 50"


def test_an_average_needs_a_stored_count(session: Session) -> None:
    wish(session, "0.5")
    error = refused(session, AVG)
    assert (
        error.message
        == "how much epsilon that takes depends on the number of rows, and no count of them is stored"
    )
    assert "COUNT" in (error.hint or "")
    session.execute("SET dpsql.accuracy = off")
    session.execute("SELECT COUNT(age) FROM person")
    wish(session, "0.5")
    found = charged(session, AVG)
    rows = 9000 - Laplace(Fraction(10)).half_width(TWENTIETH)
    # 90 lattice steps a person over 9000 people; the bar of one noise is the widest that a pair's can be
    assert found == pytest.approx(Fraction(90 * math.log(20)) / rows * 2, abs=2e-4)
    assert charged(session, AVG) == 0


def test_an_average_that_was_drawn_knows_its_own_count(session: Session) -> None:
    session.execute(AVG)
    wish(session, "5")
    assert charged(session, AVG) == 0
    wish(session, "0.3")
    assert 0 < charged(session, AVG) < 1


@pytest.mark.parametrize("sql", [CITIES, NAMES])
def test_percent_is_of_the_smallest_stored_group(session: Session, sql: str) -> None:
    wish(session, "2 %")
    assert "no count of them is stored" in refused(session, sql).message
    session.execute("SET dpsql.accuracy = off")
    people = min(row[1] for row in session.execute(sql).rows)
    wish(session, "2 %")
    least = people - Laplace(Fraction(10)).half_width(TWENTIETH)
    note = session.explain(sql).chosen
    assert note is not None
    assert note.endswith(f"chosen for ± 2 % of a count of at least {least:,}")
    found = Fraction(note.split()[1])
    assert Laplace(1 / found).half_width(TWENTIETH) <= Fraction(2, 100) * least
    assert Laplace(1 / (found - STEP)).half_width(TWENTIETH) > Fraction(2, 100) * least


def test_percent_of_a_count_that_may_be_nothing_is_refused(session: Session) -> None:
    few = f"{COUNT} WHERE age < 0"
    session.execute(few)
    wish(session, "2%")
    assert "the stored count may be 0" in refused(session, few).message


def test_a_new_epoch_has_no_stored_count(session: Session) -> None:
    session.execute(COUNT)
    wish(session, "2 %")
    session.explain(COUNT)
    session.dataset.store.advance_epoch()
    assert "no count of them is stored" in refused(session, COUNT).message


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (SUM, "in percent is of a count"), ("SELECT STDDEV(age) FROM person", "standard deviation"),
        (f"{COUNT} WHERE age > ({AVG})", "no count of them is stored"),
    ],
)  # fmt: skip
def test_what_has_no_percent(session: Session, sql: str, said: str) -> None:
    wish(session, "2 %" if "STDDEV" not in sql else "2")
    assert said in refused(session, sql).message


def test_of_a_statement_in_intermediates_the_answer_is_meant(session: Session) -> None:
    wish(session, "50")
    # half of it is the inner average's: the least even number of half steps above 0.0593
    assert charged(session, f"{COUNT} WHERE age > ({AVG})") == Fraction("0.1187")


@pytest.mark.parametrize(
    "text",
    ["0", "0.0", "-1", "+1", "1e-300", "1e3", "NaN", "inf", "Infinity", "", " ", "5 5", "%", "5%%", "٥", "0 %", "1_0", "0x5", ".5",
     "9" * 16, "0.0000000001", "5\n", "2  %", "5 % of it"],
)  # fmt: skip
def test_what_is_no_accuracy(session: Session, text: str) -> None:
    before = session.settings
    with pytest.raises(Refusal) as caught:
        session.execute(f"SET dpsql.accuracy = '{text}'")
    assert caught.value.sqlstate in ("PV301", "42601")
    assert session.settings == before


@pytest.mark.parametrize("sql", [COUNT, SUM, CITIES])
def test_an_accuracy_that_nothing_gives(session: Session, sql: str) -> None:
    """Less than a lattice step: it takes what makes noise rare, and is refused in time that does not grow with it."""
    wish(session, "0.000000001")
    assert "takes epsilon " in refused(session, sql).message


def test_a_huge_accuracy_is_the_least_epsilon(session: Session) -> None:
    wish(session, "9" * 15)
    assert charged(session, COUNT) == STEP


@pytest.mark.parametrize("sql", ["SELECT 1", f"{COUNT} WHERE FALSE", f"{COUNT} LIMIT 0"])
def test_what_is_free_stays_free(session: Session, sql: str) -> None:
    wish(session, "0.000000001")
    assert charged(session, sql) == 0


def test_the_settings(session: Session) -> None:
    assert session.execute("SHOW dpsql.accuracy").rows == [("off",)]
    for written, shown in (
        ("50", "50"),
        ("2.50", "2.5"),
        ("2%", "2 %"),
        ("off", "off"),
        ("7", "7"),
        ("DEFAULT", "off"),
    ):
        wish(session, written)
        assert session.execute("SHOW dpsql.accuracy").rows == [(shown,)]
    session.execute("SET dpsql.accuracy = 50")
    session.execute("RESET dpsql.accuracy")
    assert charged(session, COUNT) == Fraction(1, 10)


def test_a_personal_cap_binds(path: Path) -> None:
    with Session.open(path, analyst="alice") as session:
        wish(session, "5")
        with pytest.raises(BudgetExhausted):
            session.execute(COUNT)
        wish(session, "50")
        assert charged(session, COUNT) == Fraction("0.0594")


def test_draws_afresh_where_reuse_is_off(session: Session) -> None:
    wish(session, "50")
    session.execute("SET dpsql.reuse = off")
    assert charged(session, COUNT) == charged(session, COUNT) == Fraction("0.0594")


@pytest.mark.parametrize("level", first(3, ["0.5", "0.95", "0.999", "0.8", "0.9", "0.99"]))
def test_several_noises_stay_within_what_is_reckoned(level: str) -> None:
    """Sums of weighted Laplace noises, from one to many: their quantile is never wider, but for a hundredth."""
    rng = np.random.default_rng(20261122)
    factor = accuracy._deviations(Fraction(level))
    for weights in ([1], [1, 1], [1, 2], [1, 1, 1], [5, 1, 1], [1] * 6, [1] * 30):
        sums = sum(weight * rng.laplace(size=400_000) for weight in weights)
        deviation = math.sqrt(2 * sum(weight**2 for weight in weights))
        assert np.quantile(np.abs(sums), float(level)) <= 1.01 * factor * deviation

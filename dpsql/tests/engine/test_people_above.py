"""What answers and EXPLAIN say of the people who have more rows than count, and when they say it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session
from dpsql.engine.bounds import Measured, Wish, measure
from dpsql.engine.dataset import open_ledger
from dpsql.engine.people_above import PeopleAbove, percent
from dpsql.errors import PolicyError
from dpsql.mechanisms import Laplace
from dpsql.policy import load_policy
from dpsql.policy.measured import read_range

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 5000
{privacy}
[tables.person]
unit = "id"
[tables.person.columns]
mail = {{}}
age = {{ bounds = [0, 90] }}
[tables.loan]
unit = {{ column = "who", references = "person.mail" }}
max_rows = {rows}
[tables.loan.columns]
id = {{}}
fee = {{ bounds = [0, {fee}] }}
moment = {{}}
[tables."side.payment"]
unit = {{ column = "loan id", references = "loan.id" }}
{payments}
"""
LOANS = "SELECT COUNT(*) FROM loan"
TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()
MORE = ' of the people of "loan" have more rows'
NEVER = 'how many people of "loan" have more rows was never measured; its owner can: dpsql bounds loan'

Open = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open sessions on 400 people, of whom 100 have twelve loans and the others two; one payment a loan."""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, mail VARCHAR UNIQUE NOT NULL, age INTEGER);"
            "CREATE TABLE loan (id INTEGER PRIMARY KEY, who VARCHAR REFERENCES person(mail), fee DOUBLE, moment TIMESTAMP);"
            'CREATE SCHEMA side; CREATE TABLE side.payment ("loan id" INTEGER);'
            "INSERT INTO person SELECT i, 'p' || i, i % 90 FROM range(400) t(i);"
            "INSERT INTO loan SELECT i * 100 + j, 'p' || i, j, '2025-01-01' FROM range(400) t(i), range(12) u(j)"
            " WHERE j < 2 OR i < 100;"
            "INSERT INTO side.payment SELECT id FROM loan;"
        )
    with ExitStack() as stack:

        def session(
            rows: int = 10, fee: int = 9, privacy: str = "", payments: str = "max_rows = 10"
        ) -> Session:
            path = tmp_path / "people.toml"
            path.write_text(POLICY.format(rows=rows, fee=fee, privacy=privacy, payments=payments))
            if not (tmp_path / "people.db").exists():
                open_ledger(load_policy(path), create=True).close()
            return stack.enter_context(Session.open(path))

        yield session


def bounds(session: Session, table: str = "loan", epsilon: int = 200, **more: object) -> Measured:
    found = measure(session, Wish(table, Fraction(epsilon), Fraction(1), **more), "dpsql bounds")  # type: ignore[arg-type]
    assert isinstance(found, Measured)
    return found


def notes(session: Session, sql: str = LOANS) -> str:
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return " | ".join(receipt.notes)


def explained(session: Session, sql: str = LOANS) -> str:
    return " ".join(session.explain(sql).text().split())


def test_what_was_never_measured_is_said_with_the_command(opened: Open) -> None:
    session = opened()
    assert NEVER in notes(session)
    assert NEVER in explained(session)
    assert session.explain(LOANS).as_dict()["notes"][0].endswith(NEVER)  # type: ignore[index]  # a dict for JSON


def test_an_answer_quotes_the_share_with_its_date(opened: Open) -> None:
    session = opened()
    before = session.execute(LOANS)
    found = bounds(session)
    assert found.suggested == 15
    assert [one.max_rows for one in found.above] == [10, 15]
    (said,) = re.findall(rf"about ([\d.]+) %{MORE} \(at most ([\d.]+) %, measured {TODAY}\)", notes(session))
    assert 24 < float(said[0]) <= 25.5
    assert float(said[0]) <= float(said[1]) < 27
    assert f"about {said[0]} %{MORE}" in explained(session)
    after = session.execute(LOANS)
    assert after.rows == before.rows, "no number moves by what is said"


def test_bars_are_not_widened_by_it(opened: Open) -> None:
    session = opened()
    session.execute("SET dpsql.intervals = 0.95")
    before = session.execute(LOANS).rows
    bounds(session)
    assert session.execute(f"{LOANS} ").rows == before


def test_another_policy_of_other_things_finds_it_and_another_bound_does_not(opened: Open) -> None:
    bounds(opened())
    assert MORE in notes(opened(fee=8))
    assert MORE in notes(opened(rows=15)), "the suggested one was measured too"
    assert NEVER in notes(opened(rows=11))


def test_after_new_data_it_is_said_to_be_of_before(opened: Open) -> None:
    session = opened()
    bounds(session)
    session.dataset.store.advance_epoch()
    assert f"measured {TODAY}; the data have changed since)" in notes(session)
    assert bounds(session).spent.epsilon_nano == 200 * 10**9
    assert f"measured {TODAY})" in notes(session)


def test_it_is_found_where_rows_are_cut_elsewhere(opened: Open) -> None:
    session = opened()
    per_person = (
        "SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM loan GROUP BY who) AS t WHERE n BETWEEN 0 AND 9"
    )
    for sql in (per_person, "SELECT COUNT(*) FROM loan JOIN person ON mail = who", f"{LOANS} WHERE fee > 3"):
        assert NEVER in notes(session, sql), sql
    bounds(session)
    for sql in (per_person, "SELECT SUM(age) FROM loan JOIN person ON mail = who", f"{LOANS} WHERE fee > 4"):
        assert MORE in notes(session, sql), sql


def test_nothing_is_said_of_another_bound(opened: Open) -> None:
    session = opened()
    bounds(session)
    session.execute("SET dpsql.max_rows = 5")
    assert "at most 5 rows" in notes(session)
    assert MORE not in notes(session)
    assert NEVER not in notes(session)
    assert "people of" not in notes(session, "SELECT COUNT(*) FROM person")


def test_it_is_free_again_for_every_analyst_and_costs_what_was_said(opened: Open) -> None:
    session = opened()
    assert bounds(session).spent.epsilon_nano == 200 * 10**9
    again = bounds(opened())
    assert (again.spent.epsilon_nano, again.paid.epsilon_nano) == (0, 200 * 10**9)


@pytest.mark.parametrize("privacy", ['neighbours = "replace-one"', "together = 3"])
def test_other_promises(opened: Open, privacy: str) -> None:
    session = opened(privacy=privacy)
    found = bounds(session, epsilon=600)
    assert found.suggested == 15
    assert MORE in notes(session)
    (above, _) = found.above
    assert above.law == Laplace(Fraction(2 if "replace" in privacy else 3) / 150)


def test_a_table_that_finds_its_owner_over_others(opened: Open) -> None:
    """No max_rows yet: nothing can be asked of it, but it can be measured."""
    session = opened(payments="")
    found = bounds(session, "side.payment")
    assert (found.declared, found.suggested) == (None, 15)
    (suggested,) = found.above
    assert 395 <= suggested.people <= 405
    after = opened(payments="max_rows = 15")
    assert 'of the people of "side.payment" have more rows' in notes(
        after, "SELECT COUNT(*) FROM side.payment"
    )


def test_columns_of_reals_and_moments(opened: Open) -> None:
    ends = read_range("moment", "2020-01-01T00:00:00, 2030-01-01T00:00:00")
    found = bounds(
        opened(), epsilon=4000, columns=(("fee", read_range("fee", "-1000,1000")), ("moment", ends))
    )
    fee, at = (column.bounds for column in found.columns)
    assert fee == (0, 11)
    assert at is not None
    assert at[0] <= datetime.datetime(2025, 1, 1) <= at[1]  # type: ignore[operator]  # moments


@pytest.mark.parametrize(
    ("column", "text", "problem"),
    [
        ("fee", "1", "write the two ends"),
        ("fee", "5,1", "lower 5 is above upper 1"),
        ("fee", "1,1", "the two ends are the same"),
        ("fee", "0,1]\nx = [1", "unknown key"),
        ("fee", "a,b", "write its two ends, like"),
        ("fee", "2020-01-01,2021-01-01", "numbers"),
        ("mial", "0,1", 'has no column "mial"'),
        ("who", "0,1", "the column is text"),
        ("id", None, "has no bounds yet"),
    ],
)
def test_columns_that_cannot_be_measured(opened: Open, column: str, text: str | None, problem: str) -> None:
    session = opened()
    with pytest.raises(PolicyError, match=re.escape(problem)):
        bounds(session, columns=((column, None if text is None else read_range(column, text)),))
    assert session.dataset.store.spent().epsilon_nano == 0


# --- the share and its bar ---------------------------------------------------------------------------------


def above(number: int, others: int, scale: int = 10) -> PeopleAbove:
    return PeopleAbove(5, number, others, Laplace(Fraction(scale)), "2026-11-22", True)


def test_the_bar_of_the_share_holds_wherever_both_numbers_are_within_theirs() -> None:
    half = Laplace(Fraction(10)).half_width(Fraction(1, 40))
    low, high = above(50, 950).share_ends
    assert (low, high) == ((50 - half) / (50 - half + 950 + half), (50 + half) / (50 + half + 950 - half))
    assert low < 0.05 < high
    assert above(50, 950).people_ends == (1000 - 2 * half, 1000 + 2 * half)


@pytest.mark.parametrize(
    ("number", "others", "share", "ends"),
    [(0, 0, None, (0, 1)), (-30, 20, None, (0, 1)), (-9, 5000, 0.0, (0, 0.006)), (5000, -9, 1.0, (0.99, 1))],
)
def test_a_share_is_one_whatever_the_noise(
    number: int, others: int, share: float | None, ends: tuple[float, float]
) -> None:
    shown = above(number, others)
    assert shown.share == share
    low, high = shown.share_ends
    assert ends[0] <= low <= high <= ends[1]


def test_percent() -> None:
    shown = [percent(share) for share in (0, 0.00001, 0.00372, 0.0123, 0.25, 0.994, 0.996, 1)]
    assert shown == ["0 %", "0 %", "0.37 %", "1.2 %", "25 %", "99 %", "100 %", "100 %"]
    ends = [percent(share, up=True) for share in (0, 0.00001, 0.00372, 0.0123, 0.25, 0.2503, 1)]
    assert ends == ["0 %", "0.01 %", "0.38 %", "1.3 %", "25 %", "26 %", "100 %"]

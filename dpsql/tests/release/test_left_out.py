"""What answers and EXPLAIN say of what `max_rows` leaves out, and which error bars hold it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.engine import Session
from dpsql.engine.bounds import Measured, Wish, measure
from dpsql.engine.dataset import open_ledger
from dpsql.errors import PolicyError
from dpsql.mechanisms import Gaussian, Laplace, half_width_of
from dpsql.policy import load_policy
from dpsql.policy.measured import read_range
from dpsql.release.left_out import LeftOut, left_text, people_keys, percent, rungs_for, steps_between

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
[tables.numbers]
public = true
[tables."side.payment"]
unit = {{ column = "loan id", references = "loan.id" }}
{payments}
"""
LOANS = "SELECT COUNT(*) FROM loan"
TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()
QUOTED = re.compile(rf'of "loan", about ([\d.]+) % of all rows, at least ([\d.]+) % \(measured {TODAY}\)')
NEVER = 'rows of "loan"; no error bar holds what that leaves out: the owner has not measured it (dpsql bounds loan)'
HELD = "; the error bars hold the noise and what that leaves out"

Open = Callable[..., Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open sessions on 400 people, of whom 100 have twelve loans and the others two; one payment a loan."""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE person (id INTEGER PRIMARY KEY, mail VARCHAR UNIQUE NOT NULL, age INTEGER);"
            "CREATE TABLE loan (id INTEGER PRIMARY KEY, who VARCHAR REFERENCES person(mail), fee DOUBLE, moment TIMESTAMP);"
            'CREATE SCHEMA side; CREATE TABLE side.payment ("loan id" INTEGER);'
            "CREATE TABLE numbers AS SELECT i AS n FROM range(3) t(i);"
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
    assert found.suggested == 10, "the declared one is about as good"
    assert [one.max_rows for one in found.left_out] == [10]
    said = QUOTED.search(notes(session))
    assert said
    assert 87 < float(said[1]) <= 90.5, "200 of 1,800 rows are left out"
    assert 70 < float(said[2]) <= float(said[1])
    assert said[0] in explained(session)
    after = session.execute(LOANS)
    assert after.rows == before.rows, "no number moves by what is said"


def ends(session: Session, sql: str, level: str = "0.95") -> list[tuple[float, ...]]:
    """Return each row's first number with the ends of its bar."""
    session.execute(f"SET dpsql.intervals = {level}")
    answer = session.execute(sql)
    place = next(i for i, column in enumerate(answer.columns) if column.bar_of is not None)
    return [tuple(float(one) for one in row[place - 1 : place + 2]) for row in answer.rows]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        (LOANS, 1800),
        (f"{LOANS} WHERE fee >= 6", 600),
        ("SELECT COUNT(fee) FILTER (WHERE fee >= 6) FROM loan", 600),
        ("SELECT COUNT(*) FROM loan JOIN person ON mail = who WHERE age < 45", 990),
        ("SELECT COUNT(*) FROM loan l LEFT JOIN person p ON p.mail = l.who", 1800),
        ("SELECT age < 45 AS young, COUNT(*) FROM loan JOIN person ON mail = who GROUP BY 1 ORDER BY 1", 990),
        ("SELECT SUM(fee) FROM loan", 6600),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM loan) AS t WHERE n > 0", 1800),
    ],
)
def test_the_upper_end_goes_as_far_as_what_is_left_out(opened: Open, sql: str, truth: int) -> None:
    """Bars that miss once in ten thousand, widened by themselves once more, still fall short of what is left out."""
    session = opened(privacy="[defaults]\nmax_epsilon = 10")
    session.execute("SET dpsql.epsilon = 10")
    place = 1 if "young" in sql else 0  # after those who are not, before those of whom it is not known
    (number, low, high) = ends(session, sql, "0.9999")[place]
    bounds(session)
    (same, lower, higher) = ends(session, f"{sql} ", "0.9999")[place]
    assert same == number
    assert 0 <= low - lower <= 4 * ("SUM" in sql), (
        "what is left out is only more, but for how a sum is rounded"
    )
    assert higher > high
    assert HELD in notes(session, f"{sql}  ")
    slack = number - low
    assert (high + slack < truth) == ("fee >= 6" not in sql), (
        "of the six dearest loans of a person all are in"
    )
    assert lower - slack <= truth <= higher + slack


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(fee) FROM loan",
        "SELECT COUNT(DISTINCT id) FROM loan",
        "SELECT COUNT(*) FROM loan AS a JOIN loan AS b ON a.who = b.who",
        "SELECT COUNT(*) FROM loan JOIN numbers ON n < fee",
        "SELECT COUNT(*) FROM loan CROSS JOIN numbers",
        "SELECT COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM loan GROUP BY who) AS t WHERE n > 3",
        "SELECT SUM(n) FROM (SELECT who, COUNT(*) AS n FROM loan GROUP BY who) AS t",
        "SELECT COUNT(*) FROM loan WHERE EXISTS (SELECT 1 FROM loan AS b WHERE b.who = loan.who AND b.fee > 3)",
        "SELECT COUNT(*) * 2 AS twice FROM loan",
    ],
)
def test_nothing_is_said_to_be_bounded_of_what_is_not(opened: Open, sql: str) -> None:
    """Bars of what is made of several rows of a person's, or of several numbers, hold the noise alone."""
    session = opened()
    session.execute("SET dpsql.intervals = 0.95")
    asked = session.execute(sql)
    bounds(session)
    again = session.execute(f"{sql} ")
    is_plain = "EXISTS" in sql
    assert (HELD in notes(session, f"{sql}  ")) == is_plain
    assert (asked.rows == again.rows) == (not is_plain)


def test_a_smaller_bound_is_not_bounded(opened: Open) -> None:
    session = opened()
    bounds(session)
    session.execute("SET dpsql.intervals = 0.95")
    session.execute("SET dpsql.max_rows = 5")
    assert notes(session).startswith(
        'a person counts with at most 5 rows of "loan"; no error bar holds what that leaves out'
    )
    assert "people of" not in notes(session, "SELECT COUNT(*) FROM person")


def test_another_policy_of_other_things_finds_it_and_another_bound_does_not(opened: Open) -> None:
    bounds(opened())
    assert QUOTED.search(notes(opened(fee=8)))
    assert NEVER in notes(opened(rows=11))


def test_it_is_stored_under_the_table_the_way_and_the_bound(opened: Open) -> None:
    """Whatever makes it another question is in the keys, and nothing else is."""

    def keys(session: Session, name: str, *rungs: int, of: str | None = None) -> tuple[bytes, bytes]:
        return people_keys(*session.dataset.under_people(name, of), name, rungs, of)

    session = opened()
    known = keys(session, "loan", 10)
    assert keys(opened(rows=20, fee=3, payments="max_rows = 7"), "loan", 10) == known
    policy, catalog = session.dataset.under_people("loan")
    loan = catalog.tables["loan"]
    other_key = replace(loan, grounds=(*loan.grounds, ("its key", "another")))
    others = [
        known,
        keys(session, "side.payment", 10),
        keys(session, "loan", 10, 50),
        keys(session, "loan", 10, of="fee"),
        people_keys(replace(policy, privacy=replace(policy.privacy, together=3)), catalog, "loan", (10,)),
        people_keys(policy, replace(catalog, tables={**catalog.tables, "loan": other_key}), "loan", (10,)),
    ]
    assert len({one for pair in others for one in pair}) == 2 * len(others)


def test_where_the_declared_bound_is_far_off_both_are_measured(opened: Open) -> None:
    session = opened(rows=2)
    found = bounds(session)
    assert (found.declared, found.suggested) == (2, 15)
    assert [one.max_rows for one in found.left_out] == [2, 15]
    assert [one.rungs for one in found.left_out] == [(2, 50), (15,)]
    assert QUOTED.search(notes(session))
    assert QUOTED.search(notes(opened(rows=15))), "the suggested one was measured too"


def test_after_new_data_it_is_said_to_be_of_before(opened: Open) -> None:
    session = opened()
    session.execute("SET dpsql.intervals = 0.95")
    bounds(session)
    session.dataset.store.advance_epoch()
    assert (
        f"(measured {TODAY}; the data have changed since); no error bar holds what that leaves out"
        in notes(session)
    )
    assert bounds(session).spent.epsilon_nano == 200 * 10**9
    assert HELD in notes(session, f"{LOANS} ")


def test_it_is_found_where_rows_are_cut_elsewhere(opened: Open) -> None:
    session = opened()
    per_person = (
        "SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM loan GROUP BY who) AS t WHERE n BETWEEN 0 AND 9"
    )
    assert 'per person takes at most 10 rows of "loan"; no error bar holds what that leaves out' in notes(
        session, per_person
    )
    for sql in ("SELECT COUNT(*) FROM loan JOIN person ON mail = who", f"{LOANS} WHERE fee > 3"):
        assert (
            "; no error bar holds what that leaves out: the owner has not measured it (dpsql bounds loan)"
            in notes(session, sql)
        ), sql
    bounds(session)
    for sql in (per_person, "SELECT SUM(age) FROM loan JOIN person ON mail = who", f"{LOANS} WHERE fee > 4"):
        assert "of all rows, at least" in notes(session, sql), sql


def test_it_is_free_again_for_every_analyst_and_costs_what_was_said(opened: Open) -> None:
    session = opened()
    assert bounds(session).spent.epsilon_nano == 200 * 10**9
    again = bounds(opened())
    assert (again.spent.epsilon_nano, again.paid.epsilon_nano) == (0, 200 * 10**9)


@pytest.mark.parametrize("privacy", ['neighbours = "replace-one"', "together = 3"])
def test_other_promises(opened: Open, privacy: str) -> None:
    session = opened(privacy=privacy)
    found = bounds(session, epsilon=600)
    assert QUOTED.search(notes(session))
    (one,) = found.left_out
    assert one.law == Laplace(40 * Fraction(2 if "replace" in privacy else 3) / 450)


def test_a_dataset_that_adds_up_rho_has_gaussian_noise(opened: Open) -> None:
    """A person's place is in two numbers of one part, which come to one: in L2 it is no more."""
    session = opened(privacy='delta = 1e-6\naccounting = "zcdp"')
    (one,) = bounds(session, epsilon=4).left_out
    assert isinstance(one.law, Gaussian)
    assert float(one.law.scale) == pytest.approx(40 / 3)
    assert abs(one.people - 400) < 9
    assert QUOTED.search(notes(session))


def test_a_table_that_finds_its_owner_over_others(opened: Open) -> None:
    """No max_rows yet: nothing can be asked of it, but it can be measured."""
    session = opened(payments="")
    found = bounds(session, "side.payment")
    assert (found.declared, found.suggested) == (None, 15)
    (suggested,) = found.left_out
    assert 395 <= suggested.people <= 405
    after = opened(payments="max_rows = 15")
    assert 'of "side.payment", about 100 % of all rows' in notes(after, "SELECT COUNT(*) FROM side.payment")


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


def counted(number: int, others: int, scale: int = 10) -> LeftOut:
    """Return people above a bound of 5, and others with one row each, under a noise of so many tenths of people."""
    return LeftOut((5,), (4 * others, 0), (others, 5 * number), Laplace(Fraction(scale)), "2026-11-22", True)


def test_the_bar_of_the_share_holds_wherever_both_numbers_are_within_theirs() -> None:
    one, beta = counted(50, 950), Fraction(1, 40)
    half = one.law.half_width(beta) / Fraction(5)
    more = half_width_of([(one.law, Fraction(1, 5))] * 2, beta)
    low, high = one.share_ends
    assert low == pytest.approx(float((50 - half) / (50 - half + 950 + more)))
    assert high == pytest.approx(float((50 + half) / (50 + half + 950 - more)))
    assert low < 0.05 < high
    assert one.people_ends[0] < 1000 < one.people_ends[1]


@pytest.mark.parametrize(
    ("number", "others", "share", "ends"),
    [(0, 0, None, (0, 1)), (-30, 20, None, (0, 1)), (-9, 5000, 0.0, (0, 0.006)), (5000, -9, 1.0, (0.99, 1))],
)
def test_a_share_is_one_whatever_the_noise(
    number: int, others: int, share: float | None, ends: tuple[float, float]
) -> None:
    shown = counted(number, others)
    assert shown.share == share
    low, high = shown.share_ends
    assert ends[0] <= low <= high <= ends[1]
    assert 0 <= shown.kept_at_least <= (1 if shown.kept is None else shown.kept) <= 1


def test_rows_left_out_are_those_beyond_the_bound_and_the_tail() -> None:
    """Of bounds 5 and 25: 60 people with 15 rows, 2 beyond 25, 900 with 5; the two are taken to have 75 at most."""
    one = LeftOut((5, 25), (0, 20 * 30, 0), (900 * 20, 20 * 30, 40), Laplace(Fraction(1)), "2026-11-22", True)
    assert (one.people, one.above) == (962, 62)
    assert one.kept == pytest.approx(962 * 5 / (962 * 5 + 60 * 10 + 2 * 20))
    found = one.excess(5)
    assert found is not None
    assert found.rows == 60 * 10 + 2 * (20 + 50)
    assert sorted(20 * weight for _, weight in found.noises) == [20, 70], "nobody at 5 leaves a row out"
    larger = one.excess(15)
    assert larger is not None
    assert larger.rows == 30 * 10 + 2 * (10 + 50), "between the rungs it is no less than 0"
    beyond = one.excess(100)
    assert beyond is not None
    assert beyond.rows == 2 * 50
    assert one.excess(4) is None


def test_the_share_of_rows_that_is_left_out_has_a_bar() -> None:
    """Of bounds 5 and 25: 600 of 5,412 rows, and 2 people who are taken to have 75 rows each."""
    one = LeftOut(
        (5, 25), (0, 20 * 30, 0), (900 * 20, 20 * 30, 40), Laplace(Fraction(20)), "2026-11-22", True
    )
    assert one.left is not None
    share, half = one.left
    assert one.kept is not None
    assert share == pytest.approx(1 - one.kept)
    beyond = 60 * 10 + 2 * (20 + 50)
    assert share + half > beyond / (962 * 5 + beyond) > share
    assert left_text(one.left) == "it leaves out 11.7 ± 4.9 % of all rows"
    assert counted(2, 9000, 1).left is not None
    assert re.fullmatch(r"it leaves out at most 0\.\d+ % of all rows", left_text(counted(2, 9000, 1).left))


@pytest.mark.parametrize(
    "few", [counted(2, 30, 10), counted(60, 940, 1), counted(3, 90, 2), counted(-30, 20)]
)
def test_too_few_people_to_say_how_many_rows_are_left_out(few: LeftOut) -> None:
    """Too much noise for them, or too many beyond the last rung."""
    assert few.left is None
    assert "too few people to say" in left_text(few.left)


def test_the_bar_of_the_share_holds_the_truth() -> None:
    """People with 1 to 60 rows, of whom some are beyond a bound of 5 and nobody beyond 25 but as is taken."""
    rng, held = np.random.default_rng(7), []
    rows = np.minimum(np.ceil(rng.lognormal(1, 0.8, 3000)), 25).astype(int)
    truth = np.maximum(rows - 5, 0).sum() / rows.sum()
    steps = steps_between((5, 25))
    part = np.where(rows <= 5, 0, 1)
    at = np.where(part == 0, rows * (steps // 5), (rows - 5) * (steps // 20))
    exact = [[int((steps - at)[part == p].sum()) for p in (0, 1)], [int(at[part == p].sum()) for p in (0, 1)]]
    law = Laplace(Fraction(4 * steps))
    for _ in range(40):
        low, high = ([*map(int, one + np.rint(rng.laplace(0, 4 * steps, 2)))] for one in np.array(exact))
        last = int(np.rint(rng.laplace(0, 4 * steps)))
        found = LeftOut((5, 25), (*low, 0), (*high, last), law, "2026-11-22", True).left
        assert found is not None
        held.append(abs(found[0] - truth) <= found[1])
    assert sum(held) >= 36


def test_nothing_is_taken_of_many_people_beyond() -> None:
    assert counted(40, 960, 1).excess(5) is not None
    assert counted(60, 940, 1).excess(5) is None
    assert counted(2, 30, 10).excess(5) is None, "too few people for so much noise"


def test_rungs() -> None:
    assert [rungs_for(60, few) for few in (1, 60, 61, 300, 301, 10_000)] == [
        (60,), (60,), (60, 300), (60, 300), (60, 1500), (60, 1500),
    ]  # fmt: skip


def test_percent() -> None:
    shown = [percent(share) for share in (0, 0.00001, 0.00372, 0.0123, 0.25, 0.994, 0.996, 1)]
    assert shown == ["0 %", "0 %", "0.37 %", "1.2 %", "25 %", "99 %", "100 %", "100 %"]
    ends = [percent(share, up=True) for share in (0, 0.00001, 0.00372, 0.0123, 0.25, 0.2503, 1)]
    assert ends == ["0 %", "0.01 %", "0.38 %", "1.3 %", "25 %", "26 %", "100 %"]

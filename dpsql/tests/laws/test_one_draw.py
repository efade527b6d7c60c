"""L7: one draw per charge. What has been drawn is what is read, by whatever statement, session or process."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.answer import Answer
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.policy import parse_policy
from dpsql.tests.support.random_databases import policy_text

from .conftest import Desk, OpenDesk
from .examples import HEAVY, ORDINARY
from .test_published_keys import Much

NOTHING = Fraction(0)
COUNTS = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM visit GROUP BY city"


def spent(desk: Desk) -> int:
    return desk.session.dataset.store.spent().epsilon_nano


def cost(answer: Answer) -> Fraction:
    assert answer.receipt is not None
    return answer.receipt.epsilon


@pytest.fixture
def full(desk: OpenDesk) -> Desk:
    opened = desk()
    opened.settle(HEAVY)
    return opened


def another_session(desk: Desk) -> Session:
    backend = DuckDBBackend.over(desk.connection)
    return Session(Dataset(desk.policy, backend, desk.session.dataset.store), "somebody else")


def test_a_repeated_statement_reads_the_stored_draw(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    assert cost(first) == 1
    for _ in range(3):
        again = full.session.execute(COUNTS)
        assert (again.rows, cost(again)) == (first.rows, NOTHING)
        assert again.receipt is not None
        assert again.receipt.reused
    assert spent(full) == 10**9


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (COUNTS + " ORDER BY 2 DESC", lambda rows: sorted(rows, key=lambda row: -row[1])),
        (COUNTS + " LIMIT 2", lambda rows: rows[:2]),
        (COUNTS + " HAVING COUNT(*) > -1000000000", lambda rows: rows),
        (
            "SELECT city, COUNT(*) * 2 + 1, SUM(x) FROM visit GROUP BY city",
            lambda rows: [(c, n * 2 + 1, s) for c, n, s in rows],
        ),
        ("select  city , count( * ) , sum(x) -- same\nfrom VISIT as v group by 1", lambda rows: rows),
        (f"WITH t AS ({COUNTS}) SELECT city, n, s FROM t", lambda rows: rows),
    ],
)
def test_what_stands_above_the_door_costs_nothing(full: Desk, sql: str, expected: object) -> None:
    assert callable(expected)
    first = full.session.execute(COUNTS)
    again = full.session.execute(sql)
    assert cost(again) == 0
    assert [tuple(row) for row in again.rows] == [tuple(row) for row in expected(first.rows)]
    assert spent(full) == 10**9


def test_the_data_may_change_and_the_draw_does_not(full: Desk) -> None:
    """Staleness is never computed from data (soundness.md 3.7)."""
    first = full.session.execute(COUNTS)
    full.settle(ORDINARY)
    for session in (full.session, another_session(full)):
        assert session.execute(COUNTS).rows == first.rows
    assert spent(full) == 10**9


def test_another_session_reads_it(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    again = another_session(full).execute(COUNTS)
    assert (again.rows, cost(again)) == (first.rows, NOTHING)


def test_a_restart_changes_nothing(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    full.session.dataset.store.close()  # type: ignore[attr-defined]  # a LedgerStore
    store = open_ledger(full.policy, create=False)
    session = Session(Dataset(full.policy, DuckDBBackend.over(full.connection), store), "tester")
    again = session.execute(COUNTS)
    assert (again.rows, cost(again)) == (first.rows, NOTHING)
    assert store.spent().epsilon_nano == 10**9
    store.close()


def test_keys_that_were_found_are_kept(full: Desk) -> None:
    """Later measures over undeclared keys speak of the groups that were published first."""
    sql = "SELECT tag, COUNT(*) FROM visit GROUP BY tag"
    first = full.session.execute(sql)
    assert full.session.execute(sql).rows == first.rows
    more = full.session.execute("SELECT tag, COUNT(*), SUM(n) FROM visit GROUP BY tag")
    assert [row[:2] for row in more.rows] == first.rows


def test_reuse_off_pays_and_later_readers_get_the_mean(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    full.session.execute("SET dpsql.reuse = off")
    fresh = full.session.execute(COUNTS)
    assert cost(fresh) == 1
    assert fresh.rows != first.rows
    full.session.execute("SET dpsql.reuse = on")
    later = full.session.execute(COUNTS)
    assert cost(later) == 0
    for one, other, mean in zip(first.rows, fresh.rows, later.rows, strict=True):
        assert mean[0] == one[0]
        assert abs(mean[1] - (one[1] + other[1]) / 2) <= 1.5  # each is rounded by itself
        assert abs(float(mean[2]) - float(one[2] + other[2]) / 2) <= 1.5
    assert another_session(full).execute(COUNTS).rows == later.rows
    assert full.session.execute(COUNTS).rows == later.rows
    assert spent(full) == 2 * 10**9


def test_a_new_epoch_draws_anew_and_gives_nothing_back(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    full.session.dataset.store.advance_epoch()
    fresh = full.session.execute(COUNTS)
    assert (cost(fresh), spent(full)) == (Fraction(1), 2 * 10**9)
    assert fresh.rows != first.rows


def test_a_smaller_epsilon_is_answered_by_the_better_draw(full: Desk) -> None:
    first = full.session.execute(COUNTS)
    full.session.execute("SET dpsql.epsilon = 0.1")
    again = full.session.execute(COUNTS)
    assert (again.rows, cost(again)) == (first.rows, NOTHING)


def test_one_intermediate_is_drawn_once(full: Desk) -> None:
    sql = "SELECT COUNT(*) FROM visit WHERE x > (SELECT AVG(x) FROM visit)"
    first = full.session.execute(sql)
    assert full.session.execute(sql).rows == first.rows
    assert full.session.execute("SELECT AVG(x) FROM visit").receipt is not None
    assert spent(full) <= 2 * 10**9


def check_the_outer_answer_goes_with_the_inner_one(desk: OpenDesk) -> None:
    """An answer that a released value went into is that value's: where the value is drawn anew, so is the answer."""
    opened = desk()
    opened.settle(ORDINARY)
    inner, sql = (
        "SELECT COUNT(*) FROM visit",
        "SELECT COUNT(*) FROM visit WHERE n > (SELECT COUNT(*) FROM visit)",
    )
    opened.session.execute("SET dpsql.epsilon = 0.01")
    first = opened.session.execute(sql)
    opened.session.execute("SET dpsql.epsilon = 0.005")
    was = opened.session.execute(inner).rows
    opened.session.execute("SET dpsql.epsilon = 0.01")
    assert cost(opened.session.execute(sql)) == 0
    opened.session.execute("SET dpsql.epsilon = 0.005")
    while (
        opened.session.execute(inner).rows == was
    ):  # until what all its draws say together is another number
        opened.session.execute("SET dpsql.reuse = off")
        opened.session.execute(inner)
        opened.session.execute("SET dpsql.reuse = on")
    opened.session.execute("SET dpsql.epsilon = 0.01")
    again = opened.session.execute(sql)
    assert cost(again) == Fraction("0.005")
    assert cost(first) == Fraction("0.01")


def test_the_outer_answer_goes_with_the_inner_one(desk: OpenDesk) -> None:
    check_the_outer_answer_goes_with_the_inner_one(desk)


OTHER_QUESTIONS = (
    "SELECT COUNT(*) FROM visit",
    "SELECT COUNT(*) FROM person",
    "SELECT COUNT(*) FROM visit WHERE n > 1",
    "SELECT city, COUNT(*) FROM visit GROUP BY city",
    "SELECT flag, COUNT(*) FROM visit GROUP BY flag",
    "SELECT n > 1, COUNT(*) FROM visit GROUP BY n > 1",
    "SELECT n > 2, COUNT(*) FROM visit GROUP BY n > 2",
    "SELECT COUNT(*) FROM visit WHERE d + n > 5",
    "SELECT COUNT(*) FROM visit WHERE d + n > 6",
    "SELECT SUM(far) FROM visit",
    "SELECT AVG(far) FROM visit",
    "SELECT COUNT(DISTINCT person_id) FROM visit",
    "SELECT COUNT(DISTINCT tag) FROM visit",
    "SELECT COUNT(DISTINCT city) FROM visit",
    "SELECT SUM(n) FROM visit",
    "SELECT SUM(CASE WHEN flag THEN n ELSE -3 END) FROM visit",
    "SELECT AVG(n) FROM visit",
    "SELECT dp_avg_direct(n) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE flag) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE n > 3) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE flag), COUNT(*) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE n > 3), COUNT(*) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE active) FROM person",
    "SELECT COUNT(*) FILTER (WHERE age > 30) FROM person",
    "SELECT dp_avg_direct(age) FROM person",
    "SELECT SUM(age) FROM person",
    "SELECT SUM(CASE WHEN active THEN age ELSE 120 END) FROM person",
    "SELECT AVG(height) FROM person",
)


def check_other_questions(desk: OpenDesk) -> None:
    """What was drawn for one question answers no other one, however alike they are.

    That a total is stored tells a part of its groups: beside an exact one n of them would cost √((n - 1)/n), and here
    they are at least three.
    """
    opened = desk()
    opened.settle(HEAVY)
    for sql in OTHER_QUESTIONS:
        least = Fraction("0.816") if "GROUP BY" in sql else 1
        assert least <= cost(opened.session.execute(sql)) <= 1, sql


def test_another_question_is_asked_anew(desk: OpenDesk) -> None:
    check_other_questions(desk)


def check_measures_go_with_their_keys(desk: OpenDesk) -> None:
    """Where keys were found anew, measures of the groups that were found before answer nothing."""
    opened = desk(Much())
    sql = "SELECT tag, COUNT(*), SUM(n) FROM visit GROUP BY tag"
    opened.settle(ORDINARY)
    assert [row[0] for row in opened.session.execute(sql).rows] == ["t"]
    opened.settle(HEAVY)
    opened.session.execute("SET dpsql.reuse = off")
    opened.session.execute("SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag")
    opened.session.execute("SET dpsql.reuse = on")
    again = opened.session.execute(sql)
    assert cost(again) > 0
    assert [row[0] for row in again.rows] == ["p", "q"]


def test_measures_go_with_their_keys(desk: OpenDesk) -> None:
    check_measures_go_with_their_keys(desk)


PAST_MIDDLE = "SELECT COUNT(*) FROM visit WHERE d + 1 > 5.5"
EDITS = (
    ("d = { bounds = [0, 5] }", "d = { bounds = [0, 4] }", PAST_MIDDLE),
    ('"c", { null = true }]', '"c"]', "SELECT COUNT(*) FROM visit WHERE lower(city) = 'c'"),
    (
        'team = { values = ["red", "blue"] }',
        'team = { values = ["red"] }',
        "SELECT COUNT(*) FROM person WHERE team = 'red'",
    ),
    ("max_rows = 6", "max_rows = 5", PAST_MIDDLE),
    ("max_groups = 2", "max_groups = 1", PAST_MIDDLE),
    ("any_day = {}", "", PAST_MIDDLE),
    ("delta = 1e-3", "delta = 1e-3\nminimum_units = 2", "SELECT tag, COUNT(*) FROM visit GROUP BY tag"),
)


def check_an_edited_policy_is_asked_anew(desk: OpenDesk, folder: Path, edit: tuple[str, str, str]) -> None:
    """What was stored under other declarations answers nothing: a filter may mean something else under them."""
    *change, sql = edit
    folder.mkdir()
    for old, new in (("", ""), change):
        text = policy_text().replace(old, new, 1)
        assert old in policy_text()
        opened = desk(folder=folder, policy=parse_policy(text, folder / "laws.toml"))
        assert cost(opened.session.execute(sql)) == 1
        assert cost(opened.session.execute(sql)) == 0
        opened.session.dataset.store.close()  # type: ignore[attr-defined]  # a LedgerStore


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_policy_is_asked_anew(desk: OpenDesk, tmp_path: Path, edit: tuple[str, str, str]) -> None:
    check_an_edited_policy_is_asked_anew(desk, tmp_path / "edited", edit)


def test_fewer_rows_of_a_person_are_asked_anew(full: Desk) -> None:
    """A draw under another bounding is of other numbers; as many rows as the policy takes is the policy's own."""
    sql = "SELECT COUNT(*) AS n, AVG(x) AS a FROM visit"
    run = full.session.execute
    assert cost(run(sql)) == 1
    for setting, charge in (("6", 0), ("2", 1), ("2", 0), ("3", 1), ("default", 0)):
        run(f"SET dpsql.max_rows = {setting}")
        assert run("SHOW dpsql.max_rows").rows == [(setting,)]
        assert cost(run(sql)) == charge, setting
    run("SET dpsql.max_rows = 2")
    run("RESET dpsql.max_rows")
    assert cost(run(sql)) == 0
    assert run("SHOW dpsql.max_rows").rows == [("default",)]


def test_desks_have_ledgers_of_their_own(desk: OpenDesk, tmp_path: Path) -> None:
    one, two = desk(), desk()
    assert one.session.execute(COUNTS).rows != two.session.execute(COUNTS).rows


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) AS n FROM visit", "SELECT SUM(x) AS s, AVG(x) AS a FROM visit"]
)
def test_the_bars_are_those_of_the_draw_that_answers(full: Desk, sql: str) -> None:
    """A better draw that is stored answers a smaller epsilon, with its own bars."""
    full.session.execute("SET dpsql.intervals = 0.95")
    fine = [full.session.execute(sql).rows[0] for _ in range(2)]
    full.session.execute("SET dpsql.epsilon = 0.01")
    coarse = full.session.execute(sql).rows[0]
    full.session.execute("SET dpsql.reuse = off")
    drawn = full.session.execute(sql).rows[0]
    for column in range(0, len(coarse), 3):
        assert coarse[column] == fine[0][column]
        if coarse[column + 1] is None:  # an average of nobody, as far as a noisy count says
            assert column > 0
            continue
        width = [row[column + 2] - row[column + 1] for row in (*fine, coarse)]
        assert max(width) < 1.5 * min(width)
        if column == 0:  # an average stays inside its bounds
            assert drawn[2] - drawn[1] > 20 * width[0]

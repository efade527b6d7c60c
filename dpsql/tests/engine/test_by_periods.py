"""A total for each month of the data, through a session: what is charged, said, refused and stored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.asserted_keys import look_at_times
from dpsql.engine.dataset import open_ledger
from dpsql.engine.session import Session
from dpsql.errors import BudgetExhausted, LedgerError, PolicyError, Refusal
from dpsql.plan.privacy.time import Clock
from dpsql.policy import check, load_policy
from dpsql.policy.model import Period
from dpsql.policy.periods import Slices, first_day, number_of

POLICY = """
database = "duckdb:shop.duckdb"
[privacy]
epsilon = 1
delta = 1e-6
[privacy.time]
period = "month"
since = 2024-01-01
[defaults]
epsilon = 0.5
[tables.users]
unit = "id"
columns = {{ city = {{ values = ["A", "B"] }} }}
[tables.orders]
unit = {{ column = "user_id", references = "users.id" }}
time = "{time}"
max_rows = 3
columns = {{ ordered_at = {{}}, shipped_at = {{}}, amount = {{ bounds = [0, 9] }} }}
"""


def months_ago(count: int) -> date:
    """Return the first day of a month that is over for so many months, at least."""
    return first_day(Period.MONTH, number_of(Period.MONTH, datetime.now(UTC).date()) - count)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, city TEXT)")
        database.execute(
            "CREATE TABLE orders (user_id INTEGER, ordered_at TIMESTAMP, shipped_at TIMESTAMP, amount INTEGER, updated_at DATE)"
        )
        database.execute("CREATE TABLE notes (user_id INTEGER, written DATE)")
        database.execute("INSERT INTO users SELECT i, 'A' FROM range(50) t (i)")
        for count in range(1, 6):
            moment = months_ago(count).isoformat()
            database.execute(
                f"INSERT INTO orders SELECT i, '{moment}', '{moment}', 1, NULL FROM range(50) t (i)"
            )
    path = tmp_path / "shop.toml"
    path.write_text(POLICY.format(time="ordered_at"), "utf-8")
    open_ledger(load_policy(path), create=True).close()
    with Session.open(path) as opened:
        yield opened


@pytest.fixture
def opened(session: Session) -> Iterator[Session]:
    """A session of a policy that has months answered before they are over; there are rows of the running one."""
    path = session.policy.path
    path.write_text(POLICY.format(time="ordered_at").replace("since", "open = true\nsince"), "utf-8")
    session.close()
    with duckdb.connect(str(path.parent / "shop.duckdb")) as database:
        moment = months_ago(0).isoformat()
        database.execute(f"INSERT INTO orders SELECT i, '{moment}', NULL, 1, NULL FROM range(50) t (i)")
    with Session.open(path) as found:
        yield found


def on_day(session: Session, patch: pytest.MonkeyPatch, now: datetime) -> None:
    """Have a session be asked at a moment."""
    time = session.policy.privacy.time
    assert time is not None
    patch.setattr(
        session.dataset,
        "clock",
        lambda *, is_open=False: Clock.at(time, now, is_open=is_open and time.is_open),
    )


def of_month(count: int, what: str = "COUNT(*)") -> str:
    low, high = months_ago(count), months_ago(count - 1)
    return f"SELECT {what} FROM orders WHERE ordered_at >= '{low}' AND ordered_at < '{high}'"


def test_each_month_has_the_whole_total(session: Session) -> None:
    for count in (3, 4, 5):
        for what in ("COUNT(*)", "SUM(amount)"):
            session.execute(of_month(count, what))
        with pytest.raises(BudgetExhausted, match=f"{months_ago(count):%Y-%m} has epsilon 0 left"):
            session.execute(of_month(count, "AVG(amount)"))
    session.execute("SELECT COUNT(*) FROM users")  # undated rows have their own


def test_several_months_are_charged_together_and_answered_by_month(session: Session) -> None:
    since = months_ago(4)
    by_month = f"SELECT date_trunc('month', ordered_at), COUNT(*) FROM orders WHERE ordered_at >= '{since}' GROUP BY 1 ORDER BY 1"
    rows = session.execute(by_month).rows
    told = [row[0].date() for row in rows if row[0] is not None]
    assert told[:3] == [months_ago(4), months_ago(3), months_ago(2)]
    session.execute(of_month(3, "SUM(amount)"))
    with pytest.raises(BudgetExhausted):
        session.execute(of_month(3, "AVG(amount)"))
    assert session.execute(by_month).receipt is not None  # stored: free
    session.execute(of_month(5))


def test_a_table_keeps_the_time_that_its_rows_were_charged_by(session: Session) -> None:
    """By another one the same rows would be told with another month's budget, and lose both."""
    path = session.policy.path
    session.close()
    shipped = POLICY.format(time="shipped_at")
    for policy in (shipped, POLICY.format(time="ordered_at")):  # nothing of them was charged
        path.write_text(policy, "utf-8")
        with Session.open(path) as opened:
            opened.explain(of_month(3).replace("ordered_at", "shipped_at"))
    with Session.open(path) as opened:
        told_ = [*opened.execute(of_month(3)).rows]
    for policy in (shipped, shipped.replace('time = "shipped_at"\n', "").replace("\n[tables.users]", NOTES)):
        path.write_text(policy, "utf-8")
        with pytest.raises(LedgerError, match='rows of "orders" were charged by time = "ordered_at"'):
            Session.open(path)
    path.write_text(POLICY.format(time="ordered_at"), "utf-8")
    with Session.open(path) as opened:
        assert [*opened.execute(of_month(3)).rows] == told_


def test_rows_are_not_charged_as_another_persons_month(session: Session, tmp_path: Path) -> None:
    """By another key on the way rows would be of another order: of its person, and of its month with a whole budget."""
    path = session.policy.path
    session.close()
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        database.execute("CREATE TABLE bought (id INTEGER PRIMARY KEY, user_id INTEGER, paid TIMESTAMP)")
        database.execute("CREATE TABLE items (bought_as INTEGER, returned_as INTEGER, n INTEGER)")
        for place, count in enumerate((3, 4)):
            moment = f"'{months_ago(count).isoformat()}'"
            database.execute(f"INSERT INTO bought SELECT {50 * place} + i, i, {moment} FROM range(50) t (i)")
        database.execute("INSERT INTO items SELECT i, 50 + i, 1 FROM range(50) t (i)")
    policy = POLICY.format(time="ordered_at") + ITEMS
    path.write_text(policy, "utf-8")
    with Session.open(path) as opened:
        opened.execute("SELECT COUNT(*) FROM items")
    path.write_text(policy.replace('column = "bought_as"', 'column = "returned_as"'), "utf-8")
    with pytest.raises(LedgerError, match='rows of "items" were charged by unit = '):
        Session.open(path)
    path.write_text(policy, "utf-8")
    with Session.open(path) as opened:
        assert opened.execute("SELECT COUNT(*) FROM items").rows


ITEMS = """
[tables.bought]
unit = { column = "user_id", references = "users.id" }
time = "paid"
max_rows = 1
[tables.items]
unit = { column = "bought_as", references = "bought.id" }
time = "bought.paid"
max_rows = 1
"""

NOTES = """
[tables.notes]
unit = { column = "user_id", references = "users.id" }
time = "written"
max_rows = 1
[tables.users]"""


def by_month(count: int, what: str = "COUNT(*)", more: str = "") -> str:
    """Return a statement over the months from one on, each by itself."""
    where = f"ordered_at >= '{months_ago(count)}' {more}"
    return f"SELECT date_trunc('month', ordered_at) AS m, {what} AS n FROM orders WHERE {where} GROUP BY 1 ORDER BY 1"


def paid(session: Session, sql: str) -> Fraction:
    """Return what a statement was charged."""
    receipt = session.execute(sql).receipt
    assert receipt is not None
    return receipt.epsilon


def told(session: Session, sql: str) -> str:
    """Return what EXPLAIN says of a statement, on one line."""
    return " ".join(session.explain(sql).text().split())


def test_each_month_is_one_stored_number_whatever_interval_is_asked(session: Session) -> None:
    """Three months cost their own charge each, a fourth one alone, and no number moves by it."""
    first = session.execute(by_month(3))
    assert first.receipt is not None
    assert first.receipt.epsilon == Fraction(1, 2)
    low, high, new = (f"{months_ago(count):%Y-%m}" for count in (3, 2, 4))
    said = told(session, by_month(4))
    assert f"stored: {low} to" in said
    assert f"to be paid: {new}" in said
    assert said.count("release r") == 1
    more = session.execute(by_month(4))
    assert more.receipt is not None
    assert more.receipt.epsilon == Fraction(1, 2)
    assert [*more.rows][1:] == [*first.rows]
    store = session.dataset.store
    first_month = number_of(Period.MONTH, months_ago(4))
    for count in range(4):
        left = store.left_of(Slices.of([first_month + count - (count > 2)])).status
        assert left.left_nano == 5 * 10**8
    assert "all are stored" in told(session, by_month(4))
    assert high


def test_a_month_asked_for_by_itself_is_the_same_number(session: Session) -> None:
    rows = {str(month)[:7]: number for month, number in session.execute(by_month(4)).rows}
    for count in (4, 3, 2):
        assert session.execute(of_month(count)).rows[0][0] == rows[f"{months_ago(count):%Y-%m}"]
        assert paid(session, of_month(count)) == 0
    between = f"ordered_at::date BETWEEN '{months_ago(3)}' AND '{months_ago(2) - timedelta(1)}'"
    for where in (
        between,
        f"to_char(ordered_at, 'YYYY-MM') = '{months_ago(3):%Y-%m}'",
        f"date_trunc('month', ordered_at) = '{months_ago(3)}'",
    ):
        assert paid(session, f"SELECT COUNT(*) FROM orders WHERE {where}") == 0, where


def test_keys_that_say_each_other_are_shown_as_they_were_asked(session: Session) -> None:
    """Whatever says a month, it is the same number, beside its own keys: those of all months, though one month has one
    value of each."""
    rows = [(month, number) for month, number in session.execute(by_month(5)).rows if month is not None]
    said = {
        "extract(year FROM ordered_at), extract(month FROM ordered_at)": lambda m: (m.year, m.month),
        "date_trunc('quarter', ordered_at), date_trunc('month', ordered_at)": lambda m: (
            m.replace(month=m.month - (m.month - 1) % 3), m,
        ),
        "to_char(ordered_at, 'YYYY-MM'), extract(month FROM ordered_at)": lambda m: (f"{m:%Y-%m}", m.month),
        "date_trunc('month', ordered_at), extract(year FROM ordered_at)": lambda m: (m, m.year),
    }  # fmt: skip
    for keys, of in said.items():
        sql = f"SELECT {keys}, COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(5)}' GROUP BY 1, 2"
        answer = session.execute(sql)
        assert answer.receipt is not None
        assert answer.receipt.epsilon == 0, keys
        assert sorted(answer.rows, key=repr) == sorted(((*of(m), n) for m, n in rows), key=repr), keys


def test_a_sum_of_months_has_bars_also_where_some_are_told_by_several_answers(session: Session) -> None:
    session.execute(by_month(4))
    session.execute("SET dpsql.reuse = off")
    session.execute(of_month(3))
    session.execute("SET dpsql.reuse = on")
    ((total, low, high),) = session.execute(
        f"SELECT s, dp_low(s), dp_high(s) FROM (SELECT sum(n) AS s FROM ({by_month(4)}) t) u"
    ).rows
    assert low is not None
    assert low <= total <= high


def test_a_filter_that_cuts_a_month_is_another_number_of_that_month_alone(session: Session) -> None:
    session.execute(by_month(3))
    cut = by_month(3, more=f"AND ordered_at >= '{months_ago(3) + timedelta(9)}'")
    said = told(session, cut)
    assert f"to be paid: {months_ago(3):%Y-%m}" in said
    assert paid(session, cut) == Fraction(1, 2)
    assert paid(session, cut) == 0


def test_what_has_groups_of_several_months_is_one_draw(session: Session) -> None:
    session.execute(by_month(3))
    for sql in (
        f"SELECT COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(3)}'",
        f"SELECT date_trunc('week', ordered_at), COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(3)}' GROUP BY 1",
    ):
        assert "a draw of each month" not in told(session, sql)
        assert session.explain(sql).cost == Fraction(1, 2)


def test_days_and_cities_within_a_month_and_what_stands_above(session: Session) -> None:
    days = f"SELECT date_trunc('day', ordered_at) AS d, city, COUNT(*) AS n, AVG(amount) FROM orders JOIN users ON id = user_id WHERE ordered_at >= '{months_ago(3)}' GROUP BY 1, 2"
    rows = session.execute(f"SELECT d, city, n, dp_low(n), dp_high(n) FROM ({days}) t ORDER BY 1, 2").rows
    days_in = (months_ago(1) - months_ago(3)).days
    assert len(rows) >= 2 * days_in
    assert all(low <= number <= high for _, _, number, low, high in rows)
    top = session.execute(f"SELECT m, n FROM ({by_month(3)}) t ORDER BY n DESC LIMIT 1")
    assert len(top.rows) == 1


def test_the_running_month_is_refused_with_the_filter_that_helps(session: Session) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(f"SELECT COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(0)}'")
    assert refused.value.sqlstate == "PV104"
    assert "ordered_at < '" in str(refused.value.hint)


def test_explain_names_the_months_and_what_bounds_a_person(session: Session) -> None:
    (low, high) = (f"{months_ago(count):%Y-%m}" for count in (4, 3))
    told = "\n".join(str(row[0]) for row in session.execute(
        f"EXPLAIN SELECT COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(4)}' AND ordered_at < '{months_ago(2)}'"
    ).rows)  # fmt: skip
    assert (
        f'months: {low} to {high} of "orders"."ordered_at", printed; epsilon 0.5 is charged to each' in told
    )
    assert "bounded by person and month; a person in all of them: 2 times that" in told
    assert f"charge: epsilon 0.5 (nothing, if it is answered already); 1 left, of {low} to {high}" in told


def test_no_note_names_a_measurement_that_is_refused(session: Session) -> None:
    for sql in (of_month(3), "SELECT COUNT(*) FROM orders", "SELECT COUNT(*) FROM users"):
        assert "dpsql bounds" not in session.explain(sql).text()
        receipt = session.execute(sql).receipt
        assert receipt is not None
        assert not any("dpsql bounds" in note for note in receipt.notes)


def test_what_no_filter_bounds_says_so_before_it_is_charged(session: Session) -> None:
    sql = f"SELECT COUNT(*) FROM orders WHERE shipped_at >= '{months_ago(3)}'"
    told = "\n".join(str(row[0]) for row in session.execute(f"EXPLAIN {sql}").rows)
    told = " ".join(told.split())
    assert 'no filter bounds "ordered_at"' in told
    assert '"shipped_at" bounds nothing' in told


def test_check_warns_of_a_time_that_changes(session: Session) -> None:
    policy = load_policy(session.policy.path)
    with session.dataset.backend.snapshot() as snapshot:
        live = snapshot.schema()
    assert "for each month of the data from 2024-01-01 on: epsilon 1" in check(policy, live).privacy
    policy.path.write_text(POLICY.format(time="updated_at"), "utf-8")
    (warned,) = [one for one in check(load_policy(policy.path), live).warnings if "seems to change" in one]
    assert "another period" in warned
    policy.path.write_text(POLICY.format(time="amount"), "utf-8")
    (problem,) = check(load_policy(policy.path), live).problems
    assert "name a date or timestamp column" in problem
    with pytest.raises(PolicyError):
        Session.open(policy.path)


def test_check_with_the_data_counts_rows_of_no_period(session: Session) -> None:
    policy = load_policy(session.policy.path)
    session.dataset.backend.close_idle()
    with duckdb.connect(policy.database.removeprefix("duckdb:")) as database:
        for moment in ("NULL", "'2023-12-31 23:59:59'", "'2999-01-01'", "'2024-01-01'"):
            database.execute(f"INSERT INTO orders VALUES (1, {moment}, NULL, 1, NULL)")
    (found,) = look_at_times(policy, session.dataset.backend, datetime.now(UTC).date())
    assert (found.table, found.rows, found.without, found.before, found.later) == ("orders", 254, 1, 1, 1)


# --- periods that are not over ------------------------------------------------------------------------------


def test_the_running_month_is_asked_for_by_name_where_the_owner_allows_it(session: Session) -> None:
    with pytest.raises(Refusal, match="no month answered before it is over") as refused:
        session.execute("SET dpsql.open = on")
    assert refused.value.sqlstate == "22023"
    session.execute("SET dpsql.open = off")


def test_closed_months_alone_answer_unless_open_ones_are_asked_for(opened: Session) -> None:
    running = f"SELECT COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(0)}'"
    with pytest.raises(Refusal) as refused:
        opened.execute(running)
    assert "SET dpsql.open = on" in str(refused.value.hint)
    opened.execute("SET dpsql.open = on")
    assert opened.execute("SHOW dpsql.open").rows == [("on",)]
    receipt = opened.execute(running).receipt
    assert receipt is not None
    assert receipt.epsilon == Fraction(1, 2)
    assert any("not over" in note for note in receipt.notes)


def test_an_open_month_is_charged_anew_each_day_and_moves_no_closed_one(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = months_ago(0)
    day = datetime(first.year, first.month, 10, 12, tzinfo=UTC)
    on_day(opened, monkeypatch, day)
    closed = opened.execute(by_month(2)).rows
    opened.execute("SET dpsql.open = on")
    rows = opened.execute(by_month(2)).rows
    assert [*rows][:2] == [*closed]
    assert len(rows) == 3
    assert paid(opened, by_month(2)) == 0
    on_day(opened, monkeypatch, day + timedelta(hours=5))
    assert paid(opened, by_month(2)) == 0
    on_day(opened, monkeypatch, day + timedelta(days=1))
    said = told(opened, by_month(2))
    assert f"to be paid: {first:%Y-%m}" in said
    assert "not over" in said
    later = opened.execute(by_month(2))
    assert later.receipt is not None
    assert later.receipt.epsilon == Fraction(1, 2)
    assert [*later.rows][:2] == [*closed]
    number = number_of(Period.MONTH, first)
    store = opened.dataset.store
    assert [store.left_of(Slices.of([one])).status.left_nano for one in (number, number - 1)] == [
        0,
        5 * 10**8,
    ]
    on_day(opened, monkeypatch, day + timedelta(days=2))
    with pytest.raises(BudgetExhausted, match=f"{first:%Y-%m} has epsilon 0 left"):
        opened.execute(by_month(2))
    opened.execute("SET dpsql.open = off")
    assert [*opened.execute(by_month(2)).rows] == [*closed]


def test_counts_and_sums_are_split_where_months_are_not_over(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is over is drawn once; each day after that the running month alone is charged."""
    first = months_ago(0)
    day = datetime(first.year, first.month, 10, 12, tzinfo=UTC)
    opened.execute("SET dpsql.open = on")
    store, number = opened.dataset.store, number_of(Period.MONTH, first)
    total = f"SELECT COUNT(*) AS n, SUM(amount) FROM orders WHERE ordered_at >= '{months_ago(2)}'"
    by_city = f"SELECT city, COUNT(*) AS n FROM orders JOIN users ON id = user_id WHERE ordered_at >= '{months_ago(2)}' GROUP BY city ORDER BY city"
    opened.execute("SET dpsql.epsilon = 0.2")
    for sql in (total, by_city):
        on_day(opened, monkeypatch, day)
        rows = opened.execute(sql).rows
        assert len(rows) == (1 if sql == total else 2)
        assert paid(opened, sql) == 0
        on_day(opened, monkeypatch, day + timedelta(days=1))
        said = told(opened, sql)
        assert "one draw of what is over, and one of each month that is not" in said
        assert f"to be paid: {first:%Y-%m}" in said
        assert paid(opened, sql) == Fraction(1, 5)
    left = [store.left_of(Slices.of([one])).status.left_nano for one in (number - 1, number)]
    assert left == [6 * 10**8, 2 * 10**8]
    ((_, low, high),) = opened.execute(f"SELECT n, dp_low(n), dp_high(n) FROM ({total}) t").rows
    assert low < high
    average = f"SELECT AVG(amount) FROM orders WHERE ordered_at >= '{months_ago(2)}'"
    assert "one draw of what is over" not in told(opened, average)


def test_what_is_drawn_of_an_open_month_is_no_answer_once_it_is_over(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, after = months_ago(0), months_ago(-1)
    on_day(opened, monkeypatch, datetime(first.year, first.month, 20, tzinfo=UTC))
    opened.execute("SET dpsql.open = on")
    running = f"SELECT COUNT(*) FROM orders WHERE ordered_at >= '{first}' AND ordered_at < '{after}'"
    assert paid(opened, running) == Fraction(1, 2)
    on_day(opened, monkeypatch, datetime(after.year, after.month, 4, tzinfo=UTC))
    assert paid(opened, running) == Fraction(1, 2)
    on_day(opened, monkeypatch, datetime(after.year, after.month, 9, tzinfo=UTC))
    assert paid(opened, running) == 0


# --- late rows ----------------------------------------------------------------------------------------------


def test_rows_that_came_late_retire_the_answers_of_their_month_alone(session: Session) -> None:
    rows = session.execute(by_month(4)).rows
    users = "SELECT COUNT(*) FROM users"
    whole = f"SELECT COUNT(*) FROM orders WHERE ordered_at >= '{months_ago(4)}'"
    answers = {sql: session.execute(sql).rows for sql in (users, whole)}
    number = number_of(Period.MONTH, months_ago(3))
    session.dataset.store.advance_epoch(retired=Slices.of([number]))
    said = told(session, by_month(4))
    assert f"to be paid: {months_ago(3):%Y-%m}" in said
    assert [session.execute(users).rows, paid(session, users)] == [answers[users], 0]
    with pytest.raises(BudgetExhausted, match=f"{months_ago(3):%Y-%m} has epsilon 0 left"):
        session.execute(by_month(4))
    others = f"SELECT date_trunc('month', ordered_at) AS m, COUNT(*) AS n FROM orders WHERE ordered_at >= '{months_ago(2)}' GROUP BY 1 ORDER BY 1"
    assert session.execute(others).rows == [*rows][2:]
    assert paid(session, others) == 0
    with pytest.raises(BudgetExhausted):  # a number over that month is retired with it
        session.execute(whole)


def test_rows_of_the_last_months_alone_are_read_where_no_more_are_kept(session: Session) -> None:
    """Neither answered nor charged is what is older, whatever the statement asks; each month, older ones drop out."""
    path = session.policy.path
    path.write_text(
        POLICY.format(time="ordered_at").replace("since", 'retention = "2 months"\nsince'), "utf-8"
    )
    session.close()
    with Session.open(path) as kept:
        clock = kept.dataset.clock()
        assert clock is not None
        last = clock.end - 1
        kept.execute("SELECT COUNT(*) FROM orders")
        charged = [(first, end) for first, end, sums in kept.dataset.store.slices() if sums[0]]
        assert charged == [(last - 1, last)]
        month = "SELECT date_trunc('month', ordered_at) AS m, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1"
        rows = kept.execute(month).rows
        assert [row[0].date() for row in rows] == [
            first_day(Period.MONTH, number) for number in (last - 1, last)
        ]
        old = first_day(Period.MONTH, last - 1)
        spent = kept.dataset.store.spent()
        with pytest.raises(Refusal) as refused:
            kept.execute(f"SELECT COUNT(*) FROM orders WHERE ordered_at < '{old}'")
        assert refused.value.hint is not None
        assert f", from {old} on" in refused.value.hint
        assert kept.dataset.store.spent() == spent

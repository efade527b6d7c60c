"""Connections: opening, closing, settings, a caller's own database, and threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.policy import load_policy
from dpsql.release import post_processing
from dpsql.tests.dbapi.conftest import COUNT, SCHEMA, Connect, left

SLOW = "SELECT COUNT(*) FROM number AS a, " + ", ".join(f"number AS b{i}" for i in range(11))
"""A public question of 10^12 rows."""


def test_a_with_block_closes(policy: Path) -> None:
    with dpsql.connect(str(policy)) as connection:
        cursor = connection.execute(COUNT)
        assert not connection.closed
        assert connection.autocommit
        connection.commit()
        connection.rollback()
    assert connection.closed
    assert cursor.closed
    connection.close()
    for use in (
        connection.cursor, connection.commit, connection.rollback, connection.cancel, connection.__enter__,
        cursor.fetchone, cursor.fetchall, cursor.nextset, cursor.fetch_arrow_table,
        lambda: cursor.execute(COUNT), lambda: cursor.executemany(COUNT, []), lambda: connection.explain(COUNT),
    ):  # fmt: skip
        with pytest.raises(dpsql.InterfaceError, match="the connection is closed"):
            use()


def test_rollback_gives_nothing_back(connection: dpsql.Connection) -> None:
    connection.execute(COUNT)
    connection.rollback()
    assert left(connection) == "1.9"
    with pytest.raises(dpsql.NotSupportedError):
        connection.execute("BEGIN")


def test_the_exceptions_are_attributes(connection: dpsql.Connection) -> None:
    with pytest.raises(connection.ProgrammingError):
        connection.execute("SELECT nothing")


@pytest.mark.parametrize("epsilon", ["0.5", 0.5, Decimal("0.5"), Fraction(1, 2)])
def test_epsilon_of_a_connection(connect: Connect, epsilon: object) -> None:
    receipt = connect(epsilon=epsilon).execute(COUNT).receipt
    assert receipt is not None
    assert (receipt.epsilon, receipt.left, receipt.reused) == (Fraction(1, 2), Fraction(3, 2), False)


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"epsilon": 0}, dpsql.ProgrammingError, "PV301"),
        ({"epsilon": 5}, dpsql.ProgrammingError, "PV301"),
        ({"epsilon": float("nan")}, dpsql.ProgrammingError, "PV301"),
        ({"epsilon": 1e-320}, dpsql.ProgrammingError, "PV301"),
        ({"epsilon": "-1"}, dpsql.ProgrammingError, "PV301"),
        ({"epsilon": Fraction(1, 3)}, dpsql.ProgrammingError, "PV301"),
        ({"intervals": 1.5}, dpsql.DataError, "22023"),
        ({"intervals": "wide"}, dpsql.DataError, "22023"),
        ({"analyst": "\udcff"}, dpsql.OperationalError, "F0V01"),
    ],
)
def test_a_bad_option_opens_nothing(
    policy: Path, options: dict[str, object], kind: type[Exception], code: str
) -> None:
    with pytest.raises(kind) as refused:
        dpsql.connect(policy, **options)  # type: ignore[arg-type]  # wrong ones are the point
    assert refused.value.sqlstate == code  # type: ignore[attr-defined]  # all of `kind` have it
    duckdb.connect(str(policy.parent / "people.duckdb")).close()  # nobody holds the file


def test_a_policy_that_is_wrong_or_has_no_ledger(policy: Path) -> None:
    with pytest.raises(dpsql.OperationalError) as wrong:
        dpsql.connect(policy.parent / "none.toml")
    assert wrong.value.sqlstate == "F0V01"
    (policy.parent / "people.db").unlink()
    (policy.parent / "people.db.log").unlink()
    with pytest.raises(dpsql.OperationalError) as missing:
        dpsql.connect(policy)
    assert missing.value.sqlstate == "F0V02"


def test_a_policy_that_was_read(policy: Path) -> None:
    with dpsql.connect(load_policy(policy)) as connection:
        assert connection.execute(COUNT).rowcount == 1


def test_an_analyst_has_a_cap(connect: Connect) -> None:
    alice = connect("alice")
    assert left(alice) == "0.15"
    alice.execute(COUNT)
    with pytest.raises(dpsql.OperationalError) as spent:
        alice.execute("SELECT SUM(age) FROM person")
    assert spent.value.sqlstate == "53V01"
    assert left(alice) == "0.05"
    assert left(connect()) == "1.9"


def test_over_a_connection_of_the_callers(policy: Path) -> None:
    database = duckdb.connect()
    database.execute(SCHEMA)
    with dpsql.connect(policy, connection=database) as connection:
        assert connection.execute("SELECT COUNT(*) FROM thing").fetchone() == (2,)
        database.execute("INSERT INTO thing (small) VALUES (9)")
        assert connection.execute("SELECT COUNT(*) FROM thing").fetchone() == (3,)
        assert connection.execute(COUNT).rowcount == 1
    assert database.execute("SELECT COUNT(*) FROM thing").fetchone() == (3,)
    database.close()


def test_over_what_is_no_connection(policy: Path) -> None:
    with pytest.raises(dpsql.InterfaceError):
        dpsql.connect(policy, connection="people.duckdb")  # type: ignore[arg-type]  # the point
    database = duckdb.connect()
    database.execute("SET default_null_order = 'nulls_first'")
    with pytest.raises(dpsql.OperationalError) as refused:
        dpsql.connect(policy, connection=database)
    assert "default_null_order" in refused.value.message
    database.close()


def test_a_callers_connection_that_is_closed(policy: Path) -> None:
    database = duckdb.connect()
    database.execute(SCHEMA)
    with dpsql.connect(policy, connection=database) as connection:
        database.close()
        with pytest.raises(dpsql.OperationalError) as failed:
            connection.execute(COUNT)
        assert failed.value.sqlstate == "58V01"
        assert left(connection) == "2"


def test_the_budget_ends_at_the_cap_and_refusals_cost_nothing(connect: Connect) -> None:
    connection = connect(epsilon=1)
    for sql, kind in (
        ("SELECT city FROM person", dpsql.ProgrammingError),
        ("SELECT id FROM person", dpsql.ProgrammingError),
        ("SELECT nothing", dpsql.ProgrammingError),
        ("DELETE FROM person", dpsql.ProgrammingError),
        ("SET dpsql.epsilon = 9", dpsql.ProgrammingError),
        ("SET dpsql.intervals = 9", dpsql.DataError),
        ("SET work_mem = 4", dpsql.ProgrammingError),
    ):
        with pytest.raises(kind):
            connection.execute(sql)
    assert left(connection) == "2"
    connection.execute(COUNT)
    connection.execute("SELECT SUM(age) FROM person")
    with pytest.raises(dpsql.OperationalError) as spent:
        connection.execute("SELECT COUNT(*) FROM person WHERE age > 3")
    assert spent.value.sqlstate == "53V01"
    again = connection.execute(COUNT).receipt
    assert again is not None
    assert again.reused
    assert (again.epsilon, again.left) == (0, 0)


def test_explain_costs_nothing(connection: dpsql.Connection) -> None:
    shown = connection.explain("SELECT COUNT(*) FROM person WHERE age > ?", [3])
    assert "Laplace scale 10" in shown.text()
    assert "QUERY PLAN" in str(
        connection.execute("EXPLAIN SELECT COUNT(*) FROM person WHERE age > ?", [3]).description
    )
    assert left(connection) == "2"


# --- threads ---------------------------------------------------------------------------------------------


def test_threads_share_a_connection(connection: dpsql.Connection) -> None:
    """Each of 8 threads gets its own rows, each question is charged once, settings of cursors do not mix."""

    def ask(number: int) -> tuple[int, int, object]:
        cursor = connection.cursor(intervals=0.95) if number % 2 else connection.cursor()
        cursor.execute("SELECT ? AS k, COUNT(*) AS n FROM person WHERE age > ?", [number, number % 10])
        (row,) = cursor.fetchall()
        return number, len(row), row[0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(80)))
    assert found == [(number, 4 if number % 2 else 2, number) for number in range(80)]
    assert left(connection) == "1"
    shown = connection.execute("SHOW dpsql.intervals").fetchone()
    assert shown == ("off",)


def wait_until_it_runs(connection: dpsql.Connection) -> None:
    """Wait until a statement has the database open."""
    backend = connection._session.dataset.backend
    while not backend._snapshots:  # type: ignore[attr-defined]  # DuckDB's
        time.sleep(0.01)


def test_a_failure_after_the_charge_says_what_it_was(
    connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_processing, "POSTPROCESS_SECONDS", 0.2)
    with pytest.raises(dpsql.OperationalError) as late:
        connection.execute(
            f"SELECT COUNT(*) FROM ({COUNT}) AS t, " + ", ".join(f"number AS b{i}" for i in range(11))
        )
    assert late.value.sqlstate == "57V01"
    assert late.value.cost == "epsilon 0.1 was charged, and the release is stored: asking again is free"
    assert late.value.hint
    monkeypatch.undo()
    assert connection.execute(COUNT).receipt.epsilon == 0
    connection.time_limit = 0.2
    with pytest.raises(dpsql.OperationalError, match="57V01"):
        connection.execute(
            f"SELECT COUNT(*) FROM ({COUNT}) AS t, " + ", ".join(f"number AS b{i}" for i in range(11))
        )
    assert connection.time_limit == 0.2


def test_cancel_from_another_thread(connection: dpsql.Connection) -> None:
    def cancel() -> None:
        wait_until_it_runs(connection)
        connection.cancel()

    stopper = threading.Thread(target=cancel)
    stopper.start()
    cursor = connection.cursor()
    with pytest.raises(dpsql.OperationalError) as stopped:
        cursor.execute(SLOW)
    stopper.join()
    assert (stopped.value.sqlstate, stopped.value.cost) == ("57014", "nothing was charged")
    assert str(stopped.value) == "57014: the statement was cancelled\nDETAIL: nothing was charged"
    assert cursor.description is None
    with pytest.raises(dpsql.ProgrammingError):
        cursor.fetchall()
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_cancel_of_nothing(connection: dpsql.Connection) -> None:
    connection.cancel()
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_cancel_stops_the_running_statement_and_not_the_waiting_one(connection: dpsql.Connection) -> None:
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(connection.execute, SLOW)
        wait_until_it_runs(connection)
        waiting = pool.submit(lambda: connection.execute("SELECT 1").fetchall())
        assert not waiting.done()
        connection.cancel()
        assert waiting.result(timeout=300) == [(1,)]
        assert isinstance(slow.exception(timeout=300), dpsql.OperationalError)


def test_close_stops_what_runs_and_what_waits(policy: Path) -> None:
    connection = dpsql.connect(policy)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(connection.execute, SLOW)
        wait_until_it_runs(connection)
        waiting = pool.submit(connection.execute, "SELECT 1")
        connection.close()
        assert isinstance(slow.exception(timeout=300), dpsql.OperationalError)
        assert isinstance(waiting.exception(timeout=300), dpsql.InterfaceError)
    duckdb.connect(str(policy.parent / "people.duckdb")).close()


def test_two_connections_share_answers(connect: Connect) -> None:
    first, second = connect(), connect()
    assert first.execute(COUNT).fetchall() == second.execute(COUNT).fetchall()
    assert left(second) == "1.9"

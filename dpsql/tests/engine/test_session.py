"""What a session refuses before anything is charged: bad text, surplus parameters, a cancel that came early."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session, spine
from dpsql.engine.dataset import open_ledger
from dpsql.errors import EngineFailure, PolicyError, Refusal
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 5
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
name = {}
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, name TEXT)")
        connection.execute("INSERT INTO person VALUES (1, 30, 'a'), (2, 40, 'b')")
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    with Session.open(tmp_path / "people.toml") as opened:
        yield opened
        assert opened.budget().epsilon_spent_nano == 0


@pytest.mark.parametrize(
    ("sql", "parameters", "code"),
    [
        ("SELECT COUNT(*) FROM person WHERE name = '\udcff'", (), "42601"),
        ("SELECT COUNT(*) FROM person WHERE name = $1", ("\udcff",), "22023"),
        ("SELECT COUNT(*) FROM person", (1,), "42P02"),
        ("SELECT COUNT(*) FROM person WHERE age IN ($1,$2)", (1,), "42P02"),
    ],
)
def test_bad_text_and_parameters(
    session: Session, sql: str, parameters: tuple[object, ...], code: str
) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute(sql, parameters)
    assert refused.value.sqlstate == code


def test_an_analyst_has_a_name_of_text(session: Session) -> None:
    with pytest.raises(PolicyError):
        Session(session.dataset, "\udcff")


def test_a_cancel_before_the_charge_is_not_lost(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the statement is still being planned: nothing is charged and nothing runs."""
    bind = spine.bind

    def cancelled_while_binding(*args: object) -> object:
        session.cancel()
        return bind(*args)

    monkeypatch.setattr(spine, "bind", cancelled_while_binding)
    with pytest.raises(EngineFailure) as stopped:
        session.execute("SELECT COUNT(*) FROM person")
    assert stopped.value.sqlstate == "57014"


@pytest.mark.parametrize(
    "read",
    [
        "now()", "CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "transaction_timestamp()",
        "statement_timestamp()", "age(DATE '2000-01-01')", "extract(year from age(DATE '2000-01-01'))",
        "(SELECT CAST(transaction_timestamp() AS date))",
    ],
)  # fmt: skip
def test_what_reads_the_clock_is_never_remembered(
    session: Session, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    told = []
    for years in (0, 10):
        monkeypatch.setattr(spine.time, "time_ns", lambda years=years: years * 366 * 86400 * 10**9)
        told.append([session.execute(f"SELECT {read}").rows[0] for _ in range(3)])
    assert [len(set(rows)) for rows in told] == [1, 1]
    assert told[0] != told[1]


def test_a_window_of_rows_is_no_clock(session: Session) -> None:
    sql = "SELECT SUM(x) OVER (ORDER BY x ROWS CURRENT ROW) AS known FROM (VALUES (1)) AS v(x)"
    assert list(session.execute(sql).rows) == [(1,)]
    assert session.is_planned(sql)


@pytest.mark.parametrize(
    "made",
    [
        "repeat('x', 400000000)", "lpad('x', 400000000)", "rpad('x', 400000000, 'ab')",
        f"replace('{'a' * 20000}', 'a', '{'x' * 20000}')",
    ],
    ids=["repeat", "lpad", "rpad", "replace"],
)  # fmt: skip
def test_a_constant_text_that_is_too_long_is_not_made_before_it_is_null(session: Session, made: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert list(session.execute(f"SELECT {made} AS x").rows) == [(None,)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024, "of KiB"

"""A statement that fails says what it has spent: nothing, a charge that bought nothing, or one whose release is
stored."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpsql.backends.duckdb_backend import DuckDBSnapshot
from dpsql.budget import LedgerStore, journal, ledger_store
from dpsql.budget.sqlite_ledger import SqliteLedger
from dpsql.engine import Session, spine
from dpsql.engine.dataset import open_ledger
from dpsql.errors import EngineFailure, LedgerError, Refusal
from dpsql.policy import load_policy
from dpsql.postprocess import ReleasedColumn, ReleasedTable, SealedEngine, error_bars
from dpsql.postprocess.simulate import Drawn
from dpsql.relation.types import BIGINT
from dpsql.release import answer_bars, post_processing

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 50
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
[tables.number]
public = true
"""
COUNT = "SELECT COUNT(*) AS n FROM person"
ENDLESS = (
    f"SELECT COUNT(*) AS n FROM ({COUNT}) AS t, number AS a, number AS b, number AS c, number AS d"
    " WHERE (a.i * b.i + c.i * d.i + t.n) % 7 = 3"
)
AVERAGE = "SELECT AVG(age) AS age, dp_low(AVG(age)) AS low, dp_high(AVG(age)) AS high FROM person"
STORED = "epsilon 0.1 was charged, and the release is stored: asking again is free"
LOST = "epsilon 0.1 stays spent, and nothing was stored for it"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER)")
        connection.execute("INSERT INTO person SELECT i, i % 90 FROM range(500) AS r(i)")
        connection.execute("CREATE TABLE number AS SELECT i FROM range(3000) AS r(i)")
    (tmp_path / "people.toml").write_text(POLICY)
    open_ledger(load_policy(tmp_path / "people.toml"), create=True).close()
    with Session.open(tmp_path / "people.toml") as opened:
        yield opened


def spent(session: Session) -> float:
    return session.budget().epsilon_spent_nano / 1e9


def failure(session: Session, sql: str) -> EngineFailure:
    with pytest.raises(EngineFailure) as caught:
        session.execute(sql)
    return caught.value


def instead(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, before: Callable[[], object]) -> None:
    """Have something done before each call of a function or method."""
    inner = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        before()
        return inner(*arguments, **options)

    monkeypatch.setattr(owner, name, call)


# --- a disk that is full ---------------------------------------------------------------------------------


MAYBE = "whether epsilon 0.1 was charged is not known; if so, it stays spent, and nothing is stored for it"
MAYBE_STORED = "epsilon 0.1 was charged and stays spent; whether its release is stored is not known: if so, asking again is free"


def full(session: Session) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        session.execute(COUNT)
    return caught.value


def test_a_full_disk_before_the_log_has_a_byte(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(fd: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        error = full(session)
    assert error.cost == "nothing was charged"
    assert spent(session) == 0


@pytest.mark.parametrize(("bytes_left", "expected"), [(100, 0.0), (10_000, 0.1)])
def test_a_disk_that_fills_in_the_middle_of_the_log(
    session: Session, monkeypatch: pytest.MonkeyPatch, bytes_left: int, expected: float
) -> None:
    """A torn record is none; a whole one whose sync failed is spent. Neither is known when the error is told."""
    real = os.write

    def write(fd: int, content: bytes) -> int:
        written = real(fd, content[:bytes_left])
        if written < len(content):
            raise OSError(errno.ENOSPC, "No space left on device")
        return written

    def sync(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        patched.setattr(journal, "_sync", sync)
        error = full(session)
    assert error.cost == MAYBE
    session.dataset.store.grant(None, 1, "a change puts in order what the log has")
    assert spent(session) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("owner", "name", "expected"), [(SqliteLedger, "_insert", LOST), (ledger_store, "_store", MAYBE_STORED)]
)
def test_a_ledger_whose_file_cannot_grow(
    session: Session, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, expected: str
) -> None:
    """At the charge, which the log has by then; and at its draws."""

    def is_full() -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
        raise error

    with monkeypatch.context() as patched:
        instead(patched, owner, name, is_full)
        error = full(session)
    assert error.message.startswith("there is no space left for the ledger")
    assert error.cost == expected
    assert spent(session) == pytest.approx(0.1)
    session.execute(COUNT)
    assert spent(session) == pytest.approx(0.2)


# --- cancelled ------------------------------------------------------------------------------------------


def test_cancelled_before_the_charge(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, spine, "bind", session.cancel)
    error = failure(session, COUNT)
    assert (error.sqlstate, error.cost) == ("57014", "nothing was charged")
    assert spent(session) == 0


def test_cancelled_while_the_database_is_asked(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        instead(patched, DuckDBSnapshot, "run", session.cancel)
        error = failure(session, COUNT)
    assert (error.sqlstate, error.cost) == ("57014", LOST)
    assert spent(session) == pytest.approx(0.1)
    session.execute(COUNT)
    assert spent(session) == pytest.approx(0.2)


def test_cancelled_while_it_waits_for_the_grid(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.release_time = lambda began, now: now + 3600
    hold = Session.hold

    def held(self: Session, rest: Callable[[], None]) -> None:
        threading.Timer(0, session.cancel).start()
        hold(self, rest)

    monkeypatch.setattr(Session, "hold", held)
    error = failure(session, COUNT)
    assert (error.sqlstate, error.cost) == ("57014", LOST)


@pytest.mark.parametrize("reuse", ["on", "off"])
def test_cancelled_once_the_release_is_stored(
    session: Session, monkeypatch: pytest.MonkeyPatch, reuse: str
) -> None:
    session.execute(f"SET dpsql.reuse = {reuse}")
    commit = LedgerStore.commit

    def commit_and_cancel(*arguments: Any) -> None:
        commit(*arguments)
        session.cancel()

    with monkeypatch.context() as patched:
        patched.setattr(LedgerStore, "commit", commit_and_cancel)
        error = failure(session, COUNT)
    wanted = STORED if reuse == "on" else STORED.replace("again", "again with dpsql.reuse on")
    assert (error.sqlstate, error.cost) == ("57014", wanted)
    session.execute("SET dpsql.reuse = on")
    again = session.execute(COUNT).receipt
    assert again is not None
    assert (again.epsilon, again.reused) == (0, True)
    assert spent(session) == pytest.approx(0.1)


def test_a_cancel_in_post_processing_is_no_matter_of_bars(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, answer_bars, "error_bars", session.cancel)
    error = failure(session, AVERAGE)
    assert error.sqlstate == "57014"
    assert error.cost == STORED


def test_a_cancel_is_not_lost_between_two_steps(session: Session) -> None:
    """An engine forgets an interrupt that comes while it rests: it is repeated until the statement ends."""
    began = threading.Event()
    errors: list[EngineFailure] = []

    class Resting:
        """A table whose loading has the cancel come between two statements of the engine."""

        name = "t"
        row_count = 1

        @property
        def columns(self) -> tuple[ReleasedColumn, ...]:
            began.set()
            stopped.wait()
            return (ReleasedColumn("x", BIGINT, [1]),)

    engine, stopped = SealedEngine(), threading.Event()
    sql = "SELECT count(*) FROM t, range(200000) a, range(200000) b"

    def ask() -> None:
        with pytest.raises(EngineFailure) as caught:
            engine.run(sql, [Resting()])  # type: ignore[list-item]  # a table, as far as loading goes
        errors.append(caught.value)

    thread = threading.Thread(target=ask)
    thread.start()
    began.wait()
    engine.cancel()
    stopped.set()
    thread.join()
    assert [error.sqlstate for error in errors] == ["57014"]


# --- out of time ----------------------------------------------------------------------------------------


def test_post_processing_that_takes_too_long(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_processing, "POSTPROCESS_SECONDS", 0.2)
    error = failure(session, ENDLESS)
    assert (error.sqlstate, error.message) == ("57V01", "post-processing took more than 0.2 seconds")
    assert error.cost == STORED
    error = failure(session, ENDLESS)
    assert (error.sqlstate, error.cost) == ("57V01", "nothing was charged")
    session.time_limit = 60
    again = session.execute(COUNT).receipt
    assert again is not None
    assert (again.epsilon, again.reused) == (0, True)


def test_the_limit_is_the_sessions(session: Session) -> None:
    session.time_limit = 0.2
    assert failure(session, ENDLESS).sqlstate == "57V01"


def test_a_statement_whose_time_is_up_is_told_so(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, spine, "run_public", session.expire)
    error = failure(session, COUNT)
    assert (error.sqlstate, error.cost) == ("57V01", STORED)


def test_a_limit_on_public_tables_is_a_cancel(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Postgres has it; there is nothing that would be stored."""
    monkeypatch.setattr(post_processing, "PUBLIC_SECONDS", 0.2)
    endless = ENDLESS.replace(f"({COUNT})", "(SELECT 1 AS n)")
    error = failure(session, endless)
    assert (error.sqlstate, error.message) == ("57V01", "reading public tables took more than 0.2 seconds")
    monkeypatch.setattr(post_processing, "PUBLIC_SECONDS", 3600)
    session.time_limit = 0.3
    error = failure(session, endless)
    assert (error.sqlstate, error.cost) == ("57014", "nothing was charged")
    assert error.message == "the statement took more than 0.3 seconds, its time limit"


def test_a_intermediate_that_takes_too_long_says_that_nothing_is_stored(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_processing, "POSTPROCESS_SECONDS", 0.2)
    error = failure(session, f"{COUNT} WHERE age > ({ENDLESS})")
    assert error.sqlstate == "57V01"
    assert error.cost == LOST


# --- bars -----------------------------------------------------------------------------------------------


def test_bars_that_take_too_long_are_null(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(post_processing.Patience, "left_for_bars", 0.0)
        answer = session.execute(AVERAGE)
    assert answer.rows[0][0] is not None
    assert answer.rows[0][1:] == (None, None)
    assert answer.receipt is not None
    assert "error bars took too long" in answer.receipt.notes[-1]
    again = session.execute(AVERAGE)
    assert again.rows[0][0] == answer.rows[0][0]
    assert None not in again.rows[0]
    assert again.receipt is not None
    assert (again.receipt.epsilon, "error bars" in str(again.receipt.notes)) == (0, False)


def test_bars_that_take_too_much_memory_are_null(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refusal("too much", sqlstate="54001")

    monkeypatch.setattr(answer_bars, "error_bars", refuse)
    assert session.execute(AVERAGE).rows[0][1:] == (None, None)


def test_bars_that_go_down_again_are_not_guessed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_processing.Patience, "left_for_bars", 0.0)
    error = failure(session, f"{COUNT} WHERE age > (SELECT dp_low(AVG(age)) FROM person)")
    assert error.sqlstate == "57V01"


def test_the_simulation_stops_in_time() -> None:
    table = ReleasedTable("r", (ReleasedColumn("n", BIGINT, [1, 2]),))
    slow = '"n" + (SELECT count(*) FROM range(200000) a, range(200000) b)'
    asked = [Drawn(table, {"n": np.arange(10)})]
    for seconds in (0.0, 0.2):
        with pytest.raises(EngineFailure) as late:
            error_bars(SealedEngine(), slow, asked, Fraction(9, 10), seconds=seconds)
        assert late.value.sqlstate == "57V01"


# --- other failures -------------------------------------------------------------------------------------


def test_a_database_that_fails_after_the_charge(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EngineFailure("run: OutOfMemoryException")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDBSnapshot, "run", fail)
        error = failure(session, COUNT)
    assert (error.sqlstate, error.cost) == ("58V01", LOST)


def test_an_answer_that_is_too_large_after_the_charge(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refusal("the answer has more than 10 rows", sqlstate="54001")

    with monkeypatch.context() as patched:
        patched.setattr(spine, "run_public", refuse)
        with pytest.raises(Refusal) as refused:
            session.execute(COUNT)
    assert refused.value.cost == STORED


def test_a_ledger_that_fails_after_the_charge(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LedgerError("out of reach")

    with monkeypatch.context() as patched:
        patched.setattr(LedgerStore, "commit", fail)
        with pytest.raises(LedgerError) as failed:
            session.execute(COUNT)
    assert failed.value.cost == LOST


def test_a_refusal_before_the_charge_says_nothing_of_it(session: Session) -> None:
    with pytest.raises(Refusal) as refused:
        session.execute("SELECT age FROM person")
    assert refused.value.cost is None

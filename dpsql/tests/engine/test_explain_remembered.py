"""EXPLAIN is remembered while nothing changes it, and never tells what is over: each thing that changes it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Session, explain
from dpsql.engine.dataset import open_ledger
from dpsql.policy import Analyst, load_policy
from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.prototype import made_once

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 5
[analysts]
ann = { epsilon = 2 }
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
name = {}
[tables.visit]
unit = "person"
max_rows = 5
[tables.visit.columns]
minutes = { bounds = [0, 60] }
"""
ASKED = "SELECT SUM(minutes) AS n FROM visit"
TEXT = f"EXPLAIN {ASKED}"


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    with PostgresServer(postgres_majors()[-1], durable=True) as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def policy(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = make(tmp_path)
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("durable")
        url = server.url(server.create_database())
        path.write_text(
            POLICY.replace('ledger = "sqlite:people.db"', f'ledger = "{url}"\ndataset = "people"')
        )
        open_ledger(load_policy(path), create=True).close()
    return path


@made_once
def make(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER, name TEXT)")
        connection.execute("INSERT INTO person SELECT i, 30 + i % 40, 'a' FROM range(100) t(i)")
        connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, person INTEGER, minutes INTEGER)")
        connection.execute("INSERT INTO visit SELECT i, i % 100, i % 60 FROM range(300) t(i)")
    path = tmp_path / "people.toml"
    path.write_text(POLICY)
    open_ledger(load_policy(path), create=True).close()
    return path


@pytest.fixture
def session(policy: Path) -> Iterator[Session]:
    with Session.open(policy, analyst="ann") as opened:
        yield opened


def told(session: Session, text: str = TEXT) -> list[str]:
    return [line for (line,) in session.execute(text).rows]


def anew(session: Session, text: str = TEXT) -> list[str]:
    """What is told by a session that has told nothing yet, under the same settings."""
    session.dataset.explained.clear()
    return told(session, text)


def test_the_same_text_is_explained_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = explained(monkeypatch)
    first, is_file = told(session), session.policy.ledger.startswith("sqlite")
    assert [told(session) for _ in range(9)] == [first] * 9
    assert (session.recall(TEXT) is not None) is is_file, "a server is not asked in the event loop"
    # of a server anybody's change of it has all forgotten, its own housekeeping too
    assert len(calls) == 1 if is_file else len(calls) < 5
    assert told(session, f"EXPLAIN (FORMAT JSON) {ASKED}") != first


def explained(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what will have been explained anew."""
    calls: list[object] = []
    lines = explain.plan_lines
    monkeypatch.setattr(explain, "plan_lines", lambda *asked: calls.append(asked) or lines(*asked))
    return calls


def other_process(act: Callable[[Session], object]) -> Callable[[Session], object]:
    def run(session: Session) -> None:
        with Session.open(session.policy, analyst="bob") as other:
            act(other)

    return run


ACTS: dict[str, Callable[[Session], object]] = {
    "the budget that is left": lambda one: one.execute("SELECT COUNT(*) FROM person"),
    "what others spend": lambda one: Session(one.dataset, "bob", is_shared=True).execute(
        "SELECT COUNT(*) FROM person"
    ),
    "what another process spends": other_process(lambda one: one.execute("SELECT COUNT(*) FROM person")),
    "its own numbers are drawn": lambda one: one.execute(ASKED),
    "its numbers are drawn by another process": other_process(lambda one: one.execute(ASKED)),
    "coarser or finer numbers are drawn": lambda one: one.execute("SELECT COUNT(*), SUM(minutes) FROM visit"),
    "more is allowed": lambda one: one.dataset.store.grant("ann", 10**9, by="the owner"),
    "more is allowed to all": lambda one: one.dataset.store.grant(None, 10**9, by="the owner"),
    "an epsilon": lambda one: one.execute("SET dpsql.epsilon = 0.5"),
    "error bars": lambda one: one.execute("SET dpsql.intervals = 0.9"),
    "a cap that a member of a group gets": lambda one: one.dataset.take_in(Analyst("ann", Fraction(1))),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_changes_it_is_told(session: Session, act: str) -> None:
    """Of who has a cap of its own, and of who has only that of everybody: each act changes what one of them is told."""
    capless = Session(session.dataset, "cid", is_shared=True)
    before, others = told(session), told(capless)
    assert (told(session), told(capless)) == (before, others)
    ACTS[act](session)
    after, others_after = told(session), told(capless)
    assert after != before or others_after != others
    assert (after, others_after) == (anew(session), anew(capless))


def test_an_epoch_ends_what_was_stored(session: Session) -> None:
    charged = told(session)
    session.execute(ASKED)
    free = told(session)
    assert free != charged
    session.dataset.store.advance_epoch()
    again = told(session)
    assert again not in (free, charged)
    assert again == anew(session)


def test_another_process_begins_an_epoch(session: Session) -> None:
    session.execute(ASKED)
    free = told(session)
    other_process(lambda one: one.dataset.store.advance_epoch())(session)
    assert told(session) != free


def test_what_is_written_while_it_is_explained_has_it_forgotten(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is written to between what is read first and the lines: they are told, and not told again."""
    lines = explain.plan_lines

    def late(*asked: object) -> list[str]:
        found = lines(*asked)  # type: ignore[arg-type]
        session.dataset.store.grant("ann", 10**9, by="the owner")
        monkeypatch.setattr(explain, "plan_lines", lines)
        return found

    monkeypatch.setattr(explain, "plan_lines", late)
    early = told(session)
    assert told(session) == anew(session) != early


def test_each_analyst_has_an_own_one(session: Session) -> None:
    other = Session(session.dataset, "bob", is_shared=True)
    session.execute("SELECT COUNT(*) FROM person")
    assert told(session) != told(other)
    assert told(session) == anew(session)
    assert told(other) == anew(other)


def test_a_policy_that_is_read_again_forgets_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = explained(monkeypatch)
    told(session)
    before = len(calls)
    session.dataset.policy = replace(session.policy)
    assert session.recall(TEXT) is None
    told(session)
    assert len(calls) == before + 1


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT COUNT(*) FROM person WHERE CURRENT_DATE > DATE '2020-01-01'",
        f"EXPLAIN (VERIFY) {ASKED}",
        "EXPLAIN SELECT COUNT(*) FROM person WHERE name = '" + "x" * 30_000 + "'",
    ],
    ids=["the clock", "verified", "long"],
)
def test_what_more_than_the_ledger_changes_is_not_remembered(session: Session, text: str) -> None:
    session.execute(text)
    assert session.recall(text) is None
    assert len(session.dataset.explained) == 0

"""L5 and L7 while the ledger is away: what was told is told again; nothing else is, nothing is charged (3.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from dpsql import Session
from dpsql.backends import DuckDBBackend
from dpsql.engine.answer import Answer
from dpsql.engine.dataset import Dataset, LastRead, open_ledger
from dpsql.errors import LedgerAway, LedgerError
from dpsql.policy import parse_policy
from dpsql.tests.support.duckdb_pool import warm_sealed

COUNT = "SELECT COUNT(*) AS n FROM person"
POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:ledger/people.db"
[privacy]
epsilon = 100
[tables.person]
unit = "id"
[tables.person.columns]
age = { bounds = [0, 120] }
[analysts.alice]
epsilon = 50
[analysts.narrow]
epsilon = 50
hide = ["person.age"]
"""


class World:
    """A dataset whose ledger is in a folder that can be put out of sight, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0.0
        (folder / "ledger").mkdir()
        self.policy = parse_policy(POLICY, folder / "people.toml")
        open_ledger(self.policy, create=True).close()
        self.connection = duckdb.connect()
        self.connection.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER)")
        self.connection.execute("INSERT INTO person SELECT i, i % 90 FROM range(500) AS r(i)")
        self.store = open_ledger(self.policy, create=False)
        self.dataset = Dataset(self.policy, DuckDBBackend.over(self.connection), self.store, warm_sealed())
        self.dataset.last_read = LastRead(lambda: self.now)

    def session(self, analyst: str = "alice") -> Session:
        return Session(self.dataset, analyst)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Have the ledger's disk be away, and the database never be asked."""
        hidden = self.folder / "elsewhere"
        (self.folder / "ledger").rename(hidden)
        snapshot = self.dataset.backend.snapshot
        self.dataset.backend.snapshot = _never  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            self.dataset.backend.snapshot = snapshot  # type: ignore[method-assign]
            hidden.rename(self.folder / "ledger")

    @property
    def log(self) -> bytes:
        return (self.folder / "ledger" / "people.db.log").read_bytes()


def _never(owner: object = None) -> None:
    raise AssertionError("the database is asked")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.dataset.close()
    made.connection.close()


def told(answer: Answer) -> tuple[object, int, bool]:
    """Return rows, charge in 1e-9, and whether the answer says that the ledger is away."""
    assert answer.receipt is not None
    says = any("the ledger cannot be read now" in note for note in answer.receipt.notes)
    return list(answer.rows), int(answer.receipt.epsilon * 10**9), says


def test_what_was_told_is_told_again_at_no_charge(world: World) -> None:
    session = world.session()
    first = session.execute(COUNT)
    log, spent = world.log, world.store.spent()
    with world.away():
        for one in (session, session):
            assert told(one.execute(COUNT)) == (list(first.rows), 0, True)
    assert (world.log, world.store.spent()) == (log, spent)
    world.now += 10.0  # for some seconds after a wait in vain nobody asks again
    assert told(session.execute(COUNT)) == (list(first.rows), 0, False)
    assert [analyst for analyst, _ in world.dataset.last_read.take_noted()] == ["alice"] * 2
    assert world.dataset.last_read.take_noted() == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM person WHERE age > 3",
        "SELECT COUNT(*) AS m FROM person",
        "SELECT SUM(age) AS n FROM person",
        "SELECT COUNT(*) AS n FROM person HAVING COUNT(*) > 0",
    ],
)
def test_what_was_not_told_is_not(world: World, sql: str) -> None:
    """Not even what a stored draw would answer: that is looked up in the ledger."""
    session = world.session()
    session.execute(COUNT)
    session.describe(sql)
    with world.away(), pytest.raises(LedgerAway) as caught:
        session.execute(sql)
    assert caught.value.cost == "nothing was charged"


def refused(session: Session, sql: str = COUNT) -> None:
    with pytest.raises(LedgerError):
        session.execute(sql)


def wants_it_anew(session: Session) -> None:
    session.execute("SET dpsql.reuse = off")


def wants_more(session: Session) -> None:
    session.execute("SET dpsql.epsilon = 0.5")


@pytest.mark.parametrize("change", [wants_it_anew, wants_more])
def test_another_setting_is_another_question(world: World, change: Callable[[Session], None]) -> None:
    session = world.session()
    session.execute(COUNT)
    change(session)
    session.budget()
    with world.away():
        refused(session)


def test_who_sees_less_gets_nothing_of_who_sees_more(world: World) -> None:
    wide, narrow = world.session(), world.session("narrow")
    first = wide.execute(COUNT)
    narrow.budget()
    with world.away():
        refused(narrow)
        assert told(wide.execute(COUNT))[0] == list(first.rows)


def test_who_has_not_been_here_gets_nothing(world: World) -> None:
    world.session().execute(COUNT)
    with world.away():
        refused(world.session("bob"))


def test_ten_minutes_and_no_longer(world: World) -> None:
    session = world.session()
    first = session.execute(COUNT)
    with world.away():
        world.now = 599.0
        answer = session.execute(COUNT)
        assert told(answer) == (list(first.rows), 0, True)
        assert answer.receipt is not None
        assert "599 s ago" in answer.receipt.notes[0]
        world.now = 601.0
        refused(session)
    assert told(session.execute(COUNT)) == (list(first.rows), 0, False)


def test_an_epoch_that_was_read_ends_what_was_told_before_it(world: World) -> None:
    session, other = world.session(), world.session("narrow")
    session.execute(COUNT)
    world.store.advance_epoch()
    other.budget()  # somebody else's reading counts for all
    with world.away():
        refused(session)


def test_after_a_reload_that_failed_none_is_told_before_the_ledger_is_read(world: World) -> None:
    session = world.session()
    first = session.execute(COUNT)
    world.dataset.last_read.forget()
    with world.away():
        refused(session)
    session.budget()
    with world.away():
        assert told(session.execute(COUNT)) == (list(first.rows), 0, True)


def test_a_ledger_that_was_replaced_is_not_away(world: World) -> None:
    session = world.session()
    session.execute(COUNT)
    copy = world.folder / "ledger" / "copy"
    path = world.folder / "ledger" / "people.db.log"
    copy.write_bytes(path.read_bytes())
    copy.rename(path)
    with pytest.raises(LedgerError, match="replaced while in use"):
        session.execute(COUNT)


def test_what_cannot_be_told_to_the_owner_is_not_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.engine.dataset._MOST_NOTED", 2)
    session = world.session()
    session.execute(COUNT)
    with world.away():
        for _ in range(2):
            session.execute(COUNT)
        refused(session)
    world.dataset.last_read.take_noted()
    with world.away():
        session.execute(COUNT)

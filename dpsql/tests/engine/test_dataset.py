"""Sessions that share a dataset: one plan, one answer, one engine each can stop its own statements on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.cache import Cache
from dpsql.engine import Session, session
from dpsql.engine.dataset import Dataset, SchemaChanged, open_ledger
from dpsql.errors import EngineFailure
from dpsql.policy import parse_policy

POLICY = """
database = "duckdb:people.duckdb"
ledger = "sqlite:people.db"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.number]
public = true
[analysts.ann]
epsilon = 5
[analysts.bob]
epsilon = 5
"""
COUNT = "SELECT COUNT(*) FROM person"
SLOW = "SELECT COUNT(*) FROM number AS a, number AS b WHERE a.i * b.i % 7 = 3"
"""A minute's work."""


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    policy = parse_policy(POLICY, tmp_path / "people.toml")
    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.execute("CREATE TABLE person (id INTEGER PRIMARY KEY)")
        database.execute("INSERT INTO person SELECT i FROM range(100) AS r(i)")
        database.execute("CREATE TABLE number AS SELECT i FROM range(30000) AS r(i)")
    opened = Dataset(policy, DuckDBBackend(tmp_path / "people.duckdb"), open_ledger(policy, create=True))
    yield opened
    opened.close()


def both(dataset: Dataset) -> tuple[Session, Session]:
    return Session(dataset, "ann", is_shared=True), Session(dataset, "bob", is_shared=True)


def test_what_one_has_asked_answers_the_other_free_and_is_not_planned_again(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    first = ann.execute(COUNT)
    assert (len(dataset.prepared), len(dataset.answers)) == (1, 1)
    again = bob.execute(COUNT)
    assert again.rows == first.rows
    assert again.receipt is not None
    assert (again.receipt.epsilon, again.receipt.reused) == (0, True)
    assert (len(dataset.prepared), len(dataset.answers)) == (1, 1)
    assert first.receipt is not None
    assert (first.receipt.left, again.receipt.left) == (5 - first.receipt.epsilon, 5)


def test_a_text_that_was_planned_is_not_read_again(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = both(dataset)
    first = ann.execute(COUNT)
    monkeypatch.setattr(session, "parse_statement", None)
    dataset.answers.clear()
    assert bob.execute(COUNT).rows == first.rows


def test_what_is_planned_for_an_explanation_answers_no_query(dataset: Dataset) -> None:
    ann, _ = both(dataset)
    ann.execute(f"EXPLAIN {COUNT}")
    for blanks in range(
        1, 12
    ):  # of its own length among them, as the query's text is blanked up to where it begins
        text = f"EXPLAIN{' ' * blanks}{COUNT}"
        assert [column.name for column in ann.describe(text)] == ["QUERY PLAN"]
        assert ann.execute(text).receipt is None
    assert ann.budget().epsilon_spent_nano == 0


def test_what_one_draws_anew_counts_in_what_the_other_is_told(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    first = bob.execute(COUNT).rows[0][0]
    ann.execute("SET dpsql.reuse = off")
    drawn = ann.execute(COUNT).rows[0][0]
    told = bob.execute(COUNT).rows[0][0]
    assert abs(told - (first + drawn) / 2) <= 0.5
    ann.execute("SET dpsql.reuse = on")
    assert ann.execute(COUNT).rows[0][0] == told


def test_settings_are_a_sessions_own(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    ann.execute("SET dpsql.epsilon = 0.25")
    assert bob.execute("SHOW dpsql.epsilon").rows != ann.execute("SHOW dpsql.epsilon").rows


def test_a_cancel_stops_the_statements_of_its_own_session_alone(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    stopped: list[Exception] = []

    def ask() -> None:
        try:
            ann.execute(SLOW)
        except EngineFailure as error:
            stopped.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    deadline = time.monotonic() + 300
    while not dataset.backend._snapshots and time.monotonic() < deadline:  # type: ignore[attr-defined]
        time.sleep(0.01)
    time.sleep(0.3)
    bob.cancel()
    thread.join(0.5)
    assert thread.is_alive(), "the other session's cancel has stopped it"
    while thread.is_alive() and time.monotonic() < deadline:
        ann.cancel()
        thread.join(0.1)
    assert [error.sqlstate for error in stopped] == ["57014"]


def test_a_shared_session_closes_nothing(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    ann.close()
    assert bob.execute(COUNT).rows


def test_tables_that_changed_are_told_and_nothing_is_charged(dataset: Dataset, tmp_path: Path) -> None:
    ann, _ = both(dataset)
    assert dataset.backend.close_idle()
    with duckdb.connect(tmp_path / "people.duckdb") as database:
        database.execute("ALTER TABLE number ADD COLUMN j INTEGER")
    with pytest.raises(SchemaChanged):
        ann.execute(COUNT)
    assert dataset.store.spent().epsilon_nano == 0


def test_a_cache_is_bounded_and_safe_for_threads() -> None:
    cache: Cache[int] = Cache(10)

    def fill(start: int) -> None:
        for number in range(start, start + 2000):
            cache.put(number % 50, number)
            cache.get(number % 7)

    threads = [threading.Thread(target=fill, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 10
    cache.put("last", 1)
    assert (cache.get("last"), len(cache)) == (1, 10)
    cache.clear()
    assert (cache.get("last"), len(cache)) == (None, 0)
    cache.put("old", 1, since=0)
    cache.put("new", 1, since=1)
    assert (cache.get("old"), cache.get("new"), cache.cleared) == (None, 1, 1)


def test_what_is_remembered_is_recalled_without_a_wait(dataset: Dataset) -> None:
    ann, bob = both(dataset)
    assert ann.recall(COUNT) is None
    first = ann.execute(COUNT)
    recalled = bob.recall(COUNT)
    assert recalled is not None
    assert (recalled.rows, recalled.receipt) == (first.rows, bob.execute(COUNT).receipt)
    bob.execute("SET dpsql.reuse = off")
    assert bob.recall(COUNT) is None
    dataset.store.advance_epoch()
    assert ann.recall(COUNT) is None

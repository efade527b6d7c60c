"""What answers hold is counted; who is over waits, and is refused before anything is charged; and turns are shared."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.errors import EngineFailure
from dpsql.memory import MIB, STATEMENT_BYTES, MemoryLimits, ResultMemory, Share, weight_of
from dpsql.policy import load_policy
from dpsql.waits import Turns

from ..server.conftest import COUNT, make_dataset

PUBLIC = "SELECT i, i * 2 AS b, 'x' || i AS c FROM number ORDER BY i"
BOTH = "SELECT a.i, t.city, t.n FROM number AS a, (SELECT city, COUNT(*) AS n FROM person GROUP BY city) AS t"


def never() -> bool:
    return False


def taken(memory: ResultMemory, analyst: str, size: int) -> Share:
    share = memory.share(analyst)
    share.take(size, seconds=0)
    return share


def test_limits_of_one_and_of_all() -> None:
    memory = ResultMemory(MemoryLimits(memory=100, memory_each=40, files=10, files_each=5, first=10))
    held = [taken(memory, name, 40) for name in ("a", "b")]
    with pytest.raises(EngineFailure, match="kept for you") as caught:
        taken(memory, "a", 1)
    assert caught.value.sqlstate == "53200"
    held.append(taken(memory, "c", 20))
    with pytest.raises(EngineFailure, match="kept for everybody"):
        taken(memory, "d", 11)
    first = taken(memory, "d", 10)  # whatever the others hold
    assert (memory.held, memory._memory.of.get("a", 0), memory._memory.of.get("d", 0)) == (110, 40, 10)
    held[0].give(15)
    held[0].take(5, seconds=0)
    held[0].close()
    held[0].close()
    assert (memory.held, memory._memory.of.get("a", 0)) == (70, 0)
    del first, held
    assert memory.held == 0, "what nobody holds any more is given back"


def test_files_are_counted_apart() -> None:
    memory = ResultMemory(MemoryLimits(memory=100, memory_each=40, files=50, files_each=30, first=0))
    share = memory.share("a")
    share.take(10, 30, seconds=0)
    with pytest.raises(EngineFailure, match="room in files"):
        share.take(0, 1, seconds=0)
    assert (memory.held, memory.in_files) == (10, 30), "what is refused takes nothing"


def test_who_waits_gets_what_another_gives_back() -> None:
    memory = ResultMemory(MemoryLimits(100, 100, 0, 0, first=0), wait_seconds=60)
    first, done = taken(memory, "a", 100), threading.Event()
    second = memory.share("b")

    def take() -> None:
        second.take(50)
        done.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert not done.wait(0.2)
    first.close()
    assert done.wait(60)
    thread.join()
    assert memory._memory.of.get("b", 0) == 50


def test_a_cancel_ends_a_wait() -> None:
    memory = ResultMemory(MemoryLimits(10, 10, 0, 0, first=0), wait_seconds=600)
    first = taken(memory, "a", 10)
    with pytest.raises(EngineFailure) as caught:
        memory.share("b", lambda: True).take(1)
    assert caught.value.sqlstate == "57014"
    assert first.memory == 10


def test_turns_are_shared_between_owners() -> None:
    """Who waits with many is served no more often than who waits with one."""
    turns, order, begun = Turns(1, 1), list[str](), threading.Event()

    def wait(owner: str) -> None:
        with turns.turn(owner, never):
            order.append(owner)

    with turns.turn("many", never):
        threads = []
        for owner in ("many", "many", "many", "one"):
            threads.append(threading.Thread(target=wait, args=(owner,)))
            threads[-1].start()
            while sum(map(len, turns._waiting.values())) < len(threads):
                begun.wait(0.01)
    for thread in threads:
        thread.join()
    assert order.index("one") <= 1
    assert sorted(order) == ["many", "many", "many", "one"]
    assert not turns._waiting
    assert not turns._held


def test_turns_of_one_owner_are_limited_and_can_be_given_up() -> None:
    turns = Turns(3, 2)
    with turns.turn("a", never), turns.turn("a", never):
        with pytest.raises(EngineFailure) as caught, turns.turn("a", lambda: True):
            pass
        assert caught.value.sqlstate == "57014"
        with turns.turn("b", never):
            pass
    assert not turns._waiting
    assert not turns._held


def test_weights() -> None:
    assert weight_of([]) == 0
    assert weight_of([(1, "ä" * 1000)] * 10) > 10_000
    assert weight_of([(1, 2)] * 1000) < 1_000_000


# --- a session on a server --------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> ResultMemory:
    return ResultMemory(MemoryLimits(64 * MIB, 16 * MIB, 64 * MIB, 16 * MIB, first=0), wait_seconds=0.05)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = make_dataset(tmp_path)
    path.write_text(path.read_text().replace("epsilon = 1000\n", "epsilon = 1000\n", 1))
    return path


@pytest.fixture
def dataset(policy: Path, memory: ResultMemory) -> Iterator[Dataset]:
    opened = Dataset.open(policy, memory=memory)
    yield opened
    opened.close()


@pytest.mark.parametrize("sql", [PUBLIC, f"{BOTH} ORDER BY 1, 2", "SELECT * FROM thing", COUNT])
def test_answers_are_those_of_an_embedded_session(dataset: Dataset, policy: Path, sql: str) -> None:
    counted = Session(dataset, "alice", is_shared=True).execute(sql)
    with Session.open(policy, analyst="alice") as session:
        embedded = session.execute(sql)
    assert list(counted.rows) == list(embedded.rows)
    assert counted.columns == embedded.columns
    assert dataset.memory is not None
    held = dataset.memory.held
    assert (held > 0) == (len(counted.rows) > 1000)
    del counted
    assert (dataset.memory.held, dataset.memory.in_files) == (0, 0)


@pytest.mark.parametrize("sql", [COUNT, PUBLIC, BOTH])
def test_nothing_is_charged_where_there_is_no_room(
    dataset: Dataset, memory: ResultMemory, policy: Path, sql: str
) -> None:
    session = Session(dataset, "alice", is_shared=True)
    other = taken(memory, "alice", 16 * MIB - STATEMENT_BYTES + 1)
    with pytest.raises(EngineFailure) as caught:
        session.execute(sql)
    assert (caught.value.sqlstate, caught.value.cost) == ("53200", "nothing was charged")
    assert session.budget().epsilon_spent_nano == 0
    other.close()
    assert len(session.execute(sql).rows) > 0
    store = open_ledger(load_policy(policy), create=False)
    assert store.status("alice").epsilon_spent_nano == session.budget().epsilon_spent_nano
    store.close()


def test_many_public_rows_beside_released_ones_take_their_room_before_the_charge(
    dataset: Dataset, memory: ResultMemory
) -> None:
    session = Session(dataset, "alice", is_shared=True)
    other = taken(memory, "alice", 10 * MIB)  # more than the half that is left to others
    with pytest.raises(EngineFailure) as caught:
        session.execute(BOTH)
    assert (caught.value.sqlstate, caught.value.cost) == ("53200", "nothing was charged")
    assert memory.held == other.memory
    assert len(session.execute(f"{BOTH} WHERE a.i < 10").rows) == 20, "a few rows fit beside"

"""Short statements go before others' long work, for a moment each; nobody learns from it how long rows were read."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from dpsql.engine import Session
from dpsql.engine.dataset import Dataset, open_ledger
from dpsql.engine.spine import LONG, StatementTurns
from dpsql.errors import EngineFailure
from dpsql.memory import MIB, MemoryLimits, ResultMemory
from dpsql.policy import load_policy
from dpsql.postprocess.rows import chunk_rows
from dpsql.release.run import PlanRunner
from dpsql.server import listener
from dpsql.server.state import release_time
from dpsql.waits import Pace, Place, Precedence

from ..server.conftest import COUNT, make_dataset

WIDE = "SELECT i, i * 2 AS b, 'x' || i AS c FROM number"


class Clock:
    """A clock that stands still, or goes on by `step` at every look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def entered(precedence: Precedence, owner: str) -> Place:
    place = Place(precedence, owner)
    place.enter()
    return place


def test_long_work_rests_until_a_short_statement_is_answered() -> None:
    precedence, order = Precedence(Clock()), list[str]()
    place = entered(precedence, "alice")

    def work() -> None:
        with Pace(precedence, "mallory").piece():
            order.append("long")

    long = threading.Thread(target=work)
    long.start()
    while not precedence._changed._waiters:  # type: ignore[attr-defined]
        assert long.is_alive()
    order.append("short")
    place.leave()
    long.join(timeout=60)
    assert order == ["short", "long"]


def test_a_rest_ends_though_the_others_go_on() -> None:
    clock = Clock(0.001)
    precedence = Precedence(clock)
    place = entered(precedence, "alice")
    Pace(precedence, "mallory").rest()
    assert place.since is not None
    assert clock.now < 0.2, "no longer than a moment"


def test_a_rest_is_twenty_times_the_piece_before_it_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waited = Clock(), list[float]()
    precedence = Precedence(clock)
    entered(precedence, "alice")

    def wait(seconds: float) -> None:
        waited.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(precedence._changed, "wait", wait)
    pace = Pace(precedence, "mallory")
    for piece, rest in ((0.0, 0.05), (0.0005, 0.01), (0.001, 0.02), (0.01, 0.05)):
        clock.now += piece
        pace.rest()
        assert sum(waited) == pytest.approx(rest)
        assert max(waited) < 0.011, "others may be ahead no more"
        waited.clear()


@pytest.mark.parametrize("case", ["own", "older", "heavier", "left", "apart"])
def test_who_is_not_rested_for(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One's own statements, one that takes long, those of who has taken more, and one that is ahead no more."""
    clock = Clock()
    precedence = Precedence(clock)
    monkeypatch.setattr(precedence._changed, "wait", lambda seconds: pytest.fail("it rests"))
    place = entered(precedence, "mallory" if case == "own" else "alice")
    match case:
        case "older":
            clock.now += 0.5
        case "heavier":
            precedence.take("alice", 1.0)
        case "left":
            place.leave()
        case "apart":
            with place.apart():
                Pace(precedence, "mallory").rest()
            assert place.since is not None
            return
    Pace(precedence, "mallory").rest()


def test_what_is_taken_is_counted_and_forgotten() -> None:
    clock = Clock()
    precedence = Precedence(clock)
    place, pace = entered(precedence, "alice"), Pace(precedence, "mallory")
    place.owner, pace._owner = "alice", "alice"
    pace.rest()
    clock.now += 1
    pace.rest()
    assert precedence.taken("alice") == 1
    place.leave()
    assert precedence.taken("alice") == pytest.approx(1.5), "ahead for half of that second"
    clock.now += 10
    assert precedence.taken("alice") == pytest.approx(1.5 / 2.718281828)


@pytest.mark.parametrize(("owner", "rest"), [("mallory", 0.05), (None, 0.05), ("alice", 0.0)])
def test_the_event_loop_stands_back_for_a_moment(
    owner: str | None, rest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As others do; who has not said who it is stands back behind everybody."""
    clock, waited = Clock(), list[float]()
    precedence = Precedence(clock)
    entered(precedence, "alice")
    if owner is None:
        precedence.take("alice", 100.0)

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock.now += seconds

    monkeypatch.setattr("asyncio.sleep", sleep)
    asyncio.run(precedence.stand_back(owner, 0.05))
    assert sum(waited) == pytest.approx(rest)
    assert max(waited, default=0) < 0.005, "others may be ahead no more"


def test_a_piece_in_the_event_loop_is_counted_and_rested_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waited = Clock(), list[float]()
    precedence = Precedence(clock)
    entered(precedence, "alice")

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock.now += seconds

    monkeypatch.setattr("asyncio.sleep", sleep)
    asyncio.run(Pace(precedence, "mallory").stand_back(0.001))
    assert sum(waited) == pytest.approx(0.02)
    assert precedence.taken("mallory") == pytest.approx(0.001, rel=0.01)


def test_a_flood_of_connections_is_held_up_for_as_long_as_it_takes_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the system's queue would be full of silent ones, and a right login lost in it."""
    clock, rested = Clock(), list[float]()

    class Server:
        _precedence = Precedence(clock)

        def _has_room(self, peer: str) -> bool:
            clock.now += 0.0005
            return False

    async def flood(listener: object) -> AsyncIterator[tuple[socket.socket, str]]:
        for _ in range(600):
            yield socket.socket(), "10.0.0.1"

    async def stand_back(owner: str | None, longest: float) -> None:
        assert owner is None
        rested.append(longest)

    monkeypatch.setattr("dpsql.server.listener.accepted", flood)
    monkeypatch.setattr(Server._precedence, "stand_back", stand_back)
    with socket.socket() as door:
        asyncio.run(listener.Server._let_in(Server(), door))  # type: ignore[arg-type]
    assert rested
    assert sum(rested) <= 600 * 0.0005


def test_an_error_while_apart_tells_its_moment_to_nobody() -> None:
    precedence = Precedence(Clock())
    place = entered(precedence, "alice")
    with pytest.raises(EngineFailure), place.apart():
        raise EngineFailure("failed")
    assert place.since is None
    with place.apart():
        pass
    assert place.since is None, "and who was not ahead is not afterwards"


# --- in a session ----------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    policy = load_policy(make_dataset(tmp_path))
    open_ledger(policy, create=True).close()
    opened = Dataset.open(policy, memory=ResultMemory(MemoryLimits.of(256 * MIB)))
    yield opened
    opened.close()


def shared(
    dataset: Dataset, turns: StatementTurns, timing: Callable[[float, float], float] | None
) -> Session:
    return Session(dataset, "analyst", is_shared=True, turns=turns, release_time=timing)


@pytest.mark.parametrize("has_grid", [True, False])
def test_ahead_but_while_private_rows_are_read(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, has_grid: bool
) -> None:
    """On the grid: by its own clock an analyst could not tell either how long that takes."""
    turns = StatementTurns(1)
    session = shared(dataset, turns, release_time if has_grid else None)
    ahead = turns._precedence._ahead
    seen: list[tuple[str, int]] = []

    def looking(owner: type, name: str, said: str) -> None:
        real = getattr(owner, name)

        def look(*args: object, **named: object) -> object:
            seen.append((said, len(ahead)))
            return real(*args, **named)

        monkeypatch.setattr(owner, name, look)

    looking(PlanRunner, "from_store", "planned")
    looking(PlanRunner, "_ask", "rows")
    looking(type(session), "_receipt", "answered")
    with session.ahead(len(COUNT)):
        session.execute(COUNT)
    assert seen == [("planned", 1), ("rows", 0 if has_grid else 1), ("answered", 1)]
    assert not ahead


def test_long_work_is_not_ahead_and_rests(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large public answer is not ahead once it is read, and rests after every part of it; a long text rests before."""
    turns = StatementTurns(1)
    session = shared(dataset, turns, None)
    rests: list[int] = []
    monkeypatch.setattr(Pace, "rest", lambda pace: rests.append(len(turns._precedence._ahead)))
    with session.ahead(len(WIDE)):
        rows = len(session.execute(WIDE).rows)
    assert len(rests) >= rows // chunk_rows(3) > 1
    assert not any(rests)
    del rests[:]
    session.execute(f"{COUNT} -- {'x' * LONG}")
    assert len(rests) == 2, "before it is parsed, and before it is planned"
    with session.ahead(LONG + 1):
        assert not turns._precedence._ahead


def test_names_of_two_databases_are_two() -> None:
    precedence = Precedence(Clock())
    one, other = (StatementTurns(1, precedence, name) for name in ("a", "b"))
    one.place("alice").enter()
    one.pace("alice").rest()
    precedence.take("a alice", 1.0)
    other.pace("alice").rest()
    assert {place.owner for place in precedence._ahead} == {"a alice"}

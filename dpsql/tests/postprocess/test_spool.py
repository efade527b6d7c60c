"""A large answer is kept by the chunk: the same rows, bounded memory, nothing left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.errors import EngineFailure
from dpsql.memory import MIB, MemoryLimits, ResultMemory
from dpsql.pgwire import Bind, CsvOptions, FieldDescription, Format, Oid
from dpsql.postprocess import rows as kept_rows
from dpsql.postprocess.rows import CELLS, PackedTexts, Spool, SpooledRows, chunk_rows
from dpsql.server.conversation import Outbox
from dpsql.server.state import Portal, PreparedStatement
from dpsql.server.statements import Copy, CopyOptions, Direction, Fetch, Query, Result
from dpsql.tests.support.length import some, tried
from dpsql.waits import Pace, Precedence

MANY = tried(300_000, 1_000_000)


def limits() -> ResultMemory:
    return ResultMemory(MemoryLimits(64 * MIB, 32 * MIB, 64 * MIB, 32 * MIB), wait_seconds=0.01)


def spooled(memory: ResultMemory, rows: list[tuple[Any, ...]], size: int) -> Any:
    spool = Spool(memory.share("alice"))
    for start in range(0, len(rows), size):
        spool.add([list(column) for column in zip(*rows[start : start + size], strict=True)])
    return spool.rows()


ROWS: list[tuple[Any, ...]] = [(i, f"é {i}" if i % 3 else None, i / 7) for i in range(997)]


@pytest.mark.parametrize("size", [10, 100, 996, 997])
def test_rows_are_those_of_a_list(size: int) -> None:
    memory = limits()
    kept = spooled(memory, ROWS, size)
    assert isinstance(kept, list) == (size == 997), "one chunk of a few rows is a list"
    assert (len(kept), list(kept)) == (len(ROWS), ROWS)
    for low, high, step in [(0, 5, 1), (95, 305, 1), (990, 2000, 1), (5, 5, 1), (500, 90, -1), (3, 700, 7)]:
        assert kept[low:high:step] == ROWS[low:high:step]
    assert [kept[place] for place in (0, 99, 100, 996, -1)] == [
        ROWS[place] for place in (0, 99, 100, 996, -1)
    ]
    with pytest.raises(IndexError):
        kept[997]


def test_no_rows() -> None:
    memory = limits()
    assert spooled(memory, [], 1) == []
    assert memory.held == 0


def test_arrays_and_lists_in_one_answer() -> None:
    spool = Spool(limits().share("alice"))
    spool.add([np.arange(3), ["a", None, "c"]])
    spool.add([[7, None], np.array(["x", "y"], dtype=object)])
    assert list(spool.rows()) == [(0, "a"), (1, None), (2, "c"), (7, "x"), (None, "y")]


def test_columns_are_the_rows_of_a_chunk() -> None:
    kept = spooled(limits(), ROWS, 100)
    for low, high in [(0, 100), (3, 7), (95, 305), (990, 997), (996, 997)]:
        columns = kept.columns(low, high)
        end = min(high, (low // 100 + 1) * 100)
        shown = [one.listed() if isinstance(one, PackedTexts) else one for one in columns]
        assert list(zip(*shown, strict=True)) == ROWS[low:end]
    assert spooled(limits(), [("x" * 10**6,)], 1).columns(0, 1) is None, "one chunk is kept by row"


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)


@given(st.lists(TEXTS, min_size=1, max_size=30), st.data())
def test_texts_that_are_packed_are_the_texts(texts: list[str | None], data: st.DataObject) -> None:
    packed = PackedTexts.of(texts)
    assert (packed is None) == (set(texts) == {None})
    if packed is not None:
        low = data.draw(st.integers(0, len(texts) - 1))
        high = data.draw(st.integers(low + 1, len(texts)))
        assert packed.listed() == texts
        assert packed.part(low, high).listed() == texts[low:high]


@pytest.mark.parametrize("values", [["a", "b\0"], ["a", "\ud800"], ["a", 1], [1, "a"], [], np.arange(3)])
def test_what_is_no_text_is_not_packed(values: Any) -> None:
    assert PackedTexts.of(values) is None


def test_the_file_has_no_name_and_goes_with_the_rows() -> None:
    memory = limits()
    before = set(os.listdir("/proc/self/fd"))
    kept = spooled(memory, ROWS, 100)
    assert isinstance(kept, SpooledRows)
    files = set(os.listdir("/proc/self/fd")) - before
    named = [os.readlink(f"/proc/self/fd/{one}") for one in files if os.path.exists(f"/proc/self/fd/{one}")]
    assert any("deleted" in name or name.startswith("/tmp/#") for name in named) or not named
    assert memory.held > 0
    assert memory.in_files > 0
    kept.close()
    assert (memory.held, memory.in_files, len(kept)) == (0, 0, 0)
    del kept
    deadline = time.monotonic() + 60
    while not set(os.listdir("/proc/self/fd")) <= before:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_answer_that_finds_no_room_leaves_nothing() -> None:
    memory = ResultMemory(MemoryLimits(64 * MIB, 32 * MIB, 2000, 2000, first=0), wait_seconds=0.01)
    with pytest.raises(EngineFailure) as caught:
        spooled(memory, ROWS, 100)
    assert caught.value.sqlstate == "53200"
    del caught
    assert (memory.held, memory.in_files) == (0, 0)


def test_an_answer_that_is_begun_anew_has_its_second_rows_alone() -> None:
    memory = limits()
    spool = Spool(memory.share("alice"))
    for number in range(5):
        spool.add([[number] * 10])
    spool.clear()
    assert memory.in_files == 0
    spool.add([[9]])
    assert spool.rows() == [(9,)]


# --- a million rows, and how many of them are alive --------------------------------------------------------------


class Counted(int):
    """A number that counts how many there are."""

    alive = most = 0

    def __new__(cls, value: int) -> Counted:
        Counted.alive += 1
        Counted.most = max(Counted.most, Counted.alive)
        return super().__new__(cls, value)

    def __del__(self) -> None:
        Counted.alive -= 1


@pytest.fixture(scope="module")
def million() -> Iterator[SpooledRows]:
    spool = Spool(limits().share("alice"))
    size = chunk_rows(1)
    for start in range(0, MANY, size):
        spool.add([[Counted(i) for i in range(start, min(start + size, MANY))]])
    assert Counted.most <= 3 * size, "also while it is written"
    kept = spool.rows()
    assert isinstance(kept, SpooledRows)
    yield kept
    kept.close()


class Wire:
    """A connection of which only the bytes are of interest."""

    def send(self, *replies: Any) -> bytes:
        self.sent = getattr(self, "sent", 0) + sum(len(getattr(reply, "data", b"")) for reply in replies)
        return b"x" * 70_000


async def read(_: bytes) -> None:
    """A client that reads at once."""


def portal_over(rows: SpooledRows) -> Portal:
    portal = Portal(PreparedStatement(None, (), 0, 0), Bind("c", "", (), (), ()), (), is_forward_only=False)
    portal.result = Result("SELECT", (FieldDescription("n", Oid.INT8),), rows)
    return portal


async def by_rows(outbox: Outbox, rows: SpooledRows) -> None:
    await outbox.rows(Result("SELECT", (FieldDescription("n", Oid.INT8),), rows), [Format.TEXT], 0, len(rows))


async def by_copy(outbox: Outbox, rows: SpooledRows) -> None:
    how = Copy(Query("SELECT n"), CopyOptions(CsvOptions()))
    await outbox.copy(Result("COPY", (FieldDescription("n", Oid.INT8),), rows, copy=how), how)


async def by_fetch_all(outbox: Outbox, rows: SpooledRows) -> None:
    portal = portal_over(rows)
    taken = portal.take(Fetch("c", Direction.FORWARD, None, False))
    assert len(taken) == MANY
    await outbox.rows(
        Result("FETCH", (FieldDescription("n", Oid.INT8),), taken), [Format.TEXT], 0, len(taken)
    )


async def by_portal(outbox: Outbox, rows: SpooledRows) -> None:
    portal, count = portal_over(rows), 0
    assert portal.result is not None
    while (part := portal.take_forward(70_001))[0] < part[1]:
        await outbox.rows(portal.result, [Format.TEXT], *part)
        count += part[1] - part[0]
    assert count == MANY


@pytest.mark.parametrize("way", some([by_rows, by_copy, by_fetch_all, by_portal], 2))
def test_a_million_rows_are_never_alive_together(
    million: SpooledRows, way: Callable[[Outbox, SpooledRows], Awaitable[None]]
) -> None:
    Counted.most = Counted.alive
    asyncio.run(way(Outbox(Wire(), read, Pace(Precedence(), "alice")), million))  # type: ignore[arg-type, call-arg]
    assert Counted.most <= 2 * CELLS


def test_a_large_answer_stands_back_between_its_pieces(million: SpooledRows) -> None:
    pieces = list[float]()

    class Counting(Pace):
        async def stand_back(self, seconds: float) -> None:
            pieces.append(seconds)

    asyncio.run(by_rows(Outbox(Wire(), read, Counting(Precedence(), "alice")), million))  # type: ignore[arg-type, call-arg]
    assert len(pieces) >= MANY // 2000 - 1
    assert all(seconds > 0 for seconds in pieces)


def test_what_a_cursor_gives_piece_by_piece_is_counted(million: SpooledRows) -> None:
    precedence = Precedence()
    outbox = Outbox(Wire(), read, Pace(precedence, "alice"))  # type: ignore[arg-type]
    portal = portal_over(million)
    assert portal.result is not None
    for _ in range(20):
        asyncio.run(outbox.rows(portal.result, [Format.TEXT], *portal.take_forward(1_000)))
    assert precedence.taken("alice") > 0


def test_a_disk_that_fails_at_a_close_leaves_the_next_one_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    close, files = os.close, [kept_rows._File.made() for _ in range(4)]
    left = {file._number for file in files}

    def fail(number: int) -> None:
        close(number)
        left.discard(number)
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(kept_rows.os, "close", fail)
    for file in files:
        file.close()
        file.close()  # again does nothing: the number may be another file's by then
    deadline = time.monotonic() + 60
    while len(left) > 1:  # the first may be closed as before: it was waited for when this began
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_backwards_too(million: SpooledRows) -> None:
    portal = portal_over(million)
    portal.take(Fetch("c", Direction.FORWARD, None, True))
    Counted.most = Counted.alive
    taken = portal.take(Fetch("c", Direction.BACKWARD, None, False))
    assert (taken[0], taken[:3], taken[MANY - 1]) == (
        (MANY - 1,),
        [(MANY - 1,), (MANY - 2,), (MANY - 3,)],
        (0,),
    )
    assert Counted.most <= 2 * CELLS


def test_a_full_disk_is_told_in_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = limits()

    def full(self: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device: /secret")

    monkeypatch.setattr("dpsql.postprocess.rows._File.write", full)
    with pytest.raises(EngineFailure) as caught:
        spooled(memory, ROWS, 100)
    assert caught.value.sqlstate == "53200"
    assert "secret" not in str(caught.value) + caught.value.detail
    assert caught.value.__context__ is None


def test_a_chunk_of_objects_keeps_nobody_waiting() -> None:
    """It is fetched, and written, in calls that do not let the interpreter go; arrays are copied, and may be more."""
    for columns in (1, 3, 15, 1_000, 1_664):
        assert chunk_rows(columns) * columns <= max(1_000, columns)
        assert 1 <= chunk_rows(columns) < chunk_rows(columns, CELLS)

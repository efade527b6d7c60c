"""A large answer as it is kept for its client: a few rows in memory, the others in a file that has no name.

House rules:

1. Rows come in chunks of so many values, by column, and are never all in memory: writing and reading hold one chunk.
2. The file is unlinked before the first byte, readable by this process alone, and holds what the analyst may read.
3. What is kept is counted (`memory.Share`), and given back when the rows are closed or nobody holds them any more.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, TypeVar, overload

import numpy as np

from ..errors import EngineFailure
from ..memory import MIB, Share, weight_of

__all__ = ["CELLS", "Spool", "SpooledRows", "chunk_rows"]

T = TypeVar("T")

CELLS = 40_000
"""Values of a chunk of arrays: some megabytes, and a few milliseconds to write or read."""
_OBJECTS = 1_000
"""Values of a chunk of objects: half a millisecond to fetch and to write. These are calls that do not let the
interpreter go, for which everybody waits; more at once are kept no faster."""
_HELD = 4 * MIB
"""What is counted in memory for an answer in chunks: one being read, and what is made of it for the client."""
_SMALL = 256 * 1024
"""Bytes up to which an answer is a list, and not counted."""

Column = Any
"""An array, or a list of values."""


def chunk_rows(columns: int, cells: int = _OBJECTS) -> int:
    """Return how many rows of so many columns are a chunk of so many values."""
    return max(1, cells // max(1, columns))


_LEFT: SimpleQueue[int] = SimpleQueue()
"""Files that nobody holds any more; whoever collects garbage may put one there, in the midst of anything."""


def _close_left() -> None:
    while True:
        with suppress(OSError):  # closed is closed, whatever the disk says
            os.close(_LEFT.get())


@cache
def _closer() -> threading.Thread:
    """Return the thread that closes files: to free the room of a large one takes 30 ms, which nobody waits for."""
    thread = threading.Thread(target=_close_left, name="dpsql-closing", daemon=True)
    thread.start()
    return thread


class _File:
    """A file without a name, which goes with this."""

    def __init__(self, number: int) -> None:
        """`number`: its descriptor, which is this one's from now on."""
        self._number = number

    @classmethod
    def made(cls) -> _File:
        """Make a file. Raises OSError; RuntimeError: the thread that would close it cannot be begun."""
        _closer()
        with tempfile.TemporaryFile(prefix="dpsql-", buffering=0) as file:
            return cls(os.dup(file.fileno()))

    def write(self, data: bytes) -> None:
        """Write at the end."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._number, view) :]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes between two places."""
        return os.pread(self._number, end - start, start)

    def close(self) -> None:
        """Let it go, once; its room is free soon after."""
        number, self._number = self._number, -1
        if number >= 0:
            _LEFT.put(number)

    def __del__(self) -> None:
        self.close()


def _nothing() -> None:
    """Who is alone rests for nobody."""


class Spool:
    """Takes the chunks of one answer; `share` is of the analyst whom it is for; `rest` is done after each in a file."""

    def __init__(self, share: Share, rest: Callable[[], None] = _nothing) -> None:
        self._of, self._rest = share, rest
        self.clear()

    def clear(self) -> None:
        """Forget all: the answer is begun anew."""
        self._first: list[Column] | None = None
        self._share = self._of.another()
        self._file: _File | None = None
        self._starts, self._places = [0], [0]

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, columns: Sequence[Column]) -> None:
        """Take the next rows, by column. Raises EngineFailure (53200, 57014): there is no room for them."""
        size = len(columns[0])
        if not size:
            return
        self._starts.append(self._starts[-1] + size)
        if self._first is None:
            self._first = list(columns)
            return
        if self._file is None:
            self._share.take(_HELD)
            self._file = _told(_File.made)
            self._write(self._first)
            self._first = []
        self._write(columns)

    def _write(self, columns: Sequence[Column]) -> None:
        assert self._file is not None
        data = pickle.dumps(tuple(columns), protocol=5)
        self._share.take(0, len(data))
        _told(partial(self._file.write, data))
        self._places.append(self._places[-1] + len(data))
        self._rest()

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """Return the rows: a list where they are few. Requires: nothing is added after."""
        if self._file is not None:
            return SpooledRows(self._file, self._starts, self._places, self._share)
        listed = _rows_of(self._first, slice(None)) if self._first is not None else []
        size = weight_of(listed)
        if size <= _SMALL:
            return listed
        self._share.take(min(size, _HELD))
        return SpooledRows(None, self._starts, self._places, self._share, listed)


class SpooledRows(Sequence[tuple[Any, ...]]):
    """The rows of a large answer; a slice is a list, and is made of one chunk after another."""

    def __init__(
        self, file: _File | None, starts: list[int], places: list[int], share: Share,
        listed: list[tuple[Any, ...]] | None = None,
    ) -> None:  # fmt: skip
        """`starts`: the first row of each chunk, and the end; `places`: where it is in the file. `listed`: all rows."""
        self._file, self._starts, self._places, self._share = file, starts, places, share
        self._listed = listed
        self._last: tuple[int, tuple[Column, ...]] = (-1, ())

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        asked = range(len(self))[place]
        if isinstance(asked, int):
            return self._between(asked, asked + 1)[0]
        if not asked:
            return []
        low, high = min(asked[0], asked[-1]), max(asked[0], asked[-1])
        found = self._between(low, high + 1)
        return found[:: asked.step]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for first, end in zip(self._starts, self._starts[1:], strict=False):
            yield from self._between(first, end)

    def close(self) -> None:
        """Let the file go, and give back what was counted; there are no rows after that."""
        self._starts, self._last, self._listed = [0], (-1, ()), []
        if self._file is not None:
            self._file.close()
        self._share.close()

    def _between(self, low: int, high: int) -> list[tuple[Any, ...]]:
        if self._listed is not None:
            return self._listed[low:high]
        found: list[tuple[Any, ...]] = []
        number = bisect_right(self._starts, low) - 1
        while low < high:
            start, end = self._starts[number], min(self._starts[number + 1], high)
            found += _rows_of(self._chunk(number), slice(low - start, end - start))
            low, number = end, number + 1
        return found

    def _chunk(self, number: int) -> tuple[Column, ...]:
        if self._last[0] != number:
            assert self._file is not None
            self._last = (-1, ())
            data = self._file.read(self._places[number], self._places[number + 1])
            self._last = number, pickle.loads(data)  # noqa: S301  # a file of ours that nobody else can open
        return self._last[1]


def _told(action: Callable[[], T]) -> T:
    """Return what an action returns. Raises EngineFailure (53200): the disk is full, or may not be written."""
    try:
        return action()
    except (OSError, RuntimeError) as error:
        number = error.errno if isinstance(error, OSError) else ""
        failure = EngineFailure(f"spool: {type(error).__name__} {number}".rstrip(), sqlstate="53200")
    raise failure


def _rows_of(columns: Sequence[Column], place: slice) -> list[tuple[Any, ...]]:
    listed = [
        column[place].tolist() if isinstance(column, np.ndarray) else column[place] for column in columns
    ]
    return list(zip(*listed, strict=True))

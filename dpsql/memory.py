"""What answers take of the server: bytes in memory and in files, counted by analyst, with limits for each and for all.

House rules:

1. It counts what is alive, and asks no clock but for how long somebody waits: who is over a limit waits a few seconds,
   then is told so (53200). What is taken here depends on public rows and released values alone.
2. What was taken is given back by whoever holds the `Share`: at its `close`, or when nobody holds it any more. So a
   client that is killed frees what it held.
3. The first bytes of every analyst (`first`) are there for them, whatever the others hold.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from .errors import EngineFailure
from .records import dataclass

MIB = 2**20
WAIT_SECONDS = 5.0
"""How long is waited for others to give back what they hold."""
STATEMENT_BYTES = MIB
"""What a statement takes while it runs, whatever it answers."""
_LOOK_SECONDS = 0.05
_CELL, _ROW = 64, 56
"""About the bytes that a number takes in a row, and a row without its values."""
_QUARTER = 4
_SEEN = "the answers that are kept for {} take all the {} that there is for them"


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The most bytes that all answers together may take, and those of one analyst: in memory, and in files."""

    memory: int
    memory_each: int
    files: int
    files_each: int
    first: int = 16 * MIB

    @classmethod
    def of(cls, memory: int | None = None, files: int | None = None) -> MemoryLimits:
        """Return limits of which an analyst has a quarter.

        `memory`: None for a gigabyte, or a quarter of the machine's if that is less. `files`: None for four times that.
        """
        if memory is None:
            memory = min(1024 * MIB, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _QUARTER)
        files = 4 * memory if files is None else files
        return cls(memory, memory // _QUARTER, files, files // _QUARTER)

    def part(self, of: int) -> MemoryLimits:
        """Return those of one process of so many, which together keep within them."""
        parts = (
            one // of for one in (self.memory, self.memory_each, self.files, self.files_each, self.first)
        )
        return MemoryLimits(*parts)


class _Counter:
    """Bytes of one kind, by analyst."""

    def __init__(self, kind: str, limit: int, each: int, first: int) -> None:
        self.kind, self.limit, self.each, self.first = kind, limit, each, first
        self.held = 0
        self.of: dict[str, int] = {}

    def refused(self, analyst: str, size: int) -> str | None:
        """Return for whom there is no room, in words; None: there is room."""
        own = self.of.get(analyst, 0) + size
        if own <= self.first:
            return None
        if own > self.each:
            return "you"
        return None if self.held + size <= self.limit else "everybody"

    def add(self, analyst: str, size: int) -> None:
        own = self.of.get(analyst, 0) + size
        self.held += size
        if own:
            self.of[analyst] = own
        else:
            self.of.pop(analyst, None)


class ResultMemory:
    """The counters of a server; every method may be called from any thread."""

    def __init__(self, limits: MemoryLimits, wait_seconds: float = WAIT_SECONDS) -> None:
        self._memory = _Counter("memory", limits.memory, limits.memory_each, limits.first)
        self._files = _Counter("room in files", limits.files, limits.files_each, limits.first)
        self._wait_seconds = wait_seconds
        self._freed = threading.Condition(threading.RLock())  # a share may be collected while it is held
        self._most = 0

    @property
    def each(self) -> int:
        """The most bytes in memory of one analyst."""
        return self._memory.each

    @property
    def held(self) -> int:
        """Bytes in memory, of all."""
        return self._memory.held

    @property
    def most(self) -> int:
        """The most bytes in memory at once, of all, since the start."""
        return self._most

    @property
    def in_files(self) -> int:
        """Bytes in files, of all."""
        return self._files.held

    def share(self, analyst: str, cancelled: Callable[[], bool] = lambda: False) -> Share:
        """Return what an analyst's statement, or answer, may take with. `cancelled` ends a wait (57014)."""
        return Share(self, analyst, cancelled)

    def take(
        self, analyst: str, memory: int, files: int, cancelled: Callable[[], bool], seconds: float | None
    ) -> None:
        """Take bytes for an analyst; `seconds`: how long is waited, None for the usual.

        Raises EngineFailure: 53200, there is no room in time; 57014, it is cancelled.
        """
        end = time.monotonic() + (self._wait_seconds if seconds is None else seconds)
        asked = ((self._memory, memory), (self._files, files))
        with self._freed:
            while True:
                over = [(one.refused(analyst, size), one) for one, size in asked if size > 0]
                full = [(whom, one) for whom, one in over if whom is not None]
                if not full:
                    for one, size in asked:
                        one.add(analyst, size)
                    self._most = max(self._most, self._memory.held)
                    return
                left = end - time.monotonic()
                if left <= 0:
                    whom, one = full[0]
                    raise EngineFailure("no room", sqlstate="53200", limit=_SEEN.format(whom, one.kind))
                self._freed.wait(min(left, _LOOK_SECONDS))
                if cancelled():
                    raise EngineFailure("cancelled", sqlstate="57014")

    def give(self, analyst: str, memory: int, files: int) -> None:
        """Give bytes back."""
        with self._freed:
            self._memory.add(analyst, -memory)
            self._files.add(analyst, -files)
            self._freed.notify_all()


class Share:
    """What one statement or one answer holds; all of it is given back by `close`, or when the share is gone."""

    def __init__(self, memory: ResultMemory, analyst: str, cancelled: Callable[[], bool]) -> None:
        self._counted, self._analyst, self._cancelled = memory, analyst, cancelled
        self.memory = self.files = 0

    def another(self) -> Share:
        """Return a share of the same analyst's, for what outlives the statement."""
        return Share(self._counted, self._analyst, self._cancelled)

    def take(self, memory: int, files: int = 0, *, seconds: float | None = None) -> None:
        """Take more. Raises as `ResultMemory.take`."""
        self._counted.take(self._analyst, memory, files, self._cancelled, seconds)
        self.memory += memory
        self.files += files

    def give(self, memory: int, files: int = 0) -> None:
        """Give some of it back. Requires: so much is held."""
        self.memory -= memory
        self.files -= files
        self._counted.give(self._analyst, memory, files)

    def take_large(self) -> int:
        """Take half of what its analyst may have in memory, for what is not known before; return it."""
        size = self._counted.each // 2
        self.take(size)
        return size

    def settle(self, taken: int, used: int, *, seconds: float | None = None) -> None:
        """Hold what is used in place of what was taken before it was known. Raises as `take`."""
        if used > taken:
            self.take(used - taken, seconds=seconds)
        else:
            self.give(taken - used)

    def close(self) -> None:
        """Give all of it back."""
        if self.memory or self.files:
            self.give(self.memory, self.files)

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def give_back() -> None:
    """Have the C library give the system what nobody uses any more, where it can be asked to; it keeps it otherwise."""
    if _TRIM is not None:
        _TRIM(0)


def _found_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim  # glibc alone has it
    except (OSError, AttributeError, TypeError):
        return None
    return trim


_TRIM = _found_trim()


def weight_of(rows: Sequence[Sequence[Any]]) -> int:
    """Return about how many bytes rows take in memory: a little too many for numbers, the characters of texts."""
    if not rows:
        return 0
    texts = sum(len(value) for row in rows for value in row if isinstance(value, (str, list)))
    return len(rows) * (_ROW + _CELL * len(rows[0])) + texts

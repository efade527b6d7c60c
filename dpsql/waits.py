"""How long whoever works for a statement may wait for somebody else: until the statement has to end.

House rules:

1. A statement has one `Stop`: it is told to end when it is cancelled, or when its time is up. Its thread carries it
   (`until`), so that whatever waits in that thread, however deep, sees it without being handed it.
2. Nothing here interrupts work. A wait looks at the stop again and again, and gives up by raising `Stopped`. Where an
   answer may be on its way it waits `GRACE_SECONDS` more: who is well answers by then, and is not hung up on.
3. Whatever waits has a limit of its own besides, for those who work for no statement.

The watchdog is one thread for the process: a thread for every statement would cost more than the statement. An
interrupt between two steps of a statement is lost, so a statement that is late, or cancelled, is interrupted again on
every patrol until it ends.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Protocol, Self, TypeVar

from .errors import EngineFailure
from .records import dataclass

__all__ = [
    "GRACE_SECONDS",
    "Stop",
    "Stopped",
    "Watch",
    "acquire",
    "apart",
    "check",
    "interrupt_after",
    "is_over",
    "is_told",
    "until",
]


_T = TypeVar("_T")

GRACE_SECONDS = 0.4
"""How long a peer that is asked already may take to answer after its statement was told to end. With what a wait looks
at ten times a second, and the grid of replies, a client is told within a second."""

_LOOK_SECONDS = 0.05


class Stopped(EngineFailure):
    """A wait that was given up since its statement has to end (57014)."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, sqlstate="57014")


class Stop(threading.Event):
    """Tells a statement to end, from any thread. `at`: when it was, or will be, told (of `time.monotonic`)."""

    def __init__(self) -> None:
        super().__init__()
        self.at = math.inf

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return one that tells by itself once so many seconds have passed."""
        stop = cls()
        stop.at = time.monotonic() + seconds
        return stop

    def set(self) -> None:
        """Tell it now, if it was not told before."""
        self.at = min(self.at, time.monotonic())
        super().set()

    def clear(self) -> None:
        """Begin anew, with another statement."""
        super().clear()
        self.at = math.inf


_stops: ContextVar[tuple[Stop, ...]] = ContextVar("stops", default=())


@contextmanager
def until(stop: Stop) -> Iterator[None]:
    """Have the waits of this thread within the block end by a stop, and by those of the blocks around it."""
    token = _stops.set((*_stops.get(), stop))
    try:
        yield
    finally:
        _stops.reset(token)


def is_told() -> bool:
    """Return whether the statement that this thread works for has to end."""
    return _told_at() <= time.monotonic()


def is_over() -> bool:
    """Return whether it had to some time ago: who has not answered by now is not waited for."""
    return _told_at() + GRACE_SECONDS <= time.monotonic()


def check(what: str) -> None:
    """Raise Stopped if the statement has to end; `what`: what is waited for, for the owner's log."""
    if is_told():
        raise Stopped(f"cancelled: {what}")


class _Lock(Protocol):
    def acquire(self, blocking: bool = ..., timeout: float = ..., /) -> bool: ...


def acquire(lock: _Lock, seconds: float, what: str) -> bool:
    """Take a lock, or a place of a semaphore, within so many seconds; False: it was not to be had. Raises Stopped."""
    if lock.acquire(False):
        return True
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check(what)
        if lock.acquire(True, min(left, _LOOK_SECONDS)):
            return True
    return False


def apart(action: Callable[[], _T], what: str, undo: Callable[[_T], object]) -> _T:
    """Return what an action returns that may wait where nothing looks at the stop, as where the system looks up a name.

    It goes on in a thread of its own, which is left behind where the statement has to end first; `undo` is called with
    what comes too late. Raises what the action raises, and Stopped.
    """
    if not _stops.get():
        return action()
    future: Future[_T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(action))
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="dpsql-apart", daemon=True).start()
    while not wait([future], timeout=_LOOK_SECONDS).done:
        if is_over():
            future.add_done_callback(lambda late: late.exception() or undo(late.result()))
            raise Stopped(f"cancelled: {what}")
    return future.result()


def _told_at() -> float:
    return min((stop.at for stop in _stops.get()), default=math.inf)


# --- the watchdog: one thread for the process that interrupts statements whose time is up -------------------


_PATROL_SECONDS = 0.05


class Interruptible(Protocol):
    """What can be told from another thread to give up."""

    def interrupt(self) -> None: ...


@dataclass(eq=False, slots=True)
class Watch:
    """One statement under watch; `is_late`: it was interrupted since its time was up, not cancelled."""

    statement: Interruptible
    deadline: float
    is_late: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Interrupt the statement until it ends, from any thread. Requires: its block has not ended."""
        self.is_cancelled = True
        self.statement.interrupt()

    def patrol(self, now: float) -> None:
        """Interrupt the statement if it has to end."""
        self.is_late = self.is_late or (now >= self.deadline and not self.is_cancelled)
        if self.is_late or self.is_cancelled:
            self.statement.interrupt()


@contextmanager
def interrupt_after(statement: Interruptible, seconds: float) -> Iterator[Watch]:
    """Interrupt `statement` when the block takes more than `seconds` (to within 0.05).

    Ensures: `interrupt` is never called by the watchdog after the block has ended.
    """
    watch = Watch(statement, time.monotonic() + seconds)
    _WATCHDOG.add(watch)
    try:
        yield watch
    finally:
        _WATCHDOG.remove(watch)


class _Watchdog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self._busy = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        with self._lock:
            self._watches.add(watch)
            self._busy.set()
            if self._thread is None or not self._thread.is_alive():  # none yet, or lost in a fork
                self._thread = threading.Thread(target=self._patrol, name="dpsql-watchdog", daemon=True)
                self._thread.start()

    def remove(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)

    def _patrol(self) -> None:
        while self._busy.wait():
            time.sleep(_PATROL_SECONDS)
            self._interrupt_late()

    def _interrupt_late(self) -> None:
        """Do one round; a function of its own, so that no statement is kept alive between rounds."""
        now = time.monotonic()
        with self._lock:
            for watch in self._watches:
                watch.patrol(now)
            if not self._watches:
                self._busy.clear()


_WATCHDOG = _Watchdog()

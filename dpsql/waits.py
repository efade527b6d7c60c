"""How long whoever works for a statement may wait for somebody else: until the statement has to end.

House rules:

1. A statement has one `Stop`: it is told to end when it is cancelled, or when its time is up. Its thread carries it
   (`until`), so that whatever waits in that thread, however deep, sees it without being handed it.
2. Nothing here interrupts work. A wait looks at the stop again and again, and gives up by raising `Stopped`. Where an
   answer may be on its way it waits `GRACE_SECONDS` more: who is well answers by then, and is not hung up on.
3. Whatever waits has a limit of its own besides, for those who work for no statement.
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

__all__ = ["GRACE_SECONDS", "Stop", "Stopped", "acquire", "apart", "check", "is_over", "is_told", "until"]

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

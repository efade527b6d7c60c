"""How long whoever works for a statement may wait for somebody else; and whose turn it is, where few may go at once.

The watchdog is one thread for the process: a thread for every statement would cost more than the statement. An
interrupt between two steps of a statement is lost, so a statement that is late, or cancelled, is interrupted again on
every patrol until it ends.

Turns at something that few may do at once are shared between those who wait. Where all compute in one interpreter a
statement of somebody who has taken less of it lately goes first.

A thread that computes in Python without a pause is asked to stop every millisecond, and one that reads a long text or
makes objects of rows is not asked at all; whoever else has something short to do waits for each of them, at every step
of it. So long work is done in pieces (`Pace`), and rests between them while somebody's short statement is `ahead`; and
who has not said yet who it is stands back behind everybody.

House rules:

1. A statement has one `Stop`: it is told to end when it is cancelled, or when its time is up. Its thread carries it
   (`until`), so that whatever waits in that thread, however deep, sees it without being handed it.
2. Nothing here interrupts work. A wait looks at the stop again and again, and gives up by raising `Stopped`. Where an
   answer may be on its way it waits `GRACE_SECONDS` more: who is well answers by then, and is not hung up on.
3. Whatever waits has a limit of its own besides, for those who work for no statement.
4. Whose turn it is holds nobody up for long: a rest ends after `_LONGEST_REST`, and after `_RESTS` times what the
   piece before it took; a statement is ahead for `_LONGEST_AHEAD` at most, and whoever is ahead waits for nothing
   here. So nobody starves, and nothing can wait for each other.
5. Who is ahead, when and how long depends on texts, public rows and released values. While private rows are read, and
   until it may be known that they were, a statement is `apart`.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import field
from typing import Protocol, Self, TypeVar

from .errors import EngineFailure
from .records import dataclass

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


# --- who goes first where all compute in one interpreter ----------------------------------------------------


_LONGEST_AHEAD = 0.5
"""Seconds: a statement that takes longer is no short one."""
_LONGEST_REST, _RESTS = 0.05, 20
"""Seconds, and times what a piece took: who rests goes on with a twentieth of its speed at worst."""
_LOOKS_AHEAD = 0.01
"""Seconds after which who rests looks whether the others are still ahead: that ends with time, too."""
_LOOKS_IN_LOOP = 0.002
"""The same, in the event loop, which nobody wakes."""
_FORGETS = 10.0
"""Seconds in which two thirds of what somebody has taken are forgotten."""


class Place:
    """A statement's place ahead of long work, from `since` on; None: it has none now."""

    def __init__(self, precedence: Precedence, owner: str) -> None:
        self._precedence, self.owner = precedence, owner
        self.since: float | None = None

    def enter(self) -> None:
        """Be ahead from now on."""
        self._precedence.begin(self)

    def leave(self) -> None:
        """Be ahead no longer; nothing where it is not."""
        self._precedence.end(self)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Be ahead no longer within the block, nor after an error in it, whose moment is nobody else's business."""
        was_ahead = self.since is not None
        self.leave()
        yield
        if was_ahead:
            self.enter()


class Pace:
    """The long work of one statement, in pieces."""

    def __init__(self, precedence: Precedence, owner: str) -> None:
        self._precedence, self._owner = precedence, owner
        self._since: float | None = None

    def rest(self) -> None:
        """Between two pieces: let those go first who are ahead and have taken less; a moment at most."""
        longest = _LONGEST_REST
        if self._since is not None:
            seconds = self._precedence.clock() - self._since
            self._precedence.take(self._owner, seconds)
            longest = min(longest, _RESTS * seconds)
        self._precedence.rest(self._owner, longest)
        self._since = self._precedence.clock()

    def take(self, seconds: float) -> None:
        """Count a piece that is not rested after."""
        self._precedence.take(self._owner, seconds)

    async def stand_back(self, seconds: float) -> None:
        """Rest, as `rest`, after a piece in the event loop that took so many seconds."""
        self.take(seconds)
        await self._precedence.stand_back(self._owner, min(_LONGEST_REST, _RESTS * seconds))

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Rest, and then do what is in the block as one piece."""
        self.rest()
        try:
            yield
        finally:
            if self._since is not None:
                self._precedence.take(self._owner, self._precedence.clock() - self._since)
            self._since = None


class Precedence:
    """Who is ahead, and what each has taken, in seconds, the older the less; one for all that share an interpreter."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._changed = threading.Condition()
        self._ahead: set[Place] = set()
        self._taken: dict[str, tuple[float, float]] = {}

    def begin(self, place: Place) -> None:
        """Have a place count."""
        with self._changed:
            place.since = self.clock()
            self._ahead.add(place)

    def end(self, place: Place) -> None:
        """Have a place count no more; nothing where it does not."""
        with self._changed:
            if place.since is None:
                return
            self._add(place.owner, min(self.clock() - place.since, _LONGEST_AHEAD))
            place.since = None
            self._ahead.discard(place)
            self._changed.notify_all()

    def take(self, owner: str, seconds: float) -> None:
        """Count what somebody has taken."""
        with self._changed:
            self._add(owner, seconds)

    def taken(self, owner: str) -> float:
        """Return what somebody has taken lately."""
        seconds, at = self._taken.get(owner, (0.0, 0.0))
        return seconds * math.exp((at - self.clock()) / _FORGETS)

    def rest(self, owner: str, longest: float = _LONGEST_REST) -> None:
        """Wait while a statement of somebody else is ahead who has taken no more; not longer than so many seconds."""
        end = self.clock() + longest
        with self._changed:
            while self._is_behind(owner) and (left := end - self.clock()) > 0:
                self._changed.wait(min(left, _LOOKS_AHEAD))

    async def stand_back(self, owner: str | None, longest: float) -> None:
        """As `rest`, in the event loop. `owner`: None for who has not said who it is, and is behind everybody."""
        from asyncio import sleep  # only a server has a loop, and this is loaded with every command

        end = self.clock() + longest
        while self._must_stand_back(owner) and (left := end - self.clock()) > 0:
            await sleep(min(left, _LOOKS_IN_LOOP))

    def _must_stand_back(self, owner: str | None) -> bool:
        with self._changed:
            return self._is_behind(owner)

    def _is_behind(self, owner: str | None) -> bool:
        now, own = self.clock(), math.inf if owner is None else self.taken(owner)
        return any(
            place.owner != owner and place.since is not None and now - place.since < _LONGEST_AHEAD
            and self.taken(place.owner) <= own
            for place in self._ahead
        )  # fmt: skip

    def _add(self, owner: str, seconds: float) -> None:
        self._taken[owner] = (self.taken(owner) + seconds, self.clock())


# --- turns at something that few may do at once -------------------------------------------------------------


_LOOKS = 0.05
"""Seconds after which who waits looks whether it is cancelled."""


@dataclass(eq=False, slots=True)
class Turn:
    """Somebody's place among those that wait, and then its turn."""

    turns: Turns
    owner: str
    cancelled: Callable[[], bool]
    come: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let others have the turn within the block, and wait for another after it. Raises EngineFailure (57014)."""
        self.turns.leave(self)
        try:
            yield
        finally:
            self.turns.wait(self)


class Turns:
    """At most `total` turns at once, `each` of one owner; None: as many as there are."""

    def __init__(self, total: int | None, each: int | None) -> None:
        self._total, self._each = total, each
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Turn]] = {}
        self._held: dict[str, int] = {}

    @contextmanager
    def turn(self, owner: str, cancelled: Callable[[], bool]) -> Iterator[Turn]:
        """Have a turn within the block. Raises EngineFailure (57014): cancelled before it came."""
        turn = Turn(self, owner, cancelled)
        self.wait(turn)
        try:
            yield turn
        finally:
            self.leave(turn)

    def wait(self, turn: Turn) -> None:
        """Wait for a turn. Raises EngineFailure (57014), and then `leave` does nothing."""
        with self._lock:
            self._waiting.setdefault(turn.owner, deque()).append(turn)
            self._grant()
        while not turn.come.wait(_LOOKS):
            if turn.cancelled():
                with self._lock:
                    if not turn.come.is_set():
                        self._forget(turn)
                        raise EngineFailure("cancelled while it waited for its turn", sqlstate="57014")

    def leave(self, turn: Turn) -> None:
        """Give a turn up, if it has come."""
        with self._lock:
            if not turn.come.is_set():
                return
            turn.come.clear()
            self._held[turn.owner] -= 1
            if not self._held[turn.owner]:
                del self._held[turn.owner]
            self._grant()

    def _forget(self, turn: Turn) -> None:
        waiting = self._waiting[turn.owner]
        waiting.remove(turn)
        if not waiting:
            del self._waiting[turn.owner]

    def _grant(self) -> None:
        """Give what turns there are: to each owner one, in order, whoever had one last behind all others."""
        while (owner := self._next()) is not None:
            waiting = self._waiting.pop(owner)
            turn = waiting.popleft()
            if waiting:
                self._waiting[owner] = waiting  # behind all others
            self._held[owner] = self._held.get(owner, 0) + 1
            turn.come.set()

    def _next(self) -> str | None:
        if self._total is not None and sum(self._held.values()) >= self._total:
            return None
        return next(
            (one for one in self._waiting if self._each is None or self._held.get(one, 0) < self._each), None
        )

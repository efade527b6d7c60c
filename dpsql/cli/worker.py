"""One thread that runs the engine, so that the terminal can spin and Ctrl-C can cancel.

The session lives on that thread from opening to closing; only `Session.cancel` is called from
outside it (design.md 9: the engine is synchronous, a thread per running statement).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ..engine.session import Session

__all__ = ["RunningSession", "open_session"]

P = ParamSpec("P")
T = TypeVar("T")

_TICK_SECONDS = 0.1
_FRAMES = "|/-\\"


@contextmanager
def open_session(policy_path: Path, analyst: str) -> Iterator[RunningSession]:
    """Open a session on a thread of its own and close it at the end.

    Raises what `Session.open` raises: PolicyError, LedgerError, EngineFailure.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="dpsql") as thread:
        session = thread.submit(_open, policy_path, analyst).result()
        try:
            yield RunningSession(session, thread)
        finally:
            thread.submit(session.close).result()


def _open(policy_path: Path, analyst: str) -> Session:
    from ..engine.session import Session

    return Session.open(policy_path, analyst=analyst)


class RunningSession:
    """A session and its thread: `run(running.session.execute, sql)` waits for the answer.

    `was_interrupted`: Ctrl-C came during the last call. It may have come too late to stop that one.
    """

    def __init__(self, session: Session, thread: ThreadPoolExecutor) -> None:
        self.session = session
        self.was_interrupted = False
        self._thread = thread

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns or raises; Ctrl-C cancels it, and its error then comes back here."""
        self.was_interrupted = False
        future = self._thread.submit(call, *args, **kwargs)
        spins = sys.stderr.isatty()
        for frame in itertools.cycle(_FRAMES):
            try:
                if wait([future], timeout=_TICK_SECONDS).done:
                    break
                if spins:
                    _write(f"\r{frame} ")
            except KeyboardInterrupt:
                self.was_interrupted = True
                self.session.cancel()
        if spins:
            _write("\r  \r")
        return _result(future)


def _result(future: Future[T]) -> T:
    return future.result()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

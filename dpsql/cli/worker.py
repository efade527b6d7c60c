"""One thread that runs the engine, so that the terminal can say what is done and for how long, and Ctrl-C can cancel.

House rule: Ctrl-C is noted here and raises nothing, so that the main thread always waits for a statement's end and
tells what it has spent.

The session lives on that thread from opening to closing; only `Session.cancel` is called from
outside it (architecture.md: the engine is synchronous, a thread per running statement).
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ..errors import EngineFailure
from . import interrupts
from .faults import tell
from .owner import tell_lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backends import Backend
    from ..dbapi.connection import Schema
    from ..engine import Answer
    from ..engine.session import Session
    from ..policy import Policy

P = ParamSpec("P")
T = TypeVar("T")

_TICK_SECONDS = 0.1
_ECHOED = len("^C")
_FRAMES = "|/-\\"


@contextmanager
def open_session(
    policy: Path | Policy, analyst: str, backend: Backend | None = None
) -> Iterator[RunningSession]:
    """Open a session on a thread of its own and close it at the end; Ctrl-C is noted meanwhile.

    `backend`: in place of the policy's database.
    Raises what `Session.open` raises: PolicyError, LedgerError, EngineFailure.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="dpsql") as thread:
        with interrupts.leaving():
            opening = thread.submit(_open, policy, analyst, backend)
            wait([opening])
        with interrupts.noting():
            running = RunningSession(opening.result(), thread)
            try:
                yield running
            finally:
                thread.submit(running.close).result()


def _open(policy: Path | Policy, analyst: str, backend: Backend | None) -> Session:
    from ..engine.session import Session
    from ..postprocess import LONGEST_SECONDS

    session = Session.open(policy, analyst=analyst, backend=backend)
    session.time_limit = LONGEST_SECONDS  # nobody else waits for this process
    session.dataset.tell = lambda line: tell(f"for the owner: {line} (dpsql docs verify)")
    tell_lost(session.dataset.store)
    return session


class RunningSession:
    """A session and its thread: `run(running.execute, sql)` waits for the answer."""

    def __init__(self, session: Session, thread: ThreadPoolExecutor) -> None:
        self.session = session
        self._thread = thread
        self._schema: Schema | None = None

    def execute(self, text: str, parameters: Sequence[object] = ()) -> Answer:
        """Answer a statement: SHOW TABLES, DESCRIBE and the system catalog from declared names alone, else the session.

        Raises DpsqlError.
        """
        if self._schema is None:
            from ..dbapi.connection import Schema

            self._schema = Schema(self.session)
        of_schema = self._schema.answer(text, parameters)
        return self.session.execute(text, parameters) if of_schema is None else of_schema

    @contextmanager
    def unlisted(self) -> Iterator[None]:
        """Let statements compare with values that the policy does not list, as somebody has said that they mean it."""
        usual = self.session.settings
        self.session.settings = replace(usual, unlisted=True)
        try:
            yield
        finally:
            self.session.settings = usual

    def close(self) -> None:
        """Let the session go, and the system catalog if it was asked."""
        if self._schema is not None:
            self._schema.close()
        self.session.close()

    def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns or raises; Ctrl-C cancels it, and its error then comes back here.

        Ctrl-C may come too late to stop it; if it came before, nothing is begun.
        """

        def begun() -> T:
            if interrupts.has_come():
                stopped = EngineFailure(sqlstate="57014")
                stopped.cost = "nothing was charged"
                raise stopped
            return call(*args, **kwargs)

        interrupts.begin()
        with interrupts.noting():
            future = self._thread.submit(begun)
            spins, began, shown = sys.stderr.isatty(), time.monotonic(), 0
            for frame in itertools.cycle(_FRAMES):
                if wait([future], timeout=_TICK_SECONDS).done:
                    break
                if interrupts.has_come():
                    self.session.cancel()
                    if self._schema is not None:
                        self._schema.interrupt()
                if spins:
                    doing = "stopping" if interrupts.has_come() else self.session.doing
                    line = f"{frame} {doing}, {time.monotonic() - began:.0f} s"
                    _write(f"\r{line.ljust(shown)}")
                    shown = len(line)
            if spins:
                _write(f"\r{' ' * (shown + _ECHOED)}\r")
            return future.result()


def _write(text: str) -> None:
    with suppress(OSError):  # a terminal that is gone stops no statement
        sys.stderr.write(text)
        sys.stderr.flush()

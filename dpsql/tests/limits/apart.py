"""One statement in a process of its own, under a limit: how it ends, and what it took.

House rules:

1. The limit is set when the process has a session open and has answered something: what is measured is the statement,
   not what Python and its libraries take.
2. What ends the process itself (a signal, an error that is not one of dpsql's) is an end like any other, and told.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ... import Session
from ...backends import Backend, open_backend
from ...engine.dataset import Dataset, open_ledger
from ...errors import DpsqlError, EngineFailure, Refusal
from ...policy import Policy
from .hostile import policy_of

__all__ = ["ANSWERED", "Case", "End", "begin", "wait_for"]

ANSWERED = "answered"
_LATER = "SELECT COUNT(*), SUM(age) FROM person"
_SECONDS = 120
"""How long a statement is waited for."""

Rewrite = Callable[[str], str]


@dataclass(frozen=True)
class End:
    """How a statement ended: `kind` is "answered", a SQLSTATE, or what became of the process.

    `wrong`: what must not be, in words, or nothing. `charge`: in 1e-9 of epsilon. `sent`: bytes of the rows that the engine gave. `peak`: bytes of
    memory that this process had at most beyond what it had before.
    """

    kind: str
    seconds: float = 0.0
    sent: int = 0
    peak: int = 0
    wrong: str = ""
    charge: int = 0


@dataclass(frozen=True)
class Case:
    """What a process is to do: `database` as a policy names it, `open`: how it is opened, None for the policy's way.

    `address_space`: bytes beyond what the process has; `file_size`: of each file that it writes. `seconds`: until it is
    stopped. `rewrite`: a planted fault.
    """

    sql: str
    database: str
    open: Callable[[], Any] | None = None
    address_space: int | None = None
    file_size: int | None = None
    seconds: float | None = None
    rewrite: Rewrite | None = None


@dataclass(frozen=True)
class Running:
    """A process that has been begun, and where it tells its end."""

    pid: int
    pipe: int


def begin(case: Case) -> Running:
    """Begin a case in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Running(pid, reading)
    os.close(reading)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.write(writing, json.dumps(asdict(_run(case, Path(folder)))).encode())
    except Exception:  # noqa: BLE001  # this process ends here, whatever it is
        traceback.print_exc()
    finally:
        os._exit(0)


def wait_for(running: Running) -> End:
    """Return how it ended."""
    timer = threading.Timer(_SECONDS, lambda: os.kill(running.pid, signal.SIGKILL))
    timer.start()
    with os.fdopen(running.pipe, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(running.pid, 0)
    timer.cancel()
    if told:
        return End(**json.loads(told))
    number = os.waitstatus_to_exitcode(status)
    return End(f"died: {signal.Signals(-number).name if number < 0 else number}", wrong="the process died")


def _run(case: Case, folder: Path) -> End:
    policy = policy_of(case.database, folder)
    backend = _open(case, policy)
    watched = _Watched(backend, case.rewrite)
    store = open_ledger(policy, create=True)
    with Session(Dataset(policy, watched, store), "tester") as session:
        session.execute("SET dpsql.reuse = off")
        session.execute(_LATER)
        timer = threading.Timer(case.seconds or _SECONDS, session.expire)
        timer.start()  # before the limit: a thread takes address space
        if case.address_space is not None:
            _limit(resource.RLIMIT_AS, _status("VmSize") + case.address_space)
        if case.file_size is not None:
            _limit(resource.RLIMIT_FSIZE, case.file_size)
        end = _asked(session, watched, case.sql)
        timer.cancel()
        if end.kind == ANSWERED or end.wrong:
            return end
        later = _asked(session, watched, _LATER)
        if later.kind != ANSWERED:
            return replace(end, wrong=f"a later statement: {later.kind} {later.wrong}")
        return end


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, resource.RLIM_INFINITY))


def _open(case: Case, policy: Policy) -> Backend:
    if case.open is None:
        return open_backend(policy.database, policy.read_from, policy.files, copied=policy.copied)
    return case.open()


def _asked(session: Session, watched: _Watched, sql: str) -> End:
    before, spent = _memory_from_here(), session.budget().epsilon_spent_nano
    watched.sent, began = 0, time.monotonic()
    wrong = ""
    try:
        session.execute(sql)
        kind, is_charged = ANSWERED, True
    except DpsqlError as error:
        kind, is_charged = error.sqlstate, not isinstance(error, Refusal)
        if is_charged and (error.message, error.hint) != _constant(error.sqlstate):
            wrong = "an error's words are not constant"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told
        kind, is_charged, wrong = type(error).__name__, True, "not one of dpsql's errors"
    seconds = time.monotonic() - began
    charge = session.budget().epsilon_spent_nano - spent
    if is_charged and charge <= 0:
        wrong += " and not charged"
    return End(kind, seconds, watched.sent, _status("VmHWM") - before, wrong, charge)


def _constant(sqlstate: str) -> tuple[str, str | None]:
    failure = EngineFailure("", sqlstate=sqlstate)
    return failure.message, failure.hint


def _memory_from_here() -> int:
    """Return the bytes that this process has in memory, and have the system forget what it had at most."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


class _Watched:
    """A backend whose statements are rewritten, and whose rows are counted."""

    def __init__(self, backend: Backend, rewrite: Rewrite | None) -> None:
        self._backend, self._rewrite, self.sent = backend, rewrite, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @contextlib.contextmanager
    def snapshot(self, owner: object = None) -> Iterator[Any]:
        with self._backend.snapshot(owner) as snapshot:
            run = snapshot.run

            def counted(sql: str, *args: Any, **more: Any) -> Iterator[list[tuple[Any, ...]]]:
                for rows in run(self._rewrite(sql) if self._rewrite else sql, *args, **more):
                    self.sent += sum(
                        len(value) if isinstance(value, str) else 8 for row in rows for value in row
                    )
                    yield rows

            snapshot.run = counted
            yield snapshot

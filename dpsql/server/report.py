"""What is told: a client of an error, in texts of ours; the owner of everything else, in a log and in counts.

What the owner is told: a log, one JSON object a line on standard error; and counts since the server began.

House rules:

1. The names of events are stable, and all in `EVENTS`.
2. No value of the data, no text of a statement, no password and no verifier. A name that a client gives is written
   where it is an analyst's own; any other may be a password typed in the wrong place. Of a query of the system catalog
   that is refused, the name of the function or form is written: whoever adds a client needs to know.
3. What strangers can cause without end is written by `Seldom`.
4. Who does not read the log does not hold up the server: lines wait, and at last are lost and counted.
5. What is counted beside it (`Tally`) are kinds, codes and seconds. No text of an analyst, no value, no name.
"""

from __future__ import annotations

import asyncio
import json
import select
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Literal

from ..errors import CODES, ON_THE_WIRE, DpsqlError, EngineFailure, LedgerError, PolicyError
from ..pgwire import ErrorResponse, ParameterError

# --- what the owner is told ---------------------------------------------------------------------------------


EVENTS = MappingProxyType(
    {
        "listening": "the server is up: `host`, `port`, `encrypted`, the `databases`, the port of `metrics` where "
        "there is one, and which `worker` it is of several",
        "worker ended": "one of several processes has ended with `code`, and another takes its place: its connections "
        "are gone, and what it had charged stays charged",
        "connected": "`analyst` has logged in to `database` from `peer`; `process` names the connection from here on",
        "disconnected": "the connection has ended",
        "studio": "the studio is served, too: `host`, `port`, `encrypted`",
        "studio login": "`analyst` has logged in to the studio of `database` from `peer`",
        "answered": "a statement that charged, or was answered from the store: what it cost, and in how many "
        "milliseconds, `ms`",
        "answered away": "the ledger is back: while it was away `analyst` was `given` a stored answer of `database`, "
        "at that time; one line for each",
        "refused": "a statement ended in an error: `sqlstate`; of each analyst and code one line in ten seconds",
        "budget low": "80, or 95, per cent of a cap are spent, now `percent`: of an analyst's, or everybody's (`of`), "
        "in `what`, of `database`",
        "clock not taken": "the clock went back, or is more than a day beyond the last record of the ledger of "
        "`database`: periods go by the ledger's moment, `reason`, until `dpsql budget clock`",
        "cancelled": "a client asked to stop the statement of the connection `process`",
        "login refused": "`reason`: the password or the user, the token, nobody's `identity` here, or the `directory` "
        "or `issuer` that could not be asked, the client is not told which; or, of who has proved a password, the "
        "database. `delay`: seconds until it is told",
        "full": "a login was refused: `limit` says whether all analysts, or this one, have too many connections",
        "strangers full": "connections without a login were dropped: too many of all, or of one address",
        "no proxy header": "a trusted proxy does not say whom it speaks for: has it the PROXY protocol, version 2, on?",
        "login timed out": "no login came within ten seconds",
        "idle": "a connection said nothing for too long, and was closed",
        "not reading": "a client did not read what it was sent for two minutes, and was dropped",
        "out of descriptors": "the system lets this process open no more connections for now",
        "ledger not tidied": "what was committed beside the ledger's file could not be moved into it, `reason`; "
        "nothing is lost, and it is tried again",
        "answers lost": "the ledger's file of `database` had lost what its log has, `reason`: its `-wal` was damaged, "
        "or left behind",
        "witness failed": "the witness could not be told what the ledger of `database` has come to, `reason`; nobody "
        "waits for it, and it is told again",
        "reloaded": "SIGHUP: the `certificate`, or the `policy` of a `database`, was read anew",
        "left out": "the view `table` of the policy of `database` is wrong, `reason`: it does not exist until it is "
        "mended and the policy read anew; all other tables do",
        "answers retired": "by an edit of the policy of `database`: how many stored answers (`number`) are found no "
        "more, what they `cost`, and what they rest on that is said otherwise (`by`)",
        "reload refused": "it could not be; what was read before stays in force",
        "policy readable": "others on this machine can read the policy of `database`, and the verifiers of "
        "passwords in it",
        "unhealthy": "the ledger of `database` cannot be used, and `reason` says why: new connections are refused",
        "healthy": "it can be used again",
        "catalog query refused": "a client's query of the system catalog is of a kind that is not answered: `reason`",
        "engine failed": "the database could not answer, or no file for an answer could be written",
        "not verified": "a plan is not verified, and is refused where the policy does not say otherwise: `reason` says "
        "which premise does not hold, or which rule is missing; or a certificate could not be stored",
        "owner has to act": "policy or ledger of `database` could not be used for a statement or a login",
        "bug": "dpsql met a bug: its kind and its place",
        "unsaid": "an error that its client could not be told any more",
        "lines lost": "nobody has read the log for a while: `times` lines are missing here",
        "stopping": "no statement is begun any more, running ones may finish",
        "stopped": "the server has ended",
    }
)
"""The name of each event, and what it says."""

_MAX_TEXT = 200
"""Characters of a field, so that a line fits what a pipe takes at once."""
_SELDOM = 10.0
_MOST_WAITING = 10_000
_TOGETHER_SECONDS = 0.02
_lock = threading.Lock()
_is_due = False
_waiting: deque[str] = deque()
_lost = 0


def log(event: str, **fields: str | int | float | bool | None) -> None:
    """Write a line, or have it wait until somebody reads. A log that cannot be written is no reason to stop."""
    line = _line(event, fields)
    with _lock:
        _keep(line)
        _write()


def log_together(event: str, **fields: str | int | float | bool | None) -> None:
    """Write a line a moment later, with those that came meanwhile: of what comes thousands of times a second.

    Requires: an event loop runs. It stands before every line that comes after it.
    """
    global _is_due
    line = _line(event, fields)
    with _lock:
        _keep(line)
        if _is_due:
            return
        _is_due = True
    asyncio.get_running_loop().call_later(_TOGETHER_SECONDS, _write_due)


def _write_due() -> None:
    global _is_due
    with _lock:
        _is_due = False
        _write()


def _keep(line: str) -> None:
    global _lost
    if len(_waiting) < _MOST_WAITING:
        _waiting.append(line)
    else:
        _lost += 1


def write_out(seconds: float) -> None:
    """Wait until the lines that wait are written, at most so long."""
    global _is_due
    end = time.monotonic() + seconds
    with _lock:
        _is_due = False  # the loop that would have written them has ended
        _write()
        while (_waiting or _lost) and time.monotonic() < end:
            time.sleep(0.01)
            _write()


def _write() -> None:
    """Write the lines that wait, as many as somebody reads."""
    global _lost
    try:
        while _waiting and _is_read():
            lines, size = [_waiting.popleft()], 0
            while _waiting and (size := size + len(lines[-1])) + len(_waiting[0]) <= select.PIPE_BUF:
                lines.append(_waiting.popleft())
            sys.stderr.write("".join(lines))
            sys.stderr.flush()
        if _lost and _is_read():
            sys.stderr.write(_line("lines lost", {"times": _lost}))
            sys.stderr.flush()
            _lost = 0
    except (OSError, ValueError):
        return


def _line(event: str, fields: Mapping[str, object]) -> str:
    assert event in EVENTS, event
    cut = {name: value[:_MAX_TEXT] if isinstance(value, str) else value for name, value in fields.items()}
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"at": at, "event": event, **cut}) + "\n"


def _is_read() -> bool:
    """Return whether a line can be written without a wait: a pipe has room, a terminal is not stopped."""
    try:
        poll = select.poll()
        poll.register(sys.stderr.fileno(), select.POLLOUT)
        return bool(poll.poll(0))
    except (OSError, ValueError):  # no file
        return True


class Seldom:
    """An event that is written at most every ten seconds; `times`: how often it came since the last line."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._times = 0
        self._next = 0.0

    def log(self, **fields: str | int | float | bool | None) -> None:
        """Write a line, or count. The fields are those of the last time."""
        self._times += 1
        now = time.monotonic()
        if now >= self._next:
            log(self._event, times=self._times, **fields)
            self._times, self._next = 0, now + _SELDOM


def place_of(error: BaseException) -> str:
    """Return the kind of an unexpected error and its place in dpsql, nothing of its text: that may hold a value."""
    place = "an unknown place"
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.split(".")[0] == "dpsql":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"


# --- counts -------------------------------------------------------------------------------------------

Outcome = Literal["charged", "stored", "public", "catalog"]
"""How a query was answered: with new noise, from the store, without people's rows, from the system catalog."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper ends of the classes in which durations are counted; what took longer is in one more."""


class Tally:
    """Counts of one database. Written by the event loop alone."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.answered: Counter[Outcome] = Counter()
        self.refused: Counter[str] = Counter()
        """By SQLSTATE."""
        self.durations = [0] * (len(SECONDS) + 1)
        """Answered queries by the classes of `SECONDS`, from the client's message to the reply."""
        self.seconds = 0.0
        self._told: dict[tuple[str, str], Seldom] = {}

    def answer(self, outcome: Outcome, seconds: float) -> None:
        """Count a query that was answered."""
        self.answered[outcome] += 1
        self.durations[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

    def refuse(self, sqlstate: str, analyst: str, process_id: int) -> None:
        """Count a statement that was not, and have the owner told: of each analyst and code once in ten seconds."""
        self.refused[sqlstate] += 1
        told = self._told.setdefault((analyst, sqlstate), Seldom("refused"))
        told.log(analyst=analyst, sqlstate=sqlstate, process=process_id, database=self.database)


# --- what a client is told of an error: texts of ours, and where in the statement ---------------------------


class ClientGone(Exception):
    """The client has left: there is nobody to tell anything."""


class Fault(Exception):
    """A statement, or the connection, is at fault; `position` counts characters of the statement from 0."""

    def __init__(
        self, sqlstate: str, message: str, *, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.sqlstate, self.message, self.hint, self.position = sqlstate, message, hint, position


def unsupported(what: str, hint: str) -> Fault:
    """Return the refusal of what the server does not do."""
    return Fault("0A000", f"{what} is not supported", hint=hint)


def stopping() -> Fault:
    """Return why a connection ends when the server does."""
    return Fault("57P01", "the server is shutting down", hint="connect again later")


def removed() -> Fault:
    """Return why the connection of an analyst ends who is no longer in the policy."""
    return Fault("57P01", "you may no longer connect to this server", hint="ask the owner")


def changed() -> Fault:
    """Return why a connection ends whose session was opened on another policy, or other tables."""
    return Fault("57P01", "the policy or the tables have changed", hint="connect again")


def report(
    error: Exception, start: int = 0, *, database: str | None = None, fatal: bool = False
) -> ErrorResponse:
    """Return what to send; `start`: where the statement begins in the text that the client sent.

    What the owner has to mend goes to the log, and so does a bug.
    """
    if isinstance(error, Fault):
        position = None if error.position is None else start + error.position + 1
        return ErrorResponse(error.sqlstate, error.message, hint=error.hint, position=position, fatal=fatal)
    if isinstance(error, ParameterError):
        return ErrorResponse(error.sqlstate, error.message, hint=error.hint, fatal=fatal)
    if isinstance(error, EngineFailure):
        is_full = error.sqlstate == "53200" and error.limit is not None
        if error.sqlstate not in ("57014", "57V01") and not is_full:  # no fault of the database's
            log("engine failed", detail=error.detail, database=database)
        return _refused(error, None, fatal=fatal)
    if isinstance(error, (LedgerError, PolicyError)):
        log("owner has to act", sqlstate=error.sqlstate, message=error.message, database=database)
        what = "ledger" if isinstance(error, LedgerError) else "policy"
        hint = "the owner's log says why"
        told = DpsqlError(f"the {what} cannot be used", sqlstate=error.sqlstate, hint=hint)
        told.cost = error.cost
        return _refused(told, None, fatal=fatal)
    if isinstance(error, DpsqlError):
        place = None if error.position is None else start + error.position.offset + 1
        return _refused(error, place, fatal=fatal)
    log("bug", place=place_of(error))
    hint = "what was charged stays charged; tell the owner, whose log has the place"
    return ErrorResponse("XX000", "dpsql met a bug", hint=hint, fatal=fatal)


def _refused(error: DpsqlError, place: int | None, *, fatal: bool) -> ErrorResponse:
    """Return an error; a code of dpsql's own is its constraint and in its detail, under a code that drivers know."""
    sqlstate, code, detail = ON_THE_WIRE.get(error.sqlstate), error.sqlstate, error.cost
    if sqlstate is None:
        return ErrorResponse(code, error.message, detail, error.hint, place, fatal=fatal)
    detail = "; ".join(part for part in (f"{code}: {CODES[code]}", detail) if part)
    return ErrorResponse(sqlstate, error.message, detail, error.hint, place, fatal=fatal, constraint=code)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Take the position off an error: it points into a text that is not the client's."""
    try:
        yield
    except (DpsqlError, Fault) as error:
        error.position = None
        raise

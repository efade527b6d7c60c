"""The owner's log: one JSON object a line on standard error.

House rules:

1. The names of events are stable, and all in `EVENTS`.
2. No value of the data, no text of a statement, no password and no verifier. A name that a client gives is written
   where it is an analyst's own; any other may be a password typed in the wrong place. Of a query of the system catalog
   that is refused, the name of the function or form is written: whoever adds a client needs to know.
3. What strangers can cause without end is written by `Seldom`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType

__all__ = ["EVENTS", "Seldom", "log", "place_of"]

EVENTS = MappingProxyType(
    {
        "listening": "the server is up: `host`, `port`, `encrypted`",
        "connected": "`analyst` has logged in from `peer`; `process` names the connection from here on",
        "disconnected": "the connection has ended",
        "answered": "a statement that charged, or was answered from the store: what it cost",
        "cancelled": "a client asked to stop the statement of the connection `process`",
        "login refused": "`reason`: the password, the user or the database; the client is not told which. "
        "`delay`: seconds until it is told",
        "full": "a login was refused: `limit` says whether all analysts, or this one, have too many connections",
        "strangers full": "connections without a login were dropped: too many of all, or of one address",
        "login timed out": "no login came within ten seconds",
        "idle": "a connection said nothing for too long, and was closed",
        "not reading": "a client did not read what it was sent for two minutes, and was dropped",
        "out of descriptors": "the system lets this process open no more connections for now",
        "reloaded": "SIGHUP: the `certificate` or the `policy` was read anew",
        "reload refused": "it could not be; what was read before stays in force",
        "unhealthy": "the ledger cannot be used, and `reason` says why: new connections are refused",
        "healthy": "it can be used again",
        "catalog query refused": "a client's query of the system catalog is of a kind that is not answered: `reason`",
        "engine failed": "the database could not answer",
        "owner has to act": "policy or ledger could not be used for a statement or a login",
        "bug": "dpsql met a bug: its kind and its place",
        "unsaid": "an error that its client could not be told any more",
        "stopping": "no statement is begun any more, running ones may finish",
        "stopped": "the server has ended",
    }
)
"""The name of each event, and what it says."""

_MAX_TEXT = 500
_SELDOM = 10.0
_lock = threading.Lock()


def log(event: str, **fields: str | int | float | bool | None) -> None:
    """Write a line. A log that cannot be written is no reason to stop."""
    assert event in EVENTS, event
    cut = {name: value[:_MAX_TEXT] if isinstance(value, str) else value for name, value in fields.items()}
    line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **cut})
    try:
        with _lock:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        return


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

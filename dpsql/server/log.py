"""The owner's log: one JSON object a line on standard error."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType

__all__ = ["log", "place_of"]

_lock = threading.Lock()


def log(event: str, **fields: str | int | float | bool | None) -> None:
    """Write a line. A log that cannot be written is no reason to stop."""
    line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **fields})
    try:
        with _lock:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        return


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

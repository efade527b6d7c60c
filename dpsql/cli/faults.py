"""How an error leaves the program: its exit code, and its text for people or for programs.

House rules:

1. A user never sees a traceback: a frame or an exception's own text may hold an exact value (law L8).
   An error that is not a `DpsqlError` is a bug, and is told as its kind and its place in our source.
2. The text comes from `DpsqlError` alone, never from a cause or a context behind it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

import click

from ..errors import (
    BudgetExhausted,
    DpsqlError,
    EngineFailure,
    FilesChanged,
    LedgerError,
    NothingShown,
    PolicyError,
    Position,
    Refusal,
)
from ..words import meant, terminal_text
from .interrupts import INTERRUPTED, has_come
from .terminal import display_width, wants_json

# --- how an error leaves the program: its exit code, and its text for people or for programs ----------------


EXIT_CODES: tuple[tuple[type[DpsqlError], int], ...] = (
    (Refusal, 3),
    (BudgetExhausted, 4),
    (PolicyError, 5),
    (EngineFailure, 6),
    (LedgerError, 7),
    (NothingShown, 8),
)
"""The exit code of each kind of error; 0 is success, 1 a bug in dpsql, 2 wrong usage (click), 130 Ctrl-C."""


def exit_code(error: DpsqlError) -> int:
    """Return the process exit code for `error` (1 for a kind that nobody listed: a bug)."""
    if error.sqlstate == "57014" and has_come():
        return INTERRUPTED
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def error_text(error: DpsqlError, source: str = "", start: int = 0) -> str:
    """Return the error for people: code, place, message, the line with a caret, what was spent, the hint.

    Args:
        source: the whole text the user gave (perhaps several statements); "" when there is none.
        start: where in `source` the refused statement begins, in characters.
    """
    place = _in_source(error.position, source, start)
    where = f" at {place}" if place else ""
    lines = [f"ERROR {error.sqlstate}{where}: {terminal_text(error.message)}"]
    if place and source:
        line = source.split("\n")[place.line - 1].rstrip("\r")
        before = terminal_text(line[: place.column - 1].replace("\t", " "))
        after = terminal_text(line[place.column - 1 :].replace("\t", " "))
        lines += [f"  {before}{after}", f"  {' ' * display_width(before)}^"]
    if error.cost:
        lines.append(f"DETAIL: {terminal_text(error.cost)}")
    hint = _hint(error)
    if (close := meant(error, source)) is not None:
        hint = f"did you mean {close}?" + (f" {hint}" if hint else "")
    if hint:
        lines.append(f"HINT: {terminal_text(hint)}")
    return "\n".join(lines)


def error_json(error: DpsqlError, source: str = "", start: int = 0) -> str:
    """Return the error for programs: one JSON object on one line."""
    place = _in_source(error.position, source, start)
    body = {
        "code": error.sqlstate,
        "message": error.message,
        "cost": error.cost,
        "hint": _hint(error),
        "line": place.line if place else None,
        "column": place.column if place else None,
        "exit": exit_code(error),
    }
    return json.dumps({"error": body})


def bug_line(kind: type[BaseException], trace: TracebackType | None) -> str:
    """Return one line about an unexpected error: its kind and its place in dpsql, nothing of its text."""
    place = "an unknown place"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if isinstance(module, str) and module.split(".")[0] == "dpsql":
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"ERROR: dpsql met a bug ({kind.__name__} at {place}). What was charged stays charged. "
        "Please report this line with the statement and the version, without any data."
    )


def install_bug_hook() -> None:
    """Make every uncaught exception of this process, on any thread, end as `bug_line` (exit code 1)."""

    def tell(kind: type[BaseException], trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            with suppress(OSError):
                click.echo(bug_line(kind, trace), err=True)

    sys.excepthook = lambda kind, _, trace: tell(kind, trace)
    sys.unraisablehook = lambda fault: tell(fault.exc_type, fault.exc_traceback)
    threading.excepthook = lambda fault: tell(fault.exc_type, fault.exc_traceback)


def _in_source(position: Position | None, source: str, start: int) -> Position | None:
    """Return a statement's position as a position in the whole source, or None when there is none.

    A position that lies outside the text (an error about a statement nobody typed) is dropped.
    """
    if position is None or not source:
        return position
    ahead = source[:start]
    line = position.line + ahead.count("\n")
    column = position.column
    if position.line == 1:
        column += start - (ahead.rfind("\n") + 1)
    if line > source.count("\n") + 1:
        return None
    return Position(line, column, start + position.offset)


def _hint(error: DpsqlError) -> str | None:
    """Return the error's hint, in words for who has the policy file in hand, as whoever runs this program has.

    For an engine's failure it is that of this program, which keeps no log.
    """
    if not isinstance(error, EngineFailure) or isinstance(error, FilesChanged):
        return error.owner_hint or error.hint
    if error.sqlstate in ("55006", "57V01"):
        return error.hint
    if error.sqlstate == "57014":
        return None
    return "run dpsql check: it says whether the database can be opened and read"


# --- A `DpsqlError` on its way out of the program -----------------------------------------------------------


class Failure(click.ClickException):
    """Ends the program with the error's text on standard error and its exit code.

    `source` is the text that the user gave, `start` where the failed statement begins in it. `sqlstate`: the error's.
    """

    def __init__(self, error: DpsqlError, source: str = "", start: int = 0) -> None:
        super().__init__(error.message)
        self.exit_code = exit_code(error)  # type: ignore[misc]  # click itself assigns it on instances
        self.sqlstate = error.sqlstate
        self._text = (error_json if wants_json() else error_text)(error, source, start)

    def show(self, file: IO[Any] | None = None) -> None:
        try:
            click.echo(self._text, file=file, err=file is None)
        except OSError:
            leave_streams()  # where nobody can be told, the exit code still says it


def tell(text: str) -> None:
    """Write a line for people to standard error, so that standard output holds answers alone.

    Where it takes nothing the line is lost: what was asked is not undone by it.
    """
    try:
        click.echo(text, err=True)
    except OSError:
        leave_streams()


def leave_streams() -> None:
    """Send what is still to be flushed nowhere, on each stream that takes nothing any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())

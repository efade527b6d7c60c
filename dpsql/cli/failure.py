"""A `DpsqlError` on its way out of the program."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import click

from ..errors import DpsqlError
from .faults import error_json, error_text, exit_code
from .settings import wants_json

__all__ = ["Failure", "leave_streams", "tell"]


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

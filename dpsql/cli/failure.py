"""A `DpsqlError` on its way out of the program."""

from __future__ import annotations

from typing import IO, Any

import click

from ..errors import DpsqlError
from .faults import error_json, error_text, exit_code
from .settings import wants_json

__all__ = ["Failure", "tell"]


class Failure(click.ClickException):
    """Ends the program with the error's text on standard error and its exit code.

    `source` is the text that the user gave, `start` where the failed statement begins in it.
    """

    def __init__(self, error: DpsqlError, source: str = "", start: int = 0) -> None:
        super().__init__(error.message)
        self.exit_code = exit_code(error)  # type: ignore[misc]  # click itself assigns it on instances
        self._text = (error_json if wants_json() else error_text)(error, source, start)

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self._text, file=file, err=file is None)


def tell(text: str) -> None:
    """Write a line for people to standard error, so that standard output holds answers alone."""
    click.echo(text, err=True)

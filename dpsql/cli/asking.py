"""What `query` and `explain` share: their options, and where the statement comes from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import IO, Any, TypeVar

import click

from ..errors import DpsqlError
from ..sql.text import ScriptStatement, split_statements
from .failure import Failure
from .worker import RunningSession

__all__ = ["apply_settings", "one_of", "parameter_value", "parameter_values", "script_text", "source_options"]


# --- the values of $1, $2, … as the command line spells them ------------------------------------------------


_ParameterValue = int | Decimal | str | bool | None

_INTEGER = re.compile(r"[+-]?[0-9]{1,38}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,38}\.[0-9]{0,38}|\.[0-9]{1,38})")
_QUOTED = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
_WORDS = {"null": None, "true": True, "false": False}


def parameter_value(text: str) -> _ParameterValue:
    """Return the value that `-p text` stands for: as an SQL literal where it is one, else as text.

    >>> [parameter_value(t) for t in ("3", "2.50", "CS", "NULL", "true", "'42'", "2025-01-31")]
    [3, Decimal('2.50'), 'CS', None, True, '42', '2025-01-31']
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    if _QUOTED.fullmatch(text):
        return text[1:-1].replace("''", "'")
    return _WORDS.get(text.lower(), text)


# --- what `query` and `explain` share: their options, and where the statement comes from --------------------


_Command = TypeVar("_Command", bound=Callable[..., Any])


def source_options(command: _Command) -> _Command:
    """Add the statement argument, `-f`, `-p`, `--epsilon` and `--accuracy`."""
    command = click.option(
        "--accuracy",
        metavar="NUMBER",
        help="By how much each number may be off: the least epsilon for it is spent. Or '2 %' of a stored count.",
    )(command)
    command = click.option(
        "--epsilon",
        metavar="NUMBER",
        help="What each statement may spend; without it, the policy's default.",
    )(command)
    command = click.option(
        "-p",
        "--parameter",
        "parameters",
        multiple=True,
        metavar="VALUE",
        help="The value of $1, then $2, …: a number, NULL, TRUE or FALSE as such; 'quoted' or anything else "
        "as text.",
    )(command)
    command = click.option(
        "-f",
        "--file",
        "source_file",
        type=click.File("r", encoding="utf-8-sig"),
        help="Read the statements from this file (- is standard input).",
    )(command)
    return click.argument("statement", required=False)(command)


def script_text(statement: str | None, source_file: IO[str] | None) -> str | None:
    """Return the text to run, or None when a person sits at a terminal and gave none.

    Raises click.UsageError for two sources at once, an empty text, or one that is not UTF-8.
    """
    if statement is not None and source_file is not None:
        raise click.UsageError("Give the statement or --file, not both.")
    if statement is None and source_file is None and sys.stdin.isatty():
        return None
    text = (
        statement
        if statement is not None
        else _read(source_file or click.open_file("-", encoding="utf-8-sig"))
    )
    _require_unicode(text, "The statements are")
    if not split_statements(text):
        raise click.UsageError("There is no statement to run.")
    return text


def parameter_values(texts: Sequence[str]) -> list[_ParameterValue]:
    """Return the values of `-p`. Raises click.UsageError for one that is not UTF-8."""
    for text in texts:
        _require_unicode(text, "A parameter is")
    return [parameter_value(text) for text in texts]


def _require_unicode(text: str, subject: str) -> None:
    """Raise click.UsageError for bytes of the command line that are no UTF-8 (Python reads them as surrogates)."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise click.UsageError(f"{subject} not UTF-8 text.")


def _read(source: IO[str]) -> str:
    try:
        return source.read()
    except UnicodeDecodeError:
        raise click.UsageError("The statements are not UTF-8 text.") from None


def one_of(statements: list[ScriptStatement], reason: str) -> ScriptStatement:
    """Return the only statement, or raise click.UsageError with the reason why there may be one alone."""
    if len(statements) != 1:
        raise click.UsageError(f"There are {len(statements)} statements: {reason}")
    return statements[0]


def apply_settings(running: RunningSession, **settings: str | None) -> None:
    """SET the given dpsql.* settings for this session; the engine judges the values (code 22023, PV301)."""
    for name, value in settings.items():
        if value is None:
            continue
        quoted = value.replace("'", "''")
        try:
            running.run(running.session.execute, f"SET dpsql.{name} = '{quoted}'")
        except DpsqlError as error:
            error.position = None
            raise Failure(error) from None

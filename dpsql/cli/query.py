"""`dpsql query` and `dpsql explain`: statements run, or shown, and what both take from the command line."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from ..errors import UNLISTED, DpsqlError, EngineFailure, LedgerMissing
from ..regex import regex
from . import interrupts
from .faults import Failure, tell
from .owner import open_ledger
from .render import View, format_option, receipt_line, render, show
from .terminal import (
    CommandSettings,
    is_read_by_people,
    json_option,
    pass_settings,
    require_output,
    say,
    wants_json,
)
from .worker import RunningSession, open_session

if TYPE_CHECKING:
    from ..engine import Answer, Receipt
    from ..sql.text import ScriptStatement

# --- the values of $1, $2, … as the command line spells them ------------------------------------------------


_ParameterValue = int | Decimal | str | bool | None

_INTEGER = regex(r"[+-]?[0-9]{1,38}")
_DECIMAL = regex(r"[+-]?(?:[0-9]{1,38}\.[0-9]{0,38}|\.[0-9]{1,38})")
_QUOTED = regex(r"'(?:[^']|'')*'", re.DOTALL)
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
    from ..sql.text import split_statements

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


# --- `dpsql query`: run statements and print their answers --------------------------------------------------


_USUAL_LEVEL = Fraction(95, 100)


@click.command()
@source_options
@click.option(
    "--intervals",
    metavar="LEVEL",
    help="Error bars at this level, such as 0.95: beside each number at a terminal (there 0.95 is usual), in two more "
    "columns elsewhere; off takes them away.",
)
@format_option
@json_option
@pass_settings
def query(
    settings: CommandSettings,
    statement: str | None,
    source_file: IO[str] | None,
    parameters: tuple[str, ...],
    epsilon: str | None,
    accuracy: str | None,
    intervals: str | None,
    format_name: str,
) -> None:
    """Run SQL statements and print their differentially private answers.

    STATEMENT may hold several statements separated by semicolons; they are run one by one, and the
    first that fails ends the run. Without STATEMENT and --file, statements are read from standard
    input; on a terminal that is a prompt: \\? lists its commands. Answers go to standard output; what they
    cost and what is left go to standard error. Ctrl-C cancels the running statement.

    \b
      dpsql query "SELECT major, COUNT(*) AS n FROM student GROUP BY major"
      dpsql query --intervals 0.95 "SELECT AVG(gpa) FROM student WHERE major = $1" -p CS
      dpsql query -f report.sql --format csv > report.csv
    """
    from ..sql.text import split_statements

    require_output()
    chosen = "json" if wants_json() else format_name
    view = View(chosen)
    script = script_text(statement, source_file)
    values = parameter_values(parameters)
    statements = split_statements(script or "")
    if values and script is not None:
        one_of(statements, "--parameter goes with one.")
    with open_session(settings.policy_path, settings.analyst) as running:
        apply_settings(running, epsilon=epsilon, accuracy=accuracy, intervals=intervals)
        if intervals is None and _are_bars_usual(chosen):
            running.session.settings = running.session.settings.with_usual_bars(_USUAL_LEVEL)
        if script is None:
            from .prompt import prompt_loop

            view.is_paged = True

            def ask_anew(text: str, piece: ScriptStatement) -> Answer:
                interrupts.forget()
                try:
                    return ask(running, text, piece, view, values)
                except Failure as failure:
                    if failure.sqlstate != UNLISTED or not _is_meant(failure):
                        raise
                with running.unlisted():
                    return ask(running, text, piece, view, values)

            prompt_loop(running, view, ask_anew)
            interrupts.forget()
            return
        for piece in statements:
            ask(running, script, piece, view, values)


def ask(
    running: RunningSession,
    script: str,
    piece: ScriptStatement,
    view: View,
    parameters: Sequence[object],
) -> Answer:
    """Run one statement of `script`, print its answer, tell its cost, and return it. Raises Failure."""
    try:
        answer = running.run(running.execute, piece.text, parameters)
    except DpsqlError as error:
        raise Failure(error, script, piece.start) from None
    try:
        with interrupts.unwinding():
            for_people = is_read_by_people()
            text = render(answer, view.format_name, for_people=for_people, is_expanded=view.is_expanded)
            if text:
                show(text, view)
    except KeyboardInterrupt:
        stopped = EngineFailure(sqlstate="57014")
        stopped.cost = _what_is_stored(running, answer.receipt) or "nothing was charged"
        raise Failure(stopped) from None
    except OSError:
        stored = _what_is_stored(running, answer.receipt)
        if stored is not None:
            tell(stored)
        raise
    if answer.receipt is not None and view.format_name != "json":
        usual = running.session.settings.epsilon if is_read_by_people() else None
        tell(receipt_line(answer.receipt, usual))
    return answer


def _is_meant(failure: Failure) -> bool:
    """Ask the person at the prompt whether a comparison with a value that the policy does not list was meant."""
    failure.show()
    try:
        return click.confirm("Ask it all the same?", err=True)
    except click.Abort:
        tell("")
        return False


def _are_bars_usual(format_name: str) -> bool:
    """Say whether numbers have error bars that nobody asked for: where people read the answers."""
    return format_name == "chart" or (format_name == "table" and is_read_by_people())


def _what_is_stored(running: RunningSession, receipt: Receipt | None) -> str | None:
    """Return what became of an answer that could not be written; None where nothing private was asked."""
    if receipt is None or not (receipt.epsilon or receipt.reused):
        return None
    cost = receipt_line(replace(receipt, notes=()))
    free = (
        "asking again is free"
        if running.session.settings.reuse
        else "with dpsql.reuse on, asking again is free"
    )
    return f"{cost}. Not all of the answer was written; it is stored: {free}"


# --- `dpsql explain`: how a statement would be answered and what it would cost, for nothing -----------------


_NO_LEDGER = "The ledger does not exist yet; what follows is as with a new one: dpsql -P {path} budget create"


@click.command()
@source_options
@json_option
@pass_settings
def explain(
    settings: CommandSettings,
    statement: str | None,
    source_file: IO[str] | None,
    parameters: tuple[str, ...],
    epsilon: str | None,
    accuracy: str | None,
) -> None:
    """Show how a statement would be answered: sensitivity, noise, error, charge. Costs nothing.

    Nothing of the data is read: it is derived from the statement, the policy and the schema. It needs no ledger.

    \b
      dpsql explain "SELECT AVG(gpa) FROM student"
    """
    from ..sql.text import split_statements

    script = script_text(statement, source_file)
    if script is None:
        raise click.UsageError("Give a statement.")
    piece = one_of(split_statements(script), "explain takes one.")
    values = parameter_values(parameters)
    with _session(settings) as running:
        apply_settings(running, epsilon=epsilon, accuracy=accuracy)
        try:
            explanation = running.run(running.session.explain, piece.text, values)
        except DpsqlError as error:
            raise Failure(error, script, piece.start) from None
    say(explanation.as_dict(), explanation.text().split("\n"))


@contextmanager
def _session(settings: CommandSettings) -> Iterator[RunningSession]:
    """Open a session; where the ledger was not made yet, over an empty one that is thrown away."""
    from ..backends import open_backend
    from ..engine.ledgers import open_ledger as open_store

    try:
        with open_ledger(settings.policy_path):
            pass
    except LedgerMissing:
        policy = settings.policy()
    else:
        with open_session(settings.policy_path, settings.analyst) as running:
            yield running
        return
    tell(_NO_LEDGER.format(path=settings.policy_path))
    with tempfile.TemporaryDirectory(prefix="dpsql-") as folder:
        ledger, log = f"sqlite:{folder}/ledger.db", Path(folder, "ledger.log")
        scratch = replace(policy, ledger=ledger, ledger_log=log, is_copied=False)  # the file itself is there
        open_store(scratch, create=True).close()
        files = policy.files
        backend = None if files is None else open_backend(policy.database, files=files, is_recorded=False)
        with open_session(scratch, settings.analyst, backend) as running:
            yield running

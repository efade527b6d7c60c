"""`dpsql query`: run statements and print their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import IO, TYPE_CHECKING

import click

from ..errors import UNLISTED, DpsqlError, EngineFailure
from ..sql.text import ScriptStatement, split_statements
from . import interrupts
from .asking import apply_settings, one_of, parameter_values, script_text, source_options
from .failure import Failure, tell
from .render import FORMATS, View, receipt_line, render, show
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .streams import require_output
from .terminal import is_read_by_people
from .worker import RunningSession, open_session

if TYPE_CHECKING:
    from ..engine import Answer, Receipt

__all__ = ["ask", "query"]

_USUAL_LEVEL = Fraction(95, 100)


@click.command()
@source_options
@click.option(
    "--intervals",
    metavar="LEVEL",
    help="Error bars at this level, such as 0.95: beside each number at a terminal (there 0.95 is usual), in two more "
    "columns elsewhere; off takes them away.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How answers are printed.",
)
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

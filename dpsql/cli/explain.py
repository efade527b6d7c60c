"""`dpsql explain`: how a statement would be answered and what it would cost, for nothing."""

from __future__ import annotations

import json
from typing import IO

import click

from ..errors import DpsqlError
from ..sql.script import split_statements
from .asking import apply_settings, one_of, parameter_values, script_text, source_options
from .failure import Failure
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .text_cells import terminal_text
from .worker import open_session

__all__ = ["explain"]


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

    Nothing of the data is read: it is derived from the statement, the policy and the schema.

    \b
      dpsql explain "SELECT AVG(gpa) FROM student"
    """
    script = script_text(statement, source_file)
    if script is None:
        raise click.UsageError("Give a statement.")
    piece = one_of(split_statements(script), "explain takes one.")
    values = parameter_values(parameters)
    with open_session(settings.policy_path, settings.analyst) as running:
        apply_settings(running, epsilon=epsilon, accuracy=accuracy)
        try:
            explanation = running.run(running.session.explain, piece.text, values)
        except DpsqlError as error:
            raise Failure(error, script, piece.start) from None
    if wants_json():
        click.echo(json.dumps(explanation.as_dict()))
    else:
        click.echo("\n".join(map(terminal_text, explanation.text().split("\n"))))

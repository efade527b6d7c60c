"""`dpsql explain`: how a statement would be answered and what it would cost, for nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import click

from ..errors import DpsqlError, LedgerMissing
from ..sql.text import split_statements
from .asking import apply_settings, one_of, parameter_values, script_text, source_options
from .failure import Failure, tell
from .owner import open_ledger
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .text_cells import terminal_text
from .worker import RunningSession, open_session

__all__ = ["explain"]

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
    if wants_json():
        click.echo(json.dumps(explanation.as_dict()))
    else:
        click.echo("\n".join(map(terminal_text, explanation.text().split("\n"))))


@contextmanager
def _session(settings: CommandSettings) -> Iterator[RunningSession]:
    """Open a session; where the ledger was not made yet, over an empty one that is thrown away."""
    from ..backends import open_backend
    from ..engine.dataset import open_ledger as open_store
    from ..policy import load_policy

    try:
        with open_ledger(settings.policy_path):
            pass
    except LedgerMissing:
        policy = load_policy(settings.policy_path)
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

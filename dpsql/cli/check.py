"""`dpsql check`: the policy file and the live database, looked at together."""

from __future__ import annotations

import json

import click

from .owner import read_live_schema
from .settings import Settings, json_option, pass_settings, wants_json
from .text_cells import terminal_text

__all__ = ["check"]


@click.command()
@json_option
@pass_settings
def check(settings: Settings) -> None:
    """Check the policy file against the live database.

    Says, for each table and column, what an analyst may do with it and what is still missing. Reads
    the schema, never the data. Ends with exit code 5 when something must be mended.
    """
    from ..policy import check as check_policy
    from ..policy import load_policy

    policy = load_policy(settings.policy_path)
    report = check_policy(policy, read_live_schema(policy.database))
    if wants_json():
        click.echo(json.dumps(report.to_json()))
    else:
        click.echo("\n".join(map(terminal_text, report.to_text().rstrip().split("\n"))))
    if report.problems:
        click.get_current_context().exit(5)

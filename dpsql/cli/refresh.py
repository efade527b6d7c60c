"""`dpsql refresh`: the owner has loaded new data."""

from __future__ import annotations

import json

import click

from .owner import open_ledger, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json

__all__ = ["refresh"]


@click.command()
@json_option
@pass_settings
def refresh(settings: CommandSettings) -> None:
    """Make stored answers stop answering, after new data has been loaded.

    Questions asked before are then drawn and charged anew. The budget does not come back: somebody
    who was in the data before and after loses the sum of both. Where tables are files, all of them are read, and
    recorded as they are now, and the keys that the policy asserts are verified in them; until then nothing is answered
    from a file that has changed. Where a key does not hold, nothing is changed. Where a copy of the database file is
    asked (snapshot = "copy"), it is made anew.
    """
    verified = verified_files(settings.policy_path)
    with open_ledger(settings.policy_path) as ledger:
        epoch = ledger.advance_epoch(verified.checked)
    verified.record()
    if wants_json():
        click.echo(json.dumps({"epoch": epoch}))
    else:
        click.echo(f"The dataset is at epoch {epoch}: earlier answers are no longer given again.")

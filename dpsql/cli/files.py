"""`dpsql convert` and `dpsql refresh`: what the owner does once files or data are new."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .owner import open_ledger, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import terminal_text

__all__ = ["convert", "refresh"]


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def convert(files: tuple[Path, ...]) -> None:
    """Convert CSV files, or JSON lines, to Parquet files beside them.

    A policy's tables may be Parquet files; files of text are never parsed for an analyst, since a line that does
    not parse would be an error that tells of it. Here such a line is named, to the owner. A Parquet file of that
    name is replaced, and after that nothing is answered from it until dpsql refresh.
    """
    from ..backends.convert_files import convert as convert_file

    for file in files:
        done = convert_file(file)
        click.echo(f"{terminal_text(str(done.target))}: {done.rows} rows")
        for name, type_ in done.columns:
            click.echo(f"  {terminal_text(name)}  {terminal_text(type_.lower())}")


# --- `dpsql refresh`: the owner has loaded new data ---------------------------------------------------------


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

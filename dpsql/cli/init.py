"""`dpsql init`: a first policy file, from the schema alone."""

from __future__ import annotations

import os
from pathlib import Path

import click

from .failure import tell
from .owner import read_live_schema
from .private_file import write_private
from .settings import CommandSettings, pass_settings

__all__ = ["init"]


_NEXT = """\
Wrote {path}. Next:
  1. fill in what it asks for, from what you know of the subject and never from the data
  2. dpsql -P {path} check            says what an analyst may do, and what is missing
  3. dpsql -P {path} budget create    makes the ledger, once
  4. dpsql -P {path} query            asks"""


@click.command()
@click.argument("database_url")
@pass_settings
def init(settings: CommandSettings, database_url: str) -> None:
    """Write a first policy file for DATABASE_URL, such as duckdb:campus.duckdb.

    A relative path counts from the current folder. The file goes where --policy says, for its owner alone;
    one that exists is kept. Only the schema is read, never the data: bounds are left for the owner to fill
    in, since a bound that was read off the data tells of the data.
    """
    from ..policy import scaffold

    path = settings.policy_path
    if path.exists():
        raise click.UsageError(f"{path} exists. Name another file: dpsql -P other.toml init {database_url}")
    text = scaffold(read_live_schema(database_url), _from_folder(database_url, path.parent))
    try:
        write_private(path, text)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None
    tell(_NEXT.format(path=path))


def _from_folder(database_url: str, folder: Path) -> str:
    """Return the URL as the policy file must have it: a relative path counts from the file's own folder."""
    scheme, _, rest = database_url.partition(":")
    if scheme != "duckdb" or Path(rest).is_absolute():
        return database_url
    return f"{scheme}:{os.path.relpath(rest, folder)}"

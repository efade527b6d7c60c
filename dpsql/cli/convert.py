"""`dpsql convert`: CSV and JSON lines to Parquet, once, for the owner."""

from __future__ import annotations

from pathlib import Path

import click

from .text_cells import terminal_text

__all__ = ["convert"]


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

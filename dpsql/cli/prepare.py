"""`dpsql prepare`: the owner numbers each person's rows, so that a bound is read off the number (soundness.md 1.39)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import LedgerMissing, PolicyError
from ..policy.section import quote_key, quote_text
from ..policy.units import quoted_key, unit_line
from .owner import open_ledger, read_live_schema, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import terminal_text

if TYPE_CHECKING:
    from ..backends.prepared_rows import Numbering
    from ..policy import Policy

__all__ = ["prepare"]


@click.command()
@click.argument("table")
@click.option(
    "--into", metavar="NAME", help="What the copy is called; without it, the table's name and _prepared."
)
@click.option(
    "--column", "number", metavar="NAME", default="n", show_default=True, help="The column of numbers."
)
@click.option("--in-place", is_flag=True, help="Number the table itself, and make no copy (Postgres).")
@click.option(
    "--renumber", is_flag=True, help="Number all rows anew, by a hash, in place of the new ones alone."
)
@click.option(
    "--database",
    metavar="URL",
    help="The policy's database, under a role that may write; without it, as the policy has it.",
)
@json_option
@pass_settings
def prepare(
    settings: CommandSettings,
    table: str,
    into: str | None,
    number: str,
    in_place: bool,
    renumber: bool,
    database: str | None,
) -> None:
    """Number the rows of each person, in a copy of a table, for row_number in the policy.

    Counts and sums then read the rows up to max_rows by their number, and need no list of the people with more. The
    copy holds the person's own key in each row, and is sorted by it. Run again after new data: new rows get the next
    numbers of their person, deleted ones leave holes, one that is another person's now is put in anew. Where it was
    there before, earlier answers stop answering, as with dpsql refresh. All of it is one transaction. Of a policy
    whose tables are Parquet files the copy is one more such file, written anew each time; dpsql refresh verifies it.
    """
    from ..backends.prepared_rows import numbering_of, prepare_files
    from ..backends.prepared_rows import prepare as prepare_rows
    from ..policy import load_policy

    policy = load_policy(settings.policy_path)
    declared = policy.tables.get(table)
    if declared is None:
        raise PolicyError(
            f'{policy.source}: no table "{table}" is declared', hint="name one of the policy's tables"
        )
    if policy.privacy.time is not None:
        raise PolicyError(
            f"{policy.source}: numbered rows are not there yet with a budget by period",
            hint="take the table as it is: a person's rows of one period are bounded by max_rows",
        )
    if in_place and into is not None:
        raise click.UsageError("--into names a copy, and --in-place makes none.")
    target = None if in_place else into or f"{table}_prepared"
    where = f"{policy.source}: tables.{table}"
    live = read_live_schema(policy.database, policy.files)
    numbering = numbering_of(where, policy, declared, live, target, number)
    name, epoch = live.name_of(numbering.target), None
    if policy.files is not None:
        if database is not None:
            raise click.UsageError("--database is for a policy of a database; this one is of files.")
        file = _file_of(policy, name, where)
        done = prepare_files(policy.files, where, numbering, live, file)
    else:
        file = None
        done = prepare_rows(database or policy.database, numbering, live, anew=renumber)
        epoch = _next_epoch(settings) if done.was_there else None
    if wants_json():
        found = {"table": name, "rows": done.rows, "came": done.came, "went": done.went, "epoch": epoch}
        click.echo(json.dumps(found))
        return
    click.echo(f"{terminal_text(name)}: {done.rows} rows, {done.came} of them numbered now, {done.went} gone")
    if epoch is not None:
        click.echo(f"The dataset is at epoch {epoch}: earlier answers are no longer given again.")
    if file is not None and done.was_there:
        click.echo("It is another file than before: dpsql refresh verifies its numbers and records it.")
    if not done.was_there:
        source = "" if file is None else os.path.relpath(file, policy.path.parent)
        for line in _policy_lines(name, numbering, declared.max_rows, source):
            click.echo(terminal_text(line))


def _next_epoch(settings: CommandSettings) -> int | None:
    """Have earlier answers answer no more, as `dpsql refresh`; None where there is no ledger yet."""
    verified = verified_files(settings.policy_path)
    try:
        with open_ledger(settings.policy_path) as ledger:
            epoch = ledger.advance_epoch(verified.checked)
    except LedgerMissing:
        epoch = None
    verified.record()
    return epoch


def _file_of(policy: Policy, name: str, where: str) -> Path:
    """Return the file that a copy of files is: as the policy says, where it has that table. Raises PolicyError."""
    declared = policy.tables.get(name)
    if declared is None:
        return Path(os.path.abspath(policy.path.parent / f"{name}.parquet"))
    if len(declared.source) > 1 or any(char in declared.source[0] for char in "*?["):
        raise PolicyError(
            f'{where}: "{name}" is of several files, and a copy is one', hint="name one file as its source"
        )
    return Path(os.path.abspath(policy.path.parent / declared.source[0]))


def _policy_lines(name: str, numbering: Numbering, max_rows: int | None, source: str) -> Iterator[str]:
    """Yield what the policy says of the table now; `source`: the file that it is, "" for a table of a database."""
    unit = numbering.unit
    line = (
        f"unit = {quoted_key(unit)}"
        if numbering.references is None
        else unit_line(unit, numbering.references)
    )
    yield "In the policy:"
    yield f"  [tables.{quote_key(name)}]"
    if source:
        yield f"  source = {quote_text(source)}"
    yield f"  {line}"
    if source:
        yield f"  key = [{', '.join(map(quote_text, (*unit, numbering.number)))}]"
    yield f"  row_number = {quote_text(numbering.number)}"
    yield f"  max_rows = {max_rows or '<rows of one person>'}"
    yield "and its columns as before, without that one."
    if source:
        yield "dpsql budget create, or dpsql refresh, looks at all rows and records that the key holds."
    if numbering.dialect == "postgres":
        yield "Let the policy's role read it: GRANT SELECT."

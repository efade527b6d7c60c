"""`dpsql prepare`: the owner numbers each person's rows, so that a bound is read off the number (soundness.md 1.39)."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
    there before, earlier answers stop answering, as with dpsql refresh. All of it is one transaction.
    """
    from ..backends.prepared_rows import numbering_of
    from ..backends.prepared_rows import prepare as prepare_rows
    from ..policy import load_policy

    policy = load_policy(settings.policy_path)
    declared = policy.tables.get(table)
    if declared is None:
        raise PolicyError(
            f'{policy.source}: no table "{table}" is declared', hint="name one of the policy's tables"
        )
    if in_place and into is not None:
        raise click.UsageError("--into names a copy, and --in-place makes none.")
    target = None if in_place else into or f"{table}_prepared"
    where = f"{policy.source}: tables.{table}"
    live = read_live_schema(policy.database, policy.files)
    numbering = numbering_of(where, policy, declared, live, target, number)
    done = prepare_rows(database or policy.database, numbering, live, anew=renumber)
    epoch = _next_epoch(settings) if done.was_there else None
    name = live.name_of(numbering.target)
    if wants_json():
        found = {"table": name, "rows": done.rows, "came": done.came, "went": done.went, "epoch": epoch}
        click.echo(json.dumps(found))
        return
    click.echo(f"{terminal_text(name)}: {done.rows} rows, {done.came} of them numbered now, {done.went} gone")
    if epoch is not None:
        click.echo(f"The dataset is at epoch {epoch}: earlier answers are no longer given again.")
    if not done.was_there:
        for line in _policy_lines(name, numbering, declared.max_rows):
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


def _policy_lines(name: str, numbering: Numbering, max_rows: int | None) -> Iterator[str]:
    """Yield what the policy says of the table now."""
    unit = numbering.unit
    line = (
        f"unit = {quoted_key(unit)}"
        if numbering.references is None
        else unit_line(unit, numbering.references)
    )
    yield "In the policy:"
    yield f"  [tables.{quote_key(name)}]"
    yield f"  {line}"
    yield f"  row_number = {quote_text(numbering.number)}"
    yield f"  max_rows = {max_rows or '<rows of one person>'}"
    yield "and its columns as before, without that one."
    if numbering.dialect == "postgres":
        yield "Let the policy's role read it: GRANT SELECT."

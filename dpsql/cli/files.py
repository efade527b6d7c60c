"""`dpsql convert` and `dpsql refresh`: what the owner does once files or data are new."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .owner import open_ledger, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import terminal_text

if TYPE_CHECKING:
    from ..budget import LedgerStore
    from ..policy import Slices

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
@click.option(
    "--from",
    "first",
    metavar="PERIOD",
    help="Under a budget by periods: answers of this period (2026-03) and of all later ones.",
)
@click.option("--to", "last", metavar="PERIOD", help="With --from: of the periods up to this one alone.")
@click.option(
    "--all", "is_all", is_flag=True, help="Under a budget by periods: all answers, of closed ones too."
)
@json_option
@pass_settings
def refresh(settings: CommandSettings, first: str | None, last: str | None, is_all: bool) -> None:
    """Make stored answers stop answering, after new data has been loaded.

    Questions asked before are then drawn and charged anew. The budget does not come back: somebody
    who was in the data before and after loses the sum of both. Where tables are files, all of them are read, and
    recorded as they are now, and the keys that the policy asserts are verified in them; until then nothing is answered
    from a file that has changed. Where a key does not hold, nothing is changed. Where a copy of the database file is
    asked (snapshot = "copy"), it is made anew.

    Under a budget by periods ([privacy.time]) it is answers of undated rows, and of periods that are not over, that are
    asked anew; closed periods keep theirs. Where rows of a closed one came late or were corrected, --from names it:
    what is asked again of it is charged to it again, and to no other.
    """
    verified = verified_files(settings.policy_path)
    with open_ledger(settings.policy_path) as ledger:
        retired = _retired(settings.policy_path, ledger, first, last, is_all=is_all)
        epoch = ledger.advance_epoch(verified.checked, retired)
        period, since = ledger.promise.period, ledger.promise.since
    verified.record()
    of = "" if retired is None or period is None else retired.text(period, since)
    if wants_json():
        click.echo(json.dumps({"epoch": epoch} | ({"retired": of} if of else {})))
    elif not of or period is None:
        click.echo(f"The dataset is at epoch {epoch}: earlier answers are no longer given again.")
    else:
        click.echo(f"The dataset is at epoch {epoch}: earlier answers of {of} are no longer given again.")
        if first is None:
            click.echo(
                f"Closed {period.value}s keep theirs; of one in which rows came late: dpsql refresh --from it."
            )


def _retired(
    path: Path, ledger: LedgerStore, first: str | None, last: str | None, *, is_all: bool
) -> Slices | None:
    """Return whose answers are given no more; None: all. Raises UsageError."""
    from ..plan.privacy.time import Clock
    from ..policy import Slices, load_policy
    from ..policy.periods import MOST_NUMBER, number_in

    time = load_policy(path).privacy.time
    if time is None:
        if is_all or first is not None or last is not None:
            raise click.UsageError("--from, --to and --all are for a budget by periods: [privacy.time]")
        return None
    if is_all and (first is not None or last is not None):
        raise click.UsageError("--all or --from, not both")
    if last is not None and first is None:
        raise click.UsageError("--to needs --from")
    if is_all:
        return None
    if first is None:
        now = max(datetime.now(UTC), datetime.fromisoformat(ledger.moment()))
        return Slices(((Clock.at(time, now).end, MOST_NUMBER),), is_undated=True)
    low, high = (MOST_NUMBER if one is None else number_in(time.period, one) for one in (first, last))
    if low is None or high is None or not low <= high:
        raise click.UsageError(f"write {time.period.value}s in their order, as dpsql budget show names them")
    return Slices(((low, high),))

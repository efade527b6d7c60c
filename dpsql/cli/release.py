"""`dpsql release`: a file of known statements, planned together, priced before anything is spent, charged once."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from ..errors import DpsqlError, PolicyError
from ..words import terminal_text
from .faults import Failure, tell
from .owner import open_ledger
from .query import script_text
from .render import format_option, receipt_line, render
from .terminal import CommandSettings, is_agreed, json_option, pass_settings, require_output, wants_json
from .worker import open_session

if TYPE_CHECKING:
    from ..engine import Answer
    from ..engine.batch import BatchStatement, PricedBatch

_SHOWN = 72
"""Characters of a statement in the list of prices."""


@click.command()
@click.argument("source_file", metavar="[FILE]", type=click.File("r", encoding="utf-8-sig"), required=False)
@click.option(
    "--epsilon",
    metavar="TOTAL",
    help="What all statements together may spend: split for the least total error. Without it each is as exact as "
    "asked alone, and the price is found.",
)
@click.option(
    "--workload",
    "workloads",
    metavar="'ranges(TABLE.COLUMN)'",
    multiple=True,
    help="In place of FILE: what ranges of an ordered column will be answered from, so that they are free at less.",
)
@click.option("--dry-run", is_flag=True, help="Show the price and the error bars, and spend nothing.")
@click.option("--yes", is_flag=True, help="Spend the price without being asked.")
@click.option(
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the answers to this new or empty folder, one CSV file a statement: all of them, or none.",
)
@click.option(
    "--every",
    metavar="PERIOD",
    type=click.Choice(["day", "week", "month", "year"]),
    help="Once for each such period that closes, into a folder of its name below --output; needs --yes.",
)
@format_option
@json_option
@pass_settings
def release(
    settings: CommandSettings,
    source_file: IO[str] | None,
    epsilon: str | None,
    workloads: Sequence[str],
    dry_run: bool,
    yes: bool,
    folder: Path | None,
    every: str | None,
    format_name: str,
) -> None:
    """Release a dashboard or a report: all queries of FILE planned together, and charged once.

    What several statements need is measured once, and what one draws answers the others. The price and the error bars
    of each statement are shown before anything is spent. All or nothing: if one statement is refused, or the price is
    more than is left, nothing is spent. Running the file again is free.

    SET lines in FILE hold for the queries after them: SET dpsql.accuracy = 50 says how far off the next ones may be,
    SET dpsql.epsilon = 0.2 that they are to be as exact as asked alone at 0.2.

    With --every month a run does nothing unless a month of the data has closed since the last one that did: so a timer
    may call it each day. It needs [privacy.time] in the policy.

    With --workload 'ranges(loan.loaned_on)' the file is one statement, the running total of rows along that column. It
    is drawn by days, weeks, months, quarters and years, or as running sums, so that days, months, ranges and totals of
    these rows are free afterwards where they are told as exactly as is asked for. Give it several times the epsilon of
    what will be asked.

    \b
      dpsql release dashboard.sql --dry-run
      dpsql release report.sql --epsilon 1 --yes --output report
      dpsql release report.sql --every month --yes --output reports
      dpsql release --workload 'ranges(loan.loaned_on)' --epsilon 0.5 --yes
    """
    from ..engine.batch import price_batch, read_batch, run_batch
    from ..mechanisms import parse_epsilon

    require_output()
    if every is not None:
        if folder is None or not yes or dry_run:
            raise click.UsageError("--every needs --output FOLDER and --yes, and no --dry-run.")
        folder /= _newest(settings.policy_path, every)
        if folder.exists():
            tell(f"{folder.name} is released already; the next {every} is not over yet.")
            return
    chosen = "json" if wants_json() else format_name
    if (source_file is None) != bool(workloads):
        raise click.UsageError("Give FILE or --workload, not both.")
    script = script_text(None, source_file) if source_file else ";\n".join(map(_running_total, workloads))
    assert script is not None
    total = None if epsilon is None else parse_epsilon(epsilon)
    with _new_folder(folder) as draft, open_session(settings.policy_path, settings.analyst) as running:
        try:
            statements = running.run(read_batch, running.session, script)
            price = running.run(price_batch, running.session, statements, total)
            _show(price, is_json=chosen == "json", alone=dry_run)
            if dry_run or not _is_agreed(price, yes=yes):
                return
            answers = running.run(run_batch, running.session, statements, total, price.charge)
        except DpsqlError as error:
            raise Failure(error, script) from None
        _write(statements, answers, chosen, draft, folder)


def _running_total(workload: str) -> str:
    """Return the statement that draws what ranges along a column are answered from (soundness.md 1.37): the running
    total, of which each range is a difference. Raises click.UsageError."""
    text = workload.strip()
    *table, column = text.removeprefix("ranges(").removesuffix(")").split(".")
    if (
        text != f"ranges({'.'.join((*table, column))})"
        or not table
        or not all(map(str.isidentifier, (*table, column)))
    ):
        raise click.UsageError("--workload is ranges(TABLE.COLUMN), as 'ranges(loan.loaned_on)'.")
    return (
        f"SELECT {column}, SUM(COUNT(*)) OVER (ORDER BY {column}) AS so_far FROM {'.'.join(table)} GROUP BY {column} "
        f"ORDER BY {column}"
    )


def _newest(policy_path: Path, every: str) -> str:
    """Return the name of the last period of the data that has closed. Raises PolicyError, LedgerError."""
    from ..policy import Period, load_policy
    from ..policy.periods import last_closed, period_text

    policy, period = load_policy(policy_path), Period(every)
    time = policy.privacy.time
    if time is None:
        raise PolicyError(
            f"{policy.source}: privacy.time: is missing: no {every} of the data ever closes",
            hint=f'write [privacy.time] with period = "{every}", or release the file without --every',
        )
    with open_ledger(policy_path) as ledger:
        now = max(datetime.now(UTC), datetime.fromisoformat(ledger.moment()))
    return period_text(period, last_closed(period, time.zone, time.settle, now))


def _show(price: PricedBatch, *, is_json: bool, alone: bool) -> None:
    """Show what each statement would get: on standard output where that is all, else for people on standard error."""
    from ..engine.explain import batch_dict, batch_lines

    if is_json:
        if alone:
            click.echo(json.dumps(batch_dict(price)))
        return
    lines = "\n".join(map(terminal_text, batch_lines(price, _SHOWN)))
    if alone:
        click.echo(lines)
    else:
        tell(lines)


def _is_agreed(price: PricedBatch, *, yes: bool) -> bool:
    """Ask whether to spend the price, unless it is nothing. Raises UsageError where nobody can be asked."""
    from ..budget import ZERO

    is_sure = yes or price.charge == ZERO
    agreed = is_agreed("Spend it?", "Say --yes to spend this, or --dry-run to look at it.", is_sure=is_sure)
    if not agreed:
        tell("Nothing was charged.")
    return agreed


# --- the answers --------------------------------------------------------------------------------------------


def _write(
    statements: Sequence[BatchStatement],
    answers: Sequence[Answer],
    format_name: str,
    draft: Path | None,
    folder: Path | None,
) -> None:
    """Print the answers, or put them into the folder. What cannot be written is stored: running again is free."""
    try:
        if draft is not None and folder is not None:
            _fill(draft, folder, statements, answers)
        else:
            for answer in answers:
                click.echo(render(answer, format_name))
    except OSError as error:
        tell("Not all answers were written; they are stored: running the file again is free.")
        if draft is None:
            raise
        raise click.UsageError(f"{folder} cannot be written: {error.strerror}.") from None
    if format_name != "json" or draft is not None:
        for statement, answer in zip(statements, answers, strict=True):
            if answer.receipt is not None:
                tell(f"{statement.number}: {receipt_line(answer.receipt)}")
    if draft is not None:
        tell(f"{len(answers)} files in {folder}")


@contextmanager
def _new_folder(folder: Path | None) -> Iterator[Path | None]:
    """Give a folder beside the one that is asked for, to be put in its place; before anything is spent.

    Raises UsageError: there is something in it, or nothing can be written there.
    """
    if folder is None:
        yield None
        return
    try:
        if folder.exists() and any(folder.iterdir()):
            raise click.UsageError(f"{folder} is not empty: name a new folder.")
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror}.") from None
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, folder: Path, statements: Sequence[BatchStatement], answers: Sequence[Answer]) -> None:
    """Write one CSV a statement, then give all of them their name at once."""
    width = max(2, len(str(len(answers))))
    for statement, answer in zip(statements, answers, strict=True):
        with open(draft / f"{statement.number:0{width}}.csv", "w", encoding="utf-8", newline="") as file:
            file.write(render(answer, "csv") + "\n")
            file.flush()
            os.fsync(file.fileno())
    mask = os.umask(0)
    os.umask(mask)
    draft.chmod(0o777 & ~mask)
    draft.rename(folder.absolute())

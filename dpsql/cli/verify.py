"""`dpsql verify`: what was charged, verified again, without the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import Unverified
from .faults import exit_code
from .owner import open_ledger
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import terminal_text

if TYPE_CHECKING:
    from ..budget import LedgerStore
    from ..engine.proofs import Proof, Proved

__all__ = ["verify"]

_SQLITE = b"SQLite format 3\0"


@click.command()
@click.argument(
    "source",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    required=False,
    metavar="[LEDGER|FILE]",
)
@click.option("--explain", "explains", is_flag=True, help="Show the SQL that each line is of, and the facts.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="At most so many charges.",
)
@click.option(
    "--archive", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where sealed files of the log are that were moved away.",
)  # fmt: skip
@json_option
@pass_settings
def verify(
    settings: CommandSettings, source: Path | None, explains: bool, limit: int, archive: Path | None
) -> None:
    """Verify again what was charged: in the policy's ledger, in LEDGER, a copy of its file with its log beside it, or
    from a certificate in FILE. Reads no data.

    Each charge names a certificate: the SQL that was run, what is claimed of it, and the constraints that the database
    enforced then. A line for each measurement says what is derived from that SQL alone: by which lemma, how many rows
    of a person count (R), how far one row reaches, how far one person moves the numbers (S), and what the noise costs.

    Ends with exit code 3 where a certificate does not hold, is missing, or is not of its charge. Charges of earlier
    versions name none: they are counted.
    """
    from ..engine.proofs import prove_file, prove_ledger

    if source is not None and not _is_ledger(source):
        proof = prove_file(source)
        _show_file(proof, explains=explains)
        _leave(bool(proof.problem))
        return
    with open_ledger(settings.policy_path) if source is None else closing(_opened(source)) as ledger:
        found = list(prove_ledger(ledger, limit, archive))
    if wants_json():
        for one in found:
            click.echo(json.dumps(_body(one, explains=explains)))
    else:
        for one in found:
            _show(one, explains=explains)
        click.echo(_summary(found))
    _leave(any(one.problem for one in found if one.digest is not None))


def _is_ledger(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _opened(path: Path) -> LedgerStore:
    """Open the ledger in a file, as what it says of itself. Raises LedgerError."""
    from ..budget import Caps, open_store
    from ..budget.entry import Header, Move, read_record
    from ..errors import LedgerError

    asked = "SELECT body FROM record WHERE kind IN ('header', 'move') ORDER BY seq"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            records = [read_record(body) for (body,) in database.execute(asked)]
    except sqlite3.Error:
        records = []
    header = next((one for one in records if isinstance(one, Header)), None)
    if header is None:
        raise LedgerError(f"{path.name} is no ledger", hint="name the file that the policy's ledger is in")
    promise = header.promise.after(next((one for one in records if isinstance(one, Move)), None))
    url, caps = f"sqlite:{path}", Caps(0, 0, {})
    return open_store(url, header.dataset, caps, create=False, log=path, promise=promise)


def _leave(is_wrong: bool) -> None:
    if is_wrong:
        raise click.exceptions.Exit(exit_code(Unverified("")))


def _lines(proof: Proof, *, explains: bool) -> list[str]:
    from ..engine.proofs import proof_lines

    if proof.verified is None:
        return [proof.problem]
    return proof_lines(proof.certificate, proof.verified, explains=explains)


def _show_file(proof: Proof, *, explains: bool) -> None:
    lines = _lines(proof, explains=explains)
    if wants_json():
        click.echo(json.dumps({"problem": proof.problem or None, "lines": lines}))
        return
    for line in lines:
        click.echo(terminal_text(line))


def _show(one: Proved, *, explains: bool) -> None:
    if one.digest is None:
        return
    newest = one.entries[0]
    count = "1 charge" if len(one.entries) == 1 else f"{len(one.entries)} charges"
    click.echo(f"{one.digest[:12]}  {newest.at}  {terminal_text(newest.analyst)}  {count}")
    click.echo(f"  {terminal_text(newest.statement)}")
    lines = [] if one.proof is None else _lines(one.proof, explains=explains)
    for line in dict.fromkeys([*lines, *([one.problem] if one.problem else [])]):
        click.echo(f"  {terminal_text(line)}")


def _body(one: Proved, *, explains: bool) -> dict[str, object]:
    return {
        "certificate": one.digest,
        "entries": [entry.seq for entry in one.entries],
        "problem": one.problem or None,
        "lines": [] if one.proof is None else _lines(one.proof, explains=explains),
    }


def _summary(found: Iterable[Proved]) -> str:
    """Return how many charges there are, and of how many something is wrong."""
    named = [one for one in found if one.digest is not None]
    charges = sum(len(one.entries) for one in named)
    wrong = sum(len(one.entries) for one in named if one.problem)
    without = sum(len(one.entries) for one in found if one.digest is None)
    said = f"{charges:,} charges with {len(named):,} certificates: "
    said += f"{charges - wrong:,} are proved" + (f", {wrong:,} not" if wrong else "")
    return said + (f"; {without:,} more name none" if without else "")

"""`dpsql verify`: what was charged, verified again, without the database; and `dpsql audit`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import Unverified
from ..words import terminal_text
from .faults import exit_code
from .owner import open_ledger, read_live_schema
from .terminal import CommandSettings, json_option, pass_settings, say, wants_json

if TYPE_CHECKING:
    from ..budget import LedgerStore
    from ..engine.audit import Audit, AuditFinding, Fuzzed
    from ..engine.proofs import Proof, Proved

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

    Ends with exit code 3 where a certificate does not hold, is not of its charge, or is missing while there is an
    answer: a crash may have cut off both, and a ledger that was made anew from its log has neither of what was charged
    before. Such charges are told, and no fault: no answer is left of them. Charges of earlier versions name none: they
    are counted.
    """
    from ..engine.proofs import prove_file, prove_ledger

    if source is not None and not _is_ledger(source):
        proof = prove_file(source)
        lines = _lines(proof, explains=explains)
        say({"problem": proof.problem or None, "lines": lines}, lines)
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
    _leave(any(one.is_wrong for one in found if one.digest is not None))


def _is_ledger(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _opened(path: Path) -> LedgerStore:
    """Open the ledger in a file, as what it says of itself. Raises LedgerError."""
    from ..budget import Caps, open_store
    from ..budget.entry import Division, Header, Move, read_record
    from ..errors import LedgerError

    asked = "SELECT body FROM record WHERE kind IN ('header', 'move', 'division') ORDER BY seq"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            records = [read_record(body) for (body,) in database.execute(asked)]
    except sqlite3.Error:
        records = []
    header = next((one for one in records if isinstance(one, Header)), None)
    if header is None:
        raise LedgerError(f"{path.name} is no ledger", hint="name the file that the policy's ledger is in")
    promise = header.promise.after(*(one for one in records if isinstance(one, Move | Division)))
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
    cut_off = sum(len(one.entries) for one in named if one.problem and not one.is_wrong)
    without = sum(len(one.entries) for one in found if one.digest is None)
    said = f"{charges:,} charges with {len(named):,} certificates: "
    said += f"{charges - wrong:,} are proved" + (f", {wrong:,} not" if wrong else "")
    said += f" ({cut_off:,} without an answer here)" if cut_off else ""
    return said + (f"; {without:,} more name none" if without else "")


# --- `dpsql audit` ------------------------------------------------------------------------------------------


_IN_RHO = "The ledger adds up rho: an epsilon here is that of the pure draw that costs as much rho, half its square."
_LAST = (
    "Epsilon is a lower bound and what is found an estimate, on made-up people:\nan audit that passes proves nothing, "
    "one that fails has found a bug. The proofs: dpsql docs soundness."
)


@click.command()
@click.option(
    "--sql",
    "statements",
    multiple=True,
    metavar="STATEMENT",
    help="Audit this statement, in place of the usual ones.",
)
@click.option(
    "--fuzz",
    "count",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Search N statements of every shape instead: none may move by more than it claims.",
)
@click.option(
    "--seed", type=click.IntRange(0), metavar="NUMBER", help="With --fuzz: which statements; 0 unless said."
)
@json_option
@pass_settings
def audit(
    settings: CommandSettings, statements: tuple[str, ...], count: int | None, seed: int | None
) -> None:
    """Attack your own policy, on made-up people: what would one person's data show?

    Makes people up under the policy's tables, in memory: with one person more, a person at the ends of the bounds,
    ten times the rows that count, too many groups, NULL and infinite values. Runs the real SQL and the real noise on
    both, at epsilon 1, and compares what the best attacker finds with what is claimed. Reads the schema, never the
    data; needs no ledger and charges nothing. Ends with exit code 1 if it finds more than is claimed: a bug in dpsql.

    \b
      dpsql audit
      dpsql audit --sql "SELECT major, AVG(gpa) FROM student GROUP BY major"
      dpsql audit --fuzz 500 --seed 7
    """
    from ..engine.audit import run_audit, run_fuzz

    if count is not None and statements:
        raise click.UsageError("--fuzz writes its statements itself: leave --sql out")
    if count is None and seed is not None:
        raise click.UsageError("--seed goes with --fuzz")
    policy = settings.policy()
    live = read_live_schema(policy.database, policy.files)
    if count is None:
        audited = run_audit(policy, live, statements)
        done, text = audited.has_passed, json.dumps(audited.to_json()) if wants_json() else _text(audited)
    else:
        fuzzed = run_fuzz(policy, live, count, seed or 0)
        done, text = fuzzed.has_passed, json.dumps(fuzzed.to_json()) if wants_json() else _searched(fuzzed)
    click.echo(text)
    if not done:
        click.get_current_context().exit(1)


def _searched(done: Fuzzed) -> str:
    refused = ", ".join(f"{code} {count}" for code, count in done.refused.items())
    lines = [
        f"{done.tried} statements of seed {done.seed}: {done.answered} answered, {sum(done.refused.values())} refused"
        + (f" ({refused})" if refused else ""),
        f"{done.answered - sum(done.unverified.values())} of {done.answered} plans are verified",
        *(f"  not verified: {rule}, {count}" for rule, count in done.unverified.items()),
        f"the most that neighbours moved one: {100 * done.worst:.4g} % of what is claimed",
        *([f"  {terminal_text(done.at)}"] if done.at else []),
    ]
    for one in done.violations:
        lines += [terminal_text(one.sql), f"  FAIL: {one.problem}"]
    failed = len({one.sql for one in done.violations})
    verdict = f"{failed} of {done.answered} failed" if failed else "none failed"
    return "\n".join([*lines, "", f"{verdict}. On made-up people: a search that passes proves nothing, one that fails "
                      "has found a bug."])  # fmt: skip


def _text(done: Audit) -> str:
    width = max([len("statement"), *(len(terminal_text(one.sql)) for one in done.findings)])
    lines = [
        f"{'statement':{width}}  {'claimed':>7}  {'moved':>16}  {'epsilon at least':>16}  "
        "at 5 % false alarms, found (allowed)"
    ]
    for one in done.findings:
        lines += [_line(one, width), *(f"  FAIL: {problem}" for problem in one.problems)]
    failed = sum(bool(one.problems) for one in done.findings)
    verdict = (
        f"{failed} of {len(done.findings)} failed"
        if failed
        else f"{len(done.findings)} statements, none failed"
    )
    in_rho = [_IN_RHO] if any(one.in_rho for one in done.findings) else []
    return "\n".join([*lines, "", *in_rho, f"{verdict}. {_LAST}"])


def _line(one: AuditFinding, width: int) -> str:
    sides = f"{100 * one.found:.1f} % ({100 * one.allowed:.1f} %)"
    return f"{terminal_text(one.sql):{width}}  {one.claimed:>7.4g}  {one.moved:>16}  {one.epsilon:>16.3f}  {sides}"

"""`dpsql audit`: the policy's statements on made-up neighbours, attacked as the textbook's hypothesis test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from .owner import read_live_schema
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import terminal_text

if TYPE_CHECKING:
    from ..engine.audit import Audit, AuditFinding, Fuzzed

__all__ = ["audit"]

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
    from ..policy import load_policy

    if count is not None and statements:
        raise click.UsageError("--fuzz writes its statements itself: leave --sql out")
    if count is None and seed is not None:
        raise click.UsageError("--seed goes with --fuzz")
    policy = load_policy(settings.policy_path)
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

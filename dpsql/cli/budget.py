"""`dpsql budget`: what is spent and left, on what and of which period (soundness.md 3.22); and the allowing of more.

House rule: under zCDP no two epsilons are added or subtracted (`dpsql.engine.answer`); what is left is told in
statements there, and in both where epsilon is what is added up.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from ..errors import LedgerError, PolicyError
from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_of_pure
from ..policy.periods import MOST_NUMBER, UNDATED, first_day, number_of, run_text
from ..words import terminal_text
from . import interrupts
from .bounds import measure_tables
from .faults import Failure, tell
from .owner import login_name, looked, open_ledger, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .terminal import decimal_text

if TYPE_CHECKING:
    from ..budget import LedgerStore, Odometer, Promise, Scope, Status
    from ..budget.stretches import Stretch
    from ..policy import Policy
    from ..policy.model import Time


def _statements(left: int, usual: Fraction, in_rho: bool) -> int:
    cost = int(usual * NANO)
    return max(0, left) // (rho_of_pure(cost) if in_rho else cost)


def _text(promise: Promise, first: int, last: int) -> str:
    assert promise.period is not None, "kept by slices"
    return run_text(promise.period, first, last, promise.since)


def _amount(amount: int, in_rho: bool) -> str:
    from ..budget import epsilon_text, rho_text

    return rho_text(amount) if in_rho else epsilon_text(amount)


def period_lines(ledger: LedgerStore, status: Status, usual: Fraction) -> list[str]:
    """Return the lines of `dpsql budget show` about a ledger that is kept by periods, none about another."""
    from ..budget.stretches import stretches_of

    promise = ledger.promise
    if promise.period is None:
        return []
    in_rho, cap = status.in_rho, status.scopes[0].cap
    lines: list[tuple[str, str]] = []
    for one in stretches_of(ledger, in_rho):
        spent = _amount(one.most, in_rho)
        if one.least != one.most:
            spent = f"{_amount(one.least, in_rho)} to {spent}"
        number = _statements(cap - one.most, usual, in_rho)
        more = f"about {number:,} more at {decimal_text(usual)}"
        unit = "rho " if in_rho else ""
        lines.append(
            (_text(promise, one.first, one.last), f"{unit}{spent} of {_amount(cap, in_rho)} spent; {more}")
        )
    width = max((len(name) for name, _ in lines), default=0)
    said = [f"{name:<{width}}  {text}" for name, text in lines]
    return [*said, *_person_lines(ledger, ledger.odometer(), in_rho)]


def _person_lines(ledger: LedgerStore, odometer: Odometer, in_rho: bool) -> list[str]:
    promise = ledger.promise
    assert promise.period is not None, "kept by slices"
    period = promise.period.value
    lines = []
    for length, allowed in ledger.window_caps:
        worst = odometer.worst(length)
        where = _text(promise, worst.first, worst.first + length - 1)
        spent, most = _amount(worst.amount, in_rho), _amount(allowed, in_rho)
        unit = "rho" if in_rho else "epsilon"
        told = f", in {where}" if worst.amount else ""
        lines.append(f"over {length} {period}s: at most {unit} {spent} of {most}{told}")
    said = f"epsilon {_amount(odometer.ever, in_rho)}"
    if in_rho:
        delta = Fraction(promise.conversion_delta_atto, ATTO)
        epsilon = decimal_text(round(epsilon_of_rho(odometer.ever, delta), 2))
        said = f"epsilon {epsilon} (rho {_amount(odometer.ever, in_rho)})"
    cap_said = (
        ""
        if ledger.person_cap is None
        else f" of {'rho ' if in_rho else ''}{_amount(ledger.person_cap, in_rho)}"
    )
    lines.append(f"a person in every {period} so far: at most {said}{cap_said}")
    return lines


def period_body(ledger: LedgerStore, status: Status, usual: Fraction) -> dict[str, Any]:
    """Return what `dpsql budget show --json` says beside, about a ledger that is kept by periods."""
    from ..budget.stretches import stretches_of

    promise = ledger.promise
    if promise.period is None:
        return {}
    in_rho, cap = status.in_rho, status.scopes[0].cap
    unit = ATTO if in_rho else NANO
    odometer = ledger.odometer()
    periods = [
        {
            **_ends(promise, one),
            "least_spent": one.least / unit,
            "spent": one.most / unit,
            "cap": cap / unit,
            "left": max(0, cap - one.most) / unit,
            "statements_left": _statements(cap - one.most, usual, in_rho),
        }
        for one in stretches_of(ledger, in_rho, MOST_NUMBER)
    ]
    windows = [
        {
            f"{promise.period.value}s": length,
            "spent": odometer.worst(length).amount / unit,
            "cap": most / unit,
        }
        for length, most in ledger.window_caps
    ]
    person = {
        "spent": odometer.ever / unit,
        "cap": None if ledger.person_cap is None else ledger.person_cap / unit,
    }
    return {"period": promise.period.value, "periods": periods, "windows": windows, "person": person}


def _ends(promise: Promise, one: Stretch) -> dict[str, str | None]:
    assert promise.period is not None, "kept by slices"
    if one.last == UNDATED:
        return {"of": "undated rows"}
    before = _first_of(promise)
    first = None if one.first < before else first_day(promise.period, one.first).isoformat()
    last = None if one.last == MOST_NUMBER else first_day(promise.period, one.last + 1).isoformat()
    return {"of": _text(promise, one.first, one.last), "from": first, "until": last}


def _first_of(promise: Promise) -> int:
    assert promise.period is not None
    assert promise.since is not None, "kept by slices"
    return number_of(promise.period, promise.since)


# --- what is spent and what is left, for everybody together and for each analyst: as lines, and as JSON -----


def dataset_text(status: Status, usual: Fraction) -> str:
    """Return what everybody together has spent and what is left; `usual`: the epsilon of a usual statement."""
    from ..engine.answer import in_statements, of_text, spent_text

    if not status.in_rho:
        spent, cap = _of(status.epsilon_spent_nano, NANO), _of(status.epsilon_cap_nano, NANO)
        return f"{_spent_of(spent, cap)}; {in_statements(status, usual)}{of_text(status)}"
    spent_nano, cap_nano = status.epsilon_spent_nano, status.epsilon_cap_nano
    so_far = spent_text(spent_nano, cap_nano, status.rho_spent_atto, status.rho_cap_atto, status)
    return f"{so_far}; {in_statements(status, usual)}{of_text(status)}"


def spending_lines(status: Status, analysts: Mapping[str, Status], usual: Fraction) -> list[str]:
    """Return the lines of `dpsql budget show`: the dataset's, each analyst's, the epoch."""
    from ..engine.answer import ration_text

    delta = _spent_of(_of(status.delta_spent_atto, ATTO), _of(status.delta_cap_atto, ATTO))
    if status.in_rho:
        lines = [dataset_text(status, usual), f"delta {delta}, for groups that are found"]
    else:
        lines = [f"epsilon  {dataset_text(status, usual)}", f"delta    {delta}"]
    lines += [ration_text(scope, status) for scope in status.rations]
    between = " " if status.in_rho else "  "
    for name, own in analysts.items():
        shown = terminal_text(name)
        lines.append(f"analyst{between}{shown}: {_own_text(own, usual)}")
        lines += [
            ration_text(replace(scope, whose=scope.whose.replace("your own", f"{shown}'s own")), own)
            for scope in _own_rations(status, own)
        ]
    return [*lines, f"epoch{between if status.in_rho else '    '}{status.epoch}"]


def spending_body(
    status: Status, analysts: Mapping[str, Status], usual: Fraction, name: str
) -> dict[str, object]:
    """Return what `dpsql budget show --json` says; `name`: the analyst who is told apart from the others."""
    from ..engine.answer import statements_left

    everyone = [_analyst_body(each, own, usual, status) for each, own in analysts.items()]
    rations = [_ration_body(scope, status) for scope in status.rations]
    rho = {"rho": _scope(status.rho_spent_atto, status.rho_cap_atto, ATTO)}
    epsilon = _scope(status.epsilon_spent_nano, status.epsilon_cap_nano, NANO)
    if status.in_rho:
        del epsilon["left"]
    return {
        "epsilon": epsilon,
        **({"conversion_delta": status.conversion_delta_atto / ATTO, **rho} if status.in_rho else {}),
        "delta": _scope(status.delta_spent_atto, status.delta_cap_atto, ATTO),
        "statements_left": {"epsilon": float(usual), "number": statements_left(status, usual)},
        "analyst": next(one for one in everyone if one["name"] == name),
        "analysts": everyone,
        **({"rations": rations} if rations else {}),
        "epoch": status.epoch,
    }


def _own_text(own: Status, usual: Fraction) -> str:
    from ..engine.answer import in_statements, spent_text

    if own.in_rho:
        text = spent_text(
            own.analyst_spent_nano,
            own.analyst_cap_nano,
            own.analyst_rho_spent_atto,
            own.analyst_rho_cap_atto,
            own,
        )
    elif own.analyst_cap_nano is None:
        text = f"epsilon {decimal_text(_of(own.analyst_spent_nano, NANO))} spent, no cap of their own"
    else:
        text = f"epsilon {_spent_of(_of(own.analyst_spent_nano, NANO), _of(own.analyst_cap_nano, NANO))}"
    return text if own.analyst_cap_nano is None else f"{text}; {in_statements(own, usual)}"


def _own_rations(status: Status, own: Status) -> tuple[Scope, ...]:
    return own.rations[len(status.rations) :]


def _analyst_body(name: str, own: Status, usual: Fraction, status: Status) -> dict[str, object]:
    from ..engine.answer import statements_left

    rations = [_ration_body(scope, own) for scope in _own_rations(status, own)]
    spent = (
        {"rho": _scope(own.analyst_rho_spent_atto, own.analyst_rho_cap_atto, ATTO)}
        if own.in_rho
        else dict(_scope(own.analyst_spent_nano, own.analyst_cap_nano, NANO))
    )
    left = {"statements_left": statements_left(own, usual)}
    return {"name": name, **spent, **left, **({"rations": rations} if rations else {})}


def _ration_body(scope: Scope, status: Status) -> dict[str, object]:
    return {
        "of": scope.whose,
        "until": scope.until,
        **_scope(scope.spent, scope.cap, ATTO if status.in_rho else NANO),
    }


def _scope(spent: int, cap: int | None, unit: int) -> dict[str, float | None]:
    left = None if cap is None else max(cap - spent, 0) / unit
    return {"spent": spent / unit, "cap": None if cap is None else cap / unit, "left": left}


def _spent_of(spent: Fraction, cap: Fraction) -> str:
    return f"{decimal_text(spent)} of {decimal_text(cap)} spent, {decimal_text(max(cap - spent, Fraction(0)))} left"


def _of(amount: int, unit: int) -> Fraction:
    return Fraction(amount, unit)


# --- `dpsql budget`: what is spent, on what, and the owner's act of allowing more ---------------------------


@click.group()
def budget() -> None:
    """Make the ledger, show what is spent, list what it was spent on, allow more."""


@budget.command()
@pass_settings
def create(settings: CommandSettings) -> None:
    """Make the ledger of a new dataset. Once: without its ledger a dataset is not answered.

    Where tables are files, they are read and recorded as they are now, and the keys that the policy asserts are
    verified in them; where a copy of the database file is asked (snapshot = "copy"), it is made.

    At a terminal it then offers to measure how many rows people have in each table, for 1 % of the budget, once, so
    that error bars hold what max_rows leaves out (`dpsql bounds --all`).

    A ledger that is lost is restored from its backup or from its log, not made anew: a new one has
    forgotten what was spent.
    """
    was_there = True
    verified = verified_files(settings.policy_path, only_new=True)
    try:
        with open_ledger(settings.policy_path) as ledger:
            ledger.record_keys(verified.checked)
            status = ledger.status()
    except LedgerError:
        was_there = False
        with open_ledger(settings.policy_path, create=True) as ledger:
            ledger.record_keys(verified.checked)
            status = ledger.status()
    verified.record()
    click.echo("The ledger was there already." if was_there else "The ledger is made. Keep it, and its log.")
    head = "" if status.in_rho else "epsilon  "
    click.echo(f"{head}{dataset_text(status, _usual(settings))}")
    if not was_there and sys.stdin.isatty() and sys.stderr.isatty():
        click.echo("")
        measure_tables(settings.policy_path, None, None, is_sure=False)


@budget.command()
@json_option
@pass_settings
def show(settings: CommandSettings) -> None:
    """Show what is spent and what is left, for everybody together and for each analyst.

    Listed are those who have a section in the policy, those who were charged, and --analyst.
    """
    from ..policy import load_policy

    policy = load_policy(settings.policy_path)
    usual = policy.defaults.epsilon
    with open_ledger(settings.policy_path) as ledger:
        status = ledger.status()
        names = {settings.analyst, *policy.analysts, *ledger.analysts()}
        analysts = {name: ledger.status(name) for name in sorted(names)}
        if wants_json():
            body = spending_body(status, analysts, usual, settings.analyst)
            click.echo(json.dumps(body | period_body(ledger, status, usual)))
            return
        lines = period_lines(ledger, status, usual)
    for line in spending_lines(status, analysts, usual):
        click.echo(line)
    for line in lines:
        click.echo(line)


@budget.command()
@click.argument("folder", type=click.Path(path_type=Path))
@pass_settings
def backup(settings: CommandSettings, folder: Path) -> None:
    """Copy the ledger and its log into FOLDER, which is made; servers may go on running.

    To restore, put both files back in their places while nothing runs. The log that is there since the backup is worth
    more than its copy: keep it, and nothing that was spent is forgotten.
    """
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    if folder.exists():
        raise click.UsageError(f"{folder} is there already; name a new folder.")
    with open_ledger(settings.policy_path) as ledger:
        try:
            draft.mkdir(0o700)
            names = [path.name for path in ledger.back_up(draft)]
            draft.rename(folder)
        except OSError as error:
            raise click.UsageError(f"{folder} cannot be written: {error.strerror}.") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    click.echo(f"Copied to {terminal_text(str(folder))}: {' and '.join(names)}")


@budget.command()
@click.option(
    "--archive", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with sealed files of the log that do not stand beside it.",
)  # fmt: skip
@click.option(
    "--witness", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that a witness has written: ledger and log must be no older than what it has seen.",
)  # fmt: skip
@pass_settings
def verify(settings: CommandSettings, archive: Path | None, witness: Path | None) -> None:
    """Compare all of the ledger with all of its log, and every stored answer with its checksum.

    Every command looks at what is new since the last look, and believes what was compared before. This believes
    nothing. Servers may go on running: nobody waits for it.
    """
    from ..budget import read_notes

    notes = None
    if witness is not None:
        try:
            notes = read_notes(witness.read_text("ascii", errors="replace").splitlines())
        except OSError as error:
            raise click.UsageError(f"{witness} cannot be read: {error.strerror}.") from None
    with open_ledger(settings.policy_path) as ledger:
        report = ledger.verify(archive, notes)
    files = "1 file" if report.files == 1 else f"{report.files} files"
    click.echo(
        f"{report.records} records in {files} of the log: the ledger has the same, and adds up to what is spent."
    )
    click.echo(f"{report.answers} stored answers are as they were stored.")
    if report.certificates:
        tell(f"Note: {report.certificates} certificates of charges are damaged or missing.")
    if notes is not None:
        click.echo(f"The witness has seen the same, {report.agreed} times.")
    if report.damaged:
        raise Failure(
            LedgerError(
                f"{report.damaged} stored answers are damaged or missing",
                hint="what was spent is sound; restore the ledger from a backup, or give up what is stored: "
                "dpsql refresh",
            )
        )


@budget.command()
@pass_settings
def rotate(settings: CommandSettings) -> None:
    """Seal the log's file under a name of its own, and begin the next one. A server does that by itself every 64 MiB.

    A sealed file never changes. It may be moved away: dpsql budget verify takes the folder as --archive; only a ledger
    from a backup of before it was sealed needs it beside the log again.
    """
    with open_ledger(settings.policy_path) as ledger:
        sealed = ledger.rotate()
    click.echo(
        "The log's file has nothing to seal."
        if sealed is None
        else f"Sealed as {terminal_text(sealed.name)}."
    )


@budget.command()
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="At most so many."
)
@json_option
@pass_settings
def log(settings: CommandSettings, limit: int) -> None:
    """List the newest charges: when, who, what it cost, which measures, which statement."""
    from ..budget import rho_text

    with open_ledger(settings.policy_path) as ledger:
        entries = ledger.log(limit)
        in_rho, promise = ledger.status().in_rho, ledger.promise
    for entry in entries:
        of = ""  # as of what was charged before the ledger was divided
        if promise.period is not None and entry.slices is not None:
            of = entry.slices.text(promise.period, promise.since)
        epsilon, delta = _of(entry.charge.epsilon_nano, NANO), Fraction(entry.charge.delta_atto, ATTO)
        if wants_json():
            body = {
                "number": entry.seq,
                "at": entry.at,
                "epoch": entry.epoch,
                "analyst": entry.analyst,
                "epsilon": float(epsilon),
                "delta": float(delta),
                **({"rho": entry.charge.rho_atto / ATTO} if in_rho else {}),
                **({"of": of} if of else {}),
                "state": entry.state.value,
                "note": entry.note,
                "statement": entry.statement,
            }
            click.echo(json.dumps(body))
            continue
        cost = f"epsilon {decimal_text(epsilon)}" + (f", delta {decimal_text(delta)}" if delta else "")
        cost += f", rho {rho_text(entry.charge.rho_atto)}" if in_rho else ""
        cost += f" of {of}" if of else ""
        click.echo(f"{entry.at}  {terminal_text(entry.analyst)}  {cost}  {entry.state.value}")
        click.echo(f"    {terminal_text(entry.note)}")
        click.echo(f"    {terminal_text(' '.join(entry.statement.split()))}")
    if not entries:
        tell("Nothing was charged yet.")


@budget.command()
@click.argument("epsilon")
@click.option("--to", "analyst", help="Raise this analyst's cap; without it, the cap for everybody together.")
@pass_settings
def grant(settings: CommandSettings, epsilon: str, analyst: str | None) -> None:
    """Raise a cap by EPSILON: the owner's act, recorded for ever in the ledger.

    More epsilon means that more can be learned about each person. It cannot be taken back.
    """
    from ..mechanisms import parse_epsilon

    amount = parse_epsilon(epsilon)
    with open_ledger(settings.policy_path) as ledger:
        if analyst is not None and ledger.status(analyst).analyst_cap_nano is None:
            raise click.UsageError(f"{analyst} has no cap of their own that could be raised.")
        ledger.grant(analyst, int(amount * NANO), by=login_name())
        status = ledger.status(analyst)
    cap = status.epsilon_cap_nano if analyst is None else status.analyst_cap_nano
    whose = "everybody together" if analyst is None else terminal_text(analyst)
    click.echo(f"The cap for {whose} is now epsilon {decimal_text(_of(cap or 0, NANO))}.")


@budget.command()
@click.option("--yes", is_flag=True, help="Take the clock without being asked.")
@pass_settings
def clock(settings: CommandSettings, yes: bool) -> None:
    """Have the ledger take this machine's clock as it is, where periods have caps.

    A clock that goes back opens no period again, and one that is more than a day beyond the ledger's last record is not
    taken before the owner has looked at it, as after some days in which nothing ran. Recorded in the ledger.
    """
    with open_ledger(settings.policy_path) as ledger:
        moment, now = ledger.moment(), datetime.now(UTC).isoformat(timespec="seconds")
        click.echo(f"The ledger's last moment is {moment}.")
        click.echo(f"This machine's clock says   {now}.")
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("Say --yes to take the clock as it is.")
            with interrupts.unwinding():
                agreed = click.confirm("Is the clock right?", err=True)
            if not agreed:
                tell("The ledger stays as it was.")
                return
        click.echo(f"The ledger is at {ledger.confirm_clock(by=login_name())} from now on.")


@budget.command()
@click.argument("accounting", type=click.Choice(["zcdp", "day", "week", "month", "year"]))
@click.option("--all", "is_all", is_flag=True, help="Count what was charged for all periods to come, too.")
@click.option("--yes", is_flag=True, help="Divide it without being asked.")
@pass_settings
def account(settings: CommandSettings, accounting: str, is_all: bool, yes: bool) -> None:
    """Have a ledger count otherwise from now on: in rho, or by periods of the data. No way back.

    zcdp: a ledger that adds up epsilon adds up rho: more answers for the same promise. What was spent counts, each
    charge by its own rho, and has to fit. The promise is from then on the epsilon and the delta of the policy, for all
    that was and will be answered. Write accounting = "zcdp" in [privacy] first.

    day, week, month, year: what is promised is from then on about what a person has in one such period, which is less
    than it was: who is in k of them may lose k times epsilon (k times k of rho). What was charged so far counts twice,
    for each period up to the running one, and for undated rows; those that come begin with the whole budget, except
    where rows of them are there already: then nothing is changed without --all. Write [privacy.time] first.

    Start what is running on the same ledger again.
    """
    from ..policy import load_policy

    policy = load_policy(settings.policy_path)
    if accounting == "zcdp":
        _move(policy)
    else:
        _divide(policy, accounting, is_all=is_all, yes=yes)


def _move(policy: Policy) -> None:
    from ..engine.dataset import open_ledger as open_store
    from ..policy import Accounting

    if policy.privacy.accounting is not Accounting.ZCDP:
        raise PolicyError(f'{policy.source}: privacy.accounting: is "pure"; write "zcdp" first')
    try:
        with closing(open_store(policy, create=False)) as ledger:
            status, was_moved = ledger.status(), True
    except LedgerError:
        before = replace(policy.privacy, accounting=Accounting.PURE, conversion_delta=Fraction(0))
        with closing(open_store(replace(policy, privacy=before), create=False)) as ledger:
            conversion = int(policy.privacy.conversion_delta * ATTO)
            status, was_moved = ledger.move_to_zcdp(conversion, by=login_name()), False
    click.echo("The ledger adds up rho already." if was_moved else "The ledger adds up rho from now on.")
    click.echo(dataset_text(status, policy.defaults.epsilon))


def _divide(policy: Policy, period: str, *, is_all: bool, yes: bool) -> None:
    from ..budget import Promise
    from ..engine.dataset import open_ledger as open_store
    from ..engine.dataset import times_of

    time = policy.privacy.time
    if time is None or time.period.value != period:
        raise PolicyError(f'{policy.source}: privacy.time: has to say period = "{period}" first')
    if not _is_made_for(policy):
        before = replace(policy, privacy=replace(policy.privacy, time=None))
        with closing(open_store(before, create=False)) as ledger:
            if not is_all:
                _require_no_later_rows(policy, time, ledger.moment())
            click.echo(f"So far: {dataset_text(ledger.status(), policy.defaults.epsilon)}.")
            click.echo(
                f"From now on the promise is about what a person has in one {period}: who is in k of them may lose k "
                "times as much (rho: k times k). What was charged so far counts twice (rho: four times) for each of "
                f"them up to the running one{', for all that are to come' if is_all else ''}, and for rows without a "
                "time. There is no way back."
            )
            if not (yes or _agrees()):
                tell("The ledger stays as it was.")
                return
            promise = Promise(period=time.period, zone=time.zone, since=time.since)
            division = ledger.divide(promise, is_all=is_all, by=login_name(), times=times_of(policy))
        said = division.slices.text(time.period, time.since)
        click.echo(f"The ledger is kept by {period} from now on. What was charged counts for {said}.")
    else:
        click.echo(f"The ledger is kept by {period} already.")


def _is_made_for(policy: Policy) -> bool:
    from ..engine.dataset import open_ledger as open_store

    try:
        open_store(policy, create=False).close()
    except LedgerError:
        return False
    return True


def _agrees() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Say --yes to divide the ledger.")
    with interrupts.unwinding():
        return click.confirm("Divide the ledger?", err=True)


def _require_no_later_rows(policy: Policy, time: Time, moment: str) -> None:
    """Raise LedgerError where rows are of a period that is not begun: old answers may have read them."""
    from ..engine.asserted_keys import look_at_later_rows
    from ..policy.periods import instant_of, number_of

    now = max(datetime.fromisoformat(moment), datetime.now(UTC)).astimezone(ZoneInfo(time.zone))
    after = instant_of(time.period, number_of(time.period, now.date()) + 1, time.zone)
    for found in looked(look_at_later_rows, policy, True, after):
        if found.rows:
            raise LedgerError(
                f'"{found.table}" has rows whose "{found.column}" is of a {time.period.value} that is still to come, '
                "and answers may have read them",
                hint="mend these rows where they are mistakes and answers never read them, or say --all: what was "
                "charged then counts for all that are to come, too",
            )


def _usual(settings: CommandSettings) -> Fraction:
    """Return the epsilon of a usual statement."""
    from ..policy import load_policy

    return load_policy(settings.policy_path).defaults.epsilon

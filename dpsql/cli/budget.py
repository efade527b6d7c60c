"""`dpsql budget`: what is spent, on what, and the owner's act of allowing more."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from ..errors import LedgerError, PolicyError
from .failure import tell
from .owner import login_name, open_ledger, verified_files
from .settings import CommandSettings, json_option, pass_settings, wants_json
from .text_cells import decimal_text, terminal_text

if TYPE_CHECKING:
    from ..budget import Status

__all__ = ["budget"]

_NANO = 10**9
_ATTO = 10**18


@click.group()
def budget() -> None:
    """Make the ledger, show what is spent, list what it was spent on, allow more."""


@budget.command()
@pass_settings
def create(settings: CommandSettings) -> None:
    """Make the ledger of a new dataset. Once: without its ledger a dataset is not answered.

    Where tables are files, they are read and recorded as they are now; where a copy of the database file is asked
    (snapshot = "copy"), it is made.

    A ledger that is lost is restored from its backup or from its log, not made anew: a new one has
    forgotten what was spent.
    """
    was_there = True
    record = verified_files(settings.policy_path, only_new=True)
    try:
        with open_ledger(settings.policy_path) as ledger:
            status = ledger.status()
    except LedgerError:
        was_there = False
        with open_ledger(settings.policy_path, create=True) as ledger:
            status = ledger.status()
    record()
    click.echo("The ledger was there already." if was_there else "The ledger is made. Keep it, and its log.")
    head = "" if status.in_rho else "epsilon  "
    click.echo(f"{head}{_spent(status, _usual(settings))}")


@budget.command()
@json_option
@pass_settings
def show(settings: CommandSettings) -> None:
    """Show what is spent and what is left, for everybody together and for --analyst."""
    with open_ledger(settings.policy_path) as ledger:
        status = ledger.status(settings.analyst)
        epoch = ledger.epoch
    if status.in_rho:
        _show_in_rho(settings, status)
        return
    epsilon, cap = _epsilon(status.epsilon_spent_nano), _epsilon(status.epsilon_cap_nano)
    delta, delta_cap = Fraction(status.delta_spent_atto, _ATTO), Fraction(status.delta_cap_atto, _ATTO)
    own = _epsilon(status.analyst_spent_nano)
    own_cap = None if status.analyst_cap_nano is None else _epsilon(status.analyst_cap_nano)
    if wants_json():
        body = {
            "epsilon": _scope(epsilon, cap),
            "delta": _scope(delta, delta_cap),
            "analyst": {"name": settings.analyst, **_scope(own, own_cap)},
            **_rations(status),
            "epoch": epoch,
        }
        click.echo(json.dumps(body))
        return
    click.echo(f"epsilon  {_line(epsilon, cap)}")
    click.echo(f"delta    {_line(delta, delta_cap)}")
    click.echo(f"analyst  {terminal_text(settings.analyst)}: epsilon {_line(own, own_cap)}")
    _show_rations(status)
    click.echo(f"epoch    {epoch}")


def _show_in_rho(settings: CommandSettings, status: Status) -> None:
    from ..engine.left import spent_text, statements_left

    usual = _usual(settings)
    if wants_json():
        own, cap = status.analyst_rho_spent_atto, status.analyst_rho_cap_atto
        body = {
            "epsilon": {
                "spent": float(_epsilon(status.epsilon_spent_nano)),
                "cap": float(_epsilon(status.epsilon_cap_nano)),
            },
            "conversion_delta": status.conversion_delta_atto / _ATTO,
            "rho": _scope(_atto(status.rho_spent_atto), _atto(status.rho_cap_atto)),
            "delta": _scope(_atto(status.delta_spent_atto), _atto(status.delta_cap_atto)),
            "analyst": {
                "name": settings.analyst,
                "rho": _scope(_atto(own), None if cap is None else _atto(cap)),
            },
            "statements_left": {"epsilon": float(usual), "number": statements_left(status, usual)},
            **_rations(status),
            "epoch": status.epoch,
        }
        click.echo(json.dumps(body))
        return
    own_text = spent_text(
        status.analyst_spent_nano,
        status.analyst_cap_nano,
        status.analyst_rho_spent_atto,
        status.analyst_rho_cap_atto,
        status,
    )
    click.echo(_spent(status, usual))
    click.echo(
        f"delta {_line(_atto(status.delta_spent_atto), _atto(status.delta_cap_atto))}, for groups that are found"
    )
    click.echo(f"analyst {terminal_text(settings.analyst)}: {own_text}")
    _show_rations(status)
    click.echo(f"epoch {status.epoch}")


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
        in_rho = ledger.status().in_rho
    for entry in entries:
        epsilon, delta = _epsilon(entry.charge.epsilon_nano), Fraction(entry.charge.delta_atto, _ATTO)
        if wants_json():
            body = {
                "number": entry.seq,
                "at": entry.at,
                "epoch": entry.epoch,
                "analyst": entry.analyst,
                "epsilon": float(epsilon),
                "delta": float(delta),
                **({"rho": entry.charge.rho_atto / _ATTO} if in_rho else {}),
                "state": entry.state.value,
                "note": entry.note,
                "statement": entry.statement,
            }
            click.echo(json.dumps(body))
            continue
        cost = f"epsilon {decimal_text(epsilon)}" + (f", delta {decimal_text(delta)}" if delta else "")
        cost += f", rho {rho_text(entry.charge.rho_atto)}" if in_rho else ""
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
        ledger.grant(analyst, int(amount * _NANO), by=login_name())
        status = ledger.status(analyst)
    cap = status.epsilon_cap_nano if analyst is None else status.analyst_cap_nano
    whose = "everybody together" if analyst is None else terminal_text(analyst)
    click.echo(f"The cap for {whose} is now epsilon {decimal_text(_epsilon(cap or 0))}.")


@budget.command()
@click.argument("accounting", type=click.Choice(["zcdp"]))
@pass_settings
def account(settings: CommandSettings, accounting: str) -> None:
    """Have a ledger that adds up epsilon add up rho from now on: more answers for the same promise. No way back.

    What was spent counts, each charge by its own rho, and has to fit. The promise is from then on the epsilon and
    the delta of the policy, for all that was and will be answered. Write accounting = "zcdp" in [privacy] first, and
    start what is running on the same ledger again.
    """
    from ..engine.dataset import open_ledger as open_store
    from ..policy import Accounting, load_policy

    policy = load_policy(settings.policy_path)
    if policy.privacy.accounting.value != accounting:
        raise PolicyError(
            f'{policy.source}: privacy.accounting: is "{policy.privacy.accounting.value}"; write "{accounting}" first'
        )
    try:
        with closing(open_store(policy, create=False)) as ledger:
            status, was_moved = ledger.status(), True
    except LedgerError:
        before = replace(policy.privacy, accounting=Accounting.PURE, conversion_delta=Fraction(0))
        with closing(open_store(replace(policy, privacy=before), create=False)) as ledger:
            conversion = int(policy.privacy.conversion_delta * _ATTO)
            status, was_moved = ledger.move_to_zcdp(conversion, by=login_name()), False
    click.echo("The ledger adds up rho already." if was_moved else "The ledger adds up rho from now on.")
    click.echo(_spent(status, policy.defaults.epsilon))


def _show_rations(status: Status) -> None:
    """Say what is spent of the caps of the running period: a ration inside the total, and no promise."""
    from ..engine.left import ration_text

    for scope in status.rations:
        click.echo(ration_text(scope, status))


def _rations(status: Status) -> dict[str, object]:
    unit = _ATTO if status.in_rho else _NANO
    return {"rations": [
        {"of": scope.whose, "until": scope.until, **_scope(Fraction(scope.spent, unit), Fraction(scope.cap, unit))}
        for scope in status.rations
    ]} if status.rations else {}  # fmt: skip


def _usual(settings: CommandSettings) -> Fraction:
    """Return the epsilon of a usual statement."""
    from ..policy import load_policy

    return load_policy(settings.policy_path).defaults.epsilon


def _spent(status: Status, usual: Fraction) -> str:
    from ..engine.left import left_text, spent_text

    if not status.in_rho:
        return _line(_epsilon(status.epsilon_spent_nano), _epsilon(status.epsilon_cap_nano))
    spent = spent_text(
        status.epsilon_spent_nano,
        status.epsilon_cap_nano,
        status.rho_spent_atto,
        status.rho_cap_atto,
        status,
    )
    return f"{spent}; {left_text(status, usual)}"


def _atto(units: int) -> Fraction:
    return Fraction(units, _ATTO)


def _epsilon(nano: int) -> Fraction:
    return Fraction(nano, _NANO)


def _scope(spent: Fraction, cap: Fraction | None) -> dict[str, float | None]:
    left = None if cap is None else float(max(cap - spent, Fraction(0)))
    return {"spent": float(spent), "cap": None if cap is None else float(cap), "left": left}


def _line(spent: Fraction, cap: Fraction | None) -> str:
    if cap is None:
        return f"{decimal_text(spent)} spent, no cap of their own"
    left = max(cap - spent, Fraction(0))
    return f"{decimal_text(spent)} of {decimal_text(cap)} spent, {decimal_text(left)} left"

"""What is spent and what is left, for everybody together and for each analyst: as lines, and as JSON.

House rule: under zCDP no two epsilons are added or subtracted (`dpsql.engine.answer`); what is left is told in
statements there, and in both where epsilon is what is added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from .text_cells import decimal_text, terminal_text

if TYPE_CHECKING:
    from ..budget import Scope, Status

__all__ = ["dataset_text", "spending_body", "spending_lines"]

_NANO = 10**9
_ATTO = 10**18


def dataset_text(status: Status, usual: Fraction) -> str:
    """Return what everybody together has spent and what is left; `usual`: the epsilon of a usual statement."""
    from ..engine.answer import in_statements, spent_text

    if not status.in_rho:
        spent, cap = _of(status.epsilon_spent_nano, _NANO), _of(status.epsilon_cap_nano, _NANO)
        return f"{_spent_of(spent, cap)}; {in_statements(status, usual)}"
    spent_nano, cap_nano = status.epsilon_spent_nano, status.epsilon_cap_nano
    so_far = spent_text(spent_nano, cap_nano, status.rho_spent_atto, status.rho_cap_atto, status)
    return f"{so_far}; {in_statements(status, usual)}"


def spending_lines(status: Status, analysts: Mapping[str, Status], usual: Fraction) -> list[str]:
    """Return the lines of `dpsql budget show`: the dataset's, each analyst's, the epoch."""
    from ..engine.answer import ration_text

    delta = _spent_of(_of(status.delta_spent_atto, _ATTO), _of(status.delta_cap_atto, _ATTO))
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
    rho = {"rho": _scope(status.rho_spent_atto, status.rho_cap_atto, _ATTO)}
    epsilon = _scope(status.epsilon_spent_nano, status.epsilon_cap_nano, _NANO)
    if status.in_rho:
        del epsilon["left"]
    return {
        "epsilon": epsilon,
        **({"conversion_delta": status.conversion_delta_atto / _ATTO, **rho} if status.in_rho else {}),
        "delta": _scope(status.delta_spent_atto, status.delta_cap_atto, _ATTO),
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
        text = f"epsilon {decimal_text(_of(own.analyst_spent_nano, _NANO))} spent, no cap of their own"
    else:
        text = f"epsilon {_spent_of(_of(own.analyst_spent_nano, _NANO), _of(own.analyst_cap_nano, _NANO))}"
    return text if own.analyst_cap_nano is None else f"{text}; {in_statements(own, usual)}"


def _own_rations(status: Status, own: Status) -> tuple[Scope, ...]:
    return own.rations[len(status.rations) :]


def _analyst_body(name: str, own: Status, usual: Fraction, status: Status) -> dict[str, object]:
    from ..engine.answer import statements_left

    rations = [_ration_body(scope, own) for scope in _own_rations(status, own)]
    spent = (
        {"rho": _scope(own.analyst_rho_spent_atto, own.analyst_rho_cap_atto, _ATTO)}
        if own.in_rho
        else dict(_scope(own.analyst_spent_nano, own.analyst_cap_nano, _NANO))
    )
    left = {"statements_left": statements_left(own, usual)}
    return {"name": name, **spent, **left, **({"rations": rations} if rations else {})}


def _ration_body(scope: Scope, status: Status) -> dict[str, object]:
    return {
        "of": scope.whose,
        "until": scope.until,
        **_scope(scope.spent, scope.cap, _ATTO if status.in_rho else _NANO),
    }


def _scope(spent: int, cap: int | None, unit: int) -> dict[str, float | None]:
    left = None if cap is None else max(cap - spent, 0) / unit
    return {"spent": spent / unit, "cap": None if cap is None else cap / unit, "left": left}


def _spent_of(spent: Fraction, cap: Fraction) -> str:
    return f"{decimal_text(spent)} of {decimal_text(cap)} spent, {decimal_text(max(cap - spent, Fraction(0)))} left"


def _of(amount: int, unit: int) -> Fraction:
    return Fraction(amount, unit)

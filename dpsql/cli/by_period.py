"""What is spent and what is left by period of the data, as lines, as JSON and as bars (soundness.md 3.22)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_of_pure
from ..policy.periods import MOST_NUMBER, UNDATED, first_day, number_of, run_text
from .terminal import decimal_text

if TYPE_CHECKING:
    from ..budget import LedgerStore, Odometer, Promise, Status
    from ..budget.stretches import Stretch

__all__ = ["period_body", "period_lines"]


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

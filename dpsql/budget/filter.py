"""The filter: refuses a charge that does not fit under every cap.

A running sum with a cap on it stays sound when each charge is chosen after seeing earlier answers: of epsilons
(soundness.md 3.1, sequential composition) and of rho (3.11). Spent, caps and charge are public: a refusal here tells of
other statements, never of the data.

House rule: what is added up is what has the cap. An epsilon that was converted is shown, never added to another.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..errors import BudgetExhausted, LedgerError
from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_within
from ..policy import Accounting
from .claim import Charge, delta_text, epsilon_nano_of, epsilon_text, rho_text, shown_epsilon
from .entry import Promise, Scope, Status

__all__ = ["cap_of", "in_accounting", "refuse_over_cap", "refuse_past"]

_HINT = "repeat an earlier question (free), ask with less, or ask the owner to grant more"
_OWNER_HINT = (
    "repeat an earlier question (free), ask with less, or raise the cap for ever with dpsql budget grant, by which "
    "more can be learned about each person"
)


def in_accounting(status: Status, promise: Promise, analyst_rho_atto: int = 0) -> Status:
    """Return the status of a ledger that is kept as `promise` says, from that of one that is kept in epsilon.

    Under zCDP each cap in epsilon is one in rho, at the same part of delta; the rest of delta is for thresholds.
    """
    if promise.accounting is Accounting.PURE:
        return status
    conversion = promise.conversion_delta_atto
    delta = Fraction(conversion, ATTO)
    thresholds = status.delta_cap_atto - conversion

    def cap(epsilon_nano: int) -> int:
        return cap_of(epsilon_nano, promise, status.delta_cap_atto)

    def epsilon(rho_atto: int) -> int:
        return int(epsilon_of_rho(rho_atto, delta) * NANO)

    own = status.analyst_cap_nano
    return replace(
        status,
        accounting=promise.accounting,
        conversion_delta_atto=conversion,
        epsilon_spent_nano=epsilon(status.rho_spent_atto),
        delta_cap_atto=max(0, thresholds),
        rho_cap_atto=cap(status.epsilon_cap_nano),
        analyst_spent_nano=epsilon(analyst_rho_atto),
        analyst_rho_spent_atto=analyst_rho_atto,
        analyst_rho_cap_atto=None if own is None else cap(own),
    )


def cap_of(epsilon_nano: int, promise: Promise, delta_cap_atto: int) -> int:
    """Return what a cap in epsilon is in what a ledger adds up."""
    if promise.accounting is Accounting.PURE:
        return epsilon_nano
    if delta_cap_atto < promise.conversion_delta_atto:
        return 0  # the owner has lowered delta below what the ledger converts at
    return rho_within(Fraction(epsilon_nano, NANO), Fraction(promise.conversion_delta_atto, ATTO))


def refuse_over_cap(status: Status, charge: Charge) -> None:
    """Raise BudgetExhausted unless `charge` fits under the dataset's cap, its delta, and then the other caps.

    Requires: `status` was read in the transaction that will record the charge.
    Ensures: on return, spent + charge <= cap in every scope.
    """
    everybody, *others = status.scopes
    _refuse_over(everybody, charge, status.accounting)
    delta_left = status.delta_cap_atto - status.delta_spent_atto
    if charge.delta_atto > delta_left:
        needs, left = delta_text(charge.delta_atto), delta_text(max(0, delta_left))
        raise BudgetExhausted(
            f"needs delta {needs}, left {left} of the dataset's budget", hint=_HINT, owner_hint=_OWNER_HINT
        )
    for scope in others:
        _refuse_over(scope, charge, status.accounting, status.clock)


def _refuse_over(scope: Scope, charge: Charge, accounting: Accounting, clock: str = "") -> None:
    if accounting is Accounting.PURE:
        if charge.epsilon_nano > scope.cap - scope.spent:
            needs, left = epsilon_text(charge.epsilon_nano), epsilon_text(scope.left)
            raise BudgetExhausted(
                f"needs epsilon {needs}, left {left} of {scope.whose} budget", hint=_hint(scope, clock),
                owner_hint=_owner_hint(scope, clock),
            )  # fmt: skip
    elif charge.rho_atto > scope.cap - scope.spent:
        needs = f"epsilon {shown_epsilon(charge.rho_atto)} (rho {rho_text(charge.rho_atto)})"
        fits = f"at most epsilon {epsilon_text(epsilon_nano_of(scope.left))} (rho {rho_text(scope.left)})"
        raise BudgetExhausted(
            f"needs {needs}; {fits} fits what is left of {scope.whose} budget", hint=_hint(scope, clock),
            owner_hint=_owner_hint(scope, clock),
        )  # fmt: skip


def _hint(scope: Scope, clock: str) -> str:
    if not scope.until:
        return _HINT
    if clock:
        return f"{clock}: the owner looks at it with dpsql budget clock"
    return f"repeat an earlier question (free), ask with less, or wait until {scope.until} (UTC)"


def _owner_hint(scope: Scope, clock: str) -> str | None:
    if not scope.until:
        return _OWNER_HINT
    return f"{clock}: look at it with dpsql budget clock" if clock else None


def refuse_past(status: Status) -> None:
    """Raise LedgerError unless all that was spent fits under the caps of a ledger that is to be kept in rho."""
    spent, cap = status.rho_spent_atto, status.rho_cap_atto
    if spent > cap:
        raise LedgerError(
            f"what was spent is rho {rho_text(spent)}, and epsilon {epsilon_text(status.epsilon_cap_nano)} at delta "
            f"{delta_text(status.conversion_delta_atto)} holds rho {rho_text(cap)}",
            hint='the ledger stays as it is: write accounting = "pure", or raise privacy.epsilon first',
        )
    if status.delta_spent_atto > status.delta_cap_atto:
        raise LedgerError(
            f"groups found in the data have spent delta {delta_text(status.delta_spent_atto)}, and beside the "
            f"conversion there is {delta_text(status.delta_cap_atto)} for them",
            hint='the ledger stays as it is: write accounting = "pure", or a smaller privacy.conversion_delta',
        )

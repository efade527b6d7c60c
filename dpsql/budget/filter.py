"""The filter: refuses a charge that does not fit under every cap.

A running sum with a cap on it stays sound when each charge is chosen after seeing earlier answers: of epsilons
(soundness.md 3.1, sequential composition) and of rho (3.11). Spent, caps and charge are public: a refusal here tells of
other statements, never of the data.

House rule: what is added up is what has the cap. An epsilon that was converted is shown, never added to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ..errors import BudgetExhausted, LedgerError
from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_within
from ..policy import Accounting, Slices
from ..policy.periods import UNDATED, first_day, period_text, run_text
from ..records import dataclass
from .claim import Charge, delta_text, epsilon_nano_of, epsilon_text, rho_text, shown_epsilon
from .entry import Promise, Scope, Status, Sums
from .odometer import Odometer

__all__ = [
    "Piece",
    "cap_of",
    "in_accounting",
    "refuse_over_cap",
    "refuse_over_person",
    "refuse_over_slices",
    "refuse_past",
]

_HINT = "repeat an earlier question (free), ask with less, or ask the owner to grant more"
_OWNER_HINT = (
    "repeat an earlier question (free), ask with less, or raise the cap for ever with dpsql budget grant, by which "
    "more can be learned about each person"
)

_WINDOW_HINT = (
    "repeat an earlier question (free), ask with less, or raise windows and person in [privacy.time]"
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
    if charge.amount(in_rho=accounting is not Accounting.PURE) <= scope.cap - scope.spent:
        return
    if accounting is Accounting.PURE:
        needs, left = epsilon_text(charge.epsilon_nano), epsilon_text(scope.left)
        told = f"needs epsilon {needs}, left {left} of {scope.whose} budget"
    else:
        needs = f"epsilon {shown_epsilon(charge.rho_atto)} (rho {rho_text(charge.rho_atto)})"
        fits = f"at most epsilon {epsilon_text(epsilon_nano_of(scope.left))} (rho {rho_text(scope.left)})"
        told = f"needs {needs}; {fits} fits what is left of {scope.whose} budget"
    raise BudgetExhausted(told, hint=_hint(scope, clock), owner_hint=_owner_hint(scope, clock))


# --- by slices: soundness.md 3.22 -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Some periods that a claim reaches, all charged alike: what each of them has spent, by everybody and by the
    analyst, and what it is to be charged.
    """

    first: int
    last: int
    everybody: Sums
    own: Sums
    charge: Sums


def refuse_over_slices(
    caps: Status, pieces: Sequence[Piece], charge: Charge, promise: Promise, column: str
) -> None:
    """Raise BudgetExhausted unless each of the slices that a claim reaches has room for what it is charged, and the
    caps of the running period, which are of no slice, for `charge`, all that the claim costs.

    `caps`: a status in which nothing is spent of slices. `column`: of time, as people write it. Requires and ensures:
    as `refuse_over_cap`, in each slice.
    """
    everybody, *others = caps.scopes
    own = [scope for scope in others if scope not in caps.rations]

    kind = 2 if caps.in_rho else 0
    words = _Words(caps, pieces, promise, column)
    for scope, of in ((everybody, kind), (None, 1)):
        cap = caps.delta_cap_atto if scope is None else scope.cap
        over = [piece for piece in pieces if piece.everybody[of] + piece.charge[of] > cap]
        words.refuse(scope, [(piece, piece.charge[of], cap - piece.everybody[of]) for piece in over])
    for scope in own:
        over = [piece for piece in pieces if piece.own[kind] + piece.charge[kind] > scope.cap]
        words.refuse(scope, [(piece, piece.charge[kind], scope.cap - piece.own[kind]) for piece in over])
    for scope in caps.rations:
        _refuse_over(scope, charge, caps.accounting, caps.clock)


@dataclass(frozen=True, slots=True)
class _Words:
    """What is said where slices have no room."""

    caps: Status
    pieces: Sequence[Piece]
    promise: Promise
    column: str

    def refuse(self, scope: Scope | None, lacking: Sequence[tuple[Piece, int, int]]) -> None:
        """Raise BudgetExhausted where some pieces lack room: (which, needs, has). `scope`: None for delta."""
        if not lacking:
            return
        least = max(0, min(has for _, _, has in lacking))
        most = max(needs for _, needs, _ in lacking)
        where = self._slices([piece for piece, _, _ in lacking])
        told = self._text(where)
        verb = "has" if where.count == 1 and not where.is_undated else "have"
        if scope is None:
            cap, left, needs = (delta_text(amount) for amount in (self.caps.delta_cap_atto, least, most))
            left, needs = f"delta {left}", f"delta {needs}"
        elif self.caps.in_rho:
            cap = f"rho {rho_text(scope.cap)}"
            left = f"rho {rho_text(least)} (at most epsilon {epsilon_text(epsilon_nano_of(least))})"
            needs = f"rho {rho_text(most)} (epsilon {shown_epsilon(most)})"
        else:
            cap, left, needs = epsilon_text(scope.cap), f"epsilon {epsilon_text(least)}", epsilon_text(most)
        whose = "" if scope is None or scope == self.caps.scopes[0] else " your own"
        raise BudgetExhausted(
            f"{told} {verb} {left} left of{whose} {cap}, and this needs {needs}",
            hint=self._hint(where), owner_hint=_OWNER_HINT,
        )  # fmt: skip

    def _slices(self, pieces: Sequence[Piece]) -> Slices:
        dated = [piece for piece in pieces if piece.first != UNDATED]
        runs = Slices.joined((piece.first, piece.last) for piece in dated)
        return Slices(runs, is_undated=len(dated) < len(pieces))

    def _text(self, slices: Slices) -> str:
        period, since = self.promise.period, self.promise.since
        assert period is not None, "kept by slices"
        return slices.text(period, since)

    def _hint(self, lacking: Slices) -> str:
        """Say which filter leaves out what has no room."""
        period = self.promise.period
        assert period is not None, "kept by slices"
        asked = self._slices(self.pieces)
        column = self.column or "its time"
        if not lacking.is_undated and lacking.periods and asked.periods:
            top, bottom = lacking.periods[-1][1], lacking.periods[0][0]
            if asked.periods[-1][1] > top:
                day = first_day(period, top + 1)
                return f"ask from {period_text(period, top + 1)} on: AND {column} >= '{day}'"
            if asked.periods[0][0] < bottom:
                day = first_day(period, bottom)
                return f"ask up to {period_text(period, bottom - 1)}: AND {column} < '{day}'"
        return f"ask of another {period.value}, {_HINT}"


def refuse_over_person(
    odometer: Odometer,
    charges: Sequence[tuple[Slices, Charge]],
    windows: Sequence[tuple[int, int]],
    person: int | None,
    promise: Promise,
) -> None:
    """Raise BudgetExhausted where a person would lose more than the caps over several periods allow.

    `windows`: how many periods in a row, and the cap; `person`: the cap over all, in what is added up. Requires: the
    odometer has read all records.
    """
    period, since = promise.period, promise.since
    assert period is not None, "kept by slices"
    text = rho_text if odometer.in_rho else epsilon_text
    unit = "rho" if odometer.in_rho else "epsilon"
    hint = f"ask of fewer {period.value}s, {_HINT}"
    for length, cap in windows:
        found = odometer.after(length, charges)
        if found is not None and found.amount > cap:
            where = run_text(period, found.first, found.first + length - 1, since)
            raise BudgetExhausted(
                f"who is in all of {where} would lose {unit} {text(found.amount)}, and over {length} {period.value}s "
                f"it is at most {text(cap)}", hint=hint, owner_hint=_WINDOW_HINT,
            )  # fmt: skip
    if person is not None and (ever := odometer.ever_after(charges)) > person:
        raise BudgetExhausted(
            f"who is in every {period.value} so far would lose {unit} {text(ever)}, and it is at most {text(person)}",
            hint=hint, owner_hint=_WINDOW_HINT,
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

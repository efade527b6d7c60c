"""The filter: refuses a charge that does not fit under every cap.

A running sum with a cap on it stays sound when each charge is chosen after seeing earlier answers: of epsilons
(soundness.md 3.1, sequential composition) and of rho (3.11). Spent, caps and charge are public: a refusal here tells
of other statements, never of the data.

Periods are caps for a day, week, month or year inside the total: rationing, and no guarantee (soundness.md 3.12).

House rules:

1. What is added up is what has the cap. An epsilon that was converted is shown, never added to another.
2. Only the total promises anything: a clock that is wrong moves rations from one period to another, and adds nothing.
3. An entry belongs to the period in which its record says that it was charged, in UTC. It is that of the one moment by
   which its charge was let through.
4. The ledger's moment comes from its records, and goes back by the owner's act alone. A clock moves it on, by
   a day at most from one record to the next.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction

from ..errors import BudgetExhausted, LedgerError
from ..mechanisms import ATTO, NANO, epsilon_of_rho, rho_within
from ..policy import Accounting, Period, Slices
from ..policy.periods import UNDATED, end_of, first_day, number_of, period_text, run_text
from ..records import dataclass
from .chain import moment_of, passed
from .claim import ZERO, Charge, delta_text, epsilon_nano_of, epsilon_text, rho_text, shown_epsilon
from .entry import Promise, Scope, Status, Sums
from .slices import Odometer

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


LONGEST_STEP = timedelta(days=1)
"""How far a clock may be beyond the last moment that the ledger knows, without the owner's word."""
KEPT_HOURS = 12
"""After so long without a record a running server leaves one, so that a quiet week is no such step."""


def _this(period: Period) -> str:
    return "today's" if period is Period.DAY else f"this {period.value}'s"


@dataclass(frozen=True, slots=True)
class Ration:
    """What may be spent in each period: by everybody together (None: no cap but the total), and by analysts, in 1e-9.

    `carries`: what is left over may be spent later.
    """

    period: Period
    epsilon_nano: int | None
    analysts: Mapping[str, int]
    carries: bool = False


@dataclass
class Rations:
    """What was spent in each period, from the records of a ledger as far as they were read. Safe for threads.

    `highest`: the latest moment that a record has, or the one that the owner has confirmed since.
    """

    ration: Ration
    read_to: int = -1
    highest: datetime | None = None
    _spent: dict[tuple[int, str], Charge] = field(default_factory=dict)
    _first: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, rows: Iterable[tuple[str, str, int, int, int, int, str]]) -> None:
        """Take in, first of all, what the ledger has added up: (day, analyst, epsilon, delta, rho, number of the last
        record in it, highest moment up to there).
        """
        with self._lock:
            if self.read_to >= 0:  # another thread came first
                return
            for day, name, epsilon, delta, rho, number, moment in rows:
                period = number_of(self.ration.period, date.fromisoformat(day))
                self._first = period if self._first is None else min(self._first, period)
                known = self._spent.get((period, name), ZERO)
                self._spent[period, name] = known + Charge(int(epsilon), int(delta), int(rho))
                if number > self.read_to:
                    self.read_to, self.highest = number, moment_of(moment)

    def read(self, rows: Iterable[tuple[int, str]]) -> None:
        """Take in records in order of their numbers: (number, body). What was read already is left out."""
        with self._lock:
            for number, body in rows:
                if number <= self.read_to:
                    continue
                self.read_to = number
                record = json.loads(body)
                at = moment_of(record["at"])
                self.highest = passed(self.highest, record["kind"], at, is_owners=bool(record.get("by")))
                period = number_of(self.ration.period, at.date())
                self._first = period if self._first is None else min(self._first, period)
                if record["kind"] == "entry":
                    charge = Charge(record["epsilon_nano"], record["delta_atto"], record["rho_atto"])
                    key = period, record["analyst"]
                    known = self._spent.get(key)
                    self._spent[key] = charge if known is None else known + charge

    def moment(self, clock: str) -> tuple[str, str]:
        """Return the moment that something is recorded at when a machine's clock says `clock`; and where it is another
        than that, in words, how they differ.
        """
        with self._lock:
            highest = self.highest
        if highest is None:
            return clock, ""
        ahead = moment_of(clock) - highest
        if timedelta(0) <= ahead <= LONGEST_STEP:
            return clock, ""
        way = "before" if ahead < timedelta(0) else "more than a day after"
        kept = highest.isoformat(timespec="seconds")
        return kept, f"the clock says {clock}, which is {way} the ledger's last moment, {kept}"

    def scopes(
        self, status: Status, analyst: str | None, at: str, cap_of: Callable[[int], int]
    ) -> tuple[Scope, ...]:
        """Return the caps of the period that a time is in; `cap_of`: of an epsilon in 1e-9, in what is added up."""
        ration, day = self.ration, moment_of(at).date()
        now = number_of(ration.period, day)
        until = end_of(ration.period, day).isoformat()
        with self._lock:
            periods = max(1, now - (now if self._first is None else self._first) + 1) if ration.carries else 1
            counted = [
                (name, charge.amount(in_rho=status.in_rho))
                for (period, name), charge in self._spent.items()
                if ration.carries or period == now
            ]
        found = []
        if ration.epsilon_nano is not None:
            spent = sum(amount for _, amount in counted)
            found.append(Scope(_this(ration.period), spent, periods * cap_of(ration.epsilon_nano), until))
        if analyst is not None and analyst in ration.analysts:
            spent = sum(amount for name, amount in counted if name == analyst)
            cap = periods * cap_of(ration.analysts[analyst])
            found.append(Scope(f"your own {ration.period.value}'s", spent, cap, until))
        return tuple(found)

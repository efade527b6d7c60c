"""Periods: caps for a day, week, month or year inside the total. Rationing, and no guarantee (soundness.md 3.12).

House rules:

1. Only the total promises anything: a clock that is wrong moves rations from one period to another, and adds nothing.
2. An entry belongs to the period in which its record says that it was charged, in UTC. It is that of the one moment by
   which its charge was let through.
3. The ledger's moment comes from its records, and goes back by the owner's act alone. A clock moves it on, by
   a day at most from one record to the next.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import date, datetime, timedelta

from ..policy import Period
from ..policy.periods import end_of, number_of
from ..records import dataclass
from .chain import moment_of, passed
from .claim import ZERO, Charge
from .entry import Scope, Status

__all__ = ["KEPT_HOURS", "LONGEST_STEP", "Ration", "Rations"]

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

"""A ledger that is kept by periods: what a look at what is left, and a charge, take beside one kept as a whole."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

from benchmarks.figure import Figure, Size
from dpsql.budget import Caps, Charge, Claim, LedgerStore, MeasurementClaim, Promise, open_store
from dpsql.mechanisms import Laplace
from dpsql.policy import Period, Slices
from dpsql.policy.periods import number_of

__all__ = ["measure"]

_DAYS = 3_650
_FIRST = number_of(Period.DAY, date(2019, 1, 1))
_BY_DAY = Promise(period=Period.DAY, since=date(2019, 1, 1))
_LENGTHS = (1, 1, 7, 7, 30, 30, 90, 365)
_NAMES = ("alice", "bob", "eve")


def measure(size: Size) -> Iterator[Figure]:
    """Yield the milliseconds of looks and charges over ten years of days, the most runs, and what a charge adds."""
    count = 20_000 if size.rows > 1_000_000 else 400
    by_day, looks = _charge(size.folder / "by-day.db", count, _BY_DAY)
    whole, statuses = _charge(size.folder / "whole.db", count, Promise())
    where = f"{count:,} statements over {_DAYS:,} days"
    least = 0.1 if count > 1000 else None
    yield Figure(
        "by day: a look at what is left, beside a status", 1000 * (looks - statuses), least, "ms", where
    )
    yield Figure(
        "by day: a charge, beside that of a ledger as a whole", 1000 * (by_day - whole), 1, "ms", where
    )
    yield Figure("by day: a charge", by_day / whole, None, "× that of a ledger as a whole", where)


def _charge(path: Path, count: int, promise: Promise) -> tuple[float, float]:
    """Charge so many statements; return the processor's seconds of a charge, and of a look before it."""
    for file in path.parent.glob(path.name + "*"):
        if file.is_file():
            file.unlink()
    caps = Caps(10**15, 10**18, dict.fromkeys(_NAMES))
    rng, looks, spent = random.Random(35), 0.0, 0.0
    with closing(open_store(f"sqlite:{path}", "days", caps, create=True, log=path, promise=promise)) as store:
        for number in range(count):
            slices = _slices(rng)
            wanted = MeasurementClaim((), Laplace(Fraction(10)), Charge.pure(10**8), "", slices=slices)
            if promise.period is None:
                wanted = replace(wanted, slices=None)
            looks += _seconds_of_look(store, None if promise.period is None else slices)
            began = time.process_time()
            store.reserve(Claim(_NAMES[number % 3], "SELECT 1", (wanted,)))
            spent += time.process_time() - began
    return spent / count, looks / count


def _seconds_of_look(store: LedgerStore, slices: Slices | None) -> float:
    began = time.process_time()
    if slices is None:
        store.status()
    else:
        store.left_of(slices)
    return time.process_time() - began


def _slices(rng: random.Random) -> Slices:
    length = rng.choice(_LENGTHS)
    last = _FIRST + rng.randrange(length - 1, _DAYS)
    return Slices(((last - length + 1, last),))

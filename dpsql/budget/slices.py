"""What is spent of each slice, runs of periods that were charged alike; and what a person in several may have lost.

House rules:

1. Pure: a ledger's rows go in and come out; `Steps` keeps in memory what a ledger keeps in its table.
2. A run ends where a charge began or ended, and nowhere else. So runs are a function of the set of charges, in
   whatever order they came, and by whomever they were made.
3. The run of undated rows is `UNDATED` alone; no charge goes over its end.
4. The caps on what a person may have lost (soundness.md 3.22) are beside those of the slices: they only refuse more,
   and no promise about one slice rests on them.
5. What is counted comes from the ledger's records, in the order of their numbers: a ledger that is put back from a
   backup, or made anew from its log, has lost as much. Where records are missing, the sums of a log's later file stand
   for them, and count for no less.
6. One number for each place where a window may begin, and nothing cleverer.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from decimal import MAX_EMAX, ROUND_CEILING, Decimal, localcontext

from ..policy import Over, Slices
from ..policy.periods import MOST_NUMBER, UNDATED
from ..records import dataclass
from .claim import Charge
from .entry import Division, Entry, Record, Run, Segment, Sums, add


def added(met: Sequence[Run], first: int, last: int, more: Sums) -> list[Run]:
    """Return the runs that stand in the place of those that meet first to last, each period of which is charged more.

    `met`: these, in order.
    """
    found: list[Run] = []
    start = first
    for begin, end, sums in met:
        if begin < first:
            found.append((begin, first - 1, sums))
            begin = first
        if start < begin:
            found.append((start, begin - 1, more))
        found.append((begin, min(end, last), add(sums, more)))
        if last < end:
            found.append((last + 1, end, sums))
        start = end + 1
    if start <= last:
        found.append((start, last, more))
    return found


def twice(charge: Sums) -> Sums:
    """Return what a charge between databases with one person more or less is where a part of the person's rows is
    taken away: the person goes, and comes back without it. So (e, d) twice in a row is (2e, d(1 + exp(e))), and rho is
    4 times as much (soundness.md 3.22).
    """
    epsilon, delta, rho = charge
    with localcontext(prec=60, rounding=ROUND_CEILING, Emax=MAX_EMAX):
        grown = delta * (1 + (Decimal(epsilon) / 10**9).exp()) if delta else Decimal(0)
        above = grown * (1 + Decimal("1e-40"))  # `exp` rounds to the nearest
        return 2 * epsilon, int(above.to_integral_value(ROUND_CEILING)), 4 * rho


class Steps:
    """What is spent by period: disjoint runs, in order."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Requires: the runs are disjoint and in order."""
        self._runs = list(runs)
        self._firsts = [first for first, _, _ in self._runs]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and self._runs == other._runs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Steps({self._runs})"

    def copy(self) -> Steps:
        """Return one that goes on by itself."""
        return Steps(self._runs)

    def add(self, first: int, last: int, more: Sums) -> None:
        """Charge each period from first to last."""
        start, stop = self._place(first, last)
        runs = added(self._runs[start:stop], first, last, more)
        self._runs[start:stop] = runs
        self._firsts[start:stop] = [begin for begin, _, _ in runs]

    def merge(self, other: Iterable[Run]) -> None:
        """Charge all that another was charged, too."""
        for run in other:
            self.add(*run)

    def meet(self, first: int, last: int) -> list[Run]:
        """Return the runs that have a period in common with first to last."""
        start, stop = self._place(first, last)
        return self._runs[start:stop]

    def _place(self, first: int, last: int) -> tuple[int, int]:
        start = bisect_right(self._firsts, first) - 1
        if start < 0 or self._runs[start][1] < first:
            start += 1
        return start, bisect_left(self._firsts, last + 1)

    @property
    def newest(self) -> int | None:
        """The last period that was charged, None where none was."""
        if not self._runs or self._runs[-1][1] == UNDATED:
            return None
        return self._runs[-1][1]


@dataclass(frozen=True, slots=True)
class Worst:
    """The window in which most was lost, or is: the first of its periods, how much, in what is added up."""

    first: int
    amount: int


@dataclass
class Odometer:
    """What a person may have lost in each window of so many periods (`lengths`), and ever. Safe for threads.

    `before`: the number of the slice before the first period; `in_rho`: rho is what is added up.
    """

    before: int
    lengths: tuple[int, ...]
    in_rho: bool
    read_to: int = -1
    ever: int = 0
    _lost: dict[int, dict[int, int]] = field(default_factory=dict)
    _everywhere: int = 0
    _begun: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read(self, records: Iterable[tuple[int, Record]]) -> None:
        """Take in records in order of their numbers. What was read already is left out."""
        with self._lock:
            for number, record in records:
                if number <= self.read_to:
                    continue
                self.read_to = number
                match record:
                    case Entry(slices=Slices() as reached, charge=charge):
                        self._add(reached, charge.amount(in_rho=self.in_rho))
                    case Division(slices=reached):
                        for _, sums in record.spent:
                            self._add(reached, self._kind(sums))
                    case Segment() if record.log not in self._begun:
                        self._take_sums(record)
                    case _:
                        pass
                if (log := getattr(record, "log", None)) is not None:
                    self._begun.add(log)

    def _kind(self, sums: Sums) -> int:
        return sums[2] if self.in_rho else sums[0]

    def _take_sums(self, segment: Segment) -> None:
        """Count what the files of a log before this one had. A statement that adds up over k periods loses k² times
        rho, which is at most as many times its sum over them as a window, or all that the log had, has periods.
        """
        for _, runs in segment.slices:
            each = [
                (
                    Slices(() if first == UNDATED else ((first, last),), is_undated=first == UNDATED),
                    self._kind(sums),
                )
                for first, last, sums in runs
            ]
            periods = sum(self._count(reached) for reached, _ in each)
            for reached, amount in each:
                for length, count in self._windows(reached):
                    lost = self._lost.setdefault(length, {})
                    for begin, number in count.items():
                        lost[begin] = lost.get(begin, 0) + number * amount * (length if self.in_rho else 1)
                self.ever += amount * self._count(reached) * (periods if self.in_rho else 1)

    def _add(self, reached: Slices, amount: int) -> None:
        if reached.periods and reached.periods[-1][1] == MOST_NUMBER:  # all that are to come: of a division
            self._everywhere += amount
        else:
            for length, lost in self.windows(reached, amount):
                known = self._lost.setdefault(length, {})
                for begin, more in lost.items():
                    known[begin] = known.get(begin, 0) + more
        self.ever += self.over_all(reached, amount)

    def over_all(self, reached: Slices, amount: int) -> int:
        """Return what a person who is in every slice loses by a charge."""
        return self._lost_by(reached.over, self._count(reached), amount)

    def windows(self, reached: Slices, amount: int) -> list[tuple[int, dict[int, int]]]:
        """Return what a person who is in every period of a window loses by a charge, by length, by its first period."""
        return [
            (length, {begin: self._lost_by(reached.over, number, amount) for begin, number in count.items()})
            for length, count in self._windows(reached)
        ]

    def _lost_by(self, over: Over, periods: int, amount: int) -> int:
        match over:
            case Over.ONCE:
                return amount
            case Over.EACH:
                return periods * amount
            case Over.ALL:
                return periods * amount * (periods if self.in_rho else 1)

    def _runs(self, reached: Slices) -> list[tuple[int, int]]:
        return [(max(first, self.before), last) for first, last in reached.periods if last >= self.before]

    def _count(self, reached: Slices) -> int:
        return sum(last - first + 1 for first, last in self._runs(reached)) + reached.is_undated

    def _windows(self, reached: Slices) -> list[tuple[int, dict[int, int]]]:
        """Return how many of the periods are in each window that has one of them."""
        found = []
        for length in self.lengths:
            count: dict[int, int] = {}
            for first, last in self._runs(reached):
                for begin in range(max(self.before, first - length + 1), last + 1):
                    inside = min(last, begin + length - 1) - max(first, begin) + 1
                    count[begin] = count.get(begin, 0) + inside
            found.append((length, count))
        return found

    def lost(self, length: int, begin: int) -> int:
        """Return what was lost so far in a window."""
        with self._lock:
            return self._everywhere + self._lost.get(length, {}).get(begin, 0)

    def worst(self, length: int) -> Worst:
        """Return the window in which most was lost so far."""
        with self._lock:
            known = self._lost.get(length, {})
            begin = max(known, key=lambda place: (known[place], place), default=self.before)
            return Worst(begin, self._everywhere + known.get(begin, 0))

    def after(self, length: int, charges: Sequence[tuple[Slices, Charge]]) -> Worst | None:
        """Return the window that charges reach in which most would be lost after them; None where they reach none."""
        more: dict[int, int] = {}
        for reached, charge in charges:
            for each, lost in self.windows(reached, charge.amount(in_rho=self.in_rho)):
                for begin, amount in lost.items() if each == length else ():
                    more[begin] = more.get(begin, 0) + amount
        if not more:
            return None
        begin = max(more, key=lambda place: (self.lost(length, place) + more[place], -place))
        return Worst(begin, self.lost(length, begin) + more[begin])

    def ever_after(self, charges: Sequence[tuple[Slices, Charge]]) -> int:
        """Return what a person who is in every slice would have lost after some charges."""
        return self.ever + sum(
            self.over_all(reached, charge.amount(in_rho=self.in_rho)) for reached, charge in charges
        )

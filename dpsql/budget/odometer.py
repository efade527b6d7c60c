"""What a person may have lost who is in several periods: over so many in a row, and over all (soundness.md 3.22).

House rules:

1. These are caps beside those of the slices: they only refuse more, and no promise about one slice rests on them.
2. What is counted comes from the ledger's records, in the order of their numbers: a ledger that is put back from a
   backup, or made anew from its log, has lost as much. Where records are missing, the sums of a log's later file stand
   for them, and count for no less.
3. One number for each place where a window may begin, and nothing cleverer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import field

from ..policy import Over, Slices
from ..policy.periods import MOST_NUMBER, UNDATED
from ..records import dataclass
from .claim import Charge
from .entry import Division, Entry, Record, Segment, Sums

__all__ = ["Odometer", "Worst"]


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

"""What is spent of each slice: runs of periods that were charged alike.

House rules:

1. Pure: a ledger's rows go in and come out; `Steps` keeps in memory what a ledger keeps in its table.
2. A run ends where a charge began or ended, and nowhere else. So runs are a function of the set of charges, in whatever
   order they came, and by whomever they were made.
3. The run of undated rows is `UNDATED` alone; no charge goes over its end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from decimal import MAX_EMAX, ROUND_CEILING, Decimal, localcontext

from ..policy.periods import UNDATED
from .entry import Run, Sums, add

__all__ = ["Steps", "added", "twice"]


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

"""What was charged by period of the data, in stretches of periods that were charged alike (soundness.md 3.22)."""

from __future__ import annotations

from itertools import pairwise

from ..policy.periods import UNDATED
from ..records import dataclass
from .ledger_store import LedgerStore

MOST = 12
"""Longer lists are put together, until they are so long."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some periods in a row, by number: the least and the most that one of them was charged, in what is added up."""

    first: int
    last: int
    least: int
    most: int

    def join(self, other: Stretch) -> Stretch:
        """Return both and what lies between, where nothing is."""
        gap = [] if other.first <= self.last + 1 else [0]
        least = min(self.least, other.least, *gap)
        return Stretch(self.first, other.last, least, max(self.most, other.most))


def stretches_of(ledger: LedgerStore, in_rho: bool, most: int = MOST) -> list[Stretch]:
    """Return what was charged of each period, the oldest first, undated rows before all; at most so many stretches.

    Those that were charged alike are one; of the others the two that differ least are put together first.
    """
    kind = 2 if in_rho else 0
    found: list[Stretch] = []
    for first, last, sums in ledger.slices():
        new = Stretch(first, last, sums[kind], sums[kind])
        before = found[-1] if found and found[-1].last == first - 1 and found[-1].last != UNDATED else None
        if before is not None and before.most == new.most:
            found[-1] = before.join(new)
        else:
            found.append(new)
    undated = [one for one in found if one.last == UNDATED]
    dated = [one for one in found if one.last != UNDATED]
    while len(dated) > most:
        pairs = [one.join(other) for one, other in pairwise(dated)]
        place = min(
            range(len(pairs)),
            key=lambda at: (pairs[at].most - pairs[at].least, pairs[at].last - pairs[at].first),
        )
        dated[place : place + 2] = [pairs[place]]
    return undated + dated

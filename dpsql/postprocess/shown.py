"""Counts of people by which groups were shown: what their true number may be, given that they were.

A group found in the data is shown only when its noisy count is large enough, so the counts that are seen lean
upwards, most of all those of small groups. With Y_n the noisy count of n people, the bar at level 1 - beta of a shown y
holds each n with

    Pr[Y_n >= y | shown] > beta/2  and  Pr[Y_n <= y | shown] > beta/2:

the tests of n that do not reject. Each misses with probability beta at most, whatever n is, among the answers in
which a group of n people is shown (soundness.md 1.2). Both probabilities are of public laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mechanisms import Law
from .seeded import Seeded

__all__ = ["Showing", "shown_ends", "shown_replicas"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FINE = 512
"""Counts of people that replicas of one noisy count are chosen from, at most."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Showing:
    """The rule that shows groups: noisy counts above `first` always, `first` itself with probability `share`.

    `law` is that of the noise on the count; groups of fewer than `least` people are never shown.
    """

    law: Law
    first: int
    least: int
    share: float = 1.0

    def at_least(self, people: Integers, noisy: Integers) -> Floats:
        """Return Pr[a group of so many people is shown, and with at least this noisy count]."""
        beyond = self.law.tails(np.maximum(noisy, self.first + 1) - people)
        at_first = self.law.tails(self.first - people) - self.law.tails(self.first + 1 - people)
        found: Floats = beyond + np.where(noisy <= self.first, self.share * at_first, 0.0)
        return found

    def above(self, people: Integers, noisy: Integers) -> Floats:
        """Return Pr[at least this noisy count | shown], which grows with the number of people."""
        shown = np.maximum(self.at_least(people, np.full_like(people, self.first)), _TINY)
        found: Floats = self.at_least(people, noisy) / shown
        return found


def shown_ends(rule: Showing, noisy: npt.NDArray[Any], beta: float) -> tuple[Integers, Integers]:
    """Return the fewest and the most people of each shown group, in the shape of `noisy`, its count, which is between.

    Requires: 0 < `beta` < 1, and that each count was shown.
    """
    beta = max(beta, _TINY)
    counts, which = np.unique(noisy.astype(np.int64), return_inverse=True)
    # all of the noise's mass but what no bar counts lies within so much of the count
    reach = rule.law.upper_quantile(_fraction(beta / 1000)) + 1
    lowest = np.full_like(counts, rule.least)
    farthest = counts + reach
    fewest = _first(lowest, np.maximum(counts, rule.least), lambda n: rule.above(n, counts) > beta / 2)
    too_many = _first(
        np.maximum(counts, rule.least), farthest, lambda n: 1 - rule.above(n, counts + 1) <= beta / 2
    )
    most = np.maximum(too_many - 1, counts)
    return np.minimum(fewest, counts)[which], most[which]


def _fraction(probability: float) -> Fraction:
    return Fraction(max(probability, _TINY))


def _first(low: Integers, high: Integers, holds: Callable[[Integers], npt.NDArray[np.bool_]]) -> Integers:
    """Return element by element the first n in [low, high) from which on `holds`; `high` where there is none."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        good = holds(middle)
        open_ = low < high
        high = np.where(open_ & good, middle, high)
        low = np.where(open_ & ~good, middle + 1, low)
    return low


def shown_replicas(rule: Showing, noisy: npt.NDArray[Any], draws: int, seed: bytes) -> Integers:
    """Return numbers of people that the shown counts may stand for, shape (groups, draws): replicas of the truth.

    They are spread as the bars are: a share `beta` of them is below the low end of the bar at level 1 - 2 beta.
    """
    source = Seeded(seed)
    words = np.frombuffer(source.random_bytes(8 * len(noisy) * draws), dtype="<u8")
    uniform = (words >> np.uint64(11)).astype(np.float64).reshape(len(noisy), draws) / 2**53
    reach = rule.law.upper_quantile(_fraction(1e-6)) + 1
    counts, which = np.unique(noisy.astype(np.int64), return_inverse=True)
    found = np.empty((len(noisy), draws), dtype=np.int64)
    for place, count in enumerate(counts.tolist()):
        low = max(rule.least, min(count, rule.first) - reach)
        # a number so far below that nothing tells it from fewer stands for all of them: the least
        people = np.unique(np.linspace(low, count + reach, _FINE).astype(np.int64))
        people[0] = rule.least
        rising = np.maximum.accumulate(rule.above(people, np.full_like(people, count)))
        rows = which == place
        found[rows] = people[np.minimum(np.searchsorted(rising, uniform[rows]), len(people) - 1)]
    return found

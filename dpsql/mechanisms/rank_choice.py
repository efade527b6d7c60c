"""A value near a wanted rank, chosen by the exponential mechanism: the score, and what of the data it needs.

Rows have weights; `less` is the weight of the rows below a candidate, w that of the rows at it, n that of all. The
wanted rank is (p·n + offset)/q, so that a quantile is p/q, and the offset-th smallest or largest row has q = 1.

    d(c) = min(T, max(0, q·less - (p·n + offset), (p·n + offset) - q·(less + w)))     the ranks of c miss it by so much
    Pr[c] is proportional to exp(-gamma·d(c))

House rules (soundness.md 1.20):

1. T is public. All candidates that miss by T or more weigh the same, so the rows that miss by less are all that is
   needed of the data: the window.
2. A window is exact: it has no repr of its content, and goes no further than the choice that is made from it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final

__all__ = ["CLAMP_BITS", "Near", "RankChoice", "Window", "clamp_of", "log_above"]

CLAMP_BITS: Final = 40
"""A candidate that misses by T or more comes out with probability below 2^-40."""


@dataclass(slots=True, repr=False, eq=False)
class Window:
    """The rows of a group near the wanted rank, by value in ascending order: candidate, weight below it, weight.

    The three lists are of one length, a place for each candidate that was read. Candidates are numbered from 0; weights
    are whole, U for a row of whoever has at most R. `total`: the weight of all rows of the group; 0 where it has none.
    """

    candidates: list[int] = field(default_factory=list)
    less: list[int] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    total: int = 0

    def __repr__(self) -> str:
        return "Window(…)"


@dataclass(frozen=True, slots=True)
class Near:
    """Which rows are read: those that miss the rank (p·n + offset)/q by less than `clamp` q-ths, n all rows there."""

    p: int
    q: int
    offset: int
    clamp: int


@dataclass(frozen=True, slots=True)
class RankChoice:
    """One choice among the candidates 0 .. `candidates` - 1; all of it is public.

    A candidate stands for 2^`shift` steps of the lattice, from its lowest on. `p`, `q`, `offset`: the wanted rank.
    `clamp`: T. `gamma`: epsilon over twice the score's sensitivity.
    """

    hash_bits: ClassVar[int] = 0
    candidates: int
    shift: int
    p: int
    q: int
    offset: int
    clamp: int
    gamma: Fraction = field(repr=False)

    @property
    def read(self) -> tuple[Near, ...]:
        """What is read of all rows."""
        return (Near(self.p, self.q, self.offset, self.clamp),)

    def intervals(self, window: Window) -> tuple[list[int], list[int]]:
        """Return counts and misses d of the intervals of equal score, which cover all candidates in ascending order."""
        centre, q, clamp = self.p * window.total + self.offset, self.q, self.clamp
        counts: list[int] = []
        misses: list[int] = []
        after, below = 0, window.less[0] if window.candidates else 0
        for candidate, less, weight in zip(window.candidates, window.less, window.weights, strict=True):
            if candidate > after:
                counts.append(candidate - after)
                misses.append(min(clamp, abs(q * less - centre)))
            counts.append(1)
            below = less + weight
            misses.append(min(clamp, max(0, q * less - centre, centre - q * below)))
            after = candidate + 1
        if after < self.candidates:
            counts.append(self.candidates - after)
            misses.append(min(clamp, abs(q * below - centre)))
        return counts, misses

    def step(self, counts: Sequence[int], index: int, place: int) -> int:
        """Return the lattice step, from 0, of the candidate that has a place in an interval."""
        return (sum(counts[:index]) + place) << self.shift


def clamp_of(scale: Fraction, candidates: int) -> int:
    """Return T for weights exp(-d / `scale`): a candidate that misses by T has less than 2^-40 of all weight."""
    return math.ceil(scale * (log_above(Fraction(candidates)) + CLAMP_BITS * _LN_2))


def log_above(number: Fraction) -> Fraction:
    """Return a rational that is at least ln(number), by less than 10^-20 of it and 10^-20; `number` >= 1."""
    context = decimal.Context(prec=60, rounding=decimal.ROUND_CEILING)
    shown = context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
    return Fraction(context.ln(shown)) * (1 + Fraction(1, 10**30)) + Fraction(1, 10**30)


_LN_2: Final = log_above(Fraction(2))

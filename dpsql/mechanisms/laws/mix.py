"""The weighted mean of independent draws of one number: what is on an answer that several stored draws give together.

Each draw is exact plus noise, so the mean is exact plus the mean of the noises. It is rounded once, to the number's own
lattice, a tie towards the best draw: so the noise on it is a whole number too, and does not depend on what is exact.

For answers and bars alone: nothing is drawn by it, and no ledger has its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..law import Law, half_width_of, tails_of_mean
from ..uniform import RandomSource

__all__ = ["Mix", "mean_of", "precision_of"]

_PARTS: Final = 2**20
"""Weights are multiples of one part in so many: what that costs is below one part in 10^9 of the variance."""
_SAFE: Final = 2**41
"""Values below this are averaged in 64 bits."""

Array = npt.NDArray[Any]


def precision_of(laws: Sequence[Law]) -> Fraction:
    """Return one over the variance of the best mean of independent draws; each law's spread bounds its own."""
    return sum((1 / law.spread for law in laws), Fraction(0))


@dataclass(frozen=True, slots=True)
class Mix:
    """See `Law`, and `of` for how one is made; to six digits, as the bars of sums are.

    `weights`: positive, of sum 1, in the order of `laws`, of which the first is the best draw's.
    """

    is_additive: ClassVar[bool] = True
    laws: tuple[Law, ...]
    weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, laws: Sequence[Law]) -> Mix:
        """Return the mean with the least variance: weights by the inverse of each draw's own spread.

        Requires: the best draw's law first.
        """
        whole = precision_of(laws)
        rest = tuple(Fraction(math.floor(_PARTS / (law.spread * whole)), _PARTS) for law in laws[1:])
        return cls(tuple(laws), (1 - sum(rest, Fraction(0)), *rest))

    @property
    def _noises(self) -> list[tuple[Law, Fraction]]:
        return [noise for noise in zip(self.laws, self.weights, strict=True) if noise[1]]

    @property
    def family(self) -> str:
        return " and ".join(dict.fromkeys(law.family for law in self.laws))

    @property
    def scale(self) -> Fraction:
        """The best draw's: a mean has no parameter of its own."""
        return self.laws[0].scale

    @property
    def text(self) -> str:
        return "; ".join(
            f"{weight} of {law.text}" for law, weight in zip(self.laws, self.weights, strict=True)
        )

    @property
    def spread(self) -> Fraction:
        """Of the mean before it is rounded, which adds at most an eighth of a squared step, or next to nothing."""
        return sum((weight**2 * law.spread for law, weight in self._noises), Fraction(0))

    def half_width(self, beta: Fraction) -> int:
        """See `Law`: what is rounded is beyond m only if the mean is beyond m by half a step or more."""
        return math.floor(half_width_of(self._noises, beta) + Fraction(1, 2))

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(2 * probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        edges, upper = tails_of_mean(tuple(self._noises))
        return np.asarray(np.interp(np.asarray(at, dtype=np.float64) - 0.5, edges, upper))

    def draw(self, count: int, source: RandomSource) -> Array:
        return mean_of([law.draw(count, source) for law in self.laws], self.weights)

    @property
    def is_joint(self) -> bool:
        return any(law.is_joint for law in self.laws)

    def size_of(self, size: int) -> int:
        return self.laws[0].size_of(size)

    def at(self, coordinate: int) -> Mix:
        return Mix(tuple(law.at(coordinate) for law in self.laws), self.weights)

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """See `Law`: of what depends on each other, the noises of each draw."""
        if not self.is_joint:
            return [(self, weight) for weight in weights.values()]
        return [(law, part * weight) for one, weight in self._noises for law, part in one.noises(weights)]

    def vectors(self, size: int, count: int, source: RandomSource) -> Array:
        return mean_of([law.vectors(size, count, source) for law in self.laws], self.weights)


def mean_of(values: Sequence[Array], weights: Sequence[Fraction]) -> Array:
    """Return the weighted mean of whole numbers, exactly, then rounded; a tie goes towards the first one's.

    All `values` are of one shape and one coordinate unit, and so is the mean; int64, or Python ints where needed.

    Requires: `weights` as `Mix.of` makes them.
    """
    whole = [int(weight * _PARTS) for weight in weights]
    if not all(one.dtype == np.int64 and _is_small(one) for one in values):
        values = [np.array(one.tolist(), dtype=object) for one in values]
    best = values[0]
    # of the differences from the best: what is averaged stays small
    total = sum((one - best) * weight for one, weight in zip(values[1:], whole[1:], strict=True))
    total = np.asarray(total)
    size = np.abs(total)
    steps = -((_PARTS // 2 - size) // _PARTS)  # the nearest whole number, a half down
    mean = best + np.where(total < 0, -steps, steps)
    return mean if mean.dtype == np.int64 else _integers(mean)


def _is_small(values: Array) -> bool:
    return len(values) == 0 or (int(values.min()) > -_SAFE and int(values.max()) < _SAFE)


def _integers(values: Array) -> Array:
    try:
        return np.array(values.tolist(), dtype=np.int64)
    except OverflowError:
        return np.array(values.tolist(), dtype=object)

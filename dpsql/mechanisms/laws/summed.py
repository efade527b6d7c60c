"""The sum of independent noises of one law: what is on a number that released numbers were added up to.

For bars alone: nothing is released by it, and no ledger has its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..law import Law, half_width_of, tails_of_sum
from ..uniform import RandomSource

__all__ = ["Summed"]

_FINEST = Fraction(1, 10**8)
_MOST = 64
"""Sums of more vectors are drawn as so many, with the same variance."""


@dataclass(frozen=True, slots=True)
class Summed:
    """See `Law`: `count` noises of the law `one`, to six digits."""

    is_additive: ClassVar[bool] = True
    one: Law
    count: int

    @property
    def family(self) -> str:
        return self.one.family

    @property
    def scale(self) -> Fraction:
        return self.one.scale

    @property
    def text(self) -> str:
        return f"{self.count} of {self.one.text}"

    @property
    def spread(self) -> Fraction:
        return self.count * self.one.spread

    def half_width(self, beta: Fraction) -> int:
        return self.upper_quantile(beta / 2) - 1

    def upper_quantile(self, probability: Fraction) -> int:
        if probability < _FINEST:  # each by itself: on the safe side
            return math.ceil(half_width_of([(self.one, Fraction(1))] * self.count, 2 * probability)) + 1
        places, upper = tails_of_sum(self.one, self.count)
        if places[1] - places[0] == 1:
            return max(1, int(places[np.argmax(upper <= float(probability))]))
        return max(1, math.ceil(np.interp(-float(probability), -upper, places) + 0.5))

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        places, upper = tails_of_sum(self.one, self.count)
        shift = 0.0 if places[1] - places[0] == 1 else 0.5
        return np.interp(np.asarray(at, dtype=np.float64) - shift, places, upper)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """See `Law`, but to the digits of the tails, which are inverted."""
        words = np.frombuffer(source.random_bytes(8 * count), dtype="<u8") >> np.uint64(11)
        uniform = (words.astype(np.float64) + 0.5) / 2**53
        places, upper = tails_of_sum(self.one, self.count)
        if places[1] - places[0] == 1:
            return places[np.searchsorted(-upper, -uniform, side="right") - 1].astype(np.int64)
        drawn = np.rint(np.interp(-uniform, -upper, places))
        if places[-1] < 2.0**62:
            return drawn.astype(np.int64)
        return np.array([int(one) for one in drawn], dtype=object)

    @property
    def is_joint(self) -> bool:
        return self.one.is_joint

    def size_of(self, size: int) -> int:
        return self.one.size_of(size)

    def at(self, coordinate: int) -> Summed:
        return Summed(self.one.at(coordinate), self.count)

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(Summed(law, self.count), weight) for law, weight in self.one.noises(weights)]

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        if not self.is_joint:
            return self.draw(size * count, source).reshape(size, count)
        many = min(self.count, _MOST)
        total = sum(self.one.vectors(size, count, source).astype(np.float64) for _ in range(many))
        return np.rint(np.asarray(total) * math.sqrt(self.count / many)).astype(np.int64)

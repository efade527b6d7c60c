"""What is on a number that was fitted to others: a weighted sum of independent noises, rounded to the number's lattice.

For bars alone: nothing is drawn by it, and no ledger has its text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..law import Independent, Law, half_width_of, tails_of_mean
from ..uniform import RandomSource
from .summed import Summed

__all__ = ["Fitted"]

_PARTS: Final = 2**20
"""Weights are multiples of one part in so many, as those of means are."""
_MOST: Final = 24
"""Most different weights: what has less is taken for as many noises that weigh alike, with the same variance."""


@dataclass(frozen=True, slots=True)
class Fitted(Independent):
    """See `Law`; to six digits, as the bars of sums are.

    `parts`: noises with their weights, positive; the sum of noises of one law that weigh alike is one of them.
    `off`: the most that rounding moves the sum.
    """

    is_additive: ClassVar[bool] = True
    parts: tuple[tuple[Law, Fraction], ...]
    off: Fraction

    @classmethod
    def of(cls, weighed: Iterable[tuple[Law, float]], off: Fraction) -> Fitted:
        """Return the law of a weighted sum. Laws are symmetric, so that signs do not count.

        Requires: some weight is at least one part in 2^20.
        """
        counts: dict[tuple[Law, int], int] = {}
        for law, weight in weighed:
            if whole := round(abs(weight) * _PARTS):
                counts[law, whole] = counts.get((law, whole), 0) + 1
        ordered = sorted(
            counts, key=lambda it: (-(it[1] ** 2) * it[0].spread * counts[it], it[0].text, it[1])
        )
        kept, rest = ordered[:_MOST], ordered[_MOST:]
        parts = [(_of(law, counts[law, weight]), Fraction(weight, _PARTS)) for law, weight in kept]
        for law in dict.fromkeys(law for law, _ in rest):
            alike = [(weight, counts[law, weight]) for one, weight in rest if one == law]
            count = sum(number for _, number in alike)
            square = sum(weight**2 * number for weight, number in alike)
            root = math.isqrt(-(-square // count) - 1) + 1
            parts.append((_of(law, count), Fraction(root, _PARTS)))
        return cls(tuple(parts), off)

    @property
    def _widest(self) -> Law:
        return max(self.parts, key=lambda part: part[1] ** 2 * part[0].spread)[0]

    @property
    def family(self) -> str:
        return " and ".join(dict.fromkeys(law.family for law, _ in self.parts))

    @property
    def scale(self) -> Fraction:
        """That of the noise with the largest part in it: a fitted number has no parameter of its own."""
        return self._widest.scale

    @property
    def text(self) -> str:
        return f"fitted {self.off}: " + "; ".join(f"{weight} of {law.text}" for law, weight in self.parts)

    @property
    def spread(self) -> Fraction:
        """Of the sum before it is rounded."""
        return sum((weight**2 * law.spread for law, weight in self.parts), Fraction(0))

    def half_width(self, beta: Fraction) -> int:
        return math.floor(half_width_of(self.parts, beta) + self.off)

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(2 * probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        edges, upper = tails_of_mean(self.parts)
        places = np.asarray(at, dtype=np.float64)
        return np.asarray(np.interp(places - np.sign(places - 0.5) * float(self.off), edges, upper))

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        drawn = [float(weight) * law.draw(count, source) for law, weight in self.parts]
        return np.asarray(np.rint(np.sum(drawn, axis=0)).astype(np.int64))


def _of(law: Law, count: int) -> Law:
    return law if count == 1 else Summed(law, count)

"""The rank of a value that the exponential mechanism chose: how far it may be from the wanted one.

Candidates c miss the wanted rank by d(c), in rows; Pr[c] is proportional to exp(-d(c) / scale). Of N candidates, one
of which misses by nothing, Pr[d >= r] <= N·exp(-r / scale) (Dwork, Roth 2014, corollary 3.12; soundness.md 1.20).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..law import Independent
from ..rank_choice import CLAMP_BITS, log_above
from ..uniform import RandomSource

__all__ = ["Rank"]


@dataclass(frozen=True, slots=True)
class Rank(Independent):
    """See `Law`; all figures are in rows. Raises TypeError unless the scale is a Fraction, ValueError out of range."""

    family: ClassVar[str] = "exponential mechanism"
    name: ClassVar[str] = "rank"
    is_additive: ClassVar[bool] = False
    scale: Fraction
    candidates: int

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or type(self.candidates) is not int:
            raise TypeError("a scale is an exact Fraction, and candidates are counted")
        if self.scale <= 0 or self.candidates < 1:
            raise ValueError("a scale is positive, and there is a candidate")

    @property
    def text(self) -> str:
        return f"{self.name} {self.scale} {self.candidates}"

    @classmethod
    def read(cls, text: str) -> Rank:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, candidates = text.split(" ")
        return cls(Fraction(scale), int(candidates))

    @property
    def spread(self) -> Fraction:
        """An upper bound of the mean of d²: ∫ 2r·min(1, N·exp(-r/b)) dr = b²·(l² + 2l + 2), l = ln N."""
        log = log_above(Fraction(self.candidates))
        return self.scale**2 * (log**2 + 2 * log + 2)

    def half_width(self, beta: Fraction) -> int:
        """Return an r with Pr[d > r] <= `beta`. ValueError below 2^-40, where scores are clamped, and from 1 on."""
        if not Fraction(1, 2**CLAMP_BITS) <= beta < 1:
            raise ValueError("a tail probability of a choice is from 2^-40 to 1")
        return math.ceil(self.scale * log_above(self.candidates / beta))

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("what is known of a chosen value is its rank: no noise is on it")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("a choice adds no noise: it is made from the rows near the wanted rank")

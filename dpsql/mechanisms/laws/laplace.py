"""Discrete Laplace noise: Pr[Y = y] = (1-q)/(1+q) q^|y|, q = exp(-1/scale); soundness.md 0, 1.2 and 2.3.

A measurement whose coordinates one unit moves by at most `sensitivity` in all has epsilon-DP answers with
scale = sensitivity / epsilon, a draw of its own on each coordinate (Dwork, McSherry, Nissim, Smith 2006;
on integers Ghosh, Roughgarden, Sundararajan 2009).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..discrete_laplace import draw_discrete_laplace, half_width, sampled_scale, upper_quantile
from ..law import Independent
from ..uniform import RandomSource

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True)
class Laplace(Independent):
    """See `Law`. Raises TypeError unless the scale is a Fraction, ValueError unless it is positive."""

    family: ClassVar[str] = "Laplace"
    is_additive: ClassVar[bool] = True
    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction):
            raise TypeError(f"a noise scale is an exact Fraction, not {type(self.scale).__name__}")
        if self.scale <= 0:
            raise ValueError("a noise scale is positive")

    @property
    def text(self) -> str:
        return str(self.scale)

    @property
    def spread(self) -> Fraction:
        """2b² for the scale b that is sampled: the discrete law's variance 2q/(1-q)² is below it (soundness.md 0)."""
        return 2 * sampled_scale(self.scale) ** 2

    def half_width(self, beta: Fraction) -> int:
        return half_width(self.scale, beta)

    def upper_quantile(self, probability: Fraction) -> int:
        return upper_quantile(self.scale, probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        rate = 1 / float(sampled_scale(self.scale))
        upper = np.exp(-rate * np.maximum(at, 1 - at)) / (1 + math.exp(-rate))
        return np.where(at >= 1, upper, 1 - upper)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        return draw_discrete_laplace(self.scale, count, source)

"""What is known of a released number's error: the law of the noise that is on it.

House rules:

1. A law is public and frozen; it is stored with the draw that has it. Bars, thresholds, look-ups and
   EXPLAIN read the law of the draw at hand, never a scale of the plan's (soundness.md 1.2).
2. All figures of a law are of the noise that is really drawn, in lattice units, and exact or on the safe side.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .random_source import RandomSource

__all__ = ["Law"]


class Law(Protocol):
    """The distribution of the noise on each coordinate of a draw, independent from coordinate to coordinate."""

    @property
    def family(self) -> str:
        """The distribution's name, for people."""
        ...

    @property
    def is_additive(self) -> bool:
        """Whether draws are exact numbers plus noise in every group: only then a sum of several is one of theirs."""
        ...

    @property
    def scale(self) -> Fraction:
        """The distribution's one parameter, in lattice units; positive."""
        ...

    @property
    def text(self) -> str:
        """The law as the ledger has it: `law_of(law.text) == law`."""
        ...

    @property
    def spread(self) -> Fraction:
        """An upper bound of the variance, in squared lattice units: the one order in which draws serve a wish."""
        ...

    def half_width(self, beta: Fraction) -> int:
        """Return the smallest m >= 0 with Pr[|noise| > m] <= `beta`: the error bar. ValueError out of (0, 1)."""
        ...

    def upper_quantile(self, probability: Fraction) -> int:
        """Return the smallest m >= 1 with Pr[noise >= m] <= `probability`. ValueError out of (0, 1/2)."""
        ...

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return Pr[noise >= m] for each m of `at`, to ten digits: for bars, never for what is shown or charged."""
        ...

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return `count` exact independent draws from `source`."""
        ...

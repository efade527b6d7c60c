"""Running sums drawn by a square root of the matrix that makes them: whole numbers, and the law of the noise on them.

Of numbers x along an axis is drawn `y_t = Σ c_(t-s)·x_s + Y_t` over s <= t, with `c_k = round(256·C(2k, k)/4^k)` and
discrete Gaussian noise Y of its own on each. C(2k, k)/4^k are the coefficients of (1 - z)^(-1/2), whose square makes
running totals (Fichtenberger, Henzinger, Upadhyay 2023). Whole ones have an inverse too, as c_0 is not 0, and no law
rests on how near they are (soundness.md 1.44).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..law import Independent, Law
from ..uniform import RandomSource
from .noise import Gaussian

Array = npt.NDArray[Any]
MOST_PLACES: Final = 1024
"""Most places of an axis of which running sums are drawn so."""
_PARTS: Final = 256
OF_A_PLACE: Final = 51_200
"""A place by itself, as these sums tell it, has no more than one in so many parts of their noise's variance."""
_SAFE: Final = 2**62


@cache
def coefficients() -> tuple[int, ...]:
    """Return c_k for each k below `MOST_PLACES`, a half up."""
    found, middle, whole = [], 1, 1  # C(2k, k) and 4^k
    for k in range(MOST_PLACES):
        found.append((2 * _PARTS * middle + whole) // (2 * whole))
        middle, whole = middle * (2 * k + 1) * 2 // (k + 1), 4 * whole
    return tuple(found)


def squared_of(places: int) -> int:
    """Return Σ c_k² over k below `places`: the most of the sums' squared moves where one of so many numbers moves by 1.

    ValueError beyond `MOST_PLACES`.
    """
    if not 1 <= places <= MOST_PLACES:
        raise ValueError("a square root has a limited number of places")
    return sum(one**2 for one in coefficients()[:places])


def sums_of(values: Array) -> Array:
    """Return Σ c_(t-s)·x_s over s <= t of whole numbers along the last axis, exactly: int64, or Python ints where 64
    bits do not hold them."""
    kernel = coefficients()[: values.shape[-1]]
    largest = max(
        int(values.max(initial=0)), -int(values.min(initial=0))
    )  # not `abs`: -2^63 has none of 64 bits
    if values.dtype != object and largest >= _SAFE // sum(kernel):
        values = values.astype(object)
    found = values * kernel[0]
    for k, one in enumerate(kernel[1:], 1):
        found[..., k:] += one * values[..., :-k]
    return found


@dataclass(frozen=True, slots=True)
class SquareRoot(Independent):
    """See `Law`. What is drawn are no numbers of places plus noise of their own: figures are of the noise on a place by
    itself, as the sums tell it, from above; `drawn` is the noise on each sum. `scale`: the deviation of that.

    Raises TypeError and ValueError as `Gaussian` does.
    """

    name: ClassVar[str] = "root"
    family: ClassVar[str] = "discrete Gaussian by square root"
    is_additive: ClassVar[bool] = False
    scale: Fraction

    def __post_init__(self) -> None:
        Gaussian(self.scale)

    @classmethod
    def for_rho(cls, squared: int, rho: Fraction) -> SquareRoot:
        """Return the least noise under which sums of some squared L2 sensitivity cost at most `rho`."""
        return cls(Gaussian.for_rho(squared, rho).scale)

    @property
    def drawn(self) -> Gaussian:
        return Gaussian(self.scale)

    @property
    def _of_a_place(self) -> Gaussian:
        return Gaussian.of_at_least(Fraction(math.isqrt(math.ceil(self.spread * 4**10)) + 1, 2**10))

    @property
    def spread(self) -> Fraction:
        return self.scale**2 / OF_A_PLACE

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(self._of_a_place, weight) for weight in weights.values()]

    def upper_quantile(self, probability: Fraction) -> int:
        return self._of_a_place.upper_quantile(probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return self._of_a_place.tails(at)

    def draw(self, count: int, source: RandomSource) -> Array:
        raise TypeError("noise is drawn on sums, not on what they tell")

"""How large a weighted sum of independent noises gets: the error bar of what is made of several released numbers.

The distribution of the sum is a convolution, made with Fourier transforms: on the lattice of the weights where that is
coarse enough, else on a grid of which a standard deviation has more than a thousand steps.
Six digits are right; thresholds and charges never come from here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .law import Law
from .laws import Laplace
from .random_source import RandomSource

__all__ = ["Summed", "half_width_of"]

_POINTS: Final = 2**17
_FINEST: Final = Fraction(1, 10**8)
"""Rarer misses are beyond what doubles tell: there each noise is bounded by itself, which is on the safe side."""
_REACH: Final = 40
"""So many times the sum of all |weight| · deviation holds all but 10^-20 of a sum of Laplace noises."""


_FEW: Final = 8
_MOST_PARTS: Final = 64


@dataclass(frozen=True, slots=True)
class Summed:
    """See `Law`: the noise on a sum of `count` draws, each with `part`. It is of no draw: the ledger never has it.

    Requires: `count` is at least 1; made by `of`.
    """

    part: Law
    count: int

    @classmethod
    def of(cls, law: Law, count: int) -> Summed:
        """Return the law of a sum; of very many draws that of 64 of the same variance: both are nearly normal."""
        if count <= _MOST_PARTS:
            return cls(law, count)
        wider = Fraction(math.isqrt(count * 10**12 // _MOST_PARTS - 1) + 1, 10**6)
        return cls(Laplace(law.scale * wider), _MOST_PARTS)

    @property
    def family(self) -> str:
        return f"sum of {self.count} {self.part.family}"

    @property
    def scale(self) -> Fraction:
        return self.part.scale

    @property
    def text(self) -> str:
        return f"{self.count} of {self.part.text}"

    @property
    def spread(self) -> Fraction:
        return self.count * self.part.spread

    def half_width(self, beta: Fraction) -> int:
        return math.ceil(half_width_of([(self, Fraction(1))], beta))

    def upper_quantile(self, probability: Fraction) -> int:
        return self.half_width(2 * probability) + 1

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        chances = 1.0 - self._below(np.abs(at - 0.5))
        return np.where(at >= 1, chances, 1 - chances)

    def _below(self, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return Pr[noise < m] for each m > 0."""
        density, step = _density(((self.part, Fraction(1)),) * self.count)
        places = step * (np.arange(_POINTS // 2) + 0.5)
        inside = density[0] + 2 * np.cumsum(np.concatenate([[0.0], density[1 : _POINTS // 2]]))
        return np.asarray((1 + np.interp(at, places, inside, left=0.0, right=1.0)) / 2)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        drawn = self.part.draw(count * self.count, source)
        return np.asarray(drawn.reshape(count, self.count).sum(axis=1))


def _parts(law: Law) -> Sequence[Law]:
    return (law.part,) * law.count if isinstance(law, Summed) else (law,)


def half_width_of(noises: Sequence[tuple[Law, Fraction]], beta: Fraction) -> Fraction:
    """Return m with Pr[|Σ weight · noise| > m] <= `beta`, to six digits; of one noise the smallest, exactly.

    Requires: at least one noise, 0 < `beta` < 1; else ValueError. No weight is 0.
    """
    if not noises or not 0 < beta < 1:
        raise ValueError("a half-width is of at least one noise, at a probability in (0, 1)")
    noises = [(part, weight) for law, weight in noises for part in _parts(law)]
    if len(noises) == 1:
        ((law, weight),) = noises
        return abs(weight) * law.half_width(beta)
    if beta < _FINEST:
        return sum((abs(weight) * law.half_width(beta / len(noises)) for law, weight in noises), Fraction(0))
    unit = reduce(_common, (abs(weight) for _, weight in noises))
    shape = tuple(sorted((law.text, law, abs(weight) / unit) for law, weight in noises))
    return unit * _half_width(tuple((law, weight) for _, law, weight in shape), beta)


def _common(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest number that two positive ones are whole multiples of."""
    bottom = math.lcm(one.denominator, other.denominator)
    return Fraction(math.gcd(int(one * bottom), int(other * bottom)), bottom)


@lru_cache(maxsize=1024)
def _half_width(noises: tuple[tuple[Law, Fraction], ...], beta: Fraction) -> Fraction:
    """Return the half-width of whole multiples of noises, as a multiple of their common unit."""
    density, step = _density(noises)
    outside = 1 - density[0] - 2 * np.cumsum(np.concatenate([[0.0], density[1 : _POINTS // 2]]))
    place = int(np.argmax(outside <= float(beta)))
    if step == 1.0:
        return Fraction(place)
    # outside[m] is what lies beyond (m + 1/2) steps: a line between two of these crosses beta
    above, below = outside[place - 1], outside[place]
    crossing = place - 0.5 + (above - float(beta)) / (above - below)
    return Fraction(crossing * step).limit_denominator(10**6)


def _density(noises: tuple[tuple[Law, Fraction], ...]) -> tuple[npt.NDArray[np.float64], float]:
    """Return Pr[Σ weight · noise rounds to j steps] for j from 0 up, then for negative j, and the step."""
    deviation = sum(float(weight) * math.sqrt(law.spread) for law, weight in noises)
    reach = _REACH * deviation
    if len(noises) > _FEW:
        sizes = [float(weight) * math.sqrt(law.spread) for law, weight in noises]
        reach = min(reach, _REACH * (math.hypot(*sizes) / 3 + max(sizes)))
    step = max(1.0, 2 * reach / _POINTS)
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for (law, weight), count in Counter(noises).items():
        transform = transform * np.fft.rfft(_chances(law, float(weight) / step)) ** count
    return np.fft.irfft(transform, _POINTS), step


def _chances(law: Law, weight: float) -> npt.NDArray[np.float64]:
    """Return Pr[weight · noise rounds to j] for j from 0 up, then for the negative j, as a transform takes them."""
    half = _POINTS // 2
    edges = np.ceil((np.arange(-half, half + 1) - 0.5) / weight).astype(np.int64)
    tails = law.tails(edges)
    return np.fft.ifftshift(tails[:-1] - tails[1:])

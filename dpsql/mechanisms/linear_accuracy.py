"""How large a weighted sum of independent noises gets: the error bar of what is made of several released numbers.

The distribution of the sum is a convolution, made with Fourier transforms: on the lattice of the weights where that is
coarse enough, else on a grid of which a standard deviation has more than a thousand steps.
Six digits are right; thresholds and charges never come from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from .law import Law

__all__ = ["half_width_of", "tails_of_mean", "tails_of_sum"]

_POINTS: Final = 2**17
_FINEST: Final = Fraction(1, 10**8)
"""Rarer misses are beyond what doubles tell: there each noise is bounded by itself, which is on the safe side."""
_FARTHEST: Final = 2.0**62
"""What is beyond this in a noise's own steps is as unlikely as what is at it; noises that reach it are bounded one by
one."""
_REACH: Final = 40
"""So many times the sum of all |weight| · deviation holds all but 10^-20 of a sum of Laplace noises."""


def half_width_of(noises: Sequence[tuple[Law, Fraction]], beta: Fraction) -> Fraction:
    """Return m with Pr[|Σ weight · noise| > m] <= `beta`, to six digits; of one noise the smallest, exactly.

    Requires: at least one noise, 0 < `beta` < 1; else ValueError. No weight is 0.
    """
    if not noises or not 0 < beta < 1:
        raise ValueError("a half-width is of at least one noise, at a probability in (0, 1)")
    if len(noises) == 1:
        ((law, weight),) = noises
        return abs(weight) * law.half_width(beta)
    if beta < _FINEST or any(_REACH * math.sqrt(law.spread) >= _FARTHEST for law, _ in noises):
        return sum((abs(weight) * law.half_width(beta / len(noises)) for law, weight in noises), Fraction(0))
    unit = reduce(_common, (abs(weight) for _, weight in noises))
    shape = tuple(sorted((law.text, law, abs(weight) / unit) for law, weight in noises))
    return unit * _half_width(tuple((law, weight) for _, law, weight in shape), beta)


def tails_of_sum(law: Law, count: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return numbers in rising order, and for each Pr[a sum of `count` noises >= it], to six digits; shapes (n,).

    They are in coordinate units: the whole numbers where a deviation has less than a thousand steps or so, else the
    edges of wider steps.
    """
    return _tails_of_sum((law, count))


@lru_cache(maxsize=64)
def _tails_of_sum(noises: tuple[Law, int]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    law, count = noises
    step = max(1.0, 2 * _REACH * math.sqrt(count * law.spread) / _POINTS)
    transform = np.fft.rfft(_chances(law, 1 / step)) ** count
    density = np.fft.fftshift(np.maximum(np.fft.irfft(transform, _POINTS), 0))
    places = np.arange(-_POINTS // 2, _POINTS // 2, dtype=np.float64)
    return (places if step == 1.0 else (places - 0.5) * step), np.cumsum(density[::-1])[::-1]


@lru_cache(maxsize=256)
def tails_of_mean(
    noises: tuple[tuple[Law, Fraction], ...],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return numbers in rising order, and for each Pr[Σ weight · noise >= it], to six digits: both of shape (n,).

    Between two of the numbers, which are in coordinate units, what is there is spread evenly.
    """
    unit = reduce(_common, (abs(weight) for _, weight in noises))
    deviation = sum(float(abs(weight) / unit) * math.sqrt(law.spread) for law, weight in noises)
    step = max(1.0, 2 * _REACH * deviation / _POINTS)
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for law, weight in noises:
        transform = transform * np.fft.rfft(_chances(law, float(abs(weight) / unit) / step))
    density = np.fft.fftshift(np.maximum(np.fft.irfft(transform, _POINTS), 0))
    places = np.arange(-_POINTS // 2, _POINTS // 2, dtype=np.float64)
    return (places - 0.5) * step * float(unit), np.cumsum(density[::-1])[::-1]


def _common(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest number that two positive ones are whole multiples of."""
    bottom = math.lcm(one.denominator, other.denominator)
    return Fraction(math.gcd(int(one * bottom), int(other * bottom)), bottom)


@lru_cache(maxsize=1024)
def _half_width(noises: tuple[tuple[Law, Fraction], ...], beta: Fraction) -> Fraction:
    """Return the half-width of whole multiples of noises, as a multiple of their common unit."""
    deviation = sum(float(weight) * math.sqrt(law.spread) for law, weight in noises)
    reach = _REACH * deviation
    step = max(1.0, 2 * reach / _POINTS)
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for law, weight in noises:
        transform = transform * np.fft.rfft(_chances(law, float(weight) / step))
    density = np.fft.irfft(transform, _POINTS)
    outside = 1 - density[0] - 2 * np.cumsum(np.concatenate([[0.0], density[1 : _POINTS // 2]]))
    place = int(np.argmax(outside <= float(beta)))
    if step == 1.0:
        return Fraction(place)
    # outside[m] is what lies beyond (m + 1/2) steps: a line between two of these crosses beta
    above, below = outside[place - 1], outside[place]
    crossing = place - 0.5 + (above - float(beta)) / (above - below)
    return Fraction(crossing * step).limit_denominator(10**6)


def _chances(law: Law, weight: float) -> npt.NDArray[np.float64]:
    """Return Pr[weight · noise rounds to j], shape (_POINTS,): from j = 0 up, then the negative j."""
    half = _POINTS // 2
    edges = np.ceil((np.arange(-half, half + 1) - 0.5) / weight)
    tails = law.tails(np.clip(edges, -_FARTHEST, _FARTHEST).astype(np.int64))
    return np.fft.ifftshift(tails[:-1] - tails[1:])

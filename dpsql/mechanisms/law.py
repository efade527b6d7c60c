"""What is known of a released number's error: the law of the noise that is on it.

House rules:

1. A law is public and frozen; it is stored with the draw that has it. Bars, thresholds, look-ups and
   EXPLAIN read the law of the draw at hand, never a scale of the plan's (soundness.md 1.2).
2. All figures of a law are of the noise that is really drawn, in coordinate units, and exact or on the safe side. A
   coordinate unit is what 1 of a measurement's coordinate is, a lattice unit or a fraction 1 / U of one
   (`Measurement.denominator`): nothing in this folder knows which, or what a lattice is.
3. The noises of one draw may depend on each other (box noise): what is on one coordinate by itself is `at`, what is on
   a weighted sum of several `noises`, and they are drawn together by `vectors`.

How large a weighted sum of independent noises gets: the error bar of what is made of several released numbers.

The distribution of the sum is a convolution, made with Fourier transforms: on the lattice of the weights where that is
coarse enough, else on a grid of which a standard deviation has more than a thousand steps.
Six digits are right; thresholds and charges never come from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from .uniform import RandomSource

__all__ = ["Independent", "Law", "WholeVectors", "half_width_of", "tails_of_mean", "tails_of_sum"]


class Law(Protocol):
    """The distribution of the noise on a draw; where it is not joint, the same on each coordinate by itself."""

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
        """The distribution's one parameter, in coordinate units; positive."""
        ...

    @property
    def text(self) -> str:
        """The law as the ledger has it: `law_of(law.text) == law`."""
        ...

    @property
    def spread(self) -> Fraction:
        """An upper bound of the variance, in squared coordinate units: the one order in which draws serve a wish."""
        ...

    def half_width(self, beta: Fraction) -> int:
        """Return the smallest m >= 0 with Pr[|noise| > m] <= `beta`: the error bar. ValueError out of (0, 1)."""
        ...

    def upper_quantile(self, probability: Fraction) -> int:
        """Return the smallest m >= 1 with Pr[noise >= m] <= `probability`. ValueError out of (0, 1/2)."""
        ...

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return Pr[noise >= m] for each m of `at`, in its shape, to ten digits: for bars, not for charges."""
        ...

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return exact independent draws from `source`, shape (count,): int64, or Python ints where needed."""
        ...

    @property
    def is_joint(self) -> bool:
        """Whether coordinates of one draw depend on each other: then they are drawn by `vectors` alone."""
        ...

    def size_of(self, size: int) -> int:
        """Return how many coordinates whole vectors have that hold so many."""
        ...

    def at(self, coordinate: int) -> Law:
        """Return the law of one coordinate by itself."""
        ...

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """Return independent noises, each with its weight, whose sum a weighted sum of coordinates has on it."""
        ...

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return the noise of `size` coordinates, `count` independent times: shape (size, count), as `draw`."""
        ...


class Independent:
    """Of a `Law` whose coordinates are independent: all are alike, and each is drawn for itself."""

    __slots__ = ()

    @property
    def is_joint(self) -> bool:
        return False

    def size_of(self, size: int) -> int:
        return size

    def at(self, coordinate: int) -> Self:
        return self

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(self, weight) for weight in weights.values()]  # type: ignore[misc]

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        drawn: npt.NDArray[Any] = self.draw(size * count, source)  # type: ignore[attr-defined]
        return drawn.reshape(size, count)


class WholeVectors:
    """Of a `Law` whose draws are vectors of one coordinate for each of `reaches`, with a law of its own.

    Coordinates are numbered on from one vector to the next. Raises TypeError where one figure is asked of all.
    """

    __slots__ = ()

    reaches: tuple[int, ...]

    @property
    def is_joint(self) -> bool:
        return True

    def size_of(self, size: int) -> int:
        return -(-size // len(self.reaches)) * len(self.reaches)

    def vectors_in(self, size: int) -> int:
        """Return how many vectors so many coordinates are. Raises ValueError: no whole number."""
        if size % len(self.reaches):
            raise ValueError("noise is drawn in whole vectors")
        return size // len(self.reaches)

    def half_width(self, beta: Fraction) -> int:
        raise TypeError("each coordinate of a vector has a law of its own")

    def upper_quantile(self, probability: Fraction) -> int:
        raise TypeError("each coordinate of a vector has a law of its own")

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("each coordinate of a vector has a law of its own")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("noise is drawn in whole vectors")


# --- how large a weighted sum of independent noises gets ----------------------------------------------------


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

    To three digits where the steps of a noise have no 64 bits.

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
    """Return numbers in rising order, and for each Pr[Σ weight · noise >= it], as `tails_of_sum`.

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
    if _REACH * math.sqrt(law.spread) < _FARTHEST:
        tails = law.tails(np.clip(edges, -_FARTHEST, _FARTHEST).astype(np.int64))
    else:
        tails = _far_tails(law, edges)
    return np.fft.ifftshift(tails[:-1] - tails[1:])


def _far_tails(law: Law, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Pr[noise >= m] of a noise whose steps have no 64 bits, to three digits: between half-widths of chances.

    Requires: as likely above 0 as below.
    """
    halves, chances = _half_widths((law,))
    upper = np.exp(np.interp(np.abs(edges), halves, chances)) / 2
    return np.where(edges > 0, upper, 1 - upper)


@lru_cache(maxsize=64)
def _half_widths(noises: tuple[Law]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return half-widths of one noise in rising order, and of each the logarithm of Pr[|noise| > it]."""
    (law,) = noises
    misses = [
        *(Fraction(part, 32) for part in range(31, 1, -1)),
        *(Fraction(1, 2**bits) for bits in range(5, 45)),
    ]
    halves = [float(law.half_width(miss)) for miss in misses]
    return np.array([0.0, *halves]), np.array([0.0, *map(math.log, misses)])

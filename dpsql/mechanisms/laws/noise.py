"""Additive noise on each coordinate: discrete Laplace and discrete Gaussian.

Discrete Gaussian noise: Pr[Y = y] is proportional to exp(-y²/(2 sigma²)); soundness.md 1.25 and 2.5.

A measurement whose coordinates one unit moves by at most D in L2 costs rho = D²/(2 sigma²) of zCDP, a draw of its own
on each coordinate (Bun, Steinke 2016; on integers Canonne, Kamath, Steinke 2020, theorem 14).

Gaussian noise on a vector whose coordinates differ in width: independent draws, each with its own deviation.

What is drawn together in a zCDP dataset (soundness.md 1.25): the part of the box in a pure one.

Discrete Laplace noise: Pr[Y = y] = (1-q)/(1+q) q^|y|, q = exp(-1/scale); soundness.md 0, 1.2 and 2.3.

A measurement whose coordinates one unit moves by at most `sensitivity` in all has epsilon-DP answers with
scale = sensitivity / epsilon, a draw of its own on each coordinate (Dwork, McSherry, Nissim, Smith 2006;
on integers Ghosh, Roughgarden, Sundararajan 2009).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from .. import discrete_gaussian, discrete_laplace
from ..discrete_gaussian import MOST_SUMMED, draw_discrete_gaussian, tail
from ..discrete_laplace import draw_discrete_laplace, sampled_scale
from ..law import Independent, Law, WholeVectors
from ..uniform import RandomSource


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
        scale = sampled_scale(self.scale)
        return Fraction(2 * scale.numerator**2, scale.denominator**2)

    def upper_quantile(self, probability: Fraction) -> int:
        return discrete_laplace.upper_quantile(self.scale, probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        rate = 1 / float(sampled_scale(self.scale))
        upper = np.exp(-rate * np.maximum(at, 1 - at)) / (1 + math.exp(-rate))
        return np.where(at >= 1, upper, 1 - upper)

    def transform(self, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return E cos(t · noise) for each t of `at`, in its shape: 1 / (1 + sin²(t/2)·4q/(1-q)²)."""
        rate = 1 / float(sampled_scale(self.scale))
        found: npt.NDArray[np.float64] = np.sin(at / 2) * (2 * math.exp(-rate / 2) / -math.expm1(-rate))
        return 1 / (1 + found**2)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        return draw_discrete_laplace(self.scale, count, source)


# --- discrete Gaussian noise --------------------------------------------------------------------------------


_FINE_LIMIT: Final = 2**20
_PARTS: Final = 2**10
"""A deviation up to the limit is a multiple of 1 / this, beyond it a whole number."""
_FINEST_PARTS: Final = 2**20
"""Of what tops up stored draws: their precisions are to add up."""


class Normal(Independent):
    """Of a `Law` whose noise is discrete Gaussian, of the deviation `scale`."""

    __slots__ = ()
    family: ClassVar[str] = "discrete Gaussian"
    scale: Fraction

    @property
    def spread(self) -> Fraction:
        """sigma²: the discrete law's variance is at most that (Canonne, Kamath, Steinke 2020, corollary 9)."""
        return self.scale**2

    def upper_quantile(self, probability: Fraction) -> int:
        return discrete_gaussian.upper_quantile(self.scale, probability)

    def tail(self, m: int) -> Fraction:
        """Return Pr[Y >= m] for m >= 1, from above."""
        return tail(self.scale, m)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        places = np.maximum(at, 1 - at)
        upper = _summed_tails(self.scale, places) if self.scale <= MOST_SUMMED else _tails(self.scale, places)
        return np.where(at >= 1, upper, 1 - upper)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        return draw_discrete_gaussian(self.scale, count, source)


@dataclass(frozen=True, slots=True)
class Gaussian(Normal):
    """See `Law`; `scale` is sigma.

    Raises TypeError unless it is a Fraction, ValueError unless it is one that `for_rho` or `finely_for_rho` gives.
    """

    name: ClassVar[str] = "gaussian"
    is_additive: ClassVar[bool] = True
    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction):
            raise TypeError(f"a deviation is an exact Fraction, not {type(self.scale).__name__}")
        parts = self.scale * (_FINEST_PARTS if self.scale <= _FINE_LIMIT else 1)
        if self.scale <= 0 or parts.denominator != 1:
            raise ValueError("a deviation is a positive multiple of 2^-20, above 2^20 a whole number")

    @classmethod
    def for_rho(cls, squared: int, rho: Fraction) -> Gaussian:
        """Return the least noise under which a squared L2 sensitivity costs at most `rho`.

        Its deviation is a multiple of 1/1024, above 2^20 a whole number.
        Requires: both positive, `rho` exact; else TypeError or ValueError.
        """
        return cls._for_rho(squared, rho, _PARTS)

    @classmethod
    def finely_for_rho(cls, squared: int, rho: Fraction) -> Gaussian:
        """Return what `for_rho` does, of a deviation that is a multiple of 2^-20."""
        return cls._for_rho(squared, rho, _FINEST_PARTS)

    @classmethod
    def _for_rho(cls, squared: int, rho: Fraction, parts: int) -> Gaussian:
        if type(squared) is not int or not isinstance(rho, Fraction):
            raise TypeError("a squared sensitivity is an integer, and rho an exact Fraction")
        if squared <= 0 or rho <= 0:
            raise ValueError("a sensitivity and rho are positive")
        variance = squared / (2 * rho)
        fine = Fraction(_root_above(variance * parts**2), parts)
        return cls(fine if fine <= _FINE_LIMIT else Fraction(_root_above(variance)))

    @classmethod
    def of_at_least(cls, deviation: Fraction) -> Gaussian:
        """Return the least noise whose deviation is no smaller than a positive number."""
        fine = Fraction(math.ceil(deviation * _PARTS), _PARTS)
        return cls(fine if fine <= _FINE_LIMIT else Fraction(math.ceil(deviation)))

    def transform(self, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return E cos(t · noise) for each t of `at`, in its shape: by its definition, or where sigma is above 1 by
        Poisson's summation of the density's own transform; what is left out is below 10^-16.
        """
        sigma = float(self.scale)
        if sigma <= 1:
            weights = [math.exp(-((y / sigma) ** 2) / 2) for y in range(10)]
            waves = sum(
                (w * np.cos(y * at) for y, w in enumerate(weights) if y), weights[0] / 2 * np.ones_like(at)
            )
            return np.asarray(waves / (sum(weights) - weights[0] / 2))
        near = np.remainder(at + math.pi, 2 * math.pi) - math.pi
        turns = (np.exp(-((sigma * (near - turn)) ** 2) / 2) for turn in (-2 * math.pi, 0.0, 2 * math.pi))
        return np.asarray(sum(turns) / (1 + 2 * math.exp(-((2 * math.pi * sigma) ** 2) / 2)))


def _root_above(number: Fraction) -> int:
    """Return the smallest integer whose square is at least a positive number."""
    return math.isqrt(math.ceil(number) - 1) + 1


def _tails(sigma: Fraction, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return Pr[Y >= m] for m >= 1, in its shape: the normal tail at m - 1/2 and the midpoint rule's next terms."""
    deviation = float(sigma)
    z = (places.astype(np.float64) - 0.5) / deviation
    beyond = np.array([math.erfc(one) for one in (z / math.sqrt(2)).tolist()]) / 2
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    first, third = -z * density / deviation**2, (3 * z - z**3) * density / deviation**4
    return np.maximum(beyond.reshape(z.shape) + first / 24 - 7 * third / 5760, 0.0)


def _summed_tails(sigma: Fraction, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    table = _table(sigma)
    found: npt.NDArray[np.float64] = table[np.minimum(places, len(table) - 1)]
    return found


@lru_cache(maxsize=64)
def _table(sigma: Fraction) -> npt.NDArray[np.float64]:
    """Return Pr[Y >= m] at place m, shape (n,), from 0 to where it is 0 in doubles."""
    at = np.arange(int(40 * sigma) + 40, dtype=np.float64)
    weights = np.exp(-(at**2) / (2 * float(sigma) ** 2))
    beyond = np.cumsum(weights[::-1])[::-1]
    whole = 2 * beyond[0] - 1
    found: npt.NDArray[np.float64] = np.append(beyond, 0.0) / whole
    return found


# --- Gaussian noise on a vector whose coordinates differ in width -------------------------------------------


@dataclass(frozen=True, slots=True)
class Gaussians(WholeVectors):
    """See `Law`; of vectors of one coordinate for each of `reaches`, whose deviation is `scale` times its reach.

    Raises TypeError unless the scale is a Fraction and reaches are integers, ValueError unless it is a deviation of
    `Gaussian` and all are positive.
    """

    family: ClassVar[str] = "discrete Gaussian"
    name: ClassVar[str] = "gaussians"
    is_additive: ClassVar[bool] = True
    scale: Fraction
    reaches: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(type(reach) is not int for reach in self.reaches):
            raise TypeError("reaches are integers")
        if not self.reaches or min(self.reaches) < 1:
            raise ValueError("reaches are positive")
        Gaussian(self.scale)

    @property
    def spread(self) -> Fraction:
        """The variance of the widest coordinate, from above."""
        return self.at(self.reaches.index(max(self.reaches))).spread

    def at(self, coordinate: int) -> Gaussian:
        """See `Law`. Coordinates are numbered on from one vector to the next."""
        return Gaussian.of_at_least(self.scale * self.reaches[coordinate % len(self.reaches)])

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(self.at(coordinate), weight) for coordinate, weight in weights.items()]

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """See `Law`."""
        self.vectors_in(size)
        columns = [self.at(coordinate).draw(count, source) for coordinate in range(size)]
        exact = any(column.dtype == object for column in columns)
        return np.array([column.astype(object) if exact else column for column in columns]).reshape(
            size, count
        )

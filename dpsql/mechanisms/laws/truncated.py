"""Noise on a count of people, and two rules by which groups found in the data are shown: `Truncated`, `Thresholded`.

Of truncated discrete Laplace noise, with q = exp(-1/scale), k the `bound` and w the `weight`, X is in {-k .. k}: Pr[X
= x] = c q^|x| for |x| < k, and c w q^k at the two ends. A group of n >= 1 people is shown, as n + X, when n + X > k,
and when it is k by a coin that says yes with probability 1 - w. A step by one person costs 1/scale, but for `excess`:
proved in soundness.md 1.7. It is the optimal rule of Desfontaines, Voss, Gipson, Mandayam (2022) but for a quarter of
`excess`.

Under discrete Gaussian noise Y a group of n >= 1 people is shown, as n + Y, when n + Y > `bound`. What that costs is
proved in soundness.md 1.25: the rho of the noise, and as delta the probability that a group of the changed units alone
is shown.

House rules:

1. A group of nobody is never tested: X alone could bring it to k, and Y above any bound.
2. The rule sees the noisy count and a coin of its own, nothing else of the group.
3. The weight is a multiple of 2^-60, rounded up: the coin that shows more is rounded down.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..discrete_laplace import (
    bounds_of_exp,
    draw_discrete_laplace,
    draw_exp_of_fraction,
    first_of,
    sampled_scale,
)
from ..law import Independent, check_chance
from ..uniform import COIN, RandomSource, draw_below, draw_coins
from .noise import Gaussian, Normal

_SMALLEST = Fraction(1, 10**900)
_GUARD_DIGITS = 60

Bounds = tuple[Fraction, Fraction]
"""A number from below and from above, to at least 40 digits."""


@dataclass(frozen=True, slots=True)
class Truncated(Independent):
    """See `Law`, and `within` for how one is made.

    Raises TypeError unless scale and weight are Fractions, ValueError unless the scale is positive, the bound at
    least 1 and the weight a multiple of 1 / COIN above 0 and at most 1.
    """

    family: ClassVar[str] = "truncated Laplace"
    name: ClassVar[str] = "truncated"
    is_additive: ClassVar[bool] = False
    """Groups whose counts it hides are missing, and a missing group is not 0: no sums of such draws."""
    scale: Fraction
    bound: int
    weight: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction) or not isinstance(self.weight, Fraction):
            raise TypeError("a scale and a weight are exact Fractions")
        if self.scale <= 0 or self.bound < 1:
            raise ValueError("a noise scale is positive, and a bound at least 1")
        if not 0 < self.weight <= 1 or (self.weight * COIN).denominator != 1:
            raise ValueError("a weight is a multiple of 2^-60 above 0 and at most 1")

    @classmethod
    def within(cls, scale: Fraction, delta: Fraction) -> Truncated:
        """Return the law of this scale that shows the most: the one whose `excess` is nearest to `delta`, not above.

        Requires: 10^-900 <= `delta` < 1/2, exact; else TypeError or ValueError. All of it is public.
        """
        if not isinstance(delta, Fraction):
            raise TypeError(f"delta is an exact Fraction, not {type(delta).__name__}")
        if not _SMALLEST <= delta < Fraction(1, 2):
            raise ValueError("a probability for one key is at least 10^-900 and below 1/2")
        return _within(scale, delta)

    @property
    def text(self) -> str:
        return f"{self.name} {self.scale} {self.bound} {(self.weight * COIN).numerator}"

    @classmethod
    def read(cls, text: str) -> Truncated:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, bound, weight = text.split(" ")
        return cls(Fraction(scale), int(bound), Fraction(int(weight), COIN))

    @property
    def spread(self) -> Fraction:
        """2b², as of the noise before it was cut, which is the wider: so one order holds for both."""
        return 2 * sampled_scale(self.scale) ** 2

    @property
    def coin(self) -> Fraction:
        """How often a noisy count of k is shown."""
        return 1 - self.weight

    @property
    def excess(self) -> Fraction:
        """The delta of one key, from above: c w q^k + c (1-w) q^(k-1)."""
        whole = _powers(self.scale, self.bound).mass(self.weight)[0]
        last, end = (_power(self.scale, m)[1] for m in (self.bound - 1, self.bound))
        return (self.coin * last + self.weight * end) / whole

    def chance(self, noise: int) -> Fraction:
        """Return Pr[X = noise], from above by less than one part in 10^40."""
        if abs(noise) > self.bound:
            return Fraction(0)
        weight = self.weight if abs(noise) == self.bound else 1
        return (
            weight * _power(self.scale, abs(noise))[1] / _powers(self.scale, self.bound).mass(self.weight)[0]
        )

    def chance_shown(self, people: int, noisy: int) -> Fraction:
        """Return the probability that a group of so many people, at least one, is shown, and with this count."""
        noise = noisy - people
        if noisy > self.bound:
            return self.chance(noise)
        return self.coin * self.chance(noise) if noisy == self.bound else Fraction(0)

    def tail(self, m: int) -> Fraction:
        """Return Pr[X >= m] for any integer m, from above."""
        return self._tail(m)[1]

    def _tail(self, m: int) -> Bounds:
        if m > self.bound:
            return Fraction(0), Fraction(0)
        if m < 1:
            low, high = self._tail(1 - m)
            return 1 - high, 1 - low
        powers = _powers(self.scale, self.bound)
        start, step, end = _power(self.scale, m), powers.step, powers.end
        low = max(Fraction(0), (start[0] - end[1]) / (1 - step[0])) + self.weight * end[0]
        high = (start[1] - end[0]) / (1 - step[1]) + self.weight * end[1]
        mass = powers.mass(self.weight)
        return low / mass[1], high / mass[0]

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        rate, k, weight = 1 / float(sampled_scale(self.scale)), self.bound, float(self.weight)
        gap, end = -math.expm1(-rate), math.exp(-rate * k)
        mass = (2 - gap - 2 * end) / gap + 2 * weight * end
        places = np.maximum(at, 1 - at)
        upper = np.where(places > k, 0.0, ((np.exp(-rate * places) - end) / gap + weight * end) / mass)
        return np.where(at >= 1, upper, 1 - upper)

    def upper_quantile(self, probability: Fraction) -> int:
        check_chance(probability)
        return first_of(lambda m: self.tail(m) <= probability, 1, self.bound + 1)

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """See `Law`: by rejection of what is beyond the bound, and at it in a share of 1 - weight."""
        if count < 0:
            raise ValueError("the number of draws is not negative")
        kept: list[npt.NDArray[Any]] = []
        missing = count
        while missing:
            candidates = self._candidates(missing, source)
            size = np.abs(candidates)
            good = size <= self.bound
            ends = np.flatnonzero(size == self.bound)
            good[ends] = draw_coins(self.weight, len(ends), source)
            found = candidates[good].astype(np.int64)
            kept.append(found)
            missing -= len(found)
        return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)

    def _candidates(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return at most `count` draws, in proportion to q^|x| wherever |x| <= bound; some at least, in the mean.

        A bound below the scale is proposed evenly and kept with probability q^|x|, at least 1/e.
        """
        t, s = sampled_scale(self.scale).as_integer_ratio()
        if self.bound * s >= t:
            return draw_discrete_laplace(self.scale, count, source)
        places = draw_below(2 * self.bound + 1, count, source).astype(np.int64) - self.bound
        return places[draw_exp_of_fraction(np.abs(places).astype(np.uint64) * np.uint64(s), t, source)]

    def shown(self, noisy: npt.NDArray[Any], coins: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which groups are shown, in the shape of their noisy counts. `coins`: true with probability `coin`."""
        return np.asarray((noisy > self.bound) | ((noisy == self.bound) & coins), dtype=np.bool_)


# --- powers of q, from below and from above ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Powers:
    """q^k and q, and what the probabilities of all x add up to before they are divided by it."""

    step: Bounds
    end: Bounds

    def mass(self, weight: Fraction) -> Bounds:
        """Return Σ q^|x| over |x| < k, which is (1 + q - 2 q^k) / (1 - q), and weight · 2 q^k."""
        (q_low, q_high), (low, high) = self.step, self.end
        return (
            (1 + q_low - 2 * high) / (1 - q_low) + 2 * weight * low,
            (1 + q_high - 2 * low) / (1 - q_high) + 2 * weight * high,
        )


def _digits(scale: Fraction) -> int:
    """Return how many digits keep 40 after 1 - q, which is near 1/scale, was divided by twice."""
    return _GUARD_DIGITS + 2 * len(str(math.ceil(scale)))


@lru_cache(maxsize=1024)
def _power(scale: Fraction, m: int) -> Bounds:
    scale = sampled_scale(scale)
    return bounds_of_exp(m / scale, _digits(scale)) if m else (Fraction(1), Fraction(1))


@lru_cache(maxsize=256)
def _powers(scale: Fraction, bound: int) -> _Powers:
    return _Powers(_power(scale, 1), _power(scale, bound))


@lru_cache(maxsize=256)
def _within(scale: Fraction, delta: Fraction) -> Truncated:
    bound = _bound(scale, delta)
    powers = _powers(scale, bound)
    (last_low, last_high), (end_low, end_high) = _power(scale, bound - 1), powers.end
    # excess: (1-w) q^(k-1) + w q^k <= delta · mass(w), solved for w
    most = last_high - delta * powers.mass(Fraction(0))[0]
    weight = most / (last_low - end_high + 2 * delta * end_low)
    rounded = Fraction(max(1, math.ceil(min(Fraction(1), weight) * COIN)), COIN)
    return Truncated(scale, bound, rounded)


def _bound(scale: Fraction, delta: Fraction) -> int:
    """Return the smallest k >= 1 with Pr[X = k] <= delta for w = 1, checked on bounds from above.

    That falls as k grows, and is at most delta where q^k <= delta (1+q) / (1 - q + 2 delta q): the search begins there.
    """
    q = _power(scale, 1)[0]
    ratio = (1 - q + 2 * delta * q) / (delta * (1 + q))
    context = decimal.Context(prec=_digits(scale), Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    log = context.ln(context.divide(decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator)))
    k = max(1, math.floor(sampled_scale(scale) * Fraction(log)) - 1)
    while _end_mass(scale, k) > delta:
        k += 1
    return k


def _end_mass(scale: Fraction, k: int) -> Fraction:
    """Return Pr[X = k] from above, where w = 1."""
    powers = _powers(scale, k)
    return powers.end[1] / powers.mass(Fraction(1))[0]


@dataclass(frozen=True, slots=True)
class Thresholded(Normal):
    """See `Law`, and `within` for how one is made; `scale` is the noise's sigma.

    Raises as `Gaussian` does, and ValueError on a bound below 1.
    """

    name: ClassVar[str] = "thresholded"
    is_additive: ClassVar[bool] = False
    """Groups whose counts it hides are missing, and a missing group is not 0: no sums of such draws."""
    coin: ClassVar[Fraction] = Fraction(0)
    """How often a noisy count of `bound` is shown."""
    scale: Fraction
    bound: int

    def __post_init__(self) -> None:
        Gaussian(self.scale)
        if type(self.bound) is not int or self.bound < 1:
            raise ValueError("a bound is at least 1")

    @classmethod
    def within(cls, noise: Gaussian, delta: Fraction, groups: int, together: int) -> Thresholded:
        """Return the law of the least bound under which what is found costs at most `delta`.

        `groups`: in how many one unit may be; `together`: how many units change. A group that is theirs alone has
        n <= together people, and all these n together are at most together·groups: so the chance that any is shown
        is at most together·groups·max over n of Pr[Y > bound - n]/n.
        """
        if not isinstance(delta, Fraction):
            raise TypeError(f"delta is an exact Fraction, not {type(delta).__name__}")
        each = delta / (together * groups)
        bound = noise.upper_quantile(min(each, Fraction(1, 3))) + together - 1
        while bound > together and all(noise.tail(bound - n) <= n * each for n in range(1, together + 1)):
            bound -= 1
        return cls(noise.scale, bound)

    def shown(self, noisy: npt.NDArray[Any], coins: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which groups are shown, in the shape of their noisy counts; `coins` are not looked at."""
        return np.asarray(noisy > self.bound, dtype=np.bool_)

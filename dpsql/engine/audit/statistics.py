"""What an attacker's hits and false alarms say of epsilon: bounds of Clopper and Pearson (soundness.md 5.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...mechanisms import delta_of_rho

__all__ = ["ERROR", "Attack", "allowed", "at_least", "at_most", "attack", "least_rho", "lower_bound"]

ERROR = 1e-6
"""How often a bound is wrong."""
_FALSE_ALARMS = 0.05
_ORDERS = [1 + 10 ** (step / 10) for step in range(-20, 21)]
_LIMITS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, slots=True)
class Attack:
    """The best test of which of two databases it was: a lower bound of epsilon, and the textbook's view of it.

    `found`: how often it is right, where it gives a false alarm 5 times in 100.
    """

    epsilon: float
    found: float


def attack(
    here: npt.NDArray[Any], there: npt.NDArray[Any], delta: float = 0.0, *, in_rho: bool = False
) -> Attack:
    """Return what half lines of a score find; `here` and `there` are of releases of one database each, shape (runs,).

    Larger scores speak for the first. `in_rho`: the loss is bounded in rho, and told as the epsilon of the pure draw
    that costs as much. The event is chosen on the first half of the draws and judged on the second.
    """
    half = len(here) // 2
    limits = np.unique(np.quantile(np.concatenate([here[:half], there[:half]]), _LIMITS))

    def bound(limit: float, part: slice) -> float:
        hits, alarms = int((here[part] >= limit).sum()), int((there[part] >= limit).sum())
        if in_rho:
            return math.sqrt(2 * least_rho(hits, alarms, len(here[part])))
        return lower_bound(hits, alarms, len(here[part]), delta)

    chosen = max(limits, key=lambda limit: bound(float(limit), slice(half)))
    strict = np.quantile(there[:half], 1 - _FALSE_ALARMS)
    return Attack(bound(float(chosen), slice(half, None)), _power(here[half:], there[half:], float(strict)))


def _power(here: npt.NDArray[Any], there: npt.NDArray[Any], limit: float) -> float:
    """Return the hits at 5 % false alarms: above the limit always, at it so often as it takes."""
    above, at = float((there > limit).mean()), float((there == limit).mean())
    share = min(1.0, max(0.0, (_FALSE_ALARMS - above) / at)) if at else 0.0
    return float((here > limit).mean()) + share * float((here == limit).mean())


def lower_bound(hits: int, alarms: int, runs: int, delta: float = 0.0) -> float:
    """Return a lower bound of epsilon from an event's counts on both sides; 0 where they say nothing."""
    low, high = at_least(hits, runs, ERROR / 2), at_most(alarms, runs, ERROR / 2)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def least_rho(hits: int, alarms: int, runs: int) -> float:
    """Return a lower bound of rho from an event's counts on both sides; 0 where they say nothing.

    Whether the event is there is post-processing: in each order a its two sides are no further apart than a·rho.
    """
    p, q = at_least(hits, runs, ERROR / 2), at_most(alarms, runs, ERROR / 2)
    if not 0 < q < p < 1:
        return 0.0
    return max(float(_divergence(p, q, order)) / order for order in _ORDERS)


def _divergence(p: float, q: float, order: float) -> float:
    """Return the Rényi divergence of one biased coin from another."""
    heads = order * math.log(p) + (1 - order) * math.log(q)
    tails = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
    return float(np.logaddexp(heads, tails)) / (order - 1)


def allowed(rho_atto: int, delta: float) -> float:
    """Return how often an attacker may be right at 5 % false alarms: by the hockey stick of rho."""
    known = (math.exp(e) * _FALSE_ALARMS + delta_of_rho(rho_atto, float(e)) for e in np.linspace(0, 6, 601))
    return min(1.0, min(known) + delta)


@lru_cache(2**14)  # a search asks for the same few counts of the same number of runs
def at_least(hits: int, runs: int, error: float = ERROR) -> float:
    """Return a lower bound of a probability that gave so many hits: the p with Pr[at least `hits`] = `error`."""
    return _solved(lambda p: _at_least_so_many(hits, runs, p), error) if hits else 0.0


def at_most(hits: int, runs: int, error: float = ERROR) -> float:
    """Return an upper bound of a probability that gave so many hits."""
    return 1.0 - at_least(runs - hits, runs, error)


def _solved(rising: Any, error: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) <= error else (low, middle)
    return low


def _at_least_so_many(hits: int, runs: int, p: float) -> float:
    """Return Pr[Binomial(runs, p) >= hits], for 1 <= hits: the regularised incomplete beta function I_p(a, b)."""
    a, b = float(hits), float(runs - hits + 1)
    if p <= 0 or p >= 1:
        return float(p >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(p) + b * math.log1p(-p)
    )
    if p < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, p) / a
    return 1.0 - front * _fraction(b, a, 1 - p) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz' method (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d or tiny)
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / ((1.0 + term * d) or tiny)
            c = (1.0 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return value

"""How large discrete Gaussian noise gets: bounds of its tails, which thresholds rest on.

Pr[Y = y] = exp(-y²/(2 sigma²)) / Z with Z = Σ exp(-y²/(2 sigma²)) over all integers; soundness.md 2.5.

- Up to sigma = 64 the tail is summed term by term, and what is left of it, at y, is at most its term over
  1 - exp(-(2y+1)/(2 sigma²)), as (y+j)² - y² >= j·(2y+1).
- Above, Z >= √(2 pi)·sigma (Poisson's sum has positive terms alone). From one deviation on the density is convex, so
  each term is at most the integral over the unit around it: Pr[Y >= m] <= Pr[N(0, sigma²) >= m - 1/2] for
  m - 1/2 >= sigma. Nearer to the centre Pr[Y >= m] <= Pr[N(0, sigma²) >= m - 1] (Canonne, Kamath, Steinke 2020,
  proposition 25).

House rules: those of laplace_accuracy. Numbers have 60 digits and what is returned is raised by one in 10^40, which is
more than what all roundings together can be off.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

__all__ = ["MOST_SUMMED", "half_width", "normal_tail", "tail", "upper_quantile"]

MOST_SUMMED: Final = 64
"""Tails of deviations up to this one are summed."""
_DIGITS: Final = 60
_MARGIN: Final = Fraction(1, 10**40)
_SMALLEST_PROBABILITY: Final = Fraction(1, 10**900)
_FARTHEST: Final = 68
"""So many deviations out is less than 10^-998, of the normal law as of sums: numbers only grow longer beyond."""
_NEVER: Final = Fraction(1, 10**998)
_SERIES: Final = 4
"""Up to so many deviations the normal tail is a series, beyond a continued fraction."""
_FRACTION_DEPTH: Final = 200  # even: then it is a bound from above

_CONTEXT: Final = decimal.Context(
    prec=_DIGITS, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
)


def tail(sigma: Fraction, m: int) -> Fraction:
    """Return an upper bound of Pr[Y >= m], for m >= 1.

    Ensures: never below the true value; above it by less than one part in 10^39 up to sigma = 64 (or by 10^-998),
    beyond that at most the true value at the next smaller m.
    """
    if m < 1:
        raise ValueError("a tail begins at 1 or beyond")
    if m**2 > _FARTHEST**2 * sigma**2:
        return _NEVER
    if sigma <= MOST_SUMMED:
        return _summed(sigma, m) * (1 + _MARGIN)
    shift = Fraction(1, 2) if m - Fraction(1, 2) >= sigma else Fraction(1)
    return normal_tail((m - shift) / sigma)


def normal_tail(z: Fraction) -> Fraction:
    """Return an upper bound of Pr[N(0, 1) >= z], above it by less than one part in 10^39. Requires `z` >= 0."""
    if z > _FARTHEST:
        return _NEVER
    c, x = _CONTEXT, _decimal(z)
    density = c.divide(c.exp(c.divide(c.multiply(x, x), Decimal(-2))), _root_two_pi())
    if z < _SERIES:
        # Q(z) = 1/2 - density·Σ z^(2k+1) / (1·3·5…(2k+1)), of positive terms
        term, total, k = x, Decimal(0), 0
        while term > Decimal(10) ** -(_DIGITS + 5):
            total, k = c.add(total, term), k + 1
            term = c.divide(c.multiply(term, c.multiply(x, x)), Decimal(2 * k + 1))
        found = c.subtract(Decimal("0.5"), c.multiply(density, total))
    else:
        # Q(z) = density / (z + 1/(z + 2/(z + …))), whose convergents alternate
        below = x
        for k in range(_FRACTION_DEPTH, 0, -1):
            below = c.add(x, c.divide(Decimal(k), below))
        found = c.divide(density, below)
    return Fraction(found) * (1 + _MARGIN)


def upper_quantile(sigma: Fraction, probability: Fraction) -> int:
    """Return the smallest m >= 1 with `tail(sigma, m)` <= `probability`: Pr[Y >= m] is at most that.

    Requires: 10^-900 <= `probability` < 1/2, exact; else TypeError or ValueError.
    """
    if not isinstance(probability, Fraction):
        raise TypeError(f"a tail probability is an exact Fraction, not {type(probability).__name__}")
    if not _SMALLEST_PROBABILITY <= probability < Fraction(1, 2):
        raise ValueError("a tail probability is at least 10^-900 and below 1/2")
    return _upper_quantile(sigma, probability)


@lru_cache(maxsize=1024)
def _upper_quantile(sigma: Fraction, probability: Fraction) -> int:
    if sigma > MOST_SUMMED:
        return _first(lambda m: tail(sigma, m) <= probability, 65 * math.ceil(sigma))
    near = max(1, math.ceil(float(sigma) * _normal_quantile(probability)))
    while tail(sigma, near) > probability:
        near += 1
    while near > 1 and tail(sigma, near - 1) <= probability:
        near -= 1
    return near


def _first(holds: Callable[[int], bool], high: int) -> int:
    """Return the smallest m >= 1 with what holds from some m up to `high` on."""
    low = 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _normal_quantile(probability: Fraction) -> float:
    """Return about the z with so much beyond it: where a search begins."""
    if probability > Fraction(1, 10**15):
        return max(0.0, -NormalDist().inv_cdf(float(probability)))
    log = float(_CONTEXT.ln(_decimal(probability)))
    return math.sqrt(-2 * log - math.log(-4 * math.pi * log))


def half_width(sigma: Fraction, beta: Fraction) -> int:
    """Return an m >= 0 with Pr[|Y| > m] <= `beta`, the smallest up to sigma = 64, else at most one above it.

    Requires: 2 * 10^-900 <= `beta` < 1; else ValueError.
    """
    return upper_quantile(sigma, beta / 2) - 1


# --- sums -----------------------------------------------------------------------------------------------------


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


@lru_cache(maxsize=1)
def _root_two_pi() -> Decimal:
    """Return √(2 pi), from Machin's formula."""
    unit = 10 ** (_DIGITS + 10)

    def arc_cotangent(x: int) -> int:
        term, total, k = unit // x, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // (x * x), k + 1
        return total

    two_pi = Fraction(8 * (4 * arc_cotangent(5) - arc_cotangent(239)), unit)
    return _CONTEXT.sqrt(_decimal(two_pi))


def _sum_from(sigma: Fraction, m: int) -> Decimal:
    """Return Σ exp(-y²/(2 sigma²)) over y >= m, for m >= 1: to the last digits, and what is left of it besides."""
    c = _CONTEXT
    rate = _decimal(1 / (2 * sigma**2))
    term = c.exp(c.multiply(rate, Decimal(-m * m)))
    ratio = c.exp(c.multiply(rate, Decimal(-(2 * m + 1))))
    step = c.exp(c.multiply(rate, Decimal(-2)))
    total, least = Decimal(0), c.multiply(term, Decimal(10) ** -(_DIGITS - 5))
    while term > least:
        total = c.add(total, term)
        term, ratio = c.multiply(term, ratio), c.multiply(ratio, step)
    return c.add(total, c.divide(term, c.subtract(Decimal(1), ratio)))


@lru_cache(maxsize=4096)
def _summed(sigma: Fraction, m: int) -> Fraction:
    return Fraction(_CONTEXT.divide(_sum_from(sigma, m), _whole(sigma)))


@lru_cache(maxsize=256)
def _whole(sigma: Fraction) -> Decimal:
    """Return Z."""
    return _CONTEXT.add(Decimal(1), _CONTEXT.multiply(Decimal(2), _sum_from(sigma, 1)))

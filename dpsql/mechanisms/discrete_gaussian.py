"""The discrete Gaussian distribution, sampled exactly: Pr[Y = y] is proportional to exp(-y²/(2 sigma²)).

Karney, "Sampling exactly from the normal distribution" (2016), algorithm D, with centre 0; of which Canonne, Kamath,
Steinke (2020) show what it is worth as noise; soundness.md 2.5. With sigma = a/b and an integer y >= 0, let k be the
whole deviations in y, k = floor(y·b/a), and r/a the rest of one, r = y·b - k·a. Then

    exp(-y²/(2 sigma²)) = exp(-(k + r/a)²/2) = exp(-k²/2) · exp(-r/a)^k · exp(-(r/a)²/2)

k: geometric with exp(-1/2), kept with probability exp(-k(k-1)/2), a whole power of 1/e; r: y is the smallest with at
least k deviations plus a uniform integer, and r < a or all is drawn anew; then a sign (the pair "negative, zero" is
dropped) and the two other factors as coins. exp(-x²/2) for x = r/a comes from a chain as exp(-x) does: coin n shows
heads with probability x·(x/2)/n, by three uniform integers.

Pr[Y = y] = exp(-y²/(2 sigma²)) / Z with Z = Σ exp(-y²/(2 sigma²)) over all integers; soundness.md 2.5.

- Up to sigma = 64 the tail is summed term by term, and what is left of it, at y, is at most its term over
  1 - exp(-(2y+1)/(2 sigma²)), as (y+j)² - y² >= j·(2y+1).
- Above, Z >= √(2 pi)·sigma (Poisson's sum has positive terms alone). From one deviation on the density is convex, so
  each term is at most the integral over the unit around it: Pr[Y >= m] <= Pr[N(0, sigma²) >= m - 1/2] for
  m - 1/2 >= sigma. Nearer to the centre Pr[Y >= m] <= Pr[N(0, sigma²) >= m - 1] (Canonne, Kamath, Steinke 2020,
  proposition 25).

House rules, beside those of discrete_laplace:

1. Every candidate takes the same steps. Which are kept is decided by coins that are drawn for it, never by how large
   it is beyond the law itself.
2. Numbers have 60 digits and what is returned of a tail is raised by one in 10^40, which is more than what all
   roundings together can be off.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .discrete_laplace import (
    Below,
    as_array,
    check_probability,
    draw_exp_of_fraction,
    draw_inverse_e,
    draw_root_e,
    draw_runs,
    first_of,
    first_tails_is_odd,
    is_exp_of_fraction,
)
from .uniform import RandomSource, draw_below, draw_one_below

_Integers = npt.NDArray[Any]  # int64, or dtype object holding Python ints
_Int64 = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_FEW: Final = 16  # below this, arrays cost more than they save
_LARGEST_A: Final = 2**55  # then k·a + b + a fits int64 for all k below 128
_LARGEST_B: Final = 2**20
_LARGEST_SAFE_K: Final = 127
_CHUNK: Final = 2**16  # candidates at a time: temporaries stay in the cache, memory stays flat
_MEAN_RUN: Final = 1.542  # of coins exp(-1/2)


def draw_discrete_gaussian(sigma: Fraction, count: int, source: RandomSource) -> _Integers:
    """Return `count` independent draws from the discrete Gaussian distribution, in coordinate units, shape (count,).

    Requires: `sigma` > 0, an exact Fraction.
    Ensures: exactly that distribution. int64, or an array of Python ints (dtype object) when the numerator exceeds
    2^55, the denominator 2^20, or a draw does not fit (probability below e^-8000).
    Raises TypeError, ValueError on a bad `sigma` or a negative `count`, before anything is drawn.
    """
    if not isinstance(sigma, Fraction):
        raise TypeError(f"a deviation is an exact Fraction, not {type(sigma).__name__}")
    if sigma <= 0 or count < 0:
        raise ValueError("a deviation is positive, and the number of draws is not negative")
    a, b = sigma.as_integer_ratio()
    fits = a <= _LARGEST_A and b <= _LARGEST_B
    if not fits or count < _FEW:
        return as_array([_draw_one(a, b, _below(source)) for _ in range(count)], fits=fits)
    chunks: list[_Integers] = []
    missing = count
    while missing:
        size = min(_CHUNK, int(missing * 2.05) + 32)
        chunk = _draw_candidates(a, b, size, source)[:missing]
        chunks.append(chunk)
        missing -= chunk.size
    return np.concatenate(chunks)


def _draw_candidates(a: int, b: int, size: int, source: RandomSource) -> _Integers:
    """Return the draws among `size` candidates: shape (n,), n of them kept, in the candidates' order."""
    k = _whole_deviations(size, source)
    # of k·a + e, the smallest multiple of b from k·a on: e = -k·a mod b
    past = (-(k % b) * (a % b)) % b
    further = draw_below(-(-a // b), k.size, source).astype(np.int64)
    rest = past + further * b
    signs = np.frombuffer(source.random_bytes((k.size + 7) // 8), dtype=np.uint8)
    is_negative = np.unpackbits(signs, count=k.size).view(np.bool_)
    is_kept = (rest < a) & ~(is_negative & (k == 0) & (rest == 0))
    k, past, further, rest, is_negative = (array[is_kept] for array in (k, past, further, rest, is_negative))
    is_kept = _square_coins(rest, a, source)
    is_kept &= _product_coins(k, rest, a, source)
    size_of = _combine(k[is_kept], past[is_kept], further[is_kept], a, b)
    np.negative(size_of, out=size_of, where=is_negative[is_kept])
    return size_of


def _whole_deviations(size: int, source: RandomSource) -> _Int64:
    """Return the k of `size` candidates that are kept, shape (n,): Pr[k] is proportional to exp(-k²/2)."""
    k = draw_runs(draw_root_e, size, _MEAN_RUN, source)
    return k[_all_heads(k * (k - 1) // 2, source)]


def _all_heads(counts: _Int64, source: RandomSource) -> _Mask:
    """Return coins in the shape of `counts`, the i-th true with probability exp(-counts[i])."""
    coins = np.ones(counts.size, dtype=np.bool_)
    running, thrown = np.flatnonzero(counts), 1
    while running.size:
        heads = draw_inverse_e(running.size, source) == 1
        coins[running[~heads]] = False
        running = running[heads & (counts[running] > thrown)]
        thrown += 1
    return coins


def _product_coins(k: _Int64, rest: _Int64, a: int, source: RandomSource) -> _Mask:
    """Return coins, the i-th true with probability exp(-k[i]·rest[i]/a). Requires 0 <= rest < a."""
    coins = np.ones(k.size, dtype=np.bool_)
    running, left = np.flatnonzero(k), 1
    while running.size:
        heads = draw_exp_of_fraction(rest[running].astype(np.uint64), a, source)
        coins[running[~heads]] = False
        running = running[heads & (k[running] > left)]
        left += 1
    return coins


def _square_coins(rest: _Int64, a: int, source: RandomSource) -> _Mask:
    """Return coins, the i-th true with probability exp(-(rest[i]/a)²/2). Requires 0 <= rest < a.

    Round n leaves those running whose coin n shows heads; the others stop at n, true iff n is odd.
    """
    coins = np.ones(rest.size, dtype=np.bool_)
    parts = rest.astype(np.uint64)
    running = _both_below(np.arange(rest.size), parts, a, source)
    n = 2
    while running.size:
        coins[running] = n % 2 == 1
        heads = running[draw_below(n, running.size, source) == 0]
        running = _both_below(heads, parts, a, source)
        n += 1
    return coins


def _both_below(of: _Int64, rest: npt.NDArray[np.uint64], a: int, source: RandomSource) -> _Int64:
    """Return those of the indices `of` at which a coin of rest/a and one of rest/(2a) show heads."""
    of = of[draw_below(2 * a, of.size, source) < rest[of]]
    return of[draw_below(a, of.size, source) < rest[of]]


def _combine(k: _Int64, past: _Int64, further: _Int64, a: int, b: int) -> _Integers:
    """Return (k·a + past)/b + further, which is whole; in Python ints when some k is too large for int64."""
    if k.size and int(k.max()) > _LARGEST_SAFE_K:
        return np.asarray((k.astype(object) * a + past) // b + further, dtype=object)
    return (k * a + past) // b + further


# One at a time, in Python ints of any size.


def _below(source: RandomSource) -> Below:
    return lambda n: draw_one_below(n, source)


def _draw_one(a: int, b: int, below: Below) -> int:
    """Return one draw; `below(n)` gives a uniform integer in [0, n)."""
    while True:
        k = 0
        while first_tails_is_odd(1, below, 2):
            k += 1
        if not all(first_tails_is_odd(2, below) for _ in range(k * (k - 1) // 2)):
            continue
        y = -(-k * a // b) + below(-(-a // b))
        rest = y * b - k * a
        if rest >= a:
            continue
        is_negative = below(2) == 1
        if is_negative and y == 0:
            continue
        if _is_exp_of_square(rest, a, below) and all(is_exp_of_fraction(rest, a, below) for _ in range(k)):
            return -y if is_negative else y


def _is_exp_of_square(rest: int, a: int, below: Below) -> bool:
    """Return True with probability exp(-(rest/a)²/2). Requires 0 <= rest < a."""
    n = 1
    while below(2 * a) < rest and below(a) < rest and below(n) == 0:
        n += 1
    return n % 2 == 1


MOST_SUMMED: Final = 64
"""Tails of deviations up to this one are summed."""
_DIGITS: Final = 60
_MARGIN: Final = Fraction(1, 10**40)
_FARTHEST: Final = 68
"""So many deviations out is less than 10^-998, of the normal law as of sums: numbers only grow longer beyond."""
_NEVER: Final = Fraction(1, 10**998)
_NEAR: Final = 2**40
"""Doubles tell a quantile to one part in so many."""
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
    check_probability(probability)
    return _upper_quantile(sigma, probability)


@lru_cache(maxsize=1024)
def _upper_quantile(sigma: Fraction, probability: Fraction) -> int:
    if sigma > MOST_SUMMED:
        return _wide_quantile(sigma, probability)
    near = max(1, math.ceil(float(sigma) * _normal_quantile(probability)))
    while tail(sigma, near) > probability:
        near += 1
    while near > 1 and tail(sigma, near - 1) <= probability:
        near -= 1
    return near


def _wide_quantile(sigma: Fraction, probability: Fraction) -> int:
    """Return the same of a wide one: from where doubles say, as a tail takes long."""
    near = math.ceil(sigma * Fraction(_normal_quantile(probability)))
    step = 1 + near // _NEAR
    low, high = max(0, near - step), near + step
    while low and tail(sigma, low) <= probability:
        low, step = max(0, low - step), 2 * step
    while tail(sigma, high) > probability:
        low, high, step = high, high + step, 2 * step
    return first_of(lambda m: tail(sigma, m) <= probability, low + 1, high)


def _normal_quantile(probability: Fraction) -> float:
    """Return about the z with so much beyond it: where a search begins."""
    if probability > Fraction(1, 10**15):
        return max(0.0, -NormalDist().inv_cdf(float(probability)))
    log = float(_CONTEXT.ln(_decimal(probability)))
    return math.sqrt(-2 * log - math.log(-4 * math.pi * log))


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

"""The discrete Laplace distribution, sampled exactly: Pr[Y = y] = (1-q)/(1+q) q^|y|, q = exp(-1/scale).

Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms 1 and 2;
soundness.md 2.3. With scale = t/s: U uniform below t, kept with probability exp(-U/t); V geometric,
Pr[V >= v] = e^-v; then floor((U + tV)/s) is geometric with ratio exp(-s/t), and a sign makes it two-sided
(the pair "negative, zero" is dropped). exp(-x) for x in [0, 1] comes from a chain of rational coins:
coin k shows heads with probability x/k; the first tails is at an odd k with probability exp(-x).

How large it gets, for bars and thresholds: with q = exp(-1/scale), Pr[Y >= m] = q^m / (1+q) for m >= 1, and Pr[|Y| >
m] = 2 Pr[Y >= m+1] for m >= 0 (soundness.md 0 and 1.2).

House rules:

1. Integers and integer comparisons only. A float may choose how many candidates to draw, never a value.
2. Candidates are independent and kept in order; the first `count` kept are the draws. Nothing is redrawn because of
   how large it came out, and nothing is truncated.
3. The time to draw one sample depends on its size (Jin et al. 2022). Draw the whole batch that a release needs, before
   the SQL is sent; the engine sees to that.
4. A scale is an exact positive Fraction in coordinate units: sensitivity / epsilon. Floats are refused.
5. Whatever speaks of the noise (sampler, tails, thresholds, error bars) goes through `sampled_scale`, the scale that
   is really sampled for one that was asked for, so that all of them speak of the same distribution.
6. Every probability is a Fraction that is provably at least the true one; thresholds rest on that.
7. Decimals only through methods of a context of our own, never through operators: those round to the caller's context.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .uniform import RandomSource, draw_below, draw_one_below, random_words

_FINE_LIMIT: Final = 2**20


def sampled_scale(scale: Fraction) -> Fraction:
    """Return the scale of the noise drawn for `scale`: itself up to 2^20, above that its ceiling.

    Ensures: the result is >= `scale` (the privacy loss only shrinks), by less than one part in 2^20;
    applying it twice changes nothing. Source: soundness.md 2.2(4).
    Raises TypeError unless `scale` is a Fraction, ValueError unless it is positive.
    """
    if not isinstance(scale, Fraction):
        raise TypeError(f"a noise scale is an exact Fraction, not {type(scale).__name__}")
    if scale.numerator <= 0:
        raise ValueError("a noise scale is positive")
    return scale if scale.numerator <= _FINE_LIMIT * scale.denominator else Fraction(math.ceil(scale))


_Integers = npt.NDArray[Any]  # int64, or dtype object holding Python ints
_Mask = npt.NDArray[np.bool_]
Below = Callable[[int], int]

_FEW: Final = 16  # below this, arrays cost more than they save
ARRAY_LIMIT: Final = 2**55
"""Of t and s: then U + tV fits int64 for all V < 255."""
_LARGEST_SAFE_V: Final = 254
_CHUNK: Final = 2**16  # candidates at a time: temporaries stay in the cache, memory stays flat


def draw_discrete_laplace(scale: Fraction, count: int, source: RandomSource) -> _Integers:
    """Return `count` independent draws from the discrete Laplace distribution, in coordinate units, shape (count,).

    Requires: `scale` > 0, an exact Fraction. Above 2^20 its ceiling is sampled (see `sampled_scale`).
    Ensures: exactly that distribution. int64, or an array of Python ints (dtype object) when numerator
    or denominator exceeds 2^55, or a draw does not fit (probability below e^-254). A sum of
    data and noise can leave int64: add in Python ints, or saturate afterwards.
    Raises TypeError, ValueError on a bad `scale` or a negative `count`, before anything is drawn.
    """
    t, s = sampled_scale(scale).as_integer_ratio()
    if count < 0:
        raise ValueError("the number of draws is not negative")
    if max(t, s) > ARRAY_LIMIT or count < _FEW:
        return as_array(_draw_few(t, s, count, source), fits=max(t, s) <= ARRAY_LIMIT)
    chunks: list[_Integers] = []
    missing = count
    rate = _acceptance_rate(t, s)
    while missing:
        size = min(_CHUNK, int(missing / rate * 1.02) + 32)
        chunk = _draw_candidates(t, s, size, source)[:missing]
        chunks.append(chunk)
        missing -= chunk.size
    return np.concatenate(chunks)


def draw_geometric(scale: Fraction, count: int, source: RandomSource) -> _Integers:
    """Return `count` independent draws of the one-sided law: Pr[X = x] = (1-q) q^x, x >= 0.

    As `draw_discrete_laplace`, whose sizes these are before a sign is drawn: floor((U + tV) / s).
    """
    t, s = sampled_scale(scale).as_integer_ratio()
    if max(t, s) > ARRAY_LIMIT:
        values = [_draw_magnitude(t, s, lambda n: draw_one_below(n, source)) for _ in range(count)]
        return as_array(values, fits=False)
    chunks: list[_Integers] = [np.empty(0, dtype=np.int64)]
    missing, rate = count, 1.0 if t == 1 else -math.expm1(-1.0)
    while missing:
        u = draw_below(t, min(_CHUNK, int(missing / rate * 1.02) + 32), source)
        u = u[draw_exp_of_fraction(u, t, source)][:missing]
        chunks.append(_combine(u, _draw_geometric_e(u.size, source), t, s))
        missing -= u.size
    return np.concatenate(chunks)


def _acceptance_rate(t: int, s: int) -> float:
    """Return about the share of candidates that are kept; it sizes batches and nothing else."""
    kept_u = 1.0 if t == 1 else -math.expm1(-1.0)
    return kept_u * (1.0 + math.exp(-s / t)) / 2.0


def _draw_candidates(t: int, s: int, size: int, source: RandomSource) -> _Integers:
    """Return the draws among `size` candidates: shape (n,), n of them kept, in the candidates' order."""
    u = draw_below(t, size, source)
    u = u[draw_exp_of_fraction(u, t, source)]
    v = _draw_geometric_e(u.size, source)
    magnitude = _combine(u, v, t, s)
    signs = np.frombuffer(source.random_bytes((u.size + 7) // 8), dtype=np.uint8)
    is_negative = np.unpackbits(signs, count=u.size).view(np.bool_)
    np.negative(magnitude, out=magnitude, where=is_negative)
    is_kept: _Mask = (magnitude != 0) | ~is_negative
    return magnitude[is_kept]


def _combine(u: npt.NDArray[Any], v: npt.NDArray[np.int64], t: int, s: int) -> _Integers:
    """Return floor((u + t v) / s), in the shape of both; in Python ints when some v is too large for int64."""
    if v.size and int(v.max()) > _LARGEST_SAFE_V:
        return np.asarray((u.astype(object) + t * v.astype(object)) // s, dtype=object)
    x = v * t
    x += u.astype(np.int64)
    return x if s == 1 else x // s


def draw_exp_of_fraction(u: npt.NDArray[Any], t: int, source: RandomSource) -> _Mask:
    """Return coins in the shape of `u`, the i-th true with probability exp(-u[i]/t). Requires 0 <= u < t.

    Round k leaves those running whose coin k shows heads; the others stop at k, true iff k is odd.
    """
    coins = np.ones(u.size, dtype=np.bool_)
    running = np.flatnonzero(draw_below(t, u.size, source) < u)
    k = 2
    while running.size:
        coins[running] = k % 2 == 1
        heads = running[draw_below(k, running.size, source) == 0]
        running = heads[draw_below(t, heads.size, source) < u[heads]]
        k += 1
    return coins


# Coins with probability exp(-1/c) from 16-bit words, for c = 1 and 2. Coin k shows heads with probability 1/(c·k), so
# the first tails comes after k with probability 1/(c^k·k!): one uniform r below c^d·d! decides it unless all d coins
# show heads (r = 0). c = 1: 13 · 7! = 65520 words are used, 16 are rejected. c = 2: 17 · 2^5 · 5! = 65280 are.
_DECIDED: Final = {1: 7, 2: 5}
_CONTINUE: Final = 2
_REJECT: Final = 3


def _coin_table(c: int) -> npt.NDArray[np.uint8]:
    """Return by 16-bit word, shape (2^16,): 0 or 1 (the coin), _CONTINUE (all d coins show heads) or _REJECT."""
    table = np.full(2**16, _REJECT, dtype=np.uint8)
    whole = c ** _DECIDED[c] * math.factorial(_DECIDED[c])
    remainders = np.arange(2**16 // whole * whole) % whole
    for k in range(1, _DECIDED[c] + 1):
        # The first tails is at k or later iff r < whole / (c^(k-1)·(k-1)!).
        table[: remainders.size][remainders < whole // (c ** (k - 1) * math.factorial(k - 1))] = k % 2
    table[: remainders.size][remainders == 0] = _CONTINUE
    return table


_INVERSE_E: Final = _coin_table(1)
_ROOT_E: Final = _coin_table(2)


def draw_inverse_e(size: int, source: RandomSource) -> npt.NDArray[np.uint8]:
    """Return `size` coins, 1 with probability exactly 1/e."""
    return _draw_coins(_INVERSE_E, 1, size, source)


def draw_root_e(size: int, source: RandomSource) -> npt.NDArray[np.uint8]:
    """Return `size` coins, 1 with probability exactly exp(-1/2)."""
    return _draw_coins(_ROOT_E, 2, size, source)


def _draw_coins(
    table: npt.NDArray[np.uint8], c: int, size: int, source: RandomSource
) -> npt.NDArray[np.uint8]:
    coins = table.take(random_words(np.dtype("<u2"), size, source))
    rejected = np.flatnonzero(coins == _REJECT)
    if rejected.size:
        coins[rejected] = _draw_coins(table, c, rejected.size, source)
    for index in np.flatnonzero(coins == _CONTINUE):
        coins[index] = first_tails_is_odd(_DECIDED[c] + 1, lambda n: draw_one_below(n, source), c)
    return coins


def draw_runs(
    coins: Callable[[int, RandomSource], npt.NDArray[np.uint8]], size: int, mean: float, source: RandomSource
) -> npt.NDArray[np.int64]:
    """Return the lengths of `size` runs of ones in one stream of `coins`: geometric; `mean` sizes batches alone."""
    drawn = coins(int(size * (mean + 1.02)) + 64, source)
    while (ends := np.flatnonzero(drawn == 0)).size < size:
        drawn = np.concatenate((drawn, coins(size // 4 + 64, source)))
    return np.diff(ends[:size], prepend=-1) - 1


def _draw_geometric_e(size: int, source: RandomSource) -> npt.NDArray[np.int64]:
    """Return `size` geometric integers, Pr[V >= v] = e^-v: the runs of ones in one stream of coins."""
    return draw_runs(draw_inverse_e, size, 0.58, source)


# One at a time, in Python ints of any size.


def _draw_few(t: int, s: int, count: int, source: RandomSource) -> list[int]:
    def below(n: int) -> int:
        return draw_one_below(n, source)

    return [_draw_one(t, s, below) for _ in range(count)]


def _draw_one(t: int, s: int, below: Below) -> int:
    """Return one draw (CKS20 algorithm 2); `below(n)` gives a uniform integer in [0, n)."""
    while True:
        magnitude = _draw_magnitude(t, s, below)
        if below(2) == 0:
            return magnitude
        if magnitude:
            return -magnitude


def _draw_magnitude(t: int, s: int, below: Below) -> int:
    """Return one draw of the one-sided law."""
    u = below(t)
    while not is_exp_of_fraction(u, t, below):
        u = below(t)
    v = 0
    while first_tails_is_odd(2, below):
        v += 1
    return (u + t * v) // s


def is_exp_of_fraction(u: int, t: int, below: Below) -> bool:
    """Return True with probability exp(-u/t) (CKS20 algorithm 1). Requires 0 <= u < t."""
    k = 1
    while below(k) == 0 and below(t) < u:
        k += 1
    return k % 2 == 1


def first_tails_is_odd(k: int, below: Below, c: int = 1) -> bool:
    """Return whether the first tails is at an odd coin, from coin `k` on, coin k being heads w.p. 1/(c·k).

    From k = 1: True with probability exp(-1/c). (With c = 1 coin 1 is always heads, so k = 2 will do.)
    """
    while below(c * k) == 0:
        k += 1
    return k % 2 == 1


def as_array(values: list[int], *, fits: bool) -> _Integers:
    """Return integers as an array of shape (n,): int64 where all may (`fits`) and do fit, else Python ints."""
    if fits and all(abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


_GUARD_DIGITS: Final = 50
_LARGEST_EXPONENT: Final = 2300  # exp(-2300) < 10^-998; beyond it numbers only grow longer
_SMALLEST_PROBABILITY: Final = Fraction(1, 10**900)


def tail(scale: Fraction, m: int) -> Fraction:
    """Return an upper bound of Pr[Y >= m], for any integer m.

    Ensures: never below the true value, and above it by less than one part in 10^40 (or by 10^-998).
    """
    scale = sampled_scale(scale)
    digits = _GUARD_DIGITS + len(str(math.ceil(scale)))
    q_low, q_high = bounds_of_exp(1 / scale, digits)
    if m >= 1:
        return bounds_of_exp(m / scale, digits)[1] / (1 + q_low)
    # By symmetry Pr[Y >= m] = 1 - Pr[Y >= 1-m].
    return 1 - bounds_of_exp((1 - m) / scale, digits)[0] / (1 + q_high)


def upper_quantile(scale: Fraction, probability: Fraction) -> int:
    """Return the smallest m >= 1 with Pr[Y >= m] <= `probability`.

    Requires: 10^-900 <= `probability` < 1/2 (so that m = 0 would not do); else ValueError.
    Ensures: the inequality holds exactly, since it is checked on `tail`, a bound from above. The search
    starts at ceil(scale ln(1 / (probability (1+q)))), soundness.md 1.7, which is the answer already unless
    the two sides agree in 40 digits.
    """
    check_probability(probability)
    return _upper_quantile(sampled_scale(scale), probability)


@lru_cache(maxsize=1024)
def _upper_quantile(scale: Fraction, probability: Fraction) -> int:
    digits = _GUARD_DIGITS + len(str(math.ceil(scale)))
    odds = 1 / (probability * (1 + bounds_of_exp(1 / scale, digits)[1]))
    context = _context(digits, decimal.ROUND_HALF_EVEN)
    log_odds = Fraction(context.ln(_to_decimal(odds, context)))
    m = max(1, math.ceil(scale * log_odds))
    while tail(scale, m) > probability:
        m += 1
    return m


def first_of(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest m from `low` on with what holds from some m up to `high` on."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def check_probability(probability: Fraction) -> None:
    """Raise TypeError on a float, ValueError unless 10^-900 <= `probability` < 1/2."""
    if not isinstance(probability, Fraction):
        raise TypeError(f"a tail probability is an exact Fraction, not {type(probability).__name__}")
    if not _SMALLEST_PROBABILITY <= probability < Fraction(1, 2):
        raise ValueError("a tail probability is at least 10^-900 and below 1/2")


def bounds_of_exp(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return (low, high) with low <= exp(-x) <= high, for x >= 0.

    Ensures: they differ by less than one part in 10^(digits - 7); but (0, about 10^-998) for x > 2300.
    x is rounded away from the answer's safe side; `Decimal.exp` is correctly rounded, and the margin
    of 100 units in the last place does not even need that.
    """
    if x > _LARGEST_EXPONENT:
        return Fraction(0), bounds_of_exp(Fraction(_LARGEST_EXPONENT), digits)[1]
    margin = Fraction(100, 10**digits)
    x_low = _to_decimal(x, _context(digits, decimal.ROUND_FLOOR))
    x_high = _to_decimal(x, _context(digits, decimal.ROUND_CEILING))
    nearest = _context(digits, decimal.ROUND_HALF_EVEN)
    # copy_negate, since a minus sign would round to the digits of the caller's context.
    low = Fraction(nearest.exp(x_high.copy_negate())) * (1 - margin)
    high = Fraction(nearest.exp(x_low.copy_negate())) * (1 + margin)
    return low, high


def _context(digits: int, rounding: str) -> decimal.Context:
    """Return a context of its own: the caller's thread-wide one is neither read nor changed."""
    return decimal.Context(prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _to_decimal(x: Fraction, context: decimal.Context) -> decimal.Decimal:
    """Return x rounded once, as `context` says."""
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))

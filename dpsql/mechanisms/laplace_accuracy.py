"""How large discrete Laplace noise gets: tails and error bars.

With q = exp(-1/scale): Pr[Y >= m] = q^m / (1+q) for m >= 1, and Pr[|Y| > m] = 2 Pr[Y >= m+1] for m >= 0.
soundness.md 0 and 1.2.

House rules:

1. Every probability is a Fraction that is provably at least the true one; thresholds rest on that.
2. Decimals only through methods of a context of our own, never through operators: those round to the
   caller's context.
3. All speak of the noise that is really drawn: `sampled_scale(scale)`.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from .discrete_laplace import sampled_scale

__all__ = ["bounds_of_exp", "half_width", "tail", "upper_quantile"]

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
    _check_probability(probability)
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


def half_width(scale: Fraction, beta: Fraction) -> int:
    """Return the smallest m >= 0 with Pr[|Y| > m] <= `beta`: the error bar, in coordinate units.

    Requires: 2 * 10^-900 <= `beta` < 1; else ValueError.
    """
    return upper_quantile(scale, beta / 2) - 1


def _check_probability(probability: Fraction) -> None:
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

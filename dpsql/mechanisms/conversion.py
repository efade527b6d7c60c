"""Privacy parameters as exact rationals; rho, which adds up under zCDP, and (epsilon, delta) (soundness.md 3.11).

rho-zCDP gives (epsilon, delta)-DP where, for some order a > 1, [CKS20, proposition 12]

    a·rho + (ln(1/delta) + (a - 1)·ln(1 - 1/a) - ln a) / (a - 1) <= epsilon

House rules:

1. Every order gives a promise that holds, the best one only gives most: floats look for the order, and what is granted
   or charged is computed without them.
2. What is granted is rounded down, what is said to be spent is rounded up.

House rules, privacy parameters as exact rationals:

1. No floats. "0.1" is one tenth.
2. What is granted is rounded down, what is charged is rounded up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..errors import Refusal

# --- privacy parameters as exact rationals, and the integer units in which a ledger counts them -------------


NANO: Final = 10**9
"""Ledger units in one epsilon."""
ATTO: Final = 10**18
"""Ledger units in one delta, and in one rho."""
MIN_EPSILON: Final = Fraction(1, 10**6)
MAX_EPSILON: Final = Fraction(10)

_DECIMAL: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,9})?")  # not \d: it takes digits of other scripts


def parse_epsilon(text: str) -> Fraction:
    """Return the epsilon that `text` writes as a plain decimal with at most nine decimals.

    Ensures: 10^-6 <= result <= 10, and the result is a whole number of `NANO` units.
    Raises Refusal PV301 on anything else: signs, exponents, NaN, blanks, digits of other scripts.
    Depends on the text alone. Source: soundness.md 3.3.
    """
    epsilon = Fraction(text) if _DECIMAL.fullmatch(text) else None
    if epsilon is None or not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise Refusal(
            "epsilon is not a decimal number from 0.000001 to 10",
            sqlstate="PV301",
            hint="write it with at most nine decimals and no exponent, for example 0.5",
        )
    return epsilon


def floor_to_nano(epsilon: Fraction) -> Fraction:
    """Return `epsilon` rounded down to a multiple of 10^-9: for the shares of a split."""
    return Fraction(math.floor(epsilon * NANO), NANO)


def rho_of_pure(epsilon_nano: int) -> int:
    """Return epsilon²/2 in 10^-18, rounded up: the zCDP loss of one epsilon-DP draw [BS16, proposition 1.4]."""
    return -(-epsilon_nano * epsilon_nano // 2)


# --- between rho and (epsilon, delta) (soundness.md 3.11) ---------------------------------------------------


_DIGITS: Final = 60
_CONTEXT: Final = Context(prec=_DIGITS)
_LEAST, _MOST = math.log(1e-12), math.log(1e16)
"""Where the order less one is looked for, as logarithms; a cap of 10^4 and one of 10^-6 have theirs far inside."""


@lru_cache(1000)
def rho_within(epsilon: Fraction, delta: Fraction) -> int:
    """Return the most rho, in 10^-18, of which a total is (epsilon, delta)-DP; 0 where there is none.

    Requires: epsilon >= 0, 0 <= delta < 1.
    """
    if epsilon <= 0 or delta <= 0:
        return 0
    wanted, log = float(epsilon), _log(delta)
    order = _root(lambda t: (wanted - _rest(t, log)) * t * t / (1 + t) + math.log1p(t) + log)
    return max(0, math.floor((epsilon - _rest_above(order, delta)) / (1 + order) * ATTO))


@lru_cache(1000)
def epsilon_of_rho(rho_atto: int, delta: Fraction) -> Fraction:
    """Return an epsilon for which a total of so much rho is (epsilon, delta)-DP: the least, rounded up to 10^-9.

    Requires: 0 < delta < 1.
    """
    if rho_atto == 0:
        return Fraction(0)
    rho, log = rho_atto / ATTO, _log(delta)
    order = _root(lambda t: rho * t * t + math.log1p(t) + log)
    epsilon = (1 + order) * Fraction(rho_atto, ATTO) + _rest_above(order, delta)
    return Fraction(max(0, math.ceil(epsilon * NANO)), NANO)


def delta_of_rho(rho_atto: int, epsilon: float) -> float:
    """Return the delta at an epsilon of a total of so much rho, a bound to ten digits: a curve to compare with."""
    rho = rho_atto / ATTO
    t = float(_root(lambda t: (1 + 2 * t) * rho - epsilon + math.log(t) - math.log1p(t)))
    log = t * ((1 + t) * rho - epsilon + math.log(t) - math.log1p(t)) - math.log1p(t)
    return math.exp(min(0.0, log))


def pure_epsilon(rho_atto: int) -> Fraction:
    """Return the epsilon whose square is twice rho, rounded down to 10^-9: of the pure draw that costs as much."""
    return Fraction(math.isqrt(2 * rho_atto), NANO)


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)


def _rest(t: float, log_delta: float) -> float:
    """Return what is added to order times rho, at the order 1 + t."""
    return (-log_delta - math.log1p(t)) / t + math.log(t) - math.log1p(t)


def _rest_above(t: Fraction, delta: Fraction) -> Fraction:
    """Return an upper bound of `_rest`."""
    log_order = _bounds_of_log(1 + t)[0]
    return (-_bounds_of_log(delta)[0] - log_order) / t + _bounds_of_log(t)[1] - log_order


def _bounds_of_log(number: Fraction) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound of ln(number)."""
    quotient = _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))
    log = Fraction(quotient.ln(_CONTEXT))
    # Decimal rounds both rightly: each is off by half a unit of its last place at most, and ln is no steeper than 1/x.
    wide = (1 + abs(log)) * Fraction(1, 10 ** (_DIGITS - 2))
    return log - wide, log + wide


def _root(slope: Callable[[float], float]) -> Fraction:
    """Return a t > 0 at which a slope that rises through 0 does so, as far as floats can tell."""
    low, high = _LEAST, _MOST
    for _ in range(100):
        middle = (low + high) / 2
        if slope(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return Fraction(math.exp(high))

"""Privacy parameters as exact rationals, and the integer units in which a ledger counts them.

House rules:

1. No floats. "0.1" is one tenth.
2. What is granted is rounded down, what is charged is rounded up.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

from ..errors import Refusal

__all__ = [
    "ATTO", "MAX_EPSILON", "MIN_EPSILON", "NANO", "floor_to_atto", "floor_to_nano", "parse_epsilon",
    "rho_atto", "to_atto_up", "to_nano_up",
]  # fmt: skip

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


def to_nano_up(epsilon: Fraction) -> int:
    """Return `epsilon` in units of 10^-9, rounded up: for charges."""
    return math.ceil(epsilon * NANO)


def floor_to_nano(epsilon: Fraction) -> Fraction:
    """Return `epsilon` rounded down to a multiple of 10^-9: for the shares of a split."""
    return Fraction(math.floor(epsilon * NANO), NANO)


def to_atto_up(delta: Fraction) -> int:
    """Return `delta` in units of 10^-18, rounded up: for charges."""
    return math.ceil(delta * ATTO)


def floor_to_atto(delta: Fraction) -> Fraction:
    """Return `delta` rounded down to a multiple of 10^-18: for the shares of a split."""
    return Fraction(math.floor(delta * ATTO), ATTO)


def rho_atto(epsilon: Fraction) -> int:
    """Return rho = epsilon^2 / 2 in units of 10^-18, rounded up.

    A pure epsilon mechanism is rho-zCDP (Bun, Steinke 2016, proposition 1.4; soundness.md 3.1).
    """
    return math.ceil(epsilon * epsilon / 2 * ATTO)

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

__all__ = ["ATTO", "MAX_EPSILON", "MIN_EPSILON", "NANO", "floor_to_nano", "parse_epsilon", "rho_of_pure"]

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

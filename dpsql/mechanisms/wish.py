"""What a measurement wants of its noise, and what a draw costs beside what is known of its numbers.

Precision, one over the variance, adds up in the mean of independent estimates. So beside an estimate of precision P a
draw of what is missing, `1/v - P`, is as good as one of the variance v (soundness.md 3.13).

House rules:

1. What is charged is the loss of the draw that is made, by its own noise: `law(loss)` has no less noise than `loss`
   pays for. What is known lowers how much is asked for, never what that costs.
2. Exact: sensitivities are integers, losses whole ledger units. Rounding asks for more, but for six digits of rho.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from ..records import dataclass
from .conversion import ATTO, NANO
from .law import Law
from .laws import Gaussian, Laplace

__all__ = ["Wish"]

_DIGITS: Final = 6
"""What is missing is rounded to so many digits of what is wanted: so rhos of few digits add up to the last one."""
_TERMS: Final = 12
_WIDEST: Final = 2
"""Largest epsilon over sensitivity for which `_cosh` is that near: beyond it noise is far below a lattice step."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Additive noise on each coordinate. `loss`: what it costs alone, in 1e-9 of epsilon, or in 1e-18 of rho where that
    adds up; `size`: then the squared sensitivity in L2, else the sensitivity in L1, in coordinate units.

    Raises ValueError unless both are positive integers, and epsilon no more than twice the sensitivity.
    """

    size: int
    loss: int
    is_zcdp: bool

    def __post_init__(self) -> None:
        if any(type(number) is not int or number < 1 for number in (self.size, self.loss)):
            raise ValueError("a sensitivity and a loss are positive integers")
        if not self.is_zcdp and self._rate(self.loss) > _WIDEST:
            raise ValueError("noise of less than a step of the lattice is drawn in full")

    def law(self, loss: int) -> Law:
        """Return the noise of a draw that costs at most so much."""
        if self.is_zcdp:
            return Gaussian.finely_for_rho(self.size, Fraction(loss, ATTO))
        return Laplace(1 / self._rate(loss))

    def precision(self, loss: int) -> Fraction:
        """Return one over the variance of a draw that costs so much: of Laplace noise a bound, from below, by less than
        one part in 10^16.
        """
        return Fraction(2 * loss, ATTO * self.size) if self.is_zcdp else _cosh(self._rate(loss)) - 1

    def missing(self, known: Fraction) -> int:
        """Return the loss of a draw that has what is missing beside an estimate of so much precision: positive, and
        never more than alone. Of rho it is rounded to six digits of the whole, of epsilon raised.
        """
        return self.reaching(self.precision(self.loss) - known)

    def reaching(self, precision: Fraction) -> int:
        """Return the loss of a draw of so much precision: see `missing`."""
        digit: int = 10 ** max(0, len(str(self.loss)) - _DIGITS)
        if precision <= 0:
            return min(self.loss, digit)
        if self.is_zcdp:
            return min(self.loss, max(digit, round(precision * self.size / 2 * ATTO / digit) * digit))
        near = 2 * math.asinh(math.sqrt(precision / 2)) * self.size * NANO  # cosh(a) - 1 is 2·sinh²(a/2)
        found = max(1, math.ceil(near / digit) - 1) * digit
        while found < self.loss and self.precision(found) < precision:
            found += digit
        return min(self.loss, found)

    def stored(self, loss: int) -> int:
        """Return what a draw would cost that is as exact as what is known, where so much is missing beside it."""
        if self.is_zcdp:
            return self.loss - loss
        return self.reaching(self.precision(self.loss) - self.precision(loss))

    def _rate(self, loss: int) -> Fraction:
        return Fraction(loss, NANO * self.size)


def _cosh(x: Fraction) -> Fraction:
    """Return a lower bound of cosh(x), for 0 <= x <= 2: the beginning of its series."""
    term, total = Fraction(1), Fraction(1)
    for place in range(1, _TERMS):
        term *= x * x / ((2 * place - 1) * 2 * place)
        total += term
    return total

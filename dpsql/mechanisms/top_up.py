"""In a zCDP dataset: what is missing of a wanted rho where draws of the same numbers are stored, and the noise for it.

Precision, one over the variance, adds up in a mean of independent draws, and so does rho: a draw of a measurement with
squared sensitivity D² costs D²/2 times its precision (soundness.md 3.13). So a stored draw is worth that, of *this*
measurement, whatever was paid for it.

House rule: the charge is the loss of the draw that is made now, by its own noise. What is stored lowers how much is
asked for, never what that costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .conversion import ATTO
from .laws import Gaussian

__all__ = ["TopUp"]

_DIGITS = 6
"""What is missing is rounded to so many digits of the wanted rho: so rhos of few digits add up to the last one."""


@dataclass(frozen=True, slots=True)
class TopUp:
    """A measurement of squared sensitivity `squared` that wants `rho_atto`, in 1e-18, on each of its coordinates.

    Raises ValueError unless both are positive integers.
    """

    squared: int
    rho_atto: int

    def __post_init__(self) -> None:
        if any(type(number) is not int or number < 1 for number in (self.squared, self.rho_atto)):
            raise ValueError("a squared sensitivity and rho are positive integers")

    def worth(self, precisions: Sequence[Fraction]) -> Fraction:
        """Return what is stored of rho, in 1e-18: that of the coordinate with the least precision."""
        return min(precisions) * self.squared / 2 * ATTO

    def missing(self, precisions: Sequence[Fraction]) -> int:
        """Return the rho that is to be drawn, in 1e-18: positive, and never more than without what is stored."""
        digit: int = 10 ** max(0, len(str(self.rho_atto)) - _DIGITS)
        missing: int = round((self.rho_atto - self.worth(precisions)) / digit) * digit
        return min(self.rho_atto, max(digit, missing))

    def law(self, rho_atto: int) -> Gaussian:
        """Return the noise of a draw that costs at most so much."""
        return Gaussian.finely_for_rho(self.squared, Fraction(rho_atto, ATTO))

"""How far an aggregate of a plan is expected to be off: in figures, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from ..mechanisms import half_width_of
from ..plan.measures.formulas import Linear
from ..plan.release_plan import ReleasePlan

__all__ = ["MISSING", "expected_error"]

MISSING = Fraction(1, 20)
"""How often what is said after ± misses."""
_FEW_NOISES = 64
_NORMAL = 1.959964


def _formula_half(plan: ReleasePlan, formula: Linear, cells: int = 1) -> Fraction:
    """Return the half-width of a linear formula at 95 %, added up over so many groups: exact to six digits.

    Of many noises it is the normal one, which their sum comes to.
    """
    if plan.is_empty or not formula.terms:
        return Fraction(0)
    noises = plan.noises(formula)
    if len(noises) * cells <= _FEW_NOISES or cells == 1:
        return half_width_of(noises * cells, MISSING)
    variance = cells * sum(weight**2 * law.spread for law, weight in noises)
    return Fraction(_NORMAL * math.sqrt(variance)).limit_denominator(10**6)


def expected_error(
    plan: ReleasePlan, index: int, half_of: Callable[[Linear], Fraction] | None = None, cells: int = 1
) -> tuple[Fraction, bool]:
    """Return the expected ± of an aggregate, at 95 %; True: at most, and to be divided by the number of rows.

    `cells`: of how many groups of the release its numbers are added up. `half_of`: the half-width of a linear formula,
    where another level is meant.
    """
    return plan.formulas[index].widest(half_of or (lambda one: _formula_half(plan, one, cells)))

"""How far an aggregate of a plan is expected to be off: in figures, before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from ..mechanisms import half_width_of
from ..plan.measures.bivariate import Bivariate
from ..plan.measures.formulas import Average, Linear, Variance
from ..plan.planner import ReleasePlan

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

    An average or a variance is off by the noise on a sum of measures that depends on the average itself: the widest is
    at an end of its range. `cells`: of how many groups of the release its numbers are added up. `half_of`: the
    half-width of a linear formula, where another level is meant.
    """
    half = half_of or (lambda one: _formula_half(plan, one, cells))
    formula = plan.formulas[index]
    if isinstance(formula, Linear):
        return half(formula), False
    if isinstance(formula, Average):
        reach = (formula.highest - formula.lowest) / 2
        ends = (formula.difference.plus(formula.count.times(way * reach)) for way in (-1, 1))
        return max(map(half, ends)), True
    if isinstance(formula, Bivariate):
        return max(map(half, formula.covariance)), True
    assert isinstance(formula, Variance), "of a chosen value the rank is known"
    squares, spread = (
        formula.moment.times(Fraction(1, 2)),
        formula.difference.times(Fraction(2 * formula.width)),
    )
    widest = max(half(squares.plus(spread.times(Fraction(way)))) for way in (-1, 1))
    return formula.step**2 / 4 * widest, True

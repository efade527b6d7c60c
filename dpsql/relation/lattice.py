"""The public lattice of a summed expression: integers [L, H] times g (soundness.md 0, 2.2).

House rules:

1. L, H and g come from declared bounds, literals and types. A number without declared bounds has no
   lattice and is not summed.
2. The printed clamp enforces [L, H] whatever the column holds (law L9): `print_value` prints it
   from this very object.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..errors import Refusal
from .expressions import Expr, Field, IntermediateValue, walk
from .intervals import Environment, narrowed_facts

__all__ = ["Lattice", "lattice_of", "undeclared"]

_MAX_ENDPOINT = 2**61
_MAX_REAL = Fraction(10) ** 100
_REAL_WIDTH = 2**32
_SQUARED_WIDTH = 2**24
_EXACT_SQUARED_WIDTH = 2**30


@dataclass(frozen=True, slots=True)
class Lattice:
    """Integers `low`..`high` (inclusive) that stand for `step` times themselves.

    `lo`, `hi`: the clamp in the expression's own unit. `exact`: the expression is on the lattice
    already (integers, decimals); False for reals, which are clamped to [lo, hi] and then rounded.

    Ensures: low <= high, |low| and |high| below 2^61 (soundness.md 2.2(1)).
    """

    low: int
    high: int
    step: Fraction
    lo: Fraction
    hi: Fraction
    exact: bool

    @property
    def width(self) -> int:
        """W = high - low."""
        return self.high - self.low

    @property
    def reach(self) -> int:
        """B = max(|low|, |high|)."""
        return max(abs(self.low), abs(self.high))


def lattice_of(expr: Expr, env: Environment, *, squared: bool) -> Lattice | None:
    """Return the lattice of a numeric expression; None when its interval is empty.

    Raises:
        Refusal: PV101 when the bounds are not declared, PV201 when they are too wide.
    """
    facts = narrowed_facts(expr, env)
    if facts.lo is None or facts.hi is None or not facts.declared:
        raise undeclared(expr, env)
    lo, hi = facts.lo, facts.hi
    if lo > hi:
        return None
    loose = hi - lo > 2**53 and any(isinstance(part, IntermediateValue) for part in walk(expr))
    if loose or max(abs(lo), abs(hi)) > _MAX_REAL or (squared and (hi - lo) ** 2 > _MAX_REAL):
        raise Refusal(
            "the bounds of this expression are too wide for a useful answer",
            sqlstate="PV201",
            position=expr.position,
            hint="give the subquery's value two ends: GREATEST(low, LEAST(high, (SELECT …)))"
            if loose
            else "clamp it: GREATEST(low, LEAST(high, …))",
        )
    step = facts.grid
    if isinstance(expr, Field):
        step = env.columns[expr.index].step or step
    if step is not None and facts.grid is not None and (step / facts.grid).denominator == 1:
        low, high = math.ceil(lo / step), math.floor(hi / step)
        fits = high - low <= _EXACT_SQUARED_WIDTH or not squared
        on_grid = step == facts.grid
        if on_grid and low <= high and max(abs(low), abs(high)) < _MAX_ENDPOINT and fits:
            return Lattice(low, high, step, lo, hi, exact=True)
        if on_grid and low > high:
            return None
    if step is None or facts.grid is not None or (squared and (hi - lo) / step > _EXACT_SQUARED_WIDTH):
        step = _power_of_two((hi - lo), _SQUARED_WIDTH if squared else _REAL_WIDTH)
        if isinstance(expr, Field) and (declared := env.columns[expr.index].step) is not None and not squared:
            step = declared
    low, high = _rounded(lo, step), _rounded(hi, step)
    if max(abs(low), abs(high)) >= _MAX_ENDPOINT:
        raise Refusal(
            "the bounds of this expression are too wide to be summed exactly",
            sqlstate="PV201",
            position=expr.position,
            hint="narrow the declared bounds, or filter with BETWEEN",
        )
    return Lattice(low, high, step, lo, hi, exact=False)


def _power_of_two(width: Fraction, cells: int) -> Fraction:
    """Return the smallest power of two g with width / g <= cells (1 for width 0)."""
    if width == 0:
        return Fraction(1)
    exponent = 0
    while width / Fraction(2) ** exponent > cells:
        exponent += 1
    while exponent > -60 and width / Fraction(2) ** (exponent - 1) <= cells:
        exponent -= 1
    return Fraction(2) ** exponent


def _rounded(end: Fraction, step: Fraction) -> int:
    """Round an endpoint just as the printed SQL rounds a value equal to it: in doubles, half to even."""
    inverse = 1 / step
    value = float(end) * float(inverse) if inverse.denominator == 1 else float(end) / float(step)
    return round(value)


def undeclared(expr: Expr, env: Environment) -> Refusal:
    """Return the refusal of an expression without finite declared bounds: it names the column that has none."""
    for part in walk(expr):
        if isinstance(part, Field) and part.index < len(env.columns):
            column = env.columns[part.index]
            if column.bounds is None and (column.type.is_number or column.type.is_temporal) and column.name:
                return Refusal(
                    f'bounds of column "{column.name}" are not declared',
                    sqlstate="PV101",
                    position=part.position or expr.position,
                    hint=f"filter with {column.name} BETWEEN … AND …, or ask the owner to declare its bounds",
                    owner_hint=f"write {column.name} = {{ bounds = [lower, upper] }} among its table's columns in the "
                    f"policy, or filter with {column.name} BETWEEN … AND …",
                )
    return Refusal(
        "this expression has no finite bounds",
        sqlstate="PV201",
        position=expr.position,
        hint="filter it in WHERE with … BETWEEN low AND high, and keep 0 out of divisors",
    )

"""The tail of a sum of independent discrete Laplace noises, with one scale each.

Such a sum is a signed mixture of its parts: for distinct scales with variances v_i,

    Pr[Y_1 + ... + Y_n >= m] = sum over j of w_j Pr[Y_j >= m],  w_j = product over i != j of v_j / (v_j - v_i)

because the generating function of Y_j is d_j / (d_j + 2 - z - 1/z) with d_j = (1-q_j)^2 / q_j = 2 / v_j,
and a product of such terms splits into partial fractions in z + 1/z.

House rules:

1. The law in use is that of slightly larger scales with rational q: equal scales are moved apart by one part
   in 10^12, and q is rounded up. That only raises the tail: for X symmetric and unimodal (every sum of
   discrete Laplace noises is) and m >= 1, the average of Pr[X + y >= m] and Pr[X - y >= m] grows with |y|,
   and |Y| grows stochastically with q (Birnbaum 1948).
2. For that law all is rational; decimals are rounded to the safe side, with digits to spare for the terms'
   cancelling.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from .laplace_accuracy import bounds_of_exp, check_probability, tail, upper_quantile
from .scale import sampled_scale

__all__ = ["tail_of_sum", "upper_quantile_of_sum"]

_APART: Final = Fraction(1, 10**12)
_SMALLEST_SCALE: Final = Fraction(1, 1000)  # smaller noise is taken as this one, which is never seen either
_GUARD_DIGITS: Final = 40
_SMALLEST_TAIL: Final = decimal.Decimal("1e-998")


def tail_of_sum(scales: Sequence[Fraction], m: int) -> Fraction:
    """Return an upper bound of Pr[Y_1 + ... + Y_n >= m] for independent Y_i of these scales.

    Requires: at least one scale, m >= 1; else ValueError.
    Ensures: never below the true value; above it by no more than scales larger by n parts in 10^12 give.
    """
    if m < 1:
        raise ValueError("the tail of a sum is given from 1 on")
    if len(scales) == 1:
        return tail(scales[0], m)
    return _mixture_tail(_split(scales), m)


def upper_quantile_of_sum(scales: Sequence[Fraction], probability: Fraction) -> int:
    """Return the smallest m >= 1 with `tail_of_sum(scales, m)` <= `probability`.

    Requires: 10^-900 <= `probability` < 1/2; else ValueError.
    """
    check_probability(probability)
    if len(scales) == 1:
        return upper_quantile(scales[0], probability)
    parts = _split(scales)
    step = math.ceil(max(scales))
    too_small, enough = 0, step
    while _mixture_tail(parts, enough) > probability:
        too_small, enough = enough, enough + step
        step *= 2
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if _mixture_tail(parts, middle) > probability:
            too_small = middle
        else:
            enough = middle
    return enough


@dataclass(frozen=True, slots=True)
class _Part:
    """One noise of the mixture: its weight rounded up, and its q; decimals with finitely many digits."""

    weight: decimal.Decimal
    q: decimal.Decimal


def _split(scales: Sequence[Fraction]) -> tuple[_Part, ...]:
    """Return the mixture that the sum is (module docstring). ValueError without scales."""
    if not scales:
        raise ValueError("a sum of noises has at least one noise")
    ratios = [_q_rounded_up(scale) for scale in _move_apart(scales)]
    variances = [2 * Fraction(q) / (1 - Fraction(q)) ** 2 for q in ratios]
    rounding_up = _context(_digits(len(ratios)), decimal.ROUND_CEILING)
    parts = []
    for j, (v, q) in enumerate(zip(variances, ratios, strict=True)):
        factors = [v / (v - other) for i, other in enumerate(variances) if i != j]
        numerator = decimal.Decimal(math.prod(factor.numerator for factor in factors))
        denominator = decimal.Decimal(math.prod(factor.denominator for factor in factors))
        parts.append(_Part(rounding_up.divide(numerator, denominator), q))
    return tuple(parts)


def _move_apart(scales: Sequence[Fraction]) -> list[Fraction]:
    """Return the scales in ascending order, each enlarged until it stands clear of the one before."""
    apart: list[Fraction] = []
    for scale in sorted(max(sampled_scale(scale), _SMALLEST_SCALE) for scale in scales):
        apart.append(max(scale, apart[-1] * (1 + _APART)) if apart else scale)
    return apart


def _q_rounded_up(scale: Fraction) -> decimal.Decimal:
    """Return exp(-1/scale) rounded up, with so many digits that scales moved apart stay apart."""
    digits = _GUARD_DIGITS + len(str(math.ceil(scale)))
    high = bounds_of_exp(1 / scale, digits)[1]
    context = _context(digits, decimal.ROUND_CEILING)
    return context.divide(decimal.Decimal(high.numerator), decimal.Decimal(high.denominator))


def _mixture_tail(parts: tuple[_Part, ...], m: int) -> Fraction:
    """Return the mixture's tail, rounded up at every step; at least 10^-998.

    In a term of negative weight the upper bound takes the lower bound of the power.
    """
    digits = _digits(len(parts)) + len(str(m))
    up = _context(digits, decimal.ROUND_CEILING)
    down = _context(digits, decimal.ROUND_FLOOR)
    total = decimal.Decimal(0)
    for part in parts:
        toward, away = (up, down) if part.weight > 0 else (down, up)
        numerator = up.multiply(part.weight, _power(part.q, m, toward))
        total = up.add(total, up.divide(numerator, away.add(1, part.q)))
    return Fraction(max(total, _SMALLEST_TAIL))


def _power(q: decimal.Decimal, m: int, context: decimal.Context) -> decimal.Decimal:
    """Return q^m for 0 < q < 1, m >= 1, by squaring; every product is rounded as `context` says."""
    result = decimal.Decimal(1)
    for bit in bin(m)[2:]:
        result = context.multiply(result, result)
        if bit == "1":
            result = context.multiply(result, q)
    return result


def _digits(parts: int) -> int:
    """Return the digits to compute with: terms cancel, at less than 13 digits a part."""
    return _GUARD_DIGITS + 13 * parts


def _context(digits: int, rounding: str) -> decimal.Context:
    return decimal.Context(digits, rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)

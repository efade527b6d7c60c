"""Tails and error bars against an oracle of their own: 300-digit decimals of the plain formula."""

from __future__ import annotations

import decimal
import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.mechanisms import Laplace
from dpsql.mechanisms.discrete_laplace import bounds_of_exp, sampled_scale, tail, upper_quantile


def half_width(scale: Fraction, beta: Fraction) -> int:
    return Laplace(scale).half_width(beta)


_SCALES = [
    Fraction(1, 1000), Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(20),
    Fraction(200), Fraction(10**4), Fraction(123456789, 1000), Fraction(2**20), Fraction(10**9),
    Fraction(10**15), Fraction(10**24 + 1, 7),
]  # fmt: skip
_BETAS = [
    Fraction(9, 10),
    Fraction(1, 2),
    Fraction(1, 20),
    Fraction(1, 100),
    Fraction(1, 10**9),
    Fraction(1, 10**18),
]


def true_tail(scale: Fraction, m: int) -> Fraction:
    """Return Pr[Y >= m] for m >= 1, to about 280 digits; 0 where it is below e^-5000."""
    if m / sampled_scale(scale) > 5000:
        return Fraction(0)
    with decimal.localcontext(prec=300, Emin=decimal.MIN_EMIN):
        scale = sampled_scale(scale)
        x = Decimal(scale.denominator) / Decimal(scale.numerator)
        return Fraction((-m * x).exp() / (1 + (-x).exp()))


@pytest.mark.parametrize("scale", _SCALES)
def test_the_tail_is_bounded_closely_from_above(scale: Fraction) -> None:
    unit = math.ceil(scale)
    for m in (1, 2, unit, 3 * unit, 40 * unit):
        if m / scale > 2300:
            assert true_tail(scale, m) <= tail(scale, m) < Fraction(1, 10**998)
            continue
        true = true_tail(scale, m)
        assert true <= tail(scale, m) <= true * (1 + Fraction(1, 10**40))
    for m in (0, -1, -3 * unit):
        true = 1 - true_tail(scale, 1 - m)
        assert true <= tail(scale, m) <= true * (1 + Fraction(1, 10**40))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3)])
def test_the_tail_is_the_sum_of_the_probabilities(scale: Fraction) -> None:
    q = math.exp(-1 / scale)
    pmf = {y: (1 - q) / (1 + q) * q ** abs(y) for y in range(-200, 201)}
    assert sum(pmf.values()) == pytest.approx(1, abs=1e-12)
    for m in range(-5, 12):
        assert float(tail(scale, m)) == pytest.approx(sum(p for y, p in pmf.items() if y >= m), abs=1e-12)
    true_variance = sum(p * y * y for y, p in pmf.items())
    assert true_variance <= Laplace(scale).spread <= true_variance + 1 / 6 + 1e-9


@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize("beta", _BETAS)
def test_the_half_width_is_the_smallest(scale: Fraction, beta: Fraction) -> None:
    m = half_width(scale, beta)
    assert 2 * true_tail(scale, m + 1) <= beta
    assert m == 0 or 2 * true_tail(scale, m) > beta


def test_the_half_width_is_the_smallest_for_many_scales() -> None:
    rng = random.Random(20261120)
    for _ in range(300):
        scale = Fraction(rng.randint(1, 10 ** rng.randint(1, 18)), rng.randint(1, 10 ** rng.randint(1, 10)))
        beta = Fraction(rng.randint(1, 999), 10 ** rng.randint(3, 20))
        m = half_width(scale, beta)
        assert 2 * true_tail(scale, m + 1) <= beta
        assert m == 0 or 2 * true_tail(scale, m) > beta


def test_numbers_of_the_source() -> None:
    """soundness.md 2.2(6) and the textbook's running example, scale 200."""
    assert half_width(Fraction(200), Fraction(1, 20)) == 599
    assert Laplace(Fraction(200)).spread == 80000


def test_error_bars_speak_of_the_scale_that_is_sampled() -> None:
    scale = Fraction(2**40 + 1, 2**10)
    assert half_width(scale, Fraction(1, 10**18)) == half_width(sampled_scale(scale), Fraction(1, 10**18))
    assert half_width(Fraction(2**21 + 1, 2), Fraction(1, 10**18)) > half_width(
        Fraction(2**20), Fraction(1, 10**18)
    )


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 10**20), Fraction(1, 3), Fraction(2, 3), Fraction(2300)]
)
@pytest.mark.parametrize("digits", [20, 50, 80])
def test_exp_is_between_its_bounds(x: Fraction, digits: int) -> None:
    low, high = bounds_of_exp(x, digits)
    with decimal.localcontext(prec=300):
        true = Fraction((-Decimal(x.numerator) / Decimal(x.denominator)).exp())
    assert low < true < high
    assert high - low < true / 10 ** (digits - 7)


@pytest.mark.parametrize(
    "beta", [Fraction(0), Fraction(-1, 2), Fraction(1), Fraction(2), Fraction(1, 10**901)]
)
def test_a_beta_out_of_range_is_an_error(beta: Fraction) -> None:
    with pytest.raises(ValueError, match="tail probability"):
        half_width(Fraction(1), beta)


def test_floats_are_errors() -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        half_width(Fraction(1), 0.05)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="exact Fraction"):
        upper_quantile(1.0, Fraction(1, 20))  # type: ignore[arg-type]


def test_the_callers_decimal_context_is_left_alone() -> None:
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP) as context:
        context.clear_flags()  # other tests of this process may have set some
        narrow = half_width(Fraction(10**15), Fraction(1, 20))
        assert (context.prec, context.flags[decimal.Inexact]) == (3, False)
    assert narrow == half_width(Fraction(10**15), Fraction(1, 20))

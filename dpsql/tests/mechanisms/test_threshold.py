"""Thresholds against the published table, the plain formula and brute-force convolutions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import (
    laplace_sum,
    tail,
    tail_of_sum,
    threshold,
    threshold_of_sum,
    upper_quantile_of_sum,
)
from dpsql.mechanisms.laplace_sum import _mixture_tail, _split

from .test_laplace_accuracy import true_tail

_MILLIONTH = Fraction(1, 10**6)
_BILLIONTH = Fraction(1, 10**9)
_TENTH = Fraction(1, 10)


def convolved_tail(scales: list[Fraction], m: int) -> float:
    """Return Pr[sum >= m] by convolving the probabilities, all terms positive, over 60 scales a side."""
    total = np.ones(1)
    for scale in scales:
        reach = math.ceil(60 * scale)
        q = math.exp(-1 / scale)
        total = np.convolve(total, (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1)))
    return float(total[(total.size // 2 + m) :].sum())


@pytest.mark.parametrize(
    ("epsilon", "delta", "taus"),
    [
        (Fraction(1), _MILLIONTH, (15, 60, 156)),
        (Fraction(1), _BILLIONTH, (22, 88, 225)),
        (_TENTH, _MILLIONTH, (133, 582, 1544)),
    ],
)
def test_the_table_of_the_source(epsilon: Fraction, delta: Fraction, taus: tuple[int, ...]) -> None:
    """soundness.md 1.7: the discrete thresholds for 1, 4 and 10 groups a unit."""
    assert tuple(threshold(groups / epsilon, delta, groups) for groups in (1, 4, 10)) == taus


def test_a_threshold_is_the_smallest_that_keeps_its_promise() -> None:
    rng = random.Random(20261120)
    for _ in range(300):
        scale = Fraction(rng.randint(1, 10 ** rng.randint(1, 12)), rng.randint(1, 1000))
        delta = Fraction(rng.randint(1, 400), 10 ** rng.randint(3, 18))
        groups, minimum = rng.randint(1, 50), rng.randint(1, 20)
        tau = threshold(scale, delta, groups, minimum)
        assert true_tail(scale, tau - minimum) <= delta / groups
        assert tau - minimum == 1 or true_tail(scale, tau - minimum - 1) > delta / groups


def test_a_minimum_of_units_shifts_the_threshold() -> None:
    """amendments.md f: tau goes up by k - 1."""
    assert threshold(Fraction(1), _MILLIONTH, 1, 5) == 15 + 4
    assert threshold_of_sum([Fraction(1)] * 2, _MILLIONTH, 1, 5) == 17 + 4


def test_two_noises_need_a_higher_threshold() -> None:
    """amendments.md c: with two noises, the threshold for one lets through several times delta."""
    one, tenth = [Fraction(1)] * 2, [Fraction(10)] * 2
    assert convolved_tail(one, 15 - 1) == pytest.approx(4.5e-6, rel=0.02)
    assert convolved_tail(tenth, 133 - 1) == pytest.approx(7.4e-6, rel=0.02)
    assert threshold_of_sum(one, _MILLIONTH, 1) == 17
    assert threshold_of_sum(tenth, _MILLIONTH, 1) == 155


_SUMS = [
    [Fraction(1)] * 2,
    [Fraction(10)] * 2,
    [Fraction(10)] * 5,
    [Fraction(7, 3)] * 12,
    [Fraction(1), Fraction(2)],
    [Fraction(2), Fraction(1), Fraction(2), Fraction(1)],
    [Fraction(1, 5), Fraction(30)],
    [Fraction(1, 10**5), Fraction(3), Fraction(1, 10**5)],
    [Fraction(3), Fraction(3) + Fraction(1, 10**15)],
]


@pytest.mark.parametrize("scales", _SUMS, ids=str)
def test_the_tail_of_a_sum_is_its_convolution(scales: list[Fraction]) -> None:
    spread = math.ceil(max(scales) * len(scales) ** 0.5)
    for m in (1, 2, spread, 4 * spread, 12 * spread):
        assert float(tail_of_sum(scales, m)) == pytest.approx(convolved_tail(scales, m), rel=1e-8)


@pytest.mark.parametrize("scales", _SUMS, ids=str)
@pytest.mark.parametrize("probability", [Fraction(49, 100), Fraction(1, 20), _MILLIONTH, _BILLIONTH])
def test_the_quantile_of_a_sum_is_the_smallest(scales: list[Fraction], probability: Fraction) -> None:
    m = upper_quantile_of_sum(scales, probability)
    assert convolved_tail(scales, m) <= probability * (1 + 1e-9)
    assert m == 1 or convolved_tail(scales, m - 1) > probability * (1 - 1e-9)


def exact_mixture_tail(scales: list[Fraction], m: int) -> Fraction:
    """Return the tail of the law that `_split` chose, in exact Fractions from its rational q."""
    ratios = [Fraction(part.q) for part in _split(scales)]
    variances = [2 * q / (1 - q) ** 2 for q in ratios]
    total = Fraction(0)
    for j, (q, v) in enumerate(zip(ratios, variances, strict=True)):
        factors = [v / (v - w) for i, w in enumerate(variances) if i != j]
        total += math.prod(factors, start=Fraction(1)) * q**m / (1 + q)
    return total


@pytest.mark.parametrize(
    "scales", [[Fraction(1), Fraction(3, 2)], [Fraction(50)] * 3, [Fraction(1, 500)] * 2]
)
def test_the_mixtures_tail_is_close_to_its_law(scales: list[Fraction]) -> None:
    for m in (1, 2, 5, 30):
        exact = max(exact_mixture_tail(scales, m), Fraction(1, 10**998))
        assert exact <= _mixture_tail(_split(scales), m) <= exact * (1 + Fraction(1, 10**30))


@pytest.mark.parametrize("digits", [6, 7, 8])
@pytest.mark.parametrize(
    "scales",
    [[Fraction(1), Fraction(3)], [Fraction(1), Fraction(2), Fraction(4)], [Fraction(3), Fraction(301, 100)]],
    ids=str,
)
def test_the_mixtures_tail_is_rounded_up(
    scales: list[Fraction], digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few digits every rounding shows: none of them goes down."""
    parts = _split(scales)
    monkeypatch.setattr(laplace_sum, "_digits", lambda parts: digits)
    coarse_parts = _split(scales)
    for m in range(1, 60):
        exact = exact_mixture_tail(scales, m)
        for some in (parts, coarse_parts):
            assert exact <= _mixture_tail(some, m) <= exact * (1 + Fraction(1, 100))


def test_sums_of_large_and_of_many_scales() -> None:
    """Continuous limits: two equal scales b give Pr[Y >= x b] = e^-x (2 + x) / 4; more noises need more."""
    b = 10**12
    tau = threshold_of_sum([Fraction(b)] * 2, _MILLIONTH, 1)
    x = tau / b
    assert math.exp(-x) * (2 + x) / 4 == pytest.approx(1e-6, rel=1e-6)
    taus = [threshold_of_sum([Fraction(10)] * n, _MILLIONTH, 1) for n in (1, 2, 4, 8, 16, 32)]
    assert taus == sorted(set(taus))
    assert taus[-1] < 4 * taus[0]


def test_one_noise_is_a_sum_of_one() -> None:
    assert threshold_of_sum([Fraction(10)], _MILLIONTH, 4) == threshold(Fraction(10), _MILLIONTH, 4)
    assert tail_of_sum([Fraction(10)], 7) == tail(Fraction(10), 7)


@pytest.mark.parametrize(
    ("delta", "groups", "minimum"),
    [
        (Fraction(0), 1, 1), (Fraction(-1, 10), 1, 1), (Fraction(1, 2), 1, 1), (Fraction(1, 10**901), 1, 1),
        (_MILLIONTH, 0, 1), (_MILLIONTH, -1, 1), (_MILLIONTH, 1, 0),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_errors(delta: Fraction, groups: int, minimum: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        threshold(Fraction(1), delta, groups, minimum)
    with pytest.raises(ValueError, match="at least"):
        threshold_of_sum([Fraction(1)] * 2, delta, groups, minimum)


def test_a_float_delta_is_an_error() -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        threshold(Fraction(1), 1e-6, 1)  # type: ignore[arg-type]


def test_a_sum_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one noise"):
        threshold_of_sum([], _MILLIONTH, 1)
    with pytest.raises(ValueError, match="from 1 on"):
        tail_of_sum([Fraction(1)], 0)

"""The sampler as a distribution, with real randomness.

All p-value limits are 1e-9 and all z limits 7 (p about 3e-12): a red test is a bug, not bad luck. Every
test of fit is shown to reject noise of half and of twice the scale on the same draws.
"""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
import pytest
from scipy import stats

from dpsql.mechanisms import OS_RANDOM
from dpsql.mechanisms.discrete_laplace import draw_discrete_laplace
from dpsql.tests.support.length import some

_P = 1e-9
_Z = 7.0
_SCALES = [Fraction(1), Fraction(20), Fraction(7, 3), Fraction(10**4)]
_MILLIONS = 2_000_000


def draw(scale: Fraction, count: int) -> npt.NDArray[np.int64]:
    return draw_discrete_laplace(scale, count, OS_RANDOM)


def fit_p(draws: npt.NDArray[np.int64], scale: float) -> float:
    """Return the chi-squared p-value of discrete Laplace of `scale`, in <= 600 bins of >= 20 draws."""
    law = stats.dlaplace(1 / scale)
    least = max(1 / 600, 40 / draws.size)
    edges = np.unique(law.ppf(np.arange(least, 1, least)).astype(np.int64))  # bins (-inf, e0], (e0, e1], ...
    expected = np.diff(law.cdf(edges), prepend=0.0, append=1.0) * draws.size
    keep = expected[:-1] >= 20
    if expected[-1] < 20:
        keep[np.flatnonzero(keep)[-1]] = False
    edges = edges[keep]
    expected = np.diff(law.cdf(edges), prepend=0.0, append=1.0) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    assert expected.min() >= 20
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


def check_fit(draws: npt.NDArray[np.int64], scale: float) -> None:
    assert fit_p(draws, scale) > _P
    for wrong in (scale / 2, scale * 2, scale * 0.98, scale * 1.02):
        assert fit_p(draws, wrong) < _P


@pytest.mark.parametrize("scale", some(_SCALES, 2), ids=map(str, _SCALES))
def test_draws_fit(scale: Fraction) -> None:
    """Chi-squared over two million draws, and the moments, signs, zeros and neighbours of the same draws."""
    draws = draw(scale, _MILLIONS)
    check_fit(draws, float(scale))
    check_moments(draws, scale)
    check_signs_and_zeros(draws, scale)
    check_independence(draws)


def check_moments(draws: npt.NDArray[np.int64], scale: Fraction) -> None:
    n = draws.size
    q = math.exp(-1 / scale)
    sd = math.sqrt(2 * q) / (1 - q)
    values = draws / sd
    kurtosis = float((values**4).mean())
    assert abs(values.mean()) < _Z / math.sqrt(n)
    assert abs((values**2).mean() - 1) < _Z * math.sqrt((kurtosis - 1) / n)
    assert abs((values**3).mean()) < _Z * math.sqrt((values**6).mean() / n)


def check_signs_and_zeros(draws: npt.NDArray[np.int64], scale: Fraction) -> None:
    positive, zero = int((draws > 0).sum()), int((draws == 0).sum())
    q = math.exp(-1 / scale)
    assert stats.binomtest(positive, draws.size - zero).pvalue > _P
    assert stats.binomtest(zero, draws.size, (1 - q) / (1 + q)).pvalue > _P
    # The two halves are one distribution.
    size = np.abs(draws)
    limits = np.unique(np.quantile(size[size > 0], np.linspace(0, 0.99, 30)))
    table = [np.histogram(size[side], [*limits, np.inf])[0] for side in (draws > 0, draws < 0)]
    assert stats.chi2_contingency(table).pvalue > _P


def check_independence(draws: npt.NDArray[np.int64]) -> None:
    """Neighbours (lag 1 and 2), in value, size and sign, are not correlated."""
    for values in (draws.astype(float), np.abs(draws).astype(float), np.sign(draws).astype(float)):
        centred = values - values.mean()
        for lag in (1, 2):
            correlation = (centred[:-lag] * centred[lag:]).mean() / (centred**2).mean()
            assert abs(correlation) * math.sqrt(draws.size) < _Z


def test_the_checks_see_dependent_draws() -> None:
    draws = draw(Fraction(20), 200_000)
    draws[1::2] = np.where(draws[::2] % 16 == 0, draws[::2], draws[1::2])
    with pytest.raises(AssertionError):
        check_independence(draws)


def test_large_scales_have_level_low_bits() -> None:
    """At scale 10^9 the low six bits of the size are uniform; and the size itself fits."""
    draws = draw(Fraction(10**9), 1_000_000)
    size = np.abs(draws)
    assert stats.chisquare(np.bincount(size & 63, minlength=64)).pvalue > _P
    assert stats.chisquare(np.bincount((size >> 6) & 63, minlength=64)).pvalue > _P
    check_fit(draws, 1e9)
    coarse = size & ~1
    assert stats.chisquare(np.bincount(coarse & 63, minlength=64)).pvalue < _P


@pytest.mark.parametrize("scale", [Fraction(20), Fraction(7, 3)], ids=str)
def test_draws_one_at_a_time_fit(scale: Fraction) -> None:
    """The path for few draws: calls of 15, 30 000 draws in all."""
    draws = np.concatenate([draw(scale, 15) for _ in range(2000)])
    assert fit_p(draws, float(scale)) > _P
    assert fit_p(draws, float(scale) / 2) < _P
    assert fit_p(draws, float(scale) * 2) < _P


def test_draws_beyond_int64_fit() -> None:
    """Scale 2^70, Python ints; a continuous Laplace is as good a reference at this size."""
    draws = draw_discrete_laplace(Fraction(2**70), 10_000, OS_RANDOM)
    values = np.array([int(y) / 2**70 for y in draws])
    assert stats.kstest(values, stats.laplace.cdf).pvalue > _P
    assert stats.kstest(values * 2, stats.laplace.cdf).pvalue < _P
    assert stats.kstest(values / 2, stats.laplace.cdf).pvalue < _P
    assert stats.chisquare(np.bincount([abs(y) & 15 for y in draws], minlength=16)).pvalue > _P


def opendp_draws(scale: float, count: int) -> npt.NDArray[np.int64]:
    """Return draws of another implementation. T must be i64: "int" means i32 there and saturates."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, scale)([0] * count), dtype=np.int64)


def two_sample_p(ours: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> float:
    edges = np.unique(np.quantile(np.concatenate((ours, theirs)), np.linspace(0, 1, 60)[1:-1]))
    table = [np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1) for draws in (ours, theirs)]
    return float(stats.chi2_contingency(np.array(table)[:, np.sum(table, axis=0) > 0]).pvalue)


def check_against_opendp(scale: Fraction, count: int) -> None:
    theirs = opendp_draws(float(scale), count)
    assert two_sample_p(draw(scale, count), theirs) > _P
    assert two_sample_p(draw(scale / 2, count), theirs) < _P
    assert two_sample_p(draw(scale * 2, count), theirs) < _P


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(20), Fraction(10**9)], ids=str)
def test_another_implementation_draws_the_same(scale: Fraction) -> None:
    check_against_opendp(scale, 40_000)


@pytest.mark.long
@pytest.mark.parametrize("scale", [*_SCALES, Fraction(10**9)], ids=str)
def test_another_implementation_draws_the_same_in_bulk(scale: Fraction) -> None:
    if scale == Fraction(7, 3):
        scale = Fraction(9, 4)  # a float is exact there
    check_against_opendp(scale, 1_000_000)


def audited_epsilon(noise: npt.NDArray[np.int64], noise_of_neighbour: npt.NDArray[np.int64]) -> float:
    """Return a lower bound of epsilon from one half line, sensitivity 1 (soundness.md 5.1)."""
    n = noise.size
    hits, hits_of_neighbour = int((noise + 1 >= 1).sum()), int((noise_of_neighbour >= 1).sum())
    low = stats.beta.ppf(_P / 2, hits, n - hits + 1)
    high = stats.beta.ppf(1 - _P / 2, hits_of_neighbour + 1, n - hits_of_neighbour)
    return math.log(low / high)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)], ids=str)
def test_an_attacker_learns_no_more_than_epsilon_and_not_much_less(epsilon: Fraction) -> None:
    found = audited_epsilon(draw(1 / epsilon, 200_000), draw(1 / epsilon, 200_000))
    assert 0.9 * epsilon < found <= epsilon
    assert audited_epsilon(draw(1 / epsilon / 2, 200_000), draw(1 / epsilon / 2, 200_000)) > epsilon


def test_a_million_draws_need_little_memory() -> None:
    tracemalloc.start()
    try:
        draw(Fraction(10**9), 1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


@pytest.mark.long
@pytest.mark.parametrize("scale", [*_SCALES, Fraction(3, 7), Fraction(10**9), Fraction(10**15)], ids=str)
def test_twenty_million_draws_fit(scale: Fraction) -> None:
    draws = draw(scale, 20_000_000)
    check_fit(draws, float(scale))
    check_moments(draws, scale)
    check_signs_and_zeros(draws, scale)
    check_independence(draws)


@pytest.mark.long
@pytest.mark.parametrize("scale", _SCALES, ids=str)
def test_p_values_are_uniform(scale: Fraction) -> None:
    """Over 200 batches the p-values themselves fit: neither too good nor too bad."""
    p_values = [fit_p(draw(scale, 100_000), float(scale)) for _ in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > _P

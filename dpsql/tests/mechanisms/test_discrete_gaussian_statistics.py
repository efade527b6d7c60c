"""The Gaussian sampler as a distribution, with real randomness, as test_discrete_laplace_statistics has it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpsql.mechanisms import OS_RANDOM
from dpsql.mechanisms.discrete_gaussian import draw_discrete_gaussian
from dpsql.tests.support.length import some

from .test_discrete_gaussian_exact import chances
from .test_discrete_laplace_statistics import check_independence

_P = 1e-9
_Z = 7.0
_MILLION = 1_000_000
_SIGMAS = [Fraction(1), Fraction(7, 3), Fraction(20), Fraction(10241, 1024), Fraction(10**4), Fraction(10**6)]


def draw(sigma: Fraction, count: int) -> npt.NDArray[np.int64]:
    return draw_discrete_gaussian(sigma, count, OS_RANDOM)


def fit_p(draws: npt.NDArray[np.int64], sigma: float) -> float:
    """Return the chi-squared p-value of the discrete Gaussian, in <= 600 bins of >= 20 draws.

    Above a deviation of 1000 the normal law at half steps is as good a reference: they differ by 1e-8.
    """
    at = np.arange(-int(7 * sigma) - 7, int(7 * sigma) + 8) if sigma <= 1000 else None
    if at is None:
        edges = np.unique(np.rint(stats.norm.ppf(np.linspace(0, 1, 601)[1:-1]) * sigma).astype(np.int64))
        below = stats.norm.cdf((edges + 0.5) / sigma)
    else:
        all_below = np.cumsum([chances(sigma).get(int(y), 0.0) for y in at])
        step = np.floor(all_below * 600)
        keep = np.flatnonzero(np.diff(step)) + 1
        edges, below = at[keep], all_below[keep]
    expected = np.diff(below, prepend=0.0, append=1.0) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    good = expected >= 20
    return float(stats.chisquare(observed[good], expected[good], sum_check=False).pvalue)


@pytest.mark.parametrize("sigma", some(_SIGMAS, 4), ids=map(str, _SIGMAS))
def test_draws_fit(sigma: Fraction) -> None:
    """Six deviations' worth of chi-squared (p above 1e-9), and its power: another deviation is told apart."""
    draws, s = draw(sigma, _MILLION), float(sigma)
    assert fit_p(draws, s) > _P
    for wrong in (s / 2, s * 2, s * 0.98, s * 1.02):
        assert fit_p(draws, wrong) < _P
    exact = chances(s) if s <= 1000 else None
    variance = s**2 if exact is None else sum(p * y * y for y, p in exact.items())
    assert abs(draws.mean()) < _Z * s / 1000
    assert abs((draws.astype(float) ** 2).mean() / variance - 1) < _Z * math.sqrt(2) / 1000
    assert stats.binomtest(int((draws > 0).sum()), int((draws != 0).sum())).pvalue > _P
    check_independence(draws)


@pytest.mark.parametrize("sigma", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(4, 3)], ids=str)
def test_narrow_draws_fit(sigma: Fraction) -> None:
    draws = draw(sigma, 200_000)
    for y, chance in chances(float(sigma)).items():
        deviation = math.sqrt(draws.size * chance * (1 - chance))
        assert abs(int((draws == y).sum()) - draws.size * chance) <= _Z * deviation + 3


def test_large_deviations_have_level_low_bits() -> None:
    size = np.abs(draw(Fraction(10**9), _MILLION))
    assert stats.chisquare(np.bincount(size & 63, minlength=64)).pvalue > _P
    assert stats.chisquare(np.bincount((size >> 6) & 63, minlength=64)).pvalue > _P


@pytest.mark.parametrize("sigma", [Fraction(20), Fraction(7, 3)], ids=str)
def test_draws_one_at_a_time_fit(sigma: Fraction) -> None:
    """The path for few draws: calls of 15, 30 000 draws in all."""
    draws = np.concatenate([draw(sigma, 15) for _ in range(2000)])
    assert fit_p(draws, float(sigma)) > _P
    assert fit_p(draws, float(sigma) / 2) < _P
    assert fit_p(draws, float(sigma) * 2) < _P


def test_draws_beyond_int64_fit() -> None:
    draws = draw_discrete_gaussian(Fraction(2**70), 10_000, OS_RANDOM)
    values = np.array([int(y) / 2**70 for y in draws])
    assert stats.kstest(values, stats.norm.cdf).pvalue > _P
    assert stats.kstest(values * 2, stats.norm.cdf).pvalue < _P
    assert stats.chisquare(np.bincount([abs(y) & 15 for y in draws], minlength=16)).pvalue > _P

"""Bars of variances of few rows hold the truth, which the quantiles of replicas do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import Laplace
from dpsql.plan.measures.formulas import Linear, Variance
from dpsql.plan.measures.measurements import Coord
from dpsql.postprocess.simulate import NoisyCoordinates, few_rows, variance_ends

WIDTH = 100
DRAWS = 20_000
ONE, COUNT = Fraction(1), Fraction(1, WIDTH)
C0, C1, C2 = (Coord(number, 0, number) for number in range(3))


def formula(function: str) -> Variance:
    """Return a variance of values of 0 to 100 over a pair of complementary sums and a moment."""
    return Variance(
        Linear(((C2, ONE),), Fraction(0)), Linear(((C0, ONE), (C1, -ONE)), Fraction(0)),
        Linear(((C0, COUNT), (C1, COUNT)), Fraction(0)), WIDTH, ONE, function,
    )  # fmt: skip


def released(rows: int) -> tuple[NoisyCoordinates, np.ndarray]:  # type: ignore[type-arg]
    """Return many draws over the measures of random values, each of the two measurements at epsilon 0.05."""
    random = np.random.default_rng(3)
    values = random.integers(20, 70, rows)
    moment = (2 * (2.0 * values - WIDTH) ** 2 - WIDTH**2).sum()
    exact = (values.sum(), (WIDTH - values).sum(), moment)
    scales = (WIDTH / 0.05, WIDTH / 0.05, WIDTH**2 / 0.05)
    noisy = {
        one: e + random.laplace(0, s, DRAWS) for one, e, s in zip((C0, C1, C2), exact, scales, strict=True)
    }
    spread = {one: 2 * scale**2 for one, scale in zip((C0, C1, C2), scales, strict=True)}
    return NoisyCoordinates(noisy, spread), values


@pytest.mark.parametrize("function", ["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
@pytest.mark.parametrize("rows", [2, 5, 20, 60, 200])
def test_coverage(rows: int, function: str) -> None:
    noise, values = released(rows)
    truth = np.var(values, ddof=1 if function.endswith("samp") else 0)
    truth = np.sqrt(truth) if function.startswith("stddev") else truth
    law = Laplace(Fraction(1000))
    low, high = variance_ends(
        formula(function), noise, law.half_width(Fraction(1, 20)) / float(law.spread) ** 0.5
    )
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93
    top = WIDTH**2 / 4 * (2 if function.endswith("samp") else 1)
    assert low.min() >= 0
    assert high.max() <= (np.sqrt(top) if function.startswith("stddev") else top) + 1e-6


@pytest.mark.parametrize("function", ["var_pop", "stddev_samp"])
@pytest.mark.parametrize("rows", [600, 5_000])
def test_coverage_of_many_rows(rows: int, function: str) -> None:
    """The ellipsoid misses no more than the level says, and is hardly wider than the noise's own quantiles are."""
    noise, values = released(rows)
    truth = np.var(values, ddof=1 if function.endswith("samp") else 0)
    truth = np.sqrt(truth) if function.startswith("stddev") else truth
    law = Laplace(Fraction(1000))
    asked = formula(function)
    low, high = variance_ends(asked, noise, law.half_width(Fraction(1, 20)) / float(law.spread) ** 0.5)
    assert 0.95 <= np.mean((low <= truth) & (truth <= high)) <= 0.985
    count, mean = noise.value(asked.count), noise.value(asked.difference) / noise.value(asked.count)
    value = np.maximum(0, (noise.value(asked.moment) / count + WIDTH**2) / 2 - mean**2) / 4
    off = np.sort(np.abs((np.sqrt(value) if function.startswith("stddev") else value) - truth))
    assert np.median(high - low) <= 1.25 * 2 * off[int(0.95 * DRAWS)]


@pytest.mark.parametrize("rows", [40, 600])
@pytest.mark.parametrize("function", ["var_pop", "var_samp"])
def test_ends_are_those_of_every_point(rows: int, function: str) -> None:
    """The ends are outside of what the formula is at any point of the ellipsoid, to 1 in 100, near its least count too."""
    few, asked = released(rows)[0], formula(function)
    noise = NoisyCoordinates({place: values[:30] for place, values in few.released.items()}, few.spread)
    low, high = variance_ends(asked, noise, 2.0)
    parts = (asked.count, asked.difference, asked.moment)
    root = np.linalg.cholesky(np.array([[noise.covariance(one, other) for other in parts] for one in parts]))
    random = np.random.default_rng(5)
    for row in range(30):
        inside = random.normal(size=(3, 4_000))
        inside *= 2.0 / np.linalg.norm(inside, axis=0)
        n, s, m = np.array([[noise.value(part)[row]] for part in parts]) + root @ inside
        n, s, m = (one[n >= asked.least_rows] for one in (n, s, m))
        value = ((m / n + WIDTH**2) / 2 - (s / n) ** 2) / 4
        value, top = (value * n / (n - 1), WIDTH**2 / 2) if asked.is_sample else (value, WIDTH**2 / 4)
        value = np.clip(value, 0, top)
        assert low[row] <= value.min(initial=top) + 1e-9
        assert high[row] >= 0.99 * value.max(initial=0) - 1e-9


def test_few_rows_are_those_near_the_noise() -> None:
    noise, _ = released(5)
    assert few_rows(formula("var_pop"), noise).mean() > 0.99
    far = NoisyCoordinates({**noise.released, C0: noise.released[C0] + 1e6}, noise.spread)
    assert not few_rows(formula("var_pop"), far).any()

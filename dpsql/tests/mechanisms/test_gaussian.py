"""What is known of Gaussian noise: tails and bars against sums of the exact probabilities, and the law's own text."""

from __future__ import annotations

import math
from decimal import MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsql.mechanisms import (
    OS_RANDOM,
    Gaussian,
    Laplace,
    Thresholded,
    Truncated,
    delta_of_rho,
    half_width_of,
    law_of,
    pure_epsilon,
    sum_of,
)
from dpsql.mechanisms.discrete_gaussian import normal_tail, tail

from .test_discrete_gaussian_exact import chances

SCALES = [
    Fraction(1, 1024),
    Fraction(1, 4),
    Fraction(1),
    Fraction(2389, 1024),
    Fraction(20),
    Fraction(64),
    Fraction(65),
    Fraction(1000),
]
BETAS = [Fraction(9, 10), Fraction(1, 2), Fraction(1, 20), Fraction(1, 100), Fraction(1, 10**9)]


@lru_cache(maxsize=16)
def true_tails(sigma: Fraction) -> list[Fraction]:
    """Return Pr[Y >= m] for each m from 0 on to about 50 digits, 0 where it is below e^-4000."""
    with localcontext(prec=60, Emin=MIN_EMIN):
        rate = Decimal((2 * sigma**2).denominator) / Decimal((2 * sigma**2).numerator)
        term, ratio, step = Decimal(1), (-rate).exp(), (-2 * rate).exp()
        weights = []
        while term > Decimal(10) ** -1800:
            weights.append(term)
            term, ratio = term * ratio, ratio * step
        beyond = list(accumulate(reversed(weights)))[::-1]
        whole = 2 * beyond[0] - 1
        return [Fraction(one / whole) for one in beyond] + [Fraction(0)]


def true_tail(sigma: Fraction, m: int) -> Fraction:
    found = true_tails(sigma)
    return found[min(m, len(found) - 1)]


@pytest.mark.parametrize("sigma", SCALES, ids=str)
def test_tails_are_bounds_from_above_and_close(sigma: Fraction) -> None:
    unit = max(1, math.ceil(sigma))
    for m in (1, 2, unit, 2 * unit + 1, 3 * unit, 6 * unit):
        true = true_tail(sigma, m)
        found = tail(sigma, m)
        assert true <= found
        if sigma <= 64:
            assert found <= max(true * (1 + Fraction(1, 10**38)), Fraction(1, 10**998))
        elif 2 * m - 1 >= 2 * sigma:
            assert found <= true * (1 + Fraction(1, 200))
        else:
            assert found <= true_tail(sigma, m - 1)


@pytest.mark.parametrize(
    "z", [Fraction(0), Fraction(1, 7), Fraction(2), Fraction(399, 100), Fraction(4), Fraction(9)]
)
def test_the_normal_tail_is_bounded_from_above_by_a_hair(z: Fraction) -> None:
    assert float(normal_tail(z)) == pytest.approx(stats.norm.sf(float(z)), rel=1e-12)
    below, above = normal_tail(z + Fraction(1, 10**30)), normal_tail(z)
    assert below < above
    if z:
        assert abs(normal_tail(Fraction(4) - Fraction(1, 10**35)) / normal_tail(Fraction(4)) - 1) < 1e-30


@pytest.mark.parametrize("sigma", SCALES, ids=str)
@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_half_widths_are_the_smallest(sigma: Fraction, beta: Fraction) -> None:
    half = Gaussian(sigma).half_width(beta)
    assert 2 * true_tail(sigma, half + 1) <= beta
    if half:
        slack = 0 if sigma <= 64 else 1
        assert half <= slack or 2 * true_tail(sigma, half - slack) > beta
    upper = Gaussian(sigma).upper_quantile(beta / 2)
    assert upper == half + 1


@pytest.mark.parametrize("sigma", [Fraction(1000), Fraction(10**9), Fraction(10**30)], ids=str)
def test_wide_noise_has_normal_bars(sigma: Fraction) -> None:
    half = Gaussian(sigma).half_width(Fraction(1, 20))
    assert half / sigma == pytest.approx(1.959964, rel=1e-3)
    if sigma > 10**6:
        assert float(half / sigma) == pytest.approx(1.9599639845, rel=1e-8)
    farthest = Gaussian(sigma).upper_quantile(Fraction(1, 10**899))
    assert 64 < farthest / sigma < 65


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1, 10**901)])
def test_bad_probabilities(bad: Fraction) -> None:
    with pytest.raises(ValueError, match="tail probability"):
        Gaussian(Fraction(1)).upper_quantile(bad)
    with pytest.raises(TypeError):
        Gaussian(Fraction(1)).upper_quantile(0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize("sigma", [*SCALES, Fraction(10**7)], ids=str)
def test_tails_in_doubles(sigma: Fraction) -> None:
    law, unit = Gaussian(sigma), max(1, int(sigma))
    at = np.array([-3 * unit, -1, 0, 1, 2, unit, 2 * unit, 5 * unit])
    found = law.tails(at)
    if sigma > 5000:
        assert found.tolist() == pytest.approx(stats.norm.sf((at - 0.5) / float(sigma)).tolist(), abs=1e-9)
        return
    for m, value in zip(at.tolist(), found.tolist(), strict=True):
        true = true_tail(sigma, m) if m >= 1 else 1 - true_tail(sigma, 1 - m)
        assert value == pytest.approx(float(true), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("sigma", [Fraction(1, 4), Fraction(1), Fraction(10)], ids=str)
def test_the_spread_bounds_the_variance(sigma: Fraction) -> None:
    variance = sum(p * y * y for y, p in chances(float(sigma)).items())
    assert variance <= float(Gaussian(sigma).spread) * (1 + 1e-12)


@pytest.mark.parametrize("squared", [1, 3, 12, 10**6, 10**40])
@pytest.mark.parametrize(
    "rho", [Fraction(1, 200), Fraction(1, 3 * 10**12), Fraction(50), Fraction(5 * 10**15, 10**18)]
)
def test_the_deviation_is_the_least_of_its_steps(squared: int, rho: Fraction) -> None:
    sigma = Gaussian.for_rho(squared, rho).scale
    assert sigma**2 * 2 * rho >= squared
    step = Fraction(1, 1024) if sigma <= 2**20 else Fraction(1)
    assert (sigma - step) ** 2 * 2 * rho < squared
    assert Gaussian.for_rho(1, Fraction(1, 200)).scale == 10


@pytest.mark.parametrize(("squared", "rho"), [(0, Fraction(1)), (-1, Fraction(1)), (1, Fraction(0))])
def test_a_claim_is_positive(squared: int, rho: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        Gaussian.for_rho(squared, rho)


@pytest.mark.parametrize(("squared", "rho"), [(1.0, Fraction(1)), (1, 0.5), (True, Fraction(1))])
def test_a_claim_is_exact(squared: object, rho: object) -> None:
    with pytest.raises(TypeError):
        Gaussian.for_rho(squared, rho)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "law", [Gaussian(Fraction(10)), Gaussian(Fraction(2389, 1024)), Gaussian(Fraction(10**40))]
)
def test_the_text_is_read_back(law: Gaussian) -> None:
    assert law_of(law.text) == law
    assert law_of(Thresholded(law.scale, 17).text) == Thresholded(law.scale, 17)


@pytest.mark.parametrize(
    "text", ["gaussian 1/3", "gaussian 0", "gaussian -1", "gaussian 2/2048", "gaussian", "gaussian 1 2",
             "gaussian 2097153/2", "thresholded 1", "thresholded 1 0", "thresholded 1/3 5", "thresholded 1 05"],
)  # fmt: skip
def test_what_is_no_text_of_a_law_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        law_of(text)


def test_sums_with_other_noises_are_their_convolution() -> None:
    """A weighted sum of a Gaussian and a Laplace noise, against the sum over both."""
    gaussian, laplace = Gaussian(Fraction(6)), Laplace(Fraction(4))
    at = np.arange(-400, 401)
    one, other = (law.tails(at) - law.tails(at + 1) for law in (gaussian, laplace))
    both = np.convolve(np.kron(one, [1, 0])[:-1], other)
    middle = len(both) // 2
    half = int(half_width_of([(gaussian, Fraction(2)), (laplace, Fraction(-1))], Fraction(1, 20)))
    assert both[middle - half : middle + half + 1].sum() >= 0.95 - 1e-9
    assert both[middle - half + 1 : middle + half].sum() < 0.95


@pytest.mark.parametrize("sigma", [Fraction(2), Fraction(100), Fraction(10**7)], ids=str)
@pytest.mark.parametrize("count", [2, 9])
def test_a_sum_of_gaussians_is_one_of_their_deviation(sigma: Fraction, count: int) -> None:
    law = sum_of(Gaussian(sigma), count)
    for beta in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**5)):
        wanted = -stats.norm.ppf(float(beta) / 2) * float(sigma) * math.sqrt(count)
        assert law.half_width(beta) == pytest.approx(wanted, rel=1e-3, abs=1)
    assert law.spread == count * sigma**2
    assert law.draw(20_000, OS_RANDOM).std() == pytest.approx(float(sigma) * math.sqrt(count), rel=0.05)


# --- thresholds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**18)], ids=str)
@pytest.mark.parametrize("groups", [1, 4, 40])
def test_the_threshold_is_the_least_that_keeps_delta(delta: Fraction, groups: int) -> None:
    noise = Gaussian(Fraction(5 * 1024 + 1, 1024))
    law = Thresholded.within(noise, delta, groups, 1)
    assert groups * noise.tail(law.bound) <= delta  # a group of one is shown where 1 + Y > bound
    assert groups * noise.tail(law.bound - 1) > delta


@pytest.mark.parametrize("together", [2, 4])
def test_several_together_may_be_alone_in_a_group(together: int) -> None:
    noise, delta, groups = Gaussian(Fraction(8)), Fraction(1, 10**6), 3
    law = Thresholded.within(noise, delta, groups, together)
    for n in range(1, together + 1):
        most = Fraction(together * groups, n)
        assert most * noise.tail(law.bound + 1 - n) <= delta
    assert law.bound == Thresholded.within(noise, delta, groups, together).bound
    least = [Fraction(together * groups, n) * noise.tail(law.bound - n) for n in range(1, together + 1)]
    assert max(least) > delta


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(20)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), Fraction(1, 10**5), Fraction(1, 10), Fraction(9, 10)])
@pytest.mark.parametrize(("groups", "together"), [(1, 1), (3, 1), (1, 2), (3, 5)])
def test_the_bound_is_the_least_that_keeps_delta(
    scale: Fraction, delta: Fraction, groups: int, together: int
) -> None:
    noise, bound = Gaussian(scale), together
    while any(together * groups * noise.tail(bound + 1 - n) > n * delta for n in range(1, together + 1)):
        bound += 1
    assert Thresholded.within(noise, delta, groups, together).bound == bound


def test_a_threshold_is_exact() -> None:
    assert Thresholded(Fraction(2), 1).coin == 0
    for bound in (0, True):
        with pytest.raises(ValueError, match="at least 1"):
            Thresholded(Fraction(2), bound)
    with pytest.raises(TypeError):
        Thresholded.within(Gaussian(Fraction(2)), 1e-6, 1, 1)  # type: ignore[arg-type]


def test_what_is_shown_is_above_the_bound() -> None:
    law = Thresholded(Fraction(2), 5)
    coins = np.ones(4, dtype=np.bool_)
    assert law.shown(np.array([4, 5, 6, 7]), coins).tolist() == [False, False, True, True]
    assert law.half_width(Fraction(1, 20)) == Gaussian(Fraction(2)).half_width(Fraction(1, 20))
    assert not law.is_additive


def test_the_figures_of_soundness() -> None:
    """1.25: from how many people on a group is shown, at rho = 1/2 and delta 1e-6, against truncated noise."""
    rho, delta = Fraction(1, 2), Fraction(1, 10**6)
    for groups, people, truncated in ((1, 7, 15), (10, 18, 47)):
        law = Thresholded.within(Gaussian.for_rho(groups, rho), delta, groups, 1)
        assert law.bound + 1 == people
        each = pure_epsilon(10**18 // 2 // groups)
        assert Truncated.within(1 / each, delta / groups).bound + 1 == truncated


# --- what an attacker learns: the exact hockey-stick --------------------------------------------------------------


def hockey_stick(here: np.ndarray, there: np.ndarray, epsilon: float) -> float:
    """Return Σ max(0, P - e^epsilon·Q): the least delta at this epsilon."""
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def masses(sigma: Fraction, reach: int) -> np.ndarray:
    at = np.arange(-reach, reach + 2)
    tails = Gaussian(sigma).tails(at)
    return tails[:-1] - tails[1:]


@pytest.mark.parametrize("squared", [1, 3, 144])
@pytest.mark.parametrize("rho", [Fraction(1, 200), Fraction(1, 2), Fraction(3)])
def test_the_exact_hockey_stick_is_below_that_of_the_claim(squared: int, rho: Fraction) -> None:
    """A shift of all the sensitivity, at several epsilons; and half of the noise is above it somewhere."""
    law, moved = Gaussian.for_rho(squared, rho), math.isqrt(squared)
    epsilons = [0.05, 0.5, 1.0, 2.0, 5.0]

    def found(sigma: Fraction) -> list[float]:
        reach = int(12 * sigma) + moved + 20
        mass = masses(sigma, reach + moved)
        return [hockey_stick(mass[moved:], mass[: len(mass) - moved], epsilon) for epsilon in epsilons]

    claimed = [delta_of_rho(int(rho * 10**18), epsilon) for epsilon in epsilons]
    assert all(one <= most + 1e-12 for one, most in zip(found(law.scale), claimed, strict=True))
    halved = Gaussian(max(Fraction(1, 1024), Fraction(int(law.scale * 512), 1024))).scale
    if squared == moved**2:
        assert any(one > most for one, most in zip(found(halved), claimed, strict=True))


@pytest.mark.parametrize("rho", [Fraction(1, 200), Fraction(1, 2)])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6)])
def test_what_a_threshold_tells_of_one_group_is_within_its_claim(rho: Fraction, delta: Fraction) -> None:
    """n and n + 1 people for n = 0 .. 3·bound, both directions: shown counts, or nothing."""
    law = Thresholded.within(Gaussian.for_rho(1, rho), delta, 1, 1)
    reach = int(12 * law.scale) + 4 * law.bound + 20
    mass = masses(law.scale, reach)
    at = np.arange(-reach, reach + 1)

    def told(people: int) -> np.ndarray:
        if not people:
            return np.append(np.zeros(len(at)), 1.0)
        noisy = np.interp(at - people, at, mass, left=0.0, right=0.0)
        return np.append(np.where(at > law.bound, noisy, 0.0), noisy[at <= law.bound].sum())

    for epsilon in (0.1, 1.0, 3.0):
        allowed = delta_of_rho(int(rho * 10**18), epsilon) + float(delta)
        for people in range(3 * law.bound):
            here, there = told(people), told(people + 1)
            assert hockey_stick(here, there, epsilon) <= allowed + 1e-9
            assert hockey_stick(there, here, epsilon) <= allowed + 1e-9
    assert told(1)[:-1].sum() <= float(delta)
    assert np.where(at > law.bound - 1, np.interp(at - 1, at, mass, left=0.0), 0.0).sum() > float(delta)


@pytest.mark.parametrize(
    ("deviation", "scale"),
    [
        (Fraction(1, 3), Fraction(342, 1024)),
        (Fraction(5, 2), Fraction(5, 2)),
        (Fraction(201, 2), Fraction(201, 2)),
        (2**19 + Fraction(1, 2), 2**19 + Fraction(1, 2)),
        (2**20 - Fraction(1, 1024), 2**20 - Fraction(1, 1024)),
        (Fraction(2**20), Fraction(2**20)),
        (2**20 + Fraction(1, 2048), Fraction(2**20 + 1)),
        (Fraction(10**9, 3), Fraction(333_333_334)),
    ],
)
def test_the_least_noise_that_is_no_smaller(deviation: Fraction, scale: Fraction) -> None:
    assert Gaussian.of_at_least(deviation).scale == scale


@pytest.mark.parametrize("scale", [2, 0.5, "1"])
def test_a_deviation_is_exact(scale: Any) -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        Gaussian(scale)


@pytest.mark.parametrize("root", [1, 2, 3000, 2**20 + 1])
@pytest.mark.parametrize("more", [Fraction(1, 10**9), Fraction(1, 2), 1 - Fraction(1, 10**9), Fraction(1)])
def test_no_noise_is_below_what_rho_takes(root: int, more: Fraction) -> None:
    """A variance a little above a square of steps takes the next step: rounded down it would cost more than rho."""
    variance = (root**2 + more) / 1024**2
    law = Gaussian.for_rho(1, 1 / (2 * variance))
    assert law.scale == Fraction(root + 1, 1024)
    assert law.scale**2 >= variance


def test_beyond_the_limit_a_deviation_is_whole() -> None:
    variance = (2**20 + Fraction(1, 2)) ** 2
    assert Gaussian.for_rho(1, 1 / (2 * variance)).scale == 2**20 + 1
    assert Gaussian(Fraction(1, 2**20)).scale == Fraction(1, 2**20)
    with pytest.raises(ValueError, match="a positive multiple"):
        Gaussian(Fraction(1, 2**21))


def test_its_noise_is_added() -> None:
    assert Gaussian(Fraction(2)).is_additive

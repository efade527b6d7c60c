"""The half-width of sums of noises, against enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import OS_RANDOM, Gaussian, Laplace, Law, Summed, half_width_of
from dpsql.mechanisms.law import tails_of_mean, tails_of_sum

BETA = Fraction(1, 20)


def chances(scale: Fraction, reach: int) -> np.ndarray:  # type: ignore[type-arg]
    at = np.arange(-reach, reach + 2)
    tails = Laplace(scale).tails(at)
    return tails[:-1] - tails[1:]


@pytest.mark.parametrize("weights", [(1, 1), (1, -1), (2, 3), (1, 1, 1)])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_whole_multiples_of_one_lattice(weights: tuple[int, ...], scale: Fraction) -> None:
    reach = int(40 * scale) + 40
    whole = np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * reach * abs(weight) + 1)
        spaced[:: abs(weight)] = chances(scale, reach)
        whole = np.convolve(whole, spaced)
    middle = len(whole) // 2
    half = half_width_of([(Laplace(scale), Fraction(weight, 7)) for weight in weights], BETA) * 7
    assert half.denominator == 1

    def outside(m: int) -> float:
        return float(1 - whole[middle - m : middle + m + 1].sum())

    assert outside(int(half)) <= 0.05 + 1e-9
    assert outside(int(half) - 1) > 0.05 - 1e-9


def test_one_noise_is_exact() -> None:
    law = Laplace(Fraction(200))
    assert half_width_of([(law, Fraction(-1, 100))], BETA) == Fraction(599, 100)


def test_two_wide_noises_are_as_their_limit() -> None:
    """Of two Laplace noises of scale b, Pr[|sum| > x] = (1 + x / 2b) exp(-x/b)."""
    scale = Fraction(10**8)
    half = half_width_of([(Laplace(scale), Fraction(1)), (Laplace(scale), Fraction(1))], BETA)
    x = float(half / scale)
    assert (1 + x / 2) * np.exp(-x) == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1)])
def test_bad_probabilities(beta: Fraction) -> None:
    with pytest.raises(ValueError, match="half-width"):
        half_width_of([(Laplace(Fraction(1)), Fraction(1))] * 2, beta)


def test_tails_are_those_of_exact_arithmetic() -> None:
    from dpsql.mechanisms.laplace_accuracy import tail

    for scale in (Fraction(1, 3), Fraction(7), Fraction(10**9)):
        at = [-3 * int(scale) - 5, -1, 0, 1, 2, 5 * int(scale) + 3]
        found = Laplace(scale).tails(np.array(at))
        assert found.tolist() == pytest.approx([float(tail(scale, m)) for m in at], rel=1e-9)


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(10**5, 7)])
@pytest.mark.parametrize("beta", [Fraction(1, 2), BETA, Fraction(1, 10**6)])
def test_the_law_of_a_sum(count: int, scale: Fraction, beta: Fraction) -> None:
    """Not wider than its deviation says, nor narrower: a Laplace law of that spread would be, below the level 0.9."""
    law, wanted = Summed(Laplace(scale), count), half_width_of([(Laplace(scale), Fraction(1))] * count, beta)
    assert float(law.half_width(beta)) == pytest.approx(float(wanted), rel=1e-4, abs=1)
    half = law.half_width(beta)
    assert 2 * law.tails(np.array([half + 1]))[0] <= float(beta) * (1 + 1e-3)
    assert 2 * law.tails(np.array([half]))[0] > float(beta) * (1 - 1e-3)
    drawn = law.draw(20_000, OS_RANDOM)
    assert np.mean(np.abs(drawn) > law.half_width(Fraction(1, 2))) <= 0.5 + 0.02
    assert np.mean(np.abs(drawn) >= law.half_width(Fraction(1, 2))) >= 0.5 - 0.02


def test_the_law_of_very_many_is_the_normal_one() -> None:
    law = Summed(Laplace(Fraction(40)), 100_000)
    assert law.half_width(BETA) == pytest.approx(1.959964 * float(law.spread) ** 0.5, rel=2e-3)
    assert law.upper_quantile(Fraction(1, 10**12)) > law.half_width(Fraction(1, 10**6))


@pytest.mark.parametrize("scale", [2**58, 10**24])
@pytest.mark.parametrize("law", [Laplace, Gaussian])
def test_tails_beyond_64_bits_are_those_of_the_same_shape(scale: int, law: type[Law]) -> None:
    """Of two noises, whose steps are too many to count: that of a shape is all, whatever its scale."""
    wide, narrow = law(Fraction(scale)), law(Fraction(10**6))  # type: ignore[call-arg]  # of one parameter
    asked = np.linspace(-12, 12, 97)
    for tails in (lambda one: tails_of_mean(((one, Fraction(1, 2)),) * 2), lambda one: tails_of_sum(one, 2)):
        (far, upper), (near, known) = tails(wide), tails(narrow)
        assert upper[0] == pytest.approx(1, abs=1e-6)
        found = np.interp(asked, far / scale, upper)
        assert found == pytest.approx(np.interp(asked, near / 10**6, known), abs=1e-3)
    drawn = Summed(wide, 2).draw(1000, OS_RANDOM)
    assert 0.7 < float(np.std(np.array([int(one) / scale for one in drawn]))) < 3


def test_noises_beyond_the_steps_of_tails_are_bounded_one_by_one() -> None:
    """As of a variance of large powers: their tails have no 64 bits, and no half-width is too small."""
    wide = Laplace(Fraction(10**24))
    one, many = (half_width_of([(wide, Fraction(1))] * count, Fraction(1, 20)) for count in (1, 62))
    assert 62 * one > many / 3 > one

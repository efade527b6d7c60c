"""Vectors of Gaussian noise: each coordinate has a deviation of its own, and they are independent."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import OS_RANDOM, Gaussian, Gaussians, law_of

LAW = Gaussians(Fraction(2389, 1024), (1, 7, 2**22))


def test_the_text_is_read_back() -> None:
    assert LAW.text == "gaussians 2389/1024 1 7 4194304"
    assert law_of(LAW.text) == LAW


def test_a_coordinate_is_at_least_as_wide_as_its_reach_says() -> None:
    for place, reach in enumerate((*LAW.reaches, *LAW.reaches)):
        one = LAW.at(place)
        assert isinstance(one, Gaussian)
        assert 0 <= one.scale - LAW.scale * reach < 1
    assert LAW.at(1).scale == Fraction(7 * 2389, 1024)
    assert LAW.at(2).scale.denominator == 1
    assert LAW.spread == LAW.at(2).spread


@pytest.mark.parametrize("reach", [2**19, 2**20 + 1, 2**22 + 1, 2**40 + 3])
def test_a_wide_coordinate_is_rounded_up(reach: int) -> None:
    """To a whole deviation, whichever side of 2^20 it is on."""
    wide = Gaussians(LAW.scale, (1, reach)).at(1).scale
    assert 0 <= wide - LAW.scale * reach < 1
    assert wide.denominator == 1 or wide <= 2**20


def test_vectors_are_independent_draws_of_these() -> None:
    drawn = LAW.vectors(6, 20_000, OS_RANDOM).astype(float)
    assert drawn.shape == (6, 20_000)
    for place, column in enumerate(drawn):
        assert np.std(column) == pytest.approx(float(LAW.at(place).scale), rel=0.05)
    correlations = np.corrcoef(drawn) - np.eye(6)
    assert np.abs(correlations).max() < 0.05


def test_a_weighted_sum_is_of_independent_noises() -> None:
    weights = {0: Fraction(1), 4: Fraction(2)}
    assert LAW.noises(weights) == [(LAW.at(0), Fraction(1)), (LAW.at(1), Fraction(2))]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(0), Fraction(-1)])
def test_a_deviation_is_one_that_can_be_drawn(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="a deviation is"):
        Gaussians(scale, (1,))


@pytest.mark.parametrize("reaches", [(), (0,), (1, -1)])
def test_reaches_are_positive(reaches: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="reaches are positive"):
        Gaussians(Fraction(1), reaches)
    with pytest.raises(TypeError):
        Gaussians(Fraction(1), (Fraction(1),))  # type: ignore[arg-type]


def test_whole_vectors_alone_are_drawn() -> None:
    with pytest.raises(ValueError, match="whole vectors"):
        LAW.vectors(4, 1, OS_RANDOM)
    for ask in (lambda: LAW.draw(1, OS_RANDOM), lambda: LAW.half_width(Fraction(1, 20))):
        with pytest.raises(TypeError):
            ask()

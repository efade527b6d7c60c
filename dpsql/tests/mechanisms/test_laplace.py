"""What the law says of its draws, against the sums of its own probabilities (soundness.md 0 and 1.2)."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.mechanisms.discrete_laplace import sampled_scale
from dpsql.mechanisms.laws import Laplace

getcontext().prec = 60
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(40)]


def exact_tail(scale: Fraction, at: int) -> Decimal:
    """Return Pr[Y >= at], term by term, until the terms are beyond all digits."""
    used = sampled_scale(scale)
    q = (-Decimal(used.denominator) / Decimal(used.numerator)).exp()
    reach = at + 120 * (int(used) + 1) + abs(at)
    return (1 - q) / (1 + q) * sum((q ** abs(y) for y in range(at, reach)), Decimal(0))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_tails_are_the_sums_of_its_probabilities(scale: Fraction) -> None:
    at = np.array([-200, -41, -3, -2, -1, 0, 1, 2, 3, 40, 200])
    found = Laplace(scale).tails(at)
    for place, value in zip(at, found, strict=True):
        assert float(value) == pytest.approx(float(exact_tail(scale, int(place))), rel=1e-12, abs=1e-300)


def test_a_tail_and_the_other_one_are_all() -> None:
    at = np.arange(-60, 60)
    law = Laplace(Fraction(9))
    assert law.tails(at) + law.tails(1 - at) == pytest.approx(np.ones(120), rel=1e-15)


@pytest.mark.parametrize(
    ("scale", "error", "said"),
    [(1, TypeError, "not int"), (0.5, TypeError, "not float"), (Fraction(0), ValueError, "is positive"),
     (Fraction(-1, 10**9), ValueError, "is positive")],
)  # fmt: skip
def test_a_scale_that_is_none(scale: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Laplace(scale)


def test_its_noise_is_added() -> None:
    """What stored draws are combined by, and what error bars simulate: answers that are exact plus noise."""
    assert Laplace(Fraction(2)).is_additive

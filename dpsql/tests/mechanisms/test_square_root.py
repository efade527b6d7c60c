"""Running sums by square root in whole numbers, by their definition, and the law of the noise on them (soundness.md
1.44)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsql.mechanisms import Gaussian, SquareRoot, UnknownLaw, law_of, laws
from dpsql.mechanisms.laws.square_root import MOST_PLACES, coefficients, squared_of, sums_of


def exact(k: int) -> int:
    """Return c_k as it is defined, a half up."""
    return math.floor(Fraction(256 * math.comb(2 * k, k), 4**k) + Fraction(1, 2))


def moved(values: Sequence[Any]) -> list[int]:
    """Return running sums by square root, by their definition."""
    return [
        sum(exact(t - s) * int(value) for s, value in enumerate(values[: t + 1])) for t in range(len(values))
    ]


def test_coefficients_are_those_of_the_square_root_rounded() -> None:
    assert list(coefficients()[:300]) == [exact(k) for k in range(300)]
    assert coefficients()[-1] == exact(MOST_PLACES - 1)
    assert squared_of(365) == 192_976


@given(st.lists(st.integers(-(2**66), 2**66), min_size=1, max_size=12))
@example([-(2**63), 1])  # 64 bits do not hold its absolute value
def test_sums_are_exact_whatever_the_numbers(values: list[int]) -> None:
    small = np.array([value % 1000 for value in values], dtype=np.int64)
    assert sums_of(np.array(values, dtype=object)).tolist() == moved(values)
    assert sums_of(small).tolist() == moved(small.tolist())
    wide = np.array([min(max(value, -(2**63)), 2**63 - 1) for value in values], dtype=np.int64)
    assert sums_of(wide).tolist() == moved(wide.tolist())


def test_what_a_place_is_told_to_is_within_its_spread() -> None:
    """And of a year a running total has the deviation of the square root itself, to three digits."""
    kernel = np.array(coefficients(), dtype=float)
    matrix = np.array([[kernel[t - s] if s <= t else 0.0 for s in range(365)] for t in range(365)])
    inverse = np.linalg.inv(matrix)
    law = SquareRoot.for_rho(squared_of(365), Fraction(1, 2))
    assert (inverse**2).sum(axis=1).max() * float(law.scale) ** 2 <= float(law.spread)
    totals = (np.cumsum(inverse, axis=0) ** 2).sum(axis=1) * float(law.scale) ** 2
    assert math.sqrt(totals.mean()) == pytest.approx(2.782, abs=0.002)
    assert math.sqrt(totals.max()) == pytest.approx(2.944, abs=0.002)


def test_a_version_that_does_not_know_the_law_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    law = SquareRoot(Fraction(439))
    assert law_of(law.text) == law
    monkeypatch.delitem(laws._READERS, SquareRoot.name)
    law_of.cache_clear()
    with pytest.raises(UnknownLaw):
        law_of(law.text)
    law_of.cache_clear()


def test_noise_is_the_least_of_a_charge_and_drawn_on_sums_alone() -> None:
    law = SquareRoot.for_rho(squared_of(365), Fraction(1, 2))
    assert law.drawn == Gaussian.for_rho(squared_of(365), Fraction(1, 2))
    assert squared_of(1) == 256**2
    assert squared_of(MOST_PLACES) == sum(exact(k) ** 2 for k in range(MOST_PLACES))
    for places in (0, MOST_PLACES + 1):
        with pytest.raises(ValueError, match="places"):
            squared_of(places)
    with pytest.raises(ValueError, match="deviation"):
        SquareRoot(Fraction(0))

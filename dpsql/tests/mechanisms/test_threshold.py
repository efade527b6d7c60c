"""Thresholds against the published table and the plain formula."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from dpsql.mechanisms import Laplace, threshold

from .test_laplace_accuracy import true_tail

_MILLIONTH = Fraction(1, 10**6)
_BILLIONTH = Fraction(1, 10**9)
_TENTH = Fraction(1, 10)
_ONE = Laplace(Fraction(1))


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
    assert tuple(threshold(Laplace(groups / epsilon), delta, groups) for groups in (1, 4, 10)) == taus


def test_a_threshold_is_the_smallest_that_keeps_its_promise() -> None:
    rng = random.Random(20261120)
    for _ in range(300):
        scale = Fraction(rng.randint(1, 10 ** rng.randint(1, 12)), rng.randint(1, 1000))
        delta = Fraction(rng.randint(1, 400), 10 ** rng.randint(3, 18))
        groups, minimum = rng.randint(1, 50), rng.randint(1, 20)
        tau = threshold(Laplace(scale), delta, groups, minimum)
        assert true_tail(scale, tau - minimum) <= delta / groups
        assert tau - minimum == 1 or true_tail(scale, tau - minimum - 1) > delta / groups


def test_a_minimum_of_units_shifts_the_threshold() -> None:
    """soundness.md 1.7: tau goes up by k - 1."""
    assert threshold(_ONE, _MILLIONTH, 1, 5) == 15 + 4


@pytest.mark.parametrize(
    ("delta", "groups", "minimum"),
    [
        (Fraction(0), 1, 1), (Fraction(-1, 10), 1, 1), (Fraction(1, 2), 1, 1), (Fraction(1, 10**901), 1, 1),
        (_MILLIONTH, 0, 1), (_MILLIONTH, -1, 1), (_MILLIONTH, 1, 0),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_errors(delta: Fraction, groups: int, minimum: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        threshold(_ONE, delta, groups, minimum)


def test_a_float_delta_is_an_error() -> None:
    with pytest.raises(TypeError, match="exact Fraction"):
        threshold(_ONE, 1e-6, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("groups", "tau"), [(1, 60), (3, 189)])
def test_the_threshold_of_four_persons_together(groups: int, tau: int) -> None:
    """soundness.md 1.18: 60 and 189, where group privacy of one person's threshold would take 62 and 194."""
    assert threshold(Laplace(Fraction(4 * groups)), _MILLIONTH, groups, 1, 4) == tau


def test_a_threshold_for_several_is_the_smallest_that_keeps_its_promise() -> None:
    """For every way to share k·groups memberships: n units in each of k·groups/n keys."""
    rng = random.Random(20261122)
    for _ in range(150):
        scale = Fraction(rng.randint(1, 10 ** rng.randint(1, 4)), rng.randint(1, 100))
        delta = Fraction(rng.randint(1, 400), 10 ** rng.randint(3, 18))
        groups, minimum, together = rng.randint(1, 20), rng.randint(1, 20), rng.randint(1, 12)
        tau = threshold(Laplace(scale), delta, groups, minimum, together)

        def worst(tau: int) -> Fraction:
            tails = (true_tail(scale, tau - minimum + 1 - n) / n for n in range(1, together + 1))  # noqa: B023
            return together * groups * max(tails)  # noqa: B023

        assert worst(tau) <= delta
        assert tau - 1 < minimum + together or worst(tau - 1) > delta

"""Bars of counts that were shown: each size of group is held as often as they say, among the answers that show it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.mechanisms import Laplace, Truncated
from dpsql.postprocess.simulate import Showing, shown_ends, shown_replicas
from dpsql.tests.laws.planting import plant

CASES = [(Fraction(1), 1), (Fraction(1, 10), 1), (Fraction(1), 3), (Fraction(10), 1)]


def rule_of(epsilon: Fraction, groups: int, share: float | None = None) -> Showing:
    """Return the rule of truncated noise; with a share, one of a threshold on untruncated noise."""
    scale, each = groups / epsilon, Fraction(1, 10**6) / groups
    if share is not None:
        law = Laplace(scale)
        return Showing(law, 1 + law.upper_quantile(each), 1, share)
    truncated = Truncated.within(scale, each)
    return Showing(truncated, truncated.bound, 1, float(truncated.coin))


def chances(rule: Showing, people: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Return all noisy counts that a group of so many people is shown with, and how likely each is among them."""
    farthest = max(rule.first, people) + int(60 * rule.law.scale) + 60
    noisy = np.arange(rule.first, farthest)
    at_least = rule.at_least(np.full_like(noisy, people), noisy)
    return noisy, (at_least - np.append(at_least[1:], 0.0)) / at_least[0]


@pytest.mark.parametrize("share", [None, 1.0, 0.07])
@pytest.mark.parametrize(("epsilon", "groups"), CASES)
def test_every_size_is_held_by_enumeration(epsilon: Fraction, groups: int, share: float | None) -> None:
    rule = rule_of(epsilon, groups, share)
    sizes = [*range(1, 11), *np.linspace(11, 4 * rule.first, 60).astype(int).tolist()]
    for people in sizes:
        noisy, chance = chances(rule, people)
        assert chance.sum() == pytest.approx(1)
        low, high = shown_ends(rule, noisy, 0.05)
        held = float(chance[(low <= people) & (people <= high)].sum())
        assert held >= 0.95 - 1e-9, (people, held)
        plain = rule.law.half_width(Fraction(1, 20))
        if people <= 10 and epsilon <= 1:
            assert chance[abs(noisy - people) <= plain].sum() < 0.1, "bars that ask nothing of showing miss"


def test_far_above_the_threshold_bars_are_the_plain_ones() -> None:
    rule = rule_of(Fraction(1, 10), 1)
    low, high = shown_ends(rule, np.array([1000]), 0.05)
    half = rule.law.half_width(Fraction(1, 20))
    assert abs(1000 - low[0] - half) <= 1
    assert abs(high[0] - 1000 - half) <= 1


def test_replicas_lie_as_the_bars_do() -> None:
    rule = rule_of(Fraction(1, 10), 1)
    noisy = np.array([rule.first, rule.first + 30, rule.first + 200])
    low, high = shown_ends(rule, noisy, 0.05)
    drawn = shown_replicas(rule, noisy, 4000, b"3")
    for row in range(3):
        inside = np.mean((drawn[row] >= low[row]) & (drawn[row] <= high[row]))
        assert inside >= 0.93
    assert (drawn == shown_replicas(rule, noisy, 4000, b"3")).all()


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (Showing.above, "self.at_least(people, np.full_like(people, self.first))", "np.ones(len(people))"),
        (Showing.above, "self.at_least(people, noisy) / shown", "self.law.tails(noisy - people)"),
        (shown_ends, "rule.above(n, counts) > beta / 2", "rule.above(n, counts) > beta * 20"),
        (shown_ends, "1 - rule.above(n, counts + 1)", "(1 - rule.above(n, counts + 1)) / 20"),
    ],
)
def test_mutants_are_seen(monkeypatch: pytest.MonkeyPatch, function: Any, old: str, new: str) -> None:
    """Not conditioned at all, conditioned at one end, ends at other levels."""
    plant(monkeypatch, function, (old, new))
    with pytest.raises(AssertionError):
        test_every_size_is_held_by_enumeration(Fraction(1, 10), 1, 1.0)

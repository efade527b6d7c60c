"""The law of a sum of draws: quantiles, tails and replicas are those of the sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.mechanisms import Laplace, Law, Summed, half_width_of, linear_accuracy
from dpsql.postprocess.seeded import Seeded

MISSES = Fraction(1, 20)


def drawn(law: Law, count: int, size: int) -> np.ndarray:  # type: ignore[type-arg]
    noise = law.draw(count * size, Seeded(b"sums of draws"))
    return np.asarray(noise).reshape(size, count).sum(axis=1)


@pytest.mark.parametrize(("scale", "count"), [(2, 2), (10, 3), (Fraction(37, 4), 6), (40, 64), (3, 500)])
def test_the_quantile_is_the_sums(scale: int, count: int) -> None:
    law = Laplace(Fraction(scale))
    summed = Summed.of(law, count)
    sums = np.abs(drawn(law, count, 40_000))
    assert np.mean(sums > summed.half_width(MISSES)) == pytest.approx(0.05, abs=0.006 if scale > 2 else 0.02)
    assert float(summed.spread) == pytest.approx(count * float(law.spread), rel=1e-4)
    replicas = np.abs(summed.draw(40_000, Seeded(b"replicas")))
    assert np.mean(replicas > summed.half_width(MISSES)) == pytest.approx(
        0.05, abs=0.006 if scale > 2 else 0.02
    )


def test_it_is_the_quantile_of_the_noises_one_by_one() -> None:
    law = Laplace(Fraction(50))
    alone = half_width_of([(law, Fraction(1))] * 3, MISSES)
    assert Summed.of(law, 3).half_width(MISSES) == alone
    weighted = [(Summed.of(law, 3), Fraction(2)), (law, Fraction(1))]
    assert half_width_of(weighted, MISSES) == half_width_of(
        [*([(law, Fraction(2))] * 3), (law, Fraction(1))], MISSES
    )
    assert Summed.of(law, 3).upper_quantile(MISSES / 2) == alone + 1


def test_it_is_narrower_than_one_noise_of_its_variance() -> None:
    """So a wider single noise would not do for it."""
    summed = Summed.of(Laplace(Fraction(100)), 12)
    alone = Laplace(Fraction(100) * Fraction(3464102, 10**6)).half_width(MISSES)  # √12 times
    assert 0.9 * alone < summed.half_width(MISSES) < 0.95 * alone


@pytest.mark.parametrize("count", [2, 7])
def test_tails(count: int) -> None:
    law = Laplace(Fraction(6))
    sums = drawn(law, count, 60_000)
    at = np.array([-40, -9, -1, 0, 1, 2, 13, 60])
    found = Summed.of(law, count).tails(at)
    for m, chance in zip(at, found, strict=True):
        assert np.mean(sums >= m) == pytest.approx(chance, abs=0.008), m


def test_a_mutant_that_takes_one_draw_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_accuracy, "_parts", lambda law: (getattr(law, "part", law),))
    with pytest.raises(AssertionError):
        test_the_quantile_is_the_sums(10, 3)

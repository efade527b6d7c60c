"""Discrete Laplace and Gaussian noise: samples a second in measurements."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from benchmarks.figure import Figure, Size, milliseconds
from dpsql.mechanisms import OS_RANDOM, Laplace, SampledNoise
from dpsql.mechanisms.discrete_gaussian import draw_discrete_gaussian

__all__ = ["measure"]

_SCALES = (Fraction(1), Fraction(7, 3), Fraction(20), Fraction(10**4), Fraction(10**6 + 1), Fraction(10**9))
_SIGMAS = (
    Fraction(1),
    Fraction(1024 * 7 // 3, 1024),
    Fraction(20),
    Fraction(10**4),
    Fraction(10**6),
    Fraction(10**9),
)


def measure(size: Size) -> Iterator[Figure]:
    """Yield the best rate at each scale."""
    noise = SampledNoise()
    for sigma in _SIGMAS:
        best = min(
            milliseconds(partial(draw_discrete_gaussian, sigma, size.draws, OS_RANDOM))
            for _ in range(size.repeats)
        )
        yield Figure(f"Gaussian noise at sigma {sigma}", size.draws / best / 1000, 2, "M/s", is_rate=True)
    for scale in _SCALES:
        best = min(milliseconds(partial(noise.draw, Laplace(scale), size.draws)) for _ in range(size.repeats))
        yield Figure(f"noise at scale {scale}", size.draws / best / 1000, 2, "M/s", is_rate=True)

"""The noise that the engine adds: one call gives the whole vector of a release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy.typing as npt

from .discrete_laplace import draw_discrete_laplace
from .random_source import OS_RANDOM, RandomSource

__all__ = ["LaplaceNoise", "Noise"]


class Noise(Protocol):
    """Gives noise in lattice units. Tests inject another in process; nothing else can (law L8)."""

    def laplace(self, scale: Fraction, count: int) -> npt.NDArray[Any]:
        """Return `count` independent discrete Laplace draws of `scale`, as `draw_discrete_laplace` does."""
        ...


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Exact discrete Laplace noise from a random source, the operating system's by default."""

    source: RandomSource = OS_RANDOM

    def laplace(self, scale: Fraction, count: int) -> npt.NDArray[Any]:
        return draw_discrete_laplace(scale, count, self.source)

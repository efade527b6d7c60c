"""Gaussian noise on a vector whose coordinates differ in width: independent draws, each with its own deviation.

What is drawn together in a zCDP dataset (soundness.md 1.25): the part of the box in a pure one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..law import Law, WholeVectors
from ..uniform import RandomSource
from .gaussian import Gaussian

__all__ = ["Gaussians"]


@dataclass(frozen=True, slots=True)
class Gaussians(WholeVectors):
    """See `Law`; of vectors of one coordinate for each of `reaches`, whose deviation is `scale` times its reach.

    Raises TypeError unless the scale is a Fraction and reaches are integers, ValueError unless it is a deviation of
    `Gaussian` and all are positive.
    """

    family: ClassVar[str] = "discrete Gaussian"
    name: ClassVar[str] = "gaussians"
    is_additive: ClassVar[bool] = True
    scale: Fraction
    reaches: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(type(reach) is not int for reach in self.reaches):
            raise TypeError("reaches are integers")
        if not self.reaches or min(self.reaches) < 1:
            raise ValueError("reaches are positive")
        Gaussian(self.scale)

    @property
    def text(self) -> str:
        return " ".join([self.name, str(self.scale), *map(str, self.reaches)])

    @classmethod
    def read(cls, text: str) -> Gaussians:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, *reaches = text.split(" ")
        return cls(Fraction(scale), tuple(map(int, reaches)))

    @property
    def spread(self) -> Fraction:
        """The variance of the widest coordinate, from above."""
        return self.at(self.reaches.index(max(self.reaches))).spread

    def at(self, coordinate: int) -> Gaussian:
        """See `Law`. Coordinates are numbered on from one vector to the next."""
        return Gaussian.of_at_least(self.scale * self.reaches[coordinate % len(self.reaches)])

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(self.at(coordinate), weight) for coordinate, weight in weights.items()]

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """See `Law`."""
        self.vectors_in(size)
        columns = [self.at(coordinate).draw(count, source) for coordinate in range(size)]
        exact = any(column.dtype == object for column in columns)
        return np.array([column.astype(object) if exact else column for column in columns]).reshape(
            size, count
        )

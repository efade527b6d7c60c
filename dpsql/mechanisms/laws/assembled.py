"""The law of coordinates that come from stored draws, each with its own: for bars alone, and in no ledger."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...records import dataclass
from ..law import Law
from ..uniform import RandomSource

__all__ = ["Assembled", "Vector"]


@dataclass(frozen=True, slots=True)
class Vector:
    """One number of what was drawn together. `draw`: a digest of what it measures and what came out; `joint`: its law;
    `coordinate`: which of all coordinates of the draw."""

    draw: bytes
    joint: Law
    coordinate: int


@dataclass(frozen=True, slots=True)
class Assembled:
    """See `Law`: the i-th coordinate has `laws[i]`, and was drawn as `drawn[i]` says; None: by itself.

    Raises TypeError where one figure is asked of all, but for the widest's scale and spread.
    """

    is_additive: ClassVar[bool] = True
    is_joint: ClassVar[bool] = True
    laws: tuple[Law, ...]
    drawn: tuple[Vector | None, ...]

    @property
    def _widest(self) -> Law:
        return max(self.laws, key=lambda law: law.spread)

    @property
    def family(self) -> str:
        return self._widest.family

    @property
    def scale(self) -> Fraction:
        return self._widest.scale

    @property
    def text(self) -> str:
        return "; ".join(law.text for law in self.laws)

    @property
    def spread(self) -> Fraction:
        return self._widest.spread

    def size_of(self, size: int) -> int:
        return size

    def at(self, coordinate: int) -> Law:
        return self.laws[coordinate]

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """See `Law`: of each draw by itself."""
        found: list[tuple[Law, Fraction]] = []
        together: dict[tuple[bytes, Law], dict[int, Fraction]] = {}
        for coordinate, weight in weights.items():
            vector = self.drawn[coordinate]
            if vector is None:
                found.append((self.laws[coordinate], weight))
            else:
                parts = together.setdefault((vector.draw, vector.joint), {})
                parts[vector.coordinate] = parts.get(vector.coordinate, Fraction(0)) + weight
        for (_, joint), parts in together.items():
            found += joint.noises({coordinate: weight for coordinate, weight in parts.items() if weight})
        return found

    def half_width(self, beta: Fraction) -> int:
        return self._widest.half_width(beta)

    def upper_quantile(self, probability: Fraction) -> int:
        return self._widest.upper_quantile(probability)

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("each coordinate has a law of its own")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("what is stored is not drawn again")

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("what is stored is not drawn again")

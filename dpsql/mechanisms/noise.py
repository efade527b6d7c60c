"""The randomness of the engine: noise for the whole measurement of a release in one call, and the bits of choices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..records import dataclass
from .choice import choose, permute_and_flip
from .law import Law
from .uniform import OS_RANDOM, RandomSource, draw_coins

__all__ = ["Noise", "SampledNoise"]


class Noise(Protocol):
    """Gives noise in coordinate units. Tests inject another in process; nothing else can (law L8)."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        """Return `count` independent draws of `law`, as `Law.draw` does."""
        ...

    def vectors(self, law: Law, size: int, count: int) -> npt.NDArray[Any]:
        """Return the noise of `size` coordinates that depend on each other, as `Law.vectors` does."""
        ...

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        """Return `count` independent coins, as `draw_coins` does."""
        ...

    def bits(self, count: int) -> bytes:
        """Return `count` uniform bytes for choices, before the exact numbers are there."""
        ...

    def choose(
        self, counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes
    ) -> tuple[int, int]:
        """Choose an interval and a place in it, as `choice.choose` does."""
        ...

    def pick(self, scores: Sequence[int], gamma: Fraction, first: bytes) -> int:
        """Pick a candidate of a large score, as `permute_and_flip` does; `first`: the bytes that it begins with."""
        ...


@dataclass(frozen=True, slots=True)
class SampledNoise:
    """Exact noise from a random source, the operating system's by default."""

    source: RandomSource = OS_RANDOM

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return law.draw(count, self.source)

    def vectors(self, law: Law, size: int, count: int) -> npt.NDArray[Any]:
        return law.vectors(size, count, self.source)

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        """See `Noise.coins`."""
        return draw_coins(chance, count, self.source)

    def bits(self, count: int) -> bytes:
        return self.source.random_bytes(count)

    def choose(
        self, counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes
    ) -> tuple[int, int]:
        return choose(counts, exponents, gamma, first, self.source)

    def pick(self, scores: Sequence[int], gamma: Fraction, first: bytes) -> int:
        return permute_and_flip(scores, gamma, _Begun(first, self.source))


@dataclass(slots=True)
class _Begun:
    """A random source whose first bytes are there already."""

    first: bytes
    source: RandomSource

    def random_bytes(self, count: int) -> bytes:
        drawn, self.first = self.first[:count], self.first[count:]
        return drawn + (self.source.random_bytes(count - len(drawn)) if len(drawn) < count else b"")

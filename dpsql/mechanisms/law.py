"""The law of the noise on a released number, what is known of its error; and the randomness that draws it.

House rules:

1. A law is public and frozen; it is stored with the draw that has it. Bars, thresholds, look-ups and
   EXPLAIN read the law of the draw at hand, never a scale of the plan's (soundness.md 1.2).
2. All figures of a law are of the noise that is really drawn, in coordinate units, and exact or on the safe side. A
   coordinate unit is what 1 of a measurement's coordinate is, a lattice unit or a fraction 1 / U of one
   (`Measurement.denominator`): nothing in this folder knows which, or what a lattice is.
3. The noises of one draw may depend on each other (box noise): what is on one coordinate by itself is `at`, what is on
   a weighted sum of several `noises`, and they are drawn together by `vectors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from ..records import dataclass
from .choice import choose, permute_and_flip
from .uniform import OS_RANDOM, RandomSource, draw_coins


class Law(Protocol):
    """The distribution of the noise on a draw; where it is not joint, the same on each coordinate by itself."""

    @property
    def family(self) -> str:
        """The distribution's name, for people."""

    @property
    def is_additive(self) -> bool:
        """Whether draws are exact numbers plus noise in every group: only then a sum of several is one of theirs."""

    @property
    def scale(self) -> Fraction:
        """The distribution's one parameter, in coordinate units; positive."""

    @property
    def text(self) -> str:
        """The law as the ledger has it: `law_of(law.text) == law`."""

    @property
    def spread(self) -> Fraction:
        """An upper bound of the variance, in squared coordinate units: the one order in which draws serve a wish."""

    def half_width(self, beta: Fraction) -> int:
        """Return the smallest m >= 0 with Pr[|noise| > m] <= `beta`: the error bar. ValueError out of (0, 1)."""

    def upper_quantile(self, probability: Fraction) -> int:
        """Return the smallest m >= 1 with Pr[noise >= m] <= `probability`. ValueError out of (0, 1/2)."""

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return Pr[noise >= m] for each m of `at`, in its shape, to ten digits: for bars, not for charges."""

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return exact independent draws from `source`, shape (count,): int64, or Python ints where needed."""

    @property
    def is_joint(self) -> bool:
        """Whether coordinates of one draw depend on each other: then they are drawn by `vectors` alone."""

    def size_of(self, size: int) -> int:
        """Return how many coordinates whole vectors have that hold so many."""

    def at(self, coordinate: int) -> Law:
        """Return the law of one coordinate by itself."""

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        """Return independent noises, each with its weight, whose sum a weighted sum of coordinates has on it."""

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        """Return the noise of `size` coordinates, `count` independent times: shape (size, count), as `draw`."""


def check_chance(probability: Fraction) -> None:
    """Raise ValueError unless a tail's probability is in (0, 1/2)."""
    if not 0 < probability < Fraction(1, 2):
        raise ValueError("a tail probability is above 0 and below 1/2")


class Independent:
    """Of a `Law` whose coordinates are independent: all are alike, each is drawn for itself, and -y as often as y.

    Its text is its name, its scale, and the whole numbers that are its other fields.
    """

    __slots__: tuple[str, ...] = ()
    name: ClassVar[str]

    @property
    def text(self) -> str:
        return " ".join([self.name, *(str(getattr(self, field)) for field in self.__slots__)])

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, *numbers = text.split(" ")
        if len(numbers) + 1 != len(cls.__slots__):
            raise ValueError("not the text of a law")
        return cls(Fraction(scale), *map(int, numbers))  # type: ignore[call-arg]

    def half_width(self, beta: Fraction) -> int:
        return self.upper_quantile(beta / 2) - 1  # type: ignore[attr-defined,no-any-return]

    @property
    def is_joint(self) -> bool:
        return False

    def size_of(self, size: int) -> int:
        return size

    def at(self, coordinate: int) -> Self:
        return self

    def noises(self, weights: Mapping[int, Fraction]) -> list[tuple[Law, Fraction]]:
        return [(self, weight) for weight in weights.values()]  # type: ignore[misc]

    def vectors(self, size: int, count: int, source: RandomSource) -> npt.NDArray[Any]:
        drawn: npt.NDArray[Any] = self.draw(size * count, source)  # type: ignore[attr-defined]
        return drawn.reshape(size, count)


class WholeVectors:
    """Of a `Law` whose draws are vectors of one coordinate for each of `reaches`, with a law of its own.

    Coordinates are numbered on from one vector to the next. Raises TypeError where one figure is asked of all.
    """

    __slots__ = ()

    name: ClassVar[str]
    scale: Fraction
    reaches: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join([self.name, str(self.scale), *map(str, self.reaches)])

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the law that `text` wrote. Raises ValueError."""
        _, scale, *reaches = text.split(" ")
        return cls(Fraction(scale), tuple(map(int, reaches)))  # type: ignore[call-arg]

    @property
    def is_joint(self) -> bool:
        return True

    def size_of(self, size: int) -> int:
        return -(-size // len(self.reaches)) * len(self.reaches)

    def vectors_in(self, size: int) -> int:
        """Return how many vectors so many coordinates are. Raises ValueError: no whole number."""
        if size % len(self.reaches):
            raise ValueError("noise is drawn in whole vectors")
        return size // len(self.reaches)

    def half_width(self, beta: Fraction) -> int:
        raise TypeError("each coordinate of a vector has a law of its own")

    def upper_quantile(self, probability: Fraction) -> int:
        raise TypeError("each coordinate of a vector has a law of its own")

    def tails(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        raise TypeError("each coordinate of a vector has a law of its own")

    def draw(self, count: int, source: RandomSource) -> npt.NDArray[Any]:
        raise TypeError("noise is drawn in whole vectors")


class Noise(Protocol):
    """Gives noise in coordinate units. Tests inject another in process; nothing else can (law L8)."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        """Return `count` independent draws of `law`, as `Law.draw` does."""

    def vectors(self, law: Law, size: int, count: int) -> npt.NDArray[Any]:
        """Return the noise of `size` coordinates that depend on each other, as `Law.vectors` does."""

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        """Return `count` independent coins, as `draw_coins` does."""

    def bits(self, count: int) -> bytes:
        """Return `count` uniform bytes for choices, before the exact numbers are there."""

    def choose(
        self, counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes
    ) -> tuple[int, int]:
        """Choose an interval and a place in it, as `choice.choose` does."""

    def pick(self, scores: Sequence[int], gamma: Fraction, first: bytes) -> int:
        """Pick a candidate of a large score, as `permute_and_flip` does; `first`: the bytes that it begins with."""


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

"""Noise and random bytes for tests: predictable, and therefore handed over in process only (law L8)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mechanisms import Law


class SeededSource:
    """A `RandomSource` that repeats: the i-th call gives the first bytes of SHAKE-256(seed, i).

    For tests alone; not for two threads at a time.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0

    def random_bytes(self, count: int) -> bytes:
        self._calls += 1
        return hashlib.shake_256(f"dpsql test {self._seed} {self._calls}".encode()).digest(count)


class ZeroNoise:
    """A `Noise` that adds nothing: for comparing measures with an independent oracle."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.zeros(count, dtype=np.int64)

    def vectors(self, law: Law, size: int, count: int) -> npt.NDArray[Any]:
        """Return as many numbers of `draw`."""
        return self.draw(law, size * count).reshape(size, count)

    def coins(self, chance: Fraction, count: int) -> npt.NDArray[np.bool_]:
        """Return what hides: a group found in the data is then shown from the printed threshold on."""
        return np.zeros(count, dtype=np.bool_)

    def bits(self, count: int) -> bytes:
        return bytes(count)

    def choose(
        self, counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes
    ) -> tuple[int, int]:
        """Return the first of the best candidates."""
        return min((k, i) for i, (n, k) in enumerate(zip(counts, exponents, strict=True)) if n)[1], 0

    def pick(self, scores: Sequence[int], gamma: Fraction, first: bytes) -> int:
        """Return the first of the best candidates."""
        return max(range(len(scores)), key=scores.__getitem__)


class CountingNoise(ZeroNoise):
    """A `Noise` that gives 1, 2, 3, … from a start on: whatever a number is added to can be told by it.

    `given`: the numbers so far.
    """

    def __init__(self, start: int = 10**6) -> None:
        self._start = start
        self._count = 0

    @property
    def given(self) -> range:
        return range(self._start + 1, self._start + 1 + self._count)

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        first = self._start + self._count + 1
        self._count += count
        return np.arange(first, first + count, dtype=np.int64)

"""Noise and random bytes for tests: predictable, and therefore handed over in process only (law L8)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mechanisms import Law

__all__ = ["SeededSource", "ZeroNoise"]


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

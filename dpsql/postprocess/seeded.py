"""Noise for simulated error bars: the same for the same released numbers, in every session.

The seed of a coordinate's replicas is a hash of what it measures, its law and its released integers. All of these are
known after the release, so bars are a function of what is released, and a function of it tells nothing more
(soundness.md 1.2). The noise of a release never comes from here.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mechanisms import Law

__all__ = ["Seeded", "seed_of"]

Array = npt.NDArray[Any]


def seed_of(identity: bytes, law: Law, released: Array) -> bytes:
    """Return the seed of a coordinate's replicas: of what it measures, its law, and its released integers in order.

    `identity` tells coordinates apart that came out equal: their noises are independent.
    """
    digest = hashlib.sha256(identity + law.text.encode() + b"\0")
    if released.dtype == np.int64:
        digest.update(np.ascontiguousarray(released, dtype="<i8").tobytes())
    else:
        digest.update(repr(list(map(int, released))).encode())
    return digest.digest()


class Seeded:
    """A stream of bytes from a seed, for simulations alone: nothing that is released is drawn from it."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._calls = seed, 0

    def random_bytes(self, count: int) -> bytes:
        """See `RandomSource`: the i-th call gives the first bytes of SHAKE-256(seed, i)."""
        self._calls += 1
        return hashlib.shake_256(self._seed + self._calls.to_bytes(8, "big")).digest(count)

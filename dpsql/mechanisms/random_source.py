"""Where random bits come from: the operating system, and nothing else outside a test.

House rules:

1. Nothing in `mechanisms` takes a seed, reads an environment variable or has a setting (law L8).
   A deterministic source exists only in `dpsql.testing`, and reaches the engine only in process.
2. No buffer is kept between calls: nothing to leak, nothing to repeat after a fork.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

__all__ = ["OS_RANDOM", "RandomSource"]


class RandomSource(Protocol):
    """Gives independent uniform bytes.

    Ensures: exactly `count` bytes, each uniform and independent of all bytes given before.
    """

    def random_bytes(self, count: int) -> bytes: ...


class _OperatingSystem:
    """The kernel's generator through `os.urandom`: safe after a fork, cannot be seeded."""

    __slots__ = ()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


OS_RANDOM: Final[RandomSource] = _OperatingSystem()
"""The source that every release draws from."""

"""What sessions remember of statements: a bounded mapping, safe for threads."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

__all__ = ["Cache"]

T = TypeVar("T")


class Cache(Generic[T]):
    """Keeps the last `size` values that were put in."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: dict[object, T] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: object) -> T | None:
        """Return what was put under a key; None if that was too long ago, or never."""
        return self._kept.get(key)

    def put(self, key: object, value: T) -> None:
        """Remember a value; the oldest one makes room."""
        with self._lock:
            if len(self._kept) >= self._size and key not in self._kept:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

"""What is remembered of statements: a bounded mapping, safe for threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Cache"]

T = TypeVar("T")


class Cache(Generic[T]):
    """Keeps the `size` values that were used last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: object) -> T | None:
        """Return what was put under a key; None if that was too long ago, or never."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: object, value: T) -> None:
        """Remember a value; the one that was not used for longest makes room."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

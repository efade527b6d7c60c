"""What is remembered of statements: a bounded mapping, safe for threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Keeps the values that were used last, of `size` together: each is of 1, or of what `weigh` says."""

    def __init__(self, size: int, weigh: Callable[[Any, T], int] = lambda key, value: 1) -> None:
        self._size, self._weigh = size, weigh
        self._kept: OrderedDict[object, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()
        self.cleared = 0
        """How often everything was forgotten."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: object) -> T | None:
        """Return what was put under a key; None if that was too long ago, or never."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: object, value: T, since: int | None = None) -> None:
        """Remember a value; those that were not used for longest make room. `since`: it was made when everything had
        been forgotten so often; where that has grown the value is of before, and is not remembered."""
        weight = self._weigh(key, value)
        with self._lock:
            if since is not None and since != self.cleared:
                return
            self._drop(key)
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self._size:
                self._drop(next(iter(self._kept)))

    def drop(self, key: object) -> None:
        """Forget a value, if there is one."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._weight = 0
            self.cleared += 1

    def _drop(self, key: object) -> None:
        _, weight = self._kept.pop(key, (None, 0))
        self._weight -= weight


class Made(Generic[T]):
    """What was lately made of objects, by which objects they are: these are kept with it, so that no other takes their
    numbers. `make` is a function of the objects, which do not change."""

    def __init__(
        self, make: Callable[..., T], size: int = 16, weigh: Callable[[T], int] = lambda made: 1
    ) -> None:
        self._make, self._kept = make, Cache[tuple[object, T]](size, lambda _, known: weigh(known[1]))

    def of(self, *those: object) -> T:
        """Return what is made of some objects, as it was when that was asked before. Raises what `make` raises."""
        numbers = tuple(map(id, those))
        known = self._kept.get(numbers)
        if known is None:
            known = those, self._make(*those)
            self._kept.put(numbers, known)
        return known[1]

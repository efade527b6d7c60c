"""Exact measures to released ones: the noise is added here, and nowhere else.

House rules (laws L3, L7, L8):

1. `Exact` is the only holder of exact values. It has no iterator, no repr of its content, no equality;
   `privatise` reads it, and it goes no further.
2. Noise is drawn for a whole vector at once, from the operating system's randomness, before the sum;
   for declared groups it is drawn before the engine is asked (`draw`), so that its time says nothing.
3. A group that the engine did not return counts 0 in every coordinate, and gets its noise like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mechanisms import Noise
from ..plan.planner import ReleasePlan
from ..plan.vectors import Kind
from .released import Key, ReleasedVector, integers, is_publishable, order_of

__all__ = ["Exact", "draw", "privatise", "published_keys"]

Array = npt.NDArray[Any]


class Exact:
    """Exact integers per group and coordinate of some vectors of one release; opaque by design."""

    __slots__ = ("_columns", "_index")

    def __init__(self) -> None:
        self._index: dict[Key, int] = {}
        self._columns: dict[tuple[int, int], tuple[dict[Key, int], list[int]]] = {}

    def __repr__(self) -> str:
        return "Exact(…)"

    def __iter__(self) -> None:
        raise TypeError("exact results cannot be iterated")

    __eq__ = None  # type: ignore[assignment]  # exact results cannot be compared
    __hash__ = None  # type: ignore[assignment]  # as above

    def add(
        self, coordinates: Sequence[tuple[int, int]], keys: list[Key], columns: Sequence[list[int]]
    ) -> None:
        """Take a query's groups and integer columns in."""
        index = {key: row for row, key in enumerate(keys)}
        if len(index) != len(keys):
            raise AssertionError("a group came twice")
        for coordinate, column in zip(coordinates, columns, strict=True):
            self._columns[coordinate] = (index, column)


def _coordinate(exact: Exact, coordinate: tuple[int, int], groups: Sequence[Key], empty: int) -> Array:
    index, column = exact._columns[coordinate]
    if list(index) == list(groups):
        return integers(column)
    rows = (index.get(key) for key in groups)
    return integers([empty if row is None else column[row] for row in rows])


def draw(plan: ReleasePlan, number: int, groups: int, noise: Noise) -> tuple[Array, ...]:
    """Return the noise of one vector: an array of `groups` draws per coordinate."""
    vector = plan.vectors[number]
    drawn = noise.laplace(plan.scale(number), groups * vector.size)
    return tuple(drawn[i * groups : (i + 1) * groups] for i in range(vector.size))


def privatise(
    exact: Exact, plan: ReleasePlan, number: int, groups: Sequence[Key], noise: tuple[Array, ...]
) -> ReleasedVector:
    """Return a vector's noisy integers for the given groups.

    Requires: `noise` was drawn for this vector and these groups and is used once.
    Ensures: value = exact + noise, in Python integers where 64 bits could overflow.
    """
    vector = plan.vectors[number]
    lattice = vector.lattice
    empty = (lattice.low + lattice.high) // 2 if vector.kind is Kind.DIRECT and lattice is not None else 0
    values = []
    for index in range(vector.size):
        column = _coordinate(exact, (number, index), groups, empty)
        values.append(_plus(column, noise[index]))
    return ReleasedVector(tuple(values), None)


def _plus(column: Array, noise: Array) -> Array:
    if column.dtype == np.int64 and noise.dtype == np.int64:
        limit = 2**62
        small = len(column) == 0 or max(abs(int(column.min())), abs(int(column.max()))) < limit
        if small and (len(noise) == 0 or max(abs(int(noise.min())), abs(int(noise.max()))) < limit):
            return column + noise
    return integers([int(a) + int(b) for a, b in zip(column.tolist(), noise.tolist(), strict=True)])


def published_keys(exact: Exact, plan: ReleasePlan, noise: Noise, minimum_units: int) -> ReleasedVector:
    """Return the groups that pass the threshold, with their noisy unit counts (soundness.md 1.7).

    Keys with fewer than `minimum_units` units never come to the test; one of exactly so many passes with
    probability at most delta / C. Only keys that the data have are tested; they come out by value.
    """
    number, tau = plan.counted, plan.tau
    assert number is not None
    assert tau is not None
    index, column = exact._columns[(number, 0)]
    types = [key.type for key in plan.release.keys]
    tested = [
        (key, column[row])
        for key, row in index.items()
        if column[row] >= minimum_units and is_publishable(key, types)
    ]
    (drawn,) = draw(plan, number, len(tested), noise)
    noisy = _plus(integers([count for _, count in tested]), drawn)
    kept = [(key, value) for (key, _), value in zip(tested, noisy.tolist(), strict=True) if value >= tau]
    kept.sort(key=lambda pair: order_of(pair[0]))
    return ReleasedVector((integers([value for _, value in kept]),), tuple(key for key, _ in kept))

"""A grouping as numbers of a table: its keys read the table's axes, and its groups are sums of the table's cells.

A key is known by a digest, and a group by the places of its keys' values among each key's. What is asked and what was
drawn are shapes alike, whoever stores or asks it; of one table both are sums (`Sums`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..budget import Grouping
from ..mechanisms import Law, sum_of
from ..plan.privacy.axes import Partition
from ..records import dataclass
from .estimate import Sums
from .released import Array, integers, leading

__all__ = [
    "Reading",
    "Shape",
    "Table",
    "Ties",
    "axis_name",
    "cells_in",
    "cells_with_rows",
    "places_of",
    "whole_keys",
]

Ties = Mapping[bytes, tuple[bytes, Partition]]
"""By digest of a key of which others read the same column: their axis, and the key's place on each of its atoms. The
axis of any other key is its own, with its places for atoms."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The groups of a grouping: of the product of its keys' places, the last key's the fastest, those at `rows`, in
    this order; None: all of it.

    `keys`: by digest the places among the key's values; `filters`: by digest those of the rows that are counted at all.
    """

    keys: tuple[tuple[bytes, tuple[int, ...]], ...]
    filters: tuple[tuple[bytes, frozenset[int]], ...] = ()
    rows: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, columns: Mapping[bytes, Sequence[int]], size: int, filters: Mapping[bytes, Iterable[int]]
    ) -> Shape:
        """Return that of so many groups: of each its place among the values of each key."""
        keys, rows = [], np.zeros(size, dtype=np.int64)
        for digest, column in columns.items():
            places, numbers = np.unique(np.array(column, dtype=np.int64), return_inverse=True)
            keys.append((digest, tuple(places.tolist())))
            rows = rows * len(places) + numbers.ravel()
        kept = tuple(sorted((digest, frozenset(places)) for digest, places in filters.items()))
        is_all = _is_each(rows, math.prod(len(places) for _, places in keys))
        return cls(tuple(keys), kept, None if is_all else tuple(rows.tolist()))

    @property
    def size(self) -> int:
        """How many groups there are."""
        return math.prod(len(places) for _, places in self.keys) if self.rows is None else len(self.rows)

    @property
    def read(self) -> frozenset[bytes]:
        """The keys that say which group a row is in, if in any."""
        return frozenset(digest for digest, _ in (*self.keys, *self.filters))

    @property
    def columns(self) -> dict[bytes, Array]:
        """By key the place of each group."""
        sizes = [len(places) for _, places in self.keys]
        rows = np.arange(self.size) if self.rows is None else np.array(self.rows, dtype=np.int64)
        at = np.unravel_index(rows, sizes) if sizes else ()
        return {digest: np.array(places)[own] for (digest, places), own in zip(self.keys, at, strict=True)}

    def without(self, key: bytes) -> Shape:
        """Return that by all keys but one, each group once."""
        left = {digest: own.tolist() for digest, own in self.columns.items() if digest != key}
        groups = list(dict.fromkeys(zip(*left.values(), strict=True))) if left else [()]
        return Shape.of(
            dict(zip(left, zip(*groups, strict=True), strict=True)), len(groups), dict(self.filters)
        )


# --- what is stored ---------------------------------------------------------------------------------------------


def whole_keys(groupings: Iterable[Grouping], complete: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how many places those keys have of which no row has another: as they were drawn, or as the owner says."""
    keys = [key for one in groupings for key in one.keys if key.is_complete]
    return {**{key.digest: key.size for key in sorted(keys, key=lambda key: key.size)}, **complete}


def cells_with_rows(grouping: Grouping, complete: Mapping[bytes, int]) -> Shape:
    """Return what a stored draw has the numbers of, less the places where no row is, as the owner says."""
    kept = [(key.digest, tuple(range(complete.get(key.digest, key.size)))) for key in grouping.keys]
    return Shape(tuple(kept))


def cells_in(values: Array, grouping: Grouping, complete: Mapping[bytes, int]) -> Array:
    """Return these numbers of a stored draw's."""
    sizes = [key.size for key in grouping.keys]
    return leading(values, sizes, [complete.get(key.digest, key.size) for key in grouping.keys])


# --- the table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """What was drawn of a shape as numbers of a table. `numbers`: of each of its groups which of `sums` it is a part
    of; None: they are these. `cells`: so many are added up."""

    sums: Sums
    numbers: Array | None
    cells: int

    def law(self, law: Law) -> Law:
        """Return the law of the noise on a number, of that on a group."""
        return sum_of(law, self.cells)

    def values(self, values: Array) -> Array:
        """Return the numbers, of the groups'."""
        if self.numbers is None:
            return values
        found = np.zeros(self.sums.size, dtype=object)
        np.add.at(found, self.numbers, values.astype(object))
        return integers(found.tolist())


@dataclass(frozen=True)
class Table:
    """How many atoms each axis has, and how the keys of one column tie to each other."""

    axes: Mapping[bytes, int]
    ties: Ties

    def sums(self, shape: Shape) -> Sums | None:
        """Return a shape's groups as sums of the cells; None: it reads another axis, or some group has no cell."""
        found = self._placed(shape) if self.has(shape.read) else None
        if found is None:
            return None
        partitions, numbers = found
        is_all = _is_each(numbers, math.prod(one.size for one in partitions))
        return Sums(partitions, None if is_all else tuple(numbers.tolist()))

    def reading(self, shape: Shape) -> Reading | None:
        """Return what is drawn of a shape as numbers of the table: over a key that is no axis its groups are added up.
        None: some group has no cell, or of some fewer are added up than of others."""
        found = self._placed(shape) if self.has(dict(shape.filters)) else None
        if found is None:
            return None
        partitions, numbers = found
        rows, at, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        if np.any(counts != counts[0]):
            return None
        is_all = _is_each(rows, math.prod(one.size for one in partitions))
        sums = Sums(partitions, None if is_all else tuple(rows.tolist()))
        return Reading(sums, None if _is_each(at, len(rows)) else at.ravel(), int(counts[0]))

    def has(self, keys: Iterable[bytes]) -> bool:
        """Say whether all of some keys are on its axes."""
        return all(axis_name(key, self.ties) in self.axes for key in keys)

    def _placed(self, shape: Shape) -> tuple[tuple[Partition, ...], Array] | None:
        """Return of each axis what a shape's groups are on it, and of each group which of their product it is a part
        of; None: some group has no cell."""
        if not shape.size:
            return None
        columns, keys, filters = shape.columns, dict(shape.keys), dict(shape.filters)
        partitions, numbers = [], np.zeros(shape.size, dtype=np.int64)
        for axis, atoms in self.axes.items():
            own, kept = (
                sorted(key for key in each if axis_name(key, self.ties) == axis) for each in (keys, filters)
            )
            known, asked = np.zeros(atoms, dtype=np.int64), np.zeros(shape.size, dtype=np.int64)
            listed = np.zeros(1, dtype=np.int64)
            for key in own:
                places = self._places(key, atoms)
                width = max(int(places.max(initial=0)), max(keys[key])) + 1
                known, asked = known * width + places, asked * width + columns[key]
                listed = (listed[:, None] * width + np.array(keys[key])).ravel()
            is_counted = np.ones(atoms, dtype=bool)
            for key in kept:
                is_counted &= np.isin(self._places(key, atoms), list(filters[key]))
            groups = np.unique(listed if shape.rows is None else asked)
            found, group = np.searchsorted(groups, known), np.searchsorted(groups, asked)
            is_counted &= np.isin(known, groups)
            if len(np.unique(found[is_counted])) < len(groups):
                return None
            partitions.append(Partition(tuple(np.where(is_counted, found, -1).tolist())))
            numbers = numbers * len(groups) + group
        return tuple(partitions), numbers

    def _places(self, key: bytes, atoms: int) -> Array:
        return np.array(self.ties[key][1].groups) if key in self.ties else np.arange(atoms)


def _is_each(numbers: Array, count: int) -> bool:
    """Say whether these are all numbers up to a count, in their order."""
    return len(numbers) == count and np.array_equal(numbers, np.arange(count))


def axis_name(key: bytes, ties: Ties) -> bytes:
    """Return the axis that a key is on."""
    return ties[key][0] if key in ties else key


def places_of(shapes: Iterable[Shape], whole: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return how many places each key has that some shapes read: where it is not known which rows there are beside
    these, there may be others."""
    found: dict[bytes, int] = {}
    for shape in shapes:
        for key, places in (*shape.keys, *shape.filters):
            least = whole.get(key, 0), max(places, default=0) + 1 + (key not in whole)
            found[key] = max(found.get(key, 0), *least)
    return found

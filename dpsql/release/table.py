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
class _OnAxis:
    """What a shape's groups are on an axis. `keys`: those of the shape, each with how many places it may have;
    `groups`: the partition's, as numbers that these places are the digits of."""

    partition: Partition
    keys: tuple[tuple[bytes, int], ...]
    groups: Array

    def number(self, columns: Mapping[bytes, Array], size: int) -> Array:
        """Return for so many tuples of places the number of each."""
        found = np.zeros(size, dtype=np.int64)
        for key, width in self.keys:
            found = found * width + columns[key]
        return found


@dataclass(frozen=True)
class Reading:
    """What was drawn of a shape as numbers of a table, `sums`: so many of its groups, `cells`, are added up to each."""

    sums: Sums
    cells: int
    shape: Shape
    axes: tuple[_OnAxis, ...]

    def law(self, law: Law) -> Law:
        """Return the law of the noise on a number, of that on a group."""
        return sum_of(law, self.cells)

    def values(self, values: Array) -> Array:
        """Return the numbers, of the groups'."""
        numbers = _numbers(self.shape, self.axes)
        if self.sums.rows is not None:
            numbers = np.searchsorted(np.array(self.sums.rows), numbers)
        if _is_each(numbers, self.sums.size):
            return values
        found = np.zeros(self.sums.size, dtype=object)
        np.add.at(found, numbers, values.astype(object))
        return integers(found.tolist())


@dataclass(frozen=True)
class Table:
    """How many atoms each axis has, and how the keys of one column tie to each other."""

    axes: Mapping[bytes, int]
    ties: Ties

    def sums(self, shape: Shape) -> Sums | None:
        """Return a shape's groups as sums of the cells; None: it reads another axis, or some group has no cell."""
        axes = self._placed(shape) if self.has(shape.read) else None
        if axes is None:
            return None
        partitions, numbers = tuple(one.partition for one in axes), _numbers(shape, axes)
        is_all = _is_each(numbers, math.prod(one.size for one in partitions))
        return Sums(partitions, None if is_all else tuple(numbers.tolist()))

    def reading(self, shape: Shape) -> Reading | None:
        """Return what is drawn of a shape as numbers of the table: over a key that is no axis its groups are added up.
        None: some group has no cell, or of some fewer are added up than of others."""
        axes = self._placed(shape) if self.has(dict(shape.filters)) else None
        if axes is None:
            return None
        sums, cells = Sums(tuple(one.partition for one in axes)), 1
        if shape.rows is None:
            cells = shape.size // sums.size
        else:
            rows, counts = np.unique(_numbers(shape, axes), return_counts=True)
            cells = int(counts[0])
            if np.any(counts != cells):
                return None
            if not _is_each(rows, sums.size):
                sums = Sums(sums.partitions, tuple(rows.tolist()))
        return Reading(sums, cells, shape, axes)

    def has(self, keys: Iterable[bytes]) -> bool:
        """Say whether all of some keys are on its axes."""
        return all(axis_name(key, self.ties) in self.axes for key in keys)

    def _placed(self, shape: Shape) -> tuple[_OnAxis, ...] | None:
        """Return what a shape's groups are on each axis; None: some group has no cell."""
        if not shape.size:
            return None
        columns = {} if shape.rows is None else shape.columns
        keys, filters = dict(shape.keys), dict(shape.filters)
        found = []
        for axis, atoms in self.axes.items():
            own, kept = (
                sorted(key for key in each if axis_name(key, self.ties) == axis) for each in (keys, filters)
            )
            places = {key: self._places(key, atoms) for key in (*own, *kept)}
            widths = tuple((key, max(int(places[key].max()), max(keys[key])) + 1) for key in own)
            one = _OnAxis(Partition.whole(atoms), widths, np.zeros(1, dtype=np.int64))
            if own or kept:
                known, is_counted = one.number(places, atoms), np.ones(atoms, dtype=bool)
                if shape.rows is None:
                    product = np.meshgrid(*(np.array(keys[key]) for key in own), indexing="ij")
                    columns = {key: each.ravel() for key, each in zip(own, product, strict=True)}
                size = len(columns[own[0]]) if own else 1
                groups = np.unique(one.number(columns, size))
                for key in kept:
                    is_counted &= np.isin(places[key], list(filters[key]))
                group = np.searchsorted(groups, known)
                is_counted &= np.isin(known, groups)
                if len(np.unique(group[is_counted])) < len(groups):
                    return None
                partition = Partition(tuple(np.where(is_counted, group, -1).tolist()))
                one = _OnAxis(partition, widths, groups)
            found.append(one)
        return tuple(found)

    def _places(self, key: bytes, atoms: int) -> Array:
        return np.array(self.ties[key][1].groups) if key in self.ties else np.arange(atoms)


def _numbers(shape: Shape, axes: Sequence[_OnAxis]) -> Array:
    """Return for each group of a shape which of the product of the axes' groups it is, or is a part of."""
    columns, found = shape.columns, np.zeros(shape.size, dtype=np.int64)
    for one in axes:
        found = found * len(one.groups) + np.searchsorted(one.groups, one.number(columns, shape.size))
    return found


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

"""One whole-number table of which every number is a sum: what agrees adds up to the last digit (soundness.md 3.15).

The table has a cell for each tuple of places of all keys. Its running totals over all keys are rounded, and differences
of neighbouring ones are its cells; so the running totals of the whole numbers are those that were rounded. A group that
is one run of places on k keys, and all of the others, is a signed sum of at most 2^k of them: it is off by at most half
of that, whatever the other numbers are. All of a key is one, so the sum of everything is off by a half.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .least_squares import Shape, Whole

__all__ = ["MOST_ATOMS", "Cells", "Made", "cells_of", "made_of_cells"]

MOST_ATOMS: Final = 2_000
"""Most cells of a table."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Cells:
    """The finest cells of some keys: `sizes` are how many places of each have rows."""

    keys: tuple[bytes, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(self.sizes)

    def _places(self, shape: Shape) -> Iterator[list[Sequence[int]]]:
        """Yield for each group of a shape the places of its rows, by key."""
        groups, filters = dict(shape.groups), dict(shape.filters)
        for index in range(shape.size):
            yield [
                (groups[key][index],) if key in groups else sorted(filters.get(key, range(size)))
                for key, size in zip(self.keys, self.sizes, strict=True)
            ]

    def of(self, shape: Shape) -> list[list[int]]:
        """Return for each group of a shape the cells that it is the sum of."""
        steps = [math.prod(self.sizes[place + 1 :]) for place in range(len(self.sizes))]
        return [
            [sum(map(int.__mul__, cell, steps)) for cell in itertools.product(*places)]
            for places in self._places(shape)
        ]

    def corners(self, shape: Shape) -> list[int]:
        """Return for each group of a shape how many running totals it is a signed sum of."""
        return [
            math.prod(_ends(one, size) for one, size in zip(places, self.sizes, strict=True))
            for places in self._places(shape)
        ]

    def rounded(self, whole: Sequence[int], rest: Array, unit: int) -> list[int]:
        """Return the cells `whole + rest` in whole multiples of a unit, shape (cells,)."""
        base = np.array(list(whole), dtype=object).reshape(self.sizes)
        for axis in range(len(self.sizes)):
            base = np.cumsum(base, axis=axis)
        over = np.asarray(base % unit, dtype=np.float64) + self._running(rest.reshape(self.sizes))
        steps = np.array([int(one) for one in np.rint(over / unit).ravel().tolist()], dtype=object)
        table = (base - base % unit) + unit * steps.reshape(self.sizes)
        for axis in range(len(self.sizes)):
            table = np.diff(table, axis=axis, prepend=np.zeros_like(table.take([0], axis=axis)))
        return [int(one) for one in table.ravel().tolist()]

    def rounded_noise(self, noise: Array, unit: int) -> Array:
        """Return noises of all cells, shape (cells, draws), as rounding leaves them."""
        table = np.rint(self._running(noise.reshape((*self.sizes, -1))) / unit) * unit
        for axis in range(len(self.sizes)):
            table = np.diff(table, axis=axis, prepend=0)
        return np.asarray(table.reshape(noise.shape))

    def _running(self, table: Array) -> Array:
        for axis in range(len(self.sizes)):
            table = np.cumsum(table, axis=axis)
        return table


def _ends(places: Sequence[int], size: int) -> int:
    """Return how many running totals along one key some of its places are a signed sum of."""
    starts = [place for place in places if place - 1 not in places]
    return sum(1 if start == 0 else 2 for start in starts) if len(places) < size else 1


def cells_of(shapes: Sequence[Shape], whole: Whole) -> Cells | None:
    """Return the cells that some shapes are made of; None: rows may be in none of them, they are not all known, or too
    many."""
    keys = sorted({key for shape in shapes for key, _ in (*shape.groups, *shape.filters)})
    sizes = dict(whole)
    if not all(
        key in sizes and max(places, default=0) < sizes[key]
        for shape in shapes
        for key, places in (*shape.groups, *shape.filters)
    ):
        return None
    found = Cells(tuple(keys), tuple(sizes[key] for key in keys))
    return found if found.count <= MOST_ATOMS else None


@dataclass(frozen=True)
class Made:
    """The table that numbers which agree are sums of: the one with the least squares. `of`: the cells of each number;
    `spread`: of each cell what it takes of each number, shape (cells, numbers)."""

    cells: Cells
    of: list[list[int]]
    spread: Array

    def rounded(self, numbers: Sequence[int], parts: int, unit: int) -> list[int]:
        """Return the whole-number cells of numbers that agree, which are in so many parts of a step."""
        whole = [
            int(one) for one in np.rint(self.spread @ np.array([one / parts for one in numbers])).tolist()
        ]
        rest = [
            number - parts * sum(whole[cell] for cell in cells)
            for number, cells in zip(numbers, self.of, strict=True)
        ]
        return self.cells.rounded(whole, self.spread @ np.array([one / parts for one in rest]), unit)


@lru_cache(maxsize=16)
def made_of_cells(shapes: tuple[Shape, ...], whole: Whole) -> Made | None:
    """Return the table of numbers of some shapes; None: there is none."""
    cells = cells_of(shapes, whole)
    if cells is None:
        return None
    of = [group for shape in shapes for group in cells.of(shape)]
    design = np.zeros((len(of), cells.count))
    for row, group in enumerate(of):
        design[row, group] = 1
    return Made(cells, of, design.T @ np.linalg.pinv(design @ design.T, rcond=1e-10, hermitian=True))

"""One whole-number table of which every number is a sum: what agrees adds up to the last digit (soundness.md 3.15).

The running totals of a table over all its axes are rounded, and differences of neighbouring ones are its cells; so the
running totals of the whole numbers are those that were rounded. A group that is one run of places on k axes, and all of
the others, is a signed sum of at most 2^k of them: it is off by at most half of that, whatever the other numbers are.
All of an axis is one, so the sum of everything is off by a half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["rounded", "rounded_noise"]

Array = npt.NDArray[Any]


def rounded(sizes: Sequence[int], cells: Sequence[int], unit: int, parts: int) -> list[int]:
    """Return cells in whole multiples of a unit, shape (cells,): in whole numbers alone, so on every machine the same.

    `sizes`: places of each axis; `cells`: in parts of one, so many each. A half goes up.
    """
    table = np.array(list(cells), dtype=object).reshape(tuple(sizes) or (1,))
    for axis in range(table.ndim):
        table = np.cumsum(table, axis=axis)
    table = (2 * table + unit * parts) // (2 * unit * parts) * unit
    for axis in range(table.ndim):
        table = np.diff(table, axis=axis, prepend=np.zeros_like(table.take([0], axis=axis)))
    return [int(one) for one in table.ravel().tolist()]


def rounded_noise(noise: Array, unit: int) -> Array:
    """Return noises of all cells, shape (draws, *sizes), as rounding leaves them."""
    table = np.rint(_running(noise) / unit) * unit
    for axis in range(1, table.ndim):
        table = np.diff(table, axis=axis, prepend=0)
    return np.asarray(table)


def _running(table: Array) -> Array:
    for axis in range(1, table.ndim):
        table = np.cumsum(table, axis=axis)
    return table

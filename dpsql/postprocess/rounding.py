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


def rounded(sizes: Sequence[int], whole: Sequence[int], rest: Array, unit: int) -> list[int]:
    """Return the cells `whole + rest` in whole multiples of a unit, shape (cells,). `sizes`: places of each axis."""
    sizes = tuple(sizes) or (1,)
    base = np.array(list(whole), dtype=object).reshape(sizes)
    for axis in range(len(sizes)):
        base = np.cumsum(base, axis=axis)
    over = np.asarray(base % unit, dtype=np.float64) + _running(rest.reshape((1, *sizes)))[0]
    steps = np.array([int(one) for one in np.rint(over / unit).ravel().tolist()], dtype=object)
    table = (base - base % unit) + unit * steps.reshape(sizes)
    for axis in range(len(sizes)):
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

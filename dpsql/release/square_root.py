"""Running sums by square root as an operator of the estimate: the map, its transpose, and what undoes both, of doubles.

Exact numbers do not come here: these are weights and noises, and the sums that were drawn. By Fourier transforms, which
no BLAS is part of (soundness.md 1.44, 3.15).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from ..mechanisms.laws.square_root import MOST_PLACES, coefficients, sums_of
from .released import Array

MOST: Final = sum(coefficients()) ** 2
"""No eigenvalue of the map's square is larger."""
MIDDLE: Final = coefficients()[0] ** 2 * 10
"""About the root of the product of its largest and smallest, of a year of days."""


def summed(numbers: Array) -> Array:
    """Return running sums by square root along the last axis; whole numbers stay whole."""
    return sums_of(numbers) if numbers.dtype.kind in "iO" else _through(numbers, _kernel())


def turned(numbers: Array) -> Array:
    """Return the transpose of `summed`, of doubles."""
    return _through(numbers[..., ::-1], _kernel())[..., ::-1]


def told(numbers: Array) -> Array:
    """Return what `turned` of `summed` was made of, of doubles: both undone."""
    return _through(_through(numbers[..., ::-1], _inverse())[..., ::-1], _inverse())


@cache
def _kernel() -> Array:
    return np.array(coefficients(), dtype=np.float64)


@cache
def _inverse() -> Array:
    """Return the coefficients of one over the series of `_kernel`."""
    kernel, found = _kernel(), np.zeros(MOST_PLACES)
    found[0] = 1 / kernel[0]
    for k in range(1, MOST_PLACES):
        found[k] = -(kernel[1 : k + 1] * found[k - 1 :: -1]).sum() / kernel[0]
    return found


def _through(numbers: Array, kernel: Array) -> Array:
    count = numbers.shape[-1]
    size = 1 << (2 * count - 1).bit_length()
    size = 3 * size // 4 if 3 * size // 4 >= 2 * count - 1 else size
    product = np.fft.rfft(numbers, size) * np.fft.rfft(kernel[:count], size)
    return np.asarray(np.fft.irfft(product, size)[..., :count])

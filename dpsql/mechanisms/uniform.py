"""Where random bits come from, and exactly uniform integers below n that are made of them, one or an array.

House rules:

1. They come from the operating system, and nothing else outside a test. Nothing in `mechanisms` takes a seed, reads an
   environment variable or has a setting (law L8). A deterministic source exists only in `dpsql.testing`, and reaches
   the engine only in process.
2. No buffer is kept between calls: nothing to leak, nothing to repeat after a fork.
3. Every rejected word is drawn anew, and only that word: no result depends on which others were rejected.
4. No modulo without rejection, no floats.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt


class RandomSource(Protocol):
    """Gives independent uniform bytes.

    Ensures: exactly `count` bytes, each uniform and independent of all bytes given before.
    """

    def random_bytes(self, count: int) -> bytes: ...


class _OperatingSystem:
    """The kernel's generator through `os.urandom`: safe after a fork, cannot be seeded."""

    __slots__ = ()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)


OS_RANDOM: Final[RandomSource] = _OperatingSystem()
"""The source that every release draws from."""

WORD_LIMIT: Final = 2**63
"""Arrays of integers can be drawn below any n up to this one."""

COIN: Final = 2**60
"""Coins are thrown with probabilities that are multiples of 1 / COIN."""

_Words = npt.NDArray[np.unsignedinteger[Any]]
_UINT16: Final = np.dtype("<u2")
_UINT32: Final = np.dtype("<u4")
_UINT64: Final = np.dtype("<u8")
_WIDEST_FOR_16 = 2**10  # above it a 16-bit word is rejected too often (here at most 1 in 64)
_WIDEST_FOR_32 = 2**31


def draw_one_below(n: int, source: RandomSource) -> int:
    """Return one uniform integer in [0, n), for any n >= 1: the bits that n - 1 needs, until they fit."""
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        value = int.from_bytes(source.random_bytes(size), "little") >> (8 * size - bits)
        if value < n:
            return value


def draw_below(n: int, size: int, source: RandomSource) -> _Words:
    """Return `size` independent uniform integers in [0, n), unsigned.

    Requires: 1 <= n <= `WORD_LIMIT`.
    Ensures: exactly uniform. For words of L bits with n small beside 2^L: the word w gives
    floor(w * n / 2^L), kept iff (w * n) mod 2^L >= 2^L mod n, which leaves every value exactly
    floor(2^L / n) words (Lemire 2019, theorem 1). Otherwise w mod n of a 64-bit w below the largest
    multiple of n.
    """
    if not 1 <= n <= WORD_LIMIT:
        raise ValueError("n is out of range for arrays")
    if n <= _WIDEST_FOR_16:
        values, rejected = _multiply_shift(random_words(_UINT16, size, source), n, 16, np.dtype(np.uint32))
    elif n <= _WIDEST_FOR_32:
        values, rejected = _multiply_shift(random_words(_UINT32, size, source), n, 32, np.dtype(np.uint64))
    else:
        words = random_words(_UINT64, size, source)
        values, rejected = words % np.uint64(n), words > np.uint64(2**64 - 1 - 2**64 % n)
    again = np.flatnonzero(rejected)
    if again.size:
        values[again] = draw_below(n, again.size, source)
    return values


def draw_below_each(n: npt.NDArray[np.uint64], source: RandomSource) -> npt.NDArray[np.uint64]:
    """Return independent uniform integers, the i-th in [0, n[i]). Requires: 1 <= n[i] <= `WORD_LIMIT`.

    Ensures: exactly uniform: w mod n of a 64-bit w below the largest multiple of n, as w - w mod n <= 2^64 - n says.
    """
    words = random_words(_UINT64, n.size, source)
    values = words % n
    again = np.flatnonzero(words - values > np.uint64(0) - n)
    if again.size:
        values[again] = draw_below_each(n[again], source)
    return values


def draw_wide_below_each(n: Sequence[int], source: RandomSource) -> list[int]:
    """Return independent uniform integers, the i-th in [0, n[i]), for any n[i] >= 1: each as `draw_one_below` draws it,
    from bytes that are asked for together. ValueError on a short source.
    """
    found = [0] * len(n)
    missing: Sequence[int] = range(len(n))
    while missing:
        bits = [(n[place] - 1).bit_length() for place in missing]
        edges = list(accumulate(((many + 7) // 8 for many in bits), initial=0))
        drawn = source.random_bytes(edges[-1])
        if len(drawn) != edges[-1]:
            raise ValueError("a source gives as many bytes as are asked for")
        again = []
        for place, many, start, end in zip(missing, bits, edges, edges[1:], strict=False):
            value = int.from_bytes(drawn[start:end], "little") >> (8 * (end - start) - many)
            if value < n[place]:
                found[place] = value
            else:
                again.append(place)
        missing = again
    return found


def draw_coins(chance: Fraction, count: int, source: RandomSource) -> npt.NDArray[np.bool_]:
    """Return independent coins, each true with exactly this probability: a multiple of 1 / COIN in [0, 1]."""
    heads = chance * COIN
    if heads.denominator != 1 or not 0 <= heads <= COIN:
        raise ValueError("a coin's probability is a multiple of 2^-60 from 0 to 1")
    return np.asarray(draw_below(COIN, count, source) < np.uint64(heads.numerator), dtype=np.bool_)


def _multiply_shift(
    words: _Words, n: int, bits: int, wide: np.dtype[Any]
) -> tuple[_Words, npt.NDArray[np.bool_]]:
    """Return (value, is rejected) for each word of `bits` bits; `wide` has twice as many bits."""
    products = np.multiply(words, n, dtype=wide)
    rejected = products.astype(words.dtype) < 2**bits % n
    products >>= bits
    return products, rejected


def random_words(dtype: np.dtype[Any], size: int, source: RandomSource) -> _Words:
    """Return `size` uniform words of the unsigned type `dtype` (read-only). ValueError on a short source."""
    return np.frombuffer(source.random_bytes(size * dtype.itemsize), dtype=dtype, count=size)

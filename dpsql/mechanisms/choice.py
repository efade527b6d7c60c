"""Choices among very many candidates with exact probabilities n·exp(-gamma·k): the exponential mechanism's draw.

Candidates of one score stand together as an interval: `counts[i]` candidates, each with weight w^`exponents[i]`,
w = exp(-gamma). One uniform real number in [0, 1), of which bits are drawn as they are needed, picks the candidate
by the inverse of the cumulative sums; so neither time nor memory depend on how many candidates there are.

House rules (soundness.md 2.4):

1. Integers and rational bounds alone. A candidate is returned only when it is the one for every real number that
   the bits so far and the bounds of exp allow: the law is exact, whatever the precision.
2. Nothing here is kept, printed or logged: exponents are exact scores of people's rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Final

from .laplace_accuracy import bounds_of_exp
from .uniform import RandomSource

__all__ = ["FIRST_BYTES", "POWER_ERROR", "choose", "coin", "powers"]

FIRST_BYTES: Final = 16
"""Random bytes that decide a choice but with probability below 2^-60: they can be drawn before anything else."""
_MORE_BYTES: Final = 8
_GUARD_BITS: Final = 64
_DIGIT_BITS: Final = 13
_DIGIT: Final = 2**_DIGIT_BITS - 1
POWER_ERROR: Final = 2**20
"""How far a power may be above its lower bound, in units of the last place: see `powers`."""


def choose(
    counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, first: bytes, source: RandomSource
) -> tuple[int, int]:
    """Return (i, j): candidate j of interval i, with probability exp(-gamma·exponents[i]) over the sum of all.

    `first`: uniform bytes, used for this choice alone. `source`: gives more where they leave it open.
    Requires: counts >= 0 and not all 0; exponents >= 0; gamma > 0.
    """
    least = min(exponent for exponent, count in zip(exponents, counts, strict=True) if count)
    above = [max(0, exponent - least) for exponent in exponents]
    bits, drawn = 8 * len(first), int.from_bytes(first, "big")
    while True:
        found = _decided(counts, above, gamma, drawn, bits)
        if found is not None:
            return found
        more = source.random_bytes(_MORE_BYTES)
        bits, drawn = bits + 8 * len(more), drawn << (8 * len(more)) | int.from_bytes(more, "big")


def _decided(
    counts: Sequence[int], exponents: Sequence[int], gamma: Fraction, drawn: int, bits: int
) -> tuple[int, int] | None:
    """Return the candidate that all real numbers in [drawn, drawn + 1) / 2^bits pick, None if they differ.

    With S_i the true cumulative sums times 2^precision and c_i those of the lower bounds, c_i <= S_i <= c_i + slack.
    """
    candidates = sum(counts)
    precision = -(-(bits + candidates.bit_length() + _GUARD_BITS) // 64) * 64
    weights = powers(gamma, exponents, precision)
    sums = list(accumulate(map(mul, counts, weights)))
    total, slack = sums[-1], candidates * POWER_ERROR
    low, high = drawn * total, (drawn + 1) * (total + slack)  # of the real number times S, times 2^bits
    index = bisect_right(sums, low >> bits)
    if index == len(sums) or not weights[index]:
        return None
    before = sums[index - 1] if index else 0
    surely_before = before + slack if index else 0
    least = (low - (surely_before << bits)) // (weights[index] + POWER_ERROR << bits)
    most = (high - (before << bits) - 1) // (weights[index] << bits)
    return (index, least) if 0 <= least == most < counts[index] else None


def powers(gamma: Fraction, exponents: Sequence[int], bits: int) -> list[int]:
    """Return for each k an integer p with p <= exp(-gamma·k)·2^bits <= p + 2^20.

    k is written in digits of 13 bits, with a table of powers for each digit. In a table one lower bound is multiplied
    on and rounded down: with f the factor's bound, less than 3 below it, the error grows by less than 4 a step, hence
    stays below 2^15; a product of two powers adds their errors and 1. Eight digits make less than 2^20.
    """
    found = [1 << bits] * len(exponents)
    rest, place = list(exponents), 0
    while (most := max(rest)) > 0:
        if place == 8 * _DIGIT_BITS:
            raise ValueError("the exponents are too large")
        table = _table(gamma * 2**place, min(_DIGIT_BITS, most.bit_length()), bits)
        powers_here = [table[k & _DIGIT] for k in rest]
        found = [p * q >> bits for p, q in zip(found, powers_here, strict=True)] if place else powers_here
        rest, place = [k >> _DIGIT_BITS for k in rest], place + _DIGIT_BITS
    return found


@lru_cache(maxsize=64)
def _table(gamma: Fraction, size: int, bits: int) -> list[int]:
    """Return lower bounds of exp(-gamma·j)·2^bits for j = 0 .. 2^size - 1."""
    digits = math.ceil(bits * 0.30103) + 20  # so that the bound of exp itself is off by less than 1
    factor = math.floor(bounds_of_exp(gamma, digits)[0] * 2**bits)
    table = [1 << bits]
    for _ in range(2**size - 1):
        table.append(table[-1] * factor >> bits)
    return table


def coin(bounds: Callable[[int], tuple[Fraction, Fraction]], source: RandomSource) -> bool:
    """Return True with a probability p of which `bounds(b)` gives rational bounds, at most 2^-b apart.

    A uniform real number is compared with p; bits are drawn until it is certainly on one side.
    """
    bits, drawn = 0, 0
    while True:
        more = source.random_bytes(_MORE_BYTES)
        bits, drawn = bits + 8 * len(more), drawn << (8 * len(more)) | int.from_bytes(more, "big")
        low, high = bounds(bits)
        if Fraction(drawn + 1, 2**bits) <= low:
            return True
        if Fraction(drawn, 2**bits) >= high:
            return False

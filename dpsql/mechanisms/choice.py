"""Choices among very many candidates with exact probabilities n·exp(-gamma·k): the exponential mechanism's draw.

Candidates of one score stand together as an interval: `counts[i]` candidates, each with weight w^`exponents[i]`,
w = exp(-gamma). One uniform real number in [0, 1), of which bits are drawn as they are needed, picks the candidate
by the inverse of the cumulative sums; so neither time nor memory depend on how many candidates there are.

House rules (soundness.md 2.4):

1. Integers and rational bounds alone. A candidate is returned only when it is the one for every real number that
   the bits so far and the bounds of exp allow: the law is exact, whatever the precision.
2. Nothing here is kept, printed or logged: exponents are exact scores of people's rows.

The candidate with the largest score, nearly: permute-and-flip with exact probabilities (McKenna, Sheldon 2020).

Each candidate's coin shows heads with probability exp(-gamma·(best - score)), so that of the best one always; one of
the heads is returned, each as likely as the others. That is the law of the original form, which tosses the coins in a
random order until the first head: order and coins are independent, and the first head in a random order is a uniform
one. Nothing does better for the same epsilon: Pr[i] = E[heads_i / Σ heads].

House rules (soundness.md 2.4):

1. Integers and rational bounds alone: a coin is decided only when it is the same for every probability that the
   bounds of exp allow, and for every real number that begins with the bits drawn so far.
2. The first bytes are asked for in one call, as many as the number of candidates says; only what those leave open,
   with probability below 2^-60 for each candidate, asks for more. They may therefore be drawn before the scores
   are known.
3. Nothing here is kept, printed or logged: scores are exact numbers of people's rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import ClassVar, Final

from ..records import dataclass
from .discrete_laplace import bounds_of_exp
from .rank_choice import Window
from .uniform import RandomSource

__all__ = [
    "FIRST_BYTES",
    "POWER_ERROR",
    "FlipChoice",
    "choose",
    "coin",
    "first_bytes_of",
    "permute_and_flip",
    "powers",
]

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


# --- the candidate with the largest score, nearly -----------------------------------------------------------


_COIN_BYTES: Final = 8
_PICK_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class FlipChoice:
    """One choice among the candidates 0 .. `candidates` - 1 by their weights; all of it is public.

    `gamma`: epsilon over what one unit may weigh in all.
    """

    hash_bits: ClassVar[int] = 0
    shift: ClassVar[int] = 0
    candidates: int
    gamma: Fraction = field(repr=False)

    def scores(self, window: Window) -> list[int]:
        """Return the weights of all candidates; those without a row have none."""
        found = [0] * self.candidates
        for candidate, weight in zip(window.candidates, window.weights, strict=True):
            found[candidate] = weight
        return found


def first_bytes_of(candidates: int) -> int:
    """Return how many random bytes a choice among so many candidates begins with."""
    return candidates * _COIN_BYTES + _PICK_BYTES


def permute_and_flip(scores: Sequence[int], gamma: Fraction, source: RandomSource) -> int:
    """Return the place of a candidate in `scores`, by permute-and-flip at gamma.

    `gamma`: epsilon over the scores' sensitivity, if with one unit more no score falls and none rises by more than
    the sensitivity (or the other way round); epsilon over twice that if they may move either way.
    Requires: scores not empty, integers of any size within 2^100 of each other; gamma > 0.
    """
    best = max(scores)
    behind = [best - score for score in scores]
    first = source.random_bytes(first_bytes_of(len(scores)))
    distances = sorted(set(behind))
    bits = 8 * _COIN_BYTES
    precision = bits + _GUARD_BITS
    below = dict(zip(distances, powers(gamma, distances, precision), strict=True))
    heads = []
    for candidate, distance in enumerate(behind):
        drawn = int.from_bytes(first[candidate * _COIN_BYTES : (candidate + 1) * _COIN_BYTES], "big")
        shown = _compared(drawn, bits, below[distance], precision, distance)
        if _tossed(drawn, gamma, distance, source) if shown is None else shown:
            heads.append(candidate)
    return heads[_picked(len(heads), first[-_PICK_BYTES:], source)]


def _compared(drawn: int, bits: int, below: int, precision: int, distance: int) -> bool | None:
    """Say whether all real numbers in [drawn, drawn + 1) / 2^bits are below exp(-gamma·distance), or none; else None.

    `below`: the lower bound of `powers`, of which no part is missing where nothing is behind.
    """
    if distance == 0 or (drawn + 1) << (precision - bits) <= below:
        return True
    return False if drawn << (precision - bits) >= below + POWER_ERROR else None


def _tossed(drawn: int, gamma: Fraction, distance: int, source: RandomSource) -> bool:
    """Return a coin that its first bits left open: more of them, and sharper bounds, until it is decided."""
    bits = 8 * _COIN_BYTES
    while True:
        drawn = drawn << (8 * _MORE_BYTES) | int.from_bytes(source.random_bytes(_MORE_BYTES), "big")
        bits += 8 * _MORE_BYTES
        precision = bits + _GUARD_BITS
        (below,) = powers(gamma, [distance], precision)
        shown = _compared(drawn, bits, below, precision, distance)
        if shown is not None:
            return shown


def _picked(heads: int, first: bytes, source: RandomSource) -> int:
    """Return a uniform integer below `heads`: floor(U·heads), once the bits drawn of U decide it."""
    bits, drawn = 8 * len(first), int.from_bytes(first, "big")
    while drawn * heads >> bits != ((drawn + 1) * heads - 1) >> bits:
        drawn = drawn << (8 * _MORE_BYTES) | int.from_bytes(source.random_bytes(_MORE_BYTES), "big")
        bits += 8 * _MORE_BYTES
    return drawn * heads >> bits

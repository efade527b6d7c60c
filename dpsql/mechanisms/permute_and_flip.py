"""The candidate with the largest score, nearly: permute-and-flip with exact probabilities (McKenna, Sheldon 2020).

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

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final

from .choice import POWER_ERROR, powers
from .rank_choice import Window
from .uniform import RandomSource

__all__ = ["FlipChoice", "first_bytes_of", "permute_and_flip"]

_COIN_BYTES: Final = 8
_PICK_BYTES: Final = 16
_MORE_BYTES: Final = 8
_GUARD_BITS: Final = 64


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

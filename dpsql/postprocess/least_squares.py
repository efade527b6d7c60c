"""Groupings of the same rows whose numbers are sums of each other, made to agree by least squares (soundness.md 3.15).

A grouping's number is exact plus noise; where groups of two groupings have the same rows, the difference of what they
say is noise alone. Each number is corrected by these differences, with the weights of the least variance.

House rules:

1. Weights are a function of shapes and laws alone. A correction is of differences in which what is exact has gone, in
   whole numbers: so no rounding of weights moves what is expected of a number.
2. Bounded: at most `MOST_CELLS` numbers together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_CELLS", "PARTS", "Shape", "Weights", "Whole", "made_of", "rounded", "weights_of"]

MOST_CELLS: Final = 500
"""Most numbers that are made to agree with each other."""
_MOST_TIES: Final = 1_000
"""Most pairs of groups, or of sums of groups, that have the same rows."""
PARTS: Final = 2**20
"""Numbers are in parts of a coordinate unit, one of so many."""
_NOTHING: Final = 1e-9

Array = npt.NDArray[Any]
Whole = tuple[tuple[bytes, int], ...]
"""By key those of which no row has another value, with the number of their values."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The groups of a grouping. `groups`: by key, each group's place among the key's values; `filters`: by key, the
    places of the rows that are counted at all. `size`: how many groups."""

    groups: tuple[tuple[bytes, tuple[int, ...]], ...]
    filters: tuple[tuple[bytes, frozenset[int]], ...]
    size: int


def _summed(
    one: Shape, other: Shape, shared: Sequence[bytes], whole: Mapping[bytes, int]
) -> dict[tuple[int, ...], list[int]] | None:
    """Return by places of the shared keys the groups that make up all rows that the other shape has there.

    None: the other one has other rows.
    """
    groups, kept = dict(one.groups), dict[bytes, frozenset[int]]()
    others = dict(other.filters)
    for key in groups.keys() - set(shared):
        places = others.get(key)
        if places is None:
            if key not in whole:
                return None
            places = frozenset(range(whole[key]))
        kept[key] = places
    for key, places in one.filters:
        if key in dict(other.groups) or others.get(key) == places:
            continue
        if key in others or whole.get(key) != len(places):
            return None
    found: dict[tuple[int, ...], list[int]] = {}
    for index in range(one.size):
        if all(groups[key][index] in places for key, places in kept.items()):
            found.setdefault(tuple(groups[key][index] for key in shared), []).append(index)
    count = math.prod(len(places) for places in kept.values())
    return {places: indices for places, indices in found.items() if len(indices) == count}


def _ties(one: Shape, other: Shape, whole: Mapping[bytes, int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield groups of one shape and groups of the other that have the same rows together."""
    shared = sorted(dict(one.groups).keys() & dict(other.groups).keys())
    left, right = _summed(one, other, shared, whole), _summed(other, one, shared, whole)
    if left is None or right is None:
        return
    for places in sorted(left.keys() & right.keys()):
        yield left[places], right[places]


def made_of(coarse: Shape, fine: Shape, whole: Whole) -> list[list[int]] | None:
    """Return for each group of a shape the groups of another that make it up; None: there is one that they do not."""
    found = {one[0]: parts for one, parts in _ties(coarse, fine, dict(whole)) if len(one) == 1}
    return [found[index] for index in range(coarse.size)] if len(found) == coarse.size else None


@dataclass(frozen=True)
class Weights:
    """How the numbers of some shapes, one after the other, are made to agree.

    `ties`: differences that are noise alone, in whole numbers, shape (ties, numbers); `corrections`: what is taken from
    each number for each, shape (numbers, ties). `fitted`: all of it together, shape (numbers, numbers).
    """

    ties: Array
    corrections: Array
    fitted: Array

    def apply(self, numbers: Sequence[int]) -> list[int]:
        """Return the numbers, in `PARTS` of a step, with their corrections."""
        off = [sum(numbers[i] * int(row[i]) for i in np.flatnonzero(row).tolist()) for row in self.ties]
        moved = self.corrections @ np.array([float(one) for one in off])
        return [number - round(one) for number, one in zip(numbers, moved.tolist(), strict=True)]


@lru_cache(maxsize=16)
def weights_of(shapes: tuple[Shape, ...], spreads: tuple[float, ...], whole: Whole) -> Weights | None:
    """Return the weights of the least variance for numbers whose noise has a spread by shape; None: nothing is the
    same in two of them, or they are too many.
    """
    starts = list(itertools.accumulate((shape.size for shape in shapes), initial=0))
    if starts[-1] > MOST_CELLS:
        return None
    rows: list[Array] = []
    for (i, one), (j, other) in itertools.combinations(enumerate(shapes), 2):
        for left, right in _ties(one, other, dict(whole)):
            row = np.zeros(starts[-1])
            row[[starts[i] + index for index in left]] += 1
            row[[starts[j] + index for index in right]] -= 1
            rows.append(row)
    if not rows or len(rows) > _MOST_TIES:
        return None
    ties = np.array(rows)
    variances = np.repeat(spreads, [shape.size for shape in shapes]) / max(spreads)
    seen = ties * variances
    corrections = seen.T @ np.linalg.pinv(seen @ ties.T, rcond=1e-10, hermitian=True)
    corrections[np.abs(corrections) < _NOTHING] = 0
    fitted = np.eye(starts[-1]) - corrections @ ties
    fitted[np.abs(fitted) < _NOTHING] = 0
    return Weights(ties, corrections, fitted)


def rounded(numbers: Sequence[int], plain: Sequence[int]) -> list[int]:
    """Return numbers in `PARTS` of a step in whole steps, a tie towards the plain ones."""
    moved = [number - one * PARTS for number, one in zip(numbers, plain, strict=True)]
    return [one + _nearest(move) for one, move in zip(plain, moved, strict=True)]


def _nearest(parts: int) -> int:
    """Return the nearest whole number of steps, a half towards 0."""
    steps = -((PARTS // 2 - abs(parts)) // PARTS)
    return steps if parts > 0 else -steps

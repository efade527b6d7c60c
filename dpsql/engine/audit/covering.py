"""Points of a product of small lists, such that every pair of alternatives is tried: how statements are searched.

An axis is a name with a few named alternatives; a point takes one of each. Most faults need two alternatives at once,
few need three: a covering of all pairs has a hundred points where the product has millions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Axes", "Pair", "Point", "covering", "pairs_in", "pairs_of", "points"]

Axes = Mapping[str, Sequence[str]]
"""The alternatives of each axis, by name."""
Point = dict[str, str]
"""One alternative of each axis."""
Pair = tuple[tuple[str, str], tuple[str, str]]
"""Alternatives of two axes, (axis, alternative) each, in the order of the axes."""

_TRIES = 12
"""Points that are compared for each that is taken."""


def pairs_of(axes: Axes) -> list[Pair]:
    """Return all pairs of alternatives of two axes."""
    return [
        ((one, a), (other, b))
        for one, other in itertools.combinations(axes, 2)
        for a in axes[one]
        for b in axes[other]
    ]


def pairs_in(point: Point) -> set[Pair]:
    """Return the pairs of alternatives that a point has."""
    return set(itertools.combinations(point.items(), 2))


def covering(
    axes: Axes, rng: random.Random, takes: Callable[[Point], bool], tries: int = 3
) -> Iterator[Point]:
    """Yield points that together have every pair, as far as some point that has it is taken.

    `takes` is asked of each point: one that it does not take covers nothing. A pair is given up after `tries` points
    that have it were not taken.
    """
    left = dict.fromkeys(pairs_of(axes), tries)
    while left:
        wanted = next(iter(left))
        point = max(
            (_point(axes, rng, dict(wanted)) for _ in range(_TRIES)),
            key=lambda one: len(left.keys() & pairs_in(one)),
        )
        if takes(point):
            for pair in pairs_in(point):
                left.pop(pair, None)
            yield point
            continue
        left[wanted] -= 1
        if not left[wanted]:
            del left[wanted]


def points(axes: Axes, rng: random.Random) -> Iterator[Point]:
    """Yield points without end: first those of a covering, then random ones."""
    yield from covering(axes, rng, lambda _: True)
    while True:
        yield _point(axes, rng, {})


def _point(axes: Axes, rng: random.Random, fixed: Mapping[str, str]) -> Point:
    return {name: fixed.get(name) or rng.choice(options) for name, options in axes.items()}

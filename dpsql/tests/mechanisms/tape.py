"""Random sources that leave nothing to chance: one plays a tape, one walks through all outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

Chance = float | Fraction


class Tape:
    """A `RandomSource` that gives the bytes of its tape in order; ValueError past the end."""

    def __init__(self, tape: bytes) -> None:
        self.rest = tape

    def random_bytes(self, count: int) -> bytes:
        if count > len(self.rest):
            raise ValueError("the tape has ended")
        given, self.rest = self.rest[:count], self.rest[count:]
        return given


class Choices:
    """The random choices of one run: those of a path, then an open end."""

    def __init__(self, path: Sequence[int]) -> None:
        self._path = iter(path)

    def choose(self, weights: Sequence[Chance]) -> int:
        """Return index i with probability weights[i] (they sum to 1)."""
        for choice in self._path:
            return choice
        raise _OpenEndError(weights)

    def below(self, n: int) -> int:
        return self.choose([Fraction(1, n)] * n) if n > 1 else 0

    def is_heads(self, probability: Chance) -> bool:
        return self.choose([1 - probability, probability]) == 1


class _OpenEndError(Exception):
    """The run asks for one more choice than the path being followed has."""

    def __init__(self, weights: Sequence[Chance]) -> None:
        self.weights = weights


def enumerate_outcomes(
    run: Callable[[Choices], Hashable], smallest: float
) -> tuple[dict[Hashable, float], float]:
    """Return the probability of each outcome of `run` (up to float rounding), and the mass not followed.

    Every choice is a branch; branches lighter than `smallest` are left.
    """
    outcomes: defaultdict[Hashable, float] = defaultdict(float)
    left = 0.0
    paths: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while paths:
        path, mass = paths.pop()
        if mass < smallest:
            left += mass
            continue
        try:
            outcomes[run(Choices(path))] += mass
        except _OpenEndError as end:
            paths.extend(((*path, i), mass * weight) for i, weight in enumerate(end.weights))
    return outcomes, left


def enumerate_exactly(run: Callable[[Choices], Hashable]) -> dict[Hashable, Fraction]:
    """Return the probability of each outcome of `run`, all of whose choices have rational weights and an end."""
    outcomes: defaultdict[Hashable, Fraction] = defaultdict(Fraction)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        path, mass = paths.pop()
        try:
            outcomes[run(Choices(path))] += mass
        except _OpenEndError as end:
            for i, weight in enumerate(end.weights):
                assert isinstance(weight, (int, Fraction)), "a weight that is not exact"
                if weight:
                    paths.append(((*path, i), mass * weight))
    return outcomes

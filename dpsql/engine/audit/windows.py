"""Windows of choices by rank, as the misses of all candidates, and how far these are apart for two databases.

Of choices at several fractions it is the weights of the candidates: their claim is about these (soundness.md 1.21).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from ...mechanisms import FlipChoice, RankChoice, RankSplit, Window

__all__ = ["Steps", "Weights", "moved", "steps_of", "window_of", "windows_of"]

Steps = tuple[tuple[int, int], ...]
"""The misses of the candidates in ascending order: (the first candidate after, the miss up to there)."""


class Weights(tuple[tuple[int, int], ...]):
    """The weights of a group's candidates, ascending: (candidate, weight); of all its rows, or it is no measure."""

    __slots__ = ()


def window_of(rows: Iterable[tuple[int, ...]]) -> Window:
    """Return a group's rows (candidate, less, weight, n) as a window."""
    window = Window()
    for place, less, weight, total in sorted(rows):
        assert all(type(value) is int for value in (place, less, weight, total)), "not an integer"
        window.candidates.append(place)
        window.less.append(less)
        window.weights.append(weight)
        window.total = total
    return window


def steps_of(choice: RankChoice | RankSplit | FlipChoice, window: Window) -> Steps:
    """Return the misses of all candidates, or their weights."""
    if isinstance(choice, FlipChoice):
        return Weights(zip(window.candidates, window.weights, strict=True))
    if isinstance(choice, RankSplit):
        assert sum(window.weights) == window.total, "too many rows for their weights to be read"
        return Weights(zip(window.candidates, window.weights, strict=True))
    counts, misses = choice.intervals(window)
    assert sum(counts) == choice.candidates
    assert all(count > 0 for count in counts)
    return tuple(zip(accumulate(counts), misses, strict=True))


def windows_of(
    choice: RankChoice | RankSplit | FlipChoice, rows: Iterable[tuple[Any, ...]], width: int
) -> dict[tuple[Any, ...], Steps]:
    """Return the misses of all candidates by group; `width`: how many keys a row begins with."""
    groups: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    for row in rows:
        groups.setdefault(row[:width], []).append(row[width:])
    for found in groups.values():
        places = [row[0] for row in found]
        assert len(set(places)) == len(places), "a candidate came twice"
    return {key: steps_of(choice, window_of(found)) for key, found in groups.items()}


def moved(left: Steps, right: Steps) -> int:
    """Return the most that any candidate's miss changed; of weights the sum of all changes."""
    if isinstance(left, Weights):
        here, there = dict(left), dict(right)
        return sum(abs(here.get(place, 0) - there.get(place, 0)) for place in here.keys() | there.keys())
    most, i, j = 0, 0, 0
    while i < len(left) and j < len(right):
        most = max(most, abs(left[i][1] - right[j][1]))
        end = min(left[i][0], right[j][0])
        i, j = i + (left[i][0] == end), j + (right[j][0] == end)
    assert i == len(left)
    assert j == len(right)
    return most

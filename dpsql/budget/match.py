"""Which stored draws answer a vector, and which running ones are worth waiting for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["choose_draws", "running_draws"]

Scales = Mapping[int, Fraction]
"""For one measure: the draws that hold it (by ledger entry) and their noise scales."""


def choose_draws(stored: Sequence[Scales], scale: Fraction) -> tuple[int, ...] | None:
    """Return the entry whose draw answers each measure, or None when some measure has none.

    A draw serves when its scale is <= `scale` (the same or a larger epsilon: post-processing, free).
    One draw that holds all measures goes before several, so that a repeated question keeps its
    answer; among equals of either kind the smallest scale, then the newest.
    """
    usable = [_at_most(scales, scale) for scales in stored]
    joint = set(usable[0]).intersection(*usable[1:])
    if joint:
        return (_best(usable[0], joint),) * len(usable)
    if all(usable):
        return tuple(_best(scales, scales) for scales in usable)
    return None


def running_draws(stored: Sequence[Scales], running: Sequence[Scales], scale: Fraction) -> frozenset[int]:
    """Return the running entries without which the vector is no hit and with all of which it is.

    Empty when waiting cannot help: some measure is neither stored nor running at a scale that serves.
    Requires: `choose_draws(stored, scale)` is None.
    """
    awaited: set[int] = set()
    for have, coming in zip(stored, running, strict=True):
        if _at_most(have, scale):
            continue
        serving = _at_most(coming, scale)
        if not serving:
            return frozenset()
        awaited.update(serving)
    return frozenset(awaited)


def _at_most(scales: Scales, scale: Fraction) -> dict[int, Fraction]:
    return {entry: each for entry, each in scales.items() if each <= scale}


def _best(scales: Scales, entries: set[int] | Scales) -> int:
    return min(entries, key=lambda entry: (scales[entry], -entry))

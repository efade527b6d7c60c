"""Which stored draws answer a measurement, and which running ones are worth waiting for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..mechanisms import Law

__all__ = ["choose_draws", "running_draws"]

Laws = Mapping[int, Law]
"""For one measure: the draws that hold it (by ledger entry) and the law of their noise."""


def choose_draws(stored: Sequence[Laws], wanted: Law) -> tuple[int, ...] | None:
    """Return the entry whose draw answers each measure, or None when some measure has none.

    A draw serves when its spread is at most the wanted one (the same or a larger epsilon:
    post-processing, free). One draw that holds all measures goes before several, so that a repeated
    question keeps its answer; among equals of either kind the smallest spread, then the newest. Where coordinates
    have laws of their own each measure is held against its own.
    """
    usable = [_serving(laws, wanted.at(place)) for place, laws in enumerate(stored)]
    joint = set(usable[0]).intersection(*usable[1:])
    if joint:
        return (_best(usable[0], joint),) * len(usable)
    if all(usable):
        return tuple(_best(laws, laws) for laws in usable)
    return None


def running_draws(stored: Sequence[Laws], running: Sequence[Laws], wanted: Law) -> frozenset[int]:
    """Return the running entries without which the measurement is no hit and with all of which it is.

    Empty when waiting cannot help: some measure is neither stored nor running under a law that serves.
    Requires: `choose_draws(stored, wanted)` is None.
    """
    awaited: set[int] = set()
    for place, (have, coming) in enumerate(zip(stored, running, strict=True)):
        if _serving(have, wanted.at(place)):
            continue
        serving = _serving(coming, wanted.at(place))
        if not serving:
            return frozenset()
        awaited.update(serving)
    return frozenset(awaited)


def _serving(laws: Laws, wanted: Law) -> dict[int, Law]:
    return {entry: law for entry, law in laws.items() if law.spread <= wanted.spread}


def _best(laws: Laws, entries: set[int] | Laws) -> int:
    return min(entries, key=lambda entry: (laws[entry].spread, -entry))

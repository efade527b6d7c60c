"""Which stored draws answer a measurement, and which running ones are worth waiting for (soundness.md 3.13).

House rules:

1. From laws and entry numbers alone, which are public: never from what was drawn.
2. Numbers that were drawn independently are combined one by one, and so are running sums by square root, under keys of
   their own; what depends on each other, by whole vectors; what is no number plus noise (choices, counts that decided
   what is shown), never.
3. The answer is a function of the set of stored draws: a new one may change it, asking never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from ..mechanisms import Coordinate, Law, SquareRoot, precision_of

Laws = Mapping[int, Law]
"""For one measure: the draws that hold it (by ledger entry) and the law of their noise."""
Found = tuple[tuple[int, ...], ...]
"""For each measure the entries whose draws answer it together, the best first."""

MOST_COMBINED = 16
"""Most draws that are combined: the best ones."""
CLOSE = 1 + Fraction(1, 2**16)
"""A combination serves up to this much above the wanted variance: what rounding takes of precisions that add up."""
_STEP = 1
"""Below the variance of a step of the lattice nothing is combined: the best draw is mostly without any noise."""


def choose_draws(stored: Sequence[Laws], wanted: Law) -> Found | None:
    """Return for each measure the entries whose draws answer it, or None when some measure has no answer.

    Draws serve when they, or their combination, have no more variance than is wanted (post-processing, free). Where
    coordinates have laws of their own each measure is held against its own.
    """
    combined = combined_draws(stored, wanted)
    coordinates = enumerate(combined or ())
    if combined is not None and all(
        _serves([stored[coordinate][entry] for entry in entries], wanted.at(coordinate))
        for coordinate, entries in coordinates
    ):
        return combined
    return _single_draws(stored, wanted)


def combined_draws(stored: Sequence[Laws], wanted: Law) -> Found | None:
    """Return for each measure all of it that is combined; None when some measure has nothing."""
    if len(stored) > 1 and isinstance(wanted.at(0), Coordinate):
        return _vectors(stored, wanted)
    found = []
    for laws in stored:
        alone = len(stored) == 1
        additive = {
            entry: law
            for entry, law in laws.items()
            if (law.is_additive or isinstance(law, SquareRoot)) and (alone or not isinstance(law, Coordinate))
        }
        if not additive:
            return None
        found.append(_best_of(additive))
    return tuple(found)


def _vectors(stored: Sequence[Laws], wanted: Law) -> Found | None:
    """Return the draws that have all measures as the coordinates of vectors like the wanted ones."""
    whole = [
        entry
        for entry in set(stored[0]).intersection(*stored[1:])
        if all(_is_like(laws[entry], wanted.at(coordinate)) for coordinate, laws in enumerate(stored))
    ]
    if not whole:
        return None
    widest = max(range(len(stored)), key=lambda coordinate: wanted.at(coordinate).spread)
    return (_best_of({entry: stored[widest][entry] for entry in whole}),) * len(stored)


def _is_like(law: Law, wanted: Law) -> bool:
    return (
        isinstance(law, Coordinate)
        and isinstance(wanted, Coordinate)
        and (law.index, law.box.reaches) == (wanted.index, wanted.box.reaches)
    )


def _best_of(laws: Laws) -> tuple[int, ...]:
    """Return the entries that are combined: the smallest spreads, the newest of equals."""
    ordered = sorted(laws, key=lambda entry: (laws[entry].spread, -entry))
    return tuple(ordered[: 1 if laws[ordered[0]].spread < _STEP else MOST_COMBINED])


def _serves(laws: Sequence[Law], wanted: Law) -> bool:
    if len(laws) == 1:
        return laws[0].spread <= wanted.spread
    return precision_of(laws) * wanted.spread * CLOSE >= 1


def _single_draws(stored: Sequence[Laws], wanted: Law) -> Found | None:
    """Return one draw for each measure: one that holds all of them goes before several, so that found groups and
    their measures stay together; among equals of either kind the smallest spread, then the newest.
    """
    usable = [
        {entry: law for entry, law in laws.items() if law.spread <= wanted.at(coordinate).spread}
        for coordinate, laws in enumerate(stored)
    ]
    joint = set(usable[0]).intersection(*usable[1:])
    if joint:
        return ((_best(usable[0], joint),),) * len(usable)
    if all(usable):
        return tuple((_best(laws, laws),) for laws in usable)
    return None


def _best(laws: Laws, entries: Iterable[int]) -> int:
    return min(entries, key=lambda entry: (laws[entry].spread, -entry))


def running_draws(stored: Sequence[Laws], running: Sequence[Laws], wanted: Law) -> frozenset[int]:
    """Return the running entries with which, once they are stored, the measurement is answered.

    Empty when waiting cannot help.
    Requires: `choose_draws(stored, wanted)` is None.
    """
    both = [{**have, **coming} for have, coming in zip(stored, running, strict=True)]
    found = choose_draws(both, wanted)
    awaited = {entry for entries in found or () for entry in entries}
    return frozenset(awaited.intersection(entry for laws in running for entry in laws))

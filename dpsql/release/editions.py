"""Editions: the table that was fitted of a family's draws up to one of them, kept beside the ledger.

An edition is named by the ledger entry of the newest draw in it. Whoever reads an edition first fits its table and has
it kept; everybody else is told those whole numbers, also when it is pinned later (`dpsql.edition`). It is a function of
stored draws, so a crash between a commit and the fit loses nothing: who asks next fits it.

House rule: nothing here moves a number within an edition, and only a charged draw makes another one (soundness.md 3.8).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from ..budget import Draw, Edition, Laws, StoredDraws, StoredGrouping, Together
from ..mechanisms import Gaussian, Law
from ..records import dataclass
from .estimate import CELL_PARTS, Design
from .released import Array

__all__ = ["AsOf", "EditionNote", "Fitted", "digest_of", "disagrees", "fitted", "kept"]

_SURE = 4.265
"""Normal deviations beyond which stored draws are said to disagree: fewer than one edition in 50,000."""
_EXCESS = {True: 2, False: 6}
"""Most variance of a square of a noise of variance 1: of Gaussian noises, and of any."""


class EditionNote(str):
    """A note on which stored draws an answer is read from; also what a server's client is told."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AsOf:
    """Stored draws up to a ledger entry. See `StoredDraws`."""

    store: StoredDraws
    last: int

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """See `StoredDraws.lookup`."""
        return self.store.lookup(measures, law, self.last if until is None else min(until, self.last))

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """See `StoredDraws.laws`."""
        found = self.store.laws(measures)
        return tuple({entry: law for entry, law in one.items() if entry <= self.last} for one in found)

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """See `StoredDraws.groupings`."""
        epoch, found = self.store.groupings(families)
        return epoch, {key: [one for one in each if one.entry <= self.last] for key, each in found.items()}

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """See `StoredDraws.draw_of`."""
        return self.store.draw_of(stored)

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """See `StoredDraws.kept`."""
        return self.store.kept(edition, fit)

    @property
    def epoch(self) -> int:
        """See `StoredDraws.epoch`."""
        return self.store.epoch

    @property
    def is_empty(self) -> bool:
        """See `StoredDraws.is_empty`."""
        return self.store.is_empty


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table that was fitted: its cells as `Design.table` gives them, and how far the draws are from it: the sum of
    the squares of their distances, each over its variance."""

    cells: list[int]
    distance: float


Drawn = tuple[Sequence[int], Sequence[tuple[Array, Law]]]
"""What was drawn over one shape: the mean in `PARTS` of a step, and each draw with its law."""


def fitted(store: StoredDraws, edition: Edition, design: Design, observed: Sequence[Drawn]) -> Fitted | None:
    """Return an edition's table as it is kept, or fitted now, of what was drawn by shape; None: it was not found."""

    def fit() -> bytes | None:
        cells = design.table([numbers for numbers, _ in observed])
        if cells is None:
            return None
        return _bytes(Fitted(cells, _distance(design, cells, [draws for _, draws in observed])))

    content = store.kept(edition, fit)
    return None if content is None else _read(content)


def kept(store: StoredDraws, edition: Edition) -> Fitted | None:
    """Return an edition's table where it is kept."""
    content = store.kept(edition, lambda: None)
    return None if content is None else _read(content)


def _bytes(one: Fitted) -> bytes:
    return zlib.compress(json.dumps([one.cells, one.distance], separators=(",", ":")).encode(), 1)


def _read(content: bytes) -> Fitted:
    cells, distance = json.loads(zlib.decompress(content))
    return Fitted(cells, distance)


def digest_of(*said: object) -> bytes:
    """Return a digest of what a table is a function of."""
    return hashlib.sha256(repr(said).encode()).digest()


# --- do the draws agree -----------------------------------------------------------------------------------------


def _distance(design: Design, cells: Sequence[int], drawn: Sequence[Sequence[tuple[Array, Law]]]) -> float:
    table = np.array(cells, dtype=object).reshape((1, *design.sizes))
    found = 0.0
    for sums, draws in zip(design.drawn, drawn, strict=True):
        told = sums.of(table)[0]
        for values, law in draws:
            off = (values.astype(object) * CELL_PARTS - told).astype(np.float64) / CELL_PARTS
            found += float((off**2).sum()) / float(law.spread)
    return found


def disagrees(design: Design, distance: float, laws: Sequence[Sequence[Law]]) -> bool:
    """Say whether draws are further from their table than their noises let them be: rows have changed meanwhile.

    The distance has as many degrees as there are numbers more than the table has of its own, and about the law of a
    gamma variable of its mean and of at least its variance (Wilson, Hilferty). `laws`: of each shape's draws.
    """
    rank = _rank(design)
    if rank is None:
        return False
    degrees = sum(sums.size * len(own) for sums, own in zip(design.drawn, laws, strict=True)) - rank
    if degrees <= 0:
        return False
    ratio = _EXCESS[all(isinstance(law, Gaussian) for own in laws for law in own)]  # variance over mean
    most = degrees / ratio
    limit = degrees * (1 - 1 / (9 * most) + _SURE / (3 * math.sqrt(most))) ** 3
    return distance > limit


def _rank(design: Design) -> int | None:
    """Return how many numbers of the table the draws tell; None where partitions of an axis are no chain."""
    chains = []
    for axis in range(len(design.sizes)):
        own = sorted({sums.partitions[axis] for sums in design.drawn}, key=lambda one: one.size)
        if any(min(one.groups) < 0 for one in own) or not all(
            _refines(fine.groups, coarse.groups) for coarse, fine in itertools.pairwise(own)
        ):
            return None
        chains.append(own)
    if any(sums.rows is not None for sums in design.drawn):
        return None
    steps: list[list[int]] = [np.diff([one.size for one in chain], prepend=0).tolist() for chain in chains]
    below: set[tuple[int, ...]] = set()
    for sums in design.drawn:
        places = (chain.index(part) for chain, part in zip(chains, sums.partitions, strict=True))
        below.update(itertools.product(*(range(place + 1) for place in places)))
    return sum(math.prod(step[place] for step, place in zip(steps, at, strict=True)) for at in below)


def _refines(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))

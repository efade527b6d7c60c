"""Stored draws, and those of a batch that are not stored yet: what each of its statements finds of the ones before.

A batch is stored as a whole, at its end, and what one statement draws may answer another one before that. The same
class stands in where a batch is planned: draws that would be made serve as they will when they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from ..mechanisms import Laplace, Law
from .claim import Draw, Grouping, StoredGrouping, Together
from .editions import Edition
from .match import Found, Laws, choose_draws

_T = TypeVar("_T")

_ANY = Laplace(Fraction(2**100))
"""Noise that every stored draw has less of."""


class StoredDraws(Protocol):
    """What was drawn, as far as it may answer again; reading it charges nothing."""

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """Return the stored draws of each measure, together of no more spread than `law`, or None.

        `until`: of the ledger entries up to this one; None: of all.
        """
        ...

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """Return what is stored of each measure: the laws of its draws, by ledger entry."""
        ...

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """Return the epoch, and the stored draws of each family in it."""
        ...

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """Return a stored draw of a family."""
        ...

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """Return what is kept of an edition; where nothing is, what `fit` makes is kept, unless another came first.

        What cannot be kept is returned all the same. None: it was not found.
        """
        ...

    @property
    def epoch(self) -> int:
        """The dataset's epoch, from 1."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored in this epoch, so that nobody need ask what may answer."""
        ...


class AskedOnce:
    """See `StoredDraws`: what `base` has told already is told again, as a batch that is planned asks for the same at
    each step. For so long as one plan is made: what is drawn meanwhile is not seen.
    """

    def __init__(self, base: StoredDraws) -> None:
        self._base, self.epoch = base, base.epoch
        self.is_empty = base.is_empty
        self._told: dict[tuple[object, ...], Any] = {}

    def _once(self, ask: Callable[..., _T], *asked: object) -> _T:
        key = (ask.__name__, *asked)
        if key not in self._told:
            self._told[key] = ask(*asked)
        told: _T = self._told[key]
        return told

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """See `StoredDraws.lookup`."""
        return self._once(self._base.lookup, tuple(measures), law, until)

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """See `StoredDraws.laws`."""
        return self._once(self._base.laws, tuple(measures))

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """See `StoredDraws.groupings`."""
        epoch, found = self._once(self._base.groupings, tuple(families))
        return epoch, {family: list(stored) for family, stored in found.items()}

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """See `StoredDraws.kept`."""
        return self._base.kept(edition, fit)

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """See `StoredDraws.draw_of`."""
        key = ("draw_of", stored.entry)
        if key not in self._told:
            self._told[key] = self._base.draw_of(stored)
        draw: Draw = self._told[key]
        return draw


class Pending:
    """See `StoredDraws`. `base`: what is stored; None: as if nothing were."""

    def __init__(self, base: StoredDraws | None, epoch: int) -> None:
        self._base, self.epoch = base, epoch
        self._draws: dict[int, Draw] = {}
        self._laws: dict[bytes, dict[int, Law]] = {}
        self._families: dict[bytes, list[StoredGrouping]] = {}

    def add(self, entry: int, draw: Draw, grouping: Grouping | None) -> None:
        """Take in a draw under the number of its ledger entry."""
        self._draws[entry] = draw
        for coordinate, key in enumerate(draw.measures):
            self._laws.setdefault(key, {})[entry] = draw.law.at(coordinate)
        if grouping is not None:
            self._families.setdefault(grouping.family, []).append(StoredGrouping(entry, draw.law, grouping))

    def entries(self, measures: Sequence[bytes], law: Law) -> Found | None:
        """Return which draws of the batch answer each of the measures; None: they do not."""
        return choose_draws([self._laws.get(key, {}) for key in measures], law) if measures else None

    def lookup(
        self, measures: Sequence[bytes], law: Law, until: int | None = None
    ) -> tuple[Together, ...] | None:
        """See `StoredDraws.lookup`; what is stored goes first, and joins what the batch draws as it will then."""
        found = None if self._base is None else self._base.lookup(measures, law, until)
        if found is not None:
            return found
        drawn = self.entries(measures, law)
        if drawn is None:
            return None
        before = [self._stored(key) for key in measures]
        laws = [
            {
                **self._laws.get(key, {}),
                **{n: draw.law.at(draw.measures.index(key)) for n, draw in old.items()},
            }
            for key, old in zip(measures, before, strict=True)
        ]
        together = choose_draws(laws, law) or drawn
        return tuple(
            tuple(old[entry] if entry in old else self._draws[entry] for entry in entries)
            for old, entries in zip(before, together, strict=True)
        )

    def _stored(self, key: bytes) -> dict[int, Draw]:
        """Return the stored draws of a measure, under numbers before those of the batch: the best the last."""
        found = None if self._base is None else self._base.lookup([key], _ANY)
        return {} if found is None else {-place: draw for place, draw in enumerate(found[0], 1)}

    def laws(self, measures: Sequence[bytes]) -> tuple[Laws, ...]:
        """See `StoredDraws.laws`."""
        before = [{} for _ in measures] if self._base is None else self._base.laws(measures)
        return tuple({**old, **self._laws.get(key, {})} for key, old in zip(measures, before, strict=True))

    def groupings(self, families: Sequence[bytes]) -> tuple[int, dict[bytes, list[StoredGrouping]]]:
        """See `StoredDraws.groupings`."""
        epoch, found = self.epoch, {family: list[StoredGrouping]() for family in families}
        if self._base is not None:
            epoch, found = self._base.groupings(families)
        return epoch, {family: found[family] + self._families.get(family, []) for family in families}

    @property
    def is_empty(self) -> bool:
        """See `StoredDraws.is_empty`."""
        return not self._draws and (self._base is None or self._base.is_empty)

    def kept(self, edition: Edition, fit: Callable[[], bytes | None]) -> bytes | None:
        """See `StoredDraws.kept`: of what is not stored nothing is kept."""
        return fit()

    def draw_of(self, stored: StoredGrouping) -> Draw:
        """See `StoredDraws.draw_of`."""
        if stored.entry in self._draws:
            return self._draws[stored.entry]
        if self._base is None:
            raise KeyError("no draw has this number")
        return self._base.draw_of(stored)

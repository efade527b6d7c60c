"""One coordinate of a table that several stored draws are of: the numbers of its estimate, their laws and replicas.

Its numbers are whole ones that agree, each a sum of one table's (soundness.md 3.15). The running totals of a table
over all its axes are rounded, and differences of neighbouring ones are its cells; so the running totals of the whole
numbers are those that were rounded. A group that is one run of places on k axes, and all of the others, is a signed
sum of at most 2^k of them: it is off by at most half of that, whatever the other numbers are. All of an axis is one,
so the sum of everything is off by a half.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..budget import Draw
from ..mechanisms import Coordinate, Gaussian, Law, WeightedSum, best_weights
from ..postprocess.simulate import Seeded
from ..records import dataclass
from .estimate import CELL_PARTS, PARTS, Design, Forms, Sums, design_of, forms_of
from .released import Array, Groups, ReleasedMeasurement

__all__ = [
    "FEW",
    "DrawId",
    "Observed",
    "Told",
    "id_of",
    "is_observed",
    "measurement_of",
    "rounded",
    "rounded_noise",
    "tell",
]

DrawId = tuple[bytes, int]
"""A draw, and a coordinate of it."""

FEW = 4
"""Numbers are rounded together where that moves none by more than so small a part of its variance."""
_MOST_REPLICAS = {True: 2 * 10**7, False: 10**6}
"""Most cells times shapes times replicas, of what is taken apart, and of what conjugate gradients find: a second, and
what is drawn for it in the second case."""


def id_of(draw: Draw) -> bytes:
    """Return a digest of what a draw measures, under which noise, and what came out."""
    return hashlib.sha256(b"".join(draw.measures) + draw.law.text.encode() + draw.payload).digest()


def is_observed(law: Law) -> bool:
    """Say whether what is drawn under a law is a number plus noise of its own, of more than a step of the lattice."""
    return law.is_additive and not law.is_joint and not isinstance(law, Coordinate) and law.spread >= 1


@dataclass(frozen=True)
class Observed:
    """What was drawn of a coordinate over one shape. `numbers`: the mean of all draws with the least variance, in
    `PARTS` of a step."""

    laws: dict[DrawId, Law]
    weights: dict[DrawId, Fraction]
    numbers: list[int]

    @property
    def spread(self) -> Fraction:
        return sum((self.weights[one] ** 2 * law.spread for one, law in self.laws.items()), Fraction(0))

    @classmethod
    def of(cls, draws: Mapping[DrawId, tuple[Array, Law]]) -> Observed:
        """Return what some draws say together; without numbers, what their laws say."""
        ordered = sorted(draws, key=lambda one: (draws[one][1].spread, one))
        laws = {one: draws[one][1] for one in ordered}
        weights = dict(zip(ordered, best_weights(list(laws.values())), strict=True))
        parts = [(int(weights[one] * PARTS), draws[one][0].tolist()) for one in ordered]
        numbers = [sum(weight * values[i] for weight, values in parts) for i in range(len(parts[0][1]))]
        return cls(laws, weights, numbers)


@dataclass(frozen=True)
class Told:
    """Some sums of one coordinate's table as all that was drawn of it tells them. `unit`: what the table's running
    totals are rounded to, in lattice steps; None: each number is rounded by itself."""

    observed: tuple[Observed, ...]
    design: Design
    wanted: Sums
    forms: Forms
    unit: int | None

    @classmethod
    def of(
        cls, observed: tuple[Observed, ...], design: Design, wanted: Sums, unit: int | None
    ) -> Told | None:
        """Return it; None: they are not told, or of too many kinds."""
        forms = forms_of(design, wanted)
        return None if forms is None else cls(observed, design, wanted, forms, unit)

    def by_itself(self) -> Told:
        """Return it with each number rounded by itself."""
        return replace(self, unit=None)

    @cached_property
    def rounding(self) -> list[float]:
        """By group the variance that rounding in a table adds to that of one rounding by itself."""
        if self.unit is None:
            return [0.0] * self.wanted.size
        return [(blocks - 1) * self.unit**2 / 12 for blocks in self.wanted.blocks()]

    @cached_property
    def variances(self) -> Array:
        """By group the variance before it is rounded."""
        found = np.zeros(len(self.forms.weights[0]))
        for one, weights in zip(self.observed, self.forms.weights, strict=True):
            found += float(one.spread) * (weights**2).sum(axis=1)
        return found[list(self.forms.kinds)]

    @property
    def widest(self) -> int:
        """The group with the most variance, by number."""
        return int(np.argmax(self.variances + np.array(self.rounding)))

    def law(self, group: int) -> WeightedSum:
        """Return the law of the noise on a group. What a table's rounding adds is taken for normal noise of its
        variance, as sums of roundings are (a test holds the bars).
        """
        kind, variance = self.forms.kinds[group], self.rounding[group]
        if (kind, variance) not in self._laws:
            noises = list(self._noises(kind))
            if variance:
                noises.append((Gaussian.of_at_least(Fraction(math.sqrt(variance))), 1.0))
            self._laws[kind, variance] = WeightedSum.of(noises, Fraction(self.unit or 1, 2))
        return self._laws[kind, variance]

    @cached_property
    def _laws(self) -> dict[tuple[int, float], WeightedSum]:
        """Those that were asked for."""
        return {}

    def _noises(self, kind: int) -> Iterator[tuple[Law, Array | float]]:
        for one, weights in zip(self.observed, self.forms.weights, strict=True):
            yield from ((law, weights[kind] * float(one.weights[id_])) for id_, law in one.laws.items())

    def values(self, table: Sequence[int], plain: Array | None = None) -> list[int]:
        """Return the whole numbers, of the cells that `Design.table` gives. `plain`: as they are by themselves: a tie
        goes towards it."""
        if self.unit is not None:
            return self._summed(rounded(self.design.sizes, table, self.unit, CELL_PARTS))
        parts = self._summed(table)
        own = [part // CELL_PARTS for part in parts] if plain is None else plain.tolist()
        return [one + _nearest(part - CELL_PARTS * one) for part, one in zip(parts, own, strict=True)]

    def _summed(self, cells: Sequence[int]) -> list[int]:
        table = np.array(cells, dtype=object).reshape((1, *self.design.sizes))
        return [int(one) for one in self.wanted.of(table)[0].tolist()]

    @property
    def most_draws(self) -> int:
        """How many replicas there are time for."""
        return _MOST_REPLICAS[self.design.is_plain] // (math.prod(self.design.sizes) * len(self.observed))

    def noise(self, draws: int) -> Array:
        """Return replicas of the noise, shape (groups, draws); other sums of the table have those of the same draws."""
        noises = []
        for one in self.observed:
            shape = (draws, len(one.numbers))
            drawn = (
                float(one.weights[id_]) * law.draw(math.prod(shape), Seeded(_seed(id_, law))).reshape(shape)
                for id_, law in one.laws.items()
            )
            noises.append(sum(drawn, np.zeros(shape)))
        table = self.design.noise(noises)
        if table is None:
            raise AssertionError("what was told by these shapes once is told again")
        if self.unit is not None:
            return self.wanted.of(rounded_noise(table, self.unit)).T
        return np.asarray(np.rint(self.wanted.of(table)).T)


def tell(
    drawn: Mapping[Sums, Mapping[DrawId, tuple[Array, Law]]],
    sizes: tuple[int, ...],
    wanted: Sequence[Sums],
    unit: int,
) -> list[Told] | None:
    """Return some sums of one coordinate's table as all that was drawn of it tells them; None: some are not told, or it
    is too much to be worked out. `drawn`: over each shape what was drawn, each draw once; `sizes`: of the table's axes.
    """
    observed = tuple(map(Observed.of, drawn.values()))
    design = design_of(sizes, tuple(drawn), tuple(float(one.spread) for one in observed))
    found = [] if design is None else [Told.of(observed, design, one, unit) for one in wanted]
    told = [one for one in found if one is not None]
    return told if design is not None and len(told) == len(found) else None


def measurement_of(
    told: Sequence[Told], values: Sequence[Array], groups: Groups | None = None
) -> ReleasedMeasurement:
    """Return a measurement of which each coordinate is told so."""
    each = tuple(one.law for one in told)
    widest = tuple(one.law(one.widest) for one in told)
    return ReleasedMeasurement(tuple(values), groups, widest, (None,) * len(widest), (), each)


def _nearest(parts: int) -> int:
    """Return the nearest whole number of units, a half towards 0."""
    units = -((CELL_PARTS // 2 - abs(parts)) // CELL_PARTS)
    return units if parts > 0 else -units


def _seed(id_: DrawId, law: Law) -> bytes:
    return hashlib.sha256(id_[0] + id_[1].to_bytes(4, "big") + law.text.encode()).digest()


def rounded(sizes: Sequence[int], cells: Sequence[int], unit: int, parts: int) -> list[int]:
    """Return cells in whole multiples of a unit, shape (cells,): in whole numbers alone, so on every machine the same.

    `sizes`: places of each axis; `cells`: in parts of one, so many each. A half goes up.
    """
    table = np.array(list(cells), dtype=object).reshape(tuple(sizes) or (1,))
    for axis in range(table.ndim):
        table = np.cumsum(table, axis=axis)
    table = (2 * table + unit * parts) // (2 * unit * parts) * unit
    for axis in range(table.ndim):
        table = np.diff(table, axis=axis, prepend=np.zeros_like(table.take([0], axis=axis)))
    return [int(one) for one in table.ravel().tolist()]


def rounded_noise(noise: Array, unit: int) -> Array:
    """Return noises of all cells, shape (draws, *sizes), as rounding leaves them."""
    table = np.rint(_running(noise) / unit) * unit
    for axis in range(1, table.ndim):
        table = np.diff(table, axis=axis, prepend=0)
    return np.asarray(table)


def _running(table: Array) -> Array:
    for axis in range(1, table.ndim):
        table = np.cumsum(table, axis=axis)
    return table

"""Measurements: the only things that are noised. Each is a few exact integers per group with one joint claim.

House rules (law L1; soundness.md 1.1):

1. The claim of a measurement is joint: for each unit, Σ_groups Σ_coordinates |change| <= `sensitivity`.
   Every coordinate gets discrete Laplace noise of scale sensitivity / epsilon, drawn independently.
2. `masks` are disjoint row predicates: a row counts in at most one of them. Disjointness is by
   construction (truth assignments of the filters), never by declaration.
3. Each sensitivity is written with the figure it comes from: R is enforced by the printed division by the
   unit's rows, W and B by the printed value clamp, C and P by the printed ranks.
4. What is scaled is counted in fractions of a lattice unit, 1 / `denominator`, so that cutting a unit down
   rounds off next to nothing. Coordinates, sensitivity and scale are all in these fractions; whoever shows
   them divides.

How counts and sums are scaled (soundness.md 1.9). Let t be the unit's rows that any of the release's scaled
measurements could count (`counted_in`), R the bound, U the denominator, and s a coordinate that is a sum of the
unit's rows in one group and mask. What the unit adds to the coordinate is s·R·U div max(t, R), cut towards
zero. A row lies in one group and in at most one mask, and is among the t. So with n rows in a group and mask,
Σ n <= t, and with |s| <= n·r for a row's reach r,

    Σ |s·R·U div max(t, R)| <= Σ n·r·R·U / max(t, R) <= r·R·U·t / max(t, R) <= r·R·U.

For a pair, whose parts a and b of a row with a value have a + b = W: a' = a·R·U div max(t, R) and
b' = W·n·R·U div max(t, R) - a', which is not negative since a <= W·n; a' + b' is the second quotient alone.
With the rows without a value, W·m·R·U div max(t, R), the sum over all groups and masks is at most
Σ W·(n + m)·R·U / max(t, R) <= W·R·U. (b' from b, or from the quotient of n alone, could go beyond: below zero,
or above the claim.) Cutting down to the floor instead would make -1 of each small negative sum: not bounded.
A unit with t <= R counts in full, exactly: s·U.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol

from ...relation.expressions import Expr
from ...relation.lattice import Lattice
from ..dialects.dialect import Dialect

__all__ = [
    "MEASUREMENTS",
    "Bounding",
    "BoundingQuery",
    "Mask",
    "Measurement",
    "MeasurementKind",
    "Sums",
    "counted_in",
]

_FINE = 2**10
"""Least fractions of a row, or of a row's largest value, that what is scaled is counted in."""


class MeasurementKind(enum.Enum):
    """What a measurement measures; the classes below say how."""

    COUNT = "count"
    PAIR = "pair"
    SUM = "sum"
    CENTRED = "centred"
    MOMENT = "moment"
    DISTINCT = "distinct"
    UNITS = "units"
    DIRECT = "direct"
    RANK = "rank"
    MODE = "mode"


class BoundingQuery(enum.Enum):
    """How a unit with many rows is bounded, and so which query of a release a measurement belongs to."""

    SCALED = "scaled"  # all its rows, each for less: R
    RANKED = "ranked"  # some of its groups: C
    DISTINCT = "distinct"  # some of its values: P
    RANK = "rank"  # all its values, each with less weight: R

    @property
    def takes_all_rows(self) -> bool:
        """Whether R bounds a unit: all its rows count, each for less."""
        return self in (BoundingQuery.SCALED, BoundingQuery.RANK)


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction of predicates, each to be true or not to be true (false or NULL)."""

    terms: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class Bounding:
    """Contribution bounds of a release, as printed: what is scaled takes R rows of a unit in all (`in_all`).

    What counts a thing once cannot be scaled: it takes C groups of a unit (`groups`), or some of its pairs of
    group and value, at most R and M in a group (`in_group`). `per_row`: the engine enforces one row per unit, so
    that all three are 1 without an operator. `ranked`: C is enforced by a printed rank (else the domain has at
    most C groups). `replace_one`, `together`: neighbours differ in as many units. `grouped`: there are group keys.
    """

    in_all: int
    in_group: int
    groups: int
    per_row: bool
    ranked: bool
    replace_one: bool
    grouped: bool
    together: int = field(
        default=1, repr=False
    )  # not in a measure's key: what is measured does not depend on it


class Sums(Protocol):
    """Counts and sums over the rows of a mask, as SQL in a measurement's own integers: what coordinates are made of."""

    @property
    def dialect(self) -> Dialect: ...

    def rows(self, measurement: Measurement, mask: Mask) -> str:
        """Return how many rows there are."""

    def present(self, measurement: Measurement, mask: Mask) -> str:
        """Return how many rows have a value."""

    def total(self, measurement: Measurement, mask: Mask) -> str:
        """Return Σ z, the values in lattice integers."""

    def squares(self, measurement: Measurement, mask: Mask) -> str:
        """Return Σ (z - L)²."""

    def units(self, mask: Mask) -> str:
        """Return how many units have a row."""

    def values(self, measurement: Measurement, mask: Mask) -> str:
        """Return how many values there are; only where a unit has one row."""


@dataclass(frozen=True, slots=True)
class Measurement(ABC):
    """One joint measure of a release; a class for each kind.

    `value`: what is summed or counted distinct; None for COUNT and UNITS. `null_rows`: a PAIR carries
    per mask a third coordinate, W·(rows whose value is NULL). `distinct_limit`: P, the pairs of group and value
    of a unit that count.
    """

    kind: ClassVar[MeasurementKind]
    query: ClassVar[BoundingQuery] = BoundingQuery.SCALED
    label: ClassVar[str]

    value: Expr | None
    lattice: Lattice | None
    masks: tuple[Mask, ...]
    null_rows: bool
    distinct_limit: int
    bounding: Bounding

    # --- the claim ------------------------------------------------------------------------------------------

    @property
    def reach(self) -> int:
        """Most that one row adds to the coordinates together, in lattice units."""
        return 1

    @property
    def added(self) -> int:
        """L1 sensitivity when a unit is added or removed, in lattice units."""
        return self.bounding.in_all * self.reach

    @property
    def replaced_alone(self) -> int | None:
        """L1 sensitivity of a single coordinate without groups when a unit is replaced; None: twice `added`."""
        return None

    @property
    def denominator(self) -> int:
        """U: coordinates count fractions of a lattice unit, 1 / U, a power of two; 1 where nothing is scaled."""
        unit = 1
        if self.query is BoundingQuery.SCALED and not self.bounding.per_row:
            while unit * self.reach < _FINE:
                unit *= 2
        return unit

    @property
    def claim_unit(self) -> int:
        """What the claim is counted in: parts of a lattice unit, 1 / this."""
        return self.denominator

    @property
    def sensitivity(self) -> int:
        """L1, joint over groups and coordinates, in the coordinates' own fractions (soundness.md 1.1).

        Of k units together it is k times what one of them moves (soundness.md 1.19).
        """
        return self.bounding.together * self.of_one

    @property
    def of_one(self) -> int:
        """The same for one unit. Replace-one is remove and add: twice, but for one coordinate without groups."""
        alone = None if self.bounding.grouped or len(self.masks) > 1 else self.replaced_alone
        if not self.bounding.replace_one:
            return self.added * self.denominator
        return (2 * self.added if alone is None else alone) * self.denominator

    def scale(self, epsilon: Fraction) -> Fraction:
        """Return the noise scale, in the coordinates' own fractions: sensitivity / epsilon."""
        return Fraction(self.sensitivity) / epsilon

    # --- the coordinates ------------------------------------------------------------------------------------

    @property
    def per_mask(self) -> int:
        """Coordinates per mask."""
        return 1

    @property
    def size(self) -> int:
        """Coordinates in all."""
        return self.per_mask * len(self.masks)

    @property
    def empty_value(self) -> int:
        """A coordinate's value over no rows."""
        return 0

    @property
    def largest(self) -> int:
        """Most that a row adds to any of the sums and differences that coordinates are computed from."""
        return 1 if self.lattice is None else 4 * max(self.lattice.width, self.lattice.reach)

    @abstractmethod
    def whole(self, sums: Sums) -> list[str]:
        """Return the coordinates of some rows, all of which count, in lattice units."""

    def cut(self, sums: Sums, share: Callable[[str], str]) -> list[str]:
        """Return what a unit with more than R rows adds; `share(s)` is s·R·U div t."""
        return [share(coordinate) for coordinate in self.whole(sums)]

    # --- over a lattice -------------------------------------------------------------------------------------

    @property
    def known_lattice(self) -> Lattice:
        """The lattice of a measurement that sums values."""
        assert self.lattice is not None
        return self.lattice

    def _above(self, sums: Sums, mask: Mask) -> str:
        """Return Σ (z - L)."""
        low, total = self.known_lattice.low, sums.total(self, mask)
        return f"({total} - {low} * {sums.present(self, mask)})" if low else total


@dataclass(frozen=True, slots=True)
class Count(Measurement):
    """Rows in the mask: R."""

    kind = MeasurementKind.COUNT
    label = "count of rows"

    @property
    def replaced_alone(self) -> int:
        return self.bounding.in_all

    def whole(self, sums: Sums) -> list[str]:
        return [sums.rows(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Pair(Measurement):
    """Σ(z - L) and Σ(H - z), complementary sums (soundness.md 1.3): R·W, as (z - L) + (H - z) = W for a row."""

    kind = MeasurementKind.PAIR
    label = "complementary sums"

    @property
    def reach(self) -> int:
        return self.known_lattice.width

    @property
    def per_mask(self) -> int:
        return 3 if self.null_rows else 2

    def whole(self, sums: Sums) -> list[str]:
        found = []
        for mask in self.masks:
            rows, total = sums.present(self, mask), sums.total(self, mask)
            found += [self._above(sums, mask), f"({self.known_lattice.high} * {rows} - {total})"]
            found += [self._without_value(sums, mask)] if self.null_rows else []
        return found

    def cut(self, sums: Sums, share: Callable[[str], str]) -> list[str]:
        found = []
        for mask in self.masks:
            above, both = self._above(sums, mask), f"{self.reach} * {sums.present(self, mask)}"
            found += [share(above), f"({share(both)} - {share(above)})"]
            found += [share(self._without_value(sums, mask))] if self.null_rows else []
        return found

    def _without_value(self, sums: Sums, mask: Mask) -> str:
        return f"({self.reach} * ({sums.rows(self, mask)} - {sums.present(self, mask)}))"


@dataclass(frozen=True, slots=True)
class Sum(Measurement):
    """Σ z: R·B with B = max(|L|, |H|); replaced alone, R times from min(0, L) to max(0, H)."""

    kind = MeasurementKind.SUM
    label = "sum"

    @property
    def reach(self) -> int:
        return self.known_lattice.reach

    @property
    def replaced_alone(self) -> int:
        return self.bounding.in_all * (max(self.known_lattice.high, 0) - min(self.known_lattice.low, 0))

    def whole(self, sums: Sums) -> list[str]:
        return [sums.total(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Centred(Measurement):
    """Σ u with u = 2z - (L + H), what a pair's difference is, for where the count is known (1.3): R·W, as |u| <= W."""

    kind = MeasurementKind.CENTRED
    label = "centred sum"

    @property
    def reach(self) -> int:
        return self.known_lattice.width

    def whole(self, sums: Sums) -> list[str]:
        middle = self.known_lattice.low + self.known_lattice.high
        return [
            f"(2 * {sums.total(self, mask)} - {middle} * {sums.present(self, mask)})" for mask in self.masks
        ]


@dataclass(frozen=True, slots=True)
class Moment(Measurement):
    """Σ(2u² - W²) with u = 2z - (L + H), soundness.md 1.4: R·W², as |2u² - W²| <= W²."""

    kind = MeasurementKind.MOMENT
    label = "sum of centred squares"

    @property
    def reach(self) -> int:
        return self.known_lattice.width**2

    @property
    def largest(self) -> int:
        return 128 * max(self.known_lattice.width, self.known_lattice.reach) ** 2

    def whole(self, sums: Sums) -> list[str]:
        width, found = self.known_lattice.width, []
        for mask in self.masks:
            # with u = 2a - W for a = z - L: 2u² - W² = 8a² - 8aW + W²
            squares, rows = sums.squares(self, mask), sums.present(self, mask)
            found.append(f"(8 * {squares} - {8 * width} * {self._above(sums, mask)} + {width**2} * {rows})")
        return found


@dataclass(frozen=True, slots=True)
class DistinctValues(Measurement):
    """Distinct values, soundness.md 1.1 and 1.9: P."""

    kind = MeasurementKind.DISTINCT
    query = BoundingQuery.DISTINCT
    label = "distinct values"

    @property
    def added(self) -> int:
        return self.distinct_limit

    @property
    def replaced_alone(self) -> int:
        return self.distinct_limit

    def whole(self, sums: Sums) -> list[str]:
        return [sums.values(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Units(Measurement):
    """Distinct units: C."""

    kind = MeasurementKind.UNITS
    query = BoundingQuery.RANKED
    label = "count of people"

    @property
    def added(self) -> int:
        return self.bounding.groups

    @property
    def replaced_alone(self) -> int:
        return 1

    def whole(self, sums: Sums) -> list[str]:
        return [sums.units(mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Direct(Measurement):
    """The exact average itself, noised by its range, for teaching (soundness.md 1.1): C·W.

    With one row per unit that is added or removed floor(W/2) + 1, by the proof there.
    """

    kind = MeasurementKind.DIRECT
    query = BoundingQuery.RANKED
    label = "direct average"

    @property
    def added(self) -> int:
        width = self.known_lattice.width
        alone = self.bounding.per_row and not self.bounding.replace_one
        return width // 2 + 1 if alone else self.bounding.groups * width

    @property
    def replaced_alone(self) -> int:
        return self.known_lattice.width

    @property
    def empty_value(self) -> int:
        """The middle of the range."""
        return (self.known_lattice.low + self.known_lattice.high) // 2

    def whole(self, sums: Sums) -> list[str]:
        found = []
        for mask in self.masks:
            rows, above = sums.present(self, mask), self._above(sums, mask)
            mean = sums.dialect.quotient(f"(2 * {above} + {rows})", f"NULLIF(2 * {rows}, 0)", wide=True)
            found.append(f"COALESCE({self.known_lattice.low} + {mean}, {self.empty_value})")
        return found


MEASUREMENTS: dict[MeasurementKind, type[Measurement]] = {
    measurement.kind: measurement
    for measurement in (Count, Pair, Sum, Centred, Moment, DistinctValues, Units, Direct)
}


def counted_in(measurements: Iterable[Measurement]) -> tuple[Expr, ...]:
    """Return the filters of which one is true on every row that a scaled measurement could count; () for all rows.

    A unit's rows t are those on which any of them holds: one figure for all measurements and masks of a release.
    """
    masks = [
        mask
        for measurement in measurements
        if measurement.query is BoundingQuery.SCALED
        for mask in measurement.masks
    ]
    chosen = [[term for term, truth in mask.terms if truth] for mask in masks]
    if not all(chosen):
        return ()
    return tuple(sorted(dict.fromkeys(term for terms in chosen for term in terms), key=repr))

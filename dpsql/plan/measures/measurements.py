"""Measurements: the only things that are noised. Each is a few exact integers per group with one joint claim.

House rules (law L1; soundness.md 1.1):

1. The claim of a measurement is joint: for each unit, Σ_groups Σ_coordinates |change| <= `sensitivity`, and
   Σ_groups Σ_coordinates change² <= `squared_sensitivity` (soundness.md 1.25). Every coordinate gets noise of its
   own: discrete Laplace by the first, in a pure dataset, discrete Gaussian by the second, in a zCDP dataset.
2. `masks` are disjoint row predicates: a row counts in at most one of them. Disjointness is by
   construction (truth assignments of the filters), never by declaration.
3. Each sensitivity is written with the figure it comes from: R is enforced by the printed weight of a
   unit's rows, W and B by the printed value clamp, C and P by the printed ranks.
4. What is scaled is counted in fractions of a lattice unit, 1 / `denominator`: a row of a unit has a weight
   in these, a whole number that is the same for all its rows and measures. Coordinates, sensitivity and scale are
   all in these fractions; whoever shows them divides.

How counts and sums are scaled, and why no unit passes R times a row's reach: soundness.md 1.9(3). Its letters are
here: t the unit's rows in `counted_in`, R `Bounding.in_all`, U `denominator`, r `reach`, w = R·U div max(t, R).
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import ClassVar, NamedTuple, NewType, Protocol

from ...mechanisms import (
    ATTO,
    NANO,
    Box,
    FlipChoice,
    Gaussian,
    Gaussians,
    Laplace,
    Law,
    RankChoice,
    RankSplit,
    floor_to_nano,
    pure_epsilon,
    rho_of_pure,
)
from ...records import dataclass
from ...relation.catalog import Scalar
from ...relation.expressions import Expr
from ...relation.intervals import Lattice
from ..dialects.dialect import Dialect

WEIGHT = 2**20
"""U: the weight of a row of a unit with at most R of them."""


MAX_SQUARES = 2**58
"""Most of the sum of squares of one person's cells: its root times `WEIGHT` is a whole number that doubles hold."""
_MAX_CELLS, _MAX_NORM = 2**18, 2**20


Steps = NewType("Steps", int)
"""A number in lattice units, or of a choice in weights: what a reach, or a claim before it is scaled, is counted in."""
Parts = NewType("Parts", int)
"""A number in fractions of a lattice unit, 1 / `denominator`, as coordinates, sensitivities and scales are."""
Choice = RankChoice | RankSplit | FlipChoice
"""What is made for each group where a value is chosen."""


class Coord(NamedTuple):
    """One number of a group: `place` among the coordinates of measurement `measure`, `number` among all of a release.

    Released numbers are columns by `number`; laws, values and store keys are a measurement's, by `place`.
    """

    number: int
    measure: int
    place: int

    @property
    def column(self) -> str:
        """Its column in the table of the release."""
        return f"m{self.number}"


@dataclass(frozen=True, slots=True)
class Loss:
    """What one draw costs: `epsilon`; where rho adds up, `rho` in 1e-18, and the epsilon of a pure draw of that rho."""

    epsilon: Fraction
    rho: int | None = None

    @classmethod
    def of(cls, added: Fraction, *, is_zcdp: bool) -> Loss:
        """Return the loss of so much of what adds up, in whole 1e-9 of epsilon or 1e-18 of rho."""
        return cls.of_rho(int(added * ATTO)) if is_zcdp else cls(added)

    @classmethod
    def of_rho(cls, rho: int) -> Loss:
        """Return the loss of so much rho, in 1e-18."""
        return cls(pure_epsilon(rho), rho)

    def divided(self, parts: int) -> Loss:
        """Return a part of it: cut down to 1e-9 of epsilon, or raised to 1e-18 of rho."""
        if self.rho is None:
            return Loss(floor_to_nano(Fraction(self.epsilon) / parts))
        return Loss.of_rho(-(-self.rho // parts))

    @property
    def is_nothing(self) -> bool:
        """Whether it is too small for any draw."""
        return self.epsilon <= 0

    @property
    def added(self) -> Fraction:
        """What adds up: epsilon, or rho."""
        return self.epsilon if self.rho is None else Fraction(self.rho, ATTO)

    @property
    def rho_atto(self) -> int:
        """The zCDP loss in 1e-18, rounded up: of a pure draw that of its epsilon."""
        return rho_of_pure(math.ceil(self.epsilon * NANO)) if self.rho is None else self.rho


class BoundingQuery(enum.Enum):
    """How a unit with many rows is bounded, and so which query of a release a measurement belongs to."""

    SCALED = "scaled"  # all its rows, each for less: R
    RANKED = "ranked"  # some of its groups: C
    DISTINCT = "distinct"  # some of its values: P
    RANK = "rank"  # all its values, each with less weight: R
    TOP = "top"  # in each group of its rows: M

    @property
    def takes_all_rows(self) -> bool:
        """Whether R bounds a unit: all its rows count, each for less."""
        return self in (BoundingQuery.SCALED, BoundingQuery.RANK)


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction of predicates, each to be true or not to be true (false or NULL)."""

    terms: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class Norm:
    """T (`most`, in rows): the L2 norm bound of a unit's row counts by cells of a key: `values`, one for all others."""

    key: Expr
    values: tuple[Scalar, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Numbered:
    """The source (position `place`) that each row has one row of, and its column that numbers a unit's rows.

    The engine enforces that no two rows of a unit have one number (soundness.md 1.39). `place` None: sources are cut by
    numbers of theirs before they are joined. `by_period`: of rows with a time no two that have one value of this column
    too; they are read up to a number in each period, the second (1.40).
    """

    place: int | None = None
    column: str = ""
    by_period: tuple[str, int] | None = None

    def __repr__(self) -> str:
        """Return the text that store keys are hashed from: it must never change for the same meaning."""
        more = "" if self.by_period is None else f", by_period={self.by_period!r}"
        return f"Numbered(place={self.place!r}, column={self.column!r}{more})"


@dataclass(frozen=True, slots=True)
class Bounding:
    """Contribution bounds of a release, as printed: what is scaled takes R rows of a unit in all (`in_all`).

    What counts a thing once cannot be scaled: it takes C groups of a unit (`groups`), or some of its pairs of group and
    value, at most R and M in a group (`in_group`). `per_row`: the engine enforces one row per unit, so that all three
    are 1 without an operator; `one_a_group`: one row of a unit in each group. `ranked`: C is enforced by a printed rank
    (else the domain has at most C groups). `norms`: further bounds of a unit's rows, whatever the groups are;
    `in_norm`: the least T of the norms within one cell of which each group is (soundness.md 1.36). `of_two`: of rows of
    two people, (R_a, R_b), enforced by printed ranks: each row counts unweighed, as with `per_row`, and R is K, the
    number of rows in which two results differ (1.38). `clamped`: of these, in a zCDP dataset, the number of groups of
    counts, where each person who is pointed at is cut to the norm R_b and not to R_b rows. `numbered`: only rows with a
    number from 1 to R are read: each counts unweighed, as with `per_row`, and a unit has at most R of them (1.39).
    `replace_one`, `together`: neighbours differ in as many units. `grouped`: there are group keys.
    """

    in_all: int
    in_group: int
    groups: int
    per_row: bool
    ranked: bool
    replace_one: bool
    grouped: bool
    # not in a measure's key: what is measured does not depend on these two
    together: int = field(default=1, repr=False)
    one_a_group: bool = field(default=False, repr=False)
    # said by whoever makes a key, where there are any
    norms: tuple[Norm, ...] = field(default=(), repr=False)
    in_norm: int | None = field(default=None, repr=False)
    of_two: tuple[int, int] | None = field(default=None, repr=False)  # said with the rows
    clamped: int | None = field(default=None, repr=False)  # said by whoever makes a key, where it is one
    numbered: Numbered | None = field(default=None, repr=False)  # as this

    @property
    def last_number(self) -> int | None:
        """The number up to which rows are read, of each period where they have a time; None: rows are weighed."""
        if self.numbered is None:
            return None
        return self.in_all if self.numbered.by_period is None else self.numbered.by_period[1]

    @property
    def weight(self) -> int:
        """U: the weight of a row of a unit that is within all bounds; (T·U)² is below 2^60."""
        return min([WEIGHT, *(1 << (30 - norm.most.bit_length()) for norm in self.norms)])

    def capped(self, squared: int) -> int:
        """Return the least of a squared norm in rows and that of the groups, where a norm of theirs is enforced."""
        return squared if self.in_norm is None else min(squared, self.in_norm**2)


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

    def products(self, measurement: Product, mask: Mask) -> str:
        """Return Σ (z - L) (z' - L') of two values, over rows that have both."""

    def typed(self, measurement: Measurement, sql: str) -> str:
        """Return a number of another measurement in the type of this one's sums and products."""

    def units(self, mask: Mask) -> str:
        """Return how many units have a row."""

    def values(self, measurement: Measurement, mask: Mask) -> str:
        """Return how many values there are; only where a unit has one row."""


@dataclass(frozen=True, slots=True)
class Measurement(ABC):
    """One joint measure of a release; a class for each kind.

    `kind`: its name in store keys, the ledger and cases; `label`: in EXPLAIN; `in_joint`: there as a part of what is
    drawn together, one of it and several. `is_count`: each coordinate counts rows or people; `is_of_people`: people.
    `value`: what is summed or counted distinct; None for COUNT and UNITS. `null_rows`: a PAIR carries
    per mask a third coordinate, W·(rows whose value is NULL). `distinct_limit`: P, the pairs of group and value
    of a unit that count.
    """

    kind: ClassVar[str]
    query: ClassVar[BoundingQuery] = BoundingQuery.SCALED
    label: ClassVar[str]
    in_joint: ClassVar[tuple[str, str]]
    is_count: ClassVar[bool] = False
    is_of_people: ClassVar[bool] = False

    value: Expr | None
    lattice: Lattice | None
    masks: tuple[Mask, ...]
    null_rows: bool
    distinct_limit: int
    bounding: Bounding

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """What is counted or summed, by coordinate of a mask where that is not the same value throughout."""
        return (self,)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expressions that rows are read for."""
        return () if self.value is None else (self.value,)

    @property
    def step(self) -> Fraction:
        """What 1 of a coordinate is in the values' own unit."""
        return Fraction(1) if self.lattice is None else self.lattice.step

    @property
    def said(self) -> tuple[object, ...]:
        """What the first coordinate of a mask counts or sums."""
        return (self.kind, 0, self.value, self.lattice)

    # --- the claim ------------------------------------------------------------------------------------------

    @property
    def reach(self) -> Steps:
        """Most that one row adds to the coordinates together."""
        return Steps(1)

    @property
    def added(self) -> Steps:
        """L1 sensitivity when a unit is added or removed."""
        return Steps(self.bounding.in_all * self.reach)

    @property
    def replaced_alone(self) -> Steps | None:
        """L1 sensitivity of a single coordinate without groups when a unit is replaced; None: twice `added`."""
        return None

    @property
    def denominator(self) -> int:
        """U: coordinates count fractions of a lattice unit, 1 / U, a power of two; 1 where nothing is scaled."""
        is_weighed = self.query is BoundingQuery.SCALED and not self.bounding.per_row
        return self.bounding.weight if is_weighed or self.is_clamped else 1

    @property
    def is_clamped(self) -> bool:
        """Whether who is pointed at is bounded by the norm of their counts, and not by rows (soundness.md 1.38)."""
        return False

    @property
    def cells(self) -> int:
        """G, of clamped counts: the number of cells, groups times masks."""
        return (self.bounding.clamped or 1) * len(self.masks)

    @property
    def most_in_cell(self) -> int:
        """How many rows of a person are counted in one cell: 2^20 or more, so that squares add up to `MAX_SQUARES`."""
        return 1 << ((MAX_SQUARES // self.cells).bit_length() - 1) // 2

    def _clamped_norm(self) -> int:
        """Return the L2 bound of clamped counts in 1/U: (R_a + R_b)·U + R_a·(⌈√G⌉ + 4); replaced: twice (1.38)."""
        assert self.bounding.of_two is not None
        first, most = self.bounding.of_two
        one = (first + most) * self.bounding.weight + first * (_root_above(self.cells) + 4)
        return (2 if self.bounding.replace_one else 1) * one

    @property
    def claim_unit(self) -> int:
        """What the claim is counted in: parts of a lattice unit, 1 / this."""
        return self.denominator

    @property
    def sensitivity(self) -> Parts:
        """L1, joint over groups and coordinates (soundness.md 1.1).

        Of k units together it is k times what one of them moves (soundness.md 1.19).
        """
        return Parts(self.bounding.together * self.of_one)

    @property
    def of_one(self) -> Parts:
        """The same for one unit. Replace-one is remove and add: twice, but for one coordinate without groups."""
        if self.is_clamped:
            return Parts(_root_above(self.cells) * self._clamped_norm())
        alone = None if self.bounding.grouped or len(self.masks) > 1 else self.replaced_alone
        if self.bounding.of_two is not None:
            return Parts((2 if self.bounding.replace_one else 1) * self._of_two(self.bounding.of_two, alone))
        if not self.bounding.replace_one:
            return Parts(self.added * self.denominator)
        return Parts((2 * self.added if alone is None else alone) * self.denominator)

    def _of_two(self, bounds: tuple[int, int], alone: int | None) -> int:
        """Return the L1 sensitivity of rows of two people, in lattice units (soundness.md 1.38).

        K times a row's reach. One coordinate without groups: R_a rows are replaced, each moving it by what one replaced
        row does, and R_b rows of who is pointed at go.
        """
        if alone is None:
            return self.added
        first, most = bounds
        return first * (alone // self.bounding.in_all) + most * self.reach

    @property
    def most_in_group(self) -> int:
        """Most of `added` in one group, in reaches (rows): 1 where enforced keys leave a unit one row in a group."""
        if self.bounding.of_two is not None:
            return self.added // self.reach
        is_single = self.bounding.per_row and self.bounding.numbered is None
        one = is_single or self.bounding.one_a_group
        return min(self.added // self.reach, 1) if one else self.added // self.reach

    @property
    def squared(self) -> int:
        """Squared L2 sensitivity when a unit is added or removed, in lattice units.

        What a unit adds to a group, x, is at most r·m with r the reach and m the most in a group; all of it at most
        r·n. So Σ x² <= r·m·Σ x <= r²·m·n, and r²·T² where a norm of the groups is T (1.36); within a group the
        coordinates' squares are at most that of their sum.
        """
        rows = (self.added // self.reach) * self.most_in_group
        return self.reach**2 * (self.bounding.capped(rows) if self.query is BoundingQuery.SCALED else rows)

    @property
    def has_one_sign(self) -> bool:
        """Whether what a unit adds is of one sign in all coordinates, whatever its rows hold."""
        return True

    @property
    def squared_sensitivity(self) -> int:
        """Σ change² over groups and coordinates, in the coordinates' own fractions, of `together` units (1.25)."""
        return self.bounding.together**2 * self.squared_of_one

    @property
    def squared_of_one(self) -> int:
        """The same for one unit.

        Replace-one is v' - v: with one sign |v' - v|² <= |v|² + |v'|², else (|v| + |v'|)²; and never more than L1².
        """
        if self.is_clamped:
            return self._clamped_norm() ** 2
        times = 1 if not self.bounding.replace_one else 2 if self.has_one_sign else 4
        squared = self.squared
        if self.bounding.of_two is not None and self.has_one_sign:
            first, most = self.bounding.of_two
            squared = self.reach**2 * ((first + most) ** 2 + first**2)
            times = 4 if self.bounding.replace_one else 1  # rows come too, so that no part has one sign
        return min(times * squared * self.denominator**2, self.of_one**2)

    def scale(self, epsilon: Fraction) -> Fraction:
        """Return the noise scale, in the coordinates' own fractions: sensitivity / epsilon."""
        return Fraction(self.sensitivity) / epsilon

    def law(self, epsilon: Fraction) -> Law:
        """Return the law of the noise that the claim asks for."""
        return Laplace(self.scale(epsilon))

    def gaussian(self, rho: Fraction) -> Law:
        """Return the law of Gaussian noise under which the claim costs `rho` (soundness.md 1.25)."""
        return Gaussian.for_rho(self.squared_sensitivity, rho)

    def drawn(self, loss: Loss) -> Law:
        """Return the law of a draw that costs so much, from the sensitivity in the norm that the law needs."""
        return self.law(loss.epsilon) if loss.rho is None else self.gaussian(loss.added)

    def choice_at(self, loss: Loss) -> Choice | None:
        """Return the choice that is made for each group at a cost; None: numbers are noised, and nothing is chosen."""
        return None

    def scale_at(self, loss: Loss, law: Law) -> Fraction:
        """Return the scale to show for a draw of some law at a cost, in coordinate units (1 / `denominator`)."""
        return law.scale

    def norm(self, change: Sequence[int]) -> int:
        """Return the norm of a change of one group's coordinates that `sensitivity` bounds: L1 unless overridden."""
        return sum(map(abs, change))

    def square(self, change: Sequence[int]) -> Fraction:
        """Return the squared norm of a change of one group's coordinates that `squared_sensitivity` bounds."""
        return Fraction(sum(one**2 for one in change))

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

    def key_of(self, part: int) -> tuple[object, ...]:
        """Return what coordinate `part` of a mask is to a store key (soundness.md 3.7).

        With one row per unit a coordinate does not depend on its neighbours, so that a sum asked alone and a sum from
        a pair are one measure when they are one number.
        """
        return (self.kind, part, self.value, self.lattice)

    @property
    def family_key(self) -> tuple[object, ...]:
        """What all its coordinates are to the key that groupings of the same measures share (soundness.md 3.8)."""
        return (self.kind, self.value, self.lattice, self.null_rows, self.masks)

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

    kind = "count"
    label = "count of rows"
    in_joint = ("count", "counts")
    is_count = True

    @property
    def is_clamped(self) -> bool:
        """Where a person can be in several cells: with a single cell the norm is the number of rows."""
        bounding = self.bounding
        if (
            bounding.clamped is None
            or bounding.of_two is None
            or not (bounding.grouped or len(self.masks) > 1)
        ):
            return False
        return self.cells <= _MAX_CELLS and bounding.of_two[1] <= _MAX_NORM

    @property
    def largest(self) -> int:
        """Most that is added up at once: a row's 1; where norms are cut, the count of a person's cell."""
        return self.most_in_cell if self.is_clamped else 1

    @property
    def replaced_alone(self) -> Steps:
        return Steps(self.bounding.in_all)

    def whole(self, sums: Sums) -> list[str]:
        return [sums.rows(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Present(Measurement):
    """Rows that have a value, beside sums of several values of which each may be NULL: R."""

    kind = "present"
    label = "count of values"
    in_joint = ("count", "counts")
    is_count = True

    @property
    def step(self) -> Fraction:
        return Fraction(1)

    @property
    def largest(self) -> int:
        return 1

    @property
    def said(self) -> tuple[object, ...]:
        return (self.kind, 0, self.value, None)

    def whole(self, sums: Sums) -> list[str]:
        return [sums.present(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Pair(Measurement):
    """Σ(z - L) and Σ(H - z), complementary sums (soundness.md 1.3): R·W, as (z - L) + (H - z) = W for a row."""

    kind = "pair"
    label = "complementary sums"

    @property
    def reach(self) -> Steps:
        return Steps(self.known_lattice.width)

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

    def key_of(self, part: int) -> tuple[object, ...]:
        if self.bounding.per_row and part == 0 and self.known_lattice.low == 0:
            return (Sum.kind, 0, self.value, self.lattice)
        return Measurement.key_of(self, part)

    def _without_value(self, sums: Sums, mask: Mask) -> str:
        return f"({self.reach} * ({sums.rows(self, mask)} - {sums.present(self, mask)}))"


@dataclass(frozen=True, slots=True)
class Sum(Measurement):
    """Σ z: R·B with B = max(|L|, |H|); replaced alone, R times from min(0, L) to max(0, H)."""

    kind = "sum"
    label = "sum"

    @property
    def has_one_sign(self) -> bool:
        return self.known_lattice.low >= 0 or self.known_lattice.high <= 0

    @property
    def reach(self) -> Steps:
        return Steps(self.known_lattice.reach)

    @property
    def replaced_alone(self) -> Steps:
        return Steps(
            self.bounding.in_all * (max(self.known_lattice.high, 0) - min(self.known_lattice.low, 0))
        )

    def whole(self, sums: Sums) -> list[str]:
        return [sums.total(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Centred(Measurement):
    """Σ u with u = 2z - (L + H), what a pair's difference is, for where the count is known (1.3): R·W, as |u| <= W."""

    kind = "centred"
    label = "centred sum"
    in_joint = ("sum", "sums")

    @property
    def has_one_sign(self) -> bool:
        return False

    @property
    def step(self) -> Fraction:
        """A sum of half steps from the middle."""
        return self.known_lattice.step * Fraction(1, 2)

    @property
    def reach(self) -> Steps:
        return Steps(self.known_lattice.width)

    def whole(self, sums: Sums) -> list[str]:
        middle = self.known_lattice.low + self.known_lattice.high
        return [
            f"(2 * {sums.total(self, mask)} - {middle} * {sums.present(self, mask)})" for mask in self.masks
        ]


@dataclass(frozen=True, slots=True)
class Moment(Measurement):
    """Σ(2u² - W²) with u = 2z - (L + H), soundness.md 1.4: R·W², as |2u² - W²| <= W²."""

    kind = "moment"
    label = "sum of centred squares"
    in_joint = ("squares", "squares")

    @property
    def has_one_sign(self) -> bool:
        return False

    @property
    def step(self) -> Fraction:
        """Of a sum of squares of distances from the middle: 2u² is 8 of a squared step."""
        return self.known_lattice.step**2 * Fraction(1, 8)

    @property
    def reach(self) -> Steps:
        return Steps(self.known_lattice.width**2)

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

    kind = "distinct"
    query = BoundingQuery.DISTINCT
    label = "distinct values"

    @property
    def added(self) -> Steps:
        return Steps(self.distinct_limit)

    @property
    def replaced_alone(self) -> Steps:
        return Steps(self.distinct_limit)

    def whole(self, sums: Sums) -> list[str]:
        return [sums.values(self, mask) for mask in self.masks]


@dataclass(frozen=True, slots=True)
class Units(Measurement):
    """Distinct units: C."""

    kind = "units"
    query = BoundingQuery.RANKED
    label = "count of people"
    is_count = True
    is_of_people = True

    @property
    def added(self) -> Steps:
        return Steps(self.bounding.groups)

    @property
    def most_in_group(self) -> int:
        return 1

    @property
    def replaced_alone(self) -> Steps:
        return Steps(1)

    def whole(self, sums: Sums) -> list[str]:
        return [sums.units(mask) for mask in self.masks]

    def key_of(self, part: int) -> tuple[object, ...]:
        is_row = self.bounding.per_row and self.bounding.of_two is None
        return (Count.kind, 0, None, None) if is_row else Measurement.key_of(self, part)


@dataclass(frozen=True, slots=True)
class Direct(Measurement):
    """The exact average itself, noised by its range, for teaching (soundness.md 1.1): C·W.

    With one row per unit, added to a group or removed from it, floor(W/2) + 1, by the proof there.
    """

    kind = "direct"
    query = BoundingQuery.RANKED
    label = "direct average"

    @property
    def in_a_group(self) -> int:
        """By how much one unit moves the average of a group that it enters or leaves."""
        return self.known_lattice.width // 2 + 1 if self.bounding.per_row else self.known_lattice.width

    @property
    def added(self) -> Steps:
        return Steps(self.in_a_group * (1 if self.bounding.per_row else self.bounding.groups))

    @property
    def sensitivity(self) -> Parts:
        """Of one coordinate W at most, however many units come and go: it stays in its interval."""
        most, width = self.bounding.together * self.of_one, self.known_lattice.width * self.denominator
        return Parts(min(most, width) if self._is_alone else most)

    @property
    def squared_sensitivity(self) -> int:
        return self._squared(self.bounding.together)

    @property
    def squared_of_one(self) -> int:
        return self._squared(1)

    @property
    def _is_alone(self) -> bool:
        return not self.bounding.grouped and len(self.masks) == 1

    def _squared(self, together: int) -> int:
        """n units come or go, each in C groups: a group with a of them moves by at most min(W, a·s) (soundness.md
        1.25)."""
        width, changed = self.known_lattice.width, together * (2 if self.bounding.replace_one else 1)
        moved = [Fraction(min(width, a * self.in_a_group) ** 2, a) for a in range(1, changed + 1)]
        groups = 1 if self.bounding.per_row else self.bounding.groups
        square = -(-changed * groups * max(moved) // 1)
        return int(min(square, width**2) if self._is_alone else square) * self.denominator**2

    @property
    def replaced_alone(self) -> Steps:
        return Steps(self.known_lattice.width)

    @property
    def empty_value(self) -> int:
        """The middle of the range."""
        return (self.known_lattice.low + self.known_lattice.high) // 2

    def whole(self, sums: Sums) -> list[str]:
        found = []
        for mask in self.masks:
            rows, above = sums.present(self, mask), self._above(sums, mask)
            twice, width = f"(2 * {above} + {rows})", self.known_lattice.width
            mean = sums.dialect.quotient(twice, f"NULLIF(2 * {rows}, 0)", wide=True, most=width)
            found.append(f"COALESCE({self.known_lattice.low} + {mean}, {self.empty_value})")
        return found


@dataclass(frozen=True, slots=True)
class Product(Measurement):
    """Σ u u' of two values with u = 2z - (L + H): R·W·W', as |u| <= W; only over rows that have both (1.22)."""

    kind = "product"
    label = "sum of centred products"
    in_joint = ("product", "products")

    sides: tuple[Measurement, Measurement]

    @property
    def values(self) -> tuple[Expr, ...]:
        return tuple(value for side in self.sides for value in side.values)

    @property
    def reach(self) -> Steps:
        left, right = self.sides
        return Steps(left.reach * right.reach)

    @property
    def largest(self) -> int:
        return 16 * max(max(side.known_lattice.width, side.known_lattice.reach) for side in self.sides) ** 2

    @property
    def step(self) -> Fraction:
        left, right = self.sides
        return left.step * right.step

    @property
    def said(self) -> tuple[object, ...]:
        return (self.kind, *(side.said for side in self.sides))

    def whole(self, sums: Sums) -> list[str]:
        left, right = self.sides
        found = []
        for mask in self.masks:
            # with u = 2a - W for a = z - L: u u' = 4aa' - 2W'a - 2Wa' + WW', in this type and not a side's
            a, b = (sums.typed(self, side._above(sums, mask)) for side in self.sides)
            products, rows = sums.products(self, mask), sums.rows(self, mask)
            v, w = left.known_lattice.width, right.known_lattice.width
            found.append(f"(4 * {products} - {2 * w} * {a} - {2 * v} * {b} + {v * w} * {rows})")
        return found


@dataclass(frozen=True, slots=True)
class Joint(Measurement):
    """Counts and sums over the same rows under one norm, drawn as vectors with box noise (soundness.md 1.22): R.

    The norm N of one group and mask is the largest ceil(|coordinate| / its own reach); N is summed over groups and
    masks. Each mask has one coordinate for each of `parts_of_mask`, which have the same masks as this.
    """

    kind = "box"
    label = "joint sums"

    parts_of_mask: tuple[Measurement, ...]

    @property
    def parts(self) -> tuple[Measurement, ...]:
        return self.parts_of_mask

    @property
    def values(self) -> tuple[Expr, ...]:
        return tuple(dict.fromkeys(value for part in self.parts_of_mask for value in part.values))

    @property
    def per_mask(self) -> int:
        return len(self.parts_of_mask)

    @property
    def reaches(self) -> tuple[int, ...]:
        """The most that one row adds to each coordinate of a mask."""
        return tuple(part.reach for part in self.parts_of_mask)

    @property
    def largest(self) -> int:
        return max(part.largest for part in self.parts_of_mask)

    @property
    def has_one_sign(self) -> bool:
        return False

    @property
    def squared(self) -> int:
        """Each coordinate by its reach: of k of them, each at most n·w in a group, k·Σ (n·w)²."""
        return self.per_mask * self.bounding.capped(self.added * self.most_in_group)

    @property
    def squared_of_one(self) -> int:
        times = 4 if self.bounding.replace_one else 1
        return times * self.squared * self.denominator**2

    def law(self, epsilon: Fraction) -> Law:
        return Box(self.scale(epsilon), self.reaches)

    def gaussian(self, rho: Fraction) -> Law:
        """Each coordinate costs its square by its own deviation, which is its reach times one for all."""
        return Gaussians(Gaussian.for_rho(self.squared_sensitivity, rho).scale, self.reaches)

    def square(self, change: Sequence[int]) -> Fraction:
        return sum(
            (Fraction(one, self.reaches[place % self.per_mask]) ** 2 for place, one in enumerate(change)),
            Fraction(0),
        )

    def norm(self, change: Sequence[int]) -> int:
        size, box = self.per_mask, Box(Fraction(1), self.reaches)
        return sum(box.norm(change[start : start + size]) for start in range(0, len(change), size))

    def whole(self, sums: Sums) -> list[str]:
        columns = [part.whole(sums) for part in self.parts_of_mask]
        return [column[index] for index in range(len(self.masks)) for column in columns]

    def key_of(self, part: int) -> tuple[object, ...]:
        """Each part by itself, whatever it is drawn together with."""
        return self.parts_of_mask[part].said

    @property
    def family_key(self) -> tuple[object, ...]:
        key = (self.kind, self.value, self.lattice, self.null_rows, self.masks)
        return (*key, tuple(part.said for part in self.parts))


def _root_above(number: int) -> int:
    return math.isqrt(number - 1) + 1


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

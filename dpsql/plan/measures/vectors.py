"""Vectors: the only things that are noised. Each is a few exact integers per group with one joint claim.

House rules (law L1; soundness.md 1.1):

1. The claim of a vector is joint: for each unit, Σ_groups Σ_coordinates |change| <= `sensitivity`.
   Every coordinate gets discrete Laplace noise of scale sensitivity / epsilon, drawn independently.
2. `masks` are disjoint row predicates: a row counts in at most one of them. Disjointness is by
   construction (truth assignments of the filters), never by declaration.
3. Each sensitivity is written with the figure it comes from: K = C·M is enforced by the printed rank
   and the printed joint clamp, W and B by the printed value clamp.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from ...relation.expressions import Expr
from ...relation.lattice import Lattice

__all__ = ["Bounding", "Kind", "Mask", "Vector", "sensitivity_of"]


class Kind(enum.Enum):
    """What a vector measures; per mask one coordinate, two for PAIR (and one more with NULL rows)."""

    COUNT = "count"  # rows in the mask
    PAIR = "pair"  # Σ(z - L) and Σ(H - z): complementary sums, soundness.md 1.3
    SUM = "sum"  # Σ z
    MOMENT = "moment"  # Σ(2u² - W²) with u = 2z - (L + H), soundness.md 1.4
    DISTINCT = "distinct"  # distinct values, soundness.md 1.1 and 1.9
    UNITS = "units"  # distinct units
    DIRECT = "direct"  # the exact average itself, noised by its range: teaching (soundness.md 1.1)


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction of predicates, each to be true or not to be true (false or NULL)."""

    terms: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class Bounding:
    """Contribution bounds of a release, as printed: M rows of a unit in a group, C groups of a unit.

    `per_row`: the engine enforces one row per unit, so M = C = 1 without an operator. `ranked`: C is
    enforced by a printed rank (else the domain has at most C groups). `replace_one`: neighbours.
    `grouped`: there are group keys.
    """

    rows: int
    groups: int
    per_row: bool
    ranked: bool
    replace_one: bool
    grouped: bool


@dataclass(frozen=True, slots=True)
class Vector:
    """One joint measure of a release.

    `value`: what is summed or counted distinct; None for COUNT and UNITS. `null_rows`: a PAIR carries
    per mask a third coordinate, W·(rows whose value is NULL). `distinct_limit`: d, values of a unit
    that count in one group. `sensitivity`: L1, in lattice units, joint over groups and coordinates.
    """

    kind: Kind
    value: Expr | None
    lattice: Lattice | None
    masks: tuple[Mask, ...]
    null_rows: bool
    distinct_limit: int
    sensitivity: int

    @property
    def per_mask(self) -> int:
        """Coordinates per mask."""
        return (3 if self.null_rows else 2) if self.kind is Kind.PAIR else 1

    @property
    def size(self) -> int:
        """Coordinates in all."""
        return self.per_mask * len(self.masks)

    @property
    def empty_value(self) -> int:
        """A coordinate's value over no rows: 0, and the middle of the range for DIRECT."""
        if self.kind is Kind.DIRECT and self.lattice is not None:
            return (self.lattice.low + self.lattice.high) // 2
        return 0

    def scale(self, epsilon: Fraction) -> Fraction:
        """Return the noise scale in lattice units: sensitivity / epsilon."""
        return Fraction(self.sensitivity) / epsilon


def sensitivity_of(
    kind: Kind, lattice: Lattice | None, masks: int, distinct_limit: int, bounding: Bounding
) -> int:
    """Return the L1 sensitivity of a vector under the bounding's neighbours (soundness.md 1.1).

    Add-remove, with K = C·M: COUNT K, PAIR K·W (per row (z-L) + (H-z) = W), SUM C·P with
    P = max(|min(0, M·L)|, |max(0, M·H)|) = M·B, MOMENT K·W² (|2u² - W²| <= W²), DISTINCT C·d, UNITS C,
    DIRECT C·W, but floor(W/2) + 1 for one row per unit (soundness.md 1.1).
    Replace-one: twice the above (remove and add); for a single coordinate without groups the tighter
    COUNT M, SUM P0 = max(M·H, 0) - min(M·L, 0), DISTINCT d, UNITS 1, DIRECT W.
    """
    m, c = bounding.rows, bounding.groups
    width = 0 if lattice is None else lattice.width
    single = not bounding.grouped and masks == 1
    if bounding.replace_one and single:
        low, high = (0, 0) if lattice is None else (lattice.low, lattice.high)
        alone = {
            Kind.COUNT: m,
            Kind.SUM: max(m * high, 0) - min(m * low, 0),
            Kind.DISTINCT: distinct_limit,
            Kind.UNITS: 1,
            Kind.DIRECT: width,
        }
        if kind in alone:
            return alone[kind]
    reach = 0 if lattice is None else lattice.reach
    added = {
        Kind.COUNT: c * m,
        Kind.PAIR: c * m * width,
        Kind.SUM: c * m * reach,
        Kind.MOMENT: c * m * width * width,
        Kind.DISTINCT: c * distinct_limit,
        Kind.UNITS: c,
        Kind.DIRECT: width // 2 + 1 if bounding.per_row and not bounding.replace_one else c * width,
    }[kind]
    return 2 * added if bounding.replace_one else added

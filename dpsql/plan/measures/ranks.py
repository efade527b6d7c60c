"""Values near a wanted rank: what MEDIAN, percentiles, MIN and MAX ask for (soundness.md 1.20).

Beside them the most frequent of a few known values, for MODE (1.21), and the grid of an owner's bound (3.10).

House rules:

1. The claim is about the score, in q-ths of a weight: one unit moves the misses of all candidates by at most
   `sensitivity`, summed over the groups; a choice of a group is then made with the whole epsilon.
2. A unit's weights sum to at most R·U, enforced by the printed division by its rows (law L9).
3. Everything here is a function of text, policy and epsilon: how many candidates there are, T, what is read.
4. Of MODE candidates are the declared values, or the whole numbers, dates and truth values inside the bounds: text and
   policy say which. Rows with another value count nowhere.
5. Its scores are weights of rows, as in 1.20: a unit's sum to at most R·U over all values and groups.

On the grid a person stands at the least place of the grid whose value is no less than their rows, so that those above
a value are those at later places. It is MAX over the places, a public number of persons further inside: people with
equal numbers of rows cost nothing, and a value that nobody reaches is as far off as that number.

The bar of a chosen value is the values at two fractions beside its own, drawn with it (soundness.md 1.21).

House rules of bars (`Ends`):

1. The fractions follow from text, policy, epsilon, level and a count that is released already: fixed before the charge.
2. A pair holds while each end misses its rank by no more than `rows`: whoever shows it asks the laws that are on them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from ...mechanisms import NANO, FlipChoice, Law, Rank, RankChoice, RankSplit, Window
from ...mechanisms.choice import HASH_BITS, clamp_of, log_above
from ...records import dataclass
from ...relation.catalog import Scalar
from ...relation.expressions import Expr
from .measurements import Bounding, BoundingQuery, Choice, Coord, Loss, Mask, Measurement, Steps, Sums

LEAST_SPLIT = 3
"""From so many fractions of the same rows on they are split: of two, two depths would cost what two choices do."""

MAX_FRACTIONS = 64
"""Most fractions of the same rows in one release."""

MAX_READ = 2**20
"""Most values of a group that are read: where more could be near the rank, candidates are several steps wide."""

_LARGEST_BITS = 62
"""Candidates are numbered in 64 bits."""

_LEAST_HASH_BITS = 8
"""Rows of one value are always spread over so many bits' candidates."""

_WEIGHT = 2**10
"""U: weights count fractions of a row, 1 / U, where a unit has many rows."""


class WeighedChoice(Measurement):
    """A choice whose scores are weights of rows: a unit's weigh R·U at most, over all groups."""

    __slots__ = ()

    query = BoundingQuery.RANK

    @property
    def unit(self) -> int:
        """U: the weight of a row of a unit with at most R of them."""
        return weight_unit(self.bounding)

    @property
    def claim_unit(self) -> int:
        """What the claim is counted in: parts of a row, 1 / this."""
        return self.unit

    @property
    def added(self) -> Steps:
        """R·U: what a unit weighs."""
        return Steps(self.bounding.in_all * self.unit)

    def whole(self, sums: Sums) -> list[str]:
        raise AssertionError("a choice is made from weights of rows, not from sums")

    @abstractmethod
    def choice(self, epsilon: Fraction) -> Choice:
        """Return the choice that is made for each group, or the choices."""

    def choosing(self, loss: Loss) -> Fraction:
        """Return the epsilon of a choice: by rank it costs epsilon²/8 of zCDP, a quarter of any pure draw's (1.25)."""
        return loss.epsilon if loss.rho is None else 2 * loss.epsilon

    def made_at(self, loss: Loss) -> Fraction:
        """Return the same for what has an equal part of it at each depth."""
        return self.choosing(loss)

    def choice_at(self, loss: Loss) -> Choice:
        return self.choice(self.made_at(loss))

    def drawn(self, loss: Loss) -> Law:
        return self.law(self.made_at(loss))

    def scale_at(self, loss: Loss, law: Law) -> Fraction:
        return self.scale(self.choosing(loss))


class Ranked(WeighedChoice):
    """Values of the lattice by their ranks among the rows, one for each of `shares`."""

    __slots__ = ()

    kind = "rank"

    @property
    @abstractmethod
    def shares(self) -> tuple[Fraction, ...]:
        """The fractions, one a coordinate."""

    def key_of(self, part: int) -> tuple[object, ...]:
        """A fraction, however many are asked for."""
        return (self.kind, 0, self.value, self.lattice, self.shares[part])


@dataclass(frozen=True, slots=True)
class RankMeasurement(Ranked):
    """One value of the lattice whose rank is near `share` of all rows; 0 is MIN, 1 is MAX.

    A unit with t rows that have a value weighs min(R, t) in all: each of them R·U div max(t, R), in 1 / U.
    """

    label = "choice by rank"

    share: Fraction

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The fractions, one a coordinate."""
        return (self.share,)

    @property
    def claim_unit(self) -> int:
        """What the claim is counted in: parts of a row, 1 / this."""
        return self.unit * self.share.denominator

    @property
    def added(self) -> Steps:
        """R·U·max(p, q - p): weight below or above a candidate moves q·less - p·n by q - p or by p."""
        p, q = self.share.numerator, self.share.denominator
        return Steps(self.bounding.in_all * self.unit * max(p, q - p))

    @property
    def replaced_alone(self) -> Steps | None:
        """R·U·q: what goes and what comes stand on opposite sides at worst."""
        return Steps(self.bounding.in_all * self.unit * self.share.denominator)

    def choice(self, epsilon: Fraction) -> RankChoice:
        """Return the choice that is made for each group."""
        return _choice(self.share, self.known_lattice.last, self.scale(epsilon))

    def law(self, epsilon: Fraction) -> Law:
        """Return what is known of the rank of what comes out, in rows."""
        rows = 2 * self.scale(epsilon) / self.claim_unit
        return Rank(rows, self.choice(epsilon).candidates)


@dataclass(frozen=True, slots=True)
class SplitMeasurement(Ranked):
    """Values near several fractions of the same rows, ascending: choices from disjoint parts, depth by depth.

    The claim is about weights: those of a unit are R·U at most, over all groups and, at each depth, over all parts.
    A choice in a part is then made at the depth's epsilon over R·U times max(p, q - p) of its own fraction.
    """

    label = "choices by rank"

    shares: tuple[Fraction, ...] = field()  # else the property would be its default

    @property
    def per_mask(self) -> int:
        return len(self.shares)

    @property
    def depths(self) -> int:
        """Choices that a row can have a part in, one after the other: ceil(log2(k + 1)) of k fractions."""
        return len(self.shares).bit_length()

    @property
    def root_of_depths(self) -> Fraction:
        """√D, rounded down to 10^-9."""
        return Fraction(math.isqrt(self.depths * NANO**2), NANO)

    def made_at(self, loss: Loss) -> Fraction:
        """Return the epsilon that the depths share: of rho a depth's equal part is 1 / √D of epsilon (1.25)."""
        return self.choosing(loss) * (1 if loss.rho is None else self.root_of_depths)

    def choice(self, epsilon: Fraction) -> RankSplit:
        """Return the choices that are made for each group; each depth has an equal part of epsilon."""
        return split_of(self.shares, self.known_lattice.last, self.scale(epsilon) * self.depths)

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of the rank of each of what comes out, in rows."""
        split = self.choice(epsilon)
        return Rank(split.rows_off() / self.unit, split.candidates * self.depths)


def weight_unit(bounding: Bounding) -> int:
    """Return U, the weight of a row of a unit with at most R of them."""
    return 1 if bounding.per_row else _WEIGHT


@lru_cache(maxsize=1024)
def split_of(shares: tuple[Fraction, ...], last: int, scale: Fraction) -> RankSplit:
    """Return choices at several fractions; `last`: the last candidate's number. `scale`: a unit's weight times the
    depths, over epsilon."""
    shift, bits = max(0, last.bit_length() + HASH_BITS - _LARGEST_BITS), HASH_BITS
    while True:
        split = RankSplit(shares, last, shift, scale, bits)
        if split.most_read <= MAX_READ:
            return split
        shift, bits = (shift, bits - 1) if bits > _LEAST_HASH_BITS else (shift + 1, bits)


@lru_cache(maxsize=1024)
def _choice(share: Fraction, last: int, scale: Fraction) -> RankChoice:
    """Return a choice; `last`: the number of the last candidate; `scale`: the score's sensitivity / epsilon.

    A row that is read has a weight of at least 1 and stands within T of the wanted rank, but for the two at the ends:
    2T/q + 2 of them at most, and no more than there are candidates.
    """
    p, q = share.numerator, share.denominator
    shift = 0
    while True:
        candidates = (last >> shift) + 1
        clamp = clamp_of(2 * scale, candidates)
        if min(candidates, 2 * clamp // q + 2) <= MAX_READ:
            break
        shift += 1
    inside = math.ceil(2 * scale * log_above(Fraction(20 * candidates)))
    offset = {Fraction(0): inside, Fraction(1): -inside}.get(share, 0)
    return RankChoice(candidates, shift, p, q, offset, clamp, 1 / (2 * scale))


@dataclass(frozen=True, slots=True)
class ModeMeasurement(WeighedChoice):
    """The number of a candidate whose rows are nearly the most, by permute-and-flip."""

    kind = "mode"
    label = "choice of a value"

    candidates: tuple[Scalar, ...]

    def choosing(self, loss: Loss) -> Fraction:
        """Return the epsilon of a choice: permute-and-flip costs what any pure draw does (1.25)."""
        return loss.epsilon

    def key_of(self, part: int) -> tuple[object, ...]:
        return (*Measurement.key_of(self, part), self.candidates)

    def choice(self, epsilon: Fraction) -> FlipChoice:
        """Return the choice that is made for each group."""
        return FlipChoice(len(self.candidates), 1 / self.scale(epsilon))

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of how many rows fewer the chosen value has than the most frequent one."""
        return Rank(self.scale(epsilon) / self.claim_unit, len(self.candidates))


GRID = (
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000,
)  # fmt: skip
"""What comes out, whatever the data."""

_ODDS = 20
"""Prior weights apart, a value that nobody reaches has so much less weight than one that enough people are above."""
_ROOT_OF_TWO = Fraction(141_421_357, 10**8)


@dataclass(frozen=True, slots=True)
class GridChoice(RankChoice):
    """A choice among the places of `GRID`, of which each misses by a public number more."""

    more: tuple[int, ...] = field(repr=False)

    def intervals(self, window: Window) -> tuple[list[int], list[int]]:
        counts, misses = RankChoice.intervals(self, window)
        each = (miss for count, miss in zip(counts, misses, strict=True) for _ in range(count))
        return [1] * self.candidates, [miss + more for miss, more in zip(each, self.more, strict=True)]


@dataclass(frozen=True, slots=True)
class ClipMeasurement(RankMeasurement):
    """The largest place but for so many persons: `left`, and what keeps values out that hardly anybody reaches.

    A value v has the prior weight 1 / v², as the square of the noise that it costs grows by v².
    """

    left: int

    def choice(self, epsilon: Fraction) -> GridChoice:
        largest, scale = RankMeasurement.choice(self, epsilon), 2 * self.scale(epsilon)
        assert largest.shift == 0
        wanted = math.ceil(scale * log_above(Fraction(_ODDS))) + self.left * self.claim_unit
        more = tuple(math.floor(2 * scale * log_above(Fraction(value))) for value in GRID)
        return GridChoice(
            largest.candidates, 0, largest.p, largest.q, -wanted, largest.clamp, largest.gamma, more
        )

    def law(self, epsilon: Fraction) -> Rank:
        """Return what is known of the rank: a value may miss by as much more as its prior weight makes up for."""
        return Rank(2 * self.scale(epsilon) / self.claim_unit, len(GRID) * GRID[-1] ** 2)


def people_above(largest: RankMeasurement, left: int) -> ClipMeasurement:
    """Return the choice that stays `left` persons further inside than a MAX over the places."""
    known = {one.name: getattr(largest, one.name) for one in fields(largest)}
    return ClipMeasurement(**known, left=left)


def left_above(epsilon: Fraction, together: int) -> int:
    """Return how many persons the best bound leaves above it, for counts at an epsilon (Amin et al. 2019).

    One row more in the bound costs every count together·√2/epsilon of noise, and saves each of those above a row.
    """
    return math.ceil(_ROOT_OF_TWO * together / epsilon)


COUNT_MISSES = Fraction(1, 10)
"""Which part of all misses is left to the count."""
END_MISSES = Fraction(9, 20)
"""Which part is left to each end."""
_MORE_ROWS = 2
"""Between the ways to say which value a quantile is: smallest with that share, or interpolated."""
_WEIGHED = Fraction(15, 16)
"""Least weight, of a row counted, of a person who has many: of up to 64 times what counts, rounded down to 1 / 1024."""
_GRID = 10_000
"""Fractions have at most four decimals, as those that can be asked for."""

BarKey = tuple[Expr, tuple[Mask, ...]]
"""Whose values: the expression and its filter."""
Bars = Mapping[BarKey, "ValueBar"]
"""Of which chosen values there are bars, and how wide."""
NO_BARS: Bars = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ValueBar:
    """`half`: how far the outer fractions are from the asked one; `rows`: by how much each may miss its rank."""

    half: Fraction
    rows: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The coordinates at both ends of a value's bar; None: there the bar goes to the end of what values may be.

    `lowest`, `highest`: those, in steps of the lattice. `rows`: see `ValueBar`. `parts`: a chosen value stands for all
    that are apart from it by at most this part of its size; None: for itself.
    """

    low: Coord | None
    high: Coord | None
    lowest: int
    highest: int
    rows: int
    parts: int | None = None

    def least(self, chosen: int) -> int:
        """Return the least value that a chosen one may stand for."""
        return chosen if self.parts is None else max(self.lowest, chosen - abs(chosen) // self.parts)

    def most(self, chosen: int) -> int:
        """Return the largest value that a chosen one may stand for."""
        return chosen if self.parts is None else min(self.highest, chosen + abs(chosen) // self.parts)


def around(shares: Sequence[Fraction], half: Fraction) -> tuple[Fraction, ...]:
    """Return fractions with those that stand on either side of each, as far as they are inside."""
    outer = (share + way * half for share in shares if 0 < share < 1 for way in (-1, 1))
    return tuple(sorted({*shares, *(share for share in outer if 0 < share < 1)}))


def bar_of(
    split: SplitMeasurement, shares: Sequence[Fraction], rows: int, level: Fraction,
    law_of: Callable[[SplitMeasurement], Law],
) -> ValueBar | None:  # fmt: skip
    """Return the least bar that holds at a level; None: there are too few rows for any, or too many fractions.

    `split`: the measurement, with whatever fractions; `shares`: those asked for. `rows`: how many there are at least.
    `law_of`: what is known of the ranks of a measurement's values. It depends on the fractions, so a bar is looked for
    that is wide enough for its own: to be so is all that a bar needs, whichever of them is found.
    """
    weight = rows if split.bounding.per_row else rows * _WEIGHED

    def fits(half: int) -> bool:
        wide = replace(split, shares=around(shares, Fraction(half, _GRID)))
        off = law_of(wide).half_width(END_MISSES * (1 - level)) + _MORE_ROWS
        return off * _GRID <= half * weight

    widest = max(max(share, 1 - share) for share in shares if 0 < share < 1)
    if len(shares) * 3 > MAX_FRACTIONS:
        return None
    low, high = 0, 1
    while not fits(high):
        low, high = high, 2 * high
        if Fraction(high, _GRID) >= 2 * widest:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    half = Fraction(high, _GRID)
    return ValueBar(half, math.floor(half * weight) - _MORE_ROWS) if half < widest else None

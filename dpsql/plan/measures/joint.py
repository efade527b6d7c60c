"""Which aggregates are answered from joint sums: counts and sums of the same rows, drawn together (soundness.md 1.22).

House rules:

1. A joint measurement holds aggregates of one set of rows: those on which the same values are there. So one count is
   theirs all, and rows that lack one of two values are in none of their sums.
2. Filters are masks of it, as everywhere (1.5); a filter says which rows have values, so that `t` counts these.
3. Of sums of one value each, several values go together though each is NULL in other rows: each that may be NULL has a
   count of its own, and what it lacks adds nothing (`add_together`).

COVAR, CORR and REGR are formulas of two values' joint sums. Postgres' meaning: rows where both values are there,
arguments in the order (Y, X). All are total: no division by zero, whatever was released, and NULL by noisy numbers and
public ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce

from ...records import dataclass
from ...relation.aggregates import check_printers
from ...relation.expressions import Expr
from ...relation.intervals import Environment, Lattice, lattice_of
from ...relation.types import SqlType
from .formulas import Formula, HalfOf, Linear, double, of_values
from .measurements import Bounding, Centred, Count, Joint, Mask, Measurement, Moment, Present, Product
from .normal_form import (
    NormalizedAggregate,
    both,
    masks_of,
    present,
)

_MAX_MASKS = 16

_Wanted = tuple[int, Expr | None]
"""An aggregate's number, and the predicate of the rows that it takes in."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Where an aggregate's numbers stand: the joint measurement, and the filter whose masks they are of."""

    number: int
    rows: Expr | None


@dataclass
class _Cluster:
    """Aggregates of the rows on which `there` holds: whether squares are summed too, by value; products, by pair."""

    there: Expr | None
    values: dict[Expr, bool] = field(default_factory=dict)
    products: dict[tuple[Expr, Expr], None] = field(default_factory=dict)
    wanted: list[_Wanted] = field(default_factory=list)

    def take(self, want: NormalizedAggregate) -> None:
        """Take in what an aggregate is made of."""
        for value, power in zip(want.values, want.needs.powers, strict=True):
            if power:
                self.values[value] = self.values.get(value, False) or power > 1
        if want.needs.product:
            self.products[(want.values[0], want.values[1])] = None


def add_joints(
    add: Callable[[Measurement], int],
    wanted: Sequence[NormalizedAggregate],
    env: Environment,
    bounding: Bounding,
    *,
    every: bool,
    squared: bool = False,
) -> dict[int, Joined]:
    """Add joint measurements for what they answer, and return by aggregate where it stands.

    Beside what needs squares or products stands what else is asked of the same rows; with `every` all that could be
    answered so, as parts of what may be stored, over lattices as for squares if `squared`.
    """
    found: dict[int, Joined] = {}
    for cluster in _clusters(wanted, env, every=every):
        fine = not (squared or cluster.products or any(cluster.values.values()))
        lattices = {value: lattice_of(value, env, squared=not fine) for value in cluster.values}
        known = {value: one for value, one in lattices.items() if one is not None and one.width}
        is_of_pairs = any(wanted[index].is_of_pair for index, _ in cluster.wanted)
        if len(known) < len(lattices) and not is_of_pairs:
            continue  # of values that are constant only the rows are counted
        for masks, members in _split(cluster):
            number = add(_joint(cluster, known, tuple(masks), bounding))
            found |= {index: Joined(number, rows) for index, rows in members}
    return found


def add_together(
    add: Callable[[Measurement], int],
    wanted: Sequence[NormalizedAggregate],
    env: Environment,
    bounding: Bounding,
    *,
    with_nulls: bool,
) -> dict[int, Joined]:
    """Add one measurement for all sums of one value each, and for the rows counted beside them; return where each
    stands.

    `with_nulls`: those of values that may be NULL too. Of a value that is constant nothing is summed, and there are at
    most as many masks as a measurement takes: else it is left to others.
    """
    squared: dict[Expr, bool] = {}
    for want in wanted:
        if want.is_of_value and want.value is not None:
            squared[want.value] = squared.get(want.value, False) or want.is_spread
    lattices = {value: lattice_of(value, env, squared=squares) for value, squares in squared.items()}
    known = {
        value: one
        for value, one in lattices.items()
        if one is not None and one.width and (with_nulls or present(value, env) is None)
    }
    joined = {
        index: want.filter for index, want in enumerate(wanted) if want.value in known and want.is_of_value
    }
    joined |= {index: want.filter for index, want in enumerate(wanted) if want.counts_rows}
    filters = list(dict.fromkeys(rows for rows in joined.values() if rows is not None))
    rest = None in joined.values()
    found = masks_of(filters, rest, _MAX_MASKS) if known else None
    if found is None:
        return {}
    masks = tuple(found)
    nullable = {value for value in known if present(value, env) is not None}
    parts: list[Measurement] = []
    if len(nullable) < len(known) or any(wanted[index].counts_rows for index in joined):
        parts.append(Count(None, None, masks, False, 0, bounding))
    for value, lattice in known.items():
        kinds = [Present] * (value in nullable) + [Centred] + [Moment] * squared[value]
        parts += [kind(value, lattice, masks, False, 0, bounding) for kind in kinds]
    number = add(Joint(None, None, masks, False, 0, bounding, tuple(parts)))
    return {index: Joined(number, rows) for index, rows in joined.items()}


def _clusters(wanted: Sequence[NormalizedAggregate], env: Environment, *, every: bool) -> list[_Cluster]:
    """Return what goes together; a count goes where the very rows it counts are summed."""
    clusters: dict[Expr | None, _Cluster] = {}
    for want in wanted:
        if want.is_spread or want.is_of_pair or (every and want.is_of_value):
            there = _there(want, env)
            clusters.setdefault(there, _Cluster(there)).take(want)
    for index, want in enumerate(wanted):
        found = clusters.get(_there(want, env)) if want.values else None
        is_sum = want.is_of_value and found is not None and set(want.values) <= found.values.keys()
        if found is not None and (want.is_of_pair or is_sum):
            found.wanted.append((index, both(want.filter, found.there)))
    for index, want in enumerate(wanted):
        if want.counts_rows:
            _place_count(clusters, (index, want.filter), every=every)
    return list(clusters.values())


def _place_count(clusters: dict[Expr | None, _Cluster], count: _Wanted, *, every: bool) -> None:
    for cluster in clusters.values():
        if any(rows == count[1] for _, rows in cluster.wanted):
            cluster.wanted.append(count)
            return
    if every and count[1] not in clusters:
        clusters[count[1]] = _Cluster(None, wanted=[count])


def _there(want: NormalizedAggregate, env: Environment) -> Expr | None:
    """Return the predicate that an aggregate's values are there; None: they always are."""
    return reduce(both, (present(value, env) for value in want.values), None)


def _split(cluster: _Cluster) -> Iterator[tuple[list[Mask], list[_Wanted]]]:
    """Yield the masks of one measurement each, with whose they are: of all filters together, or filter by filter."""
    filters = list(dict.fromkeys(rows for _, rows in cluster.wanted if rows is not None))
    rest = any(rows is None for _, rows in cluster.wanted)
    together = masks_of(filters, rest, _MAX_MASKS)
    if together is not None:
        yield together, cluster.wanted
        return
    for chosen in dict.fromkeys(rows for _, rows in cluster.wanted):
        masks = [Mask(())] if chosen is None else [Mask(((chosen, True),))]
        yield masks, [(index, rows) for index, rows in cluster.wanted if rows == chosen]


def _joint(
    cluster: _Cluster, lattices: dict[Expr, Lattice], masks: tuple[Mask, ...], bounding: Bounding
) -> Measurement:
    """Return the measurement, a count where no more is asked for; of what has one value alone nothing is summed."""

    def part(kind: type[Measurement], value: Expr | None = None) -> Measurement:
        lattice = None if value is None else lattices[value]
        return kind(value, lattice, masks, False, 0, bounding)

    parts = [part(Count)]
    for value, squares in cluster.values.items():
        if value in lattices:
            parts.append(part(Centred, value))
            parts += [part(Moment, value)] if squares else []
    for pair in cluster.products:
        if all(value in lattices for value in pair):
            sides = (part(Centred, pair[0]), part(Centred, pair[1]))
            parts.append(Product(None, None, masks, False, 0, bounding, sides))
    return Joint(None, None, masks, False, 0, bounding, tuple(parts)) if parts[1:] else parts[0]


_KNOWN = "{vx} > 0e0 AND {vy} > 0e0"
_VALUES = {
    "covar_pop": "({unit} * {c})",
    "covar_samp": "({unit} * least({n} / ({n} - 1e0), 2e0) * {c})",
    "corr": f"CASE WHEN {_KNOWN} THEN {{r}} END",
    "regr_slope": "CASE WHEN {steep} THEN {slope} END",
    "regr_intercept": "CASE WHEN {steep} THEN {y} - {slope} * {x} END",
    "regr_r2": f"CASE WHEN {_KNOWN} THEN {{r}} * {{r}} WHEN {{vx}} > 0e0 THEN 1e0 END",
    "regr_sxx": "({xx} * {n} * {vx})",
    "regr_syy": "({yy} * {n} * {vy})",
    "regr_sxy": "({unit} * {n} * {c})",
}
"""Function -> its value as SQL, of what `Bivariate` names. REGR_COUNT is a count, REGR_AVGX and REGR_AVGY averages."""

_DEVIATIONS = 3
"""A slope is NULL where the variance of X is below so many standard deviations of its own noise."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One of the two: Σu and Σ(2u² - W²) with u = 2z - (L + H), what a step is, and the middle in its own unit."""

    total: Linear
    squares: Linear
    width: int
    step: Fraction
    middle: Fraction

    def variance(self, mean: str, n: str) -> str:
        """Return SQL of the variance of u among `n` rows, within [0, W²]."""
        most = f"{self.width**2}e0"
        return (
            f"greatest(least(({self.squares.double()} / {n} + {most}) / 2e0 - {mean} * {mean}, {most}), 0e0)"
        )

    def centre(self, mean: str) -> str:
        """Return SQL of the mean of the values, in their own unit and within their bounds."""
        clamped = f"greatest(least({mean}, {self.width}e0), -{self.width}e0)"
        return f"({double(self.middle)} + {double(self.step / 2)} * {clamped})"


@dataclass(frozen=True, slots=True)
class Bivariate(Formula):
    """A function of n, Σu_y, Σu_x, their squares and Σ u_y u_x.

    With n at least 1 (2 for a sample): means m = Σu / n, variances v = (squares / n + W²) / 2 - m² in [0, W²],
    covariance c = product / n - m_y m_x in ±W_y W_x; in units of (half steps)².
    """

    function: str
    count: Linear
    y: Variable
    x: Variable
    product: Linear

    @property
    def sums(self) -> tuple[Linear, ...]:
        return (self.count, self.y.total, self.y.squares, self.x.total, self.x.squares, self.product)

    @property
    def covariance(self) -> tuple[Linear, Linear, Linear, Linear]:
        """What the covariance's numerator is noised by, at the four corners of the values: times n, in own units."""
        corners = []
        for y in (self.y.width, -self.y.width):
            for x in (self.x.width, -self.x.width):
                moved = self.product.plus(self.y.total.times(Fraction(-x)))
                moved = moved.plus(self.x.total.times(Fraction(-y))).plus(self.count.times(Fraction(x * y)))
                corners.append(moved.times(abs(self.y.step * self.x.step) / 4))
        return (corners[0], corners[1], corners[2], corners[3])

    def widest(self, half: HalfOf) -> tuple[Fraction, bool]:
        return max(map(half, self.covariance)), True

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        y, x = self.y, self.x
        n = f"greatest({self.count.double()}, {'2e0' if self.function == 'covar_samp' else '1e0'})"
        my, mx = (f"({one.total.double()} / {n})" for one in (y, x))
        vy, vx = y.variance(my, n), x.variance(mx, n)
        most, sign = f"{y.width * x.width}e0", "-" if y.step * x.step < 0 else ""
        c = f"greatest(least({self.product.double()} / {n} - {my} * {mx}, {most}), -{most})"
        least = f"{_DEVIATIONS}e0 * sqrt({noise[0] / 4!r} + {4 * noise[1]!r} * {mx} * {mx}) / {n}"
        value = _VALUES[self.function].format(
            n=n, c=c, vy=vy, vx=vx, y=y.centre(my), x=x.centre(mx),
            unit=double(y.step * x.step / 4), yy=double(y.step**2 / 4), xx=double(x.step**2 / 4),
            r=f"greatest(least({sign}{c} / sqrt(greatest({vx} * {vy}, 1e-300)), 1e0), -1e0)",
            slope=f"({double(y.step / x.step)} * {c} / greatest({vx}, 1e-300))",
            steep=f"{vx} > 0e0 AND {vx} >= {least}",
        )  # fmt: skip
        return of_values(self.count, value)


check_printers(_VALUES, lambda row: row.is_paired and sum(row.needs.powers) > 1)

"""Formulas: what an aggregate is, computed from released coordinates. Post-processing, hence free.

Each prints itself as one scalar SQL expression for the sealed engine over columns m0, m1, …; all are
total: no division by zero, whatever was released. What is of values, and no count or sum, is NULL where the noisy
count of them is zero or less (soundness.md 1.3, 1.4, 1.22).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

from ...records import dataclass
from ...relation.aggregates import check_printers
from ...relation.calendar import time_text
from ...relation.catalog import Scalar
from ...relation.expressions import Literal
from ...relation.types import Kind, SqlType
from ..dialects.quote import literal, text
from .measurements import Coord
from .ranks import Ends


class Formula(ABC):
    """What an aggregate is, of coordinates and constants."""

    __slots__ = ()

    @property
    @abstractmethod
    def sums(self) -> tuple[Linear, ...]:
        """The weighted sums of coordinates that it is made of."""

    @property
    def coordinates(self) -> tuple[Coord, ...]:
        """The coordinates it reads, in order."""
        return tuple(sorted({one for part in self.sums for one, _ in part.terms}))

    @property
    def compared(self) -> Linear | None:
        """The sum whose noise says how good a set of measurements is; None: a choice, as good as one noise."""
        return self.sums[0]

    @abstractmethod
    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        """Return the SQL of its value: BIGINT for integer types, DOUBLE for all others.

        `noise`: the variances of the noise on the squares and on the sum of X, where it is of two values.
        """

    def added(self, name: str, type_: SqlType) -> tuple[str, str] | None:
        """Return SQL of what is added up over cells, and of its sum, a column `name`; None: its coordinates are."""
        return None

    def widest(self, half: HalfOf) -> tuple[Fraction, bool]:
        """Return how far off it is where its sums are by `half`; True: at most, and to be divided by the rows.

        An average or a variance is off by the noise on a sum of measures that depends on the average itself: the
        widest is at an end of its range.
        """
        raise AssertionError("of a chosen value the rank is known")


HalfOf = Callable[["Linear"], Fraction]
"""The half-width of the noise on a sum of coordinates."""


@dataclass(frozen=True, slots=True)
class Linear(Formula):
    """constant + Σ weight · coordinate. `grid`: what all exact values of a count or sum are multiples of."""

    terms: tuple[tuple[Coord, Fraction], ...]
    constant: Fraction
    grid: Fraction | None = field(default=None, compare=False, kw_only=True)

    @property
    def sums(self) -> tuple[Linear, ...]:
        return (self,)

    @property
    def by_measure(self) -> dict[int, dict[int, Fraction]]:
        """The weights by measurement and place in it."""
        found: dict[int, dict[int, Fraction]] = {}
        for coordinate, weight in self.terms:
            found.setdefault(coordinate.measure, {})[coordinate.place] = weight
        return found

    def times(self, factor: Fraction) -> Linear:
        """Return factor times this."""
        return Linear(tuple((i, weight * factor) for i, weight in self.terms), self.constant * factor)

    def plus(self, other: Linear) -> Linear:
        """Return the sum, one term per coordinate."""
        weights = dict(self.terms)
        for index, weight in other.terms:
            weights[index] = weights.get(index, Fraction(0)) + weight
        kept = tuple((index, weight) for index, weight in sorted(weights.items()) if weight)
        return Linear(kept, self.constant + other.constant)

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        whole = all(weight == 1 for _, weight in self.terms) and abs(self.constant) < 2**62
        if not _is_whole(type_):
            return self.double()
        if whole and self.constant.denominator == 1:
            return self.integer()
        return f"TRY_CAST(round_even({self.double()}, 0) AS BIGINT)"

    def double(self) -> str:
        """Print it in doubles, each weight as multiply-then-divide, so that 1234 · 1/100 is 12.34."""
        parts = []
        for coordinate, weight in self.terms:
            term = f"CAST({coordinate.column} AS DOUBLE)"
            if weight.numerator != 1:
                term = f"({term} * {weight.numerator}e0)"
            if weight.denominator != 1:
                term = f"({term} / {weight.denominator}e0)"
            parts.append(term)
        if self.constant or not parts:
            parts.append(double(self.constant))
        return parts[0] if len(parts) == 1 else "(" + " + ".join(parts) + ")"

    def integer(self) -> str:
        """Print the sum of its coordinates and its constant, in integers; NULL where 64 bits do not hold it."""
        parts = [f"CAST({coordinate.column} AS HUGEINT)" for coordinate, _ in self.terms]
        if self.constant or not parts:
            parts.append(f"CAST({self.constant.numerator} AS HUGEINT)")
        return f"TRY_CAST(TRY({' + '.join(parts)}) AS BIGINT)"

    def within(self, sql: str) -> str:
        """Return a number of its kind as SQL, where it has ends between them."""
        return sql

    def added(self, name: str, type_: SqlType) -> tuple[str, str] | None:
        if self.grid is None:
            return None
        return print_part(self, type_, self.grid), print_parts(name, type_, self.grid)

    def widest(self, half: HalfOf) -> tuple[Fraction, bool]:
        return half(self), False


@dataclass(frozen=True, slots=True)
class Within(Linear):
    """clamp(constant + Σ weight · coordinate, lowest, highest), for what cannot be elsewhere; no `highest`: no end."""

    lowest: int
    highest: int | None

    @property
    def free(self) -> Linear:
        """The same without ends."""
        return Linear(self.terms, self.constant)

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        return self.within(self.free.sql(type_))

    def within(self, sql: str) -> str:
        below = sql if self.highest is None else f"least({sql}, {self.highest})"
        return f"greatest({below}, {self.lowest})"


@dataclass(frozen=True, slots=True)
class Average(Formula):
    """clamp(middle + difference / max(1, count), lowest, highest), NULL unless count > 0: soundness.md 1.3."""

    difference: Linear
    count: Linear
    middle: Fraction
    lowest: Fraction
    highest: Fraction

    @property
    def sums(self) -> tuple[Linear, ...]:
        return (self.count, self.difference)

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        value = f"({double(self.middle)} + {self.difference.double()} / greatest({self.count.double()}, 1e0))"
        return of_values(
            self.count, f"greatest(least({value}, {double(self.highest)}), {double(self.lowest)})"
        )

    def widest(self, half: HalfOf) -> tuple[Fraction, bool]:
        reach = (self.highest - self.lowest) / 2
        return max(half(self.difference.plus(self.count.times(way * reach))) for way in (-1, 1)), True


@dataclass(frozen=True, slots=True)
class Variance(Formula):
    """(step²/4)·(E2 - (difference/n)²) with E2 = (moment/n + W²)/2, clamped to its range, NULL unless count > 0:
    soundness.md 1.4.

    `moment` is Σ(2u² - W²), `difference` Σu in half-steps, u = 2z - (L + H); `function` says which of the
    four forms.
    """

    moment: Linear
    difference: Linear
    count: Linear
    width: int
    step: Fraction
    function: str

    @property
    def sums(self) -> tuple[Linear, ...]:
        return (self.count, self.moment, self.difference)

    @property
    def is_sample(self) -> bool:
        """Whether n - 1 divides, of n rows."""
        return self.function.endswith("samp")

    @property
    def is_root(self) -> bool:
        """Whether it is the root of the variance."""
        return self.function.startswith("stddev")

    @property
    def least_rows(self) -> int:
        """The fewest rows that have one."""
        return 2 if self.is_sample else 1

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        if self.width == 0:
            return of_values(self.count, "CAST(0 AS DOUBLE)")
        count = f"greatest({self.count.double()}, {self.least_rows}e0)"
        squares = f"(({self.moment.double()} / {count} + {self.width**2}e0) / 2e0)"
        mean = f"({self.difference.double()} / {count})"
        value = f"({double(self.step**2 / 4)} * ({squares} - {mean} * {mean}))"
        top = self.step**2 * self.width**2 / 4
        if self.is_sample:
            value, top = f"({value} * {count} / ({count} - 1e0))", top * 2
        value = f"greatest(least({value}, {double(top)}), 0e0)"
        return of_values(self.count, f"sqrt({value})" if self.is_root else value)

    def widest(self, half: HalfOf) -> tuple[Fraction, bool]:
        squares, spread = self.moment.times(Fraction(1, 2)), self.difference.times(Fraction(2 * self.width))
        widest = max(half(squares.plus(spread.times(Fraction(way)))) for way in (-1, 1))
        return self.step**2 / 4 * widest, True


@dataclass(frozen=True, slots=True)
class Chosen(Formula):
    """step · coordinate, a value of a lattice that was chosen; without a coordinate the one value there is, or none.

    `ends`: the values of its bar, where they are drawn with it.
    """

    coordinate: Coord | None
    step: Fraction
    constant: Fraction | None = Fraction(0)
    ends: Ends | None = None

    @property
    def sums(self) -> tuple[Linear, ...]:
        terms = () if self.coordinate is None else ((self.coordinate, self.step),)
        return (Linear(terms, self.constant or Fraction(0)),)

    @property
    def compared(self) -> Linear | None:
        return None

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        if self.constant is None:
            return "NULL"
        (value,) = self.sums
        is_moment = type_.is_temporal or type_.kind is Kind.TIME
        return _moment(value.integer(), type_) if is_moment else value.sql(type_)


@dataclass(frozen=True, slots=True)
class ChosenOf(Chosen):
    """The value with the number that a coordinate says, of a few known ones."""

    values: tuple[Scalar, ...] = ()

    def sql(self, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
        """A temporal value is days or microseconds, or ISO text."""
        assert self.coordinate is not None
        carried = {
            Kind.TEXT: "VARCHAR",
            Kind.BOOLEAN: "BOOLEAN",
            Kind.DATE: "DATE",
            Kind.TIMESTAMP: "TIMESTAMP",
            Kind.TIME: "TIME",
        }.get(type_.kind, "BIGINT" if type_.is_integer else "DOUBLE")
        cases = " ".join(
            f"WHEN {place} THEN CAST({_spelled(value, type_)} AS {carried})"
            for place, value in enumerate(self.values)
        )
        return f"(CASE {self.coordinate.column} {cases} END)"


def double(value: Fraction) -> str:
    """Print an exact number as a double: an integer, or a quotient of two."""
    if value.denominator == 1:
        return f"CAST({value.numerator} AS DOUBLE)"
    return f"(CAST({value.numerator} AS DOUBLE) / CAST({value.denominator} AS DOUBLE))"


def of_values(count: Linear, sql: str) -> str:
    """Return what is NULL where the noisy count of its values is zero or less, as AVG of none is."""
    return f"CASE WHEN {count.double()} > 0e0 THEN {sql} END"


def _spelled(value: Scalar, type_: SqlType) -> str:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Fraction) and (type_.is_temporal or value.denominator == 1):
        value = int(value)
    if type_.kind is Kind.TIME and isinstance(value, int):
        return text(time_text(value))
    return literal(Literal(type_, value))


def print_part(formula: Linear, type_: SqlType, grid: Fraction) -> str:
    """Return the SQL of a count or sum that is to be added to others, as a whole number of parts: see `print_parts`."""
    if _is_whole(type_):
        return formula.sql(type_)
    return f"round_even({formula.times(1 / grid).double()}, 0)"


def print_parts(name: str, type_: SqlType, grid: Fraction) -> str:
    """Return the SQL of the sum of a column of parts, in the type of the formula; NULL where one of them is."""
    if _is_whole(type_):
        total = f"TRY_CAST(COALESCE(sum({name}), 0) AS BIGINT)"
    else:
        total = f"((COALESCE(sum({name}), 0) * {grid.numerator}e0) / {grid.denominator}e0)"
    return f"CASE WHEN count({name}) = count(*) THEN {total} END"


def _is_whole(type_: SqlType) -> bool:
    return type_.is_integer or (type_.kind is Kind.NUMERIC and type_.scale == 0)


def _moment(count: str, type_: SqlType) -> str:
    """Return days or microseconds as a date, a timestamp, or a time of day."""
    if type_.kind is Kind.DATE:
        return f"TRY(CAST(DATE '1970-01-01' + CAST({count} AS INTEGER) AS DATE))"
    if type_.kind is Kind.TIME:
        return f"CAST(make_timestamp({count}) AS TIME)"
    return f"TRY(make_timestamp({count}))"


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

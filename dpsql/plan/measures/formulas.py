"""Formulas: what an aggregate is, computed from released coordinates. Post-processing, hence free.

Each prints itself as one scalar SQL expression for the sealed engine over columns m0, m1, …; all are
total: no division by zero, whatever was released. What is of values, and no count or sum, is NULL where the noisy
count of them is zero or less (soundness.md 1.3, 1.4, 1.22).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...relation.catalog import Scalar
from ...relation.expressions import Literal
from ...relation.types import Kind, SqlType
from ..dialects.quote import literal, text
from .bivariate import Bivariate, print_bivariate
from .value_bars import Ends

__all__ = [
    "Average",
    "Chosen",
    "ChosenOf",
    "Formula",
    "Linear",
    "Variance",
    "Within",
    "print_formula",
    "print_part",
    "print_parts",
    "print_within",
]


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ weight · coordinate."""

    terms: tuple[tuple[int, Fraction], ...]
    constant: Fraction

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

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates it reads."""
        return tuple(index for index, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Within(Linear):
    """clamp(constant + Σ weight · coordinate, lowest, highest), for what cannot be elsewhere; no `highest`: no end."""

    lowest: int
    highest: int | None


@dataclass(frozen=True, slots=True)
class Average:
    """clamp(middle + difference / max(1, count), lowest, highest), NULL unless count > 0: soundness.md 1.3."""

    difference: Linear
    count: Linear
    middle: Fraction
    lowest: Fraction
    highest: Fraction

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates it reads."""
        return tuple(sorted({*self.difference.coordinates, *self.count.coordinates}))


@dataclass(frozen=True, slots=True)
class Variance:
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
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates it reads."""
        parts = (self.moment, self.difference, self.count)
        return tuple(sorted({index for part in parts for index in part.coordinates}))


@dataclass(frozen=True, slots=True)
class Chosen:
    """step · coordinate, a value of a lattice that was chosen; without a coordinate the one value there is, or none.

    `ends`: the values of its bar, where they are drawn with it.
    """

    coordinate: int | None
    step: Fraction
    constant: Fraction | None = Fraction(0)
    ends: Ends | None = None

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates it reads."""
        return () if self.coordinate is None else (self.coordinate,)

    @property
    def linear(self) -> Linear:
        """The same as a sum, in the value's own unit."""
        return Linear(tuple((index, self.step) for index in self.coordinates), self.constant or Fraction(0))


@dataclass(frozen=True, slots=True)
class ChosenOf(Chosen):
    """The value with the number that a coordinate says, of a few known ones."""

    values: tuple[Scalar, ...] = ()


Formula = Linear | Average | Variance | Bivariate | Chosen


def _number(value: Fraction) -> str:
    """Print an exact number as a double: an integer, or a quotient of two."""
    if value.denominator == 1:
        return f"CAST({value.numerator} AS DOUBLE)"
    return f"(CAST({value.numerator} AS DOUBLE) / CAST({value.denominator} AS DOUBLE))"


def _linear(formula: Linear) -> str:
    """Print a sum in doubles, each weight as multiply-then-divide, so that 1234 · 1/100 is 12.34."""
    parts = []
    for index, weight in formula.terms:
        term = f"CAST(m{index} AS DOUBLE)"
        if weight.numerator != 1:
            term = f"({term} * {weight.numerator}e0)"
        if weight.denominator != 1:
            term = f"({term} / {weight.denominator}e0)"
        parts.append(term)
    if formula.constant or not parts:
        parts.append(_number(formula.constant))
    return parts[0] if len(parts) == 1 else "(" + " + ".join(parts) + ")"


def print_formula(formula: Formula, type_: SqlType, noise: tuple[float, float] = (0.0, 0.0)) -> str:
    """Return the SQL of a formula: BIGINT for integer types, DOUBLE for all others; `noise`: see `print_bivariate`."""
    if isinstance(formula, Bivariate):
        y, x = formula.y, formula.x
        sums = {
            "count": formula.count, "y": y.total, "yy": y.squares, "x": x.total, "xx": x.squares, "xy": formula.product
        }  # fmt: skip
        parts = {name: _linear(one) for name, one in sums.items()}
        return _of_values(formula.count, print_bivariate(formula, parts, noise))
    if isinstance(formula, Chosen):
        if formula.constant is None:
            return "NULL"
        if isinstance(formula, ChosenOf):
            return _numbered(formula, type_)
        formula = formula.linear
        if type_.is_temporal:
            return _moment(_integer_sum(formula), type_)
    if isinstance(formula, Within):
        return print_within(formula, print_formula(Linear(formula.terms, formula.constant), type_))
    if isinstance(formula, Linear):
        whole = all(weight == 1 for _, weight in formula.terms) and abs(formula.constant) < 2**62
        if _is_whole(type_):
            if whole and formula.constant.denominator == 1:
                return _integer_sum(formula)
            return f"TRY_CAST(round_even({_linear(formula)}, 0) AS BIGINT)"
        return _linear(formula)
    if isinstance(formula, Average):
        count = _linear(formula.count)
        value = f"({_number(formula.middle)} + {_linear(formula.difference)} / greatest({count}, 1e0))"
        value = f"greatest(least({value}, {_number(formula.highest)}), {_number(formula.lowest)})"
        return _of_values(formula.count, value)
    return _of_values(formula.count, _variance(formula))


def _of_values(count: Linear, sql: str) -> str:
    """Return what is NULL where the noisy count of its values is zero or less, as AVG of none is."""
    return f"CASE WHEN {_linear(count)} > 0e0 THEN {sql} END"


def _numbered(formula: ChosenOf, type_: SqlType) -> str:
    """Return the value of a number. A temporal value is days or microseconds, or ISO text."""
    carried = {
        Kind.TEXT: "VARCHAR",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }.get(type_.kind, "BIGINT" if type_.is_integer else "DOUBLE")
    cases = " ".join(
        f"WHEN {place} THEN CAST({_spelled(value, type_)} AS {carried})"
        for place, value in enumerate(formula.values)
    )
    return f"(CASE m{formula.coordinate} {cases} END)"


def _spelled(value: Scalar, type_: SqlType) -> str:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Fraction) and (type_.is_temporal or value.denominator == 1):
        value = int(value)
    return literal(Literal(type_, value))


def print_within(formula: Within, sql: str) -> str:
    """Return a number of the formula's as SQL between its ends."""
    below = sql if formula.highest is None else f"least({sql}, {formula.highest})"
    return f"greatest({below}, {formula.lowest})"


def print_part(formula: Linear, type_: SqlType, grid: Fraction) -> str:
    """Return the SQL of a count or sum that is to be added to others, as a whole number of parts: see `print_parts`."""
    if _is_whole(type_):
        return print_formula(formula, type_)
    return f"round_even({_linear(formula.times(1 / grid))}, 0)"


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
    """Return days or microseconds as a date or timestamp."""
    if type_.kind is Kind.DATE:
        return f"TRY(CAST(DATE '1970-01-01' + CAST({count} AS INTEGER) AS DATE))"
    return f"TRY(make_timestamp({count}))"


def _integer_sum(formula: Linear) -> str:
    parts = [f"CAST(m{index} AS HUGEINT)" for index, _ in formula.terms]
    if formula.constant or not parts:
        parts.append(f"CAST({formula.constant.numerator} AS HUGEINT)")
    return f"TRY_CAST(TRY({' + '.join(parts)}) AS BIGINT)"


def _variance(formula: Variance) -> str:
    if formula.width == 0:
        return "CAST(0 AS DOUBLE)"
    sample = formula.function.endswith("samp")
    count = f"greatest({_linear(formula.count)}, {'2e0' if sample else '1e0'})"
    squares = f"(({_linear(formula.moment)} / {count} + {formula.width**2}e0) / 2e0)"
    mean = f"({_linear(formula.difference)} / {count})"
    factor = _number(formula.step**2 / 4)
    value = f"({factor} * ({squares} - {mean} * {mean}))"
    top = formula.step**2 * formula.width**2 / 4
    if sample:
        value, top = f"({value} * {count} / ({count} - 1e0))", top * 2
    value = f"greatest(least({value}, {_number(top)}), 0e0)"
    return f"sqrt({value})" if formula.function.startswith("stddev") else value

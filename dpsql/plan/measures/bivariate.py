"""COVAR, CORR and REGR: what they take in of two values' joint sums, and their formulas (soundness.md 1.22).

Postgres' meaning: rows where both values are there, arguments in the order (Y, X). All are total: no division by zero,
whatever was released, and NULL by noisy numbers and public ones alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .formulas import Linear

__all__ = ["BIVARIATE", "Bivariate", "Needs", "print_bivariate"]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a function takes in besides the count: of Y and X nothing (0), sums (1), sums and squares (2); products."""

    y: int
    x: int
    product: bool


BIVARIATE: dict[str, Needs] = {
    "covar_pop": Needs(1, 1, True), "covar_samp": Needs(1, 1, True), "corr": Needs(2, 2, True),
    "regr_slope": Needs(1, 2, True), "regr_intercept": Needs(1, 2, True), "regr_r2": Needs(2, 2, True),
    "regr_avgx": Needs(0, 1, False), "regr_avgy": Needs(1, 0, False), "regr_sxx": Needs(0, 2, False),
    "regr_syy": Needs(2, 0, False), "regr_sxy": Needs(1, 1, True),
}  # fmt: skip
"""REGR_COUNT is a count."""

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


@dataclass(frozen=True, slots=True)
class Bivariate:
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
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates it reads."""
        parts = (self.count, self.y.total, self.y.squares, self.x.total, self.x.squares, self.product)
        return tuple(sorted({index for part in parts for index in part.coordinates}))

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


def print_bivariate(formula: Bivariate, parts: dict[str, str], noise: tuple[float, float]) -> str:
    """Return the SQL of a formula; `parts`: its sums as SQL. `noise`: the variances of X's squares and of its sum."""
    f = formula
    n = f"greatest({parts['count']}, {'2e0' if f.function == 'covar_samp' else '1e0'})"
    my, mx = f"({parts['y']} / {n})", f"({parts['x']} / {n})"
    vy, vx = _variance(parts["yy"], my, n, f.y.width), _variance(parts["xx"], mx, n, f.x.width)
    most = f"{f.y.width * f.x.width}e0"
    c = f"greatest(least({parts['xy']} / {n} - {my} * {mx}, {most}), -{most})"
    unit = _number(f.y.step * f.x.step / 4)
    if f.function == "covar_pop":
        return f"({unit} * {c})"
    if f.function == "covar_samp":
        return f"({unit} * least({n} / ({n} - 1e0), 2e0) * {c})"
    if f.function == "regr_sxy":
        return f"({unit} * {n} * {c})"
    if f.function == "regr_sxx":
        return f"({_number(f.x.step**2 / 4)} * {n} * {vx})"
    if f.function == "regr_syy":
        return f"({_number(f.y.step**2 / 4)} * {n} * {vy})"
    if f.function in ("corr", "regr_r2"):
        sign = "-" if f.y.step * f.x.step < 0 else ""
        r = f"greatest(least({sign}{c} / sqrt(greatest({vx} * {vy}, 1e-300)), 1e0), -1e0)"
        known = f"{vx} > 0e0 AND {vy} > 0e0"
        if f.function == "corr":
            return f"CASE WHEN {known} THEN {r} END"
        return f"CASE WHEN {known} THEN {r} * {r} WHEN {vx} > 0e0 THEN 1e0 END"
    slope = f"({_number(f.y.step / f.x.step)} * {c} / greatest({vx}, 1e-300))"
    least = f"{_DEVIATIONS}e0 * sqrt({noise[0] / 4!r} + {4 * noise[1]!r} * {mx} * {mx}) / {n}"
    known = f"{vx} > 0e0 AND {vx} >= {least}"
    if f.function == "regr_slope":
        return f"CASE WHEN {known} THEN {slope} END"
    y, x = (
        f"({_number(one.middle)} + {_number(one.step / 2)} * greatest(least({mean}, {one.width}e0), -{one.width}e0))"
        for one, mean in ((f.y, my), (f.x, mx))
    )
    return f"CASE WHEN {known} THEN {y} - {slope} * {x} END"


def _variance(squares: str, mean: str, n: str, width: int) -> str:
    return f"greatest(least(({squares} / {n} + {width**2}e0) / 2e0 - {mean} * {mean}, {width**2}e0), 0e0)"


def _number(value: Fraction) -> str:
    """Print an exact number as a double."""
    if value.denominator == 1:
        return f"CAST({value.numerator} AS DOUBLE)"
    return f"(CAST({value.numerator} AS DOUBLE) / CAST({value.denominator} AS DOUBLE))"

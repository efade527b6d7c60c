"""COVAR, CORR and REGR: their formulas, of two values' joint sums (soundness.md 1.22).

Postgres' meaning: rows where both values are there, arguments in the order (Y, X). All are total: no division by zero,
whatever was released, and NULL by noisy numbers and public ones alone.
"""

from __future__ import annotations

from fractions import Fraction

from ...records import dataclass
from ...relation.aggregates import check_printers
from ...relation.types import SqlType
from .formulas import Formula, HalfOf, Linear, double, of_values

__all__ = ["Bivariate", "Variable"]

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

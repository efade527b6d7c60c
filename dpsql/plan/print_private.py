"""Expressions on private rows, printed for DuckDB: total for every content the column types allow.

House rules (law L2, L3; soundness.md 1.9, 1.11):

1. Exact numbers are printed as integers of a known grid, wide enough by interval arithmetic that no
   operation can overflow; reals as DOUBLE, in which no operation of the list raises.
2. A column that enters arithmetic is clamped in its own type first, to the bounds that the interval
   rules used. A bare column in a comparison is total as it stands.
3. No guard is relied on: arguments of sqrt, ln and exp are clamped into their domain, divisors pass
   NULLIF, and a CASE here only chooses between values that are all total.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..errors import Refusal
from ..relation.expressions import Call, Expr, Field, Literal, StageValue
from ..relation.intervals import Environment, Facts, common_grid, facts_of
from ..relation.types import Kind
from .private_forms import FORMS
from .private_numbers import NUMBERS
from .private_sql import CASTS, Number, clamp, decimal_scale, integer_type, is_bare, unbounded
from .quote import decimal, identifier, literal, text

__all__ = ["PrivatePrinter"]

_BIG = 2**62
_HUGE = 2**125


@dataclass
class PrivatePrinter:
    """Prints expressions over the rows of one table; stage values become numbered parameters."""

    env: Environment
    owner: str
    parameters: list[StageValue] = field(default_factory=list)
    first_parameter: int = 2

    def column(self, expr: Field) -> str:
        """Return a column of the table, or its hidden owner column."""
        columns = self.env.columns
        shown = identifier(columns[expr.index].name if expr.index < len(columns) else self.owner)
        # An ENUM is TEXT to us; compared with a text outside its list it would raise.
        return f"CAST({shown} AS VARCHAR)" if expr.type.kind is Kind.TEXT else shown

    # --- any type --------------------------------------------------------------------------------

    def value(self, expr: Expr) -> str:
        """Return SQL with the expression's value, numbers in their own unit."""
        if isinstance(expr, Field):
            return self.column(expr)
        if isinstance(expr, Literal):
            return literal(expr)
        if isinstance(expr, StageValue):
            return self._stage(expr)
        if expr.type.is_number:
            return self._plain_number(expr)
        assert isinstance(expr, Call)
        form = FORMS.get(expr.function)
        if form is None:
            raise Refusal(
                f"{expr.function}() cannot be used on private rows", sqlstate="PV202", position=expr.position
            )
        return form(self, expr)

    def key(self, expr: Expr) -> str:
        """Return a group key in canonical form: text compared bytewise, numbers exact."""
        if expr.type.is_float:
            raise Refusal(
                "a floating-point expression cannot be a group key",
                sqlstate="PV202",
                position=expr.position,
                hint="bin it: floor(x / 10) * 10, or cast it to integer",
            )
        shown = self.value(expr)
        return f"{shown} COLLATE C" if expr.type.kind is Kind.TEXT else shown

    def _stage(self, expr: StageValue) -> str:
        if expr not in self.parameters:
            self.parameters.append(expr)
        number = self.first_parameter + self.parameters.index(expr)
        type_ = "DOUBLE" if expr.type.is_number else CASTS[expr.type.kind]
        return f"CAST(${number} AS {type_})"

    def _plain_number(self, expr: Expr) -> str:
        """Return a computed number in its own unit: exact ones as integers or DECIMAL."""
        number = self.number(expr)
        if number.grid == 1:
            return number.sql
        facts = facts_of(expr, self.env)
        scale = None if number.grid is None else decimal_scale(number.grid)
        if number.grid is None or scale is None or facts.lo is None or facts.hi is None:
            raise Refusal(
                "this number has no exact decimal form, so it cannot be a group key or a distinct value",
                sqlstate="PV202",
                position=expr.position,
                hint="round it, floor it, or cast it to integer or numeric(p,s)",
            )
        whole = f"({number.sql} * {(number.grid * 10**scale).numerator})"
        if scale == 0:
            return whole
        if max(abs(facts.lo), abs(facts.hi)) >= 10 ** (36 - 2 * scale):
            raise Refusal("this number is too large to be a key", sqlstate="PV202", position=expr.position)
        unit = "0." + "1".rjust(scale, "0")
        return f"(CAST({whole} AS DECIMAL(38, 0)) * {unit})"

    def boolean(self, expr: Expr) -> str:
        """Return a predicate."""
        return self.value(expr)

    # --- numbers ---------------------------------------------------------------------------------

    def number(self, expr: Expr) -> Number:
        """Return a number for arithmetic: clamped, on its grid, or as DOUBLE."""
        facts = facts_of(expr, self.env)
        if isinstance(expr, Literal):
            return self._literal_number(expr)
        if isinstance(expr, Field):
            return self._leaf(expr, facts)
        if isinstance(expr, StageValue):
            return Number(self._stage(expr), None)
        assert isinstance(expr, Call)
        form = NUMBERS.get(expr.function)
        if form is None:
            raise Refusal(
                f"{expr.function}() cannot be used on private rows", sqlstate="PV202", position=expr.position
            )
        return form(self, expr, facts)

    def _literal_number(self, expr: Literal) -> Number:
        value = expr.value
        if value is None:
            return Number("CAST(NULL AS BIGINT)", Fraction(1))
        if isinstance(value, float) or not isinstance(value, (int, Fraction)):
            assert isinstance(value, float)
            return Number(f"CAST({text(repr(value))} AS DOUBLE)", None)
        number = Fraction(value)
        grid = Fraction(1, number.denominator)
        kind = "BIGINT" if abs(number.numerator) < _BIG else "HUGEINT"
        if abs(number.numerator) >= _HUGE:
            raise Refusal("this number is out of range", sqlstate="22023", position=expr.position)
        return Number(f"CAST({number.numerator} AS {kind})", grid)

    def _leaf(self, expr: Field, facts: Facts) -> Number:
        """Return a column, clamped in its own type unless its type or a constraint already bounds it."""
        shown = self.column(expr)
        if expr.type.is_float:
            if facts.lo is None or facts.hi is None:
                raise unbounded(expr)
            lo, hi = (f"CAST({text(repr(float(end)))} AS DOUBLE)" for end in (facts.lo, facts.hi))
            source = f"CAST({shown} AS DOUBLE)" if expr.type.kind is Kind.REAL else shown
            return Number(f"({clamp(source, lo, hi, nan=True)})", None)
        assert facts.grid is not None or expr.type.kind is Kind.NUMERIC
        if facts.grid is None or facts.lo is None or facts.hi is None:
            raise unbounded(expr)
        kind = integer_type(facts, facts.grid, expr)
        if not self.is_held(expr, facts.lo, facts.hi):
            ends = decimal(facts.lo), decimal(facts.hi)
            if ends[0] is None or ends[1] is None:
                raise unbounded(expr)
            shown = f"({clamp(shown, ends[0], ends[1])})"
        if facts.grid != 1:
            shown = f"{shown} * {(1 / facts.grid).numerator}"
        return Number(f"CAST({shown} AS {kind})", facts.grid)

    def is_held(self, expr: Field, lo: Fraction, hi: Fraction) -> bool:
        """Say whether the engine itself holds the column inside [lo, hi], by its type or a CHECK constraint."""
        column = self.env.columns[expr.index]
        bare = facts_of(Field(expr.type, 0), Environment([replace(column, bounds=None, values=None)]))
        lows = [end for end in (bare.lo, column.enforced.lo) if end is not None]
        highs = [end for end in (bare.hi, column.enforced.hi) if end is not None]
        return bool(lows and highs) and max(lows) >= lo and min(highs) <= hi

    def on_grid(self, number: Number, grid: Fraction | None) -> str:
        """Return a number as an integer count of a finer grid, or as DOUBLE for None."""
        if grid is None:
            return self.double(number)
        assert number.grid is not None
        factor = number.grid / grid
        assert factor.denominator == 1
        return number.sql if factor == 1 else f"({number.sql} * {factor.numerator})"

    def double(self, number: Number) -> str:
        """Return a number as DOUBLE in its own unit."""
        if number.grid is None:
            return number.sql
        shown = f"CAST({number.sql} AS DOUBLE)"
        if number.grid.numerator != 1:
            shown = f"({shown} * {number.grid.numerator}e0)"
        return shown if number.grid.denominator == 1 else f"({shown} / {number.grid.denominator}e0)"

    def aligned(self, exprs: list[Expr], grid: Fraction | None) -> list[str]:
        """Return numbers on one grid."""
        return [self.on_grid(self.number(expr), grid) for expr in exprs]

    # --- comparisons and moments ------------------------------------------------------------------

    def compared(self, left: Expr, right: Expr, sign: str) -> str:
        if left.type.is_number and right.type.is_number and not (is_bare(left) and is_bare(right)):
            numbers = [self.number(left), self.number(right)]
            grids = [number.grid for number in numbers]
            grid = None
            if None not in grids:
                grid = common_grid(grids)
            shown = [self.on_grid(number, grid) for number in numbers]
            if grid is not None:
                shown = [f"CAST({part} AS HUGEINT)" if "HUGEINT" in part else part for part in shown]
            return f"({shown[0]} {sign} {shown[1]})"
        sides = [self.beside(side, (left, right)) for side in (left, right)]
        return f"({sides[0]} {sign} {sides[1]})"

    def beside(self, side: Expr, both: tuple[Expr, Expr]) -> str:
        """Return a side of a comparison; a date beside a timestamp is read as its midnight."""
        shown = self.value(side)
        kinds = {expr.type.kind for expr in both}
        if kinds == {Kind.DATE, Kind.TIMESTAMP} and side.type.kind is Kind.DATE:
            return f"CAST({self.moment(side)} AS TIMESTAMP)"
        return shown

    def moment(self, expr: Expr) -> str:
        """Return a date or timestamp for calendar functions, clamped into its declared bounds."""
        if not isinstance(expr, Field):
            return self.value(expr)
        column = self.env.columns[expr.index]
        shown = self.column(expr)
        if column.bounds is None:
            return shown
        facts = facts_of(expr, self.env)
        assert facts.lo is not None
        assert facts.hi is not None
        lo, hi = (literal(Literal(expr.type, int(end))) for end in (facts.lo, facts.hi))
        return f"({clamp(shown, lo, hi)})"

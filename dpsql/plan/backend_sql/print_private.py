"""Expressions on private rows, printed for an engine: total for every content the column types allow.

    >>> where("age * 2 > 50")
    ((CAST((CASE WHEN "age" BETWEEN 0 AND 100 THEN "age" WHEN "age" < 0 THEN 0 WHEN "age" > 100 THEN 100 END)
      AS BIGINT) * CAST(2 AS BIGINT)) > CAST(50 AS BIGINT))
    >>> where("age > 50")
    ("age" > 50)

House rules (law L2, L3; soundness.md 1.9, 1.11):

1. Exact numbers are printed as integers of a known grid, wide enough by interval arithmetic that no
   operation can overflow; reals as DOUBLE, in which no operation of the list raises.
2. A column that enters arithmetic is clamped in its own type first, to the bounds that the interval
   rules used. A bare column in a comparison is total as it stands. A text column is cut to the characters that it is
   read to; where it is only compared, it stands whole (`relation.facts`).
3. No guard is relied on: arguments of sqrt, ln and exp are clamped into their domain, divisors pass
   NULLIF, and a CASE here only chooses between values that are all total.
4. What is summed or chosen is a value on its lattice (`print_value`): the printed clamp that every sensitivity of a
   sum relies on (law L9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, TypeVar

from ...errors import Refusal
from ...records import dataclass
from ...relation.calendar import calendar_ends
from ...relation.expressions import Call, Expr, Field, IntermediateValue, Literal, Months
from ...relation.facts import (
    TEXT_CUT,
    Facts,
    common_grid,
    decimal_scale,
    is_cut,
    is_long_number,
    read_length,
    size_as_text,
)
from ...relation.functions import check_printers
from ...relation.intervals import TYPE_RANGE, Environment, Lattice, facts_of
from ...relation.types import Kind, SqlType
from ..dialects.dialect import Dialect, Number, integer_kind, is_bare, reach_of, unbounded
from ..dialects.quote import decimal
from .private_forms import FORMS
from .private_numbers import NUMBERS, bounded, quotient, sizes

check_printers({*FORMS, *NUMBERS}, private=True)

MAX_LENGTH = 100_000
"""Most characters of one printed expression."""


T = TypeVar("T")


@dataclass
class PrivatePrinter:
    """Prints expressions over the rows of one block; intermediate values become numbered parameters.

    `row`: the block's columns as they are printed, by position.
    """

    env: Environment
    row: Sequence[str]
    dialect: Dialect
    parameters: list[object] = field(default_factory=list)
    first_parameter: int = 2
    _said: dict[tuple[bool, int], tuple[Call, Any]] = field(default_factory=dict)
    """Calls as they were printed, as numbers or as they stand, by the numbers of their objects, which are kept."""

    def _once(self, say: Callable[[Call], T], expr: Call, *, is_number: bool) -> T:
        said = self._said.get((is_number, id(expr)))
        if said is None:
            said = self._said[is_number, id(expr)] = expr, say(expr)
        return said[1]

    def whole(self, expr: Expr) -> str:
        """Return what is only compared: a column of the block as it stands, of any length; else the value."""
        if expr.column is not None:
            return self.dialect.column(self.row[expr.column], expr.type)
        if isinstance(expr, IntermediateValue):
            return self._intermediate(expr)
        return self.value(expr)

    def column(self, expr: Expr) -> str:
        """Return a column that is carried, or that something is made of: a text no longer than it is read to.

        Raises Refusal: PV202 for bytes, which have no such length.
        """
        column, shown = self.env.declared(expr), self.as_number(expr)
        if column is not None and expr.type.kind is Kind.TEXT and is_cut(column):
            return self.dialect.cut_column(shown, expr.type, read_length(column))
        if expr.type.kind is Kind.OPAQUE and expr.type.engine is None:  # of any size: only counted
            return f"(CASE WHEN {shown} IS NOT NULL THEN 1 END)"
        if expr.type.engine in _UNBOUNDED:
            raise Refusal(
                f"values of the type {expr.type} may be of any size, and are compared or counted alone",
                sqlstate="PV202", position=expr.position, hint="count its rows, or use a property of another type",
            )  # fmt: skip
        return self.whole(expr)

    def as_number(self, expr: Expr) -> str:
        """Return a bare column in whatever spelling it has: numbers are computed and compared so."""
        assert expr.column is not None
        return self.row[expr.column]

    def owner(self, expr: Expr) -> str:
        """Return a column of the block that holds an owner."""
        return self.dialect.owner(self.as_number(expr), expr.type)

    # --- any type --------------------------------------------------------------------------------

    def value(self, expr: Expr) -> str:
        """Return SQL with the expression's value, numbers in their own unit."""
        if expr.type.kind is Kind.NULL:  # an engine may give what is untyped the type of a text
            return "NULL"
        if expr.column is not None:
            return self.column(expr)
        if isinstance(expr, Literal):
            return self.dialect.literal(expr)
        if isinstance(expr, IntermediateValue):
            shown = self._intermediate(expr)
            return self.dialect.cut(shown, TEXT_CUT) if expr.type.kind is Kind.TEXT else shown
        if expr.type.is_number:
            return self._plain_number(expr)
        assert isinstance(expr, Call)
        return self._once(self._formed, expr, is_number=False)

    def _formed(self, expr: Call) -> str:
        form = FORMS.get(expr.function)
        if form is None:
            raise _formless(expr)
        if expr.type.kind is Kind.TEXT:
            facts_of(expr, self.env)  # refuses what could grow too long (law L10)
        return self._short(form(self, expr), expr)

    def new_text(self, expr: Expr) -> str:
        """Return a value as text that a longer one is made of, no longer than its size."""
        if expr.type.kind is Kind.TIME:
            raise Refusal(
                "a time of people's rows is no text", sqlstate="PV202", position=expr.position,
                hint="take the text of its moment: to_char(x, 'HH24:MI')",
            )  # fmt: skip
        shown = self.dialect.text_of(self.value(expr), expr.type)
        if not is_long_number(expr):
            return shown
        return self.dialect.cut(shown, size_as_text(expr, facts_of(expr, self.env)))

    def beginning(self, expr: Expr, end: int | None) -> str:
        """Return a text of which no more than the first characters are read, None: maybe all."""
        if expr.column is not None and end is not None and end <= facts_of(expr, self.env).size:
            return self.whole(expr)
        return self.value(expr)

    def _short(self, sql: str, expr: Expr) -> str:
        """Refuse what has grown too long: a clamp says its operand several times. Raises Refusal (54001)."""
        if len(sql) > MAX_LENGTH:
            raise Refusal(
                "this expression is too complex", sqlstate="54001", position=expr.position,
                hint="nest fewer functions in one another",
            )  # fmt: skip
        return sql

    def key(self, expr: Expr, *, is_whole: bool = False, longest: int | None = None) -> str:
        """Return a group key in canonical form: text compared bytewise, numbers exact.

        `is_whole`: a column of it stands as it is: it links rows of one owner. `longest`: bytes of the longest text
        that is asked for, where NULL is not: a longer one is one of all others, and NULL there (soundness.md 1.17).
        """
        if expr.type.is_float:
            raise Refusal(
                "a floating-point expression cannot be a group key",
                sqlstate="PV202",
                position=expr.position,
                hint="bin it: floor(x / 10) * 10, or cast it to integer",
            )
        if has_several_spellings(expr.type):
            raise Refusal(
                f"values of the type {expr.type} cannot be told apart here", sqlstate="PV202",
                position=expr.position, hint="count its rows, or use a property of another type",
            )  # fmt: skip
        if expr.type.is_integer and not expr.is_constant:
            self._check_range(expr)
        column = self.env.declared(expr)
        if longest is not None and column is not None and is_cut(column) and longest < read_length(column):
            return self.dialect.bytewise(self.dialect.no_longer(self.whole(expr), longest))
        shown = self.whole(expr) if is_whole else self.value(expr)
        if expr.type.kind is Kind.NUMERIC and expr.column is not None:
            return self.dialect.number_key(shown, expr.type)
        return self.dialect.bytewise(shown) if expr.type.kind is Kind.TEXT else shown

    def _check_range(self, expr: Expr) -> None:
        """Refuse an integer key that may leave its SQL type: its groups would be shown as NULL."""
        column = self.env.declared(expr)
        if column is not None and column.facts is None:
            return
        facts, (first, last) = facts_of(expr, self.env), TYPE_RANGE[expr.type.kind]
        if facts.lo is None or facts.hi is None or facts.lo < first or facts.hi > last:
            raise Refusal(
                f"this key may be out of range for {expr.type}", sqlstate="PV202", position=expr.position,
                hint="cast its parts to bigint or numeric, or narrow them with BETWEEN",
            )  # fmt: skip

    def _intermediate(self, expr: IntermediateValue) -> str:
        if expr not in self.parameters:
            self.parameters.append(expr)
        number = self.first_parameter + self.parameters.index(expr)
        is_text = expr.type.kind is Kind.TEXT or expr.type.is_temporal
        shown = self.dialect.parameter(number, is_text=is_text)
        if expr.type.kind is Kind.TEXT:
            return self.dialect.as_text(shown)
        if not expr.type.is_number:
            return self.dialect.cast(shown, expr.type.kind.value.upper())
        return f"({self.clamped_double(self.dialect.as_double(shown), expr.lo, expr.hi)})"

    def clamped_double(self, sql: str, lo: Fraction | None, hi: Fraction | None) -> str:
        """Return a double limited to [lo, hi], NULL for NaN."""
        assert lo is not None
        assert hi is not None
        ends = self.dialect.double_literal(lo), self.dialect.double_literal(hi)
        return self.dialect.clamp(sql, *ends, nan=True)

    def _plain_number(self, expr: Expr) -> str:
        """Return a computed number in its own unit: exact ones as integers or DECIMAL."""
        number = self.number(expr)
        if not number.is_decimal:
            raise Refusal(
                "this number has no exact decimal form, so it cannot be a group key or a distinct value",
                sqlstate="PV202",
                position=expr.position,
                hint="round it, floor it, or cast it to integer or numeric(p,s)",
            )
        return self.decimal(number, expr)

    def decimal(self, number: Number, expr: Expr) -> str:
        """Return an integer number in its own unit: as an integer or a DECIMAL. Raises Refusal (PV202)."""
        assert number.grid is not None
        scale = decimal_scale(number.grid)
        assert scale is not None
        whole = self.dialect.times(number, (number.grid * 10**scale).numerator, expr)
        if scale == 0:
            return whole.sql
        if whole.reach >= 10 ** (37 - scale):
            raise Refusal("this number is too large to be a key", sqlstate="PV202", position=expr.position)
        unit = "0." + "1".rjust(scale, "0")
        return f"(CAST({whole.sql} AS {self.dialect.decimal}) * {unit})"

    def boolean(self, expr: Expr) -> str:
        """Return a predicate."""
        return self.value(expr)

    # --- numbers ---------------------------------------------------------------------------------

    def number(self, expr: Expr) -> Number:
        """Return a number for arithmetic: clamped, on its grid, or as DOUBLE."""
        if isinstance(expr, Literal):
            return self._literal_number(expr)
        if expr.column is not None:
            return self._leaf(expr, facts_of(expr, self.env))
        if isinstance(expr, IntermediateValue):
            return bounded(Number(self._intermediate(expr), None), expr.lo, expr.hi)
        assert isinstance(expr, Call)
        return self._once(self._computed, expr, is_number=True)

    def _computed(self, expr: Call) -> Number:
        form = NUMBERS.get(expr.function)
        if form is None:
            raise _formless(expr)
        number = form(self, expr, facts_of(expr, self.env))
        self._short(number.sql, expr)
        return number

    def _literal_number(self, expr: Literal) -> Number:
        value = expr.value
        if value is None:
            return Number("CAST(NULL AS BIGINT)", Fraction(1), 0)
        if isinstance(value, float) or not isinstance(value, (int, Fraction)):
            assert isinstance(value, float)
            end = Fraction(value)
            return bounded(Number(self.dialect.as_double(f"'{value!r}'"), None), end, end)
        number = Fraction(value)
        grid = Fraction(1, number.denominator)
        reach = abs(number.numerator)
        shown = Number(self.dialect.cast(str(number.numerator), integer_kind(reach, expr)), grid, reach)
        places = decimal_scale(grid)
        if places is None:
            return shown
        digits = max(len(str(int(reach * grid * 10**places))), places, 1)
        return self.dialect.as_decimal(
            shown, f"CAST({decimal(number)} AS DECIMAL({digits}, {places}))", places
        )

    def _leaf(self, expr: Expr, facts: Facts) -> Number:
        """Return a column, clamped in its own type unless its type or a constraint already bounds it."""
        shown = self.as_number(expr)
        if expr.type.is_float:
            if facts.lo is None or facts.hi is None:
                raise unbounded(expr)
            source = self.dialect.as_double(shown) if expr.type.kind is Kind.REAL else shown
            sql = f"({self.clamped_double(source, facts.lo, facts.hi)})"
            return bounded(Number(sql, None), facts.lo, facts.hi)
        if facts.grid is None or facts.lo is None or facts.hi is None or not expr.type.is_number:
            raise unbounded(expr)
        reach = reach_of(facts, facts.grid, expr)
        kind = integer_kind(reach, expr)
        if not self.is_held(expr, facts.lo, facts.hi):
            ends = decimal(facts.lo), decimal(facts.hi)
            if ends[0] is None or ends[1] is None:
                raise unbounded(expr)
            shown = f"({self.dialect.clamp(shown, ends[0], ends[1])})"
        shown = self.dialect.on_scale(shown, expr.type)
        factor = (1 / facts.grid).numerator
        if factor == 1 or reach * factor < 10**37:  # the product is a DECIMAL(38) that still has the decimals
            number = Number(self.dialect.whole(shown, factor, reach, kind), facts.grid, reach)
            return self.dialect.as_decimal(number, *_in_decimals(shown, expr.type, reach))
        if factor > 10**18:
            raise Refusal(
                "this column has too many decimals for arithmetic", sqlstate="PV202", position=expr.position
            )
        whole = self.dialect.cast(self.dialect.truncated(shown), "HUGEINT")
        part = self.dialect.cast(f"({shown} - {self.dialect.truncated(shown)}) * {factor}", "HUGEINT")
        return Number(self.dialect.cast(f"{whole} * {factor} + {part}", kind), facts.grid, reach)

    def is_held(self, expr: Expr, lo: Fraction, hi: Fraction) -> bool:
        """Say whether the engine itself holds the column inside [lo, hi], by its type or a CHECK constraint."""
        column = self.env.declared(expr)
        assert column is not None
        if expr.type.kind is Kind.NUMERIC and column.facts is None and not self.dialect.numerics_are_finite:
            return False
        bare = facts_of(Field(expr.type, 0), Environment([replace(column, bounds=None, values=None)]))
        lows = [end for end in (bare.lo, column.enforced.lo) if end is not None]
        highs = [end for end in (bare.hi, column.enforced.hi) if end is not None]
        return bool(lows and highs) and max(lows) >= lo and min(highs) <= hi

    def on_grid(self, number: Number, grid: Fraction, expr: Expr) -> Number:
        """Return an integer number as a count of a finer grid. Raises Refusal (PV202) when it could overflow."""
        assert number.grid is not None
        factor = number.grid / grid
        if number.reach == 0:  # NULL, or 0: a count of any grid
            return Number(number.sql, grid, 0)
        assert factor.denominator == 1
        return self.dialect.times(number, factor.numerator, expr)

    def double(self, number: Number) -> str:
        """Return a number as DOUBLE in its own unit."""
        return self.real(number).sql

    def real(self, number: Number) -> Number:
        """Return a number as a DOUBLE in its own unit."""
        if number.grid is None:
            return number
        shown = self.dialect.as_double(number.sql)
        if number.grid.numerator != 1:
            shown = f"({shown} * {number.grid.numerator}e0)"
        if number.grid.denominator != 1:
            shown = f"({shown} / {number.grid.denominator}e0)"
        most, _ = sizes(None, None) if number.reach == 0 else sizes(Fraction(0), number.reach * number.grid)
        _, least = sizes(number.grid, number.grid)
        return Number(shown, None, 0, most, least)

    # --- comparisons and moments ------------------------------------------------------------------

    def compared(self, left: Expr, right: Expr, sign: str, expr: Expr) -> str:
        """Return a comparison."""
        one, other = self.sides(left, right, expr)
        return f"({one} {sign} {other})"

    def sides(self, left: Expr, right: Expr, expr: Expr) -> list[str]:
        """Return both sides of a comparison: computed numbers on one grid, bare columns and literals as they stand."""
        columns = left.column is not None and right.column is not None
        if expr.calls("eq") and columns and left.type.is_integer and right.type.is_integer:
            # whole: what links rows of one person is equal as it is, and not by what it is clamped to (1.10)
            return [self.as_number(left), self.as_number(right)]
        if left.type.is_number and right.type.is_number:
            bare = self._is_bare(left) and self._is_bare(right)
            if not bare:
                numbers = [self._side(left), self._side(right)]
                grid = common_grid([number.grid for number in numbers])
                if grid is None:
                    return [self.double(number) for number in numbers]
                return [self.on_grid(number, grid, expr).sql for number in numbers]
            real = left.type.is_float or right.type.is_float
            alike = self._are_alike(left, right) or self.dialect.compares_any_decimals
            if real or not (alike or _fit_together(left, right)):
                return [self._bare_double(left), self._bare_double(right)]
        sides = [self.beside(side, (left, right)) for side in (left, right)]
        if left.type.is_number and right.type.is_number:
            sides[0] = self.dialect.fits_beside(sides[0], left.type, right.type)
            sides[1] = self.dialect.fits_beside(sides[1], right.type, left.type)
        return sides

    def _bare_double(self, expr: Expr) -> str:
        """Return a bare column or literal as a DOUBLE."""
        if expr.is_constant and expr.constant is not None:
            assert isinstance(expr.constant, (int, float, Fraction))
            return self.dialect.double_literal(Fraction(expr.constant))
        if expr.column is not None and not expr.type.is_float:
            return self.dialect.exact_as_double(self.as_number(expr), expr.type)
        shown = self.value(expr)
        return shown if expr.type.kind is Kind.DOUBLE else self.dialect.as_double(shown)

    def _side(self, expr: Expr) -> Number:
        """Return a number for a comparison; a column that a subquery computed as it stands.

        It is inside its proven range already, and what this very comparison implies must not enter it.
        """
        column = self.env.declared(expr)
        if column is None or column.facts is None or expr.type.is_float:
            return self.number(expr)
        return self._leaf(expr, column.facts)

    def _is_bare(self, expr: Expr) -> bool:
        """Say whether an expression compares as it stands: a literal, a table's column, or any DOUBLE.

        An exact number that a subquery computed may have more digits than its type has.
        """
        column = self.env.declared(expr)
        return is_bare(expr) if column is None else column.facts is None or expr.type.is_float

    def _are_alike(self, left: Expr, right: Expr) -> bool:
        """Say whether two sides are table columns of one type of the engine, which compare as they stand."""
        columns = [self.env.declared(side) for side in (left, right)]
        own = all(column is not None and column.facts is None for column in columns)
        return own and left.type == right.type and left.type.precision is not None

    def beside(self, side: Expr, both: tuple[Expr, Expr]) -> str:
        """Return a side of a comparison; a date beside a timestamp is read as its midnight."""
        if side.column is not None and side.type.is_number:
            shown = self.as_number(side)
        else:
            shown = self.whole(side) if self.stands_whole(side, both) else self.value(side)
        kinds = {expr.type.kind for expr in both}
        if kinds == {Kind.DATE, Kind.TIMESTAMP} and side.type.kind is Kind.DATE:
            return self.dialect.cast(self.moment(side), "TIMESTAMP")
        return shown

    def stands_whole(self, side: Expr, others: Sequence[Expr]) -> bool:
        """Say whether a side of a comparison is compared as it is, of whatever length.

        Beside columns, and beside literals of fewer characters than it is read to: of those, x and x cut compare alike
        (soundness.md 1.17).
        """
        if isinstance(side, IntermediateValue):
            return True
        column = self.env.declared(side)
        if column is None or side.type.kind is not Kind.TEXT:
            return column is not None
        most = read_length(column)
        return all(
            other.column is not None
            or (other.is_constant and not (isinstance(other.constant, str) and len(other.constant) >= most))
            for other in others
        )

    def moment(self, expr: Expr, within: tuple[int, int] | None = None) -> str:
        """Return a date or timestamp for calendar functions: inside its known bounds, or NULL outside our calendar, or
        `within` what is asked for, its first and last value.

        Results of calendar functions are inside already; columns and choices between them are clamped.
        """
        shown = self.value(expr)
        if expr.is_constant or expr.calls(*_CALENDAR):
            return shown
        facts = facts_of(expr, self.env)
        if facts.lo is None or facts.hi is None:
            ends = within or calendar_ends(expr.type)
            first, last = (self.dialect.literal(Literal(expr.type, end)) for end in ends)
            return f"(CASE WHEN {shown} BETWEEN {first} AND {last} THEN {shown} END)"
        lo, hi = (self.dialect.literal(Literal(expr.type, int(end))) for end in (facts.lo, facts.hi))
        return f"({self.dialect.clamp(shown, lo, hi)})"


def _in_decimals(shown: str, type_: SqlType, reach: int) -> tuple[str, int]:
    """Return a column as a decimal of at most 18 digits, and how many are after the point; "" where it is wider."""
    if type_.is_integer:
        return f"CAST({shown} AS DECIMAL({len(str(reach))}, 0))", 0
    is_narrow = (type_.precision or 39) <= 18 and type_.scale is not None
    return (shown if is_narrow else "", type_.scale or 0)


def _formless(expr: Call) -> Refusal:
    said = f"{expr.function}() cannot be used on private rows"
    return Refusal(said, sqlstate="PV202", position=expr.position)


def has_several_spellings(type_: SqlType) -> bool:
    """Say whether equal values of a type may differ, as '1 month' and '30 days' do, or have no equality."""
    return type_.kind is Kind.INTERVAL or (type_.kind is Kind.OPAQUE and type_.engine is None)


_UNBOUNDED = frozenset({"bytea", "BLOB"})

_CALENDAR = frozenset({"add", "sub", "date_trunc", "date_bin", "zone_clock", "zone_moment", "zone_cut"})


def _fit_together(left: Expr, right: Expr) -> bool:
    """Say whether DuckDB has one type for two exact numbers: more than 38 digits together and a cast may raise."""
    sizes = [_digits(expr) for expr in (left, right)]
    if any(size is None for size in sizes):
        return True
    known = [size for size in sizes if size is not None]
    return max(size[0] for size in known) + max(size[1] for size in known) <= 38


def _digits(expr: Expr) -> tuple[int, int] | None:
    """Return the digits before and after the point of a bare exact number; None for doubles."""
    if expr.is_constant:
        if (
            isinstance(expr.constant, (float, str))
            or expr.constant is None
            or isinstance(expr.constant, Months)
        ):
            return None
        number = Fraction(expr.constant)
        scale = decimal_scale(Fraction(1, number.denominator))
        return len(str(abs(int(number)))), 39 if scale is None else scale
    if expr.type.is_float:
        return None
    if expr.type.kind is Kind.NUMERIC:
        scale = expr.type.scale or 0
        precision = expr.type.precision or 39
        return (39 if precision == 38 and scale == 0 else precision - scale), scale
    return {Kind.SMALLINT: 5, Kind.INTEGER: 10}.get(expr.type.kind, 19), 0


MAX_ROWS = 2**40
"""Most rows, or units, of a table: beyond what one machine holds. Totals are sized by it."""


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A clamped value: `z` is SQL over r, in the lattice's integers or (with `factor` > 1) in decimals.

    `known`: a column that is NULL where z is. `ends`: the rows are not clamped, so each sum of them is: to so
    many times the ends as it has values. `is_split`: z is a BIGINT whose sums are not, and are
    taken in two parts. `reach`: of decimals, the largest size of an integer that they are.
    """

    dialect: Dialect
    z: str
    factor: int
    ends: tuple[int, int] | None = None
    known: str = ""
    is_split: bool = False
    reach: int = 0

    @property
    def count(self) -> str:
        """What to count for the rows that have a value: the column itself where that is the same and costs less."""
        return self.known or self.z

    def sum(self, only: str, count: str) -> str:
        """Return the exact sum in lattice integers, 0 for no rows; `count`: how many values are summed."""
        total = self.dialect.split_sum(self.z, only) if self.is_split else f"SUM({self.z}){only}"
        if self.ends is not None:
            low, high = (f"{end} * {self.dialect.cast(count, 'HUGEINT')}" for end in self.ends)
            return f"LEAST(GREATEST(COALESCE({total}, 0), {low}), {high})"
        if self.factor != 1:
            total = self.dialect.cast(f"{total} * {self.factor}", "HUGEINT")
        return f"COALESCE({total}, 0)"

    def whole(self) -> str:
        """Return z of a row, in lattice integers, as a BIGINT."""
        return self.dialect.whole(f"({self.z})", self.factor, self.reach, "BIGINT")

    def above(self, low: int) -> str:
        """Return z - low of a row."""
        return f"({self.whole()} - {low})"


def print_value(
    printer: PrivatePrinter,
    item: Callable[[str, str], str],
    expr: Expr,
    lattice: Lattice,
    *,
    early: bool = False,
    is_shared: bool = False,
    later: Callable[[str, str], str] = lambda sql, prefix: sql,
) -> PrintedValue:
    """Clamp a value to its lattice: in its own type where it is a bare column, else as printed numbers.

    Reals: v is clamped to [lo, hi], multiplied by 1/step (or divided by step) and cast, which rounds half
    to even; both are monotone in IEEE arithmetic, so the result lies between the images of lo and hi,
    which `lattice_of` computed in the same way: `low` and `high`.

    `early`: for sums per unit and group. A bare column becomes its lattice integer in r already: with many
    sums a conversion of each row is cheaper than one of each sum. A computed integer, which lies inside its
    bounds by the clamps that are printed inside it, is clamped in the sum.

    What is summed in two parts is read by both: a bare column is then clamped in r, and what is computed beside
    the columns of r, by `later`, so that each stands there once. `is_shared`: several aggregates read the value; so
    is then done with a real, whose clamp is long.
    """
    dialect, factor = printer.dialect, (1 / lattice.step).numerator
    is_split = not early and dialect.splits(lattice.reach, lattice.reach * MAX_ROWS)
    in_rows = early or is_split
    column = printer.env.declared(expr)
    if column is not None and lattice.exact and lattice.reach * factor * MAX_ROWS < 10**38:  # a DECIMAL(38)
        return _of_column(printer, item, expr, lattice, in_rows=in_rows, is_split=is_split)
    if lattice.exact:
        number = printer.number(expr)
        if not in_rows and number.decimal and 1 < factor == 10**number.places:
            z = dialect.clamp(item(number.decimal, "v"), *_ends(lattice))
            return PrintedValue(dialect, z, factor, reach=lattice.reach)
        steps = printer.on_grid(number, lattice.step, expr)
        name, largest = item(steps.sql, "v"), lattice.reach * MAX_ROWS
        if early:
            summed = dialect.summed(name, steps.kind, largest)
            return PrintedValue(dialect, summed, 1, (lattice.low, lattice.high))
        clamped = dialect.clamp(name, str(lattice.low), str(lattice.high))
        if is_split:
            narrow = clamped if steps.kind == "BIGINT" else dialect.cast(clamped, "BIGINT")
            return PrintedValue(dialect, later(narrow, "z"), 1, is_split=True)
        return PrintedValue(dialect, dialect.summed(clamped, steps.kind, largest), 1)
    if column is not None and expr.type.is_float:
        shown = printer.as_number(expr)
        shown = dialect.as_double(shown) if expr.type.kind is Kind.REAL else shown
        if in_rows or is_shared:
            rounded = _rounded(printer, shown, expr, lattice, is_split=is_split)
            return PrintedValue(dialect, item(rounded, "z"), 1, is_split=is_split)
    else:
        shown = printer.double(printer.number(expr))
    rounded = _rounded(printer, item(shown, "v"), expr, lattice, is_split=is_split)
    once = is_split or is_shared
    return PrintedValue(dialect, later(rounded, "z") if once else rounded, 1, is_split=is_split)


def _of_column(
    printer: PrivatePrinter, item: Callable[[str, str], str], expr: Expr, lattice: Lattice, *, in_rows: bool,
    is_split: bool,
) -> PrintedValue:  # fmt: skip
    """Clamp a bare column in its own type, for a sum that a DECIMAL(38) holds."""
    dialect, column = printer.dialect, printer.env.declared(expr)
    factor = (1 / lattice.step).numerator
    assert column is not None
    name = printer.as_number(expr) if in_rows else item(printer.as_number(expr), "v")
    lo, hi = _ends(lattice)
    # Of a column that a subquery computes it is the interval rules that say so: it is clamped (law L9).
    held = column.facts is None and printer.is_held(expr, lattice.lo, lattice.hi)
    clamped = name if held else dialect.clamp(name, lo, hi)
    if not in_rows and dialect.sums_widen and not dialect.is_open(expr.type):
        return PrintedValue(dialect, clamped, factor, known=name, reach=lattice.reach)
    kind = "BIGINT" if is_split else _summand(dialect, lattice)
    whole = dialect.whole(f"({clamped})", factor, lattice.reach, kind)
    if in_rows:
        return PrintedValue(dialect, item(whole, "z"), 1, is_split=is_split)
    return PrintedValue(dialect, whole, 1, known=name)


def _ends(lattice: Lattice) -> tuple[str, str]:
    """Return the ends of a lattice of decimals, in its column's own unit."""
    lo, hi = decimal(lattice.low * lattice.step), decimal(lattice.high * lattice.step)
    assert lo is not None
    assert hi is not None
    return lo, hi


def print_whole(
    printer: PrivatePrinter, item: Callable[[str, str], str], expr: Expr, lattice: Lattice
) -> str:
    """Return a value as an integer of its lattice: a BIGINT inside [L, H] whatever the row holds, or NULL.

    Dates and moments are clamped in their own type first, since not each has a number of days or microseconds.
    """
    dialect = printer.dialect
    ends = str(lattice.low), str(lattice.high)
    if expr.type.is_temporal:
        name = item(dialect.since_1970(printer.moment(expr), expr.type), "z")
        return f"({dialect.clamp(name, *ends)})"
    if expr.type.kind is Kind.TIME:
        return f"({dialect.clamp(item(printer.value(expr), 'z'), *ends)})"
    value = print_value(printer, item, expr, lattice, early=True)
    whole = f"({dialect.clamp(value.z, *ends)})" if value.ends is not None else value.z
    return dialect.cast(whole, "BIGINT")


def _rounded(
    printer: PrivatePrinter, real: str, expr: Expr, lattice: Lattice, *, is_split: bool = False
) -> str:
    """Return a DOUBLE clamped and rounded to the lattice."""
    inside = f"({printer.clamped_double(real, lattice.lo, lattice.hi)})"
    inverse = 1 / lattice.step
    if inverse.denominator == 1:
        scaled = f"{inside} * {printer.dialect.double_literal(inverse)}"
    else:
        step = Number(
            printer.dialect.double_literal(lattice.step), None, 0, *sizes(lattice.step, lattice.step)
        )
        number = Number(inside, None, 0, *sizes(lattice.lo, lattice.hi))
        scaled = quotient(number, step, printer.dialect, expr).sql
    kind = "BIGINT" if is_split else _summand(printer.dialect, lattice)
    return printer.dialect.rounded(scaled, kind, lattice.reach)


def _summand(dialect: Dialect, lattice: Lattice) -> str:
    return dialect.summand(lattice.reach * MAX_ROWS)

"""Values on their lattice: the printed clamp that every sensitivity of a sum relies on (law L9)."""

from __future__ import annotations

from collections.abc import Callable

from ...records import dataclass
from ...relation.expressions import Expr
from ...relation.intervals import Lattice
from ...relation.types import Kind
from ..dialects.dialect import Dialect
from ..dialects.private_sql import Number
from ..dialects.quote import decimal
from .print_private import PrivatePrinter
from .private_reals import quotient, sizes

MAX_ROWS = 2**40
"""Most rows, or units, of a table: beyond what one machine holds. Totals are sized by it."""


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A clamped value: `z` is SQL over r, in the lattice's integers or (with `factor` > 1) in decimals.

    `known`: a column that is NULL where z is. `ends`: the rows are not clamped, so each sum of them is: to so
    many times the ends as it has values. `is_split`: z is a BIGINT whose sums are not, and are
    taken in two parts.
    """

    dialect: Dialect
    z: str
    factor: int
    ends: tuple[int, int] | None = None
    known: str = ""
    is_split: bool = False

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
        return f"CAST(({self.z}){f' * {self.factor}' if self.factor != 1 else ''} AS BIGINT)"

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
    the columns of r, by `later`, so that each stands there once.
    """
    dialect, factor = printer.dialect, (1 / lattice.step).numerator
    is_split = not early and dialect.splits(lattice.reach, lattice.reach * MAX_ROWS)
    in_rows = early or is_split
    column = printer.env.declared(expr)
    if column is not None and lattice.exact and lattice.reach * factor * MAX_ROWS < 10**38:  # a DECIMAL(38)
        return _of_column(printer, item, expr, lattice, in_rows=in_rows, is_split=is_split)
    if lattice.exact:
        number = printer.number(expr)
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
        if in_rows:
            rounded = _rounded(printer, shown, expr, lattice, is_split=is_split)
            return PrintedValue(dialect, item(rounded, "z"), 1, is_split=is_split)
    else:
        shown = printer.double(printer.number(expr))
    rounded = _rounded(printer, item(shown, "v"), expr, lattice, is_split=is_split)
    return PrintedValue(dialect, later(rounded, "z") if is_split else rounded, 1, is_split=is_split)


def _of_column(
    printer: PrivatePrinter, item: Callable[[str, str], str], expr: Expr, lattice: Lattice, *, in_rows: bool,
    is_split: bool,
) -> PrintedValue:  # fmt: skip
    """Clamp a bare column in its own type, for a sum that a DECIMAL(38) holds."""
    dialect, column = printer.dialect, printer.env.declared(expr)
    factor = (1 / lattice.step).numerator
    assert column is not None
    name = printer.as_number(expr) if in_rows else item(printer.as_number(expr), "v")
    lo, hi = decimal(lattice.low * lattice.step), decimal(lattice.high * lattice.step)
    assert lo is not None
    assert hi is not None
    # Of a column that a subquery computes it is the interval rules that say so: it is clamped (law L9).
    held = column.facts is None and printer.is_held(expr, lattice.lo, lattice.hi)
    clamped = name if held else dialect.clamp(name, lo, hi)
    if not in_rows and dialect.sums_widen and not dialect.is_open(expr.type):
        return PrintedValue(dialect, clamped, factor, known=name)
    kind = "BIGINT" if is_split else _summand(dialect, lattice)
    whole = dialect.cast(f"({clamped}){f' * {factor}' if factor > 1 else ''}", kind)
    if in_rows:
        return PrintedValue(dialect, item(whole, "z"), 1, is_split=is_split)
    return PrintedValue(dialect, whole, 1, known=name)


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

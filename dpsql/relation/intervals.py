"""What is known of an expression's values before any row is seen (soundness.md 1.11).

House rules:

1. A column counts as inside its declared bounds because the printed SQL clamps it there; a column
   without declared bounds has only the range of its type, and `declared` is False.
2. Facts are derived from types, declarations, literals and the filter's text alone, never from data.

The public lattice of a summed expression: integers [L, H] times g (soundness.md 0, 2.2).

House rules:

1. L, H and g come from declared bounds, literals and types. A number without declared bounds has no
   lattice and is not summed.
2. The printed clamp enforces [L, H] whatever the column holds (law L9): `print_private` prints it
   from this very object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, TypeVar

from ..errors import Refusal
from ..records import dataclass
from .calendar import parse_date, parse_timestamp
from .catalog import Column, Scalar
from .expressions import Call, Expr, Field, IntermediateValue, Literal, parts_in, walk
from .facts import ONE, ZERO, Facts, grid_of, intersect, read_length, size_of_call
from .functions import FUNCTIONS
from .types import Kind, SqlType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Environment:
    """The columns of the input row, and what the row's filter says of them.

    `narrowed`: facts that the filter's top-level AND terms imply for an expression (soundness.md 1.6).
    """

    columns: Sequence[Column]
    narrowed: Mapping[Expr, Facts] = field(default_factory=dict)  # of columns, and of whole expressions
    known: dict[tuple[object, int], tuple[Expr, Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """What was said of expressions, by who says it and the numbers of their objects, which are kept with it."""

    def once(self, say: Callable[[Expr, Environment], T], expr: Expr) -> T:
        """Return what `say` says of an expression here, as it was said before. Raises what it raises."""
        said = self.known.get((say, id(expr)))
        if said is None:
            said = self.known[say, id(expr)] = expr, say(expr, self)
        return said[1]

    lattices: dict[tuple[Expr, bool], Lattice | None] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def declared(self, expr: Expr) -> Column | None:
        """Return what is known of the column that an expression is; None of what is no bare column of the row."""
        index = expr.column
        return None if index is None or index >= len(self.columns) else self.columns[index]


_HUGE = Fraction(10) ** 300

TYPE_RANGE = {
    Kind.SMALLINT: (Fraction(-(2**15)), Fraction(2**15 - 1)),
    Kind.INTEGER: (Fraction(-(2**31)), Fraction(2**31 - 1)),
    Kind.BIGINT: (Fraction(-(2**63)), Fraction(2**63 - 1)),
    Kind.BOOLEAN: (ZERO, ONE),
}
"""Kind -> the least and greatest value of its type."""


def _of_column(column: Column) -> Facts:
    if column.facts is not None:
        proven = column.facts
        if column.bounds is not None:
            proven = intersect(proven, Facts(*column.bounds, nullable=proven.nullable))
        if column.values is not None:
            among = tuple(_counted(v, column.type) for v in column.values if v is not None)
            proven = intersect(proven, Facts(values=among, nullable=proven.nullable))
        return replace(proven, size=read_length(column))
    type_ = column.type
    lo, hi = TYPE_RANGE.get(type_.kind, (None, None))
    if type_.kind is Kind.NUMERIC and type_.precision is not None:
        hi = Fraction(10) ** (type_.precision - (type_.scale or 0))
        lo = -hi
    if type_.is_integer and lo is not None and hi is not None:  # NULL passes a CHECK, and so would NaN
        ends = column.enforced
        lo, hi = (lo if ends.lo is None else max(lo, ends.lo)), (hi if ends.hi is None else min(hi, ends.hi))
    declared = type_.kind in (Kind.BOOLEAN, Kind.TEXT)
    if column.bounds is not None:
        lo, hi = column.bounds
        declared = True
    values = column.values
    if type_.kind is Kind.BOOLEAN:
        values = (False, True) if values is None else values
    nullable = not column.enforced.not_null or type_.is_float
    known = None if values is None else tuple(_counted(v, type_) for v in values if v is not None)
    return Facts(lo, hi, grid_of(type_), nullable, known, declared, read_length(column))


def _counted(value: Scalar, type_: SqlType) -> Scalar:
    """Return a declared value as literals have it: dates in days and timestamps in microseconds."""
    if not isinstance(value, str) or not type_.is_temporal:
        return value
    number = parse_date(value) if type_.kind is Kind.DATE else parse_timestamp(value)
    return value if number is None else Fraction(number)


def _of_literal(literal: Literal) -> Facts:
    value = literal.value
    if value is None:
        return Facts(nullable=True, values=(), declared=True, grid=ONE, size=0)
    if isinstance(value, bool):
        point = ONE if value else ZERO
        return Facts(point, point, ONE, False, (value,), True)
    if isinstance(value, (int, Fraction)):
        number = Fraction(value)
        grid = Fraction(1, number.denominator)
        return Facts(number, number, grid, False, (number,), True)
    if isinstance(value, float):
        number = Fraction(value)
        return Facts(number, number, None, False, (number,), True)
    if isinstance(value, str):
        return Facts(nullable=False, values=(value,), declared=True, size=len(value))
    return Facts(nullable=False, declared=True)


def facts_of(expr: Expr, env: Environment) -> Facts:
    """Return what is known of `expr` over rows of `env`.

    Ensures: for every row whose columns hold anything their types allow, the printed form of `expr`
    is NULL only if `nullable`, and otherwise lies in [lo, hi], on `grid`, and among `values`; a text is
    no longer than `size` says.
    """
    return env.once(_facts_of, expr)


def _facts_of(expr: Expr, env: Environment) -> Facts:
    if isinstance(expr, Field):
        known = _of_column(env.columns[expr.index]) if expr.index < len(env.columns) else Facts()
        narrowed = env.narrowed.get(expr)
        return known if narrowed is None else intersect(known, narrowed)
    if isinstance(expr, Literal):
        return _of_literal(expr)
    if isinstance(expr, IntermediateValue):
        # It travels as a DOUBLE, whatever its type (soundness.md 1.14(2)): no lattice.
        is_known = expr.lo is not None or expr.type.kind is Kind.TEXT
        return Facts(expr.lo, expr.hi, None, True, None, is_known)
    return _of_call(expr, env) if isinstance(expr, Call) else Facts()


def _of_call(expr: Call, env: Environment) -> Facts:
    args, row = [facts_of(arg, env) for arg in expr.args], FUNCTIONS[expr.function]
    known = Facts() if row.interval is None else _sized(row.interval(args, expr))
    known = replace(known, nullable=row.null(args, expr))
    if expr.type.kind is Kind.TEXT:
        known = replace(known, declared=True, size=size_of_call(row.size, args, expr))
    member = member_of(expr, env)
    return known if member is None else _of_member(member, known)


def member_of(expr: Expr, env: Environment) -> Column | None:
    """Return what is declared of the member of JSON that an expression is, as text or read as a number."""
    inner = expr.args[0] if expr.calls("cast") and expr.type.is_number else expr
    if not inner.calls("json_member"):
        return None
    column, *keys = inner.args
    declared = env.declared(column)
    member = None if declared is None else declared.member(tuple(str(key.constant) for key in keys))
    return member if member is not None and member.type.is_number == expr.type.is_number else None


def _of_member(member: Column, known: Facts) -> Facts:
    """Return the facts of a member with what is declared of it, which is enforced where it is printed (law L9)."""
    own = _of_column(member)
    if member.type.is_number:
        return replace(intersect(known, Facts(own.lo, own.hi)), declared=own.declared)
    return replace(known, values=own.values, nullable=True, declared=True, size=own.size)


def _sized(facts: Facts) -> Facts:
    """Forget bounds and grids beyond what any number here can use; they would grow without end."""
    if facts.lo is not None and facts.hi is not None and max(-facts.lo, facts.hi) > _HUGE:
        facts = replace(facts, lo=None, hi=None, values=None)
    if facts.grid is not None and max(facts.grid.numerator, facts.grid.denominator) > _HUGE:
        facts = replace(facts, grid=None)
    return facts


def narrowed_facts(expr: Expr, env: Environment) -> Facts:
    """Return what is known of `expr`, with what the filter says of this very expression.

    For the bounds and the domain of a whole key or argument alone: the printed filter enforces them
    on the rows that count, while the expression itself is still evaluated on all its own range.
    """
    known = facts_of(expr, env)
    narrowed = env.narrowed.get(expr)
    return known if narrowed is None or isinstance(expr, Field) else intersect(known, narrowed)


# --- the public lattice of a summed expression: integers [L, H] times g (soundness.md 0, 2.2) ---------------


_MAX_ENDPOINT = 2**61
_MAX_REAL = Fraction(10) ** 100
_REAL_WIDTH = 2**32
_SQUARED_WIDTH = 2**24
_EXACT_SQUARED_WIDTH = 2**30


@dataclass(frozen=True, slots=True)
class Lattice:
    """Integers `low`..`high` (inclusive) that stand for `step` times themselves.

    `lo`, `hi`: the clamp in the expression's own unit. `exact`: the expression is on the lattice
    already (integers, decimals); False for reals, which are clamped to [lo, hi] and then rounded.

    Ensures: low <= high, |low| and |high| below 2^61 (soundness.md 2.2(1)).
    """

    low: int
    high: int
    # a fraction's hash takes an inverse, and the integers tell lattices apart
    step: Fraction = field(hash=False)
    lo: Fraction = field(hash=False)
    hi: Fraction = field(hash=False)
    exact: bool

    @property
    def width(self) -> int:
        """W = high - low."""
        return self.high - self.low

    @property
    def reach(self) -> int:
        """B = max(|low|, |high|)."""
        return max(abs(self.low), abs(self.high))

    @property
    def last(self) -> int:
        """The number of the last candidate of a choice by rank; they are counted from 0, ascending."""
        return self.width

    def at(self, place: int) -> int:
        """Return the integer of a candidate. Requires: 0 <= place <= last."""
        return self.low + place


LOG_PARTS = 2**10
"""Two neighbours of a log lattice are apart by at most this part of their size."""


@dataclass(frozen=True, slots=True)
class LogLattice(Lattice):
    """A lattice whose candidates are its integers of at most eleven leading bits, and its two ends.

    Rungs are these by number, 0 for 0 and mirrored below it: `m` up to 2M, then for e >= 1 `e·M + m` for `m·2^e`,
    M < m <= 2M, with M = `LOG_PARTS`. An integer stands on the least rung that is not below it in magnitude. The
    candidate is that rung's integer, or the end beyond which it would lie; on the first rung `low`, on the last `high`:
    off by a part of 1/M at most (soundness.md 1.20).
    """

    @property
    def last(self) -> int:
        return rung_of(self.high) - rung_of(self.low)

    def at(self, place: int) -> int:
        if place in (0, self.last):
            return self.high if place else self.low
        rung = rung_of(self.low) + place
        shift = max(0, (abs(rung) - 1) // LOG_PARTS - 1)
        size = (abs(rung) - shift * LOG_PARTS) << shift
        return max(self.low, min(self.high, size if rung > 0 else -size))


def rung_of(z: int) -> int:
    """Return the rung of an integer of a log lattice."""
    size = abs(z)
    shift = max(0, (size - 1).bit_length() - LOG_PARTS.bit_length()) if size else 0
    rung = shift * LOG_PARTS + -(-size >> shift)
    return rung if z >= 0 else -rung


def candidates_of(expr: Expr, env: Environment) -> Lattice | None:
    """Return the lattice that a value is chosen from by its rank. None, and raises, as `lattice_of`."""
    found = lattice_of(expr, env, squared=False)
    is_log = isinstance(expr, Field) and env.columns[expr.index].is_log
    if found is None or not is_log:
        return found
    return LogLattice(found.low, found.high, found.step, found.lo, found.hi, found.exact)


def lattice_of(expr: Expr, env: Environment, *, squared: bool) -> Lattice | None:
    """Return the lattice of a numeric expression; None when its interval is empty.

    Raises:
        Refusal: PV101 when the bounds are not declared, PV201 when they are too wide.
    """
    if (expr, squared) not in env.lattices:
        env.lattices[expr, squared] = _lattice_of(expr, env, squared=squared)
    return env.lattices[expr, squared]


def _lattice_of(expr: Expr, env: Environment, *, squared: bool) -> Lattice | None:
    facts = narrowed_facts(expr, env)
    if facts.lo is None or facts.hi is None or not facts.declared:
        raise undeclared(expr, env)
    lo, hi = facts.lo, facts.hi
    if lo > hi:
        return None
    loose = hi - lo > 2**53 and any(parts_in(IntermediateValue, expr))
    if loose or max(abs(lo), abs(hi)) > _MAX_REAL or (squared and (hi - lo) ** 2 > _MAX_REAL):
        raise Refusal(
            "the bounds of this expression are too wide for a useful answer",
            sqlstate="PV201",
            position=expr.position,
            hint="give the subquery's value two ends: GREATEST(low, LEAST(high, (SELECT …)))"
            if loose
            else "clamp it: GREATEST(low, LEAST(high, …))",
        )
    column = env.declared(expr) or member_of(expr, env)
    declared = None if column is None else column.step
    step = declared or facts.grid
    if step is not None and facts.grid is not None and (step / facts.grid).denominator == 1:
        low, high = math.ceil(lo / step), math.floor(hi / step)
        fits = high - low <= _EXACT_SQUARED_WIDTH or not squared
        on_grid = step == facts.grid
        if on_grid and low <= high and max(abs(low), abs(high)) < _MAX_ENDPOINT and fits:
            return Lattice(low, high, step, lo, hi, exact=True)
        if on_grid and low > high:
            return None
    if step is None or facts.grid is not None or (squared and (hi - lo) / step > _EXACT_SQUARED_WIDTH):
        step = _power_of_two((hi - lo), _SQUARED_WIDTH if squared else _REAL_WIDTH)
        step = step if declared is None or squared else declared
    low, high = _rounded(lo, step), _rounded(hi, step)
    if max(abs(low), abs(high)) >= _MAX_ENDPOINT:
        raise Refusal(
            "the bounds of this expression are too wide to be summed exactly",
            sqlstate="PV201",
            position=expr.position,
            hint="narrow the declared bounds, or filter with BETWEEN",
        )
    return Lattice(low, high, step, lo, hi, exact=False)


def _power_of_two(width: Fraction, cells: int) -> Fraction:
    """Return the smallest power of two g with width / g <= cells (1 for width 0)."""
    if width == 0:
        return Fraction(1)
    least = width / cells
    exponent = (
        least.numerator.bit_length() - least.denominator.bit_length()
    )  # a half to twice of what is wanted
    exponent += least > Fraction(2) ** exponent
    return Fraction(2) ** max(exponent, -60)


def _rounded(end: Fraction, step: Fraction) -> int:
    """Round an endpoint just as the printed SQL rounds a value equal to it: in doubles, half to even."""
    inverse = 1 / step
    value = float(end) * float(inverse) if inverse.denominator == 1 else float(end) / float(step)
    return round(value)


def undeclared(expr: Expr, env: Environment) -> Refusal:
    """Return the refusal of an expression without finite declared bounds: it names the column that has none."""
    for part in walk(expr):
        column = env.declared(part)
        if column is None or column.bounds is not None or not column.name:
            continue
        if column.type.is_number or column.type.is_temporal:
            return Refusal(
                f'bounds of column "{column.name}" are not declared',
                sqlstate="PV101",
                position=part.position or expr.position,
                hint=f"filter with {column.name} BETWEEN … AND …, or ask the owner to declare its bounds",
                owner_hint=f"write {column.name} = {{ bounds = [lower, upper] }} among its table's columns in the "
                f"policy, or filter with {column.name} BETWEEN … AND …",
            )
    return Refusal(
        "this expression has no finite bounds",
        sqlstate="PV201",
        position=expr.position,
        hint="filter it in WHERE with … BETWEEN low AND high, and keep 0 out of divisors",
    )

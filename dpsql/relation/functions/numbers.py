"""Functions of numbers: arithmetic, and the same operators on dates and intervals; roundings, powers, the real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from ...records import dataclass
from ..calendar import DAY, calendar_ends, shift_bounds
from ..expressions import Call, Months
from ..facts import ONE, ZERO, Facts, common_grid
from ..types import DATE, DOUBLE, INTEGER, NUMERIC, TIMESTAMP, Kind, SqlType
from .row import Args, Function, IntervalRule, Syntax, any_null, binary, declared, promote, unary


def _scale(type_: SqlType) -> int | None:
    return 0 if type_.is_integer else type_.scale


def _scaled(type_: SqlType, args: Args, combine: Callable[[int, int], int]) -> SqlType:
    """Carry the decimal scale of + - * through NUMERIC, as Postgres prints it."""
    if type_.kind is not Kind.NUMERIC:
        return type_
    left, right = _scale(args[0].type), _scale(args[1].type)
    if left is None or right is None:
        return NUMERIC
    return SqlType(Kind.NUMERIC, 38, min(combine(left, right), 30))


def _add(args: Args) -> SqlType | None:
    left, right = args[0].type, args[1].type
    if right.kind is Kind.INTERVAL and left.is_temporal:
        return TIMESTAMP
    if left.kind is Kind.INTERVAL and right.is_temporal:
        return TIMESTAMP
    if left.kind is Kind.DATE and right.is_integer:
        return DATE
    both = promote(left, right)
    return both and _scaled(both, args, max)


def _sub(args: Args) -> SqlType | None:
    left, right = args[0].type, args[1].type
    if left.is_temporal and right.kind is Kind.INTERVAL:
        return TIMESTAMP
    if left.kind is Kind.DATE and right.kind is Kind.DATE:
        return INTEGER
    if left.kind is Kind.DATE and right.is_integer:
        return DATE
    both = promote(left, right)
    return both and _scaled(both, args, max)


def _mul(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return both and _scaled(both, args, lambda a, b: a + b)


def _div(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return NUMERIC if both is not None and both.kind is Kind.NUMERIC else both


def _mod(args: Args) -> SqlType | None:
    both = promote(args[0].type, args[1].type)
    return None if both is None or both.is_float else both


def same_number(args: Args) -> SqlType | None:
    """Return the type of the first argument, if it is a number."""
    return args[0].type if args[0].type.is_number else None


def _sum_of(args: list[Facts], call: Call) -> Facts:
    a, b = args
    if _interval_in(call) is not None:
        return _shifted(args, call)
    lo = hi = None
    if a.lo is not None and a.hi is not None and b.lo is not None and b.hi is not None:
        least, most = (b.lo, b.hi) if _SIGN[call.function] > 0 else (-b.hi, -b.lo)
        lo, hi = a.lo + least, a.hi + most
    return Facts(lo, hi, common_grid([a.grid, b.grid]), declared=declared(args))


def _interval_in(call: Call) -> int | None:
    """Return which argument is an interval."""
    return next((i for i in (1, 0) if call.args[i].type.kind is Kind.INTERVAL), None)


def _shifted(args: list[Facts], call: Call) -> Facts:
    at = _interval_in(call)
    assert at is not None
    if not call.args[at].is_constant:
        return Facts()
    moment = 1 - at
    if not args[moment].bounded:  # read within the years from which it does not leave those of the calendar
        first, last = (Fraction(end) for end in calendar_ends(TIMESTAMP))
        return Facts(first, last, ONE)
    lo, hi = shift_bounds(
        args[moment].lo,
        args[moment].hi,
        call.args[moment].type,
        call.literal(at, Months),
        _SIGN[call.function],
    )
    return Facts(lo, hi, ONE, declared=args[moment].declared)


_SIGN = {"add": 1, "sub": -1}


def shiftable(call: Call) -> tuple[int, int]:
    """Return the first and the last moment, of its own type, that stays in the years 1 to 9999 when it is shifted."""
    at = _interval_in(call)
    assert at is not None
    type_ = call.args[1 - at].type
    first, last = (Fraction(end) for end in calendar_ends(type_))
    low, high = shift_bounds(first, last, type_, call.literal(at, Months), _SIGN[call.function])
    assert low is not None
    assert high is not None
    scale = DAY if type_.kind is Kind.DATE else 1
    before, after = first * scale - low, high - last * scale
    ends = first + max(Fraction(0), before) / scale, last - max(Fraction(0), after) / scale
    return math.ceil(ends[0]), math.floor(ends[1])


def _leaves_calendar(args: list[Facts], call: Call) -> bool:
    """Say whether a moment ± an interval may be outside the years 1 to 9999: NULL."""
    at = _interval_in(call)
    return at is not None and not (call.args[at].is_constant and args[1 - at].bounded)


def _product(args: list[Facts], call: Call) -> Facts:
    a, b = args
    grid = None if a.grid is None or b.grid is None else a.grid * b.grid
    if a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return Facts(grid=grid)
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Facts(min(corners), max(corners), grid, declared=declared(args))


def _may_be_zero(facts: Facts) -> bool:
    """Say whether 0 is between the ends, or is one of them: where no value is left, these are the wrong way round."""
    return facts.lo is None or facts.hi is None or facts.lo * facts.hi <= 0


def _quotient(args: list[Facts], call: Call) -> Facts:
    a, b = args
    whole = call.type.is_integer
    if whole and a.lo is not None and a.hi is not None and _may_be_zero(b):
        reach = max(abs(a.lo), abs(a.hi))  # |a / b| <= |a| for integers b, b <> 0
        return Facts(-reach, reach, ONE, declared=a.declared)
    if _may_be_zero(b) or a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return Facts(grid=ONE if whole else None)
    corners = [x / y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo, hi = min(corners), max(corners)
    if whole:
        return Facts(Fraction(math.trunc(lo)), Fraction(math.trunc(hi)), ONE, declared=declared(args))
    # Divided by a constant, exact numbers stay on a lattice.
    grid = a.grid / abs(b.lo) if a.grid is not None and b.lo == b.hi and b.grid is not None else None
    return Facts(lo, hi, grid, declared=declared(args))


def _remainder(args: list[Facts], call: Call) -> Facts:
    a, b = args
    grid = common_grid([a.grid, b.grid])
    if b.lo is None or b.hi is None or a.lo is None:
        return Facts(grid=grid)
    reach = max(abs(b.lo), abs(b.hi))
    reach = reach if grid is None else max(ZERO, reach - grid)
    # It has a's sign, or is 0, and is no larger than a.
    lo, hi = max(-reach, min(a.lo, ZERO)), reach if a.hi is None else min(reach, max(a.hi, ZERO))
    values = None
    if grid == 1 and b.lo == b.hi and reach <= 1000:
        values = tuple(Fraction(v) for v in range(int(lo), int(hi) + 1))
    return Facts(lo, hi, grid, values=values, declared=b.declared)


def _negated(args: list[Facts], call: Call) -> Facts:
    (a,) = args
    lo = None if a.hi is None else -a.hi
    hi = None if a.lo is None else -a.lo
    return replace(a, lo=lo, hi=hi, values=None)


def _absolute(args: list[Facts], call: Call) -> Facts:
    (a,) = args
    if a.lo is None or a.hi is None:
        return replace(a, lo=ZERO, hi=None, values=None)
    reach = max(abs(a.lo), abs(a.hi))
    low = ZERO if a.lo <= 0 <= a.hi else min(abs(a.lo), abs(a.hi))
    return replace(a, lo=low, hi=reach, values=None)


def _shift_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or _leaves_calendar(args, call)


def _division_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or _may_be_zero(args[1])


ARITHMETIC = (
    Function(
        "add", "x + y", "a sum; a date plus days or an interval", _add, _sum_of,
        binary(exp.Add), null=_shift_null, symbol="+",
    ),
    Function(
        "sub", "x - y", "a difference; the days between two dates; a date minus days or an interval", _sub, _sum_of,
        binary(exp.Sub), null=_shift_null, symbol="-",
    ),
    Function("mul", "x * y", "a product", _mul, _product, binary(exp.Mul), symbol="*"),
    Function(
        "div", "x / y", "a quotient, of integers cut towards zero; NULL for a division by zero", _div, _quotient,
        (Syntax(exp.Div, ("this", "expression"), ("typed", "safe")),), null=_division_null, symbol="/",
    ),
    Function(
        "mod", "x % y", "what a division of exact numbers leaves, with the sign of `x`; NULL for one by zero", _mod,
        _remainder, binary(exp.Mod), null=_division_null, symbol="%",
    ),
    Function("neg", "-x", "the number with the other sign", same_number, _negated, unary(exp.Neg), symbol="-"),
    Function("abs", "abs(x)", "the size of a number", same_number, _absolute, unary(exp.Abs)),
)  # fmt: skip


def _round(args: Args) -> SqlType | None:
    if len(args) == 1:
        return _whole(args)
    first, digits = args[0].type, args[1].constant_as(int)
    if not first.is_number or first.is_float or digits is None:
        return None
    return SqlType(Kind.NUMERIC, 38, max(0, digits))


def _whole(args: Args) -> SqlType | None:
    if not args[0].type.is_number:
        return None
    return DOUBLE if args[0].type.is_float else SqlType(Kind.NUMERIC, 38, 0)


def _real(args: Args) -> SqlType | None:
    if not args[0].type.is_number:
        return None
    return NUMERIC if args[0].type.kind is Kind.NUMERIC else DOUBLE


def _double(args: Args) -> SqlType | None:
    return DOUBLE if args[0].type.is_number else None


def _power(args: Args) -> SqlType | None:
    if not all(arg.type.is_number for arg in args):
        return None
    floats = any(arg.type.is_float for arg in args)
    return NUMERIC if not floats and any(arg.type.kind is Kind.NUMERIC for arg in args) else DOUBLE


def _rounded(args: list[Facts], call: Call) -> Facts:
    a = args[0]
    digits = (call.args[1].constant_as(int) if len(call.args) > 1 else None) or 0
    step = Fraction(10) ** -digits
    if a.lo is None or a.hi is None:
        return Facts(grid=step)
    lo, hi = (_steps_below_and_above(call.function, end / step) for end in (a.lo, a.hi))
    return Facts(lo[0] * step, hi[1] * step, step, declared=a.declared)


def _steps_below_and_above(function: str, end: Fraction) -> tuple[int, int]:
    """Return the lowest and highest whole number that an end may be taken to: halves go either way."""
    if function == "round":
        return math.ceil(end - Fraction(1, 2)), math.floor(end + Fraction(1, 2))
    whole = (
        math.floor(end) if function == "floor" else math.ceil(end) if function == "ceil" else math.trunc(end)
    )
    return whole, whole


def _monotone(function: Callable[[float], float], floor: float, ceiling: float) -> IntervalRule:
    """A rising real function, its argument limited to [floor, ceiling]; endpoints widened outward."""

    def rule(args: list[Facts], call: Call) -> Facts:
        (a,) = args
        if a.lo is None or a.hi is None or a.lo < Fraction(floor) or a.hi > Fraction(ceiling):
            return Facts()
        lo, hi = function(float(a.lo)), function(float(a.hi))
        slack = 1e-12 * max(1.0, abs(lo), abs(hi))
        return Facts(Fraction(lo - slack), Fraction(hi + slack), declared=a.declared)

    return rule


def _raised(args: list[Facts], call: Call) -> Facts:
    base, exponent = args
    if exponent.lo is None or exponent.lo != exponent.hi or base.lo is None or base.hi is None:
        return Facts()
    count = exponent.lo
    if count.denominator != 1 or not 0 <= count <= 8:
        return Facts()
    corners = [base.lo ** int(count), base.hi ** int(count)]
    if base.lo < 0 < base.hi:
        corners.append(ZERO)
    grid = None if base.grid is None else base.grid ** int(count)
    return Facts(min(corners), max(corners), grid, declared=declared(args))


def _power_null(args: list[Facts], call: Call) -> bool:
    return any_null(args, call) or not _raised(args, call).bounded


def _within(lo: int, hi: int, grid: Fraction | None = None) -> IntervalRule:
    return lambda args, call: Facts(Fraction(lo), Fraction(hi), grid, declared=True)


_DIGITS = ("this", "decimals")
_A, _B = "CAST(({a}) AS DOUBLE)", "CAST(({b}) AS DOUBLE)"

ROWS = (
    Function(
        "round", "round(x, digits)", "rounded, halves away from zero, of doubles to even; without "
        "`digits` to a whole number", _round, _rounded, (Syntax(exp.Round, read=_DIGITS),),
    ),
    Function("trunc", "trunc(x, digits)", "cut towards zero", _round, _rounded, (Syntax(exp.Trunc, read=_DIGITS),)),
    Function(
        "floor", "floor(x)", "the next whole number below", _whole, _rounded, unary(exp.Floor), above=f"floor({_A})"
    ),
    Function("ceil", "ceil(x)", "the next whole number above", _whole, _rounded, unary(exp.Ceil), above=f"ceil({_A})"),
    Function("sign", "sign(x)", "-1, 0 or 1", same_number, _within(-1, 1, ONE), unary(exp.Sign)),
    Function(
        "power", "power(x, n)", "`x` to the `n`, on people's rows from 0 to 8", _power, _raised,
        binary(exp.Pow), null=_power_null, above=f"list_filter([pow({_A}, {_B})], lambda v: isfinite(v))[1]",
    ),
    Function(
        "sqrt", "sqrt(x)", "the square root", _real, _monotone(math.sqrt, 0.0, 1e300), unary(exp.Sqrt),
        above=f"sqrt(list_filter([{_A}], lambda v: v >= 0)[1])",
    ),
    Function(
        "exp", "exp(x)", "e to the `x`", _real, _monotone(math.exp, -700.0, 700.0), unary(exp.Exp),
        above=f"list_filter([exp({_A})], lambda v: isfinite(v))[1]",
    ),
    Function(
        "ln", "ln(x)", "the natural logarithm", _real, _monotone(math.log, 1e-300, 1e300), unary(exp.Ln),
        above=f"ln(list_filter([{_A}], lambda v: v > 0)[1])",
    ),
    Function(
        "log", "log(x)", "the logarithm to base 10", _real, _monotone(math.log10, 1e-300, 1e300),
        (Syntax(exp.Log, read=("this", "expression")),), above=f"log10(list_filter([{_A}], lambda v: v > 0)[1])",
    ),
    Function("sin", "sin(x)", "the sine", _double, _within(-1, 1), unary(exp.Sin), above="sin(CAST({a} AS DOUBLE))"),
    Function("cos", "cos(x)", "the cosine", _double, _within(-1, 1), unary(exp.Cos), above="cos(CAST({a} AS DOUBLE))"),
    Function(
        "atan", "atan(x)", "the inverse tangent", _double, _within(-2, 2), unary(exp.Atan),
        above="atan(CAST({a} AS DOUBLE))",
    ),
    Function(
        "tanh", "tanh(x)", "the hyperbolic tangent", _double, _within(-1, 1), unary(exp.Tanh),
        above="tanh(CAST({a} AS DOUBLE))",
    ),
)  # fmt: skip

ERROR_BARS = (
    Function("dp_low", "dp_low(x)", "the lower end of the error bar of `x`", _double, private=False, public=False,
             below="it is of an answer: dp_low(COUNT(*))"),
    Function("dp_high", "dp_high(x)", "the upper end of the error bar of `x`", _double, private=False, public=False,
             below="it is of an answer: dp_high(COUNT(*))"),
)  # fmt: skip
"""Released numbers alone have them; `postprocess.bars` puts columns in their place."""

ESTIMATES = (
    Function(
        "estimated", "estimated(x, variance, number, said)", "`x`, an estimate with an error of its own",
        lambda args: DOUBLE, lambda args, call: Facts(), private=False, above="{a}",
    ),
    Function(
        "deviate", "deviate(number, draw, …)", "a standard normal number, a function of its arguments",
        lambda args: DOUBLE, lambda args, call: Facts(), private=False,
    ),
)  # fmt: skip
"""No forms of the language: only dpsql writes them, over aggregates of randomised answers (soundness.md 1.24)."""


# --- functions that put values into bins, which are known beforehand: `width_bucket` ------------------------


MAX_BUCKETS = 1_000
"""Most buckets of `width_bucket`: as many groups as are derived from bounds."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """`count` buckets of one width from `low` to `high`, downwards where `low` is above; 0 and `count` + 1 beyond.

    `of_doubles`: computed in doubles, as Postgres does where one of the arguments is one; else exactly. As Postgres 16
    and later do: those before add 1 before they cut, so that a double just below an edge may be beyond it.
    """

    low: Fraction
    high: Fraction
    count: int
    of_doubles: bool

    @property
    def rises(self) -> bool:
        """Whether greater values have greater numbers."""
        return self.low < self.high

    @property
    def width(self) -> Fraction:
        """From one end to the other: of doubles their difference as a double."""
        ends = max(self.low, self.high), min(self.low, self.high)
        return Fraction(float(ends[0]) - float(ends[1])) if self.of_doubles else ends[0] - ends[1]

    @property
    def edges(self) -> list[Fraction]:
        """The ends of the buckets, of exact ones, from `low` to `high`."""
        return [self.low + (self.high - self.low) * k / self.count for k in range(self.count + 1)]

    def number(self, value: Fraction) -> int:
        """Return the bucket of a value."""
        value = Fraction(float(value)) if self.of_doubles else value
        if (value < self.low) if self.rises else (value > self.low):
            return 0
        if (value >= self.high) if self.rises else (value <= self.high):
            return self.count + 1
        if not self.of_doubles:
            return math.floor(abs(value - self.low) * self.count / self.width) + 1
        share = abs(float(value) - float(self.low)) / float(self.width)
        return min(int(self.count * share), self.count - 1) + 1


def buckets_of(call: Call) -> Buckets:
    """Return the buckets of a call of `width_bucket`, whose ends and count are literals."""
    low, high, count = (arg.constant for arg in call.args[1:] if arg.is_constant)
    assert isinstance(low, (int, Fraction))
    assert isinstance(high, (int, Fraction))
    assert isinstance(count, int)
    of_doubles = any(arg.type.is_float for arg in call.args[:3])
    if of_doubles:
        low, high = Fraction(float(low)), Fraction(float(high))
    return Buckets(Fraction(low), Fraction(high), count, of_doubles)


def _type(args: Args) -> SqlType | None:
    return INTEGER if all(arg.type.is_number for arg in args) and args[3].type.is_integer else None


def _bucket(args: list[Facts], call: Call) -> Facts:
    buckets, a = buckets_of(call), args[0]
    first, last = ZERO, Fraction(buckets.count + 1)
    if a.lo is not None and a.hi is not None:
        ends = [Fraction(buckets.number(end)) for end in (a.lo, a.hi)]
        first, last = min(ends), max(ends)
    return Facts(first, last, ONE, declared=True)


BINS = (
    Function(
        "width_bucket", "width_bucket(x, 0, 10, 5)",
        "which of so many bins of one width `x` is in, from 1; 0 and one more than all beyond them",
        _type, _bucket,
    ),
)  # fmt: skip

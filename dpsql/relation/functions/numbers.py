"""Functions of numbers: roundings, powers, and the real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ...records import dataclass
from ..expressions import Call
from ..facts import ONE, ZERO, Facts
from ..types import DOUBLE, INTEGER, NUMERIC, Kind, SqlType
from .arithmetic import same_number
from .row import Args, Function, IntervalRule, Syntax, any_null, binary, declared, unary

__all__ = ["BINS", "ERROR_BARS", "ESTIMATES", "MAX_BUCKETS", "ROWS", "Buckets", "buckets_of"]


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

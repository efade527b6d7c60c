"""Arithmetic on numbers, and the same operators on dates and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from ..calendar import DAY, calendar_ends, shift_bounds
from ..expressions import Call, Months
from ..facts import ONE, ZERO, Facts, common_grid
from ..types import DATE, INTEGER, NUMERIC, TIMESTAMP, Kind, SqlType
from .row import Args, Function, Syntax, any_null, binary, declared, promote, unary

__all__ = ["ROWS", "same_number", "shiftable"]


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


ROWS = (
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

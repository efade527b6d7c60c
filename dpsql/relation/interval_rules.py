"""Interval arithmetic: one rule per function of the table in `functions`.

House rules:

1. A rule is given the facts of the arguments, true for every row, and returns facts that are true of
   the printed call (`facts_of` states the claim).
2. `declared` is passed on only where every bound that was used is declared.
3. A rule that is wrong here must not break privacy: the printed SQL clamps the final value to the
   bounds that the sensitivity was computed from (law L9). It could break totality; the property tests
   run rows within and outside all bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from .calendar import DAY, extract_bounds, shift_bounds, truncate_bounds
from .expressions import Call, Literal
from .facts import ONE, ZERO, Facts, common_grid, grid_of, hull
from .size_rules import cut_to_size
from .types import Kind

__all__ = ["RULES", "Rule"]

Rule = Callable[[list[Facts], Call], Facts]


def _nullable(args: Sequence[Facts]) -> bool:
    return any(arg.nullable for arg in args)


def _declared(args: Sequence[Facts]) -> bool:
    return all(arg.declared for arg in args)


def _boolean(args: list[Facts], call: Call) -> Facts:
    return Facts(ZERO, ONE, ONE, _nullable(args), (False, True), True)


def _certain(args: list[Facts], call: Call) -> Facts:
    return Facts(ZERO, ONE, ONE, False, (False, True), True)


def _counted(args: list[Facts], call: Call) -> Facts:
    """A length or a position in a text: whole, and no text is longer than 2^32 bytes.

    A text whose size is declared is cut to it where nothing holds it already; '' is found in '' at 1.
    """
    size, declared = args[0].size, args[0].declared
    most = max(size.most, 1) if size.is_held or declared else 2**32
    return Facts(ZERO, Fraction(most), ONE, _nullable(args), None, declared)


def _unbounded(args: list[Facts], call: Call) -> Facts:
    return Facts(nullable=_nullable(args))


def _sum_of(args: list[Facts], call: Call) -> Facts:
    a, b = args
    sign = -1 if call.function == "sub" else 1
    if call.args[1].type.kind is Kind.INTERVAL or call.args[0].type.kind is Kind.INTERVAL:
        return _shifted(args, call)
    lo = hi = None
    if a.lo is not None and a.hi is not None and b.lo is not None and b.hi is not None:
        lo, hi = (a.lo - b.hi, a.hi - b.lo) if sign < 0 else (a.lo + b.lo, a.hi + b.hi)
    return Facts(lo, hi, common_grid([a.grid, b.grid]), _nullable(args), None, _declared(args))


def _shifted(args: list[Facts], call: Call) -> Facts:
    moment, interval = (0, 1) if call.args[1].type.kind is Kind.INTERVAL else (1, 0)
    literal = call.args[interval]
    if not isinstance(literal, Literal) or not args[moment].bounded:
        return Facts(nullable=True)  # outside the years 1 to 9999: NULL
    sign = -1 if call.function == "sub" else 1
    lo, hi = shift_bounds(args[moment].lo, args[moment].hi, call.args[moment].type, literal.value, sign)
    return Facts(lo, hi, ONE, args[moment].nullable, None, args[moment].declared)


def _product(args: list[Facts], call: Call) -> Facts:
    a, b = args
    grid = None if a.grid is None or b.grid is None else a.grid * b.grid
    if a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return Facts(nullable=_nullable(args), grid=grid)
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Facts(min(corners), max(corners), grid, _nullable(args), None, _declared(args))


def _quotient(args: list[Facts], call: Call) -> Facts:
    a, b = args
    whole = call.type.is_integer
    crosses_zero = b.lo is None or b.hi is None or b.lo <= 0 <= b.hi
    nullable = _nullable(args) or crosses_zero
    if whole and a.lo is not None and a.hi is not None:
        reach = max(abs(a.lo), abs(a.hi))  # |a / b| <= |a| for integers b, b <> 0
        if crosses_zero:
            return Facts(-reach, reach, ONE, nullable, None, a.declared)
    if crosses_zero or a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return Facts(nullable=nullable, grid=ONE if whole else None)
    corners = [x / y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo, hi = min(corners), max(corners)
    if whole:
        return Facts(Fraction(math.trunc(lo)), Fraction(math.trunc(hi)), ONE, nullable, None, _declared(args))
    # Divided by a constant, exact numbers stay on a lattice.
    grid = a.grid / abs(b.lo) if a.grid is not None and b.lo == b.hi and b.grid is not None else None
    return Facts(lo, hi, grid, nullable, None, _declared(args))


def _remainder(args: list[Facts], call: Call) -> Facts:
    a, b = args
    if b.lo is None or b.hi is None or a.lo is None:
        return Facts(nullable=True, grid=common_grid([a.grid, b.grid]))
    reach = max(abs(b.lo), abs(b.hi))
    grid = common_grid([a.grid, b.grid])
    reach = reach if grid is None else max(ZERO, reach - grid)
    lo = -reach if a.lo < 0 else ZERO
    nullable = _nullable(args) or b.lo <= 0 <= b.hi
    values = None
    if grid == 1 and b.lo == b.hi and reach <= 1000:
        values = tuple(Fraction(v) for v in range(int(lo), int(reach) + 1))
    return Facts(lo, reach, grid, nullable, values, b.declared)


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


def _case(args: list[Facts], call: Call) -> Facts:
    branches = [*args[1:-1:2], args[-1]]
    return hull(branches, _nullable(branches))


def _coalesce(args: list[Facts], call: Call) -> Facts:
    return hull(args, all(arg.nullable for arg in args))


def _extreme(args: list[Facts], call: Call) -> Facts:
    """GREATEST and LEAST skip NULL: an argument that is never NULL holds the result on its side.

    Not for moments: a choice between them is clamped as a whole when both of its ends are known, and
    its arguments are not.
    """
    whole = replace(hull(args, all(arg.nullable for arg in args)), values=None)
    if call.type.is_temporal:
        return whole
    certain = [arg for arg in args if not arg.nullable]
    if call.function == "greatest":
        ends = [arg.lo for arg in certain if arg.lo is not None]
        return replace(whole, lo=max(ends)) if ends else whole
    ends = [arg.hi for arg in certain if arg.hi is not None]
    return replace(whole, hi=min(ends)) if ends else whole


def _nullif(args: list[Facts], call: Call) -> Facts:
    return replace(args[0], nullable=True)


def _rounded(args: list[Facts], call: Call) -> Facts:
    a = args[0]
    digits = 0
    if len(call.args) > 1 and isinstance(call.args[1], Literal) and isinstance(call.args[1].value, int):
        digits = call.args[1].value
    step = Fraction(10) ** -digits
    if a.lo is None or a.hi is None:
        return Facts(nullable=a.nullable, grid=step)
    lo, hi = math.floor(a.lo / step) * step, math.ceil(a.hi / step) * step
    return Facts(lo, hi, step, a.nullable, None, a.declared)


def _monotone(function: Callable[[float], float], floor: float, ceiling: float) -> Rule:
    """A rising real function, its argument limited to [floor, ceiling]; endpoints widened outward."""

    def rule(args: list[Facts], call: Call) -> Facts:
        (a,) = args
        if a.lo is None or a.hi is None or a.lo < Fraction(floor) or a.hi > Fraction(ceiling):
            return Facts(nullable=a.nullable)
        lo, hi = function(float(a.lo)), function(float(a.hi))
        slack = 1e-12 * max(1.0, abs(lo), abs(hi))
        return Facts(Fraction(lo - slack), Fraction(hi + slack), None, a.nullable, None, a.declared)

    return rule


def _power(args: list[Facts], call: Call) -> Facts:
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
    return Facts(min(corners), max(corners), grid, _nullable(args), None, _declared(args))


def _within(lo: int, hi: int, grid: Fraction | None) -> Rule:
    def rule(args: list[Facts], call: Call) -> Facts:
        return Facts(Fraction(lo), Fraction(hi), grid, _nullable(args), None, True)

    return rule


def _substring(args: list[Facts], call: Call) -> Facts:
    """A substring of finitely many ASCII texts is one of finitely many texts."""
    values = args[0].values
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
    if values is None or len(numbers) != len(call.args) - 1 or not all(isinstance(n, int) for n in numbers):
        return Facts(nullable=_nullable(args))
    texts = [value for value in values if isinstance(value, str)]
    if call.function == "substr":
        start = int(numbers[0])  # type: ignore[arg-type]  # checked to be int above
        stop = None if len(numbers) == 1 else start - 1 + int(numbers[1])  # type: ignore[arg-type]  # as above
        cut = [text[max(start - 1, 0) : stop] for text in texts]
    else:
        count = int(numbers[0])  # type: ignore[arg-type]  # checked to be int above
        cut = [
            text[:count] if call.function == "left" else text[max(len(text) - count, 0) :] for text in texts
        ]
    return Facts(nullable=_nullable(args), values=tuple(dict.fromkeys(cut)))


def _letter_case(args: list[Facts], call: Call) -> Facts:
    values = cut_to_size(args[0]).values
    if values is None or not all(isinstance(v, str) and v.isascii() for v in values):
        return Facts(nullable=_nullable(args))
    change = str.lower if call.function == "lower" else str.upper
    changed = tuple(dict.fromkeys(change(str(value)) for value in values))
    return Facts(nullable=_nullable(args), values=changed)


def _extract(args: list[Facts], call: Call) -> Facts:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    a = args[1]
    bounds = extract_bounds(str(unit.value), a.lo, a.hi, call.args[1].type)
    if bounds is None:
        return Facts(nullable=True)
    lo, hi, whole = bounds
    # 'infinity' has no field: NULL, unless the column is clamped into declared bounds first.
    return Facts(lo, hi, ONE if whole else None, a.nullable or not a.declared, None, True)


def _date_trunc(args: list[Facts], call: Call) -> Facts:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    a = args[1]
    if a.lo is None or a.hi is None:
        return Facts(nullable=True, grid=ONE)  # outside the years 1 to 9999: NULL
    lo, hi = truncate_bounds(str(unit.value), a.lo, a.hi, call.args[1].type)
    return Facts(lo, hi, ONE, a.nullable, None, a.declared)


def _cast(args: list[Facts], call: Call) -> Facts:
    a, source, target = args[0], call.args[0].type, call.type
    if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
        lo = None if a.lo is None else a.lo * DAY
        hi = None if a.hi is None else a.hi * DAY
        return Facts(lo, hi, ONE, a.nullable or not a.bounded, None, a.declared)
    if source.kind is Kind.TIMESTAMP and target.kind is Kind.DATE:
        if a.lo is None or a.hi is None:
            return Facts(nullable=True, grid=ONE)
        return Facts(Fraction(a.lo // DAY), Fraction(a.hi // DAY), ONE, a.nullable, None, a.declared)
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        step = grid_of(target)
        assert step is not None
        if a.lo is None or a.hi is None:
            return Facts(nullable=a.nullable, grid=step)
        lo, hi = math.floor(a.lo / step) * step, math.ceil(a.hi / step) * step
        exact = a.grid is not None and (a.grid / step).denominator == 1
        values = a.values if exact else None
        if source.kind is Kind.BOOLEAN:
            values = None if a.values is None else tuple(Fraction(bool(value)) for value in a.values)
        return Facts(a.lo if exact else lo, a.hi if exact else hi, step, a.nullable, values, a.declared)
    if target.kind is Kind.TEXT:
        return Facts(nullable=a.nullable, values=a.values if source.kind is Kind.TEXT else None)
    return a


RULES: dict[str, Rule] = {
    "add": _sum_of, "sub": _sum_of, "mul": _product, "div": _quotient, "mod": _remainder,
    "neg": _negated, "abs": _absolute,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "in", "and", "or", "not", "like"), _boolean),
    **dict.fromkeys(("is_null", "is_true", "is_false", "is_not_distinct"), _certain),
    "case": _case, "coalesce": _coalesce, "greatest": _extreme, "least": _extreme, "nullif": _nullif,
    "round": _rounded, "floor": _rounded, "ceil": _rounded, "trunc": _rounded,
    "sqrt": _monotone(math.sqrt, 0.0, 1e300), "ln": _monotone(math.log, 1e-300, 1e300),
    "log": _monotone(math.log10, 1e-300, 1e300), "exp": _monotone(math.exp, -700.0, 700.0),
    "power": _power, "sign": _within(-1, 1, ONE), "sin": _within(-1, 1, None),
    "cos": _within(-1, 1, None), "tanh": _within(-1, 1, None), "atan": _within(-2, 2, None),
    "length": _counted, "position": _counted,
    **dict.fromkeys(("trim", "ltrim", "rtrim", "concat", "concat_op"), _unbounded),
    "lower": _letter_case, "upper": _letter_case,
    **dict.fromkeys(("substr", "left", "right"), _substring),
    "extract": _extract, "date_trunc": _date_trunc, "cast": _cast,
    "dp_low": _unbounded, "dp_high": _unbounded,
}  # fmt: skip
"""Function name -> its rule."""

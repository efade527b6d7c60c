"""Numeric operators and functions on private rows; `print_private` has the house rules.

Doubles first: arithmetic that stays inside their range, since Postgres raises where a result leaves it.

House rules of these:

1. `Number.most` and `Number.least` follow from the printed clamps and operators alone.
2. A result beyond 2^1020 cannot occur: what could pass it is refused.
3. A product or a quotient that could fall below 2^-1020 has its operands flushed first: what is smaller
   than 2^-510, or 2^(-1020/k) in a k-th power, counts as 0, on every engine (soundness.md 1.9 and 1.11:
   1e-300 * 1e-300 raises).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.calendar import EXACT_FIELDS
from ...relation.expressions import Call, Expr
from ...relation.facts import Facts, common_grid
from ...relation.functions import FUNCTIONS
from ...relation.functions.comparisons import INTEGER_DIGITS, REAL_DIGITS
from ...relation.functions.numbers import Buckets, buckets_of
from ...relation.intervals import facts_of, undeclared
from ...relation.types import Kind
from ..dialects.dialect import LARGEST, Dialect, Number, integer_kind, reach_of, unbounded
from .private_forms import age_seconds

if TYPE_CHECKING:
    from .print_private import PrivatePrinter


_MOST, _LEAST, _FLUSHED = 1020, -1020, -510
_ANY = (1024, -1074)


def sizes(lo: Fraction | None, hi: Fraction | None) -> tuple[int, int]:
    """Return `most` and `least` of a double that is clamped into [lo, hi]."""
    if lo is None or hi is None:
        return _ANY
    most = max(_exponent(abs(lo)), _exponent(abs(hi))) + 1
    nearest = lo if lo > 0 else -hi if hi < 0 else None
    return most, -1074 if nearest is None else max(-1074, _exponent(nearest) - 1)


def bounded(number: Number, lo: Fraction | None, hi: Fraction | None) -> Number:
    """Return a double with the sizes of [lo, hi], into which its SQL is clamped."""
    most, least = sizes(lo, hi)
    return replace(number, most=most, least=least)


def real_sum(left: Number, sign: str, right: Number, expr: Expr) -> Number:
    """Return left + right or left - right. Raises Refusal (PV202) when it could overflow."""
    most = max(left.most, right.most) + 1
    _check(most, expr)
    # Both are multiples of 2^(least - 52), and so is their sum.
    least = max(-1074, min(left.least, right.least) - 52)
    return Number(f"({left.sql} {sign} {right.sql})", None, 0, most, least)


def real_product(left: Number, right: Number, dialect: Dialect, expr: Expr) -> Number:
    """Return left * right. Raises Refusal (PV202) when it could overflow."""
    if left.least + right.least < _LEAST:
        left, right = _flushed(left, dialect), _flushed(right, dialect)
    most = left.most + right.most
    _check(most, expr)
    return Number(f"({left.sql} * {right.sql})", None, 0, most, left.least + right.least)


def quotient(left: Number, right: Number, dialect: Dialect, expr: Expr) -> Number:
    """Return left / right, NULL where `right` is 0. Raises Refusal (PV202) when it could overflow."""
    if left.most - right.least > _MOST:
        right = _flushed(right, dialect)
    if left.least - right.most < _LEAST:
        left = _flushed(left, dialect)
    most, least = left.most - right.least + 1, left.least - right.most
    _check(max(most, -least), expr)
    divisor = f"NULLIF({right.sql}, {dialect.double_literal(Fraction(0))})"
    return Number(f"({left.sql} / {divisor})", None, 0, most, least)


def real_power(base: Number, exponent: int, dialect: Dialect, expr: Expr) -> Number:
    """Return the product of so many equal factors. Raises Refusal (PV202) when it could overflow.

    The base is flushed once, so far that no product of it falls too low.
    """
    if base.least * exponent < _LEAST:
        base = _flushed(base, dialect, _LEAST // exponent + 1)
    result = base
    for _ in range(exponent - 1):
        result = real_product(result, base, dialect, expr)
    return result


def _flushed(number: Number, dialect: Dialect, least: int = _FLUSHED) -> Number:
    if number.least >= least:
        return number
    zero, end = dialect.double_literal(Fraction(0)), Fraction(2) ** least
    lo, hi = dialect.double_literal(-end), dialect.double_literal(end)
    sql = f"(CASE WHEN {number.sql} BETWEEN {lo} AND {hi} THEN {zero} ELSE {number.sql} END)"
    return replace(number, sql=sql, least=least)


def _check(most: int, expr: Expr) -> None:
    if most > _MOST:
        raise Refusal(
            "this arithmetic could overflow", sqlstate="PV202", position=expr.position,
            hint="narrow the bounds: GREATEST(low, LEAST(high, …))",
        )  # fmt: skip


def _exponent(value: Fraction) -> int:
    """Return floor(log2(value)), a low number for 0."""
    value = min(value, LARGEST)
    return -1074 if value == 0 else math.frexp(value)[1] - 1 if value >= Fraction(2) ** -1000 else -1074


def width_bucket(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return the number of a bin; the share of the way is computed for every row, and no guard is relied on."""
    buckets, number = buckets_of(expr), printer.number(expr.args[0])
    is_real = buckets.of_doubles or number.grid is None  # an exact quotient is a double on private rows
    value, low, high, inside = (_of_doubles if is_real else _exact)(printer, expr, number, buckets)
    below, beyond = ("<", ">=") if buckets.rises else (">", "<=")
    sql = (
        f"CASE WHEN {value} {below} {low} THEN CAST(0 AS BIGINT) WHEN {value} {beyond} {high} "
        f"THEN {buckets.count + 1} ELSE {inside} + 1 END"
    )
    return Number(sql, Fraction(1), buckets.count + 1)


def _exact(
    printer: PrivatePrinter, expr: Call, number: Number, buckets: Buckets
) -> tuple[str, str, str, str]:
    ends = [Fraction(1, end.denominator) for end in (buckets.low, buckets.high)]
    grid = common_grid([number.grid, *ends])
    assert grid is not None
    value = printer.on_grid(number, grid, expr)
    low, high = (int(end / grid) for end in (buckets.low, buckets.high))
    reach = (value.reach + abs(low) + abs(high)) * buckets.count
    kind = integer_kind(reach, expr)
    shown, wide = printer.dialect.widened(value, kind), kind == "HUGEINT"
    way = f"({shown} - {_integer(low)})" if buckets.rises else f"({_integer(low)} - {shown})"
    width = abs(high - low)
    share = printer.dialect.quotient(f"({way} * {buckets.count})", str(width), wide=wide, most=reach // width)
    inside = printer.dialect.cast(share, "BIGINT") if wide else share
    return shown, _integer(low), _integer(high), inside


def _integer(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _of_doubles(
    printer: PrivatePrinter, expr: Call, number: Number, buckets: Buckets
) -> tuple[str, str, str, str]:
    dialect = printer.dialect

    def constant(value: Fraction) -> Number:
        return bounded(Number(dialect.double_literal(value), None), value, value)

    value, low, high = printer.real(number), constant(buckets.low), constant(buckets.high)
    if expr.args[0].column is None:  # of a computed one the last bit may lie beyond its bounds
        inner = facts_of(expr.args[0], printer.env)
        if not inner.bounded:
            raise undeclared(expr.args[0], printer.env)
        shown = printer.clamped_double(f"({value.sql})", inner.lo, inner.hi)
        value = replace(bounded(Number(f"({shown})", None), inner.lo, inner.hi), least=value.least)
    way = real_sum(value, "-", low, expr) if buckets.rises else real_sum(low, "-", value, expr)
    share = quotient(way, constant(buckets.width), dialect, expr)
    place = real_product(constant(Fraction(buckets.count)), share, dialect, expr)
    whole = printer.clamped_double(
        dialect.stepped("trunc", place.sql), Fraction(0), Fraction(buckets.count - 1)
    )
    return value.sql, low.sql, high.sql, dialect.rounded(f"({whole})", "BIGINT", buckets.count)


def _add(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if expr.type.is_temporal or any(arg.type.is_temporal for arg in expr.args):
        return _days_between(printer, expr, facts)
    sign = FUNCTIONS[expr.function].symbol
    numbers = [printer.number(arg) for arg in expr.args]
    if facts.grid is None:
        left, right = (printer.real(number) for number in numbers)
        return real_sum(left, sign, right, expr)
    first, second = (printer.on_grid(number, facts.grid, expr) for number in numbers)
    return printer.dialect.combined(first, sign, second, expr)


def _days_between(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.lo is None or not all(arg.type.kind is Kind.DATE for arg in expr.args):
        raise unbounded(expr)
    later, earlier = (printer.moment(arg) for arg in expr.args)
    days = printer.dialect.days_between(later, earlier)
    return Number(days, Fraction(1), reach_of(facts, Fraction(1), expr))


def _mul(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    first, second = (printer.number(arg) for arg in expr.args)
    if first.grid is None or second.grid is None:
        return real_product(printer.real(first), printer.real(second), printer.dialect, expr)
    return printer.dialect.product(first, second, expr)


def _div(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    first, second = (printer.number(arg) for arg in expr.args)
    if expr.type.is_integer:
        if first.grid is None or second.grid is None:
            raise Refusal(
                "a released number is not divided as an integer here", sqlstate="PV202", position=expr.position,
                hint="cast the subquery to double precision",
            )  # fmt: skip
        left, right = (printer.on_grid(number, Fraction(1), expr) for number in (first, second))
        kind = integer_kind(max(left.reach, right.reach), expr)
        over, under = (printer.dialect.widened(number, kind) for number in (left, right))
        sql = printer.dialect.quotient(over, f"NULLIF({under}, 0)", wide=kind == "HUGEINT", most=left.reach)
        return Number(sql, Fraction(1), max(left.reach, right.reach))
    if facts.grid is not None and first.grid is not None:  # an exact number over a constant
        divisor = facts_of(expr.args[1], printer.env).lo
        assert divisor is not None
        return Number(first.sql if divisor > 0 else f"(-{first.sql})", facts.grid, first.reach)
    return quotient(printer.real(first), printer.real(second), printer.dialect, expr)


def _mod(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.grid is None:
        raise unbounded(expr)
    left, right = (printer.on_grid(printer.number(arg), facts.grid, expr) for arg in expr.args)
    kind = integer_kind(max(left.reach, right.reach), expr)
    over, under = (printer.dialect.widened(number, kind) for number in (left, right))
    sql = f"({over} % NULLIF({under}, 0))"
    return Number(sql, facts.grid, max(left.reach, right.reach))


def _neg(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    less = number.changed(f"(-{number.sql})")
    if not number.decimal:
        return less
    return printer.dialect.as_decimal(less, f"(-{number.decimal})", number.places)


def _abs(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    return number.changed(f"abs({number.sql})")


def _chosen(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """CASE, COALESCE, GREATEST, LEAST over numbers, all branches on one grid and of one type."""
    if expr.function == "nullif":
        return _nullif_number(printer, expr)
    last = len(expr.args) - 1
    values = [*range(1, last, 2), last] if expr.function == "case" else list(range(last + 1))
    most, least = 0, 0
    if facts.grid is None:
        reals = {i: printer.real(printer.number(expr.args[i])) for i in values}
        shown = {i: real.sql for i, real in reals.items()}
        most, least = max(real.most for real in reals.values()), min(real.least for real in reals.values())
        reach = 0
    else:
        numbers = {i: printer.on_grid(printer.number(expr.args[i]), facts.grid, expr) for i in values}
        reach = max(number.reach for number in numbers.values())
        kind = integer_kind(reach, expr)
        shown = {i: printer.dialect.widened(number, kind) for i, number in numbers.items()}
    if expr.function == "case":
        branches = [f"WHEN {printer.boolean(expr.args[i])} THEN {shown[i + 1]}" for i in range(0, last, 2)]
        sql = f"CASE {' '.join(branches)} ELSE {shown[last]} END"
    elif expr.function == "coalesce":
        sql = f"coalesce({', '.join(shown.values())})"
    else:
        sql = printer.dialect.extreme(expr.function, list(shown.values()))
    return Number(sql, facts.grid, reach, most, least)


def _nullif_number(printer: PrivatePrinter, expr: Call) -> Number:
    first = printer.number(expr.args[0])
    equal = printer.compared(expr.args[0], expr.args[1], "=", expr)
    return first.changed(f"CASE WHEN {equal} THEN NULL ELSE {first.sql} END")


def _stepped(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """round, floor, ceil, trunc to a step, on integers; numeric rounds half away from zero, doubles half to even."""
    number, step = printer.number(expr.args[0]), facts.grid
    assert step is not None
    if number.grid is None:
        if facts.lo is None or facts.hi is None:
            raise unbounded(expr)
        reach = reach_of(facts, step, expr)
        dialect = printer.dialect
        divisor = bounded(Number(dialect.double_literal(step), None), step, step)
        shown = number.sql if step == 1 else quotient(number, divisor, dialect, expr).sql
        rounded = {
            "round": dialect.half_even(shown) if expr.type.is_float else dialect.half_away(shown),
        }.get(expr.function) or dialect.stepped(expr.function, shown)
        inside = printer.clamped_double(f"({rounded})", facts.lo / step, facts.hi / step)
        # The nearest double of an end may lie a little beyond it.
        return Number(dialect.rounded(inside, integer_kind(2 * reach, expr), 2 * reach), step, 2 * reach)
    ratio = step / number.grid
    if ratio.numerator == 1:
        return printer.on_grid(number, step, expr)
    if ratio.denominator != 1:
        raise Refusal("this rounding is not supported", sqlstate="PV202", position=expr.position)
    return _integer_step(printer, number, ratio.numerator, expr, step)


def _integer_step(printer: PrivatePrinter, number: Number, q: int, expr: Call, step: Fraction) -> Number:
    """Return an integer in steps of q: nothing on the way is larger than 2·reach + 2q."""
    kind = integer_kind(2 * (number.reach + q), expr)
    n, wide = printer.dialect.widened(number, kind), kind == "HUGEINT"

    def over(left: str, right: int) -> str:
        return printer.dialect.quotient(left, str(right), wide=wide, most=2 * (number.reach + q) // right)

    if expr.function == "floor":
        sql = over(f"({n} - ((({n} % {q}) + {q}) % {q}))", q)
    elif expr.function == "ceil":
        sql = f"(-{over(f'(-({n}) - (((-({n}) % {q}) + {q}) % {q}))', q)})"
    elif expr.function == "trunc":
        sql = over(n, q)
    else:
        up, down = over(f"(2 * {n} + {q})", 2 * q), over(f"(-2 * {n} + {q})", 2 * q)
        sql = f"(CASE WHEN {n} >= 0 THEN {up} ELSE -{down} END)"
    return Number(sql, step, 2 * (number.reach + q))


def _real_function(name: str) -> Callable[[PrivatePrinter, Call, Facts], Number]:
    def form(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
        inner = facts_of(expr.args[0], printer.env)
        if facts.lo is None or inner.lo is None or inner.hi is None:
            if inner.lo is None or inner.hi is None:
                raise unbounded(expr)
            raise Refusal(
                f"{expr.function}() could fail on some row",
                sqlstate="PV202",
                position=expr.position,
                hint="clamp its argument with GREATEST and LEAST",
            )
        argument = printer.real(printer.number(expr.args[0]))
        sql = f"{name}({printer.clamped_double(f'({argument.sql})', inner.lo, inner.hi)})"
        least = {"sqrt": argument.least // 2 - 1, "exp": -1012}.get(name, -60)
        return replace(bounded(Number(sql, None), facts.lo, facts.hi), least=least)

    return form


def _power(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    exponent = expr.args[1].constant_as(int)
    if exponent is None or not 0 <= exponent <= 8 or facts.lo is None:
        raise Refusal(
            "power takes a bounded base and a literal exponent from 0 to 8",
            sqlstate="PV202",
            position=expr.position,
            hint="write exp(y * ln(x)), with x within bounds above 0; sqrt(x) for an exponent of 0.5",
        )
    number = printer.number(expr.args[0])
    if exponent == 0:
        return Number(f"CASE WHEN {number.sql} IS NOT NULL THEN CAST(1 AS BIGINT) END", Fraction(1), 1)
    if number.grid is None:
        return real_power(number, exponent, printer.dialect, expr)
    result = Number("CAST(1 AS BIGINT)", Fraction(1), 1)
    for _ in range(exponent):
        result = printer.dialect.product(result, number, expr)
    return result


def _sign(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    shown = printer.number(expr.args[0]).sql
    return Number(
        f"CASE WHEN {shown} > 0 THEN CAST(1 AS BIGINT) WHEN {shown} = 0 THEN 0 WHEN {shown} < 0 THEN -1 END",
        Fraction(1),
        1,
    )


def _circular(name: str) -> Callable[[PrivatePrinter, Call, Facts], Number]:
    def form(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
        argument = printer.real(printer.number(expr.args[0]))
        finite = printer.clamped_double(f"({argument.sql})", -LARGEST, LARGEST)
        return Number(f"{name}({finite})", None, 0, 2, -1074 if name != "cos" else -60)

    return form


WHOLE = f"^ *([-+]?[0-9]{{1,{INTEGER_DIGITS}}}) *$"
_READ = "write CAST(x AS numeric), or CAST(x AS integer): both are NULL where the text is no number"
REAL = f"^ *([-+]?[0-9]{{1,{REAL_DIGITS}}}([.][0-9]{{1,{REAL_DIGITS}}})?) *$"


def _numeral(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return a text read as a number: the part of it that is one, or NULL, is what is cast (soundness.md 1.11)."""
    assert facts.lo is not None
    assert facts.hi is not None
    is_whole, dialect = expr.type.is_integer, printer.dialect
    found = dialect.patterns(expr.position).first_group(
        printer.value(expr.args[0]), WHOLE if is_whole else REAL
    )
    if not is_whole:
        return bounded(
            Number(f"({printer.clamped_double(dialect.as_double(found), facts.lo, facts.hi)})", None),
            facts.lo, facts.hi,
        )  # fmt: skip
    number, lo, hi = dialect.cast(found, "BIGINT"), str(math.ceil(facts.lo)), str(math.floor(facts.hi))
    inside = f"CASE WHEN {number} BETWEEN {lo} AND {hi} THEN {number} END"
    inside = dialect.clamp(number, lo, hi) if facts.declared else inside
    return Number(f"({inside})", Fraction(1), reach_of(facts, Fraction(1), expr))


def _cast_number(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    source, target = expr.args[0], expr.type
    if source.type.kind is Kind.BOOLEAN:
        return Number(printer.dialect.flag(printer.boolean(source)), Fraction(1), 1)
    if source.type.kind is Kind.TEXT and (target.scale is None or target.is_integer):
        return _numeral(printer, expr, facts)
    if not source.type.is_number:
        raise Refusal(
            f"a cast from {source.type} to {target} could fail on some row",
            sqlstate="PV202",
            position=expr.position,
            hint=_READ if source.type.kind is Kind.TEXT else None,
        )
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        rounding = Call(
            source.type if source.type.is_float else target, "round", (source,), position=expr.position
        )
        return _stepped(printer, rounding, facts)
    return printer.number(source)


def _extract(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    unit = expr.literal(0, str)
    if unit in EXACT_FIELDS:
        return _seconds(printer, expr, facts)
    moment = printer.dialect.calendar_operand(printer.moment(expr.args[1]))
    return Number(printer.dialect.cast(printer.dialect.extract(unit, moment), "BIGINT"), Fraction(1), 10_000)


def _seconds(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """Return the seconds of a moment's minute, or since 1970, as an integer of its days or microseconds."""
    moment = expr.args[1]
    assert facts.grid is not None
    since = printer.dialect.since_1970(printer.moment(moment), moment.type)
    if expr.literal(0, str) == "epoch":
        return Number(f"CAST({since} AS BIGINT)", facts.grid, reach_of(facts, facts.grid, expr))
    minute = 60 / facts.grid if facts.hi else Fraction(1)
    count = minute.numerator
    return Number(f"CAST((({since} % {count}) + {count}) % {count} AS BIGINT)", facts.grid, count)


def _length(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    shown = printer.value(expr.args[0])
    return Number(f"CAST(length({shown}) AS BIGINT)", Fraction(1), reach_of(facts, Fraction(1), expr))


def _position(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    inside, part = printer.value(expr.args[0]), printer.value(expr.args[1])
    found = f"CAST({printer.dialect.position(inside, part)} AS BIGINT)"
    return Number(found, Fraction(1), reach_of(facts, Fraction(1), expr))


NUMBERS: dict[str, Callable[[PrivatePrinter, Call, Facts], Number]] = {
    "add": _add, "sub": _add, "mul": _mul, "div": _div, "mod": _mod, "neg": _neg, "abs": _abs,
    **dict.fromkeys(("case", "coalesce", "greatest", "least", "nullif"), _chosen),
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), _stepped),
    "sqrt": _real_function("sqrt"), "ln": _real_function("ln"), "log": _real_function("log10"),
    "exp": _real_function("exp"), "power": _power, "sign": _sign, "sin": _circular("sin"),
    "cos": _circular("cos"), "atan": _circular("atan"), "tanh": _circular("tanh"), "cast": _cast_number,
    "extract": _extract, "length": _length, "position": _position, "width_bucket": width_bucket,
    "age_seconds": age_seconds,
}  # fmt: skip

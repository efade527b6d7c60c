"""Numeric operators and functions on private rows; `print_private` has the house rules."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import Refusal
from ..relation.expressions import Call, Literal
from ..relation.intervals import Facts, facts_of
from ..relation.types import Kind
from .private_sql import Number, clamp, double_literal, integer_type, unbounded

if TYPE_CHECKING:
    from .print_private import PrivatePrinter

__all__ = ["NUMBERS"]

_BIG = 2**62


def _widened(printer: PrivatePrinter, expr: Call, facts: Facts, sign: str) -> Number:
    if expr.type.is_temporal or any(arg.type.is_temporal for arg in expr.args):
        return _days_between(printer, expr, facts)
    numbers = [printer.number(arg) for arg in expr.args]
    if facts.grid is None:
        left, right = (printer.double(number) for number in numbers)
        return Number(f"({left} {sign} {right})", None)
    kind = integer_type(facts, facts.grid, expr)
    left, right = (printer.on_grid(number, facts.grid) for number in numbers)
    for arg in expr.args:
        inner = facts_of(arg, printer.env)
        assert inner.lo is not None
        assert inner.hi is not None
        if max(abs(inner.lo), abs(inner.hi)) / facts.grid >= _BIG:
            kind = "HUGEINT"
    if kind == "HUGEINT":
        left, right = (f"CAST({number.sql} AS HUGEINT)" for number in numbers)
        factors = [(number.grid or facts.grid) / facts.grid for number in numbers]
        left, right = (
            side if factor == 1 else f"({side} * {factor.numerator})"
            for side, factor in zip((left, right), factors, strict=True)
        )
    return Number(f"({left} {sign} {right})", facts.grid)


def _add(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    return _widened(printer, expr, facts, "+" if expr.function == "add" else "-")


def _days_between(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.lo is None or not all(arg.type.kind is Kind.DATE for arg in expr.args):
        raise unbounded(expr)
    later, earlier = (printer.moment(arg) for arg in expr.args)
    return Number(f"date_diff('day', {earlier}, {later})", Fraction(1))


def _mul(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    numbers = [printer.number(arg) for arg in expr.args]
    if facts.grid is None:
        left, right = (printer.double(number) for number in numbers)
        return Number(f"({left} * {right})", None)
    kind = integer_type(facts, facts.grid, expr)
    left, right = (number.sql for number in numbers)
    if kind == "HUGEINT":
        left, right = f"CAST({left} AS HUGEINT)", f"CAST({right} AS HUGEINT)"
    return Number(f"({left} * {right})", facts.grid)


def _div(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    numbers = [printer.number(arg) for arg in expr.args]
    if expr.type.is_integer:
        kind = integer_type(facts, Fraction(1), expr)
        left, right = (printer.on_grid(number, Fraction(1)) for number in numbers)
        if kind == "HUGEINT":
            left = f"CAST({left} AS HUGEINT)"
        return Number(f"({left} // NULLIF({right}, 0))", Fraction(1))
    if facts.grid is not None and numbers[0].grid is not None:  # an exact number over a constant
        divisor = facts_of(expr.args[1], printer.env).lo
        assert divisor is not None
        return Number(numbers[0].sql if divisor > 0 else f"(-{numbers[0].sql})", facts.grid)
    left, right = (printer.double(number) for number in numbers)
    return Number(f"({left} / NULLIF({right}, 0e0))", None)


def _mod(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    if facts.grid is None:
        raise unbounded(expr)
    left, right = printer.aligned(list(expr.args), facts.grid)
    return Number(f"({left} % NULLIF({right}, 0))", facts.grid)


def _neg(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number(f"(-{number.sql})", None)
    kind = integer_type(facts, number.grid, expr)
    return Number(f"(-CAST({number.sql} AS {kind}))", number.grid)


def _abs(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number(f"abs({number.sql})", None)
    kind = integer_type(facts, number.grid, expr)
    return Number(f"abs(CAST({number.sql} AS {kind}))", number.grid)


def _chosen(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """CASE, COALESCE, GREATEST, LEAST, NULLIF over numbers, all branches on one grid."""
    if expr.function == "case":
        values = [*range(1, len(expr.args) - 1, 2), len(expr.args) - 1]
    elif expr.function == "nullif":
        return _nullif_number(printer, expr)
    else:
        values = list(range(len(expr.args)))
    shown = dict(zip(values, printer.aligned([expr.args[i] for i in values], facts.grid), strict=True))
    if expr.function == "case":
        branches = [
            f"WHEN {printer.boolean(expr.args[i])} THEN {shown[i + 1]}"
            for i in range(0, len(expr.args) - 1, 2)
        ]
        return Number(f"CASE {' '.join(branches)} ELSE {shown[len(expr.args) - 1]} END", facts.grid)
    return Number(f"{expr.function}({', '.join(shown.values())})", facts.grid)


def _nullif_number(printer: PrivatePrinter, expr: Call) -> Number:
    first, other = printer.number(expr.args[0]), printer.number(expr.args[1])
    equal = printer.compared(expr.args[0], expr.args[1], "=")
    del other
    return Number(f"CASE WHEN {equal} THEN NULL ELSE {first.sql} END", first.grid)


def _stepped(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    """round, floor, ceil, trunc to a step, on integers; numeric rounds half away from zero, doubles half to even."""
    number, step = printer.number(expr.args[0]), facts.grid
    assert step is not None
    if number.grid is None:
        kind = integer_type(facts, step, expr)
        shown = number.sql if step == 1 else f"({number.sql} / {double_literal(step)})"
        rounded = {
            "round": f"round_even({shown}, 0)" if expr.type.is_float else f"round({shown})",
            "floor": f"floor({shown})", "ceil": f"ceil({shown})", "trunc": f"trunc({shown})",
        }[expr.function]  # fmt: skip
        return Number(f"CAST({rounded} AS {kind})", step)
    ratio = step / number.grid
    if ratio.numerator == 1:
        return Number(printer.on_grid(number, step), step) if ratio != 1 else number
    if ratio.denominator != 1:
        raise Refusal("this rounding is not supported", sqlstate="PV202", position=expr.position)
    return Number(_integer_step(number.sql, ratio.numerator, expr.function), step)


def _integer_step(sql: str, q: int, function: str) -> str:
    if function == "floor":
        return f"(({sql} - ((({sql} % {q}) + {q}) % {q})) // {q})"
    if function == "ceil":
        return f"(-((-({sql}) - (((-({sql}) % {q}) + {q}) % {q})) // {q}))"
    if function == "trunc":
        return f"({sql} // {q})"
    return (
        f"(CASE WHEN {sql} >= 0 THEN (2 * {sql} + {q}) // {2 * q} ELSE -((-2 * {sql} + {q}) // {2 * q}) END)"
    )


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
        argument = printer.double(printer.number(expr.args[0]))
        lo, hi = double_literal(inner.lo), double_literal(inner.hi)
        return Number(f"{name}({clamp(f'({argument})', lo, hi, nan=True)})", None)

    return form


def _power(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    exponent = expr.args[1]
    whole = isinstance(exponent, Literal) and isinstance(exponent.value, int) and 0 <= exponent.value <= 8
    if not whole or facts.lo is None:
        raise Refusal(
            "power takes a bounded base and a literal exponent from 0 to 8",
            sqlstate="PV202",
            position=expr.position,
        )
    assert isinstance(exponent, Literal)
    assert isinstance(exponent.value, int)
    number = printer.number(expr.args[0])
    if number.grid is None:
        return Number("(" + " * ".join([number.sql] * exponent.value or ["1e0"]) + ")", None)
    grid = number.grid**exponent.value
    kind = integer_type(facts, grid, expr)
    parts = [f"CAST({number.sql} AS {kind})"] * exponent.value or [f"CAST(1 AS {kind})"]
    return Number("(" + " * ".join(parts) + ")", grid)


def _sign(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    shown = printer.number(expr.args[0]).sql
    return Number(
        f"CASE WHEN {shown} > 0 THEN 1 WHEN {shown} = 0 THEN 0 WHEN {shown} < 0 THEN -1 END", Fraction(1)
    )


def _circular(name: str) -> Callable[[PrivatePrinter, Call, Facts], Number]:
    def form(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
        return Number(f"{name}({printer.double(printer.number(expr.args[0]))})", None)

    return form


def _cast_number(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    source, target = expr.args[0], expr.type
    if source.type.kind is Kind.BOOLEAN:
        return Number(f"CAST({printer.boolean(source)} AS BIGINT)", Fraction(1))
    if not source.type.is_number:
        raise Refusal(
            f"a cast from {source.type} to {target} could fail on some row",
            sqlstate="PV202",
            position=expr.position,
        )
    if target.is_integer or (target.kind is Kind.NUMERIC and target.scale is not None):
        rounding = Call(target, "round", (source,), position=expr.position)
        return _stepped(printer, rounding, facts)
    return printer.number(source)


def _extract(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    unit = expr.args[0]
    assert isinstance(unit, Literal)
    return Number(f"CAST(extract({unit.value} FROM {printer.moment(expr.args[1])}) AS BIGINT)", Fraction(1))


def _length(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    return Number(f"CAST(length({printer.value(expr.args[0])}) AS BIGINT)", Fraction(1))


def _position(printer: PrivatePrinter, expr: Call, facts: Facts) -> Number:
    inside, part = (printer.value(arg) for arg in expr.args)
    return Number(f"CAST(instr({inside}, {part}) AS BIGINT)", Fraction(1))


NUMBERS: dict[str, Callable[[PrivatePrinter, Call, Facts], Number]] = {
    "add": _add, "sub": _add, "mul": _mul, "div": _div, "mod": _mod, "neg": _neg, "abs": _abs,
    **dict.fromkeys(("case", "coalesce", "greatest", "least", "nullif"), _chosen),
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), _stepped),
    "sqrt": _real_function("sqrt"), "ln": _real_function("ln"), "log": _real_function("log10"),
    "exp": _real_function("exp"), "power": _power, "sign": _sign, "sin": _circular("sin"),
    "cos": _circular("cos"), "atan": _circular("atan"), "tanh": _circular("tanh"), "cast": _cast_number,
    "extract": _extract, "length": _length, "position": _position,
}  # fmt: skip

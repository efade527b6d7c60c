"""Arithmetic, aggregates and conditionals, NULL on error; `null_on_error` has the house rules."""

from __future__ import annotations

from fractions import Fraction

from ..relation.functions.bins import Buckets
from ..relation.types import DOUBLE, Kind, SqlType
from .bind import bind, finite, keep, to_double, to_float, to_integer, to_wide

__all__ = [
    "absolute", "aggregate", "arithmetic", "ceil", "divide", "exponential", "floor", "logarithm", "modulo",
    "negate", "nullif", "pair", "power", "scalar_subquery", "square_root",
    "width_bucket",
]  # fmt: skip

_MAX_VARIANCE_INPUT = "1e150"
_MAX_PAIR_INPUT = "1e70"


def arithmetic(operator: str, left: str, right: str, result: SqlType) -> str:
    """Return `left operator right` for +, - or *, of type `result`; NULL on overflow."""
    if operator not in ("+", "-", "*"):
        raise ValueError(f"not an arithmetic operator: {operator}")
    if result.is_integer:
        return to_integer(f"{to_wide(left)} {operator} {to_wide(right)}", result)
    return to_float(f"{to_double(left)} {operator} {to_double(right)}", result)


def divide(left: str, right: str, result: SqlType) -> str:
    """Return `left / right`: integers truncate toward zero; NULL on division by zero and overflow."""
    if result.is_integer:
        return to_integer(f"{to_wide(left)} // {to_wide(right)}", result)
    return to_float(f"{to_double(left)} / {to_double(right)}", result)


def modulo(left: str, right: str, result: SqlType) -> str:
    """Return `left % right` with the sign of `left`; NULL when `right` is zero."""
    if result.is_integer:
        return to_integer(f"{to_wide(left)} % {to_wide(right)}", result)
    return to_float(f"{to_double(left)} % {to_double(right)}", result)


def negate(operand: str, result: SqlType) -> str:
    """Return `- operand`; NULL for the smallest integer."""
    return arithmetic("-", "0", operand, result)


def absolute(operand: str, result: SqlType) -> str:
    """Return `abs(operand)`; NULL for the smallest integer."""
    if result.is_integer:
        return to_integer(f"abs({to_wide(operand)})", result)
    return to_float(f"abs({to_double(operand)})", result)


def power(base: str, exponent: str) -> str:
    """Return `power(base, exponent)` as DOUBLE; NULL where it is undefined, complex or too large."""
    return finite(f"pow({to_double(base)}, {to_double(exponent)})")


def square_root(operand: str) -> str:
    """Return `sqrt(operand)` as DOUBLE; NULL for negative numbers."""
    return f"sqrt({keep(to_double(operand), 'v >= 0')})"


def logarithm(operand: str, *, base_ten: bool = False) -> str:
    """Return `ln(operand)`, or `log10`, as DOUBLE; NULL for numbers that are not positive."""
    return f"{'log10' if base_ten else 'ln'}({keep(to_double(operand), 'v > 0')})"


def exponential(operand: str) -> str:
    """Return `exp(operand)` as DOUBLE; NULL when too large, 0 when too small."""
    return finite(f"exp({to_double(operand)})")


def floor(operand: str) -> str:
    """Return the largest integral DOUBLE not above `operand`."""
    return f"floor({to_double(operand)})"


def ceil(operand: str) -> str:
    """Return the smallest integral DOUBLE not below `operand`."""
    return f"ceil({to_double(operand)})"


def nullif(left: str, right: str) -> str:
    """Return `NULLIF(left, right)` with each operand bound once."""
    return bind(f"{{'a': {left}, 'b': {right}}}", "CASE WHEN v.a = v.b THEN NULL ELSE v.a END")


def scalar_subquery(query: str) -> str:
    """Return the value of a query of one column; NULL for no row and for more than one."""
    return f"(SELECT CASE WHEN count(*) = 1 THEN any_value(q.v) END FROM ({query}) AS q(v))"


def pair(function: str, y: str, x: str, tail: str = "") -> str:
    """Return an aggregate of two values, NULL where Postgres has none or a sum leaves the doubles."""
    bound = f"greatest(least(v, {_MAX_PAIR_INPUT}), -{_MAX_PAIR_INPUT})"
    known = [bind(to_double(one), f"CASE WHEN v IS NOT NULL THEN {bound} END") for one in (y, x)]
    called = f"{function}({known[0]}, {known[1]}){tail}"
    return f"CAST({called} AS BIGINT)" if function == "regr_count" else to_float(called, DOUBLE)


def aggregate(function: str, operand: str, operand_type: SqlType, tail: str = "") -> str:
    """Return an aggregate or window call of Postgres' result type, NULL on overflow.

    `function`: sum, avg, stddev_samp, stddev_pop, var_samp or var_pop. `tail`: what follows the
    call, FILTER and OVER, as printed. SUM of BIGINT, and AVG of integers, are NUMERIC (a DOUBLE
    here). A variance above 1e300 is NULL: inputs are clamped to ±1e150, as DuckDB 1.4 raises beyond.
    (COUNT, MIN, MAX, LAG, RANK and the like are total as they are.)
    """
    if function == "sum" and operand_type.is_integer:
        total = f"sum(TRY_CAST(({operand}) AS BIGINT)){tail}"
        return (
            f"CAST({total} AS DOUBLE)" if operand_type.kind is Kind.BIGINT else f"TRY_CAST({total} AS BIGINT)"
        )
    if function in ("sum", "avg"):
        is_real_sum = function == "sum" and operand_type.kind is Kind.REAL
        return to_float(f"{function}({to_double(operand)}){tail}", operand_type if is_real_sum else DOUBLE)
    if function not in ("stddev_samp", "stddev_pop", "var_samp", "var_pop"):
        raise ValueError(f"no total form for the aggregate {function}")
    bound = f"greatest(least(v, {_MAX_VARIANCE_INPUT}), -{_MAX_VARIANCE_INPUT})"
    clamped = bind(to_double(operand), f"CASE WHEN v IS NOT NULL THEN {bound} END")
    variance = keep(f"{function.replace('stddev', 'var')}({clamped}){tail}", "v < 1e299")
    return f"sqrt({variance})" if function.startswith("stddev") else variance


def _double(number: Fraction) -> str:
    return f"CAST('{float(number)!r}' AS DOUBLE)"


def width_bucket(operand: str, buckets: Buckets) -> str:
    """Return `width_bucket(operand, …)` as INTEGER: exact numbers by their edges, doubles as they are computed."""
    low, high = (_double(end) for end in (buckets.low, buckets.high))
    below, beyond = ("<", ">=") if buckets.rises else (">", "<=")
    if buckets.of_doubles:
        way = f"(v - {low})" if buckets.rises else f"({low} - v)"
        share = f"{buckets.count} * ({way} / {_double(buckets.width)})"
        inside = f"least(trunc({share}), {buckets.count - 1}) + 1"
    else:
        edges = ", ".join(_double(edge) for edge in buckets.edges)
        inside = f"len(list_filter([{edges}], lambda e: {'e <= v' if buckets.rises else 'e >= v'}))"
    case = (
        f"CASE WHEN v {below} {low} THEN 0 WHEN v {beyond} {high} THEN {buckets.count + 1} "
        f"WHEN v IS NOT NULL THEN {inside} END"
    )
    return f"TRY_CAST({bind(to_double(operand), case)} AS INTEGER)"

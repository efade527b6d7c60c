"""Arithmetic on doubles that stays inside their range: Postgres raises where a result leaves it.

House rules:

1. `Number.most` and `Number.least` follow from the printed clamps and operators alone.
2. A result beyond 2^1020 cannot occur: what could pass it is refused.
3. A product or a quotient that could fall below 2^-1020 has its operands flushed first: what is smaller
   than 2^-510, or 2^(-1020/k) in a k-th power, counts as 0, on every engine (soundness.md 1.9 and 1.11:
   1e-300 * 1e-300 raises).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import Refusal
from ...relation.expressions import Call, Expr
from ...relation.functions.numbers import Buckets, buckets_of
from ...relation.intervals import Facts, common_grid, facts_of, undeclared
from ..dialects.dialect import Dialect
from ..dialects.private_sql import LARGEST, Number, integer_kind

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

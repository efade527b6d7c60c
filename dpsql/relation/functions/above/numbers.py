"""Functions and operators of numbers: chapter 9.3 of Postgres' manual, beside what there is below a release."""

from __future__ import annotations

from sqlglot import exp

from ..row import binary
from .signature import above

__all__ = ["ROWS"]

_DOUBLE = "double -> double"
_WHOLE = "int4, int4 -> integer; bigint, bigint -> bigint"
_NUMBER = "numeric -> numeric; double -> double"


def _huge(body: str) -> str:
    """Return SQL over wide integers: none of them overflows on the way."""
    return body.replace("{a}", "CAST({a} AS HUGEINT)").replace("{b}", "CAST({b} AS HUGEINT)")


_BUCKET = (
    "CASE WHEN {d} > 0 AND {b} < {c} THEN CASE WHEN {a} < {b} THEN 0 WHEN {a} >= {c} THEN CAST({d} AS BIGINT) + 1 "
    "ELSE %s + 1 END WHEN {d} > 0 AND {b} > {c} THEN CASE WHEN {a} > {b} THEN 0 WHEN {a} <= {c} "
    "THEN CAST({d} AS BIGINT) + 1 ELSE %s + 1 END END"
)
_NEAR = "least(CAST(floor({d} * (({a} - {b}) / ({c} - {b}))) AS BIGINT), {d} - 1)"
_UNIT = "CAST(CAST(CAST({%s} AS VARCHAR) AS DECIMAL(28, 9)) * 1000000000 AS HUGEINT)"
_EXACT = f"coalesce(TRY({{d}} * ({_UNIT % 'a'} - {_UNIT % 'b'}) // ({_UNIT % 'c'} - {_UNIT % 'b'})), {_NEAR})"
_DECIMALS = "length(split_part(split_part(CAST({a} AS VARCHAR), 'e', 1), '.', 2))"
_SCALE = (
    "CASE WHEN {a} = trunc({a}) THEN 0 ELSE greatest(" + _DECIMALS + " - coalesce(TRY_CAST(nullif(split_part("
    "CAST({a} AS VARCHAR), 'e', 2), '') AS INTEGER), 0), 0) END"
)

ROWS = (
    above("cbrt", "cbrt(x)", "the cube root", _DOUBLE, "cbrt({a})"),
    above("degrees", "degrees(x)", "radians in degrees", _DOUBLE, "degrees({a})"),
    above("radians", "radians(x)", "degrees in radians", _DOUBLE, "radians({a})"),
    above("pi", "pi()", "3.14159…", "-> double", "pi()"),
    *(
        above(name, f"{name}(x)", doc, _DOUBLE, sql or f"{name}({{a}})")
        for name, doc, sql in (
            ("tan", "the tangent", ""), ("cot", "the cotangent", "1 / tan({a})"),
            ("asin", "the inverse sine", "CASE WHEN abs({a}) <= 1 THEN asin({a}) END"),
            ("acos", "the inverse cosine", "CASE WHEN abs({a}) <= 1 THEN acos({a}) END"),
            ("sinh", "the hyperbolic sine", ""), ("cosh", "the hyperbolic cosine", ""),
            ("asinh", "its inverse", "sign({a}) * asinh(abs({a}))"),
            ("acosh", "the inverse of the cosine", "CASE WHEN {a} >= 1 THEN acosh({a}) END"),
            ("atanh", "the inverse of the tangent", "CASE WHEN abs({a}) < 1 THEN atanh({a}) END"),
        )
    ),
    above("atan2", "atan2(y, x)", "the angle of a point", "double, double -> double", "atan2({a}, {b})"),
    above("log_of", "log(b, x)", "the logarithm to base `b`", "numeric, numeric -> numeric",
          "CASE WHEN {a} > 0 AND {b} > 0 AND {a} <> 1 THEN ln({b}) / ln({a}) END", names=()),
    above("log10", "log10(x)", "the logarithm to base 10", _NUMBER, "CASE WHEN {a} > 0 THEN log10({a}) END"),
    above("div_of", "div(x, y)", "the whole quotient, cut towards zero", "numeric, numeric -> numeric",
          "CASE WHEN {b} <> 0 THEN trunc({a} / {b}) END", names=("div",)),
    above("gcd", "gcd(x, y)", "the greatest common divisor", _WHOLE, _huge("gcd({a}, {b})")),
    above("lcm", "lcm(x, y)", "the least common multiple", _WHOLE,
          _huge("CASE WHEN {a} = 0 OR {b} = 0 THEN 0 ELSE abs({a} // gcd({a}, {b}) * {b}) END")),
    above("factorial", "factorial(x)", "1 · 2 · … · `x`; NULL beyond 33", "bigint -> numeric",
          "CASE WHEN {a} >= 0 THEN factorial(CAST({a} AS INTEGER)) END"),
    above("width_bucket_of", "width_bucket(x, low, high, n)", "which of `n` bins of one width, 0 below and n + 1 above",
          "numeric, numeric, numeric, integer -> integer; double, double, double, integer -> integer",
          _BUCKET % (_EXACT, _EXACT), _BUCKET % (_NEAR, _NEAR), names=("width_bucket",),
          below="write the numbers out: width_bucket(x, 0, 100, 10)"),
    above("min_scale", "min_scale(x)", "how many decimals a number needs", "numeric -> integer", _SCALE),
    above("trim_scale", "trim_scale(x)", "without zeros at its end", "numeric -> numeric", "{a}"),
    above("bit_and_of", "x & y", "bits of whole numbers, both", _WHOLE, "{a} & {b}", names=(),
          syntax=binary(exp.BitwiseAnd), symbol="&", output="?column?"),
    above("bit_or_of", "x | y", "bits, one or both", _WHOLE, "{a} | {b}", names=(),
          syntax=binary(exp.BitwiseOr), symbol="|", output="?column?"),
    above("bit_xor_of", "x # y", "bits, one of the two", _WHOLE, "xor({a}, {b})", names=(),
          syntax=binary(exp.BitwiseXor), symbol="#", output="?column?"),
)  # fmt: skip

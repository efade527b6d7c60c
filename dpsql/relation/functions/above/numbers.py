"""Functions and operators of numbers: chapter 9.3 of Postgres' manual, beside what there is below a release."""

from __future__ import annotations

from sqlglot import exp

from ..row import binary
from .signature import MOST_VALUES, above

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
    above("degrees", "degrees(x)", "radians in degrees", _DOUBLE, "degrees({a})",
          below="write x * 57.29577951308232"),
    above("radians", "radians(x)", "degrees in radians", _DOUBLE, "radians({a})",
          below="write x * 0.017453292519943295"),
    above("pi", "pi()", "3.14159…", "-> double", "pi()", below="write 3.141592653589793"),
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
          "CASE WHEN {a} > 0 AND {b} > 0 AND {a} <> 1 THEN ln({b}) / ln({a}) END", names=(),
          below="write ln(x) / ln(2)"),
    above("log10", "log10(x)", "the logarithm to base 10", _NUMBER, "CASE WHEN {a} > 0 THEN log10({a}) END",
          below="write log(x)"),
    above("div_of", "div(x, y)", "the whole quotient, cut towards zero", "numeric, numeric -> numeric",
          "CASE WHEN {b} <> 0 THEN trunc({a} / {b}) END", names=("div",),
          below="write trunc(x / y); of whole numbers x / y"),
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
          below="write x / 4 % 2 = 1 for the bit x & 4, of an x that is not below 0",
          syntax=binary(exp.BitwiseAnd), symbol="&", output="?column?"),
    above("bit_or_of", "x | y", "bits, one or both", _WHOLE, "{a} | {b}", names=(),
          syntax=binary(exp.BitwiseOr), symbol="|", output="?column?"),
    above("bit_xor_of", "x # y", "bits, one of the two", _WHOLE, "xor({a}, {b})", names=(),
          syntax=binary(exp.BitwiseXor), symbol="#", output="?column?"),
)  # fmt: skip


# --- functions of arrays of one dimension -------------------------------------------------------------------


_LENGTH = "coalesce(len({%s}), 0)"
_CHARACTERS = "regexp_extract_all({a}, '(?s).')"
"""A text's characters: DuckDB's own functions count what is written with several of them as one."""

_PARTS = (
    f"CASE WHEN {{a}} IS NULL THEN NULL WHEN {{a}} = '' THEN [] WHEN {{b}} IS NULL THEN {_CHARACTERS} "
    "WHEN {b} = '' THEN [{a}] ELSE string_split({a}, {b}) END"
)
_SAME = "e IS NOT DISTINCT FROM {b}"
_MOST_JOINED = 1_000_000


def _short(lists: str, body: str) -> str:
    return f"CASE WHEN {lists} <= {MOST_VALUES} THEN {body} END"


def _texts(shown: str) -> str:
    return (
        "CASE WHEN {a} IS NOT NULL AND {b} IS NOT NULL AND "
        f"len({{a}}) * strlen({{b}}) <= {_MOST_JOINED} THEN "
        f"coalesce(array_to_string(list_transform({{a}}, lambda e: {shown}), {{b}}), '') END"
    )


ARRAYS = (
    above("array_append", "array_append(q, x)", "one more value behind it", "array, element -> array",
          _short(f"{_LENGTH % 'a'} + 1", "list_concat(coalesce({a}, []), [{b}])"), strict=False),
    above("array_prepend", "array_prepend(x, q)", "one more value before it", "element, array -> array",
          _short(f"{_LENGTH % 'b'} + 1", "list_concat([{a}], coalesce({b}, []))"), strict=False),
    above("array_cat", "array_cat(q, r)", "one array behind another, as `q || r`", "array, array -> array",
          "CASE WHEN {a} IS NULL THEN {b} WHEN {b} IS NULL THEN {a} ELSE "
          + _short("len({a}) + len({b})", "list_concat({a}, {b})") + " END", strict=False),
    above("array_remove", "array_remove(q, x)", "without the values that equal `x`", "array, element -> array",
          f"list_filter({{a}}, lambda e: NOT ({_SAME}))", strict=False),
    above("array_replace", "array_replace(q, x, y)", "`y` for each `x`", "array, element, element -> array",
          f"list_transform({{a}}, lambda e: CASE WHEN {_SAME} THEN {{c}} ELSE e END)", strict=False),
    above("array_positions", "array_positions(q, x)", "all places of a value", "array, element -> places",
          f"list_filter(list_transform({{a}}, lambda e, i: CASE WHEN {_SAME} THEN i END), lambda i: i IS NOT NULL)",
          strict=False),
    above("array_ndims", "array_ndims(q)", "1, the dimensions of an array that has values", "array -> integer",
          "CASE WHEN len({a}) > 0 THEN 1 END"),
    above("array_dims", "array_dims(q)", "its places as text, `[1:3]`", "array -> text",
          "CASE WHEN len({a}) > 0 THEN '[1:' || len({a}) || ']' END"),
    above("array_upper", "array_upper(q, 1)", "its last place", "array, integer -> integer",
          "CASE WHEN {b} = 1 AND len({a}) > 0 THEN len({a}) END"),
    above("array_lower", "array_lower(q, 1)", "its first place, 1", "array, integer -> integer",
          "CASE WHEN {b} = 1 AND len({a}) > 0 THEN 1 END"),
    above("trim_array", "trim_array(q, 2)", "without so many values at its end", "array, integer -> array",
          "CASE WHEN {b} BETWEEN 0 AND len({a}) THEN list_slice({a}, 1, len({a}) - {b}) END"),
    above("array_reverse", "array_reverse(q)", "its values from the last to the first", "array -> array",
          "list_reverse({a})", since=18),
    above("array_sort", "array_sort(q)", "its values in order, NULL last", "array -> array",
          "list_sort({a}, 'ASC', 'NULLS LAST')", since=18),
    above("array_to_string", "array_to_string(q, ', ', '-')", "texts, integers or dates joined, NULL left out, or as "
          "the third text", "shown, separator -> text; shown, separator, text -> text", _texts("CAST(e AS VARCHAR)"),
          _texts("coalesce(CAST(e AS VARCHAR), {c})"), strict=False),
    above("string_to_array", "string_to_array(x, ',')", "the parts of a text between separators; of a third text: NULL",
          "text, text -> texts; text, text, text -> texts", _PARTS,
          f"list_transform({_PARTS}, lambda e: CASE WHEN e = {{c}} THEN NULL ELSE e END)", strict=False),
)  # fmt: skip

"""Functions and operators of numbers and of texts: chapters 9.3 and 9.4 of Postgres' manual, beside the rows below a
release; and of arrays."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from ....regex import regex
from ..row import Syntax, binary
from .moments import FormatError, constant
from .signature import MOST_BYTES, MOST_VALUES, above

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

NUMBERS = (
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


_FITS = f"strlen({{a}}) * CAST({{b}} AS BIGINT) <= {MOST_BYTES}"
"""Of `repeat`. A condition stands in the argument too: of constants DuckDB makes the text before it reads any CASE."""
_PAD_FITS = f"{{b}} + length({{c}}) <= {MOST_BYTES}"
_PAD = (
    f"left(repeat({{c}}, CASE WHEN {_PAD_FITS} THEN (({{b}} - length({{a}})) // length({{c}})) + 1 ELSE 0 END), "
    "{b} - length({a}))"
)
_ESCAPED = "replace(replace({a}, '''', ''''''), chr(92), chr(92) || chr(92))"
_QUOTED = f"(CASE WHEN contains({{a}}, chr(92)) THEN 'E' ELSE '' END || '''' || {_ESCAPED} || '''')"
_COUNT = "((strlen({a}) - strlen(replace({a}, {b}, ''))) // strlen({b}))"
_REPLACED_FITS = (
    f"strlen({{a}}) + {_COUNT} * (strlen({{c}}) - strlen({{b}})) <= greatest({MOST_BYTES}, strlen({{a}}))"
)
_WORDS = r"regexp_extract_all(lower({a}), '[\p{L}\p{N}]+|[^\p{L}\p{N}]+')"
_TRANSLATED = (
    "list_transform(" + _CHARACTERS + ", lambda w: CASE WHEN strpos({b}, w) = 0 THEN w "
    "ELSE substring({c}, strpos({b}, w), 1) END)"
)
_PART = (
    "CASE WHEN {c} = 0 THEN NULL WHEN {b} = '' OR {a} = '' THEN CASE WHEN abs({c}) = 1 THEN {a} ELSE '' END "
    "ELSE coalesce(list_extract(string_split({a}, {b}), {c}), '') END"
)
_OVERLAID = "CASE WHEN {c} > 0 THEN left({a}, {c} - 1) || {b} || substring({a}, greatest({c} + %s, 1)) END"
_AS_TEXT = "int4 -> text; bigint -> text"
_SHORT = "CAST({a} AS BIGINT) & 4294967295"
_TALL = (
    "CASE WHEN {a} < 0 THEN '1' || lpad(format('{:o}', {a} & 9223372036854775807), 21, '0') "
    "ELSE format('{:o}', {a}) END"
)


def _joined(characters: str) -> str:
    return f"coalesce(list_aggregate({characters}, 'string_agg', ''), '')"


def _padded(joined: str) -> str:
    return (
        "CASE WHEN {b} <= 0 THEN '' WHEN {b} <= length({a}) OR {c} = '' THEN left({a}, {b}) "
        f"WHEN {_PAD_FITS} THEN {joined} END"
    )


def _blank(joined: str) -> str:
    return _padded(joined).replace("{c}", "' '")


_MOST_VALUES = 12
_MOST_WIDTH = 1000
_SPECIFIER = regex(r"%(?:(%)|(?:(\d+)\$)?(-)?(\d+)?([sIL]))|%")


def _formatted(count: int, form: str) -> str:
    """Return format() of so many values. Raises FormatError: the format names more, or what is not read."""
    parts, at, place = [], 0, 0
    for found in _SPECIFIER.finditer(form):
        parts.append(constant(form[at : found.start()]))
        at = found.end()
        percent, chosen, minus, width, kind = found.groups()
        if percent:
            parts.append("'%'")
            continue
        if kind is None or kind == "I":
            raise FormatError(
                f"{form[found.start() : found.start() + 2]}: %s, %L and %% are, with a place and a width"
            )
        place = int(chosen) if chosen else place + 1
        if not 1 <= place <= count or int(width or 0) > _MOST_WIDTH:
            raise FormatError(
                f"it names value {place} of {count}" if width is None else "the width is 1000 at most"
            )
        name = "{" + "abcdefghijklmnopqrstuvwxyz"[place] + "}"
        shown = (
            f"coalesce({name}, '')" if kind == "s" else f"coalesce({_QUOTED.replace('{a}', name)}, 'NULL')"
        )
        if width:
            pad = f"repeat(' ', greatest({width} - length({shown}), 0))"
            shown = f"{shown} || {pad}" if minus else f"{pad} || {shown}"
        parts.append(shown)
    parts.append(constant(form[at:]))
    return f"CASE WHEN {{a}} IS NOT NULL THEN {' || '.join(f'({part})' for part in parts)} END"


_TRIMS = (("btrim", "trim", "at both ends"), ("ltrim", "ltrim", "before it"), ("rtrim", "rtrim", "after it"))

TEXTS = (
    *(
        above(
            f"{name}_of", f"{name}(x, 'ab')", f"without these characters {where}", "text, text -> text",
            f"{inner}({{a}}, {{b}})", names=(),
            below="write regexp_replace(x, '^[ab]+', ''), and '[ab]+$' for the end",
        )
        for name, inner, where in _TRIMS
    ),
    above("ascii", "ascii(x)", "the number of the first character", "text -> integer", "ascii({a})",
          below="compare the character: left(x, 1) = 'a'"),
    above(
        "chr", "chr(x)", "the character of a number", "integer -> text",
        "CASE WHEN {a} BETWEEN 1 AND 55295 OR {a} BETWEEN 57344 AND 1114111 THEN chr({a}) END",
    ),
    above("octet_length", "octet_length(x)", "how many bytes of UTF-8", "text -> integer", "strlen({a})",
          below="write length(x), which counts characters"),
    above("bit_length", "bit_length(x)", "how many bits of UTF-8", "text -> integer", "8 * strlen({a})",
          below="write length(x), which counts characters"),
    above("initcap", "initcap(x)", "each word with a capital letter", "text -> text",
          _joined(f"list_transform({_WORDS}, lambda w: CASE WHEN left(w, 1) = 'ß' THEN w "
                  "ELSE upper(left(w, 1)) || substring(w, 2) END)")),
    *(
        above(
            name, f"{name}(x, 5, '0')", f"filled up {where} with blanks or a text, or cut, to a length",
            "text, integer, text -> text; text, integer -> text", _padded(joined), _blank(joined), grows=True,
            below=f"of constants: {name}(x, 5, '0'), filled by one character, to 100 at most",
        )
        for name, where, joined in (("lpad", "before it", _PAD + " || {a}"), ("rpad", "after it", "{a} || " + _PAD))
    ),
    above("md5", "md5(x)", "its MD5 hash, in hexadecimal", "text -> text", "md5({a})"),
    above(
        "repeat", "repeat(x, 3)", "the text so many times", "text, integer -> text",
        f"CASE WHEN {{b}} <= 0 THEN '' WHEN {_FITS} THEN repeat({{a}}, CASE WHEN {_FITS} THEN {{b}} ELSE 0 END) END",
    ),
    above(
        "replace", "replace(x, 'from', 'to')", "each place of a text replaced", "text, text, text -> text",
        f"CASE WHEN {{b}} = '' THEN {{a}} WHEN {_REPLACED_FITS} "
        f"THEN replace({{a}}, {{b}}, CASE WHEN {_REPLACED_FITS} THEN {{c}} ELSE '' END) END",
    ),
    above("reverse", "reverse(x)", "its characters from the last to the first", "text -> text",
          _joined(f"list_reverse({_CHARACTERS})")),
    above("split_part", "split_part(x, ',', 2)", "the part of a number between separators, from the end below 0",
          "text, text, integer -> text", _PART),
    above("starts_with", "starts_with(x, y)", "whether `x` begins with `y`", "text, text -> boolean",
          "starts_with({a}, {b})", below="write left(x, 2) = 'ab', or x LIKE 'ab%'"),
    above("translate", "translate(x, 'ab', 'xy')", "each character for the other in its place",
          "text, text, text -> text", _joined(_TRANSLATED), grows=True,
          below="write replace(x, 'a', 'x'), one for each character"),
    above(
        "overlay", "overlay(x PLACING y FROM 2 FOR 3)", "`y` in the place of so many characters, or of its own length",
        "text, text, integer -> text; text, text, integer, integer -> text", _OVERLAID % "length({b})",
        _OVERLAID % "CAST({d} AS BIGINT)", names=(), grows=True,
        below="write left(x, 1) || 'y' || substring(x FROM 3)",
        syntax=(Syntax(exp.Overlay, ("this", "expression", "from_", "for_")),),
    ),
    above(
        "substring_at", "substring(x FROM n FOR m)", "from a place and of a length that are computed",
        "text, integer -> text; text, integer, integer -> text", "substring({a}, greatest({b}, 1))",
        "CASE WHEN {c} >= 0 THEN substring({a}, greatest({b}, 1), "
        "greatest(CAST({b} AS BIGINT) + {c} - greatest({b}, 1), 0)) END", names=(),
        below="write the numbers out: substring(x FROM 1 FOR 3); several by CASE",
    ),
    above(
        "concat_ws", "concat_ws(', ', x, y, …)", "joined with a text between, without the NULLs",
        "text, any... -> text", "CASE WHEN {a} IS NOT NULL THEN concat_ws({a}, {rest}) END", strict=False, grows=True,
        below="write x || ', ' || y, with coalesce(y, '') where it may be NULL",
    ),
    above("to_hex", "to_hex(x)", "in hexadecimal", _AS_TEXT, f"lower(to_hex({_SHORT}))", "lower(hex({a}))"),
    above("to_bin", "to_bin(x)", "in binary digits", _AS_TEXT, f"bin({_SHORT})", "bin({a})", since=16),
    above("to_oct", "to_oct(x)", "in octal digits", _AS_TEXT, f"format('{{:o}}', {_SHORT})", _TALL, since=16),
    above("quote_literal", "quote_literal(x)", "as SQL writes a value, in quotes", "text -> text; value -> text",
          _QUOTED, grows=True),
    above(
        "quote_nullable", "quote_nullable(x)", "as SQL writes a value, in quotes, or the word NULL",
        "text -> text; value -> text",
        f"coalesce({_QUOTED}, 'NULL')", strict=False, grows=True,
    ),
    above(
        "format", "format('%s of %s', x, y)", "a text with values in the place of `%s`, or `%L`, as SQL writes them",
        "; ".join(", ".join(["format", *["any"] * count]) + " -> text" for count in range(_MOST_VALUES + 1)),
        *(partial(_formatted, count) for count in range(_MOST_VALUES + 1)), strict=False, grows=True,
        below="join them by ||: x || ' of ' || y",
    ),
    above("sha256_hex", "encode(sha256(convert_to(x, 'UTF8')), 'hex')", "its SHA-256 hash, in hexadecimal",
          "text -> text", "sha256({a})", names=()),
    above("num_nulls", "num_nulls(x, y, …)", "how many are NULL", "any... -> integer",
          "len(list_filter([{rest}], lambda w: w IS NULL))", strict=False,
          below="write (CASE WHEN x IS NULL THEN 1 ELSE 0 END) + (CASE WHEN y IS NULL THEN 1 ELSE 0 END)"),
    above("num_nonnulls", "num_nonnulls(x, y, …)", "how many are not NULL", "any... -> integer",
          "len(list_filter([{rest}], lambda w: w IS NOT NULL))", strict=False,
          below="write (CASE WHEN x IS NULL THEN 0 ELSE 1 END) + (CASE WHEN y IS NULL THEN 0 ELSE 1 END)"),
)  # fmt: skip

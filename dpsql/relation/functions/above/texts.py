"""Functions of texts: chapter 9.4 of Postgres' manual, as far as it is not in the rows of `texts` below a release."""

from __future__ import annotations

import re
from functools import partial

from sqlglot import exp

from ..row import Syntax
from .moments import FormatError, constant
from .signature import MOST_BYTES, above

_CHARACTERS = "regexp_extract_all({a}, '(?s).')"
"""A text's characters: DuckDB's own functions count what is written with several of them as one."""

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
_WHOLE = "int4 -> text; bigint -> text"
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
_SPECIFIER = re.compile(r"%(?:(%)|(?:(\d+)\$)?(-)?(\d+)?([sIL]))|%")


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

ROWS = (
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
    above("to_hex", "to_hex(x)", "in hexadecimal", _WHOLE, f"lower(to_hex({_SHORT}))", "lower(hex({a}))"),
    above("to_bin", "to_bin(x)", "in binary digits", _WHOLE, f"bin({_SHORT})", "bin({a})", since=16),
    above("to_oct", "to_oct(x)", "in octal digits", _WHOLE, f"format('{{:o}}', {_SHORT})", _TALL, since=16),
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

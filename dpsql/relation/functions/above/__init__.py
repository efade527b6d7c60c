"""Postgres' scalar functions above the release and on public tables: one row a function; and those that are left out.

House rules:

1. A row is Postgres' name, what it takes and gives (`signature`), and the SQL of its value (`Function.sql`), which is
   read over the arguments {a}, {b}, …, each there and of its type. Where Postgres raises it is NULL, whatever it raises
   itself; where DuckDB means something else by a name, Postgres' meaning is written out.
2. Nothing here runs on people's rows, but what `functions.texts` says more of: no row here says how long its text can
   be, or what it could make fail.
3. No text is made longer than `MOST_BYTES` or the one that it is made of, and none much longer stands on the way.
4. Each row is held against a real Postgres over generated values (`dpsql/tests/conformance/test_scalar_functions.py`).
"""

from __future__ import annotations

from ....records import dataclass
from ..row import Function
from . import moments, patterns, values

__all__ = ["NAMES", "REFUSED", "ROWS", "SECTIONS"]

SECTIONS: dict[str, tuple[Function, ...]] = {
    "more of text": values.TEXTS,
    "more of dates": moments.ROWS,
    "more of numbers": values.NUMBERS,
    "more of patterns": patterns.ROWS,
    "more of arrays": values.ARRAYS,
}
"""The manual's headings, and the rows below each."""

ROWS = tuple(row for rows in SECTIONS.values() for row in rows)

NAMES: dict[str, tuple[Function, ...]] = {
    name: tuple(row for row in ROWS if name in row.names) for row in ROWS for name in row.names
}
"""Name of a function -> its rows, the first that takes the arguments is meant."""


@dataclass(frozen=True, slots=True)
class Left:
    """Functions that are left out for one reason, and the rewrite that works."""

    names: tuple[str, ...]
    why: str
    instead: str


_LEFT = (
    Left(("random", "random_normal", "setseed", "gen_random_uuid", "array_shuffle", "array_sample"),
         "it draws at random, and an answer is the same each time", "md5(x)"),
    Left(("clock_timestamp", "timeofday"), "it goes on while a statement runs", "now()"),
    Left(("sha224", "sha256", "sha384", "sha512", "encode", "decode", "convert_to", "convert_from", "convert",
          "get_byte", "set_byte", "get_bit", "set_bit", "bit_count", "crc32", "crc32c"),
         "there is no type of bytes here", "encode(sha256(convert_to(x, 'UTF8')), 'hex')"),
    Left(("hash", "hashtext", "hashtextextended", "hashint4", "hashint8", "xxhash64"),
         "each engine, and version of one, has its own", "left(md5(x::text), 1)"),
    Left(("quote_ident",), "which words it quotes depends on Postgres' version",
         "'\"' || replace(x, '\"', '\"\"') || '\"'"),
    Left(("to_number",), "its formats skip what they do not know", "replace(x, ',', '')::numeric"),
    Left(("to_ascii", "normalize", "is_normalized", "unistr", "casefold", "unicode_assigned", "parse_ident",
          "pg_client_encoding"), "the engine has no such table of characters", "lower(x), translate(x, 'éè', 'ee')"),
    Left(("sind", "cosd", "tand", "cotd", "asind", "acosd", "atand", "atan2d"), "it is exact at whole angles alone",
         "sin(radians(x))"),
    Left(("erf", "erfc", "gamma", "lgamma"), "not every Postgres has it", "exp(x), factorial(n)"),
    Left(("scale",), "it tells how a number was stored, which is not kept", "min_scale(x)"),
    Left(("date_add", "date_subtract"), "it is of one zone, and not every Postgres has it", "x + INTERVAL '1 day'"),
    Left(("make_time", "make_timestamptz"), "there is no such type here",
         "make_timestamp(2024, 1, 31, 12, 0, 0) AT TIME ZONE 'UTC'"),
    Left(("regexp_matches",), "it gives an array in each row", "regexp_match(x, '[a-z]+')"),
    Left(("array_fill",), "it makes arrays of arrays too", "ARRAY(SELECT 0 FROM generate_series(1, 3))"),
    Left(("jsonb_set", "jsonb_set_lax", "jsonb_insert", "jsonb_pretty", "jsonb_strip_nulls", "json_strip_nulls",
          "json_object", "jsonb_object", "jsonb_concat", "jsonb_delete", "jsonb_delete_path"),
         "JSON is built here and taken apart, not changed", "jsonb_build_object('a', x)"),
    Left(("json_populate_record", "json_populate_recordset", "json_to_record", "json_to_recordset",
          "jsonb_populate_record", "jsonb_populate_recordset", "jsonb_to_record", "jsonb_to_recordset",
          "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first", "jsonb_path_exists",
          "jsonb_path_match"), "rows of JSON have no types of their own here",
         "(to_jsonb(x) ->> 'a')::integer"),
    Left(("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", "range_merge", "isempty",
          "lower_inc", "upper_inc", "lower_inf", "upper_inf", "int4multirange", "datemultirange", "range_agg"),
         "there is no type of ranges here", "x BETWEEN 'a' AND 'b'"),
    Left(("timezone",), "it is written as an operator here", "x::timestamptz AT TIME ZONE 'Europe/Berlin'"),
)  # fmt: skip

REFUSED = {name: left for left in _LEFT for name in left.names}
"""Name of a function of Postgres' chapters 9.1 to 9.9 and 9.16 to 9.20 -> why it is left out, and what to write."""

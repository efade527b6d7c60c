"""Expressions of the functions above the release, beside those that their signatures give.

Over the columns of `test_scalar_functions`: texts s, t, u; numbers i, j, k, b, n, x, y; f; days d, e; moments p, q.
"""

from __future__ import annotations

__all__ = ["EXPRESSIONS", "UNTRIED"]

SPAN = "make_interval(1, -14, 0, 33, -27, j, 1.5)"

PLAIN = "translate(t, chr(92) || chr(9) || chr(10) || '.', 'abcd')"
"""A text without what a pattern that is computed cannot have."""

PATTERNS = [
    "a",
    "^a",
    "c$",
    "^.$",
    "a|b",
    "(ab)+$",
    "[a-c]{2,}",
    "[^a-z]",
    "\\d",
    "\\D",
    "\\s",
    "\\w+$",
    "\\.",
    "a.*b",
    "a.*?b",
    "(?i)HELLO",
    "[[:alpha:]]+",
    "[[:digit:][:space:]]",
    "[]a]",
    "[a-]",
    "x{2}",
    "^(a|b,)+",
    "",
    "\\\\",
    "\\A.b",
    "é",
    "[à-ÿ]",
    "日",
    "o''N",
    "{",
    "^\\S+$",
    "[\\d,]",
    "(?:x)(x)",
    "\n",
    "[[:upper:]][[:lower:]]",
]
SPANS = [
    "a",
    "[a-z]+",
    "a.*b",
    "[0-9]+",
    ".",
    "^.",
    "x+a",
    "([a-z]+),",
    "b?a",
    "[a-z]{2}",
    "a+b?",
    ".*[ab]",
    "[^a]+",
    "(x)(x*)",
    "é+",
    ".$",
]

EXPRESSIONS: dict[str, list[str]] = {
    "btrim_of": ["btrim(s, 'xa ')", "trim(both 'xb' from s)", "trim(t from s)", "btrim(s, '')"],
    "ltrim_of": ["ltrim(s, 'xa ')", "trim(leading t from s)"],
    "rtrim_of": ["rtrim(s, 'xa ')", "trim(trailing t from s)"],
    "split_part": ["split_part(s, ',', 2)", "split_part(s, ',', -1)", "split_part(s, '', 1)", "split_part(s, 'ab', j)"],
    "repeat": ["repeat(s, 3)", "repeat('', 1000000000)"],
    "lpad": ["lpad(s, 5, 'xy')", "lpad(s, 5, '')", "lpad('', 3, '日')"],
    "rpad": ["rpad(s, 5, 'xy')", "rpad(s, -1, 'x')"],
    "replace": ["replace(s, 'a', 'bbb')", "replace(s, '', 'x')", "replace(s, 'ab', '')"],
    "translate": ["translate(s, 'abc', 'x')", "translate(s, 'aab', 'xyz')", "translate(s, 'é日', 'eN')"],
    "overlay": [ "overlay(s placing 'XX' from 2 for 0)", "overlay(s placing t from j for k)", "overlay(s placing t from 1 for -1)","overlay(s placing 'XX' from 2)", "overlay(s placing t from j)"],
    "substring_at": ["substring(s from j for k)", "substr(s, j, 2)", "substring(s, 2, k)", "substring(s from j)", "substr(s, k)"],
    "chr": ["chr(ascii(s))", "chr(55296)", "chr(1114111)", "chr(1114112)"],
    **{f"extract_{field}": [f"extract({field} FROM {value})" for value in ("p", "q", "d", "age(p, q)", "p - q", SPAN)
        if not (field == "julian" and value not in "pqd") and not (value == "d" and "second" in field)]
       for field in ("epoch", "second", "milliseconds", "microseconds", "decade", "century", "millennium", "julian")},
    **{f"extract_{field}": [f"extract({field} FROM {value})" for value in ("age(p, q)", "p - q", SPAN)]
       for field in ("year", "month", "day", "hour", "minute")},
    **{f"date_trunc_{unit}": [f"date_trunc('{unit}', {value})" for value in "pqd"]
       for unit in ("microseconds", "milliseconds", "second", "decade", "century", "millennium")},
    "age": ["age(p)", "age(timestamp '2024-02-29', p)", "age(d)"],
    "trunc": ["trunc(extract(epoch FROM p) % 60)", "trunc((extract(epoch FROM p) - extract(epoch FROM q)) / 7)",
              "trunc((extract(epoch FROM p) - extract(epoch FROM q)) / 86400, 1)"],
    "moments_between": ["p - q", "d - p", "timestamp '2024-02-29' - p"],
    "interval_added": ["d + age(p, q)", "p + (p - q)", f"p + ({SPAN} + age(q, p))"],
    "interval_taken": ["d - age(p, q)", "p - (p - q)"],
    "intervals_added": [f"age(p, q) + {SPAN}"],
    "intervals_taken": [f"age(p, q) - {SPAN}"],
    "interval_times": ["age(p, q) * j", f"2 * {SPAN}"],
    "date_bin_of": ["date_bin(INTERVAL '15 minutes', p, timestamp '2001-01-01')", "date_bin(INTERVAL '1 day 3 hours', p, q)",
                 "date_bin('7 days', d, timestamp '2001-01-01')", "date_bin(INTERVAL '1 month', p, q)"],
    "justify_interval": [f"justify_interval({SPAN})", "justify_interval(p - q)"],
    "justify_hours": [f"justify_hours({SPAN})", "justify_hours(q - p)"],
    "justify_days": [f"justify_days({SPAN})", "justify_days(p - q)"],
    "make_date_of": ["make_date(2000 + i, j, k)", "make_date(j, 2, 29)"],
    "make_timestamp": ["make_timestamp(2000 + j, k, 3, j, 59, 59.9999999)", "make_timestamp(2024, 2, 29, 23, 0, 0.0000005)"],
    "make_interval": ["make_interval(days => i)", "make_interval(j, k)", "make_interval(k, j, k, j, k, j, n)", "make_interval(hours => 30, secs => 1.5)"],
    "to_timestamp_of": ["to_timestamp(x)", "to_timestamp(i)", "to_timestamp(b)"],
    "overlaps": ["(p, q) OVERLAPS (d, e)", "(p, q) OVERLAPS (q, p)", "(least(d, DATE '2024-01-31'), INTERVAL '30 days') OVERLAPS (least(e, DATE '2024-01-01'), INTERVAL '1 year')",
                 "(p, NULL::timestamp) OVERLAPS (p, q)"],
    "to_char_of": [f"to_char(p, '{form}')" for form in (
        "YYYY-MM-DD HH24:MI:SS.US", "FMMonth FMDD, YYYY", "Month|MONTH|month|Mon|DY|Dy|Day|DAY|", "HH12:MI:SS AM p.m.",
        "YY Y YYY IYYY-IW-ID", "DDD D W WW Q CC J SSSS MS", "hh24mi yyyymmdd", '"Week" IW', "FMHH24:FMMI", '"{a}" YYYY', "Q. \"quarter\"")]
        + ["to_char(d, 'YYYY-MM')"] + [f"to_char({value}, '{form}')" for value in ("i", "n", "x", "b") for form in (
        "999,999.99", "FM999,999.99", "000", "0.0", "9", "FM9999999990.00", "S999", "999S", "9999MI", "99G999D9", "FM000", "FM9.99",
        "999999999999999999", "099.90")],
    "to_date_of": ["to_date(to_char(d, 'DD.MM.YYYY'), 'DD.MM.YYYY')", "to_date(d::text, 'YYYY-MM-DD')"],
    "to_timestamp_by": ["to_timestamp(to_char(p, 'YYYY-MM-DD HH24:MI:SS.US'), 'YYYY-MM-DD HH24:MI:SS.US')",
                        "to_timestamp(to_char(p, 'DD/MM/YYYY HH24:MI'), 'DD/MM/YYYY HH24:MI')"],
    "zone_clock": ["p::timestamptz AT TIME ZONE 'Europe/Berlin'", "p::timestamptz AT TIME ZONE 'America/New_York'", "d AT TIME ZONE 'Asia/Tokyo'"],
    "zone_cut": [f"date_trunc('{unit}', p, '{zone}')" for unit in ("year", "week", "day", "hour", "minute", "second", "decade")
                 for zone in ("Asia/Tokyo", "Europe/Berlin")],
    "zone_moment": ["p::timestamp AT TIME ZONE 'Europe/Berlin'", "p::timestamp AT TIME ZONE 'America/New_York'"],
    "interval_text": ["age(p, q)::text", "(p - q)::text", f"({SPAN} + (p - q))::text", "make_interval(1, -3, 0, 2, -5)::text"],
    "log_of": ["log(2, n)", "log(n, 10.0)", "log(j, i)"],
    "factorial": ["factorial(least(b, 33))"],
    "width_bucket_of": ["width_bucket(x, 0, 1, 4)", "width_bucket(n, 0, 100, 7)", "width_bucket(n, 10.5, -3, 7)",
                     "width_bucket(0.3, 0, 1, 10)", "width_bucket(x, 10, 10, 3)", "width_bucket(j, 1, 13, 4)"],
    "bit_and_of": ["i & j", "i & j + k", "b & 7"], "bit_or_of": ["i | j & k", "b | i"], "bit_xor_of": ["i # j", "b # 5"],
    "regexp_matches": [f"s ~ '{p}'" for p in PATTERNS] + ["s !~ '[a-z]'"],
    "regexp_matches_no_case": [f"s ~* '{p}'" for p in PATTERNS if not any(part in p for part in ("[:lower", "[:upper", "à"))] + ["s !~* 'A'"],
    "similar_to": [f"s SIMILAR TO '{p}'" for p in ("a%", "(a|b)%", "_b_", "%[0-9]+%", "[^a]%", "a.c", "%\\%", "x{2}a%", "%(,)%")]
        + ["s SIMILAR TO 'a!%' ESCAPE '!'", "s NOT SIMILAR TO '%a%'"],
    "regexp_like": ["regexp_like(s, 'AB', 'i')", "regexp_like(s, '^a')"],
    "regexp_replace": [f"regexp_replace(s, '{p}', '<\\&>')" for p in SPANS] + [f"regexp_replace(s, '{p}', '-', 'g')" for p in SPANS]
        + ["regexp_replace(s, 'a', '{a}{b}')", "regexp_replace(''' a', 'a', '{a}')", "regexp_replace(s, '([a-z])([a-z])', '\\2\\1', 'g')", "regexp_replace(s, 'A', '\\\\x\\y', 'gi')"],
    "regexp_substr": [f"regexp_substr(s, '{p}')" for p in SPANS],
    "substring_matching": [f"substring(s from '{p}')" for p in SPANS] + ["substring(s, '([A-Z])([0-9])')"],
    "regexp_match": [f"regexp_match(s, '{p}')" for p in SPANS] + ["regexp_match(s, '([A-Z])([0-9])', 'i')"],
    "regexp_split_to_array": [f"regexp_split_to_array(s, '{p}')" for p in SPANS],
    "regexp_count": [f"regexp_count(s, '{p}')" for p in SPANS],
    "regexp_instr": [f"regexp_instr(s, '{p}')" for p in SPANS],
    "like_computed": ["s LIKE t", "s LIKE t || '%'", "s NOT LIKE '%' || u", "s LIKE replace(t, 'a', '_')", "s ILIKE upper(t) || '%'",
                      "s LIKE t ESCAPE '!'"],
    "regexp_computed": [f"s ~ left({PLAIN}, 1)", f"s ~ ('^' || {PLAIN} || '$')", "s ~ ('a' || chr(46) || '*b')", f"s !~ {PLAIN}"],
    "sha256_hex": ["encode(sha256(convert_to(s, 'UTF8')), 'hex')"],
    "format": ["format('%s and %s', s, i)", "format('%L, %L', s, f)", "format('%%|%6s|%-6s|%3L', s, t, u)", "format('%2$s-%1$s-%s', s, n)",
               "format('none')", "format('{a} %s', d)", "format('%s %s', p, x)", "format('%1$s%1$s', repeat(s, 9))"],
    "quote_literal": ["quote_literal(i)", "quote_literal(f)", "quote_literal(d)"],
    "quote_nullable": ["quote_nullable(n)", "quote_nullable(f)", "quote_nullable(p)"],
    "array_append": ["array_append(ARRAY[i, j], i)", "array_append(ARRAY[s], t)", "array_append(ARRAY[n], j)", "array_append(ARRAY[d, e], NULL)",
                     "array_append(NULL::integer[], i)"],
    "array_prepend": ["array_prepend(i, ARRAY[i, j])", "array_prepend('x', ARRAY[s])", "array_prepend(j, ARRAY[x])"],
    "array_cat": ["array_cat(ARRAY[i], ARRAY[j, i])", "array_cat(NULL::text[], ARRAY[s])", "array_cat(ARRAY[s], NULL)"],
    "array_remove": ["array_remove(ARRAY[i, j, 1], 1)", "array_remove(ARRAY[i, j], j)", "array_remove(ARRAY[s, t], NULL)", "array_remove(ARRAY[n], 0)"],
    "array_replace": ["array_replace(ARRAY[i, j], j, i)", "array_replace(ARRAY[s, t], NULL, 'none')", "array_replace(ARRAY[f], true, f)"],
    "array_positions": ["array_positions(ARRAY[i, j, 1], 1)", "array_positions(ARRAY[s, t, u], t)", "array_positions(ARRAY[i], NULL)"],
    "array_ndims": ["array_ndims(ARRAY[i])", "array_ndims('{}'::text[])"],
    "array_dims": ["array_dims(ARRAY[i, j])", "array_dims(array_remove(ARRAY[i], i))"],
    "array_upper": ["array_upper(ARRAY[i, j], 1)", "array_upper(ARRAY[s], j)", "array_upper('{}'::date[], 1)"],
    "array_lower": ["array_lower(ARRAY[i, j], 1)", "array_lower(ARRAY[s], j)", "array_lower('{}'::date[], 1)"],
    "trim_array": ["trim_array(ARRAY[i, j, 3], 2)", "trim_array(ARRAY[s, t], j)"],
    "array_reverse": ["array_reverse(ARRAY[i, j, 3])", "array_reverse('{}'::text[])"],
    "array_sort": ["array_sort(ARRAY[i, j, 3])", "array_sort(ARRAY[n, 0])", "array_sort(ARRAY[d, e])"],
    "array_to_string": ["array_to_string(ARRAY[i, j], ', ')", "array_to_string(ARRAY[s, t], NULL)", "array_to_string(ARRAY[s, t, u], '-', '*')",
                        "array_to_string(ARRAY[d, e], ';', s)", "array_to_string('{}'::text[], ',')", "array_to_string(ARRAY[i], ',', NULL)"],
    "string_to_array": ["string_to_array(s, ',')", "string_to_array(s, NULL)", "string_to_array(s, '')", "string_to_array(s, t)",
                        "string_to_array(s, ',', '')", "string_to_array(s, 'a', t)", "string_to_array(s, 'b', NULL)"],
    "to_hex": ["to_hex(b)", "to_hex(4294967296)"],
    "to_bin": ["to_bin(b)"],
    "to_oct": ["to_oct(b)"],
}  # fmt: skip
"""Name of a row -> expressions; each is asked of Postgres as it stands."""

UNTRIED = frozenset({"make_interval", "factorial", "width_bucket_of"})
"""Functions that are tried over these expressions alone: Postgres 15 wraps around for the largest parts of an interval
and has a bin too many where a quotient rounds to 1; 1000! is too large here."""

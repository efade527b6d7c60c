"""Expressions of the functions above the release, beside those that their signatures give.

Over the columns of `test_scalar_functions`: texts s, t, u; numbers i, j, k, b, n, x, y; f; days d, e; moments p, q.
"""

from __future__ import annotations

__all__ = ["EXPRESSIONS", "NOT_ALIKE"]

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
    "to_hex": ["to_hex(b)", "to_hex(4294967296)"],
    "to_bin": ["to_bin(b)"],
    "to_oct": ["to_oct(b)"],
}  # fmt: skip
"""Name of a row -> expressions; each is asked of Postgres as it stands."""

NOT_ALIKE: frozenset[tuple[str, int]] = frozenset()
"""Expressions and rows that are known to differ."""

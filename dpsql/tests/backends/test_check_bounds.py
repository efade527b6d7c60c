"""Bounds off a CHECK: read exactly, or not at all; never narrower than what the engine lets in."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.backends.check_bounds import ValueRange, read_bounds
from dpsql.backends.duckdb_backend import read_type

TYPES = {
    "i": "INTEGER",
    "n": "DECIMAL(9,2)",
    "wide": "DECIMAL(30,2)",
    "x": "DOUBLE",
    "f": "FLOAT",
    "d": "DATE",
    "t": "VARCHAR",
}
SQL_TYPES = {name: read_type(text)[0] for name, text in TYPES.items()}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("i BETWEEN 1 AND 5", {"i": (1, 5)}),
        ("((I >= 1) AND (i <= 5))", {"i": (1, 5)}),
        ("1 <= i AND 5 >= i", {"i": (1, 5)}),
        ("i > 1 AND i < 5", {"i": (1, 5)}),
        ("i >= -3", {"i": (-3, None)}),
        ("i >= 1 AND i >= 2 AND i <= 9 AND i <= 8", {"i": (2, 8)}),
        ("n BETWEEN -1.50 AND 2", {"n": (Fraction(-3, 2), 2)}),
        ("i >= 0 AND n <= 3.5", {"i": (0, None), "n": (None, Fraction(7, 2))}),
        ("i >= 0 AND length(t) < 5", {"i": (0, None)}),
        ("i >= 0 AND (i = 3 OR n > 2)", {"i": (0, None)}),
        ('"i" >= 0', {"i": (0, None)}),
        ("(d BETWEEN '2024-01-01' AND '2024-12-31')", {"d": (19723, 20088)}),
        ("(d > CAST('1970-01-01' AS DATE))", {"d": (0, None)}),
    ],
)
def test_simple_shapes(expression: str, found: dict[str, tuple[Fraction, Fraction]]) -> None:
    assert read_bounds(expression, SQL_TYPES, "duckdb") == {n: ValueRange(*b) for n, b in found.items()}


LISTED = {
    "duckdb": {
        "(t IN ('a', 'it''s'))": {"t": ("a", "it's")},
        "i IN (1, -2)": {"i": (1, -2)},
        "((t = 'a') OR (t == 'b') OR t IN ('c'))": {"t": ("a", "b", "c")},
        "i IN (1, 2, 3) AND i IN (2, 3, 4)": {"i": (2, 3)},
        "n IN (1.5, 2)": {"n": (Fraction(3, 2), 2)},
        "d IN ('1970-01-02', CAST('1970-01-03' AS DATE))": {"d": (1, 2)},
    },
    "postgres": {
        "(t = ANY (ARRAY['a'::text, 'b'::text]))": {"t": ("a", "b")},
        "((t)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))": {
            "t": ("a", "b")
        },
        "(i = ANY (ARRAY[1, '-2'::integer]))": {"i": (1, -2)},
        "(n = ANY (ARRAY[(1)::numeric, 2.5]))": {"n": (1, Fraction(5, 2))},
        "((t = 'a'::text) OR (t = 'b'::text))": {"t": ("a", "b")},
        "(d = ANY (ARRAY['1970-01-02'::date, '1970-01-03'::date]))": {"d": (1, 2)},
    },
}
NOT_LISTED = {
    "duckdb": (
        "i IN ('1')", "t IN (1, 2)", "t IN ('a', NULL)", "t NOT IN ('a')", "t IN (SELECT 'a')", "t = 'a' OR i = 1",
        "x IN (1.5)", "f = 1.5", "t = 'a' OR length(t) = 1", "lower(t) IN ('a')", "t ILIKE 'a'", "wide IN (1, 2)",
        "t IS NOT DISTINCT FROM 'a'", "d IN ('2020-1-1')", "d IN ('2020-01-01', '2020-02-30')", "CAST(t AS CHAR(1)) IN ('a')",
    ),
    "postgres": (
        "(t = ANY (ARRAY['a'::text, NULL::text]))", "(t <> ALL (ARRAY['a'::text]))", "(t = ANY ('{a,b}'::text[]))",
        "((t)::character varying(2) = 'ab'::text)", "(t = 'abc'::character(2))", "(t = E'a\\\\b'::text)",
        "(d = '1970-01-02'::text)", "(d = '1970-01-02 10:00:00'::timestamp without time zone)", "(d = '02.01.1970'::date)",
        "(x = ANY (ARRAY[(1)::double precision]))", "((i)::double precision = (1)::double precision)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", LISTED)
def test_lists(dialect: str) -> None:
    for expression, found in LISTED[dialect].items():
        wanted = {name: ValueRange(listed=frozenset(values)) for name, values in found.items()}
        assert read_bounds(expression, SQL_TYPES, dialect) == wanted, expression
    for expression in NOT_LISTED[dialect]:
        assert read_bounds(expression, SQL_TYPES, dialect) == {}, expression


@pytest.mark.parametrize(
    "expression",
    [
        "NOT i BETWEEN 1 AND 5",
        "i NOT BETWEEN 1 AND 5",
        "i >= 0 OR n >= 0",
        "i + 1 >= 0",
        "abs(i) <= 5",
        "i >= '3'",
        "i >= 1.5",
        "i >= 1e2",
        "i >= CAST(3 AS INTEGER)",
        "i >= n",
        "i != 3",
        "i >= 9999999999999999999",
        "wide >= 3",
        "d >= '2020-01-01 10:00'",
        "d >= CAST('2020-01-01' AS TIMESTAMP)",
        "d >= 'infinity'",
        "t >= '2020-01-01'",
        "t >= 3",
        "unknown >= 3",
        "other.i >= 3",
        "i >= (SELECT 3)",
        "CASE WHEN i >= 3 THEN true ELSE true END",
        "i >= ((",
        "",
    ],
)
def test_anything_else_says_nothing(expression: str) -> None:
    assert read_bounds(expression, SQL_TYPES, "duckdb") == {}


@pytest.mark.parametrize("column", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("literal", ["0.1", "0.3", "16777217", "3.4", "1.1"])
def test_a_float_bound_covers_what_the_engine_lets_in(column: str, literal: str) -> None:
    """The engine rounds the literal; the stored value that equals it must lie within the bound."""
    connection = duckdb.connect()
    for check, side in ((f"x >= {literal}", "lo"), (f"x <= {literal}", "hi")):
        connection.execute(f"CREATE OR REPLACE TABLE t (x {column} CHECK ({check}))")
        connection.execute(f"INSERT INTO t VALUES ({literal})")
        stored = Fraction(connection.execute("SELECT x FROM t").fetchall()[0][0])
        interval = read_bounds(check, {"x": read_type(column)[0]}, "duckdb")["x"]
        bound = interval.lo if side == "lo" else interval.hi
        assert bound is not None
        assert bound <= stored if side == "lo" else bound >= stored
    connection.close()


@pytest.mark.parametrize("expression", ["(" * 5000 + "i > 1" + ")" * 5000, "NOT " * 5000 + "i > 1"])
def test_a_text_nested_without_end_says_nothing(expression: str) -> None:
    assert read_bounds(expression, SQL_TYPES, "duckdb") == {}

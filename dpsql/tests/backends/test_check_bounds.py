"""Bounds off a CHECK: read exactly, or not at all; never narrower than what the engine lets in."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.backends.check_bounds import ValueRange, read_bounds
from dpsql.backends.duckdb_schema import read_type

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
    ],
)
def test_simple_shapes(expression: str, found: dict[str, tuple[Fraction, Fraction]]) -> None:
    assert read_bounds(expression, SQL_TYPES, "duckdb") == {n: ValueRange(*b) for n, b in found.items()}


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
        "i IN (1, 2)",
        "i >= 9999999999999999999",
        "wide >= 3",
        "d >= '2020-01-01'",
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

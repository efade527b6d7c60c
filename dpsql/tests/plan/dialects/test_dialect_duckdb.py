"""DuckDB's spelling, run in DuckDB: total, and with the value that every engine is to give."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.private_sql import Number
from dpsql.relation.expressions import Field
from dpsql.relation.types import BIGINT, TEXT

X = Field(BIGINT, 0, "x")


def value(sql: str) -> object:
    (row,) = duckdb.sql(f"SELECT {sql}").fetchall()
    return row[0]


@pytest.mark.parametrize(
    ("x", "clamped"),
    [("5", 5), ("-7", 0), ("70", 9), ("0", 0), ("9", 9), ("NULL", None)],
)
def test_a_clamp_keeps_null(x: str, clamped: int | None) -> None:
    assert value(f"{DUCKDB.clamp('x', '0', '9')} FROM (SELECT CAST({x} AS INTEGER) AS x)") == clamped


@pytest.mark.parametrize(("x", "clamped"), [("NaN", None), ("Infinity", 9.0), ("-Infinity", 0.0), ("3", 3.0)])
def test_nan_is_null_and_infinity_an_end(x: str, clamped: float | None) -> None:
    shown = DUCKDB.clamp("x", "0", "9", nan=True)
    assert value(f"{shown} FROM (SELECT CAST('{x}' AS DOUBLE) AS x)") == clamped


def test_integers_are_widened_before_they_could_overflow() -> None:
    number = Number("x", Fraction(1), 2**40)
    product = DUCKDB.product(number, number, X)
    assert product.kind == "HUGEINT"
    assert value(f"{product.sql} FROM (SELECT CAST({2**40} AS BIGINT) AS x)") == 2**80
    total = DUCKDB.combined(Number("x", Fraction(1), 2**61), "+", Number("x", Fraction(1), 2**61), X)
    assert (total.kind, total.reach) == ("HUGEINT", 2**62)


def test_a_finer_grid_counts_more() -> None:
    finer = DUCKDB.times(Number("x", Fraction(1), 7), 100, X)
    assert (finer.grid, finer.reach) == (Fraction(1, 100), 700)
    assert DUCKDB.times(Number("x", Fraction(1), 7), 1, X).sql == "x"


def test_null_equals_null_and_texts_are_bytes() -> None:
    assert value(DUCKDB.same("NULL", "NULL")) is True
    assert value(DUCKDB.same("NULL", "1")) is False
    assert value(f"{DUCKDB.bytewise(chr(39) + 'a' + chr(39))} > 'B'") is True
    assert DUCKDB.column('"city"', TEXT) == 'CAST("city" AS VARCHAR)'


def test_a_hash_is_of_parts_that_cannot_run_into_each_other() -> None:
    assert value(DUCKDB.hashed(["'ab'", "'c'"])) != value(DUCKDB.hashed(["'a'", "'bc'"]))
    assert value(DUCKDB.hashed(["'a'"])) == "0cc175b9c0f1b6a831c399e269772661"


def test_rows_without_those_left_out() -> None:
    rows = "a AS (SELECT * FROM (VALUES (1, NULL), (1, 2), (3, NULL)) AS v(u, k))"
    left_out = "b AS (SELECT * FROM (VALUES (1, CAST(NULL AS INTEGER))) AS v(u, k))"
    kept = duckdb.sql(f"WITH {rows}, {left_out} {DUCKDB.without('a', 'b', ['u'], ['k'])}").fetchall()
    assert sorted(kept, key=repr) == [(1, 2), (3, None)]

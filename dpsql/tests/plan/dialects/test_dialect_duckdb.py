"""DuckDB's spelling, run in DuckDB: total, and with the value that every engine is to give."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.plan.dialects.dialect import Number
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
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
    rows = "a AS (SELECT * FROM (VALUES (1, NULL), (1, 2), (3, NULL), (4, 5)) AS v(u, k))"
    left_out = "b AS (SELECT * FROM (VALUES (1, 9), (4, NULL)) AS v(u, n))"
    kept = duckdb.sql(f"WITH {rows}, {left_out} {DUCKDB.without('a', 'b', ['u'], ['k'])}").fetchall()
    assert kept == [(None,)]


KEPT_TYPES = {
    "INTEGER": "CASE WHEN i % 7 > 0 THEN i % 50 END",
    "VARCHAR": "CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'é' || chr(CAST(1 + i % 40 AS INTEGER)) || 'b' END",
    "BOOLEAN": "CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN true ELSE false END", "DATE": "DATE '-0044-03-15' + CAST(i AS INTEGER)",
    "TIMESTAMP": "TIMESTAMP '2020-01-01' - i * INTERVAL 1 HOUR", "DECIMAL(9, 2)": "(i - 60) / 8", "HUGEINT": "(60 - i) * 10::HUGEINT ** 30",
}  # fmt: skip


@pytest.mark.parametrize("type_", KEPT_TYPES)
@pytest.mark.parametrize("hashed", ["md5(CAST(k AS VARCHAR))", "'one'", "md5(CAST(k IS NULL AS VARCHAR))"])
def test_the_first_by_heap_are_those_by_window(type_: str, hashed: str) -> None:
    """Where hashes tie, as none do, what is shown has the last word in both: all orders of the rows give the same."""
    hashed = f"COALESCE({hashed}, chr(30))"
    for number in range(3):
        rows = (
            f"(SELECT DISTINCT CAST(i % 4 AS BIGINT) AS u, i % 2 AS u1, CAST({KEPT_TYPES[type_]} AS {type_}) AS k, -i % 3 AS l "
            f"FROM range(200) AS t(i) ORDER BY hash(i + {number})) AS p"
        )
        for most in (1, 5, 100):
            first = DUCKDB.first(rows, ["u", "u1"], hashed, ["k", "l"], most)
            window = (
                f"SELECT u, u1, k, l FROM (SELECT u, u1, k, l, ROW_NUMBER() OVER (PARTITION BY u, u1 ORDER BY {hashed}, "
                f"k NULLS LAST, l NULLS LAST) AS rn FROM {rows}) WHERE rn <= {most}"
            )
            of_window = duckdb.sql(window).fetchall()
            assert first is not None
            assert sorted(duckdb.sql(first).fetchall(), key=repr) == sorted(of_window, key=repr)
    assert of_window


def test_a_heap_takes_no_more_than_the_engine_lets_it() -> None:
    shown = [
        DUCKDB.first("(SELECT 1 AS u, 2 AS k) AS p", ["u"], "'h'", ["k"], most)
        for most in (999_999, 1_000_000)
    ]
    assert shown[1] is None
    assert duckdb.sql(str(shown[0])).fetchall() == [(1, 2)]

"""Expressions on private rows: the same value as SQL means, and no content of any type makes them fail."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from dpsql.tests.plan.planned import printed, refused

_AGES = ("-2147483648", "0", "7", "100", "2147483647", "NULL")
_HEIGHTS = ("'NaN'", "'Infinity'", "1e-300", "0", "1.75", "NULL")
_TEXTS = ("''", "'a_%'", "'ß'", "'Straße'", "NULL")


@pytest.fixture(scope="module")
def hostile() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE person (id INTEGER, city VARCHAR, age INTEGER, email VARCHAR, height DOUBLE, born DATE)"
    )
    rows = itertools.product(_AGES, _HEIGHTS, _TEXTS)
    values = ", ".join(
        f"({i}, {text}, {age}, {text}, {height}, DATE '0001-01-01')"
        for i, (age, height, text) in enumerate(rows)
    )
    connection.execute(f"INSERT INTO person VALUES {values}")
    return connection


@pytest.mark.parametrize(
    "condition",
    [
        "age / (age - 7) > 1",
        "age * age * age > 5",
        "1 / height > 0.5",
        "sqrt(greatest(height - 1, 0)) > 0.5",
        "ln(greatest(age, 1)) > 1",
        "exp(height) > 2",
        "power(height, 3) > 1",
        "age % 7 = 0",
        "round(height * 100) = 175",
        "city LIKE 'a!_%' ESCAPE '!'",
        "upper(city) = lower(email)",
        "substring(city, 2, 3) = 'tra'",
        "date_trunc('month', born) > DATE '2000-01-01'",
        "extract(year FROM born) > 1999",
        "CASE WHEN height > 1 THEN age ELSE 0 END > 5",
        "coalesce(height, 0) < 1 AND NOT (age IS NULL OR city = '')",
    ],
)
def test_no_row_makes_it_fail(hostile: duckdb.DuckDBPyConnection, condition: str) -> None:
    bounded = "born BETWEEN DATE '1990-01-01' AND DATE '2020-01-01' AND " if "born" in condition else ""
    ((count,),) = hostile.execute(
        printed(f"SELECT COUNT(*) FROM person WHERE {bounded}{condition}")
    ).fetchall()
    assert 0 <= count <= len(_AGES) * len(_HEIGHTS) * len(_TEXTS)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("age = 7", 30),
        ("height IS NULL", 60),  # NaN counts as NULL
        ("height > 1", 90),  # infinity, 1.75, and NaN, which both engines put above every number
        ("age + 1 > 100", 60),  # clamped to 100 first: 100 and the largest
        ("city IN ('', 'ß')", 72),
        ("age IS NOT DISTINCT FROM NULL", 30),
        ("NOT (age > 5)", 60),
        ("length(city) = 1", 36),
    ],
)
def test_what_it_counts(hostile: duckdb.DuckDBPyConnection, condition: str, count: int) -> None:
    assert hostile.execute(printed(f"SELECT COUNT(*) FROM person WHERE {condition}")).fetchall() == [(count,)]


@pytest.mark.parametrize("condition", ["sqrt(height - 5) > 1", "ln(age) > 1"])
def test_what_could_fail_is_refused(condition: str) -> None:
    assert refused(f"SELECT COUNT(*) FROM person WHERE {condition}")[0] == "PV202"


def test_what_could_grow_too_long_is_refused() -> None:
    condition = " OR ".join(f"age * {i} + sqrt(age) > {i}" for i in range(400))
    assert refused(f"SELECT COUNT(*) FROM person WHERE {condition}")[0] == "54001"

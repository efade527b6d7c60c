"""Numbers on private rows: exact ones as integers of a grid, wide enough that nothing overflows."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.private_numbers import (
    bounded,
    quotient,
    real_power,
    real_product,
    real_sum,
    sizes,
)
from dpsql.plan.dialects.dialect import Number
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.relation.expressions import Field
from dpsql.relation.types import DOUBLE
from dpsql.tests.plan.planned import printed, refused, released


def summed(value: str, age: int) -> float:
    """Return SUM of a value over one person, in its own unit."""
    query = f"SELECT SUM({value}) FROM person"
    (measurement,) = released(query).measurements
    formula = released(query).formulas[0]
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE person AS SELECT 1 AS id, CAST({age} AS INTEGER) AS age, CAST(1.5 AS DOUBLE) AS height"
        )
        numbers = connection.execute(printed(query)).fetchall()[0]
    assert measurement.size == len(numbers)
    terms = formula.terms  # type: ignore[union-attr]
    return float(sum(weight * numbers[one.number] for one, weight in terms) + formula.constant)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("age + 1", 8),
        ("age - 10", -3),
        ("age * age", 49),
        ("age / 2", 3),  # of integers, towards zero
        ("(age - 10) / 2", -1),
        ("age / 2.0", 3.5),
        ("age % 4", 3),
        ("-age", -7),
        ("abs(age - 10)", 3),
        ("greatest(age, 9)", 9),
        ("CASE WHEN age > 5 THEN age * 2 ELSE 0.25 END", 14),
        ("age / (age - 7)", 0),  # divided by zero: no value
        ("round(height)", 2),
        ("floor(height * 3)", 4),
        ("CAST(height * 2 AS INTEGER)", 3),
    ],
)
def test_values(value: str, expected: float) -> None:
    assert summed(value, 7) == pytest.approx(expected, abs=1e-6)


def test_what_could_overflow_is_refused_or_widened() -> None:
    assert "HUGEINT" in printed("SELECT SUM(" + " * ".join(["(age * age + 1)"] * 5) + ") FROM person")
    product = " * ".join(["(age * age + 1)"] * 12)
    assert refused(f"SELECT SUM({product}) FROM person")[0] in ("PV201", "PV202")


X = Field(DOUBLE, 0, "x")


def real(low: str, high: str) -> Number:
    return bounded(Number("x", None), Fraction(low), Fraction(high))


def test_sizes_of_an_interval() -> None:
    """2^most is above every value, 2^least below every one that is not 0."""
    assert sizes(Fraction(-3), Fraction(100)) == (7, -1074)
    most, least = sizes(Fraction(1, 8), Fraction(5))
    assert 2**most >= 5
    assert Fraction(2) ** least <= Fraction(1, 8)
    assert sizes(None, Fraction(1)) == (1024, -1074)


def test_a_sum_is_one_bit_more() -> None:
    assert real_sum(real("0", "4"), "+", real("0", "4"), X).most == real("0", "4").most + 1
    with pytest.raises(Refusal) as refusal:
        real_sum(Number("x", None, 0, 1020), "+", Number("x", None, 0, 1020), X)
    assert refusal.value.sqlstate == "PV202"


def test_a_product_that_could_vanish_is_flushed() -> None:
    """1e-300 * 1e-300 raises in Postgres: what is that small counts as 0 before."""
    far = real_product(real("1", "4"), real("1", "4"), DUCKDB, X)
    assert far.sql == "(x * x)"
    near = real_product(real("0", "4"), real("0", "4"), DUCKDB, X)
    assert near.sql.count("CASE WHEN x BETWEEN") == 2
    assert near.least >= -1020
    with pytest.raises(Refusal):
        real_product(Number("x", None, 0, 600), Number("x", None, 0, 600), DUCKDB, X)


def test_a_quotient_and_a_power_stay_inside() -> None:
    assert quotient(real("1", "4"), real("1", "4"), DUCKDB, X).most <= 1020
    power = real_power(real("1", "4"), 3, DUCKDB, X)
    assert power.most == 3 * real("1", "4").most
    with pytest.raises(Refusal):
        real_power(real("1", "4"), 400, DUCKDB, X)

"""Numbers on private rows: exact ones as integers of a grid, wide enough that nothing overflows."""

from __future__ import annotations

import duckdb
import pytest

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

"""Formulas over released numbers: right where the numbers are, and total wherever noise puts them."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import pytest

from dpsql.plan.measures.formulas import Average, Formula, Linear, Variance, Within
from dpsql.plan.measures.measurements import Coord
from dpsql.relation.types import BIGINT, DOUBLE, SqlType

ONE, HALF, ZERO = Fraction(1), Fraction(1, 2), Fraction(0)
C0, C1, C2 = (Coord(index, 0, index) for index in range(3))
M0, M1, M2 = (Linear(((one, ONE),), ZERO) for one in (C0, C1, C2))
MEAN = Average(M0, M1, Fraction(5), Fraction(0), Fraction(10))


def value(formula: Formula, *numbers: int, type_: SqlType = DOUBLE) -> object:
    """Return what the printed formula computes of m0, m1, …."""
    columns = ", ".join(f"CAST({number} AS BIGINT) AS m{index}" for index, number in enumerate(numbers))
    (row,) = duckdb.sql(f"SELECT {formula.sql(type_)} FROM (SELECT {columns})").fetchall()
    return row[0]


def test_linear_sums_keep_one_term_each() -> None:
    total = M0.plus(M1).plus(M0.times(Fraction(3)))
    assert total == Linear(((C0, Fraction(4)), (C1, ONE)), ZERO)
    assert M0.plus(M0.times(Fraction(-1))) == Linear((), ZERO)
    assert total.coordinates == (C0, C1)


def test_a_weight_is_multiplied_then_divided() -> None:
    """1234 cents are 12.34, the nearest double, not 12.340000000000002."""
    assert value(M0.times(Fraction(1, 100)), 1234) == 12.34
    assert value(M0.plus(M1), 2, -5) == -3.0


def test_whole_sums_are_exact_integers() -> None:
    assert value(M0.plus(M1), 2**62, 1, type_=BIGINT) == 2**62 + 1
    assert value(M0.plus(M1), 2**62, 2**62, type_=BIGINT) is None  # beyond the type: NULL, no error
    assert value(M0.times(HALF), 5, type_=BIGINT) == 2  # half to even


@pytest.mark.parametrize(
    ("difference", "count", "mean"),
    [(6, 3, 7.0), (-6, 3, 3.0), (60, 1, 10.0), (-100, 1, 0.0), (6, 0, None), (3, -5, None)],
)
def test_an_average_stays_in_its_bounds_whatever_was_drawn(
    difference: int, count: int, mean: float | None
) -> None:
    """Of nobody, as far as the noisy count says, it is NULL."""
    assert value(MEAN, difference, count) == mean


@pytest.mark.parametrize(("number", "within"), [(-3, 0), (0, 0), (7, 7), (8, 8), (9, 8), (2**62, 8)])
def test_a_count_of_values_is_as_large_as_can_be(number: int, within: int) -> None:
    assert value(Within(M0.terms, ZERO, 0, 8), number, type_=BIGINT) == within
    assert value(Within(M0.terms, ZERO, 0, None), number, type_=BIGINT) == max(0, number)


def test_a_variance_by_hand() -> None:
    """Values 0, 2, 4 on [0, 4] in steps of 1: u = 2z - 4 is -4, 0, 4; Σ(2u² - 16) = 16, Σu = 0, n = 3."""
    pop = Variance(M0, M1, M2, 4, ONE, "var_pop")
    assert value(pop, 16, 0, 3) == pytest.approx(8 / 3)
    sample = Variance(M0, M1, M2, 4, ONE, "var_samp")
    assert value(sample, 16, 0, 3) == pytest.approx(4.0)
    assert value(Variance(M0, M1, M2, 4, ONE, "stddev_samp"), 16, 0, 3) == pytest.approx(2.0)


@pytest.mark.parametrize("numbers", [(0, 0, 0), (-(10**9), 5, 1), (10**9, -7, -3), (2**62, 2**62, -(2**62))])
@pytest.mark.parametrize("function", ["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
def test_a_spread_is_total(function: str, numbers: tuple[int, int, int]) -> None:
    found = value(Variance(M0, M1, M2, 4, ONE, function), *numbers)
    if numbers[2] <= 0:
        assert found is None
        return
    assert isinstance(found, float)
    assert 0 <= found <= 8
    assert math.isfinite(found)


def test_one_possible_value_has_no_spread() -> None:
    assert value(Variance(M0, M1, M2, 0, ONE, "stddev_pop"), 5, 5, 5) == 0.0

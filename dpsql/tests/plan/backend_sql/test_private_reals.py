"""Doubles that stay inside their range, by the sizes that printed clamps and operators leave."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.errors import Refusal
from dpsql.plan.backend_sql.private_reals import bounded, quotient, real_power, real_product, real_sum, sizes
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.plan.dialects.private_sql import Number
from dpsql.relation.expressions import Field
from dpsql.relation.types import DOUBLE

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

"""Printed numbers: how large a value can be, by which its type is chosen."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.errors import Refusal
from dpsql.plan.dialects.dialect import Number, integer_kind, is_bare, reach_of, unbounded
from dpsql.relation.expressions import Call, Field, Literal
from dpsql.relation.facts import Facts
from dpsql.relation.types import BIGINT, INTEGER

AGE = Field(INTEGER, 0, "age")
SUM = Call(BIGINT, "add", (AGE, Literal(INTEGER, 1)))


def test_an_integer_type_that_holds_the_reach() -> None:
    assert integer_kind(2**62 - 1, AGE) == Number("x", Fraction(1), 2**62 - 1).kind == "BIGINT"
    assert integer_kind(2**62, AGE) == Number("x", Fraction(1), 2**62).kind == "HUGEINT"
    with pytest.raises(Refusal) as refusal:
        integer_kind(2**125, AGE)
    assert refusal.value.sqlstate == "PV202"


def test_the_reach_is_counted_in_the_grid() -> None:
    facts = Facts(Fraction(-3), Fraction(2), Fraction(1, 10), True)
    assert reach_of(facts, Fraction(1, 10), AGE) == 30
    assert reach_of(facts, Fraction(2), AGE) == 2  # 3 / 2, rounded up
    with pytest.raises(Refusal):
        reach_of(Facts(Fraction(0), None), Fraction(1), AGE)


def test_a_refusal_names_the_column_that_lacks_bounds() -> None:
    assert unbounded(SUM).sqlstate == "PV101"
    assert '"age"' in unbounded(SUM).message
    assert unbounded(Literal(INTEGER, 1)).sqlstate == "PV201"


def test_what_compares_as_it_stands() -> None:
    assert is_bare(AGE)
    assert not is_bare(SUM)
    assert Number("x", Fraction(1, 100)).is_decimal
    assert not Number("x", Fraction(1, 3)).is_decimal
    assert not Number("x", None).is_decimal

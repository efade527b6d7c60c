"""What a filter says of a column beside a value that is not known while planning."""

from __future__ import annotations

import math

import pytest

from dpsql.plan.privacy.keys import environment_of
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call, Expr, Field, Literal, StageValue
from dpsql.relation.intervals import facts_of
from dpsql.relation.types import BOOLEAN, DOUBLE, INTEGER, SqlType

STAGE = StageValue(DOUBLE, 0, None, None)
NAN = Literal(DOUBLE, math.nan)


@pytest.mark.parametrize(
    ("type_", "sign", "other", "nullable"),
    [
        # NaN, which counts as NULL, is above every number and equals itself
        (DOUBLE, "gt", STAGE, True),
        (DOUBLE, "ge", STAGE, True),
        (DOUBLE, "ge", NAN, True),
        (DOUBLE, "eq", NAN, True),
        (INTEGER, "gt", STAGE, False),
        (INTEGER, "le", STAGE, False),
    ],
)
def test_what_passes_a_comparison_may_be_nan(type_: SqlType, sign: str, other: Expr, nullable: bool) -> None:
    column = Field(type_, 0)
    env = environment_of((Column("x", type_),), (Call(BOOLEAN, sign, (column, other)),))
    assert facts_of(column, env).nullable is nullable

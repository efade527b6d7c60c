"""Values that tell people apart, and what is computed from them without losing that."""

from __future__ import annotations

import pytest

from dpsql.plan.privacy.personal import personal_columns, tells_apart
from dpsql.relation.expressions import Call, Expr, Field, Literal
from dpsql.relation.types import BOOLEAN, INTEGER, TEXT
from dpsql.tests.plan.planned import rows_of

EMAIL, CITY = Field(TEXT, 0, "email"), Field(TEXT, 1, "city")
ONE = Literal(INTEGER, 1)


def is_email(index: int) -> bool:
    return index == EMAIL.index


@pytest.mark.parametrize(
    ("expr", "tells"),
    [
        (EMAIL, True),
        (CITY, False),
        (Call(TEXT, "lower", (EMAIL,)), True),
        (Call(TEXT, "lower", (CITY,)), False),
        (Call(TEXT, "concat", (CITY, EMAIL)), True),
        (Call(INTEGER, "length", (EMAIL,)), False),  # many share a length
        (Call(BOOLEAN, "eq", (EMAIL, CITY)), False),
        (Call(TEXT, "case", (Call(BOOLEAN, "is_null", (CITY,)), EMAIL, CITY)), True),
        (
            Call(TEXT, "case", (Field(BOOLEAN, EMAIL.index), CITY, CITY)),
            False,
        ),  # asked about, not shown
        (ONE, False),
    ],
)
def test_what_tells_people_apart(expr: Expr, tells: bool) -> None:
    assert tells_apart(expr, is_email) == (EMAIL if tells else None)


def test_a_column_that_equals_a_personal_one_is_personal() -> None:
    joined = "SELECT COUNT(*) FROM visit v JOIN person p ON v.person_id = p.id"
    rows = rows_of(f"{joined} WHERE v.note = p.email")
    personal = personal_columns(rows)
    assert {column.name for i, column in enumerate(rows.columns) if personal(i)} == {
        "id",
        "email",
        "person_id",
        "note",
    }
    plain = rows_of(f"{joined} WHERE v.note <> p.email")
    assert not any(
        personal_columns(plain)(i) for i, column in enumerate(plain.columns) if column.name == "note"
    )

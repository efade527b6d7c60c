"""Group keys: what a filter says of a column, the public values of a key, the groups that a person can touch."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpsql.plan.privacy.keys import environment_of, personal_columns, tells_people_apart
from dpsql.relation.catalog import Column
from dpsql.relation.expressions import Call, Expr, Field, IntermediateValue, Literal
from dpsql.relation.intervals import facts_of
from dpsql.relation.types import BOOLEAN, DOUBLE, INTEGER, TEXT, SqlType
from dpsql.tests.plan.planned import refused, released, rows_of

INTERMEDIATE = IntermediateValue(DOUBLE, 0, None, None)
NAN = Literal(DOUBLE, math.nan)


@pytest.mark.parametrize(
    ("type_", "sign", "other", "nullable"),
    [
        # NaN, which counts as NULL, is above every number and equals itself
        (DOUBLE, "gt", INTERMEDIATE, True),
        (DOUBLE, "ge", INTERMEDIATE, True),
        (DOUBLE, "ge", NAN, True),
        (DOUBLE, "eq", NAN, True),
        (INTEGER, "gt", INTERMEDIATE, False),
        (INTEGER, "le", INTERMEDIATE, False),
    ],
)
def test_what_passes_a_comparison_may_be_nan(type_: SqlType, sign: str, other: Expr, nullable: bool) -> None:
    column = Field(type_, 0)
    env = environment_of((Column("x", type_),), (Call(BOOLEAN, sign, (column, other)),))
    assert facts_of(column, env).nullable is nullable


def domain(sql: str) -> list[object] | None:
    """Return the public values of a query's one key."""
    (domain,) = released(sql).domains
    return None if domain is None else list(domain.values)


@pytest.mark.parametrize(
    ("key", "where", "values"),
    [
        ("ward", "", ["a", "b", "c", "d"]),  # as declared; NULL is not among them, so it is no group
        ("ward", "ward IN ('b', 'x', 'd')", ["b", "d"]),
        ("note", "note IN ('x', 'y', 'x')", ["x", "y"]),  # listed by the statement
        ("note", "note LIKE 'x%'", None),  # only the data knows them
        ("days", "", list(range(10))),  # NOT NULL by the engine
        ("days", "days > 6", [7, 8, 9]),
        ("days", "days <> 6 AND days > 4", [5, 7, 8, 9]),
        ("days", "days = 3 OR days = 5", [3, 5]),
        ("urgent", "", [False, True, None]),
        ("urgent", "urgent", [True]),
        ("fee", "", None),  # 6,001 points
        ("fee", "fee BETWEEN 0.5 AND 0.52", [Fraction(50, 100), Fraction(51, 100), Fraction(52, 100)]),
        ("fee", "fee > 0.5 AND fee < 0.53", [Fraction(51, 100), Fraction(52, 100)]),  # the next cent
        ("fee", "fee > 0.505 AND fee < 0.525", [Fraction(51, 100), Fraction(52, 100)]),
        ("days", "days > 2.5 AND days < 4.5", [3, 4]),
        ("no", "", None),  # no bounds
        ("length(ward)", "", [1, None]),  # of the values, not of all texts that the column can hold
        ("position('c' IN ward) + 5000", "", [5000, 5001, None]),
        ("length(note || note)", "note IN ('x', 'yyy')", [2, 6]),
        ("CASE WHEN days > 3 THEN 'long' ELSE 'short' END", "", ["long", "short"]),
    ],
)
def test_the_public_values_of_a_key(key: str, where: str, values: list[object] | None) -> None:
    filter_ = f" WHERE {where}" if where else ""
    assert domain(f"SELECT {key}, COUNT(*) FROM visit{filter_} GROUP BY 1") == values


def test_a_float_is_no_key() -> None:
    assert refused("SELECT height, COUNT(*) FROM person GROUP BY height") == ("PV202", "height")


def test_groups_are_the_product_of_their_keys() -> None:
    groups = released("SELECT ward, days, COUNT(*) FROM visit GROUP BY ward, days").groups
    assert groups is not None
    assert len(groups) == 4 * 10
    assert (groups[0], groups[-1]) == (("a", 0), ("d", 9))
    of = "visit v JOIN person p ON p.id = v.person_id WHERE fee BETWEEN 0 AND 1"
    assert refused(f"SELECT fee, days, age, COUNT(*) FROM {of} GROUP BY fee, days, age") == ("PV203", "fee")
    assert (
        len(released("SELECT age, age + 1, age + 2, COUNT(*) FROM person GROUP BY 1, 2, 3").groups or ())
        == 102
    )


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        ("SELECT ward, COUNT(*) FROM visit GROUP BY ward", 2),  # as declared
        ("SELECT ward, COUNT(*) FROM visit WHERE ward = 'a' GROUP BY ward", 1),  # one value
        ("SELECT days, COUNT(*) FROM visit WHERE days BETWEEN 3 AND 3 GROUP BY days", 1),  # one public value
        ("SELECT note, COUNT(*) FROM visit GROUP BY note", 2),
        (
            "SELECT p.city, COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id GROUP BY p.city",
            1,
        ),  # one each
    ],
)
def test_groups_that_one_person_can_touch(sql: str, groups: int) -> None:
    assert released(sql).bounding.groups == groups


def test_groups_need_a_bound_or_a_key() -> None:
    assert refused("SELECT stars, COUNT(*) FROM remark GROUP BY stars")[0] == "PV102"


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
    assert tells_people_apart(expr, is_email) == (EMAIL if tells else None)


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

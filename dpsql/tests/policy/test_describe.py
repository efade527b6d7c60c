"""What a catalog says of tables and columns."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.policy.describe import column_comment, declared_text, table_comment
from dpsql.relation.catalog import Column, Scalar, Table, Unit
from dpsql.relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    OPAQUE,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)

OWNED = Unit(("person_id",), (BIGINT,), ("person", ("id",)), max_rows=6, max_rows_per_group=3, max_groups=4)
BOUNDS = (Fraction(0), Fraction(3, 2))


def private(column: Column) -> Table:
    return Table("visit", ("main", "visit"), (column,), OWNED)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("c", INTEGER), "COUNT only; group keys by threshold"),
        (Column("c", DOUBLE, bounds=BOUNDS, step=Fraction(1, 8)),
         "bounds 0 to 1.5, step 0.125; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX; no GROUP BY"),
        (Column("c", INTEGER, bounds=(Fraction(0), Fraction(10**6)), is_log=True),
         "bounds 0 to 1000000, scale log; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX; group keys by threshold"),
        (Column("c", numeric(5, 1), bounds=BOUNDS), "bounds 0 to 1.5; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 16 values inside the bounds"),
        (Column("c", numeric(5, 4), bounds=BOUNDS), "bounds 0 to 1.5; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX; group keys by threshold"),
        (Column("c", TEXT, max_length=30, description="a name"), "a name; at most 30 characters; COUNT only; group keys by threshold"),
        (Column("c", OPAQUE), "COUNT only; no GROUP BY"),
        (Column("c", DATE, bounds=(Fraction(-1), Fraction(10957))),
         "bounds 1969-12-31 to 2000-01-01; COUNT, MEDIAN, percentiles, MIN, MAX; group keys by threshold"),
        (Column("c", TIMESTAMP, bounds=(Fraction(0), Fraction(1_500_000))),
         "bounds 1970-01-01 00:00:00 to 1970-01-01 00:00:01.500000; COUNT, MEDIAN, percentiles, MIN, MAX; group keys by threshold"),
    ],
)  # fmt: skip
def test_a_private_column(column: Column, expected: str) -> None:
    assert column_comment(private(column), "c", has_delta=True) == expected


def test_without_a_delta() -> None:
    assert (
        column_comment(private(Column("c", TEXT)), "c", has_delta=False)
        == "COUNT only; GROUP BY needs values, or a delta"
    )


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (TEXT, ("a", "it's", None), "group keys: 'a', 'it''s', NULL"),
        (BOOLEAN, (False, True), "group keys: false, true"),
        (numeric(3, 2), (Fraction(1, 2), Fraction(3)), "group keys: 0.5, 3"),
        (INTEGER, tuple(range(20)), "group keys: " + ", ".join(map(str, range(20)))),
        (INTEGER, tuple(range(21)), "group keys: 21 public values"),
    ],
)
def test_public_values(type_: SqlType, values: tuple[Scalar, ...], expected: str) -> None:
    column = Column("c", type_, values=values)
    assert column_comment(private(column), "c", has_delta=True) == f"COUNT, MODE; {expected}"


def test_the_unit_column() -> None:
    table = private(Column("c", INTEGER))
    joins = "whose row it is, as person.id: to join on, and for COUNT(DISTINCT person_id)"
    assert column_comment(table, "person_id", has_delta=True) == joins
    root = Table(
        "person", ("main", "person"), (Column("id", TEXT, description="a number"),), Unit(("id",), (TEXT,))
    )
    text = "a number; whose row it is: to join on, and for COUNT(DISTINCT id); COUNT only; group keys by threshold"
    assert column_comment(root, "id", has_delta=True) == text


def test_a_public_table() -> None:
    columns = (Column("c", INTEGER), Column("d", TEXT, values=("a",), description="a letter"))
    table = Table("letter", ("main", "letter"), columns, None, description="the alphabet")
    assert column_comment(table, "c", has_delta=True) == "public"
    assert column_comment(table, "d", has_delta=True) == "a letter; group keys: 'a'; public"
    assert table_comment(table) == "the alphabet; public, nobody's data: answered exactly and free"


def test_private_tables() -> None:
    assert table_comment(private(Column("c", INTEGER))) == (
        'private, owned through "person_id" by person.id; '
        "6 rows of a unit count in a result; 3 of them in a group; 4 groups of a unit count"
    )
    root = Table("person", ("main", "person"), (), Unit(("id",), (TEXT,), is_unique=True, max_rows=9))
    assert table_comment(root) == 'private, one row per unit in "id"'
    assert declared_text(Column("c", INTEGER)) == ""

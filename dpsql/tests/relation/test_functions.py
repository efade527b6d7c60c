"""The types of operators and functions, against what Postgres documents (and 15.18 answered)."""

from __future__ import annotations

import pytest

from dpsql.errors import Refusal
from dpsql.relation.functions import (
    FUNCTIONS,
    ROWS,
    SYNTAX,
    Function,
    above,
    arrays,
    check_printers,
    common_type,
    promote,
    texts,
)
from dpsql.relation.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)

from .hostile_rows import COLUMNS, bind_expression


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (SMALLINT, SMALLINT, SMALLINT),
        (SMALLINT, INTEGER, INTEGER),
        (INTEGER, BIGINT, BIGINT),
        (BIGINT, NUMERIC, NUMERIC),
        (REAL, REAL, REAL),
        (REAL, INTEGER, DOUBLE),
        (REAL, NUMERIC, DOUBLE),
        (REAL, DOUBLE, DOUBLE),
        (NUMERIC, DOUBLE, DOUBLE),
        (NULL, INTEGER, INTEGER),
        (TEXT, INTEGER, None),
        (DATE, DATE, None),
    ],
)
def test_arithmetic_takes_the_wider_type(left: SqlType, right: SqlType, result: SqlType | None) -> None:
    assert promote(left, right) == result
    assert promote(right, left) == result


@pytest.mark.parametrize(
    ("types", "result"),
    [
        ([INTEGER, NULL, BIGINT], BIGINT),
        ([NULL, NULL], NULL),
        ([TEXT, TEXT], TEXT),
        ([DATE, TIMESTAMP], TIMESTAMP),
        ([numeric(10, 2), numeric(5, 4)], numeric(38, 4)),
        ([INTEGER, DOUBLE], DOUBLE),
        ([TEXT, INTEGER], None),
        ([BOOLEAN, INTEGER], None),
        ([DATE, INTEGER], None),
    ],
)
def test_the_common_type_of_case_branches_and_unions(types: list[SqlType], result: SqlType | None) -> None:
    assert common_type(types) == result


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i32 + 1", "integer"),
        ("i16 + 1", "integer"),
        ("i64 * 2", "bigint"),
        ("i32 / 2", "integer"),
        ("i32 / 2.0", "numeric"),
        ("i32 + 1.5", "numeric(38,1)"),
        ("n * n", "numeric(38,4)"),
        ("n + i32", "numeric(38,2)"),
        ("f + 1", "double precision"),
        ("r + r", "real"),
        ("r + 1", "double precision"),
        ("r + 1.5", "double precision"),
        ("i32 % 2", "integer"),
        ("abs(i16)", "smallint"),
        ("- i64", "bigint"),
        ("2 ^ 3", "double precision"),
        ("power(2, 1.5)", "numeric"),
        ("sqrt(2)", "double precision"),
        ("exp(1.5)", "numeric"),
        ("round(2.5)", "numeric(38,0)"),
        ("round(f)", "double precision"),
        ("round(n, 1)", "numeric(38,1)"),
        ("floor(f)", "double precision"),
        ("length(s)", "integer"),
        ("position('a' IN s)", "integer"),
        ("lower(s)", "text"),
        ("s || i32", "text"),
        ("i32 || s", "text"),
        ("extract(year FROM d)", "numeric"),
        ("date_trunc('month', d)", "timestamp"),
        ("d + 1", "date"),
        ("1 + d", "date"),
        ("d - d", "integer"),
        ("d - 1", "date"),
        ("d + INTERVAL '1 day'", "timestamp"),
        ("INTERVAL '1 day' + d", "timestamp"),
        ("ts - INTERVAL '1 month'", "timestamp"),
        ("CASE WHEN b THEN 1 ELSE 1.5 END", "numeric"),
        ("CASE WHEN b THEN 1 END", "integer"),
        ("coalesce(i32, f)", "double precision"),
        ("coalesce(d, ts)", "timestamp"),
        ("greatest(i16, i64)", "bigint"),
        ("nullif(i32, 1)", "integer"),
        ("i32 = 1.5", "boolean"),
        ("s LIKE 'a%'", "boolean"),
        ("CAST(i32 AS numeric(5,1))", "numeric(5,1)"),
        ("i32::float8", "double precision"),
        ("b::int", "integer"),
        ("d::timestamp", "timestamp"),
        ("ts::date", "date"),
        ("i32::text", "text"),
    ],
)
def test_results_have_postgres_types(text: str, type_: str) -> None:
    assert str(bind_expression(text, COLUMNS).type) == type_


@pytest.mark.parametrize(
    "text",
    [
        "s + 1",
        "b + b",
        "d + d",
        "d * 2",
        "ts + 1",
        "f % 2",
        "round(f, 2)",
        "1 || 2",
        "s = 5",
        "b = 1",
        "d = 1",
        "abs(s)",
        "sqrt(s)",
        "length(5)",
        "lower(d)",
        "extract(year FROM s)",
        "date_trunc('day', s)",
        "i32 LIKE 'a'",
        "coalesce(s, 1)",
        "CASE WHEN b THEN 'a' ELSE i32 END",
        "greatest(d, i32)",
        "i32 IN (1, s)",
        "b::bigint",
        "d::integer",
    ],
)
def test_types_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        bind_expression(text, COLUMNS)
    assert caught.value.sqlstate in ("42883", "42804", "22023", "PV001")
    assert caught.value.position is not None


BELOW = {"json_has", "json_member"}
"""What is of people's rows alone."""
ABOVE = {
    "dp_low", "dp_high", "array", "element", "cardinality", "slice", "series", "array_has", "array_position", "array_compared", "array_cast",
    "array_length", "array_contains", "array_overlaps", "array_joined", *(row.name for row in above.ROWS),
    *(row.name for row in arrays.JSON_ROWS),
} - {row.name for row in texts.NAMED} - BELOW  # fmt: skip
"""What stands above a release alone."""


def test_what_is_no_text_has_an_interval_rule() -> None:
    without = {name for name, row in FUNCTIONS.items() if row.interval is None}
    assert without == {"trim", "ltrim", "rtrim", "concat", "concat_op", *_PARTS} | ABOVE | BELOW


_PARTS = ("regexp_replace", "regexp_substr", "substring_matching")


INTERNAL = {"estimated", "deviate", "age_seconds"}


def test_a_name_and_a_node_are_of_one_function() -> None:
    assert len({row.form for row in ROWS}) == len(ROWS)
    assert {row.name for row in ROWS if isinstance(row, Function)} == FUNCTIONS.keys() - INTERNAL
    assert sum(len(row.syntax) for row in ROWS) == len(SYNTAX)


@pytest.mark.parametrize("is_private", [True, False])
def test_a_printer_that_is_missing_or_of_no_function_is_an_error(is_private: bool) -> None:
    names = set(FUNCTIONS) - (
        ABOVE | INTERNAL - {"age_seconds"} if is_private else {"dp_low", "dp_high"} | BELOW
    )
    check_printers(names, private=is_private)
    for wrong in (names - {"sqrt"}, names | {"square"}, names | {"dp_low"}):
        with pytest.raises(ImportError, match=r"sqrt|square|dp_low"):
            check_printers(wrong, private=is_private)

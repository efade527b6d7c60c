"""Names and values as SQL text: what a reader of the text would take for more than a name or a value is not there."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest

from dpsql.plan.dialects.quote import decimal, identifier, literal, table_name, text
from dpsql.relation.expressions import Literal, LiteralValue
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, DOUBLE, NUMERIC, TEXT, TIMESTAMP, SqlType

HOSTILE = ("a'b", "''", "x'; DROP TABLE t; --", 'say "no"', "\\", "a\nb", "")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_text_is_read_back(value: str) -> None:
    assert duckdb.sql(f"SELECT {text(value)}").fetchall() == [(value,)]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_a_name_is_read_back(name: str) -> None:
    assert duckdb.sql(f"SELECT 1 AS {identifier(name)}").columns == [name]


def test_a_path() -> None:
    assert table_name(("hall", 'od"d')) == '"hall"."od""d"'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(5), "5"),
        (Fraction(-1, 100), "-0.01"),
        (Fraction(1, 8), "0.125"),
        (Fraction(3, 40), "0.075"),
        (Fraction(1, 3), None),
        (Fraction(1, 10**30), "0." + "0" * 29 + "1"),
        (Fraction(1, 10**31), None),
    ],
)
def test_decimals_are_exact_or_none(value: Fraction, shown: str | None) -> None:
    assert decimal(value) == shown
    assert shown is None or Fraction(shown) == value


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        (BIGINT, None, "NULL"),
        (BOOLEAN, True, "TRUE"),
        (BIGINT, -5, "(-5)"),  # `x - -5` would begin a comment
        (NUMERIC, Fraction(1, 4), "0.25"),
        (NUMERIC, Fraction(1, 3), "CAST('0.3333333333333333' AS DOUBLE)"),
        (DOUBLE, 0.5, "CAST('0.5' AS DOUBLE)"),
        (DOUBLE, float("inf"), "CAST('inf' AS DOUBLE)"),
        (TEXT, "it's", "'it''s'"),
        (DATE, 0, "DATE '1970-01-01'"),
        (TIMESTAMP, 1_000_000, "TIMESTAMP '1970-01-01 00:00:01'"),
    ],
)
def test_literals(type_: SqlType, value: LiteralValue, shown: str) -> None:
    assert literal(Literal(type_, value)) == shown

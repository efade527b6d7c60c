"""What Spark spells otherwise, as text; `conformance/test_spark_words.py` runs it."""

from __future__ import annotations

import re

import pytest
import sqlglot

from dpsql.errors import Refusal
from dpsql.plan.dialects import SparkDialect, dialect_of
from dpsql.plan.dialects.dialect_spark import SPARK
from dpsql.relation.expressions import Literal
from dpsql.relation.types import DATE, INTEGER, TEXT, TIMESTAMP, SqlType
from dpsql.tests.plan.planned import planned, printed
from dpsql.tests.plan.spark_places import ATTACKS, PLACES, statements

_TOKEN = re.compile(r"'[^']*'|`(?:[^`]|``)*`|[^'`]+")
ASKED = (
    "SELECT ward, SUM(fee), COUNT(DISTINCT note) FROM visit GROUP BY ward",
    "SELECT SUM(height), AVG(sqrt(age)), STDDEV(age) FROM person WHERE lower(email) LIKE '%@x' OR height IS NULL",
    "SELECT date_trunc('month', born), COUNT(*) FROM person WHERE born > DATE '2000-01-01' GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT person_id, SUM(fee) AS s FROM visit GROUP BY person_id) t WHERE s > 10",
    "SELECT ward, MEDIAN(days) FROM visit GROUP BY ward",
    "SELECT AVG(sqrt(age)), MEDIAN(height * height * 50000) FROM person",
    "SELECT note, COUNT(*), COUNT(DISTINCT person_id), SUM(fee) FROM visit GROUP BY note",
    "SELECT SUM(v.fee * w.beds) FROM visit v JOIN ward w ON w.name = v.ward WHERE w.beds BETWEEN 0 AND 9",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.id AND v.days <> p.age)",
)


def test_a_catalog_says_which() -> None:
    assert isinstance(dialect_of("spark", None), SparkDialect)


@pytest.mark.parametrize("sql", ASKED)
def test_what_is_printed_is_sparks(sql: str) -> None:
    shown = "; ".join(statements(sql, "", "spark"))
    assert all(sqlglot.parse(shown, read="spark"))
    for foreign in (
        "VARCHAR",
        "HUGEINT",
        " // ",
        "ANTI JOIN (",
        "round_even",
        "$1",
        "MATERIALIZED",
        "COUNT(*) < 0",
        '"',
        'trunc("',
        ">>",
    ):
        assert foreign not in shown


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_constant_is_more_than_a_constant(attack: str) -> None:
    """In a printed text stands nothing that could end a literal, escape a character or be substituted."""
    tried = 0
    for place in PLACES:
        for sql in statements(place, attack, "spark"):
            tried += 1
            for token in _TOKEN.findall(sql):
                assert token[0] == "`" or not re.search(r"[\\$\"{}]|--|/\*", token), sql
            assert sql.count("'") % 2 == 0
    assert tried > len(PLACES) // 2, "refused, most of them"


@pytest.mark.parametrize(
    "test",
    [
        "note ~ '[0-9]+x'",
        "note::date > DATE '2000-01-01'",
        "to_date(note, 'DD.MM.YYYY') > born",
        "note::int > 5",
    ],
)
def test_no_text_is_read_by_a_regular_expression(test: str) -> None:
    sql = f"SELECT COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id WHERE {test}"
    assert printed(sql)
    with pytest.raises(Refusal, match="nor numbers and dates in their texts") as caught:
        planned(sql, engine="spark")
    assert caught.value.sqlstate == "PV202"


def test_only_plain_texts_are_quoted() -> None:
    assert SPARK.text_literal("Grüße, 5 %") == "'Grüße, 5 %'"
    assert SPARK.text_literal("it's") == "CAST(X'69742773' AS STRING)"
    assert SPARK.text_literal("\\") == "CAST(X'5C' AS STRING)"
    assert SPARK.text_literal("") == "''"
    assert SPARK.identifier("a`b\\") == "`a``b\\`"


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        (DATE, None, "CAST(NULL AS DATE)"),
        (TEXT, None, "CAST(NULL AS STRING)"),
        (TIMESTAMP, 0, "TIMESTAMP_NTZ '1970-01-01 00:00:00'"),
        (INTEGER, -5, "(-5)"),
    ],
)
def test_literals(type_: SqlType, value: int | None, shown: str) -> None:
    assert SPARK.literal(Literal(type_, value)) == shown


@pytest.mark.parametrize(
    ("pattern", "escape", "shown"),
    [
        ("a%_", "", "(x LIKE 'a%_')"),
        ("50\\%", "\\", "(x LIKE '50!%' ESCAPE '!')"),
        ("a!b", "\\", "(x LIKE 'a!b')"),
        ("a!!%!%", "!", "(x LIKE 'a!!%!%' ESCAPE '!')"),
        ("\\", "", "(x LIKE CAST(X'5C' AS STRING) ESCAPE '!')"),
    ],
)
def test_patterns(pattern: str, escape: str, shown: str) -> None:
    assert SPARK.like("x", pattern, escape) == shown


def test_a_wide_quotient_is_taken_in_two_steps() -> None:
    """Each below 2^63, where DIV wraps without a word."""
    assert SPARK.quotient("n", "t", wide=False, most=2**62) == "(n DIV t)"
    assert "DIV 27000000000000000000)" in SPARK.quotient("n", "3", wide=True, most=2**63)
    assert str(10**19 * 9 * 10**18) in SPARK.quotient("n", str(10**30), wide=True, most=2**63)
    assert SPARK.quotient("n", "t", wide=True, most=2**63 - 1) == "CAST((n DIV t) AS DECIMAL(38, 0))"


def test_sums_that_could_pass_64_bits_are_decimals() -> None:
    assert SPARK.summand(2**62 - 1) == "BIGINT"
    assert SPARK.summand(2**62) == "HUGEINT"
    assert SPARK.summed("x", "BIGINT", None) == "CAST(x AS DECIMAL(38, 0))"
    assert SPARK.summed("x", "BIGINT", 5) == "x"

"""What Postgres spells otherwise: no form of the abstract dialect is left that it would read in its own way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from dpsql.errors import Refusal
from dpsql.plan.dialects import PostgresDialect, dialect_of
from dpsql.plan.dialects.dialect_duckdb import DUCKDB
from dpsql.relation.expressions import Literal
from dpsql.relation.types import DATE, INTEGER, NUMERIC, TEXT
from dpsql.tests.plan.planned import CATALOG, printed

POSTGRES = PostgresDialect("pg_c_utf8")
ASKED = (
    "SELECT ward, SUM(fee), COUNT(DISTINCT note) FROM visit GROUP BY ward",
    "SELECT SUM(height), AVG(sqrt(age)) FROM person WHERE lower(email) LIKE '%@x' OR height IS NULL",
    "SELECT date_trunc('month', born), COUNT(*) FROM person WHERE born > DATE '2000-01-01' GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT person_id, SUM(fee) AS s FROM visit GROUP BY person_id) t WHERE s > 10",
)


def test_a_catalog_says_which() -> None:
    assert dialect_of("duckdb", None) is DUCKDB
    assert isinstance(dialect_of("postgres", "x"), PostgresDialect)
    with pytest.raises(KeyError):
        dialect_of("mysql", None)  # never another engine's SQL


@pytest.mark.parametrize("sql", [sql for sql in ASKED if "DISTINCT" not in sql])
def test_what_is_printed_is_postgres(sql: str) -> None:
    shown = printed(sql, "postgres")
    sqlglot.parse_one(shown, read="postgres")
    for foreign in (
        "VARCHAR",
        "HUGEINT",
        "DOUBLE)",
        "ANTI JOIN",
        "isnan(",
        "IS NOT DISTINCT FROM",
        "//",
        "round_even",
    ):
        assert foreign not in shown
    assert 'FROM ONLY "main".' in shown


def test_texts_are_compared_bytewise_whatever_the_database_prefers() -> None:
    assert POSTGRES.column("x", TEXT) == '(CAST(x AS text) COLLATE "C")'
    assert POSTGRES.bytewise(POSTGRES.column("x", TEXT)) == POSTGRES.column("x", TEXT)  # once is enough
    assert POSTGRES.owner("x", INTEGER) == "x"


def test_letter_case_is_unicodes_or_refused() -> None:
    assert 'COLLATE pg_catalog."pg_c_utf8"' in POSTGRES.letter_case("lower", "x")
    with pytest.raises(Refusal) as refusal:
        PostgresDialect(None).letter_case("lower", "x")
    assert refusal.value.sqlstate == "PV202"


def test_rows_of_partitions_are_read_where_they_are_the_tables() -> None:
    visit = CATALOG.tables["visit"]
    assert POSTGRES.table(visit) == 'ONLY "main"."visit"'
    assert POSTGRES.table(replace(visit, is_partitioned=True)) == '"main"."visit"'


def test_a_null_has_its_type() -> None:
    assert POSTGRES.literal(Literal(DATE, None)) == "CAST(NULL AS DATE)"
    assert POSTGRES.literal(Literal(INTEGER, 5)) == "5"


def test_an_open_numeric_is_rounded_where_it_is_read() -> None:
    open_ = replace(NUMERIC, scale=2, engine="numeric")
    assert POSTGRES.is_open(open_)
    assert POSTGRES.on_scale("x", open_) == "round(x, 2)"
    assert POSTGRES.on_scale("x", NUMERIC) == "x"
    assert "1e39" in POSTGRES.number_key("x", open_)

"""Statements that write own tables, read: each to what it says, and what is not written right to its place."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from dpsql.errors import Refusal
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, REAL, TEXT, TIMESTAMP, numeric
from dpsql.sql.statement import AdmittedQuery, parse_statement, written_query
from dpsql.sql.workspace import (
    AddColumn,
    CreateSchema,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Insert,
    Nothing,
    Rename,
    Truncate,
    count_sent,
    read_sent_rows,
    values_of,
)


def test_a_query_is_cut_out_and_keeps_its_places() -> None:
    text = "CREATE TEMP TABLE IF NOT EXISTS a.b (x, y) ON COMMIT DROP AS (SELECT 1, 2) WITH NO DATA"
    made = parse_statement(text)
    assert isinstance(made, CreateTable)
    assert (str(made.name), made.names, made.is_temporary, made.may_exist) == ("a.b", ("x", "y"), True, True)
    assert (made.has_rows, made.drops) == (False, True)
    assert made.query is not None
    assert made.query.text.index("(SELECT") == text.index("(SELECT")
    assert made.query.text.strip() == "(SELECT 1, 2)"
    assert isinstance(written_query(made.query), AdmittedQuery)


def test_into_is_taken_out_of_a_select() -> None:
    made = parse_statement('WITH w AS (SELECT 1 AS a) SELECT a INTO TEMP "My Table" FROM w')
    assert isinstance(made, CreateTable)
    assert (made.name.name, made.is_temporary) == ("My Table", True)
    assert made.query is not None
    assert " ".join(made.query.text.split()) == "WITH w AS (SELECT 1 AS a) SELECT a FROM w"
    assert isinstance(parse_statement("SELECT 'into' AS a"), AdmittedQuery)


def test_columns_have_the_types_that_tools_write() -> None:
    made = parse_statement(
        "CREATE TABLE t (a BIGINT NOT NULL, b VARCHAR(255) NULL, c DOUBLE PRECISION, d FLOAT(53), e FLOAT(24), "
        'f NUMERIC(10, 2), g TIMESTAMP(6) WITHOUT TIME ZONE, h boolean, "I i" character varying, j date, k int4)'
    )
    assert isinstance(made, CreateTable)
    assert [one.type for one in made.columns] == [
        BIGINT, TEXT, DOUBLE, DOUBLE, REAL, numeric(10, 2), TIMESTAMP, BOOLEAN, TEXT, DATE, INTEGER,
    ]  # fmt: skip
    assert [one.name for one in made.columns if one.not_null] == ["a"]
    assert made.columns[8].name == "I i"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE OR REPLACE VIEW v AS SELECT 1", CreateView),
        ("CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION me", CreateSchema),
        ("DROP TABLE IF EXISTS a, s.b CASCADE", Drop),
        ("ALTER TABLE a RENAME TO b", Rename),
        ("ALTER TABLE IF EXISTS a RENAME COLUMN b TO c", Rename),
        ("ALTER TABLE a ADD COLUMN IF NOT EXISTS b text", AddColumn),
        ("INSERT INTO a (b) SELECT 1", Insert),
        ("/* why */ INSERT INTO a VALUES (1)", Insert),
        ("DELETE FROM a USING b WHERE a.i = b.i", Delete),
        ("DELETE FROM a", Delete),
        ("TRUNCATE TABLE a, b CASCADE", Truncate),
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON a USING btree (b)", Nothing),
        ("ANALYZE a", Nothing),
        ("COMMENT ON COLUMN s.a.b IS 'what'", Nothing),
    ],
)
def test_kinds(text: str, kind: type) -> None:
    assert isinstance(parse_statement(text), kind)


@pytest.mark.parametrize(
    ("text", "code", "near"),
    [
        ("CREATE TABLE", "42601", None),
        ("CREATE TABLE t AS UPDATE", "42601", "UPDATE"),
        ("CREATE TABLE t AS SELECT 1; DROP TABLE t", "42601", None),
        ("CREATE TABLE a.b.c.d AS SELECT 1", "42601", None),
        ("CREATE TABLE t (a int PRIMARY KEY)", "0A000", "PRIMARY"),
        ("CREATE TABLE t (a int, UNIQUE (a))", "0A000", "UNIQUE"),
        ("CREATE TABLE t (a hstore)", "0A000", None),
        ("CREATE TABLE t (a int[])", "0A000", "["),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "0A000", "MATERIALIZED"),
        ("CREATE FUNCTION f() RETURNS int", "0A000", "FUNCTION"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "0A000", "TABLE"),
        ("CREATE TEMP TABLE t (a int) ON COMMIT DELETE ROWS", "0A000", "DELETE"),
        ("DROP DATABASE d", "0A000", "d"),
        ("ALTER TABLE t DROP COLUMN a", "0A000", "DROP"),
        ("INSERT INTO t SELECT 1 RETURNING a", "0A000", "RETURNING"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "0A000", "ON"),
        ("INSERT INTO t DEFAULT VALUES", "0A000", None),
        ("INSERT INTO t VALUES (1), (1, 2)", "42601", None),
        ("DELETE FROM t WHERE a = 1 RETURNING a", "0A000", "RETURNING"),
        ("DROP TABLE t garbage", "42601", "garbage"),
        ("CREATE INDEX i ON t (a) WHERE a > 1", "42601", "WHERE"),
    ],
)
def test_refusals(text: str, code: str, near: str | None) -> None:
    with pytest.raises(Refusal) as refused:
        parse_statement(text)
    assert refused.value.sqlstate == code
    if near is not None:
        assert refused.value.position is not None
        assert text[refused.value.position.offset :].startswith(near)


def test_sent_rows_are_read_as_their_columns_types() -> None:
    sent = read_sent_rows(
        "INSERT INTO s.\"T\" (a, b, c, d, e, f) VALUES (1, 'it''s', '2020-02-29'::date, -1.5e3, null, $1),"
        " ('2', E'a\\\\b\\n', DATE '2020-03-01', '4', true, $2);"
    )
    assert sent is not None
    assert (sent.table, sent.names, count_sent(sent)) == (("s", "T"), ("a", "b", "c", "d", "e", "f"), 2)
    types = [BIGINT, TEXT, DATE, DOUBLE, BOOLEAN, numeric(10, 2)]
    assert list(values_of(sent, types, (Decimal("2.50"), None))) == [
        (1, "it's", datetime.date(2020, 2, 29), -1500.0, None, Decimal("2.5")),
        (2, "a\\b\n", datetime.date(2020, 3, 1), 4.0, True, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1 + 1)", "INSERT INTO t VALUES (1) RETURNING a", "INSERT INTO t VALUES (1), ",
        "INSERT INTO t VALUES (now())", "INSERT INTO t VALUES (1); SELECT 1", "INSERT INTO t VALUES (1) -- '\n, (x)",
        "INSERT INTO t VALUES (U&'a')", "INSERT INTO t VALUES (1abc)", "INSERT INTO t VALUES ('a' 'b')",
        "INSERT INTO t SELECT 1", "SELECT 'insert into t values (1)'", "INSERT INTO t VALUES (E'\\u0041')",
    ],
)  # fmt: skip
def test_what_is_not_sent_rows_to_its_last_character_is_none(text: str) -> None:
    assert read_sent_rows(text) is None


@pytest.mark.parametrize(
    ("value", "type_", "code"),
    [
        ("'x'", BIGINT, "22023"), ("3e9", INTEGER, "22023"), ("'2020-02-30'", DATE, "22023"), ("$2", BIGINT, "42P02"),
        ("true", DATE, "42804"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_has_its_place(value: str, type_: object, code: str) -> None:
    text = f"INSERT INTO t VALUES (NULL), ({value})"
    sent = read_sent_rows(text)
    assert sent is not None
    with pytest.raises(Refusal) as refused:
        list(values_of(sent, [type_], (1,)))  # type: ignore[list-item]
    assert refused.value.sqlstate == code
    assert refused.value.position is not None
    assert refused.value.position.offset >= text.index(value)


def test_thousands_of_rows_are_one_statement() -> None:
    rows = ", ".join(f"({i}, 'row {i}')" for i in range(8_000))
    made = parse_statement(f"INSERT INTO t VALUES {rows}")
    assert isinstance(made, Insert)
    assert made.sent is not None
    assert len(made.sent.rows) == 8_000

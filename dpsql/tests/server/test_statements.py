"""PREPARE, EXECUTE, DEALLOCATE: one namespace with the protocol's statements, and charged like the query."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from ..pgwire.frontend import SYNC, parse
from .conftest import COUNT, left
from .raw import exchange

_CODE = psycopg.pq.DiagnosticField.SQLSTATE


def test_executing_costs_what_the_query_does(connection: psycopg.Connection[Any]) -> None:
    before = Decimal(left(connection))
    connection.execute(f"PREPARE p(int) AS {COUNT} WHERE age > $1")
    assert Decimal(left(connection)) == before
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    first = connection.execute("EXECUTE p(51)")
    assert first.statusmessage == "SELECT 1"
    assert before - Decimal(left(connection)) == Decimal("0.1")
    assert connection.execute("EXECUTE p(51)").fetchone() == first.fetchone()
    assert before - Decimal(left(connection)) == Decimal("0.1")
    assert [(line or "").split(";")[0] for line in told] == ["charged epsilon 0.1", "free: answered before"]


def test_what_the_protocol_prepared_without_types_is_executed(connection: psycopg.Connection[Any]) -> None:
    exchange(connection, parse("untyped", "SELECT COUNT(*) FROM number WHERE i < $1") + SYNC)
    for argument in ("5", "'5'", "CAST(5 AS smallint)"):
        assert connection.execute(f"EXECUTE untyped({argument})").fetchone() == (5,)


def test_one_namespace_with_the_protocol(connection: psycopg.Connection[Any]) -> None:
    low = connection.pgconn
    connection.execute("PREPARE by_sql(bigint, text) AS SELECT i FROM number WHERE i = $1")
    described = low.describe_prepared(b"by_sql")
    assert [described.param_type(number) for number in range(described.nparams)] == [20, 25]
    assert (described.fname(0), described.ftype(0)) == (b"i", 20)
    assert low.exec_prepared(b"by_sql", [b"7", b"x"]).get_value(0, 0) == b"7"
    assert low.prepare(b"by_sql", b"SELECT 1").error_field(_CODE) == b"42P05"
    low.prepare(b"by_parse", b"SELECT i FROM number WHERE i = $1", [20])
    assert connection.execute("EXECUTE by_parse('8')").fetchone() == (8,)
    assert connection.execute('DEALLOCATE "by_parse"').statusmessage == "DEALLOCATE"
    assert low.exec_prepared(b"by_parse", [b"1"]).error_field(_CODE) == b"26000"
    low.prepare(b"begin", b"BEGIN")
    assert low.exec_(b"EXECUTE begin").error_field(_CODE) == b"0A000"


@pytest.mark.parametrize(
    ("type_", "argument", "value"),
    [
        ("int", "-1", -1), ("int4", "2.5", 3), ("int", "-2.5", -3), ("bigint", "'9007199254740993'", 9007199254740993),
        ("smallint", "'3.5'::double precision", 4), ("smallint", "'2.5'::float8", 2), ("numeric(9,2)", "12", Decimal(12)),
        ("double precision", "1e3", 1000.0), ("real", "0.5", 0.5), ("boolean", "true", True), ("boolean", "'off'", False),
        ("text", "5", "5"), ("text", "true", "true"), ("varchar(10)", "'it''s'", "it's"), ("text", "1.50", "1.50"),
        ("text", "'2020-02-29'::date", "2020-02-29"), ("date", "'2020-02-29'", date(2020, 2, 29)),
        ("date", "DATE '2020-02-29'", date(2020, 2, 29)), ("date", "'2020-02-29 12:30'::timestamp", date(2020, 2, 29)),
        ("int", "CAST('7' AS bigint)", 7), ("int", "NULL", None), ("int", "NULL::text", None),
    ],
)  # fmt: skip
def test_arguments(connection: psycopg.Connection[Any], type_: str, argument: str, value: object) -> None:
    shown = type_.split("(")[0] if type_ != "numeric(9,2)" else type_
    connection.execute(f"PREPARE a({type_}) AS SELECT CAST($1 AS {shown}) AS v")
    assert connection.execute(f"EXECUTE a( {argument} )").fetchone() == (value,)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("EXECUTE nosuch", "26000"), ("EXECUTE n", "42601"), ("EXECUTE n(1, 2)", "42601"), ("EXECUTE n(1 + 1)", "0A000"),
        ("EXECUTE n(now())", "0A000"), ("EXECUTE n($1)", "0A000"), ("EXECUTE n('x')", "22P02"), ("EXECUTE n(1,)", "0A000"),
        ("EXECUTE n(99999999999)", "22003"), ("EXECUTE n(true)", "42804"), ("EXECUTE n('1'::text)", "42804"),
        ("EXECUTE n('1'::nosuch)", "42704"), ("PREPARE n AS SELECT 1", "42P05"), ("PREPARE AS SELECT 1", "42601"),
        ("PREPARE m AS INSERT INTO person VALUES (1)", "42501"), ("PREPARE m AS SELECT age FROM person", "42501"),
        ("PREPARE m(nosuch) AS SELECT 1", "42704"), ("PREPARE m AS EXECUTE n(1)", "42601"),
        ("PREPARE TRANSACTION 'x'", "0A000"), ("COPY (EXECUTE n(1)) TO STDOUT", "42601"),
        pytest.param(f"EXECUTE n({'9' * 5000})", "22003", id="long"), ("EXECUTE n(1e100000)", "22003"),
        ("EXPLAIN EXECUTE n(1)", "0A000"), ("EXPLAIN (FORMAT json) EXECUTE n(1)", "0A000"), ("DEALLOCATE m", "26000"),
    ],
)  # fmt: skip
def test_refusals(connection: psycopg.Connection[Any], sql: str, sqlstate: str) -> None:
    connection.execute("PREPARE n(int) AS SELECT i FROM number WHERE i = $1")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql.encode())
    assert caught.value.sqlstate == sqlstate
    assert caught.value.diag.message_hint


def test_statements_outlive_a_rollback_and_end_by_name_or_all(connection: psycopg.Connection[Any]) -> None:
    connection.execute("BEGIN")
    connection.execute("PREPARE p AS SELECT i FROM number WHERE i = 3; PREPARE q AS VALUES (1)")
    connection.execute("ROLLBACK")
    assert connection.execute("/* a */ EXECUTE p -- b").fetchone() == (3,)
    assert connection.execute("DEALLOCATE ALL").statusmessage == "DEALLOCATE ALL"
    for name in "pq":
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            connection.execute(f"EXECUTE {name}")

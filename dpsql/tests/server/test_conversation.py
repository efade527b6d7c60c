"""psql and psycopg 3 ask: answers, errors with their place, parameters, portals, and what each costs."""

from __future__ import annotations

import asyncio
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from ..pgwire.frontend import SYNC, bind, execute, parse
from .conftest import COUNT, Connect, Served, left, needs_psql
from .raw import exchange

THING = (1, 2, 9007199254740993, Decimal("12.50"), 1.5, 0.1, True, "ä 'quoted'", date(2020, 2, 29),
         datetime(2020, 2, 29, 12, 30, 0, 1))  # fmt: skip


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_every_type_in_both_formats(connection: psycopg.Connection[Any], binary: bool, prepare: bool) -> None:
    assert connection.execute("SELECT * FROM thing", binary=binary, prepare=prepare).fetchall() == [THING]


@pytest.mark.parametrize(
    ("operator", "value"),
    [("whole", 2), ("big", 9007199254740993), ("money", Decimal("12.5")), ("double", 0.1), ("flag", True),
     ("name", "ä 'quoted'"), ("day", date(2020, 2, 29)), ("moment", datetime(2020, 2, 29, 12, 30, 0, 1)),
     ("day", "2020-02-29")],
)  # fmt: skip
@pytest.mark.parametrize("placeholder", ["%t", "%b"])
def test_parameters(
    connection: psycopg.Connection[Any], operator: str, value: object, placeholder: str
) -> None:
    sql = f"SELECT COUNT(*) FROM thing WHERE {operator} = {placeholder}"
    assert connection.execute(sql, [value]).fetchone() == (1,)


def test_a_statement_is_charged_once_and_told(connection: psycopg.Connection[Any]) -> None:
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    sql = COUNT + " WHERE age > 11"
    first = connection.execute(sql).fetchall()
    assert connection.execute(sql).fetchall() == first
    connection.execute("SELECT COUNT(*) FROM number")
    assert [(line or "").split(";")[0] for line in told] == ["charged epsilon 0.1", "free: answered before"]


def test_describing_costs_nothing_and_executing_once(connection: psycopg.Connection[Any]) -> None:
    sql = (COUNT + " WHERE age > $1").encode()
    before, low = left(connection), connection.pgconn
    low.prepare(b"s", sql)
    described = low.describe_prepared(b"s")
    assert (described.fname(0), described.ftype(0), described.param_type(0)) == (b"n", 20, 23)
    assert left(connection) == before
    for _ in range(2):
        assert low.exec_prepared(b"s", [b"12"]).ntuples == 1
    assert Decimal(before) - Decimal(left(connection)) == Decimal("0.1")


@pytest.mark.parametrize(
    ("sql", "declared", "described", "value", "shown"),
    [
        (b"SELECT 1 + $1", 1700, 1700, b"0.5", b"1.5"),
        (b"SELECT 1 + $1", 20, 20, b"7", b"8"),
        (b"SELECT 1 + $1", 20, 20, b"9000000000", b"9000000001"),
        (b"SELECT $1 + $1", 21, 21, b"7", b"14"),
        (b"SELECT $1", 23, 23, None, None),
        (b"SELECT $1 + 1", 20, 20, None, None),
        (b"SELECT $1", 0, 25, b"text", b"text"),
        (b"SELECT name FROM thing WHERE name LIKE $1", 0, 25, b"%quoted%", "ä 'quoted'".encode()),
        (b"SELECT whole FROM thing LIMIT $1", 0, 23, b"1", b"2"),
    ],
)
def test_what_is_described_is_what_comes(
    connection: psycopg.Connection[Any],
    sql: bytes,
    declared: int,
    described: int,
    value: bytes | None,
    shown: bytes | None,
) -> None:
    low = connection.pgconn
    low.prepare(b"t", sql, [declared])
    assert low.describe_prepared(b"t").ftype(0) == described
    answered = low.exec_prepared(b"t", [value])
    assert (answered.ftype(0), answered.get_value(0, 0)) == (described, shown), answered.error_message


def test_a_pattern_that_is_null_matches_nothing_and_is_none_below_a_release(
    connection: psycopg.Connection[Any],
) -> None:
    low = connection.pgconn
    low.prepare(b"t", b"SELECT name FROM thing WHERE name LIKE $1")
    low.describe_prepared(b"t")
    assert low.exec_prepared(b"t", [None]).ntuples == 0
    assert low.exec_prepared(b"t", [b"%"]).ntuples == 1
    low.prepare(b"p", b"SELECT count(*) FROM person WHERE city LIKE $1")
    assert low.exec_prepared(b"p", [None]).error_field(psycopg.pq.DiagnosticField.CONSTRAINT_NAME) == b"PV202"


def test_a_pipeline_stops_at_an_error_and_goes_on(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline() as pipeline:
        first = connection.execute("SELECT 1")
        wrong = connection.execute("SELECT nosuch FROM person")
        skipped = connection.execute("SELECT 2")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            pipeline.sync()
        assert first.fetchone() == (1,)
        for cursor in (wrong, skipped):
            with pytest.raises(psycopg.Error):
                cursor.fetchone()
        assert connection.execute("SELECT 3").fetchone() == (3,)


def test_async_connections_at_once(server: Served) -> None:
    async def ask(number: int) -> int:
        async with await psycopg.AsyncConnection.connect(**server.address(), autocommit=True) as connection:
            rows = await (await connection.execute(COUNT + " WHERE age > 13")).fetchall()
            row = await (await connection.execute("SELECT %s + 0", [number])).fetchone()
            assert row == (number,)
            return int(rows[0][0])

    async def ask_all() -> list[int]:
        return await asyncio.gather(*map(ask, range(20)))

    assert len(set(asyncio.run(ask_all()))) == 1  # all of them have the one stored answer


def test_rows_come_in_parts(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT city, COUNT(*) FROM person WHERE age > 16 GROUP BY city UNION ALL SELECT 'x', 0"
    before = left(connection)
    messages = parse("", sql) + bind() + b"".join(execute(max_rows=2) for _ in range(3)) + SYNC
    replies = exchange(connection, messages)
    assert "".join(tag for tag, _ in replies) == "12DDNsDCCZ"
    assert Decimal(before) - Decimal(left(connection)) == Decimal("0.1")


def test_a_portal_ends_with_its_block(connection: psycopg.Connection[Any]) -> None:
    def tags(messages: bytes) -> str:
        return "".join(tag for tag, _ in exchange(connection, messages))

    ask = parse("", "SELECT 1") + bind("p") + execute("p", 1) + SYNC
    assert tags(ask) == "12DsZ"
    assert tags(execute("p") + SYNC) == "EZ"
    connection.execute("BEGIN")
    assert tags(ask) == "12DsZ"
    assert tags(execute("p") + SYNC) == "CZ"
    connection.execute("COMMIT")


def test_the_budget_ends(connect: Connect) -> None:
    poor = connect(user="poor")
    poor.execute(COUNT + " WHERE age > 14")
    with pytest.raises(psycopg.Error) as caught:
        poor.execute(COUNT + " WHERE age > 15")
    assert (caught.value.sqlstate, caught.value.diag.constraint_name) == ("53400", "53V01")
    assert isinstance(caught.value, psycopg.errors.ConfigurationLimitExceeded)
    assert left(poor) == "0.05"


def test_an_error_has_its_place(connection: psycopg.Connection[Any]) -> None:
    for parameters in (None, ()):
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("  SELECT age FROM person", parameters)
        told = caught.value.diag
        assert (told.sqlstate, told.statement_position, told.severity) == ("42501", "10", "ERROR")
        assert told.message_hint
    assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
        ("DECLARE c SCROLL CURSOR FOR SELECT 1", "25P01"),
        ("FETCH SIDEWAYS 1 FROM c", "42601"),
        ("FETCH 1 FROM c", "34000"),
        ("PREPARE p AS SHOW TimeZone", "42601"),
        ("COPY person FROM STDIN", "42501"),
        ("INSERT INTO person VALUES (1)", "42501"),
        ("BEGIN ISOLATION LEVEL CHAOS", "42601"),
        ("SELECT * FROM pg_catalog.pg_class, person", "0A000"),
        ("SELECT pg_sleep(10)", "0A000"),
        ("SELECT * FROM pg_read_file('x')", "0A000"),
        ("SET nosuch = 1", "42704"),
        ("SET client_encoding = 'LATIN1'", "22023"),
        ("SAVEPOINT a", "25P01"),
        ("DEALLOCATE nosuch", "26000"),
        ("SELECT 'open", "42601"),
        ("SELECT 1;" * 40_000, "54001"),
        ("BEGIN READ ONLY" + " " * 100_000 + "x", "54001"),
    ],
)
def test_a_refusal_has_its_code_and_a_hint(
    connection: psycopg.Connection[Any], sql: str, sqlstate: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == sqlstate
    assert caught.value.diag.message_hint


@pytest.mark.parametrize("binary", [False, True])
def test_a_named_cursor_is_charged_once(connection: psycopg.Connection[Any], binary: bool) -> None:
    sql = "SELECT city, COUNT(*) FROM person WHERE age > %s GROUP BY city UNION ALL SELECT 'x', 0"
    before = left(connection)
    with connection.transaction(), connection.cursor("c", binary=binary) as cursor:
        cursor.execute(sql, [30 + binary])
        assert [column.name for column in cursor.description or ()] == ["city", "count"]
        assert left(connection) == before
        assert len(cursor.fetchmany(2)) == 2
        assert len(cursor.fetchall()) == 1
        assert cursor.fetchone() is None
    assert Decimal(before) - Decimal(left(connection)) == Decimal("0.1")


def test_a_held_cursor_outlives_its_block(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute("SELECT i FROM number WHERE i < 5 ORDER BY i")
        connection.execute("MOVE 3 IN held")
        assert cursor.fetchall() == [(3,), (4,)]


def test_copy(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor() as cursor:
        with cursor.copy("COPY (SELECT i, name FROM number, thing WHERE i < 2 ORDER BY i) TO STDOUT") as copy:
            assert list(copy.rows()) == [("0", "ä 'quoted'"), ("1", "ä 'quoted'")]
        with cursor.copy("COPY (SELECT i FROM number WHERE i < 1) TO STDOUT (FORMAT csv, HEADER)") as copy:
            assert b"".join(map(bytes, copy)) == b"i\n0\n"
        with cursor.copy("COPY (SELECT i FROM number WHERE i = 7) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int8"])
            assert list(copy.rows()) == [(7,)]


def test_many_rows(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute("SELECT i FROM number ORDER BY i", binary=True).fetchall()
    assert rows == [(i,) for i in range(30000)]


@needs_psql
def test_psql(server: Served) -> None:
    shown = server.psql(
        "SELECT 1 AS a; SELECT 'x' AS b;\nSELECT age\nFROM person;\nEXPLAIN SELECT COUNT(*) FROM person;\n"
        "SELECT current_user, version();\n\\copy (SELECT 5) TO STDOUT\n",
        "-At",
    )
    assert shown.startswith("1\nx\n")
    assert "LINE 1: SELECT age\n               ^" in shown
    assert "sensitivity" in shown
    assert "alice|PostgreSQL 15.0 (dpsql)\n5\n" in shown


@needs_psql
def test_psql_draws_the_caret_in_the_second_statement(server: Served) -> None:
    shown = server.psql("", "-c", "SELECT 'ä'; SELECT nosuch FROM person")
    assert "LINE 1: SELECT 'ä'; SELECT nosuch FROM person\n                           ^" in shown


@pytest.mark.parametrize("binary", [False, True])
def test_medians_and_extremes(connection: psycopg.Connection[Any], binary: bool) -> None:
    sql = "SELECT MEDIAN(age), MIN(age), PERCENTILE_CONT(%s) WITHIN GROUP (ORDER BY age DESC) FROM person"
    cursor = connection.execute(sql, [Decimal("0.25")], binary=binary, prepare=True)
    assert [column.name for column in cursor.description or ()] == ["median", "min", "percentile_cont"]
    (row,) = cursor.fetchall()
    assert [type(value) for value in row] == [float, int, float]
    assert connection.execute(sql, [Decimal("0.25")], binary=binary).fetchall() == [row]


@pytest.mark.parametrize("binary", [False, True])
def test_several_percentiles_are_an_array(connection: psycopg.Connection[Any], binary: bool) -> None:
    """In text and binary, of doubles and integers, and in rows."""
    doubles = "SELECT PERCENTILE_CONT(ARRAY[0.75, 0.25, 0.5]) WITHIN GROUP (ORDER BY age) AS q FROM person"
    cursor = connection.execute(doubles, binary=binary)
    assert cursor.description is not None
    assert cursor.description[0].type_code == 1022
    ((found,),) = cursor.fetchall()
    assert [type(value) for value in found] == [float] * 3
    assert found[1] <= found[2] <= found[0]
    whole = connection.execute(doubles.replace("CONT", "DISC"), binary=binary)
    assert whole.description is not None
    assert whole.description[0].type_code == 1007
    assert whole.fetchall() == [([int(value) for value in found],)]  # the same draw
    rows = connection.execute(
        f"SELECT unnest(t.q) AS x, t.q[1] FROM ({doubles}) AS t", binary=binary
    ).fetchall()
    assert sorted(rows) == sorted((value, found[0]) for value in found)


@pytest.mark.parametrize(
    ("sql", "value"),
    [("SELECT sum(factorial(a)) FROM generate_series(1, 5) AS a", 153), ("SELECT cardinality(ARRAY[1, 2])", 2),
     ("SELECT array_position(ARRAY[4, 5], 5)", 2), ("SELECT array_length(ARRAY[1, 2], 1)", 2),
     ("SELECT array_to_string(ARRAY[1, 2], '-')", "1-2"), ("SELECT quote_literal('a''b')", "'a''b'"),
     ("SELECT count(*) FROM unnest(ARRAY[1, 2])", 2), ("SELECT jsonb_build_object('a', 1)", {"a": 1}),
     ("SELECT json_build_object('a', 1)", {"a": 1}),
     ("SELECT pg_catalog.upper('a') || CAST(1 AS pg_catalog.text) || '2'::pg_catalog.text", "A12"),
     ("SELECT abs('-7'::pg_catalog.int4) FROM pg_catalog.generate_series(1, 1)", 7)],
)  # fmt: skip
def test_a_function_that_the_catalog_has_too_is_ours_where_nothing_is_read(
    connection: psycopg.Connection[Any], sql: str, value: object
) -> None:
    assert connection.execute(sql.encode()).fetchone() == (value,)

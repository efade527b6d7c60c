"""psycopg 3: both protocols' ways, parameters, parts, pipelines, blocks, errors, cancel, notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from dpsql.engine.row_previews import _WITHOUT_ROWS

from ..conftest import Served, cancelling
from .conftest import ROWS, SLOW, THING, VALUES, needs_openssl

Spent = Callable[[], Decimal]
NULLS = (2, *[None] * 10)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_every_type(served: Served, binary: bool, prepare: bool) -> None:
    with served.connect() as connection:
        rows = connection.execute("SELECT * FROM thing ORDER BY id", binary=binary, prepare=prepare)
        assert rows.fetchall() == [THING, NULLS]


@pytest.mark.parametrize("placeholder", ["%s", "%t", "%b"])
def test_parameters_of_every_type(served: Served, placeholder: str) -> None:
    with served.connect() as connection:
        for name, value in VALUES.items():
            sql = f"SELECT id FROM thing WHERE {name} = {placeholder}"
            assert connection.execute(sql, [value]).fetchall() == [(1,)], name
            assert connection.execute(sql, [None]).fetchall() == []
        moment = datetime(2020, 2, 29, 12, 30, 0, 1, UTC)
        assert connection.execute(f"SELECT id FROM thing WHERE moment = {placeholder}", [moment]).fetchall()


@pytest.mark.parametrize("placeholder", ["%s", "%t", "%b"])
def test_units_and_intervals_are_parameters(served: Served, placeholder: str) -> None:
    with served.connect() as connection:
        year = f"SELECT date_trunc({placeholder}, day), count(*) FROM thing WHERE day IS NOT NULL GROUP BY 1"
        assert connection.execute(year, ["year"]).fetchall() == [(datetime(2020, 1, 1), 1)]  # type: ignore[arg-type]
        later = f"SELECT id FROM thing WHERE day = DATE '2020-02-28' + {placeholder}"
        assert connection.execute(later, [timedelta(days=1)]).fetchall() == [(1,)]  # type: ignore[arg-type]
        often = f"SELECT id FROM thing WHERE day = DATE '2020-01-30' + {placeholder} * interval '1 day'"
        assert connection.execute(often, [30]).fetchall() == [(1,)]  # type: ignore[arg-type]


def test_refcursor_is_one_drivers_text(served: Served) -> None:
    with served.connect() as connection:
        for oid, status in ((1790, "TUPLES_OK"), (2950, "FATAL_ERROR")):
            found = connection.pgconn.exec_params(b"SELECT id FROM thing WHERE name <> $1", [b"x"], [oid])
            assert psycopg.pq.ExecStatus(found.status).name == status


@pytest.mark.parametrize("text", ["2020-02-29T00:00:00.000+00:00", "2020-02-29 +00", "2020-02-29T00:00:00Z"])
def test_a_moment_as_drivers_write_it_into_an_undeclared_parameter(served: Served, text: str) -> None:
    with served.connect() as connection:
        assert connection.execute("SELECT id FROM thing WHERE day = %s", [text]).fetchall() == [(1,)]
        assert connection.execute("SELECT id FROM thing WHERE moment > %s", [text]).fetchall() == [(1,)]
        assert connection.execute("SELECT %s = 'x', %s", [text, text]).fetchall() == [(False, text)]


def test_a_server_side_cursor_in_parts(served: Served, spent: Spent) -> None:
    with served.connect() as connection, connection.transaction(), connection.cursor("c") as cursor:
        cursor.itersize = 3000
        cursor.execute("SELECT i FROM number ORDER BY i")
        assert sum(1 for _ in cursor) == ROWS
    assert spent() == 0


def test_a_pipeline(served: Served, spent: Spent) -> None:
    with served.connect(row_factory=dict_row) as connection:
        with connection.pipeline():
            cursors = [
                connection.execute("SELECT COUNT(*) AS n FROM person WHERE age > %s", [age % 2])
                for age in range(6)
            ]
            assert len({cursor.fetchall()[0]["n"] for cursor in cursors}) <= 2
        assert spent() == Decimal("0.2")

        def fail() -> None:
            with connection.pipeline():
                connection.execute("SELECT nosuch FROM person")
                connection.execute("SELECT 1")

        with pytest.raises(psycopg.errors.UndefinedColumn):
            fail()
        assert connection.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]


def test_many_at_once_from_one_thread(served: Served) -> None:
    async def ask(number: int) -> Any:
        async with await psycopg.AsyncConnection.connect(**served.address(), autocommit=True) as connection:
            rows = await connection.execute("SELECT COUNT(*), %s + 0 FROM person WHERE age > 20", [number])
            return await rows.fetchone()

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*map(ask, range(8)))

    found = asyncio.run(ask_all())
    assert [number for _, number in found] == list(range(8))
    assert len({count for count, _ in found}) == 1


def test_a_repeated_question_is_free_and_says_so(served: Served, spent: Spent) -> None:
    told: list[str] = []
    with served.connect() as connection:
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        sql = "SELECT city, COUNT(*), AVG(income) FROM person WHERE age > 21 GROUP BY city"
        first = connection.execute(sql).fetchall()
        assert spent() == Decimal("0.1")
        assert connection.execute(sql).fetchall() == first
        assert connection.execute(sql, prepare=True).fetchall() == first
        assert spent() == 0
    assert [line.split(";")[0] for line in told] == ["charged epsilon 0.1"] + ["free: answered before"] * 2


def test_describe_never_spends(served: Served, spent: Spent) -> None:
    with served.connect() as connection:
        low = connection.pgconn
        low.prepare(b"s", b"SELECT COUNT(*) FROM person WHERE age > $1 AND born < $2 AND city = $3")
        described = low.describe_prepared(b"s")
        assert [described.param_type(at) for at in range(3)] == [23, 1082, 25]
    assert spent() == 0


def test_blocks_and_savepoints(served: Served) -> None:
    with served.connect() as connection:
        connection.autocommit = False
        with connection.transaction():
            with pytest.raises(psycopg.errors.UndefinedColumn), connection.transaction():
                connection.execute("SELECT nosuch FROM person")
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT 1 FROM nosuch")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_an_error_has_code_place_and_hint(served: Served) -> None:
    with served.connect() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute("SELECT age FROM person WHERE id = %s", [1])
    told = caught.value.diag
    assert type(caught.value) is psycopg.errors.InsufficientPrivilege
    assert (told.sqlstate, told.constraint_name, told.statement_position) == ("42501", "PV002", "8")
    assert told.message_detail == "PV002: a private column stands outside an aggregate"
    assert told.message_hint


def test_cancel(served: Served) -> None:
    with served.connect() as connection:
        with cancelling(connection.cancel_safe), pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(SLOW)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_pool_resets_what_it_gets_back(served: Served) -> None:
    def reset(connection: psycopg.Connection[Any]) -> None:
        connection.execute("DISCARD ALL")

    with ConnectionPool(
        kwargs={**served.address(), "autocommit": True}, min_size=1, max_size=1, reset=reset
    ) as pool:
        with pool.connection() as connection:
            connection.execute("SET application_name = 'x'; SET dpsql.epsilon = 0.2")
        with pool.connection() as connection:
            assert connection.execute("SHOW application_name").fetchall() == [("",)]
            assert connection.execute("SHOW dpsql.epsilon").fetchall() == [("0.1",)]


def test_copy(served: Served) -> None:
    with served.connect() as connection, connection.cursor() as cursor:
        with cursor.copy("COPY thing TO STDOUT") as copy:
            assert len(list(copy.rows())) == 2
        with cursor.copy("COPY thing (name, id) TO STDOUT (FORMAT 'csv', HEADER 'true')") as copy:
            assert b"".join(map(bytes, copy)).startswith(b"name,id\n")
        for refused in (
            "COPY person (city) TO STDOUT",
            "COPY (SELECT * FROM person WHERE age > 5) TO STDOUT",
        ):
            with pytest.raises(psycopg.Error) as caught, cursor.copy(refused.encode()) as copy:
                list(copy.rows())
            assert caught.value.sqlstate == "42501"


def test_a_copy_of_people_is_its_header_and_why(served: Served) -> None:
    """As `SELECT * FROM person`, which `COPY person` is short for."""
    said: list[str] = []
    with served.connect() as connection, connection.cursor() as cursor:
        connection.add_notice_handler(lambda note: said.append(note.message_primary or ""))
        columns = [column.name for column in cursor.execute("SELECT * FROM person").description or ()]
        for sql in ("COPY person TO STDOUT", "COPY (TABLE person) TO STDOUT (FORMAT csv)"):
            with cursor.copy(sql.encode()) as copy:
                assert b"".join(map(bytes, copy)) == b""
        with cursor.copy("COPY person TO STDOUT (FORMAT csv, HEADER true)") as copy:
            assert b"".join(map(bytes, copy)).decode() == ",".join(columns) + "\n"
        with cursor.copy("COPY person TO STDOUT (FORMAT binary)") as copy:
            assert list(copy.rows()) == []
    assert said == [_WITHOUT_ROWS] * 5


@needs_openssl
def test_over_tls(served: Served) -> None:
    with served.connect(sslmode="require", channel_binding="require") as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchall() == [(1,)]

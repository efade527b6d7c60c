"""Random series of a connection's own statements, to dpsql and to a real Postgres 15: the same tags, rows, codes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import Installation, PostgresServer, find_servers

from .conftest import Served

_SERIES = tried(60, 300)
_ROWS = 6
_QUERY = "SELECT i FROM number WHERE i < %d ORDER BY i"
_SETTINGS = (
    "application_name = 'a b'", "application_name TO x", "statement_timeout = '90s'", "statement_timeout = 100000",
    "lock_timeout TO DEFAULT", "extra_float_digits = 0", "extra_float_digits = 4", "work_mem = '64MB'", "geqo = of",
    "nosuch = 1", "geqo = maybe", "my.own = 'v'", "my.own TO 7", "server_version = '1'", "DateStyle = 'ISO, DMY'",
    "application_name = a, b", "synchronous_commit = off", "row_security TO on", "idle_session_timeout = '1.5h'",
    "default_transaction_isolation = 'serializable'", "max_index_keys = 3", "TIME ZONE 'UTC'", "NAMES 'UTF8'",
    "client_min_messages = warning", "search_path = public, \"A b\"", "default_transaction_deferrable = on",
    "transaction_isolation = 'repeatable read'", "random_page_cost = 1.1", "xmloption = document",
)  # fmt: skip
_SHOWN = (
    "application_name", "statement_timeout", "lock_timeout", "extra_float_digits", "work_mem", "geqo", "a.b",
    "transaction_isolation", "default_transaction_isolation", "TRANSACTION ISOLATION LEVEL", "DateStyle",
    "synchronous_commit", "idle_session_timeout", "nosuch", "a.b.c", "TIME ZONE",
    "transaction_deferrable", "random_page_cost",
)  # fmt: skip
_LEVELS = ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED")


def _modes(draw: random.Random) -> str:
    return f"ISOLATION LEVEL {draw.choice(_LEVELS)}{draw.choice(('', ', NOT DEFERRABLE', ' DEFERRABLE'))}"


def _block(draw: random.Random) -> str:
    mark = draw.choice("st")
    chain = draw.choice(("", "", "", " AND CHAIN", " AND NO CHAIN"))
    return draw.choice(
        ["BEGIN", "BEGIN", "BEGIN", f"START TRANSACTION {_modes(draw)}", f"BEGIN {_modes(draw)}", f"COMMIT{chain}",
         f"ROLLBACK{chain}", f"END WORK{chain}", f"SAVEPOINT {mark}", f"SAVEPOINT {mark}", f"RELEASE {mark}",
         f"ROLLBACK TO {mark}", f"SET TRANSACTION {_modes(draw)}", "SET CONSTRAINTS ALL DEFERRED",
         f"SET SESSION CHARACTERISTICS AS TRANSACTION {_modes(draw)}"]
    )  # fmt: skip


def _setting(draw: random.Random) -> str:
    how = draw.choice(("SET", "SET SESSION", "SET LOCAL", "/* app */ SET", "SHOW", "SHOW", "SHOW", "RESET"))
    if how == "SHOW":
        return f"SHOW {draw.choice(_SHOWN)}"
    if how == "RESET":
        return draw.choice(
            ("RESET ALL", "RESET application_name", "RESET geqo", "RESET nosuch", "RESET work_mem")
        )
    return f"{how} {draw.choice(_SETTINGS)}"


def _cursor(draw: random.Random) -> str:
    name = draw.choice(("c", "c", "d", '"D d"'))
    scroll = draw.choice(("", "SCROLL", "NO SCROLL", "INSENSITIVE", "NO SCROLL SCROLL"))
    hold = draw.choice(("", "", "WITH HOLD", "WITHOUT HOLD"))
    if draw.random() < 0.3:
        query = draw.choice((_QUERY % draw.randrange(_ROWS), _QUERY % _ROWS, "SELECT nosuch FROM number"))
        return f"DECLARE {name} {scroll} CURSOR {hold} FOR {query}"
    if draw.random() < 0.1:
        return draw.choice(("CLOSE ALL", f"CLOSE {name}"))
    count = draw.randrange(-_ROWS - 2, _ROWS + 3)
    where = draw.choice(
        ["", "NEXT", "PRIOR", "FIRST", "LAST", f"ABSOLUTE {count}", f"RELATIVE {count}", str(count), "ALL", "FORWARD",
         f"FORWARD {count}", "FORWARD ALL", "BACKWARD", f"BACKWARD {count}", "BACKWARD ALL", "1", "2", "SIDEWAYS 1"]
    )  # fmt: skip
    return f"{draw.choice(('FETCH', 'FETCH', 'MOVE'))} {where} {draw.choice(('', 'FROM', 'IN')) if where else ''} {name}"


def _prepared(draw: random.Random) -> str:
    name = draw.choice("pq")
    value = draw.choice(("1", "'2'", "-1", "NULL", "2.5", "true", "'x'", "'3'::int", "99999999999", "1, 2", "'4'::text",
                         "CAST(2 AS bigint)", "1.5::numeric", "'2020-01-01'::date"))  # fmt: skip
    return draw.choice(
        [f"PREPARE {name}(int) AS SELECT i FROM number WHERE i = $1", f"PREPARE {name} (bigint) AS {_QUERY % 3}",
         f"PREPARE {name} AS {_QUERY % 4}", f"PREPARE {name} AS SELECT nosuch FROM number",
         f"PREPARE {name} AS SHOW geqo", f"PREPARE {name}(int) AS SELECT CAST($1 AS integer) AS n",
         f"PREPARE {name}(text, date) AS SELECT CAST($1 AS text) AS t", f"PREPARE {name}(nosuch) AS SELECT 1",
         f"EXECUTE {name}", f"EXECUTE {name}({value})", f"EXECUTE {name}({value})", f"EXECUTE {name} ({value})",
         f"DEALLOCATE {name}", f"DEALLOCATE PREPARE {name}", "DEALLOCATE ALL"]
    )  # fmt: skip


def _other(draw: random.Random) -> str:
    return draw.choice(
        [_QUERY % 2, "SELECT nosuch FROM number", "VALUES (1)", "DISCARD ALL", "DISCARD PLANS", "DISCARD TEMPORARY",
         "UNLISTEN *", "UNLISTEN a", "RESET ROLE", "SET ROLE NONE", "SET SESSION AUTHORIZATION DEFAULT", "-- only this",
         "-- first\n COMMIT /* then */ WORK -- last"]
    )  # fmt: skip


def _statement(draw: random.Random) -> str:
    return draw.choices((_block, _setting, _cursor, _prepared, _other), (4, 3, 7, 3, 1))[0](draw)


def _series(seed: int) -> list[tuple[list[str], bool]]:
    """Return statements that are sent at once, each time with whether they go as Parse, Bind, Execute."""
    draw = random.Random(seed)
    return [
        ([_statement(draw) for _ in range(draw.choice((1, 1, 1, 1, 2, 3)))], draw.random() < 0.3)
        for _ in range(25)
    ]


Reply = tuple[object, ...]


def _send(connection: psycopg.Connection[Any], texts: list[str], is_extended: bool) -> list[Reply]:
    """Return what a client sees: tag, code and rows of each result, warnings, and how the block stands."""
    low, told = connection.pgconn, list[Reply]()
    connection.add_notice_handler(handler := lambda notice: told.append((notice.severity, notice.sqlstate)))
    if is_extended:
        low.enter_pipeline_mode()
        for text in texts:
            low.send_query_params(text.encode(), None)
        low.pipeline_sync()
    else:
        low.send_query("; ".join(texts).replace("-- only this;", ";").encode())
    for result in _results(low, is_extended):
        code = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        names = [result.fname(column) for column in range(result.nfields)]
        rows = [
            tuple(result.get_value(row, column) for column in range(result.nfields))
            for row in range(result.ntuples)
        ]
        told.append((result.command_status, code, names, rows))
    if is_extended:
        low.exit_pipeline_mode()
    connection.remove_notice_handler(handler)
    if any(len(one) == 4 and one[1] is not None for one in told):
        told = [one for one in told if one[0] != "WARNING"]  # Postgres warns before it fails
    status = psycopg.pq.TransactionStatus(low.transaction_status).name
    return [*told, (status, low.parameter_status(b"application_name"))]


def _results(low: psycopg.pq.abc.PGconn, is_extended: bool) -> Iterator[psycopg.pq.abc.PGresult]:
    """Yield the results of all that was sent at once; in a pipeline, None ends each statement's."""
    while (result := low.get_result()) is not None or is_extended:
        if result is not None and result.status == psycopg.pq.ExecStatus.PIPELINE_SYNC:
            return
        if result is not None:
            yield result


@pytest.fixture(scope="module")
def oracle(start_postgres: Callable[[Installation], PostgresServer]) -> Iterator[str]:
    installation = next((found for found in find_servers() if found.major == 15), None)
    if installation is None:
        pytest.skip("Postgres 15 is not installed")
    server = start_postgres(installation)
    database = server.create_database()
    with server.admin(database) as connection:
        connection.execute("CREATE TABLE number AS SELECT i FROM generate_series(0::bigint, 100) AS r(i)")
    yield server.url(database)
    server.drop_database(database)


@pytest.mark.parametrize("part", range(4))
def test_the_same_as_postgres(server: Served, oracle: str, part: int) -> None:
    for seed in range(part, _SERIES, 4):
        with (
            server.connect() as ours,
            psycopg.connect(oracle, autocommit=True, options="-c TimeZone=UTC") as theirs,
        ):
            done = list[tuple[list[str], bool]]()
            for sent in _series(seed):
                done.append(sent)
                expected, found = (_send(one, *sent) for one in (theirs, ours))
                assert found == expected, (seed, done)

"""COPY's options: the bytes are those of Postgres, and what it refuses is refused, before anything is asked."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from ..support.postgres_server import PostgresServer
from .conftest import Served

QUERY = (
    "SELECT * FROM (VALUES (1, 'a;b', 'x\"y'), (2, NULL, ''), (3, 'NA', 'ä,''z'), (4, E'line\\nend', E'tab\\there')) "
    'AS v (n, "Some text", c) ORDER BY n'
)
ANSWERED = (
    "(FORMAT csv, DELIMITER ';', HEADER)", "(FORMAT csv, DELIMITER E'\\t', NULL 'NULL')", "(DELIMITER '|', NULL '-')",
    "(FORMAT csv, QUOTE '''', ESCAPE '\\')", "(FORMAT csv, QUOTE '~')", "(FORMAT csv, FORCE_QUOTE *)",
    "(FORMAT csv, FORCE_QUOTE (c, \"Some text\"), HEADER true)", "(FORMAT csv, ENCODING 'UTF8', HEADER off)",
    "WITH CSV HEADER DELIMITER ';'", "WITH DELIMITER AS ';' NULL AS ''", "CSV QUOTE '|' FORCE QUOTE n, c",
    "WITH (FORMAT text, HEADER)", "CSV FORCE QUOTE *", "CSV HEADER NULL 'a b (c)'",
    "(FORMAT csv, FORCE_QUOTE *, NULL '-')", "CSV FORCE QUOTE * NULL '-'", "(NULL E'\\\\N')", "(NULL E'it''s \\'-\\'')",
    "WITH DELIMITER AS E'\\t' NULL AS E'\\\\N'", "(FORMAT csv, DELIMITER E';')",
)  # fmt: skip
REFUSED = (
    "(FORMAT csv, DELIMITER ';;')", "(FORMAT csv, DELIMITER '\"')", "(DELIMITER 'a')", "(FORMAT binary, DELIMITER ';')",
    "(QUOTE '|')", "(FORMAT csv, NULL 'a,b')", "(FORMAT csv, FORCE_QUOTE (nosuch))", "(FORMAT csv, FORMAT text)",
    "(FORCE_QUOTE (n))", "(FORMAT csv, DELIMITER ';' HEADER)", "CSV CSV", "(FORMAT csv, QUOTE '')",
    "(FORMAT csv, FORCE_QUOTE *, nosuch)",
)  # fmt: skip


def copied(connection: psycopg.Connection[Any], options: str) -> bytes | str:
    """Return what is sent, or the code of the refusal."""
    try:
        with connection.cursor().copy(f"COPY ({QUERY}) TO STDOUT {options}".encode()) as copy:
            return b"".join(map(bytes, copy))
    except psycopg.Error as error:
        return error.sqlstate or ""


def test_lines_are_those_of_postgres(server: Served, postgres: PostgresServer) -> None:
    theirs = psycopg.connect(postgres.url("postgres"), autocommit=True)
    with server.connect() as ours, theirs:
        for options in ANSWERED:
            found = copied(ours, options)
            assert isinstance(found, bytes), (options, found)
            assert found == copied(theirs, options), options
        for options in REFUSED:
            wanted, found = copied(theirs, options), copied(ours, options)
            assert isinstance(wanted, str), options
            assert isinstance(found, str), (options, found)


@pytest.mark.parametrize(
    "options", ["(FORMAT csv, FORCE_QUOTE (nosuch))", "(DELIMITER '')", "(FREEZE)", "(ENCODING 'LATIN1')"]
)
def test_nothing_is_charged_for_a_copy_that_is_refused(server: Served, options: str) -> None:
    with server.connect() as connection:
        connection.execute("SET dpsql.reuse = off")
        before = connection.execute("SHOW dpsql.budget").fetchone()
        copy = f"COPY (SELECT COUNT(*) AS n FROM person) TO STDOUT {options}".encode()
        with pytest.raises(psycopg.Error) as error, connection.cursor().copy(copy):
            pass
        assert error.value.diag.message_hint
        assert connection.execute("SHOW dpsql.budget").fetchone() == before

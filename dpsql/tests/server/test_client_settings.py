"""SET, SHOW, RESET, and a block's modes: what clients send at connect, and what lasts how long."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.engine.settings import OWN
from dpsql.errors import Refusal
from dpsql.policy import parse_policy
from dpsql.server.report import Fault
from dpsql.server.state import KNOWN, ClientSettings
from dpsql.server.statements import cut, read_statement
from dpsql.sql.text import _read
from dpsql.system_catalog import Reads

from .conftest import POLICY, Connect

PEOPLE = parse_policy(POLICY, Path("people.toml"))

AT_CONNECT = {
    "jdbc": "SET extra_float_digits = 3; SET application_name = 'PostgreSQL JDBC Driver'",
    "dbeaver": "SET extra_float_digits = 3; SET application_name = 'DBeaver 24.1 – Main <örg>'; SHOW search_path",
    "npgsql": "DISCARD ALL",
    "odbc": "SET DateStyle = 'ISO'; SET extra_float_digits = 2; SHOW TRANSACTION ISOLATION LEVEL; SET names 'UTF8'",
    "rails": "SET client_min_messages TO 'warning'; SET standard_conforming_strings = on; SET intervalstyle = postgres; "
             "SET SESSION timezone TO 'UTC'; SHOW max_identifier_length",
    "django": "SET TIME ZONE 'UTC'; SELECT 1",
    "sqlalchemy": "SHOW standard_conforming_strings; SHOW transaction isolation level",
    "asyncpg": "CLOSE ALL; UNLISTEN *; RESET ALL",
    "pg_dump": "SET DATESTYLE = ISO; SET INTERVALSTYLE = POSTGRES; SET extra_float_digits TO 3; SET synchronize_seqscans "
               "TO off; SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; "
               "SET row_security = off; SET quote_all_identifiers = off",
    "psql": "SET client_min_messages = error; SET xmloption = content; SET check_function_bodies = false; "
            "SET default_tablespace = ''; SET default_table_access_method = heap; SELECT 1",
    "hasura": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL \"hasura.user\" = '{\"x-role\":\"u\"}'; COMMIT",
    "postgrest": "START TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL search_path = public; COMMIT",
    "r": "SET datestyle to 'iso, mdy'; SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "pgbouncer": "SET client_encoding='UTF8';SET datestyle='ISO, MDY';SET timezone='Etc/UTC';"
                 "SET standard_conforming_strings='on';SET application_name='app - 10.0.0.1:5000'",
    "metabase": "SET SESSION TIMEZONE TO 'UTC'; SET statement_timeout = '30s'; SET idle_session_timeout TO '10min'",
    "tableau": "SET DateStyle TO 'ISO'; SET bytea_output = 'hex'; SET geqo = on; SET jit = off; SET work_mem = '64MB'",
    "comments": "/* ApplicationName=IDEA */ SET synchronous_commit = off; -- c\n BEGIN; /* a /* b */ c */ COMMIT -- d",
}  # fmt: skip
"""What clients send, gathered from their documentation and recordings."""


@pytest.mark.parametrize("client", AT_CONNECT)
def test_what_clients_send_at_connect_is_taken(connection: psycopg.Connection[Any], client: str) -> None:
    connection.execute(AT_CONNECT[client].encode())


@pytest.mark.parametrize("name", [*KNOWN, "session_authorization", "role"])
def test_every_setting_is_shown_and_takes_its_own_value(name: str) -> None:
    settings = ClientSettings.of("alice", PEOPLE, {})
    shown, value = settings.show(name)
    known = KNOWN.get(name)
    if known is None or known.fixed is not None or name == "search_path":
        return
    assert settings.set(name, (value,)).show(name) == (shown, value)
    assert settings.reset(name).show(name) == (shown, value)


@pytest.mark.parametrize(
    ("zone", "sqlstate"),
    [("'Europe/Berlin'", "01000"), ("'America/Argentina/Buenos_Aires'", "01000"), ("'<+03>-03'", "01000"), ("-5", "01000"),
     ("'UTC0'", None), ("'GMT'", None), ("'Etc/UTC'", None), ("LOCAL", None), ("DEFAULT", None), ("'+00:00'", None),
     ("INTERVAL '+00:00' HOUR TO MINUTE", None)],
)  # fmt: skip
def test_another_zone_is_warned_of(
    connection: psycopg.Connection[Any], zone: str, sqlstate: str | None
) -> None:
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.sqlstate))
    connection.execute(f"SET TIME ZONE {zone}")
    assert told == ([sqlstate] if sqlstate else [])
    assert connection.execute("SHOW TimeZone").fetchone() == ("UTC",)


def test_a_client_that_wants_to_write_is_warned(connection: psycopg.Connection[Any]) -> None:
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.sqlstate))
    connection.execute("SET default_transaction_read_only = off")
    assert told == ["01000"]
    assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)


@pytest.mark.parametrize(
    ("written", "shown"),
    [("statement_timeout = '90s'", "90s"), ("statement_timeout = 1500", "1500ms"), ("statement_timeout = '1.5h'", "90min"),
     ("application_name = 'ä b'", "?? b"), ("application_name = \"Q\"", "Q"), ("application_name TO Plain", "plain"),
     ("work_mem TO '1GB'", "1GB"), ("geqo = of", "off"), ("DateStyle = 'ISO, DMY'", "ISO, DMY"), ("a.b = 'C'", "C"),
     ("extra_float_digits = '-15'", "-15"), ("search_path = \"$user\", 'A b', x", '"$user", "A b", x')],
)  # fmt: skip
def test_values_are_shown_as_in_postgres(
    connection: psycopg.Connection[Any], written: str, shown: str
) -> None:
    name = written.split()[0]
    connection.execute(f"SET {written}".encode())
    assert connection.execute(f"SHOW {name}".encode()).fetchone() == (shown,)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SET statement_timeout = -1", "22023"), ("SET statement_timeout = '1 fortnight'", "22023"),
        ("SET search_path = other", "22023"), ("SET bytea_output = escape", "22023"), ("SET geqo = 1, 2", "22023"),
        ("SET standard_conforming_strings = off", "22023"), ("SET DateStyle = German", "22023"),
        ("SET TimeZone = ';'", "22023"), ("SET server_version = 16", "55P02"), ("RESET is_superuser", "55P02"),
        ("SET session_replication_role = replica", "42501"), ("SET dpsql.budget = 3", "22023"), ("SET a.b", "42601"),
        ("SET dpsql.nosuch = 3", "42704"), ("SET dpsql.max_rows = 3", "22023"), ("SET dpsql.max_rows = 0", "22023"),
        ("SET dpsql.accuracy = 0", "22023"), ("SET dpsql.accuracy = 'NaN'", "22023"), ("SET dpsql.accuracy = -1", "22023"),
        ("SHOW a.b", "42704"), ("SET ROLE postgres", "42501"),
        ("SET SESSION AUTHORIZATION 'bob'", "42501"), ("LISTEN a", "0A000"), ("NOTIFY a, 'b'", "0A000"),
        ("LOCK TABLE person", "0A000"), ("DO 'x'", "0A000"), ("CALL p()", "0A000"), ("VACUUM", "42501"),
        ("ANALYZE person", "42501"), ("CHECKPOINT", "42501"), ("CREATE TABLE person (i int)", "42P07"),
        ("SET TRANSACTION SNAPSHOT 'x'", "0A000"), ("COMMIT PREPARED 'x'", "0A000"), ("COMMIT AND CHAIN", "25P01"),
    ],
)  # fmt: skip
def test_refusals(connection: psycopg.Connection[Any], sql: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql.encode())
    assert caught.value.sqlstate == sqlstate
    assert caught.value.diag.message_hint


def test_an_accuracy_is_set_shown_and_charged(connection: psycopg.Connection[Any]) -> None:
    notices: list[str | None] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.execute("SET dpsql.accuracy = '50'")
    assert connection.execute("SHOW dpsql.accuracy").fetchone() == ("50",)
    connection.execute("SELECT COUNT(*) FROM person")
    assert any("charged epsilon 0.0594" in (notice or "") for notice in notices)
    connection.execute("SET dpsql.accuracy = '2 %'")
    with pytest.raises(psycopg.Error, match="no count of them is stored") as caught:
        connection.execute("SELECT COUNT(*) FROM person WHERE age > 3")
    assert caught.value.sqlstate == "22023"
    connection.execute("RESET dpsql.accuracy")
    assert connection.execute("SHOW dpsql.accuracy").fetchone() == ("off",)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "SELECT nosuch FROM number; ROLLBACK"])
def test_what_is_local_ends_with_its_block(connection: psycopg.Connection[Any], end: str) -> None:
    def shown() -> list[object]:
        names = ("dpsql.epsilon", "dpsql.reuse", "lock_timeout", "application_name")
        return [connection.execute(f"SHOW {name}".encode()).fetchone()[0] for name in names]  # type: ignore[index]

    connection.execute("SET dpsql.epsilon = 0.2; SET lock_timeout = '1s'")
    connection.execute("BEGIN; SET LOCAL dpsql.epsilon = 0.5; SET LOCAL lock_timeout = '2s'")
    connection.execute("SET LOCAL dpsql.reuse = off; SET application_name = 'lasting'")
    assert shown() == ["0.5", "off", "2s", "lasting"]
    for statement in end.split("; "):
        try:
            connection.execute(statement.encode())
        except psycopg.errors.UndefinedColumn:
            continue
    assert shown() == ["0.2", "on", "1s", "lasting" if end == "COMMIT" else ""]


def test_an_error_undoes_what_was_set_since_the_savepoint(connection: psycopg.Connection[Any]) -> None:
    connection.execute("BEGIN; SET application_name = 'a'; SAVEPOINT s; SET application_name = 'b'")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT nosuch FROM number")
    assert connection.info.parameter_status("application_name") == "a"
    connection.execute("ROLLBACK")
    assert connection.info.parameter_status("application_name") == ""


def test_set_after_set_local_lasts(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "BEGIN; SET LOCAL dpsql.epsilon = 0.5; SET dpsql.epsilon = 0.3; SET LOCAL dpsql.reuse = off; COMMIT"
    )
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.3",)
    assert connection.execute("SHOW dpsql.reuse").fetchone() == ("on",)


def test_set_local_outside_a_block_is_warned_of_and_does_nothing(connection: psycopg.Connection[Any]) -> None:
    told: list[str | None] = []
    connection.add_notice_handler(lambda notice: told.append(notice.sqlstate))
    for setting in ("dpsql.epsilon = 0.5", "application_name = 'x'"):
        connection.execute(f"SET LOCAL {setting}".encode())
    assert told == ["25P01", "25P01"]
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.1",)
    assert connection.execute("SHOW application_name").fetchone() == ("",)


def test_reset_goes_back_to_what_was_asked_at_connect(connect: Connect) -> None:
    connection = connect(options="-c dpsql.epsilon=0.3 -c statement_timeout=5s")
    connection.execute(
        "SET dpsql.epsilon = 0.2; SET statement_timeout = 0; RESET dpsql.epsilon; RESET statement_timeout"
    )
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.3",)
    assert connection.execute("SHOW statement_timeout").fetchone() == ("5s",)


def test_statements_sent_at_once_are_undone_at_once(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SET application_name = 'x'; SET dpsql.epsilon = 0.5; SELECT nosuch FROM number")
    assert connection.info.parameter_status("application_name") == ""
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.1",)
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.execute("SET application_name = 'x'; COMMIT; SET y")
    assert connection.info.parameter_status("application_name") == ""


@pytest.mark.parametrize("level", psycopg.IsolationLevel)
def test_every_level_is_what_was_asked(
    connection: psycopg.Connection[Any], level: psycopg.IsolationLevel
) -> None:
    connection.autocommit = False
    connection.isolation_level = level
    connection.read_only = True
    connection.deferrable = True
    shown = connection.execute("SHOW transaction_isolation").fetchone()
    assert shown == (level.name.lower().replace("_", " "),)
    connection.commit()


def test_the_default_schema_is_in_the_path() -> None:
    settings = ClientSettings.of("alice", PEOPLE, {}, schema="desk", written="main")
    assert settings.show("search_path") == ("search_path", "desk")
    for values in (("other", "main"), ("public",), ("$user", "x")):
        assert settings.set("search_path", values)
    with pytest.raises(Fault):
        settings.set("search_path", ("other",))
    assert ClientSettings.of("alice", PEOPLE, {"search_path": '"$user", main'}, schema="main").show(
        "search_path"
    )[1]


def test_the_settings_of_a_client_are_capped() -> None:
    settings = ClientSettings.of("alice", PEOPLE, {f"a.b{number}": "x" for number in range(200)})
    assert settings.set("a.b7", ("y",)).show("a.b7") == ("a.b7", "y")
    with pytest.raises(Fault, match="settings of the client's own") as caught:
        settings.set("a.b200", ("x",))
    assert caught.value.sqlstate == "53400"


def read(text: str) -> None:
    for piece in cut(text):
        read_statement(piece, lambda query: Reads.OTHER)


_PIECES = st.sampled_from(
    [
        "SET ",
        "x",
        "=",
        "'a'",
        "'",
        "''",
        '"',
        "--",
        "\n",
        "/*",
        "*/",
        "$$",
        "$a$",
        "E'",
        "\\'",
        ";",
        " ",
        "ä",
        "1",
    ]
)


@given(st.lists(_PIECES, max_size=20).map("".join))
def test_comments_are_blanked_in_place(text: str) -> None:
    blanked = _read(text)[0]
    assert len(blanked) == len(text)
    assert all(after in (before, " ") for before, after in zip(text, blanked, strict=True))


@given(st.lists(_PIECES | st.sampled_from(["FETCH ", "ALL ", "EXECUTE ", "p", "(", ")", ",", "DECLARE ", "CURSOR FOR ",
                                          "PREPARE ", " AS ", "SELECT 1", "BEGIN ", "::int", "NULL"]), max_size=12).map("".join))  # fmt: skip
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Fault):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN " + "READ ONLY " * 900 + "x",
        "FETCH " + " " * 9000 + "x x x x",
        "PREPARE p" + " " * 60_000 + "x",
        "DECLARE c " + "SCROLL " * 20_000 + "x",
        "EXECUTE p(" + "1," * 4000 + "1)",
        "SET a" + ".a" * 4000 + " x",
        "COPY " + "(" * 30_000,
        "/*" * 30_000,
        "$$" * 30_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_long_text_is_read_without_going_back_and_forth(text: str) -> None:
    """A form that backtracks would take hours here, and hold up every other connection."""
    with suppress(Fault):
        read(text)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("0", None), ("1", 0.1), ("100ms", 0.1), ("101", 0.2), ("300ms", 0.4), ("1min", 102.4)],
)
def test_a_timeout_is_a_moment_of_the_grid(asked: str, seconds: float | None) -> None:
    settings = ClientSettings.of("ann", PEOPLE, {}).set("statement_timeout", (asked,))
    assert settings.timeout == seconds


def test_dpsqls_own_are_kept_as_any_other() -> None:
    settings = ClientSettings.of(
        "alice", PEOPLE, {"dpsql.epsilon": "0.2", **{f"a.b{n}": "x" for n in range(199)}}
    )
    local = (
        settings.in_block().set("dpsql.intervals", ("0.9",)).set("dpsql.epsilon", ("0.05",), is_local=True)
    )
    assert (local.own.epsilon, local.own.intervals) == (Fraction("0.05"), Fraction("0.9"))
    assert local.reset("dpsql.epsilon", is_local=True).own.epsilon == Fraction("0.2")
    assert local.reset("dpsql.intervals").own.intervals is None
    assert local.after_block().own.epsilon == local.reset_all().own.epsilon == Fraction("0.2")
    assert local.set("a.c", ("x",)), "they are none of the client's own, of which there are 199"
    assert not {name for name, _ in local.show_all()} & set(OWN)
    for name, sqlstate in (("dpsql.epsilon", "PV301"), ("dpsql.other", "42704"), ("dpsql.budget", "22023")):
        with pytest.raises(Refusal) as caught:
            settings.set(name, ("much",))
        assert caught.value.sqlstate == sqlstate
    for name in ("dpsql.other", "dpsql.budget"):
        with pytest.raises(Refusal, match="does not exist"):
            settings.reset(name)

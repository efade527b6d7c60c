"""What is Postgres' own about a snapshot; `test_snapshot` has what holds on every engine."""

from __future__ import annotations

import datetime
import decimal
import math
import threading
from typing import Any

import psycopg
import pytest

from dpsql.backends import PostgresBackend, postgres_backend
from dpsql.errors import EngineFailure
from dpsql.tests.support.postgres_server import PostgresServer

from .conftest import CAMPUS, OURS, SECRET, rows

# --- values --------------------------------------------------------------------------------------------


def test_numbers_without_decimals_are_ints(reading: PostgresBackend) -> None:
    (row,) = rows(
        reading,
        "SELECT 10::numeric ^ 0, 1::numeric, -7::numeric, (10::numeric(60,0) * 10::numeric(60,0)),"
        f" {10**50}::numeric, 0::numeric, 2.0::numeric, 'NaN'::numeric, -{10**50}.5,"
        " (SELECT SUM(i * 9000000000000000000) FROM generate_series(1::bigint, 1) AS s(i))",
    )
    found = [value for value in row[1:] if value == value]
    assert found == [1, -7, 100, 10**50, 0, 2, decimal.Decimal(f"-{10**50}.5"), 9 * 10**18]
    kinds = [type(value).__name__ for value in row[1:]]
    assert kinds == ["int", "int", "int", "int", "int", "Decimal", "Decimal", "Decimal", "int"]


def test_numeric_infinity_comes_as_it_is(reading: PostgresBackend) -> None:
    ((up, down),) = rows(reading, "SELECT 'Infinity'::numeric, '-Infinity'::numeric")
    assert (up, down) == (math.inf, -math.inf)


def test_numbers_of_any_size_can_be_sent(reading: PostgresBackend) -> None:
    numbers = (10**60, -(2**63), decimal.Decimal("1e-30"), decimal.Decimal("1E+5"), decimal.Decimal("0.10"))
    kinds = ", ".join(f"CAST(${i} AS numeric)" for i in range(1, 6))
    assert rows(reading, f"SELECT {kinds}", *numbers) == [numbers]
    assert rows(reading, "SELECT CAST($1 AS numeric[])", list(numbers)) == [(list(numbers),)]
    doubles = [0.1 + 0.2, 1e22, 5e-324, -0.0, math.inf]
    assert rows(reading, "SELECT CAST($1 AS double precision[])", doubles) == [(doubles,)]


def test_a_text_that_postgres_has_not_equals_nothing(reading: PostgresBackend) -> None:
    assert rows(reading, "SELECT CAST($1 AS text), CAST($2 AS text[])", "a\0b", ["\0", "x", "\ud800"]) == [
        (None, [None, "x", None])
    ]


def test_a_parameter_of_another_type_is_not_guessed(reading: PostgresBackend) -> None:
    with pytest.raises(EngineFailure) as caught:
        rows(reading, "SELECT CAST($1 AS text)", b"bytes")
    assert caught.value.detail == "refused: a parameter of the type bytes"


def test_dates_at_the_edges(reading: PostgresBackend) -> None:
    (row,) = rows(
        reading,
        "SELECT DATE '0001-01-01', DATE '9999-12-31', DATE '10000-01-01', DATE '0001-12-31 BC', DATE '4713-01-01 BC',"
        " DATE '5874897-12-31', DATE '-infinity', TIMESTAMP '9999-12-31 23:59:59.999999',"
        " TIMESTAMP '10000-01-01', TIMESTAMP 'infinity', TIMESTAMPTZ '2020-02-29 01:00+02'",
    )
    assert row == (
        datetime.date(1, 1, 1),
        datetime.date(9999, 12, 31),
        "10000-01-01",
        "0000-12-31",
        "-4712-01-01",
        "5874897-12-31",
        "-infinity",
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "10000-01-01 00:00:00.000000",
        "infinity",
        datetime.datetime(2020, 2, 28, 23),
    )


def test_arrays_hold_no_date_that_microseconds_cannot_count(reading: PostgresBackend) -> None:
    with reading.snapshot() as snapshot:
        ((days, no_day), (moments, no_moment)) = snapshot.columns(
            "SELECT d, t FROM (VALUES (DATE '290000-01-01', TIMESTAMP '290000-01-01'),"
            " (DATE '5874897-12-31', TIMESTAMP 'infinity'), (DATE '4713-01-01 BC', TIMESTAMP '0044-03-15 BC'),"
            " (DATE '-infinity', NULL)) AS v(d, t)"
        )
    assert no_day is not None
    assert no_moment is not None
    assert list(no_day) == [False, True, False, True]
    assert list(no_moment) == [False, True, False, True]
    assert [str(days[i])[:11] for i in (0, 2)] == ["290000-01-0", "-4712-01-01"]
    assert [str(moments[i])[:11] for i in (0, 2)] == ["290000-01-0", "-043-03-15T"]


# --- settings and the transaction ------------------------------------------------------------------------

SETTINGS = {
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "extra_float_digits": "1",
    "row_security": "off",
    "transform_null_equals": "off",
    "bytea_output": "hex",
    "transaction_read_only": "on",
    "transaction_isolation": "repeatable read",
    "statement_timeout": "10min",
    "lock_timeout": "10s",
    "plan_cache_mode": "force_custom_plan",
}


@pytest.mark.parametrize("handed_in", [False, True])
def test_the_settings_that_hold(
    postgres: PostgresServer, database: str, owner: psycopg.Connection[Any], handed_in: bool
) -> None:
    """Whatever the role, the database or the URL sets: a wrong one of these changes what a statement means."""
    for setting in (
        "search_path = clinic, public",
        "\"TimeZone\" = 'Asia/Tokyo'",
        "\"DateStyle\" = 'German'",
        "standard_conforming_strings = off",
        "transform_null_equals = on",
        "extra_float_digits = -5",
        "statement_timeout = 0",
    ):
        owner.execute(f"ALTER ROLE reader IN DATABASE {database} SET {setting}")
    url = postgres.url(database, "reader")
    with psycopg.connect(url) as connection:
        backend = PostgresBackend.over(connection, CAMPUS) if handed_in else PostgresBackend(url, CAMPUS)
        for _ in range(2):
            with backend.snapshot() as snapshot:
                shown = ", ".join(f"pg_catalog.current_setting('{name}')" for name in SETTINGS)
                ((found,),) = snapshot.run(f"SELECT {shown}")
            assert dict(zip(SETTINGS, found, strict=True)) == SETTINGS
        assert connection.execute("SHOW search_path").fetchone() == ("clinic, public",)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        assert not connection.autocommit
    assert backend.close_idle() is not handed_in


WRITES = [
    "INSERT INTO public.student VALUES (3, 'x')",
    "CREATE TABLE public.t (x integer)",
    "SELECT pg_catalog.nextval('public.numbers')",
    "SELECT * INTO public.t FROM public.student",
    "SELECT * FROM public.student FOR UPDATE",
    "WITH x AS (DELETE FROM public.student RETURNING *) SELECT * FROM x",
    "SET TRANSACTION READ WRITE",
    "SET LOCAL transaction_read_only = off",
]


@pytest.mark.parametrize("sql", WRITES)
def test_a_superusers_connection_is_not_written_either(
    postgres: PostgresServer, database: str, owner: psycopg.Connection[Any], sql: str
) -> None:
    """The second wall: the transaction, under a role that may do anything and without the look at the first word."""
    owner.execute("CREATE SEQUENCE numbers")
    with postgres.admin(database) as connection:
        backend = PostgresBackend.over(connection, CAMPUS)
        with pytest.raises(EngineFailure):
            rows(backend, sql)
        with backend.snapshot() as snapshot:
            assert list(snapshot.run("SELECT 1")) == [[(1,)]]
            with pytest.raises(psycopg.Error):
                connection.execute(sql)
    assert owner.execute("SELECT * FROM student ORDER BY id").fetchall() == [(1, SECRET), (2, "Ada")]


def test_a_snapshot_is_of_one_moment(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    with backend.snapshot() as snapshot:
        before = snapshot.schema()
        owner.execute("INSERT INTO student VALUES (3, 'Bob')")
        assert list(snapshot.run("SELECT COUNT(*) FROM public.student")) == [[(2,)]]
        owner.execute("DELETE FROM student WHERE id = 1")
        assert list(snapshot.run("SELECT COUNT(*) FROM public.student")) == [[(2,)]]
        assert snapshot.schema() == before
    assert rows(backend, "SELECT COUNT(*) FROM public.student") == [(2,)]


def test_a_declared_table_cannot_change_under_a_snapshot(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    owner.execute("SET lock_timeout = '50ms'")
    with backend.snapshot():
        for change in ("student DROP CONSTRAINT student_pkey CASCADE", "clinic.visit ADD COLUMN x integer"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                owner.execute(f"ALTER TABLE {change}")
        owner.execute("ALTER TABLE undeclared ADD COLUMN y integer")
        owner.execute("INSERT INTO loan VALUES (1)")
    owner.execute("ALTER TABLE clinic.visit ADD COLUMN x integer")


def test_a_changed_schema_is_seen_by_the_next_snapshot(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    with backend.snapshot() as snapshot:
        before = snapshot.schema()
    owner.execute("INSERT INTO student VALUES (3, 'Bob')")
    owner.execute("ALTER TABLE undeclared ADD COLUMN y integer")
    owner.execute("ANALYZE student")
    owner.execute("VACUUM student")
    with backend.snapshot() as snapshot:
        assert snapshot.schema() is before
    changes = (
        "ALTER TABLE loan DROP CONSTRAINT loan_student_id_fkey",
        "ALTER TABLE student DROP CONSTRAINT student_pkey",
        "ALTER TABLE student ADD PRIMARY KEY (name)",
        "ALTER TABLE student ADD CHECK (id < 100)",
        "ALTER TABLE student ALTER id DROP NOT NULL",
        "ALTER TABLE loan ALTER student_id TYPE bigint",
        "CREATE TABLE child () INHERITS (loan)",
        "ALTER TABLE loan RENAME student_id TO s",
        "ALTER TABLE clinic.visit ENABLE ROW LEVEL SECURITY",
        "DROP TABLE student; CREATE TABLE student (id integer); GRANT SELECT ON student TO reader",
        "REVOKE SELECT ON student FROM reader",
        "ALTER SCHEMA clinic RENAME TO ward",
    )
    for change in changes:
        owner.execute(change)
        with backend.snapshot() as snapshot:
            assert snapshot.schema() != before, change
            before = snapshot.schema()


def test_a_table_that_appears_is_seen(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    owner.execute("DROP TABLE clinic.visit")
    for _ in range(2):
        with backend.snapshot() as snapshot:
            assert snapshot.schema().table(("clinic", "visit")) is None
    owner.execute("CREATE TABLE clinic.visit (id bigint); GRANT SELECT ON clinic.visit TO reader")
    with backend.snapshot() as snapshot:
        assert snapshot.schema().table(("clinic", "visit")) is not None


def test_the_right_to_a_partitioned_table_is_enough_to_lock_and_read_it(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    owner.execute("DROP TABLE loan")
    owner.execute("CREATE TABLE loan (student_id integer) PARTITION BY LIST (student_id)")
    owner.execute("CREATE TABLE loan_1 PARTITION OF loan FOR VALUES IN (1)")
    owner.execute("INSERT INTO loan VALUES (1); GRANT SELECT ON loan TO reader; SET lock_timeout = '50ms'")
    assert rows(backend, "SELECT COUNT(*) FROM public.loan") == [(1,)]
    with backend.snapshot(), pytest.raises(psycopg.errors.LockNotAvailable):
        owner.execute("ALTER TABLE loan DETACH PARTITION loan_1")


def test_looking_at_the_schema_again_is_cheap(
    reading: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading.snapshot() as snapshot:
        seen = snapshot.schema()

    def never(*_: object) -> None:
        raise AssertionError("nothing has changed")

    for name in ("find_tables", "read_catalog"):
        monkeypatch.setattr(postgres_backend, name, never)
    with reading.snapshot() as snapshot:
        assert snapshot.schema() == seen


def test_wide_results_are_read_in_parallel(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    """A cursor of the server's would keep the plan to one process."""
    owner.execute("INSERT INTO undeclared SELECT i FROM generate_series(1, 400000) AS s(i)")
    owner.execute("ALTER TABLE undeclared SET (parallel_workers = 2)")
    owner.execute("GRANT SELECT ON undeclared TO reader; ANALYZE undeclared")
    owner.execute(
        "ALTER ROLE reader SET parallel_setup_cost = 0; ALTER ROLE reader SET parallel_tuple_cost = 0"
    )
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            found = owner.execute(f"SELECT backend_type {OURS}")
            seen.update(kind for (kind,) in found)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with backend.snapshot() as snapshot:
            sql = (
                "SELECT x, pg_catalog.md5(x::text) FROM public.undeclared WHERE pg_catalog.md5(x::text) > '8'"
            )
            for _ in range(100):  # until the watcher has looked in time
                assert sum(len(chunk) for chunk in snapshot.run(sql)) > 150_000
                if "parallel worker" in seen:
                    break
    finally:
        done.set()
        watcher.join()
        owner.execute("ALTER ROLE reader RESET ALL")
    assert "parallel worker" in seen

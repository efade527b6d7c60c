"""What may go wrong between us and a Postgres: each is a failure without a word of the engine's."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from dpsql.backends import PostgresBackend, open_backend
from dpsql.errors import EngineFailure, PolicyError
from dpsql.tests.support.postgres_server import ADMINISTRATOR, PostgresServer

from .conftest import CAMPUS, CAMPUS_SQL, OURS, SECRET, rows


def eventually(holds: Callable[[], bool], seconds: float = 300) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


# --- faults ------------------------------------------------------------------------------------------------

SLEEP = "SELECT pg_catalog.pg_sleep(60)"


def running(owner: psycopg.Connection[Any]) -> list[int]:
    found = owner.execute(f"SELECT pid {OURS} AND query LIKE '%pg_sleep(60)%' AND state = 'active'")
    return [pid for (pid,) in found]


def test_a_killed_backend_is_a_failure_and_the_next_statement_has_another(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    def kill() -> None:
        assert eventually(lambda: bool(running(owner)))
        owner.execute("SELECT pg_terminate_backend(%s)", [running(owner)[0]])

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(EngineFailure) as caught:
        rows(backend, SLEEP)
    killer.join()
    assert caught.value.sqlstate == "58V01"
    assert caught.value.detail == "run: AdminShutdown 57P01"
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_connection_that_died_while_idle_is_replaced(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    assert rows(backend, "SELECT 1") == [(1,)]
    owner.execute(f"SELECT pg_terminate_backend(pid, 60000) {OURS}")
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_server_that_restarts(start_own: PostgresServer) -> None:
    name = start_own.create_database()
    with start_own.admin(name) as connection:
        connection.execute(CAMPUS_SQL)
    backend = PostgresBackend(start_own.create_reader(name), CAMPUS)
    with backend.snapshot() as snapshot:
        assert list(snapshot.run("SELECT 1")) == [[(1,)]]
        start_own.kill()
        with pytest.raises(EngineFailure) as caught:
            list(snapshot.run("SELECT 1"))
    assert caught.value.detail.startswith("run: ")
    assert backend.close_idle()
    with pytest.raises(EngineFailure) as caught, backend.snapshot():
        pass
    assert caught.value.detail == "open: no server listens where the URL says"
    start_own.start()
    backend = PostgresBackend(start_own.url(name, "reader"), CAMPUS)
    assert rows(backend, "SELECT COUNT(*) FROM public.student") == [(2,)]
    assert backend.close_idle()


@pytest.fixture
def start_own(postgres: PostgresServer) -> Iterator[PostgresServer]:
    with PostgresServer(postgres.installation) as server:
        yield server


def test_the_owners_cancel_is_a_failure_and_no_cancel_of_ours(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    def cancel() -> None:
        assert eventually(lambda: bool(running(owner)))
        owner.execute("SELECT pg_cancel_backend(%s)", [running(owner)[0]])

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(EngineFailure) as caught:
        rows(backend, SLEEP)
    canceller.join()
    assert (caught.value.sqlstate, caught.value.detail) == ("58V01", "run: QueryCanceled 57014")


def test_a_cancelled_statement_ends_on_the_server_too(
    backend: PostgresBackend, owner: psycopg.Connection[Any]
) -> None:
    def cancel() -> None:
        assert eventually(lambda: bool(running(owner)))
        backend.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(EngineFailure) as caught:
        rows(backend, SLEEP)
    canceller.join()
    assert caught.value.sqlstate == "57014"
    assert running(owner) == []


def test_cancel_while_it_waits_for_a_lock(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    assert rows(backend, "SELECT 1") == [(1,)]

    def is_waiting() -> bool:
        found = owner.execute(f"SELECT 1 {OURS} AND wait_event_type = 'Lock'")
        return found.fetchone() is not None

    with owner.transaction():
        owner.execute("LOCK TABLE student IN ACCESS EXCLUSIVE MODE")
        canceller = threading.Thread(target=lambda: eventually(is_waiting) and backend.cancel())
        canceller.start()
        with pytest.raises(EngineFailure) as caught, backend.snapshot():
            pass
        canceller.join()
    assert caught.value.sqlstate == "57014"
    assert rows(backend, "SELECT 1") == [(1,)]


@pytest.mark.long
def test_a_lock_that_is_never_given(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    with owner.transaction():
        owner.execute("LOCK TABLE student IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(EngineFailure) as caught, backend.snapshot():
            pass
    assert (caught.value.sqlstate, caught.value.detail) == ("58V01", "begin: LockNotAvailable 55P03")
    assert rows(backend, "SELECT 1") == [(1,)]


def test_a_statement_that_takes_too_long(
    postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_limits(), "statement_timeout", "3s")
    backend = PostgresBackend(postgres.url(database, "reader"), CAMPUS)
    with pytest.raises(EngineFailure) as caught:
        rows(backend, SLEEP)
    assert (caught.value.sqlstate, caught.value.detail) == ("58V01", "run: QueryCanceled 57014")
    assert backend.close_idle()


def _limits() -> dict[str, str]:
    from dpsql.backends import postgres_connection

    return postgres_connection._LIMITS


def test_a_full_disk_is_a_failure(
    postgres: PostgresServer, database: str, owner: psycopg.Connection[Any]
) -> None:
    """Postgres raises the same class of error where its own limit on temporary files is reached."""
    owner.execute("ALTER ROLE reader SET temp_file_limit = '64kB'")
    owner.execute("ALTER ROLE reader SET work_mem = '64kB'")
    backend = PostgresBackend(postgres.url(database, "reader"), CAMPUS)
    with pytest.raises(EngineFailure) as caught:
        rows(backend, "SELECT i FROM generate_series(1, 1000000) AS s(i) ORDER BY pg_catalog.md5(i::text)")
    owner.execute("ALTER ROLE reader RESET ALL")
    assert (caught.value.sqlstate, caught.value.detail) == ("58V01", "run: ConfigurationLimitExceeded 53400")
    assert backend.close_idle()


ERRORS = {
    "SELECT CAST(name AS integer) FROM public.student": "InvalidTextRepresentation 22P02",
    "SELECT 1 / (id - 1) FROM public.student": "DivisionByZero 22012",
    "SELECT CAST(1e400 AS double precision)": "NumericValueOutOfRange 22003",
    "SELECT pg_catalog.query_to_xml('select name::int from public.student', true, true, '')": "22P02",
    "SELECT name::date FROM public.student": "22007",
}


@pytest.mark.parametrize("sql", ERRORS)
def test_no_traceback_holds_a_value(reading: PostgresBackend, sql: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        rows(reading, sql)
    failure = caught.value
    assert failure.__context__ is None
    assert failure.__cause__ is None
    assert failure.detail.startswith("run: ")
    assert failure.detail.endswith(ERRORS[sql])
    everything = "".join(traceback.format_exception(failure)) + failure.detail + repr(failure) + str(failure)
    assert SECRET not in everything


# --- connecting ----------------------------------------------------------------------------------------------


def test_why_a_database_cannot_be_opened(postgres: PostgresServer, database: str, owner: Any) -> None:
    owner.execute("DROP ROLE IF EXISTS knocking; CREATE ROLE knocking LOGIN PASSWORD 'right'")
    here = f"127.0.0.1:{postgres.port}"
    reasons = {
        postgres.url(
            "nowhere", ADMINISTRATOR
        ): "open: the database does not exist, or the role may not connect to it",
        postgres.url(database, "nobody_here"): "open: the role does not exist, or may not log in",
        f"postgresql://knocking@{here}/{database}": (
            "open: the server asks for a password, or refuses the one it got; set PGPASSWORD or a passfile"
        ),
        f"postgresql://knocking@127.0.0.1:1/{database}": "open: no server listens where the URL says",
        "postgresql://knocking@/x?host=/nowhere": "open: no server listens where the URL says",
    }
    for url, reason in reasons.items():
        with pytest.raises(EngineFailure) as caught, open_backend(url).snapshot():
            pass
        assert caught.value.detail == reason
        assert caught.value.sqlstate == "58V01"


def test_the_password_comes_from_outside_the_policy(
    postgres: PostgresServer, database: str, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.execute("DROP ROLE IF EXISTS knocking; CREATE ROLE knocking LOGIN PASSWORD 'right'")
    monkeypatch.setenv("PGPASSWORD", "right")
    backend = open_backend(f"postgresql://knocking@127.0.0.1:{postgres.port}/{database}", ())
    with backend.snapshot() as snapshot:
        assert list(snapshot.run("SELECT CURRENT_USER::text")) == [[("knocking",)]]
    assert backend.close_idle()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://alice:secret@host/x", "database: holds a password; take it out"),
        ("postgresql://alice@host/x?password=secret", "database: holds a password; take it out"),
        ("postgresql://alice@host/x?sslpassword=secret", "database: holds a sslpassword; take it out"),
        (
            "postgresql://alice@host/x?nonsense=1",
            "database: is not a URL of Postgres; write postgresql://user@host/database",
        ),
    ],
)
def test_what_is_no_url_for_a_policy(url: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        open_backend(url)
    assert caught.value.message == message
    assert "secret" not in str(caught.value)


def test_another_encoding_is_refused(postgres: PostgresServer) -> None:
    with postgres.admin() as connection:
        connection.execute("DROP DATABASE IF EXISTS latin")
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(PolicyError) as caught, PostgresBackend(postgres.url("latin")).snapshot():
        pass
    assert caught.value.message == "database: has the encoding LATIN1; move it to one with ENCODING 'UTF8'"


def test_the_driver_logs_nothing(
    backend: PostgresBackend, owner: psycopg.Connection[Any], capfd: pytest.CaptureFixture[str], caplog: Any
) -> None:
    """Its pool would warn of each connection that is closed, and say what the server said."""
    assert rows(backend, "SELECT 1") == [(1,)]
    with backend.snapshot() as snapshot:
        snapshot.cancel()
    owner.execute(f"SELECT pg_terminate_backend(pid, 60000) {OURS}")
    assert rows(backend, "SELECT 1") == [(1,)]
    assert (capfd.readouterr(), caplog.text) == (("", ""), "")


# --- a connection that is handed in ----------------------------------------------------------------------


def test_a_connection_in_a_transaction_is_left_alone(postgres: PostgresServer, database: str) -> None:
    with psycopg.connect(postgres.url(database)) as connection:
        connection.execute("INSERT INTO student VALUES (3, 'Bob')")
        backend = PostgresBackend.over(connection, CAMPUS)
        with pytest.raises(EngineFailure) as caught, backend.snapshot():
            pass
        assert caught.value.detail == "busy: the connection is closed, or inside a transaction of its owner"
        assert connection.execute("SELECT COUNT(*) FROM student").fetchone() == (3,)


def test_a_handed_in_connection_serves_one_statement_at_a_time_and_outlives_it(
    postgres: PostgresServer, database: str
) -> None:
    with postgres.admin(database) as connection:
        backend = PostgresBackend.over(connection, CAMPUS)
        found: list[object] = []
        threads = [
            threading.Thread(
                target=lambda: found.extend(rows(backend, "SELECT COUNT(*) FROM public.student"))
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [(2,)] * 4
        with backend.snapshot() as snapshot:
            timer = threading.Timer(0.2, snapshot.cancel)
            timer.start()
            with pytest.raises(EngineFailure) as caught:
                list(snapshot.run(SLEEP))
            timer.join()
        assert caught.value.sqlstate == "57014"
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert not backend.close_idle()


def test_a_closed_connection_is_not_taken(postgres: PostgresServer, database: str) -> None:
    connection = postgres.admin(database)
    connection.close()
    with pytest.raises(PolicyError, match="is closed; open it before handing it in"):
        PostgresBackend.over(connection)


def test_no_connection_is_left_behind(backend: PostgresBackend, owner: psycopg.Connection[Any]) -> None:
    def connected() -> int:
        found = owner.execute(f"SELECT COUNT(*) {OURS}").fetchone()
        return 0 if found is None else int(found[0])

    for _ in range(3):
        assert rows(backend, "SELECT 1") == [(1,)]
    assert connected() == 1
    with pytest.raises(EngineFailure):
        rows(backend, "SELECT 1 / 0")
    assert connected() <= 1
    assert backend.close_idle()
    assert eventually(lambda: connected() == 0)

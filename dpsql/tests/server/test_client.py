"""Who gets in and how, blocks and settings, cancelling, leaving, limits and the end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ..pgwire.frontend import cancel
from .conftest import (
    CHARGED,
    COUNT,
    PASSWORD,
    SLOW,
    TUNED,
    Connect,
    Served,
    cancelling,
    left,
    length_of_log,
    make_dataset,
    needs_openssl,
    run_server,
    wait_for_a_charge,
)

IDLE, IN_BLOCK, FAILED = (
    psycopg.pq.TransactionStatus.IDLE,
    psycopg.pq.TransactionStatus.INTRANS,
    psycopg.pq.TransactionStatus.INERROR,
)


def refusal(server: Served, **options: Any) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        server.connect(**options)
    return re.sub(r"^.*?(FATAL.*)$", r"\1", str(caught.value), flags=re.DOTALL)


def test_those_who_may_not_connect_learn_nothing(server: Served) -> None:
    told = {
        refusal(server, password="wrong"),
        refusal(server, user="nobody"),
        refusal(server, user="nameless"),
        refusal(server, dbname="other", password="wrong"),
    }
    assert len(told) == 1
    assert "login failed" in told.pop()


def test_the_dataset_is_a_database_too(connect: Connect, policy: Path) -> None:
    by_id = connect(dbname="person@duckdb:people.duckdb")
    assert by_id.execute("SELECT current_database(), current_user").fetchone() == (
        "person@duckdb:people.duckdb", "alice",
    )  # fmt: skip


def test_blocks(connection: psycopg.Connection[Any]) -> None:
    status = lambda: connection.info.transaction_status  # noqa: E731
    connection.execute("BEGIN")
    connection.execute("SET application_name = 'a'")
    connection.execute("SAVEPOINT s")
    connection.execute("SET application_name = 'b'")
    connection.execute("SET dpsql.epsilon = 0.2")
    assert status() == IN_BLOCK
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT nosuch FROM person")
    assert status() == FAILED
    for parameters in (None, []):
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1", parameters)
    connection.execute("ROLLBACK TO SAVEPOINT s")
    assert status() == IN_BLOCK
    assert connection.execute("SHOW application_name").fetchone() == ("a",)
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.1",)
    connection.execute("ROLLBACK")
    assert status() == IDLE
    assert connection.execute("SHOW application_name").fetchone() == ("",)


def test_what_a_block_has_charged_stays_spent(connection: psycopg.Connection[Any]) -> None:
    before = left(connection)
    with connection.transaction(force_rollback=True):
        connection.execute(COUNT + " WHERE age > 21")
    assert float(before) - float(left(connection)) == pytest.approx(0.1)


def test_settings(connect: Connect) -> None:
    connection = connect(application_name="first", options="-c dpsql.epsilon=0.3")
    assert connection.info.parameter_status("application_name") == "first"
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.3",)
    connection.execute("SET application_name TO 'second'; SET dpsql.epsilon = 0.2")
    assert connection.info.parameter_status("application_name") == "second"
    for name in ("server_version", "server_encoding", "client_encoding", "TimeZone", "DateStyle"):
        row = connection.execute(f"SHOW {name}").fetchone()
        assert row == (connection.info.parameter_status(name),)
    connection.execute("DISCARD ALL")
    assert connection.execute("SHOW application_name").fetchone() == ("first",)
    assert connection.execute("SHOW dpsql.epsilon").fetchone() == ("0.3",)


def test_a_bad_setting_at_connect_is_told(server: Served) -> None:
    assert 'setting "nosuch" does not exist' in refusal(server, options="-c nosuch=1")


def test_cancel(connection: psycopg.Connection[Any]) -> None:
    with cancelling(connection.cancel_safe), pytest.raises(psycopg.errors.QueryCanceled) as stopped:
        connection.execute(SLOW)
    assert stopped.value.diag.message_detail == "nothing was charged"
    assert connection.execute("SELECT 1").fetchone() == (1,)


STORED = "epsilon 0.1 was charged, and the release is stored: asking again is free"
LOST = "epsilon 0.1 stays spent, and nothing was stored for it"


def test_what_a_cancel_has_cost_is_told(policy: Path, connection: psycopg.Connection[Any]) -> None:
    """Charged and stored; cancelled while it is post-processed."""
    log = length_of_log(policy.parent)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(connection.execute, CHARGED.replace("person", "person WHERE age < 7"))
        wait_for_a_charge(policy.parent, log)
        with cancelling(connection.cancel_safe):
            error = running.exception(timeout=300)
    assert isinstance(error, psycopg.errors.QueryCanceled)
    assert error.diag.message_detail in (LOST, STORED)


def test_post_processing_has_the_time_that_is_set(connection: psycopg.Connection[Any]) -> None:
    """Its release is stored beforehand. Where the machine is slow, it may be stopped before it is post-processed."""
    sql = CHARGED.replace("person", "person WHERE age < 8")
    connection.execute(f"{COUNT} WHERE age < 8")
    connection.execute("SET statement_timeout = '1s'")
    with pytest.raises(psycopg.OperationalError) as late:
        connection.execute(sql)
    assert late.value.sqlstate == "57014"
    assert (late.value.diag.message_detail or "").endswith("nothing was charged")
    assert late.value.diag.message_hint
    assert re.fullmatch(
        "post-processing took more than .* seconds|the statement took more than .* seconds, its statement_timeout",
        late.value.diag.message_primary or "",
    )
    connection.execute("RESET statement_timeout")


def test_a_limit_says_whose_it_is(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '1s'")
    with pytest.raises(psycopg.errors.QueryCanceled) as late:
        connection.execute(SLOW)
    told = late.value.diag.message_primary or ""
    assert told.startswith("the statement took more than ")
    assert told.endswith((" seconds, its statement_timeout", " seconds, its time limit"))
    connection.execute("RESET statement_timeout")


def test_a_cancel_before_the_reply_is_due_stores_nothing_and_gives_nothing_back(
    connection: psycopg.Connection[Any],
) -> None:
    """What is told of the charge is what the budget shows; where the cancel comes is not in our hands."""
    told = set()
    for age in range(40, 50):
        before = float(left(connection))
        with cancelling(connection.cancel_safe):
            try:
                connection.execute(f"{COUNT} WHERE age > {age}")
                first, again = 0.1, 0.0
            except psycopg.errors.QueryCanceled as error:
                detail = error.diag.message_detail
                told.add(detail)
                first = 0.0 if detail == "nothing was charged" else 0.1
                again = 0.0 if detail == STORED else 0.1
                assert detail in ("nothing was charged", LOST, STORED)
        assert before - float(left(connection)) == pytest.approx(first)
        connection.execute(f"{COUNT} WHERE age > {age}")
        assert before - float(left(connection)) == pytest.approx(first + again)
    assert told


def test_cancel_with_another_key_does_nothing(server: Served, connection: psycopg.Connection[Any]) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as other:
        stopper = threading.Timer(0.03, other.sendall, [cancel(connection.info.backend_pid, b"abcd")])
        stopper.start()
        assert connection.execute(COUNT + " WHERE age > 22").fetchone()
        stopper.join()


def test_statement_timeout(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(SLOW)
    connection.execute("RESET statement_timeout")
    assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_the_owners_limit_applies_beside_the_clients(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.write_text(policy.read_text() + "\n[server]\nstatement_timeout = 1\n")
    with run_server(policy) as served, served.connect() as connection:
        for asked in ("0", "1h"):
            connection.execute(f"SET statement_timeout = '{asked}'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(SLOW)


def test_a_client_that_leaves_stops_its_statement(server: Served) -> None:
    code = (
        "import os, sys, threading, psycopg; "
        "connection = psycopg.connect(**eval(sys.argv[1])); "
        "threading.Timer(0.5, os._exit, [9]).start(); connection.execute(sys.argv[2])"
    )
    address = server.address(application_name="leaver")
    before = sum(line["event"] == "disconnected" for line in server.lines)
    subprocess.run([sys.executable, "-c", code, repr(address), SLOW], check=False)
    server.wait_for("disconnected", before + 1)


def test_replies_come_on_the_grid(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT 1")
    start = time.monotonic()
    connection.execute(COUNT + " WHERE age > 23")
    assert time.monotonic() - start >= 0.099
    refused = time.monotonic()
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT SUM(nosuch) FROM person")
    assert time.monotonic() - refused >= 0.099


NO_GRID_ENDS = (
    "import pathlib, sys\nimport dpsql.server.worker as worker\nusual = worker.release_time\n"
    "def release_time(start, now):\n"
    "    return start + 10**6 if pathlib.Path(sys.argv[1] + '.late').exists() else usual(start, now)\n"
    "worker.release_time = release_time\n" + TUNED
)


def test_what_is_stored_or_public_waits_for_no_grid(tmp_path: Path) -> None:
    """On a grid whose next moment is days away."""
    policy = make_dataset(tmp_path)
    with run_server(policy, code=NO_GRID_ENDS) as server, server.connect() as connection:
        answer = connection.execute(COUNT).fetchall()
        policy.with_name(policy.name + ".late").touch()
        assert connection.execute(COUNT).fetchall() == answer
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_what_is_drawn_is_found_by_nobody_before_its_time(connect: Connect) -> None:
    one, other = connect(), connect()
    sql = COUNT + " WHERE age > 77"
    for connection in (one, other):
        connection.execute("SELECT 1")
    start = time.monotonic()
    thread = threading.Thread(target=one.execute, args=(sql,))
    thread.start()
    time.sleep(0.03)
    answer = other.execute(sql).fetchall()
    assert time.monotonic() - start >= 0.099
    thread.join()
    assert one.execute(sql).fetchall() == answer


def test_the_server_stops_in_order(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy, "--grace", "1") as server:
        idle, busy = server.connect(), server.connect()
        failure: list[Exception] = []

        def ask() -> None:
            try:
                busy.execute(SLOW)
            except psycopg.Error as error:
                failure.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        with pytest.raises(psycopg.OperationalError, match="shutting down"):
            idle.execute("SELECT 1")
        assert server.process.wait(300) == 0
        thread.join()
        assert failure
        idle.close()
        busy.close()


def test_the_log_holds_no_statement(server: Served, connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET dpsql.unlisted = on")
    connection.execute(COUNT + " WHERE age > 24 AND city = 'a secret'")
    server.wait_for("answered")
    assert not [line for line in server.lines if "secret" in str(line) or "SELECT" in str(line)]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-newkey", "rsa:2048",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def own_address() -> str:
    """Return an address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other address")
        return str(probe.getsockname()[0])


@needs_openssl
def test_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    policy = make_dataset(tmp_path)
    options = ["--host", "0.0.0.0", "--certificate", str(certificate), "--key", str(key)]
    with run_server(policy, *options) as server:
        verified = {"host": "localhost", "sslmode": "verify-full", "sslrootcert": str(certificate)}
        with server.connect(**verified, channel_binding="require") as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
            with cancelling(connection.cancel_safe), pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(SLOW)
        assert "login failed" in refusal(server, sslmode="require", password="wrong")
        other = own_address()
        assert "must be encrypted" in refusal(server, host=other)
        with server.connect(host=other, sslmode="require") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_garbage_is_hung_up_on(server: Served) -> None:
    for data in (b"\x16\x03\x01" + bytes(40), b"GET / HTTP/1.1\r\n\r\n", bytes(8)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=300) as other:
            other.sendall(data)
            other.shutdown(socket.SHUT_WR)
            try:
                while other.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    with server.connect(password=PASSWORD) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)

"""libpq (in psycopg), psql and pgbench against the protocol package over loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.pgwire import (
    Bind,
    Execute,
    Parse,
    Query,
    StartupMessage,
    Verifier,
    make_verifier,
    tls_server_end_point,
)
from dpsql.tests.support.length import long_where

from .samples import PASSWORD, ROW, ROWS, make_script
from .scripted_server import KEY, Script, serve


@pytest.fixture
def script() -> Script:
    return make_script(make_verifier(PASSWORD))


@pytest.fixture(params=[65536, 1], ids=["whole", "byte by byte"])
def port(script: Script, request: pytest.FixtureRequest) -> Iterator[int]:
    with serve(script, chunk=request.param) as port:
        yield port


def _connect(port: int, **options: Any) -> psycopg.Connection[Any]:
    defaults = {"host": "127.0.0.1", "port": port, "user": "ada", "password": PASSWORD, "dbname": "campus"}
    return psycopg.connect(**{"sslmode": "disable", **defaults, **options}, autocommit=True)


def test_select_1(port: int, script: Script) -> None:
    with _connect(port) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert connection.info.parameter_status("server_version") == "15.0"
    startup = next(event for event in script.seen if isinstance(event, StartupMessage))
    assert (startup.user, startup.database) == ("ada", "campus")


@pytest.mark.parametrize("binary", [False, True])
def test_every_type(port: int, binary: bool) -> None:
    with _connect(port) as connection:
        rows = connection.execute("SELECT everything", binary=binary, prepare=True).fetchall()
    assert rows == [ROW, ROW]


@pytest.mark.parametrize("placeholder", ["%t", "%b"])
def test_parameters(port: int, placeholder: str) -> None:
    values = (10**12, "ä", Decimal("1.50"), date(2024, 1, 1), 0.1)
    with _connect(port) as connection:
        sql = ", ".join([placeholder] * 5)
        assert connection.execute(f"SELECT {sql}", values).fetchone() == values
        assert connection.execute(f"SELECT {sql}", (None,) * 5).fetchone() == (None,) * 5


def test_errors_carry_all_fields_and_the_connection_goes_on(port: int) -> None:
    with _connect(port) as connection:
        for parameters in (None, ()):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("SELECT trouble", parameters)
            told = caught.value.diag
            assert (told.sqlstate, told.severity, told.severity_nonlocalized) == ("PV002", "ERROR", "ERROR")
            assert (told.message_primary, told.message_detail, told.message_hint, told.statement_position) == (
                "no", "because", "write that", "8",
            )  # fmt: skip
        notices: list[str | None] = []
        connection.add_notice_handler(lambda told: notices.append(told.message_hint))
        connection.execute("SET x")
        assert notices == ["0.9 left"]
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_pipeline_stops_at_an_error_and_goes_on_after_sync(port: int, script: Script) -> None:
    def aborted() -> None:
        with connection.pipeline():
            for sql in ("SELECT 1", "SELECT trouble", "SELECT everything"):
                connection.execute(sql)

    with _connect(port) as connection:
        with pytest.raises(psycopg.Error, match="no"):
            aborted()
        with connection.pipeline():
            again = connection.execute("SELECT ten")
            assert len(again.fetchall()) == 10
    parsed = [event.sql for event in script.seen if isinstance(event, Parse)]
    assert parsed == ["SELECT 1", "SELECT trouble", "SELECT ten"]


def test_rows_one_by_one_and_in_chunks(port: int) -> None:
    with _connect(port) as connection:
        assert [row[0] for row in connection.cursor().stream("SELECT ten")] == list(range(10))
        assert [row[0] for row in connection.cursor().stream("SELECT ten", size=3)] == list(range(10))


def test_copy_out(port: int) -> None:
    with _connect(port) as connection:
        with connection.cursor().copy("COPY t") as copy:
            assert list(copy.rows()) == [(str(n), t) for n, t in ROWS.rows]
        with connection.cursor().copy("COPY b") as copy:
            copy.set_types(["int4", "text"])
            assert list(copy.rows()) == list(ROWS.rows)
        with connection.cursor().copy("COPY c") as copy:
            assert b"".join(bytes(piece) for piece in copy).splitlines()[:2] == [b"n,t", b"0,t0"]


@pytest.mark.parametrize("version", ["3.0", "3.2"])
def test_versions_and_cancel_keys(port: int, script: Script, version: str) -> None:
    with _connect(port, max_protocol_version=version, min_protocol_version=version) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.cancel_safe()
    assert [request.key for request in script.cancelled] == [KEY if version == "3.2" else KEY[:4]]
    assert script.cancelled[0].process_id == 4711


def test_a_newer_version_is_negotiated_down(port: int, script: Script) -> None:
    with _connect(port, max_protocol_version="latest") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("user", ["ada", "nobody"])
def test_wrong_password_and_unknown_user_are_one(port: int, script: Script, user: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"FATAL:  password authentication failed$"):
        _connect(port, user=user, password="wrong")


def _certificate(folder: Path, *options: str) -> tuple[ssl.SSLContext, bytes | None]:
    key, pem = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", *options]
    subprocess.run([*command, "-keyout", key, "-out", pem], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    return context, tls_server_end_point(ssl.PEM_cert_to_DER_cert(pem.read_text()))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
@long_where(lambda options: options[-1] in ("-sha384", "-sha1"))  # as the next longer digest
@pytest.mark.parametrize(
    "options",
    [
        ("-newkey", "rsa:2048", "-sha256"),
        ("-newkey", "rsa:2048", "-sha384"),
        ("-newkey", "rsa:2048", "-sha512"),
        ("-newkey", "rsa:2048", "-sha1"),
        ("-newkey", "rsa:2048", "-sha384", "-sigopt", "rsa_padding_mode:pss"),
        ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha512"),
    ],
    ids=lambda options: " ".join(options[1:]),
)
def test_channel_binding_over_tls(script: Script, tmp_path: Path, options: tuple[str, ...]) -> None:
    script.tls, script.certificate_hash = _certificate(tmp_path, *options)
    with serve(script) as port:
        with _connect(port, sslmode="require", channel_binding="require") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with _connect(port, sslmode="require", channel_binding="disable") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_a_wrong_channel_is_not_accepted(script: Script, tmp_path: Path) -> None:
    script.tls, _ = _certificate(tmp_path, "-newkey", "rsa:2048", "-sha256")
    script.certificate_hash = bytes(32)
    with serve(script) as port, pytest.raises(psycopg.OperationalError, match="authentication failed"):
        _connect(port, sslmode="require", channel_binding="require")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_an_ed25519_certificate_has_no_binding(tmp_path: Path) -> None:
    assert _certificate(tmp_path, "-newkey", "ed25519")[1] is None


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql(port: int, script: Script) -> None:
    commands = ["SELECT 1; SELECT ten", "SELECT trouble", ";", "SET x", "\\copy (t) TO STDOUT", "COPY t"]
    target = f"host=127.0.0.1 port={port} user=ada dbname=campus sslmode=disable"
    flags = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", target, *flags],
        env={"PGPASSWORD": PASSWORD},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[:3] == ["1", "0|t0", "1|t1"]
    assert "9\tt9" in done.stdout
    assert "LINE 1: SELECT trouble\n               ^\nDETAIL:  because\nHINT:  write that" in done.stderr
    assert "NOTICE:  charged 0.1" in done.stderr


@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(port: int, script: Script, mode: str, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("SELECT 1;\n")
    target = f"host=127.0.0.1 port={port} user=ada dbname=campus sslmode=disable"
    command = ["pgbench", "-n", "-c", "2", "-t", "20", "-M", mode, "-f", str(tmp_path / "one.sql"), target]
    done = subprocess.run(command, env={"PGPASSWORD": PASSWORD}, capture_output=True, text=True)
    assert "number of transactions actually processed: 40/40" in done.stdout, done.stderr
    kinds = {type(event) for event in script.seen}
    assert (Query in kinds) if mode == "simple" else kinds >= {Parse, Bind, Execute}


@pytest.mark.parametrize("password", ["secret", "ⅸ", "a\u00adb\u00a0c", "\u0627\u0031", "\u0221", "x" * 200])
def test_libpq_makes_the_same_verifier(port: int, password: str) -> None:
    with _connect(port) as connection:
        made = connection.pgconn.encrypt_password(password.encode(), b"ada", b"scram-sha-256").decode()
    given = Verifier.parse(made)
    assert make_verifier(password, iterations=given.iterations, salt=given.salt) == given
    assert given.text() == made

"""What may happen to a real Spark: each is a failure within seconds, without a word of the engine's, or goes unnoticed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dpsql.backends import spark_connection as connections
from dpsql.backends.spark_backend import SparkBackend
from dpsql.backends.spark_connection import TOKEN, SparkConnection, target_of
from dpsql.errors import EngineFailure
from dpsql.tests.support.spark_fixtures import require_spark
from dpsql.tests.support.spark_server import SparkServer

pytestmark = pytest.mark.spark

LONG = "SELECT COUNT(*) FROM range(1000000) AS a(i) CROSS JOIN range(1000000) AS b(j) WHERE i * j % 7 = 3"
_TOKEN = "hush"


def eventually(holds: Callable[[], bool], seconds: float = 600) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def rows(backend: SparkBackend, sql: str) -> list[tuple[object, ...]]:
    with backend.snapshot() as snapshot:
        return [row for chunk in snapshot.run(sql) for row in chunk]


def during(backend: SparkBackend, act: Callable[[], None]) -> EngineFailure:
    """Return the failure of a statement while which something happens."""

    def wait_and_act() -> None:
        assert eventually(lambda: any(one._connection.is_running for one in list(backend._snapshots._owners)))
        time.sleep(1)  # so that it is the statement itself that runs, and does on the server
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    with pytest.raises(EngineFailure) as caught:
        rows(backend, LONG)
    thread.join()
    return caught.value


# --- one server: a token, a pause, a crash -----------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Iterator[SparkServer]:
    require_spark()
    with SparkServer(token=_TOKEN) as server:
        yield server


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(_TOKEN)
    file.chmod(0o600)
    return file


def test_a_token_lets_in_and_its_absence_does_not(
    own: SparkServer, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = SparkBackend.of(f"{own.url}?token_file={secret}")
    assert rows(backend, "SELECT 1") == [(1,)]
    assert "token" not in " ".join(finding.sentence for finding in backend.findings())
    assert backend.close_idle()
    for shown in ("", "another"):
        monkeypatch.setenv(TOKEN, shown)
        with pytest.raises(EngineFailure) as caught:
            rows(SparkBackend.of(own.url), "SELECT 1")
        assert caught.value.detail.startswith("open: the server asks for a token, or refuses the one it got")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Give a certificate of this machine's own and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not at hand, which makes the certificate")
    made, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += [
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        names,
        "-keyout",
        str(key),
        "-out",
        str(made),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@pytest.fixture
def encrypted(own: SparkServer, certificate: tuple[Path, Path]) -> Iterator[int]:
    """Give the port of a proxy that speaks TLS and passes on what it reads to the server, as one in front of it does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.set_alpn_protocols(["h2"])
    open_ones: list[socket.socket] = []

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        sink.close()

    def relay(plain: socket.socket) -> None:
        with suppress(OSError):
            plain.settimeout(30)
            near = context.wrap_socket(plain, server_side=True)
            near.settimeout(None)
            far = socket.create_connection(("127.0.0.1", own.port))
            open_ones.extend((near, far))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                plain, _ = listener.accept()
                open_ones.append(plain)
                threading.Thread(target=relay, args=(plain,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for one in open_ones:
        one.close()


def test_tls_is_spoken_where_it_is_asked_for(
    own: SparkServer, encrypted: int, certificate: tuple[Path, Path], secret: Path
) -> None:
    place, token = f"spark://127.0.0.1:{encrypted}", f"token_file={secret}"
    backend = SparkBackend.of(f"{place}?ca_file={certificate[0]}&{token}")
    assert rows(backend, "SELECT 1") == [(1,)]
    assert backend.close_idle()
    for url, said in (
        (
            f"{place}?tls=on&{token}",
            "open: the server's certificate is not one that is trusted; name a ca_file",
        ),
        (f"{place}?{token}", "open: the server cannot be reached"),
        (f"{own.url}?tls=on&{token}", "open: the server does not speak TLS, and the URL asks for it"),
    ):
        began = time.monotonic()
        with pytest.raises(EngineFailure) as caught:
            rows(SparkBackend.of(url), "SELECT 1")
        assert caught.value.detail == said
        assert time.monotonic() - began < 60


def test_a_driver_that_stands_still_is_given_up(
    own: SparkServer, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = SparkBackend.of(f"{own.url}?token_file={secret}")
    rows(backend, "SELECT 1")
    monkeypatch.setattr(connections, "_PULSE_SECONDS", 2)
    try:
        began = time.monotonic()
        failed = during(backend, own.pause)
        assert failed.detail == "run: the server stopped answering, or the statement was stopped"
        assert failed.sqlstate == "58V01"
        assert time.monotonic() - began < 120
    finally:
        own.resume()
    assert rows(backend, "SELECT 1") == [(1,)]
    assert backend.close_idle()


def test_a_killed_driver_is_a_failure_within_seconds(own: SparkServer, secret: Path) -> None:
    backend = SparkBackend.of(f"{own.url}?token_file={secret}")
    rows(backend, "SELECT 1")
    killed: list[float] = []

    def kill() -> None:
        own.kill()
        killed.append(time.monotonic())

    failed = during(backend, kill)
    ended = time.monotonic()
    assert (failed.detail, failed.sqlstate) == ("run: UNAVAILABLE", "58V01")
    assert ended - killed[0] < 30
    began = time.monotonic()
    with pytest.raises(EngineFailure) as caught:
        rows(backend, "SELECT 1")
    assert caught.value.detail == "open: no server listens where the URL says"
    assert time.monotonic() - began < 60
    assert backend.close_idle()


# --- a cluster: its executors come and go ------------------------------------------------------------------


def test_a_killed_executor_goes_unnoticed(spark_cluster: SparkServer) -> None:
    assert eventually(lambda: len(spark_cluster.executors()) == 2)
    backend = SparkBackend.of(spark_cluster.url)
    sql = (
        "SELECT k, COUNT(*), SUM(CAST(i AS DECIMAL(38, 0))) FROM"
        " (SELECT i % 5 AS k, i FROM range(0, {}, 1, 8) AS a(i) CROSS JOIN range(20) AS b(j) WHERE i % 7 < j)"
        " AS s GROUP BY k ORDER BY k"
    )
    small = rows(backend, sql.format(1000))
    assert [row[0] for row in small] == [0, 1, 2, 3, 4]
    expected = rows(backend, sql.format(200_000))
    killed: list[int] = []

    def kill() -> None:
        killed.append(spark_cluster.executors()[0])
        os.kill(killed[0], signal.SIGKILL)

    found: list[list[tuple[object, ...]]] = []
    with backend.snapshot() as snapshot:
        thread = threading.Thread(
            target=lambda: found.append([row for one in snapshot.run(sql.format(200_000)) for row in one])
        )
        thread.start()
        assert eventually(lambda: snapshot._connection.is_running)
        kill()
        thread.join(300)
    assert found == [expected]
    assert killed[0] not in spark_cluster.executors()
    assert backend.close_idle()


def test_the_findings_of_a_cluster(spark_cluster: SparkServer) -> None:
    connection = SparkConnection(target_of(spark_cluster.url))
    connection.close()
    said = " ".join(finding.sentence for finding in SparkBackend.of(spark_cluster.url).findings())
    assert "send each other rows unencrypted" in said

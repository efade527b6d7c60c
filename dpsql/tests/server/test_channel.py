"""TLS that a client asks for and TLS from its first byte; certificate and policy read anew by SIGHUP."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.pgwire import make_verifier
from dpsql.server.channel import load_encryption
from dpsql.tests.support.length import long_where

from ..pgwire.frontend import SSL, startup
from .by_hand import Wire, login, proof
from .conftest import PASSWORD, Served, make_dataset, needs_openssl, run_server

pytestmark = needs_openssl
BOTH_WAYS = pytest.mark.parametrize(
    "negotiation",
    [
        "postgres",
        pytest.param(
            "direct",
            marks=pytest.mark.skipif(
                psycopg.pq.version() < 170000, reason="libpq before 17 does not begin with TLS"
            ),
        ),
    ],
)


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path

    def become(self, other: Pair) -> None:
        """Replace the files by those of another."""
        shutil.copy(other.certificate, self.certificate)
        shutil.copy(other.key, self.key)

    def der(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text())


def make_pair(folder: Path, name: str, *options: str) -> Pair:
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-days", "2", "-subj", "/CN=localhost", "-newkey", "ec",
         "-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", pair.key, "-out", pair.certificate, *(options or ["-nodes"])],
        check=True, capture_output=True,
    )  # fmt: skip
    return pair


@dataclass
class Encrypted:
    server: Served
    pair: Pair
    policy: Path


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[Encrypted]:
    pair, policy = make_pair(tmp_path, "server"), make_dataset(tmp_path)
    with run_server(policy, "--certificate", str(pair.certificate), "--key", str(pair.key)) as server:
        yield Encrypted(server, pair, policy)


def over_tls(port: int, *protocols: str) -> ssl.SSLSocket:
    """Begin with TLS, naming these protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 20))


def certificate_of(server: Served) -> bytes | None:
    with over_tls(server.port, "postgresql") as wire:
        return wire.getpeercert(binary_form=True)


@BOTH_WAYS
def test_bound_to_the_certificate(encrypted: Encrypted, negotiation: str) -> None:
    options = {"host": "localhost", "sslmode": "verify-full", "sslrootcert": str(encrypted.pair.certificate)}
    with encrypted.server.connect(
        **options, channel_binding="require", sslnegotiation=negotiation
    ) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)


@long_where(lambda protocols: not protocols)
@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
def test_tls_at_once_for_another_protocol_is_dropped(
    encrypted: Encrypted, protocols: tuple[str, ...]
) -> None:
    with over_tls(encrypted.server.port, *protocols) as wire:
        assert wire.selected_alpn_protocol() is None
        try:
            wire.sendall(startup(user="alice"))
            assert wire.recv(1) == b""
        except OSError:
            pass  # reset


def test_inside_tls_no_further_tls(encrypted: Encrypted) -> None:
    with over_tls(encrypted.server.port, "postgresql") as wire:
        wire.sendall(SSL)
        assert wire.recv(1) == b"E"


def test_bytes_in_the_clear_before_the_handshake_are_refused(encrypted: Encrypted) -> None:
    with Wire(encrypted.server.port) as wire:
        wire.send(SSL + startup(user="alice"))
        assert wire.exactly(1) != b"S"
        assert b"R" not in wire.exactly(1)


def test_without_a_certificate_tls_at_once_is_refused(server: Served) -> None:
    with pytest.raises(ssl.SSLError):
        over_tls(server.port, "postgresql")


@BOTH_WAYS
def test_a_new_certificate(encrypted: Encrypted, tmp_path: Path, negotiation: str) -> None:
    server, pair = encrypted.server, encrypted.pair
    new = make_pair(tmp_path, "new")
    old_der = pair.der()
    with server.connect(sslmode="require") as before:
        assert certificate_of(server) == old_der
        pair.become(new)
        assert certificate_of(server) == old_der, "it is read when the owner says so"
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reloaded", 2)
        assert certificate_of(server) == new.der()
        assert before.execute("SELECT 1").fetchone() == (1,)
    bound = {"sslmode": "require", "channel_binding": "require", "sslnegotiation": negotiation}
    with server.connect(**bound) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_bad_pair_leaves_the_old_one(encrypted: Encrypted, tmp_path: Path) -> None:
    server, pair = encrypted.server, encrypted.pair
    old_der, new = pair.der(), make_pair(tmp_path, "new")
    shutil.copy(new.certificate, pair.certificate)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reload refused")
    assert certificate_of(server) == old_der
    with server.connect(sslmode="require", channel_binding="require") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, "locked", "-passout", "pass:secret")
    policy = make_dataset(tmp_path)
    files = ["--certificate", str(pair.certificate), "--key", str(pair.key)]
    done = CliRunner().invoke(program, ["-P", str(policy), "serve", *files])
    assert done.exit_code == 2
    assert "cannot be read" in done.output


def started(policy: Path, pair: Pair) -> str:
    """Return why a server does not start."""
    files = ["--certificate", str(pair.certificate), "--key", str(pair.key)]
    done = CliRunner().invoke(program, ["-P", str(policy), "serve", *files])
    assert done.exit_code == 2
    return done.output


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o620, 0o660])
def test_a_key_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    pair, policy = make_pair(tmp_path, "server"), make_dataset(tmp_path)
    pair.key.chmod(mode)
    assert "others than its owner can read the key, or change it: chmod 600 it" in started(policy, pair)


def test_roots_key_may_be_read_by_a_group(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, "server")
    pair.key.chmod(0o640)
    is_roots = os.geteuid() == 0
    with nullcontext() if is_roots else pytest.raises(ValueError, match="others than its owner"):
        assert load_encryption(pair.certificate, pair.key) is not None
    if is_roots:
        os.chown(pair.key, 65534, -1)
        pair.key.chmod(0o600)
        with pytest.raises(ValueError, match="the key belongs to another user"):
            load_encryption(pair.certificate, pair.key)


def test_a_key_that_was_opened_meanwhile_leaves_the_old_one(encrypted: Encrypted) -> None:
    encrypted.pair.key.chmod(0o644)
    encrypted.server.process.send_signal(signal.SIGHUP)
    encrypted.server.wait_for("reload refused")
    (line,) = [line for line in encrypted.server.lines if line["event"] == "reload refused"]
    assert "can read the key" in line["reason"]
    assert certificate_of(encrypted.server) == encrypted.pair.der()


# --- the policy ---------------------------------------------------------------------------------------


def analyst(name: str) -> str:
    return f'[analysts.{name}]\nepsilon = 1\npassword = "{make_verifier(PASSWORD).text()}"\n'


def reload(server: Served, event: str) -> dict[str, Any]:
    """Send SIGHUP and return the line that says what came of the policy."""
    before = sum(line["event"] == event for line in server.lines)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for(event, before + 1)
    return [line for line in server.lines if line["event"] == event][-1]


def may_connect(server: Served, user: str) -> bool:
    with Wire(server.port) as wire:
        return login(wire, user, PASSWORD)[0] == "R"


def test_analysts_come_and_go(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    written = policy.read_text()
    with run_server(policy) as server:
        assert not may_connect(server, "bob")
        policy.write_text(written + analyst("bob"))
        reload(server, "reloaded")
        with server.connect(user="bob") as bob, server.connect() as alice:
            row = bob.execute("SHOW dpsql.budget").fetchone()
            assert row is not None
            assert str(row[0]).startswith("1 "), "the cap is the new policy's"
            policy.write_text(written)
            reload(server, "reloaded")
            with pytest.raises(psycopg.OperationalError, match="may no longer connect"):
                bob.execute("SELECT 1")
            assert alice.execute("SELECT 1").fetchone() == (1,)
        assert not may_connect(server, "bob")


@long_where(lambda old: old == "password =")
@pytest.mark.parametrize(
    ("old", "new"),
    [("epsilon = 1000", "epsilon = nothing"), ("password =", "pass ="), ("people.duckdb", "other.duckdb")],
)
def test_a_policy_that_cannot_be_used_changes_nothing(tmp_path: Path, old: str, new: str) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy) as server:
        policy.write_text(policy.read_text().replace(old, new))
        line = reload(server, "reload refused")
        assert line["what"] == "policy"
        assert "people.toml" in line["reason"]
        assert may_connect(server, "alice")


def test_a_policy_with_verifiers_that_others_can_read_is_told_of(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    policy.chmod(0o600)
    with run_server(policy) as server:
        reload(server, "reloaded")
        assert "policy readable" not in {line["event"] for line in server.lines}
        policy.chmod(0o644)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("policy readable")
    with run_server(policy) as server:
        server.wait_for("policy readable")


def test_who_logs_in_while_the_analyst_is_removed_is_refused(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    written = policy.read_text()
    policy.write_text(written + analyst("bob"))
    with run_server(policy) as server, Wire(server.port) as wire:
        first, challenge = wire.challenge("bob")
        policy.write_text(written)
        reload(server, "reloaded")
        wire.send(proof(first, challenge, PASSWORD))
        assert wire.message()[0] == "E"
    assert [line["reason"] for line in server.lines if line["event"] == "login refused"] == ["user"]

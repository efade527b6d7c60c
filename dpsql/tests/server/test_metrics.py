"""What the owner's tools are told: counts for Prometheus, refusals and warnings in the log."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from dpsql.cli.application import program
from dpsql.engine.dataset import open_ledger
from dpsql.memory import STATEMENT_BYTES
from dpsql.policy import load_policy
from dpsql.server import database as served
from dpsql.server import metrics as counts
from dpsql.server.channel import load_encryption
from dpsql.server.database import BudgetWatch
from dpsql.server.report import SECONDS, Tally

from .conftest import COUNT, Served, make_dataset, needs_openssl, run_server
from .test_channel import make_pair

TOKEN = "0123456789abcdef"


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Served]:
    with run_server(make_dataset(tmp_path), "--metrics", "0") as served:
        yield served


def samples(served: Served) -> dict[str, float]:
    port = served.first["metrics"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        name + "".join(f" {value}" for label, value in labels.items() if label != "database"): value
        for family in text_string_to_metric_families(text)
        for name, labels, value, *_ in family.samples
    }


def test_what_is_counted(measured: Served) -> None:
    before = samples(measured)
    assert (before["dpsql_connections"], before["dpsql_epsilon_spent"], before["dpsql_ledger_up"]) == (
        0,
        0,
        1,
    )
    with measured.connect() as connection:
        for sql in (COUNT, COUNT, "SELECT count(*) FROM pg_class", "SHOW dpsql.epsilon"):
            connection.execute(sql)
        for _ in range(2):
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT city FROM person WHERE city LIKE 'secret%'")
        now = samples(measured)
    found = {outcome: now[f"dpsql_answered_total {outcome}"] for outcome in ("charged", "stored", "catalog")}
    assert found["charged"] == found["stored"] == 1
    assert found["catalog"] >= 1
    assert now["dpsql_answer_seconds_count"] == sum(
        value for name, value in now.items() if name.startswith("dpsql_answered_total")
    )
    refused = {name: value for name, value in now.items() if name.startswith("dpsql_refused_total")}
    assert sum(refused.values()) == 2
    assert now["dpsql_connections"] == 1
    assert 0 <= now["dpsql_answers_memory_bytes"] <= now["dpsql_answers_memory_most_bytes"]
    assert now["dpsql_answers_memory_most_bytes"] >= STATEMENT_BYTES
    assert now["dpsql_answers_files_bytes"] == 0
    assert now["dpsql_epsilon_spent"] + now["dpsql_epsilon_left"] == pytest.approx(now["dpsql_epsilon_cap"])
    assert now["dpsql_epsilon_spent"] > 0
    assert now["process_resident_memory_bytes"] > 10**6
    (line,) = (line for line in measured.lines if line["event"] == "refused")
    assert (line["analyst"], line["times"]) == ("alice", 1), "the second within ten seconds is counted alone"
    assert all("ms" in line for line in measured.lines if line["event"] == "answered")
    assert "secret" not in str(measured.lines) + str(now)


def status(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        assert b"dpsql_" not in answer.read() or answer.status == 200
        return answer.status


def test_who_reads_them_on_this_machine(measured: Served) -> None:
    port = measured.first["metrics"]
    for name in ("localhost", "127.0.0.1", "[::1]"):
        assert status(port, Host=f"{name}:{port}") == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert status(port, Host=host) == 421
    assert status(port, "/favicon.ico") == 404
    assert status(port, method="POST") == 405


def test_silent_readers_take_a_few_places_and_not_for_long(
    measured: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = measured.first["metrics"]
    silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(12)]
    closed = [one for one in silent[4:] if one.recv(1) == b""]
    assert len(closed) == 8, "four have a place"
    for one in silent:
        one.close()
    for _ in range(200):  # a place is given back once its thread has seen that the client has left
        try:
            assert status(port) == 200
            break
        except (ConnectionError, http.client.BadStatusLine):
            time.sleep(0.05)
    else:
        pytest.fail("the places were not given back")


def test_a_slow_reader_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_SECONDS", 0.3)
    with counts.serve_metrics(("127.0.0.1", 0), (), lambda _: 0, None, lambda: None) as port:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as slow,
            pytest.raises(ConnectionError),
        ):
            drip(slow, 30)
        assert status(port) == 200


def drip(connection: socket.socket, seconds: float) -> None:
    """Send a request's line a byte at a time, each of which comes in time."""
    for _ in range(int(seconds / 0.05)):
        connection.sendall(b"G")
        time.sleep(0.05)


def test_another_address_of_the_loopback_is_its_own_name() -> None:
    with counts.serve_metrics(("127.0.0.2", 0), (), lambda _: 0, None, lambda: None) as port:
        for name, expected in ((f"127.0.0.2:{port}", 200), (f"127.0.0.3:{port}", 421)):
            with closing(http.client.HTTPConnection("127.0.0.2", port, timeout=60)) as connection:
                connection.request("GET", "/metrics", headers={"Host": name})
                assert connection.getresponse().status == expected


@needs_openssl
def test_beyond_this_machine_it_takes_tls_and_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make_pair(tmp_path, "server")
    encryption = load_encryption(pair.certificate, pair.key)
    monkeypatch.setattr(counts, "is_loopback", lambda _: False)
    trusting = ssl.create_default_context(cafile=str(pair.certificate))
    with counts.serve_metrics(("127.0.0.1", 0), (), lambda _: 0, TOKEN, lambda: encryption) as port:
        with pytest.raises((OSError, http.client.HTTPException)):
            status(port)
        for given, expected in (
            (f"Bearer {TOKEN}", 200),
            (f"Bearer {TOKEN}x", 401),
            (TOKEN, 401),
            ("é", 401),
        ):
            with closing(
                http.client.HTTPSConnection("localhost", port, timeout=60, context=trusting)
            ) as connection:
                connection.request("GET", "/metrics", headers={"Authorization": given.encode("latin-1")})
                assert connection.getresponse().status == expected


@pytest.mark.parametrize("token", [None, TOKEN], ids=["nothing", "a token alone"])
def test_it_does_not_start_open_to_other_machines(token: str | None, tmp_path: Path) -> None:
    policy, file = make_dataset(tmp_path), tmp_path / "token"
    file.write_text(token or "")
    file.chmod(0o600)
    options = ["--metrics-token", str(file)] if token else []
    done = CliRunner().invoke(program, ["-P", str(policy), "serve", "--metrics", "0.0.0.0:0", *options])
    assert done.exit_code == 2
    assert "takes TLS and --metrics-token" in re.sub(r"\s+", " ", done.output)


@pytest.mark.parametrize(
    ("token", "mode", "why"),
    [("short", 0o600, "too short"), (TOKEN, 0o644, "others than its owner can read the token of --metrics")],
)
def test_a_token_that_others_know(token: str, mode: int, why: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    file.chmod(mode)
    command = ["-P", str(make_dataset(tmp_path)), "serve", "--metrics", "0", "--metrics-token", str(file)]
    done = CliRunner().invoke(program, command)
    assert done.exit_code == 2
    assert why in re.sub(r"\s+", " ", done.output)


def test_a_token_is_asked_for_on_this_machine_too(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    with run_server(make_dataset(tmp_path), "--metrics", "0", "--metrics-token", str(file)) as served:
        port = served.first["metrics"]
        assert status(port) == 401
        assert status(port, Authorization=f"Bearer {TOKEN}") == 200
        assert status(port, Authorization=f"Bearer {TOKEN}", Host="evil.example") == 421


def test_classes_of_durations_end_where_they_say() -> None:
    tally = Tally("people")
    for seconds in (0.0, SECONDS[0], SECONDS[1], SECONDS[-1], SECONDS[-1] + 1):
        tally.answer("public", seconds)
    assert (tally.durations[0], tally.durations[1], tally.durations[-2], tally.durations[-1]) == (2, 1, 1, 1)


@pytest.mark.parametrize("given", ["here", "1:2:x", "65536", ":", "-1"])
def test_an_address_that_is_none(given: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(program, ["-P", str(make_dataset(tmp_path)), "serve", "--metrics", given])
    assert done.exit_code == 2
    assert "write PORT or HOST:PORT" in re.sub(r"\s+", " ", done.output)


def test_a_port_that_is_taken_is_named(measured: Served, tmp_path: Path) -> None:
    port = measured.first["metrics"]
    folder = tmp_path / "second"
    folder.mkdir()
    options = ["-P", str(make_dataset(folder)), "serve", "--port", "0", "--metrics", str(port)]
    done = CliRunner().invoke(program, options)
    assert done.exit_code == 2
    assert f"Port {port} is taken" in done.output


def test_a_budget_that_is_nearly_spent_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(served, "log", lambda event, **said: told.append((event, *said.values())))
    path = make_dataset(tmp_path)
    path.write_text(
        path.read_text().replace("epsilon = 1000", "epsilon = 2").replace("epsilon = 500", "epsilon = 1")
    )
    policy, watch = load_policy(path), BudgetWatch("people")

    options = ["-P", str(path), "--analyst"]

    def spend(analyst: str, epsilon: str, condition: str) -> None:
        done = CliRunner().invoke(
            program,
            [*options, analyst, "query", "--epsilon", epsilon, f"{COUNT} WHERE {condition}"],
        )
        assert done.exit_code == 0, done.output
        watch.look(store, policy.analysts)

    with closing(open_ledger(policy, create=False)) as store:
        spend("alice", "0.79", "age > 1")
        assert told == []
        spend("alice", "0.01", "age > 2")
        spend("alice", "0.1", "age > 3")
        assert told == [("budget low", "alice", "epsilon", 80, "people")]
        spend("alice", "0.1", "age > 4")
        spend("bob", "0.9", "age > 5")
        assert told[1:] == [
            ("budget low", "alice", "epsilon", 100, "people"),
            ("budget low", "everybody", "epsilon", 95, "people"),
        ]
        store.grant("alice", 10**9, by="the owner")
        spend("alice", "0.01", "age > 6")
        assert len(told) == 3

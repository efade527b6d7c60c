"""What is said to those who ask whether the server is there, and what its log says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dpsql.server.database import Health
from dpsql.server.report import EVENTS, Seldom, log
from dpsql.tests.support.forked import Forked
from dpsql.tests.support.length import tried

from ..docs.documents import text
from ..pgwire.frontend import cancel, query, startup
from .by_hand import Wire, login
from .conftest import (
    CHARGED,
    COUNT,
    PASSWORD,
    Served,
    length_of_log,
    make_dataset,
    run_server,
    wait_for_a_charge,
)

SOURCES = Path(__file__).parents[2] / "server"

needs_pg_isready = pytest.mark.skipif(
    shutil.which("pg_isready") is None, reason="pg_isready comes with Postgres"
)


def is_ready(server: Served) -> str:
    done = subprocess.run(
        ["pg_isready", "-h", "127.0.0.1", "-p", str(server.port)], capture_output=True, text=True, check=False
    )
    return done.stdout.partition(" - ")[2].strip()


def told(server: Served) -> bytes:
    """Return the error that a startup message meets."""
    with Wire(server.port) as wire:
        wire.send(startup(user="alice"))
        tag, body = wire.message()
        assert tag == "E"
        return body


def ask_slowly(connection: psycopg.Connection[Any]) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.execute(CHARGED)


@needs_pg_isready
def test_a_ledger_that_goes_and_comes_back(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy, probe_seconds=0.1) as server:
        assert is_ready(server) == "accepting connections"
        (tmp_path / "people.db.log").rename(tmp_path / "away.log")
        server.wait_for("unhealthy")
        assert is_ready(server) == "rejecting connections"
        with pytest.raises(psycopg.OperationalError, match="takes no connections now"):
            server.connect()
        body = told(server)
        assert b"C57P03\0" in body
        assert b"ledger" not in body
        (tmp_path / "away.log").rename(tmp_path / "people.db.log")
        server.wait_for("healthy")
        assert is_ready(server) == "accepting connections"
        with server.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    changes = [line["event"] for line in server.lines if line["event"] in ("healthy", "unhealthy")]
    assert changes == ["unhealthy", "healthy"]
    (line,) = [line for line in server.lines if line["event"] == "unhealthy"]
    assert "ledger" in line["reason"]


@needs_pg_isready
def test_while_it_stops(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy, "--grace", "600") as server, server.connect() as busy:
        since = length_of_log(tmp_path)
        thread = threading.Thread(target=ask_slowly, args=[busy])
        thread.start()
        wait_for_a_charge(tmp_path, since)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        assert is_ready(server) == "rejecting connections"
        assert b"C57P03\0" in told(server)
        server.process.send_signal(signal.SIGTERM)
        thread.join()
        assert server.process.wait(300) == 0
        assert is_ready(server) == "no response"


def test_told_twice_it_waits_for_nobody(tmp_path: Path) -> None:
    policy = make_dataset(tmp_path)
    with run_server(policy, "--grace", "600") as server, server.connect() as busy:
        since = length_of_log(tmp_path)
        thread = threading.Thread(target=ask_slowly, args=[busy])
        thread.start()
        wait_for_a_charge(tmp_path, since)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(300) == 0
        thread.join()


def test_what_was_sent_ahead_is_not_begun_while_it_stops(tmp_path: Path) -> None:
    with run_server(make_dataset(tmp_path), "--grace", "600") as server, Wire(server.port) as wire:
        assert login(wire, "alice", PASSWORD)[0] == "R"
        while (found := wire.message())[0] != "K":
            pass
        key = found[1]
        assert wire.message()[0] == "Z"
        since = length_of_log(tmp_path)
        wire.send(query(CHARGED) + query(COUNT))
        wait_for_a_charge(tmp_path, since)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        with Wire(server.port) as other:
            other.send(cancel(int.from_bytes(key[:4], "big"), key[4:]))
            assert other.is_closed()
        first, ready, last = wire.message(), wire.message(), wire.message()
        assert (first[0], ready[0], last[0]) == ("E", "Z", "E")
        assert b"C57014\0" in first[1]
        assert b"C57P01\0" in last[1]
    assert not [line for line in server.lines if line["event"] == "answered"]


def test_a_ledger_that_does_not_answer() -> None:
    answers = threading.Event()

    async def watch() -> list[bool]:
        with ThreadPoolExecutor(1) as pool:
            health = Health(answers.wait, pool, 0.02, "people")
            task = asyncio.ensure_future(health.watch())
            found = [health.is_good]
            for _ in range(2):
                while health.is_good is found[-1]:
                    await asyncio.sleep(0.01)
                found.append(health.is_good)
                answers.set()
            task.cancel()
        return found

    assert asyncio.run(watch()) == [True, False, True]


def test_a_line_of_the_log_is_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    odd = '\x1b[2J\r\n"}{\u2028\ud800\0' + "é" * 10_000
    log("connected", analyst=odd)
    written = capsys.readouterr().err
    assert written.isascii()
    assert written.count("\n") == 1
    assert written.removesuffix("\n").isprintable()
    assert len(written) < 5_000
    assert json.loads(written)["analyst"] == odd[:200]


def test_what_strangers_cause_is_written_seldom(capsys: pytest.CaptureFixture[str]) -> None:
    seldom = Seldom("strangers full")
    for _ in range(1000):
        seldom.log(peer="192.0.2.1")
    assert capsys.readouterr().err.count("\n") == 1


def test_every_event_has_a_name_that_stays() -> None:
    written = set()
    calls = r'(?:\blog\(|\blog,|\blog_together,|\bSeldom\(|\b_line\()\s*"([^"]+)"'
    for source in (
        *SOURCES.glob("*.py"),
        SOURCES.parent / "cli" / "serve_workers.py",
        SOURCES.parent / "studio" / "web.py",
    ):
        written |= set(re.findall(calls, source.read_text("utf-8")))
    assert written == set(EVENTS)


def test_the_manual_lists_the_events_as_they_are() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \| (.*) \|$", text("operator"), re.MULTILINE)
    assert rows == list(EVENTS.items())


def test_a_log_that_nobody_reads_holds_nobody_up(policy: Path) -> None:
    statements = tried(600, 1500)  # more than a pipe of 64 KiB takes
    arguments = ["-m", "dpsql.cli", "-P", str(policy), "serve", "--port", "0"]
    process = Forked(arguments, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        served = Served(json.loads(process.stderr.readline())["port"], process)
        with served.connect() as connection:
            for _ in range(statements):
                connection.execute("SELECT COUNT(*) FROM number")
        process.send_signal(signal.SIGTERM)
        lines = [json.loads(line)["event"] for line in process.stderr]
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.stderr.close()
    assert lines.count("answered") == statements
    assert lines[-1] == "stopped"

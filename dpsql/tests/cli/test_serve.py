"""`dpsql serve` and `dpsql demo --serve` at a terminal: the line to paste, Ctrl-C, and a port that is taken."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.cli.demo import ANALYST, PASSWORD
from dpsql.policy import load_policy


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """Run the program on a terminal of its own; give the process, and its lines up to the first of the log."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsql.cli", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        with open(ours, encoding="utf-8", buffering=1, closefd=True) as screen:
            lines = []
            for line in screen:
                lines.append(line.rstrip())
                if line.startswith("{"):
                    break
            yield process, lines
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0
            text = _rest(screen.fileno())
            assert "Traceback" not in text
            assert '"stopped"' in text
    finally:
        process.kill()
        process.wait()


def _rest(terminal: int) -> str:
    data = b""
    try:
        while more := os.read(terminal, 65536):
            data += more
    except OSError:  # the other end is closed
        pass
    return data.decode()


def test_the_demo_is_served(campus: Path) -> None:
    with started("demo", "--serve", str(campus.parent), "--port", "0") as (_, lines):
        port = json.loads(lines[-1])["port"]
        (line,) = [line for line in lines if "psql" in line and "PGPASSWORD" in line]
        assert line.strip() == f"PGPASSWORD={PASSWORD} psql -h 127.0.0.1 -p {port} -U {ANALYST} campus"
        address = {
            "host": "127.0.0.1",
            "port": port,
            "user": ANALYST,
            "password": PASSWORD,
            "dbname": "campus",
        }
        with psycopg.connect(**address, autocommit=True) as connection:
            assert connection.execute("SELECT COUNT(*) FROM student").fetchone()
            assert connection.execute("SHOW dpsql.budget").fetchone()


def test_a_demo_from_before_has_no_analyst(campus: Path) -> None:
    campus.write_text(re.sub(r"\[analysts.*", "", campus.read_text("utf-8"), flags=re.DOTALL), "utf-8")
    result = CliRunner().invoke(program, ["demo", "--serve", str(campus.parent), "--port", "0"])
    assert result.exit_code == 2
    assert "dpsql demo --fresh --serve" in result.stderr


def test_the_password_is_not_in_the_policy(campus: Path) -> None:
    written = load_policy(campus).analysts[ANALYST].password
    assert written is not None
    assert written.startswith("SCRAM-SHA-256$")


def test_on_a_terminal_one_line_says_how_to_connect(campus: Path) -> None:
    with started("-P", str(campus), "serve", "--port", "0") as (_, lines):
        port = json.loads(lines[1])["port"]
        assert lines[0] == f"Analysts connect with: psql -h 127.0.0.1 -p {port} -U {ANALYST} campus"


@pytest.mark.parametrize("command", [["serve"], ["demo", "--serve"]])
def test_a_port_that_is_taken(campus: Path, command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        folder = [str(campus.parent)] if command[0] == "demo" else []
        result = CliRunner().invoke(program, ["-P", str(campus), *command, "--port", str(port), *folder])
    assert result.exit_code == 2
    assert f"Error: Port {port} is taken: " in result.stderr
    assert "{" not in result.stderr, "the log has not begun"


def test_an_address_that_is_none(campus: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(program, ["-P", str(campus), "serve", "--host", "127.0.0.999"])
    assert result.exit_code == 2
    assert "which takes TLS" in result.stderr


def test_the_grid_is_the_policy_s_alone(campus: Path) -> None:
    assert CliRunner().invoke(program, ["-P", str(campus), "serve", "--no-grid"]).exit_code == 2
    campus.write_text(campus.read_text("utf-8") + "\n[server]\ngrid = false\n", "utf-8")
    result = CliRunner().invoke(program, ["-P", str(campus), "check"])
    assert "warning: campus.toml: server.grid: " in result.output


def test_make_serve() -> None:
    makefile = (Path(__file__).parents[3] / "Makefile").read_text("utf-8")
    assert re.search(r"^serve: .*\n\t@?\$\(BIN\)/dpsql demo --serve demo$", makefile, re.MULTILINE)

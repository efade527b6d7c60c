"""Standard streams that are closed, full or read by nobody: no traceback, and no charge that is not told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.cli.owner import open_ledger
from dpsql.tests.support.length import first

COUNT = "SELECT COUNT(*) AS n FROM student"
STORED = (
    b"charged epsilon 0.1; 9.9 left. Not all of the answer was written; it is stored: asking again is free\n"
)


def dpsql(campus: Path, redirections: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a shell does, its streams where the redirections say."""
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(campus), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *command], capture_output=True, check=False, env=environment
    )  # fmt: skip


def spent(campus: Path) -> float:
    with open_ledger(campus) as ledger:
        return ledger.status().epsilon_spent_nano / 1e9


@pytest.mark.parametrize("redirections", first(2, ["2>/dev/full", "<&- 2>&-", "2>&-"]))
def test_messages_that_nobody_takes(campus: Path, redirections: str) -> None:
    done = dpsql(campus, redirections, "query", "--format", "csv", COUNT)
    assert (done.returncode, done.stdout[:2], done.stderr) == (0, b"n\n", b"")
    assert dpsql(campus, redirections, "query", "SELECT name FROM student").returncode == 3
    assert b"ERROR" not in (campus.parent / "campus-ledger.db.log").read_bytes()


@pytest.mark.parametrize("waits", [False, True])
def test_what_was_to_be_done_at_the_end_is(*, waits: bool) -> None:
    """The process ends without taking the interpreter apart: not before its threads, and what was registered."""
    thread = "threading.Thread(target=lambda: (time.sleep(1), print('waited for'))).start()"
    lines = [
        "import atexit, sys, threading, time", "from dpsql.cli import main", "atexit.register(print, 'registered')",
        thread if waits else "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "sys.argv = ['dpsql', '--version']", "main()",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, check=True, timeout=60
    )
    told = {line for line in done.stdout.splitlines() if not line.startswith(b"dpsql, version")}
    assert (told, done.stderr) == ({b"registered", *([b"waited for"] if waits else [])}, b"")


@pytest.mark.parametrize("redirections", first(2, [">&-", "<&- >&- 2>&-", ">&- 2>&-"]))
def test_a_closed_output_costs_nothing(campus: Path, redirections: str) -> None:
    done = dpsql(campus, redirections, "query", COUNT)
    assert (done.returncode, done.stdout) == (2, b"")
    if "2>" not in redirections:
        assert done.stderr.endswith(b"Error: Standard output is closed: nothing was asked.\n")
    assert spent(campus) == 0


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_output_is_stored(campus: Path, options: list[str]) -> None:
    done = dpsql(campus, "> /dev/full", "query", *options, COUNT)
    assert done.returncode == 2
    assert done.stderr == STORED + b"Error: The output cannot be written: No space left on device.\n"
    assert spent(campus) == pytest.approx(0.1)
    again = dpsql(campus, "", "query", COUNT)
    assert (again.returncode, again.stderr) == (0, b"free: answered from stored releases; epsilon 9.9 left\n")


def test_a_full_output_without_reuse(campus: Path) -> None:
    done = dpsql(campus, "> /dev/full", "query", f"SET dpsql.reuse = off; {COUNT}")
    assert done.returncode == 2  # SET already has an answer
    assert spent(campus) == 0
    done = dpsql(campus, "> /dev/full", "query", "--format", "csv", f"SET dpsql.reuse = off; {COUNT}")
    assert b"it is stored: with dpsql.reuse on, asking again is free\n" in done.stderr


def test_a_reader_that_has_left_is_told(campus: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "dpsql.cli", "-P", str(campus), "query", COUNT],
        stdout=writer, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, STORED)


def test_all_is_full(campus: Path) -> None:
    assert dpsql(campus, ">/dev/full 2>/dev/full", "query", COUNT).returncode == 2
    assert dpsql(campus, ">/dev/full 2>/dev/full", "query", "SELECT name FROM student").returncode == 3


@pytest.mark.parametrize("redirections", [">&-", ">/dev/full", ">/dev/full 2>/dev/full"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["budget", "show"], ["nonsense"]])
def test_other_commands(campus: Path, redirections: str, arguments: list[str]) -> None:
    done = dpsql(campus, redirections, *arguments)
    assert done.returncode == 2
    assert b"bug" not in done.stderr
    assert b"Traceback" not in done.stderr


def test_nothing_to_read(campus: Path) -> None:
    done = dpsql(campus, "<&-", "query")
    assert done.returncode == 2
    assert done.stderr.endswith(b"Error: There is no statement to run.\n")

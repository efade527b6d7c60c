"""Ctrl-C at any moment: exit code 130, no traceback, nothing begun after it, and what was charged is said.

The moments are events of the program (a module that it has imported, a charge in its log), not times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from dpsql.cli import query
from dpsql.cli.application import program
from dpsql.cli.owner import open_ledger
from dpsql.cli.worker import RunningSession

from .conftest import COUNT, ENDLESS, length_of_log, wait_for_charge

IMPORTS = "import time:"


@contextmanager
def started(campus: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the program, which names each module on standard error once it is imported; it is ended if it hangs."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "dpsql.cli", "-P", str(campus), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    hangs = threading.Timer(300, process.kill)
    hangs.start()
    try:
        yield process
    finally:
        hangs.cancel()
        process.kill()
        process.communicate()


def wait_for_import(errors: IO[str], module: str) -> None:
    for line in errors:
        if line.startswith(IMPORTS) and line.split("|")[-1].strip() == module:
            return
    raise AssertionError(f"{module} was never imported")


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    told = [line for line in errors.splitlines() if not line.startswith(IMPORTS)]
    return process.returncode, out, "\n".join(told)


def spent(campus: Path) -> float:
    with open_ledger(campus) as ledger:
        return ledger.status().epsilon_spent_nano / 1e9


@pytest.mark.parametrize(
    "module",
    [
        "signal", "dpsql.cli.interrupts", "dpsql.errors", "click", "dpsql.cli.render", "dpsql.cli.worker",
        "numpy", "_duckdb", "duckdb", "sqlglot", "dpsql.release.post_processing", "dpsql.budget.ledger", "dpsql.engine.session",
    ],
)  # fmt: skip
def test_while_modules_are_imported(campus: Path, module: str) -> None:
    with started(campus, "query", ENDLESS) as process:
        assert process.stderr is not None
        wait_for_import(process.stderr, module)
        code, out, told = interrupt(process)
    assert (code, out) == (130, "")
    assert "Traceback" not in told
    assert "bug" not in told
    if charged := spent(campus):
        assert f"DETAIL: epsilon {charged:g} " in told


def test_after_the_charge(campus: Path) -> None:
    before = length_of_log(campus)
    with started(campus, "query", f"{ENDLESS}; {COUNT} WHERE gpa > 3") as process:
        thread = threading.Thread(target=lambda: wait_for_charge(campus, before))
        thread.start()
        assert process.stderr is not None
        wait_for_import(process.stderr, "dpsql.engine.session")
        thread.join()
        code, out, told = interrupt(process)
    assert (code, out) == (130, "")
    assert told.startswith("ERROR 57014: the statement was cancelled\nDETAIL: epsilon 0.1 ")
    assert spent(campus) == pytest.approx(0.1)


def test_ignored_where_it_is_to_be_ignored(campus: Path) -> None:
    """As under nohup."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsql.cli", "-P", str(campus), "query", "--format", "csv"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(COUNT)
    assert (process.returncode, out[:2]) == (0, "n\n")


# --- moments that cannot be met from outside --------------------------------------------------------------


def press() -> None:
    """Press Ctrl-C; its handler has run when this returns."""
    os.kill(os.getpid(), signal.SIGINT)


def patched(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, before: Callable[[], None]) -> None:
    inner = getattr(owner, name)

    def call(*arguments: object, **options: object) -> object:
        before()
        return inner(*arguments, **options)

    monkeypatch.setattr(owner, name, call)


def test_before_the_first_statement(campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As good as lost in an import: nothing is begun."""

    def swallow() -> None:
        try:
            press()
        except KeyboardInterrupt:
            return
        raise AssertionError("there is nothing to swallow")

    patched(monkeypatch, query, "parameter_values", swallow)
    result = CliRunner().invoke(program, ["-P", str(campus), "query", COUNT])
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("ERROR 57014: the statement was cancelled\nDETAIL: nothing was charged\n")
    assert spent(campus) == 0


def test_between_two_statements(campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, query, "receipt_line", press)
    result = CliRunner().invoke(program, ["-P", str(campus), "query", f"{COUNT}; {COUNT} WHERE gpa > 3"])
    assert result.exit_code == 130
    assert result.stderr == (
        "charged epsilon 0.1; 9.9 left\nERROR 57014: the statement was cancelled\nDETAIL: nothing was charged\n"
    )
    assert spent(campus) == pytest.approx(0.1)


def test_while_the_answer_is_written(campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, query, "render", press)
    result = CliRunner().invoke(program, ["-P", str(campus), "query", COUNT])
    assert (result.exit_code, result.stdout) == (130, "")
    assert (
        "DETAIL: charged epsilon 0.1; 9.9 left. Not all of the answer was written; it is stored"
        in result.stderr
    )


def test_too_late_for_the_last_statement(campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is answered is told; the exit code says that Ctrl-C came."""
    run = RunningSession.run

    def run_and_press(*arguments: object) -> object:
        answer = run(*arguments)  # type: ignore[arg-type]  # whatever it was called with
        press()
        return answer

    monkeypatch.setattr(RunningSession, "run", run_and_press)
    result = CliRunner().invoke(program, ["-P", str(campus), "query", "--format", "csv", COUNT])
    assert result.exit_code == 130
    assert result.stdout.startswith("n\n")
    assert result.stderr == "charged epsilon 0.1; 9.9 left\n"

"""`dpsql release`: a file is priced, charged once, and written whole or not at all."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from dpsql.cli import release as command
from dpsql.tests.support.forked import Forked, run_forked

from .conftest import Run, length_of_log
from .test_query import ok, spent

DASHBOARD = """-- students
SELECT COUNT(*) AS n FROM student;
SELECT major, COUNT(*) AS n FROM student GROUP BY major;
SELECT COUNT(*) AS n FROM student WHERE major = 'CS';
SET dpsql.accuracy = 2000;
SELECT branch, COUNT(*) AS loans FROM loan GROUP BY branch;
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "dashboard.sql"
    path.write_text(DASHBOARD, "utf-8")
    return str(path)


def test_the_price_is_shown_and_nothing_spent(run: Run, file: str) -> None:
    assert ok(run("release", file, "--dry-run")).stdout == (
        "1: SELECT COUNT(*) AS n FROM student\n"
        "   n: expected ± 30 at 95 %\n"
        "   epsilon 0.091333, beside what statement 2 draws\n"
        "2: SELECT major, COUNT(*) AS n FROM student GROUP BY major\n"
        "   n: expected ± 30 at 95 %\n"
        "   epsilon 0.1\n"
        "3: SELECT COUNT(*) AS n FROM student WHERE major = 'CS'\n"
        "   n: expected ± 27 at 95 %\n"
        "   free, from what statements 1 and 2 draw\n"
        "4: SELECT branch, COUNT(*) AS loans FROM loan GROUP BY branch\n"
        "   loans: expected ± 1999.38 at 95 %\n"
        "   epsilon 0.0899\n"
        "all 4 statements: epsilon 0.281233; 10 left before\n"
    )
    shown = json.loads(ok(run("release", file, "--dry-run", "--json")).stdout)
    assert shown["charge"] == {"epsilon": "0.281233", "delta": "0"}
    assert [one["line"] for one in shown["statements"]] == [2, 3, 4, 6]
    assert [one["uses"] for one in shown["statements"]] == [[2], [], [1, 2], []]
    assert spent(run) == 0


def test_one_charge_and_free_again(run: Run, file: str) -> None:
    refused = run("release", file)
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert spent(run) == 0
    first = ok(run("release", file, "--yes", "--format", "csv"))
    assert spent(run) == 0.281233
    assert first.stdout.count("major,n\n") == 1
    again = ok(run("release", file, "--format", "csv"))  # what is free needs no consent
    assert again.stdout == first.stdout
    assert "all 4 statements: free; 9.7187 left" in again.stderr
    total = ok(run("release", file, "--yes", "--epsilon", "1", "--json"))
    assert [json.loads(line)["command"] for line in total.stdout.splitlines()] == ["SELECT"] * 4
    assert 1 < spent(run) <= 1.2 + 0.281233
    before = spent(run)
    assert ok(run("release", file, "--epsilon", "1", "--json")).stdout.count('"reused": true') == 4
    assert spent(run) == before


def test_ranges_are_free_after_their_workload(run: Run) -> None:
    told = ok(
        run("release", "--workload", "ranges(loan.loaned_on)", "--epsilon", "1", "--yes", "--format", "csv")
    )
    assert told.stdout.startswith("loaned_on,so_far\n")
    assert "by week" in " ".join(told.stderr.split())
    before = spent(run)
    assert before == 1
    for rows in (
        "WHERE loaned_on BETWEEN '2025-03-01' AND '2025-05-20'",
        "WHERE loaned_on >= '2025-10-01'",
        "GROUP BY date_trunc('month', loaned_on)",
        "GROUP BY loaned_on",
        "",
    ):
        ok(run("query", f"SELECT COUNT(*) FROM loan {rows}"))
        assert spent(run) == before, rows


@pytest.mark.parametrize(
    "arguments",
    [
        ("--workload", "ranges(loaned_on)"),
        ("--workload", "loan.loaned_on"),
        ("--workload", "ranges(loan.loaned_on); DROP"),
        ("--workload", "ranges(loan.loaned_on) FROM x)"),
        (),
    ],
)
def test_what_is_no_workload_is_said(run: Run, file: str, arguments: tuple[str, ...]) -> None:
    refused = run("release", *arguments, "--yes")
    assert (refused.exit_code, "--workload" in refused.stderr) == (2, True)
    both = run("release", file, "--workload", "ranges(loan.loaned_on)", "--yes")
    assert (both.exit_code, "not both" in both.stderr) == (2, True)


def test_a_refused_statement_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.sql"
    path.write_text("SELECT COUNT(*) FROM student;\n\n  SELECT gpa FROM student", "utf-8")
    result = run("release", str(path), "--yes")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "ERROR PV002 at 3:10: statement 2: column" in result.stderr
    assert "\n    SELECT gpa FROM student\n           ^\n" in result.stderr
    assert spent(run) == 0


def test_more_than_is_left(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "much.sql"
    path.write_text(
        "SET dpsql.epsilon = 1;"
        + ";".join(f"SELECT COUNT(*) FROM student WHERE gpa > 1.{i:02}" for i in range(11)),
        "utf-8",
    )
    result = run("release", str(path), "--yes")
    assert result.exit_code == 4
    assert spent(run) == 0


def test_a_folder_is_written_whole(run: Run, file: str, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "report"
    ok(run("release", file, "--yes", "--output", str(out)))
    assert sorted(path.name for path in out.iterdir()) == ["01.csv", "02.csv", "03.csv", "04.csv"]
    assert (out / "02.csv").read_text("utf-8").startswith("major,n\nBiology,")
    assert list(out.parent.iterdir()) == [out]
    before = spent(run)
    full = run("release", file, "--yes", "--output", str(out))
    assert (full.exit_code, "is not empty" in full.stderr) == (2, True)
    (tmp_path / "empty").mkdir()
    ok(run("release", file, "--output", str(tmp_path / "empty")))
    assert len(list((tmp_path / "empty").iterdir())) == 4
    assert spent(run) == before


def test_what_cannot_be_written_is_stored(
    run: Run, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(command.os, "fsync", full)
        patch.setattr("dpsql.budget.journal._sync", lambda fd: None)
        result = run("release", file, "--yes", "--output", str(tmp_path / "report"))
    assert result.exit_code == 2
    assert "running the file again is free" in result.stderr
    assert not (tmp_path / "report").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    before = spent(run)
    ok(run("release", file, "--output", str(tmp_path / "report")))
    assert spent(run) == before == 0.281233


@pytest.mark.parametrize(("said", "price"), [("n", 0), ("y", 0.281233)])
def test_at_a_terminal_it_asks(run: Run, campus: Path, file: str, said: str, price: float) -> None:
    ours, theirs = pty.openpty()
    process = Forked(
        ["-m", "dpsql.cli", "-P", str(campus), "release", file, "--format", "csv"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"Spend it?" not in shown:
        shown += os.read(ours, 1000)
    assert b"all 4 statements: epsilon 0.281233" in shown
    os.write(ours, said.encode() + b"\n")
    answers, _ = process.communicate()
    assert process.returncode == 0
    os.close(ours)
    assert (b"major,n" in answers) == bool(price)
    assert spent(run) == price


STOPPED = """
import os, sys
from dpsql.budget.ledger_store import LedgerStore
from dpsql.cli.application import run
original = LedgerStore.commit
def commit(self, *arguments):
    if sys.argv.pop() == "after":
        original(self, *arguments)
    os.kill(os.getpid(), 9)
LedgerStore.commit = commit
moment = sys.argv[-1]
sys.argv = sys.argv[:-1]
import dpsql.cli.application as application
sys.argv.append(moment)
application.program(sys.argv[1:-1], prog_name="dpsql")
"""


@pytest.mark.parametrize(("moment", "again"), [("before", 0.281233), ("after", 0)])
def test_killed_between_the_charge_and_the_answers(
    run: Run, campus: Path, file: str, moment: str, again: float
) -> None:
    arguments = ["-P", str(campus), "release", file, "--yes"]
    stopped = run_forked(["-c", STOPPED, *arguments, moment])
    assert (stopped.returncode, stopped.stdout) == (-signal.SIGKILL, ""), stopped.stderr
    assert spent(run) == 0.281233
    logged = length_of_log(campus)
    first = ok(run("release", file, "--yes"))
    assert spent(run) == pytest.approx(0.281233 + again)
    assert (length_of_log(campus) == logged) == (not again)
    assert ok(run("release", file)).stdout == first.stdout

"""`query` and `explain`, from the command line to the database and back."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.cli.owner import open_ledger

from .conftest import ENDLESS, Run, length_of_log

BY_MAJOR = "SELECT major, COUNT(*) AS n FROM student GROUP BY major ORDER BY n DESC"


def spent(run: Run) -> float:
    status = json.loads(run("budget", "show", "--json").stdout)
    return float(status["epsilon"]["spent"])


def ok(result: Result) -> Result:
    assert result.exit_code == 0, result.output
    return result


def test_a_table_and_its_cost(run: Run) -> None:
    result = ok(run("query", BY_MAJOR))
    lines = result.stdout.split("\n")
    assert lines[0].split("|")[0].strip() == "major"
    assert lines[2].startswith(" CS ")
    assert lines[-2] == "(6 rows)"
    assert result.stderr == "charged epsilon 0.1; 9.9 left\n"


def test_a_repeated_question_is_free_and_the_same(run: Run) -> None:
    first, second = ok(run("query", BY_MAJOR)), ok(run("query", BY_MAJOR))
    assert first.stdout == second.stdout
    assert second.stderr.startswith("free: ")
    assert spent(run) == 0.1


def test_formats(run: Run) -> None:
    table = list(csv.reader(io.StringIO(ok(run("query", BY_MAJOR, "--format", "csv")).stdout)))
    body = json.loads(ok(run("query", BY_MAJOR, "--json")).stdout)
    assert [[str(cell) for cell in row] for row in body["rows"]] == table[1:]
    assert [column["name"] for column in body["columns"]] == table[0] == ["major", "n"]
    assert body["receipt"]["reused"] is True
    assert ok(run("query", BY_MAJOR, "--format", "json")).stdout == json.dumps(body) + "\n"
    assert ok(run("query", BY_MAJOR, "--format", "markdown")).stdout.startswith(
        "| major | n |\n| --- | ---: |\n"
    )


def test_accuracy(run: Run) -> None:
    sql = "SELECT COUNT(*) AS n FROM student"
    assert "charge: epsilon 0.0594 chosen for ± 50" in ok(run("explain", sql, "--accuracy", "50")).stdout
    assert ok(run("query", sql, "--accuracy", "50")).stderr == (
        "charged epsilon 0.0594; 9.9406 left\nNOTE: epsilon 0.0594 chosen for ± 50\n"
    )
    assert "free: " in ok(run("query", sql, "--accuracy", "50")).stderr
    refused = run("query", sql, "--accuracy", "0")
    assert refused.exit_code == 3
    assert "ERROR PV301: dpsql.accuracy is a number above 0" in refused.stderr


def test_intervals_and_epsilon(run: Run) -> None:
    result = ok(
        run("query", "SELECT COUNT(*) AS n FROM student", "--intervals", "0.95", "--epsilon", "0.5", "--json")
    )
    body = json.loads(result.stdout)
    assert len(body["columns"]) == 3
    assert body["receipt"]["epsilon"] == 0.5


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "1e-320", "2", "0.1'; SELECT 1"])
def test_a_bad_epsilon_is_refused_before_anything_is_charged(run: Run, value: str) -> None:
    result = run("query", "SELECT COUNT(*) FROM student", f"--epsilon={value}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert spent(run) == 0


def test_several_statements_in_order(run: Run) -> None:
    script = (
        "SET dpsql.epsilon = 0.2; SELECT COUNT(*) AS a FROM student; -- and\nSELECT COUNT(*) AS b FROM loan;"
    )
    result = ok(run("query", "--json", input=script))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["command"] for answer in answers] == ["SET", "SELECT", "SELECT"]
    assert [answer["receipt"]["epsilon"] for answer in answers[1:]] == [0.2, 0.2]


def test_the_first_failure_ends_the_run(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "three.sql"
    file.write_text(
        "SELECT COUNT(*) FROM student;\nSELECT gpa,\n  name FROM student;\nSELECT COUNT(*) FROM loan", "utf-8"
    )
    result = run("query", "-f", str(file), "--format", "csv")
    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 2
    assert "ERROR PV002 at 2:8:" in result.stderr
    assert "\n  SELECT gpa,\n         ^\nHINT: " in result.stderr


def test_parameters(run: Run) -> None:
    sql = "SELECT COUNT(*) AS n FROM student WHERE major = $1 AND gpa > $2"
    body = json.loads(ok(run("query", sql, "-p", "CS", "-p", "3.5", "--json")).stdout)
    assert body["rows"][0][0] > 0
    assert run("query", sql, "-p", "CS").exit_code == 3
    assert run("query", "SELECT COUNT(*) FROM student; SHOW dpsql.epsilon", "-p", "1").exit_code == 2


def test_explain_costs_nothing(run: Run) -> None:
    result = ok(run("explain", BY_MAJOR))
    assert "0.1" in result.stdout
    assert json.loads(ok(run("explain", BY_MAJOR, "--json")).stdout)
    assert run("explain", "SELECT name FROM student").exit_code == 3
    assert spent(run) == 0


def test_a_json_error(run: Run) -> None:
    result = run("query", "SELECT name FROM student", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    error = json.loads(result.stderr)["error"]
    assert (error["code"], error["line"], error["column"]) == ("PV002", 1, 8)


def test_missing_and_undeclared_tables_are_the_same(run: Run, campus: Path) -> None:
    text = campus.read_text("utf-8")
    campus.write_text(text[: text.index("[tables.enrolment]")], "utf-8")
    there = run("query", "SELECT COUNT(*) FROM enrolment")
    missing = run("query", "SELECT COUNT(*) FROM enrolmenx")
    assert there.exit_code == missing.exit_code == 3
    assert there.stderr == missing.stderr.replace("enrolmenx", "enrolment")


def test_the_budget_ends(run: Run, campus: Path) -> None:
    text = campus.read_text("utf-8").replace("epsilon    = 10 ", "epsilon    = 0.15 ")
    campus.write_text(text.replace("max_epsilon = 1 ", "max_epsilon = 0.1 "), "utf-8")
    ok(run("query", "SELECT COUNT(*) FROM student"))
    result = run("query", "SELECT COUNT(*) FROM loan")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "ERROR 53V01" in result.stderr
    ok(run("query", "SELECT COUNT(*) FROM student"))


def test_the_database_fails_after_the_charge(run: Run, campus: Path) -> None:
    ok(run("query", "SELECT COUNT(*) FROM student"))
    (campus.parent / "campus.duckdb").unlink()
    result = run("query", "SELECT COUNT(*) FROM loan")
    assert (result.exit_code, result.stdout) == (6, "")
    assert "ERROR 58V01: the database could not answer this statement\n" in result.stderr


def test_budget_log_tells_the_charge(run: Run) -> None:
    ok(run("query", BY_MAJOR))
    entries = [json.loads(line) for line in run("budget", "log", "--json").stdout.splitlines()]
    assert sum(entry["epsilon"] for entry in entries) == pytest.approx(0.1)
    assert {entry["analyst"] for entry in entries} == {"local"}
    assert {entry["state"] for entry in entries} == {"committed"}
    assert "student" in run("budget", "log").stdout


def test_refresh_makes_the_question_cost_again(run: Run) -> None:
    ok(run("query", BY_MAJOR))
    run("refresh")
    assert ok(run("query", BY_MAJOR)).stderr.startswith("charged epsilon 0.1")
    assert spent(run) == 0.2


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (("query",), ""),
        (("query", " ; -- nothing"), ""),
        (("query", "SELECT 1", "-f", "-"), ""),
        (("query", "SELECT 1", "--format", "xml"), ""),
        (("explain", "SELECT 1; SELECT 2"), ""),
        (("nonsense",), ""),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...], given: str) -> None:
    assert run(*arguments, input=given).exit_code == 2


def test_statements_that_are_not_utf8(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.sql"
    file.write_bytes(b"SELECT '\xff'")
    assert run("query", "-f", str(file)).exit_code == 2


def test_as_a_process(campus: Path) -> None:
    environment = {**os.environ, "DPSQL_POLICY": str(campus)}
    done = subprocess.run(
        [sys.executable, "-m", "dpsql.cli", "--analyst", "alice", "query", "--format", "csv"],
        input="SELECT COUNT(*) AS n FROM student",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.startswith("n\n")
    assert done.stderr == "charged epsilon 0.1; 9.9 left\n"


def test_control_c_cancels_the_statement(campus: Path) -> None:
    """The terminal says what is done, and for how long; the statement would take years; what it was charged stays."""
    before = length_of_log(campus)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsql.cli", "-P", str(campus), "query", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    deadline = threading.Timer(300, process.kill)
    deadline.start()
    shown = b""
    while not shown.count(b"\r") or length_of_log(campus) == before:
        shown += os.read(ours, 1000)
    while b" computing from the noisy numbers, " not in shown:
        shown += os.read(ours, 1000)
    process.send_signal(signal.SIGINT)
    while shown.count(b"\n") < 2:
        shown += os.read(ours, 1000)
    assert b"ERROR 57014: the statement was cancelled\r\nDETAIL: epsilon 0.1 " in shown
    out, _ = process.communicate()
    deadline.cancel()
    assert (process.returncode, out) == (130, b"")
    os.close(ours)
    with open_ledger(campus) as ledger:
        assert ledger.status().epsilon_spent_nano == 10**8


class Interrupted(io.RawIOBase):
    """Standard input on which Ctrl-C is pressed."""

    def readable(self) -> bool:
        return True

    def readinto(self, _: object) -> int:
        raise KeyboardInterrupt


def test_control_c_elsewhere(campus: Path) -> None:
    result = CliRunner().invoke(program, ["-P", str(campus), "query"], input=io.BufferedReader(Interrupted()))
    assert result.exit_code == 130
    assert result.stderr == "ERROR 57014: the statement was cancelled\n"


def dpsql(campus: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a user does: with its output buffered."""
    command = [sys.executable, "-m", "dpsql.cli", "-P", str(campus), *arguments]
    environment = options.pop("env", dict(os.environ))
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(command, check=False, env=environment, **options)


@pytest.mark.parametrize("both", [False, True])
def test_a_pipe_that_nobody_reads(campus: Path, both: bool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = dpsql(campus, "query", "SELECT 1", stdout=writer, stderr=writer if both else subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr


def test_a_full_disk(campus: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = dpsql(campus, "query", "SELECT 1", stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2
        assert done.stderr == b"Error: The output cannot be written: No space left on device.\n"
        assert dpsql(campus, "query", "SELECT x", stdout=full, stderr=full).returncode == 3


def test_bytes_that_are_no_text(campus: Path) -> None:
    for arguments in (["query", "SELECT '\udcff'"], ["explain", "SELECT $1", "-p", "\udcff"]):
        done = dpsql(campus, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"not UTF-8" in done.stderr


def test_a_file_from_windows(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "two.sql"
    file.write_bytes("\ufeffSELECT 1 AS x;\r\nSELECT\r\n  nothing FROM student;\r\n".encode())
    result = run("query", "-f", str(file), "--format", "csv")
    assert (result.exit_code, result.stdout) == (3, "x\n1\n")
    assert "at 3:3:" in result.stderr
    assert "\n    nothing FROM student;\n    ^\n" in result.stderr


def test_a_letter_that_the_terminal_lacks(campus: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = dpsql(campus, "query", "--format", "csv", "SELECT '日'", stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stdout) == (0, b"?column?\n\\u65e5\n")


def test_a_key_that_would_steer_the_terminal(run: Run, campus: Path) -> None:
    with duckdb.connect(str(campus.parent / "campus.duckdb")) as database:
        database.execute("INSERT INTO course VALUES (999, chr(27) || '[2J', 'CS', 1)")
    assert ok(run("query", "SELECT title FROM course WHERE id = 999")).stdout.splitlines()[2] == " \\x1b[2J"


def test_a_statement_that_is_too_long(run: Run) -> None:
    result = run("query", input="SELECT " + "1+" * 40_000 + "1")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "ERROR 54001" in result.stderr


def test_public_rows_are_free(run: Run) -> None:
    result = ok(run("query", "SELECT COUNT(*) FROM course"))
    assert result.stderr == "free: nothing private was asked; epsilon 10 left\n"


def test_an_analyst_without_a_name(campus: Path) -> None:
    for name in ("", "a\nb", "\x1b"):
        arguments = ["-P", str(campus), "--analyst", name, "query", "SELECT 1"]
        assert CliRunner().invoke(program, arguments).exit_code == 2


def test_several_percentiles_are_shown_as_an_array(run: Run) -> None:
    sql = "SELECT PERCENTILE_CONT(ARRAY[0.75, 0.25, 0.5]) WITHIN GROUP (ORDER BY gpa) AS q FROM student"
    (found,) = json.loads(ok(run("query", sql, "--json")).stdout)["rows"][0]
    assert found[1] <= found[2] <= found[0]
    shown = "{" + ",".join(f"{value:.15g}" for value in found) + "}"
    assert ok(run("query", sql)).stdout.split("\n")[2].strip() == shown
    assert list(csv.reader(io.StringIO(ok(run("query", sql, "--format", "csv")).stdout)))[1] == [shown]

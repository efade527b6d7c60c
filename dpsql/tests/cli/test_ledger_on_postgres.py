"""The owner's commands with a ledger on a real Postgres, shared by two policies' folders."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.tests.support.postgres_fixtures import postgres_majors
from dpsql.tests.support.postgres_server import PostgresServer

from .conftest import Run


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(postgres_majors()[-1], durable=True) as running:
        yield running


@pytest.fixture
def policy(campus: Path, server: PostgresServer) -> Path:
    """The demo's policy with its ledger in a database of a server."""
    url = server.url(server.create_database())
    text = campus.read_text("utf-8")
    named = re.sub(r"(?m)^ledger.*$", f'ledger = "{url}"\ndataset = "campus"', text, count=1)
    assert named != text
    campus.write_text(named, "utf-8")
    for left in campus.parent.glob("campus-ledger.*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return campus


def test_a_ledger_is_made_by_create_alone(run: Run, policy: Path) -> None:
    for arguments in (["query", "SELECT COUNT(*) FROM student"], ["budget", "show"], ["refresh"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (7, "")
        assert "dpsql budget create" in result.stderr
    assert list(policy.parent.glob("campus-ledger*")) == []
    made = run("budget", "create")
    assert (
        made.stdout
        == "The ledger is made. Keep it, and its log.\nepsilon  0 of 10 spent, 10 left; about 100 more statements at 0.1\n"
    )
    assert [path.name for path in policy.parent.glob("campus-ledger*")] == ["campus-ledger.log"]
    assert run("query", "SELECT COUNT(*) FROM student").exit_code == 0
    assert run("check").exit_code == 0
    again = run("budget", "create").stdout
    assert (
        again
        == "The ledger was there already.\nepsilon  0.1 of 10 spent, 9.9 left; about 99 more statements at 0.1\n"
    )


def test_two_machines_share_the_budget_and_the_answers(run: Run, policy: Path, tmp_path: Path) -> None:
    run("budget", "create")
    second = shutil.copytree(policy.parent, tmp_path / "second") / policy.name
    (second.parent / "campus-ledger.log").unlink()
    first = run("query", "--format", "csv", "SELECT COUNT(*) AS n FROM student")
    again = run("query", "--format", "csv", "SELECT COUNT(*) AS n FROM student", policy=second)
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert first.stdout == again.stdout
    assert run("query", "SELECT AVG(gpa) FROM student", policy=second).exit_code == 0
    assert json.loads(run("budget", "show", "--json").stdout)["epsilon"]["spent"] == 0.2
    granted = run("budget", "grant", "2", policy=second)
    assert granted.stdout == "The cap for everybody together is now epsilon 12.\n"
    assert "0.2 of 12 spent" in run("budget", "show").stdout
    assert "epoch" in run("refresh").output
    assert json.loads(run("budget", "show", "--json", policy=second).stdout)["epoch"] == 2
    log = run("budget", "log", policy=second).stdout
    assert log.count("committed") == 2


def test_a_server_that_is_gone_is_told_in_constant_words(run: Run, policy: Path) -> None:
    run("budget", "create")
    text = policy.read_text("utf-8")
    policy.write_text(re.sub(r"port=\d+", "port=1", text), "utf-8")
    result = run("query", "SELECT COUNT(*) FROM student")
    assert (result.exit_code, result.stdout) == (7, "")
    assert "the ledger's server cannot be reached" in result.stderr
    assert "administrator" not in result.stderr


def test_what_the_owner_measured_here_is_quoted_there(run: Run, policy: Path, tmp_path: Path) -> None:
    run("budget", "create")
    second = shutil.copytree(policy.parent, tmp_path / "second") / policy.name
    (second.parent / "campus-ledger.log").unlink()
    never = " ".join(run("query", "SELECT COUNT(*) FROM enrolment", policy=second).stderr.split())
    assert (
        '12 rows of "enrolment"; no error bar holds what that leaves out: the owner has not measured it (dpsql bounds enrolment)'
        in never
    )
    assert run("bounds", "enrolment").stdout.startswith("charged epsilon 0.1; 9.8 left")
    quoted = " ".join(run("query", "SELECT COUNT(*) FROM enrolment", policy=second).stderr.split())
    assert re.search(r'rows of "enrolment", about [\d.]+ % of all rows, at least [\d.]+ % \(meas', quoted)
    run("refresh")
    later = " ".join(run("query", "SELECT COUNT(*) FROM enrolment").stderr.split())
    assert later.endswith("; the data have changed since); no error bar holds what that leaves out")

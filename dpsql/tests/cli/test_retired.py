"""An edit of one table forgets nothing of another, and `dpsql check` says what it retires: on the demo's own files."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from dpsql.budget.ledger_store import LedgerStore
from dpsql.tests.laws.planting import plant

from .conftest import COUNT, Run

LOANS = "SELECT COUNT(*) AS n FROM loan"
BY_BRANCH = "SELECT branch, SUM(fee) AS fees FROM loan GROUP BY branch"


def asked(run: Run, sql: str) -> tuple[object, float]:
    """Return a statement's rows, and what they cost."""
    found = json.loads(run("query", "--format", "json", sql).stdout)
    return found["rows"], found["receipt"]["epsilon"]


def edit(campus: Path, old: str, new: str) -> None:
    text = campus.read_text()
    assert text.count(old) == 1
    campus.write_text(text.replace(old, new))


def told(run: Run) -> list[str]:
    return [
        line.removeprefix("warning: campus.toml: ")
        for line in run("check").stdout.splitlines()
        if "stored answer" in line
    ]


def test_an_edit_of_one_table_leaves_the_answers_of_another(run: Run, campus: Path) -> None:
    students, loans, fees = (asked(run, sql)[0] for sql in (COUNT, LOANS, BY_BRANCH))
    assert not told(run)
    edit(campus, "max_rows   = 60", "max_rows   = 50")
    assert told(run) == [
        "2 of 3 stored answers are found no more, as what they rest on is said otherwise now: loan (2); they cost "
        "epsilon 0.2, and whoever asks again is charged again"
    ]
    assert asked(run, COUNT) == (students, 0)
    again, cost = asked(run, LOANS)
    assert again != loans
    assert cost == 0.1
    edit(campus, "max_rows   = 50", "max_rows   = 60")
    assert [asked(run, sql) for sql in (COUNT, LOANS, BY_BRANCH)] == [(students, 0), (loans, 0), (fees, 0)]


def test_an_edit_of_a_column_retires_what_reads_it(run: Run, campus: Path) -> None:
    students, loans, _ = (asked(run, sql)[0] for sql in (COUNT, LOANS, BY_BRANCH))
    edit(campus, "fee       = { bounds = [0, 10] }", "fee       = { bounds = [0, 12] }")
    report = json.loads(run("check", "--json").stdout)
    assert report["retired"] == {
        "answers": 3, "retired": 1, "epsilon": "0.1", "rho": "0.005", "by": {"loan.fee": 1}
    }  # fmt: skip
    assert [asked(run, sql) for sql in (COUNT, LOANS)] == [(students, 0), (loans, 0)]
    assert asked(run, BY_BRANCH)[1] == 0.1


def test_what_is_added_retires_nothing(run: Run, campus: Path) -> None:
    before = [asked(run, sql)[0] for sql in (COUNT, LOANS, BY_BRANCH)]
    with duckdb.connect(str(campus.parent / "campus.duckdb")) as connection:
        connection.execute("CREATE TABLE term (name VARCHAR PRIMARY KEY)")
    campus.write_text(f"{campus.read_text()}\n[tables.term]\npublic = true\n[analysts.bob]\nepsilon = 1\n")
    assert not told(run)
    assert [asked(run, sql) for sql in (COUNT, LOANS, BY_BRANCH)] == [(rows, 0) for rows in before]


def test_what_bounds_measured_is_kept_by_the_way_to_the_owner(run: Run, campus: Path) -> None:
    assert run("bounds", "loan").exit_code == 0
    edit(campus, "fee       = { bounds = [0, 10] }", "fee       = { bounds = [0, 12] }")
    assert not told(run)
    assert "charged epsilon" not in run("bounds", "loan").stdout


def test_answers_of_before_are_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version wrote no grounds, and made other keys."""
    plant(monkeypatch, LedgerStore._charge, ("grounds=one.claim.grounds", "grounds=None"))
    asked(run, COUNT)
    monkeypatch.undo()
    asked(run, LOANS)
    assert told(run) == [
        "1 of 2 stored answers is found no more, as what it rests on is said otherwise now: an earlier version of "
        "dpsql (1); it cost epsilon 0.1, and whoever asks again is charged again"
    ]
    assert run("refresh").exit_code == 0
    assert not told(run)

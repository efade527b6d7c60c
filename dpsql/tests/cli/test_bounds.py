"""`dpsql bounds`: what an owner sees, pays and pastes."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsql.engine.session import Session
from dpsql.errors import Refusal
from dpsql.policy import load_policy
from dpsql.tests.support.forked import Forked

from .conftest import Run

LINE = re.compile(r"max_rows = (\d+)  # measured privately, epsilon 0\.1 of the ledger, \d{4}-\d\d-\d\d")
"""What an owner pastes."""


def test_what_is_printed_can_be_pasted_and_is_quoted_then(run: Run, campus: Path) -> None:
    result = run("bounds", "loan")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("charged epsilon 0.1; 9.9 left\n\n")
    assert " people have rows in loan (" in result.stdout
    assert "  max_rows = 60 (declared" in result.stdout
    assert re.search(r"    it leaves out at most [\d.]+ % of all rows, if who has more than", result.stdout)
    line = LINE.search(result.stdout)
    assert line
    assert 10 <= int(line[1]) <= 200
    campus.write_text(campus.read_text("utf-8").replace("max_rows   = 60", line[0]), "utf-8")
    assert load_policy(campus).tables["loan"].max_rows == int(line[1])
    asked = run("query", "SELECT COUNT(*) FROM loan")
    told = " ".join(asked.stderr.split())
    assert re.search(r'rows of "loan", about [\d.]+ % of all rows, at least [\d.]+ % \(measured ', told)
    again = run("bounds", "loan")
    assert again.stdout.startswith("free: measured before, and stored; 9.8 left\n\n")
    assert line[0].partition("  #")[0] in again.stdout  # with what was paid for what is shown now


def test_columns_and_json(run: Run) -> None:
    arguments = [
        "bounds",
        "loan",
        "--epsilon",
        "6",
        "--column",
        "fee=0,1000",
        "--column",
        "days_out",
        "--json",
    ]
    body = json.loads(run(*arguments).stdout)
    assert (body["table"], body["epsilon"], body["for_epsilon"], body["charged"]) == (
        "loan",
        "6",
        "0.1",
        {"epsilon": "6"},
    )
    assert body["max_rows"]["declared"] == 60
    assert [one["max_rows"] for one in body["people"]] == sorted({60, body["max_rows"]["suggested"]})
    assert all(low <= one["people"] <= high for one in body["people"] for low, high in [one["people_95"]])
    fee, days = body["columns"]
    assert (fee["name"], days["name"]) == ("fee", "days_out")
    assert 0 <= float(fee["bounds"][0]) < float(fee["bounds"][1]) <= 11
    assert "fee = { bounds = [" in body["policy"]
    printed = run(*arguments[:-1]).stdout
    assert body["policy"] in printed
    assert "free: measured before, and stored; 4 left" in printed


def test_where_there_is_nothing_to_bound(run: Run) -> None:
    for table, why in (("course", "is public"), ("student", "has one row a person")):
        result = run("bounds", table)
        assert (result.exit_code, result.stderr) == (0, "")
        assert why in result.stdout
        assert result.stdout.endswith(" Nothing was charged.\n")
        assert why in json.loads(run("bounds", table, "--json").stdout)["nothing_to_measure"]
    assert run("budget", "show").stdout.startswith("epsilon  0 of 10 spent")


def test_the_ledger_says_that_the_owner_asked(run: Run) -> None:
    assert run("bounds", "loan", "--column", "fee=0,99").exit_code == 0
    entries = [json.loads(line) for line in run("budget", "log", "--json").stdout.splitlines()]
    assert {entry["statement"] for entry in entries} == {"dpsql bounds loan --column fee=0,99"}
    assert all(entry["analyst"].startswith("owner ") for entry in entries)
    assert sum(entry["epsilon"] for entry in entries) == pytest.approx(0.1)


def test_a_budget_that_is_too_small(run: Run) -> None:
    result = run("--analyst", "analyst", "bounds", "loan", "--epsilon", "10")
    assert result.exit_code == 0
    result = run("bounds", "loan", "--for-epsilon", "0.5")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "needs epsilon 0.1, left 0 of the dataset's budget" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nothing"], 5, 'campus.toml: no table "nothing"'),
        (["loan", "--column", "branch=0,1"], 5, "the column is text"),
        (["loan", "--column", "fee=0"], 5, "write the two ends"),
        (["loan", "--epsilon", "-1"], 3, "epsilon is not a decimal number"),
        (["loan", "--for-epsilon", "many"], 3, "epsilon is not a decimal number"),
        (["loan", "--epsilon", "0.000001", *["--column", "fee"] * 600], 3, "epsilon is too small"),
    ],
)
def test_wrong_usage_costs_nothing(run: Run, arguments: list[str], code: int, said: str) -> None:
    result = run("bounds", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert run("budget", "show").stdout.startswith("epsilon  0 of 10 spent")


def test_no_statement_leads_there(campus: Path) -> None:
    with Session.open(campus) as session:
        for text in (
            "dpsql bounds loan",
            "BOUNDS loan",
            "SET dpsql.bounds = 'loan'",
            "SELECT bounds('loan')",
        ):
            with pytest.raises(Refusal):
                session.execute(text)
        assert session.dataset.store.spent().epsilon_nano == 0


def test_help_speaks_to_who_has_never_heard_of_epsilon(run: Run) -> None:
    text = " ".join(run("bounds", "--help").stdout.split())
    assert "as much as one usual question" in text
    assert "dpsql bounds loan --epsilon 0.5 --column fee=0,1000" in text


# --- all tables ------------------------------------------------------------------------------------------------


def test_all_tables_for_a_part_of_the_budget(run: Run) -> None:
    refused = run("bounds", "--all")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Say --yes to spend epsilon 0.1 on this." in refused.stderr
    result = run("bounds", "--all", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    for table in ("loan", "enrolment", "review"):
        assert f" people have rows in {table} (" in result.stdout
    assert run("budget", "show").stdout.startswith("epsilon  0.099999999 of 10 spent")  # a third each
    again = run("bounds", "--all", "--yes", "--json")
    assert {(one["table"], one["charged"]["epsilon"]) for one in json.loads(again.stdout)} == {
        ("loan", "0"),
        ("enrolment", "0"),
        ("review", "0"),
    }
    asked = run("query", "--intervals", "0.95", "SELECT branch, COUNT(*) FROM loan GROUP BY branch")
    assert " ".join(asked.stderr.split()).endswith("; the error bars hold the noise and what that leaves out")


@pytest.mark.parametrize("arguments", [[], ["loan", "--all"], ["--all", "--column", "fee=0,9", "--yes"]])
def test_one_table_or_all(run: Run, arguments: list[str]) -> None:
    result = run("bounds", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Name one table, or say --all" in result.stderr


def test_a_price_that_the_budget_does_not_hold_is_not_begun(run: Run) -> None:
    assert run("bounds", "loan", "--epsilon", "9.5").exit_code == 0
    result = run("bounds", "--all", "--epsilon", "0.8", "--for-epsilon", "1", "--yes")
    assert (result.exit_code, result.stdout) == (4, "")
    assert run("budget", "show").stdout.startswith("epsilon  9.5 of 10 spent")


@pytest.mark.parametrize(("said", "spent"), [("n", "0"), ("y", "0.099999999")])
def test_a_new_ledger_offers_it(run: Run, campus: Path, said: str, spent: str) -> None:
    for path in campus.parent.glob("campus-ledger*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ours, theirs = pty.openpty()
    process = Forked(
        ["-m", "dpsql.cli", "-P", str(campus), "budget", "create"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"once?" not in shown:
        shown += os.read(ours, 1000)
    assert b"people have in loan, enrolment, review, for epsilon 0.1 of 10" in b" ".join(shown.split())
    os.write(ours, said.encode() + b"\n")
    answers, _ = process.communicate()
    assert process.returncode == 0
    os.close(ours)
    assert (b"people have rows in loan" in answers) == (said == "y")
    assert run("budget", "show").stdout.startswith(f"epsilon  {spent} of 10 spent")

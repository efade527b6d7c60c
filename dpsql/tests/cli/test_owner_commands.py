"""`check`, `init`, `budget` and `refresh`, on a real database and a real ledger."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.cli.demo import make_folder
from dpsql.policy import load_policy
from dpsql.tests.support.length import tried

from .conftest import Run


def test_check(run: Run) -> None:
    result = run("check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "gpa" in result.stdout
    assert json.loads(run("check", "--json").stdout)["problems"] == []


def test_check_tells_of_a_missing_ledger_and_makes_none(run: Run, campus: Path) -> None:
    remove_ledger(campus)
    result = run("check")
    assert (result.exit_code, result.stderr) == (0, ""), "no fault: the next step makes it"
    assert (
        f"The ledger does not exist yet, and nothing is answered without it. For a new dataset: dpsql -P {campus}"
        in (result.stdout)
    )
    assert "gpa" in result.stdout
    body = json.loads(run("check", "--json").stdout)
    assert (body["has_ledger"], body["ledger_problem"]) == (False, None)
    assert list(campus.parent.glob("campus-ledger.db*")) == []


def test_check_fails_for_a_ledger_that_cannot_be_used(run: Run, campus: Path) -> None:
    run("query", "SELECT COUNT(*) FROM student")
    (campus.parent / "campus-ledger.db.log").unlink()
    result = run("check")
    assert result.exit_code == 7
    assert "ERROR F0V02: the ledger's log campus-ledger.db.log is missing\nHINT: restore it" in result.stdout
    body = json.loads(run("check", "--json").stdout)
    assert "log" in body["ledger_problem"]["message"]
    assert body["has_ledger"]


def test_the_four_steps_of_the_readme_work_in_their_order(
    run: Run, campus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(campus.parent / "campus.duckdb", tmp_path / "my.duckdb")
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    block = readme.split("## With your own data\n\n```\n")[1].split("```")[0]
    steps = [line.split("#")[0].split() for line in block.splitlines()]
    assert [step[1] for step in steps] == ["init", "check", "budget", "query"]
    for step in steps:
        text = ["SELECT COUNT(*) FROM student"] if step[1] == "query" else []
        result = run(*step[1:], *text, policy=Path("dpsql.toml"))
        assert result.exit_code == 0, (step, result.output)


def test_nothing_is_answered_without_a_ledger(run: Run, campus: Path) -> None:
    remove_ledger(campus)
    for arguments in (["query", "SELECT COUNT(*) FROM student"], ["budget", "show"], ["refresh"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (7, "")
        assert "dpsql budget create" in result.stderr
    assert list(campus.parent.glob("campus-ledger.db*")) == []


def test_budget_create(run: Run, campus: Path) -> None:
    remove_ledger(campus)
    result = run("budget", "create")
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == "The ledger is made. Keep it, and its log.\nepsilon  0 of 10 spent, 10 left; about 100 more statements at 0.1\n"
    )
    assert run("query", "SELECT COUNT(*) FROM student").exit_code == 0
    assert run("check").exit_code == 0
    again = run("budget", "create").stdout
    assert (
        again
        == "The ledger was there already.\nepsilon  0.1 of 10 spent, 9.9 left; about 99 more statements at 0.1\n"
    )


def test_a_lost_ledger_comes_back_from_its_log(run: Run, campus: Path) -> None:
    run("query", "SELECT COUNT(*) FROM student")
    (campus.parent / "campus-ledger.db").unlink()
    assert "0.1 of 10 spent" in run("budget", "show").stdout


def in_rho(campus: Path) -> None:
    """Have the policy say zcdp."""
    campus.write_text(
        campus.read_text("utf-8").replace("[privacy]", '[privacy]\naccounting = "zcdp"', 1), "utf-8"
    )


def test_a_ledger_that_is_made_for_zcdp_says_so_everywhere(run: Run, campus: Path) -> None:
    remove_ledger(campus)
    in_rho(campus)
    nothing = "epsilon 0 of 10 spent at delta 5e-7 (rho 0 of 1.478); about 295 more statements at 0.1\n"
    assert run("budget", "create").stdout == f"The ledger is made. Keep it, and its log.\n{nothing}"
    asked = run("query", "SELECT COUNT(*) FROM student")
    assert asked.stderr == "charged as epsilon 0.1 (rho 0.005); about 294 more statements at 0.1\n"
    again = run("query", "SELECT COUNT(*) FROM student")
    assert again.stderr == "free: answered from stored releases; about 294 more statements at 0.1\n"
    assert (
        "charge: as epsilon 0.1 (rho 0.005) (nothing, if"
        in run("explain", "SELECT SUM(gpa) FROM student").stdout
    )
    spent = "epsilon 0.4452 of 10 spent at delta 5e-7 (rho 0.005 of 1.478); about 294 more statements at 0.1"
    assert run("budget", "show").stdout.splitlines() == [
        spent,
        "delta 0 of 5e-7 spent, 5e-7 left, for groups that are found",
        "analyst analyst: epsilon 0 of 5 spent at delta 5e-7 (rho 0 of 0.4417); about 88 more statements at 0.1",
        "analyst local: epsilon 0.4452 spent at delta 5e-7 (rho 0.005), no cap of their own",
        "epoch 1",
    ]
    assert spent in run("query", "SHOW dpsql.budget").stdout
    assert json.loads(run("budget", "show", "--json").stdout)["statements_left"] == {
        "epsilon": 0.1,
        "number": 294,
    }
    assert "epsilon 0.1, rho 0.005  committed" in run("budget", "log").stdout


def test_the_owner_moves_a_ledger_once(run: Run, campus: Path) -> None:
    run("query", "SELECT COUNT(*) FROM student")
    refused = run("budget", "account", "zcdp")
    assert (refused.exit_code, refused.stdout) == (5, "")
    assert 'privacy.accounting: is "pure"; write "zcdp" first' in refused.stderr
    in_rho(campus)
    stopped = run("query", "SELECT COUNT(*) FROM student")
    assert stopped.exit_code == 7
    assert "dpsql budget account zcdp" in stopped.stderr
    spent = (
        "epsilon 0.4452 of 10 spent at delta 5e-7 (rho 0.005 of 1.478); about 294 more statements at 0.1\n"
    )
    assert run("budget", "account", "zcdp").stdout == f"The ledger adds up rho from now on.\n{spent}"
    assert run("budget", "account", "zcdp").stdout == f"The ledger adds up rho already.\n{spent}"
    stored = run("query", "--epsilon", "0.05", "SELECT COUNT(*) FROM student")
    assert stored.stderr.startswith("free: answered from stored releases"), "its noise is small enough"
    assert run("budget", "grant", "2").stdout == "The cap for everybody together is now epsilon 12.\n"
    assert "of 12 spent at delta 5e-7 (rho 0.005 of 2.011)" in run("budget", "show").stdout
    campus.write_text(campus.read_text("utf-8").replace('accounting = "zcdp"', ""), "utf-8")
    back = run("budget", "show")
    assert back.exit_code == 7
    assert "it was moved to zCDP" in back.stderr


def test_a_ration_is_shown_and_refuses(run: Run, campus: Path) -> None:
    head = '[privacy]\nperiod = "year"\nperiod_epsilon = 0.1\ncarry = false'
    campus.write_text(campus.read_text("utf-8").replace("[privacy]", head, 1), "utf-8")
    assert run("query", "SELECT COUNT(*) FROM student").exit_code == 0
    refused = run("query", "SELECT SUM(gpa) FROM student")
    assert refused.exit_code == 4
    assert "needs epsilon 0.1, left 0 of this year's budget" in refused.stderr
    assert re.search(r"wait until 2\d{3}-01-01 \(UTC\)", refused.stderr)
    shown = run("budget", "show").stdout
    assert re.search(r"this year's ration: epsilon 0.1 of 0.1 spent, until 2\d{3}-01-01 \(UTC\)", shown)
    assert "0.1 of 10 spent, 9.9 left" in shown, "the total is another thing"
    body = json.loads(run("budget", "show", "--json").stdout)
    assert [(one["of"], one["spent"], one["left"]) for one in body["rations"]] == [("this year's", 0.1, 0.0)]
    assert run("query", "SELECT COUNT(*) FROM student").stderr.startswith(
        "free: answered from stored releases"
    )


def remove_ledger(campus: Path) -> None:
    for entry in campus.parent.glob("campus-ledger.db*"):
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def test_check_says_who_sees_what_and_the_command_line_goes_by_it(run: Run, campus: Path) -> None:
    assert "who sees what" not in run("check").stdout
    granted = '[analysts.alice]\nepsilon = 1\ntables = ["student", "course"]\nhide = ["student.gpa", "course.title"]\n'
    campus.write_text(campus.read_text("utf-8") + granted, "utf-8")
    said = run("check").stdout
    assert said.endswith(
        "who sees what:\n  analyst: everything\n  alice: student without gpa, course without title\n"
    )
    lines = json.loads(run("check", "--json").stdout)["analysts"]
    assert lines == ["analyst: everything", "alice: student without gpa, course without title"]
    asked = run("--analyst", "alice", "query", "SELECT AVG(gpa) FROM student")
    assert asked.exit_code == 3
    assert 'column "gpa" does not exist' in asked.stderr
    assert run("--analyst", "alice", "query", "SELECT COUNT(*) FROM loan").exit_code == 3
    assert run("--analyst", "alice", "query", "SELECT COUNT(*) FROM student").exit_code == 0
    assert "title" not in run("--analyst", "alice", "query", "SELECT * FROM course LIMIT 1").output
    campus.write_text(campus.read_text("utf-8").replace("student.gpa", "student.gpq"), "utf-8")
    result = run("check")
    assert result.exit_code == 5
    assert 'analysts.alice.hide: "student.gpq" is no column that analysts see' in result.output


def test_check_finds_a_column_that_is_not_there(run: Run, campus: Path) -> None:
    campus.write_text(campus.read_text("utf-8").replace("gpa      =", "gpq      ="), "utf-8")
    result = run("check")
    assert result.exit_code == 5
    assert "gpq" in result.output
    assert run("check", "--json").exit_code == 5


def test_check_tells_all_that_is_wrong_in_one_round(run: Run, campus: Path) -> None:
    text = campus.read_text("utf-8")
    for old, new in (
        ("gpa      =", "gpq      ="),
        ("days_out  = { bounds = [0, 60] }", "days_out  = { bounds = [60, 0] }"),
        ("max_rows = 12", "max_row = 12"),
        ("[tables.course]\npublic = true", "[tables.course]\npublic = 3"),
        ("[analysts.analyst]\nepsilon  = 5", "[analysts.analyst]\nepsilon  = -5"),
        ("max_epsilon = 1 ", "max_epsilon = 11 "),
    ):
        assert old in text
        text = text.replace(old, new)
    campus.write_text(text, "utf-8")
    result = run("check")
    assert (result.exit_code, result.stderr) == (5, "")
    problems = [line for line in result.stdout.splitlines() if line.startswith("problem: ")]
    assert [line.split(": ")[2] for line in problems] == [
        "defaults.max_epsilon", "tables.loan.columns.days_out.bounds", "tables.enrolment.max_row", "tables.course.public",
        "analysts.analyst.epsilon", "tables.student.columns.gpq",
    ]  # fmt: skip
    assert len(json.loads(run("check", "--json").stdout)["problems"]) == 6
    stopped = run("query", "SELECT COUNT(*) FROM student")
    assert stopped.exit_code == 5
    assert "HINT: dpsql check lists 4 more like it" in stopped.stderr


def test_check_of_a_policy_without_its_head_lists_all_too(run: Run, campus: Path) -> None:
    text = campus.read_text("utf-8").replace("[privacy]\nepsilon    = 10", "[privacy]\nepsilon    = true")
    campus.write_text(text.replace('unit = "id"', "unit = 3"), "utf-8")
    result = run("check")
    assert result.exit_code == 5
    assert [line.split(": ")[2] for line in result.stdout.splitlines()] == [
        "privacy.epsilon",
        "tables.student.unit",
    ]
    assert len(json.loads(run("check", "--json").stdout)["problems"]) == 2


def test_explain_needs_no_ledger_and_makes_none(run: Run, campus: Path) -> None:
    with_one = run("explain", "SELECT AVG(gpa) FROM student")
    remove_ledger(campus)
    result = run("explain", "SELECT AVG(gpa) FROM student")
    assert (result.exit_code, result.stdout) == (0, with_one.stdout)
    assert result.stderr == (
        f"The ledger does not exist yet; what follows is as with a new one: dpsql -P {campus} budget create\n"
    )
    assert list(campus.parent.glob("campus-ledger.*")) == []
    assert run("explain", "SELECT gpa FROM student").exit_code == 3


def test_check_says_why_the_database_cannot_be_read(run: Run, campus: Path) -> None:
    (campus.parent / "campus.duckdb").unlink()
    result = run("check")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "the database file does not exist" in result.stderr


def test_a_policy_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("check", "--json", policy=tmp_path / "none.toml")
    assert (result.exit_code, result.stdout) == (5, "")
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "F0V01"
    assert "dpsql init" in error["hint"]


def test_init_writes_a_policy_that_loads(run: Run, campus: Path, tmp_path: Path) -> None:
    path = tmp_path / "first.toml"
    result = run("init", f"duckdb:{campus.parent / 'campus.duckdb'}", policy=path)
    assert result.exit_code == 0, result.output
    policy = load_policy(path)
    assert policy.root == "student"
    steps = [result.stderr.index(f"-P {path} {step}") for step in ("check", "budget create", "query")]
    assert steps == sorted(steps)
    assert (run("check", policy=path).exit_code, run("budget", "create", policy=path).exit_code) == (0, 0)
    assert run("check", policy=path).exit_code == 0
    assert run("query", "SELECT COUNT(*) FROM student", policy=path).exit_code == 0
    assert all(column.bounds is None for table in policy.tables.values() for column in table.columns)


def test_init_path_counts_from_the_current_folder(
    run: Run, campus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(campus.parent)
    (tmp_path / "elsewhere").mkdir()
    path = Path(os.pardir) / "elsewhere" / "first.toml"
    assert run("init", "duckdb:campus.duckdb", policy=path).exit_code == 0
    assert 'database = "duckdb:../demo/campus.duckdb"' in path.read_text("utf-8")
    assert run("budget", "create", policy=path).exit_code == 0
    assert run("check", policy=path).exit_code == 0


@pytest.mark.parametrize("mask", [0, 0o022])
def test_files_that_hold_secrets_are_their_owners_alone_from_the_first_moment(
    run: Run, campus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    opened: list[int] = []
    real = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **how: int) -> int:
        fd = real(path, flags, mode, **how)
        if str(path).endswith(".toml"):
            opened.append(os.fstat(fd).st_mode & 0o777)
        return fd

    monkeypatch.setattr(os, "open", watched)
    old = os.umask(mask)
    try:
        assert (
            run("init", f"duckdb:{campus.parent / 'campus.duckdb'}", policy=tmp_path / "first.toml").exit_code
            == 0
        )
        make_folder(tmp_path / "again", fresh=False)
    finally:
        os.umask(old)
    files = [tmp_path / "first.toml", *(tmp_path / "again").glob("*.toml")]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * 3 == opened


def test_check_warns_of_verifiers_that_others_can_read(run: Run, campus: Path) -> None:
    text = "others on this machine can read it, and the verifiers of passwords in it; chmod 600 campus.toml"
    for mode, is_open in ((0o600, False), (0o640, False), (0o604, True), (0o644, True)):
        campus.chmod(mode)
        result = run("check")
        assert (text in result.stdout) == is_open
        assert result.exit_code == 0
    campus.write_text(re.sub(r"^password.*$", "", campus.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    assert text not in run("check").stdout


def test_init_keeps_a_file_that_exists(run: Run, campus: Path) -> None:
    before = campus.read_bytes()
    result = run("init", f"duckdb:{campus.parent / 'campus.duckdb'}")
    assert result.exit_code == 2
    assert campus.read_bytes() == before


def test_init_makes_nothing_of_a_database_that_is_not_there(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "first.toml"
    assert run("init", f"duckdb:{tmp_path / 'none.duckdb'}", policy=path).exit_code == 5
    assert run("init", "mysql:none", policy=path).exit_code == 5
    assert not path.exists()
    assert not (tmp_path / "none.duckdb").exists()


def test_budget_show(run: Run) -> None:
    result = run("budget", "show")
    assert result.exit_code == 0
    assert "epsilon  0 of 10 spent, 10 left" in result.stdout
    assert json.loads(run("budget", "show", "--json").stdout)["epsilon"] == {
        "spent": 0.0,
        "cap": 10.0,
        "left": 10.0,
    }


def test_the_budget_of_all_analysts(run: Run, campus: Path) -> None:
    """Those of the policy, those who were charged, and the one who is asked for; with what is left in statements."""
    with campus.open("a", encoding="utf-8") as file:
        file.write("\n[analysts.alice]\nepsilon = 0.5\n")
    run("--analyst", "alice", "query", "SELECT COUNT(*) FROM student")
    run("--analyst", "carol", "query", "SELECT SUM(gpa) FROM student")
    assert run("budget", "show").stdout.splitlines() == [
        "epsilon  0.2 of 10 spent, 9.8 left; about 98 more statements at 0.1",
        "delta    0 of 1e-6 spent, 1e-6 left",
        "analyst  alice: epsilon 0.1 of 0.5 spent, 0.4 left; about 4 more statements at 0.1",
        "analyst  analyst: epsilon 0 of 5 spent, 5 left; about 50 more statements at 0.1",
        "analyst  carol: epsilon 0.1 spent, no cap of their own",
        "analyst  local: epsilon 0 spent, no cap of their own",
        "epoch    1",
    ]
    body = json.loads(run("budget", "show", "--json").stdout)
    assert body["analyst"] == {
        "name": "local",
        "spent": 0.0,
        "cap": None,
        "left": None,
        "statements_left": 98,
    }
    assert [(one["name"], one["spent"], one["statements_left"]) for one in body["analysts"]] == [
        ("alice", 0.1, 4), ("analyst", 0.0, 50), ("carol", 0.1, 98), ("local", 0.0, 98),
    ]  # fmt: skip
    assert body["statements_left"] == {"epsilon": 0.1, "number": 98}


def test_budget_grant_raises_the_cap(run: Run) -> None:
    assert run("budget", "grant", "2.5").stdout == "The cap for everybody together is now epsilon 12.5.\n"
    assert "0 of 12.5 spent" in run("budget", "show").stdout


def test_budget_grant_to_an_analyst(run: Run, campus: Path) -> None:
    with campus.open("a", encoding="utf-8") as file:
        file.write("\n[analysts.alice]\nepsilon = 1\n")
    assert run("budget", "grant", "0.5", "--to", "alice").stdout == "The cap for alice is now epsilon 1.5.\n"
    assert run("budget", "grant", "0.5", "--to", "bob").exit_code == 2
    assert "0 of 10 spent" in run("budget", "show").stdout


@pytest.mark.parametrize("epsilon", ["0", "-1", "NaN", "1e-3", "11", "x", "0.0000000001"])
def test_budget_grant_of_nonsense(run: Run, epsilon: str) -> None:
    result = run("budget", "grant", "--", epsilon)
    assert result.exit_code == 3
    assert "PV301" in result.stderr
    assert "0 of 10 spent" in run("budget", "show").stdout


def test_a_ledger_that_was_tampered_with(run: Run, campus: Path) -> None:
    run("budget", "grant", "1")
    log = campus.parent / "campus-ledger.db.log"
    log.write_bytes(log.read_bytes().replace(b'"epsilon_nano":1000000000', b'"epsilon_nano":2000000000'))
    result = run("budget", "show")
    assert (result.exit_code, result.stdout) == (7, "")
    assert "F0V02" in result.stderr


def test_refresh(run: Run) -> None:
    assert "epoch 2" in run("refresh").stdout
    assert json.loads(run("refresh", "--json").stdout) == {"epoch": 3}


def test_a_database_that_somebody_writes_to(run: Run, campus: Path) -> None:
    with duckdb.connect(str(campus.parent / "campus.duckdb")):
        result = run("check")
    assert result.exit_code == 5
    assert "busy" in result.stderr


def test_a_policy_that_may_not_be_read(run: Run, campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(campus) and access(path, mode))
    read = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path == campus:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    result = run("check")
    assert result.exit_code == 5
    assert "campus.toml: cannot be read: Permission denied" in result.stderr


def test_preview_needs_no_ledger(run: Run, campus: Path) -> None:
    remove_ledger(campus)
    result = run("check", "--preview")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "SELECT COUNT(*) FROM student" in result.stdout
    assert list(campus.parent.glob("campus-ledger.db*")) == []
    body = json.loads(run("check", "--preview", "--json").stdout)
    assert [table["name"] for table in body["tables"]][:1] == ["student"]


def test_check_warns_of_a_budget_of_few_questions(run: Run, campus: Path) -> None:
    text = campus.read_text("utf-8")
    campus.write_text(re.sub(r"^epsilon +=.*$", "epsilon = 1", text, count=1, flags=re.M), "utf-8")
    for arguments in (["check"], ["check", "--preview"]):
        assert "privacy.epsilon: holds 10 questions" in run(*arguments).stdout


def test_the_audit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT major, COUNT(*) FROM student GROUP BY major"
    before = run("budget", "show").stdout
    done = run("audit", "--sql", sql)
    assert done.exit_code == 0, done.output
    heading, line, _, verdict, _ = done.stdout.rstrip("\n").split("\n")
    assert heading.split() == [
        "statement",
        "claimed",
        "moved",
        "epsilon",
        "at",
        "least",
        "at",
        "5",
        "%",
        "false",
        "alarms,",
        "found",
        "(allowed)",
    ]
    assert re.fullmatch(rf"{re.escape(sql)} +1 +1 of 1 +0\.9\d\d  1[34]\.\d % \(13\.6 %\)", line)
    assert verdict.startswith("1 statements, none failed. Epsilon is a lower bound")
    body = json.loads(run("audit", "--sql", sql, "--json").stdout)
    assert body["passed"] is True
    assert body["statements"][0]["sql"] == sql
    monkeypatch.setattr(
        "dpsql.plan.measures.measurements.Measurement.scale",
        lambda self, epsilon: Fraction(self.sensitivity) / epsilon / 2,
    )
    failed = run("audit", "--sql", sql)
    assert failed.exit_code == 1
    assert "  FAIL: moved by more than is claimed: " in failed.stdout
    assert "1 of 1 failed. " in failed.stdout
    assert run("audit", "--sql", "SELECT gpa FROM student").exit_code == 3
    assert run("budget", "show").stdout == before


def test_the_search_of_the_audit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("budget", "show").stdout
    number = tried(4, 12)
    search = ("audit", "--fuzz", str(number), "--seed", "4")
    done = run(*search)
    assert done.exit_code == 0, done.output
    counted, proved, *unproved, moved, _, _, verdict = done.stdout.rstrip("\n").split("\n")
    assert re.fullmatch(rf"{number} statements of seed 4: \d+ answered, \d+ refused( \(.*\))?", counted)
    assert re.fullmatch(r"\d+ of \d+ plans are verified", proved)
    assert all(line.startswith("  not verified: ") for line in unproved)
    assert re.fullmatch(r"the most that neighbours moved one: \d+(\.\d+)? % of what is claimed", moved)
    assert verdict.startswith("none failed. ")
    body = json.loads(run(*search, "--json").stdout)
    assert (body["passed"], body["tried"], body["violations"]) == (True, number, [])
    assert run("budget", "show").stdout == before
    for wrong in (["--fuzz", "5", "--sql", "SELECT 1"], ["--seed", "5"], ["--fuzz", "0"]):
        assert run("audit", *wrong).exit_code == 2
    monkeypatch.setattr(
        "dpsql.plan.measures.measurements.Measurement.scale",
        lambda self, epsilon: Fraction(self.sensitivity) / epsilon / 2,
    )
    failed = run(*search)
    assert failed.exit_code == 1
    assert "  FAIL: moved by more than is claimed: " in failed.stdout


def test_a_backup_is_a_new_folder_and_a_ledger(run: Run, campus: Path, tmp_path: Path) -> None:
    run("query", "SELECT COUNT(*) FROM student")
    folder = tmp_path / "monday"
    done = run("budget", "backup", str(folder))
    assert (done.exit_code, done.stdout) == (
        0,
        f"Copied to {folder}: campus-ledger.db and campus-ledger.db.log\n",
    )
    again = run("budget", "backup", str(folder))
    assert (again.exit_code, again.stdout) == (2, "")
    assert "is there already" in again.stderr
    nowhere = run("budget", "backup", str(tmp_path / "none" / "monday"))
    assert (nowhere.exit_code, "cannot be written" in nowhere.stderr) == (2, True)
    remove_ledger(campus)
    for copy in folder.iterdir():
        shutil.copy(copy, campus.parent)
    assert "0.1 of 10 spent" in run("budget", "show").stdout
    assert run("query", "SELECT COUNT(*) FROM student").stderr.startswith(
        "free: answered from stored releases"
    )


def test_check_data_looks_at_the_values_of_public_tables(tmp_path: Path) -> None:
    """By their looks, of which none is said; without --data nothing is read."""
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(
            "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE fine AS SELECT 'CH' AS c;"
            "CREATE TABLE lk AS SELECT 'a' || i || '@x.org' AS contact, '10.0.0.' || i AS src FROM range(40) AS t (i)"
        )
    policy = tmp_path / "v.toml"
    policy.write_text(
        'database = "duckdb:v.duckdb"\n[privacy]\nepsilon = 1\n[tables.p]\nunit = "id"\n'
        "[tables.lk]\npublic = true\n[tables.fine]\npublic = true\n"
    )
    said = CliRunner().invoke(program, ["-P", str(policy), "check", "--data"]).output
    assert 'the values of "contact" look like e-mail addresses; if they are of people, write unit' in said
    assert 'the values of "src" look like IP addresses' in said
    assert "@x.org" not in said
    assert "10.0.0" not in said
    assert "tables.fine: is public" not in said
    assert "look like" not in CliRunner().invoke(program, ["-P", str(policy), "check"]).output


def test_check_data_counts_what_a_complete_column_lacks(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(
            "CREATE TABLE p (id INT PRIMARY KEY, kind VARCHAR, team VARCHAR, day DATE, size DOUBLE);"
            "INSERT INTO p VALUES (1, 'a', 'x', '2024-01-01', 1), (2, 'A', NULL, '2023-12-31', 'NaN'), (3, NULL, 'x', NULL, 2)"
        )
    policy = tmp_path / "v.toml"
    text = (
        'database = "duckdb:v.duckdb"\n[privacy]\nepsilon = 1\n[tables.p]\nunit = "id"\n[tables.p.columns]\n'
        'kind = { values = ["a"], complete = true }\n'
        'team = { values = ["x", { null = true }], complete = true }\n'
        "day = { bounds = [2024-01-01, 2024-12-31], complete = true }\n"
        "size = { bounds = [0, 10], step = 0.5, complete = true }\n"
    )
    policy.write_text(text)
    said = " ".join(CliRunner().invoke(program, ["-P", str(policy), "check", "--data"]).output.split())
    assert "tables.p.columns.kind.complete: 2 of 3 rows have another value" in said
    assert "tables.p.columns.day.complete: 2 of 3 rows" in said
    assert "tables.p.columns.size.complete: 1 of 3 rows" in said
    assert '"team" is complete, in all 3 rows' in said
    assert "complete" not in CliRunner().invoke(program, ["-P", str(policy), "check"]).output
    policy.write_text(text.replace('values = ["a"], ', ""))
    refused = CliRunner().invoke(program, ["-P", str(policy), "check"])
    assert "is of the column's values or bounds" in refused.output
    assert refused.exit_code == 5


def test_check_data_counts_the_people_outside_a_range(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(
            "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE v (owner INT); CREATE TABLE w (owner INT);"
            "INSERT INTO p VALUES (1), (9); INSERT INTO v VALUES (1), (1), (9), (-4), (NULL); INSERT INTO w VALUES (2)"
        )
    policy = tmp_path / "v.toml"
    text = 'database = "duckdb:v.duckdb"\n[privacy]\nepsilon = 1\n[tables.p]\nunit = "id"\n' + "".join(
        f'[tables.{name}]\nunit = {{ column = "owner", references = "p.id" }}\nunit_range = [1, 5]\nmax_rows = 2\n'
        for name in "vw"
    )
    policy.write_text(text)
    said = " ".join(CliRunner().invoke(program, ["-P", str(policy), "check", "--data"]).output.split())
    assert (
        'tables.v.unit_range: 2 of 5 rows are of people whose "owner" is outside, and are never counted'
        in said
    )
    assert '"owner" is in its range, in all 1 rows' in said
    assert "range" not in CliRunner().invoke(program, ["-P", str(policy), "check"]).output

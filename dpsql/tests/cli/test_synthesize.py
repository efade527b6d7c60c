"""`dpsql synthesize`: what an owner types, sees and gets."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from .conftest import Run
from .test_query import ok

PAIRS = "SELECT major, enrolled, COUNT(*) FROM student GROUP BY major, enrolled"


def test_a_file_is_written_and_nothing_charged(run: Run, tmp_path: Path) -> None:
    ok(run("query", PAIRS))
    before = ok(run("budget", "show")).stdout
    out = tmp_path / "synthetic.parquet"
    told = ok(run("synthesize", "student", "--from-stored", "--out", str(out))).stdout
    assert "made-up rows of major, enrolled, from the tables of edition " in told
    assert "Nothing was charged." in told
    assert '[tables."model.student"]' in told
    with duckdb.connect() as connection:
        majors = connection.execute(f"SELECT count(DISTINCT major) FROM '{out}'").fetchall()
    assert majors == [(6,)]
    assert ok(run("budget", "show")).stdout == before
    again = run("synthesize", "student", "--from-stored", "--out", str(out))
    assert again.exit_code == 2
    assert "is there already" in again.stderr


def test_json(run: Run, tmp_path: Path) -> None:
    ok(run("query", PAIRS))
    out = tmp_path / "synthetic.csv"
    found = json.loads(ok(run("synthesize", "student", "--from-stored", "--out", str(out), "--json")).stdout)
    assert (found["columns"], found["tables"], found["epsilon"]) == (["major", "enrolled"], 1, "0")
    assert out.read_text("utf-8").startswith("major,enrolled\n")


def test_what_it_cannot_do_is_said(run: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "synthetic.parquet")
    nothing = run("synthesize", "student", "--from-stored", "--out", out)
    assert nothing.exit_code != 0
    assert 'no counts of "student" by its columns are stored' in nothing.stderr
    assert "dpsql release" in nothing.stderr
    assert 'no table "teacher"' in run("synthesize", "teacher", "--from-stored", "--out", out).stderr
    assert ".parquet or .csv" in run("synthesize", "student", "--from-stored", "--out", f"{out}.txt").stderr
    assert "--from-stored" in run("synthesize", "student", "--out", out).stderr
    nowhere = str(tmp_path / "nowhere" / "synthetic.csv")
    assert "is no folder" in run("synthesize", "student", "--from-stored", "--out", nowhere).stderr
    empty = run("synthesize", "student", "--from-stored", "--columns", "major,", "--out", out)
    assert (empty.exit_code, "with a comma" in empty.stderr) == (2, True)
    assert not list(tmp_path.glob("synthetic*"))

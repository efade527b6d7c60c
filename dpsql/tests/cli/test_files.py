"""A dataset that is Parquet files, from nothing to an answer, and what each step says when the files change."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.policy import parse_policy
from dpsql.tests.support.patched_parquet import say

POLICY = """
database = "duckdb:"
[privacy]
epsilon = 10
[tables.visit]
source = "visits/*.parquet"
unit = "patient_id"
max_rows = 4
[tables.visit.columns]
cost = { bounds = [0, 100] }
ward = { values = ["a", "b"] }
seen = { bounds = [2026-01-01T00:00:00, 2026-12-31T00:00:00] }
[tables.ward]
source = ["ward.parquet"]
public = true
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "visits").mkdir()
    for month in (1, 2):
        rows = (
            f"SELECT i % 50 AS patient_id, i % 101 AS cost, ['a', 'b'][i % 2 + 1] AS ward, "
            f"TIMESTAMPTZ '2026-0{month}-03 12:00:00+00' AS seen FROM range(100) AS t (i)"
        )
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/visits/{month}.parquet'")
    duckdb.sql(f"COPY (SELECT 'a' AS name, 3 AS floor) TO '{tmp_path}/ward.parquet'")
    path = tmp_path / "files.toml"
    path.write_text(POLICY)
    return path


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


def test_from_files_to_an_answer(policy: Path) -> None:
    before = run(policy, "check")
    assert before.exit_code == 0
    assert "warning: database: the data files are not recorded yet; run dpsql budget create" in before.stdout
    explained = run(policy, "explain", "SELECT ward, COUNT(*) FROM visit GROUP BY ward")
    assert explained.exit_code == 0, "it needs neither ledger nor record"
    assert not policy.with_name("files-files.json").exists()
    assert run(policy, "budget", "create").exit_code == 0
    assert policy.with_name("files-files.json").stat().st_mode & 0o077 == 0
    assert "not recorded" not in run(policy, "check").stdout
    for sql in (
        "SELECT ward, COUNT(*), AVG(cost) FROM visit GROUP BY ward",
        "SELECT date_trunc('month', seen) AS m, COUNT(*) FROM visit GROUP BY 1",
        "SELECT w.floor, COUNT(*) FROM visit v JOIN ward w ON w.name = v.ward GROUP BY w.floor",
        "SELECT * FROM ward",
    ):
        answered = run(policy, "query", sql)
        assert answered.exit_code == 0, answered.output


@pytest.mark.long  # the engine's own tests search twins in files
def test_files_are_audited(policy: Path) -> None:
    assert run(policy, "budget", "create").exit_code == 0
    assert run(policy, "audit", "--sql", "SELECT COUNT(*) FROM visit").exit_code == 0


def test_a_changed_file_is_told_with_the_next_command(policy: Path) -> None:
    run(policy, "budget", "create")
    asked = ("query", "SELECT COUNT(*) FROM visit")
    assert run(policy, *asked).exit_code == 0
    os.utime(policy.parent / "visits" / "1.parquet", ns=(1, 1))
    refused = run(policy, *asked)
    assert refused.exit_code == 6
    assert refused.stderr == (
        "ERROR 58V01: the data files are not the ones that were recorded\n"
        "HINT: look at them with dpsql check, and take them as they are with dpsql refresh\n"
    )
    looked = run(policy, "check")
    assert looked.exit_code == 5
    assert "of visit is not what was recorded, and nothing is answered; run dpsql refresh" in looked.stdout
    assert run(policy, "refresh").stdout.startswith("The dataset is at epoch 2")
    again = run(policy, *asked)
    assert again.exit_code == 0
    assert "charged epsilon 0.1; 9.8 left" in again.stderr


def test_a_file_that_is_wrong_about_its_values_is_not_recorded(policy: Path) -> None:
    """As of ordered categories: the smallest is one that comes later in the order of texts."""
    path = policy.parent / "ward.parquet"
    say(path, "name", low=b"b", high=b"a")
    failed = run(policy, "budget", "create")
    assert failed.exit_code == 5
    assert failed.stderr == (
        f'ERROR F0V01: {policy.name}: tables.ward.source: column "name" of "{path}" has a smallest value that is not '
        "the one that is said; write the file anew, as DuckDB's COPY does\n"
    )
    assert not policy.with_name("files-files.json").exists()


def test_what_cannot_be_read_advances_nothing(policy: Path) -> None:
    run(policy, "budget", "create")
    broken = policy.parent / "visits" / "3.parquet"
    broken.write_text("patient_id,cost\n1,2\n")
    failed = run(policy, "refresh")
    assert failed.exit_code == 5
    assert "is not a Parquet file" in failed.stderr
    broken.unlink()
    assert "epoch    1" in run(policy, "budget", "show").stdout
    assert run(policy, "query", "SELECT COUNT(*) FROM visit").exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'source = ["ward.parquet"]\n', "",
            'files.toml: tables.ward.source: is missing, as no database is named; write source = "<files>.parquet"',
        ),
        (
            '"duckdb:"', '"duckdb:x.duckdb"',
            'files.toml: tables.visit.source: is for database = "duckdb:", where every table is files; write that, '
            "or take it out",
        ),
        (
            "visits/*.parquet", "visits.csv",
            'files.toml: tables.visit.source: "visits.csv" does not end in .parquet, and files of other kinds are never '
            "parsed for an analyst; run dpsql convert on it, and name the Parquet file",
        ),
        ('["ward.parquet"]', "[]", "files.toml: tables.ward.source: is empty; name the table's Parquet files"),
        (
            '["ward.parquet"]', "3",
            'files.toml: tables.ward.source: write Parquet files, like "visits/*.parquet", or a list of them; or a '
            "table's name in the database",
        ),
    ],
)  # fmt: skip
def test_a_wrong_source_says_what_to_write(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in POLICY
    with pytest.raises(PolicyError) as caught:
        parse_policy(POLICY.replace(old, new), tmp_path / "files.toml")
    assert caught.value.message == message


def test_files_that_are_not_there_are_named(policy: Path) -> None:
    (policy.parent / "ward.parquet").unlink()
    failed = run(policy, "check")
    assert failed.exit_code == 5
    assert failed.stderr.startswith(
        f'ERROR F0V01: database: tables.ward.source: "{policy.parent}/ward.parquet" cannot'
    )


def test_text_files_are_converted_once(policy: Path) -> None:
    (policy.parent / "visits" / "3.csv").write_text("patient_id,cost,ward,seen\n7,5,a,2026-03-01 10:00:00\n")
    done = run(policy, "convert", str(policy.parent / "visits" / "3.csv"))
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == f"{policy.parent}/visits/3.parquet: 1 rows"
    assert "  seen  timestamp" in done.stdout
    (policy.parent / "visits" / "3.csv").write_text("patient_id,cost\n7,secret,1\n")
    failed = run(policy, "convert", str(policy.parent / "visits" / "3.csv"))
    assert failed.exit_code == 5
    assert failed.stderr == "ERROR F0V01: 3.csv: line 2 does not fit the others; mend it, and convert again\n"


def test_files_may_stand_in_schemas(policy: Path) -> None:
    policy.write_text(POLICY.replace("[tables.ward]", '[tables."lists.ward"]'))
    run(policy, "budget", "create")
    asked = run(
        policy,
        "query",
        "SELECT w.floor, COUNT(*) FROM visit v JOIN lists.ward w ON w.name = v.ward GROUP BY 1",
    )
    assert asked.exit_code == 0, asked.output
    policy.write_text(POLICY.replace("[tables.ward]", '[tables."main.ward"]'))
    assert '"main" is the default schema; write ward alone' in run(policy, "check").stdout


def test_files_that_say_no_unit_are_told_what_to_write(policy: Path) -> None:
    policy.write_text(POLICY.replace("public = true\n", ""))
    looked = run(policy, "check")
    assert looked.exit_code == 5
    said = (
        'files.toml: tables.ward: has no unit; write unit = …, unit = "row" if each row is one person and nobody has two, '
        "or public = true if nobody's data is in it"
    )
    assert f"problem: {said}" in looked.stdout

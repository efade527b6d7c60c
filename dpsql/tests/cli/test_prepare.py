"""A table whose rows are numbered, from the copy to an answer, and again after new data."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program

POLICY = """
database = "duckdb:data.duckdb"
[privacy]
epsilon = 10
[tables.person]
unit = "id"
[tables.visit]
unit = { column = "owner", references = "person.id" }
max_rows = 3
[tables.visit.columns]
ward = { values = ["a", "b"] }
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute("CREATE TABLE person AS SELECT i AS id FROM range(50) AS t (i)")
        connection.execute("ALTER TABLE person ADD PRIMARY KEY (id)")
        connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, owner BIGINT, ward TEXT)")
        connection.execute(
            "INSERT INTO visit SELECT i, i % 50, ['a', 'b'][i % 2 + 1] FROM range(200) AS t (i)"
        )
    path = tmp_path / "data.toml"
    path.write_text(POLICY)
    return path


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


def test_from_a_table_to_an_answer(policy: Path) -> None:
    made = run(policy, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [
        "visit_prepared: 200 rows, 200 of them numbered now, 0 gone",
        "In the policy:",
        "  [tables.visit_prepared]",
        '  unit = { column = "owner", references = "person.id" }',
        '  row_number = "n"',
        "  max_rows = 3",
        "and its columns as before, without that one.",
    ]
    policy.write_text(
        POLICY.replace("[tables.visit]", '[tables.visit_prepared]\nrow_number = "n"').replace(
            "visit.col", "visit_prepared.col"
        )
    )
    assert run(policy, "check").exit_code == 0
    assert run(policy, "budget", "create").exit_code == 0
    sql = "SELECT ward, COUNT(*) FROM visit_prepared GROUP BY ward"
    assert '("n" BETWEEN 1 AND 3)' in run(policy, "explain", sql).stdout
    assert run(policy, "query", sql).exit_code == 0


def test_new_data_is_a_new_epoch(policy: Path) -> None:
    assert run(policy, "prepare", "visit", "--into", "copy", "--column", "no").exit_code == 0
    again = run(policy, "prepare", "visit", "--into", "copy", "--column", "no", "--json")
    assert json.loads(again.stdout) == {"table": "copy", "rows": 200, "came": 0, "went": 0, "epoch": None}, (
        "no ledger"
    )
    assert run(policy, "budget", "create").exit_code == 0
    with duckdb.connect(str(policy.with_name("data.duckdb"))) as connection:
        connection.execute("DELETE FROM visit WHERE id < 10")
        connection.execute("INSERT INTO visit VALUES (1000, 1, 'a')")
    again = run(policy, "prepare", "visit", "--into", "copy", "--column", "no", "--json")
    assert json.loads(again.stdout) == {"table": "copy", "rows": 191, "came": 1, "went": 10, "epoch": 2}
    anew = run(policy, "prepare", "visit", "--into", "copy", "--column", "no", "--renumber")
    assert "copy: 191 rows, 191 of them numbered now, 0 gone" in anew.stdout
    assert "The dataset is at epoch 3: earlier answers are no longer given again." in anew.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], 'no table "nothing" is declared'),
        (["person"], "a person has one row here"),
        (["visit", "--in-place"], "DuckDB adds no UNIQUE constraint"),
        (["visit", "--in-place", "--into", "x"], "--into names a copy"),
        (["visit", "--column", "ward"], 'the table has a column "ward" already'),
    ],
)
def test_what_is_refused(policy: Path, words: list[str], said: str) -> None:
    refused = run(policy, "prepare", *words)
    assert refused.exit_code in (2, 5)
    assert said in refused.output


def test_a_file_that_is_open_elsewhere(policy: Path) -> None:
    with duckdb.connect(str(policy.with_name("data.duckdb")), read_only=True):
        refused = run(policy, "prepare", "visit")
    assert refused.exit_code == 5
    assert "no other program may have" in refused.output

"""A table whose rows are numbered, from the copy to an answer, and again after new data."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.tests.support.postgres_server import PostgresServer

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


def test_under_a_budget_by_period_no_copy_is_made_that_no_policy_takes(policy: Path) -> None:
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        connection.execute("ALTER TABLE visit ADD COLUMN day DATE")
    time = '[privacy.time]\nperiod = "month"\nsince = 2025-01-01\n[tables.person]'
    dated = POLICY.replace("[tables.person]", time).replace("max_rows = 3", 'max_rows = 3\ntime = "day"')
    policy.write_text(dated)
    assert run(policy, "check").exit_code == 0
    refused = run(policy, "prepare", "visit")
    assert refused.exit_code == 5
    assert "numbered rows are not there yet with a budget by period" in refused.stderr
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (2,)


def test_what_is_wrong_with_the_ledger_is_said_first(policy: Path) -> None:
    assert run(policy, "budget", "create").exit_code == 0
    policy.write_text(POLICY.replace("[tables.person]", "[tables.people]").replace("person.id", "people.id"))
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        connection.execute("ALTER TABLE person RENAME TO people")
    refused = run(policy, "prepare", "visit")
    assert refused.exit_code == 7
    assert "this ledger belongs to another dataset" in refused.stderr
    with duckdb.connect(str(policy.parent / "data.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (2,)


def test_a_copy_that_the_policys_role_may_not_read_yet(postgres: PostgresServer, tmp_path: Path) -> None:
    """It is found under the role that writes, and brought to new data as any."""
    name = postgres.create_database()
    with postgres.admin(name) as connection:
        connection.execute("CREATE TABLE person (id BIGINT PRIMARY KEY); INSERT INTO person VALUES (1), (2)")
        connection.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, owner BIGINT, ward TEXT)")
        connection.execute("INSERT INTO visit VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a')")
        connection.execute(f"CREATE ROLE {name}_reader LOGIN; GRANT SELECT ON person, visit TO {name}_reader")
    path = tmp_path / "data.toml"
    path.write_text(POLICY.replace("duckdb:data.duckdb", postgres.url(name, f"{name}_reader")))
    for came in (3, 0):
        made = run(path, "prepare", "visit", "--database", postgres.url(name))
        assert made.exit_code == 0, made.output
        assert made.stdout.startswith(f"visit_prepared: 3 rows, {came} of them numbered now, 0 gone")
    postgres.drop_database(name)


def test_the_ledger_is_kept_where_the_copy_takes_the_tables_place(policy: Path) -> None:
    """A dataset without a name has that of its first table: under another one its people had a second budget."""
    alone = POLICY[: POLICY.index("[tables.person]")] + '[tables.visit]\nunit = "owner"\nmax_rows = 3\n'
    policy.write_text(alone)
    assert run(policy, "budget", "create").exit_code == 0
    *_, last = run(policy, "prepare", "visit").stdout.splitlines()
    name = 'dataset = "visit@duckdb:data.duckdb"'
    assert last == f"Where visit is taken out, {name} at the top keeps its ledger."
    taken = alone.replace("[tables.visit]", '[tables.visit_prepared]\nrow_number = "n"')
    policy.write_text(taken)
    assert (
        "this ledger belongs to another dataset"
        in run(policy, "query", "SELECT 1 FROM visit_prepared").stderr
    )
    policy.write_text(f"{name}\n{taken}")
    assert run(policy, "query", "SELECT COUNT(*) FROM visit_prepared").exit_code == 0


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
    audited = run(policy, "audit", "--sql", sql)
    assert audited.exit_code == 0, audited.output
    assert "3 of 3" in audited.stdout, "its people have numbered rows, more than count"


def test_a_copy_keeps_the_range_of_people(policy: Path) -> None:
    policy.write_text(POLICY.replace("max_rows = 3", "unit_range = [0, 9]\nmax_rows = 3"))
    made = run(policy, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert "  unit_range = [0, 9]" in made.stdout.splitlines()
    policy.write_text(
        POLICY.replace(
            "[tables.visit]", '[tables.visit_prepared]\nrow_number = "n"\nunit_range = [0, 9]'
        ).replace("visit.col", "visit_prepared.col")
    )
    checked = " ".join(run(policy, "check", "--data").stdout.split())
    assert '160 of 200 rows are of people whose "owner" is outside, and are never counted' in checked
    assert run(policy, "budget", "create").exit_code == 0
    sql = "SELECT COUNT(*) FROM visit_prepared"
    explained = run(policy, "explain", sql).stdout
    assert '("n" BETWEEN 1 AND 3)' in explained
    assert '("owner" >= 0)' in explained
    assert '("owner" <= 9)' in explained
    answer = run(policy, "query", "--epsilon", "1", "--json", sql)
    ((count,),) = json.loads(answer.stdout)["rows"]
    assert abs(count - 30) < 90, "3 rows of each of 10 people of 50, within 30 scales of the noise"


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
        (["visit", "--in-place"], "DuckDB drops no UNIQUE constraint"),
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


# --- a copy of files ----------------------------------------------------------------------------------------------

FILES = """
database = "duckdb:"
[privacy]
epsilon = 10
[tables.person]
source = "person.parquet"
unit = "id"
key = ["id"]
[tables.stay]
source = "stay.parquet"
unit = { column = "owner", references = "person.id" }
key = ["no"]
max_rows = 9
[tables.visit]
source = "visits/*.parquet"
unit = { column = "stay", references = "stay.no" }
max_rows = 3
[tables.visit.columns]
ward = { values = ["a", "b"] }
"""
DECLARED = """
[tables.visit_prepared]
source = "visit_prepared.parquet"
unit = { column = "owner", references = "person.id" }
key = ["owner", "n"]
row_number = "n"
max_rows = 3
[tables.visit_prepared.columns]
ward = { values = ["a", "b"] }
"""
BY_WARD = "SELECT ward, COUNT(*) FROM visit_prepared GROUP BY ward"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Visits lead over stays to people; those of a stay that is not there, or of nobody, are nobody's."""
    (tmp_path / "visits").mkdir()
    copied = {
        "person": "SELECT i AS id FROM range(50) AS t (i)",
        "stay": "SELECT i AS no, CASE WHEN i < 99 THEN i % 50 END AS owner FROM range(100) AS t (i)",
        "visits/1": "SELECT i % 110 AS stay, ['a', 'b'][i % 2 + 1] AS ward FROM range(220) AS t (i)",
        "visits/2": "SELECT i % 110 AS stay, 'a' AS ward FROM range(110) AS t (i)",
    }
    for name, rows in copied.items():
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/{name}.parquet'")
    path = tmp_path / "data.toml"
    path.write_text(FILES)
    return path


def test_a_copy_of_files_is_a_file_with_a_key_to_verify(files: Path) -> None:
    made = run(files, "prepare", "visit")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines() == [
        "visit_prepared: 297 rows, 297 of them numbered now, 0 gone",
        "In the policy:",
        *(
            f"  {line}"
            for line in DECLARED.split("\n[tables.visit_prepared.columns]")[0].strip().splitlines()
        ),
        "and its columns as before, without that one.",
        "dpsql budget create, or dpsql refresh, looks at all rows and records that the key holds.",
    ]
    copy = files.with_name("visit_prepared.parquet")
    twice = f"SELECT COUNT(*), COUNT(DISTINCT (owner, n)), MIN(n), MAX(n) FROM '{copy}'"
    assert duckdb.sql(twice).fetchall() == [(297, 297, 1, 6)]
    assert not list(copy.parent.glob("*.new"))
    files.write_text(FILES + DECLARED)
    assert run(files, "budget", "create").exit_code == 0
    assert '("n" BETWEEN 1 AND 3)' in run(files, "explain", BY_WARD).stdout
    assert run(files, "query", BY_WARD).exit_code == 0
    assert "3 of 3" in run(files, "audit", "--sql", BY_WARD).stdout


def test_a_copy_of_new_files_is_recorded_anew(files: Path) -> None:
    assert run(files, "prepare", "visit").exit_code == 0
    files.write_text(FILES + DECLARED)
    assert run(files, "budget", "create").exit_code == 0
    folder = files.parent
    duckdb.sql(f"COPY (SELECT 7::BIGINT AS stay, 'b' AS ward FROM range(10)) TO '{folder}/visits/3.parquet'")
    again = run(files, "prepare", "visit")
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines() == [
        "visit_prepared: 307 rows, 307 of them numbered now, 0 gone",
        "It is another file than before: dpsql refresh verifies its numbers and records it.",
    ]
    refused = run(files, "query", BY_WARD)
    assert refused.exit_code != 0
    assert "not the ones that were recorded" in refused.stderr
    refreshed = run(files, "refresh")
    assert refreshed.exit_code == 0, refreshed.output
    assert run(files, "query", BY_WARD).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["visit", "--in-place"], "files are not numbered in place"),
        (["visit", "--database", "duckdb:x.db"], "--database is for a policy of a database"),
        (["visit", "--into", "person"], '"person.parquet" is there, which is no such copy'),
        (["visit", "--into", "visit"], '"visit" is of several files, and a copy is one'),
        (["visit", "--column", "ward"], 'the table has a column "ward" already'),
        (["person"], "a person has one row here"),
    ],
)
def test_what_is_refused_of_files(files: Path, words: list[str], said: str) -> None:
    before = {path: path.read_bytes() for path in files.parent.glob("*.parquet")}
    refused = run(files, "prepare", *words)
    assert refused.exit_code in (2, 5)
    assert said in refused.output
    assert {path: path.read_bytes() for path in files.parent.glob("*.parquet")} == before


def test_a_place_that_cannot_be_written(files: Path) -> None:
    """Whatever ends it, there is the copy of before, or none."""
    files.with_name("visit_prepared.parquet.new").mkdir()
    refused = run(files, "prepare", "visit")
    assert refused.exit_code == 5
    assert '"visit_prepared.parquet" cannot be written' in refused.output
    assert "Traceback" not in refused.output
    assert not files.with_name("visit_prepared.parquet").exists()

"""An owner's commands over tables on Spark, from nothing to an answer, and what each says when the tables change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.backends.spark_backend import SparkBackend
from dpsql.cli.application import program
from dpsql.errors import PolicyError
from dpsql.policy import parse_policy
from dpsql.tests.support.spark_server import SparkServer

TABLES = """
[tables.person]
{person}
unit = "id"
key  = ["id"]
[tables.person.columns]
name = {{}}
[tables.account]
{account}
unit = "person_id"
key = ["id"]
max_rows = 3
[tables.booking]
{booking}
unit = {{ column = "account_id", references = "account.id" }}
max_rows = 40
[tables.booking.columns]
amount = {{ bounds = [0, 100] }}
kind = {{ values = ["a", "b"] }}
at = {{ bounds = [2026-01-01T00:00:00, 2026-12-31T00:00:00] }}
[tables.kind]
{kind}
public = true
key = ["name"]
"""
ROWS = {
    "person": "SELECT i AS id, 'p' || i AS name FROM range(50) AS t (i)",
    "account": "SELECT i AS id, i % 50 AS person_id FROM range(100) AS t (i)",
    "booking": "SELECT i % 100 AS account_id, i % 101 AS amount, ['a', 'b'][i % 2 + 1] AS kind, "
    "TIMESTAMPTZ '2026-03-01 12:00:00+02' AS at FROM range(1000) AS t (i)",
    "kind": "SELECT unnest(['a', 'b']) AS name, unnest([1, 2]) AS rank",
}
ASKED = "SELECT kind, COUNT(*), SUM(amount) FROM booking GROUP BY kind"


def test_what_a_policy_says_of_spark(tmp_path: Path) -> None:
    whole = TABLES.format(
        person='source = "/data/person.parquet"',
        account='source = ["s3a://lake/account/*.parquet", "file:/b.parquet"]',
        booking="",
        kind="",
    )
    head = 'database = "spark://lake.example/sales"\n[privacy]\nepsilon = 1\n'
    policy = parse_policy(head + whole, tmp_path / "lake.toml")
    assert policy.files is not None
    assert policy.files.record == tmp_path / "lake-tables.json"
    assert policy.files.tables["booking"] == ()
    assert policy.files.keys == {"person": ("id",), "account": ("id",), "kind": ("name",)}
    for wrong, why in (
        (whole.replace("/data/person.parquet", "person.parquet"), "write the whole path"),
        (whole + "[tables.shown]\nview = true\n", "Spark's own text is not read"),
    ):
        with pytest.raises(PolicyError, match=why):
            parse_policy(head + wrong, tmp_path / "lake.toml")


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


@pytest.fixture
def files(spark: SparkServer, tmp_path: Path) -> Path:
    for name, rows in ROWS.items():
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/{name}.parquet'")
    sources = {name: f'source = "{tmp_path}/{name}.parquet"' for name in ROWS}
    return written(spark, tmp_path, TABLES.format(**sources))


def written(spark: SparkServer, folder: Path, tables: str) -> Path:
    path = folder / "lake.toml"
    path.write_text(f'database = "{spark.url}"\n[privacy]\nepsilon = 100\ndelta = 1e-6\n{tables}')
    path.chmod(0o600)
    return path


@pytest.mark.spark
def test_from_files_to_an_answer(files: Path) -> None:
    before = run(files, "check", "--data")
    assert before.exit_code == 0, before.output
    assert "warning: database: the tables are not recorded yet; run dpsql budget create" in before.stdout
    assert (
        "note: (id) is a key of its 100 rows; not recorded yet: dpsql budget create does it" in before.stdout
    )
    assert "which you assert is unique" in before.stdout
    explained = run(files, "explain", ASKED)
    assert explained.exit_code == 0, "it needs neither ledger nor record"
    assert "FROM `default.booking@" in explained.stdout
    assert run(files, "budget", "create").exit_code == 0
    for sql in (
        ASKED,
        "SELECT date_trunc('month', at) AS m, COUNT(*) FROM booking GROUP BY 1",
        "SELECT k.rank, COUNT(*) FROM booking b JOIN kind k ON k.name = b.kind GROUP BY k.rank",
        "SELECT COUNT(*) FROM person WHERE name <> 'x\\'",
        "SELECT * FROM kind",
    ):
        answered = run(files, "query", sql)
        assert answered.exit_code == 0, answered.output
    after = run(files, "check")
    assert "which you assert is a key, was verified on" in after.stdout
    assert run(files, "refresh").exit_code == 0
    assert run(files, "audit", "--sql", "SELECT COUNT(*) FROM booking").exit_code == 0


@pytest.mark.spark
def test_a_changed_file_answers_nothing_until_it_is_taken(files: Path) -> None:
    run(files, "budget", "create")
    assert run(files, "query", ASKED).exit_code == 0
    os.utime(files.with_name("booking.parquet"), ns=(1, 1))
    refused = run(files, "query", "SELECT COUNT(*) FROM booking")
    assert refused.exit_code == 6
    assert "the data files are not the ones that were recorded" in refused.output
    checked = run(files, "check")
    assert checked.exit_code == 5
    assert 'booking.parquet" of booking is not what was recorded, and nothing is answered' in checked.stdout
    assert run(files, "refresh").exit_code == 0
    assert run(files, "query", "SELECT COUNT(*) FROM booking").exit_code == 0


@pytest.mark.spark
def test_a_key_that_does_not_hold_is_recorded_by_nobody(files: Path) -> None:
    run(files, "budget", "create")
    record = files.with_name("lake-tables.json").read_text()
    place = files.with_name("account.parquet")
    duckdb.sql(f"COPY ({ROWS['account']} UNION ALL SELECT 7, 8) TO '{place}'")
    refused = run(files, "refresh")
    assert refused.exit_code == 5, refused.output
    assert "(id) is no key of account: 1 of its values stands in several rows" in refused.output
    assert files.with_name("lake-tables.json").read_text() == record
    assert run(files, "query", ASKED).exit_code == 6
    content = json.loads(record)
    content["tables"]["account"]["files"][0] |= {
        "size": place.stat().st_size,
        "modified": place.stat().st_mtime_ns // 10**6,
    }
    files.with_name("lake-tables.json").write_text(json.dumps(content))
    forged = run(files, "query", ASKED)
    assert forged.exit_code == 5, "what was never verified in this version answers nothing"
    assert "is not verified for the data as it is; run dpsql check --data" in forged.output


@pytest.mark.spark
def test_tables_of_the_catalog(spark: SparkServer, tmp_path: Path) -> None:
    with SparkBackend.of(spark.url).session() as session:
        session.sql("DROP SCHEMA IF EXISTS bank CASCADE")
        session.sql("CREATE SCHEMA bank")
        for name, rows in ROWS.items():
            duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/{name}.parquet'")
            session.read.parquet(f"{tmp_path}/{name}.parquet").write.saveAsTable(f"bank.{name}")
    made = run(tmp_path / "first.toml", "init", spark.url, "--public", "bank.kind")
    assert made.exit_code == 0, made.output
    first = (tmp_path / "first.toml").read_text()
    assert '[tables."bank.kind"]\npublic = true\n' in first
    assert "bounds = [0" not in first
    tables = TABLES.format(**dict.fromkeys(ROWS, "")).replace('"account.id"', '"bank.account.id"')
    for name in ROWS:
        tables = tables.replace(f"[tables.{name}", f'[tables."bank.{name}"')
    policy = written(spark, tmp_path, tables)
    assert run(policy, "budget", "create").exit_code == 0
    asked = ASKED.replace("booking", "bank.booking")
    assert run(policy, "query", asked).exit_code == 0
    with SparkBackend.of(spark.url).session() as session:
        session.sql("INSERT INTO bank.booking SELECT 1L, 1L, 'a', TIMESTAMP_LTZ'2026-03-01 12:00:00+00'")
    checked = run(policy, "check")
    assert checked.exit_code == 0
    assert "of bank.booking is not recorded, and is not read; run dpsql refresh" in checked.stdout
    assert run(policy, "query", "SELECT SUM(amount) FROM bank.booking").exit_code == 0, "of what was recorded"

"""`dpsql init --template`: each policy loads, checks, and answers the statements that it names, over a small invented database."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.cli.check import _TEMPLATES

MADE = {
    "hospital": """
        CREATE TABLE patient (id INT PRIMARY KEY, born INT NOT NULL, sex VARCHAR NOT NULL, district INT,
          country VARCHAR);
        CREATE TABLE stay (id INT PRIMARY KEY, patient_id INT NOT NULL REFERENCES patient (id), ward VARCHAR,
          admitted DATE, nights INT, cost INT);
        CREATE TABLE diagnosis (stay_id INT NOT NULL REFERENCES stay (id), letter VARCHAR);
        CREATE TABLE drug (name VARCHAR);
        INSERT INTO patient SELECT i, 1930 + i % 90, ['female', 'male', 'other'][i % 3 + 1], i % 40 + 1,
          ['here', 'there', 'elsewhere'][i % 3 + 1] FROM range(3000) t (i);
        INSERT INTO stay SELECT i, i % 3000, ['emergency', 'maternity', 'medicine', 'surgery'][i % 4 + 1],
          DATE '2024-01-01' + (i % 900)::INT, i % 20, 100 * (i % 300) FROM range(9000) t (i);
        INSERT INTO diagnosis SELECT i % 9000, ['I', 'J', 'E'][i % 3 + 1] FROM range(12000) t (i);
        INSERT INTO drug VALUES ('aspirin'), ('insulin')""",
    "statistics": """
        CREATE TABLE household (id INT PRIMARY KEY, size INT, region INT NOT NULL, rent INT);
        CREATE TABLE person (household_id INT NOT NULL REFERENCES household (id), age INT, sex VARCHAR NOT NULL,
          region INT NOT NULL, education VARCHAR, hours INT, income INT);
        CREATE TABLE region (number INT, name VARCHAR);
        INSERT INTO household SELECT i, i % 5 + 1, i % 12 + 1, i % 3000 FROM range(4000) t (i);
        INSERT INTO person SELECT i % 4000, i % 90, ['female', 'male'][i % 2 + 1], i % 12 + 1,
          ['none', 'primary', 'secondary', 'tertiary', NULL][i % 5 + 1], i % 50, i * 7 % 90000 FROM range(10000) t (i);
        INSERT INTO region VALUES (1, 'North'), (2, 'South')""",
    "hr": """
        CREATE TABLE employee (id INT PRIMARY KEY, department VARCHAR NOT NULL, grade INT NOT NULL,
          gender VARCHAR NOT NULL, hired DATE, team VARCHAR, salary INT);
        CREATE TABLE payslip (employee_id INT NOT NULL REFERENCES employee (id), year INT NOT NULL, month INT NOT NULL,
          overtime INT);
        CREATE TABLE absence (employee_id INT NOT NULL REFERENCES employee (id), kind VARCHAR, began DATE, days INT);
        CREATE TABLE poll (employee_id INT NOT NULL REFERENCES employee (id), leaving VARCHAR NOT NULL);
        INSERT INTO employee SELECT i, ['finance', 'production', 'research', 'sales'][i % 4 + 1], i % 10 + 1,
          ['female', 'male', 'undisclosed'][i % 3 + 1], DATE '2000-01-01' + i::INT, 'team ' || i % 4, 30000 + i * 11 % 60000
          FROM range(2000) t (i);
        INSERT INTO payslip SELECT i % 2000, 2025, i // 2000 + 1, i % 20 FROM range(8000) t (i);
        INSERT INTO absence SELECT i % 2000, ['care', 'holiday', 'sickness', 'training'][i % 4 + 1],
          DATE '2026-02-01' + (i % 200)::INT, i % 10 + 1 FROM range(4000) t (i);
        INSERT INTO poll SELECT i, CASE WHEN i % 3 = 0 THEN 'yes' ELSE 'no' END FROM range(2000) t (i)""",
    "course": """
        CREATE TABLE student (id INT PRIMARY KEY, programme VARCHAR NOT NULL, semester INT NOT NULL, points INT,
          passed BOOLEAN NOT NULL);
        CREATE TABLE submission (student_id INT NOT NULL REFERENCES student (id), sheet INT NOT NULL, score INT, hours INT);
        CREATE TABLE login (student_id INT NOT NULL REFERENCES student (id), day DATE);
        CREATE TABLE sheet (number INT, title VARCHAR);
        INSERT INTO student SELECT i, ['data', 'economics', 'informatics', 'statistics'][i % 4 + 1], i % 12 + 1, i % 101,
          i % 101 >= 50 FROM range(2000) t (i);
        INSERT INTO submission SELECT i % 2000, i // 2000 + 1, i % 21, i % 25 FROM range(20000) t (i);
        INSERT INTO login SELECT i % 2000, DATE '2026-09-01' + (i % 100)::INT FROM range(30000) t (i);
        INSERT INTO sheet VALUES (1, 'Noise'), (2, 'Sensitivity')""",
}


def run(policy: Path, *words: str) -> Result:
    return CliRunner().invoke(program, ["-P", str(policy), *words])


def made(folder: Path, name: str) -> Path:
    """A template's policy in a folder, with the database that it names."""
    policy = folder / f"{name}.toml"
    done = run(policy, "init", "--template", name)
    assert done.exit_code == 0, done.output
    url = tomllib.loads(policy.read_text("utf-8"))["database"]
    assert f"the database, {url}" in done.stderr
    with duckdb.connect(str(folder / url.removeprefix("duckdb:"))) as database:
        database.execute(MADE[name])
    return policy


def test_each_template_has_its_database_here() -> None:
    assert sorted(_TEMPLATES) == sorted(MADE)


@pytest.mark.parametrize("name", _TEMPLATES)
def test_a_template_checks_and_answers_what_it_names(tmp_path: Path, name: str) -> None:
    policy = made(tmp_path, name)
    text = policy.read_text("utf-8")
    assert max(map(len, text.splitlines())) <= 125
    checked = run(policy, "check")
    assert checked.exit_code == 0, checked.output
    assert "warning" not in checked.output
    assert "left out" not in checked.output
    assert "hidden, not declared" not in re.sub(r"hidden, not declared: \w*id\n", "", checked.output), (
        checked.output
    )
    assert run(policy, "check", "--preview").exit_code == 0
    assert run(policy, "budget", "create").exit_code == 0
    answered = re.findall(r"^#   (SELECT .*)$", text, re.MULTILINE)
    refused = re.findall(r"^#   ([0-9A-Z]{5}) (SELECT .*)$", text, re.MULTILINE)
    assert len(answered) >= 6
    assert len(refused) >= 1
    for statement in answered:
        done = run(policy, "query", statement)
        assert done.exit_code == 0, (statement, done.output)
        assert "(0 rows)" not in done.output, (statement, done.output)
    for code, statement in refused:
        done = run(policy, "query", statement)
        assert (done.exit_code, code in done.output) == (3, True), (statement, done.output)


@pytest.mark.parametrize("name", _TEMPLATES)
def test_every_table_of_a_template_is_asked_in_an_example(name: str, tmp_path: Path) -> None:
    policy = tmp_path / "x.toml"
    assert run(policy, "init", "--template", name).exit_code == 0
    text = policy.read_text("utf-8")
    asked = " ".join(re.findall(r"^#   (SELECT .*)$", text, re.MULTILINE))
    told = tomllib.loads(text)["tables"]
    assert [table for table in told if not re.search(rf"(FROM|JOIN) {table}\b", asked)] == []


def test_a_database_that_is_named_stands_in_the_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for number, (source, written) in enumerate(
        {
            "duckdb:my.duckdb": "duckdb:../my.duckdb",
            "my.duckdb": "duckdb:../my.duckdb",
            "postgresql://dpsql@db.example/register": "postgresql://dpsql@db.example/register",
        }.items()
    ):
        policy = tmp_path / "sub" / f"{number}.toml"
        assert run(policy, "init", "--template", "hospital", source).exit_code == 0
        assert tomllib.loads(policy.read_text("utf-8"))["database"] == written
        assert policy.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("visits.parquet",), "takes one database"),
        (("duckdb:a", "duckdb:b"), "Name one database"),
        (("mysql://x",), "takes one database"),
        (("--public", "drug"), "say in the policy which are public"),
    ],
)
def test_what_a_template_does_not_take(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    failed = run(tmp_path / "x.toml", "init", "--template", "hospital", *words)
    assert (failed.exit_code, said in failed.stderr) == (2, True), failed.output
    assert not (tmp_path / "x.toml").exists()


def test_a_template_is_not_written_over_a_policy(tmp_path: Path) -> None:
    policy = tmp_path / "x.toml"
    policy.write_text("# by hand\n")
    assert run(policy, "init", "--template", "hr").exit_code == 2
    assert policy.read_text() == "# by hand\n"
    assert run(policy, "init", "--template", "hr", "--force").exit_code == 0
    assert (tmp_path / "x.toml.old").read_text() == "# by hand\n"

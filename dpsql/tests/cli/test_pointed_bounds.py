"""`dpsql bounds TABLE --also COLUMN`: how many rows count of each person who is pointed at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.policy import load_policy

POLICY = """
database = "duckdb:forum.duckdb"
[privacy]
epsilon = 9
[tables.person]
unit = "id"
[tables.post]
unit = { column = "author", references = "person.id" }
max_rows = 50
[tables.vote]
unit = { column = "voter", references = "person.id" }
max_rows = 10
also = [{ column = "post", references = "post.id", max_rows = 10 }]
"""

Ask = Callable[..., Result]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """200 people with a post each; 100 of 4,000 votes point at each of the first 40, and 10 come from each voter."""
    with duckdb.connect(str(tmp_path / "forum.duckdb")) as database:
        database.execute("CREATE TABLE person AS SELECT range::INTEGER AS id FROM range(1, 401)")
        database.execute("ALTER TABLE person ADD PRIMARY KEY (id)")
        database.execute(
            "CREATE TABLE post (id INTEGER PRIMARY KEY, author INTEGER NOT NULL REFERENCES person (id))"
        )
        database.execute("INSERT INTO post SELECT id, id FROM person WHERE id <= 200")
        database.execute(
            "CREATE TABLE vote (id INTEGER PRIMARY KEY, voter INTEGER NOT NULL REFERENCES person (id), "
            "post INTEGER NOT NULL REFERENCES post (id))"
        )
        database.execute("INSERT INTO vote SELECT n, n % 400 + 1, n % 40 + 1 FROM range(4000) AS r(n)")
    (tmp_path / "dpsql.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(program, ["budget", "create"]).exit_code == 0
    return lambda *arguments: runner.invoke(program, list(arguments))


def test_what_was_measured_and_what_is_asked_are_of_the_same_people(ask: Ask) -> None:
    """The ledger keeps whose rows were charged (soundness.md 1.26): of a measurement's own bounds too."""
    for command in (
        ("bounds", "vote", "--epsilon", "1"),
        ("query", "SELECT COUNT(*) FROM vote"),
        ("bounds", "vote", "--also", "post", "--epsilon", "1"),
        ("query", "SELECT COUNT(*) FROM post"),
    ):
        assert ask(*command).exit_code == 0, command


def test_what_counts_under_each_bound_is_charged_once_and_pasted(ask: Ask, tmp_path: Path) -> None:
    """Of forty people each bound keeps so many rows, up to the 100 that there are."""
    result = ask("bounds", "vote", "--also", "post", "--epsilon", "6", "--for-epsilon", "1", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    body = json.loads(result.stdout)
    assert body["max_rows"] == {"declared": 10, "suggested": 100}
    assert [one["max_rows"] for one in body["kept"]] == [2, 5, 10, 20, 50, 100]
    for one in body["kept"]:
        assert abs(one["rows"] - 40 * one["max_rows"]) <= 3 * one["plus_minus_95"]
    assert ask("budget", "show").stdout.startswith("epsilon  6 of 9")
    shown = ask("bounds", "vote", "--also", "post", "--epsilon", "6", "--for-epsilon", "1").stdout
    assert shown.startswith("free: measured before, and stored; 3 left")
    assert "with at most 10 of each owner:" in shown
    assert "  max_rows = 10 (declared): " in shown
    assert "More may suit better still: declare this one and run it again." in shown
    assert body["policy"] in shown
    old = 'also = [{ column = "post", references = "post.id", max_rows = 10 }]'
    (tmp_path / "dpsql.toml").write_text(POLICY.replace(old, body["policy"].splitlines()[1]))
    assert load_policy(tmp_path / "dpsql.toml").tables["vote"].also[0].max_rows == 100


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("vote", "--also", "voter"), 5, 'table "vote" does not declare that voter points at a person'),
        (("person", "--also", "post"), 5, 'table "person" does not declare that post points at a person'),
        (("nothing", "--also", "post"), 5, 'no table "nothing"'),
        (("vote", "--also", "post", "--groups", "id"), 2, "--also is measured by itself"),
        (("vote", "--also", "post", "--epsilon", "10"), 4, "needs epsilon 10, left 9"),
    ],
)
def test_what_cannot_be_measured_costs_nothing(
    ask: Ask, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = ask("bounds", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert ask("budget", "show").stdout.startswith("epsilon  0 of 9 spent")

"""`dpsql bounds TABLE --norm COLUMN`: what most people's rows come to by a column, as roots of sums of squares."""

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
database = "duckdb:library.duckdb"
[privacy]
epsilon = 30
accounting = "zcdp"
delta = 1e-6
[tables.person]
unit = "id"
[tables.person.columns]
town = { values = ["A", "B"] }
[tables.loan]
unit = { column = "reader", references = "person.id" }
max_rows = 40
[tables.loan.columns]
day = { bounds = [2025-01-01, 2025-01-31] }
shelf = { values = ["x", "y"] }
fee = {}
[tables.once]
unit = { column = "reader", references = "person.id" }
max_rows = 1
[tables.place]
public = true
"""

Ask = Callable[..., Result]
RICH = ("--epsilon", "2", "--for-epsilon", "1")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """2,000 people of 16 loans on 16 days, half of them on one shelf; 100 more of 36 loans on one day."""
    with duckdb.connect(str(tmp_path / "library.duckdb")) as database:
        database.execute("CREATE TABLE person AS SELECT range::INTEGER AS id, 'A' AS town FROM range(2100)")
        database.execute("ALTER TABLE person ADD PRIMARY KEY (id)")
        database.execute("CREATE TABLE loan (reader INTEGER, day DATE, shelf TEXT, fee INTEGER)")
        database.execute(
            "INSERT INTO loan SELECT p.id, DATE '2025-01-01' + n::INTEGER, CASE n % 2 WHEN 0 THEN 'x' ELSE 'y' END, 0 "
            "FROM person AS p, range(16) AS r(n) WHERE p.id < 2000"
        )
        database.execute(
            "INSERT INTO loan SELECT p.id, DATE '2025-01-01', 'x', 0 FROM person AS p, range(36) WHERE p.id >= 2000"
        )
        database.execute("CREATE TABLE once AS SELECT id AS reader FROM person")
        database.execute("CREATE TABLE place AS SELECT 1 AS id")
    (tmp_path / "dpsql.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(program, ["budget", "create"]).exit_code == 0
    return lambda *arguments: runner.invoke(program, list(arguments))


def test_a_norm_of_most_people_is_found_and_what_it_leaves_out_is_told(ask: Ask, tmp_path: Path) -> None:
    """√16 = 4 by day holds 2,000 people of 2,100; the others keep 4 of their 36 loans: 3,200 of 35,600 are left out."""
    result = ask("bounds", "loan", "--norm", "day", *RICH, "--json")
    assert result.stderr == ""
    body = json.loads(result.stdout)
    assert body["max_norm"]["declared"] is None
    assert 30 <= body["max_norm"]["suggested"] <= 39  # few are left above, and 36 is what the others come to
    old, new = "max_rows = 40\n", "max_rows = 40\nmax_norm = { day = 4 }\n"
    (tmp_path / "dpsql.toml").write_text(POLICY.replace(old, new))
    before = ask("query", "SELECT day, COUNT(*) FROM loan GROUP BY day").stderr
    assert "what max_norm leaves out was never measured" in before
    result = ask("bounds", "loan", "--norm", "day", *RICH, "--json")
    declared = {one["max_norm"]: one for one in json.loads(result.stdout)["left_out"]}[4]
    share, near = (declared[f"share_of_rows_left_out{end}"] for end in ("", "_plus_minus_95"))
    assert abs(share - 3200 / 35600) <= 3 * near
    assert near < 0.03
    shown = ask("bounds", "loan", "--norm", "day", *RICH).stdout
    assert shown.startswith("free: measured before, and stored; ")
    assert "  max_norm = 4 (declared): it leaves out " in shown
    after = ask("query", "SELECT shelf, COUNT(*) FROM loan GROUP BY shelf").stderr
    assert "of max_norm, it leaves out " in after
    pasted = json.loads(result.stdout)["policy"].splitlines()[1]
    (tmp_path / "dpsql.toml").write_text(POLICY.replace(old, f"{old}{pasted}\n"))
    assert load_policy(tmp_path / "dpsql.toml").tables["loan"].max_norm[0][0] == "day"


def test_rows_beside_a_list_are_of_one_place(ask: Ask, tmp_path: Path) -> None:
    """Sixteen loans on days that no list has come to 16, not to 4."""
    late = POLICY.replace("bounds = [2025-01-01, 2025-01-31]", "bounds = [2024-01-01, 2024-01-31]")
    (tmp_path / "dpsql.toml").write_text(late.replace("max_rows = 40", "max_rows = 1000"))
    body = json.loads(ask("bounds", "loan", "--norm", "day", *RICH, "--json").stdout)
    assert body["max_norm"]["suggested"] >= 16
    with duckdb.connect(str(tmp_path / "library.duckdb")) as database:
        database.execute("DELETE FROM loan WHERE reader >= 2000")
    assert ask("refresh").exit_code == 0
    body = json.loads(ask("bounds", "loan", "--norm", "day", *RICH, "--json").stdout)
    assert 14 <= body["max_norm"]["suggested"] <= 25


def test_a_norm_by_months_is_found_and_pasted(ask: Ask, tmp_path: Path) -> None:
    """Sixteen loans of 2,000 people on sixteen days of one month come to 16; beyond the bounds, to 16 at their end."""
    with duckdb.connect(str(tmp_path / "library.duckdb")) as database:
        database.execute("DELETE FROM loan WHERE reader >= 2000")
    for days in ("[2025-01-01, 2025-01-31]", "[2024-01-01, 2024-02-29]"):
        policy = POLICY.replace("[2025-01-01, 2025-01-31]", days)
        (tmp_path / "dpsql.toml").write_text(policy)
        result = ask("bounds", "loan", "--norm", "month(day)", *RICH, "--json")
        body = json.loads(result.stdout)
        assert 14 <= body["max_norm"]["suggested"] <= 25
        (tmp_path / "dpsql.toml").write_text(
            policy.replace("max_rows = 40\n", f"max_rows = 40\n{body['policy'].splitlines()[1]}\n")
        )
        said = ask("explain", "SELECT date_trunc('month', day), COUNT(*) FROM loan GROUP BY 1").stdout
        most = body["max_norm"]["suggested"]
        assert f"{most} in root-sum-of-squares by month(day)" in said
        assert f"sensitivity (L2) {most}," in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("loan", "--norm", "fee"), 5, "is a column without a list of values; declare values or bounds"),
        (("loan", "--norm", "month(shelf)"), 5, "is of no column of dates with bounds; declare bounds"),
        (("loan", "--norm", "nothing"), 5, 'table "loan" declares no column "nothing"'),
        (("nothing", "--norm", "day"), 5, 'no table "nothing"'),
        (("loan", "--norm", "day", "--groups", "shelf"), 2, "--norm is measured by itself"),
        (("loan", "--norm", "day", "--also", "shelf"), 2, "leave one out"),
    ],
)
def test_what_cannot_be_measured_costs_nothing(
    ask: Ask, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = ask("bounds", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert ask("budget", "show").stdout.startswith("epsilon 0 of 30 spent")


def test_more_than_is_left_is_refused_before_anything_is_drawn(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        'ledger = "sqlite:small.db"\n' + POLICY.replace("epsilon = 30", "epsilon = 1")
    )
    assert ask("-P", "small.toml", "budget", "create").exit_code == 0
    result = ask("-P", "small.toml", "bounds", "loan", "--norm", "day", *RICH)
    assert (result.exit_code, result.stdout) == (4, "")
    assert ask("-P", "small.toml", "budget", "show").stdout.startswith("epsilon 0 of 1 spent")


@pytest.mark.parametrize("table", ["person", "once", "place"])
def test_where_nobody_has_several_rows_there_is_nothing_to_measure(ask: Ask, table: str) -> None:
    result = ask("bounds", table, "--norm", "town")
    assert result.exit_code == 0
    assert result.stdout.strip().endswith("needs a norm. Nothing was charged.")


def test_a_pure_dataset_has_no_squares(ask: Ask, tmp_path: Path) -> None:
    pure = POLICY.replace('accounting = "zcdp"\n', "").replace("library.duckdb", "library.duckdb")
    (tmp_path / "pure.toml").write_text(f'ledger = "sqlite:pure.db"\n{pure}')
    assert ask("-P", "pure.toml", "budget", "create").exit_code == 0
    result = ask("-P", "pure.toml", "bounds", "loan", "--norm", "day")
    assert result.exit_code == 5
    assert 'privacy.accounting = "zcdp" alone' in result.stderr
    assert "dpsql bounds loan --groups day" in result.stderr

"""First hours in process: what `make gate` does with an installed dpsql, over the same data."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program
from dpsql.tests.gate.first_hour import first_hour, make_data, manual_example, readme_commands
from dpsql.tests.gate.trials import MORE, TRIALS, Trial
from dpsql.tests.support.length import long_where
from dpsql.tests.support.postgres_server import PostgresServer


def run(words: tuple[str, ...]) -> str:
    done = CliRunner().invoke(program, list(words))
    assert done.exit_code == 0, (words, done.output)
    return done.output


def test_the_readme_says_what_the_trials_do() -> None:
    assert [command[0] for command in readme_commands()] == ["init", "check", "budget", "query"]


def hold(trial: Trial, database: str) -> None:
    first_hour(trial, database, run)
    if trial.manual:
        Path("manual.toml").write_text(manual_example(trial), "utf-8")
        assert "problem: " not in run(("-P", "manual.toml", "check"))
        run(("-P", "manual.toml", "budget", "create"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@long_where(lambda trial: trial.name in ("One CSV file of events", "A DuckDB file of views"))
@pytest.mark.parametrize(
    "trial", [one for one in (*TRIALS, *MORE) if not isinstance(one.data, str)], ids=lambda one: one.name
)
def test_a_first_hour(trial: Trial) -> None:
    hold(trial, make_data(trial, None))


@pytest.mark.parametrize(
    "trial", [one for one in (*TRIALS, *MORE) if isinstance(one.data, str)], ids=lambda one: one.name
)
def test_a_first_hour_on_postgres(trial: Trial, postgres: PostgresServer) -> None:
    hold(trial, make_data(trial, postgres))


def test_the_demo() -> None:
    run(("demo", "demo"))
    said = run(
        (
            "-P",
            "demo/campus.toml",
            "query",
            "--intervals",
            "0.95",
            "SELECT COUNT(*) AS n FROM student WHERE gpa > 3",
        )
    )
    assert "n_low" in said


def test_what_is_left_out_is_named() -> None:
    """Views are named as left out, with what to do: they wait as comments beside the tables that they read."""
    (trial,) = (one for one in (*TRIALS, *MORE) if one.name == "A DuckDB file of views")
    make_data(trial, None)
    said = run(("init", *trial.sources))
    for view in ("events", "totals"):
        assert f"left out: {view}: is a view; write view = true, and declare the tables that it reads" in said

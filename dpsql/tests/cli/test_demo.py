"""`dpsql demo`: the walk, twice, and a folder that is not its own."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.policy import load_policy


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["demo", *arguments])


def spent(folder: Path) -> float:
    result = CliRunner().invoke(program, ["-P", str(folder / "campus.toml"), "budget", "show", "--json"])
    return float(json.loads(result.stdout)["epsilon"]["spent"])


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("walk") / "demo"
    return folder, demo(str(folder))


def test_the_walk(walked: tuple[Path, Result]) -> None:
    folder, result = walked
    assert result.exit_code == 0, result.output
    assert "Made a university" in result.stdout
    assert result.stdout.count("charged epsilon") == 6
    assert result.stdout.count("free: answered from stored releases") == 1
    assert "ERROR PV002 at 1:8:" in result.stdout
    assert "HINT: " in result.stdout
    assert result.stdout.count("_low | ") == 7  # every answer has its error bar
    assert "8.2 of 10 epsilon left" in result.stdout
    lines = [line for line in result.stdout.split("\n") if str(folder) not in line]
    assert max(map(len, lines)) <= 100
    assert spent(folder) == pytest.approx(1.8)


def test_the_textbook(walked: tuple[Path, Result]) -> None:
    text = walked[1].stdout
    at_one_hundredth = text[text.index("textbook's") :]
    assert "sensitivity 2, Laplace scale 200, variance 80000, ± 599.15 at 95 %" in at_one_hundredth
    assert "sensitivity 2, Laplace scale 20000, variance 800000000, " in at_one_hundredth


@pytest.mark.parametrize("key", ["branch", "date_trunc('month', loaned_on)"])
def test_bars_over_loans_hold_the_truth(walked: tuple[Path, Result], key: str) -> None:
    """The demo's data and policy fit: noise of scale b misses a truth that lies d off with cosh(d / b) / 20."""
    most = load_policy(walked[0] / "campus.toml").tables["loan"].max_rows
    assert most is not None
    with duckdb.connect(str(walked[0] / "campus.duckdb"), read_only=True) as database:
        left_out = database.execute(
            f"SELECT {key}, SUM(1 - $1 / GREATEST(t, $1)) FROM loan JOIN (SELECT student_id, COUNT(*) AS t "
            "FROM loan GROUP BY 1) USING (student_id) GROUP BY 1",
            [float(most)],
        ).fetchall()
    assert len(left_out) in (5, 12)
    scale = most / 0.5  # the walk's epsilon there
    for _, lost in left_out:
        assert 0.945 < 1 - math.cosh(min(lost / scale, 3)) / 20 <= 0.95


def test_loans_by_branch_are_shown(walked: tuple[Path, Result]) -> None:
    folder, result = walked
    shown = dict(
        re.findall(r"^ (Science|Harbour|Medicine|Central|Law) +\| +(\d+) ", result.stdout, re.MULTILINE)
    )
    with duckdb.connect(str(folder / "campus.duckdb"), read_only=True) as database:
        true = dict(database.execute("SELECT branch, COUNT(*) FROM loan GROUP BY branch").fetchall())
    assert shown.keys() == true.keys()
    for branch, count in true.items():
        assert abs(int(shown[branch]) - count) < 4000


def test_a_folder_that_cannot_be_made() -> None:
    result = demo("/dev/null/demo")
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_the_second_walk_is_free(walked: tuple[Path, Result]) -> None:
    folder, first = walked
    before = spent(folder)
    result = demo(str(folder))
    assert result.exit_code == 0, result.output
    assert "holds the demo already" in result.stdout
    assert "charged epsilon" not in result.stdout
    assert spent(folder) == before
    counts = re.compile(r"^ (?:CS +\| +\d+ +\||Law|2025-11-01|    2.25) .*$", re.MULTILINE)
    assert len(counts.findall(first.stdout)) == 5
    assert counts.findall(result.stdout) == counts.findall(first.stdout)


def test_fresh_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert demo(str(folder)).exit_code == 0
    result = demo("--fresh", str(folder))
    assert result.exit_code == 0, result.output
    assert "Made a university" in result.stdout
    assert result.stdout.count("charged epsilon") == 6


@pytest.mark.parametrize("arguments", [(), ("--fresh",)])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "campus.toml").write_text("mine", "utf-8")
    (tmp_path / "thesis.txt").write_text("mine", "utf-8")
    result = demo(*arguments, str(tmp_path))
    assert result.exit_code == 2
    assert "thesis.txt" in result.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["campus.toml", "thesis.txt"]
    assert (tmp_path / "campus.toml").read_text("utf-8") == "mine"


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "demo"
    file.write_text("mine", "utf-8")
    assert demo(str(file)).exit_code == 2

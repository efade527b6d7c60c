"""`dpsql demo`: the walk, twice, and a folder that is not its own."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.cli.terminal import styled
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
    assert result.stderr == ""
    assert "Made a university" in result.stdout
    assert "All this cost epsilon 1.8. 8.2 of 10 is left: about 82 more statements at 0.1." in result.stdout
    lines = [line for line in result.stdout.split("\n") if str(folder) not in line]
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 80
    assert "\x1b" not in result.stdout
    assert spent(folder) == pytest.approx(1.8)


def test_the_attack_is_true_and_fails_through_dpsql(walked: tuple[Path, Result]) -> None:
    text = walked[1].stdout
    asked = r"SELECT COUNT\(\*\) FROM student WHERE gpa = 3\.36(?: AND id <> 7)? +(\d+) +(-?\d+) ± (\d+)\n"
    (everybody, noisy, bar), (others, less, other_bar) = re.findall(asked, text)
    with duckdb.connect(str(walked[0] / "campus.duckdb"), read_only=True) as database:
        assert database.execute("SELECT name, gpa::TEXT FROM student WHERE id = 7").fetchone() == (
            "Theo Evans",
            "3.36",
        )
        assert database.execute("SELECT COUNT(*) FROM student WHERE gpa = 3.36").fetchone() == (
            int(everybody),
        )
    assert int(everybody) - int(others) == 1
    assert bar == other_bar == "30"
    assert f"they differ by {int(noisy) - int(less)}, which is noise" in text
    six = text[text.index("An attack") :].split("\n\n")[0]
    assert len(six.splitlines()) == 6


def test_no_truth_hides_an_answer(walked: tuple[Path, Result]) -> None:
    """Each of the 45 truths is marked, and each of the twelve months' answers; in the histogram truths stand between bars."""
    text = walked[1].stdout
    assert text.count("×") + text.count("⊗") == 45 + 1 + 1  # and in the words that say what they are
    months = text[text.index("date_trunc") : text.index("bars hold the truth")]
    assert months.count("●") + months.count("⊗") == 12
    assert months.count("×") + months.count("⊗") == 12
    bins = text[text.index("floor(gpa*10)/10") : text.index("date_trunc")]
    assert "⊗" not in bins


def test_at_a_terminal_each_step_waits_for_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not asked for is not charged; a session is open at no prompt."""
    folder = tmp_path / "demo"
    asked: list[str] = []
    answers = iter(["", "q"])

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("dpsql.cli.demo_tour._sits_there", lambda: True)
    result = demo(str(folder))
    assert result.exit_code == 0, result.output
    assert asked == [
        "\n[Enter: four answers as pictures; q: leave] ",
        "\n[Enter: the next one; q: leave] ",
    ]
    assert "Biology" in result.stdout
    assert "AVG(gpa)" not in result.stdout
    assert "Now you:" in result.stdout
    assert spent(folder) == pytest.approx(0.3)


def test_the_pictures_hold_the_truth(walked: tuple[Path, Result]) -> None:
    """As many bars as are said do; of 45 at 95 % fewer than 30 would come once in 10^9 walks."""
    text = walked[1].stdout
    (held, bars), *_ = re.findall(r"(\d+) of (\d+) bars hold the truth", text)
    assert bars == "45"
    assert 30 <= int(held) <= 45
    assert len(re.findall(r"^ \w+ +\d+ ± 30  █+[├×]", text, re.MULTILINE)) >= 5
    assert re.search(r"^ CS +3\.\d+ ± 0\.00\d+ ", text, re.MULTILINE)
    assert re.search(r"MEDIAN.* 3\.\d+$", text, re.MULTILINE)
    (stars,) = re.findall(r"AVG\(stars\).* (\d\.\d+) ± 0\.0\d+$", text, re.MULTILINE)
    with duckdb.connect(str(walked[0] / "campus.duckdb"), read_only=True) as database:
        ((truth,),) = database.execute("SELECT AVG(stars) FROM review").fetchall()
    assert abs(float(stars) - truth) < 0.15


def test_the_textbook(walked: tuple[Path, Result]) -> None:
    text = walked[1].stdout
    assert "at 0.01: sensitivity 2, Laplace scale 200, variance 80000, ± 599.15\n" in text
    assert "at 0.0001: sensitivity 2, Laplace scale 20000, variance 800000000, " in text


def test_colour_where_the_terminal_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.cli.terminal.is_read_by_people", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert styled("n", colour="cyan", bold=True) == "\x1b[36m\x1b[1mn\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("n", colour="cyan") == "n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert styled("n", bold=True) == "n"
    monkeypatch.setattr("dpsql.cli.terminal.is_read_by_people", lambda: False)
    monkeypatch.setenv("TERM", "xterm")
    assert styled("n", bold=True) == "n"


def test_bars_over_loans_hold_the_truth(walked: tuple[Path, Result]) -> None:
    """The demo's data and policy fit: noise of scale b misses a truth that lies d off with cosh(d / b) / 20."""
    most = load_policy(walked[0] / "campus.toml").tables["loan"].max_rows
    assert most is not None
    with duckdb.connect(str(walked[0] / "campus.duckdb"), read_only=True) as database:
        left_out = database.execute(
            "SELECT month(loaned_on), SUM(1 - $1 / GREATEST(t, $1)) FROM loan JOIN (SELECT student_id, COUNT(*) AS t "
            "FROM loan WHERE days_out > 41 GROUP BY 1) USING (student_id) WHERE days_out > 41 GROUP BY 1",
            [float(most)],
        ).fetchall()
    assert len(left_out) == 12
    scale = most / 0.9  # the walk's epsilon there
    for _, lost in left_out:
        assert 0.945 < 1 - math.cosh(min(lost / scale, 3)) / 20 <= 0.95


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
    assert "All this was free, from the store. 8.2 of 10 is left" in result.stdout
    assert spent(folder) == before
    start = "\nAn attack"
    shown, again = (one.stdout[one.stdout.index(start) :].split("\nAll this") for one in (first, result))
    assert shown[0] == again[0]


def test_fresh_begins_anew(walked: tuple[Path, Result], tmp_path: Path) -> None:
    folder = shutil.copytree(walked[0], tmp_path / "demo")
    assert spent(folder) == pytest.approx(1.8)
    result = demo("--fresh", str(folder))
    assert result.exit_code == 0, result.output
    assert "Made a university" in result.stdout
    assert "All this cost epsilon 1.8." in result.stdout


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

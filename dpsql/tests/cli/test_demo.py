"""`dpsql demo`: the walk, twice, and a folder that is not its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program


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
    assert result.stdout.count("charged epsilon") == 5
    assert result.stdout.count("free: answered from stored releases") == 1
    assert "ERROR PV002 at 1:8:" in result.stdout
    assert "HINT: " in result.stdout
    assert spent(folder) == pytest.approx(1.3)


def test_the_textbook(walked: tuple[Path, Result]) -> None:
    text = walked[1].stdout
    at_one_hundredth = text[text.index("textbook's") :]
    for number in ("200", "80000", "20000"):
        assert re.search(rf"\b{number}\b", at_one_hundredth)


def test_the_second_walk_is_free(walked: tuple[Path, Result]) -> None:
    folder, first = walked
    before = spent(folder)
    result = demo(str(folder))
    assert result.exit_code == 0, result.output
    assert "holds the demo already" in result.stdout
    assert "charged epsilon" not in result.stdout
    assert spent(folder) == before
    counts = re.compile(r"^ CS .*$", re.MULTILINE)
    assert counts.findall(result.stdout) == counts.findall(first.stdout)


def test_fresh_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert demo(str(folder)).exit_code == 0
    result = demo("--fresh", str(folder))
    assert result.exit_code == 0, result.output
    assert "Made a university" in result.stdout
    assert result.stdout.count("charged epsilon") == 5


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

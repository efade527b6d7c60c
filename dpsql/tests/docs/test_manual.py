"""`dpsql docs`, and the shape of what it shows."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program

from .documents import DOCUMENTS, MANUAL, text


def docs(*arguments: str) -> str:
    result = CliRunner().invoke(program, ["docs", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_document_is_a_topic() -> None:
    folder = next(iter(MANUAL.values())).parent
    assert {path.stem for path in folder.iterdir()} == set(MANUAL)


def test_topics_have_a_line_each() -> None:
    lines = docs().splitlines()
    assert [line.split()[0] for line in lines] == list(MANUAL)
    assert all(re.fullmatch(r"[a-z-]+ +\S.{10,60}", line) for line in lines)


@pytest.mark.parametrize("topic", MANUAL)
def test_a_topic_is_shown_as_it_is(topic: str) -> None:
    assert docs(topic).rstrip("\n") == text(topic).rstrip("\n")


def test_to_a_pipe_it_is_plain_text() -> None:
    command = [sys.executable, "-m", "dpsql.cli", "docs", "threat-model"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.decode().rstrip("\n") == text("threat-model").rstrip("\n")


def test_an_unknown_topic_names_the_known_ones() -> None:
    result = CliRunner().invoke(program, ["docs", "everything"])
    assert result.exit_code == 2
    assert all(f"'{topic}'" in result.output for topic in MANUAL)


def test_the_readme_is_short_and_names_every_topic() -> None:
    assert len(text("README").encode()) < 13_000
    assert all(f"(dpsql/docs/{topic}.md)" in text("README") for topic in MANUAL)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_fit_a_screen(name: str) -> None:
    """Tables apart, and what a program printed."""
    plain = re.sub(r"^```.*?^```$", "", text(name), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in plain.splitlines() if len(line) > 125 and not line.startswith("|")] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there to read the unit")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    (unit,) = re.findall(r"```ini\n(\[Unit\].*?)```", text("operator"), re.DOTALL)
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # its keys are written as systemd's
    read.read_string(unit)
    program_path, *arguments = shlex.split(read["Service"]["ExecStart"])
    path = tmp_path / "dpsql.service"
    path.write_text(unit.replace(program_path, sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "dpsql.service" in done.stderr) == (0, False), done.stderr
    certificate, key = (tmp_path / name for name in ("server.pem", "server.key"))
    for file in (certificate, key):
        file.touch()
        arguments[arguments.index(file.name)] = str(file)
    tried = CliRunner().invoke(program, arguments)
    assert "campus.toml: cannot be read" in tried.output, "the options are those of the command"

"""`dpsql docs`, and the shape of what it shows."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.budget.entry import FORMAT, FORMATS
from dpsql.cli.application import program
from dpsql.cli.docs import parts_of, read_part, read_topic

from .documents import DOCUMENTS, MANUAL, ROOT, text


def docs(*arguments: str) -> str:
    result = CliRunner().invoke(program, ["docs", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_document_is_a_topic() -> None:
    folder = next(iter(MANUAL.values())).parent
    assert {path.stem for path in folder.iterdir() if path.suffix in (".md", ".ipynb")} == set(MANUAL)
    folders = {path.name for path in folder.iterdir() if path.suffix not in (".md", ".ipynb")}
    assert folders == {"deploy", "pictures", *(topic for topic in MANUAL if parts_of(topic))}


@pytest.mark.parametrize("topic", [topic for topic in MANUAL if parts_of(topic)])
def test_every_part_is_listed_once_and_shown(topic: str) -> None:
    parts = parts_of(topic)
    assert sorted(parts) == sorted(path.stem for path in MANUAL[topic].with_suffix("").iterdir())
    for part in parts:
        shown = docs(topic, part)
        assert shown.rstrip("\n") == read_part(topic, part).rstrip("\n")
        assert shown.startswith(f"# {text(topic)[2:].partition(':')[0]}: "), part


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        (("soundness", "1.1"), "## 1.1 Sensitivities", "two measurements would let a subtraction cancel it."),
        (("soundness", "1.15(2)"), "## 1.15 Replace-one", "whatever each would have alone."),
        (("soundness", "L5"), "### L5 Charge first", "kills the process at every step."),
        (("analyst", "what", "it", "costs"), "## What it costs", ""),
    ],
)
def test_a_section_is_shown_by_how_its_heading_begins(
    arguments: tuple[str, ...], first: str, last: str
) -> None:
    lines = docs(*arguments).rstrip("\n").splitlines()
    assert lines[0] == first
    assert lines[-1].endswith(last)
    assert not any(line.startswith(("# ", "## ")) for line in lines[1:])


def test_search_shows_sections_with_all_of_the_words_those_first_whose_heading_has_them() -> None:
    lines = docs("search", "Percentiles", "median").splitlines()
    assert lines[0] == "dpsql docs sql values: Medians, percentiles, MIN and MAX"
    page = ""
    for line in lines[:-1]:
        if line.startswith("dpsql docs "):
            document, _, title = line.removeprefix("dpsql docs ").partition(": ")
            topic, _, part = document.partition(" ")
            page = read_part(topic, part) if part else read_topic(topic)
            assert f"# {title}\n" in page
        else:
            assert line.strip().removesuffix("…") in page
            assert "percentiles" in page.casefold()


def test_search_for_what_is_nowhere_or_for_nothing() -> None:
    assert docs("search", "xylophone") == "No section of the manual has xylophone.\n\n"
    result = CliRunner().invoke(program, ["docs", "search"])
    assert (result.exit_code, "say what to look for" in result.output) == (2, True)


def test_a_part_that_is_not_there_is_told_with_those_that_are() -> None:
    result = CliRunner().invoke(program, ["docs", "soundness", "1.99"])
    assert result.exit_code == 2
    assert "soundness has no part '1.99'" in result.output
    assert "core" in result.output


def test_topics_have_a_line_each() -> None:
    lines = docs().splitlines()
    assert [line.split()[0] for line in lines] == list(MANUAL)
    assert all(re.fullmatch(r"[a-z-]+ +\S.{10,60}", line) for line in lines)


@pytest.mark.parametrize("topic", MANUAL)
def test_a_topic_is_shown_as_it_is(topic: str) -> None:
    assert docs(topic).rstrip("\n") == read_topic(topic).rstrip("\n")


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
    assert all(f"(dpsql/docs/{path.name})" in text("README") for path in MANUAL.values())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_fit_a_screen(name: str) -> None:
    """Tables apart, and what a program printed."""
    plain = re.sub(r"^```.*?^```$", "", text(name), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in plain.splitlines() if len(line) > 125 and not line.startswith("|")] == []


DEPLOY = ROOT / "dpsql" / "docs" / "deploy"
UNITS = (
    "dpsql.service", "dpsql-backup.service", "dpsql-backup.timer", "dpsql-release.service", "dpsql-release.timer",
)  # fmt: skip


def _read_unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # its keys are written as systemd's
    read.read_string((DEPLOY / name).read_text("utf-8"))
    return read


def test_the_manual_shows_the_files_of_the_repository() -> None:
    assert re.findall(r"```ini\n(\[Unit\].*?)```", text("operator"), re.DOTALL) == [
        (DEPLOY / name).read_text("utf-8") for name in UNITS
    ]
    (shown,) = re.findall(r"```dockerfile\n(.*?)```", text("operator"), re.DOTALL)
    recipe = (DEPLOY / "Containerfile").read_text("utf-8")
    assert shown == re.sub(r"^#.*\n", "", recipe, flags=re.MULTILINE)
    assert sorted(path.name for path in DEPLOY.iterdir()) == sorted((*UNITS, "Containerfile"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not there to read the unit")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit(tmp_path: Path, name: str) -> None:
    for each in UNITS:
        unit = (DEPLOY / each).read_text("utf-8").replace("/srv/dpsql/.venv/bin/dpsql", sys.executable)
        (tmp_path / each).write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "dpsql" in done.stderr) == (0, False), done.stderr


def test_what_the_units_run_are_commands(tmp_path: Path) -> None:
    _, *arguments = shlex.split(_read_unit("dpsql.service")["Service"]["ExecStart"])
    certificate, key = (tmp_path / name for name in ("server.pem", "server.key"))
    for file in (certificate, key):
        file.touch()
        arguments[arguments.index(file.name)] = str(file)
    tried = CliRunner().invoke(program, arguments)
    assert "campus.toml: cannot be read" in tried.output, "the options are those of the command"


def test_the_nightly_unit_backs_up_and_compares(reader: Path) -> None:
    """Both of its lines are run as they stand, in the demo's folder, with a shell where the unit has one."""
    started = re.findall(
        r"^ExecStart=(.*)$", (DEPLOY / "dpsql-backup.service").read_text("utf-8"), re.MULTILINE
    )
    assert len(started) == 2
    program_path = f"{sys.executable} -m dpsql.cli"
    for line in started:
        command = line.replace("%%", "%").replace("/srv/dpsql/.venv/bin/dpsql", program_path)
        command = command.replace("/srv/backup", str(reader))
        done = subprocess.run(
            shlex.split(command), cwd=reader / "demo", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = [path for path in reader.iterdir() if re.fullmatch(r"\d{4}-\d\d-\d\d", path.name)]
    assert {"campus-ledger.db", "campus-ledger.db.log"} <= {path.name for path in folder.iterdir()}


def test_what_the_units_release_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words are read, and it ends at the policy that is not there."""
    monkeypatch.chdir(tmp_path)
    Path("report.sql").write_text("SELECT 1", "utf-8")
    _, *arguments = shlex.split(_read_unit("dpsql-release.service")["Service"]["ExecStart"])
    tried = CliRunner().invoke(program, arguments)
    assert (tried.exit_code, "campus.toml" in tried.stderr) == (5, True), tried.output


def _dockerfile() -> list[tuple[str, str]]:
    """Return the image's recipe, as instructions and what follows them."""
    found = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text("utf-8"), flags=re.MULTILINE)
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in found.splitlines())]


def test_the_image_is_made_by_commands_that_exist(tmp_path: Path) -> None:
    steps = _dockerfile()
    known = subprocess.run([sys.executable, "-m", "pip", "install", "--help"], capture_output=True, text=True)
    for step in (shlex.split(rest) for word, rest in steps if word == "RUN"):
        if step[0] == "useradd" and shutil.which("useradd") is not None:
            told = subprocess.run(["useradd", "--help"], capture_output=True, text=True, check=False)
            assert {option for option in step if option.startswith("--")} <= set(_options(told.stdout)), step
        elif step[:3] == ["python", "-m", "venv"]:
            made = tmp_path / step[3].removeprefix("/")
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
        elif step[0] != "useradd":
            program_path = Path(step[0])
            assert (program_path.name, step[1]) == ("pip", "install"), step
            assert (tmp_path / "opt/dpsql/bin/python").exists(), "the environment comes first"
            assert {option for option in step if option.startswith("--")} <= set(_options(known.stdout)), step


def _options(help_text: str) -> list[str]:
    return re.findall(r"--[a-z][a-z-]*", help_text)


def test_the_image_has_what_the_repository_makes_and_starts_the_server(tmp_path: Path) -> None:
    steps = _dockerfile()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    (copied,) = (rest.split() for word, rest in steps if word == "COPY")
    assert copied == ["dpsql/constraints.txt", f"dist/dpsql-{version}-py3-none-any.whl", "/tmp/"]
    assert (ROOT / copied[0]).exists()
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert ignored == ["*", "!dpsql/constraints.txt", "!dist/*.whl"]
    runs = " ".join(rest for word, rest in steps if word == "RUN")
    assert all(f"/tmp/{Path(name).name}" in runs for name in copied[:2])
    last = dict(steps)
    assert last["USER"] != "root"
    assert json.loads(last["VOLUME"]) == [last["WORKDIR"]]
    assert f" {last['USER']}\n" in f"{next(rest for word, rest in steps if word == 'RUN')}\n"
    assert json.loads(last["ENTRYPOINT"]) == ["/opt/dpsql/bin/dpsql"]
    arguments = json.loads(last["CMD"])
    for name in ("server.pem", "server.key"):
        (tmp_path / name).touch()
        arguments[arguments.index(name)] = str(tmp_path / name)
    tried = CliRunner().invoke(program, arguments)
    assert "campus.toml: cannot be read" in tried.output, "the options are those of the command"


def _health_check(port: int) -> list[str]:
    words = json.loads(dict(_dockerfile())["HEALTHCHECK"].partition(" CMD ")[2])
    assert words[0] == "/opt/dpsql/bin/python"
    assert "port=5433" in words[2]
    return [sys.executable, *(word.replace("port=5433", f"port={port}") for word in words[1:])]


def test_the_health_check_says_whether_a_server_is_up(reader: Path) -> None:
    command = [sys.executable, "-m", "dpsql.cli", "demo", "--serve", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=reader, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if '"listening"' in line)
        port = json.loads(line)["port"]
        try:
            assert subprocess.run(_health_check(port), check=False).returncode == 0
        finally:
            server.terminate()
        server.wait(60)
    assert subprocess.run(_health_check(port), check=False).returncode == 1


def _has_builder() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


@pytest.mark.long
def test_the_image_is_built_and_answers(tmp_path: Path) -> None:
    if not _has_builder():
        pytest.skip("there is no daemon that builds images")
    context = tmp_path / "context"
    shutil.copytree(ROOT / "dpsql", context / "dpsql", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".dockerignore"):
        shutil.copy(ROOT / name, context)
    subprocess.run([sys.executable, "-m", "build", "--wheel", str(context)], check=True)
    build = ["docker", "build", "--file", "dpsql/docs/deploy/Containerfile", "--tag", "dpsql-under-test", "."]
    subprocess.run(build, cwd=context, check=True)
    run = ["docker", "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "dpsql-under-test"]
    shown = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("dpsql")
    made = subprocess.run([*run, "demo", "/tmp/demo"], capture_output=True, text=True, check=True).stdout
    assert "All this cost epsilon 1.8." in made


@pytest.mark.skipif(shutil.which("docker") is None, reason="Docker is not there to say its options")
def test_docker_has_the_options_of_the_manual() -> None:
    found = re.findall(r"^docker (?:.*\\\n)*.*$", text("operator"), re.MULTILINE)
    assert len(found) == 4
    for command in found:
        words = shlex.split(command.replace("\\\n", " "))
        told = subprocess.run(
            ["docker", words[1], "--help"], capture_output=True, text=True, check=False
        ).stdout
        assert {word for word in words if word.startswith("--")} <= set(_options(told)), command


def test_the_upgrade_notes_table_of_formats_is_whole() -> None:
    rows = re.findall(r"^\| (\d) \| (.*?) \|", text("operator"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, FORMAT + 1))
    assert set(FORMATS.values()) == {4, 5}
    assert "laws of noise" in rows[1][1]
    assert "zcdp" in rows[2][1]
    assert "certificates" in rows[3][1]
    assert "zcdp" in rows[4][1]
    assert "[privacy.time]" in rows[5][1]
    assert "zcdp" in rows[6][1]

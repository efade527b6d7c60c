"""What is shipped works: the wheel, installed into a clean environment, runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without what would let it find this source tree or this environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.mark.long
def test_an_index_would_take_wheel_and_sdist(built: Path) -> None:
    pytest.importorskip("twine")
    files = sorted(built.iterdir())
    assert [path.suffix for path in files] == [".whl", ".gz"]
    said = run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=built)
    assert said.count("PASSED") == 2
    with zipfile.ZipFile(files[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        told = message_from_bytes(wheel.read(name))
        entries = wheel.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert all(told[field] for field in (
        "Name", "Version", "Summary", "Author", "Keywords", "License-Expression", "License-File", "Requires-Python",
    ))  # fmt: skip
    assert told["Description-Content-Type"] == "text/markdown"
    assert {"Typing :: Typed", "Topic :: Database :: Front-Ends"} <= set(told.get_all("Classifier"))
    assert "\ndpsql = dpsql.cli:main\n" in entries, "what uvx dpsql and pipx run dpsql look for"
    with tarfile.open(files[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "dpsql/docs/deploy/Containerfile",
        "dpsql/docs/deploy/dpsql.service",
        ".dockerignore",
        "Makefile",
        "LICENSE",
    } <= names
    assert {"dpsql/tests/conftest.py", "grammar_tests/conftest.py"} <= names


@pytest.mark.long
def test_the_wheel_runs_the_demo(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("dpsql-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dpsql/py.typed", "dpsql/constraints.txt"} <= set(names)
    assert {
        "dpsql/docs/soundness.md",
        "dpsql/docs/soundness/core.md",
        "dpsql/docs/sql.md",
        "dpsql/docs/notebook.ipynb",
    } <= set(names)
    assert {f"dpsql/studio/report_page/{name}" for name in ("report.css", "charts.css", "report.js")} <= set(
        names
    )
    assert {f"dpsql/cli/templates/{name}.toml" for name in ("course", "hospital", "hr", "statistics")} <= set(
        names
    )
    assert {"dpsql/docs/textbook.md", "dpsql/docs/textbook/exercises.md"} <= set(names)
    assert not [name for name in names if "/tests/" in name or not name.startswith("dpsql")]
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    shown = run(python.with_name("dpsql"), "demo", "university", cwd=tmp_path)
    assert "\nsoundness " in run(python.with_name("dpsql"), "docs", cwd=tmp_path)
    assert "All this cost epsilon 1.8. 8.2 of 10 is left" in shown
    assert "sensitivity 2, Laplace scale 200, variance 80000" in shown
    assert "Right." in run(python.with_name("dpsql"), "textbook", "4.1", "24", cwd=tmp_path)
    run(python.with_name("dpsql"), "init", "--template", "hospital", cwd=tmp_path)
    assert "0.1 of" not in run(
        python.with_name("dpsql"), "-P", "university/textbook.toml", "budget", "show", cwd=tmp_path
    )

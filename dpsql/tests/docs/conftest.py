"""A demo that was walked through, which is where a reader of the documents stands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("walked") / "demo"
    result = CliRunner().invoke(program, ["demo", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def reader(walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the reader's own with the demo in it; it is the current one, and a terminal shows what is answered."""
    shutil.copytree(walked, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("dpsql.cli.query.is_read_by_people", lambda: True)
    return tmp_path

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
    """A folder of the reader's own with the demo in it; it is the current one."""
    shutil.copytree(walked, tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    return tmp_path

"""A demo university for every test: real DuckDB, real ledger, real policy files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpsql.cli.application import program
from dpsql.cli.demo_folder import MAIN_POLICY, make_folder

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("university") / "demo"
    assert make_folder(folder, fresh=False)
    return folder


@pytest.fixture
def campus(made_once: Path, tmp_path: Path) -> Path:
    """The policy of a demo of the test's own, with nothing spent yet."""
    return shutil.copytree(made_once, tmp_path / "demo") / MAIN_POLICY


@pytest.fixture
def run(campus: Path) -> Run:
    """Run the program with that policy: `run("query", "SELECT 1", input="…")`."""

    def call(*arguments: str, policy: Path = campus, **options: str) -> Result:
        return CliRunner().invoke(program, ["-P", str(policy), *arguments], **options)  # type: ignore[arg-type]  # options of invoke

    return call

"""A demo university for every test: real DuckDB, real ledger, real policy files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpsql.cli import interrupts
from dpsql.cli.application import program
from dpsql.cli.demo import MAIN_POLICY, make_folder

Run = Callable[..., Result]
COUNT = "SELECT COUNT(*) AS n FROM student"
ENDLESS = (
    f"SELECT COUNT(*) AS n FROM ({COUNT}) AS t, course AS a, course AS b, course AS c, course AS d, course AS e,"
    " course AS f WHERE (a.id * b.id + c.id * d.id + e.id * f.id + t.n) % 7 = 3"
)
"""Charged, stored, and then years of post-processing: only Ctrl-C ends it."""


@pytest.fixture(autouse=True)
def _nobody_has_pressed() -> Iterator[None]:
    """A Ctrl-C that a test met in this process is none of the next one's."""
    yield
    interrupts.forget()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("university") / "demo"
    assert make_folder(folder, fresh=False)
    return folder


@pytest.fixture
def campus(made_once: Path, tmp_path: Path) -> Path:
    """The policy of a demo of the test's own, with nothing spent yet."""
    return shutil.copytree(made_once, tmp_path / "demo") / MAIN_POLICY


def length_of_log(campus: Path) -> int:
    """Return the length of the log beside the ledger."""
    return (campus.parent / "campus-ledger.db.log").stat().st_size


def wait_for_charge(campus: Path, before: int) -> None:
    """Wait until the log is longer than it was."""
    deadline = time.monotonic() + 300
    while length_of_log(campus) == before and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.fixture
def run(campus: Path) -> Run:
    """Run the program with that policy: `run("query", "SELECT 1", input="…")`."""

    def call(*arguments: str, policy: Path = campus, **options: str) -> Result:
        return CliRunner().invoke(program, ["-P", str(policy), *arguments], **options)  # type: ignore[arg-type]  # options of invoke

    return call

"""`dpsql release` of whole processes, on a ledger in a file and on a server: two at once, and killed."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.engine.dataset import open_ledger
from dpsql.policy import load_policy
from dpsql.tests.cli.test_release import DASHBOARD, STOPPED
from dpsql.tests.support.forked import Forked, run_forked
from dpsql.tests.support.length import long_where

from .samples import Place

PRICE = 281_233_000
"""Of the dashboard, in 1e-9."""
SHARED = """SELECT COUNT(*) AS n FROM student;
SELECT major, COUNT(*) AS n FROM student GROUP BY major;
"""


@pytest.fixture(scope="module")
def university(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("university") / "demo"
    assert make_folder(folder, fresh=False)
    return folder


@pytest.fixture
def policy(university: Path, tmp_path: Path, place: Place) -> Path:
    """The demo's policy with its ledger at the place, and nothing spent yet."""
    path = shutil.copytree(university, tmp_path / "demo") / MAIN_POLICY
    text = path.read_text("utf-8")
    assert "sqlite:campus-ledger.db" in text
    path.write_text(text.replace("sqlite:campus-ledger.db", place.url), "utf-8")
    open_ledger(load_policy(path), create=True).close()
    (tmp_path / "dashboard.sql").write_text(DASHBOARD, "utf-8")
    (tmp_path / "shared.sql").write_text(SHARED, "utf-8")
    return path


def started(policy: Path, *arguments: str) -> subprocess.Popen[str]:
    return Forked(
        ["-m", "dpsql.cli", "-P", str(policy), "release", *arguments, "--yes"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def released(policy: Path, name: str) -> str:
    process = started(policy, str(policy.parent.parent / name))
    answers, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return answers


def spent(policy: Path) -> int:
    store = open_ledger(load_policy(policy), create=False)
    try:
        return store.spent().epsilon_nano
    finally:
        store.close()


def numbers(answers: str) -> list[str]:
    """Return what was answered, without the receipts, which say who was charged."""
    return [line for line in answers.splitlines() if "|" in line or line.strip().lstrip("-").isdigit()]


@long_where(lambda place, moment: (place is None) == (moment == "after"))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_between_the_charge_and_the_answers(policy: Path, moment: str) -> None:
    """Spent once before the draws are stored, and then charged again; after it free, with what was stored."""
    file = str(policy.parent.parent / "dashboard.sql")
    stopped = run_forked(["-c", STOPPED, "-P", str(policy), "release", file, "--yes", moment])
    assert (stopped.returncode, stopped.stdout) == (-signal.SIGKILL, ""), stopped.stderr
    assert spent(policy) == PRICE
    first = released(policy, "dashboard.sql")
    assert spent(policy) == PRICE * (2 if moment == "before" else 1)
    assert released(policy, "dashboard.sql") == first
    assert spent(policy) == PRICE * (2 if moment == "before" else 1)


def test_two_at_once(policy: Path) -> None:
    """The same file from two processes is paid for once, and both are answered alike."""
    racers = [started(policy, str(policy.parent.parent / "dashboard.sql")) for _ in range(2)]
    ended = [racer.communicate(timeout=600) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0], ended
    assert spent(policy) == PRICE
    one, other = (numbers(answers) for answers, _ in ended)
    assert one == other
    assert len(one) > 5
    assert numbers(released(policy, "dashboard.sql")) == one


@long_where(lambda place: place is None)
def test_two_files_that_share_a_measure(policy: Path) -> None:
    racers = [started(policy, str(policy.parent.parent / name)) for name in ("dashboard.sql", "shared.sql")]
    ended = [racer.communicate(timeout=600) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0], ended
    assert spent(policy) == PRICE
    assert numbers(released(policy, "shared.sql")) == numbers(ended[1][0])

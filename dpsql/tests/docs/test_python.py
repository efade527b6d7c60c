"""The documents' examples in Python run, and print what is said."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from dpsql.cli.demo import MAIN_POLICY, make_folder
from dpsql.pgwire import make_verifier

from ..server.conftest import PASSWORD, needs_psql, run_server
from .documents import blocks, section

LINE = re.compile(r"^campus=> (.*)\n((?:.*\n)*?)(?=\n?campus=>|\Z)", re.MULTILINE)
CLIENTS = "From psql and other clients"


def printed(example: str) -> str:
    """Return what an example prints in the current folder."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(example, {})  # noqa: S102 (our own documents)
    return shown.getvalue()


def only(mark: str) -> str:
    """Return the one example of the manual for Python that has this text in it."""
    (example,) = (block for block in blocks("python", "python") if mark in block)
    return example


def test_every_example_is_run_here() -> None:
    assert len(blocks("README", "python")) == 1
    assert len(blocks("python", "python")) == 3
    assert len(blocks("analyst", "python")) == 2


def test_the_attack_on_the_bare_database(reader: Path) -> None:
    (example,) = blocks("README", "python")
    (shown,) = blocks("README", "output")
    assert printed(example) == shown


def test_a_session(reader: Path) -> None:
    shown = printed(only("dpsql.Session"))
    assert shown.startswith("['gpa', 'gpa_low', 'gpa_high'] [(Decimal('")
    assert "\n1/10 81/10 False\n" in shown
    assert "\n  at most 60 rows of a person\n" in shown


def test_connect(reader: Path) -> None:
    shown = printed(only("dpsql.connect"))
    assert shown.startswith("('gpa', 'numeric', None, None, None, None, None) (major='")
    assert "gpa_high: double" in shown
    assert "\n1/20 163/20\n" in shown
    assert "Laplace scale" in shown


def test_sqlalchemy(reader: Path) -> None:
    lines = printed(only("dpsql:///")).splitlines()
    assert lines[0].split() == ["major", "gpa"]
    assert lines[1].split()[:2] == ["0", "Biology"]
    assert lines[7] == "charged epsilon 0.05; 8.15 left"
    comment = 'private, one row per unit in "id" | bounds 2 to 4, step 0.01; COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 201'
    assert lines[-2].startswith(comment)
    assert int(lines[-1]) > 0


# --- over the wire ------------------------------------------------------------------------------------


def policy_of_a_demo(folder: Path) -> Path:
    make_folder(folder, fresh=False)
    policy = folder / MAIN_POLICY
    line = f'[analysts.alice]\nepsilon = 3\npassword = "{make_verifier(PASSWORD).text()}"\n'
    policy.write_text(policy.read_text("utf-8") + "\n" + line, encoding="utf-8")
    return policy


def without_noise(text: str) -> list[str]:
    """Return the lines in alphabetical order, numbers and the widths of columns left out."""
    return sorted(
        re.sub(r"[-\s]+", " ", re.sub(r"\d\d+", "", line)).strip() for line in text.splitlines() if line
    )


@needs_psql
def test_the_session_in_psql(tmp_path: Path) -> None:
    plain = re.findall(r"```\n(.*?)```", section("analyst", CLIENTS), re.DOTALL)
    (shown_first,) = [block for block in plain if "dpsql user add" in block]
    examples = LINE.findall(shown_first)
    assert len(examples) == 2
    with run_server(policy_of_a_demo(tmp_path / "demo")) as server:
        for sql, shown in examples:
            found = server.psql("", "-c", sql, "-d", "campus")
            assert without_noise(found) == without_noise(shown)


def test_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    driver, frame = blocks("analyst", "python")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with run_server(policy_of_a_demo(tmp_path / "demo")) as server:
        port = str(server.port)
        exec(driver.replace("5433", port), {})  # noqa: S102 (our own documents)
        assert re.fullmatch(r"\(Decimal\('[23]\.\d+'\),\)\n", capsys.readouterr().out)
        names: dict[str, Any] = {}
        exec(frame.replace("5433", port), names)  # noqa: S102 (our own documents)
        names["engine"].dispose()
    assert len(re.findall(r"^\d +\w+ +[23]\.\d+$", capsys.readouterr().out, re.MULTILINE)) == 6

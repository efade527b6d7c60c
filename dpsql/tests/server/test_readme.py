"""The README's section on psql and other clients is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dpsql.cli.demo_folder import MAIN_POLICY, make_folder
from dpsql.pgwire import make_verifier

from .conftest import PASSWORD, needs_psql, run_server

README = Path(__file__).parents[3] / "README.md"
LINE = re.compile(r"^campus=> (.*)\n((?:.*\n)*?)(?=\n?campus=>|\Z)", re.MULTILINE)


def section() -> str:
    return README.read_text("utf-8").split("## From psql and other clients\n")[1].split("\n## ")[0]


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
    blocks = re.findall(r"```\n(.*?)```", section(), re.DOTALL)
    (shown_first,) = [block for block in blocks if "dpsql user add" in block]
    examples = LINE.findall(shown_first)
    assert len(examples) == 2
    with run_server(policy_of_a_demo(tmp_path / "demo")) as server:
        for sql, shown in examples:
            found = server.psql("", "-c", sql, "-d", "campus")
            assert without_noise(found) == without_noise(shown)


def test_the_examples_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver, frame = re.findall(r"```python\n(.*?)```", section(), re.DOTALL)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with run_server(policy_of_a_demo(tmp_path / "demo")) as server:
        port = str(server.port)
        exec(driver.replace("5433", port), {})  # noqa: S102 (our own README)
        assert re.fullmatch(r"\(Decimal\('[23]\.\d+'\),\)\n", capsys.readouterr().out)
        names: dict[str, Any] = {}
        exec(frame.replace("5433", port), names)  # noqa: S102 (our own README)
        names["engine"].dispose()
    assert len(re.findall(r"^\d +\w+ +[23]\.\d+$", capsys.readouterr().out, re.MULTILINE)) == 6

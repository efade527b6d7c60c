"""The README's examples of `dpsql.connect` and of SQLAlchemy run."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from dpsql.cli.demo_folder import make_folder

README = Path(__file__).parents[3] / "README.md"


def printed(mark: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the one example with some text in it prints, over a fresh demo."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (example,) = (block for block in blocks if mark in block)
    make_folder(folder / "demo", fresh=False)
    monkeypatch.chdir(folder)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(example, {})  # noqa: S102 (our own README)
    return shown.getvalue()


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed("dpsql.connect", tmp_path, monkeypatch)
    assert text.startswith("('gpa', 'numeric', None, None, None, None, None) ('")
    assert "gpa_high: double" in text
    assert "\n1/20 199/20\n" in text
    assert "Laplace scale" in text


def test_the_example_of_sqlalchemy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed("dpsql:///", tmp_path, monkeypatch).splitlines()
    assert lines[0].split() == ["major", "gpa"]
    assert lines[1].split()[:2] == ["0", "Biology"]
    comment = 'private, one row per unit in "id" | bounds 2 to 4, step 0.01; COUNT, SUM, AVG, STDDEV; group keys: 201'
    assert lines[-2].startswith(comment)
    assert int(lines[-1]) > 0

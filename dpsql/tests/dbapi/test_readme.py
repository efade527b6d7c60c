"""The README's example of `dpsql.connect` runs."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from dpsql.cli.demo_folder import make_folder

README = Path(__file__).parents[3] / "README.md"


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
        if "dpsql.connect" in block
    )
    make_folder(tmp_path / "demo", fresh=False)
    monkeypatch.chdir(tmp_path)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(example, {})  # noqa: S102 (our own README)
    text = shown.getvalue()
    assert text.startswith("('gpa', 'numeric', None, None, None, None, None) ('")
    assert "gpa_high: double" in text
    assert "\n1/20 199/20\n" in text
    assert "Laplace scale" in text

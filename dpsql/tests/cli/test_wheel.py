"""What is shipped works: the wheel, installed into a clean environment, runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without what would let it find this source tree or this environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_wheel_runs_the_demo(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("dpsql-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dpsql/py.typed", "dpsql/constraints.txt"} <= set(names)
    assert {
        "dpsql/docs/soundness.md",
        "dpsql/docs/soundness/core.md",
        "dpsql/docs/sql.md",
        "dpsql/docs/notebook.ipynb",
    } <= set(names)
    assert {f"dpsql/cli/owner_page/{name}" for name in ("page.css", "charts.css", "page.js")} <= set(names)
    assert not [name for name in names if "/tests/" in name or not name.startswith("dpsql")]
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    shown = run(python.with_name("dpsql"), "demo", "university", cwd=tmp_path)
    assert "\nsoundness " in run(python.with_name("dpsql"), "docs", cwd=tmp_path)
    assert "All this cost epsilon 1.8. 8.2 of 10 is left" in shown
    assert {
        "dpsql/cli/owner_page/page.css",
        "dpsql/cli/owner_page/page.js",
        "dpsql/cli/owner_page/charts.css",
    } <= set(names)
    assert "sensitivity 2, Laplace scale 200, variance 80000" in shown
    assert "0.1 of" not in run(
        python.with_name("dpsql"), "-P", "university/textbook.toml", "budget", "show", cwd=tmp_path
    )

"""SQLAlchemy's own suite for dialects, in a pytest of its own.

What is not run is named, with its reason, in `sqlalchemy_suite/requirements.py` (areas that the suite asks
about) and `sqlalchemy_suite/left_out.py` (single tests).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SUITE = Path(__file__).with_name("sqlalchemy_suite")
LEAST_PASSED = 570
SETTINGS = """
[pytest]
python_files = suite.py
[sqla_testing]
requirement_cls = dpsql.tests.dbapi.sqlalchemy_suite.requirements:Requirements
profile_file = profiles.txt
"""


@pytest.mark.long
def test_the_suite_passes(tmp_path: Path) -> None:
    for name in ("pytest.ini", "setup.cfg"):
        (tmp_path / name).write_text(SETTINGS)
    command = [
        sys.executable, "-m", "pytest", str(SUITE / "suite.py"), "-c", "pytest.ini", "--rootdir", ".", "-q", "--tb=short",
        "-p", "dpsql.tests.dbapi.sqlalchemy_suite.plugin", "-p", "no:cacheprovider", "-p", "no:xdist",
        "--dburi", f"dpsql:///{tmp_path}/suite.toml", "--junitxml", "found.xml",
    ]  # fmt: skip
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    (found,) = ElementTree.parse(tmp_path / "found.xml").iter("testsuite")
    counts = {name: int(found.attrib[name]) for name in ("tests", "skipped", "failures", "errors")}
    assert counts["failures"] == counts["errors"] == 0
    assert counts["tests"] - counts["skipped"] >= LEAST_PASSED

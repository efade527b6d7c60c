"""What has to be believed of a verified plan has as many lines as the manual says."""

from __future__ import annotations

import re
from pathlib import Path

import dpsql

from .documents import section

PACKAGE = Path(dpsql.__file__).parent


def lines_of(path: Path) -> int:
    files = [path] if path.is_file() else sorted(path.glob("*.py"))
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_what_must_be_believed_is_as_long_as_is_told() -> None:
    table = section("verify", "What must be believed")
    told = re.findall(r"^\| .*?`([\w/.]+)` \| (fewer than|at most) ([\d,]+) \|", table, re.MULTILINE)
    assert [(path, words) for path, words, _ in told] == [
        ("verify/", "fewer than"),
        ("release/facts.py", "at most"),
    ]
    for path, words, number in told:
        most = int(number.replace(",", "")) - (words == "fewer than")
        assert most * 0.8 < lines_of(PACKAGE / path) <= most, path

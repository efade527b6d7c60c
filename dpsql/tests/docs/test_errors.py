"""The examples of `dpsql docs errors` are refused with the very code, and what is said to be answered is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli.application import program

from .documents import text

EXAMPLES = [
    (code, statement, ending)
    for code, body in re.findall(
        r"^## ([0-9A-Z]{5}) [^\n]*\n\n```sql\n(.*?)```$", text("errors"), re.DOTALL | re.MULTILINE
    )
    for statement, ending in re.findall(r"^(.*);  -- (refused|answered)$", body, re.MULTILINE)
]


@pytest.mark.parametrize(("code", "statement", "ending"), EXAMPLES)
def test_an_example_ends_as_it_is_said(code: str, statement: str, ending: str, walked: Path) -> None:
    result = CliRunner().invoke(program, ["-P", str(walked / "campus.toml"), "explain", statement])
    if ending == "answered":
        assert result.exit_code == 0, result.output
    else:
        assert result.output.startswith(f"ERROR {code} at ")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 40
    assert {"PV001", "PV002", "PV003", "PV004", "PV005", "PV101", "PV201", "PV202", "PV203", "PV302"} <= {
        code for code, _, _ in EXAMPLES
    }

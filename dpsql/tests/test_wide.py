"""What `make test` leaves to `make test-wide` is chosen by one rule, and no file is left without a test."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from dpsql.tests.support.wide import ROOT, chosen, read_parts, read_times, written

TIMES = {
    "a/test_one.py": {"test_quick": (0.5, 0.5), "test_many": (2.0, 2.0, 2.0, 2.0), "test_slow": (9.0,)},
    "a/test_two.py": {"test_slow": (9.0,), "test_slower": (9.0, 9.0)},
    "a/test_three.py": {"test_quick": (1.0,), "test_cases": (9.0,) * 9},
}
PARTS = {
    "a/test_one.py": {"test_many": 2, "test_slow": 0},
    "a/test_three.py": {"test_cases": 2},
    "a/test_two.py": {"test_slower": 0},
}


def test_a_function_has_its_seconds_and_a_file_keeps_its_quickest() -> None:
    assert chosen(TIMES, 4.0) == PARTS


def test_of_a_file_that_is_slow_alone_a_case_stays() -> None:
    assert chosen({"test_one.py": {"test_slow": (9.0, 9.0)}}, 4.0) == {"test_one.py": {"test_slow": 1}}


def test_what_is_written_is_read() -> None:
    assert tomllib.loads(written(PARTS)) == PARTS


def test_a_report_is_read_by_file_and_function(tmp_path: Path) -> None:
    report = tmp_path / "times.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="dpsql.tests.test_a" name="test_b[x-1]" time="1.5" />'
        '<testcase classname="dpsql.tests.test_a" name="test_b[y]" time="2" /></testsuite></testsuites>'
    )
    assert read_times(report) == {"dpsql/tests/test_a.py": {"test_b": (1.5, 2.0)}}


@pytest.mark.parametrize(("file", "functions"), read_parts().items(), ids=read_parts().keys())
def test_each_named_function_is_there_and_some_test_of_its_file_stays(
    file: str, functions: dict[str, int]
) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    defined = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }
    assert functions.keys() <= defined
    assert any(functions.get(name, 1) for name in defined)

"""The limits that the manual names are those that the benchmarks hold themselves to, and what misses one says so."""

from __future__ import annotations

import re

import pytest

from .documents import text

spark = pytest.importorskip("benchmarks.spark", reason="the benchmarks are no part of the package")


def test_the_limits_on_spark_are_those_that_are_measured() -> None:
    rows = [line.split(" | ") for line in text("performance").splitlines() if line.startswith("| Spark, ")]
    told = {row[0].removeprefix("| Spark, "): row[2].strip(" |") for row in rows}
    assert told == {
        name: "" if limit is None else f"{limit:g} ×" for name, (_, _, limit) in spark.STATEMENTS.items()
    }


def test_a_ratio_on_spark_beyond_its_limit_is_told_as_missed() -> None:
    lines = iter(text("performance").splitlines())
    assert any(line.startswith("| ours / exact on Spark |") for line in lines)
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, *cells = line.strip("| ").split(" | ")
        if not name.startswith("---"):
            rows[name] = cells
    assert rows.keys() == spark.STATEMENTS.keys()
    for name, (_, _, limit) in spark.STATEMENTS.items():
        for cell in rows[name]:
            for ratio in re.findall(r"([0-9.]+) ×", cell):
                assert ("missed" in cell) == (limit is not None and float(ratio) > limit), (name, cell)

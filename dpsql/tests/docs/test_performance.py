"""The limits that the manual names are those that the benchmarks hold themselves to."""

from __future__ import annotations

import pytest

from .documents import text

spark = pytest.importorskip("benchmarks.spark", reason="the benchmarks are no part of the package")


def test_the_limits_on_spark_are_those_that_are_measured() -> None:
    rows = [line.split(" | ") for line in text("performance").splitlines() if line.startswith("| Spark, ")]
    told = {row[0].removeprefix("| Spark, "): row[2].strip(" |") for row in rows}
    assert told == {
        name: "" if limit is None else f"{limit:g} ×" for name, (_, _, limit) in spark.STATEMENTS.items()
    }

"""The limits that the manual names are those that the benchmarks hold themselves to, and what misses one says so."""

from __future__ import annotations

import re

import pytest

from .documents import ROOT, section, text

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


def test_what_is_said_of_dpsql_beside_others_is_what_the_cases_say() -> None:
    """Of others the figures are those of the README and of the manual alike; nothing here can measure them."""
    cases = "".join(
        path.read_text("utf-8") for path in sorted((ROOT / "grammar_tests" / "corpus").glob("*.case"))
    )
    blocks = {
        block.split(maxsplit=1)[0]: block for block in re.split(r"^case ", cases, flags=re.MULTILINE)[1:]
    }
    analysts = [name for name in blocks if re.match(r"[a-h]\d\d-", name)]
    of_tpch = {f"tpch{number:02}" for number in range(1, 23)}
    refused = [name for name in of_tpch if re.search(r"^refused ", blocks[name], re.MULTILINE)]
    answered = [name for name in analysts if not re.search(r"^refused ", blocks[name], re.MULTILINE)]
    assert (len(analysts), len(answered), len(refused)) == (35, 35, 3)
    assert sum(" oracle" in blocks[name].split("\n")[0] for name in analysts) == 34
    assert "| dpsql 0.1 | 35 of 35, see below | 0 | 19; three are refused |" in text("README")
    manual = " ".join(section("performance", "Beside other programs").split())
    assert "the 35 that are among its tests" in manual
    assert "34 of them held against a second computation in Python, and 19 of the 22" in manual
    for name in ("SmartNoise SQL 1.0.10", "qrlew 0.9.27"):
        short = re.search(rf"^\| {name} \| (\d+) \| (\d+) \| (\d+) \|$", text("README"), re.MULTILINE)
        long = re.search(
            rf"^\| {name} \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text("performance"), re.MULTILINE
        )
        assert short
        assert long
        assert short.groups() == (long[1], long[2], long[5])
        assert sum(map(int, long.groups()[:4])) == 70


def test_who_is_named_beside_dpsql_is_in_the_table_of_who_charges() -> None:
    readme = section("README", "Other programs").split("|---|---|---|---|\n")[1].split("\n\n")[0]
    named = [line.split(" | ")[0].strip("| ") for line in readme.splitlines()]
    manual = (
        section("performance", "Beside other programs").split("|---|---|---|---|---|\n")[-1].split("\n\n")[0]
    )
    rows = {
        line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in manual.splitlines()
    }
    products = [name for line in named for name in line.split(", ")]
    assert len(products) >= 9
    assert all(any(row.startswith(name) for row in rows) for name in products), products
    assert rows["dpsql 0.1"] == ["yes", "yes", "yes, a ledger", "yes"]
    assert all(len(cells) == 4 for cells in rows.values())

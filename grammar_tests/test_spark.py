"""Every case of DuckDB on Spark: the same claims, exact integers on wild, tame and neighbouring data, the same answers.

A refused statement is refused with the same words, or because it is Spark, and Spark is not asked. Each case is asked on the wild data and on one
database beside it, the tame or a neighbour, another one for the next case; under `long` on all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from datasets import DataSets, run_on
from outcomes import explain, outcome_of, refusal_of
from replay import Cells, asked, cells_of, check_claim
from spark_sets import SparkData, SparkSets
from spark_text import LESS_ON_SPARK, REFUSED_ON_SPARK

from dpsql.testing.case_file import Accepted, Case, Refused
from dpsql.tests.support.spark_twin import CopiesBackend, spelled_as_in_duckdb

pytestmark = pytest.mark.spark

_REFUSED_FIRST = ("regular expressions are not read on", "a frame by distance is not taken of")
"""What is refused of Spark alone, before what is wrong with it elsewhere too: at the same place, by the same code."""


def test_case(case: Case, data: DataSets, on_spark: SparkSets) -> None:
    if case.path.stem in REFUSED_ON_SPARK:
        pytest.skip("Spark refuses it")
    if case.path.stem in LESS_ON_SPARK:
        pytest.skip("Spark has the noise of two_people")
    if isinstance(case.expected, Refused):
        _check_refused(case, case.expected, on_spark)
    else:
        spark = on_spark.of(case.policy)
        beside = [one for one in spark.databases if one not in ("wild", "owned")]
        chosen = beside[zlib.crc32(case.name.encode()) % len(beside)]
        _check_accepted(case, case.expected, data, spark, ["wild", chosen])


@pytest.mark.long
def test_case_on_all_data(case: Case, data: DataSets, on_spark: SparkSets) -> None:
    if isinstance(case.expected, Refused) or case.path.stem in REFUSED_ON_SPARK | LESS_ON_SPARK:
        pytest.skip("it is asked of no data")
    spark = on_spark.of(case.policy)
    _check_accepted(case, case.expected, data, spark, list(spark.databases))


def _check_refused(case: Case, expected: Refused, on_spark: SparkSets) -> None:
    session, backend = on_spark.refusing(case.policy, case.analyst)
    spent, runs = session.dataset.store.spent(), len(backend.runs)
    outcome = refusal_of(session, case)
    assert outcome is not None, "accepted"
    if expected.message == "this expression is too complex":  # the longer the engine's words, the further out
        expected = replace(expected, position=outcome.position)
    if outcome.message.startswith(_REFUSED_FIRST):
        expected = replace(expected, message=outcome.message, hint=outcome.hint)
    assert outcome == expected
    assert len(backend.runs) == runs, "the backend was asked"
    assert session.dataset.store.spent() == spent, "the ledger grew"


def _check_accepted(
    case: Case, expected: Accepted, data: DataSets, spark: SparkData, databases: Sequence[str]
) -> None:
    """Hold that both engines give a statement the same claim, charge and answer, and count the same on some databases."""
    duckdb = data.of(case.policy)
    spark.ask(databases)
    here, seen_here = data.session(duckdb.policy, duckdb.backend, case.analyst)
    there, seen_there = data.session(spark.policy, spark.backend, case.analyst)
    planned, explained = explain(here, case), explain(there, case)
    outcome = outcome_of(explained)
    assert outcome.claim() == expected.claim()
    assert outcome.columns == expected.columns
    ours, theirs = (one.execute(case.sql, case.parameters) for one in (here, there))
    assert theirs.receipt == ours.receipt
    assert repr(theirs.rows) == repr(ours.rows)
    left = asked(duckdb.policy, planned, seen_here.runs, "duckdb")
    right = asked(spark.policy, explained, seen_there.runs, "spark")
    assert [one.parameters for one in left] == [one.parameters for one in right]
    found = {}
    for one in databases if left else ():
        found[one] = [_spelled(cells) for cells in cells_of(right, spark.run_on(one))]
        assert found[one] == cells_of(left, run_on(spark.databases[one])), one
        if one == "owned":
            assert found[one] == found["wild"], "rows without an owner count"
        elif one.startswith("neighbour"):
            check_claim(explained.plan, right, found["wild"], found[one])


def _spelled(cells: Cells) -> Cells:
    return {tuple(map(spelled_as_in_duckdb, key)): measures for key, measures in cells.items()}


def test_a_wrong_integer_would_be_seen(
    every_case: list[Case], data: DataSets, on_spark: SparkSets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test's own eye: where Spark counts one more in a neighbour alone, the case turns red."""
    case = next(one for one in every_case if (one.policy, one.name) == ("shop", "orders"))
    assert isinstance(case.expected, Accepted)
    spark = on_spark.of(case.policy)
    databases = ["wild", "tame", "neighbour0"]
    _check_accepted(case, case.expected, data, spark, databases)
    original = CopiesBackend.keep

    def keep(self: CopiesBackend, sql: str, parameters: Sequence[object], found: dict[str, Any]) -> Any:
        *_, last = found
        return original(self, sql, parameters, {**found, last: [(value + 1,) for (value,) in found[last]]})

    monkeypatch.setattr(CopiesBackend, "keep", keep)
    with pytest.raises(AssertionError, match="neighbour0"):
        _check_accepted(case, case.expected, data, spark, databases)

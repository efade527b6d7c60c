"""Every answered statement of the corpus has error bars for what noise can move, and none for what it cannot."""

from __future__ import annotations

import pytest
from conftest import HERE
from datasets import DataSets
from outcomes import set_epsilon

from dpsql.testing.case_file import Accepted, Case, read_cases

PUBLIC = {"tpch02", "tpch11", "tpch16"}
"""Queries of public tables alone."""
CHOSEN = {"a08-median-percentile-cont"}
"""Values by rank, whose error is known in rows alone."""
FEW = {"tpch01"}
"""An average of so few rows that in most draws it is of nobody, and NULL, has no bar."""
CORPUS = [
    case
    for path in sorted(HERE.glob("corpus/*.case"))
    for case in read_cases(path)
    if isinstance(case.expected, Accepted)
]


@pytest.mark.parametrize("bars_case", CORPUS, ids=str)
def test_the_corpus_has_bars(bars_case: Case, data: DataSets) -> None:
    policy = data.of(bars_case.policy)
    session, _ = data.session(policy.policy, policy.backend, bars_case.analyst)
    set_epsilon(session, bars_case)
    session.execute("SET dpsql.intervals = 0.95")
    answer = session.execute(bars_case.sql, bars_case.parameters)
    lows = [i for i, column in enumerate(answer.columns) if column.name.endswith("_low")]
    if bars_case.name in PUBLIC:
        assert not lows
    for place in lows:
        known = [row for row in answer.rows if row[place - 1] is not None]
        if bars_case.name in CHOSEN:
            assert all(row[place] is None for row in known)
            continue
        if bars_case.name in FEW and answer.columns[place].name.startswith("avg_"):
            known = [row for row in known if row[place] is not None]
        assert all(row[place] is not None and row[place] <= row[place + 1] for row in known)
        assert all(row[place] <= row[place - 1] <= row[place + 1] for row in known)

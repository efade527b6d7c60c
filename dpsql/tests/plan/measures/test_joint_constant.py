"""A sum of a constant that is drawn beside a correlation of it: nothing is summed of what is constant."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.tests.laws.measured import world


@pytest.mark.parametrize("aggregate", ["SUM(n)", "AVG(n)", "VAR_POP(n)", "COUNT(n)"])
def test_a_constant_beside_a_correlation_is_planned(tmp_path: Path, aggregate: str) -> None:
    with world(tmp_path) as made:
        plan = made.plan(f"SELECT {aggregate}, CORR(n, n) FILTER (WHERE flag) FROM visit WHERE n = 0")
    assert len(plan.releases) == 1

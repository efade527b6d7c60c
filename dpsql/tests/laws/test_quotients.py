"""What each printed quotient is said to be at most, it is at most, whatever the rows hold: an engine that wraps beyond 64
bits is asked on the word of that (soundness.md 2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from dpsql.errors import EngineFailure
from dpsql.plan.backend_sql import print_release
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.plan.measures.measurements import WEIGHT
from dpsql.policy import Verify
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.drawn_statements import statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_databases import Database, policy_of

from ..conformance.places import EVERY_CELL, STATEMENTS
from .conftest import Desk, make_desk
from .examples import HEAVY, visit
from .on_spark import drawn
from .test_total import ONCE_FAILED, answer

AT_THE_ENDS = Database(
    (),
    tuple(
        visit(unit, city="a", n=n, big=big, d=d, x="4", tag="t")
        for unit in (1, 2)
        for n, big, d in (("7", "9223372036854775807", "5"), ("-3", "-9223372036854775808", "0")) * (6 * unit)
    ),
)
"""Two people, each row of whom is at an end of its bounds, so that a quotient gets as far as it can."""
ASKED = (
    *STATEMENTS,
    *(sql.removeprefix("EXPLAIN ") for sql in ONCE_FAILED),
    "SELECT city, SUM(big), AVG(big), VAR_POP(n), COUNT(n) FROM visit GROUP BY city",
    "SELECT city, SUM(n), AVG(d), VAR_POP(d) FROM visit GROUP BY city",
    "SELECT SUM(n) FROM visit WHERE n < 0",
    "SELECT SUM(big) FROM visit WHERE big > 0",
    "SELECT SUM(round(big, -1) / 7), SUM(floor(d / 2)), SUM(ceil(d)) FROM visit",
)


def checked(self: DuckDBDialect, left: str, right: str, *, wide: bool, most: int) -> str:
    quotient = f"({left} // {right})"
    return f"CASE WHEN abs({quotient}) > {most} THEN error('a quotient is larger') ELSE {quotient} END"


@pytest.fixture
def desk_that_checks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDBDialect, "quotient", checked)
        folder = tmp_path_factory.mktemp("quotients")
        policy = policy_of(folder, epsilon="0.001")
        policy = replace(policy, privacy=replace(policy.privacy, verify=Verify.LOG))  # it knows no error()
        made = make_desk(stack, folder, ZeroNoise(), policy=policy)
        made.session.execute("SET dpsql.reuse = off")
        yield made


@pytest.mark.parametrize(
    "database",
    [EVERY_CELL, pytest.param(HEAVY, marks=pytest.mark.long), AT_THE_ENDS],
    ids=["cells", "heavy", "ends"],
)
def test_no_quotient_is_larger(desk_that_checks: Desk, database: Database) -> None:
    desk_that_checks.settle(database)
    assert sum(
        answer(desk_that_checks, sql) for sql in (*ASKED, *drawn(statements("one table"), tried(8, 20)))
    ) > tried(40, 60)


def test_a_bound_that_is_too_small_is_seen(desk_that_checks: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(self: Any, rows: str) -> str:
        most = self.bounding.in_all * WEIGHT
        return str(self.dialect.quotient(str(most), f"GREATEST({rows}, 1)", wide=False, most=1))

    desk_that_checks.settle(AT_THE_ENDS)
    sql = "SELECT city, SUM(n), AVG(d) FROM visit GROUP BY city"
    assert answer(desk_that_checks, sql)
    monkeypatch.setattr(print_release.ReleasePrinter, "_weight", short)
    with pytest.raises(EngineFailure):
        answer(desk_that_checks, sql)

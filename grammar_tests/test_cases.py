"""Runs the case files: what each statement becomes, what it claims, and that the claim holds on data.

For an accepted case: the texts are equal, the backend SQL parses, it runs on wild data (bounds bite,
NULL and NaN everywhere) without an error, the noiseless answer equals the statement itself on tame data
(flag `oracle`), and no unit moves the exact measures further than what was claimed. For a refused one:
code, position, message and hint are equal, the backend saw nothing, the ledger did not grow.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
import sqlglot
from datasets import DataSets, PolicyData, run_on
from on_duckdb import CasesOnDuckDB
from oracle import check_same
from outcomes import outcome_of, refilled, refusal_of, set_epsilon
from replay import cells_of, check_claim

from dpsql.mechanisms import ATTO, NANO
from dpsql.testing.case_file import Case, ExpectedCharge, Refused


def test_case(case: Case, data: DataSets, on_duckdb: CasesOnDuckDB, request: pytest.FixtureRequest) -> None:
    rewrites = bool(request.config.getoption("--rewrite-cases"))
    if isinstance(case.expected, Refused):
        _check_refused(case, data, rewrites)
    else:
        _check_accepted(case, on_duckdb, rewrites)


def _check_refused(case: Case, data: DataSets, rewrites: bool) -> None:
    session, backend = data.refusing(case.policy, case.analyst)
    spent, runs, snapshots = session.dataset.store.spent(), len(backend.runs), backend.snapshots
    outcome = refusal_of(session, case)
    assert outcome is not None, "accepted"
    assert outcome.claim() == case.expected.claim()
    case = refilled(case, outcome) if rewrites else case
    assert outcome == case.expected
    assert len(backend.runs) == runs, "the backend was asked"
    assert backend.snapshots == snapshots or outcome.code == "53V01", "the backend was opened"
    assert session.dataset.store.spent() == spent, "the ledger grew"


def _reads_keys(sql: str) -> bool:
    """Say whether a query is of nothing but the keys of public tables."""
    return sql.startswith("SELECT k0") and "FROM (SELECT DISTINCT " in sql and sql.endswith(" LIMIT 100001")


def _check_accepted(case: Case, on_duckdb: CasesOnDuckDB, rewrites: bool) -> None:
    policy, ran = on_duckdb.data.of(case.policy), on_duckdb.run(case)
    plan, lists = ran.explained.plan, ran.lists
    assert len(lists) == sum(len(release.listed_from) > 0 for release in plan.releases), lists
    assert all(_reads_keys(sql) for sql in lists), "EXPLAIN ran a query"
    outcome = outcome_of(ran.explained)
    assert outcome.claim() == case.expected.claim()
    case = refilled(case, outcome) if rewrites else case
    assert outcome == case.expected
    for sql in outcome.rewritten:
        assert isinstance(sqlglot.parse_one(sql, dialect="duckdb"), sqlglot.exp.Select)
    answer, spent = ran.answer, ran.spent
    assert answer.receipt is not None
    assert outcome.charge is not None
    if outcome.charge.rho is None:
        charged = ExpectedCharge(answer.receipt.epsilon, answer.receipt.delta, slices=outcome.charge.slices)
        assert charged == outcome.charge
        assert Fraction(spent.epsilon_nano, NANO) == outcome.charge.epsilon
    else:
        assert Fraction(spent.rho_atto, ATTO) == outcome.charge.rho
    assert Fraction(spent.delta_atto, ATTO) == outcome.charge.delta
    queries = ran.queries
    assert not queries or ran.before == cells_of(queries, run_on(policy.owned)), "rows without an owner count"
    numbers = [policy.numbers[number] for number in policy.in_turn(case)] if queries else []
    for number, after in zip(numbers, ran.after, strict=True):
        check_claim(plan, queries, ran.before, after, number)
    if case.is_compared:
        _check_oracle(case, on_duckdb.data, policy)


# --- the oracle ------------------------------------------------------------------------------------------


def _check_oracle(case: Case, data: DataSets, policy: PolicyData) -> None:
    """Compare the noiseless answer on tame data with what DuckDB says to the analyst's own statement."""
    assert policy.tame is not None
    session, _ = data.session(policy.policy, policy.tame_backend, case.analyst)
    set_epsilon(session, case)
    ours = session.execute(case.sql, case.parameters).rows
    theirs = list(run_on(policy.tame)(case.oracle_sql or case.sql, case.parameters))
    check_same(ours, theirs, ordered=case.is_ordered)

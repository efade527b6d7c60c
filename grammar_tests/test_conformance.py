"""Every case on Postgres: the same claims, exact integers on all data, answers and refusals as DuckDB's.

In `make test` every fourth one of a file that is accepted, and all that are refused. A case of
Postgres alone (`engine=postgres`) is held as test_cases.py holds the others.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import sqlglot
from datasets import DataSets
from on_duckdb import CasesOnDuckDB
from oracle import check_same
from outcomes import explain, outcome_of, refilled, refusal_of, set_epsilon
from postgres_sets import PostgresSets
from replay import asked, cells_of, check_claim

from dpsql.plan.dialects.dialect_postgres import PostgresDialect
from dpsql.testing.case_file import Accepted, Case, ExpectedCharge, Refused

_SHOWN = PostgresDialect("pg_c_utf8")
"""Whose SQL the case files show, whatever collation a server has for letter case."""


def test_case(
    case_on_postgres: Case, data: DataSets, on_duckdb: CasesOnDuckDB, on_postgres: PostgresSets
) -> None:
    case = _in_public(case_on_postgres)
    assert isinstance(case.expected, Accepted)
    _check_accepted(case, case.expected, data, on_duckdb, on_postgres)


def test_refused(refused_case: Case, on_postgres: PostgresSets) -> None:
    case = _in_public(refused_case)
    assert isinstance(case.expected, Refused)
    _check_refused(case, case.expected, on_postgres)


def _in_public(case: Case) -> Case:
    return replace(case, sql=re.sub(r"FROM main\.", "FROM public.", case.sql))


def test_case_of_postgres(
    postgres_case: Case, data: DataSets, on_postgres: PostgresSets, request: pytest.FixtureRequest
) -> None:
    """As test_cases.py, in a database that its own SQL made."""
    case, policy = postgres_case, on_postgres.of(postgres_case.policy)
    rewrites = bool(request.config.getoption("--rewrite-cases"))
    if isinstance(case.expected, Refused):
        _check_refused(case, case.expected, on_postgres, rewrites=rewrites)
        return
    session, backend = data.session(policy.policy, policy.backend, case.analyst)
    explained = explain(session, case)
    outcome = outcome_of(explained, _SHOWN)
    assert outcome.claim() == case.expected.claim()
    case = refilled(case, outcome) if rewrites else case
    assert outcome == case.expected
    for sql in outcome.rewritten:
        assert isinstance(sqlglot.parse_one(sql, dialect="postgres"), sqlglot.exp.Select)
    answer = session.execute(case.sql, case.parameters)
    assert answer.receipt is not None
    assert ExpectedCharge(answer.receipt.epsilon, answer.receipt.delta) == outcome.charge
    queries = asked(policy.policy, explained, backend.runs, "postgres")
    with policy.runs() as runs:
        before = cells_of(queries, runs["public"])
        assert before == cells_of(queries, runs["owned"]), "rows without an owner count"
        for schema in policy.neighbours:
            check_claim(explained.plan, queries, before, cells_of(queries, runs[schema]))
    if case.is_compared:
        tame, _ = data.session(policy.policy, policy.tame, case.analyst)
        set_epsilon(tame, case)
        ours = tame.execute(case.sql, case.parameters).rows
        check_same(ours, policy.oracle(case.oracle_sql or case.sql), ordered=case.is_ordered)


def _check_refused(
    case: Case, expected: Refused, on_postgres: PostgresSets, *, rewrites: bool = False
) -> None:
    session, backend = on_postgres.refusing(case.policy, case.analyst)
    spent, runs = session.dataset.store.spent(), len(backend.runs)
    outcome = refusal_of(session, case)
    assert outcome is not None, "accepted"
    assert outcome.claim() == expected.claim()
    assert outcome == (refilled(case, outcome).expected if rewrites else expected)
    assert len(backend.runs) == runs, "the backend was asked"
    assert session.dataset.store.spent() == spent, "the ledger grew"


def _check_accepted(
    case: Case, expected: Accepted, data: DataSets, on_duckdb: CasesOnDuckDB, on_postgres: PostgresSets
) -> None:
    here = on_duckdb.of(replace(case, sql=case.sql.replace("FROM public.", "FROM main.")))
    postgres = on_postgres.of(case.policy)
    there, seen_there = data.session(postgres.policy, postgres.backend, case.analyst)
    explained = explain(there, case)
    outcome = outcome_of(explained)
    assert outcome.claim() == expected.claim()
    assert outcome.columns == expected.columns
    theirs = there.execute(case.sql, case.parameters)
    assert theirs.receipt == here.answer.receipt
    assert repr(theirs.rows) == repr(here.answer.rows)
    right = asked(postgres.policy, explained, seen_there.runs, "postgres")
    assert here.parameters == [one.parameters for one in right]
    if not right:
        return
    with postgres.runs() as runs:
        before = cells_of(right, runs["public"])
        assert before == here.before
        assert before == cells_of(right, runs["owned"])
        source = data.of(case.policy)
        turn = source.in_turn(case)
        for place, same in zip(turn, here.after, strict=True):
            schema = postgres.neighbours[place]
            after = cells_of(right, runs[schema])
            assert after == same, schema
            check_claim(explained.plan, right, before, after, source.numbers[place])

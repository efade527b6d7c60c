"""Every accepted case on three engines is verified by its text alone, and by the S that the plan claims: in `make test`
all on DuckDB and some of each file on the others, in `make test-all` all on all.

What is not is on a list, with a reason: a case that comes to be verified is taken off it.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from datasets import DataSets
from on_duckdb import CasesOnDuckDB
from outcomes import explain
from postgres_sets import PostgresSets
from spark_text import REFUSED_ON_SPARK, SparkTexts, facts_on_spark

from dpsql import Session
from dpsql.backends.spark_connection import require_query
from dpsql.engine.explain import Explanation
from dpsql.release.verifying import certificate_of, verdict_on
from dpsql.testing.case_file import Accepted, Case
from dpsql.verify.certificate import Facts

UNVERIFIED: dict[str, dict[str, str]] = {"duckdb": {}, "postgres": {}, "spark": {}}
"""By engine, the cases that are not verified, as topic.name, with the reason."""

LOOSER: dict[str, str] = {}
"""Cases in which less is derived than is claimed, with the reason: noise that could be given away."""


def test_on_duckdb(accepted_case: Case, data: DataSets, on_duckdb: CasesOnDuckDB) -> None:
    session, _ = data.refusing(accepted_case.policy, accepted_case.analyst)
    _check("duckdb", accepted_case, on_duckdb.of(accepted_case).explained, facts_of(session))


def test_on_postgres(case_in_turn_on_postgres: Case, on_postgres: PostgresSets) -> None:
    case = case_in_turn_on_postgres
    sql = re.sub(r"FROM main\.", "FROM public.", case.sql)
    _check_on_postgres(replace(case, sql=sql), on_postgres)


def test_of_postgres_alone(postgres_case: Case, on_postgres: PostgresSets) -> None:
    if not isinstance(postgres_case.expected, Accepted):
        pytest.skip("it is refused")
    _check_on_postgres(postgres_case, on_postgres)


def _check_on_postgres(case: Case, on_postgres: PostgresSets) -> None:
    session, _ = on_postgres.refusing(case.policy, case.analyst)
    _check("postgres", case, explain(session, case), facts_of(session))


def test_on_spark(case_in_turn_on_spark: Case, data: DataSets, as_spark: SparkTexts) -> None:
    """Without a Spark: what it would be sent, from what DuckDB's tables are."""
    accepted_case = case_in_turn_on_spark
    if accepted_case.path.stem in REFUSED_ON_SPARK:
        pytest.skip("Spark refuses it")
    sessions = as_spark.of(accepted_case.policy, accepted_case.analyst)
    explain(sessions.here, accepted_case)
    sessions.pass_on()
    explained, facts = explain(sessions.there, accepted_case), facts_on_spark(facts_of(sessions.here))
    for release in certificate_of(explained.plan.releases, facts).releases:
        for query in release.queries:
            require_query(query.sql)  # what is printed and not sent would be charged, and fail
    _check("spark", accepted_case, explained, facts)


@pytest.fixture(scope="module")
def as_spark(data_sets: DataSets) -> SparkTexts:
    return SparkTexts(data_sets)


_BELIEVED: dict[int, tuple[Session, Facts]] = {}
"""By the id of a session, which is kept with it."""


def facts_of(session: Session) -> Facts:
    """Return what is believed of a session's database, which nobody changes."""
    if id(session) not in _BELIEVED:
        with session.dataset.snapshot(session) as snapshot:
            _BELIEVED[id(session)] = session, session.dataset.verifier.facts(snapshot)
    return _BELIEVED[id(session)][1]


def _check(engine: str, case: Case, explained: Explanation, facts: Facts) -> None:
    certificate = certificate_of(explained.plan.releases, facts)
    verified, rule = verdict_on(certificate, facts)
    name = f"{case.path.stem}.{case.name}"
    if name in UNVERIFIED[engine]:
        assert rule, f"it is verified now: take it off the list, {UNVERIFIED[engine][name]}"
        return
    assert not rule, rule
    assert verified is not None
    is_tight = all(line.moved == line.claimed for line in verified.lines)
    assert is_tight == (name not in LOOSER), [(line.moved, line.claimed) for line in verified.lines]

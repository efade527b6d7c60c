"""A text that is verified moves no further than was derived: every case's own, and texts with a fault in one place.

Each is run on small hostile databases, and on the same without an owner; how far its integers are apart is compared with
what the verifier derived *of that text*. One that moves further is a fault of the verifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import duckdb
import pytest
from datasets import DataSets
from outcomes import explain
from test_verified import facts_of

from dpsql.release.verifying import certificate_of
from dpsql.testing.case_file import Case
from dpsql.tests.verify.mutations import mutants
from dpsql.tests.verify.neighbours import Neighbours
from dpsql.verify import Checked, Refused, verify
from dpsql.verify.certificate import Certificate, Facts, Query, Release


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_no_case_moves_further(
    case_of_some: Case, data: DataSets, connection: duckdb.DuckDBPyConnection
) -> None:
    """A sixteenth of the cases; `make test-all` asks all of them, and faults of each."""
    _check(case_of_some, data, connection, faults=0, databases=1)


@pytest.mark.long
def test_no_fault_that_is_verified_moves_further(
    accepted_case: Case, data: DataSets, connection: duckdb.DuckDBPyConnection
) -> None:
    _check(accepted_case, data, connection, faults=6, databases=2)


def _check(
    case: Case, data: DataSets, connection: duckdb.DuckDBPyConnection, *, faults: int, databases: int
) -> None:
    session, _ = data.refusing(case.policy, case.analyst)
    facts = replace(facts_of(session), neighbours="add-remove", together=1)
    certificate = certificate_of(explain(session, case).plan.releases, facts)
    choose = Random(f"{case.path.stem}.{case.name}")
    for at, release in enumerate(certificate.releases):
        for number, query in enumerate(release.queries):
            texts = (
                [query.sql]
                if faults == 0
                else [sql for _, sql in mutants(query.sql, "duckdb", choose, faults)]
            )
            for sql in texts:
                for line in _lines(certificate, at, number, sql, facts):
                    for _ in range(databases):
                        _compare(
                            connection, choose, release, replace(query, sql=sql), line, facts, faults > 0
                        )


def _lines(certificate: Certificate, at: int, number: int, sql: str, facts: Facts) -> list[Checked]:
    """What is derived of a query's measurements with another text in its place; nothing where it is refused."""
    release = certificate.releases[at]
    queries = list(release.queries)
    queries[number] = replace(queries[number], sql=sql)
    releases = list(certificate.releases)
    releases[at] = replace(release, queries=tuple(queries))
    try:
        found = verify(replace(certificate, releases=tuple(releases), facts=facts), facts)
    except Refused:
        return []
    return [
        one for one in found.lines if one.release == at and one.measurement in queries[number].measurements
    ]


def _compare(
    connection: duckdb.DuckDBPyConnection,
    choose: Random,
    release: Release,
    query: Query,
    line: Checked,
    facts: Facts,
    may_not_run: bool,
) -> None:
    """Removes owners one by one and adds up by how much the integers of all groups move."""
    measurement = release.measurements[line.measurement]
    columns = [name for mask in measurement.columns for name in mask]
    gaussian = measurement.law.name == "gaussian" and not measurement.reaches
    if query.parameters or not (gaussian or measurement.law.name in ("laplace", "truncated")):
        return
    world = Neighbours(facts, query.sql, choose, choose.choice([6, 14, 30] if may_not_run else [6, 14]))
    owners = world.owners()
    try:
        world.fill(connection, None)
        whole = world.numbers_of(connection, query.sql, release.keys, columns)
        for owner in choose.sample(owners, min(2 if may_not_run else 1, len(owners))):
            world.fill(connection, owner)
            rest = world.numbers_of(connection, query.sql, release.keys, columns)
            none = [0] * len(columns)
            steps = [
                abs(a - b)
                for group in whole.keys() | rest.keys()
                for a, b in zip(whole.get(group, none), rest.get(group, none), strict=True)
            ]
            moved = sum(one * one for one in steps) if gaussian else sum(steps)
            assert moved <= line.moved, f"{line.lemma}: {moved} > {line.moved}\n{query.sql}"
    except duckdb.Error:
        if not may_not_run:
            raise

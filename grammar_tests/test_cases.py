"""Runs the case files: what each statement becomes, what it claims, and that the claim holds on data.

For an accepted case: the texts are equal, the backend SQL parses, it runs on wild data (bounds bite,
NULL and NaN everywhere) without an error, the noiseless answer equals the statement itself on tame data
(flag `oracle`), and no unit moves the exact measures further than what was claimed. For a refused one:
code, position, message and hint are equal, the backend saw nothing, the ledger did not grow.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest
import sqlglot
from datasets import DataSets, PolicyData

from dpsql import Session
from dpsql.engine.explain import Explanation
from dpsql.errors import DpsqlError
from dpsql.mechanisms import ATTO, NANO
from dpsql.plan.planner import ReleasePlan
from dpsql.plan.print_release import BackendQuery
from dpsql.plan.vectors import Kind
from dpsql.testing.case_file import (
    Accepted,
    Case,
    Charge,
    Measure,
    Outcome,
    Refused,
    ReleaseClaim,
    read_cases,
    rewrite_case,
)

_RELATIVE = 1e-9


def test_case(case: Case, data: DataSets, request: pytest.FixtureRequest) -> None:
    rewrites = bool(request.config.getoption("--rewrite-cases"))
    if isinstance(case.expected, Refused):
        _check_refused(case, data, rewrites)
    else:
        _check_accepted(case, data, rewrites)


def _check_refused(case: Case, data: DataSets, rewrites: bool) -> None:
    session, backend = data.refusing(case.policy, case.analyst)
    spent, runs, snapshots = session.store.spent(), len(backend.runs), backend.snapshots
    outcome = _refusal(session, case)
    assert outcome is not None, "accepted"
    assert outcome.claim() == case.expected.claim()
    case = _rewritten(case, outcome) if rewrites else case
    assert outcome == case.expected
    assert len(backend.runs) == runs, "the backend was asked"
    assert backend.snapshots == snapshots or outcome.code == "53V01", "the backend was opened"
    assert session.store.spent() == spent, "the ledger grew"


def _check_accepted(case: Case, data: DataSets, rewrites: bool) -> None:
    policy = data.of(case.policy)
    session, backend = data.session(policy, policy.wild, case.analyst)
    session.execute(f"SET dpsql.epsilon = '{_decimal(case.epsilon)}'")
    explained = session.explain(case.sql, case.parameters)
    assert backend.runs == [], "EXPLAIN ran a query"
    outcome = _outcome(explained)
    assert outcome.claim() == case.expected.claim()
    case = _rewritten(case, outcome) if rewrites else case
    assert outcome == case.expected
    for sql in outcome.rewritten:
        assert isinstance(sqlglot.parse_one(sql, dialect="duckdb"), sqlglot.exp.Select)
    answer = session.execute(case.sql, case.parameters)
    assert answer.receipt is not None
    assert Charge(answer.receipt.epsilon, answer.receipt.delta) == outcome.charge
    spent = session.store.spent()
    assert Charge(Fraction(spent.epsilon_nano, NANO), Fraction(spent.delta_atto, ATTO)) == outcome.charge
    _check_neighbours(policy, explained, backend.runs)
    if case.is_compared:
        _check_oracle(case, data, policy)


def _rewritten(case: Case, outcome: Outcome) -> Case:
    rewrite_case(case.path, case.name, outcome)
    return next(one for one in read_cases(case.path) if one.name == case.name)


# --- what the statement becomes ----------------------------------------------------------------------


def _refusal(session: Session, case: Case) -> Refused | None:
    try:
        session.execute(f"SET dpsql.epsilon = '{_decimal(case.epsilon)}'")
        session.execute(case.sql, case.parameters)
    except DpsqlError as error:
        position = "" if error.position is None else str(error.position)
        return Refused(error.sqlstate, position, error.message, error.hint or "")
    return None


def _outcome(explained: Explanation) -> Accepted:
    plan = explained.plan
    columns = " ".join(f"{column.name}:{column.type}" for column in explained.compiled.relation.columns)
    return Accepted(
        tuple(query.sql for release in plan.releases for query in _queries(release)),
        tuple(_claim(release) for release in plan.releases),
        Charge(plan.epsilon, plan.delta),
        columns,
        tuple(stage.sql for stage in explained.stages),
        explained.compiled.sql,
    )


def _decimal(value: Fraction) -> str:
    return str(Decimal(value.numerator) / Decimal(value.denominator))


def _queries(release: ReleasePlan) -> tuple[BackendQuery, ...]:
    return release.queries(tuple(range(len(release.vectors))))


def _claim(release: ReleasePlan) -> ReleaseClaim:
    measures = []
    for number, vector in enumerate(release.vectors):
        lattice = vector.lattice
        measures.append(
            Measure(
                vector.kind.value,
                vector.size,
                None if lattice is None else lattice.step,
                None if lattice is None else (lattice.low, lattice.high),
                vector.sensitivity,
                release.scale(number),
                release.epsilons[number],
            )
        )
    if release.groups is None:
        groups = f"threshold tau={release.tau} delta={release.delta}"
    elif release.release.keys:
        groups = f"declared {len(release.groups)}"
    else:
        groups = "one"
    return ReleaseClaim(tuple(measures), groups)


# --- the claim on data ---------------------------------------------------------------------------------

Cells = dict[tuple[Any, ...], tuple[int, ...]]


@dataclass(frozen=True)
class _Asked:
    """A backend query as it was run, with the release it belongs to."""

    number: int
    release: ReleasePlan
    query: BackendQuery
    parameters: tuple[object, ...]

    def cells(self, connection: duckdb.DuckDBPyConnection) -> Cells:
        """Return the exact measures by group."""
        cursor = connection.cursor()
        rows = cursor.execute(self.query.sql, list(self.parameters)).fetchall()
        cursor.close()
        width = len(self.release.release.keys)
        assert self.release.groups is None or len(rows) <= len(self.release.groups)
        return {row[:width]: row[width:] for row in rows}

    def places(self) -> list[int]:
        """Return the vector of each measure column."""
        return [v for v in self.query.vectors for _ in range(self.release.vectors[v].size)]

    def empty(self) -> tuple[int, ...]:
        """Return what a group without rows counts: 0, or the middle of the range for a direct average."""
        found = []
        for vector in (self.release.vectors[place] for place in self.places()):
            lattice = vector.lattice
            direct = vector.kind is Kind.DIRECT and lattice is not None
            found.append((lattice.low + lattice.high) // 2 if direct and lattice is not None else 0)
        return tuple(found)


def _asked(
    policy: PolicyData, explained: Explanation, runs: Sequence[tuple[str, tuple[object, ...]]]
) -> list[_Asked]:
    planned = [(n, r, q) for n, r in enumerate(explained.plan.releases) for q in _queries(r)]
    found = []
    for sql, parameters in runs:
        if planned and planned[0][2].sql == sql:
            found.append(_Asked(*planned.pop(0), parameters))
        else:
            assert not parameters, "a query beside the planned ones has parameters"
            assert _reads_public_alone(policy, sql), f"neither planned nor of public tables: {sql}"
    assert not planned
    return found


def _reads_public_alone(policy: PolicyData, sql: str) -> bool:
    """Say whether SQL is one SELECT over public tables of the policy, by their full names, and its own CTEs."""
    (tree,) = sqlglot.parse(sql, dialect="duckdb")
    assert isinstance(tree, sqlglot.exp.Query)
    public = {name for name, table in policy.policy.tables.items() if table.unit is None}
    own = {cte.alias for cte in tree.find_all(sqlglot.exp.CTE)}
    assert not own & set(policy.policy.tables)
    tables = list(tree.find_all(sqlglot.exp.Table))
    assert all(isinstance(table.this, sqlglot.exp.Identifier) for table in tables), "a table function"
    read = [table for table in tables if table.db or table.name not in own]
    return bool(read) and all(table.db == "main" and table.name in public for table in read)


def _check_neighbours(
    policy: PolicyData, explained: Explanation, runs: Sequence[tuple[str, tuple[object, ...]]]
) -> None:
    """Replay what was run on each neighbour: Σ |change| / scale over everything is at most the charge.

    The parameters are those of the first run: a later stage's guarantee is for each value of the earlier.
    """
    asked = _asked(policy, explained, runs)
    before = [one.cells(policy.wild) for one in asked]
    assert not asked or before == [one.cells(policy.owned) for one in asked], "rows without an owner count"
    for neighbour in policy.neighbours if asked else ():
        total = Fraction(0)
        moved: Counter[tuple[int, int]] = Counter()
        for one, old in zip(asked, before, strict=True):
            new, empty = one.cells(neighbour), one.empty()
            for column, vector in enumerate(one.places()):
                change = sum(
                    abs(old.get(key, empty)[column] - new.get(key, empty)[column]) for key in {*old, *new}
                )
                moved[one.number, vector] += change
                total += change / one.release.scale(vector)
        for (number, vector), change in moved.items():
            assert change <= explained.plan.releases[number].vectors[vector].sensitivity
        assert total <= explained.plan.epsilon


# --- the oracle ------------------------------------------------------------------------------------------


def _check_oracle(case: Case, data: DataSets, policy: PolicyData) -> None:
    """Compare the noiseless answer on tame data with what DuckDB says to the analyst's own statement."""
    assert policy.tame is not None
    session, _ = data.session(policy, policy.tame, case.analyst)
    session.execute(f"SET dpsql.epsilon = '{_decimal(case.epsilon)}'")
    ours = [tuple(map(_plain, row)) for row in session.execute(case.sql, case.parameters).rows]
    cursor = policy.tame.cursor()
    found = cursor.execute(case.oracle_sql or case.sql, list(case.parameters)).fetchall()
    cursor.close()
    theirs = [tuple(map(_plain, row)) for row in found]
    assert theirs, "an oracle without rows compares nothing"
    if not case.is_ordered:
        ours, theirs = sorted(ours, key=_order), sorted(theirs, key=_order)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert len(mine) == len(other)
        assert all(map(_equal, mine, other)), f"{mine} is not {other}"


def _plain(value: object) -> object:
    """Return numbers as int where they are whole by type, else float; a date is the timestamp at its start."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def _order(row: tuple[object, ...]) -> list[tuple[int, str]]:
    """Sort by the values that are compared exactly first, so that rounding does not pair wrong rows."""
    exact = [(0, repr(v)) if not isinstance(v, (int, float)) else (1, "") for v in row]
    return [*exact, *((1, f"{float(v):+025.6f}") for v in row if isinstance(v, (int, float)))]


def _equal(mine: object, other: object) -> bool:
    if isinstance(mine, bool) or isinstance(other, bool) or mine is None or other is None:
        return mine is other
    if isinstance(mine, float) or isinstance(other, float):
        numbers = isinstance(mine, (int, float)) and isinstance(other, (int, float))
        return numbers and math.isclose(mine, other, rel_tol=_RELATIVE, abs_tol=1e-9)  # type: ignore[arg-type]  # numbers
    return mine == other

"""Replays what a statement asked an engine on other data: the exact measures, and how far they are apart."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sqlglot
from outcomes import queries_of

from dpsql.engine.audit.audit import distance, drawn_scale, steps_of, windows_of
from dpsql.engine.audit.audit import moved as most_moved
from dpsql.engine.explain import Explanation
from dpsql.mechanisms import ATTO, FlipChoice, Window
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.measures.measurements import Direct
from dpsql.plan.planner import Plan
from dpsql.plan.privacy.time import undated_scans
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Policy
from dpsql.policy.periods import UNDATED
from dpsql.release.released import canonical

__all__ = ["Asked", "Cells", "Run", "asked", "cells_of", "check_claim"]

Run = Callable[[str, Sequence[object]], Iterable[tuple[Any, ...]]]
"""Runs SQL with its parameters on some data and gives the rows."""

Cells = dict[tuple[Any, ...], tuple[Any, ...]]
"""The exact measures of a query by group; of a choice by rank the misses of all candidates."""

_LISTED = {
    "duckdb": "unnest(CAST($",
    "postgres": "unnest(CAST($",
    "spark": "inline(arrays_zip(from_json(CAST(unbase64(:p",
}
"""How the columns of released rows begin."""


@dataclass(frozen=True)
class Asked:
    """A backend query as it was run, with the release it belongs to."""

    number: int
    release: ReleasePlan
    query: BackendQuery
    parameters: tuple[object, ...]

    def cells(self, run: Run) -> Cells:
        """Return the exact measures by group, keys in canonical form."""
        changes = [canonical(key.type) for key in self.release.release.keys]
        width = len(changes)
        found: Cells = {}
        if self.query.is_window:
            (number,) = self.query.measurements
            shown = (
                (*(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True)), *row[width:])
                for row in run(self.query.sql, self.parameters)
            )
            steps = windows_of(self.release.choices[number], shown, width)
            return {key: (step,) for key, step in steps.items()}
        for row in run(self.query.sql, self.parameters):
            key = tuple(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True))
            assert key not in found, "a group came twice"
            assert all(type(value) is int for value in row[width:]), "an exact measure is not an integer"
            found[key] = row[width:]
        assert self.release.groups is None or len(found) <= _most_groups(self.release)
        return found

    def places(self) -> list[int]:
        """Return the measurement of each measure column."""
        return [v for v in self.query.measurements for _ in range(self.release.measurements[v].size)]

    def empty(self) -> tuple[Any, ...]:
        """Return what a group without rows counts: 0, or the middle of the range for a direct average."""
        found: list[Any] = []
        if self.query.is_window:
            (number,) = self.query.measurements
            return (steps_of(self.release.choices[number], Window()),)
        for measurement in (self.release.measurements[place] for place in self.places()):
            lattice = measurement.lattice
            direct = measurement.kind == Direct.kind and lattice is not None
            found.append((lattice.low + lattice.high) // 2 if direct and lattice is not None else 0)
        return tuple(found)


def asked(
    policy: Policy, explained: Explanation, runs: Sequence[tuple[str, tuple[object, ...]]], engine: str
) -> list[Asked]:
    """Return the planned queries among those that ran, all of them; the others read public tables alone."""
    planned = [(n, r, q) for n, r in enumerate(explained.plan.releases) for q in queries_of(r)]
    counted = {
        fan.sql for r in explained.plan.releases for work in r.works for fan in work.fans if fan.intermediates
    }
    found = []
    for sql, parameters in runs:
        if sql in counted:
            assert sql.count(f"FROM (SELECT {_LISTED[engine]}") == 1, "released rows alone are counted"
        elif planned and (query := _as_asked(planned[0][1], planned[0][2], sql)) is not None:
            number, release, _ = planned.pop(0)
            found.append(Asked(number, release, query, parameters))
        else:
            assert not parameters, "a query beside the planned ones has parameters"
            assert _reads_public_alone(policy, sql, engine), f"neither planned nor of public tables: {sql}"
    assert not planned
    return found


def _as_asked(release: ReleasePlan, query: BackendQuery, sql: str) -> BackendQuery | None:
    """Return a planned query as it was run, None if it is another one: of groups that were chosen, in their order."""
    if query.sql == sql:
        return query
    if release.top is None or release.selection in query.measurements or release.groups is None:
        return None
    every = itertools.combinations(release.groups, release.top.count)
    shown = (one for chosen in every for one in release.queries(query.measurements, chosen))
    return next((one for one in shown if one.sql == sql), None)


def _reads_public_alone(policy: Policy, sql: str, engine: str) -> bool:
    """Say whether SQL is one SELECT over public tables of the policy, by their full names, and its own CTEs."""
    (tree,) = sqlglot.parse(sql, dialect=engine)
    assert isinstance(tree, sqlglot.exp.Query)
    public = {name for name, table in policy.tables.items() if table.unit is None}
    own = {cte.alias for cte in tree.find_all(sqlglot.exp.CTE)}
    assert not own & set(policy.tables)
    tables = list(tree.find_all(sqlglot.exp.Table))
    assert all(isinstance(table.this, sqlglot.exp.Identifier) for table in tables), "a table function"
    read = [table for table in tables if table.db or table.name not in own]
    schema = "public" if engine == "postgres" else "main"
    return bool(read) and all(table.db == schema and table.name in public for table in read)


def _most_groups(release: ReleasePlan) -> int:
    """Return how many groups a query of a release has at most: its listed ones, and those of all others."""
    assert release.groups is not None
    return len(release.groups) if release.axes is None else math.prod(axis.size for axis in release.axes)


def _compared(one: Asked, measurement: int, old: Cells, new: Cells) -> set[tuple[Any, ...]]:
    """Return the groups that a measurement's change is summed over: where people are counted beside it, those that both
    databases test. Whether another is shown is the matter of delta, and of the count (soundness.md 1.7)."""
    counted = one.release.counted
    if counted is None or counted == measurement or counted not in one.query.measurements:
        return {*old, *new}
    return {*old} & {*new}


def check_claim(
    plan: Plan,
    asked: Sequence[Asked],
    here: Sequence[Cells],
    there: Sequence[Cells],
    number: int | None = None,
) -> None:
    """Hold the claim for two neighbours: Σ |change| / scale, in the norm of each, is at most the charge. `number`: of
    the slice in which they differ, in which a release that is not charged to it moves by nothing.

    In a zCDP dataset Σ change² / (2 sigma²) is at most rho; a choice by rank costs (change / scale)² / 8.

    The parameters are those of the first run: a later intermediate result's guarantee is for each value of the earlier.
    """
    total, several = Fraction(0), set[int]()
    moved: Counter[tuple[int, int]] = Counter()
    squared: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for one, old, new in zip(asked, here, there, strict=True):
        reach = _times(one.release, number)
        assert reach or old == new, "a slice that is not charged is read"
        several |= reach
        empty, places = one.empty(), one.places()
        if one.query.is_window:
            places = list(one.query.measurements)
        for measurement in dict.fromkeys(places):
            columns = [column for column, place in enumerate(places) if place == measurement]
            measured, change, square = one.release.measurements[measurement], 0, Fraction(0)
            if measurement == one.release.selection:
                (column,) = columns
                alone = ({key: (row[column],) for key, row in cells.items()} for cells in (old, new))
                change = distance(one.release, measurement, *alone)
            else:
                for key in _compared(one, measurement, old, new):
                    pairs = [(old.get(key, empty)[column], new.get(key, empty)[column]) for column in columns]
                    if one.query.is_window:
                        change += sum(most_moved(*pair) for pair in pairs)
                        continue
                    moves = [a - b for a, b in pairs]
                    change += measured.norm(moves)
                    square += measured.square(moves)
            moved[one.number, measurement] += change
            squared[one.number, measurement] += square
            total += change / drawn_scale(one.release, measurement)
    rho, times = Fraction(0), max(1, len(several))
    for (number, measurement), change in moved.items():
        release = plan.releases[number]
        assert change <= times * release.measurements[measurement].sensitivity
        if measurement == release.selection or isinstance(release.choices.get(measurement), FlipChoice):
            rho += (change / drawn_scale(release, measurement)) ** 2 / 2
            continue
        if measurement in release.choices:
            rho += (change / drawn_scale(release, measurement)) ** 2 / 8
            continue
        square = squared[number, measurement]
        assert square <= times**2 * release.measurements[measurement].squared_sensitivity
        rho += square / (2 * drawn_scale(release, measurement) ** 2)
    if plan.privacy.accounting is Accounting.ZCDP:
        assert rho <= times**2 * Fraction(plan.rho_atto, ATTO)
    else:
        assert total <= times * plan.epsilon


def _times(release: ReleasePlan, number: int | None) -> set[int]:
    """Return by which slices a release's claim may be lost between neighbours that differ in one: that one where it is
    charged, none else; but what stands beside undated rows, and is not charged to them, by each of its periods (soundness.md
    1.40)."""
    if number is None:
        return {0}
    slices = release.slices
    assert slices is not None, "the budget is one by periods"
    if any(first <= number <= last for first, last in slices.runs):
        return {number}
    if number != UNDATED or not undated_scans(release.release.rows):
        return set()
    return {each for first, last in slices.periods for each in range(first, last + 1)}


def cells_of(queries: Sequence[Asked], run: Run) -> list[Cells]:
    """Return the exact measures of all queries on the data that `run` reads."""
    return [one.cells(run) for one in queries]

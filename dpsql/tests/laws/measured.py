"""What the printed SQL of a plan gives on a database, without noise, and how far two of these are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb

from dpsql.backends import DuckDBBackend, Snapshot
from dpsql.engine.released import canonical, declared_groups
from dpsql.plan.planner import Plan, Privacy, ReleasePlan, plan
from dpsql.plan.vectors import Kind
from dpsql.policy import Neighbours, Policy, build_catalog
from dpsql.relation.catalog import Catalog, Scalar
from dpsql.sql.bind_select import bind
from dpsql.sql.scope import Context
from dpsql.sql.statement import Query, parse_statement
from dpsql.testing.random_databases import SCHEMA, policy_of

Key = tuple[Scalar, ...]
Groups = dict[Key, tuple[int, ...]]
"""A vector's exact integers by group."""

SALT = "00" * 32
NOW = 1_600_000_000_000_000


@dataclass(frozen=True, repr=False)
class World:
    """A DuckDB with the random schema, and the catalog that the policy makes of it."""

    connection: duckdb.DuckDBPyConnection
    backend: DuckDBBackend
    policy: Policy
    catalog: Catalog

    def plan(self, sql: str) -> Plan:
        """Return a statement's plan. Raises Refusal."""
        query = parse_statement(sql)
        assert isinstance(query, Query)
        relation = bind(query, Context(self.catalog, query.text, (), NOW, {}))
        defaults = self.policy.defaults
        replace_one = self.policy.privacy.neighbours is Neighbours.REPLACE_ONE
        privacy = Privacy(defaults.epsilon, defaults.delta, defaults.minimum_units, replace_one)
        return plan(relation, self.catalog, privacy)


@contextmanager
def world(folder: Path, *, replace_one: bool = False) -> Iterator[World]:
    policy = policy_of(folder, replace_one=replace_one)
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    backend = DuckDBBackend.over(connection)
    with backend.snapshot() as snapshot:
        catalog = build_catalog(policy, snapshot.schema())
    try:
        yield World(connection, backend, policy, catalog)
    finally:
        connection.close()


def measure_release(
    release: ReleasePlan, snapshot: Snapshot, stages: Sequence[object] = ()
) -> dict[int, Groups]:
    """Return every vector's integers, as the production path reads them; declared groups are filled up.

    A release that is empty from its text alone asks the engine nothing: its vectors are empty here too.
    """
    found: dict[int, Groups] = {number: {} for number in range(len(release.vectors))}
    width = len(release.release.keys)
    changes = [canonical(key.type) for key in release.release.keys]
    for query in release.queries(tuple(range(len(release.vectors)))):
        parameters: list[object] = [SALT] if query.salted else []
        parameters += [stages[value.stage] for value in query.stages]
        for chunk in snapshot.run(query.sql, parameters):
            for row in chunk:
                key = tuple(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True))
                start = width
                for number in query.vectors:
                    size = release.vectors[number].size
                    assert key not in found[number], "a group came twice"
                    values = row[start : start + size]
                    assert all(type(value) is int for value in values), "an exact measure is not an integer"
                    found[number][key] = values
                    start += size
                assert start == len(row)
    if release.groups is not None:
        found = {number: _filled(release, number, groups) for number, groups in found.items()}
    return found


def _filled(release: ReleasePlan, number: int, groups: Groups) -> Groups:
    assert release.groups is not None
    types = [key.type for key in release.release.keys]
    declared = declared_groups(release.groups, types).tuples()
    assert len(set(declared)) == len(declared), "a declared group is listed twice: it would be noised twice"
    return {key: groups.get(key, _empty(release, number)) for key in declared}


def _empty(release: ReleasePlan, number: int) -> tuple[int, ...]:
    vector = release.vectors[number]
    if vector.kind is Kind.DIRECT:
        assert vector.lattice is not None
        return ((vector.lattice.low + vector.lattice.high) // 2,)
    return (0,) * vector.size


def distance(release: ReleasePlan, number: int, left: Groups, right: Groups) -> int:
    """Return Σ over groups and coordinates of |change| of one vector."""
    empty = _empty(release, number)
    total = 0
    for key in left.keys() | right.keys():
        pairs = zip(left.get(key, empty), right.get(key, empty), strict=True)
        total += sum(abs(a - b) for a, b in pairs)
    return total


def loss(release: ReleasePlan, left: dict[int, Groups], right: dict[int, Groups]) -> Fraction:
    """Return Σ over vectors, groups and coordinates of |change| / scale: the privacy loss at worst."""
    return sum(
        (Fraction(distance(release, number, left[number], right[number])) / release.scale(number) for number in left),
        Fraction(0),
    )  # fmt: skip

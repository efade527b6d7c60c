"""L10 for what is sent: what one person adds to the bytes that leave the engine is bounded by what the plan states.

Each statement is planned once, and what its queries return is weighed with one person of long texts, and without. The
most that this person may add is as many rows as one is kept in of groups that are found, or as there are groups that
are known, each of the largest size by text and policy (soundness.md 1.17).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings

from dpsql.backends import Snapshot
from dpsql.errors import Refusal
from dpsql.plan.dialects.dialect import Dialect
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_growing_texts import SCHEMA, load_extreme, policy_of, statements

from .examples import REPEATED
from .measured import World, fixed_intermediates, parameters_of, world
from .test_growth import IN_EACH_CLAUSE, copies, key_bytes, keys

FUZZ = settings(REPEATED, max_examples=tried(10, 60))
LONG = settings(FUZZ, max_examples=3000, derandomize=False)
Patch = pytest.MonkeyPatch

_NUMBER = 8
"""Bytes of what is no text, whatever it is."""


@dataclass(frozen=True, repr=False)
class Neighbours:
    """The world with one person of long texts, and the same world without."""

    here: World
    there: World


def opened(stack: ExitStack, folder: Path, engine: PostgresServer | None) -> Neighbours:
    policy = policy_of(folder)
    made = [stack.enter_context(world(folder, policy=policy, schema=SCHEMA, server=engine)) for _ in "ab"]
    for one in made:
        load_extreme(one.connection)
    made[1].connection.execute("DELETE FROM story WHERE person_id = 1; DELETE FROM person WHERE id = 1")
    for one in made:
        one.refresh()
    return Neighbours(*made)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[Neighbours]:
    with ExitStack() as stack:
        yield opened(stack, tmp_path_factory.mktemp("bytes"), engine)


@pytest.fixture(scope="module")
def in_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    with ExitStack() as stack:
        yield opened(stack, tmp_path_factory.mktemp("bytes"), None)


def weight(row: Sequence[object]) -> int:
    """Return the bytes of a row."""
    return sum(len(one.encode()) if isinstance(one, str) else _NUMBER for one in row)


def sent(made: World, plan: Plan) -> list[int]:
    """Return the bytes of all that the engine returns for each release, as a session asks it."""
    given = fixed_intermediates(plan)
    with made.backend.snapshot() as snapshot:
        return [sum(_weights(snapshot, release, given)) for release in plan.releases]


def _weights(snapshot: Snapshot, release: ReleasePlan, given: Sequence[object]) -> Iterator[int]:
    """Yield the weight of each row: what asks for groups that are shown is given all that came to the test."""
    width, found = len(release.release.keys), set[tuple[object, ...]]()
    queries = release.queries(tuple(range(len(release.measurements))))
    for query in sorted(queries, key=lambda one: one.of_shown):
        lists = [list(column) for column in zip(*found, strict=True)]
        parameters = parameters_of(release, query, given, lists)
        for chunk in snapshot.run(query.sql, parameters):
            for row in chunk:
                found |= set() if query.of_shown else {tuple(row[:width])}
                yield weight(row)


def stated(release: ReleasePlan) -> int:
    """Return the most bytes that one person may add, by the plan."""
    rows = release.bounding.groups if release.groups is None else len(release.groups)
    values = sum(one.size for one in release.measurements)
    queries = release.queries(tuple(range(len(release.measurements))))
    return rows * len(queries) * (key_bytes(release) + _NUMBER * values)


def added(both: Neighbours, sql: str) -> int | None:
    """Hold a statement to what its plan states; return what the person adds in all, None where it is refused."""
    try:
        plan = both.here.plan(sql)
    except Refusal:
        return None
    here, there = sent(both.here, plan), sent(both.there, plan)
    for release, left, right in zip(plan.releases, here, there, strict=True):
        assert left - right <= stated(release), (sql, left, right, stated(release))
    return sum(here) - sum(there)


@FUZZ
@given(statements())
def test_bytes_sent_are_those_that_are_stated(both: Neighbours, sql: str) -> None:
    added(both, sql)


@pytest.mark.long
@LONG
@given(statements())
def test_bytes_sent_are_those_that_are_stated_at_length(both: Neighbours, sql: str) -> None:
    added(both, sql)


@pytest.mark.parametrize(
    "sql", [*IN_EACH_CLAUSE, keys(2), keys(190), copies(190)], ids=range(len(IN_EACH_CLAUSE) + 3)
)
def test_a_text_of_six_million_characters_is_sent_cut(both: Neighbours, sql: str) -> None:
    assert added(both, sql) is not None


def test_carried_columns_are_sent(both: Neighbours) -> None:
    """What is weighed is there: the person's two groups of 190 texts of a thousand letters, or of two."""
    assert 190_000 <= (added(both, OWN) or 0) <= 2 * 190 * 4000


OWN = keys(190).replace(" WHERE person_id = 1 AND big > 3", "")


# --- these tests have power ----------------------------------------------------------------------------------


def test_a_carried_text_that_is_not_cut(in_duckdb: Neighbours, monkeypatch: Patch) -> None:
    monkeypatch.setattr(Dialect, "cut", lambda self, sql, most: sql)
    monkeypatch.setattr(Dialect, "cut_column", lambda self, shown, type_, most: shown)
    with pytest.raises(AssertionError):
        added(in_duckdb, "SELECT body, COUNT(*) FROM story GROUP BY 1")

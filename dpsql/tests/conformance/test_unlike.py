"""EXISTS with one `<>` besides equalities: looked up by the least and the greatest value, on either engine as
written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import example, given, settings

from dpsql.plan.backend_sql import print_source
from dpsql.plan.planner import Plan
from dpsql.tests.support import random_joins
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_joins import Database, row

from ..laws.examples import REPEATED
from ..laws.measured import Groups, World, fixed_intermediates, measure_release
from .both import Engines, open_engines, spelled

FUZZ = settings(REPEATED, max_examples=tried(4, 25))
MINE = "SELECT 1 FROM note b WHERE b.person_id = a.person_id"
STATEMENTS = (
    f"SELECT COUNT(*), SUM(a.n) FROM note a WHERE EXISTS ({MINE} AND b.n <> a.n)",
    f"SELECT COUNT(*) FROM note a WHERE NOT EXISTS ({MINE} AND b.day <> a.day)",
    f"SELECT a.city, COUNT(*) FROM note a WHERE EXISTS ({MINE} AND b.city = a.city AND b.flag AND a.n <> b.ref) GROUP BY a.city",
    f"SELECT COUNT(*) FILTER (WHERE EXISTS ({MINE} AND b.ref <> a.ref AND b.n > 1)) FROM note a",
    "SELECT COUNT(*) FROM note a WHERE NOT EXISTS (SELECT 1 FROM tag t WHERE t.tag = a.tag AND t.n <> a.n)",
    "SELECT COUNT(*) FROM note a WHERE EXISTS (SELECT 1 FROM tag t WHERE t.n <> a.n)",
    "SELECT COUNT(*) FROM note a WHERE NOT EXISTS (SELECT 1 FROM (SELECT person_id AS p, n + 0 AS m, n FROM note) b "
    "WHERE b.p = a.person_id AND b.n <> a.n)",
    "SELECT COUNT(*) FROM person p JOIN note a ON a.person_id = p.id WHERE NOT EXISTS "
    "(SELECT 1 FROM account b WHERE b.person_id = p.id AND b.no <> a.ref)",
)  # fmt: skip
ALIKE = Database(
    {
        **dict.fromkeys(random_joins.PRIVATE, ()),
        "person": tuple(row("person", u) for u in (1, 2, 3)),
        "note": (
            *(row("note", 1, n="7", ref="7", day="2020-01-01", city="a", flag="true") for _ in range(9)),
            *(row("note", 2, n=n, ref=n, city="a", flag="true") for n in ("3", "4", None, "4")),
            *(row("note", 3, n=n, city="a", flag="true") for n in (None, "5", None)),
        ),
    }
)
"""A person of one value, many times; one of two values and NULL; one of a value and NULLs."""


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield open_engines(tmp_path_factory.mktemp("unlike"), random_joins, postgres, stack)


def planned(world: World, sql: str) -> Plan:
    plan = world.plan(sql)
    (release,) = plan.releases
    (query,) = release.queries(tuple(range(len(release.measurements))))
    assert "lo" in query.sql
    assert "ranked" not in query.sql
    return plan


def measured(world: World, plan: Plan) -> dict[int, Groups]:
    with world.backend.snapshot() as snapshot:
        return spelled(measure_release(plan.releases[0], snapshot, fixed_intermediates(plan)))


def as_written(world: World, plan: Plan) -> dict[int, Groups]:
    """Return what the mark gives when its pairs are looked at, none of them cut before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(print_source, "unlike", lambda item, start: None)
        return measured(world, plan)


def check(engines: Engines, database: Database) -> None:
    engines.settle(database)
    for sql in STATEMENTS:
        here, there = planned(engines.duckdb, sql), planned(engines.postgres, sql)
        found = as_written(engines.duckdb, here)
        assert measured(engines.duckdb, here) == found, sql
        assert measured(engines.postgres, there) == found, sql


@FUZZ
@given(random_joins.databases())
@example(ALIKE)
def test_any_value_is_unlike_where_an_end_is(engines: Engines, database: Database) -> None:
    check(engines, database)


@pytest.mark.parametrize(
    ("ends", "one"),
    [
        ("'hi': MAX(", "'hi': MIN("),
        ("CASE WHEN COUNT(", "CASE WHEN 1 + COUNT("),
        (" IS NOT NULL) IS TRUE", " IS NULL OR TRUE) IS TRUE"),
        ("OR g.hi <>", "AND g.hi <>"),
    ],
)  # fmt: skip
def test_an_end_or_a_null_forgotten_is_seen(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, ends: str, one: str
) -> None:
    original, changed = print_source.SourcePrinter._mark, []

    def mark(self: object, *args: object) -> str:
        sql: str = original(self, *args)  # type: ignore[arg-type]
        changed.append(sql.replace(ends, one) != sql)
        return sql.replace(ends, one)

    monkeypatch.setattr(print_source.SourcePrinter, "_mark", mark)
    with pytest.raises(AssertionError):
        check(engines, ALIKE)
    assert any(changed)

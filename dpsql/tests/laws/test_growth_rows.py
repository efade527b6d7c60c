"""L10 for rows: whatever is joined, no step of the printed SQL has more rows of one person than the plan states.

One person has a hundred rows of each kind, and there is nobody else. What each operator of DuckDB's own plan gave
is held against the largest join that the plan states; what multiplies nothing is linear in the person's rows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from dpsql.backends.duckdb_backend import DuckDBSnapshot
from dpsql.engine.audit.audit import parameter_of
from dpsql.errors import Refusal
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.planner import Plan
from dpsql.plan.privacy.growth import MAX_GROWN
from dpsql.plan.privacy.rows import Reach
from dpsql.plan.release_plan import ReleasePlan
from dpsql.tests.support.drawn_statements import growing_statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.random_files import KEYED_TABLES, SCHEMA_OF_KEYED_FILES, policies_of_keyed_files
from dpsql.tests.support.random_joins import PUBLIC_ROWS, SCHEMA, Database, load, policy_of, row

from .examples import REPEATED
from .measured import SALT, World, fixed_intermediates, measure_release, world
from .test_mutations import rewrite
from .test_neighbours import planned

Patch = pytest.MonkeyPatch

FUZZ = settings(REPEATED, max_examples=tried(50, 300))
LONG = settings(FUZZ, max_examples=10_000, derandomize=False)

ROWS = 100
"""How many rows the one person has of each kind; R is 6."""


def extreme(order: int = 0) -> Database:
    """Return the rows of the one person; `order`: which of equal-looking rows come first."""
    numbers = [(i * 37 + order * 11) % ROWS for i in range(ROWS)]
    return Database(
        {
            "person": (row("person", 1, age="30", team="red", home="a", height="2.5"),),
            "account": tuple(row("account", i, 1, kind="giro", balance=str(i), opened="2020-06-15") for i in numbers),
            "booking": tuple(
                row("booking", 1000 + i, i % 10, n=str(i % 7), amount="50", x="4", big="1", city="a",
                    seen="2020-01-01 00:00:00", flag="true")
                for i in numbers
            ),
            "note": tuple(
                row("note", 1, ref=str(i), n=str(i % 5), x=str(i / 100), tag="t", city="a", day="2020-06-15", flag="true")
                for i in numbers
            ),
            "profile": (row("profile", 1, city="a", level="low", score="9"),),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("growth")
    with world(folder, policy=policy_of(folder), schema=SCHEMA) as made:
        made.settle(load, extreme())
        # it counts before it joins, where a statement lets it: no other engine does
        made.connection.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")
        yield made


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same rows in recorded Parquet files, whose keys the owner asserts, asked as a session asks them."""
    folder = tmp_path_factory.mktemp("files")
    policy, _ = policies_of_keyed_files(folder)
    with world(folder, policy=policy, schema=SCHEMA_OF_KEYED_FILES, tables=KEYED_TABLES) as made:
        made.settle(load, extreme())
        with made.backend.snapshot() as snapshot:
            assert isinstance(snapshot, DuckDBSnapshot)
            yield replace(made, connection=snapshot._cursor)


# --- what is counted ---------------------------------------------------------------------------------------


def largest_step(world: World, query: BackendQuery, intermediates: list[object]) -> int:
    """Return the most rows that any operator of the engine gave."""
    parameters: list[object] = [SALT] if query.salted else []
    parameters += [parameter_of(intermediates[value.intermediate], value) for value in query.intermediates]
    found = world.connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query.sql}", parameters).fetchall()
    return max(row for step in json.loads(found[0][1])["operator"] for row in _rows_of(step))


def _rows_of(step: dict[str, Any]) -> Iterator[int]:
    yield int(step["intermediate_rows"])
    for child in step.get("children", ()):
        yield from _rows_of(child)


def stated(world: World, release: ReleasePlan, intermediates: list[object]) -> int:
    """Return the most rows that a join of a release makes, by its plan and the public rows."""
    found = [0]
    for work in release.works:
        counts = []
        for fan in work.fans:
            values = [parameter_of(intermediates[value.intermediate], value) for value in fan.intermediates]
            counted = world.connection.execute(fan.sql, values).fetchone()
            assert counted is not None
            counts.append(max(1, counted[0]))
        found.append(work.most * math.prod(counts))
    return max(found)


def linear(sql: str) -> int:
    """Return what no join multiplies: each mention of a table gives the person's rows, or public ones, once.

    Nothing else is added: what is kept of a unit is a part of its groups, each of which is in one branch of that union;
    the sums beside people are of groups that are kept.
    """
    mentions = len(re.findall(r'"main"\.', sql)) + sql.count("unnest(")
    public = sum(len(re.findall(rf'"{table}"', sql)) for table in PUBLIC_ROWS) + sql.count("unnest(")
    return max(ROWS * mentions, 9**public if public else 0)


def check(world: World, sql: str) -> Plan | None:
    """Hold one statement to the bound that its plan states; None if it is refused."""
    plan = planned(world, sql)
    intermediates = [] if plan is None else fixed_intermediates(plan)
    for release in () if plan is None else plan.releases:
        bound = stated(world, release, intermediates)
        if bound > MAX_GROWN:
            continue  # refused when the public rows are counted
        wanted = tuple(range(len(release.measurements)))
        every = replace(
            release, counted=None
        )  # groups that are not shown are made in the engine all the same
        beside = (query for query in release.queries(wanted) if not query.of_shown)
        for query in (*every.queries(wanted), *beside):
            step = largest_step(world, query, intermediates)
            assert step <= max(bound, linear(query.sql)), (sql, step, bound)
    return plan


# --- random ------------------------------------------------------------------------------------------------


@FUZZ
@given(growing_statements())
def test_no_step_has_more_rows_than_the_plan_states(heavy: World, sql: str) -> None:
    check(heavy, sql)


@pytest.mark.long
@LONG
@given(growing_statements())
def test_no_step_has_more_rows_than_the_plan_states_at_length(heavy: World, sql: str) -> None:
    check(heavy, sql)


@settings(FUZZ, max_examples=tried(12, 80))
@given(growing_statements())
def test_no_step_over_files_has_more_rows(of_files: World, sql: str) -> None:
    check(of_files, sql)


@pytest.mark.long
@settings(LONG, max_examples=3_000)
@given(growing_statements())
def test_no_step_over_files_has_more_rows_at_length(of_files: World, sql: str) -> None:
    check(of_files, sql)


@pytest.mark.parametrize("world", ["heavy", "of_files"])
def test_a_good_part_of_the_random_statements_multiplies(world: str, request: pytest.FixtureRequest) -> None:
    made: World = request.getfixturevalue(world)
    asked = answered = multiplied = 0

    @settings(FUZZ, max_examples=100)
    @given(growing_statements())
    def count(sql: str) -> None:
        nonlocal asked, answered, multiplied
        asked += 1
        plan = planned(made, sql)
        answered += plan is not None
        multiplied += plan is not None and any(release.works for release in plan.releases)

    count()
    assert answered >= 0.3 * asked
    assert multiplied >= 0.1 * asked


# --- by hand -------------------------------------------------------------------------------------------------

PAIRS = "SELECT COUNT(*) FROM note a JOIN note b ON a.person_id = b.person_id"
PAIRED = "SELECT a.person_id, a.n FROM note a JOIN note b ON a.person_id = b.person_id"
DOUBLED = "SELECT person_id, n FROM note UNION ALL SELECT person_id, n FROM note"
PER_CITY = "SELECT person_id, ref, COUNT(*) AS c FROM note GROUP BY person_id, ref"

ANSWERED = {
    "two copies": (PAIRS, 36),
    "three copies": (f"{PAIRS} JOIN note c ON c.person_id = a.person_id", 216),
    "through a subquery": (f"SELECT COUNT(*) FROM ({PAIRED}) x JOIN note c ON c.person_id = x.person_id", 216),
    "copies by a union": (f"SELECT COUNT(*) FROM ({DOUBLED}) x JOIN ({DOUBLED}) y ON x.person_id = y.person_id", 144),
    "aggregates finer than the person": (
        f"SELECT COUNT(*) FROM ({PER_CITY}) x JOIN ({PER_CITY}) y ON x.person_id = y.person_id", 36),
    "an outer join": ("SELECT COUNT(*) FROM note a LEFT JOIN note b ON a.person_id = b.person_id AND a.n < b.n", 36),
    "a full join": ("SELECT COUNT(*) FROM note a FULL JOIN note b ON a.person_id = b.person_id", 36),
    "a window over a join": (
        "SELECT COUNT(*) FROM (SELECT a.person_id, ROW_NUMBER() OVER (PARTITION BY a.person_id ORDER BY b.x) AS k "
        "FROM note a JOIN note b ON a.person_id = b.person_id) t WHERE k > 2", 36),
    "every pair in EXISTS": (
        "SELECT COUNT(*) FROM note a WHERE EXISTS (SELECT 1 FROM note b WHERE b.person_id = a.person_id AND b.x > a.x)", 36),
    "parents of what is joined": (
        "SELECT COUNT(*) FROM booking b JOIN account a ON a.no = b.account_no JOIN booking c ON true JOIN account d "
        "ON d.no = c.account_no AND d.person_id = a.person_id", 144),
    "a path to the owner": ("SELECT COUNT(*) FROM booking b JOIN booking c ON b.account_no = c.account_no", 36),
    "public rows": ("SELECT COUNT(*) FROM note n CROSS JOIN tag t CROSS JOIN tag u", 6 * 49),
    "public rows of one key": ("SELECT COUNT(*) FROM note n JOIN tag t ON t.tag = n.tag", 6 * 3),
    "released rows": (
        "SELECT COUNT(*) FROM note n JOIN (SELECT city, COUNT(*) AS c FROM note GROUP BY city) t ON n.n < t.c", 48),
}  # fmt: skip
"""Name -> a statement that multiplies, and what it may come to: R is 6 for each table, `tag` has 7 rows, 3 of a key.

The parents: of a booking and its account either is joined first, so that each side of the pair has 6, and outer
joins and pairs of parents count the larger. Made-up rows of a release are 8."""


@pytest.mark.parametrize("name", ANSWERED)
def test_a_join_makes_no_more_than_is_stated(heavy: World, name: str) -> None:
    sql, most = ANSWERED[name]
    plan = check(heavy, sql)
    assert plan is not None
    intermediates = fixed_intermediates(plan)
    assert max(stated(heavy, release, intermediates) for release in plan.releases) <= most


def copies(count: int) -> str:
    joined = "".join(f" JOIN note c{i} ON c{i}.person_id = a.person_id" for i in range(count - 1))
    return f"SELECT COUNT(*) FROM note a{joined}"


DOUBLING = "WITH a0 AS (SELECT person_id, n FROM note)" + "".join(
    f", a{i} AS (SELECT x.person_id, y.n FROM a{i - 1} x JOIN a{i - 1} y ON x.person_id = y.person_id)"
    for i in (1, 2, 3)
)
PAIRS_OF_UNIONS = "SELECT COUNT(*) FROM " + " JOIN ".join(
    f"({DOUBLED}) u{i}{f' ON u{i}.person_id = u0.person_id' if i else ''}" for i in range(6)
)

REFUSED = {
    "sixteen copies": copies(16),
    "doubling in subqueries": f"{DOUBLING} SELECT COUNT(*) FROM a3",
    "copies by unions": PAIRS_OF_UNIONS,
    "copies of aggregates": "SELECT COUNT(*) FROM " + " JOIN ".join(
        f"({PER_CITY}) u{i}{f' ON u{i}.person_id = u0.person_id' if i else ''}" for i in range(8)),
    "left joins": copies(9).replace("JOIN", "LEFT JOIN"),
    "a reset that is none": f"SELECT COUNT(*) FROM ({copies(9).replace('COUNT(*)', 'a.person_id, a.n, c1.n AS m')} "
        "GROUP BY a.person_id, a.n, c1.n) t",
    "in EXISTS": f"SELECT COUNT(*) FROM person p WHERE EXISTS ({copies(9).replace('COUNT(*)', '1')} AND a.person_id = p.id)",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_multiplies_to_more_is_refused_by_its_text(heavy: World, name: str) -> None:
    with pytest.raises(Refusal) as refused:
        heavy.plan(REFUSED[name])
    assert refused.value.sqlstate == "PV201"
    assert refused.value.position is not None


LINEAR = (
    "SELECT COUNT(*) FROM account a JOIN booking b ON a.no = b.account_no",
    "SELECT COUNT(*) FROM account a LEFT JOIN booking b ON b.account_no = a.no",
    "SELECT COUNT(*) FROM note n JOIN person p ON p.id = n.person_id JOIN profile f ON f.person_id = p.id",
    "SELECT COUNT(*) FROM note n WHERE EXISTS (SELECT 1 FROM booking b JOIN account a ON a.no = b.account_no WHERE a.person_id = n.person_id)",
    "SELECT COUNT(*) FROM note n JOIN region r ON r.name = n.city",
    "SELECT COUNT(*) FROM note n JOIN (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id) t ON t.person_id = n.person_id",
    "SELECT COUNT(*) FROM note n JOIN (SELECT city, COUNT(*) AS c FROM note GROUP BY city) t ON t.city = n.city",
)


@pytest.mark.parametrize("sql", LINEAR)
def test_what_does_not_multiply_is_not_cut(heavy: World, sql: str) -> None:
    plan = check(heavy, sql)
    assert plan is not None
    for release in plan.releases:
        assert not release.works
        assert "AS ranked" not in "".join(query.sql for query in release.queries((0,)))


# --- which rows are kept -----------------------------------------------------------------------------------


def kept(world: World, sql: str) -> list[object]:
    """Return the exact integers of a statement for several physical orders of the same rows."""
    plan, found = world.plan(sql), list[object]()
    for order in range(4):
        world.settle(load, extreme(order), order)
        with world.backend.snapshot() as snapshot:
            found.append(measure_release(plan.releases[0], snapshot))
    return found


KEPT = "SELECT SUM(a.n) FROM note a JOIN note b ON a.person_id = b.person_id WHERE a.x > b.x"


def test_the_rows_kept_do_not_depend_on_their_order(heavy: World) -> None:
    first, *others = kept(heavy, KEPT)
    assert all(other == first for other in others)


# --- these tests have power ----------------------------------------------------------------------------------


def test_no_cut_of_files(of_files: World, monkeypatch: Patch) -> None:
    rewrite(monkeypatch, lambda sql: re.sub(r"rn <= [0-9]+", "true", sql))
    with pytest.raises(AssertionError):
        check(of_files, PAIRS)


def test_no_cut(heavy: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.privacy.growth.cut_before", lambda items, place, *_: items[place])
    with pytest.raises(AssertionError):
        check(heavy, PAIRS)


def test_a_cut_that_keeps_all(heavy: World, monkeypatch: Patch) -> None:
    changed = rewrite(monkeypatch, lambda sql: re.sub(r"AS ranked WHERE rn <= \d+", "AS ranked", sql))
    with pytest.raises(AssertionError):
        check(heavy, PAIRS)
    assert changed


def test_a_cut_after_the_join(heavy: World, monkeypatch: Patch) -> None:
    """What is joined is bounded, as the final bounding does it: the rows were there."""
    monkeypatch.setattr("dpsql.plan.privacy.growth._Multiplicity.multiplied", lambda _: set())
    with pytest.raises(AssertionError):
        check(heavy, PAIRS)


def test_an_order_that_is_not_total(heavy: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.backend_sql.print_source._cut_order", lambda *_: "")
    first, *others = kept(heavy, KEPT)
    assert any(other != first for other in others)


def test_forget_what_a_subquery_multiplies(heavy: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.privacy.growth._Multiplicity.size", lambda *_: Reach(6))
    with pytest.raises(AssertionError):
        check(heavy, ANSWERED["through a subquery"][0])

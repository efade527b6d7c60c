"""Groups that leave the engine (L10): of keys that are found those that come to the test, and no others (1.31).

What each printed query returns is held against all groups, integer for integer: what counts people returns those that
keep as many as are tested, which is the rule of 1.7 as it was before the test was printed; any other query those that
it is asked of. One person with very many keys adds no more groups than are kept of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.engine.audit.audit import windows_of
from dpsql.errors import Refusal
from dpsql.mechanisms import Law, Truncated
from dpsql.plan.backend_sql import print_release
from dpsql.plan.backend_sql.print_release import BackendQuery
from dpsql.plan.planner import Plan
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Neighbours
from dpsql.release.privatise import Exact, publish
from dpsql.release.released import Groups as ReleasedGroups
from dpsql.release.released import canonical, listed
from dpsql.testing.injected_noise import CountingNoise, ZeroNoise
from dpsql.tests.support import drawn_statements, random_joins
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, databases, load, policy_of

from .conftest import make_desk
from .examples import HEAVY, REPEATED, WIDE, visit
from .measured import Groups, World, fixed_intermediates, measure_release, parameters_of, world
from .planting import plant

FUZZ = settings(REPEATED, max_examples=tried(6, 40))
LONG = settings(FUZZ, max_examples=3000, derandomize=False)
Patch = pytest.MonkeyPatch

MODE = "MODE() WITHIN GROUP (ORDER BY n)"
KEYS = (
    "tag", "tag, n", "city, tag", "ROLLUP (tag, n)", "GROUPING SETS ((tag), (city, n))", "any_day", "any_seen, flag",
    "huge", "d * n, flag",
)  # fmt: skip
SUMS = (
    "COUNT(*)", "SUM(n)", "AVG(x)", "COUNT(*) FILTER (WHERE flag)", "COUNT(DISTINCT n)", "MEDIAN(x)", MODE,
    "COUNT(DISTINCT person_id) FILTER (WHERE flag)", "VAR_POP(d)", "CORR(n, x)", "MIN(n)",
)  # fmt: skip
PRIVACIES: dict[str, dict[str, Any]] = {
    "one at a time": {},
    "replaced": {"neighbours": Neighbours.REPLACE_ONE},
    "three together": {"together": 3},
    "zCDP": {"accounting": Accounting.ZCDP},
}  # fmt: skip
OF_ONE = Database(
    (), tuple(visit(1, tag=f"t{i}", n=str(i % 8 - 3), x="1", flag="true", city="a") for i in range(200))
)
"""One person alone, with 200 keys."""


@pytest.fixture(scope="module", params=[1, 3], ids="C={}".format)
def bounded(
    tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None, request: pytest.FixtureRequest
) -> Iterator[World]:
    """Open worlds in which a person touches so many groups."""
    folder = tmp_path_factory.mktemp("tested")
    with world(folder, policy=policy_of(folder, groups=request.param), server=engine) as made:
        yield made


def under(made: World, privacy: dict[str, Any], minimum_units: int) -> World:
    policy = made.policy
    return replace(
        made,
        policy=replace(
            policy, privacy=replace(policy.privacy, **privacy), defaults=replace(policy.defaults, minimum_units=minimum_units)
        ),
    )  # fmt: skip


def returned(
    made: World, release: ReleasePlan, query: BackendQuery, parameters: list[object]
) -> dict[int, Groups]:
    """Return what a query gives, by measurement and group."""
    types = [key.type for key in release.release.keys]
    width, changes = len(types), [canonical(type_) for type_ in types]
    with made.backend.snapshot() as snapshot:
        rows = [
            (*(v if c is None else c(v) for v, c in zip(row[:width], changes, strict=True)), *row[width:])
            for chunk in snapshot.run(query.sql, parameters)
            for row in chunk
        ]
    if query.is_window:
        (number,) = query.measurements
        return {number: windows_of(release.choices[number], rows, width)}
    found: dict[int, Groups] = {number: {} for number in query.measurements}
    for row in rows:
        key, start = row[:width], width
        for number in query.measurements:
            size = release.measurements[number].size
            assert key not in found[number], "a group came twice"
            found[number][key], start = row[start : start + size], start + size
    return found


def check(made: World, plan: Plan) -> int:
    """Hold what leaves the engine to what is tested; return how many groups of nobody stayed there."""
    stayed = 0
    for release in plan.releases:
        if release.counted is None or release.is_empty:
            continue
        intermediates = fixed_intermediates(plan)
        with made.backend.snapshot() as snapshot:
            every = measure_release(replace(release, counted=None), snapshot, intermediates)
        tested = {
            key for key, (people,) in every[release.counted].items() if people >= plan.privacy.minimum_units
        }
        stayed += len({key for groups in every.values() for key in groups} - tested)
        first, *others = release.queries(tuple(range(len(release.measurements))))
        assert release.counted in first.measurements
        assert not first.of_shown
        found = returned(made, release, first, parameters_of(release, first, intermediates))
        for number, groups in found.items():
            assert groups == {key: every[number][key] for key in tested}, first.sql
        held(release, tested, found[release.counted], plan.privacy.minimum_units)
        asked = [
            key
            for key in sorted(tested, key=repr)[::2]
            if all(not isinstance(part, str) or "(" not in part for part in key)
        ]
        if any(key.type.is_temporal for key in release.release.keys):
            asked = [key for key in asked if publishable(release, key)]
        columns = tuple(list(column) for column in zip(*asked, strict=True)) or tuple(
            [] for _ in release.release.keys
        )
        lists = listed(ReleasedGroups(columns, len(asked)), [key.type for key in release.release.keys])
        for query in others:
            assert query.of_shown
            parts = returned(made, release, query, parameters_of(release, query, intermediates, lists))
            for number, groups in parts.items():
                assert groups == {key: every[number][key] for key in asked if key in every[number]}, query.sql
    return stayed


def publishable(release: ReleasePlan, key: tuple[Any, ...]) -> bool:
    return not any(
        one.type.is_temporal and isinstance(part, str)
        for one, part in zip(release.release.keys, key, strict=True)
    )


def held(release: ReleasePlan, tested: set[Any], counts: Groups, minimum_units: int) -> None:
    """The groups that a noise is drawn for are those with as many people, at most C of one person."""
    exact, noise = Exact(), CountingNoise()
    keys = list(counts)
    columns = [list(column) for column in zip(*keys, strict=True)] or [[] for _ in release.release.keys]
    assert release.counted is not None
    exact.add(columns, {(release.counted, 0): [counts[key][0] for key in keys]}, len(keys))
    publish(exact, release, noise, minimum_units)
    assert len(noise.given) == sum(publishable(release, key) for key in tested)


def planned(made: World, keys: str, sums: list[str], where: str = "") -> Plan | None:
    with suppress(Refusal):
        return made.plan(
            f"SELECT COUNT(DISTINCT person_id), {', '.join(sums)} FROM visit {where} GROUP BY {keys}"
        )
    return None


PRIVACY = st.sampled_from(sorted(PRIVACIES))


@FUZZ
@given(
    st.sampled_from(KEYS), st.lists(st.sampled_from(SUMS), min_size=1, max_size=4), PRIVACY, st.sampled_from((1, 1, 2, 3)),
    databases(),
)  # fmt: skip
@example("tag", ["COUNT(*)", "SUM(n)"], "one at a time", 1, WIDE)
@example("city, tag", ["COUNT(*)", "MEDIAN(x)"], "zCDP", 2, WIDE)
@example("tag", ["COUNT(DISTINCT n)", MODE], "three together", 1, OF_ONE)
@example("tag, n", ["SUM(n)", "COUNT(DISTINCT person_id) FILTER (WHERE flag)"], "replaced", 1, HEAVY)
def test_only_groups_that_are_tested_leave_the_engine(
    bounded: World, keys: str, sums: list[str], privacy: str, minimum_units: int, database: Database
) -> None:
    made = under(bounded, PRIVACIES[privacy], minimum_units)
    plan = planned(made, keys, sums)
    if plan is not None:
        made.settle(load, database)
        check(made, plan)


@FUZZ
@given(drawn_statements.statements(), random_joins.databases(), st.sampled_from((1, 2)))
def test_only_groups_that_are_tested_leave_the_engine_over_joins(
    joined: World, sql: str, database: random_joins.Database, minimum_units: int
) -> None:
    made = under(joined, {}, minimum_units)
    with suppress(Refusal):
        plan = made.plan(sql)
        made.settle(random_joins.load, database)
        check(made, plan)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("privacy", PRIVACIES)
def test_each_key_and_accounting_is_planned(single: World, keys: str, privacy: str) -> None:
    for sums in (["COUNT(*)", "SUM(n)"], ["COUNT(DISTINCT n)"], ["MEDIAN(x)"], [MODE]):
        plan = planned(under(single, PRIVACIES[privacy], 1), keys, sums)
        assert plan is not None
        assert any(release.counted is not None for release in plan.releases)


# --- one person ------------------------------------------------------------------------------------------------


STATEMENTS = {
    "people in the statement of the sums": "SELECT tag, COUNT(*), SUM(n) FROM visit GROUP BY tag",
    "a declared key beside": "SELECT city, tag, COUNT(*), SUM(n) FROM visit GROUP BY city, tag",
    "several counts of people": (
        "SELECT tag, COUNT(DISTINCT person_id) FILTER (WHERE flag), SUM(n) FROM visit GROUP BY tag"
    ),
    "distinct values": "SELECT tag, COUNT(DISTINCT n) FROM visit GROUP BY tag",
    "a median": "SELECT tag, MEDIAN(x) FROM visit GROUP BY tag",
    "a mode": "SELECT tag, MODE() WITHIN GROUP (ORDER BY n) FROM visit GROUP BY tag",
}  # fmt: skip


def rows_of_one(made: World, sql: str) -> Iterator[tuple[int, int]]:
    """Yield how many groups each query returns of one person's 200, and how many are kept of a person."""
    made.settle(load, OF_ONE)
    (release,) = made.plan(sql).releases
    assert release.bounding.groups < 10
    lists: list[list[object]] = []
    for query in release.queries(tuple(range(len(release.measurements)))):
        found = returned(made, release, query, parameters_of(release, query, (), lists))
        groups = {key for measured in found.values() for key in measured}
        yield len(groups), release.bounding.groups
        columns = tuple(list(column) for column in zip(*groups, strict=True))
        lists = lists or listed(
            ReleasedGroups(columns, len(groups)), [key.type for key in release.release.keys]
        )


@pytest.mark.parametrize("name", STATEMENTS)
def test_one_person_adds_no_more_groups_than_are_kept(bounded: World, name: str) -> None:
    (first, most), *others = rows_of_one(bounded, STATEMENTS[name])
    assert 0 < first <= most
    assert all(rows <= most for rows, _ in others)


# --- what is stored --------------------------------------------------------------------------------------------


class Shown(ZeroNoise):
    """A noise with which every group that is tested is shown."""

    def draw(self, law: Law, count: int) -> npt.NDArray[Any]:
        return np.full(count, 10**6 if isinstance(law, Truncated) else 0, dtype=np.int64)


def test_sums_of_groups_that_are_stored_are_of_these_whoever_they_keep_now(
    tmp_path: Path, engine: PostgresServer | None
) -> None:
    """Which groups are shown was drawn before; that people have left takes none of the others' rows out of a sum."""
    with ExitStack() as stack:
        policy = policy_of(tmp_path)
        policy = replace(policy, defaults=replace(policy.defaults, minimum_units=2))
        opened = make_desk(stack, tmp_path, Shown(), server=engine, policy=policy)
        opened.settle(Database((), tuple(visit(unit, tag=tag, n="2") for unit in (1, 2) for tag in "ab")))
        people = "SELECT tag, COUNT(DISTINCT person_id) FROM visit GROUP BY tag"
        assert [row[0] for row in opened.session.execute(people).rows] == ["a", "b"]
        opened.settle(Database((), (visit(1, tag="a", n="3"), *(visit(3, tag=tag, n="7") for tag in "cde"))))
        for sums, wanted in (("SUM(n)", [3, 0]), ("COUNT(DISTINCT n)", [1, 0])):
            rows = opened.session.execute(f"SELECT tag, {sums} FROM visit GROUP BY tag").rows
            assert [row[0] for row in rows] == ["a", "b"]
            assert [round(row[1]) for row in rows] == wanted


# --- faults ------------------------------------------------------------------------------------------------------

_HAVING = print_release.ReleasePrinter._is_tested
FAULTS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "no HAVING": (_HAVING, 'else [f"{people} >= {self.tested.least}"]', "else []"),
    "HAVING on rows": (_HAVING, 'f"{people} >=', 'f"COUNT(*) >='),
    "people before the cut to C": (
        print_release.ReleasePrinter._people, '"kept" if self.bounding.ranked', '"p" if self.bounding.ranked',
    ),
    "one person less": (_HAVING, "{self.tested.least}", "{self.tested.least - 1}"),
    "all groups in the query of the sums": (
        print_release.ReleasePrinter._of_shown, "AS f JOIN {listed}", "AS f LEFT JOIN {listed}",
    ),
    "every query before the count": (
        print_release.ReleasePrinter.limited, "(*counting, *(self._of_shown(query) for query in queries if query not in counting))",
        "tuple(queries)",
    ),
}  # fmt: skip
HOSTILE = Database((), (*OF_ONE.visits, *(visit(unit, tag="t1", n="1", x="1", city="a") for unit in (2, 3))))


def test_the_law_is_green_where_the_faults_are_red(bounded: World) -> None:
    bounded.settle(load, HOSTILE)
    assert all(
        check(under(bounded, {}, least), bounded_plan(bounded, least, sql))
        for least in (1, 2)
        for sql in STATEMENTS.values()
    )


def bounded_plan(made: World, minimum_units: int, sql: str) -> Plan:
    return under(made, {}, minimum_units).plan(sql)


@pytest.mark.parametrize(("function", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_plant(bounded: World, monkeypatch: Patch, function: Callable[..., Any], old: str, new: str) -> None:
    bounded.settle(load, HOSTILE)
    plant(monkeypatch, function, (old, new))
    red = 0
    for least in (1, 2):
        for sql in STATEMENTS.values():
            try:
                check(bounded, bounded_plan(bounded, least, sql))
            except AssertionError:
                red += 1
    assert red

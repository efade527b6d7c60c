"""Counts and sums over declared groups, drawn with the rows of all other values (soundness.md 1.34).

A person moves the whole of it no further than the listed groups alone; it is all rows, each once; and nothing of it is
shown but the listed groups. That neighbours stay within the claim over all cells is held by every neighbour law, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.engine.audit.audit import measure_release
from dpsql.plan.backend_sql import print_release
from dpsql.plan.measures.measurements import Measurement
from dpsql.plan.privacy import axes
from dpsql.plan.release_plan import ReleasePlan
from dpsql.policy import Accounting, Policy, parse_policy
from dpsql.release import run
from dpsql.testing.injected_noise import ZeroNoise
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_databases import Database, load, policy_text

from .conftest import OpenDesk
from .examples import HEAVY, ORDINARY, person, visit
from .measured import World, compared, world
from .planting import plant

Patch = pytest.MonkeyPatch

ELSEWHERE = Database(
    (
        *(person(unit, team=team, age="30") for unit, team in enumerate(("red", "green", "blue", None, "other"), 1)),
    ),
    (
        *(visit(unit, city=city, flag=flag, n="2") for unit in range(1, 6) for city in ("a", "d") for flag in ("true", None)),
        *(visit(unit, city=None, flag="false", n="5") for unit in range(1, 4)),
        *(visit(unit, city="other", n="1") for unit in range(1, 3)),
    ),
)  # fmt: skip
"""Rows of values that no list has, one of them the text that others are printed as, of NULL that is listed and that is not."""

GROUPINGS = (
    "SELECT city, COUNT(*), SUM(n), SUM(n) FILTER (WHERE flag) FROM visit GROUP BY city",
    "SELECT flag, COUNT(*), SUM(n), SUM(n) FILTER (WHERE flag) FROM visit GROUP BY flag",
    "SELECT city, flag, COUNT(*), SUM(n), SUM(n) FILTER (WHERE flag) FROM visit GROUP BY city, flag",
    "SELECT flag, city, COUNT(*), SUM(n), SUM(n) FILTER (WHERE flag) FROM visit WHERE n < 6 GROUP BY flag, city",
    "SELECT team, COUNT(*), SUM(age) FROM person GROUP BY team",
    "SELECT team, active, COUNT(*), COUNT(DISTINCT id), AVG(age) FROM person GROUP BY team, active",
    "SELECT v.city, p.team, COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id GROUP BY v.city, p.team",
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("completed"), server=engine) as made:
        yield made


def cells(world: World, sql: str, number: int = 0) -> dict[tuple[Any, ...], tuple[int, ...]]:
    (release,) = world.plan(sql).releases
    with world.backend.snapshot() as snapshot:
        return measure_release(release, snapshot, ())[number]


# --- all rows, each once ----------------------------------------------------------------------------------------


def check_all_rows(world: World) -> None:
    """Over the cells of a grouping all is what it is without groups; over a part of the keys what these say."""
    for database in (ELSEWHERE, HEAVY, ORDINARY):
        world.settle(load, database)
        for sql in GROUPINGS[:4]:
            (release,) = world.plan(sql).releases
            assert release.axes is not None
            known = axes.cells_of(release.axes)
            found = cells(world, sql)
            assert set(found) <= set(known)
            where = " WHERE n < 6" if "WHERE n < 6" in sql else ""
            whole = cells(world, f"SELECT COUNT(*), SUM(n), SUM(n) FILTER (WHERE flag) FROM visit{where}")
            assert tuple(map(sum, zip(*found.values(), strict=True))) == pytest.approx(
                whole[()], abs=len(known)
            )
        both, one = cells(world, GROUPINGS[2]), cells(world, GROUPINGS[0])
        summed = {
            city: tuple(map(sum, zip(*(row for key, row in both.items() if key[0] == city), strict=True)))
            for city, _ in both
        }
        assert len(summed) == len(one)
        for city, row in summed.items():
            assert row == pytest.approx(one[(city,)], abs=4)


def test_all_rows_are_in_one_cell(here: World) -> None:
    check_all_rows(here)


def test_the_listed_groups_are_what_they_are_without(here: World, monkeypatch: Patch) -> None:
    for database in (ELSEWHERE, HEAVY):
        here.settle(load, database)
        for sql in GROUPINGS:
            (release,) = here.plan(sql).releases
            listed = set(itertools.product(*(axis.values for axis in release.axes or ())))
            with monkeypatch.context() as patch:
                patch.setattr(ReleasePlan, "axes", None)
                alone = cells(here, sql)
            assert {key: row for key, row in cells(here, sql).items() if key in listed} == alone, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT team, COUNT(*) FROM person WHERE team IN ('red') GROUP BY team",
        "SELECT active, COUNT(*) FROM person GROUP BY active",
    ],
)
def test_where_no_row_has_another_value_nothing_is_asked_for_it(here: World, sql: str) -> None:
    (release,) = here.plan(sql).releases
    assert release.axes is not None
    assert all(axis.others == () for axis in release.axes)
    assert all("HAVING" in query.sql for query in release.queries((0,)))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT tag, COUNT(*) FROM visit GROUP BY tag",
        "SELECT city, COUNT(*) FROM visit WHERE city <> 'a' GROUP BY city",
        "SELECT day, flag, city, COUNT(*) FROM visit WHERE tag = 'p' AND n = (SELECT COUNT(*) FROM visit) GROUP BY day, flag, city",
    ],
)
def test_what_is_drawn_over_its_listed_groups_alone(here: World, sql: str) -> None:
    for release in here.plan(sql).releases:
        assert not release.release.keys or release.axes is None


# --- what is shown ----------------------------------------------------------------------------------------------


def check_shown(desk: OpenDesk) -> None:
    opened = desk(ZeroNoise())
    opened.settle(ELSEWHERE)
    run_ = opened.session.execute
    teams = run_("SELECT team, COUNT(*) FROM person GROUP BY team")
    assert teams.rows == [("red", 1), ("blue", 1)]
    assert run_("SELECT COUNT(*) FROM person").rows == [(5,)]
    assert [city for city, _ in run_("SELECT city, COUNT(*) FROM visit GROUP BY city").rows] == [
        "a",
        "b",
        "c",
        None,
    ]
    assert "groups: 2" in opened.session.explain("SELECT team, COUNT(*) FROM person GROUP BY team").text()
    assert len(run_("SELECT team, active, COUNT(*) FROM person GROUP BY team, active LIMIT 9").rows) == 4
    assert run_("SELECT SUM(c) FROM (SELECT team, COUNT(*) AS c FROM person GROUP BY team) t").rows == [(2,)]


def test_others_are_not_shown(desk: OpenDesk) -> None:
    check_shown(desk)


def test_a_total_that_is_read_from_groups_has_the_others_in_it(desk: OpenDesk) -> None:
    opened = desk(ZeroNoise())
    opened.settle(ELSEWHERE)
    opened.session.execute("SELECT team, active, COUNT(*) FROM person GROUP BY team, active")
    opened.session.execute("SET dpsql.epsilon = 0.1")
    answer = opened.session.execute("SELECT COUNT(*) FROM person")
    assert answer.receipt is not None
    assert answer.receipt.epsilon == 0
    assert answer.rows == [(5,)]


# --- what the owner says ------------------------------------------------------------------------------------------

BY_TEAM = "SELECT team, COUNT(*) FROM person GROUP BY team"
PEOPLE = "SELECT COUNT(*) FROM person"


def claimed(folder: Path, epsilon: str = "1") -> Policy:
    """Return the policy in which a person's team is complete."""
    text = policy_text(epsilon=epsilon).replace('["red", "blue"] }', '["red", "blue"], complete = true }')
    return parse_policy(text, folder / "laws.toml")


def check_what_is_said(desk: OpenDesk, folder: Path) -> None:
    """It moves what is believed of sums, and no plan, claim or key: what is drawn has the others' cell all the same."""
    folder.mkdir()
    plain, told = desk(ZeroNoise()), desk(ZeroNoise(), policy=claimed(folder), folder=folder)
    plans = []
    for opened in (plain, told):
        opened.settle(ELSEWHERE)
        (release,) = opened.session.explain(BY_TEAM).plan.releases
        plans.append((release.identity, release.queries((0,)), release.measurements, release.grounds))
        assert opened.session.execute(BY_TEAM).rows == [("red", 1), ("blue", 1)]
        opened.session.execute("SET dpsql.epsilon = 0.1")
    assert plans[0] == plans[1]
    assert plain.session.execute(PEOPLE).rows == [(5,)]
    assert told.session.execute(PEOPLE).rows == [
        (2,)
    ]  # wrong as the owner's word is, and of what was drawn alone
    told.session.execute("SET dpsql.reuse = off")
    assert told.session.execute(PEOPLE).rows == [(5,)]


def test_what_the_owner_says_is_of_sums_alone(desk: OpenDesk, tmp_path: Path) -> None:
    check_what_is_said(desk, tmp_path / "told")


def test_a_complete_key_adds_up_and_contradicts_what_is_wrong(desk: OpenDesk, tmp_path: Path) -> None:
    opened = desk(policy=claimed(tmp_path, "0.1"), folder=tmp_path)
    opened.settle(ORDINARY)
    run_ = opened.session.execute
    run_("SET dpsql.reuse = off")
    for sql in (PEOPLE, BY_TEAM, "SELECT active, COUNT(*) FROM person GROUP BY active"):
        run_(sql)
    run_("SET dpsql.reuse = on")
    ((total, *both),) = run_(
        "SELECT (SELECT COUNT(*) FROM person), (SELECT COUNT(*) FROM person WHERE team = 'red'), "
        "(SELECT COUNT(*) FROM person WHERE team = 'blue')"
    ).rows
    assert total == sum(both)
    many = Database(tuple(person(unit, team="green") for unit in range(1, 3001)), ())
    for policy, said in (
        (claimed(tmp_path), "the policy says"),
        (None, 'have another "team" than those listed'),
    ):
        folder = tmp_path / said[:5].strip()
        folder.mkdir()
        wrong = desk(policy=policy, folder=folder)
        wrong.settle(many)
        answer = wrong.session.execute(BY_TEAM)
        assert answer.receipt is not None
        (note,) = [note for note in answer.receipt.notes if said in note]
        assert "3,0" in note or "2,9" in note


# --- neighbours -------------------------------------------------------------------------------------------------

_SCHEMA = """
CREATE TABLE pupil (id INTEGER PRIMARY KEY);
CREATE TABLE course (pupil INTEGER NOT NULL, name INTEGER NOT NULL, UNIQUE (pupil, name));
"""
_TEXT = """
database = "duckdb:laws.duckdb"
ledger = "sqlite:laws-ledger.db"
[privacy]
epsilon = 9999
neighbours = "{neighbours}"
[defaults]
epsilon = 1
[tables.pupil]
unit = "id"
[tables.course]
unit = {{ column = "pupil", references = "pupil.id" }}
max_rows = {rows}
[tables.course.columns]
name = {{ values = [1] }}
"""
COURSES = "SELECT name, COUNT(*) FROM course GROUP BY name"


@contextmanager
def school(folder: Path, *, neighbours: str, rows: int, accounting: Accounting) -> Iterator[World]:
    folder.mkdir()
    pure = parse_policy(_TEXT.format(neighbours=neighbours, rows=rows), folder / "school.toml")
    policy = replace(pure, privacy=replace(pure.privacy, accounting=accounting))
    with world(folder, policy=policy, schema=_SCHEMA) as made:
        yield made


def held(made: World, here: tuple[int, ...], there: tuple[int, ...]) -> None:
    """Hold the claim where pupil 1 has some courses, and has others."""
    plan = made.plan(COURSES)
    found = []
    for courses in (here, there):
        connection: duckdb.DuckDBPyConnection = made.connection
        connection.execute("DELETE FROM course; DELETE FROM pupil; INSERT INTO pupil VALUES (1)")
        for name in courses:
            connection.execute("INSERT INTO course VALUES (1, ?)", [name])
        with made.backend.snapshot() as snapshot:
            found.append([measure_release(release, snapshot, ()) for release in plan.releases])
    compared(plan, *found, COURSES)


def check_one_row_in_a_group(folder: Path) -> None:
    """Enforced keys leave a pupil one row in a listed group, and all rows in the others'."""
    with school(folder, neighbours="add-remove", rows=6, accounting=Accounting.ZCDP) as made:
        held(made, tuple(range(2, 8)), ())


def check_moved(folder: Path) -> None:
    """One listed group and the others are two: who moves from one to the other moves both."""
    with school(folder, neighbours="replace-one", rows=1, accounting=Accounting.PURE) as made:
        held(made, (1,), (2,))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_all_rows_among_the_others_of_a_pure_draw(tmp_path: Path, neighbours: str) -> None:
    """Enforced keys leave one row in a listed group, and L1 is that of all rows wherever they are."""
    with school(tmp_path / "school", neighbours=neighbours, rows=3, accounting=Accounting.PURE) as made:
        assert made.plan(COURSES).releases[0].bounding.one_a_group
        held(made, tuple(range(2, 10)), () if neighbours == "add-remove" else (1, *range(20, 29)))


def test_one_row_in_a_listed_group(tmp_path: Path) -> None:
    check_one_row_in_a_group(tmp_path / "school")


def test_who_moves_to_the_others(tmp_path: Path) -> None:
    check_moved(tmp_path / "school")


# --- mutants ----------------------------------------------------------------------------------------------------


def test_others_where_a_unit_has_one_row_in_a_group(tmp_path: Path, monkeypatch: Patch) -> None:
    plant(monkeypatch, ReleasePlan.axes.func, (" or (self.is_zcdp and self.bounding.one_a_group)", ""))  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        check_one_row_in_a_group(tmp_path / "school")


def test_one_listed_group_is_taken_for_one_number(tmp_path: Path, monkeypatch: Patch) -> None:
    assert Measurement.of_one.fget is not None  # type: ignore[attr-defined]
    plant(monkeypatch, Measurement.of_one.fget, ("self.bounding.grouped or ", ""))  # type: ignore[attr-defined]
    with pytest.raises(AssertionError):
        check_moved(tmp_path / "school")


def test_the_others_of_a_tuple_alone(here: World, monkeypatch: Patch) -> None:
    """A tuple with one key that is not listed is in the cell of no key that is."""
    told = print_release.ReleasePrinter._told_apart

    def of_all(self: Any, place: int, axis: axes.Axis) -> str:
        name, whole = self.key_names[place], []
        for key, one, domain in zip(self.keys, self.key_names, self.domains, strict=True):
            whole.append(self._member(one, key.type, domain))
        (member,) = (part for number, part in enumerate(whole) if number == place)
        return (
            told(self, place, axis)
            .replace(member, f"({' AND '.join(whole)})")
            .replace(f"AS {name}", f"AS {name}")
        )

    monkeypatch.setattr(print_release.ReleasePrinter, "_told_apart", of_all)
    here.settle(load, ELSEWHERE)
    sql = "SELECT v.city, p.team, COUNT(*) FROM visit v JOIN person p ON p.id = v.person_id GROUP BY v.city, p.team"
    both, one = cells(here, sql), cells(here, sql.replace("v.city, p.team", "v.city"))
    with pytest.raises(AssertionError):
        assert sum(row[0] for key, row in both.items() if key[0] == "a") == pytest.approx(
            one[("a",)][0], abs=4
        )


def test_null_is_a_listed_group_and_the_others_too(here: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, axes._unlisted, ("if None not in values:", "if True:"))
    with pytest.raises(AssertionError):
        test_the_listed_groups_are_what_they_are_without(here, monkeypatch)


def test_the_others_are_shown(desk: OpenDesk, monkeypatch: Patch) -> None:
    listed = run.planned_groups

    def all_of(plan: ReleasePlan) -> Any:
        found = listed(plan)
        if plan.axes is None:
            return found
        keys = axes.cells_of(plan.axes)
        return replace(found, columns=tuple(map(list, zip(*keys, strict=True))), size=len(keys))

    monkeypatch.setattr(run, "planned_groups", all_of)
    with pytest.raises((AssertionError, ValueError)):
        check_shown(desk)


def test_what_the_owner_says_enters_a_plan(desk: OpenDesk, tmp_path: Path, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        axes._is_whole,
        (
            "if key.type.kind is not Kind.BOOLEAN:",
            "if key.name == 'team':\n        return True\n    if False:",
        ),
    )
    with pytest.raises(AssertionError):
        check_what_is_said(desk, tmp_path / "told")


def test_the_others_are_left_out(here: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, print_release.ReleasePrinter._in_domains, ("if whole and ", "if False and "))
    with pytest.raises(AssertionError):
        check_all_rows(here)

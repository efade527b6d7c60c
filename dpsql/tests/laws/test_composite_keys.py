"""L1, L2, L9 and L10 where a person, and the way to one, are keys of several columns (soundness.md 1.29).

The tests of several tables, in the world of `random_composites`: people share parts of their keys, are spelled alike
when the parts are put together, and have NULL in a part anywhere; statements join by the whole of a key, or a part.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given, settings

from dpsql.errors import Refusal
from dpsql.plan.backend_sql import print_source, print_sums
from dpsql.plan.measures.measurements import DistinctValues, Units
from dpsql.plan.privacy import ownership, release_boundary, rows
from dpsql.tests.support.drawn_statements import growing_statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_composites import (
    SCHEMA_OF_COMPOSITES,
    load_composites,
    policy_of_composites,
)
from dpsql.tests.support.random_joins import Database, row

from . import test_growth_rows, test_neighbours_joined
from .measured import REACHED, World, world
from .planting import plant
from .test_growth_rows import extreme
from .test_neighbours_joined import FUZZ, HEAVY, less

Patch = pytest.MonkeyPatch

check = partial(test_neighbours_joined.check, put=load_composites)
check_all = partial(test_neighbours_joined.check_all, put=load_composites)


def opened(
    folder: pytest.TempPathFactory, engine: PostgresServer | None, *, replace_one: bool = False,
    in_row: bool = False, together: int = 1,
) -> Iterator[World]:  # fmt: skip
    policy = policy_of_composites(
        folder.mktemp("world"), replace_one=replace_one, in_row=in_row, together=together
    )
    schema = SCHEMA_OF_COMPOSITES.replace(
        ", PRIMARY KEY (no, site)", "" if in_row else ", PRIMARY KEY (no, site)"
    )
    with world(policy.path.parent, policy=policy, schema=schema, server=engine) as made:
        yield made


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine)


@pytest.fixture(scope="module")
def in_row(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    yield from opened(tmp_path_factory, engine, in_row=True)


# --- random ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    policy = policy_of_composites(tmp_path_factory.mktemp("growth"))
    with world(policy.path.parent, policy=policy, schema=SCHEMA_OF_COMPOSITES) as made:
        made.settle(load_composites, extreme())
        made.connection.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")
        yield made


@settings(FUZZ, max_examples=tried(25, 150))
@given(growing_statements("composites"))
def test_no_step_has_more_rows_than_the_plan_states(heavy: World, sql: str) -> None:
    test_growth_rows.check(heavy, sql)


# --- by hand -----------------------------------------------------------------------------------------------

JOINED = "SELECT COUNT(*) FROM person p JOIN note n ON n.site = p.site WHERE p.no = n.person_no"
BY_PART = "SELECT COUNT(*) FROM person p JOIN note n ON n.{0} = p.{1}"
PEOPLE = "SELECT city, n, COUNT(DISTINCT (person_no, site)) FROM note GROUP BY city, n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM note",
        "SELECT COUNT(DISTINCT (site, person_no)) FROM note",
        "SELECT SUM(n) FROM booking",
        "SELECT COUNT(*) FROM account a JOIN booking b ON a.branch = b.branch AND b.account_no = a.no",
        "SELECT kind, COUNT(*) FROM account GROUP BY kind",
        "SELECT COUNT(*) FROM (SELECT DISTINCT person_no, site FROM note) t",
        "SELECT COUNT(*) FROM person p WHERE (no, site) IN (SELECT person_no, site FROM note)",
        JOINED,
    ],
)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """Cut to less, an answer would be further off than the claim makes it."""
    assert check(adding, sql, HEAVY, less(HEAVY)) >= REACHED


OUTER_PART = "SELECT COUNT(*) FROM person p LEFT JOIN note n ON n.site = p.site WHERE p.no = n.person_no"
SHARED = Database(
    {
        **dict.fromkeys(HEAVY.tables, ()),
        "person": tuple(row("person", unit, team="red") for unit in (1, 2, 3, 4)),
        "note": tuple(row("note", 3, n="0", city="a") for _ in range(6)),
    }
)
"""The third person shares the site with the first and the number with the second; nobody else has notes."""
PARTS = (
    BY_PART.format("site", "site"),
    BY_PART.format("person_no", "no"),
    OUTER_PART,
    "SELECT COUNT(*) FROM account a JOIN booking b ON b.account_no = a.no",
    "SELECT COUNT(*) FROM person p WHERE no IN (SELECT person_no FROM note)",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM note n WHERE n.site = p.site)",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY site) AS rn FROM note) t WHERE rn = 1",
    "SELECT site, person_no, COUNT(*) FROM note GROUP BY person_no, site",
)


@pytest.mark.parametrize("sql", PARTS)
def test_a_part_of_a_key_is_nobodys_and_the_whole_no_group(adding: World, sql: str) -> None:
    with pytest.raises(Refusal) as refused:
        adding.plan(sql)
    assert refused.value.sqlstate in ("PV003", "PV005")


def test_a_part_of_a_key_is_a_value_like_others(adding: World) -> None:
    (one,) = adding.plan("SELECT COUNT(DISTINCT site) FROM note").releases
    assert [measurement.kind for measurement in one.measurements] == [DistinctValues.kind]
    check_groups_of_a_part(adding)
    assert check(adding, "SELECT site, COUNT(*) FROM note GROUP BY site", HEAVY, less(HEAVY)) == 1


def check_groups_of_a_part(adding: World) -> None:
    """A subquery by a part has a row for each of its values, as it says: not one for each person."""
    plan = adding.plan("SELECT COUNT(*) FROM (SELECT site, COUNT(*) AS n FROM note GROUP BY site) t")
    assert [measurement.kind for measurement in plan.releases[0].measurements][-1] == Units.kind


NUMBERED = (
    "SELECT city, COUNT(*) FROM (SELECT city, ROW_NUMBER() OVER (PARTITION BY site ORDER BY n) AS i FROM note) t "
    "WHERE i <= 6 GROUP BY city"
)
NOBODYS = Database(
    {**dict.fromkeys(HEAVY.tables, ()), "note": tuple(row("note", None, n="5", tag=tag) for tag in ("t", "tu", "tuv"))}
)  # fmt: skip


def check_nobodys(made: World) -> None:
    """Rows with NULL in a part of the owner are nobody's, whichever part it is."""
    nothing = Database(dict.fromkeys(HEAVY.tables, ()))
    for sql in ("SELECT COUNT(*) FROM note", "SELECT SUM(n), COUNT(DISTINCT (site, person_no)) FROM note"):
        assert check(made, sql, NOBODYS, [nothing]) == 0


def test_a_row_with_null_in_a_part_of_its_owner_is_nobodys(adding: World, in_row: World) -> None:
    check_nobodys(adding)
    check_nobodys(in_row)


# --- mutants -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [0, 1])
def test_join_a_part_of_a_key_as_if_it_were_whole(adding: World, monkeypatch: Patch, end: int) -> None:
    part = f"for index in places[{end}:{end + 1}]), known)"
    plant(monkeypatch, ownership._owners_of, ("for index in places), known)", part))
    with pytest.raises(AssertionError):
        check(adding, PARTS[end], SHARED, less(SHARED))


def test_match_an_outer_side_by_a_part_of_a_key(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, ownership.are_linked, ("all({begin", "any({begin"))
    with pytest.raises(AssertionError):
        check(
            adding, "SELECT COUNT(*) FROM person p LEFT JOIN note n ON n.site = p.site", SHARED, less(SHARED)
        )


def test_keep_null_in_a_part_as_an_owner(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch, print_sums.InnerRows.__init__,
        ("if not rows.columns[part.index].enforced.not_null]", "if not rows.columns[part.index].enforced.not_null][:1]"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_nobodys(adding)


def notes(*groups: tuple[str, str]) -> Database:
    """People who are spelled alike, each with notes of two groups."""
    found = [
        row("note", unit, city=city, flag="true", n=n)
        for unit, group in zip((1, 2, 5), groups, strict=True)
        for city, n in (group[0], group[1])
    ]
    return Database({**dict.fromkeys(HEAVY.tables, ()), "note": tuple(found)})


SEEDS = (0, 1)
ALIKE = [
    notes(
        *(
            random.Random(f"{seed} {unit}").sample(
                ["".join(one) for one in itertools.product("abc", "012345")], 2
            )
            for unit in range(3)
        )
    )
    for seed in SEEDS
]


def check_alike(adding: World) -> None:
    for database in ALIKE:
        check(adding, PEOPLE, database, less(database))


def test_people_who_are_spelled_alike_are_told_apart(adding: World) -> None:
    check_alike(adding)
    assert check(adding, "SELECT COUNT(DISTINCT (site, person_no)) FROM note", ALIKE[0], less(ALIKE[0])) == 1


def test_put_the_parts_of_a_person_together(adding: World, monkeypatch: Patch) -> None:
    owner = "for part in rows.owner] if shows_unit or beside else []"
    together = """\n    unit = [" || ".join(unit), "''"] if unit else []"""
    plant(monkeypatch, print_sums.InnerRows.__init__, (owner, owner + together))
    with pytest.raises(AssertionError):
        check_alike(adding)


def test_take_a_part_for_the_person(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        release_boundary.owner_of,
        (
            "next((set(places) for places in known if certain.issuperset(places)), set[int]())",
            "next((certain.intersection(places) for places in known if certain.intersection(places)), set[int]())",
        ),
    )
    with pytest.raises(AssertionError):
        check_groups_of_a_part(adding)


def test_number_the_rows_of_a_part(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        release_boundary.owner_of,
        (
            "next((set(places) for places in known if certain.issuperset(places)), set[int]())",
            "next((certain.intersection(places) for places in known if certain.intersection(places)), set[int]())",
        ),
    )
    others = tuple(row("note", 1, n="5", city="b") for _ in range(6))
    database = Database({**SHARED.tables, "note": (*SHARED.tables["note"], *others)})
    plant(monkeypatch, print_source._window, ("for part in block.owner)", "for part in block.owner[:1])"))
    with pytest.raises(AssertionError):
        check(adding, NUMBERED, database, less(database))


def test_count_a_part_as_people(adding: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, rows.holds_unit, ("return all(", "return any("))
    with pytest.raises(AssertionError):
        test_a_part_of_a_key_is_a_value_like_others(adding)

"""The tests of the laws over several tables have power: each turns red when a rule of joins is broken (soundness.md 1.10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.plan.backend_sql import print_source
from dpsql.plan.backend_sql.print_source import SourcePrinter
from dpsql.plan.privacy import functional_dependencies, ownership, release_boundary
from dpsql.tests.support.random_joins import SCHEMA, Database, orphaned, policy_of, row, without

from .measured import REACHED, World, measure_release, world
from .planting import plant
from .sql_faults import OF_JOINS, SqlFault
from .test_enforced_keys import (
    MIXING,
    OF_SHARED_KEYS,
    check_mixing,
    check_order_of_a_null_key,
    check_rows_of_a_null_key,
    check_shared_keys,
    nullable,
    trusting,
)
from .test_mutations import rewrite
from .test_neighbours_joined import ATTACKS, HEAVY, check

__all__ = ["nullable", "trusting"]

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("add")
    with world(folder, policy=policy_of(folder), schema=SCHEMA) as made:
        yield made


MANY = Database(
    {
        "person": tuple(row("person", u, age="30", team="red", home="a") for u in range(1, 31)),
        "account": (),
        "booking": (),
        "note": tuple(row("note", u, n="5" if u == 1 else "1", city="a", tag="t") for u in range(1, 31)),
        "profile": (),
    }
)
"""Thirty people with one note each, all in one city; only the first one's is large."""


def holds(world: World, sql: str, database: Database = HEAVY) -> None:
    """The law L1 for one statement, whose first person goes."""
    assert check(world, sql, database, [without(database, 1)]) is not None


OWNED = 'where += [f"({unit} IS NOT NULL)" for unit in by]'
TWO_PEOPLE = "SELECT COUNT(*) FROM note a JOIN note b ON a.city = b.city"
OTHERS = "SELECT COUNT(*) FROM note n WHERE EXISTS (SELECT 1 FROM note o WHERE o.city = n.city AND o.n > 4)"
OUTER_KEY = "SELECT f.city, COUNT(DISTINCT n.person_id) FROM note n LEFT JOIN profile f ON f.person_id = n.person_id AND n.city = 'a' GROUP BY f.city"
PER_PERSON = "SELECT SUM(c) FROM (SELECT person_id, COUNT(*) AS c FROM note GROUP BY person_id) t"
PER_ACCOUNT = ATTACKS[-1]
AS_DOUBLES = (
    "SELECT b.big, COUNT(*) FROM person p JOIN account a ON a.person_id = p.id JOIN booking b ON b.account_no = a.no "
    "WHERE b.big = p.height GROUP BY b.big"
)
NEAR = Database(
    {
        "person": (row("person", 1, height="9007199254740992"),),
        "account": (row("account", 10, 1),),
        "booking": tuple(row("booking", i, 10, big=str(9007199254740991 + i % 3)) for i in range(30)),
        "note": (),
        "profile": (),
    }
)
FIRST = (
    "SELECT COUNT(*) FROM (SELECT person_id, city, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k "
    "FROM note) t WHERE k = 1 AND city = 'a'"
)


@pytest.mark.parametrize("sql", [OUTER_KEY, PER_PERSON, FIRST])
def test_the_laws_hold_without_a_mutant(adding: World, sql: str) -> None:
    holds(adding, sql)


NO_KEY = "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM note o WHERE o.ref = p.id)"
ANOTHER_KEY = "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM account a WHERE a.no = p.id)"
EVERYBODYS = Database(
    {
        "person": tuple(row("person", u, age="30", team="red", home="a") for u in range(1, 31)),
        "account": tuple(row("account", u, 1, kind="giro") for u in range(1, 31)),
        "booking": (),
        "note": tuple(row("note", 1, ref=str(u)) for u in range(1, 31)),
        "profile": (),
    }
)
"""The first of thirty people has notes and accounts whose numbers are the people's."""


@pytest.mark.parametrize("sql", [TWO_PEOPLE, OTHERS, NO_KEY, ANOTHER_KEY])
def test_what_the_mutants_answer_is_refused(adding: World, sql: str) -> None:
    assert check(adding, sql, MANY, []) is None


def test_join_rows_of_two_people(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.privacy.ownership._owners_of", lambda *_: [[0]])
    with pytest.raises(AssertionError):
        holds(adding, TWO_PEOPLE, MANY)


def test_look_at_rows_of_other_people(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.privacy.join.are_linked", lambda *_: True)
    with pytest.raises(AssertionError):
        holds(adding, OTHERS, MANY)


@pytest.mark.parametrize("sql", [NO_KEY, ANOTHER_KEY])
def test_take_any_column_for_a_persons_key(adding: World, monkeypatch: Patch, sql: str) -> None:
    plant(
        monkeypatch,
        ownership.are_linked,
        ("right.source.holds(identity)", "right.source.identities"),
    )
    with pytest.raises(AssertionError):
        holds(adding, sql, EVERYBODYS)


def test_take_equal_doubles_for_one_value(adding: World, monkeypatch: Patch) -> None:
    """Two keys that one double is equal to are two groups of a person."""
    holds(adding, AS_DOUBLES, NEAR)
    plant(
        monkeypatch,
        functional_dependencies._is_exact,
        ("return left.type == right.type or", "return True or"),
    )
    with pytest.raises(AssertionError):
        holds(adding, AS_DOUBLES, NEAR)


def test_forget_what_else_an_outer_join_needs(adding: World, monkeypatch: Patch) -> None:
    """A key on the nullable side counts as one key of a person, whatever else ON says (soundness.md 1.12)."""
    monkeypatch.setattr("dpsql.plan.privacy.functional_dependencies.fields_of", lambda *_: frozenset())
    with pytest.raises(AssertionError):
        holds(adding, OUTER_KEY)


def test_forget_the_bound_of_a_count_per_person(adding: World, monkeypatch: Patch) -> None:
    """The sum's own clamp covers for it; without both, more than the claim comes through."""
    changed = rewrite(monkeypatch, lambda sql: sql.replace("LEAST(COUNT(*), 6)", "COUNT(*)"))
    holds(adding, PER_PERSON)
    monkeypatch.setattr("dpsql.plan.dialects.dialect.Dialect.clamp", lambda self, sql, lo, hi, **_: sql)
    with pytest.raises(AssertionError):
        holds(adding, PER_PERSON)
    assert changed


def test_leave_ties_to_the_physical_order(adding: World, monkeypatch: Patch) -> None:
    monkeypatch.setattr("dpsql.plan.backend_sql.print_source._tie_breakers", lambda *_: [])
    plan = adding.plan(FIRST)
    found = []
    for order in range(4):
        check(adding, "SELECT COUNT(*) FROM note", HEAVY, [])
        adding.connection.execute(
            "CREATE OR REPLACE TABLE again AS FROM note; DELETE FROM note;"
            f"INSERT INTO note FROM again ORDER BY hash(city || '{order}'), city; DROP TABLE again"
        )
        with adding.backend.snapshot() as snapshot:
            found.append(measure_release(plan.releases[0], snapshot))
    assert any(other != found[0] for other in found)


# --- keys ------------------------------------------------------------------------------------------------


def test_partition_a_window_by_what_is_written_alone(trusting: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, print_source._window, ("for part in block.owner)", "for part in ())"))
    with pytest.raises(AssertionError):
        check_shared_keys(trusting, OF_SHARED_KEYS[0])


@pytest.mark.parametrize("sql", OF_SHARED_KEYS[1:3])
def test_group_a_subquery_by_what_is_written_alone(trusting: World, monkeypatch: Patch, sql: str) -> None:
    shown = 'f"{unit} AS {name}"'
    alone = f'f"any_value({{unit}}) AS {{name}}" if grouped else {shown}'
    plant(monkeypatch, SourcePrinter._select, (shown, alone), (OWNED, f"{OWNED}\n    by = []"))
    with pytest.raises(AssertionError):
        check_shared_keys(trusting, sql)


def test_forget_the_owner_in_group_by_where_tables_are_joined(adding: World, monkeypatch: Patch) -> None:
    """The engine then fails: no law may take that for an answer."""
    holds(adding, PER_ACCOUNT)
    joined = "by = by if len(block.items) == 1 else []"
    plant(monkeypatch, SourcePrinter._select, (OWNED, f"{OWNED}\n    {joined}"))
    with pytest.raises(AssertionError):
        holds(adding, PER_ACCOUNT)


def test_take_rows_of_a_null_key_for_one(nullable: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        functional_dependencies.has_one_row,
        ("{index} if certain and is_whole else set()", "{index}"),
    )
    with pytest.raises(AssertionError):
        check_rows_of_a_null_key(nullable, monkeypatch)


def test_order_rows_by_a_key_that_may_be_null(nullable: World, monkeypatch: Patch) -> None:
    plant(monkeypatch, functional_dependencies.distinguishing, ("if not all(", "if False and all("))
    with pytest.raises(AssertionError):
        check_order_of_a_null_key(nullable)


@pytest.mark.parametrize("sql", MIXING)
def test_take_a_key_that_may_be_null_for_a_persons(nullable: World, monkeypatch: Patch, sql: str) -> None:
    plant(
        monkeypatch, release_boundary.owner_of,
        ("{index for index in fields if _is_certain(index, rows)}", "set(fields)"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_mixing(nullable, sql)


def test_leave_out_the_path_to_the_owner(tmp_path: Path, monkeypatch: Patch) -> None:
    """Nothing holds a booking to an account: those of an account that is gone are nobody's."""
    sql = "SELECT COUNT(*) FROM booking"
    neighbours = [without(HEAVY, 1), orphaned(HEAVY, 1)]
    schema = SCHEMA.replace("person_id INTEGER, kind", "person_id INTEGER NOT NULL, kind")
    with world(tmp_path, policy=policy_of(tmp_path), schema=schema) as made:
        assert check(made, sql, HEAVY, neighbours) >= REACHED
        monkeypatch.setattr(ownership, "_is_held", lambda *_: True)
        with pytest.raises(AssertionError):
            check(made, sql, HEAVY, neighbours)


@pytest.mark.parametrize("fault", OF_JOINS, ids=lambda fault: fault.name)
def test_a_fault_of_printed_sql(adding: World, monkeypatch: Patch, fault: SqlFault) -> None:
    """The joined rows are a step; `heavy` counts all of them."""
    assert check(adding, fault.sql, fault.database, [without(fault.database, 1)])
    changed = rewrite(monkeypatch, fault.plant)
    with pytest.raises(AssertionError):
        check(adding, fault.sql, fault.database, [without(fault.database, 1)])
    assert changed

"""L1, L2, L9 and L10 where the unit stands in the row and no key of the owner is enforced (soundness.md 1.26).

The tests of several tables, in the world of `random_events`: a person has many rows of every table or none, owners
are NULL anywhere, and the columns of the unit have three widths.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings

from dpsql.errors import EngineFailure
from dpsql.plan.backend_sql import print_sums
from dpsql.plan.privacy import functional_dependencies, ownership
from dpsql.policy import Policy, parse_policy
from dpsql.relation.expressions import Field
from dpsql.tests.support.drawn_statements import growing_statements
from dpsql.tests.support.length import tried
from dpsql.tests.support.postgres_server import PostgresServer
from dpsql.tests.support.random_events import SCHEMA_OF_EVENTS, policy_of_events
from dpsql.tests.support.random_joins import Database, load, row, without

from .measured import World, compared, measure_release, world
from .planting import plant
from .test_growth_rows import check as check_growth
from .test_growth_rows import extreme
from .test_neighbours import planned
from .test_neighbours_joined import FUZZ, HEAVY, check, check_nobodys_rows, measured

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def adding(tmp_path_factory: pytest.TempPathFactory, engine: PostgresServer | None) -> Iterator[World]:
    policy = policy_of_events(tmp_path_factory.mktemp("add"))
    with world(policy.path.parent, policy=policy, schema=SCHEMA_OF_EVENTS, server=engine) as made:
        yield made


# --- random ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    policy = policy_of_events(tmp_path_factory.mktemp("growth"))
    with world(policy.path.parent, policy=policy, schema=SCHEMA_OF_EVENTS) as made:
        one = extreme().tables
        made.settle(load, Database({**one, "person": one["person"] * 100}))
        made.connection.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")
        yield made


@settings(FUZZ, max_examples=tried(25, 150))
@given(growing_statements("events"))
def test_no_step_has_more_rows_than_the_plan_states(heavy: World, sql: str) -> None:
    check_growth(heavy, sql)


def test_a_person_of_many_rows_is_cut_before_a_join(heavy: World) -> None:
    plan = check_growth(heavy, "SELECT COUNT(*) FROM person p JOIN note n ON n.person_id = p.id")
    assert plan is not None
    assert [work.most for work in plan.releases[0].works] == [36]


# --- by hand -----------------------------------------------------------------------------------------------

MANY = Database(
    {
        **HEAVY.tables,
        "person": tuple(
            row("person", u, age="30", team=("red", "blue")[i % 2], home="a", height="2.5")
            for u in (1, 1, 2, None) for i in range(6)
        ),
    }
)  # fmt: skip
"""The first person has twelve rows, which are people's rows no less; six are nobody's."""

TIGHT = (
    "SELECT COUNT(*) FROM person",
    "SELECT team, COUNT(*) FROM person GROUP BY team",
    "SELECT COUNT(DISTINCT id) FROM person",
    "SELECT SUM(height) FROM person WHERE height = 2.5",
    "SELECT COUNT(*) FROM person p JOIN note n ON n.person_id = p.id",
    "SELECT COUNT(*) FROM account a JOIN note n ON n.person_id = a.person_id",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM account a WHERE a.person_id = p.id)",
    "SELECT COUNT(*) FROM booking b JOIN account a ON a.no = b.account_no JOIN person p ON p.id = a.person_id",
    "SELECT c, COUNT(*) FROM (SELECT id, COUNT(*) AS c FROM person GROUP BY id) t GROUP BY c",
    "SELECT COUNT(*) FROM (SELECT id AS u FROM person UNION SELECT person_id FROM account) t",
    "SELECT COUNT(*) FROM (SELECT person_id AS u FROM account UNION ALL SELECT id FROM person) t JOIN note n ON n.person_id = t.u",
)  # fmt: skip


@pytest.mark.parametrize("sql", TIGHT)
def test_the_bound_is_reached(adding: World, sql: str) -> None:
    """The scale is not larger than it has to be: a heavy unit moves some answer by all of it."""
    assert check(adding, sql, MANY, [without(MANY, 1)]) == 1


@pytest.mark.parametrize("sql", TIGHT[:3])
def test_rows_without_an_owner_count_nowhere(adding: World, sql: str) -> None:
    plan = planned(adding, sql)
    assert plan is not None
    owned = tuple(one for one in MANY.tables["person"] if one[0] is not None)
    rows = [MANY, Database({**MANY.tables, "person": owned})]
    here, there = (measured(adding, [plan], database, 0)[0] for database in rows)
    assert here is not None
    assert here == there


def test_no_table_has_one_row_per_unit_but_one_whose_key_is_enforced(adding: World) -> None:
    def has_one_row(table: str) -> bool:
        return adding.plan(f"SELECT COUNT(*) FROM {table}").releases[0].bounding.per_row

    assert [table for table in ("person", "account", "note", "profile") if has_one_row(table)] == ["profile"]


# --- mutants -----------------------------------------------------------------------------------------------


def test_believe_that_a_unit_column_is_a_key(adding: World, monkeypatch: Patch) -> None:
    itself = "(table.unit.columns,) if table.unit and not table.unit.references else ()"
    plant(monkeypatch, ownership._table_source, ("*table.referred]", f"*({itself})]"))
    with pytest.raises(AssertionError):
        check(adding, TIGHT[0], MANY, [without(MANY, 1)])


def test_take_nobodys_rows_for_a_persons(adding: World, monkeypatch: Patch) -> None:
    plant(
        monkeypatch,
        print_sums.InnerRows.__init__,
        ("[part for part in rows.owner if not rows.columns[part.index].enforced.not_null]", "[]"),
    )
    with pytest.raises(AssertionError):
        check_nobodys_rows(adding, "SELECT COUNT(*) FROM note")


def test_take_integers_of_two_widths_for_two_identities(adding: World, monkeypatch: Patch) -> None:
    """Not a leak, but a refusal of what the tier promises: the sides of these joins have two widths."""
    assert planned(adding, TIGHT[4]) is not None

    def only_of_one_type(left: Field, right: Field) -> bool:
        return left.type == right.type

    monkeypatch.setattr(functional_dependencies, "_is_exact", only_of_one_type)
    assert planned(adding, TIGHT[4]) is None


def test_a_key_of_a_table_is_no_unit(adding: World) -> None:
    """An account's number and a person's may be equal; they are values of two identities."""
    sql = "SELECT COUNT(*) FROM person p JOIN account a ON a.no = p.id"
    assert check(adding, sql, MANY, []) is None


SPELLED = "CREATE TABLE event (who VARCHAR{}, tag VARCHAR)"
COUNTED = "SELECT tag, COUNT(DISTINCT who) FROM event GROUP BY tag"


def spelled_policy(policy: Policy) -> Policy:
    text = policy.path.parent / "spelled.toml"
    return parse_policy(
        'database = "duckdb:x.duckdb"\n[privacy]\nepsilon = 100\ndelta = 0.9\n[defaults]\nepsilon = 1\n'
        'delta = 1e-3\n[tables.event]\nunit = "who"\nmax_rows = 4\nmax_groups = 1\n'
        '[tables.event.columns]\ntag = { values = ["a", "b", "c"] }\n',
        text,
    )


def check_spelled(tmp_path_factory: pytest.TempPathFactory, collation: str) -> None:
    """Hold the claim of a count of people who are spelled almost alike, when one of them goes."""
    policy = spelled_policy(policy_of_events(tmp_path_factory.mktemp("spelled")))
    rows = [(who, tag) for who in ("Ann", "ann", "ANN ", "ANN") for tag in "abc"]
    with world(policy.path.parent, policy=policy, schema=SPELLED.format(collation)) as made:
        plan = made.plan(COUNTED)
        assert plan.releases[0].bounding.groups == 1

        def stored(connection: duckdb.DuckDBPyConnection, kept: object, order: int = 0) -> None:
            connection.execute("DELETE FROM event")
            assert isinstance(kept, list)
            connection.executemany("INSERT INTO event VALUES (?, ?)", kept)

        def found(kept: list[tuple[str, str]]) -> dict[object, int]:
            made.settle(stored, kept)
            with made.backend.snapshot() as snapshot:
                (groups,) = measure_release(plan.releases[0], snapshot).values()
            return {key: values[0] for key, values in groups.items()}

        whole = found(rows)
        assert sum(whole.values()) == 4  # four people in one group each
        for who, _ in rows:
            there = found([one for one in rows if one[0] != who])
            assert sum(abs(whole.get(key, 0) - there.get(key, 0)) for key in {*whole, *there}) <= 1


def test_units_are_told_apart_bytewise(tmp_path_factory: pytest.TempPathFactory) -> None:
    check_spelled(tmp_path_factory, "")


def test_take_units_that_collate_equal_for_one(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("dpsql.backends.duckdb_backend._columns_with", lambda *_: set())
    with pytest.raises((AssertionError, EngineFailure)):  # the engine itself objects to two collations (L2)
        check_spelled(tmp_path_factory, " COLLATE NOCASE")


BOUNDED = """
database = "duckdb:laws.db"
[privacy]
epsilon = 10
[tables.a]
unit = "u"
max_rows = 2
columns = { u = { bounds = [0, 3] } }
[tables.b]
unit = "u"
max_rows = 2
columns = { u = { bounds = [0, 3] } }
"""


@pytest.mark.parametrize("person", [3, 7, 9])
def test_a_person_beyond_the_bounds_of_the_number_is_not_the_one_at_their_end(
    tmp_path: Path, person: int
) -> None:
    """Whose a row is, is the number as it is: 7 and 9 are no 3, though sums take them for it."""
    sql = "SELECT COUNT(*) FROM a WHERE u IN (SELECT t.u FROM (SELECT u FROM a UNION ALL SELECT u FROM b) t)"
    policy = parse_policy(BOUNDED, tmp_path / "laws.toml")
    with world(
        tmp_path, policy=policy, schema="CREATE TABLE a (u INTEGER); CREATE TABLE b (u INTEGER)"
    ) as made:
        made.connection.execute(
            "INSERT INTO a VALUES (3), (3), (7), (7), (9), (9); INSERT INTO b VALUES (3), (7)"
        )
        plan_ = made.plan(sql.replace("SELECT u FROM a UNION", "SELECT u FROM a WHERE u < 0 UNION"))
        (release,) = plan_.releases
        found = []
        for gone in (None, person):
            if gone is not None:
                made.connection.execute(f"DELETE FROM a WHERE u = {gone}; DELETE FROM b WHERE u = {gone}")
            with made.backend.snapshot() as snapshot:
                found.append(measure_release(release, snapshot))
            made.refresh()
        assert compared(plan_, [found[0]], [found[1]], sql) <= 1
        assert found[0][0] == {(): (4 * 2**20,)}

"""A table of a policy that the database calls otherwise: which one is read, and whose names stand where."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.backends import DuckDBBackend
from dpsql.errors import PolicyError
from dpsql.plan.views import build_catalog, build_views
from dpsql.policy import LiveSchema, Policy, check, parse_policy
from dpsql.policy.units import whose_of
from dpsql.system_catalog.objects import Objects
from dpsql.tests.support.duckdb_pool import empty_duckdb

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY);
CREATE TABLE visit (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL REFERENCES person (id), sender INTEGER, g INTEGER);
CREATE TABLE visit_prepared (
    id INTEGER NOT NULL, owner INTEGER NOT NULL, sender INTEGER, g INTEGER, n INTEGER NOT NULL, PRIMARY KEY (owner, n));
CREATE TABLE item (visit_id INTEGER REFERENCES visit (id), price INTEGER);
CREATE TABLE ward (visit_id INTEGER REFERENCES visit (id), name TEXT);
CREATE SCHEMA old;
CREATE TABLE old.visit (id INTEGER, owner INTEGER NOT NULL, g INTEGER);
CREATE VIEW of_all AS SELECT owner, g FROM visit;
CREATE VIEW of_copy AS SELECT owner, g FROM visit_prepared;
CREATE VIEW of_view AS SELECT g, owner FROM of_all;
"""
HEAD = """
database = "duckdb:names.db"
[privacy]
epsilon = 1
[tables.person]
unit = "id"
"""
OWNED = 'unit = { column = "owner", references = "person.id" }\nmax_rows = 3\ncolumns = { g = { values = [1, 2] } }\n'
COPY = f'[tables.visit]\nsource = "visit_prepared"\nrow_number = "n"\n{OWNED}'
BASE = f'[tables.visit_base]\nsource = "visit"\nhidden = true\n{OWNED}'


@pytest.fixture(scope="module")
def live() -> LiveSchema:
    with empty_duckdb() as connection:
        connection.execute(SCHEMA)
        with DuckDBBackend.over(connection).snapshot() as snapshot:
            return snapshot.schema()


def policy_of(text: str) -> Policy:
    return parse_policy(HEAD + text, Path("/srv/names.toml"))


def problems(text: str, live: LiveSchema) -> tuple[str, ...]:
    return check(policy_of(text), live).problems


def test_the_name_is_the_policys_and_the_rows_are_the_sources(live: LiveSchema) -> None:
    policy = policy_of(COPY)
    table = build_catalog(policy, live).tables["visit"]
    assert (table.name, table.path, table.place) == ("visit", ("main", "visit"), ("main", "visit_prepared"))
    assert (table.origin, policy.read_from) == ("visit_prepared", ("person", "visit_prepared"))
    assert [column.name for column in table.named] == ["owner", "g"]
    assert table.unit is not None
    assert table.unit.row_number is not None
    assert not table.unit.is_held, "the foreign key is the other table's"
    assert not problems(COPY, live)


def test_a_name_that_is_said_as_it_is_changes_nothing(live: LiveSchema) -> None:
    plain, said = (f"[tables.visit]\n{more}{OWNED}" for more in ("", 'source = "visit"\n'))
    tables = [build_catalog(policy_of(text), live).tables["visit"] for text in (plain, said)]
    assert tables[0] == tables[1]
    assert [*tables[0].grounds] == [*tables[1].grounds]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COPY + f"[tables.visit_prepared]\n{OWNED}", '"visit_prepared" is what visit reads already; have each row in one'),
        (COPY + COPY.replace("tables.visit]", "tables.again]"), '"visit_prepared" is what visit reads already'),
        (BASE.replace("hidden = true\n", "") + f"[tables.visit]\n{OWNED}", '"visit" is what visit_base reads already'),
        (COPY.replace("visit_prepared", "visit.parquet"), "where every table is files"),
        (COPY.replace('"visit_prepared"', '["visit", "visit_prepared"]'), "write the table's name in the database"),
        (COPY.replace("visit_prepared", "a.b.c"), "write the table's name in the database"),
        (COPY.replace('"visit_prepared"', "7"), "a table's name in the database"),
        (BASE, "is for tables that only views read, or dpsql prepare, and there is neither"),
    ],
)  # fmt: skip
def test_what_no_policy_says(text: str, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy_of(text)
    assert said in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    ("database", "source", "said"),
    [
        ("duckdb:", "visit_prepared", "does not end in .parquet"),
        ("spark://localhost:15002", "visit_prepared", "a table of the catalog has its own name here"),
    ],
)
def test_files_and_lakes_have_no_other_names(database: str, source: str, said: str) -> None:
    person = '[tables.person]\nsource = "/p.parquet"\n'
    text = (HEAD + COPY).replace("visit_prepared", source).replace("[tables.person]\n", person)
    with pytest.raises(PolicyError, match=said):
        parse_policy(text.replace("duckdb:names.db", database), Path("/srv/names.toml"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("visit_prepard", 'the database has no table "visit_prepard"; did you mean "visit_prepared"?'),
        ("main.visit_prepared", '"main" is the default schema; write visit_prepared alone'),
        ("of_copy", "is a view; write view = true"),
        ("visit", 'table "visit" has no column "n"; known here'),
    ],
)
def test_what_the_database_does_not_have(live: LiveSchema, source: str, said: str) -> None:
    found = problems(COPY.replace("visit_prepared", source), live)
    assert said in "\n".join(found), found


def test_whose_rows_are_not_said_yet_is_asked_of_the_source(live: LiveSchema) -> None:
    found = problems('[tables.calls]\nsource = "visit"\n', live)
    assert 'tables.calls: has no unit, and "owner" leads to an owner' in "\n".join(found)


def test_a_key_of_the_table_that_was_copied_is_none_of_the_copys(live: LiveSchema) -> None:
    """Items refer to the visits of the database, and the policy's are others."""
    item = '[tables.item]\nunit = { column = "visit_id", references = "visit.id" }\nmax_rows = 3\n'
    assert 'does not enforce that "id" of "visit_prepared" is unique' in "\n".join(
        problems(COPY + item, live)
    )
    assert not problems(COPY + BASE + item.replace("visit.id", "visit_base.id"), live)
    tables = build_catalog(policy_of(COPY + BASE + item.replace("visit.id", "visit_base.id")), live).tables
    held = tables["item"].unit
    assert held is not None
    assert held.is_held
    assert tables["item"].proved is not None
    assert tables["item"].proved.foreign_keys == ((("visit_id",), ("main", "visit"), ("id",)),)
    assert tables["visit_base"].place == ("main", "visit")


def test_a_public_table_that_leads_to_people_over_the_table_that_was_copied(live: LiveSchema) -> None:
    found = check(policy_of(COPY + "[tables.ward]\npublic = true\n"), live).warnings
    assert 'is public, and "visit_id" leads to the private table person' in "\n".join(found)


def test_no_two_tables_have_one_name_on_the_wire(live: LiveSchema) -> None:
    again = COPY.replace("[tables.visit]", '[tables."main.visit"]')
    assert '"main" is the default schema; write visit alone' in "\n".join(problems(again, live))
    catalog = build_catalog(policy_of(COPY + view("of_copy")), live)
    shown = [(one.schema, one.name) for one in Objects(catalog, has_delta=False).tables]
    assert shown == [("main", "person"), ("main", "seen"), ("main", "visit")]


def test_tables_of_another_schema(live: LiveSchema) -> None:
    text = f'[tables.visit]\nsource = "old.visit"\n{OWNED}[tables."new.visit"]\nsource = "visit_prepared"\n{OWNED}'
    tables = build_catalog(policy_of(text), live).tables
    assert [tables[name].path for name in ("visit", "new.visit")] == [("main", "visit"), ("new", "visit")]
    assert [tables[name].place for name in ("visit", "new.visit")] == [
        ("old", "visit"),
        ("main", "visit_prepared"),
    ]


def test_names_may_be_changed_for_one_another(live: LiveSchema) -> None:
    text = COPY + f'[tables.visit_prepared]\nsource = "visit"\n{OWNED}'
    tables = build_catalog(policy_of(text), live).tables
    assert tables["visit"].place == ("main", "visit_prepared")
    assert tables["visit_prepared"].place == ("main", "visit")


# --- views, whose texts have the database's names -----------------------------------------------------------


def scans(text: str, name: str, live: LiveSchema) -> tuple[str, ...]:
    views, wrong = build_views(policy_of(text), live)
    assert not wrong
    return views[name].reads


def view(source: str, name: str = "seen") -> str:
    return f'[tables.{name}]\nview = true\nsource = "{source}"\n'


def test_a_view_of_the_copy_reads_the_policys_table(live: LiveSchema) -> None:
    assert scans(COPY + view("of_copy"), "seen", live) == ("visit",)


def test_a_view_of_the_table_that_was_copied_never_reads_the_copy(live: LiveSchema) -> None:
    views, wrong = build_views(policy_of(COPY + view("of_all")), live)
    assert not views
    assert (
        'reads "visit", which is not declared ("visit" is "visit_prepared" in the policy)'
        in wrong["seen"].message
    )
    assert scans(COPY + BASE + view("of_all"), "seen", live) == ("visit_base",)
    both = COPY + BASE + view("of_all", "inner") + view("of_view")
    assert scans(both, "seen", live) == ("visit_base",)


# --- what charges are told by -------------------------------------------------------------------------------


def test_charges_are_told_by_the_rows_and_not_by_what_a_policy_calls_them() -> None:
    """The same rows under another name and another unit are other people's than those whom the charges protected."""
    before = whose_of(policy_of(f"[tables.visit]\n{OWNED}"), "visit")
    assert whose_of(policy_of(BASE.replace("hidden = true\n", "")), "visit_base") == before
    assert dict(whose_of(policy_of(COPY), "visit")).keys() == {"visit_prepared", "person"}

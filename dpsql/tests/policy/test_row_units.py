"""`unit = "row"`: each row is a unit by itself: what is accepted, what is refused, and what the owner is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dpsql.backends.duckdb_files import DuckDBFiles, pin_verified
from dpsql.backends.pinned_files import write_record
from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check, scaffold
from dpsql.policy.describe import policy_sentences
from dpsql.policy.model import FileSources
from dpsql.relation.catalog import Unit
from dpsql.relation.relations import all_grounds

from .conftest import HEAD, policy_from

ReadLive = Callable[[str], LiveSchema]

ADULT = "CREATE TABLE adult (age INTEGER, education VARCHAR)"
ROWS = '\n[tables.adult]\nunit = "row"\n[tables.adult.columns]\nage = {}\n'
PATIENT = '[tables.patient]\nunit = "id"\n'
WITH_PEOPLE = f"{ADULT}; CREATE TABLE patient (id INTEGER PRIMARY KEY)"


def test_no_column_holds_it(read_live: ReadLive) -> None:
    catalog = build_catalog(policy_from(HEAD + ROWS), read_live(ADULT))
    unit = catalog.tables["adult"].unit
    assert unit == Unit((), (), is_unique=True, is_not_null=True, is_row=True)
    assert catalog.tables["adult"].owner_columns == ()


@pytest.mark.parametrize("key", ["max_rows = 3", "max_groups = 2"])
def test_it_needs_no_bound_and_takes_none(key: str) -> None:
    with pytest.raises(PolicyError, match="a unit has one row; take it out"):
        policy_from(HEAD + ROWS.replace('unit = "row"', f'unit = "row"\n{key}'))


def test_a_column_of_that_name_is_asked_about(read_live: ReadLive) -> None:
    live = read_live("CREATE TABLE adult (age INTEGER, row INTEGER)")
    with pytest.raises(PolicyError, match='write unit = \\["row"\\] if you mean the column'):
        build_catalog(policy_from(HEAD + ROWS), live)
    text = HEAD + ROWS.replace('unit = "row"', 'unit = ["row"]\nmax_rows = 3')
    unit = build_catalog(policy_from(text), live).tables["adult"].unit
    assert unit is not None
    assert (unit.columns, unit.is_row) == (("row",), False)


def test_nothing_leads_to_its_rows() -> None:
    text = HEAD + ROWS + '[tables.note]\nunit = { column = "n", references = "adult.age" }\nmax_rows = 3\n'
    with pytest.raises(PolicyError, match='table "adult" has unit = "row": nobody is known there by a key'):
        policy_from(text)


@pytest.mark.parametrize("text", [ROWS + PATIENT, "\n" + PATIENT + ROWS])
def test_beside_a_table_of_people_that_one_is_the_root(read_live: ReadLive, text: str) -> None:
    policy = policy_from(HEAD + text)
    assert policy.root == "patient"
    report = check(policy, read_live(WITH_PEOPLE))
    assert report.problems == ()
    assert {table.name: table.role for table in report.tables} == {"adult": "root", "patient": "root"}


def test_plans_rest_on_another_unit(read_live: ReadLive) -> None:
    live = read_live("CREATE TABLE adult (age INTEGER UNIQUE, education VARCHAR)")
    texts = (ROWS, ROWS.replace('"row"', '"age"').replace("age = {}", "education = {}"))
    policies = [replace(policy_from(HEAD + text), dataset_id="one") for text in texts]
    assert len({all_grounds(build_catalog(policy, live)) for policy in policies}) == 2


def test_check_says_what_is_promised_and_names_a_key(read_live: ReadLive) -> None:
    (table,) = check(policy_from(HEAD + ROWS), read_live(ADULT)).tables
    assert table.unit == "private, each row is a unit by itself"
    assert table.missing == ()
    assert "each row is taken for one person" in table.notes[0]
    keyed = read_live("CREATE TABLE adult (no INTEGER PRIMARY KEY, age INTEGER)")
    (table,) = check(policy_from(HEAD + ROWS), keyed).tables
    assert table.notes[1].startswith('"no" is a key; if it is a person\'s number, unit = "no" says so')


def test_it_is_said_in_a_sentence() -> None:
    said = dict(policy_sentences(policy_from(HEAD + ROWS)))["Table adult"]
    assert said[0] == "Each row is one person by itself; no column says whose it is."


def test_a_first_policy_offers_it_where_nothing_says_whose_a_row_is(read_live: ReadLive) -> None:
    live = read_live(ADULT)
    text = scaffold(live, "duckdb:x.duckdb")
    assert '\n# unit = "row"\n' in text
    with pytest.raises(PolicyError, match='unit = "row" if each row is one person and nobody has two'):
        build_catalog(policy_from(text), live)
    chosen = text.replace('# unit = "row"', 'unit = "row"')
    unit = build_catalog(policy_from(chosen), live).tables["adult"].unit
    assert unit is not None
    assert unit.is_row


def test_a_number_that_may_be_a_persons_is_offered_too(read_live: ReadLive) -> None:
    text = scaffold(read_live("CREATE TABLE adult (id INTEGER, age INTEGER)"), "duckdb:x.duckdb")
    assert text.index('# unit = "row"') < text.index('# unit = "id"')


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE adult (no INTEGER PRIMARY KEY, age INTEGER)",  # a table with a key is a guess already
        f"{ADULT}; CREATE TABLE other (x INTEGER)",
        "CREATE TABLE visit (patient_id INTEGER, cost INTEGER)",
    ],
)
def test_it_is_not_offered_where_something_may_say_so(read_live: ReadLive, sql: str) -> None:
    assert '\n# unit = "row"' not in scaffold(read_live(sql), "duckdb:x.duckdb")


@pytest.mark.parametrize("other", ["a.parquet", "sub/../a.parquet", "a.par*", "link.parquet", "hard.parquet"])
def test_one_file_by_any_name_is_rows_of_one_table(tmp_path: Path, other: str) -> None:
    """Else UNION ALL of the two would show each person twice."""
    (tmp_path / "sub").mkdir()
    duckdb.sql(f"COPY (SELECT 7 AS age) TO '{tmp_path / 'a.parquet'}'")
    (tmp_path / "link.parquet").symlink_to("a.parquet")
    (tmp_path / "hard.parquet").hardlink_to(tmp_path / "a.parquet")
    files = FileSources(tmp_path, {"a": ("a.parquet",), "b": (other,)}, tmp_path / "files.json")
    write_record(files.record, pin_verified(files, "rows.toml"))
    head = HEAD.replace('database = "duckdb:campus.duckdb"', 'database = "duckdb:"')
    tables = {
        name: f'\n[tables.{name}]\nunit = "row"\nsource = "{name}{i}.parquet"\n[tables.{name}.columns]\nage = {{}}\n'
        for i, name in enumerate("ab")
    }
    with DuckDBFiles(files).snapshot() as snapshot:
        live = snapshot.schema()
    build_catalog(policy_from(head + tables["a"]), live)
    both = policy_from(head + tables["a"] + tables["b"])
    with pytest.raises(
        PolicyError, match=r"tables\.b\.unit: some of its rows are read from what a is read from"
    ):
        build_catalog(both, live)
    assert [one for one in check(both, live).problems if "some of its rows" in one]


def test_a_partition_is_rows_of_the_whole_table(read_live: ReadLive) -> None:
    live = read_live(
        "CREATE TABLE whole (age INTEGER); CREATE TABLE part (age INTEGER); CREATE TABLE rest (age INTEGER)"
    )
    flags = {
        "whole": {"is_partitioned": True},
        "part": {"is_partition": True},
        "rest": {"is_partition": True},
    }
    live = replace(live, tables=tuple(replace(one, **flags[one.path[1]]) for one in live.tables))
    rows = {name: ROWS.replace("adult", name) for name in flags}
    for first, second in (("whole", "part"), ("part", "whole"), ("part", "rest")):
        build_catalog(policy_from(HEAD + rows[first]), live)
        with pytest.raises(PolicyError, match="rows of a partition are rows of the whole table too"):
            build_catalog(policy_from(HEAD + rows[first] + rows[second]), live)

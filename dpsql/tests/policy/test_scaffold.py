"""`dpsql init`: a first policy that loads, from the schema alone."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, scaffold

from .conftest import policy_from


def test_the_scaffold_of_campus_is_a_policy_for_it_once_the_owner_has_chosen(campus: LiveSchema) -> None:
    text = scaffold(campus, "duckdb:campus.duckdb")
    with pytest.raises(PolicyError, match='has no unit, and "student_id" and "guarantor_id" each'):
        build_catalog(policy_from(text), campus)
    choice = 'unit = { column = "guarantor_id", references = "student.id" }'
    assert text.count(f"# {choice}\n") == 1
    catalog = build_catalog(policy_from(text.replace(f"# {choice}", choice)), campus)
    assert list(catalog.tables) == ["student", "card", "loan", "payment"]
    assert catalog.tables["loan"].unit is not None
    assert catalog.tables["loan"].unit.column == "guarantor_id"
    student = catalog.tables["student"]
    assert [column.name for column in student.columns] == [
        "name", "gpa", "major", "born", "seen", "height", "credits", "state", "active", "mentor",
    ]  # fmt: skip
    assert catalog.tables["payment"].unit is not None
    assert catalog.tables["payment"].unit.references == ("loan", "id")


def test_no_bound_is_made_up(campus: LiveSchema) -> None:
    content = tomllib.loads(scaffold(campus, "duckdb:campus.duckdb"))
    for table in content["tables"].values():
        assert set(table) <= {"unit", "columns"}
        assert all(declared == {} for declared in table["columns"].values())


def test_the_comments_tell_what_to_fill_in(campus: LiveSchema) -> None:
    lines = scaffold(campus, "duckdb:campus.duckdb").splitlines()
    for line in (
        "gpa = {}  # numeric(3,2): { bounds = [lower, upper] } for SUM and AVG (its CHECK allows 0 to 4)",
        "height = {}  # double precision: { bounds = [lower, upper], step = resolution } for SUM and AVG",
        'major = {}  # text: { values = ["…", "…"] } for public group keys, { max_length = n } for LENGTH',
        "state = {}  # text: its values are public keys",
        "# badge = {}  # opaque: COUNT only",
        "# twice = {}  # computed when it is read: cannot be declared",
        "# country = {}  # a key: as a group key it singles people out",
        "# max_rows   =   # most rows of one unit that count in one result",
        "# A row leads to more than one owner, and only the one you choose is protected. "
        "Take one comment sign off:",
        '# unit = { column = "student_id", references = "student.id" }',
        "# No foreign key leads from here to student. If no row is about a person:",
        "# [tables.country]",
        '# [tables."clinic.visit"]',
    ):
        assert line in lines
    assert not any(line.startswith("[tables.everybody") for line in lines)
    assert "# [tables.everybody]" in lines


def test_it_reads_no_row(read_live: Callable[[str], LiveSchema]) -> None:
    sql = "CREATE TABLE student (id INT PRIMARY KEY, name VARCHAR, age INT);"
    full = read_live(sql + "INSERT INTO student VALUES (1, 'Chandler', 87)")
    assert scaffold(full, "duckdb:x") == scaffold(read_live(sql), "duckdb:x")


def test_without_keys_everything_waits_for_the_owner(read_live: Callable[[str], LiveSchema]) -> None:
    text = scaffold(read_live("CREATE TABLE a (x INT); CREATE TABLE b (x INT)"), "duckdb:x")
    assert "tables" not in tomllib.loads(text)
    assert "# [tables.a]" in text
    assert "No table could be told to hold the people" in text


def test_two_keys_that_nothing_points_at_are_no_guess(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live("CREATE TABLE a (x INT PRIMARY KEY); CREATE TABLE b (x INT PRIMARY KEY)")
    assert "tables" not in tomllib.loads(scaffold(live, "duckdb:x"))


def test_names_are_quoted(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        'CREATE TABLE "the ""people""\n[x]" ("the id" INT PRIMARY KEY, "a\n= 1 # b" DOUBLE, "é\x7f" INT);'
        'CREATE TABLE "has.dot" (x INT);'
    )
    content = tomllib.loads(scaffold(live, 'duckdb:a"b.db'))
    assert content["database"] == 'duckdb:a"b.db'
    (table,) = content["tables"].items()
    assert table[0] == 'the "people"\n[x]'
    assert table[1] == {"unit": "the id", "columns": {"a\n= 1 # b": {}, "é\x7f": {}}}


def test_enum_labels_cannot_leave_their_comment(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live("CREATE TABLE a (x INT PRIMARY KEY, e ENUM ('a\n[privacy]\nepsilon = 9'))")
    assert tomllib.loads(scaffold(live, "duckdb:x"))["privacy"]["epsilon"] == 1
    assert not re.search(r"epsilon = 9", scaffold(live, "duckdb:x"))


def test_the_root_is_named_for_people_or_else_led_to(read_live: Callable[[str], LiveSchema]) -> None:
    chain = (
        "CREATE TABLE country (id INT PRIMARY KEY);"
        "CREATE TABLE {root} (id INT PRIMARY KEY, country INT REFERENCES country (id));"
        "CREATE TABLE orders (id INT PRIMARY KEY, who INT REFERENCES {root} (id));"
        "CREATE TABLE item (orders INT REFERENCES orders (id));"
    )
    for name, root in (("shop_customers", "shop_customers"), ("thing", "country")):
        content = tomllib.loads(scaffold(read_live(chain.format(root=name)), "duckdb:x"))
        assert content["tables"][root]["unit"] == "id"
        assert "unit" in content["tables"]["item"]

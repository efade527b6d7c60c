"""What plans rest on: what a plan may rely on changes it, and nothing else does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dpsql.policy import LiveSchema, Policy, TablePolicy, build_catalog
from dpsql.policy import catalog as catalog_module
from dpsql.relation.catalog import Table
from dpsql.relation.relations import all_grounds

from .conftest import CAMPUS_SQL, HEAD, STUDENT, policy_from

LOAN = '\n[tables.loan]\nunit = { column = "student_id", references = "student.id" }\n'
GROUNDED = (
    HEAD + STUDENT + "columns.gpa = { bounds = [2, 4] }\ncolumns.major = {}\n" + LOAN + "max_rows = 3\n"
)


def test_they_are_stable(campus: LiveSchema, read_live: Callable[[str], LiveSchema]) -> None:
    first = all_grounds(build_catalog(policy_from(GROUNDED), campus))
    again = all_grounds(build_catalog(policy_from(GROUNDED), read_live(CAMPUS_SQL)))
    assert first == again
    assert {name for name, _ in first} == {"dataset", "student", "student.gpa", "student.major", "loan"}
    assert {len(bytes.fromhex(digest)) for _, digest in first} == {16}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[2, 4]", "[2, 4.5]"),
        ("[2, 4] }", "[2, 4], step = 0.5 }"),
        ("major = {}", 'major = { values = ["CS"] }'),
        ("major = {}", "major = { max_length = 3 }"),
        ("major = {}", "major = {}\ncolumns.name = {}"),
        ("delta = 1e-6", 'delta = 1e-6\nneighbours = "replace-one"'),
        ("delta = 1e-6", "delta = 1e-6\ntogether = 4"),
        ("campus.duckdb", "other.duckdb"),
        ("max_rows = 3", "max_rows = 2"),
        ("max_rows = 3", "max_rows = 3\nmax_rows_per_group = 2"),
        ("max_rows = 3", "max_rows = 3\nmax_groups = 2"),
        (LOAN, LOAN.replace("student_id", "guarantor_id")),
    ],
)
def test_they_are_of_declarations(campus: LiveSchema, old: str, new: str) -> None:
    assert old in GROUNDED
    before, after = (
        all_grounds(build_catalog(policy_from(text), campus))
        for text in (GROUNDED, GROUNDED.replace(old, new, 1))
    )
    assert before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpa DECIMAL(3,2)", "gpa DECIMAL(4,2)"),
        ("BETWEEN 0 AND 4", "BETWEEN 0 AND 5"),
        ("major VARCHAR", "major VARCHAR NOT NULL"),
        ("student_id INTEGER REFERENCES", "student_id INTEGER UNIQUE REFERENCES"),
        ("major VARCHAR", "major VARCHAR UNIQUE"),
    ],
)
def test_they_are_of_the_engine(
    campus: LiveSchema, read_live: Callable[[str], LiveSchema], old: str, new: str
) -> None:
    changed = read_live(CAMPUS_SQL.replace(old, new, 1))
    before, after = (all_grounds(build_catalog(policy_from(GROUNDED), live)) for live in (campus, changed))
    assert before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 10", "epsilon = 20"),
        ("unit = ", 'description = "people"\nunit = '),
        ("max_rows = 3\n", "max_rows = 3\n[analysts.bob]\nepsilon = 1"),
    ],
)
def test_what_no_plan_relies_on_is_none_of_them(campus: LiveSchema, old: str, new: str) -> None:
    before, after = (
        all_grounds(build_catalog(policy_from(text), campus))
        for text in (GROUNDED, GROUNDED.replace(old, new, 1))
    )
    assert before == after


def test_a_catalog_takes_calls_in_proportion_to_its_tables(read_live: Callable[[str], LiveSchema]) -> None:
    """What each table looks for among all of them is one look, not one a table."""

    def calls(tables: int) -> int:
        names = [f"loan{number}" for number in range(tables)]
        sql = "; ".join(
            ["CREATE TABLE student (id BIGINT PRIMARY KEY, gpa DOUBLE, major VARCHAR)"]
            + [f"CREATE TABLE {name} (student_id BIGINT NOT NULL REFERENCES student (id))" for name in names]
        )
        text = HEAD + STUDENT + "".join(LOAN.replace("tables.loan", f"tables.{name}") for name in names)
        policy, live = policy_from(text), read_live(sql)
        made = 0

        def count(*event: object) -> None:
            nonlocal made
            made += 1

        sys.setprofile(count)
        try:
            build_catalog(policy, live)
        finally:
            sys.setprofile(None)
        return made

    calls(1)
    few, many = calls(40), calls(160)
    assert many < 4.4 * few


def test_they_are_made_when_a_plan_rests_on_them(monkeypatch: pytest.MonkeyPatch, campus: LiveSchema) -> None:
    """Of a policy of hundreds of tables a statement reads few; what is wrong is refused before all the same."""
    built: list[str] = []
    build = catalog_module._build_table

    def counted(policy: Policy, declared: TablePolicy, *rest: Any) -> Table:
        built.append(declared.name)
        return build(policy, declared, *rest)

    def digested(content: object) -> str:
        made.append(content)
        return str(len(made))

    made: list[object] = []
    monkeypatch.setattr(catalog_module, "_digest", digested)
    monkeypatch.setattr(catalog_module, "_build_table", counted)
    tables = build_catalog(policy_from(GROUNDED), campus).tables
    assert built == list(tables), "each table is built once, those on the way to an owner too"
    assert not made
    assert all(tables["loan"].grounds)
    assert made

"""The fingerprint: what a plan may rely on changes it, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.policy import LiveSchema, build_catalog

from .conftest import CAMPUS_SQL, HEAD, STUDENT, policy_from

LOAN = '\n[tables.loan]\nunit = { column = "student_id", references = "student.id" }\n'
FINGERPRINTED = (
    HEAD + STUDENT + "columns.gpa = { bounds = [2, 4] }\ncolumns.major = {}\n" + LOAN + "max_rows = 3\n"
)


def test_the_fingerprint_is_stable(campus: LiveSchema, read_live: Callable[[str], LiveSchema]) -> None:
    first = build_catalog(policy_from(FINGERPRINTED), campus).fingerprint
    again = build_catalog(policy_from(FINGERPRINTED), read_live(CAMPUS_SQL)).fingerprint
    assert first == again
    assert len(bytes.fromhex(first)) == 32


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
        ("delta = 1e-6", "delta = 1e-6\n[defaults]\nminimum_units = 2"),
        ("campus.duckdb", "other.duckdb"),
        ("max_rows = 3", "max_rows = 2"),
        ("max_rows = 3", "max_rows = 3\nmax_rows_per_group = 2"),
        ("max_rows = 3", "max_rows = 3\nmax_groups = 2"),
        (LOAN, LOAN.replace("student_id", "guarantor_id")),
    ],
)
def test_the_fingerprint_sees_declarations(campus: LiveSchema, old: str, new: str) -> None:
    assert old in FINGERPRINTED
    before, after = (
        build_catalog(policy_from(text), campus).fingerprint
        for text in (FINGERPRINTED, FINGERPRINTED.replace(old, new, 1))
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
def test_the_fingerprint_sees_the_engine(
    campus: LiveSchema, read_live: Callable[[str], LiveSchema], old: str, new: str
) -> None:
    changed = read_live(CAMPUS_SQL.replace(old, new, 1))
    before, after = (
        build_catalog(policy_from(FINGERPRINTED), live).fingerprint for live in (campus, changed)
    )
    assert before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 10", "epsilon = 20"),
        ("unit = ", 'description = "people"\nunit = '),
        ("max_rows = 3\n", "max_rows = 3\n[analysts.bob]\nepsilon = 1"),
    ],
)
def test_what_no_plan_relies_on_leaves_the_fingerprint(campus: LiveSchema, old: str, new: str) -> None:
    before, after = (
        build_catalog(policy_from(text), campus).fingerprint
        for text in (FINGERPRINTED, FINGERPRINTED.replace(old, new, 1))
    )
    assert before == after

"""Keys of several columns in the policy: read, held against what the database enforces, and told to the owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check
from dpsql.policy.describe import column_comment, table_comment
from dpsql.relation.catalog import Unit
from dpsql.relation.types import INTEGER, TEXT

from .conftest import HEAD, policy_from

ReadLive = Callable[[str], LiveSchema]

PATIENT = '\n[tables.patient]\nunit = ["hospital", "no"]\n'
VISIT = """
[tables.visit]
unit = { column = ["patient_no", "hospital"], references = ["patient.no", "patient.hospital"] }
max_rows = 6
"""
LAB = """
[tables.lab]
unit = { column = ["visit_no", "hospital"], references = ["visit.visit_no", "visit.hospital"] }
max_rows = 8
"""
SQL = """
CREATE TABLE patient (hospital TEXT, no INTEGER, {patient});
CREATE TABLE visit (hospital TEXT NOT NULL, visit_no INTEGER, patient_no INTEGER, {visit},
    FOREIGN KEY (hospital, patient_no) REFERENCES patient (hospital, no));
CREATE TABLE lab (hospital TEXT NOT NULL, visit_no INTEGER NOT NULL,
    FOREIGN KEY (visit_no, hospital) REFERENCES visit (visit_no, hospital));
"""
ENFORCED = SQL.format(patient="PRIMARY KEY (hospital, no)", visit="PRIMARY KEY (visit_no, hospital)")


def units(read_live: ReadLive, sql: str, text: str) -> dict[str, Unit | None]:
    return {
        name: table.unit
        for name, table in build_catalog(policy_from(HEAD + text), read_live(sql)).tables.items()
    }


def test_each_column_points_at_the_one_in_its_place(read_live: ReadLive) -> None:
    """The parts of a unit stand in the order of the table that says it, whatever a key's own order is."""
    found = units(read_live, ENFORCED, PATIENT + VISIT + LAB)
    assert found["patient"] == Unit(("hospital", "no"), (TEXT, INTEGER), None, True, True)
    assert found["visit"] == Unit(
        ("hospital", "patient_no"), (TEXT, INTEGER), ("patient", ("hospital", "no")), is_held=True, max_rows=6
    )
    assert found["lab"] == Unit(
        ("visit_no", "hospital"), (INTEGER, TEXT), ("visit", ("visit_no", "hospital")), is_not_null=True,
        is_held=True, max_rows=8,
    )  # fmt: skip


def test_a_unit_of_several_columns_needs_no_key(read_live: ReadLive) -> None:
    sql = "CREATE TABLE visit (h TEXT, p INTEGER); CREATE TABLE drug (hospital VARCHAR NOT NULL, p SMALLINT NOT NULL)"
    found = units(
        read_live, sql, '[tables.visit]\nunit = ["h", "p"]\n[tables.drug]\nunit = ["hospital", "p"]\n'
    )
    assert [(one.is_unique, one.is_not_null) for one in found.values() if one] == [
        (False, False),
        (False, True),
    ]


def test_a_key_of_some_of_the_columns_is_one_of_all(read_live: ReadLive) -> None:
    found = units(read_live, "CREATE TABLE patient (hospital TEXT, no INTEGER PRIMARY KEY)", PATIENT)
    assert found["patient"] == Unit(("hospital", "no"), (TEXT, INTEGER), None, True, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('unit = ["hospital", "hospital"]', "unit: names each column of a key once"),
        ("unit = []", 'unit: write unit = "id", or unit = { column = "student_id", references = "student.id" }'),
        ('unit = ["hospital", 3]', 'unit: write names in quotes, like ["…", "…"]'),
        ('unit = ["hospital", "nr"]', 'unit: table "patient" has no column "nr"; known here: hospital, no, weight'),
        ('unit = ["hospital", "weight"]', 'unit: "weight" is double precision, which cannot identify a unit; use a stored integer, text or uuid'),
        ('unit = { column = ["hospital", "no"], references = "visit.no" }', "unit.references: names 1 columns, and column 2; write as many of both"),
        ('unit = { column = ["hospital", "no"], references = ["visit.no", "lab.no"] }', "unit.references: names columns of visit and lab; a key is of one table"),
        ('unit = { column = ["hospital", "no"], references = ["visit.no", "lab"] }', 'unit.references: write "<table>.<column>"'),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused(read_live: ReadLive, text: str, problem: str) -> None:
    sql = "CREATE TABLE patient (hospital TEXT, no INTEGER, weight DOUBLE)"
    with pytest.raises(PolicyError) as error:
        units(read_live, sql, f"[tables.patient]\n{text}\n")
    assert problem in error.value.message


@pytest.mark.parametrize(
    ("sql", "text", "problem"),
    [
        (SQL.format(patient="PRIMARY KEY (hospital, no)", visit="UNIQUE (visit_no, hospital)"), PATIENT + VISIT + LAB,
         'tables.lab.unit.references: the database does not enforce that "visit_no", "hospital" of "visit" are unique '
         "together; add PRIMARY KEY (visit_no, hospital), or UNIQUE and NOT NULL, or write the person's number into the "
         "rows, as unit"),
        (ENFORCED, PATIENT + VISIT.replace('["patient.no", "patient.hospital"]', '["patient.hospital", "patient.no"]'),
         'tables.visit.unit.references: "patient_no" is integer and "hospital" is text; give both columns one type'),
        (ENFORCED, PATIENT + '[tables.visit]\nunit = "patient_no"\n',
         'tables.visit.unit: is "patient_no", and "hospital", "no" in patient; tables share the unit by its values, so '
         "name as many columns, in one order"),
        (ENFORCED, PATIENT + VISIT + '[tables.lab]\nunit = ["hospital", "visit_no"]\n',
         'tables.lab.unit: "hospital", "visit_no" together point at a row of visit, whose owner stands there; write '
         'unit = { column = ["hospital", "visit_no"], references = ["visit.hospital", "visit.visit_no"] }'),
        (ENFORCED, PATIENT + '[tables.visit]\n',
         'tables.visit: has no unit, and "hospital", "patient_no" leads to an owner; write unit = { column = ["hospital", '
         '"patient_no"], references = ["patient.hospital", "patient.no"] }'),
    ],
)  # fmt: skip
def test_what_nothing_enforces_is_refused(read_live: ReadLive, sql: str, text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        units(read_live, sql, text)
    assert error.value.message == f"campus.toml: {problem}"


def test_the_owner_is_told(read_live: ReadLive) -> None:
    report = check(policy_from(HEAD + PATIENT + VISIT + LAB), read_live(ENFORCED))
    assert [table.unit for table in report.tables] == [
        'root, one row per unit in "hospital", "no"',
        'private, owned through "hospital", "patient_no" by patient (hospital, no)',
        'private, owned through "visit_no", "hospital" by visit (visit_no, hospital), then "hospital", "patient_no" by '
        "patient (hospital, no)",
    ]
    assert report.problems == ()
    assert report.warnings[-1] == (
        'campus.toml: tables.visit: rows whose "hospital" or "patient_no" is NULL have no owner and are never counted'
    )


def test_analysts_are_told(read_live: ReadLive) -> None:
    visit = build_catalog(policy_from(HEAD + PATIENT + VISIT), read_live(ENFORCED)).tables["visit"]
    assert table_comment(visit) == (
        'private, owned through "hospital", "patient_no" by patient (hospital, no); 6 rows of a unit count in a result'
    )
    assert column_comment(visit, "hospital", has_delta=True) == (
        "whose row it is, with the rest of (hospital, patient_no), as patient (hospital, no): to join on all, and for "
        "COUNT(DISTINCT (hospital, patient_no))"
    )
    assert [column.name for column in visit.named] == ["hospital", "patient_no"]

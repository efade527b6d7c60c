"""Tables whose own rows say whose they are: what is accepted, what is refused, and what the owner is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check
from dpsql.relation.catalog import Unit
from dpsql.relation.types import BIGINT, INTEGER

from .conftest import HEAD, policy_from

ReadLive = Callable[[str], LiveSchema]

VISIT = '\n[tables.visit]\nunit = "patient_id"\nmax_rows = 6\n'
DRUG = '\n[tables.drug]\nunit = "patient_id"\n'


def catalog(read_live: ReadLive, sql: str, text: str) -> dict[str, Unit | None]:
    return {
        name: table.unit
        for name, table in build_catalog(policy_from(HEAD + text), read_live(sql)).tables.items()
    }


@pytest.mark.parametrize(
    ("key", "is_unique", "is_not_null"),
    [
        ("patient_id INTEGER", False, False),
        ("patient_id INTEGER NOT NULL", False, True),
        ("patient_id INTEGER, n INTEGER, PRIMARY KEY (patient_id, n)", False, True),
        ("patient_id INTEGER UNIQUE", True, False),
        ("patient_id INTEGER PRIMARY KEY", True, True),
    ],
)
def test_no_key_is_needed_and_one_is_seen(
    read_live: ReadLive, key: str, is_unique: bool, is_not_null: bool
) -> None:
    unit = catalog(read_live, f"CREATE TABLE visit ({key})", VISIT)["visit"]
    assert unit == Unit(("patient_id",), (INTEGER,), None, is_unique, is_not_null, max_rows=6)


def test_tables_share_the_unit_whatever_its_width(read_live: ReadLive) -> None:
    sql = "CREATE TABLE visit (patient_id INTEGER); CREATE TABLE drug (patient_id BIGINT)"
    units = catalog(read_live, sql, VISIT + DRUG)
    assert units["drug"] == Unit(("patient_id",), (BIGINT,))


def test_a_child_of_a_table_without_a_key_holds_the_unit(read_live: ReadLive) -> None:
    sql = "CREATE TABLE visit (patient_id INTEGER); CREATE TABLE drug (who INTEGER UNIQUE)"
    text = VISIT + '[tables.drug]\nunit = { column = "who", references = "visit.patient_id" }\n'
    assert catalog(read_live, sql, text)["drug"] == Unit(
        ("who",), (INTEGER,), ("visit", ("patient_id",)), True
    )


def test_a_way_over_another_table_needs_its_key(read_live: ReadLive) -> None:
    sql = "CREATE TABLE visit (patient_id INTEGER, no INTEGER{}); CREATE TABLE drug (visit_no INTEGER)"
    text = VISIT + '[tables.drug]\nunit = { column = "visit_no", references = "visit.no" }\n'
    assert catalog(read_live, sql.format(" PRIMARY KEY"), text)["drug"] == Unit(
        ("visit_no",), (INTEGER,), ("visit", ("no",))
    )
    with pytest.raises(PolicyError, match='the database does not enforce that "no" of "visit" is unique'):
        catalog(read_live, sql.format(""), text)


REFUSED = {
    "two types": (
        "CREATE TABLE visit (patient_id INTEGER); CREATE TABLE drug (patient_id VARCHAR)",
        'tables.drug.unit: "patient_id" is text and "patient_id" of visit is integer; tables share the unit by its '
        "values, so give both columns one type",
    ),
    "two decimals": (
        "CREATE TABLE visit (patient_id DECIMAL(9,0)); CREATE TABLE drug (patient_id DECIMAL(12,0))",
        'tables.drug.unit: "patient_id" is numeric(12,0) and "patient_id" of visit is numeric(9,0); tables share the '
        "unit by its values, so give both columns one type",
    ),
    "an integer and a decimal": (
        "CREATE TABLE visit (patient_id UBIGINT); CREATE TABLE drug (patient_id BIGINT)",
        'tables.drug.unit: "patient_id" is bigint and "patient_id" of visit is numeric(20,0); tables share the '
        "unit by its values, so give both columns one type",
    ),
    "a label and a text": (
        "CREATE TYPE name AS ENUM ('a'); CREATE TABLE visit (patient_id name); "
        "CREATE TABLE drug (patient_id VARCHAR)",
        'tables.drug.unit: "patient_id" is varchar and "patient_id" of visit is enum(\'a\'); tables share the '
        "unit by its values, so give both columns one type",
    ),
    "two keys": (
        "CREATE TABLE visit (patient_id INTEGER PRIMARY KEY); CREATE TABLE drug (patient_id INTEGER PRIMARY KEY)",
        'tables.drug.unit: "patient_id" is a key of this table and "patient_id" one of visit, so that equal values '
        "may well be two people; if they are one person's, write "
        'unit = { column = "patient_id", references = "visit.patient_id" }; if they are two kinds of people, one kind is '
        "protected: leave the other's table out, or number all people in one column",
    ),
    "a collation": (
        "CREATE TABLE visit (patient_id VARCHAR COLLATE NOCASE); CREATE TABLE drug (patient_id VARCHAR)",
        'tables.visit.unit: "patient_id" has a collation, under which keys that are spelled differently can be '
        "equal; remove the collation",
    ),
    "another's key": (
        "CREATE TABLE visit (no INTEGER PRIMARY KEY, patient_id INTEGER); "
        "CREATE TABLE drug (patient_id INTEGER REFERENCES visit (no))",
        'tables.drug.unit: "patient_id" points at a row of visit, whose owner stands there; write '
        'unit = { column = "patient_id", references = "visit.no" }',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_two_people_is_refused(read_live: ReadLive, name: str) -> None:
    sql, message = REFUSED[name]
    policy, live = policy_from(HEAD + VISIT + DRUG), read_live(sql)
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy, live)
    assert caught.value.message == f"campus.toml: {message}"
    assert f"campus.toml: {message}" in check(policy, live).problems


def test_what_is_shared_is_told(read_live: ReadLive) -> None:
    live = read_live(
        "CREATE TABLE visit (patient_id INTEGER); CREATE TABLE drug (patient_id INTEGER NOT NULL); "
        "CREATE TABLE bill (payer INTEGER NOT NULL)"
    )
    report = check(policy_from(HEAD + VISIT + DRUG + '[tables.bill]\nunit = "payer"'), live)
    assert report.problems == ()
    bounds = (
        "max_rows, without which queries on this table are refused; write max_rows = <rows of one person>, or measure "
        "it: dpsql bounds "
    )
    assert [(table.role, table.unit, table.missing) for table in report.tables] == [
        ("private", 'private, the unit in "patient_id"', ()),
        ("private", 'private, the unit in "patient_id"', (f"{bounds}drug",)),
        ("private", 'private, the unit in "payer"', (f"{bounds}bill",)),
    ]  # fmt: skip
    assert report.warnings == (
        'campus.toml: tables.visit: rows whose "patient_id" is NULL have no owner and are never counted',
        'campus.toml: tables.bill: "payer" and "patient_id" of visit are taken for one number of one person: equal '
        "values are one unit",
    )


def test_a_foreign_key_between_columns_of_the_unit_is_no_second_person(read_live: ReadLive) -> None:
    live = read_live(
        "CREATE TABLE visit (patient_id INTEGER PRIMARY KEY); "
        "CREATE TABLE drug (patient_id INTEGER NOT NULL REFERENCES visit)"
    )
    assert check(policy_from(HEAD + VISIT + DRUG), live).warnings == ()


def test_events_are_no_key_of_other_events(read_live: ReadLive) -> None:
    live = read_live(
        "CREATE TABLE patient (id INTEGER PRIMARY KEY); CREATE TABLE visit (patient_id INTEGER);"
        "CREATE TABLE drug (patient_id INTEGER)"
    )
    text = (
        HEAD
        + '[tables.patient]\nunit = "id"\n'
        + "".join(
            f'[tables.{name}]\nunit = {{ column = "patient_id", references = "{parent}" }}\n'
            for name, parent in (("visit", "patient.id"), ("drug", "visit.patient_id"))
        )
    )
    with pytest.raises(PolicyError) as caught:
        build_catalog(policy_from(text), live)
    assert caught.value.message == (
        'campus.toml: tables.drug.unit.references: "patient_id" of "visit" is no key, it says whose a row is there; '
        'write references = "patient.id" here too'
    )

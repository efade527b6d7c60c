"""The owner's report: what an analyst may do, what is missing, what is wrong, what may not be meant."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dpsql.policy import LiveSchema, Report, check

from .conftest import HEAD, STUDENT, policy_from

LOAN = '\n[tables.loan]\nunit = { column = "student_id", references = "student.id" }\n'


def report_on(live: LiveSchema, text: str) -> Report:
    return check(policy_from(text), live)


def allowed(report: Report, table: int = 0) -> dict[str, str]:
    return {column.name: column.allows for column in report.tables[table].columns}


COLUMNS = """
[tables.student.columns]
name = {}
gpa = { bounds = [2.0, 4.0], step = 0.01 }
height = {}
major = { values = ["CS", "EE", "ME"] }
born = {}
seen = { bounds = [2020-01-01, 2020-12-31] }
state = {}
active = {}
badge = {}
credits = {}
"""


def test_what_each_column_allows(campus: LiveSchema) -> None:
    assert allowed(report_on(campus, HEAD + STUDENT + COLUMNS)) == {
        "name": "COUNT only; group keys by threshold",
        "gpa": "COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 201 values inside the bounds",
        "height": "COUNT only; no GROUP BY",
        "major": "COUNT, MODE; group keys: 3 public values",
        "born": "COUNT only; group keys by threshold",
        "seen": "COUNT, MEDIAN, percentiles, MIN, MAX; group keys by threshold",
        "state": "COUNT, MODE; group keys: 2 public values",
        "active": "COUNT, MODE; group keys: 3 public values",
        "badge": "COUNT only; no GROUP BY",
        "credits": "COUNT only; group keys by threshold",
    }


def test_without_a_delta_keys_must_be_declared(campus: LiveSchema) -> None:
    report = report_on(campus, HEAD.replace("delta = 1e-6", "") + STUDENT + COLUMNS)
    assert allowed(report)["name"] == "COUNT only; GROUP BY needs values, or a delta"
    assert allowed(report)["major"] == "COUNT, MODE; group keys: 3 public values"


@pytest.mark.parametrize(
    ("bounds", "notes"),
    [
        ("2020-01-01, 2020-12-31", ("seen: the bound 2020-12-31 is a date, and means the end of that day, 23:59:59.999999; earlier "
                        "versions took its midnight, and what was drawn under that answers no more",)),
        ("2020-01-01T00:00:00, 2020-12-31T00:00:00", ()),
    ],
)  # fmt: skip
def test_a_date_that_ends_the_bounds_of_a_timestamp_is_named(
    campus: LiveSchema, bounds: str, notes: tuple[str, ...]
) -> None:
    report = report_on(campus, HEAD + STUDENT + COLUMNS.replace("2020-01-01, 2020-12-31", bounds))
    assert report.tables[0].notes == notes


def test_what_is_missing(campus: LiveSchema) -> None:
    text = HEAD + STUDENT + COLUMNS.replace("{ bounds = [2.0, 4.0], step = 0.01 }", "{}") + LOAN
    report = report_on(campus, text)
    missing = {column.name: column.missing for column in report.tables[0].columns}
    assert missing["gpa"] == (
        "bounds, for SUM and AVG: { bounds = [lower, upper] }; its CHECK allows [0, 4]",
    )
    assert missing["height"] == ("bounds, for SUM and AVG: { bounds = [lower, upper] }",)
    assert missing["born"] == (
        "bounds, for computing with dates: { bounds = [first, last] }, without quotes",
    )
    assert missing["name"] == missing["seen"] == ()
    assert report.tables[0].missing == ()
    assert report.tables[1].missing == (
        "max_rows, without which queries on this table are refused; write max_rows = <rows of one person>, or measure "
        "it: dpsql bounds loan",
    )


def test_what_the_engine_enforces_is_not_missing(campus: LiveSchema) -> None:
    report = report_on(campus, HEAD + STUDENT + LOAN.replace("loan", "card"))
    assert report.tables[1].missing == ()


def test_several_hops_are_reported(campus: LiveSchema) -> None:
    payment = '[tables.payment]\nunit = { column = "loan_id", references = "loan.id" }\nmax_rows = 1\n'
    report = report_on(campus, HEAD + STUDENT + LOAN + payment)
    assert report.tables[2].unit == (
        'private, owned through "loan_id" by loan.id, then "student_id" by student.id'
    )
    assert report.tables[2].missing == report.problems == ()


def test_a_way_that_ends_beside_the_roots_own_key_is_reported(read_live: Callable[[str], LiveSchema]) -> None:
    live = read_live(
        "CREATE TABLE student (id INT PRIMARY KEY, card INT UNIQUE NOT NULL);"
        "CREATE TABLE loan (id INT PRIMARY KEY, student_id INT UNIQUE);"
    )
    report = report_on(live, HEAD + STUDENT + LOAN.replace("student.id", "student.card"))
    assert report.tables[1].unit == 'private, owned through "student_id" by student.card, then "id"'


def test_bounds_of_one_row_are_noted(campus: LiveSchema) -> None:
    card = LOAN.replace("loan", "card")
    for text in ("max_rows = 5\n", "max_rows = 5\nmax_groups = 2\n"):
        report = report_on(campus, HEAD + STUDENT + card + text)
        assert report.tables[0].notes == report.warnings == ()
        assert report.tables[1].notes == (
            "a unit has one row here; max_rows matters only after joins that copy rows",
        )
        assert f"  note: {report.tables[1].notes[0]}\n" in report.to_text()


def test_problems_are_collected_and_the_rest_is_still_reported(campus: LiveSchema) -> None:
    text = HEAD + STUDENT + "columns.gap = {}\ncolumns.gpa = { step = 0.005 }\ncolumns.name = {}\n"
    text += LOAN.replace('"student_id"', '"nobody"') + "[tables.ghost]\npublic = true\n"
    report = report_on(campus, text)
    assert [problem.split(": ")[1] for problem in report.problems] == [
        "tables.student.columns.gap",
        "tables.student.columns.gpa.step",
        "tables.loan.unit",
        "tables.ghost",
    ]
    assert list(allowed(report)) == ["name"]


def test_warnings(campus: LiveSchema) -> None:
    text = (
        HEAD.replace("epsilon = 10", "epsilon = 20").replace("1e-6", "1e-3")
        + STUDENT
        + "max_rows = 5\n"
        + LOAN
        + "[tables.card]\npublic = true\n"
        + "[analysts.alice]\nepsilon = 30\n"
    )
    assert report_on(campus, text).warnings == (
        "campus.toml: privacy.epsilon: 20 protects little; 1 is strong, 10 is weak",
        "campus.toml: privacy.delta: 0.001 is large; keep it far below one in the number of units",
        "campus.toml: analysts.alice.epsilon: is above privacy.epsilon, which binds first",
        'campus.toml: tables.loan: "guarantor_id" points at student too; only the owner through '
        '"student_id" is protected; declare also, or leave the column out',
        'campus.toml: tables.loan: rows whose "student_id" is NULL have no owner and are never counted',
        'campus.toml: tables.card: is public, and "student_id" points at the private table student',
    )


TEXT = """\
campus.toml: dataset student@duckdb:campus.duckdb
lifetime epsilon 10, delta 0.000001; add-remove neighbours

warning: campus.toml: tables.loan: "guarantor_id" points at student too; only the owner through "student_id" is protected; declare also, or leave the column out
warning: campus.toml: tables.loan: rows whose "student_id" is NULL have no owner and are never counted

student: root, one row per unit in "id"
  name  text [at most 9 characters]: COUNT only; group keys by threshold
  gpa   numeric(3,2) [bounds 2 to 4, step 0.01]: COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 201 values inside the bounds
  hidden, not declared: major, born, seen, height, credits, state, active, badge, alias, twice, mentor, country

loan: private, owned through "student_id" by student.id
  amount  double precision: COUNT only; no GROUP BY
          missing: bounds, for SUM and AVG: { bounds = [lower, upper] }
  hidden, not declared: id, guarantor_id, note

country: public, nobody's data
  code  text: anything, at no charge
  name  text: anything, at no charge
"""  # the report's own lines


def test_the_text_and_json_of_a_report(campus: LiveSchema) -> None:
    text = (
        HEAD
        + STUDENT
        + "columns.gpa = { bounds = [2, 4], step = 0.01 }\ncolumns.name = { max_length = 9 }\n"
        + LOAN
        + "max_rows = 20\ncolumns.amount = {}\n[tables.country]\npublic = true\n"
    )
    report = report_on(campus, text)
    assert report.to_text() == TEXT
    read_back = json.loads(json.dumps(report.to_json()))
    assert (
        read_back["tables"][0]["columns"][1]["allows"]
        == "COUNT, SUM, AVG, STDDEV, CORR, REGR, MEDIAN, percentiles, MIN, MAX, MODE; group keys: 201 values inside the bounds"
    )
    assert read_back["problems"] == []

"""Subqueries that stay private: what is claimed of a column is what the printed operator enforces."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dpsql.relation.catalog import Column
from dpsql.tests.plan.planned import printed, refused, released, rows_of


def column(inner: str) -> Column:
    """Return what is known of the aggregate of a subquery per person: its columns are keys, aggregate, owner."""
    return rows_of(f"SELECT COUNT(*) FROM ({inner}) t").columns[-2]


def facts(inner: str) -> tuple[Fraction | None, Fraction | None, Fraction | None, bool]:
    known = column(inner).facts
    assert known is not None
    return known.lo, known.hi, known.grid, known.nullable


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        # a person's visits are 3 in a group and 2 groups: 6 in all
        ("COUNT(*)", (0, 6, 1, False)),
        ("COUNT(note)", (0, 6, 1, False)),
        ("SUM(days)", (0, 54, 1, True)),
        ("SUM(fee)", (-60, 300, Fraction(1, 100), True)),
        ("AVG(days)", (0, 9, None, True)),
        ("BOOL_OR(urgent)", (0, 1, 1, True)),
    ],
)
def test_what_an_aggregate_per_person_can_be(aggregate: str, expected: tuple[object, ...]) -> None:
    assert facts(f"SELECT {aggregate} AS x FROM visit GROUP BY person_id") == expected


def test_rows_of_one_group_are_fewer() -> None:
    assert facts("SELECT COUNT(*) AS x FROM visit GROUP BY person_id, ward") == (0, 3, 1, False)
    assert facts("SELECT COUNT(*) AS x FROM card GROUP BY person_id, kind") == (0, 1, 1, False)


def test_the_claim_is_printed_where_the_value_is_computed() -> None:
    sql = printed("SELECT SUM(x) FROM (SELECT SUM(days) AS x FROM visit GROUP BY person_id) t")
    assert 'CASE WHEN "days" BETWEEN 0 AND 9' in sql
    assert "BETWEEN 0 AND 54" in sql
    assert sql.index("BETWEEN 0 AND 54") < sql.index('FROM "main"."visit"')
    assert 'GROUP BY "person_id"' in sql


def test_the_sensitivity_is_of_the_claim() -> None:
    (measurement,) = released(
        "SELECT SUM(x) FROM (SELECT SUM(days) AS x FROM visit GROUP BY person_id) t"
    ).measurements
    assert measurement.sensitivity == 54
    (measurement,) = released(
        "SELECT SUM(x) FROM (SELECT MAX(days) AS x FROM visit GROUP BY person_id) t"
    ).measurements
    assert measurement.sensitivity == 9


def test_a_least_or_greatest_keeps_its_columns_declaration() -> None:
    known = column("SELECT MIN(days) AS x FROM visit GROUP BY person_id")
    assert known.bounds == (0, 9)
    assert not known.enforced.not_null  # of no rows that pass a filter, NULL


def test_a_filter_narrows_what_an_output_can_be() -> None:
    assert column("SELECT MAX(age) AS x FROM person GROUP BY id").bounds == (0, 100)
    assert column("SELECT MAX(age) AS x FROM person WHERE age BETWEEN 20 AND 30 GROUP BY id").bounds == (
        20,
        30,
    )
    assert facts("SELECT SUM(age) AS x FROM person WHERE age < 30 GROUP BY id")[:2] == (0, 29)


def test_union_all_adds_the_bounds_and_takes_the_hull() -> None:
    both = "SELECT person_id, days AS x FROM visit UNION ALL SELECT id, age FROM person"
    rows = rows_of(f"SELECT COUNT(*) FROM ({both}) t")
    assert (rows.max_rows_per_group, rows.max_groups, rows.max_rows) == (3 + 1, 2 + 1, 6 + 1)
    (x,) = [column for column in rows.columns if column.name == "x"]
    assert x.bounds == (0, 100)
    assert not x.enforced.not_null  # age may be NULL


def test_grouped_rows_have_their_keys() -> None:
    """One row a person and key; by the person alone, one row a person."""
    (item,) = rows_of(
        "SELECT COUNT(*) FROM (SELECT COUNT(*) AS x FROM visit GROUP BY person_id, ward) t"
    ).items
    assert frozenset({0, 1}) in item.source.keys
    (item,) = rows_of(
        "SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS x FROM visit GROUP BY person_id) t"
    ).items
    assert frozenset({len(item.columns) - 1}) in item.source.keys


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("SELECT STDDEV(days) AS x FROM visit GROUP BY person_id", "PV001"),
        ("SELECT SUM(DISTINCT height) AS x FROM person GROUP BY id", "PV001"),
        ("SELECT mode() WITHIN GROUP (ORDER BY height) AS x FROM person GROUP BY id", "PV001"),
        ("SELECT SUM(no) AS x FROM visit GROUP BY person_id", "PV101"),
        ("SELECT LAST_VALUE(days) OVER (PARTITION BY person_id ORDER BY no) AS x FROM visit", "PV202"),
        ("SELECT LAG(days, 1, no) OVER (PARTITION BY person_id ORDER BY no) AS x FROM visit", "PV202"),
        ("SELECT NTH_VALUE(days, 2) OVER (PARTITION BY person_id ORDER BY no) AS x FROM visit", "PV202"),
    ],
)
def test_what_is_not_computed_per_person(inner: str, code: str) -> None:
    assert refused(f"SELECT SUM(x) FROM ({inner}) t")[0] == code


def test_windows_order_ties_by_a_key() -> None:
    """Without a key, rows are numbered first when two calls could order equal rows each its own way."""
    once = "SELECT MAX(days) FILTER (WHERE x = 1) AS d FROM (SELECT person_id, days, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY days) AS x FROM visit) w GROUP BY person_id"
    assert re.search(r'ORDER BY "days"[^)]*"no"', printed(f"SELECT AVG(d) FROM ({once}) t"))
    number = "ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY stars{}) AS {}"
    one, other = number.format("", "a"), number.format(" DESC", "b")
    for calls, filter_, numbered in ((one, "a < 9", 1), (f"{one}, {other}", "a = b", 3)):
        inner = f"SELECT person_id, MAX(a) AS a FROM (SELECT person_id, {calls} FROM remark) s WHERE {filter_} GROUP BY person_id"
        assert printed(f"SELECT COUNT(*) FROM ({inner}) t WHERE a < 3").count("row_number()") == numbered

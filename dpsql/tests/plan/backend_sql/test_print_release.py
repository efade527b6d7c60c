"""The query of a release, run on one person's rows: each number stays inside what its sensitivity counted on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest

from dpsql.plan.backend_sql import print_release
from dpsql.plan.dialects.dialect_duckdb import DuckDBDialect
from dpsql.tests.plan.planned import released


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visit (person_id INTEGER, no INTEGER, ward VARCHAR, fee DECIMAL(10,2), days INTEGER, "
            "urgent BOOLEAN, note VARCHAR)"
        )
        connection.execute("CREATE TABLE ward (name VARCHAR, floor INTEGER, beds INTEGER)")
        connection.execute("INSERT INTO ward VALUES ('a', 1, 3), ('b', 1, NULL), ('c', 3, 9)")
        yield connection


U = 2**20
"""What a whole row counts for: a row of one of t rows counts for R·U div max(t, R)."""

FLOOD = """
INSERT INTO visit SELECT 1, i, CASE i % 6 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'c' WHEN 3 THEN 'd' WHEN 4 THEN 'zz' END,
  CASE i % 3 WHEN 0 THEN 9999.99 WHEN 1 THEN -9999.99 END, i, i % 2 = 0, 'n' || i FROM range(120) AS t(i)
"""


Coordinates = dict[tuple[object, ...], list[int]]


def numbers(engine: duckdb.DuckDBPyConnection, sql: str) -> list[Coordinates]:
    """Return what a release's queries give: for each measurement its coordinates in each group."""
    release = released(sql)
    keys = len(release.release.keys)
    found: list[Coordinates] = [{} for _ in release.measurements]
    for query in release.queries(tuple(range(len(release.measurements)))):
        for row in engine.execute(query.sql, ["salt"] if query.salted else []).fetchall():
            coordinates = iter(row[keys:])
            for number in query.measurements:
                assert row[:keys] not in found[number]
                size = release.measurements[number].size
                found[number][row[:keys]] = [int(value) for value in itertools.islice(coordinates, size)]
            assert not list(coordinates)
    return found


def refill(engine: duckdb.DuckDBPyConnection, rows: str) -> None:
    """Let these be all visits."""
    engine.execute("DELETE FROM visit")
    engine.execute(rows)


STATEMENTS = (
    "SELECT COUNT(*) FROM visit",
    "SELECT SUM(fee) FROM visit",
    "SELECT AVG(fee) FROM visit",
    "SELECT COUNT(*) FILTER (WHERE urgent), COUNT(*) FILTER (WHERE days > 60) FROM visit",
    "SELECT ward, COUNT(*) FROM visit GROUP BY ward",
    "SELECT ward, SUM(days), COUNT(*) FROM visit GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT note) FROM visit GROUP BY ward",
    "SELECT note, COUNT(*) FROM visit GROUP BY note",
    "SELECT COUNT(DISTINCT person_id) FROM visit",
    "SELECT ward, COUNT(DISTINCT person_id), VAR_POP(days) FROM visit GROUP BY ward",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_person_moves_each_measurement_by_its_sensitivity_at_most(
    engine: duckdb.DuckDBPyConnection, sql: str
) -> None:
    """120 rows of a person in all groups, beyond all bounds; without that person there are no rows at all."""
    engine.execute("DELETE FROM visit")
    empty = numbers(engine, sql)
    assert all(value == 0 for groups in empty for values in groups.values() for value in values)
    refill(engine, FLOOD)
    for measurement, groups in zip(released(sql).measurements, numbers(engine, sql), strict=True):
        moved = sum(measurement.norm(values) for values in groups.values())
        assert 0 < moved <= measurement.sensitivity


def test_many_rows_of_a_person_count_for_r_in_all(engine: duckdb.DuckDBPyConnection) -> None:
    """R = 3 · 2 = 6, in fractions of 1/U: of 120 rows each counts for 6/120, cut, those of undeclared groups too."""
    refill(engine, FLOOD)
    weight = 6 * U // 120
    assert numbers(engine, "SELECT COUNT(*) FROM visit") == [{(): [120 * weight]}]
    (wards,) = numbers(engine, "SELECT ward, COUNT(*) FROM visit GROUP BY ward")
    # 20 rows in each of the wards, and as many each in one that is not declared and in none: these are the other place
    assert wards == {**{(name,): [20 * weight] for name in "abcd"}, (None,): [40 * weight]}


def test_up_to_r_rows_count_in_full(engine: duckdb.DuckDBPyConnection) -> None:
    """Wherever they lie: also with more than M in a group."""
    six = "INSERT INTO visit SELECT 1, i, 'a', -9999.99, i, TRUE, 'n' FROM range(6) AS t(i)"
    refill(engine, six)
    assert numbers(engine, "SELECT ward, COUNT(*) FROM visit GROUP BY ward") == [{("a",): [6 * U]}]
    # each -10.00, in hundredths
    assert numbers(engine, "SELECT SUM(fee) FROM visit") == [{(): [6 * -1000 * U]}]


def test_a_weight_is_cut_and_no_sum_is(engine: duckdb.DuckDBPyConnection) -> None:
    """A floor of sums would move each small negative one away from zero, in as many groups as there are."""
    seven = "INSERT INTO visit SELECT 1, i, 'a', CASE i WHEN 0 THEN -0.01 ELSE 0 END, i, TRUE, 'n' FROM range(7) AS t(i)"
    refill(engine, seven)
    weight = 6 * U // 7
    assert 7 * weight < 6 * U
    assert numbers(engine, "SELECT ward, SUM(fee) FROM visit GROUP BY ward") == [{("a",): [-weight]}]


def test_a_person_is_counted_once_in_c_declared_groups(engine: duckdb.DuckDBPyConnection) -> None:
    refill(engine, FLOOD)
    (wards,) = numbers(engine, "SELECT ward, COUNT(DISTINCT person_id) FROM visit GROUP BY ward")
    assert len(wards) == 2
    assert set(wards) <= {("a",), ("b",), ("c",), ("d",)}
    assert list(wards.values()) == [[1], [1]]


def test_nothing_is_bounded_by_physical_order() -> None:
    for sql in STATEMENTS:
        release = released(sql)
        for query in release.queries(tuple(range(len(release.measurements)))):
            assert "LIMIT" not in query.sql
            assert "random" not in query.sql


def test_what_is_stored_is_not_asked_again() -> None:
    release = released("SELECT ward, SUM(days), SUM(fee) FROM visit GROUP BY ward")
    (query,) = release.queries((1,))
    assert query.measurements == (1,)
    assert "days" not in query.sql
    assert release.queries(()) == ()


CROWD = """
INSERT INTO visit SELECT CAST(sqrt(2 * i) AS INTEGER), i, CASE i % 6 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'c' WHEN 3 THEN 'd' WHEN 4 THEN 'zz' END,
  i % 301 - 120.5, i % 12, CASE WHEN i % 5 > 0 THEN i % 2 = 0 END, 'n' || i % 7 FROM range(300) AS t(i)
"""
"""People of 1, 1, 2, 3, 4, … up to 24 rows, where 6 count."""

OF_JOINS = (
    "SELECT COUNT(*), SUM(fee) FROM visit JOIN ward ON ward = name",
    "SELECT floor, COUNT(*), AVG(fee) FROM visit JOIN ward ON ward = name GROUP BY floor",
    "SELECT floor, COUNT(*) FILTER (WHERE urgent), COUNT(*) FILTER (WHERE days > 3) FROM visit JOIN ward ON ward = name"
    " GROUP BY floor",
    "SELECT note, COUNT(*), VAR_POP(days) FROM visit JOIN ward ON ward = name GROUP BY note",
    "SELECT note, COUNT(*), SUM(days) FROM visit GROUP BY note",
)


@pytest.mark.parametrize("sql", OF_JOINS)
@pytest.mark.parametrize("rows", [CROWD, FLOOD])
def test_one_pass_gives_what_the_correction_gives(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, sql: str, rows: str
) -> None:
    """An engine that computes a step for each of its readers is asked otherwise, for the same integers."""
    refill(engine, rows)
    corrected = numbers(engine, sql)
    monkeypatch.setattr(DuckDBDialect, "keeps_steps", False)
    release = released(sql)
    printed = [query.sql for query in release.queries(tuple(range(len(release.measurements))))]
    assert not any("heavy" in one for one in printed)
    assert numbers(engine, sql) == corrected
    assert any(any(values) for groups in corrected for values in groups.values())


# --- what a filter leaves of a table ------------------------------------------------------------------------------

FEW = (
    "days BETWEEN 2 AND 3",
    "ward = 'a'",
    "note = 'n1'",
    "person_id = 1",
    "days > 4 AND ward IN ('a', 'b')",
    "FALSE",
)
MANY = ("days > 2", "ward IN ('a', 'b')", "note LIKE 'n%'", "note <> 'n1'", "days > no", "days > 8 OR urgent")


@pytest.mark.parametrize(
    ("where", "is_kept"), [*((one, True) for one in FEW[:-1]), *((one, False) for one in MANY)]
)
def test_rows_are_kept_where_declared_ends_say_that_few_are_left(where: str, is_kept: bool) -> None:
    (query,) = released(f"SELECT ward, COUNT(*) FROM visit WHERE {where} GROUP BY ward").queries((0,))
    assert ("r AS MATERIALIZED" in query.sql) == is_kept


@pytest.mark.parametrize("where", [*FEW, *MANY])
@pytest.mark.parametrize("asked", ["ward, SUM(days), COUNT(*)", "note, COUNT(*)"])
def test_rows_that_are_kept_give_the_integers_of_rows_that_are_read_again(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, where: str, asked: str
) -> None:
    refill(engine, FLOOD)
    engine.execute("INSERT INTO visit SELECT i, i, 'a', 5, i, i > 4, 'n1' FROM range(2, 9) AS t(i)")
    sql = f"SELECT {asked} FROM visit WHERE {where} GROUP BY {asked.split(',')[0]}"
    monkeypatch.setattr(print_release, "_FEW", Fraction(-1))
    read_again = numbers(engine, sql)
    monkeypatch.setattr(print_release, "_FEW", Fraction(2))
    assert numbers(engine, sql) == read_again


def test_a_text_longer_than_all_that_are_listed_is_one_of_the_others(
    engine: duckdb.DuckDBPyConnection,
) -> None:
    engine.execute("DELETE FROM visit")
    rows = ("'a'", "'aä'", "'aa'", "NULL", "'" + "b" * 5000 + "'")
    for number, ward in enumerate(rows):
        engine.execute(f"INSERT INTO visit VALUES ({number}, 1, {ward}, 1, 1, true, 'x')")
    (found,) = numbers(engine, "SELECT ward, COUNT(*) FROM visit GROUP BY ward")
    assert found == {("a",): [U], (None,): [4 * U]}

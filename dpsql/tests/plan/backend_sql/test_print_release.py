"""The query of a release, run on one person's rows: each number stays inside what its sensitivity counted on."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.tests.plan.planned import released


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visit (person_id INTEGER, no INTEGER, ward VARCHAR, fee DECIMAL(10,2), days INTEGER, "
            "urgent BOOLEAN, note VARCHAR)"
        )
        yield connection


FLOOD = """
INSERT INTO visit SELECT 1, i, CASE i % 6 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN 'c' WHEN 3 THEN 'd' WHEN 4 THEN 'zz' END,
  CASE i % 3 WHEN 0 THEN 9999.99 WHEN 1 THEN -9999.99 END, i, i % 2 = 0, 'n' || i FROM range(120) AS t(i)
"""


def numbers(engine: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of a statement's one query."""
    release = released(sql)
    (query,) = release.queries(tuple(range(len(release.vectors))))
    return engine.execute(query.sql, ["salt"] if query.salted else []).fetchall()


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
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_one_person_moves_each_vector_by_its_sensitivity_at_most(
    engine: duckdb.DuckDBPyConnection, sql: str
) -> None:
    """120 rows of a person in all groups, beyond all bounds; without that person there are no rows at all."""
    engine.execute("DELETE FROM visit")
    release = released(sql)
    keys = len(release.release.keys)
    assert all(value == 0 for row in numbers(engine, sql) for value in row[keys:])
    engine.execute(FLOOD)
    rows = numbers(engine, sql)
    start = keys
    for vector in release.vectors:
        moved = sum(abs(int(str(value))) for row in rows for value in row[start : start + vector.size])
        assert 0 < moved <= vector.sensitivity
        start += vector.size


def test_groups_are_those_declared_and_at_most_c_of_a_person(engine: duckdb.DuckDBPyConnection) -> None:
    engine.execute("DELETE FROM visit")
    engine.execute(FLOOD)
    wards = [row[0] for row in numbers(engine, "SELECT ward, COUNT(*) FROM visit GROUP BY ward")]
    assert set(wards) <= {"a", "b", "c", "d"}
    assert len(wards) == len(set(wards)) <= 2


def test_nothing_is_bounded_by_physical_order() -> None:
    for sql in STATEMENTS:
        release = released(sql)
        for query in release.queries(tuple(range(len(release.vectors)))):
            assert "LIMIT" not in query.sql
            assert "random" not in query.sql


def test_what_is_stored_is_not_asked_again() -> None:
    release = released("SELECT ward, SUM(days), SUM(fee) FROM visit GROUP BY ward")
    (query,) = release.queries((1,))
    assert query.vectors == (1,)
    assert "days" not in query.sql
    assert release.queries(()) == ()

"""Values on their lattice: whatever a row holds, what is summed is inside the clamp that the sensitivity counted on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import pytest

from dpsql.tests.plan.planned import printed, released

_AGES = ("-2147483648", "0", "57", "2147483647", "NULL")
_HEIGHTS = ("'-Infinity'", "'NaN'", "1.2345", "1e308", "NULL")


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE person (id INTEGER, age INTEGER, height DOUBLE)")
        yield connection


def summed(engine: duckdb.DuckDBPyConnection, sql: str, age: str, height: str) -> int:
    """Return the first number that printed SQL gives for one person."""
    engine.execute(f"DELETE FROM person; INSERT INTO person VALUES (1, {age}, {height})")
    return int(engine.execute(sql).fetchall()[0][0])


@pytest.mark.parametrize(
    "value", ["age", "age * 2 - 7", "height", "sqrt(age)", "round(height * 10)", "age * age"]
)
def test_a_sum_moves_by_its_sensitivity_at_most(engine: duckdb.DuckDBPyConnection, value: str) -> None:
    query = f"SELECT SUM({value}) FROM person"
    (measurement,) = released(query).measurements
    assert measurement.lattice is not None
    for age, height in itertools.product(_AGES, _HEIGHTS):
        found = summed(engine, printed(query), age, height)
        assert abs(found) <= measurement.sensitivity
        if measurement.kind == "sum":
            assert found == 0 or measurement.lattice.low <= found <= measurement.lattice.high


@pytest.mark.parametrize(
    ("height", "steps"), [("1.2345", 123), ("1.235", 124), ("'NaN'", 0), ("'Infinity'", 200), ("-3", 0)]
)
def test_reals_are_rounded_to_the_declared_step(
    engine: duckdb.DuckDBPyConnection, height: str, steps: int
) -> None:
    assert summed(engine, printed("SELECT SUM(height) FROM person"), "1", height) == steps


def test_a_bare_column_is_clamped_in_its_own_type() -> None:
    """Before arithmetic could overflow: over all rows, and over those of people with too many, before their weight."""
    sql = printed("SELECT ward, SUM(fee) FROM visit GROUP BY ward")
    clamped = "CASE WHEN v0 BETWEEN -10 AND 50 THEN v0 WHEN v0 < -10 THEN -10 WHEN v0 > 50 THEN 50 END"
    assert sql.count('"fee" AS v0') == 2
    assert sql.count(f"SUM({clamped}) * 100") == sql.count(f"SUM(CAST(({clamped}) * 100 AS BIGINT) * w)") == 1
    assert sql.count("v0") == 2 + 2 * clamped.count("v0")  # and it is read nowhere else


def test_what_is_summed_in_two_parts_is_clamped_once() -> None:
    """On Spark; a sum, a count and both parts read it by its name. Elsewhere so is a real that a pair reads."""
    query = "SELECT AVG(sqrt(age)), SUM(age * age * age * age) FROM person"
    shown = printed(query, "spark")
    for end in ("10.00000000001' AS DOUBLE) END", "100000000 END"):
        assert shown.count(end) == 1
    for name in ("z0", "z1"):
        assert shown.count(f"SUM(shiftright(({name}), 23))") == shown.count(f"SUM(({name}) & 8388607)") > 0
        assert shown.count(f" AS {name}") == 1
    plain = printed(query)
    assert plain.count("10.00000000001' AS DOUBLE) END") == plain.count(" AS z0") == 1
    assert plain.count("SUM(z0)") == 2
    assert plain.count("COUNT(z0)") == 1
    assert "z1" not in plain

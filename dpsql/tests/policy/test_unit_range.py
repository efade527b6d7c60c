"""A `unit_range` that says nothing, or nothing that a row holds, is refused with its place and what to do
(soundness.md 1.42). What counts is whose rows are read: among the laws (`tests/laws/test_unit_range.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.backends import DuckDBBackend
from dpsql.errors import PolicyError
from dpsql.policy import LiveSchema, build_catalog, check, parse_policy
from dpsql.relation.catalog import RowNumber

OWNED = 'unit = { column = "owner", references = "person.id" }'
RANGE = "unit_range = [1, 5]"
POLICY = f"""
database = "duckdb:laws.db"
[privacy]
epsilon = 10
[defaults]
epsilon = 1
[tables.person]
unit = "id"
[tables.visit]
{OWNED}
{RANGE}
max_rows = 3
columns = {{ g = {{}} }}
"""
SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, code TEXT UNIQUE NOT NULL, size DECIMAL(9, 2) UNIQUE NOT NULL);
CREATE TABLE visit (owner INTEGER NOT NULL, n INTEGER NOT NULL, g INTEGER, code TEXT, size DECIMAL(9, 2), id INTEGER PRIMARY KEY,
  UNIQUE (owner, n));
CREATE TABLE pair (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
CREATE TABLE item (visit_id INTEGER, g INTEGER)
"""
NOBODY = "is of the numbers that people have, and no column of this table holds one; take it out"
TEXTS = {
    "a number": (RANGE, "unit_range = 5", "tables.visit.unit_range"),
    "one end": (RANGE, "unit_range = [5]", "write the two ends, [lower, upper], as whole numbers"),
    "three": (RANGE, "unit_range = [1, 2, 3]", "write the two ends, [lower, upper], as whole numbers"),
    "fractions": (RANGE, "unit_range = [1.0, 5.0]", "write the two ends, [lower, upper], as whole numbers"),
    "texts": (RANGE, 'unit_range = ["1", "5"]', "write the two ends, [lower, upper], as whole numbers"),
    "truths": (RANGE, "unit_range = [false, true]", "write the two ends, [lower, upper], as whole numbers"),
    "upside down": (RANGE, "unit_range = [5, 1]", "lower 5 is above upper 1; write [1, 5]"),
    "public": (f"{OWNED}\n{RANGE}\nmax_rows = 3", f"public = true\n{RANGE}", NOBODY),
    "each row": (f"{OWNED}\n{RANGE}\nmax_rows = 3", f'unit = "row"\n{RANGE}', NOBODY),
    "a view": (f"{OWNED}\n{RANGE}\nmax_rows = 3", f"view = true\n{RANGE}", "bounds the rows of a table"),
}  # fmt: skip
"""Refused by the text alone."""
OF_SCHEMA = {
    "a text": (OWNED, 'unit = { column = "code", references = "person.code" }', '"code" leads to a person over other tables'),
    "bounds": ("g = {}", "owner = { bounds = [1, 5] }", '"owner" has bounds or values too'),
    "values": ("g = {}", "owner = { values = [1, 2] }", '"owner" has bounds or values too'),
    "over a table": (
        "columns = { g = {} }",
        f'[tables.item]\nunit = {{ column = "visit_id", references = "visit.id" }}\n{RANGE}\nmax_rows = 3',
        'tables.item.unit_range: "visit_id" leads to a person over other tables, so no row holds the number; take it out',
    ),
}  # fmt: skip
"""Refused once the tables are seen."""


@pytest.fixture
def live() -> Iterator[LiveSchema]:
    with duckdb.connect() as connection:
        connection.execute(SCHEMA)
        with DuckDBBackend.over(connection).snapshot() as snapshot:
            yield snapshot.schema()


@pytest.mark.parametrize("how", TEXTS)
def test_a_range_that_the_text_makes_nothing_of(tmp_path: Path, how: str) -> None:
    old, new, said = TEXTS[how]
    assert old in POLICY
    with pytest.raises(PolicyError, match=re.escape(said)) as refused:
        parse_policy(POLICY.replace(old, new), tmp_path / "laws.toml")
    assert "laws.toml: tables.visit." in str(refused.value)


@pytest.mark.parametrize("ends", [[1, 2**63], [-(2**63) - 1, 0]])
def test_a_range_beyond_what_a_column_holds(tmp_path: Path, ends: list[int]) -> None:
    text = POLICY.replace(RANGE, f"unit_range = {ends}")
    with pytest.raises(PolicyError, match=r"tables\.visit\.unit_range: is beyond 64 bits, .*; write less"):
        parse_policy(text, tmp_path / "laws.toml")


@pytest.mark.parametrize("how", OF_SCHEMA)
def test_a_range_of_what_no_row_holds(tmp_path: Path, live: LiveSchema, how: str) -> None:
    old, new, said = OF_SCHEMA[how]
    assert old in POLICY
    policy = parse_policy(POLICY.replace(old, new), tmp_path / "laws.toml")
    with pytest.raises(PolicyError, match=re.escape(said)):
        build_catalog(policy, live)
    assert any(said in problem for problem in check(policy, live).problems), "and check says the same"


@pytest.mark.parametrize("unit", ["code", "size"])
def test_a_range_of_what_is_no_integer(tmp_path: Path, live: LiveSchema, unit: str) -> None:
    text = POLICY.replace('unit = "id"', f'unit = "{unit}"').replace(
        OWNED, f'unit = {{ column = "{unit}", references = "person.{unit}" }}'
    )
    said = f'tables.visit.unit_range: is of one integer, and people are told apart by "{unit}"; take it out'
    with pytest.raises(PolicyError, match=re.escape(said)):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), live)


def test_a_range_of_several_columns(tmp_path: Path, live: LiveSchema) -> None:
    head, _, _ = POLICY.partition("[tables.person]")
    text = f'{head}[tables.pair]\nunit = ["a", "b"]\n{RANGE}'
    said = 'tables.pair.unit_range: is of one integer, and people are told apart by "a", "b"; take it out'
    with pytest.raises(PolicyError, match=re.escape(said)):
        build_catalog(parse_policy(text, tmp_path / "laws.toml"), live)


@pytest.mark.parametrize("more", ["", 'row_number = "n"'])
def test_a_range_is_taken_beside_numbers_too(tmp_path: Path, live: LiveSchema, more: str) -> None:
    policy = parse_policy(POLICY.replace(RANGE, f"{RANGE}\n{more}"), tmp_path / "laws.toml")
    unit = build_catalog(policy, live).tables["visit"].unit
    assert unit is not None
    assert unit.range == (1, 5)
    assert unit.row_number == (RowNumber("n", 3) if more else None)
    assert not check(policy, live).problems

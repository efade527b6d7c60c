"""Names and values as SQL text: what a reader of the text would take for more than a name or a value is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.plan.dialects.quote import decimal, identifier, literal, table_name, text
from dpsql.relation.expressions import Literal, LiteralValue
from dpsql.relation.types import BIGINT, BOOLEAN, DATE, DOUBLE, NUMERIC, TEXT, TIMESTAMP, SqlType

HOSTILE = ("a'b", "''", "x'; DROP TABLE t; --", 'say "no"', "\\", "a\nb", "")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_text_is_read_back(value: str) -> None:
    assert duckdb.sql(f"SELECT {text(value)}").fetchall() == [(value,)]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_a_name_is_read_back(name: str) -> None:
    assert duckdb.sql(f"SELECT 1 AS {identifier(name)}").columns == [name]


def test_a_path() -> None:
    assert table_name(("hall", 'od"d')) == '"hall"."od""d"'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(5), "5"),
        (Fraction(-1, 100), "-0.01"),
        (Fraction(1, 8), "0.125"),
        (Fraction(3, 40), "0.075"),
        (Fraction(1, 3), None),
        (Fraction(1, 10**30), "0." + "0" * 29 + "1"),
        (Fraction(1, 10**31), None),
    ],
)
def test_decimals_are_exact_or_none(value: Fraction, shown: str | None) -> None:
    assert decimal(value) == shown
    assert shown is None or Fraction(shown) == value


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        (BIGINT, None, "NULL"),
        (BOOLEAN, True, "TRUE"),
        (BIGINT, -5, "(-5)"),  # `x - -5` would begin a comment
        (NUMERIC, Fraction(1, 4), "0.25"),
        (NUMERIC, Fraction(1, 3), "CAST('0.3333333333333333' AS DOUBLE)"),
        (DOUBLE, 0.5, "CAST('0.5' AS DOUBLE)"),
        (DOUBLE, float("inf"), "CAST('inf' AS DOUBLE)"),
        (TEXT, "it's", "'it''s'"),
        (DATE, 0, "DATE '1970-01-01'"),
        (TIMESTAMP, 1_000_000, "TIMESTAMP '1970-01-01 00:00:01'"),
    ],
)
def test_literals(type_: SqlType, value: LiteralValue, shown: str) -> None:
    assert literal(Literal(type_, value)) == shown


_ROOT = Path(dpsql.__file__).parent
_SEALED = ("postprocess/", "plan/measures/formulas.py")
"""What is printed for the sealed engine, which is DuckDB."""
_OUR_OWN = ("engine/preview.py", "studio/report.py", "studio/pricing.py", "engine/bounds.py")
"""Statements that our own parser reads, as an analyst's."""
_OF_NO_ANALYST = (
    "backends/duckdb_files.py", "backends/prepared_rows.py", "backends/verify_claims.py", "engine/stored.py", "engine/audit/",
)  # fmt: skip
"""Statements in which no analyst's text is, of views over files, copies, checks, made-up people: SQL that all engines that
run them read alike."""


def _imported() -> Iterator[tuple[str, str]]:
    """Yield what modules import of `quote`, but for tests and dialects."""
    for path in sorted(_ROOT.rglob("*.py")):
        place = path.relative_to(_ROOT).as_posix()
        if place.startswith(("tests/", "plan/dialects/")):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith("dialects.quote"):
                yield from ((place, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                assert "quote" not in [
                    a.name for a in node.names if "dialects" in (getattr(node, "module", "") or "")
                ], place


def test_what_the_owners_engine_reads_is_written_by_its_dialect_alone() -> None:
    found = list(_imported())
    assert {name for place, name in found if place.startswith(_SEALED)} >= {"text", "literal"}, "found at all"
    for place, name in found:
        if name != "decimal" and not place.startswith((*_SEALED, *_OF_NO_ANALYST)):
            # a column's values and a table's name, in a statement of ours
            is_written = name in ("literal", "table_name") and place == "engine/bounds.py"
            assert name == "identifier" or is_written, f"{place} imports {name}"
            assert place in _OUR_OWN, f"{place} imports {name}"

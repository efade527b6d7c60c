"""What is too large, or out of place, is refused: no value is put right in silence."""

from __future__ import annotations

import pytest

from dpsql.system_catalog import CatalogRefusal, SystemCatalog

from .dataset import FACTS

_ANSWERED = (
    ("SELECT COUNT(*) FROM generate_series(1, 1000000)", [(1_000_000,)]),
    ("SELECT * FROM generate_series(2000000, 2000002)", [(2_000_000,), (2_000_001,), (2_000_002,)]),
    ("SELECT * FROM generate_series(-3000000, -2999999)", [(-3_000_000,), (-2_999_999,)]),
    ("SELECT * FROM generate_series(9223372036854775806, 9223372036854775807)", [(2**63 - 2,), (2**63 - 1,)]),
    ("SELECT * FROM generate_series(0, 9000000, 4000000)", [(0,), (4_000_000,), (8_000_000,)]),
    ("SELECT * FROM generate_series(5, 1, -2)", [(5,), (3,), (1,)]),
    ("SELECT * FROM generate_series(9000000, 1)", []),
    ("SELECT * FROM generate_series(1, 3) LIMIT 2 OFFSET 1", [(2,), (3,)]),
    ("SELECT * FROM generate_series(1, 2) LIMIT NULL OFFSET NULL", [(1,), (2,)]),
    ("SELECT substr('abc', -1, 3), substring('abc', -1), current_schema", [("a", "abc", "public")]),
    ("SELECT substr('abc', 0, 2), substr('abc', 2, 9), substr('abc', NULL), current_schema",
     [("a", "bc", None, "public")]),
    ("SELECT split_part('a,b', ',', 2), split_part('a,b', ',', -2), current_schema", [("b", "a", "public")]),
    ("SELECT array_length(current_schemas(true), 1), array_length(current_schemas(true), 2)", [(2, None)]),
    ("SELECT CAST(1.26::numeric(3, 1) AS int8), 12.5::numeric(2), current_schema", [(1, 13, "public")]),
)  # fmt: skip
_REFUSED = (
    ("SELECT COUNT(*) FROM generate_series(1, 1000001)", "54000", "generate_series gives at most 1000000 rows"),
    ("SELECT COUNT(*) FROM generate_series(1, 2000000)", "54000", "generate_series gives at most 1000000 rows"),
    ("SELECT * FROM pg_am, generate_series(-9223372036854775807, 9223372036854775807)", "54000",
     "generate_series gives at most 1000000 rows"),
    ("SELECT COUNT(*) FROM generate_series(1, 5, 0)", "22023", "step size cannot equal zero"),
    ("SELECT * FROM generate_series(1, 200000)", "54000",
     "a query of the system catalog gives at most 100000 rows"),
    ("SELECT * FROM pg_am LIMIT -1", "22023", "LIMIT must not be negative"),
    ("SELECT * FROM pg_am OFFSET -1", "22023", "OFFSET must not be negative"),
    ("SELECT substr('abc', 2, -1), current_schema", "22023", "negative substring length not allowed"),
    ("SELECT split_part('a,b', ',', 0), current_schema", "22023", "field position must not be zero"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "rows"), _ANSWERED, ids=[sql for sql, _ in _ANSWERED])
def test_answers_are_postgres_own(catalog: SystemCatalog, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert catalog.run(sql, FACTS)[1] == rows


@pytest.mark.parametrize(("sql", "sqlstate", "message"), _REFUSED, ids=[sql for sql, _, _ in _REFUSED])
def test_what_is_out_of_range_is_refused(
    catalog: SystemCatalog, sql: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(CatalogRefusal) as refused:
        catalog.run(sql, FACTS)
    assert (refused.value.sqlstate, refused.value.message) == (sqlstate, message)


@pytest.mark.parametrize("word", ["LIMIT", "OFFSET"])
def test_a_negative_count_of_rows_by_parameter(catalog: SystemCatalog, word: str) -> None:
    with pytest.raises(CatalogRefusal, match=f"{word} must not be negative"):
        catalog.run(f"SELECT * FROM pg_am {word} $1", FACTS, [-1])

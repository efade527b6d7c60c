"""Predicates that can never both be true, by disjoint values or ranges of one same expression."""

from __future__ import annotations

import pytest

from dpsql.plan.measures.disjoint import are_disjoint
from dpsql.tests.sql.campus import where


@pytest.mark.parametrize(
    ("one", "other", "exclusive"),
    [
        ("enrolled = 1", "enrolled = 2", True),
        ("enrolled = 1", "enrolled = 1", False),
        ("major IN ('a', 'b')", "major IN ('c')", True),
        ("major IN ('a', 'b')", "major = 'b'", False),
        ("enrolled < 5", "enrolled >= 5", True),
        ("enrolled <= 5", "enrolled >= 5", False),  # 5 itself
        ("5 > enrolled", "5 < enrolled", True),
        ("5 > enrolled", "4 < enrolled", False),
        ("enrolled BETWEEN 1 AND 4", "enrolled = 5", True),
        ("enrolled = 1", "small = 2", False),  # of different columns nothing follows
        ("enrolled + 1 = 1", "enrolled + 1 = 2", True),
        ("enrolled = 1 OR enrolled = 3", "enrolled = 2", False),  # exclusive, but not seen: it costs a mask
        ("enrolled = 1 AND active", "enrolled = 2", True),
        ("enrolled < NULL", "enrolled > 5", False),
        ("active", "NOT active", False),
    ],
)
def test_exclusive(one: str, other: str, exclusive: bool) -> None:
    left, right = where(one), where(other)
    assert are_disjoint(left, right) is exclusive
    assert are_disjoint(right, left) is exclusive

"""Filters of one statement that no row passes both of: they have a mask each, and no joint one."""

from __future__ import annotations

import pytest

from dpsql.plan.privacy.contradiction import Filter
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
        ("5 > enrolled", "4 < enrolled", True),  # no whole number is between
        ("5 > gpa", "4 < gpa", False),
        ("enrolled BETWEEN 1 AND 4", "enrolled = 5", True),
        ("enrolled = 1", "small = 2", False),  # of different columns nothing follows
        ("enrolled + 1 = 1", "enrolled + 1 = 2", True),
        ("enrolled = 1 OR enrolled = 3", "enrolled = 2", True),
        ("enrolled = 1 OR enrolled = 3", "enrolled = 3", False),
        ("enrolled = 1 AND active", "enrolled = 2", True),
        ("enrolled < NULL", "enrolled > 5", True),
        ("active", "NOT active", True),
        ("active AND enrolled = 1", "NOT active", True),
        ("active", "NOT active OR enrolled = 1", False),
        ("name IS NULL", "name = 'a'", True),
        ("gpa > 3", "NOT gpa > 3", True),
    ],
)
def test_exclusive(one: str, other: str, exclusive: bool) -> None:
    left, right = where(one), where(other)
    assert Filter(left).is_disjoint(Filter(right)) is exclusive
    assert Filter(right).is_disjoint(Filter(left)) is exclusive

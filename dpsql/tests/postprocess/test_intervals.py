"""Intervals of an answer: their months, days and microseconds come through."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dpsql.pgwire.oids import Interval as Sent
from dpsql.postprocess.rows import read_interval


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 year 2 mons 3 days 04:05:06.5", (14, 3, 14_706_500_000)),
        ("-1 years -2 mons +3 days -00:00:01", (-14, 3, -1_000_000)),
        ("00:00:00", (0, 0, 0)),
        ("1 day", (0, 1, 0)),
    ],
)
def test_an_interval_keeps_its_three_numbers(text: str, parts: tuple[int, int, int]) -> None:
    found = read_interval(text)
    assert found is not None
    assert found.parts == parts
    assert found == timedelta(
        days=int(parts[0] / 12) * 365 + (abs(parts[0]) % 12) * (30 if parts[0] > 0 else -30) + parts[1],
        microseconds=parts[2],
    )
    assert Sent.of(found) == Sent(*parts)


def test_what_is_no_interval_is_none() -> None:
    assert read_interval(None) is None
    assert read_interval("2000000000 days") is None

"""Public relations beside private rows: read in place, or drawn first as rows or as one value."""

from __future__ import annotations

import pytest

from dpsql.errors import Refusal
from dpsql.plan.privacy.public_inputs import is_single, static_range
from dpsql.relation.expressions import Scalar
from dpsql.relation.types import DOUBLE, INTERVAL, TEXT
from dpsql.tests.plan.planned import bound, planned, printed


def beside(item: str) -> str:
    (release,) = planned(f"SELECT COUNT(*) FROM visit v JOIN {item} ON w.name = v.ward").releases
    source = release.release.rows.items[1].source
    assert (source.table is None) is (source.intermediate is not None)
    return "drawn first" if source.table is None else "in place"


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("ward w", "in place"),
        ("(SELECT name FROM ward WHERE floor = 2) w", "in place"),
        ("(SELECT name FROM ward GROUP BY name) w", "drawn first"),
        ("(SELECT DISTINCT name FROM ward) w", "drawn first"),
        ("(SELECT name FROM ward ORDER BY beds LIMIT 3) w", "drawn first"),
        ("(SELECT name FROM ward WHERE beds > (SELECT AVG(beds) FROM ward)) w", "drawn first"),
    ],
)
def test_how_public_rows_come_in(source: str, how: str) -> None:
    assert beside(source) == how


def test_what_is_drawn_travels_as_parameters() -> None:
    sql = printed("SELECT COUNT(*) FROM visit v JOIN (SELECT DISTINCT name FROM ward) w ON w.name = v.ward")
    assert '"main"."ward"' not in sql
    assert "unnest(" in sql


def test_keys_of_drawn_rows_that_travel_exactly_stay_keys() -> None:
    for source, unique in (
        ("SELECT DISTINCT name FROM ward", 1),
        ("SELECT DISTINCT name, beds / 2.0 AS h FROM ward", 0),
    ):
        (release,) = planned(f"SELECT COUNT(*) FROM visit v JOIN ({source}) w ON w.name = v.ward").releases
        assert len(release.release.rows.items[1].source.keys) == unique


def test_a_value_has_a_range_that_it_does_not_tell() -> None:
    relation = bound("SELECT AVG(beds) FROM ward")
    assert static_range(Scalar(DOUBLE, relation), relation) == (-(2**62), 2**62)
    assert static_range(Scalar(TEXT, relation), relation) == (None, None)
    with pytest.raises(Refusal, match="type cannot be used"):
        static_range(Scalar(INTERVAL, relation), relation)


@pytest.mark.parametrize(
    ("sql", "single"),
    [
        ("SELECT AVG(beds) FROM ward", True),
        ("SELECT AVG(beds) FROM ward GROUP BY floor", False),
        ("SELECT beds FROM ward ORDER BY beds LIMIT 1", True),
        ("SELECT beds FROM ward LIMIT 2", False),
        ("SELECT beds FROM ward", False),
        ("VALUES (1)", True),
        ("VALUES (1), (2)", False),
    ],
)
def test_at_most_one_row_whatever_is_released(sql: str, single: bool) -> None:
    assert is_single(bound(sql)) is single

"""The releases of a block, and no key by which a group is one person's."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.tests.plan.planned import planned, refused, released


@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("person_id", "visit"),
        ("person_id + 1", "visit"),
        ("email", "person"),
        ("lower(email)", "person"),
        ("email || city", "person"),
        ("p.email", "visit v JOIN person p ON p.id = v.person_id"),
        ("b.id", "bill b"),
        ("CASE WHEN id > 3 THEN 'x' ELSE 'y' END", "person"),  # computed from the owner, be it of two values
        ("id % 2000", "person"),
        ("id % 4 + id", "person"),
        ("id % age", "person"),
        ("md5(id::text)", "person"),
        ("left(md5(id::text), 3)", "person"),
        ("left(md5(id::text), -1)", "person"),
        ("substr(md5(id::text), 2)", "person"),
        ("left(id::text, 1)", "person"),  # of few people that is one each
    ],
)
def test_a_key_of_one_person_is_refused(key: str, source: str) -> None:
    assert refused(f"SELECT {key}, COUNT(*) FROM {source} GROUP BY 1")[0] == "PV005"


def test_a_key_that_many_share_is_not() -> None:
    sql = "SELECT left(email, 1), COUNT(*) FROM person GROUP BY 1"
    assert planned(sql).delta == Fraction(1, 1000)


HEX = tuple("0123456789abcdef")


@pytest.mark.parametrize(
    ("key", "source", "groups"),
    [
        ("id % 3", "person", (-2, -1, 0, 1, 2)),
        ("abs(id % 3)", "person", (0, 1, 2)),
        ("mod(person_id, 2)", "visit", (-1, 0, 1)),
        ("CASE WHEN id % 2 = 0 THEN 'A' ELSE 'B' END", "person", ("A", "B")),
        ("left(md5(id::text), 1)", "person", HEX),
        ("right(md5(person_id::text), 1)", "visit", HEX),
        ("substr(md5(id::text), 5, 1)", "person", HEX),
        ("CASE WHEN left(md5(person_id::text), 1) < '8' THEN 'A' ELSE 'B' END", "visit", ("A", "B")),
        ("id % 3", "(SELECT id FROM person WHERE id >= 0) p", (0, 1, 2)),
    ],
)
def test_buckets_of_people_are_listed_and_each_has_one(
    key: str, source: str, groups: tuple[object, ...]
) -> None:
    """A bucket is a function of the owner, so that nobody is in two: R rows of a person move it, 6 visits, 1 of its own."""
    release = released(f"SELECT {key}, COUNT(*) FROM {source} GROUP BY 1")
    assert release.groups == tuple((value,) for value in groups)
    assert release.delta == 0
    (measurement,) = release.measurements
    assert release.bounding.groups == 1
    assert measurement.sensitivity == (6 if source == "visit" else 1) * measurement.denominator


def test_grouping_sets_over_declared_keys_are_one_release() -> None:
    """The total is the sum of the 4 wards: nothing is measured for it (soundness.md 1.18)."""
    plan = planned("SELECT ward, COUNT(*) FROM visit GROUP BY ROLLUP (ward)")
    assert [(release.release.share, release.losses) for release in plan.releases] == [((1, 1), (1,))]


def test_each_set_of_found_keys_is_a_release_with_its_part_of_the_block() -> None:
    """2 groups of notes and the 1 of all rows: a person touches 3, and epsilon is shared 2 to 1 (soundness.md 1.7)."""
    plan = planned("SELECT note, COUNT(*) FROM visit GROUP BY ROLLUP (note)")
    assert [release.release.share for release in plan.releases] == [(2, 3), (1, 3)]
    (notes, total) = (sum(release.losses) for release in plan.releases)
    assert notes == 2 * total
    assert 1 - Fraction(1, 10**8) < notes + total <= 1  # each is cut down to a billionth


@pytest.mark.parametrize(
    ("sets", "keys"),
    [
        ("CUBE (ward, urgent)", [2]),
        ("GROUPING SETS ((ward), (urgent), ())", [2]),  # 12 cells in one group, or 3 with 1/2 of epsilon
        ("GROUPING SETS ((ward), (days), ())", [1, 1]),  # 40 cells in one group, or 4
        ("GROUPING SETS ((ward, days), (days), (note))", [1, 2]),
    ],
)
def test_what_is_measured_for_grouping_sets(sets: str, keys: list[int]) -> None:
    used = ", ".join(key for key in ("ward", "urgent", "days", "note") if key in sets)
    plan = planned(f"SELECT {used}, COUNT(*) FROM visit GROUP BY {sets}")
    assert sorted(len(release.release.keys) for release in plan.releases) == keys


def test_distinct_is_a_release_of_keys() -> None:
    (release,) = planned("SELECT DISTINCT note FROM visit").releases
    assert release.release.aggregates == ()
    assert release.tau is not None
    assert [measurement.kind for measurement in release.measurements] == ["units"]

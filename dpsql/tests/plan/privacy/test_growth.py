"""Joins that multiply one person's rows: both sides are cut before, by public numbers that are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.errors import Refusal
from dpsql.plan.planner import check_grown
from dpsql.plan.privacy.growth import MAX_GROWN, sum_of_reaches
from dpsql.plan.privacy.rows import LINEAR, Fan, Reach
from dpsql.tests.plan.planned import planned, printed, refused, released, rows_of

BOTH = "SELECT COUNT(*) FROM visit v JOIN bill b ON b.person_id = v.person_id"


def cuts(sql: str) -> dict[str, int]:
    """Return how many rows of one person each source that is cut gives."""
    items = rows_of(sql).items
    return {item.source.name: item.source.most for item in items if item.source.most is not None}


def test_what_multiplies_is_cut_on_both_sides() -> None:
    assert cuts(BOTH) == {"visit": 3 * 2, "bill": 2 * 1}
    assert rows_of(BOTH).reach == Reach(12)
    (work,) = released(BOTH).works
    assert (work.most, work.fans) == (12, ())
    sql = printed(BOTH)
    assert "rn <= 6" in sql
    assert "rn <= 2" in sql


def test_what_does_not_multiply_is_not_cut() -> None:
    assert cuts("SELECT COUNT(*) FROM visit v JOIN card c ON c.person_id = v.person_id") == {}
    assert cuts("SELECT COUNT(*) FROM visit v JOIN ward w ON w.name = v.ward") == {}
    by_key = "SELECT COUNT(*) FROM visit v JOIN visit w ON v.person_id = w.person_id AND v.no = w.no"
    assert cuts(by_key) == {}
    assert released(by_key).works == ()


def test_public_rows_that_no_key_holds_to_one_are_counted() -> None:
    """Beside them a person's rows are cut, and the engine says how many match before anything is charged."""
    sql = "SELECT COUNT(*) FROM visit v JOIN price p ON p.ward = v.ward"
    assert cuts(sql) == {"visit": 6}
    (work,) = released(sql).works
    assert work.most == 6
    (fan,) = work.fans
    assert 'FROM "main"."price"' in fan.sql
    assert "visit" not in fan.sql


def test_an_exists_that_looks_at_all_pairs_is_bounded_as_a_join() -> None:
    pairs = "SELECT COUNT(*) FROM visit v WHERE EXISTS (SELECT 1 FROM bill b WHERE b.person_id = v.person_id AND {})"
    assert released(pairs.format("b.id > v.no")).works[-1].most == 12
    assert released(pairs.format("b.id = v.no")).works == ()


def test_more_than_the_most_is_refused() -> None:
    chain = "".join(f" JOIN visit v{i} ON v{i}.person_id = v.person_id" for i in range(7))
    assert 6**7 < MAX_GROWN < 6**8
    assert refused(f"SELECT COUNT(*) FROM visit v{chain}")[0] == "PV201"
    assert refused("SELECT COUNT(*) FROM visit v JOIN remark r ON r.person_id = v.person_id") == (
        "PV102",
        "remark",
    )


def test_what_the_releases_of_a_statement_make_adds_up() -> None:
    """Three times 6^7 rows of one person are below a million, four times are not, though each release is."""
    chain = "".join(f" JOIN visit v{i} ON v{i}.person_id = v.person_id" for i in range(6))
    one = f"(SELECT COUNT(*) FROM visit v{chain} WHERE v.no > {{}})"
    assert 3 * 6**7 < MAX_GROWN < 4 * 6**7
    assert refused("SELECT " + ", ".join(one.format(i) for i in range(4)))[0] == "PV201"
    assert len(planned("SELECT " + ", ".join(one.format(i) for i in range(3))).releases) == 3


def test_groups_that_are_found_are_rows_of_one_person_too() -> None:
    release = released("SELECT note, COUNT(*) FROM visit GROUP BY note")
    many = replace(release, bounding=replace(release.bounding, groups=MAX_GROWN))
    assert release.found_of_one == release.bounding.groups > 0
    check_grown([many], lambda work: work.most)
    with pytest.raises(Refusal):
        check_grown([many, release], lambda work: work.most)
    check_grown([many, released("SELECT COUNT(*) FROM visit")], lambda work: work.most)


def test_reaches_add_up() -> None:
    fan = Fan((), (), ())
    assert sum_of_reaches([Reach(3), Reach(4)]) == Reach(7)
    assert sum_of_reaches([Reach(3, (fan,)), Reach(4, (fan,))]) == Reach(7, (fan,))  # 3f + 4f = 7f
    assert sum_of_reaches([Reach(3), LINEAR]) == LINEAR

"""Where a subquery may stand, and where its join goes."""

from __future__ import annotations

import pytest

from dpsql.relation.expressions import Field
from dpsql.relation.relations import Join, Scan, ends_in

from .campus import refused, relation
from .joins import WIDTH, below, call, column


@pytest.mark.parametrize(
    "inside",
    [
        "SELECT max(id) FROM course",
        "SELECT count(*) FROM course c WHERE c.major = s.major",
        "SELECT id FROM course c WHERE c.major = s.major GROUP BY id",
        "SELECT 1 FROM (SELECT major FROM course LIMIT 3) c LEFT JOIN hall.room r ON r.id = s.enrolled",
        "SELECT 1 FROM (SELECT id FROM course c WHERE c.major = s.major LIMIT 3) c WHERE c.id > 2",
        "SELECT 1 FROM course c WHERE c.major = s.major UNION ALL SELECT 2",
        "SELECT 1 FROM course c WHERE c.major = s.major OFFSET 1",
        "WITH c AS (SELECT 1 FROM course c WHERE c.major = s.major) SELECT 1 FROM c",
        "SELECT 1 FROM hall.room r WHERE s.enrolled IN (SELECT id FROM course)",
    ],
)
def test_correlation_below_what_does_not_commute_is_refused(inside: str) -> None:
    assert refused(f"SELECT 1 FROM student s WHERE EXISTS ({inside})")[0] == "PV004"


def test_conditions_without_subqueries_come_first_and_each_subquery_then() -> None:
    node = below(
        "SELECT 1 FROM student s WHERE EXISTS (SELECT 1 FROM course c WHERE c.major = s.major) AND gpa > 3 "
        "AND enrolled IN (SELECT id FROM course) AND active"
    )
    assert ends_in(node, "where")
    second = node.below
    assert isinstance(second, Join)
    assert second.word == "IN"
    assert ends_in(second.left, "where")
    first = second.left.below
    assert isinstance(first, Join)
    assert first.word == "EXISTS"
    assert first.left == below("SELECT 1 FROM student s WHERE active AND gpa > 3")


def test_one_subquery_written_twice_is_joined_once() -> None:
    exists = "EXISTS (SELECT 1 FROM course c WHERE c.major = s.major)"
    node = below(f"SELECT {exists}, CASE WHEN {exists} THEN 1 END FROM student s")
    assert isinstance(node, Join)
    assert isinstance(node.left, Scan)


def test_stars_and_names_do_not_see_what_is_joined() -> None:
    bound = relation("SELECT * FROM course c WHERE EXISTS (SELECT 1 FROM hall.room r WHERE r.id = c.id)")
    assert [output.name for output in bound.columns] == ["id", "major", "Title"]


def test_inside_an_aggregate_a_subquery_is_joined_below_it() -> None:
    node = below(
        "SELECT major, sum(CASE WHEN enrolled IN (SELECT id FROM course) THEN 1 ELSE 0 END) FROM student GROUP BY major"
    )
    assert ends_in(node, "group")
    assert isinstance(node.below, Join)
    assert node.below.kind == "mark"


def test_beside_an_aggregate_a_subquery_is_joined_above_it_on_group_keys() -> None:
    text = "SELECT major, count(*) FROM student s GROUP BY major HAVING EXISTS (SELECT 1 FROM course c WHERE c.major = {})"
    node = below(text.format("s.major"))
    assert ends_in(node, "where")
    assert isinstance(node.below, Join)
    assert ends_in(node.below.left, "group")
    assert node.below.condition == call("eq", column(node.below, 3), column(node.below, 0))
    assert refused(text.format("s.name")) == ("42803", "s.name)")


def test_in_on_of_an_inner_join_and_of_no_other() -> None:
    text = "SELECT r.id FROM student s {} JOIN course c ON s.major = c.major AND EXISTS (SELECT 1 FROM hall.room h WHERE h.id = c.id) JOIN hall.room r ON r.id = c.id"
    bound = relation(text.format(""))
    assert ends_in(bound, "outputs")
    assert isinstance(bound.below, Join)
    assert ends_in(bound.below.left, "where")
    assert bound.exprs[0] == Field(bound.exprs[0].type, WIDTH + 3 + 1)
    for side in ("LEFT", "RIGHT", "FULL"):
        assert refused(text.format(side))[0] == "0A000"


def test_a_subquery_is_no_group_key() -> None:
    exists = "EXISTS (SELECT 1 FROM course c WHERE c.major = s.major)"
    for text in (f"count(*) FROM student s GROUP BY {exists}", f"{exists} AS e FROM student s GROUP BY e"):
        assert refused(f"SELECT {text}")[0] == "0A000"
    assert refused(f"SELECT {exists}, count(*) FROM student s GROUP BY ALL")[0] == "0A000"

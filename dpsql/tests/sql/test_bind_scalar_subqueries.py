"""Scalar subqueries with outer columns: the left join with groups that they become, and what is refused."""

from __future__ import annotations

import pytest

from dpsql.relation.expressions import Call, Field, Literal, Scalar
from dpsql.relation.relations import Scan, ends_in

from .campus import refused, relation
from .joins import WIDTH, call, column, scalar


def test_a_correlated_scalar_is_a_left_join_with_groups() -> None:
    value, join = scalar("(SELECT max(seats) FROM hall.room r WHERE r.id = s.enrolled AND r.seats > 3)")
    assert ends_in(join.right, "group")
    assert join.right.group is not None
    assert ends_in(join.right.below, "where")
    assert join.right.group.keys == (Field(join.right.group.keys[0].type, 0),)
    assert join.right.group.sets == ((0,),)
    assert join.condition == call("eq", column(join, WIDTH), column(join, 3))
    assert value == column(join, WIDTH + 1)


@pytest.mark.parametrize("item", ["count(*)", "count(seats)", "coalesce(sum(seats), 0)", "count(*) > 0"])
def test_an_aggregate_over_no_rows_may_have_a_value(item: str) -> None:
    value, join = scalar(f"(SELECT {item} FROM hall.room r WHERE s.enrolled = r.id)")
    assert isinstance(value, Call)
    assert value.function == "case"
    assert value.args[0] == call("is_null", column(join, WIDTH))
    assert value.args[2] == column(join, WIDTH + 1)
    assert not any(isinstance(part, Field) for part in getattr(value.args[1], "args", (value.args[1],)))
    if item.startswith("count(") and not item.endswith("0"):
        assert value.args[1] == Literal(value.type, 0)


def test_a_value_that_is_null_over_no_rows_is_the_column() -> None:
    value, join = scalar("(SELECT 0.5 * sum(seats) FROM hall.room r WHERE r.id = s.enrolled)")
    assert value == column(join, WIDTH + 1)
    assert ends_in(join.right, "outputs")
    assert ends_in(join.right.below, "group")


def test_several_equalities_are_several_keys() -> None:
    _, join = scalar("(SELECT max(r.seats) FROM hall.room r WHERE r.id = s.enrolled AND s.big = r.seats + 1)")
    assert ends_in(join.right, "group")
    assert join.right.group is not None
    assert len(join.right.group.keys) == 2
    assert join.right.group.sets == ((0, 1),)


def test_an_exact_key_beside_a_floating_point_value_is_one_too() -> None:
    """Two exact numbers may be one double: they have to be one group, or a row would find two."""
    _, join = scalar("(SELECT max(r.big) FROM student r WHERE r.big = s.gpa)")
    assert ends_in(join.right, "group")
    assert join.right.group is not None
    assert str(join.right.group.keys[0].type) == "double precision"


def test_an_uncorrelated_scalar_stays_as_it_is() -> None:
    bound = relation("SELECT (SELECT max(seats) FROM hall.room) FROM student")
    assert ends_in(bound, "outputs")
    assert isinstance(bound.exprs[0], Scalar)
    assert isinstance(bound.below, Scan)


@pytest.mark.parametrize(
    "item",
    [
        "(SELECT seats FROM hall.room r WHERE r.id = s.enrolled)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id > s.enrolled)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id = s.enrolled OR r.id = 3)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id + s.enrolled = 3)",
        "(SELECT max(seats) FROM hall.room r WHERE s.enrolled = 3)",
        "(SELECT max(seats) + s.big FROM hall.room r WHERE r.id = s.enrolled)",
        "(SELECT max(seats + s.big) FROM hall.room r WHERE r.id = s.enrolled)",
        "(SELECT sum(s.big) FROM hall.room r)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id = s.enrolled GROUP BY r.id)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id = s.enrolled HAVING count(*) > 1)",
        "(SELECT max(seats) FROM hall.room r WHERE r.id = s.enrolled LIMIT 0)",
        "(SELECT max(m) FROM (SELECT DISTINCT seats AS m FROM hall.room r WHERE r.id = s.enrolled) x)",
        "(SELECT gpa)",
    ],
)
def test_other_correlated_scalars_are_refused(item: str) -> None:
    assert refused(f"SELECT {item} FROM student s")[0] == "PV004"


def test_distinct_rows_of_a_subquery_stay_distinct_where_they_are_counted() -> None:
    _, join = scalar(
        "(SELECT count(*) FROM (SELECT DISTINCT id, seats FROM hall.room) r WHERE r.id = s.enrolled)"
    )
    assert ends_in(join.right, "group")
    assert join.right.group is not None
    assert ends_in(join.right.below, "distinct")

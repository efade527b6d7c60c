"""EXISTS and IN with a query: the mark joins that they become, and what is refused."""

from __future__ import annotations

import pytest

from dpsql.relation.expressions import TRUE, Call
from dpsql.relation.relations import Join, Scan, ends_in
from dpsql.sql.scope import first_outer

from .campus import refused, relation
from .joins import WIDTH, below, call, column, mark_of, marked

# --- EXISTS ----------------------------------------------------------------------------------------------


def test_exists_is_a_mark_on_the_outer_conditions() -> None:
    predicate, join = marked("EXISTS (SELECT * FROM course c WHERE c.major = s.major AND c.id > 3)")
    assert predicate == mark_of(join)
    assert join.word == "EXISTS"
    assert isinstance(join.left, Scan)
    assert ends_in(join.right, "where")
    assert isinstance(join.right.below, Scan)
    assert join.condition == call("eq", column(join, WIDTH + 1), column(join, 2))
    assert len(join.columns) == WIDTH + 1


def test_not_exists_is_not_of_the_mark() -> None:
    predicate, join = marked("NOT EXISTS (SELECT 1 FROM course c WHERE c.major = s.major)")
    assert predicate == call("not", mark_of(join))


def test_a_condition_may_mix_inner_and_outer_columns_in_any_form() -> None:
    _, join = marked("EXISTS (SELECT 1 FROM course c WHERE c.id + s.enrolled > 3 OR s.active)")
    assert isinstance(join.right, Scan)
    assert isinstance(join.condition, Call)
    assert join.condition.function == "or"


@pytest.mark.parametrize(
    "inside",
    [
        "SELECT DISTINCT c.id FROM course c WHERE c.major = s.major",
        "SELECT c.id, s.gpa FROM course c WHERE c.major = s.major ORDER BY c.id, s.gpa LIMIT 1",
        "SELECT row_number() OVER () FROM course c WHERE s.major = c.major",
        "SELECT 1 FROM (SELECT major FROM course) c WHERE c.major = s.major",
        "SELECT 1 FROM (SELECT major FROM course WHERE major = s.major ORDER BY 1) c",
        "SELECT (SELECT max(seats) FROM hall.room r WHERE r.id = c.id) FROM course c WHERE c.major = s.major",
        "(SELECT 1 FROM course c WHERE c.major = s.major)",
    ],
)
def test_what_does_not_matter_to_exists_is_left_out(inside: str) -> None:
    node = below(f"SELECT 1 FROM student s WHERE EXISTS ({inside})")
    plain = below("SELECT 1 FROM student s WHERE EXISTS (SELECT 1 FROM course c WHERE c.major = s.major)")
    assert ends_in(node, "where")
    assert ends_in(plain, "where")
    assert isinstance(node.below, Join)
    assert isinstance(node.below.right, Scan) or ends_in(node.below.right, "outputs")
    assert node.predicate == plain.predicate


def test_an_uncorrelated_exists_has_no_condition() -> None:
    _, join = marked("EXISTS (SELECT 1 FROM course)")
    assert join.condition == TRUE


def test_conditions_in_on_of_an_inner_join_are_taken_out() -> None:
    _, join = marked("EXISTS (SELECT 1 FROM course c JOIN hall.room r ON c.id = r.id AND r.seats > s.big)")
    assert isinstance(join.right, Join)
    assert join.condition == call("gt", column(join, WIDTH + 4), column(join, 8))


# --- IN --------------------------------------------------------------------------------------------------


def test_in_is_a_mark_on_equality() -> None:
    predicate, join = marked("s.enrolled IN (SELECT DISTINCT id FROM course ORDER BY id)")
    assert predicate == mark_of(join)
    assert join.word == "IN"
    assert isinstance(join.right, Scan)
    assert join.condition == call("eq", column(join, 3), column(join, WIDTH))


def test_in_and_exists_of_one_meaning_are_one_relation() -> None:
    assert below("SELECT 1 FROM student s WHERE enrolled IN (SELECT id FROM course c WHERE id > 3)") == below(
        "SELECT 1 FROM student s WHERE EXISTS (SELECT 2 FROM course c WHERE s.enrolled = c.id AND c.id > 3)"
    )


@pytest.mark.parametrize(
    "condition",
    [
        "enrolled NOT IN (SELECT id FROM course)",
        "NOT (enrolled IN (SELECT id FROM course))",
        "NOT ((enrolled) IN ((SELECT id FROM course)))",
    ],
)
def test_not_in_is_true_where_no_comparison_is_true_or_unknown(condition: str) -> None:
    predicate, join = marked(condition)
    assert predicate == call("not", mark_of(join))
    assert join.word == "NOT IN"
    subject, member = column(join, 3), column(join, WIDTH)
    assert isinstance(join.condition, Call)
    assert join.condition.function == "or"
    assert set(join.condition.args) == {
        call("eq", subject, member),
        call("is_null", subject),
        call("is_null", member),
    }


def test_below_two_nots_in_is_in_again() -> None:
    _, join = marked("NOT (NOT (enrolled IN (SELECT id FROM course)))")
    assert join.word == "IN"
    _, join = marked("NOT (gpa > 3 OR NOT (enrolled IN (SELECT id FROM course)))")
    assert join.word == "IN"
    _, join = marked("NOT (gpa > 3 AND enrolled IN (SELECT id FROM course))")
    assert join.word == "NOT IN"


def test_a_row_is_compared_column_by_column() -> None:
    _, join = marked("(enrolled, major) IN (SELECT id, major FROM course)")
    equal = {
        call("eq", column(join, 3), column(join, WIDTH)),
        call("eq", column(join, 2), column(join, WIDTH + 1)),
    }
    assert isinstance(join.condition, Call)
    assert join.condition.function == "and"
    assert set(join.condition.args) == equal
    _, join = marked("(enrolled, major) NOT IN (SELECT id, major FROM course)")
    assert isinstance(join.condition, Call)
    assert [getattr(arg, "function", "") for arg in join.condition.args] == ["or", "or"]
    assert refused("SELECT 1 FROM student WHERE (enrolled, big) IN (SELECT id FROM course)")[0] == "42601"


@pytest.mark.parametrize(
    "item",
    [
        "enrolled IN (SELECT id FROM course)",
        "coalesce(enrolled IN (SELECT id FROM course), FALSE)",
        "CASE enrolled IN (SELECT id FROM course) WHEN TRUE THEN 1 END",
        "(enrolled IN (SELECT id FROM course)) IS NULL",
        "(enrolled IN (SELECT id FROM course)) = active",
        "CASE WHEN active THEN enrolled NOT IN (SELECT id FROM course) END",
    ],
)
def test_in_that_may_be_null_is_a_condition_alone(item: str) -> None:
    assert refused(f"SELECT {item} FROM student")[0] == "0A000"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CASE WHEN enrolled IN (SELECT id FROM course) THEN 1 END FROM student",
        "SELECT (enrolled IN (SELECT id FROM course)) IS NOT TRUE FROM student",
        "SELECT (enrolled IN (SELECT id FROM course)) IS FALSE FROM student",
        "SELECT EXISTS (SELECT 1) FROM student",
        "SELECT count(*) FILTER (WHERE enrolled IN (SELECT id FROM course)) FROM student",
        "SELECT count(*) FROM student HAVING count(*) IN (SELECT id FROM course)",
        "SELECT 1 FROM student JOIN hall.room r ON enrolled = r.id AND big IN (SELECT id FROM course)",
    ],
)
def test_where_truth_alone_is_asked_for(text: str) -> None:
    assert first_outer(relation(text)) is None


# --- names -----------------------------------------------------------------------------------------------


def test_the_inner_name_goes_first() -> None:
    _, join = marked("EXISTS (SELECT 1 FROM course WHERE major = s.major)")
    assert join.condition == call("eq", column(join, WIDTH + 1), column(join, 2))
    _, join = marked("EXISTS (SELECT 1 FROM hall.room WHERE id = enrolled)")
    assert join.condition == call("eq", column(join, WIDTH), column(join, 3))


def test_a_name_that_no_query_has() -> None:
    text = "SELECT 1 FROM student s WHERE EXISTS (SELECT 1 FROM course c WHERE {} = 1)"
    assert refused(text.format("nothing"))[0] == "42703"
    assert refused(text.format("c.gpa"))[0] == "42703"
    assert refused(text.format("s.nothing"))[0] == "42703"
    assert refused(
        "SELECT 1 FROM course a, course b WHERE EXISTS (SELECT 1 FROM hall.room WHERE major = 'x')"
    ) == (
        "42702",
        "major",
    )


def test_the_query_directly_around_and_no_further() -> None:
    text = """SELECT 1 FROM student s WHERE EXISTS (SELECT 1 FROM course c WHERE c.major = s.major AND EXISTS (
        SELECT 1 FROM hall.room r WHERE r.id = {}))"""
    assert first_outer(relation(text.format("c.id"))) is None
    assert refused(text.format("s.enrolled")) == ("0A000", "s.enrolled))")
    assert refused(text.format("s.nothing"))[0] == "42703"


def test_a_shadowed_table_name_is_the_inner_one() -> None:
    assert (
        refused("SELECT 1 FROM student s WHERE EXISTS (SELECT 1 FROM course s WHERE s.gpa > 3)")[0] == "42703"
    )


def test_an_output_name_goes_before_an_outer_column_in_group_by() -> None:
    text = "SELECT 1 FROM student WHERE enrolled IN (SELECT count(*) FROM course c GROUP BY {})"
    assert refused(text.format("gpa"))[0] == "PV004"
    grouped = relation("SELECT 1 FROM student WHERE EXISTS (SELECT id + 1 AS gpa FROM course GROUP BY gpa)")
    assert first_outer(grouped) is None

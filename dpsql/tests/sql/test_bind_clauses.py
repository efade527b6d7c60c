"""GROUP BY, HAVING, ORDER BY, windows, DISTINCT, LIMIT and set operations, as Postgres resolves them."""

from __future__ import annotations

import pytest

from dpsql.relation.expressions import Field
from dpsql.relation.relations import SetOperation, ends_in

from .campus import aggregate, expression, names, refused, relation, types


def sort_keys(text: str) -> list[tuple[int, bool, bool]]:
    """Return (position among the sorted columns, descending, nulls first) of each sort key."""
    node = relation(text)
    while not ends_in(node, "orders"):
        assert ends_in(node, "outputs", "limit")
        node = node.below
    assert all(isinstance(order.expr, Field) for order in node.orders)
    return [
        (order.expr.index, order.descending, order.nulls_first)
        for order in node.orders
        if isinstance(order.expr, Field)
    ]


# --- GROUP BY --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT major, count(*) FROM student GROUP BY 1", ["major"]),
        ("SELECT major AS m, count(*) FROM student GROUP BY m", ["major"]),
        ("SELECT enrolled / 10 AS decade FROM student GROUP BY decade", ["enrolled / 10"]),
        ("SELECT major, enrolled FROM student GROUP BY 2, 1", ["enrolled", "major"]),
        ("SELECT major FROM student GROUP BY major, major, 1", ["major"]),
        ("SELECT count(*) FROM student GROUP BY (major), upper(name)", ["major", "upper(name)"]),
        # An input column goes before an output name.
        ("SELECT enrolled + 1 AS enrolled FROM student GROUP BY enrolled", ["enrolled"]),
        ("SELECT major, name, count(*) FROM student GROUP BY ALL", ["major", "name"]),
        ("SELECT count(*) FROM student GROUP BY 1 + 0", ["1"]),
    ],
)
def test_group_keys(text: str, keys: list[str]) -> None:
    assert list(aggregate(text).keys) == [expression(key) for key in keys]


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("SELECT count(*) FROM student GROUP BY 2", "42P10", "2"),
        ("SELECT count(*) FROM student GROUP BY 0", "42P10", "0"),
        ("SELECT count(*) FROM student GROUP BY 1.5", "42601", "1.5"),
        ("SELECT count(*) FROM student GROUP BY 'a'", "42601", "'a'"),
        ("SELECT count(*) FROM student GROUP BY -1", "42P10", "1"),
        ("SELECT count(*) AS n FROM student GROUP BY n", "42803", "n"),
        ("SELECT 1 AS a, 2 AS a FROM student GROUP BY a", "42702", "a"),
        ("SELECT 1 FROM student GROUP BY nothing", "42703", "nothing"),
        ("SELECT count(*) FROM student GROUP BY count(*)", "42803", "count(*)"),
        ("SELECT name FROM student GROUP BY major", "42803", "name"),
        ("SELECT major, gpa + 1 FROM student GROUP BY major", "42803", "gpa"),
        ("SELECT name FROM student HAVING count(*) > 1", "42803", "name"),
        ("SELECT count(*) FROM student ORDER BY gpa", "42803", "gpa"),
        ("SELECT count(*), * FROM student", "42803", "*"),
        ("SELECT sum(count(*)) FROM student", "42803", "count(*))"),
        ("SELECT 1 FROM student WHERE count(*) > 1", "42803", "count(*)"),
        ("SELECT 1 FROM student JOIN course ON count(*) > 1", "42803", "count(*)"),
        ("SELECT count(*) FILTER (WHERE count(*) > 1) FROM student", "42803", None),
        ("SELECT 1 FROM student WHERE grouping(major) = 1", "42803", "grouping(major)"),
        ("SELECT grouping(name) FROM student GROUP BY major", "42803", "name)"),
        ("SELECT grouping(major) FROM student", "42803", "major)"),
        ("SELECT sum(grouping(major)) FROM student GROUP BY major", "42803", "grouping(major))"),
        ("SELECT INTERVAL '1 day' FROM student GROUP BY 1", "42804", "1"),
    ],
)
def test_a_wrong_group_is_refused_where_it_stands(text: str, code: str, at: str | None) -> None:
    found = refused(text)
    assert found[0] == code
    if at is not None:
        assert found[1] == at


@pytest.mark.parametrize(
    ("group", "sets"),
    [
        ("ROLLUP (major, name)", [(0, 1), (0,), ()]),
        ("CUBE (major, name)", [(0, 1), (0,), (1,), ()]),
        ("GROUPING SETS ((major, name), (name), ())", [(0, 1), (1,), ()]),
        ("major, ROLLUP (name)", [(0, 1), (0,)]),
        ("ROLLUP ((major, name), enrolled)", [(0, 1, 2), (0, 1), ()]),
        ("GROUPING SETS (ROLLUP (major), CUBE (name))", [(0,), (), (1,), ()]),
        ("GROUPING SETS (major, major)", [(0,), (0,)]),
        ("ROLLUP (major = 'x', name IS NULL)", [(0, 1), (0,), ()]),
        ("CUBE ((enrolled) > 1)", [(0,), ()]),
        (
            "GROUPING SETS (major = 'x' OR enrolled IN (1, 2), (name, enrolled > 1), ROLLUP (NOT enrolled BETWEEN 1 AND 2))",
            [(0,), (1, 2), (3,), ()],
        ),
        ("ROLLUP ((major, enrolled > 1), name || 'x' = 'y')", [(0, 1, 2), (0, 1), ()]),
        ("ROLLUP (major), ROLLUP (name)", [(0, 1), (0,), (1,), ()]),
        ("()", [()]),
    ],
)
def test_grouping_sets(group: str, sets: list[tuple[int, ...]]) -> None:
    assert list(aggregate(f"SELECT count(*) FROM student GROUP BY {group}").sets) == sets


def test_grouping_sets_are_counted() -> None:
    six = ", ".join(f"enrolled + {n}" for n in range(1, 7))
    assert len(aggregate(f"SELECT count(*) FROM student GROUP BY CUBE ({six})").sets) == 64
    assert refused(f"SELECT count(*) FROM student GROUP BY CUBE ({six}, name)")[0] == "54001"
    many = ", ".join(f"CUBE (enrolled + {n}, enrolled - {n})" for n in range(1, 20))
    assert refused(f"SELECT count(*) FROM student GROUP BY {many}")[0] == "54001"


def test_grouping_bits_are_of_the_keys_in_the_order_written() -> None:
    node = aggregate(
        "SELECT grouping(name, major), grouping(major) FROM student GROUP BY ROLLUP (major, name)"
    )
    assert node.groupings == ((1, 0), (0,))


def test_equal_aggregates_are_one_and_a_true_filter_is_none() -> None:
    node = aggregate(
        "SELECT sum(gpa), sum(student.gpa) + 1, count(*) FILTER (WHERE TRUE), count(*), count(gpa) FROM student"
    )
    assert [(call.function, call.filter) for call in node.aggregates] == [
        ("sum", None),
        ("count", None),
        ("count", None),
    ]


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        ("count(*)", "bigint"),
        ("count(name)", "bigint"),
        ("sum(enrolled)", "bigint"),
        ("sum(small)", "bigint"),
        ("sum(big)", "numeric(38,0)"),
        ("sum(fee)", "numeric(38,2)"),
        ("sum(ratio)", "real"),
        ("sum(gpa)", "double precision"),
        ("avg(enrolled)", "numeric"),
        ("avg(ratio)", "double precision"),
        ("avg(gpa)", "double precision"),
        ("stddev(enrolled)", "numeric"),
        ("var_pop(ratio)", "double precision"),
        ("bool_and(active)", "boolean"),
        ("every(active)", "boolean"),
        ("count(DISTINCT major)", "bigint"),
        ("dp_avg_direct(gpa)", "double precision"),
    ],
)
def test_aggregates_have_postgres_types(call: str, type_: str) -> None:
    assert types(f"SELECT {call} FROM student") == [type_]


@pytest.mark.parametrize(
    "call",
    ["sum(name)", "avg(active)", "bool_and(gpa)", "sum(*)", "avg()", "dp_avg_direct(gpa, 1)", "sum(born)"],
)
def test_aggregates_of_other_types_do_not_exist(call: str) -> None:
    assert refused(f"SELECT {call} FROM student")[0] in ("42883", "42601", "PV001")


# --- ORDER BY, DISTINCT, LIMIT ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT gpa, name FROM student ORDER BY 2", [(1, False, False)]),
        ("SELECT gpa FROM student ORDER BY name", [(1, False, False)]),
        ("SELECT gpa AS g FROM student ORDER BY g DESC", [(0, True, True)]),
        ("SELECT gpa FROM student ORDER BY gpa DESC NULLS LAST", [(0, True, False)]),
        ("SELECT gpa FROM student ORDER BY gpa NULLS FIRST", [(0, False, True)]),
        # An output name goes before an input column.
        ("SELECT gpa, -gpa AS gpa2, name AS gpa3 FROM student ORDER BY gpa3", [(2, False, False)]),
        ("SELECT name AS gpa, gpa AS name FROM student ORDER BY gpa", [(0, False, False)]),
        ("SELECT name AS gpa FROM student ORDER BY gpa || 'x'", [(1, False, False)]),
        ("SELECT gpa, gpa FROM student ORDER BY gpa", [(0, False, False)]),
        (
            "SELECT major FROM student GROUP BY major ORDER BY count(*) DESC, major",
            [(1, True, True), (0, False, False)],
        ),
    ],
)
def test_sort_keys(text: str, keys: list[tuple[int, bool, bool]]) -> None:
    assert sort_keys(text) == keys
    assert len(names(text)) == text.split(" FROM ")[0].count(",") + 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT gpa FROM student ORDER BY 2", "42P10"),
        ("SELECT gpa FROM student ORDER BY -1", "42P10"),
        ("SELECT gpa FROM student ORDER BY 1.5", "42601"),
        ("SELECT gpa FROM student ORDER BY NULL", "42601"),
        ("SELECT gpa AS x, name AS x FROM student ORDER BY x", "42702"),
        ("SELECT gpa AS g FROM student ORDER BY g + 1", "42703"),
        ("SELECT DISTINCT gpa FROM student ORDER BY name", "42P10"),
        ("SELECT gpa FROM student LIMIT -1", "22023"),
        ("SELECT gpa FROM student LIMIT gpa", "22023"),
        ("SELECT gpa FROM student LIMIT 1.5", "22023"),
        ("SELECT gpa FROM student LIMIT (SELECT 1)", "22023"),
        ("SELECT gpa FROM student OFFSET 'a'", "22023"),
    ],
)
def test_a_wrong_order_or_limit_is_refused(text: str, code: str) -> None:
    assert refused(text)[0] == code


def test_distinct_sorts_by_what_is_selected() -> None:
    node = relation("SELECT DISTINCT gpa AS g FROM student ORDER BY g")
    assert ends_in(node, "orders")
    assert ends_in(node.below, "distinct")


def test_limits() -> None:
    node = relation("SELECT gpa FROM student LIMIT 5 OFFSET 2")
    assert ends_in(node, "limit")
    assert node.limit == (5, 2)
    assert ends_in(relation("SELECT gpa FROM student LIMIT NULL"), "outputs")
    parameter = relation("SELECT gpa FROM student LIMIT $1", 3)
    assert ends_in(parameter, "limit")
    assert parameter.limit == (3, 0)


# --- HAVING and windows -------------------------------------------------------------------------------------


def test_having_sees_no_output_name() -> None:
    assert refused("SELECT count(*) AS n FROM student HAVING n > 1") == ("42703", "n")
    node = relation("SELECT 1 FROM student HAVING count(*) > 1")
    assert ends_in(node, "outputs")
    assert ends_in(node.below, "having")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 1 FROM student HAVING count(*) OVER () > 1", "42803"),
        ("SELECT 1 FROM student WHERE row_number() OVER () = 1", "42803"),
        ("SELECT count(*) FROM student GROUP BY row_number() OVER ()", "42803"),
        ("SELECT sum(rank() OVER ()) FROM student", "42803"),
        ("SELECT sum(gpa) OVER (PARTITION BY rank() OVER ()) FROM student", "42803"),
        ("SELECT sum(gpa) OVER w FROM student", "42704"),
        ("SELECT upper(name) OVER () FROM student", "PV001"),
        ("SELECT count(DISTINCT gpa) OVER () FROM student", "0A000"),
        ("SELECT sum(name) OVER () FROM student", "42883"),
        ("SELECT lag(gpa, gpa) OVER () FROM student", "22023"),
        ("SELECT sum(gpa) OVER (ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM student", "22023"),
        ("SELECT sum(gpa) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM student", "42P20"),
        ("SELECT row_number() FROM student", "PV001"),
    ],
)
def test_a_wrong_window_is_refused(text: str, code: str) -> None:
    assert refused(text)[0] == code


def test_windows_stand_over_the_aggregated_rows() -> None:
    node = relation("SELECT major, rank() OVER (ORDER BY count(*) DESC) FROM student GROUP BY major")
    assert ends_in(node, "outputs")
    assert ends_in(node.below, "windows")
    (call,) = node.below.windows
    assert call.orders[0].expr == Field(call.orders[0].expr.type, 1)


def test_equal_windows_are_one_and_named_ones_are_found() -> None:
    items = "sum(gpa) OVER w, avg(gpa) OVER (PARTITION BY major), sum(gpa) OVER W"
    node = relation(f"SELECT {items} FROM student WINDOW w AS (PARTITION BY major)")
    assert ends_in(node, "outputs")
    assert ends_in(node.below, "windows")
    assert [call.function for call in node.below.windows] == ["sum", "avg"]


# --- set operations -----------------------------------------------------------------------------------------


def test_intersect_binds_more_than_union() -> None:
    node = relation("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3")
    assert isinstance(node, SetOperation)
    assert node.kind == "union"
    assert isinstance(node.right, SetOperation)
    left = relation("SELECT 1 EXCEPT SELECT 2 UNION ALL SELECT 3")
    assert isinstance(left, SetOperation)
    assert (left.kind, left.all) == ("union", True)
    assert isinstance(left.left, SetOperation)
    assert (left.left.kind, left.left.all) == ("except", False)


def test_the_sides_of_a_set_operation_meet_in_one_type() -> None:
    assert types("SELECT 1 UNION SELECT 2.5") == ["numeric"]
    assert types("SELECT enrolled FROM student UNION ALL SELECT big FROM student") == ["bigint"]
    assert types("SELECT NULL UNION SELECT 'a'") == ["text"]
    assert names("SELECT 1 AS a UNION SELECT 2 AS b ORDER BY a") == ["a"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 1 UNION SELECT 1, 2", "42601"),
        ("SELECT gpa FROM student UNION SELECT name FROM student", "42804"),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY a + 1", "0A000"),
        ("SELECT 1 AS a UNION SELECT 2 AS b ORDER BY b", "0A000"),
        ("SELECT 1 UNION SELECT 2 ORDER BY 2", "42P10"),
    ],
)
def test_a_wrong_set_operation_is_refused(text: str, code: str) -> None:
    assert refused(text)[0] == code


def test_values_are_columns_1_2_3_of_one_type_each() -> None:
    assert names("VALUES (1, 'a'), (2, NULL)") == ["column1", "column2"]
    assert types("VALUES (1, NULL), (2.5, DATE '2020-01-01')")[1] == "date"
    assert refused("VALUES (1), (1, 2)")[0] == "42601"
    assert refused("VALUES (1), ('a')")[0] == "42804"
    assert refused("VALUES (gpa)")[0] == "42703"

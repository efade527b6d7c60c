"""Names: folding, quotes, ambiguity, USING, CTEs, and the names of output columns, as Postgres has them.

Where a subquery may stand, and where its join goes.
"""

from __future__ import annotations

import pytest

from dpsql.relation.expressions import Call, Field
from dpsql.relation.relations import Join, Scan, ends_in

from .campus import expression, names, refused, relation
from .joins import WIDTH, below, call, column


@pytest.mark.parametrize(
    "written",
    [
        "gpa",
        "GPA",
        '"gpa"',
        "student.gpa",
        "STUDENT.Gpa",
        '"student"."gpa"',
        "main.student.gpa",
        '"main".STUDENT.gpa',
    ],
)
def test_unquoted_names_fold_to_lower_case(written: str) -> None:
    assert expression(written) == expression("gpa")


@pytest.mark.parametrize(
    "written", ['"GPA"', '"Student".gpa', "course.gpa", "hall.student.gpa", '"Main".student.gpa', "nothing"]
)
def test_a_column_that_does_not_exist(written: str) -> None:
    assert refused(f"SELECT {written} FROM student")[0] == "42703"


def test_a_table_under_another_name_has_no_schema() -> None:
    assert refused("SELECT main.s.gpa FROM student AS s")[0] == "42703"
    assert refused("SELECT main.student.gpa FROM student AS s")[0] == "42703"


def test_a_name_of_the_catalog_that_differs_in_case_alone_is_found() -> None:
    assert names("SELECT title FROM course") == ["title"]
    assert names('SELECT "Title" FROM course') == ["Title"]
    assert refused('SELECT "TITLE" FROM course')[0] == "42703"
    bound = expression("a", source=' FROM "Odd Name"')
    assert isinstance(bound, Field)
    assert bound.index == 1


@pytest.mark.parametrize(
    "written", ["student", "main.student", "STUDENT", "hall.room", "HALL.Room", '"Odd Name"']
)
def test_a_table_is_found(written: str) -> None:
    bound = relation(f"SELECT 1 FROM {written}")
    assert ends_in(bound, "outputs")
    assert isinstance(bound.below, Scan)


@pytest.mark.parametrize(
    "written",
    ["nothing", "hall.student", "room", "main.room", "main.main.student", '"Student"', "student_secret"],
)
def test_a_table_that_does_not_exist_and_one_that_is_not_declared_read_the_same(written: str) -> None:
    assert refused(f"SELECT 1 FROM {written}") == (
        "42P01" if "main.main" not in written else "0A000",
        written,
    )


def test_ambiguous_columns() -> None:
    assert refused("SELECT major FROM student, course") == ("42702", "major")
    assert refused("SELECT 1 FROM student a JOIN course b ON major = 'x'") == ("42702", "major")
    assert names("SELECT student.major, course.major FROM student, course") == ["major", "major"]


def test_a_from_name_is_used_once() -> None:
    assert refused("SELECT 1 FROM student, student")[0] == "42601"
    assert refused("SELECT 1 FROM student a JOIN course a ON TRUE")[0] == "42601"
    assert names("SELECT a.id, b.id FROM course a, course b") == ["id", "id"]
    assert names("SELECT * FROM (SELECT 1 AS x), (SELECT 2 AS y)") == ["x", "y"]


def test_an_alias_hides_the_table_name() -> None:
    assert refused("SELECT course.id FROM course c")[0] == "42703"
    assert names("SELECT c.id FROM course AS c") == ["id"]


def test_column_aliases_rename_the_first_columns() -> None:
    assert names("SELECT * FROM course AS c(x, y)") == ["x", "y", "Title"]
    assert refused("SELECT 1 FROM course AS c(a, b, c, d)")[0] == "42P10"
    assert refused("SELECT id FROM course AS c(a)")[0] == "42703"


def test_star_shows_the_columns_in_order() -> None:
    assert names("SELECT *, c.* FROM course c") == ["id", "major", "Title"] * 2
    assert refused("SELECT *")[0] == "42601"
    assert refused("SELECT x.* FROM course c")[0] == "42P01"
    assert names("SELECT C.* FROM course c") == ["id", "major", "Title"]


# --- USING -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("join", "index"), [("JOIN", 0), ("LEFT JOIN", 0), ("RIGHT JOIN", 2)])
def test_a_using_column_is_one_column_of_the_kept_side(join: str, index: int) -> None:
    text = f"SELECT k FROM (VALUES (1, 2)) a(k, x) {join} (VALUES (1, 3)) b(k, y) USING (k)"
    bound = relation(text)
    assert ends_in(bound, "outputs")
    assert isinstance(bound.exprs[0], Field)
    assert bound.exprs[0].index == index


def test_a_using_column_of_a_full_join_is_either() -> None:
    bound = relation("SELECT k FROM (VALUES (1, 2)) a(k, x) FULL JOIN (VALUES (1, 3)) b(k, y) USING (k)")
    assert ends_in(bound, "outputs")
    assert isinstance(bound.exprs[0], Call)
    assert bound.exprs[0].function == "coalesce"


def test_using_columns_come_first_in_star_and_keep_their_qualified_names() -> None:
    from_ = "FROM (VALUES (1, 2)) a(x, k) JOIN (VALUES (1, 3)) b(y, k) USING (k)"
    assert names(f"SELECT * {from_}") == ["k", "x", "y"]
    assert names(f"SELECT a.*, b.k {from_}") == ["x", "k", "k"]
    assert names(f"SELECT * {from_} JOIN (VALUES (3, 4)) c(k, z) USING (k)") == ["k", "x", "y", "z"]


def test_a_using_column_stands_in_both_tables_once() -> None:
    assert refused("SELECT 1 FROM student JOIN course USING (gpa)")[0] == "42703"
    assert (
        refused(
            "SELECT 1 FROM (VALUES (1)) a(k) JOIN (VALUES (1)) b(k) ON TRUE JOIN (VALUES (1)) c(k) USING (k)"
        )[0]
        == "42702"
    )
    assert refused("SELECT 1 FROM (VALUES (1)) a(k) JOIN (VALUES ('x')) b(k) USING (k)")[0] == "42883"


def test_joins_without_a_condition() -> None:
    for text in (
        "JOIN course",
        "INNER JOIN course",
        "LEFT JOIN course",
        "CROSS JOIN course ON TRUE",
        "POSITIONAL JOIN course",
    ):
        assert refused(f"SELECT 1 FROM student {text}")[0] == "42601", text
    for text in ("CROSS JOIN course", ", course", "JOIN course ON TRUE"):
        bound = relation(f"SELECT 1 FROM student {text}")
        assert ends_in(bound, "outputs")
        assert isinstance(bound.below, Join)
        assert bound.below.kind == "cross"


def test_a_comma_binds_less_than_join_so_right_and_full_are_refused_after_it() -> None:
    for side in ("RIGHT", "FULL"):
        assert (
            refused(f"SELECT 1 FROM hall.room, student a {side} JOIN course b ON a.major = b.major")[0]
            == "0A000"
        )
    assert relation("SELECT 1 FROM hall.room, student a LEFT JOIN course b ON a.major = b.major")


def joined(text: str) -> Join:
    bound = relation(text)
    assert ends_in(bound, "outputs")
    assert isinstance(bound.below, Join)
    return bound.below


# --- NATURAL ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["", "LEFT ", "RIGHT ", "FULL "])
def test_natural_is_using_all_columns_that_both_sides_show(side: str) -> None:
    sides = "(VALUES (1, 2, 3)) a(x, k, j)", "(VALUES (1, 3, 4)) b(j, y, k)"
    natural = f"SELECT * FROM {sides[0]} NATURAL {side}JOIN {sides[1]}"
    assert relation(natural) == relation(f"SELECT * FROM {sides[0]} {side}JOIN {sides[1]} USING (k, j)")
    assert names(natural) == ["k", "j", "x", "y"]


def test_natural_without_a_common_column_keeps_every_pair() -> None:
    sides = "(VALUES (1)) a(x)", "(VALUES (1)) b(y)"
    assert joined(f"SELECT 1 FROM {sides[0]} NATURAL JOIN {sides[1]}").kind == "cross"
    assert joined(f"SELECT 1 FROM {sides[0]} NATURAL LEFT JOIN {sides[1]}").kind == "left"


def test_natural_sees_a_column_of_using_once() -> None:
    text = "SELECT * FROM (VALUES (1)) a(k) JOIN (VALUES (1)) b(k) {} NATURAL JOIN (VALUES (1)) c(k)"
    assert names(text.format("USING (k)")) == ["k"]
    assert refused(text.format("ON TRUE"))[0] == "42702"


def test_natural_after_a_comma_is_refused() -> None:
    assert refused("SELECT 1 FROM hall.room, student NATURAL JOIN course")[0] == "0A000"


# --- parentheses -----------------------------------------------------------------------------------------


def test_parentheses_hold_a_join_of_their_own() -> None:
    text = (
        "SELECT c.id FROM student a LEFT JOIN (course c JOIN hall.room r ON c.id = r.id) ON a.major = c.major"
    )
    outer = joined(text)
    assert outer.kind == "left"
    assert isinstance(outer.right, Join)
    assert outer.right.kind == "inner"
    assert relation(text) == relation(text.replace("(course", "course").replace("r.id) ON", "r.id ON"))
    assert refused("SELECT 1 FROM student a JOIN (course c JOIN hall.room r ON a.big = r.id) ON TRUE") == (
        "42703",
        "a.big",
    )


def test_columns_in_parentheses_are_counted_from_the_left() -> None:
    text = "SELECT z.k, y.v FROM (VALUES (1)) x(a) CROSS JOIN ((SELECT 1 AS k, 2 AS v) y JOIN (VALUES (3)) z(k) USING (k))"
    bound = relation(text)
    assert ends_in(bound, "outputs")
    assert [e.index for e in bound.exprs if isinstance(e, Field)] == [3, 2]
    assert names(text.replace("z.k, y.v", "*")) == ["k", "a", "v"]


def test_an_alias_of_parentheses_hides_the_names_inside() -> None:
    text = "SELECT {} FROM (course a JOIN hall.room b USING (id)) AS j"
    assert names(text.format("*")) == ["id", "major", "Title", "seats"]
    assert names(text.format("j.seats")) == ["seats"]
    assert refused(text.format("b.seats")) == ("42703", "b.seats")
    assert refused("SELECT 1 FROM course a CROSS JOIN (course b CROSS JOIN hall.room a)")[0] == "42601"


# --- WITH ------------------------------------------------------------------------------------------------


def test_a_cte_shadows_a_table_and_sees_the_ones_before_it() -> None:
    assert names("WITH student AS (SELECT 1 AS x) SELECT * FROM student") == ["x"]
    assert names("WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM b") == ["y"]
    assert names("WITH course AS (SELECT id FROM course) SELECT * FROM course") == ["id"]
    assert names("WITH a(z) AS (SELECT 1 AS x) SELECT * FROM a AS t(w)") == ["w"]
    assert "gpa" in names("WITH student AS (SELECT 1 AS x) SELECT * FROM main.student")


def test_a_cte_is_seen_inside_and_not_outside_its_query() -> None:
    assert names("WITH a AS (SELECT 1 AS x) SELECT * FROM (SELECT x FROM a) t") == ["x"]
    assert names(
        "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS y) SELECT * FROM a) t, a"
    ) == ["y", "x"]
    assert names("WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION SELECT x FROM a ORDER BY x") == ["x"]
    assert refused("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) t, a") == ("42P01", "a")
    assert refused("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT 1") == ("42P01", "a),")
    assert refused("WITH a AS (SELECT 1), A AS (SELECT 2) SELECT 1") == ("42601", "A")
    assert refused("WITH a AS (SELECT nothing) SELECT 1")[0] == "42703"
    assert names('WITH "A" AS (SELECT 1 AS x), a AS (SELECT 2 AS y) SELECT * FROM "A", a') == ["x", "y"]


def test_a_subquery_in_from_sees_no_column_of_the_outer_query() -> None:
    assert refused("SELECT 1 FROM student, (SELECT gpa) AS s") == ("42703", "gpa)")
    assert refused("WITH a AS (SELECT gpa) SELECT 1 FROM student, a") == ("42703", "gpa)")
    assert refused("SELECT (SELECT 1, 2)")[0] == "42601"


# --- output names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("gpa", "gpa"),
        ("student.gpa", "gpa"),
        ("gpa AS X", "x"),
        ('gpa AS "X"', "X"),
        ("gpa x", "x"),
        ("(gpa)", "gpa"),
        ("gpa + 1", "?column?"),
        ("count(*)", "count"),
        ("sum(gpa) FILTER (WHERE active)", "sum"),
        ("avg(gpa)::int", "avg"),
        ("row_number() OVER ()", "row_number"),
        ("1::numeric(5,2)", "numeric"),
        ("'a'::varchar", "varchar"),
        ("1::bigint", "int8"),
        ("CAST(gpa AS integer)", "gpa"),
        ("CAST(gpa + 1 AS integer)", "int4"),
        ("CASE WHEN active THEN 1 ELSE big END", "big"),
        ("CASE WHEN active THEN big END", "case"),
        ("coalesce(gpa, 1)", "coalesce"),
        ("nullif(gpa, 1)", "nullif"),
        ("greatest(gpa, 1)", "greatest"),
        ("extract(year FROM born)", "extract"),
        ("date_trunc('month', born)", "date_trunc"),
        ("TRUE", "?column?"),
        ("NOT active", "?column?"),
        ("gpa IS NULL", "?column?"),
        ("DATE '2020-01-01'", "date"),
        ("(SELECT 5 AS foo)", "foo"),
        ("(SELECT gpa FROM student LIMIT 1)", "gpa"),
        ("bool_and(active)", "bool_and"),
        ("trim(name)", "btrim"),
        ("ltrim(name)", "ltrim"),
        ("position('a' IN name)", "position"),
        ("stddev(gpa)", "stddev"),
        ("var_pop(gpa)", "var_pop"),
        ("current_date", "current_date"),
        ("dp_avg_direct(gpa)", "dp_avg_direct"),
        ("upper(name)", "upper"),
        ("name || 'x'", "?column?"),
        ("-gpa", "?column?"),
        ("grouping(name)", "grouping"),
    ],
)
def test_an_output_column_is_named_as_in_postgres(item: str, name: str) -> None:
    group = " GROUP BY name" if "grouping" in item else ""
    assert names(f"SELECT {item} FROM student{group}") == [name]


def test_functions_above_a_release_are_named_as_postgres_names_them() -> None:
    text = "SELECT to_timestamp(1), to_date(name, 'YYYY'), name ~ 'a', split_part(name, ',', 1), btrim(name, 'x') FROM student"
    assert names(text) == ["to_timestamp", "to_date", "?column?", "split_part", "btrim"]


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

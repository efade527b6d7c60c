"""The allow-list: what is not on it is refused where it stands, clauses that are false included (law L4).

From text to one statement: limits, characters, positions, and what a lenient parser could read in two ways.
"""

from __future__ import annotations

import pytest
from sqlglot import exp

from dpsql.errors import Refusal
from dpsql.sql.statement import (
    ADMITTED,
    AdmittedQuery,
    Explain,
    ResetSetting,
    SetSetting,
    ShowSetting,
    admit,
    parse_statement,
)
from dpsql.sql.text import MAX_TEXT, blank_prefix, place

from .campus import refused, relation


def failure(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        parse_statement(text)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM student TABLESAMPLE SYSTEM (10)",
        "SELECT gpa FROM student FOR UPDATE",
        "SELECT * FROM student NATURAL CROSS JOIN course",
        "SELECT * FROM student NATURAL JOIN course ON TRUE",
        "SELECT * FROM student NATURAL JOIN course USING (major)",
        "SELECT * FROM student LEFT SEMI JOIN course ON TRUE",
        "SELECT * FROM student ANTI JOIN course ON TRUE",
        "SELECT * FROM (student JOIN course ON TRUE LIMIT 1)",
        "SELECT * FROM (student)",
        "SELECT * FROM (student, course)",
        "SELECT * FROM ((SELECT 1) AS a)",
        "(SELECT 1) AS a CROSS JOIN course",
        "SELECT ((SELECT 1) AS a CROSS JOIN course)",
        "WITH a AS (student CROSS JOIN course) SELECT * FROM a",
        "SELECT 1 FROM student WHERE enrolled IN ((SELECT id FROM course), 2)",
        "SELECT 1 FROM student WHERE ROW(enrolled, major) IN (SELECT id, major FROM course)",
        "SELECT 1 FROM student WHERE (enrolled, major) = (SELECT id, major FROM course)",
        "SELECT 1 FROM student WHERE UNIQUE (SELECT 1)",
        "WITH a AS MATERIALIZED (SELECT 1) SELECT * FROM a",
        "WITH a AS NOT MATERIALIZED (SELECT 1) SELECT * FROM a",
        "SELECT name @@ 'a' FROM student",
        'SELECT name COLLATE "C" FROM student',
        "SELECT ROW(1, 2)",
        "SELECT count(gpa, name) FROM student",
        "SELECT random()",
        "SELECT * FROM read_csv('x')",
        "SELECT * FROM 'x.csv'",
        "SELECT CASE WHEN a THEN 1 END FROM student GROUP BY DISTINCT a",
        "SELECT 1 UNION ALL BY NAME SELECT 2",
        "SELECT * EXCLUDE (gpa) FROM student",
        "SELECT * REPLACE (1 AS gpa) FROM student",
        "SELECT student.* EXCLUDE (gpa) FROM student",
        "SELECT COLUMNS('a') FROM student",
        "SELECT a -> 'b' FROM student",
        "SELECT name || ALL FROM student",
        "SELECT {'a': 1}",
        "SELECT sha256(name) FROM student",
        "SELECT current_user",
        "SELECT version()",
        "SELECT substring(name, 'a') SIMILAR 'x' FROM student",
        "SELECT lag(gpa) IGNORE NULLS OVER () FROM student",
        "SELECT * FROM student ASOF JOIN course ON TRUE",
        "SELECT * FROM student POSITIONAL JOIN course",
        "PIVOT student ON major",
        "SELECT /*+ hint */ 1 FROM student AS OF TIMESTAMP '2020-01-01'",
        "SELECT * FROM student USING SAMPLE 10",
    ],
)
def test_what_is_not_on_the_list_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        relation(text)


def test_an_unknown_node_is_refused_with_its_place() -> None:
    found = failure("SELECT 1,\n B'1' FROM student")
    assert found.sqlstate == "PV001"
    assert found.position is not None
    assert found.position.line == 2
    assert found.hint is not None


def test_an_argument_that_is_false_is_an_argument() -> None:
    tree = exp.Select(expressions=[exp.Literal.number(1)], kind=False)
    with pytest.raises(Refusal):
        admit(tree, "")


def test_absent_arguments_are_no_arguments() -> None:
    admit(exp.Select(expressions=[exp.Literal.number(1)], kind=None, laterals=[]), "")


def test_every_admitted_argument_exists_in_the_parser() -> None:
    for node, arguments in ADMITTED.items():
        assert arguments <= {*node.arg_types, "negate"}, node


@pytest.mark.parametrize("text", ["", "   ", ";", ";;", "-- only a comment", "/* a */"])
def test_a_text_without_a_statement_is_refused(text: str) -> None:
    assert failure(text).sqlstate == "42601"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT 1 ; ",
        "(SELECT 1)",
        "VALUES (1)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT 1 -- tail",
        "/* a /* b */ c */ SELECT 1",
        "select\n1",
    ],
)
def test_a_query_is_read(text: str) -> None:
    assert isinstance(parse_statement(text), AdmittedQuery)


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2", "SELECT 1; DROP TABLE student"])
def test_two_statements_are_refused(text: str) -> None:
    assert failure(text).sqlstate == "42601"


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE student SET gpa = 4",
        "COPY student TO 'x'",
        "ATTACH 'x'",
        "PRAGMA database_list",
        "FROM student",
        "CALL f()",
        "LOAD 'x'",
        "BEGIN",
    ],
)
def test_only_queries_are_answered(text: str) -> None:
    found = failure(text)
    assert found.sqlstate == "0A000"
    assert found.position == place(text, 0)


def test_the_text_has_a_limit() -> None:
    text = "SELECT 1" + " " * (MAX_TEXT - 8)
    assert isinstance(parse_statement(text), AdmittedQuery)
    assert failure(text + " ").sqlstate == "54001"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 70 + "1" + ")" * 70,
        "SELECT " + "+".join("1" * 3000),
        "SELECT " + "- " * 70 + "1",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    ],
)
def test_a_tree_has_a_limit(text: str) -> None:
    assert failure(text).sqlstate == "54001"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT\u00a01", 6),
        ("SELECT 1 \u2019a\u2019", 9),
        ("SELECT 'a' 'b'", 11),
        ("SELECT 'a'\n'b'", 11),
        ("SELECT U&'\\0041'", 7),
        ('SELECT U&"a"', 7),
        ("SELECT u&'a'", 7),
        ("SELECT 1_000", 7),
        ("SELECT 1abc", 7),
        ("SELECT $1abc", 8),
        ("SELECT 1 --\r + 1", 11),
        ("SELECT \u0435", 7),
        ("SELECT DATE '2020-01-01'::text", 24),
        ("SELECT INTERVAL '1 day'::text", 23),
    ],
)
def test_a_text_with_two_readings_is_refused(text: str, at: int) -> None:
    found = failure(text)
    assert found.sqlstate == "42601"
    assert found.position == place(text, at)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'ä 🙂'",
        'SELECT 1 AS "größe"',
        "SELECT 1 -- ü",
        "SELECT /* — */ 1",
        "SELECT $$ü'a$$",
        "SELECT 1\r\n",
    ],
)
def test_quotes_and_comments_may_hold_any_character(text: str) -> None:
    assert isinstance(parse_statement(text), AdmittedQuery)


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "SELECT /* a", "SELECT $$a", "SELECT $t$a$$"])
def test_an_open_quote_is_refused(text: str) -> None:
    assert failure(text).sqlstate == "42601"


@pytest.mark.parametrize("text", ["SELECT X'1F'", "SELECT B'1'"])
def test_hexadecimal_and_bit_strings_are_refused(text: str) -> None:
    assert failure(text).sqlstate in ("PV001", "42601")


@pytest.mark.parametrize(
    ("text", "near", "line"),
    [
        ("SELECT 1 +", None, 1),
        ("SELECT FROM WHERE x", "WHERE", 1),
        ("SELECT\n  1 AS\n  FROM WHERE", None, None),
        ("SELECT (1", None, 1),
    ],
)
def test_a_syntax_error_has_a_place(text: str, near: str | None, line: int | None) -> None:
    found = failure(text)
    assert found.sqlstate == "42601"
    assert found.position is not None
    if near is not None:
        assert text[found.position.offset :].startswith(near)
    if line is not None:
        assert found.position.line == line


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT COUNT(*) FROM student GROUP BY", 29),
        ("SELECT COUNT(*) FROM student GROUP BY;", 29),
        ("SELECT COUNT(*) FROM student GROUP  BY HAVING COUNT(*) > 3", 29),
        ("SELECT COUNT(*) FROM student GROUP BY ORDER BY 1", 29),
        ("SELECT COUNT(*) FROM (SELECT major FROM student GROUP BY) AS t GROUP BY ()", 48),
        ("SELECT COUNT(*) FROM student GROUP BY UNION ALL SELECT 1", 29),
    ],
)
def test_group_by_with_nothing_after_it_is_a_syntax_error(text: str, at: int) -> None:
    found = failure(text)
    assert (found.sqlstate, found.message) == ("42601", 'syntax error at or near "GROUP BY"')
    assert found.position is not None
    assert found.position.offset == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT major, COUNT(*) FROM student GROUP BY major,", 50),
        ("SELECT COUNT(*), FROM student", 15),
        ("SELECT COUNT(*) FROM student,", 28),
        ("SELECT COUNT(*) FROM student, WHERE gpa > 3", 28),
        ("SELECT SUM(gpa,) FROM student", 14),
        ("SELECT COUNT(*) FROM student WHERE id IN (1, 2,)", 46),
        ("SELECT COUNT(*) FROM student WHERE id = ANY (ARRAY[1,])", 52),
        ("SELECT COUNT(*), AVG(gpa), FROM student UNION ALL SELECT 1, 2", 25),
    ],
)
def test_a_comma_with_nothing_after_it_is_a_syntax_error(text: str, at: int) -> None:
    found = failure(text)
    assert (found.sqlstate, found.message) == ("42601", 'syntax error at or near ","')
    assert found.position is not None
    assert found.position.offset == at


def test_a_name_in_quotes_may_come_after_a_comma() -> None:
    text = 'SELECT COUNT(*), MAX(gpa) AS "from" FROM student, "limit"'
    assert isinstance(parse_statement(text), AdmittedQuery)


def test_positions_count_lines_and_columns_from_one_and_offsets_from_zero() -> None:
    text = "SELECT 1,\n  nothing\nFROM student"
    assert refused(text) == ("42703", "nothing")
    at = place(text, text.index("nothing"))
    assert (at.line, at.column, at.offset) == (2, 3, 12)


@pytest.mark.parametrize(
    "prefix", ["EXPLAIN ", "explain (format json)\n", "  EXPLAIN\n\n", "EXPLAIN (FORMAT TEXT) "]
)
def test_a_position_below_explain_points_into_the_whole_text(prefix: str) -> None:
    assert refused(prefix + "SELECT nothing FROM student") == ("42703", "nothing")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("EXPLAIN SELECT 1", "text"),
        ("explain (FORMAT JSON) select 1", "json"),
        ("EXPLAIN (FORMAT TEXT) SELECT 1", "text"),
        ("EXPLAIN ANALYZE SELECT 1", "text"),
        ("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT 1", "json"),
        ("EXPLAIN (VERBOSE, COSTS off) SELECT 1", "text"),
        ("EXPLAIN ANALYSE VERBOSE SELECT 1", "text"),
        ("EXPLAIN (FORMAT JSON, ANALYSE, GENERIC_PLAN false) SELECT 1", "json"),
        ("EXPLAIN (FORMAT XML, ANALYSE) SELECT 1", "xml"),
        ("EXPLAIN (format yaml) SELECT 1", "yaml"),
    ],
)
def test_explain(text: str, form: str) -> None:
    found = parse_statement(text)
    assert isinstance(found, Explain)
    assert found.form == form


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN (LOUD) SELECT 1",
        "EXPLAIN (ANALYZE maybe) SELECT 1",
        "EXPLAIN () SELECT 1",
        "EXPLAIN DROP TABLE t",
        "EXPLAIN",
        "EXPLAIN (FORMAT CSV) SELECT 1",
        "EXPLAIN EXPLAIN SELECT 1",
    ],
)
def test_explain_of_anything_else_is_refused(text: str) -> None:
    assert failure(text).sqlstate in ("0A000", "42601")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SET dpsql.epsilon = 0.5", SetSetting("dpsql.epsilon", "0.5")),
        ("set session DPSQL.epsilon to '0.5';", SetSetting("dpsql.epsilon", "0.5")),
        ("SHOW dpsql.budget", ShowSetting("dpsql.budget")),
        ("RESET dpsql.epsilon;", ResetSetting("dpsql.epsilon")),
    ],
)
def test_settings(text: str, expected: object) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    "text", ["SET", "SET dpsql.epsilon", "SET a = 1; SELECT 1", "SHOW", "RESET", "SHOW a b", "SET a = 'x"]
)
def test_a_setting_written_wrong_is_refused(text: str) -> None:
    assert failure(text).sqlstate in ("42601", "0A000")


def test_a_blanked_prefix_keeps_lines_and_offsets() -> None:
    assert blank_prefix("EXPLAIN\n SELECT", 9) == "       \n SELECT"


def test_a_zero_byte_is_refused() -> None:
    assert failure("SELECT 1\x00").sqlstate == "42601"


def test_a_quoted_word_is_no_keyword() -> None:
    for word in ("explain", "set", "show", "reset", "select"):
        assert failure(f'"{word}" 1').sqlstate in ("0A000", "42601")

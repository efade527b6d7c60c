"""The allow-list: what is not on it is refused where it stands, clauses that are false included (law L4)."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dpsql.errors import Refusal
from dpsql.sql.admit import ADMITTED, admit
from dpsql.sql.statement import parse_statement

from .campus import relation


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

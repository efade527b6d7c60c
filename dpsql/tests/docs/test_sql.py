"""The manual's tables of what is answered and what is refused, each line by an example; its SQL, and its functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from dpsql import Session
from dpsql.errors import Refusal
from dpsql.relation.functions import FUNCTIONS, manual_lines
from dpsql.relation.functions.above import REFUSED as LEFT_OUT
from dpsql.testing.case_file import Accepted, read_cases

from .documents import ROOT, blocks, section, text

ANSWERED = {
    "aggregates": [
        "SELECT COUNT(*), COUNT(fee), COUNT(DISTINCT fee), SUM(fee), AVG(fee) FROM loan",
        "SELECT VARIANCE(gpa), VAR_POP(gpa), VAR_SAMP(gpa) FROM student",
        "SELECT STDDEV(gpa), STDDEV_POP(gpa), STDDEV_SAMP(gpa) FROM student",
        "SELECT AVG(fee) FILTER (WHERE branch = 'Law'), COUNT(*) FILTER (WHERE days_out > 28) FROM loan",
    ],
    "two values": [
        "SELECT COVAR_POP(gpa, enrolled), COVAR_SAMP(gpa, enrolled), CORR(gpa, enrolled) FROM student",
        "SELECT REGR_SLOPE(gpa, enrolled), REGR_INTERCEPT(gpa, enrolled), REGR_R2(gpa, enrolled) FROM student",
        "SELECT major, REGR_COUNT(gpa, enrolled), REGR_AVGX(gpa, enrolled), REGR_AVGY(gpa, enrolled) FROM student"
        " GROUP BY major",
        "SELECT REGR_SXX(gpa, enrolled), REGR_SYY(gpa, enrolled), REGR_SXY(gpa, enrolled) FILTER (WHERE gpa > 3)"
        " FROM student",
    ],
    "values by rank": [
        "SELECT MEDIAN(gpa), MIN(enrolled), MAX(born) FROM student",
        "SELECT major, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY gpa), PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY"
        " born DESC) FROM student GROUP BY major",
    ],
    "counting people": ["SELECT COUNT(DISTINCT student_id) FROM loan"],
    "on people's rows": [
        "SELECT COUNT(*) FROM student WHERE COALESCE(gpa, 2) * 2 > 6 OR name LIKE 'A%' OR CAST(gpa AS integer) = 3",
        "SELECT SUM(CASE WHEN fee > 0 THEN 1 ELSE 0 END) FROM loan",
        "SELECT COUNT(*) FROM loan WHERE fee / days_out > 1 AND extract(month FROM loaned_on) = 3",
        "SELECT COUNT(*) FROM student WHERE lower(name) = 'ada kim' AND length(name) > 3",
        "SELECT COUNT(*) FROM student WHERE starts_with(name, 'Theo') AND concat_ws('-', major, enrolled) <> 'CS-2019'",
    ],
    "groups known beforehand": [
        "SELECT major, COUNT(*) FROM student GROUP BY major",
        "SELECT enrolled, gpa, born, COUNT(*) FROM student WHERE born < DATE '1999-02-01' GROUP BY 1, 2, 3",
        "SELECT date_trunc('month', loaned_on), COUNT(*) FROM loan GROUP BY 1",
        "SELECT days_out / 7, COUNT(*) FROM loan GROUP BY 1",
        "SELECT floor(gpa / 0.5) * 0.5, width_bucket(gpa, 2, 4, 10), COUNT(*) FROM student GROUP BY 1, 2",
        "SELECT to_char(loaned_on, 'YYYY-MM'), COUNT(*) FROM loan GROUP BY 1",
        "SELECT lpad(extract(month FROM loaned_on)::text, 2, '0'), COUNT(*) FROM loan GROUP BY 1",
        "SELECT length(major), COUNT(*) FROM student GROUP BY 1",
        "SELECT gpa >= 3, CASE WHEN gpa < 2.5 THEN 'low' ELSE 'high' END, COUNT(*) FROM student GROUP BY 1, 2",
    ],
    "parts of equal shares of people": [
        "SELECT part, COUNT(*), AVG(gpa) FROM (SELECT gpa, NTILE(4) OVER (ORDER BY gpa) AS part FROM student) t GROUP BY part",
    ],
    "parts of a text in rows": [
        "SELECT COUNT(*) FROM loan, unnest(string_to_array(branch, ' ')) AS word",
        "SELECT word, COUNT(*) FROM loan CROSS JOIN LATERAL unnest(string_to_array(branch, ' ')) AS t (word) "
        "WHERE word IN ('Law', 'Central') GROUP BY word",
    ],
    "keys of public tables": [
        "SELECT title, COUNT(*) FROM course JOIN enrolment ON course.id = course_id WHERE credits > 3 GROUP BY title",
        "SELECT title, COUNT(*) FROM enrolment LEFT JOIN course ON course.id = course_id GROUP BY title",
    ],
    "groups found in the data": ["SELECT name, COUNT(*) FROM student GROUP BY name"],
    "several groupings": [
        "SELECT major, enrolled, COUNT(*) FROM student GROUP BY ROLLUP (major, enrolled)",
        "SELECT major, enrolled, COUNT(*) FROM student GROUP BY CUBE (major, enrolled)",
        "SELECT major, enrolled, COUNT(*) FROM student GROUP BY GROUPING SETS ((major), (enrolled))",
    ],
    "joins": [
        "SELECT major, AVG(days_out) FROM student JOIN loan ON student_id = id GROUP BY major",
        "SELECT course.department, COUNT(*) FROM enrolment JOIN course ON course.id = enrolment.course_id GROUP BY 1",
    ],
    "per person": [
        "SELECT AVG(n) FROM (SELECT student_id, COUNT(*) AS n FROM loan GROUP BY student_id) AS t",
        "SELECT COUNT(*) FROM (SELECT student_id, SUM(fee) AS s, AVG(fee) AS a, MIN(fee) AS lo, MAX(fee) AS hi,"
        " BOOL_AND(fee > 0) AS b, BOOL_OR(fee > 1) AS c FROM loan GROUP BY student_id) AS t WHERE hi > 5 AND b",
        "SELECT AVG(days_out) FROM (SELECT days_out, ROW_NUMBER() OVER (PARTITION BY student_id ORDER BY loaned_on) AS k"
        " FROM loan) AS t WHERE k = 1",
        "SELECT COUNT(*) FROM (SELECT id FROM student UNION SELECT student_id FROM loan) AS t",
        "SELECT COUNT(*) FROM (SELECT id FROM student EXCEPT SELECT student_id FROM loan) AS t",
        "SELECT COUNT(*) FROM student WHERE id NOT IN (SELECT student_id FROM loan)",
        "SELECT AVG(m) FROM (SELECT student_id, MEDIAN(days_out) AS m FROM loan GROUP BY student_id) AS t",
        "SELECT branch, COUNT(*) FROM (SELECT student_id, mode() WITHIN GROUP (ORDER BY branch) AS branch FROM loan"
        " GROUP BY student_id) AS t GROUP BY branch",
        "SELECT AVG(days_out) FROM (SELECT student_id, days_out FROM loan"
        " QUALIFY row_number() OVER (PARTITION BY student_id ORDER BY loaned_on DESC) = 1) AS t",
        "SELECT AVG(n) FROM (SELECT student_id, COUNT(*) OVER (PARTITION BY student_id ORDER BY loaned_on"
        " RANGE INTERVAL '30 days' PRECEDING) AS n FROM loan) AS t",
        "SELECT AVG(l.days_out) FROM student s CROSS JOIN LATERAL (SELECT days_out FROM loan WHERE student_id = s.id"
        " ORDER BY loaned_on LIMIT 3) AS l",
    ],
    "subqueries": [
        "SELECT COUNT(*) FROM student WHERE EXISTS (SELECT 1 FROM loan WHERE student_id = student.id)",
        "SELECT COUNT(*) FROM student WHERE NOT EXISTS (SELECT 1 FROM loan WHERE student_id = student.id)",
        "SELECT COUNT(*) FROM student WHERE id IN (SELECT student_id FROM loan)",
        "SELECT COUNT(*) FROM student WHERE (SELECT COUNT(*) FROM loan WHERE student_id = student.id) > 3",
    ],
    "above": [
        "SELECT major, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) FROM student GROUP BY major"
        " HAVING COUNT(*) > 9 ORDER BY n LIMIT 3",
        "WITH m AS (SELECT major, COUNT(*) AS n FROM student GROUP BY major)"
        " SELECT a.major, CASE WHEN a.n > 9 THEN a.n - b.n END FROM m AS a JOIN m AS b ON a.major = b.major",
        "SELECT c.title, n FROM (SELECT course_id, COUNT(*) AS n FROM enrolment GROUP BY 1) AS e"
        " JOIN course AS c ON c.id = e.course_id",
        "SELECT COUNT(*) FROM student UNION SELECT COUNT(*) FROM loan",
        "SELECT (SELECT COUNT(*) FROM student) + 1",
        "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM student GROUP BY major) AS t",
    ],
    "a result used below": [
        "SELECT COUNT(*) FROM student WHERE gpa > (SELECT AVG(gpa) FROM student)",
        "SELECT COUNT(*) FROM student JOIN (SELECT major, AVG(gpa) AS a FROM student GROUP BY major) AS m"
        " USING (major) WHERE gpa > a",
    ],
    "public tables": ["SELECT title, MIN(credits) OVER () FROM course WHERE department LIKE 'C%'"],
    "what tools look at first": [
        "SELECT name, gpa FROM student ORDER BY gpa OFFSET 5 FETCH FIRST 5 ROWS ONLY",
        "SELECT 1 FROM student LIMIT 1",
        "SELECT EXISTS (SELECT 1 FROM student)",
    ],
    "error bars": ["SELECT dp_low(COUNT(*)), dp_high(COUNT(*)) FROM student"],
    "for teaching": ["SELECT dp_avg_direct(gpa) FROM student"],
}
REFUSED = {
    "rows of people": [
        "SELECT name FROM student",
        "SELECT 1 FROM student WHERE gpa > 3 LIMIT 1",
        "SELECT COUNT(*) FROM (SELECT * FROM student LIMIT 9) AS t",
        "SELECT COUNT(*) OVER () FROM student",
    ],
    "a group per person": [
        "SELECT id, COUNT(*) FROM student GROUP BY id",
        "SELECT student_id, COUNT(*) FROM loan GROUP BY 1",
    ],
    "rows of two people in one": [
        "SELECT COUNT(*) FROM student AS a JOIN student AS b ON a.major = b.major",
        "SELECT COUNT(*) FROM student CROSS JOIN loan",
    ],
    "rows of nobody": [
        "SELECT COUNT(*) FROM course LEFT JOIN enrolment ON course.id = enrolment.course_id",
        "SELECT COUNT(*) FROM course FULL JOIN enrolment ON course.id = enrolment.course_id",
        "SELECT COUNT(*) FROM course WHERE id IN (SELECT course_id FROM enrolment)",
    ],
    "one row that moves all": [
        "SELECT COUNT(*) FROM student WHERE id NOT IN (SELECT days_out FROM loan)",
    ],
    "whose is it": [
        "SELECT COUNT(*) FROM (SELECT major FROM student WHERE gpa > 3 EXCEPT SELECT major FROM student WHERE gpa < 2) AS t",
    ],
    "bins of equal size": [
        "SELECT NTILE(4) OVER (ORDER BY gpa) FROM student",
        "SELECT part, COUNT(*) FROM (SELECT NTILE(21) OVER (ORDER BY gpa) AS part FROM student) AS t GROUP BY part",
    ],
    "other aggregates": [
        "SELECT BOOL_AND(gpa > 2) FROM student",
        "SELECT STRING_AGG(name, ',') FROM student",
        "SELECT AVG(DISTINCT gpa) FROM student",
        "SELECT MODE(gpa) FROM student",
        "SELECT MIN(name) FROM student",
        "SELECT percentile_cont(ARRAY[]) WITHIN GROUP (ORDER BY gpa) FROM student",
    ],
    "without bounds": ["SELECT SUM(id) FROM student", "SELECT AVG(id) FROM student"],
    "anything else": [
        "SELECT COUNT(*) FROM student WHERE name ~ '(?=A)'",
        r"SELECT COUNT(*) FROM student WHERE name ~ '(a)\1'",
        "SELECT COUNT(*) FROM student WHERE sha256(name::bytea) = 'a'",
        "SELECT COUNT(*) FROM student WHERE trim('x' FROM name) = 'a'",
        "SELECT random()",
        "DELETE FROM student",
        "SET work_mem = 4",
    ],
}


_J = "to_jsonb(c)"
LEFT_ABOVE = {
    "JSON": [
        (f"SELECT 1 FROM course c WHERE {_J} = {_J}", "42883 = does not take"),
        (f"SELECT {_J} FROM course c ORDER BY 1", "42883"),
        ("SELECT title::jsonb FROM course", "0A000 text is not cast to jsonb"),
        ("SELECT to_json(c)::jsonb FROM course c", "0A000 json is not cast to jsonb"),
    ],
    "more of JSON": [
        (f"SELECT jsonb_set({_J}, '{{title}}', '1') FROM course c", "0A000 jsonb_set() is not answered"),
        ("SELECT * FROM json_to_recordset('[]') AS x(a integer)", "PV001 a column with its type in FROM"),
        (f"SELECT {_J} @> '{{}}'::jsonb FROM course c", "42883 @> does not take json"),
        (f"SELECT {_J} ? 'title' FROM course c", "PV001 the operator ?"),
        (f"SELECT {_J} ?| ARRAY['title'] FROM course c", "PV001 the operator ?|"),
        (f"SELECT {_J} - 'title' FROM course c", "42883 - does not take json"),
        (f"SELECT {_J} || {_J} FROM course c", "42883 || joins texts and arrays"),
        (f"SELECT {_J} @@ '$.id > 1' FROM course c", "PV001 the operator @@"),
        (f"SELECT {_J} #- '{{title}}' FROM course c", "PV001 the operator #-"),
    ],
    "hypothetical sets": [("SELECT rank(3) WITHIN GROUP (ORDER BY credits) FROM course", "PV001 a hypothetical set")],
    "arrays": [
        ("SELECT ARRAY[ARRAY[1]]", "42804 an array cannot hold"),
        ("SELECT title::text[] FROM course", "0A000 text is not cast to text[]"),
        ("SELECT title LIKE ANY (string_to_array(title, ' ')) FROM course", "PV202 LIKE ANY"),
    ],
    "series": [
        ("SELECT * FROM generate_series(1.5, 2.5)", "42883 generate_series("),
        ("SELECT g FROM course, generate_series(now(), now(), credits * INTERVAL '1 day') AS g", "0A000 the step of"),
    ],
    "`ROWS FROM`, `TABLESAMPLE`, `SEARCH`, `CYCLE`": [
        ("SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS r", "PV001 ROWS FROM"),
        ("SELECT * FROM course TABLESAMPLE BERNOULLI (10)", "PV001 TABLESAMPLE"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SEARCH DEPTH FIRST BY n SET o"
         " SELECT * FROM r", "PV001 SEARCH or CYCLE"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) CYCLE n SET c USING p"
         " SELECT * FROM r", "PV001 SEARCH or CYCLE"),
    ],
    "columns further out": [
        ("SELECT (SELECT (SELECT c.credits + u.n FROM course LIMIT 1) FROM (SELECT 1 AS n) u) FROM course c",
         "0A000 a subquery can use columns of the query directly around it"),
    ],
    "`FETCH … PERCENT`, `DISTINCT` in `OVER`": [
        ("SELECT title FROM course FETCH FIRST 10 PERCENT ROWS ONLY", "0A000 FETCH FIRST takes a number of rows"),
        ("SELECT count(DISTINCT credits) OVER () FROM course", "0A000 DISTINCT and ORDER BY do not stand inside"),
    ],
}  # fmt: skip
"""What is left above a release: statements for each line, and how the refusal begins."""


@pytest.fixture(scope="module")
def session(walked: Path) -> Iterator[Session]:
    with Session.open(walked / "campus.toml") as session:
        yield session


def rows_under(heading: str) -> list[str]:
    """Return the first cells of the table with this second heading."""
    table = text("sql").split(f"| | {heading} |\n|---|---|\n")[1].split("\n\n")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.split("\n")]


def test_every_line_has_its_examples() -> None:
    assert rows_under("answered") == list(ANSWERED)
    assert rows_under("refused in this version") == list(REFUSED)


@pytest.mark.parametrize("sql", [sql for group in ANSWERED.values() for sql in group])
def test_answered(session: Session, sql: str) -> None:
    assert "charge: " in session.explain(sql).text()


@pytest.mark.parametrize("sql", [sql for group in REFUSED.values() for sql in group])
def test_refused(session: Session, sql: str) -> None:
    with pytest.raises(Refusal):
        session.execute(sql)


def test_every_line_of_what_is_left_has_its_examples() -> None:
    assert rows_under("refused above the release") == list(LEFT_ABOVE)


@pytest.mark.parametrize(("sql", "said"), [one for group in LEFT_ABOVE.values() for one in group])
def test_what_is_left_is_refused_in_these_words(session: Session, sql: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert f"{caught.value.sqlstate} {caught.value.args[0]}".startswith(said)
    assert caught.value.hint


_ABOVE = text("sql").split("## Above the release")[1].split("What is left")[0]
_CALLED = sorted(
    {name.lower() for name in re.findall(r"\b([A-Za-z]\w+)\(", _ABOVE + section("sql", "Functions"))}
)


def test_no_function_that_is_named_is_refused_by_its_name(session: Session) -> None:
    """It may refuse its arguments, which are not its own here."""
    assert len(_CALLED) > 100
    unknown = [
        name
        for name in _CALLED
        if name not in {*LEFT_OUT, "row", "varchar"}
        and not any(map(partial(_knows, session, name), ("", "title")))
    ]
    assert unknown == []


def _knows(session: Session, name: str, argument: str) -> bool:
    try:
        session.explain(f"SELECT {name}({argument}) FROM course")
    except Refusal as refusal:
        return re.search("does not exist here|is not answered|is not supported", refusal.args[0]) is None
    return True


def test_the_way_out_that_is_named(session: Session) -> None:
    session.explain("SELECT AVG(id) FROM student WHERE id BETWEEN 0 AND 1000")
    session.explain("SELECT COUNT(*) FILTER (WHERE gpa < 3) FROM student")


def test_the_statements_of_the_text_are_answered(session: Session) -> None:
    statements = [line for block in blocks("sql", "sql") for line in block.splitlines()]
    assert len(statements) >= 3
    for sql in statements:
        session.explain(sql)


def test_the_functions_are_those_of_the_table() -> None:
    """`python -m dpsql.relation.functions` prints them."""
    assert manual_lines() in section("sql", "Functions")
    assert all(row.form and row.doc for row in FUNCTIONS.values())


def test_what_is_left_out_is_refused_by_name_with_a_rewrite(session: Session) -> None:
    rows = [
        f"| {', '.join(f'`{name}`' for name in left.names)} | {left.why} | `{left.instead}` |"
        for left in dict.fromkeys(LEFT_OUT.values())
    ]
    assert "\n".join(["| | why not | write |", "|---|---|---|", *rows]) in text("sql")
    for name, left in LEFT_OUT.items():
        with pytest.raises(Refusal, match=re.escape(f"{name}() is not answered")) as caught:
            session.explain(f"SELECT {name}(title) FROM course")
        assert caught.value.hint == f"write {left.instead}"


@pytest.mark.parametrize("instead", sorted({left.instead for left in LEFT_OUT.values()}))
def test_the_rewrite_is_answered(session: Session, instead: str) -> None:
    columns = {"x": "title", "y": "title", "n": "credits"}
    if re.match(r"exp|sin|min_scale|x::|x \+", instead):
        columns["x"] = "now()" if instead.startswith("x") else "credits"
    written = re.sub(r"(?<![\w'])[xyn](?![\w'])", lambda found: columns[found[0]], instead)
    session.explain(f"SELECT {written} FROM course")


@pytest.mark.parametrize(
    ("name", "words"), [("README", "{} of the {} queries"), ("performance", "the {} of its {} queries")]
)
def test_how_much_of_tpch_is_answered(name: str, words: str) -> None:
    cases = read_cases(ROOT / "grammar_tests" / "corpus" / "tpch.case")
    as_they_are = [case for case in cases if re.fullmatch(r"tpch\d\d", case.name)]
    answered = [case for case in as_they_are if isinstance(case.expected, Accepted)]
    assert words.format(len(answered), len(as_they_are)) in text(name)
